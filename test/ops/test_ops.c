// Every operator, one row or more each: its gradient against finite differences in double precision with a random
// cotangent; every fp32 device and instruction set against double; gradients overwritten over NaN and added to random
// values; guard bytes; inputs offset by 10^4; equal bits twice and on any number of threads. Operators without a
// gradient have a check of their own. Rows of agents' operators are in files of their own (ops/agents.h). An operator
// of the catalogue without a row fails the test.
#include "ops/agents.h"
#include "ops/stand.h"

#include "base/err.h"
#include "base/half.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/grad.h"
#include "ops/schedule.h"
#include "ops/strict.h"
#include "parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Rows with a gradient

static tensor linear_row(trial *t, activation act, bool bias) {
    int64_t n = t->n, I = n % 19 + 1, O = n % 23 + 2;
    tensor x = trial_input(t, shape2(n, I), 1), w = trial_weight(t, shape2(O, I), 1);
    return op_linear(t->g, x, w, bias ? trial_weight(t, shape1(O), 1) : TENSOR_NONE, act);
}

static tensor linear_none(trial *t) {
    return linear_row(t, ACT_NONE, false);
}

static tensor linear_relu(trial *t) {
    int64_t n = t->n, I = n % 19 + 1, O = n % 23 + 2;
    tensor x = trial_grid(t, shape2(n, I)), w = trial_grid(t, shape2(O, I));
    return op_linear(t->g, x, w, trial_grid_bias(t, shape1(O)), ACT_RELU);
}

static tensor linear_gelu(trial *t) {
    return linear_row(t, ACT_GELU, true);
}

static tensor linear_tanh(trial *t) {
    return linear_row(t, ACT_TANH, true);
}

static tensor linear_sigmoid(trial *t) {
    return linear_row(t, ACT_SIGMOID, true);
}

static tensor linear_sequence(trial *t) {
    tensor x = trial_input(t, shape3(t->n, 3, 5), 1), w = trial_weight(t, shape2(65, 5), 1);
    return op_linear(t->g, x, w, trial_weight(t, shape1(65), 1), ACT_NONE);
}

#ifdef TEST_CUDA

// Products that a card leaves to cuBLASLt at the largest size, 2,056 rows, and computes itself at the others; and one
// whose width it must compute itself at any size.
enum { LARGE_ROWS = 8, LARGE = 256 };

static tensor large_row(trial *t, activation act, bool bias, int64_t O) {
    tensor x = trial_weight(t, shape2(LARGE_ROWS * t->n, LARGE), 1), w = trial_weight(t, shape2(O, LARGE), 0.1f);
    return op_linear(t->g, x, w, bias ? trial_weight(t, shape1(O), 1) : TENSOR_NONE, act);
}

static tensor large_none(trial *t) {
    return large_row(t, ACT_NONE, false, LARGE);
}

static tensor large_gelu(trial *t) {
    return large_row(t, ACT_GELU, true, LARGE);
}

static tensor large_dropout(trial *t) {
    return op_dropout(t->g, large_row(t, ACT_GELU, true, LARGE), 0.2f);
}

static tensor large_dropout_steps(trial *t) {
    tensor x = trial_weight(t, shape3(t->n, LARGE_ROWS, LARGE), 1), w = trial_weight(t, shape2(LARGE, LARGE), 0.1f);
    return op_dropout(t->g, op_linear(t->g, x, w, trial_weight(t, shape1(LARGE), 1), ACT_GELU), 0.2f);
}

static tensor large_odd(trial *t) {
    return large_row(t, ACT_SIGMOID, true, LARGE + 3);
}

static tensor large_relu(trial *t) {
    tensor x = trial_grid(t, shape2(LARGE_ROWS * t->n, LARGE)), w = trial_grid(t, shape2(LARGE, LARGE));
    return op_linear(t->g, x, w, trial_grid_bias(t, shape1(LARGE)), ACT_RELU);
}

// The gradient of the first layer's result comes from the second alone, which does the slope as it stores it.
static tensor large_relu_below(trial *t) {
    tensor h = large_relu(t), w = trial_weight(t, shape2(LARGE, LARGE), 0.1f);
    return op_linear(t->g, h, w, trial_weight(t, shape1(LARGE), 1), ACT_NONE);
}

// Between layers tensors have the low type; the gradient of the one in the middle is written, then added to.
static tensor large_between(trial *t) {
    tensor x = trial_weight(t, shape3(4 * t->n, 2, LARGE), 1), w[3];
    for (int i = 0; i < 3; i++) w[i] = trial_weight(t, shape2(LARGE, LARGE), 0.1f);
    tensor b = trial_weight(t, shape1(LARGE), 1);
    tensor h = op_linear(t->g, x, w[0], b, ACT_TANH);
    return op_axpby(
        t->g, op_linear(t->g, h, w[1], TENSOR_NONE, ACT_NONE), op_linear(t->g, h, w[2], b, ACT_SIGMOID), 1, -0.5f);
}

// Few inputs over many rows, which a card streams past the weights, at the largest size in several rounds; with GELU,
// whose sums are kept, and with more inputs than one step of the products takes.
static tensor thin_row(trial *t, int64_t steps, int64_t I, int64_t O, activation act) {
    tensor x = trial_weight(t, shape3(t->n, steps, I), 1), w = trial_weight(t, shape2(O, I), 1);
    return op_linear(t->g, x, w, trial_weight(t, shape1(O), 1), act);
}

static tensor thin_none(trial *t) {
    return thin_row(t, 530, 15, 24, ACT_NONE);
}

static tensor thin_gelu(trial *t) {
    return thin_row(t, 21, 27, 72, ACT_GELU);
}

static tensor thin_relu(trial *t) {
    tensor x = trial_grid(t, shape3(t->n, 5, 8)), w = trial_grid(t, shape2(128, 8));
    return op_linear(t->g, x, w, trial_grid_bias(t, shape1(128)), ACT_RELU);
}

// A result of the low type that goes into another such layer.
static tensor thin_between(trial *t) {
    tensor h = thin_row(t, 11, 9, 16, ACT_TANH), w = trial_weight(t, shape2(40, 16), 1);
    return op_linear(t->g, h, w, TENSOR_NONE, ACT_SIGMOID);
}

// More rows than the blocks of a card take in one round: the layer alone, and with residual connections as in an
// encoder.
static tensor norm_of(trial *t, tensor x) {
    int64_t C = shape_last(graph_info(t->g, x)->shape);
    return op_layernorm(t->g, x, trial_weight(t, shape1(C), 1), trial_weight(t, shape1(C), 1), 1e-5f);
}

static tensor norm_many(trial *t) {
    return norm_of(t, trial_weight(t, shape3(t->n, 34, 128), 1));
}

static tensor norm_residual(trial *t, int64_t steps, int64_t C) {
    tensor x = trial_weight(t, shape3(t->n, steps, C), 1), w = trial_weight(t, shape2(C, C), 0.1f);
    tensor y = op_linear(t->g, norm_of(t, x), w, TENSOR_NONE, ACT_NONE);
    x = op_axpby(t->g, x, op_dropout(t->g, y, 0.25f), 1, 1);
    y = op_linear(t->g, norm_of(t, x), w, TENSOR_NONE, ACT_NONE);
    return op_axpby(t->g, x, op_dropout(t->g, y, 0.25f), 1, 0.5f);
}

static tensor norm_residual_128(trial *t) {
    return norm_residual(t, 26, 128);
}

// The same with its mean over time, which joins the last connection.
static tensor norm_residual_mean(trial *t) {
    return op_mean_time(t->g, norm_residual(t, 50, 128), TENSOR_NONE);
}

static tensor norm_residual_masked(trial *t) {
    tensor x = norm_residual(t, 19, 40);
    float *mask = trial_memory(t, (size_t)(t->n * 19) * sizeof *mask);
    for (int64_t i = 0; i < t->n * 19; i++) mask[i] = i < 19 ? 0 : trial_random(t) > 0;
    return op_mean_time(t->g, x, graph_constant(t->g, "mask", DTYPE_F32, shape2(t->n, 19), mask));
}

static tensor norm_residual_184(trial *t) {
    return norm_residual(t, 2, 184);
}

static tensor norm_residual_400(trial *t) {
    return norm_residual(t, 2, 400);
}

#endif

// Enough rows for the CPU's kernel to sum the gradients of weights by groups of them.
static tensor linear_many_rows(trial *t) {
    tensor x = trial_input(t, shape3(t->n, 5, 9), 1), w = trial_weight(t, shape2(33, 9), 1);
    return op_linear(t->g, x, w, trial_weight(t, shape1(33), 1), ACT_GELU);
}

typedef struct {
    int directions;
    bool all, start, reset;
    bool data;             // x has no gradient, as in a first layer
    int64_t T, I, H, most; // most: rows, where it is not 0
    int64_t times;         // rows for each of the trial's, where it is not 0
} lstm_case;

static tensor lstm_row(trial *t, lstm_case k) {
    int64_t n = (k.most && t->n > k.most ? k.most : t->n) * (k.times ? k.times : 1);
    tensor w[8], x = k.data ? trial_floats(t, shape3(n, k.T, k.I), -1, 1) : trial_weight(t, shape3(n, k.T, k.I), 1);
    for (int d = 0; d < k.directions; d++) {
        w[4 * d] = trial_weight(t, shape2(4 * k.H, k.I), 0.7f);
        w[4 * d + 1] = trial_weight(t, shape2(4 * k.H, k.H), 0.7f);
        w[4 * d + 2] = trial_weight(t, shape1(4 * k.H), 0.5f);
        w[4 * d + 3] = trial_weight(t, shape1(4 * k.H), 0.5f);
    }
    tensor none = TENSOR_NONE;
    tensor h0 = k.start ? trial_weight(t, shape2(n, k.directions * k.H), 1) : none;
    tensor c0 = k.start ? trial_weight(t, shape2(n, k.directions * k.H), 1) : none;
    tensor reset = k.reset ? trial_integers(t, shape2(n, k.T), 0, 2) : none;
    if (k.reset) {
        float *v = trial_memory(t, (size_t)(n * k.T) * sizeof *v);
        for (int64_t i = 0; i < n * k.T; i++) v[i] = (float)((const int32_t *)graph_info(t->g, reset)->data)[i];
        reset = graph_constant(t->g, "reset", DTYPE_F32, shape2(n, k.T), v);
    }
    return op_lstm(t->g, x, w, k.directions, h0, c0, reset, k.all);
}

