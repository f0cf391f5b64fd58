#include "model/layer.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>

enum { NAME_MOST = 128 };

static tensor uniform(graph *g, const char *name, const char *part, shape s, double fan) {
    char full[NAME_MOST];
    int n = snprintf(full, sizeof full, "%s.%s", name, part);
    CHECK(n > 0 && n < NAME_MOST, "parameter name %s.%s is too long", name, part);
    return graph_parameter(g, full, s, (init){INIT_UNIFORM, (float)(1 / sqrt(fan))});
}

tensor layer_linear(graph *g, const char *name, tensor x, int64_t width, activation act) {
    int64_t inputs = shape_last(graph_info(g, x)->shape);
    tensor weight = uniform(g, name, "weight", shape2(width, inputs), (double)inputs);
    tensor bias = uniform(g, name, "bias", shape1(width), (double)inputs);
    return op_linear(g, x, weight, bias, act);
}

tensor layer_dropout(graph *g, tensor x, float probability) {
    return probability > 0 ? op_dropout(g, x, probability) : x;
}

static void direction_parameters(
    graph *g, const char *name, int layer, const char *suffix, int64_t inputs, int64_t hidden, tensor *w) {
    static const char *const parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int k = 0; k < LSTM_PER_DIRECTION; k++) {
        char part[32];
        snprintf(part, sizeof part, "%s_l%d%s", parts[k], layer, suffix);
        shape s = k == 0 ? shape2(4 * hidden, inputs) : k == 1 ? shape2(4 * hidden, hidden) : shape1(4 * hidden);
        w[k] = uniform(g, name, part, s, (double)hidden);
    }
}

tensor layer_bilstm(graph *g, const char *name, tensor x, int64_t hidden, int layers, float dropout) {
    for (int layer = 0; layer < layers; layer++) {
        bool last = layer == layers - 1;
        int64_t inputs = shape_last(graph_info(g, x)->shape);
        tensor w[2 * LSTM_PER_DIRECTION];
        direction_parameters(g, name, layer, "", inputs, hidden, w);
        direction_parameters(g, name, layer, "_reverse", inputs, hidden, w + LSTM_PER_DIRECTION);
        x = op_lstm(g, x, w, 2, TENSOR_NONE, TENSOR_NONE, TENSOR_NONE, !last);
        if (!last) x = layer_dropout(g, x, dropout);
    }
    return x;
}
