// Common parts of the losses on the card: rows in fixed pieces, one block a piece, and the pieces added in order by
// one block of a second launch (cuda/rows/rows_launch.cu has that of row kernels). See ops/loss.h.
#ifndef TRADEWIND_CUDA_OPS_LOSS_CUH
#define TRADEWIND_CUDA_OPS_LOSS_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "cuda/rows/rows.h"
}

enum { LOSS_ROWS = 256 };

struct loss_sums {
    double sum, norm;
};

static inline unsigned loss_pieces(const call *c) {
    return (unsigned)((c->in[0].shape.dim[0] + LOSS_ROWS - 1) / LOSS_ROWS);
}

// Room for the pieces of this launch, or for those of a row kernel, whose blocks are smaller.
static inline size_t loss_scratch(const call *c) {
    int64_t rows = c->in[0].shape.dim[0];
    return c->backward ? 0 : (size_t)rows_blocks(rows) * sizeof(loss_sums);
}

// Each thread brings its row's part.
CUDA_FN void loss_piece(loss_sums mine, loss_sums *parts) {
    __shared__ double room[32];
    double sum = block_sum(mine.sum, room), norm = block_sum(mine.norm, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = loss_sums{sum, norm};
}

// The same for a block whose rows are those of one warp, which alone calls this. The sum of at most 32 rows is formed
// in fp32: the block waits for it.
CUDA_FN void loss_warp_piece(loss_sums mine, loss_sums *parts) {
    float sum = (float)mine.sum, norm = (float)mine.norm;
    for (int d = 16; d; d >>= 1) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
        norm += __shfl_xor_sync(0xFFFFFFFFu, norm, d);
    }
    if (threadIdx.x % 32 == 0) parts[blockIdx.x] = loss_sums{(double)sum, (double)norm};
}

// The pieces' sums into `out`, by one block, each thread of which gets them.
CUDA_FN loss_sums loss_total(const loss_sums *parts, int pieces, float *out) {
    __shared__ loss_sums room[32];
    loss_sums s = {0, 0};
#pragma unroll 4
    for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
        s.sum += __ldcg(&parts[i].sum);
        s.norm += __ldcg(&parts[i].norm);
    }
    for (int d = 16; d; d >>= 1) {
        s.sum += __shfl_xor_sync(0xFFFFFFFFu, s.sum, d);
        s.norm += __shfl_xor_sync(0xFFFFFFFFu, s.norm, d);
    }
    if (blockDim.x > 32) {
        __syncthreads(); // all have read what another loss left
        if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = s;
        __syncthreads();
        s = loss_sums{0, 0};
        for (int w = 0; w < (int)blockDim.x / 32; w++) s.sum += room[w].sum, s.norm += room[w].norm;
    }
    if (threadIdx.x == 0) {
        out[0] = (float)s.sum;
        out[1] = (float)s.norm;
    }
    return s;
}

static __global__ void loss_add_kernel(const loss_sums *parts, int pieces, float *out) {
    loss_total(parts, pieces, out);
}

static inline void loss_add(const call *c) {
    LAUNCH(c, loss_add_kernel, 1, 32, 0, (const loss_sums *)c->scratch, (int)loss_pieces(c), (float *)c->out[0].data);
}

#endif
