// The precision pass: the type of every tensor of a small graph, in every precision.
#include "graph/dtype.h"

#include "graph/grad.h"
#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// Who decides a tensor's type.
typedef enum {
    IS_LOW,   // the low type: bf16 or fp16 where the precision has one
    IS_FP32,  // fp32 in every precision but fp64
    IS_FIXED, // what it was made with, also in fp64: integers
    IS_WIDE,  // f64 always: sums
} expected;

enum { TENSORS_MOST = 64 };

typedef struct {
    graph *g;
    tensor loss, seed;
    struct {
        const char *what;
        tensor t;
        expected type;
        dtype fixed; // IS_FIXED
    } row[TENSORS_MOST];
    int rows;
    tensor low_read[16], plain_read[8]; // parameters with and without a reader of low precision
    int lows, plains;
} sample;

static tensor expect(sample *s, const char *what, tensor t, expected type, dtype fixed) {
    s->row[s->rows].what = what;
    s->row[s->rows].t = t;
    s->row[s->rows].type = type;
    s->row[s->rows].fixed = fixed;
    s->rows++;
    return t;
}

static tensor weight(sample *s, const char *name, shape sh, bool low) {
    tensor t = expect(s, name, graph_parameter(s->g, name, sh, (init){INIT_ONE, 0}), IS_FP32, DTYPE_F32);
    if (low) {
        s->low_read[s->lows++] = t;
    } else {
        s->plain_read[s->plains++] = t;
    }
    return t;
}

// Windows and a vector gathered by index.
static void build_inputs(sample *s, tensor *index, tensor *x, tensor *vector) {
    static const float series[8 * 3];
    static const int32_t rows[8];
    static const int8_t bytes[8];
    static const uint16_t half[8];
    graph *g = s->g;
    *index = expect(s, "index", op_draw(g, BATCH), IS_FIXED, DTYPE_I32);
    expect(s, "row weight", graph_sibling(g, *index, 1), IS_FP32, DTYPE_F32);
    tensor from = expect(s, "series", graph_constant(g, "series", DTYPE_F32, shape2(8, 3), series), IS_FP32, DTYPE_F32);
    tensor last = expect(s, "rows", graph_constant(g, "rows", DTYPE_I32, shape1(8), rows), IS_FIXED, DTYPE_I32);
    tensor row = expect(s, "taken rows", op_take(g, last, *index), IS_FIXED, DTYPE_I32);
    window_shape size = {4, WINDOW_FLAT};
    *x = expect(s, "window", op_window(g, &from, 1, row, row, TENSOR_NONE, size), IS_FP32, DTYPE_F32);
    expect(s, "mask", graph_sibling(g, *x, 1), IS_FP32, DTYPE_F32);
    *vector = expect(s, "taken vector", op_take(g, from, *index), IS_FP32, DTYPE_F32);
    tensor narrow = graph_constant(g, "bytes", DTYPE_I8, shape1(8), bytes);
    expect(s, "bytes", narrow, IS_FIXED, DTYPE_I8);
    expect(s, "taken bytes", op_take(g, narrow, *index), IS_FP32, DTYPE_F32);
    tensor halves = graph_constant(g, "halves", DTYPE_F16, shape1(8), half);
    expect(s, "halves", halves, IS_FIXED, DTYPE_F16);
    expect(s, "taken halves", op_take(g, halves, *index), IS_FP32, DTYPE_F32);
}

enum { GATHERED = 4, LONE = 2 };

