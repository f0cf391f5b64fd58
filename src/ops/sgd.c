// sgd: one step of stochastic gradient descent over the whole parameter slab, as PyTorch's torch.optim.SGD.
//   clip (state of clip), the slabs (weights, gradients and, with momentum, moment1, changed in place), decays
//   (optional)
// With g the gradient times clip's factor plus weight_decay * w, and lr the rate that the schedule gives:
//   m = momentum m + g;  w -= lr m, or, as Nesterov has it, w -= lr (g + momentum m)
// Where only weights decay (ops/decay.h), weight_decay is 0 for the rest. A factor of 0 means that the step is skipped.
#include "ops/decay.h"
#include "ops/schedule.h"

#ifdef OP_RULES

tensor op_sgd(graph *g, tensor clip, sgd_settings settings) {
    CHECK(!settings.nesterov || settings.momentum > 0, "sgd: Nesterov's step has a momentum");
    tensor moment = settings.momentum != 0 ? graph_slab(g, SLAB_MOMENT1) : TENSOR_NONE;
    node *n = OP_NODE(g, sgd, clip, graph_slab(g, SLAB_WEIGHTS), graph_slab(g, SLAB_GRADIENTS), moment,
        decay_table(g, settings.decay));
    graph_attr_add(g, n, &settings, sizeof settings);
    n->phase = PHASE_UPDATE;
    return TENSOR_NONE;
}

#else

static void forward_range(const call *c, int64_t begin, int64_t end) {
    const sgd_settings *a = c->attr;
    real *w = c->in[SGD_WEIGHTS].data, *m = c->in[SGD_MOMENT].data;
    const real *g = c->in[SGD_GRADIENTS].data;
    const int8_t *decays = c->in[SGD_DECAYS].data;
    real lr = (real)schedule_rate(&a->schedule, c->step.progress->lr, c->step.progress->update),
         momentum = (real)a->momentum;
    real factor = (real)((const double *)c->in[SGD_CLIP].data)[CLIP_FACTOR];
    for (int64_t next; begin < end; begin = next) {
        next = decay_run(decays, begin, end);
        real decay = decay_at(decays, begin) ? (real)a->weight_decay : 0;
        for (int64_t i = begin; i < next; i++) {
            real d = g[i] * factor + decay * w[i];
            if (m) m[i] = momentum * m[i] + d;
            if (m) d = a->nesterov ? d + momentum * m[i] : m[i];
            w[i] -= lr * d;
        }
    }
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[SGD_WEIGHTS]);
    if (((const double *)c->in[SGD_CLIP].data)[CLIP_FACTOR] != 0) op_for(c, n, 1, forward_range);
}

const kernel KERNEL(sgd) = {forward, NULL, NULL, NULL};

#endif
