// dropout of some elements at a time, for the kernels that do it: eight share a random block (ops/random.h).
#ifndef TRADEWIND_CUDA_OPS_DROPOUT_CUH
#define TRADEWIND_CUDA_OPS_DROPOUT_CUH

#include "cuda/quad.cuh"

extern "C" {
#include "ops/random.h"
}

// A call of dropout over rows of n elements.
struct drop_args {
    step at;
    int64_t rows, n;
    bool small;              // numbers of elements have 31 bits: what joins other calls is
    uint32_t inverse, shift; // small: 2^(31 + shift) / n, rounded up; 2^shift is the first power that is n or more
    uint32_t node, least;    // least: in the high half
    float scale;
};

static inline drop_args drop_args_of(const call *c) {
    float p = ((const dropout_attr *)c->attr)->probability;
    drop_args a = {};
    a.at = c->step;
    a.rows = c->in[0].shape.dim[0];
    a.n = operand_count(&c->in[0]) / a.rows;
    a.small = a.rows * a.n <= INT32_MAX;
    while (a.small && (int64_t)1 << a.shift < a.n) a.shift++;
    a.inverse = a.small ? (uint32_t)((((uint64_t)1 << (31 + a.shift)) + (uint64_t)a.n - 1) / (uint64_t)a.n) : 0;
    a.node = c->node;
    a.least = random_threshold(p) << 16;
    a.scale = (float)random_scale(p);
    return a;
}

struct drop_place {
    int64_t row, column;
};

// Where element i is, counted through all rows, of a small call. The inverse is too large by less than 1 / 2^31, which
// times i does not reach the next row.
CUDA_FN drop_place drop_place_of(const drop_args &a, int64_t i) {
    uint32_t row = __umulhi(2 * (uint32_t)i, a.inverse) >> a.shift;
    return drop_place{row, (uint32_t)i - row * (uint32_t)a.n};
}

// The random block of the octet there.
CUDA_FN rng_block drop_draw(const drop_args &a, const random_key &k, const drop_place &p) {
    return random_dropout(&k, (uint64_t)p.row, a.node, (uint32_t)(p.column / RANDOM_OCTET));
}

// Element e of the words: kept and scaled, or 0; a NaN that is dropped is gone.
CUDA_FN float drop_one(const drop_args &a, const uint32_t *words, int e, float x) {
    return (e & 1 ? words[e / 2] : words[e / 2] << 16) >= a.least ? x * a.scale : 0.0f;
}

#endif
