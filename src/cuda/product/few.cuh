// y = act(x w' + b) of few rows, in 16 bits: an agent's act, a forecast of the newest bar. So few rows are bound by
// reading the weights, and by how long one load waits for another.
#ifndef TRADEWIND_CUDA_PRODUCT_FEW_CUH
#define TRADEWIND_CUDA_PRODUCT_FEW_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "ops/ops.h"
}

// Rows up to which these products are taken. From LEAST weights on a layer has a launch of its own, which the whole
// card works on; smaller layers are better off in a row kernel, if they find others to join.
enum { FEW_ROWS_MOST = 64, FEW_WEIGHTS_LEAST = 1 << 16 };

// True if a forward call of linear is computed here, by sizes and types alone.
static inline bool few_takes(const call *c) {
    bool low = c->out[0].type == DTYPE_BF16 || c->out[0].type == DTYPE_F16;
    bool keeps = c->reserve && ((const linear_attr *)c->attr)->act == ACT_GELU;
    dtype x = c->in[0].type;
    return !c->backward && low && !keeps && (x == c->out[0].type || x == DTYPE_F32) &&
           operand_rows(&c->out[0]) <= FEW_ROWS_MOST;
}

// True if it is a launch of its own, where others would join.
static inline bool few_stands_alone(const call *c) {
    return c->op == OP_linear && few_takes(c) && operand_count(&c->in[1]) >= FEW_WEIGHTS_LEAST;
}

// Launches a call that is taken.
void few_launch(const call *c);

#endif
