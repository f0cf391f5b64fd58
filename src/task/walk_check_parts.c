// Parts of folds beside a definition of their own: labels' ends are found from the bars, and every sample is looked at.
//
// A sample before a block of samples that it is tested on must have its label known before the block begins. One behind
// such a block must come when the block's labels are known, and its windows must see no bar that closed by then.
#include "data/when.h"
#include "task/walk_check_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Everything that is asked about samples, once for all folds.
typedef struct {
    const dataset *d;
    int64_t *end;   // [samples] when the label is known
    int64_t *sight; // [samples] close of the oldest bar of its windows; INT64_MAX: not known
    check_result *result;
} facts;

// A span of held samples, and when the last of their labels is known: of all instruments, and of each.
typedef struct {
    span at;
    int64_t end, *own; // own: [series]
    const char *name;
} block;

static int64_t moment(const dataset *d, int64_t i) {
    return d->time ? d->time[i] : i;
}

static int64_t series_of(const dataset *d, int64_t i) {
    return d->panel ? dataset_panel_of(d, i) : 0;
}

// The first of the bars behind a row that reaches a barrier, or the last one within the limit.
static int64_t barrier_end(const dataset *d, const label_barrier_options *o, int64_t row, int64_t stop) {
    const bar_table *t = &d->stream[0].bars;
    double unit = d->volatility ? d->volatility[row] : 1, close = dataset_bar(t, row).close;
    double upper = close * exp(o->up * unit), lower = close * exp(-o->down * unit);
    for (int64_t r = row + 1; r <= row + o->limit && r < stop; r++) {
        bar b = dataset_bar(t, r);
        if (fmax(b.high, fmax(b.open, b.close)) >= upper || fmin(b.low, fmin(b.open, b.close)) <= lower) return r;
    }
    return row + o->limit;
}

static int64_t label_end(const dataset *d, const history *h, int64_t i) {
    if (!h) {
        if (d->end) return d->end[i];
        return i + d->horizon < d->samples ? moment(d, i + d->horizon) : INT64_MAX;
    }
    int64_t row = dataset_bar_of(d, i), stop = d->stream[0].bars.start[series_of(d, i) + 1];
    int64_t last = h->o.label == BUILD_BARRIER ? barrier_end(d, &h->o.barrier, row, stop) : row + build_reach(&h->o);
    return last < stop ? d->stream[0].bars.time[2 * last + 1] : INT64_MAX;
}

static int64_t window_sight(const dataset *d, const int64_t *window, int64_t i) {
    int64_t oldest = INT64_MAX, k = series_of(d, i);
    for (int s = 0; s < d->streams; s++) {
        const stream *x = &d->stream[s];
        if (!x->bars.count) continue;
        int64_t row = x->row[i] - window[s] + 1;
        if (row < x->first[i]) row = x->first[i];
        int64_t close = x->bars.time[2 * (x->bars.start[k + 1] - (x->start[k + 1] - row)) + 1];
        if (close < oldest) oldest = close;
    }
    return oldest;
}

static void fail_part(const facts *f, const char *part, int64_t i, const char *how, const block *b, int64_t fold) {
    char when[32];
    if (f->d->time)
        when_moment_text(when, sizeof when, f->d->time[i]);
    else
        snprintf(when, sizeof when, "number %lld", (long long)i);
    check_fail(f->result, "fold %lld: %s sample %s: its %s reaches the %s", (long long)fold, part, when, how, b->name);
}

static void look_at(const facts *f, const char *part, int64_t i, const block *b, int64_t fold) {
    const dataset *d = f->d;
    check_count(f->result, 1);
    if (i < b->at.first) {
        if (f->end[i] >= moment(d, b->at.first)) fail_part(f, part, i, "label", b, fold);
        return;
    }
    if (i < b->at.first + b->at.count)
        fail_part(f, part, i, "place", b, fold);
    else if (moment(d, i) <= b->end)
        fail_part(f, part, i, "time", b, fold);
    else if (f->sight[i] <= b->own[series_of(d, i)])
        fail_part(f, part, i, "window", b, fold);
}

static void look_at_part(const facts *f, const char *name, const split_part *p, const block *b, int64_t fold) {
    for (int64_t k = 0; k < p->count; k++) look_at(f, name, part_sample(p, k), b, fold);
}

static void measure_block(const facts *f, block *b) {
    for (int64_t k = 0; k < dataset_series(f->d); k++) b->own[k] = INT64_MIN;
    b->end = INT64_MIN;
    for (int64_t i = b->at.first; i < b->at.first + b->at.count; i++) {
        int64_t *own = &b->own[series_of(f->d, i)];
        if (f->end[i] > *own) *own = f->end[i];
        if (f->end[i] > b->end) b->end = f->end[i];
    }
}

// Training against validation and test, validation against the test.
static void look_at_fold(const facts *f, const scheme_fold *fold, int64_t *own) {
    const split *s = &fold->parts;
    block b = {.own = own, .name = "validation"};
    for (int i = 0; i < s->validation.spans; i++) {
        b.at = s->validation.span[i];
        measure_block(f, &b);
        look_at_part(f, "training", &s->train, &b, fold->number + 1);
    }
    b.name = "test";
    for (int i = 0; i < s->test.spans; i++) {
        b.at = s->test.span[i];
        measure_block(f, &b);
        look_at_part(f, "training", &s->train, &b, fold->number + 1);
        look_at_part(f, "validation", &s->validation, &b, fold->number + 1);
    }
}

bool parts_apart(
    const dataset *d, const history *h, const int64_t *window, const scheme_folds *folds, check_result *r, err *e) {
    facts f = {.d = d, .result = r};
    f.end = malloc((size_t)(d->samples + 1) * sizeof *f.end);
    f.sight = malloc((size_t)(d->samples + 1) * sizeof *f.sight);
    int64_t *own = malloc((size_t)dataset_series(d) * sizeof *own);
    bool ok = (f.end && f.sight && own) || err_run(e, "no memory to look at %lld samples", (long long)d->samples);
    for (int64_t i = 0; ok && i < d->samples; i++) {
        f.end[i] = label_end(d, h, i);
        f.sight[i] = window_sight(d, window, i);
    }
    for (int64_t i = 0; ok && i < folds->count; i++)
        if (!folds->fold[i].why[0]) look_at_fold(&f, &folds->fold[i], own);
    free(f.end);
    free(f.sight);
    free(own);
    return ok;
}
