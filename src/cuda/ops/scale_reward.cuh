// Scaled rewards on the card: see ops/scale_reward.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_SCALE_REWARD_CUH
#define TRADEWIND_CUDA_OPS_SCALE_REWARD_CUH

#include "cuda/cuda.cuh"
#include "ops/running.h"

struct scale_reward_args {
    scale_reward_settings s;
    view reward, end;
    float *y;
    double *state, *returns;
    int64_t B;
};

static inline scale_reward_args scale_reward_args_of(const call *c) {
    return scale_reward_args{*(const scale_reward_settings *)c->attr, view_of(&c->in[0]), view_of(&c->in[1]),
        (float *)c->out[0].data, (double *)c->out[1].data, (double *)c->out[2].data, c->in[0].shape.dim[0]};
}

enum { SCALE_REWARD_THREADS = 512 };

// By one block of SCALE_REWARD_THREADS, which give the order of its sums.
CUDA_FN void scale_reward_block(const scale_reward_args &a) {
    __shared__ double room[32];
    double B = (double)a.B, sum = 0;
    running_moments now = {0, 0};
    for (int64_t b = threadIdx.x; b < a.B; b += SCALE_REWARD_THREADS) {
        double r = a.returns[b] * (double)a.s.gamma + (double)view_load(a.reward, b);
        a.returns[b] = r;
        sum += r / B;
    }
    now.mean = block_sum(sum, room);
    sum = 0;
    for (int64_t b = threadIdx.x; b < a.B; b += SCALE_REWARD_THREADS) {
        double d = a.returns[b] - now.mean;
        sum += d * d / B;
    }
    now.variance = block_sum(sum, room);
    double count = running_count(a.state[0]);
    running_moments m = running_join(running_at(a.state, 1, 0), count, now, B);
    for (int64_t b = threadIdx.x; b < a.B; b += SCALE_REWARD_THREADS) {
        double v = (double)view_load(a.reward, b) / sqrt(m.variance + RUNNING_EPS);
        a.y[b] = (float)running_cut(v, (double)a.s.clip);
        if (view_load(a.end, b) != ENV_GOES_ON) a.returns[b] = 0;
    }
    __syncthreads(); // all have read the state
    if (threadIdx.x) return;
    running_put(a.state, 1, 0, m);
    a.state[0] = count + B;
}

#endif
