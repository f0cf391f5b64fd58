// Eight neighbouring elements at once, at a multiple of eight: 32 or 16 bytes.
#ifndef TRADEWIND_CUDA_RUN_CUH
#define TRADEWIND_CUDA_RUN_CUH

#include "cuda/cuda.cuh"

enum { RUN = 8 };

// Elements as they lie in memory, of a type known at compile time: so they wait in registers for their turn.
template <typename T> struct run_words { uint4 w[RUN * sizeof(T) / sizeof(uint4)]; };

template <typename T> CUDA_FN run_words<T> run_fetch(const void *from, int64_t i) {
    run_words<T> r;
    const uint4 *at = (const uint4 *)((const T *)from + i);
#pragma unroll
    for (size_t k = 0; k < sizeof r.w / sizeof *r.w; k++) r.w[k] = at[k];
    return r;
}

template <typename T> CUDA_FN void run_send(void *to, int64_t i, const run_words<T> &r) {
    uint4 *at = (uint4 *)((T *)to + i);
#pragma unroll
    for (size_t k = 0; k < sizeof r.w / sizeof *r.w; k++) at[k] = r.w[k];
}

CUDA_FN float2 pair_widen(__nv_bfloat162 p) {
    return __bfloat1622float2(p);
}
CUDA_FN float2 pair_widen(__half2 p) {
    return __half22float2(p);
}
CUDA_FN void pair_narrow(__nv_bfloat162 *to, float x, float y) {
    *to = __floats2bfloat162_rn(x, y);
}
CUDA_FN void pair_narrow(__half2 *to, float x, float y) {
    *to = __floats2half2_rn(x, y);
}

template <typename T> struct pair_of;
template <> struct pair_of<__nv_bfloat16> { typedef __nv_bfloat162 type; };
template <> struct pair_of<__half> { typedef __half2 type; };

template <typename T> CUDA_FN void run_widen(float v[RUN], const run_words<T> &r) {
    const uint32_t *w = (const uint32_t *)r.w;
#pragma unroll
    for (int p = 0; p < RUN / 2; p++) {
        float2 f = pair_widen(*(const typename pair_of<T>::type *)&w[p]);
        v[2 * p] = f.x;
        v[2 * p + 1] = f.y;
    }
}
CUDA_FN void run_widen(float v[RUN], const run_words<float> &r) {
#pragma unroll
    for (int e = 0; e < RUN; e++) v[e] = ((const float *)r.w)[e];
}

template <typename T> CUDA_FN void run_narrow(run_words<T> *r, const float v[RUN]) {
    uint32_t *w = (uint32_t *)r->w;
#pragma unroll
    for (int p = 0; p < RUN / 2; p++) pair_narrow((typename pair_of<T>::type *)&w[p], v[2 * p], v[2 * p + 1]);
}
CUDA_FN void run_narrow(run_words<float> *r, const float v[RUN]) {
#pragma unroll
    for (int e = 0; e < RUN; e++) ((float *)r->w)[e] = v[e];
}

// Rounds elements as storing and loading them would; returns them as stored.
template <typename T> CUDA_FN run_words<T> run_rounded(float v[RUN]) {
    run_words<T> r;
    run_narrow(&r, v);
    run_widen(v, r);
    return r;
}

template <typename T> CUDA_FN void run_convert(void *to, int64_t i, const float v[RUN]) {
    run_words<T> r;
    run_narrow(&r, v);
    run_send<T>(to, i, r);
}

// Elements of any type but i8.

CUDA_FN void run_load(float v[RUN], const view &from, int64_t i) {
    switch (from.type) {
    case DTYPE_BF16: run_widen(v, run_fetch<__nv_bfloat16>(from.data, i)); return;
    case DTYPE_F16: run_widen(v, run_fetch<__half>(from.data, i)); return;
    default: run_widen(v, run_fetch<float>(from.data, i)); return;
    }
}

CUDA_FN void run_store(const view &to, int64_t i, const float v[RUN]) {
    switch (to.type) {
    case DTYPE_BF16: run_convert<__nv_bfloat16>(to.data, i, v); return;
    case DTYPE_F16: run_convert<__half>(to.data, i, v); return;
    default: run_convert<float>(to.data, i, v); return;
    }
}

// As view_put.
CUDA_FN void run_put(const view &to, int64_t i, float v[RUN]) {
    float was[RUN] = {};
    if (to.add) run_load(was, to, i);
#pragma unroll
    for (int e = 0; e < RUN; e++) v[e] = to.add ? was[e] + v[e] : v[e];
    run_store(to, i, v);
}

#endif
