// Linear layers with large products: these go to cuBLASLt (cuda/blaslt.cuh) where it is there, whatever else the layer
// does is done here.
//
// The library computes products of operands of one type, with a bias of the result's: fp32 weights are converted for every
// call, and x and dy where they are fp32. Its GELU is not ours (it takes tanh for erf), so GELU, tanh and sigmoid are a
// pass of their own over the results; so is the slope, which sums the columns of dz for the bias on its way.
#ifndef TRADEWIND_CUDA_LARGE_CUH
#define TRADEWIND_CUDA_LARGE_CUH

#include "cuda/cuda.cuh"

// Whether a call of linear, forward or backward, is computed here. Such a call joins no row program: it would read its
// weights once for every 16 or 32 rows.
bool large_takes(const call *c);

// Bytes that the call needs if it is; 0 where its sizes or types rule that out. Asked before there is a queue, so that the
// plan is the same with the library and without it.
size_t large_scratch(const call *c);

void large_forward(const call *c);
void large_backward(const call *c);

#endif
