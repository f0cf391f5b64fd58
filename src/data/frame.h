// Frames: coarser bars made of finer ones.
//
// A coarse bar holds the fine bars that open within its span. Spans of up to a day are counted from midnight UTC, weeks
// from Monday, months by the calendar. A coarse bar is known when its span is over, whether or not fine bars are
// missing in it. The first and the last are left out where the fine bars do not reach over all of their span: they
// would be other bars than the market had.
#ifndef TRADEWIND_DATA_FRAME_H
#define TRADEWIND_DATA_FRAME_H

#include "base/err.h"
#include "data/bar.h"

#include <stddef.h>

// Reads "5m", "1h", "90s", "1d", "1w", "1mo", also "M5", "H1", "D1", "W1", "MN1", as seconds: up to a day, a week
// (WHEN_WEEK) or a month (WHEN_MONTH). False where it is none, and for "1M": a minute to some, Binance's month to
// others.
bool frame_read(const char *text, size_t n, int64_t *span);

// The bars that coarse ones are made of.
typedef struct {
    const bar *bar; // [count], times rising
    int64_t count, span;
    bool follows; // the bars before the first are in coarse bars already: the first coarse bar is whole
} frame_source;

// Coarse bars of `to` seconds. `*made` is the caller's to free, and may be NULL where `*n` is 0. ERR_INPUT where `to`
// is no multiple of the fine span or does not divide a day, or where no coarse bar is whole, unless bars follow others;
// `name` begins the message.
bool frame_make(const frame_source *from, int64_t to, const char *name, bar **made, int64_t *n, err *e);

// True where bars of `to` seconds can be made of bars of `fine` seconds.
bool frame_divides(int64_t fine, int64_t to);

// A coarse bar in the making: frame_make fine bar by fine bar, for bars that come one after the other.
typedef struct {
    int64_t span;
    bar now;         // as far as it is made
    int64_t spreads; // known ones in it
    bool begun;      // there is a bar in the making
    bool whole;      // the fine bars reach back to its open
    bool given;      // it was over at the close of its last fine bar
    bool follows;    // as of frame_source: the first is whole
} frame_maker;

void frame_maker_begin(frame_maker *m, int64_t span);

// Takes the fine bar that has just closed, and gives the coarse bars that are over by then, in order; how many: two
// where the last fine bars of the one before were missing. The first is left out unless it is whole.
enum { FRAME_MAKER_MOST = 2 };
int frame_maker_push(frame_maker *m, const bar *fine, bar made[FRAME_MAKER_MOST]);

#endif
