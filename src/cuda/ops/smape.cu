// smape on the card: see ops/smape.c.
#include "cuda/ops/pointwise.cuh"

static float setting(const call *c) {
    (void)c;
    return 0;
}

CUDA_FN float value(float p, float t, float) {
    float size = fabsf(p) + fabsf(t);
    return size == 0 ? 0.0f : 2 * fabsf(p - t) / size;
}

CUDA_FN float slope(float p, float t, float) {
    float size = fabsf(p) + fabsf(t), away = (float)((p > t) - (p < t)), sign = (float)((p > 0) - (p < 0));
    bool apart = p * t < 0;
    return size == 0 ? 0.0f : 2 * (apart ? away : away - fabsf(p - t) / size * sign) / size;
}

POINTWISE_KERNEL(smape);
