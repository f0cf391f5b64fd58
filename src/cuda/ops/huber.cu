// huber on the card: see ops/huber.c.
#include "cuda/ops/pointwise.cuh"

static float setting(const call *c) {
    return ((const huber_attr *)c->attr)->delta;
}

CUDA_FN float value(float p, float t, float k) {
    float d = fabsf(p - t);
    return d <= k ? d * d / 2 : k * (d - k / 2);
}

CUDA_FN float slope(float p, float t, float k) {
    float d = p - t;
    return d > k ? k : d < -k ? -k : d;
}

POINTWISE_KERNEL(huber);
