// adamw: one step of AdamW over the whole parameter slab, as PyTorch's torch.optim.AdamW.
//   clip (state of clip) and the slabs: weights, gradients, moment1, moment2, changed in place
// With g the gradient times clip's factor and t the steps taken, this one included (skipped ones do not count):
//   w -= lr * weight_decay * w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
// A factor of 0 means that the step is skipped.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_adamw(graph *g, tensor clip, adamw_settings settings) {
    node *n = OP_NODE(g, adamw, clip, graph_slab(g, SLAB_WEIGHTS), graph_slab(g, SLAB_GRADIENTS),
        graph_slab(g, SLAB_MOMENT1), graph_slab(g, SLAB_MOMENT2));
    graph_attr_add(g, n, &settings, sizeof settings);
    n->phase = PHASE_UPDATE;
    return TENSOR_NONE;
}

#else

static void forward_range(const call *c, int64_t begin, int64_t end) {
    const adamw_settings *a = c->attr;
    real *w = c->in[1].data, *m = c->in[3].data, *v = c->in[4].data;
    const real *g = c->in[2].data;
    const double *clip = c->in[0].data;
    double t = clip[CLIP_TAKEN], lr = (double)c->step->lr;
    real factor = (real)clip[CLIP_FACTOR];
    real keep = (real)(1 - lr * (double)a->weight_decay), rate = (real)(lr / (1 - pow((double)a->beta1, t)));
    real root = (real)(1 / sqrt(1 - pow((double)a->beta2, t))), b1 = (real)a->beta1, b2 = (real)a->beta2;
    real eps = (real)a->eps;
    for (int64_t i = begin; i < end; i++) {
        real d = g[i] * factor;
        m[i] = b1 * m[i] + (1 - b1) * d;
        v[i] = b2 * v[i] + (1 - b2) * d * d;
#ifdef OP_DOUBLE
        w[i] = w[i] * keep - rate * m[i] / (sqrt(v[i]) * root + eps);
#else
        w[i] = w[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + eps);
#endif
    }
}

static void forward(const call *c) {
    if (((const double *)c->in[0].data)[CLIP_FACTOR] != 0) op_for(c, operand_count(&c->in[1]), 1, forward_range);
}

const kernel KERNEL(adamw) = {forward, NULL, NULL, NULL};

#endif
