// Outputs of the transformer and nbeats, against plain implementations of their definitions written here, in double
// precision, from nothing but the parameters: no operator and no layer of the program is used on that side.
#include "model/model.h"

#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/solo.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { B = 3 };

// Repeatable values in [-bound, bound).
static double spread(int64_t i, uint32_t salt, double bound) {
    uint32_t u = ((uint32_t)i + 1) * 2654435761u ^ salt * 2246822519u;
    u = (u ^ u >> 15) * 3266489917u;
    return bound * ((double)(u >> 8) * 0x1p-23 - 1);
}

static float *inputs(int64_t n, uint32_t salt) {
    float *v = calloc((size_t)n, sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = (float)spread(i, salt, 1);
    return v;
}

// A model on the double device

typedef struct {
    graph *g;
    tensor out;
    double *weights; // the slab
    double *result;
} run;

// Every parameter gets random values, also those that begin as 0 or 1.
static void run_model(run *r) {
    err e;
    int64_t n = graph_slab_elements(r->g), outputs = shape_count(graph_info(r->g, r->out)->shape);
    graph_keep(r->g, r->out);
    dtype_assign(r->g, PRECISION_FP64);
    tensor slab = graph_slab(r->g, SLAB_WEIGHTS);
    r->weights = calloc((size_t)n, sizeof *r->weights);
    r->result = calloc((size_t)outputs, sizeof *r->result);
    assert_non_null(r->weights);
    assert_non_null(r->result);
    for (int64_t i = 0; i < n; i++) r->weights[i] = spread(i, 1, 0.5);
    queue *q = cpu_double_device.open(&(queue_options){.threads = 2}, &e);
    support_ok(q != NULL, &e);
    solo *x = solo_new(&cpu_double_device, q, r->g, &(solo_options){.rows = B, .inference = true}, &e);
    support_ok(x != NULL, &e);
    support_ok(solo_write(x, slab, r->weights, &e), &e);
    support_ok(solo_play(x, PASS_EVALUATE, &e) && solo_peek(x, r->out, false, r->result, &e), &e);
    solo_free(x);
    cpu_double_device.close(q);
}

static void run_done(run *r) {
    free(r->weights);
    free(r->result);
    graph_free(r->g);
}

static const double *weight(const run *r, const char *fmt, ...) {
    char name[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    tensor t = graph_parameter_named(r->g, name);
    if (!t.id) fail_msg("no parameter %s", name);
    return r->weights + graph_info(r->g, t)->offset;
}

static void compare(const run *r, const double *want, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(r->result[i] - want[i]) <= 1e-6 * (1 + fabs(want[i]))))
            fail_msg("%s: output %lld is %.12g instead of %.12g", what, (long long)i, r->result[i], want[i]);
}

// Layers, one row at a time

static void linear(const double *w, const double *bias, const double *x, int64_t in, int64_t out, double *y) {
    for (int64_t o = 0; o < out; o++) {
        y[o] = bias[o];
        for (int64_t i = 0; i < in; i++) y[o] += w[o * in + i] * x[i];
    }
}

static void activate(activation act, double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = act == ACT_GELU ? x[i] * 0.5 * erfc(-x[i] / sqrt(2)) : fmax(x[i], 0);
}

static void normalise(const double *gain, const double *bias, const double *x, int64_t n, double *y) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) / sqrt(square + (double)1e-5f) * gain[i] + bias[i];
}

// The transformer

typedef struct {
    int64_t T, F, D;
} stream_size;

// The settings of a model, as the definitions below use them.
typedef struct {
    int layers, heads;
    int64_t ff, head, outputs;
    bool causal, last; // last: pooling by the last step
    activation act;
} outline;

enum { STEPS_MOST = 12, WIDTH_MOST = 96 };

typedef double sequence[STEPS_MOST][WIDTH_MOST];

// y_t = the values that step t sees, weighed by how alike keys are to its query, head by head.
static void attend(const outline *s, const stream_size *n, double (*qkv)[WIDTH_MOST], const float *mask, sequence y) {
    int64_t D = n->D, d = D / s->heads;
    for (int64_t t = 0; t < n->T; t++)
        for (int64_t c = 0; c < D; c++) {
            double sum = 0, value = 0;
            for (int64_t j = 0; j < (s->causal ? t + 1 : n->T); j++) {
                double score = 0;
                for (int64_t k = c / d * d; k < (c / d + 1) * d; k++) score += qkv[t][k] * qkv[j][D + k];
                double part = mask && mask[j] == 0 ? 0 : exp(score / sqrt((double)d));
                sum += part;
                value += part * qkv[j][2 * D + c];
            }
            y[t][c] = sum > 0 ? value / sum : 0;
        }
}

