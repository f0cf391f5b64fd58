#include "train/budget.h"

#include "base/machine.h"

#include <math.h>
#include <stdio.h>

static const char key_gb[] = "gpu_optimization.max_memory_gb", key_host[] = "gpu_optimization.max_host_memory_gb";

// Growth of a card's context after the base is measured, whatever is recorded: 6 to 15 MB on an H200, by which
// kernels are loaded. And a run's share of the process beside its plan: the log, run.db, stacks, the description of the
// plan itself.
enum { CARD_ALLOWANCE = 24 << 20, HOST_ALLOWANCE = 8 << 20 };

// A limit up to this share above the card's memory means all of it: a card that is sold with 12 GB reports 11.99.
#define MEANS_ALL 0.03

static double mb(size_t bytes) {
    return (double)bytes / 1e6;
}

double budget_gb(size_t bytes) {
    enum { BASE_VARIES = 2 << 20 }; // from process to process, and what is named must do
    return ceil((double)(bytes + BASE_VARIES) / 0x1p30 * 100) / 100;
}

static size_t less(size_t a, size_t b) {
    return a > b ? a - b : 0;
}

static void set_limit(budget *b, double bytes) {
    b->limited = true;
    b->limit = (size_t)bytes;
    size_t left = less(b->limit, b->base + b->allowance);
    if (left < b->slab) b->slab = left;
}

// Refuses a host limit above the machine's memory, beside a card too.
static bool check_host(const config *c, const settings *s, err *e) {
    double machine = machine_look("").total;
    if (machine < 0 || s->max_host_memory <= machine) return true;
    return config_fail(c, key_host, e, "the machine has %.2f GB; use no more, or leave it out", machine / 0x1p30);
}

static bool make_host(budget *b, const settings *s, err *e) {
    double own = machine_look("").anonymous;
    b->counted = own > 0;
    b->base = b->counted ? (size_t)own : 0;
    if (!(s->max_host_memory > 0)) return true;
    if (!b->counted) return err_run(e, "/proc/self/status does not count memory here; leave %s out", key_host);
    set_limit(b, s->max_host_memory);
    return true;
}

bool budget_make(budget *b, const config *c, const settings *s, const device *d, const queue *q, err *e) {
    device_memory m = {0};
    size_t free_bytes = d->available(q);
    size_t allowance = d->host_memory ? HOST_ALLOWANCE : CARD_ALLOWANCE;
    *b = (budget){.host = d->host_memory,
        .whole = !s->split_open,
        .smaller = "train.batch_size or smaller windows",
        .allowance = allowance,
        .free = free_bytes};
    b->slab = less(free_bytes, allowance);
    if (!check_host(c, s, e)) return false;
    if (d->host_memory) return make_host(b, s, e);
    b->counted = d->memory(q, &m);
    b->base = m.base + m.slab;
    b->others = m.used > b->base ? m.used - b->base : 0;
    b->total = m.total;
    b->host_limit = (size_t)s->max_host_memory;
    if (!(s->max_memory > 0 || s->memory_fraction > 0)) return true;
    if (!b->counted)
        return err_run(e,
            "the card's monitor (libnvidia-ml.so.1) was not found, so no limit can be held; install it, or "
            "leave gpu_optimization.max_memory_gb out");
    double total = (double)m.total;
    if (s->max_memory > total * (1 + MEANS_ALL))
        return config_fail(c, key_gb, e, "the card has %.2f GB; use no more, or leave it out", total / 0x1p30);
    if (s->max_memory > total) b->asked = s->max_memory;
    set_limit(b, b->asked > 0 ? total : s->max_memory > 0 ? s->max_memory : s->memory_fraction * total);
    return true;
}

bool budget_is_lowered(const budget *b, char *line, size_t room) {
    if (b->asked > 0)
        snprintf(line, room, "%s: %.2f GB is more than the card has; all of its %.2f GB are the limit", key_gb,
            b->asked / 0x1p30, (double)b->limit / 0x1p30);
    return b->asked > 0;
}

bool budget_is_shared(const budget *b, char *line, size_t room) {
    size_t wanted = b->limited ? b->limit : b->total / 20 * 19;
    size_t had = b->base + b->slab + b->allowance;
    snprintf(line, room, "hold %.1f of the card's %.1f MB, so that the slab may have %.1f MB", mb(b->others),
        mb(b->total), mb(b->slab));
    return b->counted && b->others > 0 && had < wanted && b->others + wanted > b->total;
}

size_t budget_planned(const budget *b, const demand *n) {
    return b->host ? n->slab + n->ring + n->copies : n->slab;
}

size_t budget_beside(const budget *b, const demand *n) {
    return b->host ? b->allowance : b->allowance + n->recorded;
}

size_t budget_need(const budget *b, const demand *n) {
    return b->host ? budget_planned(b, n) : n->slab + n->recorded;
}

static bool host_takes(const budget *b, const demand *n) {
    return b->host || !b->host_limit || n->ring + n->copies <= b->host_limit;
}

bool budget_takes(const budget *b, const demand *n) {
    return budget_need(b, n) <= b->slab && host_takes(b, n);
}

size_t budget_least(const budget *b, const demand *n) {
    return b->base + budget_planned(b, n) + budget_beside(b, n);
}

bool budget_is_low(const budget *b, const demand *n) {
    if (!host_takes(b, n)) return true;
    return b->limited && budget_need(b, n) > b->slab && budget_least(b, n) > b->limit;
}

bool budget_fits(const budget *b, const demand *n, const char *device, err *e) {
    size_t planned = budget_planned(b, n), beside = budget_beside(b, n);
    const char *split = b->whole ? "set gpu_optimization.dynamic_batch_sizing, " : "";
    if (budget_takes(b, n)) return true;
    if (!host_takes(b, n))
        return err_run(e,
            "batches and copies on the host need %.1f MB, and the limit is %.1f MB; set %s to %.2f or more, or lower "
            "data.prefetch_factor",
            mb(n->ring + n->copies), mb(b->host_limit), key_host, budget_gb(n->ring + n->copies));
    if (!budget_is_low(b, n))
        return err_run(e, "the plan needs %.1f MB and %s has %.1f MB available; %suse a smaller %s",
            mb(budget_need(b, n)), device, mb(b->slab), split, b->smaller);
    char instead[128] = "";
    if (b->base + beside < b->limit) snprintf(instead, sizeof instead, ", %sor use a smaller %s", split, b->smaller);
    return err_run(e,
        "the plan needs %.1f MB, a base of %.1f MB and %.1f MB beside them, and the limit is %.1f MB; set %s to %.2f "
        "or more%s",
        mb(planned), mb(b->base), mb(beside), mb(b->limit), b->host ? key_host : key_gb, budget_gb(budget_least(b, n)),
        instead);
}

bool budget_holds(const budget *b, const device *d, const queue *q, err *e) {
    device_memory m;
    if (!b->limited || !d->memory(q, &m) || m.base + m.slab <= b->limit) return true;
    return err_run(e,
        "recorded, the steps take a base of %.1f MB and a slab of %.1f MB, and the limit is %.1f MB; set %s to %.2f or "
        "more",
        mb(m.base), mb(m.slab), mb(b->limit), key_gb, budget_gb(m.base + m.slab));
}
