// Launching a row program.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_CUH
#define TRADEWIND_CUDA_ROWS_ROWS_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "cuda/rows/rows.h"
}

// Puts a copy of a program on the card, and takes it away.
bool rows_upload(queue *q, rows_program *p);
void rows_remove(rows_program *p);

// `c` is the program's first call, which gives queue and name. What comes behind the body, sums over all rows, is a launch
// of its own, beside which others can run.
void rows_launch(const call *c, const rows_program *p);
void rows_launch_sums(const call *c, const rows_program *p);

// The same, by the way of multiplying.
void rows_launch_f32(const call *c, const rows_program *p);
void rows_launch_tf32(const call *c, const rows_program *p);
void rows_launch_bf16(const call *c, const rows_program *p);
void rows_launch_f16(const call *c, const rows_program *p);

// Of a program that is a head (cuda/rows/rows_head.h); and what adds up its sums: `c` is the layer's backward call, `below` that of
// the layer whose bias' gradient is among them, or NULL.
void rows_launch_head(const call *c, const rows_program *p);
void rows_launch_head_sums(const call *c, const call *below);

#endif