static void encoder_layer(
    const run *r, const outline *s, const stream_size *n, const char *name, const float *mask, sequence x) {
    static sequence qkv, y;
    double row[WIDTH_MOST];
    for (int64_t t = 0; t < n->T; t++) {
        normalise(weight(r, "%s.norm1.weight", name), weight(r, "%s.norm1.bias", name), x[t], n->D, row);
        linear(weight(r, "%s.self_attn.in_proj_weight", name), weight(r, "%s.self_attn.in_proj_bias", name), row, n->D,
            3 * n->D, qkv[t]);
    }
    attend(s, n, qkv, mask, y);
    for (int64_t t = 0; t < n->T; t++) {
        double wide[WIDTH_MOST];
        linear(weight(r, "%s.self_attn.out_proj.weight", name), weight(r, "%s.self_attn.out_proj.bias", name), y[t],
            n->D, n->D, row);
        for (int64_t c = 0; c < n->D; c++) x[t][c] += row[c];
        normalise(weight(r, "%s.norm2.weight", name), weight(r, "%s.norm2.bias", name), x[t], n->D, row);
        linear(weight(r, "%s.linear1.weight", name), weight(r, "%s.linear1.bias", name), row, n->D, s->ff, wide);
        activate(s->act, wide, s->ff);
        linear(weight(r, "%s.linear2.weight", name), weight(r, "%s.linear2.bias", name), wide, s->ff, n->D, row);
        for (int64_t c = 0; c < n->D; c++) x[t][c] += row[c];
    }
}

// One sample's stream, pooled.
static void stream_row(const run *r, const outline *s, const stream_size *n, const char *name, const float *from,
    const float *mask, double *pooled) {
    static sequence x;
    char layer[64];
    double steps = 0;
    for (int64_t t = 0; t < n->T; t++) {
        double in[WIDTH_MOST];
        for (int64_t f = 0; f < n->F; f++) in[f] = (double)from[t * n->F + f];
        linear(weight(r, "%s.input.weight", name), weight(r, "%s.input.bias", name), in, n->F, n->D, x[t]);
        for (int64_t c = 0; c < n->D; c++) x[t][c] += weight(r, "%s.position", name)[t * n->D + c];
    }
    for (int i = 0; i < s->layers; i++) {
        snprintf(layer, sizeof layer, "%s.encoder.layers.%d", name, i);
        encoder_layer(r, s, n, layer, mask, x);
    }
    for (int64_t t = 0; t < n->T; t++) steps += !mask || mask[t] != 0;
    for (int64_t c = 0; c < n->D; c++) {
        pooled[c] = s->last ? x[n->T - 1][c] : 0;
        for (int64_t t = 0; t < n->T && !s->last; t++)
            if (!mask || mask[t] != 0) pooled[c] += x[t][c] / steps;
    }
}

static void head_row(const run *r, const outline *s, const double *x, int64_t n, double *out) {
    double hidden[WIDTH_MOST];
    if (!s->head) {
        linear(weight(r, "head.0.weight"), weight(r, "head.0.bias"), x, n, s->outputs, out);
        return;
    }
    linear(weight(r, "head.0.weight"), weight(r, "head.0.bias"), x, n, s->head, hidden);
    activate(ACT_RELU, hidden, s->head);
    linear(weight(r, "head.3.weight"), weight(r, "head.3.bias"), hidden, s->head, s->outputs, out);
}

