#include "data/stream.h"

#include <stdlib.h>

struct bar_stream {
    int frames;
    feature_list *list[FRAMES_MOST];
    strategy *strategy; // or NULL
};

// Puts the frame's name before what is wrong with its features.
static bool blame(const frame_spec *f, const err *why, err *e) {
    if (why->kind == ERR_INPUT) return err_input(e, "%s: %s", f->name, why->text);
    return err_run(e, "%s: %s", f->name, why->text);
}

static bool add_frame(bar_stream *s, const frame_spec *f, err *e) {
    const char *const *specs = f->features;
    int count = f->feature_count;
    if (!specs) {
        specs = s->frames ? feature_default_slow : feature_default_fast;
        count = s->frames ? FEATURE_SLOW : FEATURE_FAST;
    }
    err why = {0};
    feature_list *l = feature_list_new(specs, count, f->span, &why);
    if (!l) return blame(f, &why, e);
    s->list[s->frames++] = l;
    return true;
}

bar_stream *bar_stream_new(const frame_spec *frame, int frames, bool vector, err *e) {
    CHECK(frames >= 1 && frames <= FRAMES_MOST, "%d frames", frames);
    bar_stream *s = calloc(1, sizeof *s);
    bool ok = s || err_run(e, "no memory for %d frames", frames);
    for (int i = 0; ok && i < frames; i++) ok = add_frame(s, &frame[i], e);
    if (ok && vector) ok = (s->strategy = strategy_new(frame[0].span, e)) != NULL;
    if (ok) return s;
    bar_stream_free(s);
    return NULL;
}

void bar_stream_free(bar_stream *s) {
    if (!s) return;
    for (int i = 0; i < s->frames; i++) feature_list_free(s->list[i]);
    strategy_free(s->strategy);
    free(s);
}

const feature_list *bar_stream_features(const bar_stream *s, int frame) {
    return s->list[frame];
}

int64_t bar_stream_warm_up(const bar_stream *s, int frame) {
    return feature_list_warm_up(s->list[frame]);
}

int64_t bar_stream_vector_warm_up(const bar_stream *s) {
    return s->strategy ? strategy_warm_up(s->strategy) : 0;
}

void bar_stream_push(bar_stream *s, int frame, const bar *b, float *row) {
    feature_list_push(s->list[frame], b, row);
}

void bar_stream_judge(bar_stream *s, const bar *b, int8_t signal[STRATEGIES], float strength[STRATEGIES]) {
    strategy_push(s->strategy, b, signal, strength);
}

void bar_stream_reset(bar_stream *s) {
    for (int i = 0; i < s->frames; i++) feature_list_reset(s->list[i]);
    if (s->strategy) strategy_reset(s->strategy);
}

size_t bar_stream_state(const bar_stream *s) {
    size_t n = s->strategy ? strategy_state(s->strategy) : 0;
    for (int i = 0; i < s->frames; i++) n += feature_list_state(s->list[i]);
    return n;
}

void bar_stream_save(const bar_stream *s, double *to) {
    for (int i = 0; i < s->frames; i++) {
        feature_list_save(s->list[i], to);
        to += feature_list_state(s->list[i]);
    }
    if (s->strategy) strategy_save(s->strategy, to);
}

bool bar_stream_load(bar_stream *s, const double *from) {
    bool ok = true;
    for (int i = 0; ok && i < s->frames; i++) {
        ok = feature_list_load(s->list[i], from);
        from += feature_list_state(s->list[i]);
    }
    return ok && (!s->strategy || strategy_load(s->strategy, from));
}
