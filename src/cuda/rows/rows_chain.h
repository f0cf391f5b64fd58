// Chaining: instructions of a row kernel (cuda/rows/rows.h) that go on with a product's results, column by column, are
// done in registers by the lanes that have these.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_CHAIN_H
#define TRADEWIND_CUDA_ROWS_ROWS_CHAIN_H

#include "cuda/rows/rows.h"

// Chains the instructions of a row kernel that is folded (cuda/rows/rows_fold.h).
void rows_chain(row_kernel *p);

#endif
