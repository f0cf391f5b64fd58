// standardise on the card: see ops/standardise.c. One launch for the moments, where they learn, and one for the values.
#include "cuda/ops/standardise.cuh"

static __global__ void learn_kernel(standardise_args a) {
    cuda_begin();
    standardise_learn(a, team_launch());
}

static __global__ void forward_kernel(standardise_args a) {
    cuda_begin();
    standardise_each(a, team_launch());
}

static void forward(const call *c) {
    standardise_args a = standardise_args_of(c);
    if (a.s.learn) LAUNCH_EARLY(c, learn_kernel, blocks_for(a.C, 64), 64, 0, a);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.B * a.C, 256), 256, 0, a);
}

extern "C" const kernel cuda_standardise = {forward, NULL, NULL, NULL};
