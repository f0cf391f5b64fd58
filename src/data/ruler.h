// The moments of a dataset, numbered, and places between them that are found by counting or by the calendar. For
// data/scheme*.c alone.
#ifndef TRADEWIND_DATA_RULER_H
#define TRADEWIND_DATA_RULER_H

#include "data/extent.h"
#include "data/split.h"

typedef struct {
    const dataset *d;
    int64_t moments;
    int64_t *first; // [moments + 1] first sample of each; samples without times are moments of their own
} ruler;

// A place: before the first moment that is at or after `time`. `time` is 0 where samples have none.
typedef struct {
    int64_t moment, time;
} edge;

// ERR_RUN where memory is short. The dataset has samples.
bool ruler_init(ruler *r, const dataset *d, err *e);
void ruler_done(ruler *r);

// Places before a moment, and at a time.
edge ruler_edge(const ruler *r, int64_t moment);
edge ruler_edge_at(const ruler *r, int64_t time);

// The place before the first moment that has no sample before this one.
edge ruler_edge_of(const ruler *r, int64_t sample);

// The place `times` extents later, or earlier where `times` is negative; not a date.
edge ruler_move(const ruler *r, edge from, extent by, int64_t times);

// Samples from one place to another; empty where they are in the wrong order.
span ruler_span(const ruler *r, edge from, edge to);

#endif
