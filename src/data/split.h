// Splits samples by time into training, validation and test, with gaps in between.
//
// A part's labels are known some time after its samples. The next part begins with the first sample that none of these
// labels reaches, and an embargo leaves out further samples: what is validated or tested was then not seen through
// overlapping labels. What is left out is left out of the later part, so that training keeps the share that was asked
// for. Where a label ends says `end` of the dataset; without it, `horizon` bars of the first stream, counted in the
// sample's own series, and where that was made of windows also `horizon` samples; without streams, `horizon` samples.
//
// Samples of several series interleave in time. Parts are lists of spans of samples, one span each here, so all series
// change parts at the same moment; a gap is as long as the series that needs the longest.
//
// A dataset that holds samples out (a panel) is split as it says: these are validated, all others are for training,
// none is left for a test, and shares, purge and embargo do not matter.
//
// Windows look back, never ahead: a sample of an earlier part cannot see a later one. A later part may see bars of an
// earlier one, which by then are the past; `purge: windows` forbids that too.
#ifndef TRADEWIND_DATA_SPLIT_H
#define TRADEWIND_DATA_SPLIT_H

#include "base/err.h"
#include "data/dataset.h"

// Samples first .. first + count - 1.
typedef struct {
    int64_t first, count;
} span;

enum { PART_SPANS_MOST = 64 };

// A part of a split: spans of samples, sorted, none empty and no two touching. Positions count through all of them.
typedef struct {
    int64_t count; // samples in all
    int spans;
    span span[PART_SPANS_MOST];
} split_part;

// The part of one span, empty where that is.
split_part part_of(span s);

// Adds a span behind the last one; joins it where the two touch.
void part_add(split_part *p, span s);

// The sample at a position, 0 .. count - 1; the first sample of a part and the one behind its last, 0 where it is
// empty.
int64_t part_sample(const split_part *p, int64_t at);
int64_t part_first(const split_part *p);
int64_t part_end(const split_part *p);

enum { PURGE_LABELS = -1, PURGE_WINDOWS = -2 };

typedef struct {
    double train, validation; // shares of the samples; the rest is test
    int64_t purge;            // moments, as the embargo; PURGE_LABELS: as labels reach; PURGE_WINDOWS: and windows
    int64_t embargo;          // moments, of which all samples are left out: of one instrument these are samples
} split_options;

typedef struct {
    split_part train, validation, test; // test may be empty
    int64_t dropped;                    // by purge and embargo
} split;

// `window` gives the length of each stream's window, in bars; only PURGE_WINDOWS looks at it. ERR_INPUT where training
// or validation would be empty.
bool split_make(const dataset *d, const int64_t *window, const split_options *o, split *s, err *e);

// The first sample after `part` that shares nothing with it: no label of the part reaches it and, where `window` is
// not NULL, its own windows see no bar of the part or of its labels. It and all later samples may be trained on where
// `part` is a test. ERR_RUN where memory is short.
bool split_past(const dataset *d, span part, const int64_t *window, int64_t *past, err *e);

#endif
