// Residual connections with dropout, z = a x + b dropout(y), in one pass each way.
#ifndef TRADEWIND_CUDA_RESIDUAL_CUH
#define TRADEWIND_CUDA_RESIDUAL_CUH

#include "cuda/dropout.cuh"

struct residual_args {
    drop_args drop;
    view x, y, z;  // backward: dx, dy and dz
    view between;  // dropout's result, backward its gradient; no data: nobody reads it
    float a, b;
    bool backward;
};

// Whether the first two calls of a list, the next that run, are dropout and the sum that it goes into, or these backward.
// The list is looked at for who reads what passes between the two.
bool residual_match(const call *calls, int count, residual_args *args);

void residual_launch(const call *c, const residual_args *args);

#endif
