// The random-entry control: what the same trades would have returned at other times.
//
// A control keeps every trade's side, number of bars, share of equity and costs, and its exposure to the market with
// them; order and places are random. Trades follow each other without overlap: the free bars fall before, between and
// behind them at random. A trade's result is side x share x (price at exit / price at entry - 1) - costs, its share and
// costs being those of the trade over the equity before it; results compound. There are no stops in a control: a trade
// lasts as long as the true one. Random numbers are a function of seed, control and trade.
#ifndef TRADEWIND_BACKTEST_CONTROL_H
#define TRADEWIND_BACKTEST_CONTROL_H

#include "base/err.h"

#include <stdint.h>

enum { CONTROL_DRAWS = 1000 };

typedef struct {
    int64_t bars; // from entry to exit; at least 1 is taken
    double share; // value at entry over equity, above 0 for a long position and below for a short one
    double cost;  // over equity
} control_trade;

typedef struct {
    const double *price; // [bars] that fills have: opens, where entries and exits are at opens
    int64_t bars;
    const control_trade *trade;
    int64_t trades;
    uint64_t seed;
} control_input;

typedef struct {
    double mean, low, high; // return: the mean, and the 5 % and 95 % percentiles
    double better;          // share of controls that return at least `own`
} control;

// CONTROL_DRAWS controls, compared with a return of `own`. `*room` is false, and `to` empty, where the trades overlap
// so that their bars do not fit one behind the other. ERR_RUN where memory is short.
bool control_make(const control_input *in, double own, control *to, bool *room, err *e);

#endif
