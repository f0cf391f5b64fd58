// Cross-entropy of classes: ops/cross_entropy.c.
#include "train/loss.h"

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    (void)own;
    return op_cross_entropy(g, in->y, in->label, in->weight, in->class_weight, in->smoothing);
}

const loss loss_cross_entropy = {.classes = true, .add = add};
