// The absolute error of forecasts, by that of the seasonal naive forecast: ops/mase.c.
#include "train/loss.h"

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    (void)own;
    return op_mase(g, in->y, in->target, in->weight, in->naive);
}

const loss loss_mase = {.naive = true, .add = add};
