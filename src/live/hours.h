// Hours of the instruments that a session follows, as their history shows them: a hole in a feed is told as missing
// bars only where the market was open.
#ifndef TRADEWIND_LIVE_HOURS_H
#define TRADEWIND_LIVE_HOURS_H

#include "base/err.h"
#include "data/bar.h"

typedef struct hours hours;

// Knows no market.
hours *hours_new(void);
void hours_free(hours *h);

// Learns the hours of a symbol and a span from its bars, times rising, on the clock of a zone (data/when.h; NULL: UTC).
// The newest year of them counts, and as many years before it as fit into 8 MB (16 of 1 min bars); spans over a day and
// fewer than four weeks of bars teach nothing. ERR_INPUT where the zone is none.
bool hours_learn(hours *h, const char *symbol, int64_t span, const char *tz, const bar *bars, int64_t count, err *e);

// Bars that the market should have had between two opens, both not counted: feed_options.missing, with the hours as
// `arg`. Where they are not known, all bars of holes of up to 12 spans, and none of longer ones.
int64_t hours_missing(const void *arg, const char *symbol, int64_t span, int64_t from, int64_t to);

// True where a bar is the last one of its day, UTC: it reaches midnight, or the market has never been open behind it on
// such a day and hour. Where its hours are not known, of the whole market or before the first bar that was learned
// from, only bars that reach midnight are.
bool hours_ends_day(const hours *h, const char *symbol, int64_t span, const bar *b);

// True where no bar behind `b` can have closed by a later moment: it lies within a span of b's end, or the market has
// never had a bar in between. Where its hours are not known, the span alone tells.
bool hours_none_since(const hours *h, const char *symbol, int64_t span, const bar *b, int64_t time);

#endif
