// What the losses share on the card: rows in fixed pieces, one block a piece, and the pieces added by the block that
// finishes them in order. See ops/loss.h.
#ifndef TRADEWIND_CUDA_LOSS_CUH
#define TRADEWIND_CUDA_LOSS_CUH

#include "cuda/cuda.cuh"

enum { LOSS_ROWS = 256 };

struct loss_sums {
    double sum, norm;
};

static inline unsigned loss_pieces(const call *c) {
    return (unsigned)((c->in[0].shape.dim[0] + LOSS_ROWS - 1) / LOSS_ROWS);
}

static size_t loss_scratch(const call *c) {
    return c->backward ? 0 : loss_pieces(c) * sizeof(loss_sums);
}

// Each thread brings its row's part.
CUDA_FN void loss_piece(loss_sums mine, loss_sums *parts) {
    __shared__ double room[32];
    double sum = block_sum(mine.sum, room), norm = block_sum(mine.norm, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = loss_sums{sum, norm};
}

static __global__ void loss_add_kernel(const loss_sums *parts, int pieces, view out) {
    __shared__ double room[32];
    double sum = 0, norm = 0;
    for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
        sum += parts[i].sum;
        norm += parts[i].norm;
    }
    sum = block_sum(sum, room);
    norm = block_sum(norm, room);
    if (threadIdx.x == 0) {
        view_store(out, 0, (float)sum);
        view_store(out, 1, (float)norm);
    }
}

static void loss_add(const call *c) {
    LAUNCH(c, loss_add_kernel, 1, 256, 0, (const loss_sums *)c->scratch, (int)loss_pieces(c), view_of(&c->out[0]));
}

#endif
