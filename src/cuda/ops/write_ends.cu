// write_ends on the card: see ops/write_ends.c.
#include "cuda/ops/write_ends.cuh"

static __global__ void forward_kernel(write_ends_args a) {
    cuda_begin();
    write_ends_each(a, team_launch());
}

static void forward(const call *c) {
    write_ends_args a = write_ends_args_of(c);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.B * 32, 128), 128, 0, a);
}

extern "C" const kernel cuda_write_ends = {forward, NULL, NULL, NULL};
