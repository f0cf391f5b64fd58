// Helpers of the tests of feeds: bars with figures of their own, and what a feed has given, as a line.
#ifndef TRADEWIND_TEST_LIVE_SCRIPT_H
#define TRADEWIND_TEST_LIVE_SCRIPT_H

#include "live/feed.h"

#include <stddef.h>

enum { SCRIPT_SPAN = 300, SCRIPT_ROOM = 512 };
extern const int64_t SCRIPT_START; // the open of bar 0

// The n-th bar of a walk.
bar script_bar(int64_t n);

// Its row "time,open,high,low,close,tick_volume,spread", and the header of such rows, each with a newline. The close is
// moved by `off`. Returns the length.
int script_row(char *to, size_t room, int64_t n, double off);
extern const char script_header[];

// Writes rows from `from` up to `to`, the last one not included, behind a header.
void script_file(const char *path, int64_t from, int64_t to);
void script_append(const char *path, const char *text);

// Options of a feed of such bars, of the past: nothing is late, nothing of the future.
feed_options script_options(const char *from);

live_feed *script_open(const feed_options *o);

// Takes what comes until nothing has for `seconds`, or the end; writes it as "0, 1, late 2, 2, end". `log` begins
// empty.
void script_take(live_feed *f, double seconds, char *log, size_t room);

// Fails unless that is `log`.
void script_gives(live_feed *f, const char *log);

// Takes `count` bars 0, 1, ... of one series, checking each figure; notes fail. Returns when they have come or 60 s are
// over.
void script_takes_bars(live_feed *f, int64_t from, int64_t to);

#endif
