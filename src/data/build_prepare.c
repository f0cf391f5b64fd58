// Every instrument on its own: where its samples begin, what they see, and their labels.
#include "base/stop.h"
#include "data/align.h"
#include "data/build_work.h"
#include "data/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int64_t build_end_of(const build *b, const work *w, int frame, int64_t t) {
    if (t >= w->before[frame]) return w->from->frame[frame].bar[t - w->before[frame]].end;
    return b->old->stream[frame].bars.time[2 * (w->old_bar[frame] + t) + 1];
}

bar build_bar_of(const build *b, const work *w, int frame, int64_t t) {
    if (t >= w->before[frame]) return w->from->frame[frame].bar[t - w->before[frame]];
    return dataset_bar(&b->old->stream[frame].bars, w->old_bar[frame] + t);
}

bool build_is_labelled(const build *b, const work *w, int64_t t) {
    if (t >= w->fresh) return w->end[t - w->fresh] >= 0;
    return w->was[t - w->first] < b->old->samples;
}

int64_t build_volatility_bars(const build_options *o) {
    return o->label == BUILD_DIRECTION ? o->direction.volatility_bars
           : o->label == BUILD_BARRIER ? o->barrier.volatility_bars
                                       : 0;
}

int64_t build_reach(const build_options *o) {
    return o->label == BUILD_DIRECTION ? o->direction.horizon
           : o->label == BUILD_BARRIER ? o->barrier.limit
                                       : o->horizon;
}

int build_classes(const build_options *o) {
    if (o->label == BUILD_FORECAST) return 0;
    return o->label == BUILD_DIRECTION && o->direction.classes == 5 && !o->to_three ? 5 : 3;
}

static bool no_memory(const work *w, err *e) {
    return err_run(e, "%s: no memory for %" PRId64 " bars", w->from->frame[0].file, w->count[0]);
}

bool build_damaged(const build *b, err *e) {
    return err_input(e, "%s: its bars, samples and state do not fit together; import all bars anew", b->old->name);
}

// Where samples begin

// The feature of a frame that needs the most bars.
static const char *slowest_feature(const build *b, int frame) {
    const feature_list *l = bar_stream_features(b->stream, frame);
    int slowest = 0;
    for (int c = 1; c < feature_list_width(l); c++)
        if (feature_list_needs(l, c) > feature_list_needs(l, slowest)) slowest = c;
    return feature_list_name(l, slowest);
}

static bool has_warm_bars(const build *b, const work *w, err *e) {
    for (int i = 0; i < b->from->frames; i++) {
        const char *name = b->from->frame[i].name, *file = w->from->frame[i].file;
        if (b->warm_up[i] >= w->count[i])
            return err_input(e,
                "%s: %" PRId64 " bars, but %s of %s needs %" PRId64
                " before it means anything; give more history, or features that need fewer (--features %s=...)",
                file, w->count[i], slowest_feature(b, i), name, b->warm_up[i] + 1, name);
    }
    int64_t vector = bar_stream_vector_warm_up(b->stream);
    return vector < w->count[0] || err_input(e,
                                       "%s: %" PRId64 " bars, but the vector of strategies needs %" PRId64
                                       " before it means anything; give more history, or leave it out (--no-vector)",
                                       w->from->frame[0].file, w->count[0], vector + 1);
}

// The ends of all bars of a frame.
static int64_t *ends_of(const build *b, const work *w, int frame) {
    int64_t *end = malloc((size_t)w->count[frame] * sizeof *end);
    for (int64_t t = 0; end && t < w->count[frame]; t++) end[t] = build_end_of(b, w, frame, t);
    return end;
}

// Aligns a coarser frame; the first sample moves on until that frame has warmed up.
static bool align_frame(const build *b, work *w, int frame, const int64_t *fast, err *e) {
    int64_t *slow = ends_of(b, w, frame);
    w->seen[frame] = malloc((size_t)w->count[0] * sizeof **w->seen);
    bool ok = slow && w->seen[frame];
    if (ok) align_rows(fast, w->count[0], slow, w->count[frame], w->seen[frame]);
    free(slow);
    if (!ok) return no_memory(w, e);
    while (w->first < w->count[0] && w->seen[frame][w->first] < b->warm_up[frame]) w->first++;
    return w->first < w->count[0] ||
           err_input(e, "%s: its bars warm up only after the last bar of %s; do the files cover the same time?",
               w->from->frame[frame].file, w->from->frame[0].file);
}

