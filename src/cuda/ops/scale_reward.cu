// scale_reward on the card: see ops/scale_reward.c. One block.
#include "cuda/ops/scale_reward.cuh"

static __global__ void __launch_bounds__(SCALE_REWARD_THREADS) forward_kernel(scale_reward_args a) {
    cuda_begin();
    scale_reward_block(a);
}

static void forward(const call *c) {
    LAUNCH_EARLY(c, forward_kernel, 1, SCALE_REWARD_THREADS, 0, scale_reward_args_of(c));
}

extern "C" const kernel cuda_scale_reward = {forward, NULL, NULL, NULL};
