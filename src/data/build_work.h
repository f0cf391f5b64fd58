// Shared by the files of build_bars, and private to them.
#ifndef TRADEWIND_DATA_BUILD_WORK_H
#define TRADEWIND_DATA_BUILD_WORK_H

#include "data/build.h"
#include "data/volatility.h"

// One instrument on its way. Bars are counted through those of the old dataset and the new ones.
typedef struct {
    const build_series *from;
    int64_t before[FRAMES_MOST];  // bars in the old dataset
    int64_t count[FRAMES_MOST];   // bars in all
    int64_t old_bar[FRAMES_MOST]; // where they begin in the old dataset, and its rows
    int64_t old_row[FRAMES_MOST];
    int64_t bar[FRAMES_MOST]; // where they begin in the new one, and its rows
    int64_t row[FRAMES_MOST];
    int64_t first;              // bar of the finest frame that is the first sample
    int32_t *seen[FRAMES_MOST]; // [count - first] the last closed bar of a coarser frame; of the finest NULL
    volatility *meter;          // of the finest bars; NULL: not used
    double *volatility;         // [count] what it showed
    const double *old_state;    // in the old dataset
    int64_t fresh;              // first bar whose label is made here; labels before it are the old dataset's
    int32_t *label, *end;       // [count - fresh]; `end` counts from `fresh`
    float *target;              // [count - fresh, horizon]
    int64_t *was;               // [before - first] its sample in the old dataset
    int32_t *place;             // [count - first] its sample in the new one
} work;

typedef struct {
    const build_source *from;
    const build_options *o;
    const dataset *old; // or NULL
    bar_stream *stream;
    int64_t warm_up[FRAMES_MOST];
    int64_t bars[FRAMES_MOST], rows[FRAMES_MOST]; // of all instruments
    int64_t samples, unlabelled;
    work *work; // [series]
    build_report report;
    dataset *d;
} build;

enum { BUILD_BETWEEN = 4096 }; // bars between two looks at whether to stop

// The moment at which a bar of an instrument closes, and the bar.
int64_t build_end_of(const build *b, const work *w, int frame, int64_t t);
bar build_bar_of(const build *b, const work *w, int frame, int64_t t);

// True where a bar of the finest frame, the first sample or later, has a label.
bool build_is_labelled(const build *b, const work *w, int64_t t);

// Warm-ups, alignment, volatility and labels of every instrument.
bool build_prepare(build *b, err *e);

// Numbers of an instrument's state: of its stream, then of its volatility.
size_t build_state(const build *b, const work *w);

// ERR_INPUT for an old dataset that contradicts itself; false.
bool build_damaged(const build *b, err *e);

void work_done(work *w);

// The places of all samples, in order of (close, symbol).
bool build_order(build *b, err *e);

// The dataset itself.
bool build_fill(build *b, err *e);

#endif
