// The fusion model of the reference job: a bidirectional LSTM per stream, whose last states are joined with a
// projection of the vector and classified by a head of one hidden layer.
//
//   streams NAME:  nn.LSTM NAME                                    -> [B, 2 * hidden] each
//   vector, head:  see model_fuse in builders.h
#include "model/builders.h"
#include "model/layer.h"

tensor model_build_lstm(graph *g, const model_spec *s) {
    tensor parts[MODEL_STREAMS_MOST];
    for (int i = 0; i < s->streams; i++) {
        const model_stream *m = &s->stream[i];
        parts[i] = layer_bilstm(g, m->name, m->x, m->hidden, s->layers, s->dropout);
    }
    return model_fuse(g, s, parts, s->streams);
}
