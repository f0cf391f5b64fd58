// Bars, or a panel of series, to a dataset in memory.
//
// Of bars: the finest are the clock, one sample for each of their bars that has a label. A sample is known when its
// bar closes; of every coarser stream it sees the bars that have fully closed by then (align.h), never the one that is
// being made. Rows in which a feature has not warmed up are not stored, so no window sees them; samples begin when
// every stream has a row and the strategy vector has warmed up. Windows that reach before a stream's first row are
// padded. Nothing in a sample depends on a bar that closes after it, its label apart.
#ifndef TRADEWIND_DATA_BUILD_H
#define TRADEWIND_DATA_BUILD_H

#include "base/json.h"
#include "data/dataset.h"
#include "data/label.h"
#include "data/panel.h"

enum { BUILD_STREAMS_MOST = 4 };

// "fast", "slow", "slower", "slowest": streams from fine to coarse where the user names none.
extern const char *const build_stream_names[BUILD_STREAMS_MOST];

typedef struct {
    const char *name; // of the stream
    const char *file; // for messages
    const bar *bar;   // [count], times rising
    int64_t count, span;
    const char *const *features; // NULL: what the reference job uses for fine or coarse bars
    int feature_count;
} build_stream;

typedef enum { BUILD_DIRECTION, BUILD_BARRIER, BUILD_FORECAST } build_label;

typedef struct {
    build_label label;
    label_direction_options direction;
    label_barrier_options barrier;
    int64_t horizon; // of a forecast
    label_value value;
    bool to_three; // labels of 5 classes become 3
    bool vector;   // with the strategy vector
    bool compact;  // the vector as i8 signals and f16 strengths
} build_options;

// What a description or a command without further words means: the direction of the next bar beyond half of its
// volatility, with the vector, all in f32.
extern const build_options build_defaults;

typedef struct {
    int64_t warm_up;                   // bars of the finest stream before the first sample
    int64_t unlabelled;                // bars after that without a label
    int64_t unlabelled_end;            // of these, those behind the last sample
    int64_t stale[BUILD_STREAMS_MOST]; // samples whose bar of this stream closed more than its span and 4 days ago
    label_barrier_counts barrier;      // of the samples' labels
} build_report;

// `streams` from fine to coarse, spans rising. `r` may be NULL. NULL on failure: ERR_INPUT where options are out of
// their range, a feature is not known, or the bars are too few.
dataset *build_bars(const build_stream *from, int streams, const build_options *o, build_report *r, err *e);

// The same, told for set_write: streams, features, label.
json_t *build_about(const build_stream *from, int streams, const build_options *o);

typedef struct {
    int64_t horizon; // values to forecast, 1..LABEL_BARS_MOST
    int64_t history; // values that a sample has seen at least, 1 or more
    int64_t recent;  // values before those held out among which the targets of all others lie; 0: all
} build_panel_options;

// A panel to one stream, "series", of one column. Samples are (series, t) with `history` values up to t and `horizon`
// targets behind it, ordered by how far t is from the end of its series: earlier first. The last sample of every series
// has the last `horizon` values as its targets: these are held out, `held` of them, at the dataset's end; all others
// have their targets before those. Series that are too short have no samples, but are there with their names. ERR_INPUT
// where none is left.
dataset *build_panel(const panel *p, const char *name, const build_panel_options *o, err *e);

// The ends of a panel's series: one sample for each, which has seen all of its values; its targets, which nobody knows
// yet, are zeros. `from` is kept by the new dataset, and freed with it or, on failure, at once.
dataset *build_ends(dataset *from, err *e);

#endif
