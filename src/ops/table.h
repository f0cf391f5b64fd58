// Tables of plain kernels, by variant: one per instruction set, and f64, which tests use as the reference.
#ifndef TRADEWIND_OPS_TABLE_H
#define TRADEWIND_OPS_TABLE_H

#include "graph/device.h"
#include "ops/ops.h"

extern const kernel *const ops_table_base[OP_COUNT];
extern const kernel *const ops_table_f64[OP_COUNT];
#if defined(__x86_64__)
extern const kernel *const ops_table_avx2[OP_COUNT];
extern const kernel *const ops_table_avx512[OP_COUNT];
#endif

#endif
