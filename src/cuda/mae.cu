// mae on the card: see ops/mae.c.
#include "cuda/pointwise.cuh"

CUDA_FN float value(float d) {
    return fabsf(d);
}

CUDA_FN float slope(float d) {
    return (float)((d > 0) - (d < 0));
}

POINTWISE_KERNEL(mae);
