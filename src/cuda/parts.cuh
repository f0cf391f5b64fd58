// Sums over rows that were left in parts, added up: a block has PARTS_ACROSS columns, and PARTS_DOWN threads for each
// of them, which share out the parts and then add what they have in order.
#ifndef TRADEWIND_CUDA_PARTS_CUH
#define TRADEWIND_CUDA_PARTS_CUH

#include "cuda/cuda.cuh"

enum { PARTS_ACROSS = 32, PARTS_DOWN = 16 };

static inline unsigned parts_blocks(int64_t width) {
    return (unsigned)((width + PARTS_ACROSS - 1) / PARTS_ACROSS);
}

static inline dim3 parts_threads() {
    return dim3(PARTS_ACROSS, PARTS_DOWN);
}

CUDA_FN int parts_column() {
    return blockIdx.x * PARTS_ACROSS + threadIdx.x;
}

// The sum of the block's columns of sums [parts][width]: returns true in the thread that has one.
CUDA_FN bool parts_add(const float *sums, int parts, int width, float *sum) {
    __shared__ float room[PARTS_DOWN][PARTS_ACROSS];
    int column = parts_column();
    *sum = 0;
    if (column < width) {
#pragma unroll 8
        for (int p = threadIdx.y; p < parts; p += PARTS_DOWN) *sum += sums[(int64_t)p * width + column];
    }
    room[threadIdx.y][threadIdx.x] = *sum;
    __syncthreads();
    if (threadIdx.y || column >= width) return false;
    for (int r = 1; r < PARTS_DOWN; r++) *sum += room[r][threadIdx.x];
    return true;
}

#endif