static tensor lstm_both_last(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .T = 5, .I = 3, .H = 6});
}

static tensor lstm_one_all(trial *t) {
    return lstm_row(
        t, (lstm_case){.directions = 1, .all = true, .start = true, .reset = true, .T = 4, .I = 7, .H = 17});
}

static tensor lstm_both_all(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .all = true, .start = true, .T = 3, .I = 2, .H = 5});
}

// The cell state and the hidden state both matter, and both have a gradient.
static tensor lstm_state(trial *t) {
    tensor h = lstm_row(t, (lstm_case){.directions = 1, .start = true, .reset = true, .T = 3, .I = 4, .H = 16});
    return op_concat(t->g, (const tensor[]){h, graph_sibling(t->g, h, LSTM_C_LAST)}, 2);
}

static tensor lstm_one_step(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .T = 1, .I = 1, .H = 1});
}

// Sizes for which the card has kernels of their own: x narrower and wider than a tile, several tiles of h, sequences
// that are staged in parts.
static tensor lstm_data(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .data = true, .T = 9, .I = 15, .H = 32, .most = 20});
}

static tensor lstm_data_long(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .data = true, .T = 70, .I = 8, .H = 16, .most = 20});
}

static tensor lstm_data_all(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .all = true, .data = true, .T = 4, .I = 20, .H = 24, .most = 20});
}

static tensor lstm_data_small(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .all = true, .data = true, .T = 3, .I = 16, .H = 9, .most = 20});
}

static tensor lstm_data_48(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .data = true, .T = 3, .I = 6, .H = 48, .most = 20});
}

static tensor lstm_data_64(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .all = true, .data = true, .T = 3, .I = 3, .H = 60, .most = 20});
}

static tensor lstm_data_wide(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .data = true, .T = 3, .I = 30, .H = 64, .most = 20});
}

static tensor lstm_second_layer(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .T = 3, .I = 20, .H = 40, .most = 20});
}

static tensor lstm_second_layer_32(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .T = 3, .I = 64, .H = 32, .most = 20});
}

static tensor lstm_data_96(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .data = true, .T = 2, .I = 6, .H = 96, .most = 17});
}

static tensor lstm_data_121(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 1, .data = true, .T = 2, .I = 16, .H = 121, .most = 17});
}

static tensor lstm_large(trial *t) {
    return lstm_row(t,
        (lstm_case){.directions = 1, .all = true, .start = true, .reset = true, .T = 2, .I = 5, .H = 136, .most = 17});
}

static tensor lstm_large_both(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .all = true, .T = 3, .I = 16, .H = 136, .most = 7});
}

static tensor lstm_large_odd(trial *t) {
    return lstm_row(t,
        (lstm_case){.directions = 2, .all = true, .start = true, .reset = true, .T = 3, .I = 13, .H = 131, .most = 7});
}

#ifdef TEST_CUDA

static tensor lstm_large_state(trial *t) {
    tensor h =
        lstm_row(t, (lstm_case){.directions = 2, .start = true, .reset = true, .T = 3, .I = 15, .H = 256, .most = 33});
    return op_concat(t->g, (const tensor[]){h, graph_sibling(t->g, h, LSTM_C_LAST)}, 2);
}

static tensor lstm_large_data(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .data = true, .T = 3, .I = 15, .H = 256, .most = 33});
}

// Fewer units go step by step where there are many rows.
static tensor lstm_many_96(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .all = true, .data = true, .T = 2, .I = 15, .H = 96, .times = 5});
}

static tensor lstm_many_96_above(trial *t) {
    return lstm_row(t, (lstm_case){.directions = 2, .T = 2, .I = 40, .H = 96, .times = 5});
}

static tensor lstm_many_104(trial *t) {
    return lstm_row(t,
        (lstm_case){.directions = 1, .all = true, .start = true, .reset = true, .T = 3, .I = 9, .H = 104, .times = 5});
}

#endif

static tensor layernorm_row(trial *t) {
    int64_t C = t->n % 37 + 2;
    tensor x = trial_input(t, shape2(t->n, C), 1);
    return op_layernorm(t->g, x, trial_weight(t, shape1(C), 1), trial_weight(t, shape1(C), 1), 1e-5f);
}

// Widths that a card takes eight columns at a time, in one to four such runs a lane, or one by one.
static tensor layernorm_of(trial *t, int64_t C) {
    tensor x = trial_input(t, shape2(t->n, C), 1);
    return op_layernorm(t->g, x, trial_weight(t, shape1(C), 1), trial_weight(t, shape1(C), 1), 1e-5f);
}

static tensor layernorm_fours(trial *t) {
    return layernorm_of(t, 4 * t->n);
}

static tensor layernorm_eights(trial *t) {
    return layernorm_of(t, 8 * t->n % 1024);
}

static tensor layernorm_twelves(trial *t) {
    return layernorm_of(t, 12 * t->n % 1024);
}

static tensor layernorm_wide(trial *t) {
    return layernorm_of(t, 24 * t->n % 1024);
}

// A mask that leaves out every third key, and all keys of the first sample.
static tensor key_mask(trial *t, int64_t B, int64_t T) {
    float *mask = trial_memory(t, (size_t)(B * T) * sizeof *mask);
    for (int64_t i = 0; i < B * T; i++) mask[i] = i < T || i % 3 == 1 ? 0 : 1;
    return graph_constant(t->g, "mask", DTYPE_F32, shape2(B, T), mask);
}

typedef struct {
    int64_t B, T, d;
    bool masked;
    attention_settings settings;
} attention_case;

static tensor attention_row(trial *t, attention_case k) {
    tensor qkv = trial_weight(t, shape3(k.B, k.T, 3 * k.d * k.settings.heads), 1);
    return op_attention(t->g, qkv, k.masked ? key_mask(t, k.B, k.T) : TENSOR_NONE, k.settings);
}

static tensor attention_full(trial *t) {
    return attention_row(t, (attention_case){t->n, 5, 3, false, {2, false, 0}});
}

static tensor attention_long(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 60 ? t->n : 60, 5, false, {1, false, 0}});
}

static tensor attention_causal(trial *t) {
    return attention_row(t, (attention_case){3, t->n < 40 ? t->n : 40, 4, false, {3, true, 0}});
}

static tensor attention_masked(trial *t) {
    return attention_row(t, (attention_case){t->n < 40 ? t->n : 40, 7, 1, true, {5, false, 0}});
}

static tensor attention_dropout(trial *t) {
    return attention_row(t, (attention_case){t->n < 40 ? t->n : 40, 7, 3, true, {2, true, 0.4f}});
}

// Sizes for which the CPU's kernel takes several blocks of queries, and heads of several vectors of columns.
static tensor attention_blocks(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 130 ? t->n : 130, 9, true, {2, false, 0.2f}});
}

static tensor attention_causal_blocks(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 100 ? t->n : 100, 21, false, {1, true, 0.1f}});
}

static tensor attention_wide(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 37 ? t->n : 37, 90, true, {1, true, 0}});
}

// Widths that tensor cores take: steps that are no multiple of a tile, heads of one tile of columns or more, sequences
// of one piece or several.
static tensor attention_heads(trial *t) {
    return attention_row(t, (attention_case){t->n < 3 ? t->n : 3, 50, 16, false, {8, false, 0.1f}});
}

// Steps of one tile of keys and a bit, of several, of as many as a piece has.
static int64_t steps_of_piece(const trial *t) {
    return t->n < 2 ? 9 : t->n < 30 ? 20 : t->n < 64 ? t->n : 64;
}

static tensor attention_piece(trial *t) {
    return attention_row(t, (attention_case){2, steps_of_piece(t), 16, false, {3, false, 0.1f}});
}

static tensor attention_piece_8(trial *t) {
    return attention_row(t, (attention_case){3, steps_of_piece(t), 8, false, {5, false, 0}});
}

static tensor attention_heads_causal(trial *t) {
    return attention_row(t, (attention_case){3, 50, 16, true, {8, true, 0.1f}});
}

static tensor attention_8(trial *t) {
    return attention_row(t, (attention_case){t->n < 20 ? t->n : 20, 17, 8, true, {3, false, 0.3f}});
}

static tensor attention_24(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 70 ? t->n : 70, 24, true, {3, true, 0.2f}});
}

static tensor attention_64(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 70 ? t->n : 70, 64, true, {1, false, 0.2f}});
}

static tensor attention_72(trial *t) {
    return attention_row(t, (attention_case){2, t->n < 45 ? t->n : 45, 72, false, {1, true, 0}});
}

static tensor position_row(trial *t) {
    return op_position(t->g, trial_input(t, shape3(t->n, 5, 7), 1), trial_weight(t, shape2(5, 7), 1));
}

static tensor position_fours(trial *t) {
    return op_position(t->g, trial_input(t, shape3(t->n, 3, 20), 1), trial_weight(t, shape2(3, 20), 1));
}

static tensor position_eights(trial *t) {
    return op_position(t->g, trial_input(t, shape3(t->n, 3, 40), 1), trial_weight(t, shape2(3, 40), 1));
}

static tensor dropout_row(trial *t) {
    return op_dropout(t->g, trial_input(t, shape2(t->n, 13), 1), 0.3f);
}

static tensor dropout_fours(trial *t) {
    return op_dropout(t->g, trial_input(t, shape3(t->n, 3, 12), 1), 0.3f);
}

