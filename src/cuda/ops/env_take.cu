// env_take on the card: see ops/env_take.c. Last observations are cleared first, in a launch of their own.
#include "cuda/ops/env_take.cuh"

static __global__ void clear_kernel(env_take_args a) {
    cuda_begin();
    env_take_clear(a, team_launch());
}

static __global__ void forward_kernel(const __grid_constant__ env_scene e, env_take_args a) {
    cuda_begin();
    env_take_each(e, a, team_launch());
}

static void forward(const call *c) {
    env_take_args a = env_take_args_of(c);
    LAUNCH_EARLY(c, clear_kernel, blocks_for(a.rows * a.columns, 256), 256, 0, a);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.rows, 32), 32, 0, env_scene_of(c, ENV_TAKE_DATA), a);
}

extern "C" const kernel cuda_env_take = {forward, NULL, NULL, NULL};
