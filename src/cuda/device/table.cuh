// The CUDA kernels of all operators. A missing one is a link error.
#ifndef TRADEWIND_CUDA_DEVICE_TABLE_CUH
#define TRADEWIND_CUDA_DEVICE_TABLE_CUH

extern "C" {
#include "graph/device.h"
#include "ops/ops.h"
}

extern const kernel *const cuda_table[OP_COUNT];

#define OP(name, ...) extern "C" const kernel cuda_##name;
#include "ops/ops.def"
#undef OP

#endif
