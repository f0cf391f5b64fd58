// Labels: what is to be predicted, from the bars that follow a row.
//
// Every label has its end row: the bar whose close made it known. A row whose label needs bars that are not there has
// none: LABEL_NONE, end row -1. A sample may be trained on only when its end row lies before what it is tested on.
//
// `volatility` [count] is that of volatility.h over `volatility_bars` bars, or NULL where these are 0. Rows before it
// is known have no label. Prices must be positive. Bars are rows of one series; at most INT32_MAX of them.
#ifndef TRADEWIND_DATA_LABEL_H
#define TRADEWIND_DATA_LABEL_H

#include "base/err.h"
#include "data/bar.h"

enum { LABEL_NONE = -1, LABEL_DOWN, LABEL_NEUTRAL, LABEL_UP };
enum { LABEL_BARS_MOST = 10000 }; // of a horizon, a time limit, a volatility

typedef enum { LABEL_RELATIVE, LABEL_LOG } label_return;
typedef enum { LABEL_TIMEOUT_NEUTRAL, LABEL_TIMEOUT_SIGN } label_timeout;
typedef enum { LABEL_CLOSE, LABEL_STEP, LABEL_PATH } label_value;

typedef struct {
    int64_t horizon; // bars ahead, 1..LABEL_BARS_MOST
    label_return measure;
    double band;             // returns within -band..band are NEUTRAL; 0 or more
    int64_t volatility_bars; // 0: the band is a return; else it is a multiple of the volatility of one bar
    int classes;             // 3; or 5: a move beyond `strong` bands has a class of its own
    double strong;           // more than 1; read with 5 classes only
} label_direction_options;

// The direction of the close `horizon` bars ahead: DOWN, NEUTRAL, UP; with 5 classes 0 strongly down, 1 down, 2
// neutral, 3 up, 4 strongly up. Writes `count` labels and end rows. ERR_INPUT for options out of their range.
bool label_direction(const bar *bars, const double *volatility, int64_t count, const label_direction_options *o,
    int32_t *label, int32_t *end_row, err *e);

// Turns labels of 5 classes into 3, in place; LABEL_NONE stays.
void label_to_three(int32_t *label, int64_t count);

typedef struct {
    double up, down;         // distances of the barriers, more than 0
    int64_t volatility_bars; // 0: distances are log returns; else multiples of the volatility of one bar
    int64_t limit;           // bars, 1..LABEL_BARS_MOST
    int side;                // 1: a long position, whose stop is the lower barrier; -1: a short one
    label_timeout timeout;   // what a row is that touched neither: NEUTRAL, or by the sign of its return
} label_barrier_options;

// How many rows ended how. `both`: of those touched, by a bar that reached both barriers, so that the order is not
// known and the stop is taken. `gap`: of those touched, by a bar that opened beyond a barrier.
typedef struct {
    int64_t up, down, timeout, both, gap, none;
} label_barrier_counts;

// Adds counts to others.
void label_barrier_add(label_barrier_counts *to, const label_barrier_counts *n);

// The barrier that the bars after a row touch first: UP, DOWN, or what `timeout` says `limit` bars later. The barriers
// lie at close * exp(up * volatility) and close * exp(-down * volatility). A bar that opens beyond a barrier touched
// that one. Rows of no volatility have no label. `counts` may be NULL. ERR_INPUT for options out of their range.
bool label_barrier(const bar *bars, const double *volatility, int64_t count, const label_barrier_options *o,
    int32_t *label, int32_t *end_row, label_barrier_counts *counts, err *e);

// The next `horizon` values of every row, [count, horizon]: closes, one-bar log returns (STEP), or log returns since
// the row's close (PATH). Rows that lack bars are 0 with end row -1. ERR_INPUT for a horizon out of its range.
bool label_forecast(
    const bar *bars, int64_t count, int64_t horizon, label_value value, float *target, int32_t *end_row, err *e);

#endif
