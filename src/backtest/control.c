#include "backtest/control.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const control_input *in;
    int64_t free;    // bars without a trade, of which a trade can begin at each or behind the last
    int64_t *order;  // [trades]
    int64_t *before; // [trades] free bars before each place, sorted
} drawer;

static int64_t bars_of(const control_trade *t) {
    return t->bars > 1 ? t->bars : 1;
}

// A number of 0 to `most` - 1.
static int64_t below(uint32_t bits, int64_t most) {
    return (int64_t)(((uint64_t)bits * (uint64_t)most) >> 32);
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void place(drawer *d, int64_t draw) {
    int64_t n = d->in->trades;
    for (int64_t i = 0; i < n; i++) {
        rng_block r = rng_philox(d->in->seed, (uint32_t)i, (uint32_t)draw, (uint32_t)RNG_CONTROL << 16, 0);
        int64_t k = below(r.v[1], i + 1);
        d->before[i] = below(r.v[0], d->free + 1);
        d->order[i] = k < i ? d->order[k] : i; // a shuffle of those up to here
        d->order[k] = i;
    }
    qsort(d->before, (size_t)n, sizeof *d->before, by_size);
}

static double back_of(const drawer *d) {
    double equity = 1;
    int64_t held = 0;
    for (int64_t i = 0; i < d->in->trades; i++) {
        const control_trade *t = &d->in->trade[d->order[i]];
        int64_t entry = d->before[i] + held, exit = entry + bars_of(t);
        equity *= 1 + t->share * (d->in->price[exit] / d->in->price[entry] - 1) - t->cost;
        held += bars_of(t);
        if (equity <= 0) return -1;
    }
    return equity - 1;
}

static int by_return(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(double *back, double own, control *to) {
    int better = 0;
    for (int i = 0; i < CONTROL_DRAWS; i++) {
        to->mean += back[i] / CONTROL_DRAWS;
        better += back[i] >= own;
    }
    to->better = (double)better / CONTROL_DRAWS;
    qsort(back, CONTROL_DRAWS, sizeof *back, by_return);
    to->low = back[CONTROL_DRAWS / 20];
    to->high = back[CONTROL_DRAWS - 1 - CONTROL_DRAWS / 20];
}

bool control_make(const control_input *in, double own, control *to, bool *room, err *e) {
    drawer d = {.in = in, .free = in->bars - 1};
    *to = (control){0};
    for (int64_t i = 0; i < in->trades; i++) d.free -= bars_of(&in->trade[i]);
    *room = d.free >= 0;
    if (!*room) return true;
    CHECK(in->bars < (int64_t)1 << 32, "%lld bars", (long long)in->bars);
    d.order = malloc((size_t)(in->trades + 1) * sizeof *d.order);
    d.before = malloc((size_t)(in->trades + 1) * sizeof *d.before);
    double *back = malloc(CONTROL_DRAWS * sizeof *back);
    bool ok = d.order && d.before && back;
    for (int64_t i = 0; ok && i < CONTROL_DRAWS; i++) {
        place(&d, i);
        back[i] = back_of(&d);
    }
    if (ok) summarise(back, own, to);
    free(d.order);
    free(d.before);
    free(back);
    return ok || err_run(e, "out of memory for a control of %lld trades", (long long)in->trades);
}
