// Fills a table of OP_COUNT kernels for one instruction set.
#ifndef TRADEWIND_CPU_TABLE_H
#define TRADEWIND_CPU_TABLE_H

#include "graph/device.h"

void cpu_fill_table_base(const kernel **table);
#if defined(__x86_64__)
void cpu_fill_table_avx2(const kernel **table);
void cpu_fill_table_avx512(const kernel **table);
#endif

#endif
