// Signal files: anyone's wanted positions, as a table of time, position, stop and target.
//
// A signal's time is the open of the bar at whose close it was decided; it fills at the next bar's open. A position is
// a number of lots, below 0 when short. Stop and target are prices; an empty cell means none. Columns are known by
// their names and may stand in any order; stop and target may be missing.
#ifndef TRADEWIND_BACKTEST_SIGNALS_H
#define TRADEWIND_BACKTEST_SIGNALS_H

#include "backtest/quotes.h"
#include "env/account.h"

typedef struct {
    int64_t time;
    int64_t lots, stop, target; // in 1e-8; no stop or target: 0
    int64_t line;
} signals_row;

typedef struct {
    const char *name;
    signals_row *row; // [count], times strictly ascending
    int64_t count;
} signals;

// Reads a file, packed or not, or standard input ("-"). ERR_INPUT with "FILE:LINE: ..." where a column is unknown, a
// cell is no time or number, or times do not ascend. `path` must outlive `s`. On failure `s` is empty.
bool signals_read(signals *s, const char *path, err *e);

// The same from memory.
bool signals_parse(signals *s, const char *name, const char *data, size_t size, err *e);

// Safe to call twice.
void signals_done(signals *s);

// An order and the bar at whose open it fills.
typedef struct {
    int64_t bar;
    account_order order;
} signals_order;

typedef struct {
    signals_order *item; // [count], bars strictly ascending
    int64_t count;
    int64_t outside; // signals before the first bar or behind the last one
    int64_t late;    // signals of the last bar, which has no next open
    int64_t crossed; // positions whose stop or target the close, at which they were decided, is beyond
    int64_t small;   // positions that are cut to nothing by the lot step
} signals_orders;

// Finds the bar of each signal. ERR_INPUT where all of them lie outside the bars, where one lies between two bars, or
// where its position is too large. On failure `o` is empty.
bool signals_place(signals_orders *o, const signals *s, const quotes *q, const account_rules *r, err *e);

// Safe to call twice.
void signals_orders_done(signals_orders *o);

#endif
