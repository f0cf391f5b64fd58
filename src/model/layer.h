// Layers with their parameters, named and initialised as PyTorch's modules are.
#ifndef TRADEWIND_MODEL_LAYER_H
#define TRADEWIND_MODEL_LAYER_H

#include "ops/ops.h"

enum { LAYER_NAME_MOST = 160 };

// nn.Linear: NAME.weight [width, inputs], NAME.bias [width], both uniform within 1 / sqrt(inputs).
tensor layer_linear(graph *g, const char *name, tensor x, int64_t width, activation act);

// nn.Dropout; no node where the probability is 0.
tensor layer_dropout(graph *g, tensor x, float probability);

// nn.LSTM(hidden, num_layers, bidirectional=True, batch_first=True, dropout): NAME.weight_ih_l0 and so on, uniform
// within 1 / sqrt(hidden). Returns the last states of the last layer, both directions side by side: [B, 2 * hidden].
tensor layer_bilstm(graph *g, const char *name, tensor x, int64_t hidden, int layers, float dropout);

// State of an LSTM that remembers from call to call: its states before the first step, and the steps that begin anew
// (ops/lstm.c), each none where it is not wanted.
typedef struct {
    tensor h, c, reset;
} layer_memory;

// nn.LSTM(hidden, batch_first=True), one layer in one direction: NAME.weight_ih_l0 and so on. Returns all states
// [B, T, hidden] or the last one [B, hidden]; graph_sibling finds LSTM_H_LAST and LSTM_C_LAST.
tensor layer_lstm(graph *g, const char *name, tensor x, int64_t hidden, layer_memory before, bool all_states);

// nn.LayerNorm: NAME.weight of ones and NAME.bias of zeros, over the last dimension; eps 1e-5.
tensor layer_norm(graph *g, const char *name, tensor x);

// A learned position for every step of x [B, T, D]: NAME.position [T, D], normal with a deviation of 0.02, added.
tensor layer_position(graph *g, const char *name, tensor x);

typedef struct {
    attention_settings attention; // its dropout is that of the whole layer
    int64_t ff;
    activation act;
    tensor mask; // [B, T] or none: keys that are padding
} layer_encoder_options;

// nn.TransformerEncoderLayer(norm_first=True, batch_first=True): NAME.self_attn.in_proj_weight and so on.
tensor layer_encoder(graph *g, const char *name, tensor x, const layer_encoder_options *o);

#endif
