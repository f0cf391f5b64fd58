// quantile on the card: see ops/quantile.c. A thread a row forward, a thread a prediction backward.
#include "cuda/ops/loss.cuh"

static __global__ void forward_kernel(
    view p, view t, view weight, quantile_settings levels, loss_sums *parts, int64_t B, int64_t H) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x, C = levels.count * H;
    float w = b < B ? view_load(weight, b) : 0, sum = 0;
    for (int64_t i = 0; w != 0 && i < C; i++) {
        float a = levels.level[i / H], d = view_load(t, b * H + i % H) - view_load(p, b * C + i);
        sum += d < 0 ? (a - 1) * d : a * d;
    }
    loss_piece(loss_sums{(double)(w * sum), (double)(w * (float)C)}, parts);
}

static __global__ void backward_kernel(
    view p, view t, view weight, quantile_settings levels, view up, view dp, int64_t B, int64_t H) {
    int64_t C = levels.count * H;
    FOR_EACH(i, B * C) {
        int64_t b = i / C, column = i % C;
        float w = view_load(weight, b), a = levels.level[column / H], slope = 0;
        if (w != 0) {
            float is = view_load(p, i), want = view_load(t, b * H + column % H);
            slope = is > want ? 1 - a : is < want ? -a : 0.0f;
        }
        view_put(dp, i, view_load(up, 0) * w * slope);
    }
}

static void forward(const call *c) {
    LAUNCH(c, forward_kernel, loss_pieces(c), LOSS_ROWS, 0, view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->in[2]),
        *(const quantile_settings *)c->attr, (loss_sums *)c->scratch, c->in[0].shape.dim[0], c->in[1].shape.dim[1]);
    loss_add(c);
}

static void backward(const call *c) {
    LAUNCH(c, backward_kernel, blocks_for(operand_count(&c->in[0]), 256), 256, 0, view_of(&c->in[0]),
        view_of(&c->in[1]), view_of(&c->in[2]), *(const quantile_settings *)c->attr, view_of(&c->dout[0]),
        view_of(&c->din[0]), c->in[0].shape.dim[0], c->in[1].shape.dim[1]);
}

extern "C" const kernel cuda_quantile = {forward, backward, loss_scratch, NULL};
