// Stochastic gradient descent, with momentum: ops/sgd.c.
#include "train/optimizer.h"

typedef struct {
    float momentum;
    bool nesterov;
} own_settings;

static const config_key keys[] = {
    {"train.optimizer.momentum", CONFIG_REAL, "0.9", 0, 0.999999, NULL, "sgd: momentum", KEY_FIXED | KEY_UNTUNED},
    {"train.optimizer.nesterov", CONFIG_BOOL, "false", 0, 0, NULL, "sgd: Nesterov's momentum", KEY_FIXED | KEY_UNTUNED},
};

static bool read(const config *c, optimizer_settings *s, err *e) {
    own_settings own = {.momentum = (float)config_real(c, "train.optimizer.momentum"),
        .nesterov = config_bool(c, "train.optimizer.nesterov")};
    optimizer_set(s, &own, sizeof own);
    if (!own.nesterov || own.momentum > 0) return true;
    return config_fail(c, "train.optimizer.nesterov", e, "needs a momentum; raise train.optimizer.momentum");
}

static void add(const optimizer_settings *s, graph *g, tensor clip, const lr_schedule *schedule) {
    own_settings own;
    optimizer_get(s, &own, sizeof own);
    op_sgd(g, clip,
        (sgd_settings){.momentum = own.momentum,
            .weight_decay = s->weight_decay,
            .nesterov = own.nesterov,
            .decay = s->decay,
            .schedule = *schedule});
}

const optimizer optimizer_sgd = {keys, sizeof keys / sizeof *keys, read, add};