static tensor dropout_eights(trial *t) {
    return op_dropout(t->g, trial_input(t, shape3(t->n, 3, 16), 1), 0.3f);
}

static tensor concat_row(trial *t) {
    tensor a = trial_input(t, shape2(t->n, 3), 1), b = trial_input(t, shape2(t->n, 1), 1);
    return op_concat(t->g, (const tensor[]){a, b, a}, 3);
}

static tensor slice_row(trial *t) {
    return op_slice(t->g, trial_input(t, shape2(t->n, 9), 1), 2, 7);
}

static tensor reshape_row(trial *t) {
    return op_reshape(t->g, trial_input(t, shape2(t->n, 6), 1), shape3(t->n, 2, 3));
}

static tensor axpby_row(trial *t) {
    tensor x = trial_input(t, shape2(t->n, 5), 1), y = trial_input(t, shape2(t->n, 5), 1);
    return op_axpby(t->g, x, y, 1.5f, -0.5f);
}

static tensor axpby_alone(trial *t) {
    return op_axpby(t->g, trial_input(t, shape2(t->n, 5), 1), TENSOR_NONE, -2.0f, 0);
}

static tensor axpby_same(trial *t) {
    tensor x = trial_input(t, shape2(t->n, 5), 1);
    return op_axpby(t->g, x, x, 3.0f, -1.0f);
}

// A residual connection, as in an encoder's layers.
static tensor residual_row(trial *t, int64_t steps, int64_t width) {
    tensor x = trial_input(t, shape3(t->n, steps, width), 1), y = trial_input(t, shape3(t->n, steps, width), 1);
    return op_axpby(t->g, x, op_dropout(t->g, y, 0.3f), 1, 0.5f);
}

static tensor residual_fours(trial *t) {
    return residual_row(t, 3, 12);
}

static tensor residual_eights(trial *t) {
    return residual_row(t, 3, 8);
}

static tensor residual_norm(trial *t, int64_t steps, int64_t width) {
    tensor z = residual_row(t, steps, width), gain = trial_weight(t, shape1(width), 1);
    tensor n = op_layernorm(t->g, z, gain, trial_weight(t, shape1(width), 1), 1e-5f);
    return op_axpby(t->g, z, op_dropout(t->g, n, 0.2f), 1, 1);
}

static tensor residual_norm_fours(trial *t) {
    return residual_norm(t, 3, 12);
}

// Eights of elements that begin in one step and end in the next.
static tensor residual_norm_across(trial *t) {
    return residual_norm(t, 2, 12);
}

static tensor residual_norm_eights(trial *t) {
    return residual_norm(t, 3, 8);
}

#ifdef TEST_CUDA
// More than a card has warps for at a time: at the largest size one takes several rows.
static tensor residual_norm_many(trial *t) {
    return residual_norm(t, 72, 8);
}
#endif

// Wider than sixteen lanes have eights.
static tensor residual_norm_wide(trial *t) {
    return residual_norm(t, 2, 136);
}

static tensor residual_mean(trial *t) {
    return op_mean_time(t->g, residual_row(t, 11, 24), TENSOR_NONE);
}

static tensor residual_odd(trial *t) {
    return residual_row(t, 3, 5);
}

static tensor mean_time_fours(trial *t) {
    return op_mean_time(t->g, trial_input(t, shape3(t->n, 41, 8), 1), TENSOR_NONE);
}

static tensor mean_time_row(trial *t) {
    return op_mean_time(t->g, trial_input(t, shape3(t->n, 6, 5), 1), TENSOR_NONE);
}

static tensor mean_time_of(trial *t, int64_t T, int64_t C) {
    float *mask = trial_memory(t, (size_t)(t->n * T) * sizeof *mask);
    for (int64_t i = 0; i < t->n * T; i++) mask[i] = i < T ? 0 : trial_random(t) > 0;
    return op_mean_time(
        t->g, trial_input(t, shape3(t->n, T, C), 1), graph_constant(t->g, "mask", DTYPE_F32, shape2(t->n, T), mask));
}

static tensor mean_time_masked(trial *t) {
    return mean_time_of(t, 6, 5);
}

static tensor mean_time_masked_fours(trial *t) {
    return mean_time_of(t, 37, 8);
}

static tensor last_time_row(trial *t) {
    return op_last_time(t->g, trial_input(t, shape3(t->n, 4, 5), 1));
}

static tensor basis_row(trial *t) {
    return op_basis(t->g, trial_weight(t, shape2(t->n, 5), 1), trial_floats(t, shape2(5, 13), -1, 1));
}

static tensor cross_entropy_plain(trial *t) {
    tensor z = trial_input(t, shape2(t->n, 3), 2), y = trial_integers(t, shape1(t->n), 0, 3);
    return op_cross_entropy(t->g, z, y, trial_row_weights(t), TENSOR_NONE, 0);
}

static tensor cross_entropy_full(trial *t) {
    tensor z = trial_input(t, shape2(t->n, 5), 2), y = trial_integers(t, shape1(t->n), 0, 5);
    return op_cross_entropy(t->g, z, y, trial_row_weights(t), trial_floats(t, shape1(5), 0.5f, 2), 0.1f);
}

static tensor scale_rows_times(trial *t) {
    tensor x = trial_input(t, shape3(t->n, 3, 5), 1);
    return op_scale_rows(t->g, x, trial_floats(t, shape1(t->n), 0.5f, 2), (scale_rows_settings){false, 1, 0});
}

static tensor scale_rows_divided(trial *t) {
    tensor x = trial_input(t, shape2(t->n, 7), 1);
    return op_scale_rows(t->g, x, trial_floats(t, shape1(t->n), 0.5f, 2), (scale_rows_settings){true, 3, 0.5f});
}

static tensor scale_rows_shifted(trial *t) {
    tensor x = trial_input(t, shape2(t->n, 5), 1);
    return op_scale_rows(t->g, x, TENSOR_NONE, (scale_rows_settings){false, -1.5f, 0.25f});
}

static tensor focal_plain(trial *t) {
    tensor z = trial_input(t, shape2(t->n, 3), 2), y = trial_integers(t, shape1(t->n), 0, 3);
    return op_focal(t->g, z, y, trial_row_weights(t), TENSOR_NONE, (focal_settings){2, 0});
}

static tensor focal_full(trial *t) {
    tensor z = trial_input(t, shape2(t->n, 5), 2), y = trial_integers(t, shape1(t->n), 0, 5);
    tensor of = trial_floats(t, shape1(5), 0.5f, 2);
    return op_focal(t->g, z, y, trial_row_weights(t), of, (focal_settings){0.5f, 0.1f});
}

static tensor mse_row(trial *t) {
    tensor p = trial_weight(t, shape2(t->n, 7), 1);
    return op_mse(t->g, p, trial_floats(t, shape2(t->n, 7), -1, 1), trial_row_weights(t));
}

static tensor mae_row(trial *t) {
    tensor p = trial_weight(t, shape2(t->n, 7), 1);
    return op_mae(t->g, p, trial_floats(t, shape2(t->n, 7), -1, 1), trial_row_weights(t));
}

static tensor huber_row(trial *t) {
    tensor p = trial_weight(t, shape2(t->n, 7), 1);
    return op_huber(t->g, p, trial_floats(t, shape2(t->n, 7), -1, 1), trial_row_weights(t), 0.5f);
}

static tensor quantile_row(trial *t) {
    tensor p = trial_weight(t, shape2(t->n, 3 * 7), 1);
    quantile_settings levels = {3, {0.1f, 0.5f, 0.75f}};
    return op_quantile(t->g, p, trial_floats(t, shape2(t->n, 7), -1, 1), trial_row_weights(t), levels);
}

// Predictions of the targets' sign: where signs differ, the slope is not that of the value (see ops/smape.c).
static tensor smape_row(trial *t) {
    tensor x = trial_weight(t, shape2(t->n, 7), 0.4f),
           p = op_axpby(t->g, x, trial_floats(t, shape2(t->n, 7), 1, 2), 1, 1);
    return op_smape(t->g, p, trial_floats(t, shape2(t->n, 7), 0.5f, 2), trial_row_weights(t));
}

static tensor mase_row(trial *t) {
    tensor p = trial_weight(t, shape2(t->n, 7), 1);
    float *scale = trial_memory(t, (size_t)t->n * sizeof *scale);
    for (int64_t i = 0; i < t->n; i++) scale[i] = i % 7 == 3 ? 0 : 1.5f + trial_random(t);
    return op_mase(t->g, p, trial_floats(t, shape2(t->n, 7), -1, 1), trial_row_weights(t),
        graph_constant(t->g, "scale", DTYPE_F32, shape1(t->n), scale));
}

// Operators without a gradient: each runs on every device, against what it is defined to give

// A cursor of several spans, and the plain list of their samples. The spans' lengths differ, and one sample apart is
// the least that two can be.
static step_cursor spans_of(int spans, int32_t *list) {
    step_cursor c = {.spans = (uint32_t)spans, .epoch = 4};
    uint64_t first = 7;
    for (int k = 0; k < spans; k++) {
        uint64_t count = 1 + (uint64_t)(k * 5 % 4);
        c.span[k] = (step_span){first, c.count};
        for (uint64_t i = 0; i < count; i++) list[c.count++] = (int32_t)(first + i);
        first += count + 1 + (uint64_t)(k % 3);
    }
    return c;
}