static bool find_first(build *b, work *w, err *e) {
    int64_t vector = bar_stream_vector_warm_up(b->stream), *fast = ends_of(b, w, 0);
    bool ok = fast || no_memory(w, e);
    w->first = b->warm_up[0] > vector ? b->warm_up[0] : vector;
    for (int i = 1; ok && i < b->from->frames; i++) ok = align_frame(b, w, i, fast, e);
    for (int i = 1; ok && i < b->from->frames; i++)
        memmove(w->seen[i], w->seen[i] + w->first, (size_t)(w->count[0] - w->first) * sizeof **w->seen);
    free(fast);
    b->report.warm_up += w->first;
    return ok;
}

// A coarser bar is stale where it is older than weekends and holidays explain.
static void count_stale(build *b, const work *w) {
    for (int i = 1; i < b->from->frames; i++)
        for (int64_t t = w->first; t < w->count[0]; t++) {
            int64_t age = build_end_of(b, w, 0, t) - build_end_of(b, w, i, w->seen[i][t - w->first]);
            b->report.stale[i] += age > b->from->frame[i].span + 4 * WHEN_DAY;
        }
}

// Labels

// Volatilities of the old bars are the old dataset's; the new ones go on from its state.
static bool find_volatility(const build *b, work *w, err *e) {
    int64_t old = w->before[0];
    if (!w->meter) return true;
    w->volatility = malloc((size_t)w->count[0] * sizeof *w->volatility);
    if (!w->volatility) return no_memory(w, e);
    if (old) {
        memcpy(w->volatility, b->old->volatility + w->old_bar[0], (size_t)old * sizeof *w->volatility);
        if (!volatility_load(w->meter, w->old_state + bar_stream_state(b->stream))) return build_damaged(b, e);
    }
    for (int64_t t = old; t < w->count[0]; t++) {
        if (t % BUILD_BETWEEN == 0 && !stop_go_on(e)) return false;
        w->volatility[t] = volatility_push(w->meter, &w->from->frame[0].bar[t - old]);
    }
    return true;
}

static bool label_bars(build *b, work *w, const bar *bars, int64_t n, err *e) {
    const build_options *o = b->o;
    const double *unit = w->volatility ? w->volatility + w->fresh : NULL;
    label_barrier_counts ends = {0};
    bool ok = o->label == BUILD_DIRECTION ? label_direction(bars, unit, n, &o->direction, w->label, w->end, e)
              : o->label == BUILD_BARRIER ? label_barrier(bars, unit, n, &o->barrier, w->label, w->end, &ends, e)
                                          : label_forecast(bars, n, o->horizon, o->value, w->target, w->end, e);
    if (ok && o->label == BUILD_DIRECTION && o->to_three && o->direction.classes == 5) label_to_three(w->label, n);
    label_barrier_add(&b->report.barrier, &ends);
    return ok;
}

// Labels of the new bars and of those old ones that may have had too few bars behind them. The others are known, or
// will never be.
static bool make_labels(build *b, work *w, err *e) {
    int64_t reach = build_reach(b->o), old = w->before[0];
    w->fresh = old - reach > w->first ? old - reach : w->first;
    int64_t n = w->count[0] - w->fresh;
    bool targets = b->o->label == BUILD_FORECAST && b->o->horizon >= 1 && b->o->horizon <= LABEL_BARS_MOST;
    bar *joined = w->fresh < old ? malloc((size_t)n * sizeof *joined) : NULL;
    w->label = malloc((size_t)n * sizeof *w->label);
    w->end = malloc((size_t)n * sizeof *w->end);
    if (targets) w->target = malloc((size_t)(n * b->o->horizon) * sizeof *w->target);
    bool ok = (joined || w->fresh >= old) && w->label && w->end && (w->target || !targets);
    if (!ok) no_memory(w, e);
    for (int64_t i = 0; ok && joined && i < n; i++) joined[i] = build_bar_of(b, w, 0, w->fresh + i);
    ok = ok && label_bars(b, w, joined ? joined : w->from->frame[0].bar + (w->fresh - old), n, e);
    free(joined);
    return ok;
}

