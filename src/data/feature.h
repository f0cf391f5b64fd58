// Features: columns computed from bars, one bar after another.
//
// A feature is written as a name of the catalogue (feature.def), with numbers joined by underscores: rsi_14,
// macd_signal_12_26_9, bollinger_position_20_2.5; numbers that are left out at the end take their defaults. A list of
// features takes bars as they close and gives one row of floats for each. There is no other way to compute them: a
// whole file is pushed bar by bar, and a live bar gets the same numbers.
//
// A row depends on the bars pushed so far and on nothing else. Every number is finite, whatever positive prices come
// in; a column is 0 until it has seen the bars that it is defined by. High and low are widened to hold open and close.
// A list is used by one thread at a time.
#ifndef TRADEWIND_DATA_FEATURE_H
#define TRADEWIND_DATA_FEATURE_H

#include "base/err.h"
#include "data/bar.h"

typedef struct feature_list feature_list;

enum { FEATURE_LIST_MOST = 4096, FEATURE_NAME_MOST = 64, FEATURE_FAST = 15, FEATURE_SLOW = 8 };

// Features of the reference job: on 5-minute bars, and on hourly ones.
extern const char *const feature_default_fast[FEATURE_FAST];
extern const char *const feature_default_slow[FEATURE_SLOW];

// A row of the catalogue.
typedef struct {
    const char *name;
    const char *parameters; // a letter for each: n bars, N bars, more than the number before, k a multiple
    double number[3];       // defaults
    const char *range, *meaning;
} feature_info;

int feature_count(void);
feature_info feature_at(int i);

// A list of 1..FEATURE_LIST_MOST features of bars of `span_seconds`. NULL on failure: ERR_INPUT where a name is not
// known (the nearest is named), a number is out of its range or a feature is listed twice.
feature_list *feature_list_new(const char *const *specs, int count, int64_t span_seconds, err *e);
void feature_list_free(feature_list *l);

// Columns, and their names with all numbers: "rsi" is "rsi_14".
int feature_list_width(const feature_list *l);
const char *feature_list_name(const feature_list *l, int column);

// Bars before every column is meaningful: the first row that is, counting from 0. Columns are defined before that;
// exponential averages (EMA, Wilder's) then still feel where the bars began, by a thousandth or more.
int64_t feature_list_warm_up(const feature_list *l);

// The same of one column.
int64_t feature_list_needs(const feature_list *l, int column);

// Takes the bar that has just closed and writes its row. Times must not fall.
void feature_list_push(feature_list *l, const bar *b, float *out);

// Pushes `count` bars into rows of `out` [count, width].
void feature_list_run(feature_list *l, const bar *bars, int64_t count, float *out);

// As if no bar had been pushed: before another series.
void feature_list_reset(feature_list *l);

// The state after the bars pushed so far, as feature_list_state numbers: a list of the same features that loads them
// goes on as the one that saved them. False where the numbers cannot be a state.
size_t feature_list_state(const feature_list *l);
void feature_list_save(const feature_list *l, double *to);
bool feature_list_load(feature_list *l, const double *from);

#endif
