// Models: each is one function that builds a forward graph from streams and a vector to class scores, and one row in
// model.def. Parameter names, shapes and initial values are those of the PyTorch modules that users write for the same
// model, so that weights travel both ways.
#ifndef TRADEWIND_MODEL_MODEL_H
#define TRADEWIND_MODEL_MODEL_H

#include "ops/ops.h"

enum { MODEL_STREAMS_MOST = 8, MODEL_WIDTHS_MOST = 16 };

typedef enum {
#define MODEL(kind, layout) MODEL_##kind,
#include "model/model.def"
#undef MODEL
    MODEL_COUNT
} model_kind;

typedef struct {
    const char *name;
    tensor x;       // [B, T, F], or [B, T * F] for models that want it flat
    int64_t hidden; // lstm: units each way
} model_stream;

typedef struct {
    model_kind kind;
    int streams;
    model_stream stream[MODEL_STREAMS_MOST];
    tensor vector; // [B, V] or none
    int64_t classes;
    int64_t projection, head;         // lstm: of the vector, of the joined streams
    int layers;                       // lstm
    int widths;                       // mlp
    int64_t width[MODEL_WIDTHS_MOST]; // mlp: hidden layers
    activation act;                   // mlp
    float dropout;
} model_spec;

// [B, classes]
tensor model_build(graph *g, const model_spec *s);

// By name: MODEL_COUNT when there is none.
model_kind model_find(const char *name);
const char *model_name(model_kind k);
window_layout model_layout(model_kind k);

#endif
