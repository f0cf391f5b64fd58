// Lives of tensors, seen from a list of calls: a launch that joins two of them need not write what nobody else reads.
#ifndef TRADEWIND_CUDA_JOIN_LIFE_CUH
#define TRADEWIND_CUDA_JOIN_LIFE_CUH

#include "cuda/cuda.cuh"

// True if two tensors share memory, or a tensor and so many bytes.
bool life_meet(const operand *a, const operand *b);
bool life_meet_bytes(const operand *a, const void *at, size_t bytes);

// True if none of the calls that follow reads a tensor before its memory is given to another. Where they end without
// either, somebody behind them may read a value, but never a gradient that is no parameter's.
bool life_over(const operand *o, bool gradient, const call *calls, int count);

#endif
