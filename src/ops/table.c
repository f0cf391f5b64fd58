// The plain kernels of one variant, as a table. Compiled once per variant; a missing kernel is a link error.
#include "ops/table.h"
#include "ops/op.h"

#define OP(name, ...) extern const kernel KERNEL(name);
#include "ops/ops.def"
#undef OP

const kernel *const KERNEL(ops_table)[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = &KERNEL(name),
#include "ops/ops.def"
#undef OP
};
