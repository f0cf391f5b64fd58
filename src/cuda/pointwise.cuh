// Losses of the difference prediction - target on the card: see ops/pointwise.h. A file defines `value` and `slope` and
// then uses POINTWISE_KERNEL.
#ifndef TRADEWIND_CUDA_POINTWISE_CUH
#define TRADEWIND_CUDA_POINTWISE_CUH

#include "cuda/loss.cuh"

CUDA_FN float value(float difference);
CUDA_FN float slope(float difference);

static __global__ void pointwise_forward(view p, view t, view weight, loss_sums *parts, int64_t B, int64_t C) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    float w = b < B ? view_load(weight, b) : 0, sum = 0;
    for (int64_t i = b * C; w != 0 && i < (b + 1) * C; i++) sum += value(view_load(p, i) - view_load(t, i));
    loss_piece(loss_sums{(double)(w * sum), (double)(w * (float)C)}, parts);
}

static __global__ void pointwise_backward(view p, view t, view weight, view up, view dp, int64_t B, int64_t C) {
    FOR_EACH(i, B * C) {
        float w = view_load(weight, i / C);
        view_put(dp, i, w != 0 ? view_load(up, 0) * w * slope(view_load(p, i) - view_load(t, i)) : 0.0f);
    }
}

static void forward(const call *c) {
    LAUNCH(c, pointwise_forward, loss_pieces(c), LOSS_ROWS, 0, view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->in[2]),
        (loss_sums *)c->scratch, c->in[0].shape.dim[0], c->in[0].shape.dim[1]);
    loss_add(c);
}

static void backward(const call *c) {
    LAUNCH(c, pointwise_backward, blocks_for(operand_count(&c->in[0]), 256), 256, 0, view_of(&c->in[0]),
        view_of(&c->in[1]), view_of(&c->in[2]), view_of(&c->dout[0]), view_of(&c->din[0]), c->in[0].shape.dim[0],
        c->in[0].shape.dim[1]);
}

#define POINTWISE_KERNEL(name) extern "C" const kernel cuda_##name = {forward, backward, loss_scratch, NULL}

#endif
