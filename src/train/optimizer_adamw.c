// AdamW, and Adam, in which the weight decay is part of the gradient: ops/adamw.c.
#include "train/optimizer.h"

typedef struct {
    float beta1, beta2, eps;
} own_settings;

static const config_key keys[] = {
    {"train.optimizer.beta1", CONFIG_REAL, "0.9", 0, 0.999999, NULL, "adamw, adam: decay of the first moment",
        KEY_FIXED | KEY_UNTUNED},
    {"train.optimizer.beta2", CONFIG_REAL, "0.999", 0, 0.999999, NULL, "adamw, adam: decay of the second moment",
        KEY_FIXED | KEY_UNTUNED},
    {"train.optimizer.eps", CONFIG_REAL, "1.0e-8", ABOVE_0, 1, NULL, "adamw, adam: added to the denominator",
        KEY_FIXED | KEY_UNTUNED},
};

static bool read(const config *c, optimizer_settings *s, err *e) {
    own_settings own = {.beta1 = (float)config_real(c, "train.optimizer.beta1"),
        .beta2 = (float)config_real(c, "train.optimizer.beta2"),
        .eps = (float)config_real(c, "train.optimizer.eps")};
    (void)e;
    optimizer_set(s, &own, sizeof own);
    return true;
}

static void add(const optimizer_settings *s, graph *g, tensor clip, const lr_schedule *schedule) {
    own_settings own;
    optimizer_get(s, &own, sizeof own);
    op_adamw(g, clip,
        (adamw_settings){.beta1 = own.beta1,
            .beta2 = own.beta2,
            .eps = own.eps,
            .weight_decay = s->weight_decay,
            .coupled = s->kind == OPTIMIZER_adam,
            .decay = s->decay,
            .schedule = *schedule});
}

const optimizer optimizer_adamw = {keys, sizeof keys / sizeof *keys, read, add};
const optimizer optimizer_adam = {NULL, 0, read, add};
