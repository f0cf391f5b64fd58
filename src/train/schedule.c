#include "train/schedule.h"

#include "base/err.h"

#include <math.h>

const char *rate_name(rate_kind k) {
    static const char *const names[RATE_KINDS] = {
        "constant", "cosine", "linear", "step", "exponential", "one_cycle", "plateau"};
    return k >= 0 && k < RATE_KINDS ? names[k] : NULL;
}

static schedule_kind kind_of(rate_kind k) {
    switch (k) {
    case RATE_COSINE: return SCHEDULE_COSINE;
    case RATE_LINEAR: return SCHEDULE_LINEAR;
    case RATE_STEP:
    case RATE_EXPONENTIAL: return SCHEDULE_STEP;
    case RATE_ONE_CYCLE: return SCHEDULE_ONE_CYCLE;
    default: return SCHEDULE_CONSTANT;
    }
}

lr_schedule rate_schedule(const rate_options *o, int64_t all, int64_t updates) {
    CHECK(all > 0 && updates > 0, "a schedule over %lld updates, %lld in an epoch", (long long)all, (long long)updates);
    int64_t total = o->total ? o->total : all, every = o->every ? o->every : updates;
    lr_schedule s = {.kind = kind_of(o->kind), .warmup = (uint64_t)o->warmup, .total = (uint64_t)total};
    s.start = o->start;
    s.end = o->end;
    s.every = o->kind == RATE_EXPONENTIAL ? 1 : (uint64_t)every;
    s.gamma = o->kind == RATE_EXPONENTIAL ? pow(o->gamma, 1 / (double)every) : o->gamma;
    if (s.total < s.warmup) s.total = s.warmup;
    if (s.kind != SCHEDULE_ONE_CYCLE) return s;
    s.warmup = 0;
    s.start = 1 / o->divide;
    s.end = s.start / o->divide_by;
    s.peak = fmax(o->rise * (double)total - 1, 0);
    return s;
}
