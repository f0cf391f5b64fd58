// One element's AdamW step: see ops/adamw.c. Whether a step is taken is known only when clip's state has come from memory,
// and nothing waits for it: a skipped step writes back what it read.
#ifndef TRADEWIND_CUDA_ADAMW_CUH
#define TRADEWIND_CUDA_ADAMW_CUH

#include "cuda/cuda.cuh"

#include <math.h>

// Logarithms of the betas: 1 - beta^t is -expm1(t log beta), exact enough in fp32 for every t.
struct adamw_decay {
    float log1, log2;
};

static inline adamw_decay adamw_decay_of(const adamw_settings *a) {
    return adamw_decay{(float)log((double)a->beta1), (float)log((double)a->beta2)};
}

struct adamw_rates {
    float factor, keep, rate, root;
    bool taken;
};

CUDA_FN adamw_rates adamw_rates_of(float lr, double factor, double taken, adamw_settings a, adamw_decay d) {
    float t = (float)taken;
    adamw_rates r;
    r.factor = (float)factor;
    r.taken = factor != 0;
    r.keep = 1 - lr * a.weight_decay;
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

CUDA_FN void adamw_element(float &w, float g, float &m, float &v, adamw_rates r, adamw_settings a) {
    float d = g * r.factor;
    float m1 = a.beta1 * m + (1 - a.beta1) * d, v1 = a.beta2 * v + (1 - a.beta2) * d * d;
    float w1 = w * r.keep - __fdividef(r.rate * m1, short_root(v1) * r.root + a.eps);
    w = r.taken ? w1 : w;
    m = r.taken ? m1 : m;
    v = r.taken ? v1 : v;
}

struct adamw_quad {
    float4 w, m, v;
};

CUDA_FN void adamw_step(adamw_quad &q, float4 g, adamw_rates r, adamw_settings a) {
    adamw_element(q.w.x, g.x, q.m.x, q.v.x, r, a);
    adamw_element(q.w.y, g.y, q.m.y, q.v.y, r, a);
    adamw_element(q.w.z, g.z, q.m.z, q.v.z, r, a);
    adamw_element(q.w.w, g.w, q.m.w, q.v.w, r, a);
}

#endif
