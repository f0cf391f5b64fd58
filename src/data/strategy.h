// The strategy vector: 32 classic trading rules, each a signal and a strength.
//
// A signal is -1 (sell, or the condition's opposite), 0 or 1 (buy); a strength lies within 0..1 and is 0 where the
// signal is. Signals come first in the vector, then the strengths in the same order: 64 columns. The rules are listed
// in strategy.def. They are not advice: they are what models are given to weigh.
//
// As with features, a bar's columns depend on the bars pushed so far and on nothing else.
#ifndef TRADEWIND_DATA_STRATEGY_H
#define TRADEWIND_DATA_STRATEGY_H

#include "base/err.h"
#include "data/bar.h"

enum { STRATEGIES = 32, STRATEGY_COLUMNS = 64 };

typedef struct strategy strategy;

// A row of strategy.def.
typedef struct {
    const char *name, *signal, *strength;
} strategy_info;

strategy_info strategy_at(int i);

// The name of a column, 0..63: "rsi_14", and "rsi_14_strength" for its strength.
const char *strategy_name(int column);

// Rules for bars of `span` seconds. NULL on failure: ERR_INPUT for a span below 1.
strategy *strategy_new(int64_t span, err *e);
void strategy_free(strategy *s);

// Takes the bar that has just closed. Times must not fall.
void strategy_push(strategy *s, const bar *b, int8_t signal[STRATEGIES], float strength[STRATEGIES]);

// Pushes `count` bars into rows of `signal` and `strength`, [count, 32] each.
void strategy_run(strategy *s, const bar *bars, int64_t count, int8_t *signal, float *strength);

// As if no bar had been pushed.
void strategy_reset(strategy *s);

// The state after the bars pushed so far, as with features.
size_t strategy_state(const strategy *s);
void strategy_save(const strategy *s, double *to);
bool strategy_load(strategy *s, const double *from);

// The first bar, counting from 0, whose columns are meaningful. They are 0 until all rules are defined, at bar 199;
// exponential averages then still feel where the bars began.
int64_t strategy_warm_up(const strategy *s);

#endif