// Layers of LONE columns over tables of their own: what they alone read is gathered in the type they round it to.
static void build_gathered(sample *s, tensor index, tensor *layer) {
    static const float wide[8 * 3];
    static const int8_t bytes[8 * 3];
    static const char *const name[GATHERED] = {"g0", "g1", "g2", "g3"};
    graph *g = s->g;
    tensor x[GATHERED], table = graph_constant(g, "table", DTYPE_F32, shape2(8, 3), wide);
    x[0] = expect(s, "take for a layer", op_take(g, table, index), IS_LOW, 0);
    tensor narrow = graph_constant(g, "table of bytes", DTYPE_I8, shape2(8, 3), bytes);
    x[1] = expect(s, "take of bytes for a layer", op_take(g, narrow, index), IS_LOW, 0);
    x[2] = expect(s, "take for a layer and a slice", op_take(g, table, index), IS_FP32, 0);
    expect(s, "slice of a take", op_slice(g, x[2], 0, 1), IS_FP32, 0);
    x[3] = expect(s, "take for a layer and the host", op_take(g, table, index), IS_FP32, 0);
    graph_keep(g, x[3]);
    for (int i = 0; i < GATHERED; i++) {
        tensor w = weight(s, name[i], shape2(LONE, 3), true);
        layer[i] = expect(s, "layer of a take", op_linear(g, x[i], w, TENSOR_NONE, ACT_NONE), IS_LOW, 0);
    }
}

static tensor build_model(sample *s, tensor index, tensor x, tensor vector) {
    graph *g = s->g;
    tensor w = weight(s, "w", shape2(5, 12), true), b = weight(s, "b", shape1(5), true);
    tensor h = expect(s, "linear", op_linear(g, x, w, b, ACT_RELU), IS_LOW, 0);
    tensor d = expect(s, "dropout of linear", op_dropout(g, h, 0.5f), IS_LOW, 0);
    expect(s, "slice of dropout", op_slice(g, d, 0, 2), IS_LOW, 0);
    tensor gain = weight(s, "gain", shape1(5), false), bias = weight(s, "bias", shape1(5), true);
    tensor twice = expect(s, "axpby of a parameter", op_axpby(g, gain, TENSOR_NONE, 2, 0), IS_FP32, 0);
    tensor n = expect(s, "layernorm", op_layernorm(g, d, twice, bias, 1e-5f), IS_LOW, 0);
    expect(s, "dropout of layernorm", op_dropout(g, n, 0.5f), IS_LOW, 0);
    tensor parts[3 + GATHERED] = {d, n, vector}, wide[2] = {vector, d};
    build_gathered(s, index, parts + 3);
    tensor joined = expect(s, "concat, first low", op_concat(g, parts, 3 + GATHERED), IS_LOW, 0);
    expect(s, "concat, first fp32", op_concat(g, wide, 2), IS_FP32, 0);
    tensor out = weight(s, "out", shape2(3, 13 + GATHERED * LONE), true);
    return expect(s, "logits", op_linear(g, joined, out, TENSOR_NONE, ACT_NONE), IS_LOW, 0);
}

static sample build(precision p) {
    sample s = {.g = graph_new()};
    tensor index, x, vector;
    static const int32_t labels[8];
    build_inputs(&s, &index, &x, &vector);
    tensor logits = build_model(&s, index, x, vector), row_weight = graph_sibling(s.g, index, 1);
    tensor label = op_take(s.g, graph_constant(s.g, "label", DTYPE_I32, shape1(8), labels), index);
    expect(&s, "label", label, IS_FIXED, DTYPE_I32);
    s.loss = op_cross_entropy(s.g, logits, label, row_weight, TENSOR_NONE, 0);
    expect(&s, "loss", s.loss, IS_FP32, 0);
    expect(&s, "totals", op_tally(s.g, s.loss), IS_WIDE, 0);
    expect(&s, "confusion", op_confusion(s.g, logits, label, row_weight), IS_FIXED, DTYPE_I64);
    dtype_assign(s.g, p);
    s.seed = grad_build(s.g, s.loss);
    return s;
}

static dtype low_of(precision p) {
    return p == PRECISION_BF16 ? DTYPE_BF16 : p == PRECISION_FP16 ? DTYPE_F16 : DTYPE_F32;
}

static dtype type_of(precision p, expected type, dtype fixed) {
    if (type == IS_FIXED) return fixed;
    if (type == IS_WIDE || p == PRECISION_FP64) return DTYPE_F64;
    return type == IS_LOW ? low_of(p) : DTYPE_F32;
}

