// The fusion model of the reference job: a bidirectional LSTM per stream, whose last states are joined with a
// projection of the vector and classified by a head of one hidden layer.
//
//   streams NAME:  nn.LSTM NAME                                    -> [B, 2 * hidden] each
//   vector, head:  see model_fuse in kind.h
#include "model/kind.h"
#include "model/layer.h"

#include <inttypes.h>

typedef struct {
    int layers;
    int64_t hidden[MODEL_STREAMS_MOST]; // units each way
    fusion fusion;
} settings;

static bool read(const config *c, const model_data *d, model_spec *s, err *e) {
    settings own = {.layers = kind_layers(c, 1), .fusion = kind_fusion(c)};
    (void)e;
    for (int i = 0; i < d->streams; i++) own.hidden[i] = kind_hidden(c, d->stream[i], i == 0 ? 32 : 16);
    kind_set(s, &own, sizeof own);
    return true;
}

static tensor build(graph *g, const model_spec *s) {
    settings own;
    tensor parts[MODEL_STREAMS_MOST];
    kind_get(s, &own, sizeof own);
    for (int i = 0; i < s->streams; i++)
        parts[i] = layer_bilstm(g, s->stream[i].name, s->stream[i].x, own.hidden[i], own.layers, s->dropout);
    return model_fuse(g, s, &own.fusion, parts, s->streams);
}

static void describe(const model_spec *s, model_text *t) {
    settings own;
    kind_get(s, &own, sizeof own);
    kind_say(t, ", %d layers, hidden", own.layers);
    for (int i = 0; i < s->streams; i++) kind_say(t, " %" PRId64, own.hidden[i]);
    kind_say(t, ", projection %" PRId64 ", head %" PRId64, own.fusion.projection, own.fusion.head);
}

const kind model_lstm = {.layout = WINDOW_STEPS,
    .segment = "layer",
    .reads = "hidden layers projection head dropout",
    .read = read,
    .build = build,
    .describe = describe};
