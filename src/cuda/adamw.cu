// adamw on the card: see ops/adamw.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(const step *s, const double *clip, float *w, const float *g, float *m, float *v,
    adamw_settings a, int64_t n) {
    float factor = (float)clip[CLIP_FACTOR];
    if (factor == 0) return;
    double t = (double)s->update + 1, lr = (double)s->lr;
    float keep = (float)(1 - lr * (double)a.weight_decay), rate = (float)(lr / (1 - pow((double)a.beta1, t)));
    float root = (float)(1 / sqrt(1 - pow((double)a.beta2, t)));
    FOR_EACH(i, n) {
        float d = g[i] * factor;
        m[i] = a.beta1 * m[i] + (1 - a.beta1) * d;
        v[i] = a.beta2 * v[i] + (1 - a.beta2) * d * d;
        w[i] = w[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + a.eps);
    }
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[1]);
    LAUNCH(c, forward_kernel, blocks_for(n, 256), 256, 0, c->step, (const double *)c->in[0].data, (float *)c->in[1].data,
        (const float *)c->in[2].data, (float *)c->in[3].data, (float *)c->in[4].data, *(const adamw_settings *)c->attr, n);
}

extern "C" const kernel cuda_adamw = {forward, NULL, NULL, NULL};