// Row r is the sample at place p(position + r) of all spans, one behind the other.
static void check_spans(stand *s, tensor index, tensor weight, int rows) {
    err e;
    static const int counts[] = {1, 2, 5, 33, SPANS_MOST};
    for (size_t k = 0; k < 2 * sizeof counts / sizeof *counts; k++) {
        int32_t list[4 * SPANS_MOST], at[64];
        double w[64];
        step_cursor c = spans_of(counts[k / 2], list);
        c.shuffle = k % 2;
        trial_ok(
            solo_step_write(s->x, &(solo_step){.seed = 3}, &e) && program_seek(solo_program(s->x, false), &c, &e), &e);
        for (uint64_t done = 0; done < c.count; done += (uint64_t)rows) {
            stand_play(s, PASS_EVALUATE);
            trial_ok(solo_peek(s->x, index, false, at, &e) && solo_peek(s->x, weight, false, w, &e), &e);
            for (int r = 0; r < rows; r++) {
                uint64_t place = done + (uint64_t)r;
                bool inside = place < c.count;
                if (inside && c.shuffle) place = rng_permute(3, c.epoch, place, c.count);
                assert_int_equal(at[r], list[inside ? place : 0]);
                assert_true(stand_number(s, w, r) == (inside ? 1 : 0));
            }
        }
    }
}

static void check_draw(const place *p) {
    enum { ROWS = 33, COUNT = 50 };
    err e;
    graph *g = graph_new();
    tensor index = op_draw(g, BATCH), weight = graph_sibling(g, index, 1);
    graph_keep(g, index);
    graph_keep(g, weight);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = ROWS, .inference = true, .guard = 64});
    for (uint32_t shuffle = 0; shuffle < 2; shuffle++) {
        solo_step begin = {.seed = 3, .first = 100, .count = COUNT, .epoch = 4, .shuffle = shuffle};
        trial_ok(solo_step_write(s.x, &begin, &e), &e);
        int seen[COUNT] = {0};
        for (int pass = 0; pass < 2; pass++) {
            int32_t at[ROWS];
            double w[ROWS];
            stand_play(&s, PASS_EVALUATE);
            trial_ok(solo_peek(s.x, index, false, at, &e) && solo_peek(s.x, weight, false, w, &e), &e);
            for (int r = 0; r < ROWS; r++) {
                bool inside = pass * ROWS + r < COUNT;
                assert_true(at[r] >= 100 && at[r] < 100 + COUNT);
                assert_true(stand_number(&s, w, r) == (inside ? 1 : 0));
                if (inside) seen[at[r] - 100]++;
                if (inside && !shuffle) assert_int_equal(at[r], 100 + pass * ROWS + r);
            }
        }
        for (int i = 0; i < COUNT; i++) assert_int_equal(seen[i], 1);
        solo_step end;
        trial_ok(solo_step_read(s.x, &end, &e), &e);
        assert_int_equal(end.row, 2 * ROWS);
    }
    check_spans(&s, index, weight, ROWS);
    stand_close(&s);
}

static void check_take(const place *p) {
    err e;
    static const float table[] = {1, 2, 3, 4, 5, 6};
    static const int32_t label[] = {7, 8, 9}, index[] = {2, 0, 2, 1};
    graph *g = graph_new();
    tensor i = graph_constant(g, "index", DTYPE_I32, shape1(4), index);
    tensor wide = op_take(g, graph_constant(g, "table", DTYPE_F32, shape2(3, 2), table), i);
    tensor narrow = op_take(g, graph_constant(g, "label", DTYPE_I32, shape1(3), label), i);
    graph_keep(g, wide);
    graph_keep(g, narrow);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true, .guard = 64});
    stand_play(&s, PASS_EVALUATE);
    double v[8];
    int32_t y[4];
    trial_ok(solo_peek(s.x, wide, false, v, &e) && solo_peek(s.x, narrow, false, y, &e), &e);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(y[r], label[index[r]]);
        for (int k = 0; k < 2; k++) assert_true(stand_number(&s, v, r * 2 + k) == (double)table[index[r] * 2 + k]);
    }
    stand_close(&s);
}

// Tables of small types give the values that they stand for.
static void check_take_typed(const place *p) {
    enum { N = 5, C = 3, R = 7 };
    err e;
    static const int8_t bytes[N * C] = {-128, 127, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6},
                                  one[N] = {9, 8, 7, 6, -5};
    static const int32_t index[R] = {4, 0, 2, 2, 1, 3, 4};
    uint16_t halves[N * C];
    for (int i = 0; i < N * C; i++) halves[i] = half_narrow(0.3f * (float)(i - 7));
    halves[4] = 0x0001; // the least there is
    halves[5] = 0xFBFF; // -65504
    graph *g = graph_new();
    tensor i = graph_constant(g, "index", DTYPE_I32, shape1(R), index);
    tensor out[3] = {op_take(g, graph_constant(g, "bytes", DTYPE_I8, shape2(N, C), bytes), i),
        op_take(g, graph_constant(g, "halves", DTYPE_F16, shape2(N, C), halves), i),
        op_take(g, graph_constant(g, "one", DTYPE_I8, shape1(N), one), i)};
    for (int k = 0; k < 3; k++) graph_keep(g, out[k]);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true, .guard = 64});
    stand_play(&s, PASS_EVALUATE);
    double v[3][R * C];
    for (int k = 0; k < 3; k++) trial_ok(solo_peek(s.x, out[k], false, v[k], &e), &e);
    for (int r = 0; r < R; r++) {
        assert_true(stand_number(&s, v[2], r) == one[index[r]]);
        for (int c = 0; c < C; c++) {
            int at = index[r] * C + c;
            assert_true(stand_number(&s, v[0], r * C + c) == bytes[at]);
            assert_true(stand_number(&s, v[1], r * C + c) == (double)half_widen(halves[at]));
        }
    }
    stand_close(&s);
}

// Two series in one panel; windows that reach before their series are padded, never filled from its neighbour.
static void check_window(const place *p) {
    enum { N = 12, C = 3, T = 4, B = 5 };
    err e;
    float series[N * C];
    for (int i = 0; i < N * C; i++) series[i] = 10000.0f + (float)i * (i % 2 ? -1.0f : 1.0f);
    static const int32_t row[B] = {3, 0, 6, 11, 8}, first[B] = {0, 0, 6, 6, 6};
    for (int flat = 0; flat < 2; flat++) {
        graph *g = graph_new();
        tensor from = graph_constant(g, "series", DTYPE_F32, shape2(N, C), series);
        tensor x = op_window(g, &from, 1, graph_constant(g, "row", DTYPE_I32, shape1(B), row),
            graph_constant(g, "first", DTYPE_I32, shape1(B), first), TENSOR_NONE,
            (window_shape){T, flat ? WINDOW_FLAT : WINDOW_STEPS});
        for (int k = 0; k < 2; k++) graph_keep(g, graph_sibling(g, x, k));
        dtype_assign(g, p->precision);
        stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true, .guard = 64});
        stand_play(&s, PASS_EVALUATE);
        double v[B * T * C], mask[B * T];
        trial_ok(solo_peek(s.x, x, false, v, &e) && solo_peek(s.x, graph_sibling(g, x, 1), false, mask, &e), &e);
        for (int i = 0; i < B * T; i++) {
            int at = row[i / T] - T + 1 + i % T;
            bool inside = at >= first[i / T];
            assert_true(stand_number(&s, mask, i) == (inside ? 1 : 0));
            for (int k = 0; k < C; k++)
                assert_true(stand_number(&s, v, i * C + k) == (inside ? (double)series[at * C + k] : 0));
        }
        stand_close(&s);
    }
}

// A series of parts of every type, with a scaler and without; padding stays 0.
enum { PANEL = 12, PANEL_C = 6, PANEL_T = 4, PANEL_B = 5 };

typedef struct {
    int8_t bytes[PANEL * 2];
    float floats[PANEL];
    uint16_t halves[PANEL * 3];
    double value[PANEL * PANEL_C]; // side by side
    float scaler[2 * PANEL_C];
} panel;

static void panel_init(panel *n) {
    for (int r = 0; r < PANEL; r++) {
        double *v = n->value + r * PANEL_C;
        for (int i = 0; i < 2; i++) v[i] = n->bytes[r * 2 + i] = (int8_t)(r * 37 * (i ? -1 : 1));
        v[2] = (double)(n->floats[r] = 10000.0f + (float)r * 0.5f);
        for (int i = 0; i < 3; i++)
            v[3 + i] = (double)half_widen(n->halves[r * 3 + i] = half_narrow((float)(r + 1) * 0.37f - (float)i));
    }
    for (int c = 0; c < PANEL_C; c++) {
        n->scaler[c] = c == 2 ? 10003 : 0.75f * (float)c;
        n->scaler[PANEL_C + c] = 0.5f + (float)c;
    }
}

static void compare_typed(stand *s, tensor x, const panel *n, const int32_t *row, const int32_t *first, bool scaled) {
    err e;
    double v[PANEL_B * PANEL_T * PANEL_C];
    trial_ok(solo_peek(s->x, x, false, v, &e), &e);
    for (int i = 0; i < PANEL_B * PANEL_T * PANEL_C; i++) {
        int b = i / (PANEL_T * PANEL_C), r = row[b] - PANEL_T + 1 + i / PANEL_C % PANEL_T, c = i % PANEL_C;
        double want = r < first[b] ? 0 : n->value[r * PANEL_C + c];
        if (scaled && r >= first[b]) want = (want - (double)n->scaler[c]) * (double)n->scaler[PANEL_C + c];
        assert_true(fabs(stand_number(s, v, i) - want) <= (scaled ? 2e-6 * fabs(want) : 0));
    }
}

static void check_window_typed(const place *p) {
    static const int32_t row[PANEL_B] = {3, 0, 6, 11, 8}, first[PANEL_B] = {0, 0, 6, 6, 6};
    panel n;
    panel_init(&n);
    for (int scaled = 0; scaled < 2; scaled++) {
        graph *g = graph_new();
        tensor part[3] = {graph_constant(g, "bytes", DTYPE_I8, shape2(PANEL, 2), n.bytes),
            graph_constant(g, "floats", DTYPE_F32, shape2(PANEL, 1), n.floats),
            graph_constant(g, "halves", DTYPE_F16, shape2(PANEL, 3), n.halves)};
        tensor scaler = graph_constant(g, "scaler", DTYPE_F32, shape2(2, PANEL_C), n.scaler);
        tensor x = op_window(g, part, 3, graph_constant(g, "row", DTYPE_I32, shape1(PANEL_B), row),
            graph_constant(g, "first", DTYPE_I32, shape1(PANEL_B), first), scaled ? scaler : TENSOR_NONE,
            (window_shape){PANEL_T, scaled ? WINDOW_FLAT : WINDOW_STEPS});
        graph_keep(g, x);
        dtype_assign(g, p->precision);
        stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true, .guard = 64});
        stand_play(&s, PASS_EVALUATE);
        compare_typed(&s, x, &n, row, first, scaled);
        stand_close(&s);
    }
}

