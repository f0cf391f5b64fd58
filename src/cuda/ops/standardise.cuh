// Running moments of columns on the card: see ops/standardise.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_STANDARDISE_CUH
#define TRADEWIND_CUDA_OPS_STANDARDISE_CUH

#include "cuda/ops/team.cuh"
#include "ops/running.h"

struct standardise_args {
    standardise_settings s;
    view x;
    float *y;
    double *state;
    int64_t B, C;
};

static inline standardise_args standardise_args_of(const call *c) {
    return standardise_args{*(const standardise_settings *)c->attr, view_of(&c->in[0]), (float *)c->out[0].data,
        (double *)c->out[1].data, c->in[0].shape.dim[0], c->in[0].shape.dim[1]};
}

// The columns' moments take in the batch; their count stays as it was. A thread a column.
CUDA_FN void standardise_learn(const standardise_args &a, team t) {
    double count = running_count(a.state[0]), B = (double)a.B;
    TEAM_EACH(t, i, a.C) {
        running_moments was = running_at(a.state, a.C, i), now = {0, 0};
#pragma unroll 8
        for (int64_t b = 0; b < a.B; b++) now.mean += (double)view_load(a.x, b * a.C + i) / B;
#pragma unroll 8
        for (int64_t b = 0; b < a.B; b++) {
            double d = (double)view_load(a.x, b * a.C + i) - now.mean;
            now.variance += d * d / B;
        }
        running_put(a.state, a.C, i, running_join(was, count, now, B));
    }
}

// When all moments are there. Where they have learnt, nobody but the first thread looks at their count, which it moves
// on.
CUDA_FN void standardise_each(const standardise_args &a, team t) {
    bool empty = !a.s.learn && !(a.state[0] > 0);
    TEAM_EACH(t, i, a.B * a.C) {
        running_moments m = {0, 1};
        if (!empty) {
            m.mean = a.state[RUNNING_HEAD + i % a.C];
            m.variance = a.state[RUNNING_HEAD + a.C + i % a.C];
        }
        double v = ((double)view_load(a.x, i) - m.mean) / sqrt(m.variance + RUNNING_EPS);
        a.y[i] = (float)running_cut(v, (double)a.s.clip);
    }
    if (a.s.learn && t.thread == 0) a.state[0] = running_count(a.state[0]) + (double)a.B;
}

#endif
