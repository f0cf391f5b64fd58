// Where a row kernel (cuda/rows/rows.h) needs no barrier between two instructions: they are `open`, and begin with
// different warps where they have nothing to do with each other.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_OPEN_H
#define TRADEWIND_CUDA_ROWS_ROWS_OPEN_H

#include "cuda/rows/rows.h"

// Losses, metrics and their gradients: before products are chained.
void rows_open_losses(row_kernel *p);

// Instructions element by element: when it is known how threads share out their columns.
void rows_open_maps(row_kernel *p);

#endif
