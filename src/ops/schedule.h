// The learning rate of an update: the rate that the host set, times a factor that depends on the number of the update
// alone, so that steps can be replayed without the host. Compiled by C and by nvcc.
//
// The factors are those of torch.optim.lr_scheduler, stepped once an update: a warm-up is LinearLR up to 1; behind it,
// counted anew, come CosineAnnealingLR, LinearLR or StepLR (with `every` 1, ExponentialLR). A one-cycle is OneCycleLR
// with cosines and two phases, which leaves the momentum alone. Where PyTorch's would rise again or stop with an error
// beyond the last update, these stay as they are at the end.
//
// Every device gives the same bits: where a product meets a sum it is an explicit fma, so that no compiler has a
// choice, and the cosine is a polynomial.
#ifndef TRADEWIND_OPS_SCHEDULE_H
#define TRADEWIND_OPS_SCHEDULE_H

#include "ops/attr.h"

#include <math.h>

#ifdef __CUDACC__
#define SCHEDULE_FN static __device__ inline
#else
#define SCHEDULE_FN static inline
#endif

// (1 + cos(pi x)) / 2 for x in 0..1, which is (1 - sin(pi y)) / 2 with y = x - 1/2. The coefficients are those of half
// the sine's series, which ends where 1e-19 is left.
SCHEDULE_FN double schedule_fall(double x) {
    double y = x - 0.5, z = y * y, p = -0x1.7215f879e1ac9p-38;
    p = fma(p, z, 0x1.2877020d52cf0p-32);
    p = fma(p, z, -0x1.8a404211f9547p-27);
    p = fma(p, z, 0x1.aaec32af93359p-22);
    p = fma(p, z, -0x1.6fadb9f155744p-17);
    p = fma(p, z, 0x1.e8f434d018d63p-13);
    p = fma(p, z, -0x1.e3074fde8871fp-9);
    p = fma(p, z, 0x1.50783487ee782p-5);
    p = fma(p, z, -0x1.32d2cce62bd86p-2);
    p = fma(p, z, 0x1.466bc6775aae2p+0);
    p = fma(p, z, -0x1.4abbce625be53p+1);
    p = fma(p, z, 0x1.921fb54442d18p+0);
    return fma(-y, p, 0.5);
}

// gamma^n, by squaring: its relative error stays below n / 2^53.
SCHEDULE_FN double schedule_power(double gamma, uint64_t n) {
    double power = 1;
    for (; n; n >>= 1, gamma *= gamma)
        if (n & 1) power *= gamma;
    return power;
}

// Goes from 1 to `end` as x does from 0 to 1, along half a cosine.
SCHEDULE_FN double schedule_bend(double end, double x) {
    return x < 1 ? fma(1 - end, schedule_fall(x), end) : end;
}

SCHEDULE_FN double schedule_one_cycle(const lr_schedule *s, double update) {
    if (update < s->peak) return schedule_bend(s->start, 1 - update / s->peak);
    double rest = (double)s->total - 1 - s->peak;
    return rest > 0 ? schedule_bend(s->end, (update - s->peak) / rest) : s->end;
}

// Factor of the learning rate at update number `update`, counted from 0.
SCHEDULE_FN double schedule_factor(const lr_schedule *s, uint64_t update) {
    if (s->kind == SCHEDULE_ONE_CYCLE) return schedule_one_cycle(s, (double)update);
    if (update < s->warmup) return fma(1 - s->start, (double)update / (double)s->warmup, s->start);
    if (s->kind == SCHEDULE_CONSTANT) return 1;
    uint64_t at = update - s->warmup;
    if (s->kind == SCHEDULE_STEP) return schedule_power(s->gamma, at / s->every);
    if (update >= s->total) return s->end;
    double x = (double)at / (double)(s->total - s->warmup);
    return s->kind == SCHEDULE_COSINE ? schedule_bend(s->end, x) : fma(s->end - 1, x, 1.0);
}

// The learning rate of an update, where the host has set `lr`.
SCHEDULE_FN double schedule_rate(const lr_schedule *s, float lr, uint64_t update) {
    return (double)lr * schedule_factor(s, update);
}

#endif
