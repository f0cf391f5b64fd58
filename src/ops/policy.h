// Distributions of actions: logarithms of probabilities and entropies. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_POLICY_H
#define TRADEWIND_OPS_POLICY_H

#include "env/env.h"

#include <math.h>

#define POLICY_HALF_LOG_2PI 0.91893853320467274178

// Log of a normal density.
ENV_FN double policy_log_normal(double x, double mean, double std) {
    double d = (x - mean) / std;
    return -0.5 * d * d - log(std) - POLICY_HALF_LOG_2PI;
}

// Entropy of a normal distribution.
ENV_FN double policy_normal_entropy(double std) {
    return 0.5 + POLICY_HALF_LOG_2PI + log(std);
}

#endif
