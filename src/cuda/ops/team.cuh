// Threads that share the elements or rows of a call: all of a launch, or those of one block, where several calls share
// a launch (cuda/join/act.cuh).
#ifndef TRADEWIND_CUDA_OPS_TEAM_CUH
#define TRADEWIND_CUDA_OPS_TEAM_CUH

#include "cuda/cuda.cuh"

struct team {
    int64_t thread, threads; // of a launch or a block; a multiple of 32
};

CUDA_FN team team_launch() {
    return team{(int64_t)blockIdx.x * blockDim.x + threadIdx.x, (int64_t)gridDim.x * blockDim.x};
}

CUDA_FN team team_block() {
    return team{(int64_t)threadIdx.x, (int64_t)blockDim.x};
}

#define TEAM_EACH(t, i, n) for (int64_t i = (t).thread; i < (n); i += (t).threads)

// The same for what a warp does together.
#define TEAM_EACH_WARP(t, i, n) for (int64_t i = (t).thread / 32; i < (n); i += (t).threads / 32)

#endif
