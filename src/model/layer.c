#include "model/layer.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>

static tensor parameter(graph *g, const char *name, const char *part, shape s, init begin) {
    char full[LAYER_NAME_MOST];
    int n = snprintf(full, sizeof full, "%s.%s", name, part);
    CHECK(n > 0 && n < LAYER_NAME_MOST, "parameter name %s.%s is too long", name, part);
    return graph_parameter(g, full, s, begin);
}

static tensor uniform(graph *g, const char *name, const char *part, shape s, double fan) {
    return parameter(g, name, part, s, (init){INIT_UNIFORM, (float)(1 / sqrt(fan))});
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
        graph_segment_begin(g);
        direction_parameters(g, name, layer, "", inputs, hidden, w);
        direction_parameters(g, name, layer, "_reverse", inputs, hidden, w + LSTM_PER_DIRECTION);
        x = op_lstm(g, x, w, 2, TENSOR_NONE, TENSOR_NONE, TENSOR_NONE, !last);
        if (!last) x = layer_dropout(g, x, dropout);
    }
    graph_segment_end(g);
    return x;
}

tensor layer_lstm(graph *g, const char *name, tensor x, int64_t hidden, layer_memory before, bool all_states) {
    tensor w[LSTM_PER_DIRECTION];
    direction_parameters(g, name, 0, "", shape_last(graph_info(g, x)->shape), hidden, w);
    return op_lstm(g, x, w, 1, before.h, before.c, before.reset, all_states);
}

tensor layer_norm(graph *g, const char *name, tensor x) {
    shape s = shape1(shape_last(graph_info(g, x)->shape));
    tensor gain = parameter(g, name, "weight", s, (init){INIT_ONE, 0});
    return op_layernorm(g, x, gain, parameter(g, name, "bias", s, (init){INIT_ZERO, 0}), 1e-5f);
}

tensor layer_position(graph *g, const char *name, tensor x) {
    shape s = graph_info(g, x)->shape;
    tensor position = parameter(g, name, "position", shape2(s.dim[1], s.dim[2]), (init){INIT_NORMAL, 0.02f});
    graph_undecayed(g, position);
    return op_position(g, x, position);
}

static const char *part_name(char *to, const char *name, const char *part) {
    int n = snprintf(to, LAYER_NAME_MOST, "%s.%s", name, part);
    CHECK(n > 0 && n < LAYER_NAME_MOST, "parameter name %s.%s is too long", name, part);
    return to;
}

// nn.MultiheadAttention of a sequence with itself. Its in_proj is uniform as Xavier has it, its biases begin at 0.
static tensor self_attention(graph *g, const char *name, tensor x, const layer_encoder_options *o) {
    int64_t D = shape_last(graph_info(g, x)->shape);
    init zero = {INIT_ZERO, 0};
    tensor in = parameter(
        g, name, "in_proj_weight", shape2(3 * D, D), (init){INIT_UNIFORM, (float)sqrt(6.0 / (4.0 * (double)D))});
    x = op_linear(g, x, in, parameter(g, name, "in_proj_bias", shape1(3 * D), zero), ACT_NONE);
    x = op_attention(g, x, o->mask, o->attention);
    tensor out = uniform(g, name, "out_proj.weight", shape2(D, D), (double)D);
    return op_linear(g, x, out, parameter(g, name, "out_proj.bias", shape1(D), zero), ACT_NONE);
}

tensor layer_encoder(graph *g, const char *name, tensor x, const layer_encoder_options *o) {
    char part[LAYER_NAME_MOST];
    float dropout = o->attention.dropout;
    int64_t D = shape_last(graph_info(g, x)->shape);
    tensor y = layer_norm(g, part_name(part, name, "norm1"), x);
    y = self_attention(g, part_name(part, name, "self_attn"), y, o);
    x = op_axpby(g, x, layer_dropout(g, y, dropout), 1, 1);
    y = layer_norm(g, part_name(part, name, "norm2"), x);
    y = layer_linear(g, part_name(part, name, "linear1"), y, o->ff, o->act);
    y = layer_linear(g, part_name(part, name, "linear2"), layer_dropout(g, y, dropout), D, ACT_NONE);
    return op_axpby(g, x, layer_dropout(g, y, dropout), 1, 1);
}
