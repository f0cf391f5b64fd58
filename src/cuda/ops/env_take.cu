// env_take on the card: see ops/env_take.c.
#include "cuda/ops/env_take.cuh"

enum { THREADS = 128 };

static __global__ void __launch_bounds__(THREADS) forward_kernel(const __grid_constant__ env_scene e, env_take_args a) {
    cuda_begin();
    env_take_each(e, a, team_launch());
}

static void forward(const call *c) {
    env_take_args a = env_take_args_of(c);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.rows * 32, THREADS), THREADS, 0, env_scene_of(c, ENV_TAKE_DATA), a);
}

extern "C" const kernel cuda_env_take = {forward, NULL, NULL, NULL};
