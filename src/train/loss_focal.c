// Cross-entropy in which samples that are right already count for less: ops/focal.c.
#include "train/loss.h"

#include <string.h>

static const config_key keys[] = {
    {"train.focal_gamma", CONFIG_REAL, "2", 0, 100, NULL, "focal: how much less what is right already counts",
        KEY_FIXED | KEY_UNTUNED},
};

static bool read(const config *c, void *own, err *e) {
    float gamma = (float)config_real(c, "train.focal_gamma");
    (void)e;
    memcpy(own, &gamma, sizeof gamma);
    return true;
}

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    focal_settings s = {.smoothing = in->smoothing};
    memcpy(&s.gamma, own, sizeof s.gamma);
    return op_focal(g, in->y, in->label, in->weight, in->class_weight, s);
}

const loss loss_focal = {
    .classes = true, .keys = keys, .key_count = sizeof keys / sizeof *keys, .read = read, .add = add};
