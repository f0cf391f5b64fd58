// mase on the card: see ops/mase.c.
#include "cuda/ops/pointwise.cuh"

static float setting(const call *c) {
    (void)c;
    return 0;
}

CUDA_FN float value(float p, float t, float) {
    return fabsf(p - t);
}

CUDA_FN float slope(float p, float t, float) {
    return (float)((p > t) - (p < t));
}

POINTWISE_KERNEL(mase);
