// Losses of each prediction and its target on the card: see ops/pointwise.h. A file defines `value` and `slope`, and
// the number `setting` that both are given, and then uses POINTWISE_KERNEL.
#ifndef TRADEWIND_CUDA_OPS_POINTWISE_CUH
#define TRADEWIND_CUDA_OPS_POINTWISE_CUH

#include "cuda/ops/loss.cuh"

CUDA_FN float value(float p, float t, float k);
CUDA_FN float slope(float p, float t, float k);
static float setting(const call *c);

// Factor of a row's elements; where it is 0 the row is not read.
CUDA_FN float pointwise_factor(view weight, view scale, int64_t b) {
    float w = view_load(weight, b);
    if (!scale.data || w == 0) return w;
    float by = view_load(scale, b);
    return by != 0 ? w / by : 0.0f;
}

static __global__ void pointwise_forward(
    view p, view t, view weight, view scale, float k, loss_sums *parts, int64_t B, int64_t C) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    float factor = b < B ? pointwise_factor(weight, scale, b) : 0, sum = 0;
    for (int64_t i = b * C; factor != 0 && i < (b + 1) * C; i++) sum += value(view_load(p, i), view_load(t, i), k);
    float norm = factor != 0 ? view_load(weight, b) * (float)C : 0.0f;
    loss_piece(loss_sums{(double)(factor * sum), (double)norm}, parts);
}

static __global__ void pointwise_backward(
    view p, view t, view weight, view scale, float k, view up, view dp, int64_t B, int64_t C) {
    FOR_EACH(i, B * C) {
        float factor = pointwise_factor(weight, scale, i / C);
        float d = factor != 0 ? view_load(up, 0) * factor * slope(view_load(p, i), view_load(t, i), k) : 0.0f;
        view_put(dp, i, d);
    }
}

static view scale_of(const call *c) {
    return c->inputs > 3 ? view_of(&c->in[3]) : view{NULL, DTYPE_F32, false};
}

static void forward(const call *c) {
    LAUNCH(c, pointwise_forward, loss_pieces(c), LOSS_ROWS, 0, view_of(&c->in[0]), view_of(&c->in[1]),
        view_of(&c->in[2]), scale_of(c), setting(c), (loss_sums *)c->scratch, c->in[0].shape.dim[0],
        c->in[0].shape.dim[1]);
    loss_add(c);
}

static void backward(const call *c) {
    LAUNCH(c, pointwise_backward, blocks_for(operand_count(&c->in[0]), 256), 256, 0, view_of(&c->in[0]),
        view_of(&c->in[1]), view_of(&c->in[2]), scale_of(c), setting(c), view_of(&c->dout[0]), view_of(&c->din[0]),
        c->in[0].shape.dim[0], c->in[0].shape.dim[1]);
}

#define POINTWISE_KERNEL(name) extern "C" const kernel cuda_##name = {forward, backward, loss_scratch, NULL}

#endif
