// Activation functions and their derivatives, for the plain kernels.
#ifndef TRADEWIND_OPS_ACTIVATION_H
#define TRADEWIND_OPS_ACTIVATION_H

#include "ops/op.h"

#include <math.h>

static inline real activation_sigmoid(real x) {
    return (real)1 / ((real)1 + (real)exp((double)-x));
}

static inline real activation_of(activation a, real z) {
    switch (a) {
    case ACT_RELU: return z < 0 ? 0 : z; // a NaN stays one
    case ACT_GELU: return (real)(0.5 * z * (1 + erf(z * 0.70710678118654752)));
    case ACT_TANH: return (real)tanh(z);
    case ACT_SIGMOID: return activation_sigmoid(z);
    case ACT_NONE: break;
    }
    return z;
}

// The derivative at z, given the result y; only GELU reads z.
static inline real activation_slope(activation a, real z, real y) {
    switch (a) {
    case ACT_RELU: return !(y <= 0);
    case ACT_GELU: {
        double cdf = 0.5 * (1 + erf(z * 0.70710678118654752)), pdf = 0.39894228040143268 * exp(-0.5 * z * z);
        return (real)(cdf + z * pdf);
    }
    case ACT_TANH: return 1 - y * y;
    case ACT_SIGMOID: return y * (1 - y);
    case ACT_NONE: break;
    }
    return 1;
}

#endif
