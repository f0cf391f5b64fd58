// The pinball loss of forecasts, one for every quantile: ops/quantile.c.
#include "train/loss.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(quantile_settings) <= LOSS_OWN_BYTES, "the quantiles of a loss");

static const char key[] = "train.quantiles";

static const config_key keys[] = {
    {key, CONFIG_LIST, "0.1, 0.5, 0.9", 0, 0, NULL, "quantile: which, rising", KEY_FIXED | KEY_TUNED},
};

static bool read(const config *c, void *own, err *e) {
    quantile_settings q = {0};
    for (size_t i = 0; i < config_items(c, key); i++) {
        char *end;
        float v = strtof(config_item(c, key, i), &end);
        if (*end || !(v > 0 && v < 1) || i == QUANTILES_MOST || (i && v <= q.level[i - 1]))
            return config_fail(
                c, key, e, "must be up to %d rising numbers between 0 and 1, such as [0.1, 0.5, 0.9]", QUANTILES_MOST);
        q.level[q.count++] = v;
    }
    memcpy(own, &q, sizeof q);
    return q.count > 0 || config_fail(c, key, e, "is empty; name a quantile such as 0.5");
}

static quantile_settings levels(const void *own) {
    quantile_settings q;
    memcpy(&q, own, sizeof q);
    return q;
}

static tensor add(graph *g, const loss_inputs *in, const void *own) {
    return op_quantile(g, in->y, in->target, in->weight, levels(own));
}

const loss loss_quantile = {
    .degree = 1, .keys = keys, .key_count = sizeof keys / sizeof *keys, .read = read, .levels = levels, .add = add};
