// last_time on the card: see ops/last_time.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(view x, view y, int64_t B, int64_t T, int64_t C) {
    FOR_EACH(i, B * C) view_store(y, i, view_load(x, (i / C * T + T - 1) * C + i % C));
}

static __global__ void backward_kernel(view dx, view dy, int64_t B, int64_t T, int64_t C) {
    FOR_EACH(i, B * T * C) {
        int64_t row = i / C;
        view_put(dx, i, row % T == T - 1 ? view_load(dy, row / T * C + i % C) : 0.0f);
    }
}

static void forward(const call *c) {
    shape s = c->in[0].shape;
    LAUNCH(c, forward_kernel, blocks_for(s.dim[0] * s.dim[2], 256), 256, 0, view_of(&c->in[0]), view_of(&c->out[0]),
        s.dim[0], s.dim[1], s.dim[2]);
}

static void backward(const call *c) {
    shape s = c->in[0].shape;
    LAUNCH(c, backward_kernel, blocks_for(operand_count(&c->in[0]), 256), 256, 0, view_of(&c->din[0]),
        view_of(&c->dout[0]), s.dim[0], s.dim[1], s.dim[2]);
}

extern "C" const kernel cuda_last_time = {forward, backward, NULL, NULL};