// Two streams and a vector; a mask of the first stream's padding.
static void transformer_case(bool causal, bool last, activation act, bool masked, int64_t head) {
    static const stream_size size[2] = {{9, 5, 12}, {4, 3, 8}};
    static const model_data d = {.streams = 2, .stream = {"fast", "slow"}, .classes = 3};
    enum { V = 6 };
    char keys[256];
    outline of = {
        .layers = 2, .heads = 4, .ff = 14, .head = head, .outputs = 3, .causal = causal, .last = last, .act = act};
    snprintf(keys, sizeof keys,
        "model.kind=transformer model.layers=2 model.heads=4 model.ff=14 model.dropout=0 model.projection=5 "
        "model.hidden.fast=12 model.hidden.slow=8 model.head=%d model.causal=%s model.pooling=%s model.activation=%s",
        (int)head, causal ? "true" : "false", last ? "last" : "mean", act == ACT_GELU ? "gelu" : "relu");
    model_spec s = support_model(keys, &d);
    float *x[2] = {inputs(B * size[0].T * size[0].F, 2), inputs(B * size[1].T * size[1].F, 3)}, *v = inputs(B * V, 4);
    float mask[B * 9];
    for (int i = 0; i < B * 9; i++) mask[i] = i % 9 >= i / 9 * 2; // 0, 2 and 4 steps of padding
    run r = {.g = graph_new()};
    for (int i = 0; i < 2; i++)
        s.stream[i].x = graph_constant(r.g, "x", DTYPE_F32, shape3(B, size[i].T, size[i].F), x[i]);
    if (masked) s.stream[0].mask = graph_constant(r.g, "mask", DTYPE_F32, shape2(B, 9), mask);
    s.vector = graph_constant(r.g, "vector", DTYPE_F32, shape2(B, V), v);
    r.out = model_build(r.g, &s);
    run_model(&r);
    double want[B * 3];
    for (int b = 0; b < B; b++) {
        double joined[WIDTH_MOST], in[V];
        for (int i = 0; i < 2; i++)
            stream_row(&r, &of, &size[i], d.stream[i], x[i] + b * size[i].T * size[i].F,
                masked && !i ? mask + b * 9 : NULL, joined + (i ? size[0].D : 0));
        for (int k = 0; k < V; k++) in[k] = (double)v[b * V + k];
        linear(weight(&r, "strat.0.weight"), weight(&r, "strat.0.bias"), in, V, 5, joined + 20);
        activate(ACT_RELU, joined + 20, 5);
        head_row(&r, &of, joined, 25, want + b * 3);
    }
    compare(&r, want, B * 3, "transformer");
    run_done(&r);
    free(x[0]);
    free(x[1]);
    free(v);
}

static void transformer_is_its_definition(void **state) {
    (void)state;
    for (int i = 0; i < 32; i++) transformer_case(i & 1, i & 2, i & 4 ? ACT_GELU : ACT_RELU, i & 8, i & 16 ? 7 : 0);
}

