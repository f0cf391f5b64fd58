// position on the card: see ops/position.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(view x, view table, view y, int64_t count, int64_t n) {
    FOR_EACH(i, count) view_store(y, i, view_load(x, i) + view_load(table, i % n));
}

static __global__ void backward_kernel(view dx, view dy, int64_t count) {
    FOR_EACH(i, count) view_put(dx, i, view_load(dy, i));
}

// A thread an element of the table, which adds up the samples in their order.
static __global__ void table_kernel(view dtable, view dy, int64_t B, int64_t n) {
    FOR_EACH(i, n) {
        float sum = 0;
        for (int64_t b = 0; b < B; b++) sum += view_load(dy, b * n + i);
        view_put(dtable, i, sum);
    }
}

static void forward(const call *c) {
    int64_t count = operand_count(&c->in[0]), n = operand_count(&c->in[1]);
    LAUNCH(c, forward_kernel, blocks_for(count, 256), 256, 0, view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->out[0]),
        count, n);
}

static void backward(const call *c) {
    int64_t count = operand_count(&c->in[0]), n = operand_count(&c->in[1]);
    if (c->din[0].data)
        LAUNCH(c, backward_kernel, blocks_for(count, 256), 256, 0, view_of(&c->din[0]), view_of(&c->dout[0]), count);
    if (c->din[1].data)
        LAUNCH(c, table_kernel, blocks_for(n, 64), 64, 0, view_of(&c->din[1]), view_of(&c->dout[0]), count / n, n);
}

extern "C" const kernel cuda_position = {forward, backward, NULL, NULL};