// Zeros at the beginning are padding; a season may be longer than what is left.
static void check_level(const place *p) {
    enum { B = 4, T = 6 };
    err e;
    static const float x[B * T] = {0, 0, 10000, 10002, 0, 9999, 1, -3, 5, 2, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -7};
    static const double want[3][B] = {{30001.0 / 4, 17.0 / 6, 1, 7},
        {(2 + 10002.0 + 9999) / 3, (4.0 + 8 + 3 + 0 + 2) / 5, 0, 0}, {0, (1.0 + 7) / 2, 0, 0}};
    static const level_settings kinds[3] = {{LEVEL_MEAN, 1}, {LEVEL_NAIVE, 1}, {LEVEL_NAIVE, 4}};
    for (int k = 0; k < 3; k++) {
        graph *g = graph_new();
        tensor in = graph_constant(g, "x", DTYPE_F32, k ? shape3(B, T, 1) : shape2(B, T), x);
        tensor y = op_level(g, in, kinds[k]);
        graph_keep(g, y);
        dtype_assign(g, p->precision);
        stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true, .guard = 64});
        stand_play(&s, PASS_EVALUATE);
        double v[B];
        trial_ok(solo_peek(s.x, y, false, v, &e), &e);
        for (int b = 0; b < B; b++) assert_true(fabs(stand_number(&s, v, b) - want[k][b]) <= 1e-6 * want[k][b]);
        stand_close(&s);
    }
}

static void check_confusion(const place *p) {
    enum { B = 6, K = 3 };
    err e;
    static const float z[B * K] = {1, 2, 0, 5, 5, 1, 0, 0, 1, -3, -2, -1, 9, 1, 1, 0, 1, 0};
    static const int32_t label[B] = {1, 0, 2, 0, 1, 1};
    static const float weight[B] = {1, 1, 1, 1, 1, 0};
    graph *g = graph_new();
    tensor c = op_confusion(g, graph_constant(g, "z", DTYPE_F32, shape2(B, K), z),
        graph_constant(g, "label", DTYPE_I32, shape1(B), label), graph_constant(g, "w", DTYPE_F32, shape1(B), weight));
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = 1, .inference = true});
    for (int pass = 0; pass < 2; pass++) stand_play(&s, PASS_EVALUATE);
    int64_t count[K * K];
    static const int64_t want[K * K] = {2, 0, 2, 2, 2, 0, 0, 0, 2};
    trial_ok(solo_read(s.x, c, count, &e), &e);
    assert_memory_equal(count, want, sizeof want);
    stand_close(&s);
}

// A loss whose gradient is known (mse of the parameters to a target), stepped by hand beside the operators.
typedef struct {
    tensor totals, clip, seed;
    graph *g;
} descent;

#define ADAMW_USUAL .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f

enum { VALUES = 5 };
static const float descent_target[VALUES] = {1, -2, 3, 0.5f, -0.25f};
static const float descent_weight[1] = {1};

static descent descent_graph(
    const place *p, float max_norm, const adamw_settings *adam, const sgd_settings *sgd, bool moves) {
    descent d = {.g = graph_new()};
    tensor w = graph_parameter(d.g, "w", shape2(1, VALUES), (init){INIT_ONE, 0});
    tensor loss = op_mse(d.g, w, graph_constant(d.g, "target", DTYPE_F32, shape2(1, VALUES), descent_target),
        graph_constant(d.g, "weight", DTYPE_F32, shape1(1), descent_weight));
    d.totals = op_tally(d.g, loss);
    op_advance(d.g, PHASE_AFTER);
    dtype_assign(d.g, p->precision);
    d.seed = grad_build(d.g, loss);
    d.clip = op_clip(d.g, d.totals, d.seed, max_norm, moves);
    if (adam) op_adamw(d.g, d.clip, *adam);
    if (sgd) op_sgd(d.g, d.clip, *sgd);
    op_advance(d.g, PHASE_UPDATE);
    return d;
}

typedef struct {
    double w[VALUES], m[VALUES], v[VALUES], norm;
} by_hand;

static void hand_gradient(by_hand *h, double max_norm, double *g) {
    double square = 0;
    for (int i = 0; i < VALUES; i++) g[i] = 2 * (h->w[i] - (double)descent_target[i]) / VALUES;
    for (int i = 0; i < VALUES; i++) square += g[i] * g[i];
    h->norm = sqrt(square);
    double shrink = max_norm > 0 && max_norm / (h->norm + 1e-6) < 1 ? max_norm / (h->norm + 1e-6) : 1;
    for (int i = 0; i < VALUES; i++) g[i] *= shrink;
}

static void hand_adamw(by_hand *h, const adamw_settings *a, double max_norm, double lr, int t) {
    double g[VALUES], b1 = (double)a->beta1, b2 = (double)a->beta2, decay = (double)a->weight_decay;
    hand_gradient(h, max_norm, g);
    for (int i = 0; i < VALUES; i++) {
        if (a->coupled) g[i] += decay * h->w[i];
        if (!a->coupled) h->w[i] -= lr * decay * h->w[i];
        h->m[i] = b1 * h->m[i] + (1 - b1) * g[i];
        h->v[i] = b2 * h->v[i] + (1 - b2) * g[i] * g[i];
        double mhat = h->m[i] / (1 - pow(b1, t)), vhat = h->v[i] / (1 - pow(b2, t));
        h->w[i] -= lr * mhat / (sqrt(vhat) + (double)a->eps);
    }
}

static void hand_sgd(by_hand *h, const sgd_settings *a, double max_norm, double lr) {
    double g[VALUES], momentum = (double)a->momentum;
    hand_gradient(h, max_norm, g);
    for (int i = 0; i < VALUES; i++) {
        g[i] += (double)a->weight_decay * h->w[i];
        h->m[i] = momentum * h->m[i] + g[i];
        h->w[i] -= lr * (a->nesterov ? g[i] + momentum * h->m[i] : h->m[i]);
    }
}

// A warm-up over three updates, then a cosine down to 0.1 at the eighth.
static const lr_schedule hand_schedule = {.kind = SCHEDULE_COSINE, .warmup = 3, .total = 8, .start = 0.25, .end = 0.1};

static double hand_factor(const lr_schedule *s, int update) {
    if (s->kind == SCHEDULE_CONSTANT) return 1;
    if (update < 3) return 0.25 + 0.75 * update / 3;
    return update < 8 ? 0.1 + 0.9 * (1 + cos(acos(-1) * (update - 3) / 5)) / 2 : 0.1;
}

static void compare_by_hand(stand *s, const descent *d, const by_hand *h) {
    err e;
    double w[16], c[CLIP_COUNT];
    trial_ok(solo_read(s->x, graph_parameter_at(d->g, 0), w, &e) && solo_read(s->x, d->clip, c, &e), &e);
    double tolerance = stand_wide(s->p) ? 1e-12 : 2e-6;
    for (int i = 0; i < VALUES; i++) assert_true(fabs(stand_number(s, w, i) - h->w[i]) <= tolerance);
    assert_true(fabs(c[CLIP_NORM] - h->norm) <= tolerance * 4);
    assert_true(c[CLIP_IN_A_ROW] == 0 && c[CLIP_TICKET] == 0);
}

// Each step is three micro-batches of the same sample, which must give what one would: sums and normalisers cancel.
static void check_optimizer(const place *p, float max_norm, const adamw_settings *adam, const sgd_settings *sgd) {
    err e;
    static const double lr = 0.125, ones[VALUES] = {1, 1, 1, 1, 1}, scale[2] = {1, 0};
    descent d = descent_graph(p, max_norm, adam, sgd, false);
    stand s = stand_open(p, d.g, (solo_options){.rows = 1, .guard = 64});
    by_hand h = {.w = {1, 1, 1, 1, 1}};
    stand_put(&s, graph_parameter_at(d.g, 0), ones, VALUES);
    stand_put(&s, d.seed, scale, 2);
    solo_step begin = {.lr = (float)lr, .count = 100};
    trial_ok(solo_step_write(s.x, &begin, &e), &e);
    for (int t = 1; t <= 10; t++) {
        stand_play(&s, PASS_FIRST);
        stand_play(&s, PASS_NEXT);
        stand_play(&s, PASS_NEXT);
        stand_play(&s, PASS_UPDATE);
        if (adam) hand_adamw(&h, adam, (double)max_norm, lr * hand_factor(&adam->schedule, t - 1), t);
        if (sgd) hand_sgd(&h, sgd, (double)max_norm, lr * hand_factor(&sgd->schedule, t - 1));
        compare_by_hand(&s, &d, &h);
    }
    solo_step end;
    double totals[TALLY_COUNT];
    trial_ok(solo_step_read(s.x, &end, &e) && solo_read(s.x, d.totals, totals, &e), &e);
    assert_int_equal(end.update, 10);
    assert_int_equal(end.position, 30);
    assert_int_equal(end.row, 0);
    assert_true(totals[TALLY_STEP_NORM] == 3 * VALUES && totals[TALLY_NORM] == 30 * VALUES);
    stand_close(&s);
}

static void check_adamw(const place *p) {
    adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.01f};
    check_optimizer(p, 0, &a, NULL);
    check_optimizer(p, 0.25f, &a, NULL);
}

static void check_adam(const place *p) {
    adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.05f, .coupled = true};
    check_optimizer(p, 0, &a, NULL);
    check_optimizer(p, 0.25f, &a, NULL);
}

