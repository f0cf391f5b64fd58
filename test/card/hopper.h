// Operations of sm_90a (test/card/lanes.c lists them), and the description of a matrix that a driver makes.
#ifndef TRADEWIND_TEST_CARD_HOPPER_H
#define TRADEWIND_TEST_CARD_HOPPER_H

#include "card/grid.h"

#include <cuda.h>

operation hopper_barrier_init, hopper_arrive, hopper_arrive_expecting, hopper_try_wait;
operation hopper_load, hopper_store;
operation hopper_multiply_bf16, hopper_multiply_f16;

// Forgets bricks that are on their way to a block's shared memory; returns their number.
int hopper_left(const uint8_t *shared);

// cuTensorMapEncodeTiled, of matrices of 16 bits in bricks of 64 x 64 alone.
CUresult hopper_encode(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *data, const cuuint64_t *sizes,
    const cuuint64_t *pitch, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

#endif
