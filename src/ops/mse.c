// mse: the squared error (see ops/pointwise.h for shapes and sums).
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_mse(graph *g, tensor prediction, tensor target, tensor weight) {
    return pointwise_node(g, OP_mse, prediction, target, weight);
}

#else

static real value(const call *c, real p, real t) {
    (void)c;
    return (p - t) * (p - t);
}

static real slope(const call *c, real p, real t) {
    (void)c;
    return 2 * (p - t);
}

POINTWISE_KERNEL(mse);

#endif
