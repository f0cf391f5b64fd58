// A multi-layer perceptron over everything a sample has: its windows laid flat, and its vector.
//
//   net = Linear, activation[, Dropout], ..., Linear -> [B, outputs]
// Numbered as in nn.Sequential: net.0, net.2, ... or, with dropout, net.0, net.3, ...
#include "base/err.h"
#include "model/kind.h"
#include "model/layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTHS_MOST = 16 };

typedef struct {
    int widths;
    int64_t width[WIDTHS_MOST]; // of the hidden layers
    activation act;
} settings;

static const config_key keys[] = {
    {"model.widths", CONFIG_TEXT, "512-256", 0, 0, NULL, "mlp: widths of the hidden layers", KEY_FIXED | KEY_TUNED},
};

// "512-256" to numbers.
static bool read_widths(const config *c, settings *own, err *e) {
    const char *text = config_text(c, "model.widths");
    for (const char *at = text;;) {
        char *end;
        long long n = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (n < 1 || n > 65536 || own->widths == WIDTHS_MOST || (*end && *end != '-'))
            return config_fail(
                c, "model.widths", e, "must be up to %d widths such as 512-256, not %s", WIDTHS_MOST, text);
        own->width[own->widths++] = n;
        if (!*end) return true;
        at = end + 1;
    }
}

static bool check(const config *c, err *e) {
    settings own = {0};
    return read_widths(c, &own, e);
}

static bool read(const config *c, const model_data *d, model_spec *s, err *e) {
    settings own = {.act = kind_activation(c)};
    (void)d;
    bool ok = read_widths(c, &own, e);
    kind_set(s, &own, sizeof own);
    return ok;
}

static tensor build(graph *g, const model_spec *s) {
    settings own;
    tensor parts[MODEL_STREAMS_MOST + 1];
    int count = 0, at = 0;
    kind_get(s, &own, sizeof own);
    for (int i = 0; i < s->streams; i++) parts[count++] = s->stream[i].x;
    if (s->vector.id) parts[count++] = s->vector;
    CHECK(count > 0, "mlp: a sample has neither a stream nor a vector");
    tensor x = count > 1 ? op_concat(g, parts, count) : parts[0];
    for (int i = 0; i <= own.widths; i++) {
        bool last = i == own.widths;
        char name[16];
        snprintf(name, sizeof name, "net.%d", at);
        x = layer_linear(g, name, x, last ? model_outputs(s) : own.width[i], last ? ACT_NONE : own.act);
        if (!last) x = layer_dropout(g, x, s->dropout);
        at += s->dropout > 0 ? 3 : 2;
    }
    return x;
}

static void describe(const model_spec *s, model_text *t) {
    settings own;
    kind_get(s, &own, sizeof own);
    for (int i = 0; i < own.widths; i++) kind_say(t, "%s%" PRId64, i ? "-" : ", ", own.width[i]);
    kind_say(t, ", %s", kind_activation_name(own.act));
}

const kind model_mlp = {.layout = WINDOW_FLAT,
    KIND_KEYS(keys),
    .reads = "activation dropout",
    .check = check,
    .read = read,
    .build = build,
    .describe = describe};
