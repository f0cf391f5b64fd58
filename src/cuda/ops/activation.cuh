// Activation functions and their slopes on the card: see ops/activation.h.
#ifndef TRADEWIND_CUDA_OPS_ACTIVATION_CUH
#define TRADEWIND_CUDA_OPS_ACTIVATION_CUH

#include "cuda/cuda.cuh"

// Below this GELU and its slope are 0 in fp32. Asked for, since their formulas give no number for minus infinity, which
// a sum that is kept in fp16 may have become.
#define GELU_FLOOR -16.0f

CUDA_FN float activate(int act, float z) {
    switch (act) {
    case ACT_RELU: return z < 0 ? 0 : z; // a NaN stays one
    case ACT_GELU: return z < GELU_FLOOR ? 0 : 0.5f * z * (1 + erff(z * 0.70710678f));
    case ACT_TANH: return tanhf(z);
    case ACT_SIGMOID: return 1 / (1 + expf(-z));
    default: return z;
    }
}

// The slope at z, where the result was y; only GELU reads z.
CUDA_FN float activation_slope(int act, float z, float y) {
    switch (act) {
    case ACT_RELU: return y <= 0 ? 0 : 1;
    case ACT_GELU:
        if (z < GELU_FLOOR) return 0;
        return 0.5f * (1 + erff(z * 0.70710678f)) + z * 0.39894228f * expf(-0.5f * z * z);
    case ACT_TANH: return 1 - y * y;
    case ACT_SIGMOID: return y * (1 - y);
    default: return 1;
    }
}

static __device__ __noinline__ float activate_call(int act, float z) {
    return activate(act, z);
}

// A thread's run of N elements, with one choice for all of them. The long ones are calls: their code stands once.
template <int N> CUDA_FN void activate_run(int act, float z[N]) {
    if (act == ACT_RELU) {
#pragma unroll
        for (int e = 0; e < N; e++) z[e] = activate(ACT_RELU, z[e]);
    } else if (act != ACT_NONE) {
#pragma unroll
        for (int e = 0; e < N; e++) z[e] = activate_call(act, z[e]);
    }
}

// The same for d *= slope where the result was y. Not for GELU.
template <int N> CUDA_FN void slope_run(int act, float d[N], const float y[N]) {
#define RUN(kind)                                                                                                      \
    case kind:                                                                                                         \
        for (int e = 0; e < N; e++) d[e] *= activation_slope(kind, 0, y[e]);                                           \
        break
    switch (act) {
        RUN(ACT_RELU);
        RUN(ACT_TANH);
        RUN(ACT_SIGMOID);
    }
#undef RUN
}

#endif
