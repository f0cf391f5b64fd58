// The CPU's kernels of one variant: the plain ones, with the fast ones in their place. Compiled once per variant.
#include "cpu/table.h"

#include "ops/op.h"
#include "ops/table.h"

#define FAST(name) extern const kernel KERNEL(cpu_##name);
#include "cpu/fast.def"
#undef FAST

void KERNEL(cpu_fill_table)(const kernel **table) {
    for (int i = 0; i < OP_COUNT; i++) table[i] = KERNEL(ops_table)[i];
#define FAST(name) table[OP_##name] = &KERNEL(cpu_##name);
#include "cpu/fast.def"
#undef FAST
}
