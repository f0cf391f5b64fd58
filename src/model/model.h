// Models: each is one function that builds a forward graph from streams and a vector to class scores or forecasts, and
// one row in model.def. Parameter names, shapes and initial values are those of the PyTorch modules that users write
// for the same model, so that weights travel both ways.
#ifndef TRADEWIND_MODEL_MODEL_H
#define TRADEWIND_MODEL_MODEL_H

#include "ops/ops.h"

enum { MODEL_STREAMS_MOST = 8, MODEL_WIDTHS_MOST = 16, MODEL_STACKS_MOST = 16, MODEL_BLOCKS_MOST = 200 };

typedef enum {
#define MODEL(kind, layout) MODEL_##kind,
#include "model/model.def"
#undef MODEL
    MODEL_COUNT
} model_kind;

// How a transformer's steps become one row.
typedef enum { POOL_MEAN, POOL_LAST } pooling;

// What the blocks of a stack of nbeats give: any values, powers of time, or waves.
typedef enum { STACK_GENERIC, STACK_TREND, STACK_SEASONALITY } stack_kind;

typedef struct {
    const char *name;
    tensor x;       // [B, T, F], or [B, T * F] for models that want it flat
    int64_t hidden; // lstm: units each way; transformer: width
    tensor mask;    // transformer: [B, T], 0 for padding, or none: padding is seen as the zeros it is
} model_stream;

typedef struct {
    model_kind kind;
    int streams;
    model_stream stream[MODEL_STREAMS_MOST];
    tensor vector;                    // [B, V] or none
    int64_t classes;                  // 0: the model forecasts
    int64_t horizon;                  // steps of a forecast; nbeats: of the one that classes are told from, too
    int64_t quantiles;                // forecasts of every step; 0 counts as 1
    int64_t projection, head;         // lstm, transformer: of the vector, of what is joined; a head of 0: none
    int layers;                       // lstm, transformer; nbeats: of a block
    int widths;                       // mlp
    int64_t width[MODEL_WIDTHS_MOST]; // mlp: hidden layers; nbeats: the first is that of a block's layers
    activation act;                   // mlp; transformer: ReLU or GELU
    float dropout;
    int heads;       // transformer
    int64_t ff;      // transformer: width between the two layers behind attention; 0: 4 times hidden
    bool causal;     // transformer: a step sees none after it
    pooling pooling; // transformer
    int stacks;      // nbeats
    stack_kind stack[MODEL_STACKS_MOST];
    int blocks; // nbeats: of a stack
    int degree; // nbeats: of a trend
} model_spec;

// Scores [B, classes], or forecasts [B, quantiles * horizon]: all steps of the first quantile, then those of the next.
tensor model_build(graph *g, const model_spec *s);

// Columns of what a model gives.
int64_t model_outputs(const model_spec *s);

// By name: MODEL_COUNT when there is none.
model_kind model_find(const char *name);
const char *model_name(model_kind k);
window_layout model_layout(model_kind k);

#endif
