// linear on the card: see ops/linear.c. Products on the tensor cores (cuda/product/gemm.cuh), bias and activation in
// the epilogue; backward takes the slope of the activation first. Few rows are in cuda/product/few.cu, layers of few
// inputs over many rows in cuda/product/thin.cuh, the weights' gradients in cuda/product/weights.cu. Layers with large
// products are in cuda/join/large.cu, where cuBLASLt is there; these plan their memory here.
#include "cuda/join/large.cuh"
#include "cuda/product/few.cuh"
#include "cuda/product/gemm.cuh"
#include "cuda/product/thin.cuh"
#include "cuda/product/weights.cuh"

struct sizes {
    int64_t rows, I, O;
    int act, math;
};

static sizes sizes_of(const call *c) {
    return sizes{operand_rows(&c->out[0]), operand_width(&c->in[0]), operand_width(&c->out[0]),
        (int)((const linear_attr *)c->attr)->act, math_of(c, c->out[0].type)};
}

// The sums kept for backward, of GELU alone, in the type of the results.
static view z_of(const call *c) {
    bool kept = ((const linear_attr *)c->attr)->act == ACT_GELU;
    return view{kept ? c->reserve : NULL, (int)c->out[0].type, false};
}

static void forward(const call *c) {
    sizes s = sizes_of(c);
    if (few_takes(c)) {
        few_launch(c);
        return;
    }
    if (thin_takes(c)) {
        thin_launch(c, z_of(c).data);
        return;
    }
    gemm_args g = {{view_of(&c->in[0]), s.I, 1, false}, {view_of(&c->in[1]), s.I, 1, false}, s.rows, s.O, s.I, 1};
    gemm_finish f = {view_of(&c->out[0]), view_of(&c->in[2]), z_of(c).data, s.act};
    gemm_product(c, s.math, g, f, (float *)c->scratch);
}

// Backward

static __global__ void slope_kernel(view dy, view y, view z, view dz, int act, int64_t n) {
    FOR_EACH(i, n) {
        float at = z.data ? view_load(z, i) : 0.0f, result = y.data ? view_load(y, i) : 0.0f;
        view_store(dz, i, view_load(dy, i) * activation_slope(act, at, result));
    }
}

// After dz, the parts of dx and then those of the weights' gradients share the rest of the scratch.
static void backward(const call *c) {
    sizes s = sizes_of(c);
    view dz = weights_dz(c);
    if (weights_dz_bytes(c))
        LAUNCH(c, slope_kernel, blocks_for(s.rows * s.O, 256), 256, 0, view_of(&c->dout[0]), view_of(&c->out[0]),
            z_of(c), dz, s.act, s.rows * s.O);
    if (c->din[0].data) {
        gemm_finish f = {view_of(&c->din[0]), {}, NULL, ACT_NONE};
        gemm_args g = {{dz, s.O, 1, false}, {view_of(&c->in[1]), 1, s.I, false}, s.rows, s.I, s.O, 1};
        gemm_product(c, s.math, g, f, (float *)((char *)c->scratch + weights_dz_bytes(c)));
    }
    weights_launch(&c, 1);
}

static size_t most(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t scratch(const call *c) {
    sizes s = sizes_of(c);
    if (!c->backward) return most(gemm_scratch(s.math, s.rows, s.O, s.I), large_scratch(c));
    size_t own = weights_dz_bytes(c) + most(gemm_scratch(s.math, s.rows, s.I, s.O), weights_scratch(c));
    return most(own, large_scratch(c));
}

static size_t reserve(const call *c) {
    bool kept = ((const linear_attr *)c->attr)->act == ACT_GELU;
    size_t z = kept ? (size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type) : 0;
    return (z + 63) / 64 * 64;
}

extern "C" const kernel cuda_linear = {forward, backward, scratch, reserve};
