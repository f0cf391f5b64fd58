#include "train/bootstrap.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t bootstrap_block(int64_t units, int64_t horizon) {
    int64_t root = (int64_t)ceil(cbrt((double)units) - 1e-9);
    return horizon > root ? horizon : root > 1 ? root : 1;
}

// Puts sums over the units up to each in the place of the units, so that a block's are a difference.
static void run_sums(const bootstrap_table *t) {
    int64_t T = t->terms;
    for (int64_t i = T; i < t->units * T; i++) t->value[i] += t->value[i - T];
}

// Units from one to before another, of which there is at least one.
static void add_units(const bootstrap_table *t, int64_t from, int64_t to, double *all) {
    int64_t T = t->terms;
    const double *sum = t->value;
    for (int64_t k = 0; k < T; k++) all[k] += sum[(to - 1) * T + k] - (from ? sum[(from - 1) * T + k] : 0);
}

// The first unit of a block of a resample.
static int64_t start_of(int64_t resample, int64_t block, int64_t units) {
    rng_block r = rng_philox(0, (uint32_t)block, (uint32_t)resample, (uint32_t)RNG_BOOTSTRAP << 16, 0);
    return (int64_t)(((uint64_t)r.v[0] * (uint64_t)units) >> 32);
}

static void resample(const bootstrap_table *t, int64_t number, double *all) {
    memset(all, 0, (size_t)t->terms * sizeof *all);
    for (int64_t block = 0, done = 0; done < t->units; block++, done += t->block) {
        int64_t from = start_of(number, block, t->units);
        int64_t length = t->units - done < t->block ? t->units - done : t->block, to = from + length;
        add_units(t, from, to < t->units ? to : t->units, all);
        if (to > t->units) add_units(t, 0, to - t->units, all);
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// A quantile of n sorted values, between its two neighbours.
static double quantile(const double *v, int64_t n, double share) {
    double at = share * (double)(n - 1);
    int64_t low = (int64_t)at;
    return low + 1 < n ? v[low] + (at - (double)low) * (v[low + 1] - v[low]) : v[low];
}

// `v` is [BOOTSTRAP_RESAMPLES, count]; `line` has room for one statistic.
static interval interval_of(const double *v, int count, int at, double *line) {
    int64_t n = 0;
    for (int64_t r = 0; r < BOOTSTRAP_RESAMPLES; r++)
        if (isfinite(v[r * count + at])) line[n++] = v[r * count + at];
    if (n < BOOTSTRAP_RESAMPLES / 2) return (interval){NAN, NAN};
    qsort(line, (size_t)n, sizeof *line, by_size);
    return (interval){quantile(line, n, 0.025), quantile(line, n, 0.975)};
}

bool bootstrap_intervals(
    const bootstrap_table *t, bootstrap_statistics *of, const void *arg, int count, interval *to, err *e) {
    CHECK(t->units < (int64_t)1 << 32 && t->block > 0, "%lld units", (long long)t->units);
    for (int i = 0; i < count; i++) to[i] = (interval){NAN, NAN};
    if (t->units < 2 * t->block) return true;
    double *all = malloc((size_t)t->terms * sizeof *all);
    double *v = malloc((size_t)(BOOTSTRAP_RESAMPLES * count) * sizeof *v),
           *line = malloc(BOOTSTRAP_RESAMPLES * sizeof *v);
    bool ok = all && v && line;
    run_sums(t);
    for (int64_t r = 0; ok && r < BOOTSTRAP_RESAMPLES; r++) {
        resample(t, r, all);
        of(arg, all, v + r * count);
    }
    for (int i = 0; ok && i < count; i++) to[i] = interval_of(v, count, i, line);
    free(all);
    free(v);
    free(line);
    return ok || err_run(e, "out of memory for intervals of %lld units", (long long)t->units);
}
