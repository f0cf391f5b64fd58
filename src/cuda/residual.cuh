// Residual connections with dropout, z = a x + b dropout(y), in one pass each way; with the layer norm of z, where that
// follows, and backward what that gives. What passes between these calls is written only where somebody else reads it.
#ifndef TRADEWIND_CUDA_RESIDUAL_CUH
#define TRADEWIND_CUDA_RESIDUAL_CUH

#include "cuda/dropout.cuh"

struct residual_args {
    drop_args drop;
    view x, y, z; // backward: dx, dy and dz
    view between; // dropout's result, backward its gradient; no data: nobody reads it
    float a, b;
    bool backward;
    const call *norm; // the layer norm that is joined, or NULL
    bool alone;       // with a norm, backward: nobody else reads dz
};

// How many of the calls of a list, the next that run, are such a connection: 3, 2 or 0. The list is looked at for who
// reads what.
int residual_match(const call *calls, int count, residual_args *args);

void residual_launch(const call *c, const residual_args *args);

// Whether a layer norm has kernels that do a residual connection too; and these (cuda/layernorm.cu).
bool layernorm_joins(const call *c);
void layernorm_launch_joined(const call *c, const residual_args *args);

// Four elements at i, counted through all rows, with their random words: z from x, which is stored; and what dz gives. The
// bits are those of the single calls: what passes between them is rounded to its type also where it is not written.

CUDA_FN quad residual_forward(const residual_args &a, const drop_words &bits, int64_t i, const quad &x) {
    quad y = quad_rounded(a.between.type, drop(a.drop, bits, quad_load(a.y, i)));
    if (a.between.data) quad_store(a.between, i, y);
    quad z = quad_rounded(a.z.type, quad_add(quad_times(x, a.a), quad_times(y, a.b)));
    quad_store(a.z, i, z);
    return z;
}

CUDA_FN void residual_backward(const residual_args &a, const drop_words &bits, int64_t i, const quad &dz) {
    quad dy = quad_rounded(a.between.type, quad_times(dz, a.b));
    if (a.x.data) quad_put(a.x, i, quad_times(dz, a.a));
    if (a.between.data) quad_store(a.between, i, dy);
    quad_put(a.y, i, drop(a.drop, bits, dy));
}

#endif
