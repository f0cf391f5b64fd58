// env_see on the card: see ops/env_see.c.
#include "cuda/ops/env_see.cuh"

enum { THREADS = 128 };

static __global__ void __launch_bounds__(THREADS) forward_kernel(const __grid_constant__ env_scene e, env_see_args a) {
    cuda_begin();
    env_see_each(e, a, team_launch());
}

static void forward(const call *c) {
    env_see_args a = env_see_args_of(c);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.rows * 32, THREADS), THREADS, 0, env_scene_of(c, ENV_SEE_DATA), a);
}

extern "C" const kernel cuda_env_see = {forward, NULL, NULL, NULL};
