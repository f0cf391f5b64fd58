// dropout on the card: see ops/dropout.c. The random bits are those of the CPU.
#include "cuda/cuda.cuh"

extern "C" {
#include "ops/random.h"
}

static __global__ void apply_kernel(const step *s, view from, view to, int64_t rows, int64_t n, uint32_t node,
    uint32_t least, float scale) {
    int64_t quads = (n + 3) / 4;
    FOR_EACH(k, rows * quads) {
        int64_t b = k / quads, quad = k % quads;
        rng_block r = random_dropout(s, s->row + (uint64_t)b, node, (uint32_t)quad);
        for (int64_t i = 0; i < 4 && quad * 4 + i < n; i++) {
            int64_t at = b * n + quad * 4 + i;
            view_put(to, at, r.v[i] >= least ? view_load(from, at) * scale : 0.0f);
        }
    }
}

static __global__ void copy_kernel(view from, view to, int64_t n) {
    FOR_EACH(i, n) view_store(to, i, view_load(from, i));
}

static void apply(const call *c, const operand *from, const operand *to) {
    float p = ((const dropout_attr *)c->attr)->probability, scale = (float)(1.0 / (1.0 - (double)p));
    int64_t rows = c->in[0].shape.dim[0], n = operand_count(&c->in[0]) / rows;
    LAUNCH(c, apply_kernel, blocks_for(rows * ((n + 3) / 4), 256), 256, 0, c->step, view_of(from), view_of(to), rows, n,
        c->node, random_threshold(p), scale);
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[0]);
    if (c->training) {
        apply(c, &c->in[0], &c->out[0]);
    } else {
        LAUNCH(c, copy_kernel, blocks_for(n, 256), 256, 0, view_of(&c->in[0]), view_of(&c->out[0]), n);
    }
}

static void backward(const call *c) {
    apply(c, &c->dout[0], &c->din[0]);
}

extern "C" const kernel cuda_dropout = {forward, backward, NULL, NULL};
