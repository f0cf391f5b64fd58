// sgd: one step of stochastic gradient descent over the whole parameter slab, as PyTorch's torch.optim.SGD.
//   clip (state of clip) and the slabs: weights, gradients and, with momentum, moment1, changed in place
// With g the gradient times clip's factor plus weight_decay * w:  m = momentum m + g;  w -= lr m
// A factor of 0 means that the step is skipped.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_sgd(graph *g, tensor clip, sgd_settings settings) {
    tensor moment = settings.momentum != 0 ? graph_slab(g, SLAB_MOMENT1) : TENSOR_NONE;
    node *n = OP_NODE(g, sgd, clip, graph_slab(g, SLAB_WEIGHTS), graph_slab(g, SLAB_GRADIENTS), moment);
    graph_attr_add(g, n, &settings, sizeof settings);
    n->phase = PHASE_UPDATE;
    return TENSOR_NONE;
}

#else

static void forward_range(const call *c, int64_t begin, int64_t end) {
    const sgd_settings *a = c->attr;
    real *w = c->in[1].data, *m = c->in[3].data, lr = (real)c->step->lr;
    const real *g = c->in[2].data;
    real factor = (real)((const double *)c->in[0].data)[CLIP_FACTOR];
    real momentum = (real)a->momentum, decay = (real)a->weight_decay;
    for (int64_t i = begin; i < end; i++) {
        real d = g[i] * factor + decay * w[i];
        if (m) d = m[i] = momentum * m[i] + d;
        w[i] -= lr * d;
    }
}

static void forward(const call *c) {
    if (((const double *)c->in[0].data)[CLIP_FACTOR] != 0) op_for(c, operand_count(&c->in[1]), 1, forward_range);
}

const kernel KERNEL(sgd) = {forward, NULL, NULL, NULL};

#endif
