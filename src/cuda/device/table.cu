#include "cuda/device/table.cuh"

const kernel *const cuda_table[OP_COUNT] = {
#define OP(name, ...) &cuda_##name,
#include "ops/ops.def"
#undef OP
};
