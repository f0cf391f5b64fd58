// Threads that share the rows of a call, or the elements of these: all of a launch; or, where several calls share a
// launch (cuda/join/act.cuh), those of one block, which has the same rows of every call.
#ifndef TRADEWIND_CUDA_OPS_TEAM_CUH
#define TRADEWIND_CUDA_OPS_TEAM_CUH

#include "cuda/cuda.cuh"

struct team {
    int64_t thread, threads; // of a launch or a block; a multiple of 32
    int64_t share, shares;   // of the rows, whose number is a multiple of `shares`
};

CUDA_FN team team_launch() {
    return team{(int64_t)blockIdx.x * blockDim.x + threadIdx.x, (int64_t)gridDim.x * blockDim.x, 0, 1};
}

CUDA_FN team team_block() {
    return team{(int64_t)threadIdx.x, (int64_t)blockDim.x, (int64_t)blockIdx.x, (int64_t)gridDim.x};
}

CUDA_FN int64_t team_first(const team &t, int64_t n) {
    return n / t.shares * t.share;
}

// Its part of n rows, or of n elements of them.
#define TEAM_EACH(t, i, n)                                                                                             \
    for (int64_t i = team_first(t, n) + (t).thread, end_ = team_first(t, n) + (n) / (t).shares; i < end_;              \
         i += (t).threads)

// The same for what a warp does together.
#define TEAM_EACH_WARP(t, i, n)                                                                                        \
    for (int64_t i = team_first(t, n) + (t).thread / 32, end_ = team_first(t, n) + (n) / (t).shares; i < end_;         \
         i += (t).threads / 32)

#endif
