// sMAPE / 100 of forecasts: ops/smape.c.
#include "train/loss.h"

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    (void)own;
    return op_smape(g, in->y, in->target, in->weight);
}

const loss loss_smape = {.add = add};
