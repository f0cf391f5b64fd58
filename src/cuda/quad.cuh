// Four neighbouring elements at once, at a multiple of four: 16 or 8 bytes.
#ifndef TRADEWIND_CUDA_QUAD_CUH
#define TRADEWIND_CUDA_QUAD_CUH

#include "cuda/cuda.cuh"

enum { QUAD = 4 };

struct quad {
    float v[QUAD];
};

CUDA_FN quad quad_load(const view &from, int64_t i) {
    if (from.type == DTYPE_F32) {
        float4 f = *(const float4 *)((const float *)from.data + i);
        return quad{{f.x, f.y, f.z, f.w}};
    }
    if (from.type == DTYPE_I8) {
        char4 b = *(const char4 *)((const signed char *)from.data + i);
        return quad{{(float)b.x, (float)b.y, (float)b.z, (float)b.w}};
    }
    uint2 w = *(const uint2 *)((const uint16_t *)from.data + i);
    bool bf16 = from.type == DTYPE_BF16;
    float2 lo = bf16 ? __bfloat1622float2(*(const __nv_bfloat162 *)&w.x) : __half22float2(*(const __half2 *)&w.x);
    float2 hi = bf16 ? __bfloat1622float2(*(const __nv_bfloat162 *)&w.y) : __half22float2(*(const __half2 *)&w.y);
    return quad{{lo.x, lo.y, hi.x, hi.y}};
}

CUDA_FN void quad_store(const view &to, int64_t i, const quad &q) {
    if (to.type == DTYPE_F32) {
        *(float4 *)((float *)to.data + i) = float4{q.v[0], q.v[1], q.v[2], q.v[3]};
        return;
    }
    uint2 w;
    if (to.type == DTYPE_BF16) {
        *(__nv_bfloat162 *)&w.x = __floats2bfloat162_rn(q.v[0], q.v[1]);
        *(__nv_bfloat162 *)&w.y = __floats2bfloat162_rn(q.v[2], q.v[3]);
    } else {
        *(__half2 *)&w.x = __floats2half2_rn(q.v[0], q.v[1]);
        *(__half2 *)&w.y = __floats2half2_rn(q.v[2], q.v[3]);
    }
    *(uint2 *)((uint16_t *)to.data + i) = w;
}

// As view_put.
CUDA_FN void quad_put(const view &to, int64_t i, quad q) {
    if (to.add) {
        quad was = quad_load(to, i);
#pragma unroll
        for (int e = 0; e < QUAD; e++) q.v[e] += was.v[e];
    }
    quad_store(to, i, q);
}

// An element rounded as storing and loading it would.
CUDA_FN float rounded(int type, float v) {
    if (type == DTYPE_BF16) return __bfloat162float(__float2bfloat16(v));
    return type == DTYPE_F16 ? __half2float(__float2half(v)) : v;
}

CUDA_FN quad quad_add(quad x, const quad &y) {
#pragma unroll
    for (int e = 0; e < QUAD; e++) x.v[e] += y.v[e];
    return x;
}

CUDA_FN quad quad_times(quad x, float by) {
#pragma unroll
    for (int e = 0; e < QUAD; e++) x.v[e] *= by;
    return x;
}

#endif
