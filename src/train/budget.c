#include "train/budget.h"

#include <math.h>
#include <stdio.h>

static const char key_gb[] = "gpu_optimization.max_memory_gb";

static double mb(size_t bytes) {
    return (double)bytes / 1e6;
}

// In the limit's unit, rounded up to what can be typed.
static double gb_for(size_t bytes) {
    return ceil((double)bytes / 0x1p30 * 100) / 100;
}

bool budget_make(budget *b, const config *c, const settings *s, const device *d, const queue *q, err *e) {
    device_memory m = {0};
    *b = (budget){.slab = d->available(q)};
    if (d->host_memory) return true;
    b->counted = d->memory(q, &m);
    b->base = m.base;
    b->others = m.used > m.base ? m.used - m.base : 0;
    b->total = m.total;
    b->limited = s->max_memory > 0 || s->memory_fraction > 0;
    if (!b->limited) return true;
    if (!b->counted)
        return err_run(e,
            "the card's monitor (libnvidia-ml.so.1) was not found, so no limit can be held; install it, or "
            "leave gpu_optimization.max_memory_gb out");
    if (s->max_memory > (double)m.total)
        return config_fail(
            c, key_gb, e, "the card has %.2f GB; use no more, or leave it out", (double)m.total / 0x1p30);
    b->limit = (size_t)(s->max_memory > 0 ? s->max_memory : s->memory_fraction * (double)m.total);
    size_t left = b->limit > b->base ? b->limit - b->base : 0;
    if (left < b->slab) b->slab = left;
    return true;
}

bool budget_is_shared(const budget *b, char *line, size_t room) {
    size_t wanted = b->limited ? b->limit : b->total / 20 * 19;
    snprintf(line, room, "hold %.1f of the card's %.1f MB, so that the slab may have %.1f MB", mb(b->others),
        mb(b->total), mb(b->slab));
    return b->counted && b->others > 0 && b->base + b->slab < wanted && b->others + wanted > b->total;
}

bool budget_is_low(const budget *b, size_t need) {
    return b->limited && need > b->slab && need + b->base > b->limit;
}

bool budget_fits(const budget *b, size_t need, const char *device, err *e) {
    if (need <= b->slab) return true;
    if (!budget_is_low(b, need))
        return err_run(e,
            "the plan needs %.1f MB and %s has %.1f MB available; use a smaller train.batch_size or smaller windows",
            mb(need), device, mb(b->slab));
    return err_run(e,
        "the plan needs %.1f MB and a base of %.1f MB, and the limit is %.1f MB; set %s to %.2f or more, or use a "
        "smaller "
        "train.batch_size",
        mb(need), mb(b->base), mb(b->limit), key_gb, gb_for(need + b->base));
}

bool budget_holds(const budget *b, const device *d, const queue *q, err *e) {
    device_memory m;
    if (!b->limited || !d->memory(q, &m) || m.base + m.slab <= b->limit) return true;
    return err_run(e,
        "recorded, the steps take a base of %.1f MB and a slab of %.1f MB, and the limit is %.1f MB; set %s to %.2f or "
        "more",
        mb(m.base), mb(m.slab), mb(b->limit), key_gb, gb_for(m.base + m.slab));
}
