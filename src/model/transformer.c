// An encoder per stream, joined with a projection of the vector and classified by a head.
//
//   streams NAME:  NAME.input = Linear(F, hidden), plus NAME.position [T, hidden], 0.02 * randn at first;
//                  NAME.encoder = nn.TransformerEncoder of nn.TransformerEncoderLayer(hidden, heads, ff, dropout,
//                  activation, batch_first=True, norm_first=True), with a causal mask or none;
//                  the mean over steps, or the last                -> [B, hidden] each
//   vector, head:  see model_fuse in kind.h
#include "model/kind.h"
#include "model/layer.h"

#include <inttypes.h>
#include <stdio.h>

// Steps of a window: what attention does grows with their square.
enum { STEPS_MOST = 4096 };

typedef struct {
    int layers, heads;
    int64_t hidden[MODEL_STREAMS_MOST]; // width
    int64_t ff;                         // width between the two layers behind attention; 0: 4 times hidden
    activation act;                     // ReLU or GELU
    bool causal;                        // a step sees none after it
    bool last;                          // the last step stands for all; otherwise their mean
    fusion fusion;
} settings;

static const config_key keys[] = {
    {"model.heads", CONFIG_INT, "8", 1, 256, NULL, "transformer: heads that share a layer's width",
        KEY_FIXED | KEY_TUNED},
    {"model.ff", CONFIG_INT, "auto", 1, 65536, "auto", "transformer: width inside a layer (4 times its own)",
        KEY_FIXED | KEY_TUNED},
    {"model.causal", CONFIG_BOOL, "false", 0, 0, NULL, "transformer: a step sees none after it", KEY_FIXED | KEY_TUNED},
    {"model.pooling", CONFIG_CHOICE, "mean", 0, 0, "mean|last", "transformer: what is kept of the steps",
        KEY_FIXED | KEY_TUNED},
};

static bool read(const config *c, const model_data *d, model_spec *s, err *e) {
    settings own = {.layers = kind_layers(c, 3),
        .heads = (int)config_int(c, "model.heads"),
        .ff = config_is(c, "model.ff", "auto") ? 0 : config_int(c, "model.ff"),
        .act = kind_activation(c),
        .causal = config_bool(c, "model.causal"),
        .last = config_is(c, "model.pooling", "last"),
        .fusion = kind_fusion(c)};
    if (own.act != ACT_RELU && own.act != ACT_GELU)
        return config_fail(c, "model.activation", e, "a transformer has relu or gelu");
    for (int i = 0; i < d->streams; i++) {
        own.hidden[i] = kind_hidden(c, d->stream[i], 128);
        if (own.hidden[i] % own.heads != 0)
            return config_fail(c, "model.heads", e, "%d do not share the width %lld of stream %s evenly", own.heads,
                (long long)own.hidden[i], d->stream[i]);
    }
    kind_set(s, &own, sizeof own);
    return true;
}

static tensor build_stream(graph *g, const model_spec *s, const settings *own, int stream) {
    char name[LAYER_NAME_MOST];
    const model_stream *m = &s->stream[stream];
    int64_t hidden = own->hidden[stream];
    snprintf(name, sizeof name, "%s.input", m->name);
    tensor x = layer_linear(g, name, m->x, hidden, ACT_NONE);
    x = layer_position(g, m->name, x);
    for (int i = 0; i < own->layers; i++) {
        snprintf(name, sizeof name, "%s.encoder.layers.%d", m->name, i);
        layer_encoder_options o = {
            {own->heads, own->causal, s->dropout}, own->ff ? own->ff : 4 * hidden, own->act, m->mask};
        graph_segment_begin(g);
        x = layer_encoder(g, name, x, &o);
    }
    graph_segment_end(g);
    return own->last ? op_last_time(g, x) : op_mean_time(g, x, m->mask);
}

static tensor build(graph *g, const model_spec *s) {
    settings own;
    tensor parts[MODEL_STREAMS_MOST];
    kind_get(s, &own, sizeof own);
    for (int i = 0; i < s->streams; i++) parts[i] = build_stream(g, s, &own, i);
    return model_fuse(g, s, &own.fusion, parts, s->streams);
}

static void describe(const model_spec *s, model_text *t) {
    settings own;
    kind_get(s, &own, sizeof own);
    kind_say(t, ", %d layers, hidden", own.layers);
    for (int i = 0; i < s->streams; i++) kind_say(t, " %" PRId64, own.hidden[i]);
    kind_say(t, ", projection %" PRId64 ", head %" PRId64 ", %s", own.fusion.projection, own.fusion.head,
        kind_activation_name(own.act));
    kind_say(t, ", %d heads, inner %" PRId64 "%s, by the %s", own.heads, own.ff, own.causal ? ", causal" : "",
        own.last ? "last" : "mean");
}

const kind model_transformer = {.layout = WINDOW_STEPS,
    .steps_most = STEPS_MOST,
    .segment = "layer",
    KIND_KEYS(keys),
    .reads = "hidden layers projection head activation dropout",
    .read = read,
    .build = build,
    .describe = describe};
