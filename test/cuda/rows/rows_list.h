// Lists of calls for tests of the compiler of row kernels (cuda/rows/rows.h), over made-up addresses which nobody
// reads: [ROWS, width] tensors, named by where they lie, every address a megabyte from the next.
#ifndef TRADEWIND_TEST_ROWS_LIST_H
#define TRADEWIND_TEST_ROWS_LIST_H

#include "cuda/rows/rows.h"
#include "ops/ops.h"

enum { ROWS = 40, CALLS = 24, OPERANDS = 8, ROOM = 100 * 1024, CLASSES = 3, MULTIPROCESSORS = 100 };

typedef struct {
    call calls[CALLS];
    operand operands[CALLS][4 * OPERANDS];
    int count;
    rows_compiler r;
} list;

extern const linear_attr plain, relu;
extern const kernel *table[OP_COUNT]; // filled by list_new

// An empty list, whose row kernel is begun in ROOM bytes on MULTIPROCESSORS; to be freed.
list *list_new(void);

operand tensor_at(uintptr_t megabyte, int64_t width, dtype type);
operand x_at(uintptr_t megabyte, int64_t width); // of bf16
operand floats_at(uintptr_t megabyte, int64_t n);

// Calls at the end of a list.
call *call_new(list *l, int op, const void *attr, bool backward, int inputs);
call *linear(list *l, const linear_attr *a, operand x, operand y, uintptr_t weights);
call *dropout(list *l, operand x, operand y);
call *dropout_back(list *l, operand dx, operand dy);

// Backward of the layer from x to y with gradients dx and dy; scratch and the weights' gradient lie at `scratch`.
call *linear_back(list *l, const linear_attr *a, operand x, operand y, operand dx, operand dy, uintptr_t scratch);

// Metrics and losses of scores, all of the same labels. The loss goes to `sum`, its parts to the megabyte after that.
call *confusion(list *l, operand scores, uintptr_t counts);
call *cross_entropy(list *l, operand scores, uintptr_t sum);
call *cross_entropy_back(list *l, operand scores, operand gradient);

// The row kernel's instructions: the ith, and the first that does `op`.
const rows_instr *instr(const list *l, int i);
const rows_instr *first_of(const list *l, rows_op op);

#endif
