// Residual connections with dropout, z = a x + b dropout(y), in one pass each way; with the layer norm of z, or its
// mean over time, where that follows, and backward what that gives. What passes between these calls is written only
// where somebody else reads it.
#ifndef TRADEWIND_CUDA_JOIN_RESIDUAL_CUH
#define TRADEWIND_CUDA_JOIN_RESIDUAL_CUH

#include "cuda/octet.cuh"
#include "cuda/ops/dropout.cuh"

struct residual_args {
    drop_args drop;
    view x, y, z; // backward: dx, dy and dz
    view between; // dropout's result, backward its gradient; no data: nobody reads it
    float a, b;
    bool backward;
    const call *norm; // the layer norm that is joined, or NULL
    bool alone;       // with a norm, backward: nobody else reads dz
    const call *mean; // the mean over time that is joined, or NULL: nobody else reads z, dz, or what passes between
};

// True if x and z have one type, and y and what passes between another: the X and Y that kernels are compiled for.
static inline bool residual_types(const residual_args *a, int x, int y) {
    return (!a->x.data || a->x.type == x) && a->z.type == x && a->y.type == y && a->between.type == y;
}

// How many of the calls of a list, the next that run, are such a connection: 3, 2 or 0. The list is looked at for who
// reads what.
int residual_match(const call *calls, int count, residual_args *args);

void residual_launch(const call *c, const residual_args *args);

// True if a call has kernels that do a residual connection too; and these (cuda/ops/layernorm.cu,
// cuda/ops/mean_time.cu).
bool layernorm_joins(const call *c);
void layernorm_launch_joined(const call *c, const residual_args *args);
bool mean_time_joins(const call *c);
void mean_time_launch_joined(const call *c, const residual_args *args);

// Eight elements at `at`, a multiple of eight: z from x and y; the same, stored; and what dz gives. The bits are those
// of the single calls: what passes between them is rounded to its type also where it is not written. X is the type of x
// and z, Y that of y and of what passes (cuda/octet.cuh).

// A loop over rows must not keep the keys of all rounds that follow from the seed in registers: the compiler is told
// that it is another one each time.
CUDA_FN octet residual_drop(const residual_args &a, random_key s, int64_t at, octet x) {
    asm volatile("" : "+l"(s.seed));
    rng_block r = drop_draw(a.drop, s, drop_place_of(a.drop, at));
#pragma unroll
    for (int e = 0; e < OCTET; e++) x.v[e] = drop_one(a.drop, r.v, e, x.v[e]);
    return x;
}

template <int X, int Y>
CUDA_FN octet residual_sum(const residual_args &a, const random_key &s, int64_t at, const octet &x, octet y) {
    y = octet_rounded<Y>(a.between, residual_drop(a, s, at, y));
    if (a.between.data) octet_store<Y>(a.between, at, y);
    return octet_rounded<X>(a.z, octet_add(octet_times(x, a.a), octet_times(y, a.b)));
}

template <int X, int Y>
CUDA_FN octet residual_forward(
    const residual_args &a, const random_key &s, int64_t at, const octet &x, const octet &y) {
    octet z = residual_sum<X, Y>(a, s, at, x, y);
    octet_store<X>(a.z, at, z);
    return z;
}

template <int X, int Y>
CUDA_FN void residual_backward(const residual_args &a, const random_key &s, int64_t at, const octet &dz) {
    octet dy = octet_rounded<Y>(a.between, octet_times(dz, a.b));
    if (a.x.data) octet_put<X>(a.x, at, octet_times(dz, a.a));
    if (a.between.data) octet_store<Y>(a.between, at, dy);
    octet_put<Y>(a.y, at, residual_drop(a, s, at, dy));
}

#endif
