#include "backtest/correlation.h"

#include <math.h>
#include <stdlib.h>

double correlation(const double *x, const double *y, int64_t count) {
    double n = (double)count, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < count; i++) {
        mx += x[i] / n;
        my += y[i] / n;
    }
    for (int64_t i = 0; i < count; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    // Sums of equal values round: what is left of them is no variation.
    double least = 1e-28 * n;
    return xx > least * mx * mx && yy > least * my * my ? xy / sqrt(xx) / sqrt(yy) : (double)NAN;
}

typedef struct {
    double value;
    int64_t at;
} ranked;

static int by_value(const void *a, const void *b) {
    double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

static void rank(const double *x, int64_t count, ranked *sorted, double *to) {
    for (int64_t i = 0; i < count; i++) sorted[i] = (ranked){x[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].value == sorted[i].value; end++) continue;
        for (int64_t k = i; k < end; k++) to[sorted[k].at] = (double)(i + end - 1) / 2;
    }
}

bool correlation_of_ranks(const double *x, const double *y, int64_t count, double *to, err *e) {
    *to = NAN;
    if (count < 2) return true;
    ranked *sorted = malloc((size_t)count * sizeof *sorted);
    double *ranks = malloc((size_t)count * 2 * sizeof *ranks);
    bool ok = sorted && ranks;
    if (ok) {
        rank(x, count, sorted, ranks);
        rank(y, count, sorted, ranks + count);
        *to = correlation(ranks, ranks + count, count);
    }
    free(sorted);
    free(ranks);
    return ok || err_run(e, "out of memory for ranks of %lld predictions", (long long)count);
}
