#include "data/plain.h"

#include <math.h>

double *plain_series(world *w) {
    double *x = arena_array(&w->memory, (size_t)w->n, sizeof *x);
    for (int64_t t = 0; t < w->n; t++) x[t] = NAN;
    return x;
}

void world_open(world *w, const bar *bars, int64_t n) {
    arena_init(&w->memory);
    w->n = n;
    w->bars = bars;
    SERIES(o, 0, bars[t].open);
    SERIES(h, 0, bars[t].high);
    SERIES(l, 0, bars[t].low);
    SERIES(c, 0, bars[t].close);
    SERIES(v, 0, bars[t].volume);
    SERIES(s, 0, bars[t].spread);
    SERIES(range, 0, h[t] - l[t]);
    SERIES(typical, 0, (h[t] + l[t] + c[t]) / 3);
    SERIES(change, 1, c[t] - c[t - 1]);
    SERIES(ret, 1, log(c[t] / c[t - 1]));
    SERIES(tr, 1, fmax(h[t] - l[t], fmax(fabs(h[t] - c[t - 1]), fabs(l[t] - c[t - 1]))));
    w->o = o, w->h = h, w->l = l, w->c = c, w->v = v, w->s = s, w->range = range, w->typical = typical;
    w->change = change, w->ret = ret, w->tr = tr;
}

void world_close(world *w) {
    arena_done(&w->memory);
}

double plain_sum(const double *x, int64_t t, double n) {
    double total = 0;
    if (t + 1 < (int64_t)n) return NAN;
    for (int64_t i = t - (int64_t)n + 1; i <= t; i++) total += x[i];
    return total;
}

double plain_mean(const double *x, int64_t t, double n) {
    return plain_sum(x, t, n) / n;
}

double plain_deviation(const double *x, int64_t t, double n) {
    double m = plain_mean(x, t, n), total = 0;
    if (isnan(m)) return NAN;
    for (int64_t i = t - (int64_t)n + 1; i <= t; i++) total += (x[i] - m) * (x[i] - m);
    return sqrt(total / n);
}

static double extreme(const double *x, int64_t t, double n, double side) {
    double most = -INFINITY;
    if (t + 1 < (int64_t)n) return NAN;
    for (int64_t i = t - (int64_t)n + 1; i <= t; i++) most = fmax(most, side * x[i]);
    return side * most;
}

double plain_highest(const double *x, int64_t t, double n) {
    return extreme(x, t, n, 1);
}

double plain_lowest(const double *x, int64_t t, double n) {
    return extreme(x, t, n, -1);
}

double plain_lag(const double *x, int64_t t, double n) {
    return t < (int64_t)n ? NAN : x[t - (int64_t)n];
}

static double *average(world *w, const double *x, double n, double alpha) {
    double *y = plain_series(w);
    int64_t t = 0;
    while (t < w->n && isnan(plain_mean(x, t, n))) t++;
    if (t < w->n) y[t] = plain_mean(x, t, n);
    for (t++; t < w->n; t++) y[t] = alpha * x[t] + (1 - alpha) * y[t - 1];
    return y;
}

double *plain_ema(world *w, const double *x, double n) {
    return average(w, x, n, 2 / (n + 1));
}

double *plain_wilder(world *w, const double *x, double n) {
    return average(w, x, n, 1 / n);
}

double plain_over(double a, double b, double otherwise) {
    return isnan(b) ? NAN : b > 0 ? a / b : isnan(a) ? NAN : otherwise;
}

double *plain_place(world *w, double n) {
    double *out = plain_series(w);
    for (int64_t t = 0; t < w->n; t++) {
        double low = plain_lowest(w->l, t, n), high = plain_highest(w->h, t, n);
        out[t] = plain_over(w->c[t] - low, high - low, 0.5);
    }
    return out;
}

void plain_moves(world *w, double n, double **up, double **down) {
    SERIES(rise, 1, w->h[t] - w->h[t - 1]);
    SERIES(fall, 1, w->l[t - 1] - w->l[t]);
    SERIES(plus, 1, rise[t] > 0 && rise[t] > fall[t] ? rise[t] : 0);
    SERIES(minus, 1, fall[t] > 0 && fall[t] > rise[t] ? fall[t] : 0);
    *up = plain_wilder(w, plus, n);
    *down = plain_wilder(w, minus, n);
}
