// Running moments, as Stable-Baselines3's RunningMeanStd has them. Compiled by C and by nvcc.
//
// A state of C columns is {count, means [C], variances [C]}. Zeros, as a state begins, are read as 1e-4 values of mean
// 0 and variance 1.
#ifndef TRADEWIND_OPS_RUNNING_H
#define TRADEWIND_OPS_RUNNING_H

#include "env/env.h"

#include <math.h>

enum { RUNNING_HEAD = 1 };
#define RUNNING_EPS 1e-8

typedef struct {
    double mean, variance;
} running_moments;

ENV_FN double running_count(double count) {
    return count > 0 ? count : 1e-4;
}

ENV_FN running_moments running_at(const double *state, int64_t C, int64_t i) {
    running_moments m = {0, 1};
    if (state[0] > 0) {
        m.mean = state[RUNNING_HEAD + i];
        m.variance = state[RUNNING_HEAD + C + i];
    }
    return m;
}

ENV_FN void running_put(double *state, int64_t C, int64_t i, running_moments m) {
    state[RUNNING_HEAD + i] = m.mean;
    state[RUNNING_HEAD + C + i] = m.variance;
}

// Moments of two samples together.
ENV_FN running_moments running_join(running_moments a, double a_count, running_moments b, double b_count) {
    double all = a_count + b_count, apart = b.mean - a.mean;
    double square = a.variance * a_count + b.variance * b_count + apart * apart * a_count * b_count / all;
    running_moments m = {a.mean + apart * b_count / all, square / all};
    return m;
}

ENV_FN double running_cut(double v, double most) {
    return v > most ? most : v < -most ? -most : v;
}

#endif
