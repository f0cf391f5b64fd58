// adamw: one step of AdamW or Adam over the whole parameter slab, as PyTorch's torch.optim.AdamW and torch.optim.Adam.
//   clip (state of clip), the slabs (weights, gradients, moment1, moment2, changed in place), decays (optional)
// With g the gradient times clip's factor, t the steps taken, this one included (skipped ones do not count), and lr the
// rate that the schedule gives (ops/schedule.h):
//   AdamW: w -= lr * weight_decay * w        Adam: g += weight_decay * w
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
// Where only weights decay (ops/decay.h), weight_decay is 0 for the rest. A factor of 0 means that the step is skipped.
#include "ops/decay.h"
#include "ops/schedule.h"

#include <math.h>

#ifdef OP_RULES

tensor op_adamw(graph *g, tensor clip, adamw_settings settings) {
    node *n = OP_NODE(g, adamw, clip, graph_slab(g, SLAB_WEIGHTS), graph_slab(g, SLAB_GRADIENTS),
        graph_slab(g, SLAB_MOMENT1), graph_slab(g, SLAB_MOMENT2), decay_table(g, settings.decay));
    graph_attr_add(g, n, &settings, sizeof settings);
    n->phase = PHASE_UPDATE;
    return TENSOR_NONE;
}

#else

typedef struct {
    real factor, rate, root, b1, b2, eps;
    real keep, pull; // decay: what is left of a weight, what of it joins its gradient
} rates;

static rates rates_of(const call *c) {
    const adamw_settings *a = c->attr;
    const double *clip = c->in[ADAMW_CLIP].data;
    double t = clip[CLIP_TAKEN], lr = schedule_rate(&a->schedule, c->step.progress->lr, c->step.progress->update);
    return (rates){
        .factor = (real)clip[CLIP_FACTOR],
        .rate = (real)(lr / (1 - pow((double)a->beta1, t))),
        .root = (real)(1 / sqrt(1 - pow((double)a->beta2, t))),
        .b1 = (real)a->beta1,
        .b2 = (real)a->beta2,
        .eps = (real)a->eps,
        .keep = a->coupled ? 1 : (real)(1 - lr * (double)a->weight_decay),
        .pull = a->coupled ? (real)a->weight_decay : 0,
    };
}

static void step_run(real *w, const real *g, real *m, real *v, int64_t n, rates r) {
    for (int64_t i = 0; i < n; i++) {
        real d = g[i] * r.factor + r.pull * w[i];
        m[i] = r.b1 * m[i] + (1 - r.b1) * d;
        v[i] = r.b2 * v[i] + (1 - r.b2) * d * d;
#ifdef OP_DOUBLE
        w[i] = w[i] * r.keep - r.rate * m[i] / (sqrt(v[i]) * r.root + r.eps);
#else
        w[i] = w[i] * r.keep - r.rate * m[i] / (sqrtf(v[i]) * r.root + r.eps);
#endif
    }
}

static void forward_range(const call *c, int64_t begin, int64_t end) {
    real *w = c->in[ADAMW_WEIGHTS].data, *m = c->in[ADAMW_MOMENT1].data, *v = c->in[ADAMW_MOMENT2].data;
    const real *g = c->in[ADAMW_GRADIENTS].data;
    const int8_t *decays = c->in[ADAMW_DECAYS].data;
    rates with = rates_of(c), without = with;
    without.keep = 1;
    without.pull = 0;
    for (int64_t next; begin < end; begin = next) {
        next = decay_run(decays, begin, end);
        step_run(w + begin, g + begin, m + begin, v + begin, next - begin, decay_at(decays, begin) ? with : without);
    }
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[ADAMW_WEIGHTS]);
    if (((const double *)c->in[ADAMW_CLIP].data)[CLIP_FACTOR] != 0) op_for(c, n, 1, forward_range);
}

const kernel KERNEL(adamw) = {forward, NULL, NULL, NULL};

#endif
