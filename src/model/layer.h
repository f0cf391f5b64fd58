// Layers with their parameters, named and initialised as PyTorch's modules are.
#ifndef TRADEWIND_MODEL_LAYER_H
#define TRADEWIND_MODEL_LAYER_H

#include "ops/ops.h"

// nn.Linear: NAME.weight [width, inputs], NAME.bias [width], both uniform within 1 / sqrt(inputs).
tensor layer_linear(graph *g, const char *name, tensor x, int64_t width, activation act);

// nn.Dropout; no node where the probability is 0.
tensor layer_dropout(graph *g, tensor x, float probability);

// nn.LSTM(hidden, num_layers, bidirectional=True, batch_first=True, dropout): NAME.weight_ih_l0 and so on, uniform
// within 1 / sqrt(hidden). Returns the last states of the last layer, both directions side by side: [B, 2 * hidden].
tensor layer_bilstm(graph *g, const char *name, tensor x, int64_t hidden, int layers, float dropout);

#endif
