// huber: half the squared error up to delta, and beyond it delta * (|error| - delta / 2), as nn.HuberLoss has it (see
// ops/pointwise.h for shapes and sums).
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_huber(graph *g, tensor prediction, tensor target, tensor weight, float delta) {
    CHECK(delta > 0, "huber: a delta of %g", (double)delta);
    node *n = pointwise_add(g, OP_huber, (const tensor[]){prediction, target, weight}, 3);
    huber_attr a = {delta};
    graph_attr_add(g, n, &a, sizeof a);
    return n->output[0];
}

#else

static real value(const call *c, real p, real t) {
    real delta = (real)((const huber_attr *)c->attr)->delta, d = p < t ? t - p : p - t;
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}

static real slope(const call *c, real p, real t) {
    real delta = (real)((const huber_attr *)c->attr)->delta, d = p - t;
    return d > delta ? delta : d < -delta ? -delta : d;
}

POINTWISE_KERNEL(huber);

#endif
