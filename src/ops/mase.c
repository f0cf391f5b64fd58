// mase: the absolute error divided by the row's scale, which is what a naive forecast errs by (see ops/pointwise.h for
// shapes and sums). Its slope at 0 is 0.
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_mase(graph *g, tensor prediction, tensor target, tensor weight, tensor scale) {
    return pointwise_add(g, OP_mase, (const tensor[]){prediction, target, weight, scale}, 4)->output[0];
}

#else

static real value(const call *c, real p, real t) {
    (void)c;
    return p < t ? t - p : p - t;
}

static real slope(const call *c, real p, real t) {
    (void)c;
    return (real)((p > t) - (p < t));
}

POINTWISE_KERNEL(mase);

#endif
