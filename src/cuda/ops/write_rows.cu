// write_rows on the card: see ops/write_rows.c.
#include "cuda/ops/write_rows.cuh"

static __global__ void forward_kernel(write_rows_args a) {
    cuda_begin();
    write_rows_each(a, team_launch());
}

static void forward(const call *c) {
    write_rows_args a = write_rows_args_of(c);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(a.rows * a.C, 256), 256, 0, a);
}

extern "C" const kernel cuda_write_rows = {forward, NULL, NULL, NULL};
