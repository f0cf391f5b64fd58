// What a row program does twice, or for nobody, is taken out of it (cuda/rows/rows.h): a copy of columns that others
// could read where they come from, a gradient that is put together from slices, a conversion of what has just been
// written, a tile that nobody reads. What is left has the same results to the bit, but that a sum with 0 may have made
// -0 to 0.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_FOLD_H
#define TRADEWIND_CUDA_ROWS_ROWS_FOLD_H

#include "cuda/rows/rows.h"

// Of the calls as they were added: fewer instructions, in an order in which those stand behind a product that go on
// with its results.
void rows_fold(rows_compiler *r);

// Of instructions in their last order: no slot and no home is written that nobody reads.
void rows_trim(rows_compiler *r);

// Instructions element by element, all of which are one piece of code.
bool rows_is_map(const rows_instr *i);

// Whether two tiles' slots share memory.
bool rows_slots_meet(const rows_program *p, const rows_tile *a, const rows_tile *b);

// Whether two instructions that write one tile write different columns of it.
bool rows_columns_apart(const rows_instr *i, const rows_instr *j);

// Whether two instructions could change places: neither writes what the other touches.
bool rows_is_free_of(const rows_program *p, const rows_instr *i, const rows_instr *other);

// Whether an instruction writes all columns of its tile.
bool rows_writes_all(const rows_instr *i);

#endif
