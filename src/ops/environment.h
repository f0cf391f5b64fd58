// Parts that the operators around environments share. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_ENVIRONMENT_H
#define TRADEWIND_OPS_ENVIRONMENT_H

#include "graph/device.h"
#include "ops/attr.h"

// The environment's arrays, which are the call's inputs from `first` on.
static inline env_data environment_data(const call *c, int first) {
    env_data d = {{NULL}, 0};
    for (int k = first; k < c->inputs; k++) d.part[k - first] = c->in[k].data;
    if (c->inputs > first) d.rows = c->in[first].shape.dim[0];
    return d;
}

#ifndef __CUDACC__

#include "ops/op.h"

// Writes a row of fp32 values.
static inline void environment_put(const operand *to, int64_t row, const float *from, int64_t columns) {
    real *x = (real *)to->data + row * columns;
    for (int64_t i = 0; i < columns; i++) x[i] = (real)from[i];
}

#endif
#endif
