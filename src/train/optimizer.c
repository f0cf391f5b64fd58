#include "train/optimizer.h"

#include "base/err.h"

#include <string.h>

// "|adamw|adam|...": the names.
static const char names[] =
#define OPTIMIZER(name) "|" #name
#include "train/optimizer.def"
#undef OPTIMIZER
    ;

static const struct {
    const char *name;
    const optimizer *record;
} optimizers[] = {
#define OPTIMIZER(name) {#name, &optimizer_##name},
#include "train/optimizer.def"
#undef OPTIMIZER
};

static const config_key keys[] = {
    {"train.optimizer.kind", CONFIG_CHOICE, "adamw", 0, 0, names + 1, "the optimizer", KEY_FIXED | KEY_TUNED},
    {"train.optimizer.lr", CONFIG_REAL, "1.0e-3", ABOVE_0, 100, NULL, "learning rate", KEY_FIXED | KEY_UNTUNED},
    {"train.optimizer.weight_decay", CONFIG_REAL, "0.01", 0, 100, NULL, "weight decay", KEY_FIXED | KEY_UNTUNED},
    {"train.optimizer.decay", CONFIG_CHOICE, "all", 0, 0, "all|weights",
        "what decays: all parameters, as in PyTorch, or weights but not biases, gains and positions",
        KEY_FIXED | KEY_UNTUNED},
};

const config_key *optimizer_common_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

const config_key *optimizer_keys(optimizer_kind k, size_t *count) {
    *count = optimizers[k].record->key_count;
    return optimizers[k].record->keys;
}

bool optimizer_reads(optimizer_kind k, const char *path) {
    bool reads = false;
    for (int i = 0; i < OPTIMIZER_COUNT; i++) {
        const optimizer *o = optimizers[i].record;
        reads |= o->read == optimizers[k].record->read && config_row(o->keys, o->key_count, path);
    }
    return reads;
}

bool optimizer_read(const config *c, optimizer_settings *s, err *e) {
    *s = (optimizer_settings){.weight_decay = (float)config_real(c, "train.optimizer.weight_decay"),
        .decay = config_is(c, "train.optimizer.decay", "weights") ? DECAY_WEIGHTS : DECAY_ALL};
    for (int k = 0; k < OPTIMIZER_COUNT; k++)
        if (config_is(c, "train.optimizer.kind", optimizers[k].name)) s->kind = (optimizer_kind)k;
    return optimizers[s->kind].record->read(c, s, e);
}

void optimizer_add(const optimizer_settings *s, graph *g, tensor clip, const lr_schedule *schedule) {
    optimizers[s->kind].record->add(s, g, clip, schedule);
}

const char *optimizer_name(optimizer_kind k) {
    return optimizers[k].name;
}

void optimizer_set(optimizer_settings *s, const void *own, size_t bytes) {
    CHECK(bytes <= sizeof s->own, "%zu bytes of settings of an optimizer", bytes);
    memcpy(s->own, own, bytes);
}

void optimizer_get(const optimizer_settings *s, void *own, size_t bytes) {
    memcpy(own, s->own, bytes);
}
