// reshape on the card: see ops/reshape.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(view x, view y, int64_t n) {
    FOR_EACH(i, n) view_store(y, i, view_load(x, i));
}

static __global__ void backward_kernel(view dx, view dy, int64_t n) {
    FOR_EACH(i, n) view_put(dx, i, view_load(dy, i));
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[0]);
    LAUNCH(c, forward_kernel, blocks_for(n, 256), 256, 0, view_of(&c->in[0]), view_of(&c->out[0]), n);
}

static void backward(const call *c) {
    int64_t n = operand_count(&c->in[0]);
    LAUNCH(c, backward_kernel, blocks_for(n, 256), 256, 0, view_of(&c->din[0]), view_of(&c->dout[0]), n);
}

extern "C" const kernel cuda_reshape = {forward, backward, NULL, NULL};