// The old dataset

// The samples that the old bars were, of all instruments.
static bool find_old_samples(const build *b, err *e) {
    const dataset *d = b->old;
    for (int64_t k = 0; k < dataset_all(d); k++) {
        int64_t series = d->panel ? dataset_panel_of(d, k) : 0;
        work *w = &b->work[series];
        int64_t t = d->stream[0].row[k] - d->stream[0].start[series] + b->warm_up[0] - w->first;
        if (t < 0 || t >= w->before[0] - w->first) return build_damaged(b, e);
        w->was[t] = k;
    }
    for (int s = 0; s < b->from->series; s++)
        for (int64_t i = 0; i < b->work[s].before[0] - b->work[s].first; i++)
            if (b->work[s].was[i] < 0) return build_damaged(b, e);
    return true;
}

// Where the instrument's bars, rows and state are in the old dataset.
static bool take_old(const build *b, work *w, int64_t series, err *e) {
    const dataset *d = b->old;
    size_t state = build_state(b, w);
    if ((int64_t)state * b->from->series != d->states) return build_damaged(b, e);
    w->old_state = d->state + state * (size_t)series;
    for (int i = 0; i < b->from->frames; i++) {
        const stream *s = &d->stream[i];
        w->old_bar[i] = s->bars.start[series];
        w->old_row[i] = s->start[series];
        w->before[i] = s->bars.start[series + 1] - s->bars.start[series];
        if (w->before[i] - b->warm_up[i] != s->start[series + 1] - s->start[series]) return build_damaged(b, e);
    }
    return true;
}

// Room for the samples that the old bars were.
static bool take_was(const build *b, work *w, err *e) {
    int64_t n = w->before[0] - w->first;
    if (n <= 0) return build_damaged(b, e);
    w->was = malloc((size_t)n * sizeof *w->was);
    if (!w->was) return no_memory(w, e);
    for (int64_t i = 0; i < n; i++) w->was[i] = -1;
    return true;
}

static bool prepare(build *b, work *w, int64_t series, err *e) {
    int64_t volatile_bars = build_volatility_bars(b->o);
    if (volatile_bars && !(w->meter = volatility_new(volatile_bars, e))) return false;
    if (b->old && !take_old(b, w, series, e)) return false;
    for (int i = 0; i < b->from->frames; i++) {
        w->count[i] = w->before[i] + w->from->frame[i].count;
        w->bar[i] = b->bars[i];
        w->row[i] = b->rows[i];
        b->bars[i] += w->count[i];
        b->rows[i] += w->count[i] - b->warm_up[i];
    }
    if (!has_warm_bars(b, w, e) || !find_first(b, w, e)) return false;
    if (b->old && !take_was(b, w, e)) return false;
    count_stale(b, w);
    return find_volatility(b, w, e) && make_labels(b, w, e);
}

size_t build_state(const build *b, const work *w) {
    return bar_stream_state(b->stream) + (w->meter ? volatility_state(w->meter) : 0);
}

static bool has_room(const build *b, err *e) {
    int64_t samples = 0;
    for (int s = 0; s < b->from->series; s++) samples += b->work[s].count[0] - b->work[s].first;
    for (int i = 0; i < b->from->frames; i++)
        if (b->rows[i] > INT32_MAX || samples > INT32_MAX)
            return err_input(e, "%s: more than %d bars in all; give fewer instruments or a shorter time",
                b->work[0].from->frame[i].file, INT32_MAX);
    return true;
}

bool build_prepare(build *b, err *e) {
    for (int i = 0; i < b->from->frames; i++) b->warm_up[i] = bar_stream_warm_up(b->stream, i);
    for (int s = 0; s < b->from->series; s++) {
        b->work[s].from = &b->from->of[s];
        if (!prepare(b, &b->work[s], s, e)) return false;
    }
    return has_room(b, e) && (!b->old || find_old_samples(b, e));
}

void work_done(work *w) {
    for (int i = 0; i < FRAMES_MOST; i++) free(w->seen[i]);
    volatility_free(w->meter);
    free(w->volatility);
    free(w->label);
    free(w->end);
    free(w->target);
    free(w->was);
    free(w->place);
}
