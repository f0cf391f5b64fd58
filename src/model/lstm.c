// The fusion model of the reference job: a bidirectional LSTM per stream, whose last states are joined with a
// projection of the vector and classified by a head of one hidden layer.
//
//   streams NAME:  nn.LSTM NAME                                    -> [B, 2 * hidden] each
//   vector:        strat = Linear, ReLU, Dropout                   -> [B, projection]
//   head:          Linear, ReLU, Dropout, Linear                   -> [B, classes]
#include "base/err.h"
#include "model/builders.h"
#include "model/layer.h"

tensor model_build_lstm(graph *g, const model_spec *s) {
    tensor parts[MODEL_STREAMS_MOST + 1];
    int count = 0;
    for (int i = 0; i < s->streams; i++) {
        const model_stream *m = &s->stream[i];
        parts[count++] = layer_bilstm(g, m->name, m->x, m->hidden, s->layers, s->dropout);
    }
    if (s->vector.id) {
        tensor p = layer_linear(g, "strat.0", s->vector, s->projection, ACT_RELU);
        parts[count++] = layer_dropout(g, p, s->dropout);
    }
    CHECK(count > 0, "lstm: a sample has neither a stream nor a vector");
    tensor joined = count > 1 ? op_concat(g, parts, count) : parts[0];
    tensor head = layer_dropout(g, layer_linear(g, "head.0", joined, s->head, ACT_RELU), s->dropout);
    return layer_linear(g, "head.3", head, s->classes, ACT_NONE);
}
