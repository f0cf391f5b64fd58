// Packing: weights as the products of row programs read them (cuda/rows.h), in a launch before the program.
//
// For every group of 8 NJ columns and every run of 16 terms, lane l of a warp has four terms (4t .. 4t+3 where t is l%4,
// or, of 2-byte weights, 2t, 2t+1, 2t+8, 2t+9) of columns NJ (l/4) .. + NJ - 1, one column after another; in shared order the lanes' first 16 bytes stand first, then their
// second, and so on, so that a warp's load is one stretch. Biases follow in fp32. The launch depends on the weights alone and runs beside the
// gathering of the micro-batch.
#ifndef TRADEWIND_CUDA_PACK_CUH
#define TRADEWIND_CUDA_PACK_CUH

#include "cuda/rows.cuh"

struct pack_args {
    rows_pack pack[ROWS_MOST];
    size_t weights[ROWS_MOST]; // bytes, without the bias
    int first[ROWS_MOST];      // block
    int count, blocks;
    int low; // dtype of the packed weights
    char *to;
    size_t bytes;
    struct pack_memory *memory; // whose `to` is
};

// The packs of a compiled program, with memory on the card; its instructions are then placed. Programs of a queue with the
// same packs share it: every step packs anew, and the schedule orders who writes behind who reads. False where memory is
// short.
bool pack_make(queue *q, pack_args *p, rows_compiler *r);
void pack_remove(queue *q, pack_args *p);

void pack_launch(const call *c, const pack_args *p);

#endif
