// adamw on the card, where it is a launch of its own: see ops/adamw.c, and cuda/settle.cuh for the usual case.
#include "cuda/adamw.cuh"

enum { THREADS = 128 };

// One thread for every four elements, without a loop: all that is read is asked for at once.
static __global__ void forward_kernel(const step *s, const double *clip, float4 *w, const float4 *g, float4 *m,
    float4 *v, adamw_settings a, adamw_decay d, int64_t quads) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= quads) return;
    adamw_quad q = {w[i], m[i], v[i]};
    float4 gi = g[i];
    adamw_step(q, gi, adamw_rates_of(s->lr, clip[CLIP_FACTOR], clip[CLIP_TAKEN], a, d), a);
    w[i] = q.w;
    m[i] = q.m;
    v[i] = q.v;
}

static void forward(const call *c) {
    const adamw_settings *a = (const adamw_settings *)c->attr;
    int64_t n = operand_count(&c->in[1]), blocks = (n / 4 + THREADS - 1) / THREADS;
    CHECK(n % 4 == 0 && blocks <= INT32_MAX, "a slab of %lld elements", (long long)n);
    LAUNCH(c, forward_kernel, (unsigned)blocks, THREADS, 0, c->step, (const double *)c->in[0].data,
        (float4 *)c->in[1].data, (const float4 *)c->in[2].data, (float4 *)c->in[3].data, (float4 *)c->in[4].data, *a,
        adamw_decay_of(a), n / 4);
}

extern "C" const kernel cuda_adamw = {forward, NULL, NULL, NULL};
