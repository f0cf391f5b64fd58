// Eight neighbouring elements (cuda/run.cuh) as a value, of a type that may be known where a kernel is compiled, so
// that no choice stands in its loops: a template's TYPE is that, or TYPE_ANY for what the view says. Bytes (DTYPE_I8)
// are not handled.
#ifndef TRADEWIND_CUDA_OCTET_CUH
#define TRADEWIND_CUDA_OCTET_CUH

#include "cuda/quad.cuh"
#include "cuda/run.cuh"

enum { OCTET = RUN, TYPE_ANY = -1 };

struct octet {
    float v[OCTET];
};

// As they lie in memory: what is on its way to a thread. Of 2-byte elements the first word alone is used.
struct octet_raw {
    uint4 w[2];
};

template <int TYPE> CUDA_FN int type_in(const view &v) {
    return TYPE == TYPE_ANY ? v.type : TYPE;
}

template <int TYPE> CUDA_FN view typed(const view &v) {
    return view{v.data, type_in<TYPE>(v), v.add};
}

template <int TYPE> CUDA_FN octet_raw octet_fetch(const view &from, int64_t i) {
    octet_raw r = {};
    if (type_in<TYPE>(from) == DTYPE_F32) {
        run_words<float> w = run_fetch<float>(from.data, i);
        r.w[0] = w.w[0];
        r.w[1] = w.w[1];
    } else {
        r.w[0] = run_fetch<__half>(from.data, i).w[0];
    }
    return r;
}

template <int TYPE> CUDA_FN octet octet_of(const view &from, const octet_raw &r) {
    octet o;
    switch (type_in<TYPE>(from)) {
    case DTYPE_BF16: run_widen(o.v, run_words<__nv_bfloat16>{{r.w[0]}}); break;
    case DTYPE_F16: run_widen(o.v, run_words<__half>{{r.w[0]}}); break;
    default: run_widen(o.v, run_words<float>{{r.w[0], r.w[1]}}); break;
    }
    return o;
}

template <int TYPE> CUDA_FN octet octet_load(const view &from, int64_t i) {
    return octet_of<TYPE>(from, octet_fetch<TYPE>(from, i));
}

template <int TYPE> CUDA_FN void octet_store(const view &to, int64_t i, const octet &o) {
    run_store(typed<TYPE>(to), i, o.v);
}

// As view_put.
template <int TYPE> CUDA_FN void octet_put(const view &to, int64_t i, octet o) {
    run_put(typed<TYPE>(to), i, o.v);
}

CUDA_FN octet octet_add(octet x, const octet &y) {
#pragma unroll
    for (int e = 0; e < OCTET; e++) x.v[e] += y.v[e];
    return x;
}

CUDA_FN octet octet_times(octet x, float by) {
#pragma unroll
    for (int e = 0; e < OCTET; e++) x.v[e] *= by;
    return x;
}

// Elements rounded as storing them to a tensor and loading them would.
template <int TYPE> CUDA_FN octet octet_rounded(const view &to, octet x) {
#pragma unroll
    for (int e = 0; e < OCTET; e++) x.v[e] = rounded(type_in<TYPE>(to), x.v[e]);
    return x;
}

#endif
