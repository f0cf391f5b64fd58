// mse on the card: see ops/mse.c.
#include "cuda/pointwise.cuh"

CUDA_FN float value(float d) {
    return d * d;
}

CUDA_FN float slope(float d) {
    return 2 * d;
}

POINTWISE_KERNEL(mse);
