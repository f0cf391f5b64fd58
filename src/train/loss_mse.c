// The squared error of forecasts: ops/mse.c.
#include "train/loss.h"

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    (void)own;
    return op_mse(g, in->y, in->target, in->weight);
}

const loss loss_mse = {.degree = 2, .add = add};
