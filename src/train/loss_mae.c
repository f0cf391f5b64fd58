// The absolute error of forecasts: ops/mae.c.
#include "train/loss.h"

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    (void)own;
    return op_mae(g, in->y, in->target, in->weight);
}

const loss loss_mae = {.degree = 1, .add = add};
