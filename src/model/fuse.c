// Parts that models of several streams share: the vector's projection, joining, and the head.
#include "base/err.h"
#include "model/kind.h"
#include "model/layer.h"

#include <string.h>

tensor model_head(graph *g, const model_spec *s, int64_t head, tensor x) {
    if (!head) return layer_linear(g, "head.0", x, model_outputs(s), ACT_NONE);
    x = layer_dropout(g, layer_linear(g, "head.0", x, head, ACT_RELU), s->dropout);
    return layer_linear(g, "head.3", x, model_outputs(s), ACT_NONE);
}

tensor model_fuse(graph *g, const model_spec *s, const fusion *f, const tensor *streams, int count) {
    tensor parts[MODEL_STREAMS_MOST + 1];
    memcpy(parts, streams, (size_t)count * sizeof *parts);
    if (s->vector.id) {
        tensor p = layer_linear(g, "strat.0", s->vector, f->projection, ACT_RELU);
        parts[count++] = layer_dropout(g, p, s->dropout);
    }
    CHECK(count > 0, "%s: a sample has neither a stream nor a vector", model_name(s->kind));
    return model_head(g, s, f->head, count > 1 ? op_concat(g, parts, count) : parts[0]);
}
