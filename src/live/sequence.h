// The sequencer of a feed: whatever a source gives becomes closed bars in order, and notes. The rules are in
// live/feed.h.
//
// It allocates when a symbol or span is seen for the first time, FEED_SERIES_MOST at most, and never later. It reads no
// clock: times are given.
#ifndef TRADEWIND_LIVE_SEQUENCE_H
#define TRADEWIND_LIVE_SEQUENCE_H

#include "live/feed_source.h"

typedef struct sequence sequence;

typedef struct {
    const feed_options *options;
    bool hold;    // bars that are as told are held back until the next one opens
    bool machine; // the clock is the machine's: bars can be late, or of the future
} sequence_rules;

sequence *sequence_new(const sequence_rules *r);
void sequence_free(sequence *s);

// Takes a raw event that came at `now`, by the feed's clock. All events of the one before must have been given.
void sequence_take(sequence *s, const feed_raw *raw, double now);

// The next event; false where there is none.
bool sequence_next(sequence *s, feed_event *ev);

// Gives the bars that are held back and have closed, with the grace, by the clock. Returns true where there are any.
bool sequence_tick(sequence *s, double now);

// The earliest moment at which sequence_tick has something to give; INFINITY: none.
double sequence_due(const sequence *s);

// Bars that were decided on: see live_feed_know.
void sequence_know(sequence *s, const char *symbol, int64_t span, const bar *newest, int64_t count);

int sequence_series(const sequence *s);

#endif
