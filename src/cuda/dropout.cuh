// dropout of four elements at a time, for the kernels that do it.
#ifndef TRADEWIND_CUDA_DROPOUT_CUH
#define TRADEWIND_CUDA_DROPOUT_CUH

#include "cuda/quad.cuh"

extern "C" {
#include "ops/random.h"
}

// Of a call of dropout: rows of n elements, in quads that share a random block.
struct drop_args {
    const step *at;
    int64_t rows, n, quads;
    bool small; // numbers of quads have 31 bits
    uint32_t node, least;
    float scale;
};

static inline drop_args drop_args_of(const call *c) {
    float p = ((const dropout_attr *)c->attr)->probability;
    drop_args a = {};
    a.at = c->step;
    a.rows = c->in[0].shape.dim[0];
    a.n = operand_count(&c->in[0]) / a.rows;
    a.quads = (a.n + QUAD - 1) / QUAD;
    a.small = a.rows * a.quads <= INT32_MAX;
    a.node = c->node;
    a.least = random_threshold(p);
    a.scale = (float)(1.0 / (1.0 - (double)p));
    return a;
}

// What of the step record a thread draws with.
CUDA_FN step drop_step(const drop_args &a) {
    step s = {};
    s.seed = a.at->seed;
    s.update = a.at->update;
    s.row = a.at->row;
    return s;
}

CUDA_FN int64_t drop_row(const drop_args &a, int64_t k) {
    return a.small ? (uint32_t)k / (uint32_t)a.quads : k / a.quads;
}

// The factors of quad k, counted through all rows.
CUDA_FN quad drop_factors(const drop_args &a, const step &s, int64_t k) {
    int64_t row = drop_row(a, k);
    rng_block r = random_dropout(&s, s.row + (uint64_t)row, a.node, (uint32_t)(k - row * a.quads));
    quad q;
#pragma unroll
    for (int e = 0; e < QUAD; e++) q.v[e] = r.v[e] >= a.least ? a.scale : 0.0f;
    return q;
}

// x where a factor is not 0; a NaN that is dropped is gone.
CUDA_FN quad drop(quad x, const quad &factor) {
#pragma unroll
    for (int e = 0; e < QUAD; e++) x.v[e] = factor.v[e] != 0 ? x.v[e] * factor.v[e] : 0.0f;
    return x;
}

#endif
