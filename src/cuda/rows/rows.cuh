// Launching a row kernel.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_CUH
#define TRADEWIND_CUDA_ROWS_ROWS_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "cuda/rows/rows.h"
}

// Puts a copy of a row kernel on the card, and takes it away.
bool rows_upload(queue *q, row_kernel *p);
void rows_remove(queue *q, row_kernel *p);

// `c` is the row kernel's first call, which gives queue and name. What comes behind the body, sums over all rows, is a
// launch of its own, beside which others can run.
void rows_launch(const call *c, const row_kernel *p);
void rows_launch_sums(const call *c, const row_kernel *p);

// The same, by the way of multiplying.
void rows_launch_f32(const call *c, const row_kernel *p);
void rows_launch_tf32(const call *c, const row_kernel *p);
void rows_launch_bf16(const call *c, const row_kernel *p);
void rows_launch_f16(const call *c, const row_kernel *p);

// Launch a row kernel that is a head (cuda/rows/rows_head.h), and the sum of its parts: `c` is the layer's backward
// call, `below` that of the layer whose bias gradient is among them, or NULL.
void rows_launch_head(const call *c, const row_kernel *p);
void rows_launch_head_sums(const call *c, const call *below);

#endif
