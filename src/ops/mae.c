// mae: the absolute error (see ops/pointwise.h for shapes and sums). Its slope at 0 is 0.
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_mae(graph *g, tensor prediction, tensor target, tensor weight) {
    return pointwise_node(g, OP_mae, prediction, target, weight);
}

#else

static real value(real d) {
    return d < 0 ? -d : d;
}

static real slope(real d) {
    return (real)((d > 0) - (d < 0));
}

POINTWISE_KERNEL(mae);

#endif
