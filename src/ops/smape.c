// smape: 2 |p - t| / (|p| + |t|), between 0 and 2, and 0 where both are 0 (see ops/pointwise.h for shapes and sums).
// Times 100 it is the sMAPE of the M4 competition. Slopes at p = t and of |p| at 0 are 0. Where p and t differ in sign
// the value is 2 whatever p is, and such a prediction would never move: there the slope is that of a fixed denominator.
#include "ops/pointwise.h"

#ifdef OP_RULES

tensor op_smape(graph *g, tensor prediction, tensor target, tensor weight) {
    return pointwise_node(g, OP_smape, prediction, target, weight);
}

#else

static real value(const call *c, real p, real t) {
    (void)c;
    real d = p < t ? t - p : p - t, size = (p < 0 ? -p : p) + (t < 0 ? -t : t);
    return size == 0 ? 0 : 2 * d / size;
}

static real slope(const call *c, real p, real t) {
    (void)c;
    real d = p < t ? t - p : p - t, size = (p < 0 ? -p : p) + (t < 0 ? -t : t);
    real away = (real)((p > t) - (p < t)), sign = (real)((p > 0) - (p < 0));
    bool apart = p * t < 0;
    return size == 0 ? 0 : 2 * (apart ? away : away - d / size * sign) / size;
}

POINTWISE_KERNEL(smape);

#endif
