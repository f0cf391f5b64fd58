// Huber's loss of forecasts: ops/huber.c.
#include "train/loss.h"

#include <string.h>

static const config_key keys[] = {
    {"train.huber_delta", CONFIG_REAL, "1", ABOVE_0, 1e9, NULL,
        "huber: where squares end and distances begin, in the targets' units; for closes of bars a share of the close",
        KEY_FIXED | KEY_UNTUNED},
};

static bool read(const config *c, void *own, err *e) {
    float delta = (float)config_real(c, "train.huber_delta");
    (void)e;
    memcpy(own, &delta, sizeof delta);
    return true;
}

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    float delta;
    memcpy(&delta, own, sizeof delta);
    return op_huber(g, in->y, in->target, in->weight, delta / in->unit);
}

const loss loss_huber = {.degree = 2, .keys = keys, .key_count = sizeof keys / sizeof *keys, .read = read, .add = add};
