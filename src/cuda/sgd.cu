// sgd on the card: see ops/sgd.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(const step *s, const double *clip, float *w, const float *g, float *m,
    sgd_settings a, int64_t n) {
    float factor = (float)clip[CLIP_FACTOR], lr = s->lr;
    if (clip[CLIP_FACTOR] == 0) return;
    FOR_EACH(i, n) {
        float d = g[i] * factor + a.weight_decay * w[i];
        if (m) d = m[i] = a.momentum * m[i] + d;
        w[i] -= lr * d;
    }
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[1]);
    LAUNCH(c, forward_kernel, blocks_for(n, 256), 256, 0, c->step, (const double *)c->in[0].data, (float *)c->in[1].data,
        (const float *)c->in[2].data, (float *)c->in[3].data, *(const sgd_settings *)c->attr, n);
}

extern "C" const kernel cuda_sgd = {forward, NULL, NULL, NULL};
