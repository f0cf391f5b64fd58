// mse: the squared error (see ops/pointwise.h for shapes and sums).
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_mse(graph *g, tensor prediction, tensor target, tensor weight) {
    return pointwise_node(g, OP_mse, prediction, target, weight);
}

#else

static real value(real d) {
    return d * d;
}

static real slope(real d) {
    return 2 * d;
}

POINTWISE_KERNEL(mse);

#endif
