// One element's AdamW step: see ops/adamw.c. Whether a step is taken is known only when clip's state has come from
// memory, and nothing waits for it: a skipped step writes back what it read.
#ifndef TRADEWIND_CUDA_OPS_ADAMW_CUH
#define TRADEWIND_CUDA_OPS_ADAMW_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "ops/schedule.h"
}

#include <math.h>

// Logarithms of the betas: 1 - beta^t is -expm1(t log beta), exact enough in fp32 for every t.
struct adamw_decay {
    float log1, log2;
};

static inline adamw_decay adamw_decay_of(const adamw_settings *a) {
    return adamw_decay{(float)log((double)a->beta1), (float)log((double)a->beta2)};
}

struct adamw_rates {
    float factor, rate, root;
    float keep, pull; // decay: what is left of a weight, what of it joins its gradient
    bool taken;
};

// The rate of the step at hand, for one thread of a block: it takes a while.
CUDA_FN float scheduled_rate(const lr_schedule &s, float lr, uint64_t update) {
    return s.kind == SCHEDULE_CONSTANT && !s.warmup ? lr : (float)schedule_rate(&s, lr, update);
}

CUDA_FN adamw_rates adamw_rates_of(float lr, double factor, double taken, const adamw_settings &a, adamw_decay d) {
    float t = (float)taken;
    adamw_rates r;
    r.factor = (float)factor;
    r.taken = factor != 0;
    r.keep = a.coupled ? 1 : 1 - lr * a.weight_decay;
    r.pull = a.coupled ? a.weight_decay : 0;
    r.rate = lr / -expm1f(t * d.log1);
    r.root = 1 / sqrtf(-expm1f(t * d.log2));
    return r;
}

// The card's own root and quotient, each within two units of the last place, are short: an update of a small model is
// mostly instructions.
CUDA_FN float short_root(float v) {
    float r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

CUDA_FN void adamw_element(float &w, float g, float &m, float &v, adamw_rates r, const adamw_settings &a) {
    float d = g * r.factor + r.pull * w;
    float m1 = a.beta1 * m + (1 - a.beta1) * d, v1 = a.beta2 * v + (1 - a.beta2) * d * d;
    float w1 = w * r.keep - __fdividef(r.rate * m1, short_root(v1) * r.root + a.eps);
    w = r.taken ? w1 : w;
    m = r.taken ? m1 : m;
    v = r.taken ? v1 : v;
}

// The 16-bit copies of four weights.
CUDA_FN uint2 adamw_low(float4 w, bool f16) {
    uint2 to;
    if (f16) {
        *(__half2 *)&to.x = __floats2half2_rn(w.x, w.y);
        *(__half2 *)&to.y = __floats2half2_rn(w.z, w.w);
    } else {
        *(__nv_bfloat162 *)&to.x = __floats2bfloat162_rn(w.x, w.y);
        *(__nv_bfloat162 *)&to.y = __floats2bfloat162_rn(w.z, w.w);
    }
    return to;
}

struct adamw_quad {
    float4 w, m, v;
};

// True if the i-th four elements decay: SLAB_ALIGN elements share a byte of the table, which may be missing.
CUDA_FN bool quad_decays(const int8_t *decays, int64_t i) {
    return !decays || decays[i / (SLAB_ALIGN / 4)];
}

CUDA_FN void adamw_step(adamw_quad &q, float4 g, bool decays, adamw_rates r, const adamw_settings &a) {
    r.keep = decays ? r.keep : 1;
    r.pull = decays ? r.pull : 0;
    adamw_element(q.w.x, g.x, q.m.x, q.v.x, r, a);
    adamw_element(q.w.y, g.y, q.m.y, q.v.y, r, a);
    adamw_element(q.w.z, g.z, q.m.z, q.v.z, r, a);
    adamw_element(q.w.w, g.w, q.m.w, q.v.w, r, a);
}

#endif
