// An encoder per stream, joined with a projection of the vector and classified by a head.
//
//   streams NAME:  NAME.input = Linear(F, hidden), plus NAME.position [T, hidden], 0.02 * randn at first;
//                  NAME.encoder = nn.TransformerEncoder of nn.TransformerEncoderLayer(hidden, heads, ff, dropout,
//                  activation, batch_first=True, norm_first=True), with a causal mask or none;
//                  the mean over steps, or the last                -> [B, hidden] each
//   vector, head:  see model_fuse in builders.h
#include "model/builders.h"
#include "model/layer.h"

#include <stdio.h>

static tensor build_stream(graph *g, const model_spec *s, const model_stream *m) {
    char name[LAYER_NAME_MOST];
    snprintf(name, sizeof name, "%s.input", m->name);
    tensor x = layer_linear(g, name, m->x, m->hidden, ACT_NONE);
    x = layer_position(g, m->name, x);
    for (int i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "%s.encoder.layers.%d", m->name, i);
        layer_encoder_options o = {{s->heads, s->causal, s->dropout}, s->ff ? s->ff : 4 * m->hidden, s->act, m->mask};
        graph_segment_begin(g);
        x = layer_encoder(g, name, x, &o);
    }
    graph_segment_end(g);
    return s->pooling == POOL_LAST ? op_last_time(g, x) : op_mean_time(g, x, m->mask);
}

tensor model_build_transformer(graph *g, const model_spec *s) {
    tensor parts[MODEL_STREAMS_MOST];
    for (int i = 0; i < s->streams; i++) parts[i] = build_stream(g, s, &s->stream[i]);
    return model_fuse(g, s, parts, s->streams);
}
