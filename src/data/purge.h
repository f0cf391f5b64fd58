// Purging: samples that share something with a block of others.
//
// Two samples share something where the label of the earlier one is not known before the later one's time (`reach`), or
// where a window of the later one sees a bar that the earlier one or its label was made of (`see`). Where labels end
// say `end` of the dataset and `time`, for all series alike; without `end`, `horizon` bars of the first stream, counted
// in the sample's own series, and for ready-made windows also `horizon` samples; without streams, `horizon` samples.
// The bars that a label was made of are those of the samples of its own series that it reaches. Samples are judged one
// by one: a series with few bars does not purge the others.
#ifndef TRADEWIND_DATA_PURGE_H
#define TRADEWIND_DATA_PURGE_H

#include "data/split.h"

// Marks with 1, in `out` [samples], every sample before the block that reaches it and, with `window` (bars by stream),
// every one that a window of the block sees. ERR_RUN where memory is short.
bool purge_before(const dataset *d, span block, const int64_t *window, uint8_t *out, err *e);

// The same behind the block: samples that it reaches and, with `window`, those whose windows see it or its labels.
// `*past` is one behind the last of them, at least the block's end.
bool purge_after(const dataset *d, span block, const int64_t *window, uint8_t *out, int64_t *past, err *e);

#endif
