// mae: the absolute error (see ops/pointwise.h for shapes and sums). Its slope at 0 is 0.
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_mae(graph *g, tensor prediction, tensor target, tensor weight) {
    return pointwise_node(g, OP_mae, prediction, target, weight);
}

#else

static real value(const call *c, real p, real t) {
    (void)c;
    real d = p - t;
    return d < 0 ? -d : d;
}

static real slope(const call *c, real p, real t) {
    (void)c;
    return (real)((p > t) - (p < t));
}

POINTWISE_KERNEL(mae);

#endif