static void check_type(precision p, const char *what, dtype is, dtype want) {
    if (is != want) fail_msg("%s: %s is %s instead of %s", precision_name(p), what, dtype_name(is), dtype_name(want));
}

static void check_types(const sample *s, precision p) {
    for (int i = 0; i < s->rows; i++) {
        const tensor_info *t = graph_info(s->g, s->row[i].t);
        check_type(p, s->row[i].what, t->type, type_of(p, s->row[i].type, s->row[i].fixed));
        if (t->role == ROLE_CONSTANT) check_type(p, "memory of a constant", t->data_type, s->row[i].fixed);
    }
}

// Gradients have the type of what they belong to, those of parameters the type of the master weights.
static void check_gradients(const sample *s, precision p) {
    int gradients = 0, parameters = 0;
    dtype real = p == PRECISION_FP64 ? DTYPE_F64 : DTYPE_F32;
    for (int i = 1; i <= graph_tensors(s->g); i++) {
        const tensor_info *of = graph_info(s->g, (tensor){i});
        if (!of->gradient.id) continue;
        const tensor_info *d = graph_info(s->g, of->gradient);
        check_type(p, "a gradient", d->type, of->type);
        assert_true(shape_equal(d->shape, of->shape));
        gradients += d->role == ROLE_GRADIENT;
        parameters += d->role == ROLE_PARAMETER_GRADIENT;
        if (d->role == ROLE_PARAMETER_GRADIENT) check_type(p, "a parameter's gradient", d->type, real);
    }
    assert_int_equal(parameters, graph_parameters(s->g));
    assert_true(gradients >= 5);
    check_type(p, "the root's gradient", graph_info(s->g, s->seed)->type, real);
    for (int k = 0; k < SLAB_COUNT; k++)
        check_type(p, "a slab", graph_info(s->g, graph_slab(s->g, (slab_kind)k))->type, real);
}

// Only what an operator of the low class reads has a copy in 16 bits.
static void check_copies(const sample *s, precision p) {
    for (int i = 0; i < s->lows; i++)
        assert_int_equal(graph_info(s->g, s->low_read[i])->low_copy, low_of(p) != DTYPE_F32);
    for (int i = 0; i < s->plains; i++) assert_false(graph_info(s->g, s->plain_read[i])->low_copy);
}

// An LSTM does not round its inputs, and the sums that it carries on stay whole.
static void check_lstm(precision p) {
    static const float series[8 * 4 * 3];
    graph *g = graph_new();
    tensor index = op_draw(g, BATCH);
    tensor x = op_take(g, graph_constant(g, "series", DTYPE_F32, shape3(8, 4, 3), series), index);
    const init one = {INIT_ONE, 0};
    const tensor w[] = {graph_parameter(g, "w_ih", shape2(8, 3), one), graph_parameter(g, "w_hh", shape2(8, 2), one),
        graph_parameter(g, "b_ih", shape1(8), one), graph_parameter(g, "b_hh", shape1(8), one)};
    tensor h = op_lstm(g, x, w, 1, TENSOR_NONE, TENSOR_NONE, TENSOR_NONE, false);
    dtype_assign(g, p);
    check_type(p, "x of an lstm", graph_info(g, x)->type, type_of(p, IS_FP32, 0));
    check_type(p, "h of an lstm", graph_info(g, h)->type, type_of(p, IS_LOW, 0));
    check_type(p, "c of an lstm", graph_info(g, graph_sibling(g, h, LSTM_C_LAST))->type, type_of(p, IS_FP32, 0));
    graph_free(g);
}

static void every_tensor_has_its_type(void **state) {
    precision p = *(const precision *)*state;
    sample s = build(p);
    check_types(&s, p);
    check_gradients(&s, p);
    check_copies(&s, p);
    check_lstm(p);
    graph_free(s.g);
}

int main(void) {
    static precision all[] = {PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP64};
    enum { COUNT = sizeof all / sizeof *all };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){precision_name(all[i]), every_tensor_has_its_type, NULL, NULL, &all[i]};
    return _cmocka_run_group_tests("precisions", tests, COUNT, NULL, NULL);
}