// Later steps do not change a step: with causal attention and last pooling of a shorter window, the first
// steps give what they give alone.
static void causal_steps_see_no_later_ones(void **state) {
    enum { T = 7, F = 3 };
    (void)state;
    float *x = inputs((int64_t)B * T * F, 5);
    double first[2][3];
    for (int changed = 0; changed < 2; changed++) {
        model_spec s =
            support_model("model.kind=transformer model.layers=2 model.heads=2 model.ff=8 model.hidden.fast=8 "
                          "model.causal=true model.head=0 model.dropout=0",
                &(model_data){.streams = 1, .stream = {"fast"}, .classes = 3});
        run r = {.g = graph_new()};
        // A mask of the first step alone makes mean pooling read it and nothing else.
        static const float mask[B * T] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
        if (changed)
            for (int i = F; i < T * F; i++) x[i] += 1;
        s.stream[0].x = graph_constant(r.g, "x", DTYPE_F32, shape3(B, T, F), x);
        s.stream[0].mask = graph_constant(r.g, "mask", DTYPE_F32, shape2(B, T), mask);
        r.out = model_build(r.g, &s);
        run_model(&r);
        memcpy(first[changed], r.result, sizeof first[changed]);
        run_done(&r);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    free(x);
}

// N-BEATS

enum { LOOKBACK = 11, HORIZON = 6, BLOCK_WIDTH = 9, DEGREE = 3, WAVES = (HORIZON - 1) / 2 };

typedef enum { STACK_GENERIC, STACK_TREND, STACK_SEASONALITY } stack_kind;

// Function k of a stack at step i of n, of which `before` lie before the forecast.
static double function_at(stack_kind kind, int64_t k, int64_t i, int64_t n, int64_t before) {
    if (kind == STACK_TREND) return pow((double)i / (double)n, (double)k);
    double turn = 2 * acos(-1) * (double)(i - before) / HORIZON;
    if (k == 0) return 1;
    return k <= WAVES ? cos((double)k * turn) : sin((double)(k - WAVES) * turn);
}

static int64_t function_count(stack_kind kind) {
    return kind == STACK_TREND ? DEGREE + 1 : 1 + 2 * WAVES;
}

static void block_row(const run *r, const outline *s, int64_t Q, int block, stack_kind kind, int64_t L,
    const double *vector, double *rest, double *sum) {
    double x[WIDTH_MOST], y[WIDTH_MOST];
    int64_t V = vector ? 4 : 0, n = L + V, K = function_count(kind);
    memcpy(x, rest, (size_t)L * sizeof *x);
    for (int64_t i = 0; i < V; i++) x[L + i] = vector[i];
    for (int i = 0; i < s->layers; i++, n = BLOCK_WIDTH) {
        linear(weight(r, "blocks.%d.fc.%d.weight", block, 2 * i), weight(r, "blocks.%d.fc.%d.bias", block, 2 * i), x, n,
            BLOCK_WIDTH, y);
        activate(ACT_RELU, y, BLOCK_WIDTH);
        memcpy(x, y, sizeof x);
    }
    bool generic = kind == STACK_GENERIC;
    linear(weight(r, "blocks.%d.theta.weight", block), weight(r, "blocks.%d.theta.bias", block), x, n,
        generic ? L + Q * HORIZON : K * (1 + Q), y);
    for (int64_t i = 0; i < L; i++) {
        double back = generic ? y[i] : 0;
        for (int64_t k = 0; !generic && k < K; k++) back += y[k] * function_at(kind, k, i, L, L);
        rest[i] -= back;
    }
    for (int64_t i = 0; i < Q * HORIZON; i++) {
        double fore = generic ? y[L + i] : 0;
        for (int64_t k = 0; !generic && k < K; k++)
            fore += y[K * (1 + i / HORIZON) + k] * function_at(kind, k, i % HORIZON, HORIZON, 0);
        sum[i] += fore;
    }
}

static void nbeats_case(stack_kind first, stack_kind second, bool vector, int64_t classes, int64_t quantiles) {
    static const char *const names[] = {"generic", "trend", "seasonality"};
    char keys[256];
    model_data d = {.streams = 2, .stream = {"fast", "slow"}, .series = true, .classes = classes};
    d.horizon = classes ? 0 : HORIZON, d.quantiles = quantiles;
    outline of = {.layers = 3, .head = 5, .outputs = classes ? classes : (quantiles ? quantiles : 1) * HORIZON};
    snprintf(keys, sizeof keys,
        "model.kind=nbeats model.layers=3 model.blocks=2 model.width=%d model.degree=%d model.head=5 model.horizon=%d "
        "model.dropout=0 model.stacks=%s,%s",
        BLOCK_WIDTH, DEGREE, HORIZON, names[first], names[second]);
    model_spec s = support_model(keys, &d);
    float *a = inputs((int64_t)B * 8, 6), *b = inputs((int64_t)B * 3, 7), *v = inputs((int64_t)B * 4, 8);
    run r = {.g = graph_new()};
    s.stream[0].x = graph_constant(r.g, "a", DTYPE_F32, shape2(B, 8), a);
    s.stream[1].x = graph_constant(r.g, "b", DTYPE_F32, shape2(B, 3), b);
    if (vector) s.vector = graph_constant(r.g, "v", DTYPE_F32, shape2(B, 4), v);
    r.out = model_build(r.g, &s);
    run_model(&r);
    int64_t outputs = model_outputs(&s), Q = quantiles ? quantiles : 1;
    assert_int_equal(outputs, of.outputs);
    double want[B * WIDTH_MOST];
    for (int row = 0; row < B; row++) {
        double rest[LOOKBACK], sum[WIDTH_MOST] = {0}, beside[4];
        for (int i = 0; i < LOOKBACK; i++) rest[i] = (double)(i < 8 ? a[row * 8 + i] : b[row * 3 + i - 8]);
        for (int i = 0; i < 4; i++) beside[i] = (double)v[row * 4 + i];
        for (int block = 0; block < 4; block++)
            block_row(&r, &of, Q, block, block < 2 ? first : second, LOOKBACK, vector ? beside : NULL, rest, sum);
        if (classes) head_row(&r, &of, sum, HORIZON, want + row * outputs);
        for (int64_t i = 0; !classes && i < outputs; i++) want[row * outputs + i] = sum[i];
    }
    assert_true(shape_equal(graph_info(r.g, r.out)->shape, shape2(B, outputs)));
    compare(&r, want, B * outputs, "nbeats");
    run_done(&r);
    free(a);
    free(b);
    free(v);
}

static void nbeats_is_its_definition(void **state) {
    (void)state;
    for (int vector = 0; vector < 2; vector++) {
        nbeats_case(STACK_GENERIC, STACK_GENERIC, vector, 0, 0);
        nbeats_case(STACK_TREND, STACK_SEASONALITY, vector, 0, 0);
        nbeats_case(STACK_SEASONALITY, STACK_GENERIC, vector, 0, 3);
        nbeats_case(STACK_GENERIC, STACK_TREND, vector, 0, 2);
        nbeats_case(STACK_TREND, STACK_SEASONALITY, vector, 4, 0);
        nbeats_case(STACK_GENERIC, STACK_GENERIC, vector, 3, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformer_is_its_definition),
        cmocka_unit_test(causal_steps_see_no_later_ones),
        cmocka_unit_test(nbeats_is_its_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
