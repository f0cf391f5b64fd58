#include "train/loss.h"

#include "base/err.h"

static const char names[] = "auto"
#define LOSS(name) "|" #name
#include "train/loss.def"
#undef LOSS
    ;

static const struct {
    const char *name;
    const loss *record;
} losses[] = {
#define LOSS(name) {#name, &loss_##name},
#include "train/loss.def"
#undef LOSS
};

static const config_key keys[] = {
    {"train.loss", CONFIG_CHOICE, "auto", 0, 0, names,
        "of classes or of forecasts; auto: cross_entropy where the data have labels, else mae", KEY_FIXED | KEY_TUNED},
};

const config_key *loss_common_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

const config_key *loss_keys(loss_kind k, size_t *count) {
    *count = loss_at(k)->key_count;
    return loss_at(k)->keys;
}

bool loss_read(const config *c, loss_settings *s, err *e) {
    *s = (loss_settings){.kind = LOSS_AUTO, .smoothing = (float)config_real(c, "train.label_smoothing")};
    for (int k = 0; k < LOSS_COUNT; k++) {
        if (config_is(c, "train.loss", losses[k].name)) s->kind = (loss_kind)k;
        if (losses[k].record->read && !losses[k].record->read(c, s->own[k], e)) return false;
    }
    return true;
}

loss_kind loss_for(const loss_settings *s, bool classes) {
    if (s->kind != LOSS_AUTO) return s->kind;
    return classes ? LOSS_cross_entropy : LOSS_mae;
}

const loss *loss_at(loss_kind k) {
    CHECK(k >= 0 && k < LOSS_COUNT, "loss %d", (int)k);
    return losses[k].record;
}

const char *loss_name(loss_kind k) {
    return losses[k].name;
}

quantile_settings loss_levels(const loss_settings *s) {
    loss_kind k = loss_for(s, false);
    return loss_at(k)->levels ? loss_at(k)->levels(s->own[k]) : (quantile_settings){0};
}

tensor loss_add(const loss_settings *s, loss_kind k, graph *g, const loss_inputs *in) {
    return loss_at(k)->add(g, in, s->own[k]);
}