static void check_sgd(const place *p) {
    check_optimizer(p, 0, NULL, &(sgd_settings){.momentum = 0});
    check_optimizer(p, 1000, NULL, &(sgd_settings){.momentum = 0}); // a limit that no gradient comes near
    check_optimizer(p, 0.5f, NULL, &(sgd_settings){.momentum = 0.9f, .weight_decay = 0.05f});
    check_optimizer(p, 0.5f, NULL, &(sgd_settings){.momentum = 0.9f, .weight_decay = 0.05f, .nesterov = true});
}

static void check_schedule(const place *p) {
    adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.01f, .schedule = hand_schedule};
    check_optimizer(p, 0, &a, NULL);
    a.coupled = true;
    check_optimizer(p, 0, &a, NULL);
    check_optimizer(p, 0, NULL, &(sgd_settings){.momentum = 0.9f, .schedule = hand_schedule});
}

// Parameters without a gradient: what changes them is the decay alone.

typedef struct {
    const char *name;
    shape shape;
    bool weight; // decays where only weights do
} still;

static const still stills[] = {
    {"bias", {1, {37}}, false},
    {"one", {1, {1}}, false},
    {"matrix", {2, {3, 7}}, true},
    {"position", {2, {2, 20}}, false},
    {"cube", {3, {2, 2, 2}}, true},
    {"large", {2, {130, 200}}, true},
    {"gain", {1, {20001}}, false},
    {"last", {2, {1, 16}}, true},
};
enum { STILLS = sizeof stills / sizeof *stills };

// Only an update; what a loss would leave to it is set by hand.
static graph *still_graph(const adamw_settings *adam, const sgd_settings *sgd, tensor *totals, tensor *seed) {
    graph *g = graph_new();
    *totals = graph_state(g, "totals", DTYPE_F64, shape1(TALLY_COUNT));
    for (int i = 0; i < STILLS; i++) {
        tensor t = graph_parameter(g, stills[i].name, stills[i].shape, (init){INIT_ONE, 0});
        if (strcmp(stills[i].name, "position") == 0) graph_undecayed(g, t);
        assert_true(graph_decays(g, t) == stills[i].weight);
    }
    *seed = graph_state(g, "root", DTYPE_F32, shape1(2));
    tensor clip = op_clip(g, *totals, *seed, 0, false);
    if (adam) op_adamw(g, clip, *adam);
    if (sgd) op_sgd(g, clip, *sgd);
    op_advance(g, PHASE_UPDATE);
    return g;
}

static void compare_still(const stand *s, const void *slab, decay_scope scope, double decayed) {
    double tolerance = stand_wide(s->p) ? 1e-12 : 2e-6;
    for (int i = 0; i < STILLS; i++) {
        const tensor_info *t = graph_info(s->g, graph_parameter_at(s->g, i));
        int64_t n = shape_count(t->shape), padded = (n + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
        double want = scope == DECAY_ALL || stills[i].weight ? decayed : 1;
        for (int64_t k = 0; k < padded; k++) {
            double is = stand_number(s, slab, t->offset + k);
            if (!(fabs(is - (k < n ? want : 0)) <= tolerance))
                fail_msg("%s: element %lld is %.9g, not %.9g", t->name, (long long)k, is, want);
        }
    }
}

// `decayed` is what a weight of 1 is after two steps.
static void check_still(const place *p, const adamw_settings *adam, const sgd_settings *sgd, double decayed) {
    err e;
    tensor totals, seed;
    graph *g = still_graph(adam, sgd, &totals, &seed);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = 1, .guard = 64});
    int64_t n = graph_slab_elements(g);
    float *ones = calloc((size_t)n, sizeof *ones);
    double *slab = calloc((size_t)n, sizeof *slab), scale[2] = {1, 0};
    assert_true(ones && slab);
    graph_initial(g, 1, ones);
    for (int64_t i = 0; i < n; i++) slab[i] = (double)ones[i];
    tensor weights = graph_slab(g, SLAB_WEIGHTS);
    trial_ok(solo_write(s.x, weights, stand_wide(p) ? (const void *)slab : ones, &e), &e);
    stand_put(&s, seed, scale, 2);
    trial_ok(solo_write(s.x, totals, (const double[TALLY_COUNT]){0, 1, 0, 1}, &e), &e);
    trial_ok(solo_step_write(s.x, &(solo_step){.lr = 0.125f, .count = 100}, &e), &e);
    for (int t = 0; t < 2; t++) stand_play(&s, PASS_UPDATE);
    trial_ok(solo_read(s.x, weights, slab, &e), &e);
    compare_still(&s, slab, adam ? adam->decay : sgd->decay, decayed);
    free(slab);
    free(ones);
    stand_close(&s);
}

// One weight from 1 on, with no gradient but its decay, under Adam.
static double adam_alone(const adamw_settings *a, double lr) {
    double w = 1, m = 0, v = 0, b1 = (double)a->beta1, b2 = (double)a->beta2;
    for (int t = 1; t <= 2; t++) {
        double g = (double)a->weight_decay * w;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        w -= lr * (m / (1 - pow(b1, t))) / (sqrt(v / (1 - pow(b2, t))) + (double)a->eps);
    }
    return w;
}

static void check_decay(const place *p) {
    double fall = 1 - 0.125 * 0.25;
    for (int scope = DECAY_ALL; scope <= DECAY_WEIGHTS; scope++) {
        adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.25f, .decay = (decay_scope)scope};
        check_still(p, &a, NULL, fall * fall);
        a.coupled = true;
        check_still(p, &a, NULL, adam_alone(&a, 0.125));
        sgd_settings plain = {.weight_decay = 0.25f, .decay = (decay_scope)scope};
        check_still(p, NULL, &plain, fall * fall);
        plain.momentum = 0.5f;
        check_still(p, NULL, &plain, fall - 0.125 * (0.25 * fall + 0.5 * 0.25));
    }
}

// The rate itself, to the bit: with weights of 0 and gradients of 1, a step leaves its negative.
static void check_rate_of(const place *p, const lr_schedule *schedule) {
    err e;
    tensor totals, seed;
    sgd_settings a = {.schedule = *schedule};
    graph *g = still_graph(NULL, &a, &totals, &seed);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = 1});
    int64_t n = graph_slab_elements(g);
    float *ones = calloc((size_t)n, sizeof *ones);
    double *wide = calloc((size_t)n, sizeof *wide), scale[2] = {1, 0}, w[64];
    assert_true(ones && wide);
    for (int64_t i = 0; i < n; i++) wide[i] = ones[i] = 1;
    stand_put(&s, seed, scale, 2);
    trial_ok(solo_write(s.x, totals, (const double[TALLY_COUNT]){0, 1, 0, 1}, &e), &e);
    trial_ok(solo_write(s.x, graph_slab(g, SLAB_GRADIENTS), stand_wide(p) ? (const void *)wide : ones, &e), &e);
    trial_ok(solo_step_write(s.x, &(solo_step){.lr = 3.3e-4f}, &e), &e);
    for (uint64_t update = 0; update < 40; update++) {
        double rate = schedule_rate(schedule, 3.3e-4f, update);
        trial_ok(solo_clear(s.x, graph_slab(g, SLAB_WEIGHTS), &e), &e);
        stand_play(&s, PASS_UPDATE);
        trial_ok(solo_read(s.x, graph_parameter_at(g, 0), w, &e), &e);
        if (stand_number(&s, w, 0) != (stand_wide(p) ? -rate : (double)(float)-rate))
            fail_msg("update %d: a rate of %.17g, not %.17g", (int)update, -stand_number(&s, w, 0), rate);
    }
    free(wide);
    free(ones);
    stand_close(&s);
}

static void check_rate(const place *p) {
    static const lr_schedule schedules[] = {
        {.kind = SCHEDULE_CONSTANT},
        {.kind = SCHEDULE_CONSTANT, .warmup = 7, .start = 0.01},
        {.kind = SCHEDULE_COSINE, .warmup = 5, .total = 33, .start = 0.01, .end = 0.003},
        {.kind = SCHEDULE_LINEAR, .warmup = 5, .total = 33, .start = 0.01, .end = 0.003},
        {.kind = SCHEDULE_STEP, .warmup = 5, .every = 3, .start = 0.01, .gamma = 0.77},
        {.kind = SCHEDULE_STEP, .every = 1, .gamma = 0.977},
        {.kind = SCHEDULE_ONE_CYCLE, .total = 37, .start = 1.0 / 25, .end = 1.0 / 25e4, .peak = 0.3 * 37 - 1},
    };
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) check_rate_of(p, &schedules[i]);
}

static void clip_state(stand *s, const descent *d, double c[CLIP_COUNT], double *scale) {
    err e;
    double root[2];
    trial_ok(solo_read(s->x, d->clip, c, &e) && solo_read(s->x, d->seed, root, &e), &e);
    *scale = stand_number(s, root, 0);
    assert_true(stand_number(s, root, 1) == 0 && c[CLIP_TICKET] == 0);
}

static void one_step(stand *s) {
    stand_play(s, PASS_FIRST);
    stand_play(s, PASS_UPDATE);
}

// A gradient that is not finite changes nothing and is counted; a scale that is not to move stays.
static void check_clip(const place *p) {
    err e;
    adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.01f};
    descent d = descent_graph(p, 1, &a, NULL, false);
    stand s = stand_open(p, d.g, (solo_options){.rows = 1});
    double bad[VALUES] = {1, 1, (double)NAN, 1, 1}, eight[2] = {8, 0}, w[16], c[CLIP_COUNT], m[16], scale;
    stand_put(&s, graph_parameter_at(d.g, 0), bad, VALUES);
    stand_put(&s, d.seed, eight, 2);
    solo_step begin = {.lr = 1, .count = 1};
    trial_ok(solo_step_write(s.x, &begin, &e), &e);
    for (int i = 0; i < 2; i++) one_step(&s);
    trial_ok(
        solo_read(s.x, graph_parameter_at(d.g, 0), w, &e) && solo_read(s.x, graph_slab(d.g, SLAB_MOMENT1), m, &e), &e);
    clip_state(&s, &d, c, &scale);
    assert_true(c[CLIP_FACTOR] == 0 && c[CLIP_NONFINITE] == 2 && c[CLIP_TAKEN] == 0 && isnan(c[CLIP_NORM]));
    assert_true(
        stand_number(&s, w, 0) == 1 && isnan(stand_number(&s, w, 2)) && stand_number(&s, m, 0) == 0 && scale == 8);
    stand_close(&s);
}

