// Bars of one instrument for fills: prices as whole numbers of 1e-8, an array each, row by row as the file has them.
#ifndef TRADEWIND_BACKTEST_QUOTES_H
#define TRADEWIND_BACKTEST_QUOTES_H

#include "data/bars.h"

typedef struct {
    int64_t count;
    int64_t *time;                      // of the opens: seconds since 1970, ascending, equal ones possible
    int64_t *open, *high, *low, *close; // above 0
    int64_t *spread;                    // in price units; NULL: not asked for
    int64_t point;                      // size of a point: that of the prices' last digit, unless given
} quotes;

// Takes prices over from bars; `name` stands for their file in messages. `point` is in price units, 0 for that of the
// prices' digits. With `spreads` the bars must have a column of them. ERR_INPUT where 1e-8 is too coarse for a price,
// or the price is above 9e10. On failure `q` is empty.
bool quotes_init(quotes *q, const bars *b, const char *name, double point, bool spreads, err *e);

// The same from a file, which is read as it is (bars_options).
bool quotes_read(quotes *q, const char *path, double point, bool spreads, err *e);

// Room for `count` rows, to be filled one by one by quotes_put: for bars that come one after the other. `point` is in
// 1e-8.
bool quotes_room(quotes *q, int64_t count, int64_t point, bool spreads, const char *name, err *e);
bool quotes_put(quotes *q, int64_t row, const bar *b, const char *name, err *e);

// Safe to call twice.
void quotes_done(quotes *q);

#endif
