// adamw on the card, where it is a launch of its own: see ops/adamw.c, and cuda/join/step_end.cuh for the usual case.
#include "cuda/ops/adamw.cuh"

enum { THREADS = 128 };

// One thread for every four elements, without a loop: all that is read is asked for at once.
static __global__ void forward_kernel(const step_progress *s, const double *clip, float4 *w, uint2 *low, bool low_f16,
    const float4 *g, float4 *m, float4 *v, const int8_t *decays, const __grid_constant__ adamw_settings a,
    adamw_decay d, int64_t quads) {
    __shared__ adamw_rates rates;
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    adamw_quad q;
    float4 gi;
    bool decay = true;
    if (i < quads) {
        q = adamw_quad{w[i], m[i], v[i]};
        gi = g[i];
        decay = quad_decays(decays, i);
    }
    if (threadIdx.x == 0)
        rates = adamw_rates_of(scheduled_rate(a.schedule, s->lr, s->update), clip[CLIP_FACTOR], clip[CLIP_TAKEN], a, d);
    __syncthreads();
    if (i >= quads) return;
    adamw_step(q, gi, decay, rates, a);
    w[i] = q.w;
    if (low) low[i] = adamw_low(q.w, low_f16);
    m[i] = q.m;
    v[i] = q.v;
}

static void forward(const call *c) {
    const adamw_settings *a = (const adamw_settings *)c->attr;
    int64_t n = operand_count(&c->in[ADAMW_WEIGHTS]), blocks = (n / 4 + THREADS - 1) / THREADS;
    CHECK(n % 4 == 0 && blocks <= INT32_MAX, "a slab of %lld elements", (long long)n);
    LAUNCH(c, forward_kernel, (unsigned)blocks, THREADS, 0, c->step.progress, (const double *)c->in[ADAMW_CLIP].data,
        (float4 *)c->in[ADAMW_WEIGHTS].data, (uint2 *)c->in[ADAMW_WEIGHTS].low,
        c->in[ADAMW_WEIGHTS].low_type == DTYPE_F16, (const float4 *)c->in[ADAMW_GRADIENTS].data,
        (float4 *)c->in[ADAMW_MOMENT1].data, (float4 *)c->in[ADAMW_MOMENT2].data,
        (const int8_t *)c->in[ADAMW_DECAYS].data, *a, adamw_decay_of(a), n / 4);
}

extern "C" const kernel cuda_adamw = {forward, NULL, NULL, NULL};
