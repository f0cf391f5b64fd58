// Eight neighbouring elements at once, at a multiple of eight: loads and stores of 16 bytes.
//
// The type of a tensor may be known where a kernel is compiled, so that no choice stands in its loops: a template's TYPE
// is that, or TYPE_ANY for what the view says. Bytes (DTYPE_I8) are not handled.
#ifndef TRADEWIND_CUDA_OCTET_CUH
#define TRADEWIND_CUDA_OCTET_CUH

#include "cuda/quad.cuh"

enum { OCTET = 8, TYPE_ANY = -1 };

struct octet {
    float v[OCTET];
};

// As they lie in memory: what is on its way to a thread. Of 2-byte elements the first word of 16 bytes alone is used.
struct octet_raw {
    uint4 w[2];
};

template <int TYPE> CUDA_FN int type_in(const view &v) {
    return TYPE == TYPE_ANY ? v.type : TYPE;
}

template <int TYPE> CUDA_FN octet_raw octet_fetch(const view &from, int64_t i) {
    octet_raw r = {};
    if (type_in<TYPE>(from) == DTYPE_F32) {
        const uint4 *at = (const uint4 *)((const float *)from.data + i);
        r.w[0] = at[0];
        r.w[1] = at[1];
    } else {
        r.w[0] = *(const uint4 *)((const uint16_t *)from.data + i);
    }
    return r;
}

template <int TYPE> CUDA_FN octet octet_of(const view &from, const octet_raw &r) {
    const uint32_t w[OCTET] = {r.w[0].x, r.w[0].y, r.w[0].z, r.w[0].w, r.w[1].x, r.w[1].y, r.w[1].z, r.w[1].w};
    octet o;
    if (type_in<TYPE>(from) == DTYPE_F32) {
#pragma unroll
        for (int e = 0; e < OCTET; e++) o.v[e] = __uint_as_float(w[e]);
        return o;
    }
    bool bf16 = type_in<TYPE>(from) == DTYPE_BF16;
#pragma unroll
    for (int e = 0; e < OCTET; e += 2) {
        float2 f = bf16 ? __bfloat1622float2(*(const __nv_bfloat162 *)&w[e / 2]) : __half22float2(*(const __half2 *)&w[e / 2]);
        o.v[e] = f.x;
        o.v[e + 1] = f.y;
    }
    return o;
}

template <int TYPE> CUDA_FN octet octet_load(const view &from, int64_t i) {
    return octet_of<TYPE>(from, octet_fetch<TYPE>(from, i));
}

template <int TYPE> CUDA_FN void octet_store(const view &to, int64_t i, const octet &o) {
    if (type_in<TYPE>(to) == DTYPE_F32) {
        float4 *at = (float4 *)((float *)to.data + i);
        at[0] = float4{o.v[0], o.v[1], o.v[2], o.v[3]};
        at[1] = float4{o.v[4], o.v[5], o.v[6], o.v[7]};
        return;
    }
    bool bf16 = type_in<TYPE>(to) == DTYPE_BF16;
    uint32_t w[OCTET / 2];
#pragma unroll
    for (int e = 0; e < OCTET; e += 2) {
        if (bf16) {
            *(__nv_bfloat162 *)&w[e / 2] = __floats2bfloat162_rn(o.v[e], o.v[e + 1]);
        } else {
            *(__half2 *)&w[e / 2] = __floats2half2_rn(o.v[e], o.v[e + 1]);
        }
    }
    *(uint4 *)((uint16_t *)to.data + i) = make_uint4(w[0], w[1], w[2], w[3]);
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

// As view_put.
template <int TYPE> CUDA_FN void octet_put(const view &to, int64_t i, octet o) {
    if (to.add) o = octet_add(o, octet_load<TYPE>(to, i));
    octet_store<TYPE>(to, i, o);
}

// What the elements are after they were stored to a tensor and loaded.
template <int TYPE> CUDA_FN octet octet_rounded(const view &to, octet x) {
#pragma unroll
    for (int e = 0; e < OCTET; e++) x.v[e] = rounded(type_in<TYPE>(to), x.v[e]);
    return x;
}

#endif
