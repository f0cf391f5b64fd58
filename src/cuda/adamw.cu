// adamw on the card: see ops/adamw.c. Whether the step is taken is known only when clip's state has come from memory,
// and nothing waits for it: a skipped step writes back what it read.
#include "cuda/cuda.cuh"

#include <math.h>

enum { THREADS = 128 };

// Logarithms of the betas: 1 - beta^t is -expm1(t log beta), exact enough in fp32 for every t.
struct decay {
    float log1, log2;
};

struct rates {
    float factor, keep, rate, root;
    bool taken;
};

CUDA_FN rates rates_of(const step *s, const double *clip, adamw_settings a, decay d) {
    float t = (float)clip[CLIP_TAKEN], lr = s->lr;
    rates r;
    r.factor = (float)clip[CLIP_FACTOR];
    r.taken = clip[CLIP_FACTOR] != 0;
    r.keep = 1 - lr * a.weight_decay;
    r.rate = lr / -expm1f(t * d.log1);
    r.root = 1 / sqrtf(-expm1f(t * d.log2));
    return r;
}

CUDA_FN void update(float &w, float g, float &m, float &v, rates r, adamw_settings a) {
    float d = g * r.factor;
    float m1 = a.beta1 * m + (1 - a.beta1) * d, v1 = a.beta2 * v + (1 - a.beta2) * d * d;
    float w1 = w * r.keep - r.rate * m1 / (sqrtf(v1) * r.root + a.eps);
    w = r.taken ? w1 : w;
    m = r.taken ? m1 : m;
    v = r.taken ? v1 : v;
}

// One thread for every four elements, without a loop: all that is read is asked for at once.
static __global__ void forward_kernel(const step *s, const double *clip, float4 *w, const float4 *g, float4 *m,
    float4 *v, adamw_settings a, decay d, int64_t quads) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= quads) return;
    float4 wi = w[i], gi = g[i], mi = m[i], vi = v[i];
    rates r = rates_of(s, clip, a, d);
    update(wi.x, gi.x, mi.x, vi.x, r, a);
    update(wi.y, gi.y, mi.y, vi.y, r, a);
    update(wi.z, gi.z, mi.z, vi.z, r, a);
    update(wi.w, gi.w, mi.w, vi.w, r, a);
    w[i] = wi;
    m[i] = mi;
    v[i] = vi;
}

static void forward(const call *c) {
    const adamw_settings *a = (const adamw_settings *)c->attr;
    decay d = {(float)log((double)a->beta1), (float)log((double)a->beta2)};
    int64_t n = operand_count(&c->in[1]), blocks = (n / 4 + THREADS - 1) / THREADS;
    CHECK(n % 4 == 0 && blocks <= INT32_MAX, "a slab of %lld elements", (long long)n);
    LAUNCH(c, forward_kernel, (unsigned)blocks, THREADS, 0, c->step, (const double *)c->in[0].data,
        (float4 *)c->in[1].data, (const float4 *)c->in[2].data, (float4 *)c->in[3].data, (float4 *)c->in[4].data, *a, d,
        n / 4);
}

extern "C" const kernel cuda_adamw = {forward, NULL, NULL, NULL};
