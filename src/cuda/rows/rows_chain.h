// What goes on with a product's results, column by column, is chained to it in a row program (cuda/rows/rows.h): the
// lanes that have them do it in registers.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_CHAIN_H
#define TRADEWIND_CUDA_ROWS_ROWS_CHAIN_H

#include "cuda/rows/rows.h"

// Of a program that is folded (cuda/rows/rows_fold.h).
void rows_chain(rows_program *p);

#endif
