// linear on the card: see ops/linear.c. Products on the tensor cores (cuda/gemm.cuh), bias and activation in the epilogue;
// backward takes the slope of the activation first.
#include "cuda/gemm.cuh"

CUDA_FN float slope(int act, float z, float y) {
    switch (act) {
    case ACT_RELU: return y <= 0 ? 0 : 1;
    case ACT_GELU: return 0.5f * (1 + erff(z * 0.70710678f)) + z * 0.39894228f * expf(-0.5f * z * z);
    case ACT_TANH: return 1 - y * y;
    case ACT_SIGMOID: return y * (1 - y);
    default: return 1;
    }
}

struct sizes {
    int64_t rows, I, O;
    int act, math;
};

static sizes sizes_of(const call *c) {
    return sizes{operand_rows(&c->out[0]), operand_width(&c->in[0]), operand_width(&c->out[0]),
        (int)((const linear_attr *)c->attr)->act, math_of(c, c->out[0].type)};
}

static void forward(const call *c) {
    sizes s = sizes_of(c);
    gemm_args g = {{view_of(&c->in[0]), s.I, 1, false}, {view_of(&c->in[1]), s.I, 1, false}, s.rows, s.O, s.I, 1};
    gemm_finish f = {view_of(&c->out[0]), view_of(&c->in[2]), (float *)c->reserve, s.act};
    gemm_product(c, s.math, g, f, (float *)c->scratch);
}

// Backward

static __global__ void slope_kernel(view dy, view y, const float *z, view dz, int act, int64_t n) {
    FOR_EACH(i, n) view_store(dz, i, view_load(dy, i) * slope(act, z ? z[i] : 0.0f, y.data ? view_load(y, i) : 0.0f));
}

static size_t up64(size_t n) {
    return (n + 63) / 64 * 64;
}

static size_t slope_bytes(const call *c) {
    bool none = ((const linear_attr *)c->attr)->act == ACT_NONE;
    return none ? 0 : up64((size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type));
}

static size_t products_bytes(const call *c) {
    sizes s = sizes_of(c);
    size_t dx = gemm_scratch(s.rows, s.I, s.O), dw = gemm_scratch(s.O, s.I, s.rows);
    return up64(dx > dw ? dx : dw);
}

static void backward(const call *c) {
    sizes s = sizes_of(c);
    char *at = (char *)c->scratch;
    view dz = view_of(&c->dout[0]);
    if (slope_bytes(c)) {
        dz = view{at, (int)c->out[0].type, false};
        LAUNCH(c, slope_kernel, blocks_for(s.rows * s.O, 256), 256, 0, view_of(&c->dout[0]), view_of(&c->out[0]),
            (const float *)c->reserve, dz, s.act, s.rows * s.O);
    }
    float *parts = (float *)(at + slope_bytes(c)), *bias = (float *)(at + slope_bytes(c) + products_bytes(c));
    gemm_finish none = {{}, {}, NULL, ACT_NONE};
    if (c->din[0].data) {
        none.out = view_of(&c->din[0]);
        gemm_product(c, s.math, gemm_args{{dz, s.O, 1, false}, {view_of(&c->in[1]), 1, s.I, false}, s.rows, s.I, s.O, 1}, none, parts);
    }
    if (c->din[1].data) {
        none.out = view_of(&c->din[1]);
        gemm_product(c, s.math, gemm_args{{dz, 1, s.O, false}, {view_of(&c->in[0]), 1, s.I, false}, s.O, s.I, s.rows, 1}, none, parts);
    }
    if (c->din[2].data) {
        column_sums(c, dz, s.rows, s.O, view_of(&c->din[2]), bias);
    }
}

static size_t scratch(const call *c) {
    sizes s = sizes_of(c);
    if (!c->backward) return gemm_scratch(s.rows, s.O, s.I);
    return slope_bytes(c) + products_bytes(c) + column_sums_scratch(s.O);
}

static size_t reserve(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_GELU ? (size_t)operand_count(&c->out[0]) * sizeof(float) : 0;
}

extern "C" const kernel cuda_linear = {forward, backward, scratch, reserve};
