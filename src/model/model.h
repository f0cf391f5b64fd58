// Models: each is one file with its keys, its checks, its graph and its description, and one row in model.def.
// Parameter names, shapes and initial values are those of the PyTorch modules that users write for the same model, so
// that weights travel both ways.
#ifndef TRADEWIND_MODEL_MODEL_H
#define TRADEWIND_MODEL_MODEL_H

#include "base/config.h"
#include "ops/ops.h"

enum {
    MODEL_STREAMS_MOST = 8,
    MODEL_SEGMENTS_MOST = 3200, // segments of a graph (graph_segment_begin) that a model makes at most
    MODEL_OWN_BYTES = 256,      // settings of one kind of model
};

typedef enum {
#define MODEL(kind) MODEL_##kind,
#include "model/model.def"
#undef MODEL
    MODEL_COUNT
} model_kind;

typedef struct {
    const char *name;
    tensor x;    // [B, T, F], or [B, T * F] for models that want it flat
    tensor mask; // [B, T], 0 for padding, or none: padding is seen as the zeros it is
} model_stream;

// A model as it will be built: common to all kinds, and the settings of its own kind, which its file alone reads.
typedef struct {
    model_kind kind;
    int streams;
    model_stream stream[MODEL_STREAMS_MOST];
    tensor vector;     // [B, V] or none
    int64_t classes;   // 0: the model forecasts
    int64_t horizon;   // steps of a forecast; 0: the model tells classes
    int64_t quantiles; // forecasts of every step; 0 counts as 1
    float dropout;
    unsigned char own[MODEL_OWN_BYTES];
} model_spec;

// The data and the loss, as far as a model has to know them.
typedef struct {
    int streams;
    const char *stream[MODEL_STREAMS_MOST]; // names, which outlive the model_spec
    bool series;                            // the data are one series, and targets are its next values
    int64_t classes, horizon, quantiles;    // as in model_spec
} model_data;

// Keys of several kinds of models, and of one kind: rows for a table of keys.
const config_key *model_common_keys(size_t *count);
const config_key *model_keys(model_kind k, size_t *count);

// True where a kind of model reads a key, "model.layers" or "model.hidden.fast".
bool model_reads(model_kind k, const char *path);

// Fills `s`, without tensors, from a description that config_check has passed. False where keys contradict each other
// or the data. Keys of the other kinds are checked too, each by itself.
bool model_read(const config *c, const model_data *d, model_spec *s, err *e);

// Scores [B, classes], or forecasts [B, quantiles * horizon]: all steps of the first quantile, then those of the next.
tensor model_build(graph *g, const model_spec *s);

// Columns of what a model gives.
int64_t model_outputs(const model_spec *s);

// One line: the kind and all settings that its graph depends on. Returns `text`.
const char *model_describe(const model_spec *s, char *text, size_t room);

// By name: MODEL_COUNT when there is none.
model_kind model_find(const char *name);
const char *model_name(model_kind k);

// Layout of its streams; the longest window that it takes, 0 for any; the unit that can be recomputed, "layer" or
// "block", NULL for none.
window_layout model_layout(model_kind k);
int64_t model_steps_most(model_kind k);
const char *model_segment(model_kind k);

#endif
