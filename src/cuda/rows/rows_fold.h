// Folding takes out of a row kernel (cuda/rows/rows.h) all that it does twice or for nobody: a copy of columns that
// others could read where they come from, a gradient that is put together from slices, a conversion of what has just
// been written, a tile that nobody reads. The rest has the same results to the bit, but that a sum with 0 may have made
// -0 to 0.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_FOLD_H
#define TRADEWIND_CUDA_ROWS_ROWS_FOLD_H

#include "cuda/rows/rows.h"

// Makes fewer instructions of the calls as they were added; those that go on with a product's results stand behind it.
void rows_fold(rows_compiler *r);

// Drops writes to slots and homes that nobody reads, once instructions are in their last order.
void rows_trim(rows_compiler *r);

// Instructions element by element, all of which are one piece of code.
bool rows_is_map(const rows_instr *i);

// True if two tiles' slots share memory.
bool rows_slots_meet(const row_kernel *p, const rows_tile *a, const rows_tile *b);

// True if two instructions that write one tile write different columns of it.
bool rows_columns_apart(const rows_instr *i, const rows_instr *j);

// True if two instructions could change places: neither writes what the other touches.
bool rows_is_free_of(const row_kernel *p, const rows_instr *i, const rows_instr *other);

// True if an instruction writes all columns of its tile.
bool rows_writes_all(const rows_instr *i);

#endif
