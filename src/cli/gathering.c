// Both sides gather the same samples in the same order, shuffled anew in every pass, and take turns pass by pass, so
// that a machine that is busy or throttled weighs on both. The copies are what any loader must at least do: per sample
// one memcpy a window, one of the vector, and the label, always into the same buffers; no range checks, no padding, no
// permutation, no ring.
#include "cli/gathering.h"

#include "base/clock.h"
#include "base/pool.h"
#include "base/rng.h"
#include "data/loader.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, AHEAD = 2, SEED = 1, PIECE = 128 };

typedef struct {
    const dataset *d;
    const int64_t *window;
    int64_t batch, from, count; // samples that have whole windows
    int32_t *index;             // [count] of this pass
    float *x[STREAMS_MOST], *vector;
    int32_t *label;
    int64_t at; // the present batch
} copying;

static void copy_rows(void *arg, int64_t item, int worker) {
    const copying *c = arg;
    const dataset *d = c->d;
    int64_t end = (item + 1) * PIECE < c->batch ? (item + 1) * PIECE : c->batch;
    (void)worker;
    for (int64_t r = item * PIECE; r < end; r++) {
        int64_t sample = c->index[c->at * c->batch + r];
        for (int i = 0; i < d->streams; i++) {
            int64_t C = d->stream[i].series.width, values = c->window[i] * C;
            const float *series = table_floats(&d->stream[i].series);
            memcpy(c->x[i] + r * values, series + (d->stream[i].row[sample] + 1) * C - values,
                (size_t)values * sizeof(float));
        }
        memcpy(c->vector + r * d->vector.width, table_floats(&d->vector) + sample * d->vector.width,
            (size_t)d->vector.width * sizeof(float));
        c->label[r] = d->label[sample];
    }
}

static double copy_pass(copying *c, pool *p, uint32_t pass) {
    for (int64_t i = 0; i < c->count; i++)
        c->index[i] = (int32_t)(c->from + (int64_t)rng_permute(SEED, pass, (uint64_t)i, (uint64_t)c->count));
    double t = clock_seconds();
    for (c->at = 0; c->at < c->count / c->batch; c->at++) pool_run(p, (c->batch + PIECE - 1) / PIECE, copy_rows, c);
    return (double)(c->count / c->batch * c->batch) / (clock_seconds() - t);
}

static double load_pass(const copying *c, loader *l, uint32_t pass) {
    loader_batch b;
    int64_t rows = 0;
    double t = clock_seconds();
    loader_seek(l, &(loader_range){part_of((span){c->from, c->count}), true, pass, 0});
    while (loader_next(l, &b)) rows += b.rows;
    return (double)rows / (clock_seconds() - t);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int64_t n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

// Memory of the copies' buffers, from one block.
static bool copying_open(copying *c, float **block, err *e) {
    const dataset *d = c->d;
    int64_t each = d->vector.width + 1;
    for (int i = 0; i < d->streams; i++) each += c->window[i] * d->stream[i].series.width;
    *block = malloc((size_t)(each * c->batch) * sizeof **block);
    c->index = malloc((size_t)c->count * sizeof *c->index);
    if (!*block || !c->index) return err_run(e, "out of memory for batches of %lld", (long long)c->batch);
    float *at = *block;
    for (int i = 0; i < d->streams; i++) {
        c->x[i] = at;
        at += c->batch * c->window[i] * d->stream[i].series.width;
    }
    c->vector = at;
    c->label = (int32_t *)(void *)(at + c->batch * d->vector.width);
    return true;
}

// The first sample from which on every window is whole.
static int64_t whole_from(const dataset *d, const int64_t *window) {
    int64_t from = 0;
    for (int64_t i = 0; i < d->samples; i++)
        for (int k = 0; k < d->streams; k++)
            if (d->stream[k].row[i] - d->stream[k].first[i] + 1 < window[k]) from = i + 1;
    return from;
}

static bool measure(copying *c, pool *p, loader *l, int64_t passes, gathering *g, err *e) {
    double *rate = calloc(2 * (size_t)passes, sizeof *rate);
    if (!rate) return err_run(e, "out of memory for %lld timings", (long long)passes);
    load_pass(c, l, 0); // once to touch all memory
    copy_pass(c, p, 0);
    for (int64_t i = 0; i < passes; i++) {
        rate[i] = load_pass(c, l, (uint32_t)i + 1);
        rate[passes + i] = copy_pass(c, p, (uint32_t)i + 1);
    }
    g->loader = median(rate, passes);
    g->copies = median(rate + passes, passes);
    free(rate);
    return true;
}

bool gathering_measure(const dataset *d, const int64_t *window, int64_t batch, int64_t passes, gathering *g, err *e) {
    copying c = {.d = d, .window = window, .batch = batch, .from = whole_from(d, window)};
    loader_options o = {.batch = batch, .seed = SEED, .workers = THREADS, .prefetch = AHEAD};
    float *block = NULL;
    c.count = (d->samples - c.from) / batch * batch;
    if (c.count < 1) return err_input(e, "a batch of %lld is more than all samples", (long long)batch);
    memcpy(o.window, window, (size_t)d->streams * sizeof *window);
    pool *p = pool_new(THREADS, e);
    loader *l = p ? loader_new(d, &o, e) : NULL;
    bool ok = l && copying_open(&c, &block, e) && measure(&c, p, l, passes, g, e);
    g->megabytes = ((double)loader_measure(d, &o) + (double)dataset_bytes(d)) / (1 << 20);
    loader_free(l);
    pool_free(p);
    free(block);
    free(c.index);
    return ok;
}
