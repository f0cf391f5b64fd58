// cross_entropy on the card: see ops/cross_entropy.c. A thread a row.
#include "cuda/cross_entropy.cuh"

static __global__ void forward_kernel(ce_args a, loss_sums *parts) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    loss_piece(b < a.B ? row_loss(&a, b) : loss_sums{0, 0}, parts);
}

static __global__ void backward_kernel(ce_args a, view up, view dz) {
    FOR_EACH(b, a.B) {
        ce_row r = row_back(&a, b, view_load(up, 0));
        for (int64_t k = 0; k < a.K; k++) view_put(dz, b * a.K + k, row_back_at(&a, &r, b, k));
    }
}

static ce_args args_of(const call *c) {
    return ce_args{view_of(&c->in[0]), (const int32_t *)c->in[1].data, view_of(&c->in[2]), view_of(&c->in[3]),
        c->in[0].shape.dim[0], c->in[0].shape.dim[1], ((const cross_entropy_attr *)c->attr)->smoothing};
}

static void forward(const call *c) {
    LAUNCH(c, forward_kernel, loss_pieces(c), LOSS_ROWS, 0, args_of(c), (loss_sums *)c->scratch);
    loss_add(c);
}

static void backward(const call *c) {
    LAUNCH(c, backward_kernel, blocks_for(c->in[0].shape.dim[0], 128), 128, 0, args_of(c), view_of(&c->dout[0]),
        view_of(&c->din[0]));
}

extern "C" const kernel cuda_cross_entropy = {forward, backward, loss_scratch, NULL};