// Steps with a gradient that is not finite, between which the weights are as they were.
static void skip_steps(stand *s, const descent *d, const by_hand *h, int count) {
    double bad[VALUES] = {1, (double)INFINITY, 1, 1, (double)NAN};
    stand_put(s, graph_parameter_at(d->g, 0), bad, VALUES);
    for (int i = 0; i < count; i++) one_step(s);
    stand_put(s, graph_parameter_at(d->g, 0), h->w, VALUES);
}

// After `good` steps in a row at `scale`, one more.
static double scale_after(stand *s, const descent *d, double good, double scale) {
    err e;
    double c[CLIP_COUNT], root[2] = {scale, 0};
    trial_ok(solo_read(s->x, d->clip, c, &e), &e);
    c[CLIP_GOOD] = good;
    trial_ok(solo_write(s->x, d->clip, c, &e), &e);
    stand_put(s, d->seed, root, 2);
    one_step(s);
    clip_state(s, d, c, &scale);
    assert_true(c[CLIP_GOOD] == (good + 1 < LOSS_SCALE_PATIENCE ? good + 1 : 0));
    return scale;
}

// The loss scale changes no result; it halves at every skipped step, down to its floor, and doubles after enough good
// ones. Skipped steps do not count in AdamW's bias correction.
static void check_loss_scale(const place *p) {
    err e;
    adamw_settings a = {ADAMW_USUAL, .weight_decay = 0.01f};
    descent d = descent_graph(p, 0.25f, &a, NULL, true);
    stand s = stand_open(p, d.g, (solo_options){.rows = 1});
    double start[2] = {LOSS_SCALE_START, 0}, c[CLIP_COUNT], scale;
    by_hand h = {.w = {1, 1, 1, 1, 1}};
    stand_put(&s, graph_parameter_at(d.g, 0), h.w, VALUES);
    stand_put(&s, d.seed, start, 2);
    solo_step begin = {.lr = 0.125f, .count = 100};
    trial_ok(solo_step_write(s.x, &begin, &e), &e);
    for (int t = 1; t <= 6; t++) {
        if (t == 4) skip_steps(&s, &d, &h, 2);
        one_step(&s);
        hand_adamw(&h, &a, 0.25, 0.125, t);
        compare_by_hand(&s, &d, &h);
        clip_state(&s, &d, c, &scale);
        assert_true(scale == LOSS_SCALE_START / (t < 4 ? 1 : 4));
        assert_true(c[CLIP_TAKEN] == t && c[CLIP_NONFINITE] == (t < 4 ? 0 : 2));
        assert_true(c[CLIP_GOOD] == (t < 4 ? t : t - 3));
    }
    skip_steps(&s, &d, &h, 12);
    clip_state(&s, &d, c, &scale);
    assert_true(scale == LOSS_SCALE_FLOOR && c[CLIP_IN_A_ROW] == 12 && c[CLIP_NONFINITE] == 14 && c[CLIP_GOOD] == 0);
    assert_true(scale_after(&s, &d, LOSS_SCALE_PATIENCE - 2, 1) == 1);
    assert_true(scale_after(&s, &d, LOSS_SCALE_PATIENCE - 1, 1) == 2);
    assert_true(scale_after(&s, &d, LOSS_SCALE_PATIENCE - 1, LOSS_SCALE_MOST) == LOSS_SCALE_MOST);
    stand_close(&s);
}

// Slabs of many blocks: norm and first AdamW step of every element, and the same norm at every later step.

static float spread(int64_t i) {
    return (float)((uint32_t)(i + 1) * 2654435761u >> 8) * 0x1p-23f - 1;
}

static descent many_graph(const place *p, int64_t n, const float *target, const float *ones, const adamw_settings *a) {
    descent d = {.g = graph_new()};
    tensor w = graph_parameter(d.g, "w", shape2(n, 1), (init){INIT_ZERO, 0});
    tensor loss = op_mse(d.g, w, graph_constant(d.g, "target", DTYPE_F32, shape2(n, 1), target),
        graph_constant(d.g, "weight", DTYPE_F32, shape1(n), ones));
    d.totals = op_tally(d.g, loss);
    dtype_assign(d.g, p->precision);
    d.seed = grad_build(d.g, loss);
    d.clip = op_clip(d.g, d.totals, d.seed, 0, false);
    op_adamw(d.g, d.clip, *a);
    op_advance(d.g, PHASE_UPDATE);
    return d;
}

// Weights start at 0, so that the gradient of element i is -2 spread(i) / n.
static void check_many_of(const place *p, int64_t n) {
    err e;
    adamw_settings a = {ADAMW_USUAL};
    float *target = calloc(2 * (size_t)n, sizeof *target), *ones = target + n;
    assert_non_null(target);
    for (int64_t i = 0; i < n; i++) target[i] = spread(i);
    for (int64_t i = 0; i < n; i++) ones[i] = 1;
    descent d = many_graph(p, n, target, ones, &a);
    stand s = stand_open(p, d.g, (solo_options){.rows = 1});
    double scale[2] = {4, 0}, square = 0, c[CLIP_COUNT], norm = 0, at;
    stand_put(&s, d.seed, scale, 2);
    double *w = calloc((size_t)n, sizeof *w);
    assert_non_null(w);
    for (int t = 0; t < 3; t++) {
        solo_step begin = {.lr = t == 0 ? 1e-3f : 0, .count = 1};
        if (t == 1) trial_ok(solo_clear(s.x, graph_slab(d.g, SLAB_WEIGHTS), &e), &e);
        trial_ok(solo_step_write(s.x, &begin, &e), &e);
        one_step(&s);
        clip_state(&s, &d, c, &at);
        assert_true(c[CLIP_TAKEN] == t + 1 && (t == 0 || c[CLIP_NORM] == norm));
        norm = c[CLIP_NORM];
        if (t == 0) trial_ok(solo_read(s.x, graph_parameter_at(d.g, 0), w, &e), &e);
    }
    for (int64_t i = 0; i < n; i++) {
        double g = -2 * (double)target[i] / (double)n;
        square += g * g;
        if (!(fabs(stand_number(&s, w, i) + 1e-3 * g / (fabs(g) + 1e-8)) <= 1e-8))
            fail_msg("%lld elements: %lld is %.9g", (long long)n, (long long)i, stand_number(&s, w, i));
    }
    assert_true(fabs(norm - sqrt(square)) <= 1e-6 * norm);
    free(w);
    free(target);
    stand_close(&s);
}

static void check_many(const place *p) {
    static const int64_t sizes[] = {1, 5000, 30011, 1200007}; // of one block, of several, of more than there are
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (i < 2 || sizes[i] <= trial_size_most()) check_many_of(p, sizes[i]);
}

// The table

