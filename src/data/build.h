// Bars, or a panel of series, to a dataset in memory.
//
// Bars of one instrument or of several, each with the same frames. The finest are the clock, one sample for each of
// their bars, labelled or not. A sample is known when its bar closes; of every coarser frame it sees the bars that have
// fully closed by then (align.h), never the one that is being made. Rows in which a feature has not warmed up are not
// stored, so no window sees them; samples begin when every frame has a row and the strategy vector has warmed up.
// Windows that reach before a series' first row are padded. Nothing in a sample depends on a bar that closes after it,
// its label apart. Samples of all instruments are ordered by (close, symbol); no window and no label crosses from one
// instrument to another.
//
// A dataset can go on: with bars that come after its own it becomes what all bars together would have given, to the
// bit, and only the new bars are computed.
#ifndef TRADEWIND_DATA_BUILD_H
#define TRADEWIND_DATA_BUILD_H

#include "base/json.h"
#include "data/dataset.h"
#include "data/label.h"
#include "data/panel.h"
#include "data/stream.h"

// "fast", "slow", "slower", "slowest": streams from fine to coarse where the user names none.
extern const char *const build_stream_names[FRAMES_MOST];

typedef struct {
    const char *file; // for messages
    const bar *bar;   // [count], times rising
    int64_t count;
    bool made; // of the finest bars, not from a file
} build_bars_of;

// One instrument.
typedef struct {
    const char *symbol; // "" where it has no name, and is the only one
    build_bars_of frame[FRAMES_MOST];
} build_series;

typedef struct {
    int frames; // from fine to coarse, spans rising
    frame_spec frame[FRAMES_MOST];
    int series;             // 1 or more, in order of their symbols
    const build_series *of; // [series]
} build_source;

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

// Defaults of descriptions and commands: the direction of the next bar beyond half of its
// volatility, with the vector, all in f32.
extern const build_options build_defaults;

typedef struct {
    int64_t warm_up;              // bars of the finest frame before the first samples, of all instruments
    int64_t unlabelled;           // samples without a label
    int64_t unlabelled_end;       // of these, the ones behind the last label of their instrument
    int64_t stale[FRAMES_MOST];   // samples whose bar of this frame closed more than its span and 4 days ago
    label_barrier_counts barrier; // of the labels that were made
} build_report;

// `old`: a dataset that was made of the same frames, symbols and options, which the bars go on from; NULL: none. `r`
// may be NULL. The dataset's own words are its label alone. NULL on failure: ERR_INPUT where options are out of their
// range, a feature is not known, or the bars are too few.
dataset *build_bars(const build_source *from, const build_options *o, const dataset *old, build_report *r, err *e);

// The bars that the label of one of them needs behind it, at most.
int64_t build_reach(const build_options *o);

// Bars whose volatility the label's units are of; 0: none.
int64_t build_volatility_bars(const build_options *o);

// Classes of a label; 0 of a forecast.
int build_classes(const build_options *o);

// The description of a label, for the dataset's own words, and back. False where it is none.
json_t *build_label_json(const build_options *o);
bool build_label_read(const json_t *from, build_options *o);

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
