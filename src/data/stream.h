// One instrument, bar by bar: the features of every frame, and the strategies of the finest.
//
// Import is a loop over this, and so is anything that follows a market as it goes: a bar that closes gets the same
// numbers in both, to the bit. The state can be saved and loaded, so that a later bar goes on where the bars before it
// ended. A row depends on the bars pushed so far and on nothing else.
#ifndef TRADEWIND_DATA_STREAM_H
#define TRADEWIND_DATA_STREAM_H

#include "data/feature.h"
#include "data/strategy.h"

enum { FRAMES_MOST = 4 };

// Bars of one span, and the features that are computed of them.
typedef struct {
    const char *name;
    int64_t span;
    const char *const *features; // NULL: those of the reference job for the finest or for coarser bars
    int feature_count;
} frame_spec;

typedef struct bar_stream bar_stream;

// `frames` from fine to coarse. NULL on failure: ERR_INPUT where a feature is not known.
bar_stream *bar_stream_new(const frame_spec *frame, int frames, bool vector, err *e);
void bar_stream_free(bar_stream *s);

// The features of a frame, for their names and number.
const feature_list *bar_stream_features(const bar_stream *s, int frame);

// Bars before a frame's rows mean something; before the strategies do, 0 where there are none.
int64_t bar_stream_warm_up(const bar_stream *s, int frame);
int64_t bar_stream_vector_warm_up(const bar_stream *s);

// Takes the bar of a frame that has just closed, and writes its row of features. Frames are independent of each other.
void bar_stream_push(bar_stream *s, int frame, const bar *b, float *row);

// The same bar of the finest frame, for the strategies.
void bar_stream_judge(bar_stream *s, const bar *b, int8_t signal[STRATEGIES], float strength[STRATEGIES]);

// As if no bar had been pushed.
void bar_stream_reset(bar_stream *s);

// The state of everything, as bar_stream_state numbers. False where the numbers cannot be a state.
size_t bar_stream_state(const bar_stream *s);
void bar_stream_save(const bar_stream *s, double *to);
bool bar_stream_load(bar_stream *s, const double *from);

#endif