static const row own_rows[] = {
    {OP_linear, "linear", linear_none, NULL, true},
    {OP_linear, "linear relu", linear_relu, NULL, false},
    {OP_linear, "linear gelu", linear_gelu, NULL, false},
    {OP_linear, "linear tanh", linear_tanh, NULL, false},
    {OP_linear, "linear sigmoid", linear_sigmoid, NULL, false},
    {OP_linear, "linear over a sequence", linear_sequence, NULL, true},
    {OP_linear, "linear, many rows", linear_many_rows, NULL, true},
    {OP_lstm, "lstm both ways, last state", lstm_both_last, NULL, false},
    {OP_lstm, "lstm one way, all states, start, resets", lstm_one_all, NULL, false},
    {OP_lstm, "lstm both ways, all states, start", lstm_both_all, NULL, false},
    {OP_lstm, "lstm last h and c, start, resets", lstm_state, NULL, false},
    {OP_lstm, "lstm of one step and one unit", lstm_one_step, NULL, false},
    {OP_lstm, "lstm of data", lstm_data, NULL, false},
    {OP_lstm, "lstm of data, long", lstm_data_long, NULL, false},
    {OP_lstm, "lstm of data, all states", lstm_data_all, NULL, false},
    {OP_lstm, "lstm of data, 16 columns, 9 units", lstm_data_small, NULL, false},
    {OP_lstm, "lstm of data, 48 units", lstm_data_48, NULL, false},
    {OP_lstm, "lstm of data, 60 units, all states", lstm_data_64, NULL, false},
    {OP_lstm, "lstm of data, 30 columns, 64 units", lstm_data_wide, NULL, false},
    {OP_lstm, "lstm of a second layer", lstm_second_layer, NULL, false},
    {OP_lstm, "lstm of a second layer, 64 columns, 32 units", lstm_second_layer_32, NULL, false},
    {OP_lstm, "lstm of data, 96 units", lstm_data_96, NULL, false},
    {OP_lstm, "lstm of data, 121 units", lstm_data_121, NULL, false},
    {OP_lstm, "lstm of 136 units, all states, start, resets", lstm_large, NULL, false},
    {OP_lstm, "lstm of 136 units both ways, all states", lstm_large_both, NULL, false},
    {OP_lstm, "lstm of 131 units both ways, all states, start, resets", lstm_large_odd, NULL, false},
    {OP_layernorm, "layernorm", layernorm_row, NULL, true},
    {OP_layernorm, "layernorm, multiples of 4", layernorm_fours, NULL, true},
    {OP_layernorm, "layernorm, multiples of 8", layernorm_eights, NULL, true},
    {OP_layernorm, "layernorm, multiples of 12", layernorm_twelves, NULL, true},
    {OP_layernorm, "layernorm, multiples of 24", layernorm_wide, NULL, true},
    {OP_attention, "attention", attention_full, NULL, false},
    {OP_attention, "attention, long", attention_long, NULL, false},
    {OP_attention, "attention, causal", attention_causal, NULL, false},
    {OP_attention, "attention, masked", attention_masked, NULL, false},
    {OP_attention, "attention, causal, masked, dropout", attention_dropout, NULL, false},
    {OP_attention, "attention, several blocks", attention_blocks, NULL, false},
    {OP_attention, "attention, causal, several blocks", attention_causal_blocks, NULL, false},
    {OP_attention, "attention, wide heads", attention_wide, NULL, false},
    {OP_attention, "attention, 8 heads of 16 columns", attention_heads, NULL, false},
    {OP_attention, "attention, 8 heads of 16 columns, causal, masked", attention_heads_causal, NULL, false},
    {OP_attention, "attention, one piece", attention_piece, NULL, false},
    {OP_attention, "attention, one piece of 8 columns", attention_piece_8, NULL, false},
    {OP_attention, "attention, 8 columns", attention_8, NULL, false},
    {OP_attention, "attention, 24 columns", attention_24, NULL, false},
    {OP_attention, "attention, 64 columns", attention_64, NULL, false},
    {OP_attention, "attention, 72 columns", attention_72, NULL, false},
    {OP_position, "position", position_row, NULL, true},
    {OP_position, "position, multiples of 4", position_fours, NULL, true},
    {OP_position, "position, multiples of 8", position_eights, NULL, true},
    {OP_dropout, "dropout", dropout_row, NULL, true},
    {OP_dropout, "dropout, multiples of 4", dropout_fours, NULL, true},
    {OP_dropout, "dropout, multiples of 8", dropout_eights, NULL, true},
    {OP_concat, "concat", concat_row, NULL, true},
    {OP_slice, "slice", slice_row, NULL, true},
    {OP_reshape, "reshape", reshape_row, NULL, true},
    {OP_axpby, "axpby", axpby_row, NULL, true},
    {OP_axpby, "axpby of one", axpby_alone, NULL, true},
    {OP_axpby, "axpby of the same tensor twice", axpby_same, NULL, true},
    {OP_axpby, "residual, multiples of 4", residual_fours, NULL, true},
    {OP_axpby, "residual, multiples of 8", residual_eights, NULL, true},
    {OP_axpby, "residual", residual_odd, NULL, true},
    {OP_axpby, "residual, mean_time", residual_mean, NULL, true},
    {OP_axpby, "residual, layernorm, residual, multiples of 4", residual_norm_fours, NULL, false},
    {OP_axpby, "residual, layernorm, residual, eights across steps", residual_norm_across, NULL, false},
    {OP_axpby, "residual, layernorm, residual, multiples of 8", residual_norm_eights, NULL, false},
    {OP_axpby, "residual, layernorm, residual, 136 columns", residual_norm_wide, NULL, false},
    {OP_mean_time, "mean_time", mean_time_row, NULL, true},
    {OP_mean_time, "mean_time, multiples of 4", mean_time_fours, NULL, true},
    {OP_mean_time, "mean_time with a mask", mean_time_masked, NULL, true},
    {OP_mean_time, "mean_time with a mask, multiples of 4", mean_time_masked_fours, NULL, true},
    {OP_last_time, "last_time", last_time_row, NULL, true},
    {OP_basis, "basis", basis_row, NULL, false},
    {OP_cross_entropy, "cross_entropy", cross_entropy_plain, NULL, true},
    {OP_cross_entropy, "cross_entropy, weights, smoothing", cross_entropy_full, NULL, true},
    {OP_focal, "focal", focal_plain, NULL, true},
    {OP_focal, "focal, weights, smoothing", focal_full, NULL, true},
    {OP_mse, "mse", mse_row, NULL, false},
    {OP_mae, "mae", mae_row, NULL, false},
    {OP_huber, "huber", huber_row, NULL, false},
    {OP_quantile, "quantile", quantile_row, NULL, false},
    {OP_smape, "smape", smape_row, NULL, false},
    {OP_mase, "mase", mase_row, NULL, false},
    {OP_draw, "draw", NULL, check_draw, false},
    {OP_take, "take", NULL, check_take, false},
    {OP_take, "take of i8 and f16", NULL, check_take_typed, false},
    {OP_window, "window", NULL, check_window, false},
    {OP_window, "window of parts, with a scaler", NULL, check_window_typed, false},
    {OP_level, "level", NULL, check_level, false},
    {OP_scale_rows, "scale_rows", scale_rows_times, NULL, true},
    {OP_scale_rows, "scale_rows, divided", scale_rows_divided, NULL, true},
    {OP_scale_rows, "scale_rows, shifted alone", scale_rows_shifted, NULL, true},
    {OP_confusion, "confusion", NULL, check_confusion, false},
    {OP_tally, "tally, over micro-batches", NULL, check_sgd, false},
    {OP_clip, "clip, not finite", NULL, check_clip, false},
    {OP_clip, "clip and adamw, the loss scale", NULL, check_loss_scale, false},
    {OP_clip, "clip and adamw, many elements", NULL, check_many, false},
    {OP_adamw, "adamw", NULL, check_adamw, false},
    {OP_adamw, "adam", NULL, check_adam, false},
    {OP_adamw, "adamw, adam and sgd, a schedule", NULL, check_schedule, false},
    {OP_adamw, "adamw, adam and sgd, what decays", NULL, check_decay, false},
    {OP_sgd, "sgd", NULL, check_sgd, false},
    {OP_sgd, "sgd, the rate to the bit", NULL, check_rate, false},
    {OP_advance, "advance", NULL, check_draw, false},
};
enum { ROWS = sizeof own_rows / sizeof *own_rows, ROWS_MOST = 256 };

static row rows[ROWS_MOST];
static int row_count;

static void join_rows(const row *from, int count) {
    CHECK(row_count + count <= ROWS_MOST, "more than %d rows", ROWS_MOST);
    memcpy(rows + row_count, from, (size_t)count * sizeof *from);
    row_count += count;
}

static void test_row(void **state) {
    const row *r = *state;
    if (r->check) {
        stand_each(r->check);
        if (r->op == OP_clip || r->op == OP_adamw) stand_each_alone(r->check); // joined, they are another kernel
        return;
    }
    trial_check_gradient(r->name, r->build, 0);
    if (r->offset) trial_check_gradient(r->name, r->build, 1e4f);
}

#ifdef TEST_CUDA

typedef struct {
    const char *name;
    tensor (*build)(trial *);
} large;

static const large larges[] = {
    {"linear, large", large_none},
    {"linear gelu, large", large_gelu},
    {"linear gelu, large, dropout", large_dropout},
    {"linear gelu, large, of steps, dropout", large_dropout_steps},
    {"linear sigmoid, large and odd", large_odd},
    {"linear relu, large", large_relu},
    {"linear relu, large, below another", large_relu_below},
    {"linear, three large layers", large_between},
    {"linear, few inputs, many rows", thin_none},
    {"linear gelu, few inputs", thin_gelu},
    {"linear relu, few inputs", thin_relu},
    {"linear, two layers of few inputs", thin_between},
    {"layernorm, many rows", norm_many},
    {"residual connections, layernorm, 128 columns", norm_residual_128},
    {"residual connections, layernorm, mean_time", norm_residual_mean},
    {"residual connections, layernorm, mean_time with a mask", norm_residual_masked},
    {"residual connections, layernorm, 184 columns", norm_residual_184},
    {"residual connections, layernorm, 400 columns", norm_residual_400},
    {"residual, layernorm, residual, many rows", residual_norm_many},
    {"lstm of 136 units", lstm_large_both},
    {"lstm of 256 units both ways, last h and c, start, resets", lstm_large_state},
    {"lstm of data, 256 units both ways", lstm_large_data},
    {"lstm of 96 units both ways, many rows", lstm_many_96},
    {"lstm of 96 units both ways, many rows, a layer above", lstm_many_96_above},
    {"lstm of 104 units, many rows, all states, start, resets", lstm_many_104},
};
enum { LARGES = sizeof larges / sizeof *larges };

// The offset, which these rows do not have, leaves out finite differences, which would take minutes: the rows above
// have them.
static void test_large(void **state) {
    const large *l = *state;
    trial_check_gradient(l->name, l->build, 1);
    trial_switch((card_switches){.blaslt = "0"});
    trial_check_gradient(l->name, l->build, 1);
    trial_switch((card_switches){0});
}

#else
enum { LARGES = 0 };
#endif

static void test_every_operator_has_a_row(void **state) {
    (void)state;
    for (int o = 0; o < OP_COUNT; o++) {
        bool found = false;
        for (int i = 0; i < row_count; i++) found |= rows[i].op == (op)o;
        if (!found) fail_msg("operator %s has no row in test_ops", op_name((op)o));
    }
}

int main(void) {
    static struct CMUnitTest tests[ROWS_MOST + LARGES + 1] = {
        {"every operator has a row", test_every_operator_has_a_row, NULL, NULL, NULL}};
    join_rows(own_rows, ROWS);
    join_rows(agents_act_rows, agents_act_count);
    join_rows(agents_worlds_rows, agents_worlds_count);
    join_rows(agents_rollout_rows, agents_rollout_count);
    join_rows(agents_update_rows, agents_update_count);
    for (int i = 0; i < row_count; i++)
        tests[i + 1] = (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
#ifdef TEST_CUDA
    for (int i = 0; i < LARGES; i++)
        tests[row_count + 1 + i] =
            (struct CMUnitTest){larges[i].name, test_large, NULL, NULL, (void *)(uintptr_t)&larges[i]};
#endif
    return parts_run("operators", tests, row_count + LARGES + 1);
}
