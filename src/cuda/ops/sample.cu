// sample on the card: see ops/sample.c. A thread a row; where noise is a function of a latent, a block a row, whose
// threads share out the latent's columns.
#include "cuda/ops/sample.cuh"

enum { WIDE_THREADS = 128 };

static __global__ void forward_kernel(const __grid_constant__ sample_args a) {
    cuda_begin();
    sample_each(a, team_launch());
}

static __global__ void __launch_bounds__(WIDE_THREADS) wide_kernel(const __grid_constant__ sample_args a) {
    cuda_begin();
    __shared__ double room[32];
    int64_t r = blockIdx.x;
    chance at = sample_chance(a, r, a.s.hold != 0);
    double all = 0;
    for (int k = 0; k < a.A; k++) {
        double sum = 0;
        for (int64_t f = threadIdx.x; f < a.F; f += WIDE_THREADS) {
            int64_t i = f * a.A + k;
            sum +=
                (double)view_load(a.latent, r * a.F + f) * exp((double)a.log_std[i]) * chance_normal(&at, (uint32_t)i);
        }
        sum = block_sum(sum, room);
        if (threadIdx.x == 0) all += sample_act(a, r, k, sum);
    }
    if (threadIdx.x == 0) a.log_prob[r] = (float)all;
}

static void forward(const call *c) {
    sample_args a = sample_args_of(c);
    if (sample_is_wide(c)) {
        LAUNCH_EARLY(c, wide_kernel, (unsigned)a.B, WIDE_THREADS, 0, a);
    } else {
        LAUNCH_EARLY(c, forward_kernel, blocks_for(a.B, 32), 32, 0, a);
    }
}

extern "C" const kernel cuda_sample = {forward, NULL, NULL, NULL};
