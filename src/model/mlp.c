// A multi-layer perceptron over everything a sample has: its windows laid flat, and its vector.
//
//   net = Linear, activation[, Dropout], ..., Linear -> [B, outputs]
// Numbered as in nn.Sequential: net.0, net.2, ... or, with dropout, net.0, net.3, ...
#include "base/err.h"
#include "model/builders.h"
#include "model/layer.h"

#include <stdio.h>

tensor model_build_mlp(graph *g, const model_spec *s) {
    tensor parts[MODEL_STREAMS_MOST + 1];
    int count = 0, at = 0;
    for (int i = 0; i < s->streams; i++) parts[count++] = s->stream[i].x;
    if (s->vector.id) parts[count++] = s->vector;
    CHECK(count > 0, "mlp: a sample has neither a stream nor a vector");
    tensor x = count > 1 ? op_concat(g, parts, count) : parts[0];
    for (int i = 0; i <= s->widths; i++) {
        bool last = i == s->widths;
        char name[16];
        snprintf(name, sizeof name, "net.%d", at);
        x = layer_linear(g, name, x, last ? model_outputs(s) : s->width[i], last ? ACT_NONE : s->act);
        if (!last) x = layer_dropout(g, x, s->dropout);
        at += s->dropout > 0 ? 3 : 2;
    }
    return x;
}
