// sgd on the card: see ops/sgd.c.
#include "cuda/ops/adamw.cuh"

static __global__ void forward_kernel(const step_progress *s, const double *clip, float *w, view low, const float *g,
    float *m, const int8_t *decays, const __grid_constant__ sgd_settings a, int64_t n) {
    __shared__ float rate;
    float factor = (float)clip[CLIP_FACTOR];
    if (clip[CLIP_FACTOR] == 0) return;
    if (threadIdx.x == 0) rate = scheduled_rate(a.schedule, s->lr, s->update);
    __syncthreads();
    float lr = rate;
    FOR_EACH(i, n) {
        float d = g[i] * factor + (quad_decays(decays, i / 4) ? a.weight_decay : 0) * w[i];
        if (m) {
            float m1 = m[i] = a.momentum * m[i] + d;
            d = a.nesterov ? d + a.momentum * m1 : m1;
        }
        w[i] -= lr * d;
        if (low.data) view_store(low, i, w[i]);
    }
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[SGD_WEIGHTS]);
    LAUNCH(c, forward_kernel, blocks_for(n, 256), 256, 0, c->step.progress, (const double *)c->in[SGD_CLIP].data,
        (float *)c->in[SGD_WEIGHTS].data, view{c->in[SGD_WEIGHTS].low, (int)c->in[SGD_WEIGHTS].low_type, false},
        (const float *)c->in[SGD_GRADIENTS].data, (float *)c->in[SGD_MOMENT].data,
        (const int8_t *)c->in[SGD_DECAYS].data, *(const sgd_settings *)c->attr, n);
}

extern "C" const kernel cuda_sgd = {forward, NULL, NULL, NULL};
