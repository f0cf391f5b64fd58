#include "watch/trace.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>

trace *trace_new(void) {
    trace *t = calloc(1, sizeof *t);
    NEED(t, "out of memory for a trace");
    t->each = 1;
    return t;
}

void trace_free(trace *t) {
    free(t);
}

static void halve(trace *t) {
    for (int i = 0; i < t->count / 2; i++) {
        int a = 2 * i, b = a + 1;
        t->x[i] = t->x[b];
        t->low[i] = fmin(t->low[a], t->low[b]);
        t->mean[i] = t->mean[a] / 2 + t->mean[b] / 2;
        t->high[i] = fmax(t->high[a], t->high[b]);
    }
    t->count /= 2;
    t->each *= 2;
}

void trace_add(trace *t, double x, double low, double mean, double high) {
    if (!isfinite(x) || !isfinite(low) || !isfinite(mean) || !isfinite(high)) return;
    if (t->open == 0 && t->count == TRACE_MOST) halve(t);
    int i = t->open ? t->count - 1 : t->count++;
    double weight = t->open ? 1.0 / (double)(t->open + 1) : 1;
    t->x[i] = x;
    t->low[i] = t->open ? fmin(t->low[i], low) : low;
    t->mean[i] = t->open ? t->mean[i] + (mean - t->mean[i]) * weight : mean;
    t->high[i] = t->open ? fmax(t->high[i], high) : high;
    t->open = (t->open + 1) % t->each;
}
