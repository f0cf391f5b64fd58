// concat on the card: see ops/concat.c. All parts in one launch.
#include "cuda/cuda.cuh"

enum { PARTS = 16 };

struct parts {
    view part[PARTS];
    int64_t begin[PARTS + 1];
    int count;
};

static __device__ int part_of(const parts *p, int64_t column) {
    int k = 0;
    while (column >= p->begin[k + 1]) k++;
    return k;
}

static __global__ void forward_kernel(parts p, view out, int64_t rows) {
    int64_t C = p.begin[p.count];
    FOR_EACH(i, rows * C) {
        int64_t r = i / C, j = i % C;
        int k = part_of(&p, j);
        view_store(out, i, view_load(p.part[k], r * (p.begin[k + 1] - p.begin[k]) + j - p.begin[k]));
    }
}

// Part after part, so that a tensor that stands in several places gets their sum in a fixed order.
static __global__ void backward_kernel(view part, view dy, int64_t rows, int64_t begin, int64_t width, int64_t C) {
    FOR_EACH(i, rows * width) view_put(part, i, view_load(dy, i / width * C + begin + i % width));
}

static parts parts_of(const call *c) {
    parts p = {};
    p.count = c->inputs;
    for (int k = 0; k < c->inputs; k++) {
        p.part[k] = view_of(&c->in[k]);
        p.begin[k + 1] = p.begin[k] + operand_width(&c->in[k]);
    }
    return p;
}

static void forward(const call *c) {
    LAUNCH(c, forward_kernel, blocks_for(operand_count(&c->out[0]), 256), 256, 0, parts_of(c), view_of(&c->out[0]),
        operand_rows(&c->out[0]));
}

static void backward(const call *c) {
    parts p = parts_of(c);
    int64_t rows = operand_rows(&c->out[0]);
    for (int k = 0; k < c->inputs; k++) {
        int64_t width = operand_width(&c->in[k]);
        if (c->din[k].data)
            LAUNCH(c, backward_kernel, blocks_for(rows * width, 256), 256, 0, view_of(&c->din[k]), view_of(&c->dout[0]),
                rows, p.begin[k], width, p.begin[p.count]);
    }
}

extern "C" const kernel cuda_concat = {forward, backward, NULL, NULL};
