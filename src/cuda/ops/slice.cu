// slice on the card: see ops/slice.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(view x, view y, int64_t rows, int64_t C, int64_t begin, int64_t width) {
    FOR_EACH(i, rows * width) view_store(y, i, view_load(x, i / width * C + begin + i % width));
}

static __global__ void backward_kernel(view dx, view dy, int64_t rows, int64_t C, int64_t begin, int64_t width) {
    FOR_EACH(i, rows * C) {
        int64_t j = i % C - begin;
        view_put(dx, i, j >= 0 && j < width ? view_load(dy, i / C * width + j) : 0.0f);
    }
}

static void forward(const call *c) {
    const slice_attr *a = (const slice_attr *)c->attr;
    int64_t rows = operand_rows(&c->out[0]), width = a->end - a->begin;
    LAUNCH(c, forward_kernel, blocks_for(rows * width, 256), 256, 0, view_of(&c->in[0]), view_of(&c->out[0]), rows,
        operand_width(&c->in[0]), a->begin, width);
}

static void backward(const call *c) {
    const slice_attr *a = (const slice_attr *)c->attr;
    int64_t rows = operand_rows(&c->in[0]), C = operand_width(&c->in[0]);
    LAUNCH(c, backward_kernel, blocks_for(rows * C, 256), 256, 0, view_of(&c->din[0]), view_of(&c->dout[0]), rows, C,
        a->begin, a->end - a->begin);
}

extern "C" const kernel cuda_slice = {forward, backward, NULL, NULL};
