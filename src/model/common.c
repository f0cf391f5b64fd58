// Parts that kinds of models share: keys, the settings of a kind inside a model_spec, and text.
#include "base/err.h"
#include "model/kind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// "|lstm|mlp|...": the kinds.
static const char kinds[] =
#define MODEL(kind) "|" #kind
#include "model/model.def"
#undef MODEL
    ;

static const char *const activations[] = {
    [ACT_NONE] = "none", [ACT_RELU] = "relu", [ACT_GELU] = "gelu", [ACT_TANH] = "tanh", [ACT_SIGMOID] = "sigmoid"};

static const config_key keys[] = {
    {"model.kind", CONFIG_CHOICE, "lstm", 0, 0, kinds + 1, "the model", KEY_FIXED | KEY_TUNED},
    {"model.hidden.*", CONFIG_INT, NULL, 1, 4096, NULL,
        "by stream; lstm: units each way (32 for the first, 16 for others); transformer: width (128)",
        KEY_FIXED | KEY_TUNED},
    {"model.hidden", CONFIG_INT, NULL, 1, 4096, NULL, "or one number for all streams", KEY_FIXED | KEY_TUNED},
    {"model.layers", CONFIG_INT, "auto", 1, 16, "auto", "lstm, transformer: layers (1, 3); nbeats: of a block (4)",
        KEY_FIXED | KEY_TUNED},
    {"model.projection", CONFIG_INT, "32", 1, 65536, NULL, "lstm, transformer: width that the vector is projected to",
        KEY_FIXED | KEY_TUNED},
    {"model.head", CONFIG_INT, "64", 0, 65536, NULL,
        "lstm, transformer, nbeats with classes: width of the head's hidden layer; 0 for none", KEY_FIXED | KEY_TUNED},
    {"model.activation", CONFIG_CHOICE, "relu", 0, 0, "relu|gelu|tanh|sigmoid",
        "mlp; transformer (relu or gelu): activation", KEY_FIXED | KEY_TUNED},
    {"model.symbol", CONFIG_BOOL, "false", 0, 0, NULL, "every model: the instrument as an input, one column each",
        KEY_FIXED | KEY_TUNED},
    {"model.dropout", CONFIG_REAL, "0.3", 0, 0.95, NULL,
        "probability of zeroing a unit in training; not in the blocks of nbeats", KEY_FIXED | KEY_TUNED},
};

const config_key *model_common_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

int64_t kind_hidden(const config *c, const char *stream, int64_t usual) {
    char path[160];
    if (config_given_value(c, "model.hidden")) return config_int(c, "model.hidden");
    snprintf(path, sizeof path, "model.hidden.%s", stream);
    return config_has(c, path) ? config_int(c, path) : usual;
}

int kind_layers(const config *c, int usual) {
    return config_is(c, "model.layers", "auto") ? usual : (int)config_int(c, "model.layers");
}

activation kind_activation(const config *c) {
    int a = ACT_RELU;
    while (!config_is(c, "model.activation", activations[a])) a++;
    return (activation)a;
}

const char *kind_activation_name(activation a) {
    return activations[a];
}

fusion kind_fusion(const config *c) {
    return (fusion){config_int(c, "model.projection"), config_int(c, "model.head")};
}

void kind_set(model_spec *s, const void *own, size_t bytes) {
    CHECK(bytes <= sizeof s->own, "%zu bytes of settings of a model", bytes);
    memcpy(s->own, own, bytes);
}

void kind_get(const model_spec *s, void *own, size_t bytes) {
    memcpy(own, s->own, bytes);
}

void kind_say(model_text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->to + t->used, t->room - t->used, fmt, args);
    va_end(args);
    if (n > 0) t->used += (size_t)n < t->room - t->used ? (size_t)n : t->room - t->used - 1;
}
