// Meaning of operators with a gradient: the forward result on every place against a value computed here, in double,
// from the definition at the head of src/ops/NAME.c. test_ops shows that an operator agrees with itself (devices with
// double, backward with forward); only this shows that it is the operator it says it is. Nothing here calls the code it
// judges.
#include "ops/trial.h"

#include "base/rng.h"
#include "cpu/cpu.h"
#include "graph/grad.h"
#include "ops/strict.h"
#include "parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Scenes: one operator over given values, in training and in evaluation

enum { GIVEN_MOST = 16, WANT_MOST = 2048 };

typedef struct {
    const char *name;
    const place *p;
    graph *g;
    queue *q;
    solo *x;
    tensor root, seed;
    const float *given[GIVEN_MOST]; // the parameters' values
} scene;

static scene scene_of(const char *name, const place *p) {
    return (scene){.name = name, .p = p, .g = graph_new()};
}

// An input with these values, through which a gradient may flow.
static tensor given(scene *s, shape of, const float *v) {
    char name[16];
    int i = graph_parameters(s->g);
    assert_true(i < GIVEN_MOST);
    snprintf(name, sizeof name, "p%d", i);
    s->given[i] = v;
    return graph_parameter(s->g, name, of, (init){INIT_ZERO, 0});
}

static void put(scene *s, tensor to, const float *v) {
    err e;
    const tensor_info *info = graph_info(s->g, to);
    int64_t n = shape_count(info->shape);
    double *wide = calloc((size_t)n + 1, sizeof *wide);
    assert_non_null(wide);
    assert_true(info->type == DTYPE_F64 || info->type == DTYPE_F32);
    for (int64_t i = 0; i < n; i++) wide[i] = (double)v[i];
    trial_ok(solo_write(s->x, to, info->type == DTYPE_F64 ? (const void *)wide : v, &e), &e);
    free(wide);
}

static void scene_open(scene *s, tensor root, solo_step at) {
    err e;
    s->root = root;
    graph_keep(s->g, root);
    dtype_assign(s->g, s->p->precision);
    s->seed = grad_build(s->g, root);
    s->q = s->p->device->open(&(queue_options){.threads = 2, .isa = s->p->isa}, &e);
    trial_ok(s->q != NULL, &e);
    s->x = solo_new(strict_device(s->p->device), s->q, s->g, &(solo_options){.rows = 1, .guard = 64}, &e);
    trial_ok(s->x != NULL, &e);
    for (int i = 0; i < graph_parameters(s->g); i++) put(s, graph_parameter_at(s->g, i), s->given[i]);
    trial_ok(solo_step_write(s->x, &at, &e), &e);
}

static void scene_close(scene *s) {
    solo_free(s->x);
    s->p->device->close(s->q);
    graph_free(s->g);
}

// One micro-batch over poisoned memory, and a tensor as it then is.
static double *output(scene *s, tensor of, bool training) {
    err e;
    const tensor_info *info = graph_info(s->g, of);
    int64_t n = shape_count(info->shape);
    double *v = calloc((size_t)n + 1, sizeof *v);
    assert_non_null(v);
    trial_ok(solo_poison(s->x, 0xFF, training, &e), &e);
    trial_ok(solo_play(s->x, training ? PASS_FIRST : PASS_EVALUATE, &e) && s->p->device->sync(s->q, &e), &e);
    trial_ok(solo_guards_whole(s->x, training, &e), &e);
    trial_ok(solo_peek(s->x, of, training, v, &e), &e);
    for (int64_t i = n - 1; i >= 0; i--) v[i] = trial_value(info->type, v, i);
    return v;
}

// The gradient that the last training pass left at a given input.
static double *gradient(scene *s, tensor of) {
    err e;
    const tensor_info *info = graph_info(s->g, graph_gradient(s->g, of));
    int64_t n = shape_count(info->shape);
    double *v = calloc((size_t)n + 1, sizeof *v);
    assert_non_null(v);
    trial_ok(solo_read(s->x, graph_gradient(s->g, of), v, &e), &e);
    for (int64_t i = n - 1; i >= 0; i--) v[i] = trial_value(info->type, v, i);
    return v;
}

// Comparing

static void fail_at(const scene *s, const char *what, int64_t i, double is, double want) {
    fail_msg("%s on %s %s %s: %s[%lld] is %.9g instead of %.9g", s->name, s->p->device->name,
        s->p->isa ? s->p->isa : "", precision_name(s->p->precision), what, (long long)i, is, want);
}

static void close_to(
    const scene *s, const char *what, const double *is, const double *want, int64_t n, double tolerance) {
    double scale = 0;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(is[i] - want[i]) <= tolerance * (scale + (tolerance > 0 ? 1e-3 : 0))))
            fail_at(s, what, i, is[i], want[i]);
}

static void expect_within(scene *s, tensor t, const double *want, double tolerance) {
    for (int training = 0; training < 2; training++) {
        double *is = output(s, t, training);
        close_to(s, training ? "training" : "evaluation", is, want, shape_count(graph_info(s->g, t)->shape), tolerance);
        free(is);
    }
}

static void expect(scene *s, tensor t, const double *want) {
    expect_within(s, t, want, s->p->tolerance);
}

// Repeatable values in [-bound, bound), different for each salt.
static void fill(float *v, int64_t n, uint32_t salt, float bound) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = ((uint32_t)i + 1) * 2654435761u ^ salt * 2246822519u;
        u = (u ^ u >> 15) * 3266489917u;
        v[i] = bound * ((float)(u >> 8) * 0x1p-23f - 1);
    }
}

// linear

static double activated(activation a, double z) {
    switch (a) {
    case ACT_RELU: return z > 0 ? z : 0;
    case ACT_GELU: return z * 0.5 * erfc(-z / sqrt(2));
    case ACT_TANH: return 1 - 2 / (exp(2 * z) + 1);
    case ACT_SIGMOID: return z > 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z));
    default: return z;
    }
}

typedef struct {
    int64_t B, T, I, O; // T 0: x has two dimensions
} linear_size;

static void linear_case(const place *p, linear_size n, activation act, bool bias) {
    float x[1024] = {0}, w[1024] = {0}, b[64] = {0};
    double want[WANT_MOST];
    int64_t rows = n.B * (n.T ? n.T : 1);
    fill(x, rows * n.I, 1, 1);
    fill(w, n.O * n.I, 2, 1);
    fill(b, n.O, 3, 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < n.O; o++) {
            double z = bias ? (double)b[o] : 0;
            for (int64_t i = 0; i < n.I; i++) z += (double)x[r * n.I + i] * (double)w[o * n.I + i];
            want[r * n.O + o] = activated(act, z);
        }
    scene s = scene_of("linear", p);
    tensor in = given(&s, n.T ? shape3(n.B, n.T, n.I) : shape2(n.B, n.I), x);
    tensor weight = given(&s, shape2(n.O, n.I), w);
    tensor y = op_linear(s.g, in, weight, bias ? given(&s, shape1(n.O), b) : TENSOR_NONE, act);
    scene_open(&s, y, (solo_step){0});
    expect(&s, y, want);
    scene_close(&s);
}

// Far from 0, where exponentials overflow.
static void linear_far(const place *p, activation act) {
    static const float x[] = {-200, -20, -6, -0.5f, 0, 0.5f, 6, 20, 200}, one[] = {1};
    double want[9];
    for (int i = 0; i < 9; i++) want[i] = activated(act, (double)x[i]);
    scene s = scene_of("linear far from 0", p);
    tensor y = op_linear(s.g, given(&s, shape2(9, 1), x), given(&s, shape2(1, 1), one), TENSOR_NONE, act);
    scene_open(&s, y, (solo_step){0});
    expect(&s, y, want);
    scene_close(&s);
}

// A NaN reaches every result of its row, and no other row.
static void linear_nan(const place *p, activation act) {
    enum { B = 3, I = 5, O = 21 };
    float x[B * I], w[O * I];
    fill(x, (int64_t)B * I, 4, 1);
    fill(w, (int64_t)O * I, 5, 1);
    x[I + 2] = NAN;
    scene s = scene_of("linear of a NaN", p);
    tensor y = op_linear(s.g, given(&s, shape2(B, I), x), given(&s, shape2(O, I), w), TENSOR_NONE, act);
    scene_open(&s, y, (solo_step){0});
    for (int training = 0; training < 2; training++) {
        double *is = output(&s, y, training);
        for (int i = 0; i < B * O; i++)
            if (isnan(is[i]) != (i / O == 1)) fail_at(&s, "result", i, is[i], i / O == 1 ? (double)NAN : 0);
        free(is);
    }
    scene_close(&s);
}

static void check_linear(const place *p) {
    static const linear_size sizes[] = {{1, 0, 1, 1}, {3, 0, 4, 5}, {2, 3, 5, 4}, {35, 0, 19, 37}};
    for (int act = ACT_NONE; act <= ACT_SIGMOID; act++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int bias = 0; bias < 2; bias++) linear_case(p, sizes[i], (activation)act, bias);
        linear_far(p, (activation)act);
        linear_nan(p, (activation)act);
    }
}

// lstm

// One step of one unit; the results were worked out outside of this program.
static void check_lstm_step(const place *p) {
    static const float x[] = {0.5f}, w_ih[] = {0.125f, -0.25f, 0.375f, 0.5f}, w_hh[] = {0.5f, -0.625f, 0.75f, -0.875f};
    static const float b_ih[] = {0.0625f, 0.125f, 0.25f, -0.0625f}, b_hh[] = {0.1875f, -0.5f, 0.03125f, 0.375f};
    static const float h0[] = {0.25f}, c0[] = {-0.75f};
    static const double h = 0.054689318483218029, c = 0.093743491497533971;
    scene s = scene_of("lstm by hand", p);
    tensor in = given(&s, shape3(1, 1, 1), x);
    tensor w[4] = {given(&s, shape2(4, 1), w_ih), given(&s, shape2(4, 1), w_hh), given(&s, shape1(4), b_ih),
        given(&s, shape1(4), b_hh)};
    tensor h_start = given(&s, shape2(1, 1), h0), c_start = given(&s, shape2(1, 1), c0);
    tensor h_last = op_lstm(s.g, in, w, 1, h_start, c_start, TENSOR_NONE, false);
    tensor c_last = graph_sibling(s.g, h_last, LSTM_C_LAST);
    graph_keep(s.g, c_last);
    scene_open(&s, h_last, (solo_step){0});
    expect(&s, h_last, &h);
    expect(&s, c_last, &c);
    scene_close(&s);
}

typedef struct {
    int64_t B, T, I, H;
    int directions;
    bool start, resets, all;
} lstm_case;

// The most units, more than a card has warps for, and rows of both directions' states.
enum { UNITS_MOST = 136, STATES_MOST = 2 * 5 * UNITS_MOST };

typedef struct {
    float x[512], w[2][4][4 * UNITS_MOST * UNITS_MOST], h0[STATES_MOST], c0[STATES_MOST], reset[64];
    double h[STATES_MOST], c[STATES_MOST], states[3 * STATES_MOST];
} lstm_data;

static double lstm_gate(const lstm_data *v, const lstm_case *k, int d, int64_t row, const float *x, const double *h) {
    double z = (double)v->w[d][2][row] + (double)v->w[d][3][row];
    for (int64_t i = 0; i < k->I; i++) z += (double)v->w[d][0][row * k->I + i] * (double)x[i];
    for (int64_t u = 0; u < k->H; u++) z += (double)v->w[d][1][row * k->H + u] * h[u];
    return z;
}

// One sample in one direction, step after step, each unit by itself.
static void lstm_sample(lstm_data *v, const lstm_case *k, int d, int64_t b) {
    int64_t H = k->H, wide = k->directions * H, at = b * wide + d * H;
    double h[UNITS_MOST] = {0}, c[UNITS_MOST] = {0}, next[UNITS_MOST];
    for (int64_t u = 0; k->start && u < H; u++) {
        h[u] = (double)v->h0[at + u];
        c[u] = (double)v->c0[at + u];
    }
    for (int64_t i = 0; i < k->T; i++) {
        int64_t t = d == 0 ? i : k->T - 1 - i;
        const float *x = v->x + (b * k->T + t) * k->I;
        bool fresh = k->resets && v->reset[b * k->T + t] == 1;
        if (fresh) memset(h, 0, sizeof h);
        if (fresh) memset(c, 0, sizeof c);
        for (int64_t u = 0; u < H; u++) {
            double in = activated(ACT_SIGMOID, lstm_gate(v, k, d, u, x, h));
            double forget = activated(ACT_SIGMOID, lstm_gate(v, k, d, H + u, x, h));
            double cell = activated(ACT_TANH, lstm_gate(v, k, d, 2 * H + u, x, h));
            double out = activated(ACT_SIGMOID, lstm_gate(v, k, d, 3 * H + u, x, h));
            c[u] = forget * c[u] + in * cell;
            next[u] = out * activated(ACT_TANH, c[u]);
        }
        memcpy(h, next, (size_t)H * sizeof *h);
        memcpy(v->states + (b * k->T + t) * wide + d * H, h, (size_t)H * sizeof *h);
    }
    memcpy(v->h + at, h, (size_t)H * sizeof *h);
    memcpy(v->c + at, c, (size_t)H * sizeof *c);
}

static void lstm_fill(lstm_data *v, const lstm_case *k) {
    int64_t H = k->H;
    const int64_t counts[4] = {4 * H * k->I, 4 * H * H, 4 * H, 4 * H};
    fill(v->x, k->B * k->T * k->I, 10, 1);
    fill(v->h0, k->B * k->directions * H, 11, 1);
    fill(v->c0, k->B * k->directions * H, 12, 1);
    for (uint32_t d = 0; d < 2; d++)
        for (uint32_t i = 0; i < 4; i++) fill(v->w[d][i], counts[i], 13 + d * 4 + i, 0.6f);
    for (int64_t i = 0; i < k->B * k->T; i++) v->reset[i] = (i * 5 + 2) % 3 == 0; // each sample at another step
    for (int d = 0; d < k->directions; d++)
        for (int64_t b = 0; b < k->B; b++) lstm_sample(v, k, d, b);
}

static void lstm_compare(const place *p, const lstm_case *k, const lstm_data *v) {
    scene s = scene_of("lstm", p);
    tensor w[8], x = given(&s, shape3(k->B, k->T, k->I), v->x), none = TENSOR_NONE;
    for (int d = 0; d < k->directions; d++) {
        w[d * 4] = given(&s, shape2(4 * k->H, k->I), v->w[d][0]);
        w[d * 4 + 1] = given(&s, shape2(4 * k->H, k->H), v->w[d][1]);
        w[d * 4 + 2] = given(&s, shape1(4 * k->H), v->w[d][2]);
        w[d * 4 + 3] = given(&s, shape1(4 * k->H), v->w[d][3]);
    }
    shape state = shape2(k->B, k->directions * k->H);
    tensor h0 = k->start ? given(&s, state, v->h0) : none, c0 = k->start ? given(&s, state, v->c0) : none;
    tensor reset = k->resets ? graph_constant(s.g, "reset", DTYPE_F32, shape2(k->B, k->T), v->reset) : none;
    tensor y = op_lstm(s.g, x, w, k->directions, h0, c0, reset, k->all);
    tensor h = graph_sibling(s.g, y, LSTM_H_LAST), c = graph_sibling(s.g, y, LSTM_C_LAST);
    graph_keep(s.g, h);
    graph_keep(s.g, c);
    scene_open(&s, y, (solo_step){0});
    expect(&s, h, v->h);
    expect(&s, c, v->c);
    if (k->all) expect(&s, y, v->states);
    scene_close(&s);
}

static void check_lstm(const place *p) {
    static const int64_t units[] = {1, 2, 17, UNITS_MOST};
    lstm_data *v = calloc(1, sizeof *v);
    assert_non_null(v);
    for (int i = 0; i < 64; i++) {
        lstm_case k = {.B = 5, .T = 3, .I = 4, .H = units[i % 4], .directions = 1 + i / 4 % 2};
        k.start = i / 8 % 2;
        k.resets = i / 16 % 2;
        k.all = i / 32;
        lstm_fill(v, &k);
        lstm_compare(p, &k, v);
    }
    free(v);
}

// A NaN at a step reaches the rest of its sample, and no other sample.
static void check_lstm_nan(const place *p) {
    enum { B = 3, T = 3, I = 2, H = 17 };
    float x[B * T * I], w_ih[4 * H * I], w_hh[4 * H * H], bias[4 * H];
    fill(x, (int64_t)B * T * I, 22, 1);
    fill(w_ih, (int64_t)4 * H * I, 23, 1);
    fill(w_hh, (int64_t)4 * H * H, 24, 1);
    fill(bias, (int64_t)4 * H, 25, 1);
    x[(T + 1) * I] = NAN; // sample 1, step 1
    scene s = scene_of("lstm of a NaN", p);
    tensor in = given(&s, shape3(B, T, I), x), wi = given(&s, shape2(4 * H, I), w_ih);
    tensor wh = given(&s, shape2(4 * H, H), w_hh), b = given(&s, shape1(4 * H), bias);
    tensor y = op_lstm(s.g, in, (const tensor[]){wi, wh, b, b}, 1, TENSOR_NONE, TENSOR_NONE, TENSOR_NONE, true);
    scene_open(&s, y, (solo_step){0});
    for (int training = 0; training < 2; training++) {
        double *is = output(&s, y, training);
        for (int i = 0; i < B * T * H; i++) {
            bool reached = i / H == T + 1 || i / H == T + 2;
            if (isnan(is[i]) != reached) fail_at(&s, "state", i, is[i], reached ? (double)NAN : 0);
        }
        free(is);
    }
    scene_close(&s);
}

// layernorm

static void layernorm_rows(const float *x, const float *gain, const float *bias, double eps, int64_t C, double *want) {
    for (int64_t r = 0; r < 5; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < C; i++) mean += (double)x[r * C + i] / (double)C;
        for (int64_t i = 0; i < C; i++) variance += pow((double)x[r * C + i] - mean, 2) / (double)C;
        for (int64_t i = 0; i < C; i++)
            want[r * C + i] = ((double)x[r * C + i] - mean) / sqrt(variance + eps) * (double)gain[i] + (double)bias[i];
    }
}

// Rows spread by 1 and by less than the root of eps, around 0 and around 10^4, and a row of equal values.
static void check_layernorm(const place *p) {
    static const float eps[] = {1e-5f, 1e-3f};
    for (int64_t C = 2; C < 40; C += 9)
        for (int e = 0; e < 2; e++) {
            float x[5 * 40], gain[40], bias[40];
            double want[5 * 40];
            fill(x, 5 * C, 30, 1);
            fill(gain, C, 31, 2);
            fill(bias, C, 32, 1);
            for (int64_t i = 0; i < C; i++) {
                x[C + i] *= 1e-3f;
                x[2 * C + i] = 1e4f + 8 * x[2 * C + i];
                x[3 * C + i] = 3;
            }
            layernorm_rows(x, gain, bias, (double)eps[e], C, want);
            scene s = scene_of("layernorm", p);
            tensor in = given(&s, shape2(5, C), x), g = given(&s, shape1(C), gain), b = given(&s, shape1(C), bias);
            tensor y = op_layernorm(s.g, in, g, b, eps[e]);
            scene_open(&s, y, (solo_step){0});
            expect(&s, y, want);
            scene_close(&s);
        }
}

// attention

typedef struct {
    int64_t B, T, d;
    int heads;
    bool causal, masked;
} attention_case;

// One query of one head, from the definition: the probability of each key, 0 for what it may not see.
static void attention_query(const attention_case *k, const float *x, const float *mask, int64_t i, double *prob) {
    int64_t row = 3 * k->d * k->heads;
    double top = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < k->T; j++) {
        double s = 0;
        for (int64_t c = 0; c < k->d; c++) s += (double)x[i * row + c] * (double)x[j * row + row / 3 + c];
        bool seen = (!k->masked || mask[j] != 0) && (!k->causal || j <= i);
        prob[j] = seen ? s / sqrt((double)k->d) : -HUGE_VAL;
        if (seen) top = fmax(top, prob[j]);
    }
    for (int64_t j = 0; j < k->T; j++) sum += prob[j] = prob[j] == -HUGE_VAL ? 0 : exp(prob[j] - top);
    for (int64_t j = 0; j < k->T && sum > 0; j++) prob[j] /= sum;
}

static void attention_want(const attention_case *k, const float *x, const float *mask, double *want) {
    int64_t D = k->d * k->heads;
    double prob[64];
    for (int64_t at = 0; at < k->B * k->T * k->heads; at++) {
        int64_t b = at / (k->T * k->heads), i = at / k->heads % k->T, h = at % k->heads;
        const float *head = x + b * k->T * 3 * D + h * k->d;
        attention_query(k, head, mask + b * k->T, i, prob);
        for (int64_t c = 0; c < k->d; c++) {
            double y = 0;
            for (int64_t j = 0; j < k->T; j++)
                if (prob[j] != 0) y += prob[j] * (double)head[j * 3 * D + 2 * D + c];
            want[(b * k->T + i) * D + h * k->d + c] = y;
        }
    }
}

// Padding is not read as a key or as a value: it holds NaN there. Large scores do not overflow. The first sample is all
// padding, and gives 0.
static void attention_of(const place *p, attention_case k, float bound) {
    int64_t D = k.d * k.heads, n = k.B * k.T * 3 * D;
    float *x = calloc((size_t)n, sizeof *x), *mask = calloc((size_t)(k.B * k.T), sizeof *mask);
    double *want = calloc((size_t)(k.B * k.T * D), sizeof *want);
    assert_non_null(x);
    assert_non_null(mask);
    assert_non_null(want);
    fill(x, n, 33, bound);
    for (int64_t i = 0; i < n && bound > 1; i++) x[i] = rintf(x[i]); // exact in 16 bits too
    for (int64_t i = 0; i < k.B * k.T; i++) {
        mask[i] = i < k.T || i % 3 == 1 ? 0 : 1 + (float)(i % 2);
        for (int64_t c = D; c < 3 * D && k.masked && mask[i] == 0; c++) x[i * 3 * D + c] = NAN;
    }
    attention_want(&k, x, mask, want);
    scene s = scene_of("attention", p);
    tensor in = given(&s, shape3(k.B, k.T, 3 * D), x);
    tensor m = k.masked ? graph_constant(s.g, "mask", DTYPE_F32, shape2(k.B, k.T), mask) : TENSOR_NONE;
    tensor y = op_attention(s.g, in, m, (attention_settings){k.heads, k.causal, 0});
    scene_open(&s, y, (solo_step){0});
    expect_within(&s, y, want, s.p->tolerance * (bound > 1 ? 10 : 1));
    scene_close(&s);
    free(x);
    free(mask);
    free(want);
}

// Values that are the identity show the probabilities themselves: in training each is 0 or larger by what is kept.
// Which ones depends on the seed, the update and the row in the effective batch.
enum { KEYS = 16, ATTENTION_ROWS = 24, PROBABILITIES = ATTENTION_ROWS * KEYS * KEYS };

static double *attention_kept(const place *p, const float *x, float dropout, solo_step at, bool training) {
    scene s = scene_of("attention with dropout", p);
    tensor in = given(&s, shape3(ATTENTION_ROWS, KEYS, 3 * KEYS), x);
    tensor y = op_attention(s.g, in, TENSOR_NONE, (attention_settings){1, false, dropout});
    scene_open(&s, y, at);
    double *is = output(&s, y, training);
    scene_close(&s);
    return is;
}

static void check_attention_dropout(const place *p) {
    float *x = calloc(3 * PROBABILITIES, sizeof *x);
    assert_non_null(x);
    fill(x, 3 * PROBABILITIES, 34, 1);
    for (int i = 0; i < ATTENTION_ROWS * KEYS; i++)
        for (int c = 0; c < KEYS; c++) x[i * 3 * KEYS + 2 * KEYS + c] = i % KEYS == c;
    solo_step first = {.seed = 8, .update = 2}, later = {.seed = 8, .update = 2, .row = 3},
              other = {.seed = 9, .update = 2};
    double *all = attention_kept(p, x, 0.25f, first, false), *kept = attention_kept(p, x, 0.25f, first, true);
    double *shifted = attention_kept(p, x, 0.25f, later, true), *reseeded = attention_kept(p, x, 0.25f, other, true);
    int64_t zeros = 0, differ = 0, rows = (ATTENTION_ROWS - 3) * KEYS * KEYS;
    for (int i = 0; i < PROBABILITIES; i++) {
        double want = kept[i] == 0 ? 0 : all[i] / 0.75;
        assert_true(all[i] > 0 && fabs(kept[i] - want) <= 4 * p->tolerance);
        zeros += kept[i] == 0;
        differ += (kept[i] == 0) != (reseeded[i] == 0);
    }
    assert_true(fabs((double)zeros / PROBABILITIES - 0.25) < 0.02);
    assert_true(fabs((double)differ / PROBABILITIES - 0.375) < 0.03);
    for (int64_t i = 0; i < rows; i++) assert_int_equal(shifted[i] == 0, kept[i + 3 * KEYS * KEYS] == 0);
    double *made[] = {all, kept, shifted, reseeded};
    for (int i = 0; i < 4; i++) free(made[i]);
    free(x);
}

static void check_attention(const place *p) {
    for (int kind = 0; kind < 4; kind++) {
        attention_of(p, (attention_case){3, 7, 5, 2, kind & 1, kind & 2}, 1);
        attention_of(p, (attention_case){2, 33, 16, 3, kind & 1, kind & 2}, 1);
        attention_of(p, (attention_case){2, 6, 4, 1, kind & 1, kind & 2}, 12);
    }
    attention_of(p, (attention_case){1, 1, 1, 1, false, false}, 1);
    check_attention_dropout(p);
}

// position, last_time, basis

static void check_position(const place *p) {
    enum { B = 3, T = 4, C = 5, N = T * C };
    float x[B * N], table[N];
    double want[B * N];
    fill(x, (int64_t)B * N, 35, 1);
    fill(table, N, 36, 1);
    for (int i = 0; i < B * N; i++) want[i] = (double)x[i] + (double)table[i % N];
    scene s = scene_of("position", p);
    tensor y = op_position(s.g, given(&s, shape3(B, T, C), x), given(&s, shape2(T, C), table));
    scene_open(&s, y, (solo_step){0});
    expect(&s, y, want);
    scene_close(&s);
}

static void check_last_time(const place *p) {
    enum { B = 3, T = 4, C = 5 };
    float x[B * T * C];
    double want[B * C];
    fill(x, (int64_t)B * T * C, 37, 1);
    for (int i = 0; i < B * C; i++) want[i] = (double)x[(i / C * T + T - 1) * C + i % C];
    x[0] = x[C] = NAN; // of steps before the last
    scene s = scene_of("last_time", p);
    tensor y = op_last_time(s.g, given(&s, shape3(B, T, C), x));
    scene_open(&s, y, (solo_step){0});
    expect_within(&s, y, want, 0);
    scene_close(&s);
}

static void check_basis(const place *p) {
    enum { B = 5, K = 4, H = 7 };
    float theta[B * K], f[K * H];
    double want[B * H] = {0};
    fill(theta, (int64_t)B * K, 38, 1);
    fill(f, (int64_t)K * H, 39, 1);
    for (int i = 0; i < B * H; i++)
        for (int k = 0; k < K; k++) want[i] += (double)theta[i / H * K + k] * (double)f[k * H + i % H];
    scene s = scene_of("basis", p);
    tensor y = op_basis(s.g, given(&s, shape2(B, K), theta), graph_constant(s.g, "basis", DTYPE_F32, shape2(K, H), f));
    scene_open(&s, y, (solo_step){0});
    expect(&s, y, want);
    scene_close(&s);
}

// dropout

enum { DROP_ROWS = 1000, DROP_WIDTH = 200, DROP_ALL = DROP_ROWS * DROP_WIDTH };

static void dropout_scene(scene *s, const place *p, const float *x, float probability, solo_step at) {
    *s = scene_of("dropout", p);
    scene_open(s, op_dropout(s->g, given(s, shape2(DROP_ROWS, DROP_WIDTH), x), probability), at);
}

static double *dropout_training(const place *p, const float *x, float probability, solo_step at) {
    scene s;
    dropout_scene(&s, p, x, probability, at);
    double *y = output(&s, s.root, true);
    scene_close(&s);
    return y;
}

static float *dropout_input(void) {
    float *x = malloc(DROP_ALL * sizeof *x);
    assert_non_null(x);
    fill(x, DROP_ALL, 40, 1);
    for (int i = 0; i < DROP_ALL; i++) x[i] = x[i] < 0 ? x[i] - 0.5f : x[i] + 0.5f;
    return x;
}

// Each element is kept by itself: of pairs at this distance, as many agree as chance has it.
static void expect_independent(const scene *s, const double *y, int distance, double probability) {
    double keep = 1 - probability, agree = 0, pairs = DROP_ALL - distance;
    for (int i = 0; i + distance < DROP_ALL; i++) agree += (y[i] == 0) == (y[i + distance] == 0);
    double share = keep * keep + probability * probability;
    if (fabs(agree / pairs - share) > 4 / sqrt(pairs))
        fail_at(s, "agreement at a distance", distance, agree / pairs, share);
}

// The share that is dropped: 16 bits tell it.
static double dropped_share(float probability) {
    double share = round((double)probability * 65536) / 65536;
    return probability > 0 ? fmin(fmax(share, 1.0 / 65536), 65535.0 / 65536) : 0;
}

static void check_dropout_values(const place *p) {
    static const float probabilities[] = {0, 1e-7f, 0.1f, 0.5f, 0.75f, 0.95f};
    float *x = dropout_input();
    for (int k = 0; k < 6; k++) {
        scene s;
        dropout_scene(&s, p, x, probabilities[k], (solo_step){.seed = 8, .update = 2});
        double *y = output(&s, s.root, true), drop = dropped_share(probabilities[k]), kept = 0;
        for (int i = 0; i < DROP_ALL; i++) {
            double want = (double)x[i] / (1 - drop);
            if (y[i] != 0 && !(fabs(y[i] - want) <= 1e-6 * fabs(want))) fail_at(&s, "kept value", i, y[i], want);
            kept += y[i] != 0;
        }
        double sigma = sqrt(drop * (1 - drop) / DROP_ALL);
        if (!(fabs(kept / DROP_ALL - (1 - drop)) <= 5 * sigma)) fail_at(&s, "kept share", k, kept / DROP_ALL, 1 - drop);
        static const int distances[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, DROP_WIDTH, 2 * DROP_WIDTH};
        for (int i = 0; i < 11; i++) expect_independent(&s, y, distances[i], drop);
        free(y);
        scene_close(&s);
    }
    free(x);
}

// True if a node keeps an element of a row, from the definition: eight neighbours share four words.
static bool is_kept(solo_step at, uint32_t node, int64_t row, int64_t i, double share) {
    uint32_t purpose = (uint32_t)RNG_DROPOUT << 16 | node;
    rng_block r = rng_philox_rounds(
        7, at.seed, (uint32_t)(i / 8), (uint32_t)(at.row + (uint64_t)row), purpose, (uint32_t)at.update);
    uint32_t word = r.v[i % 8 / 2], bits = i % 2 ? word >> 16 : word & 0xFFFF;
    return bits >= 65536 * share;
}

// Which node it is the test does not know: all elements agree for one number, which cannot be chance.
static void check_dropout_bits(const place *p) {
    float *x = dropout_input();
    solo_step at = {.seed = 8ull << 32 | 5, .update = 2, .row = 64};
    double *y = dropout_training(p, x, 0.1f, at);
    int found = 0;
    for (uint32_t node = 0; node < 64; node++) {
        int64_t i = 0;
        while (i < DROP_ALL && (y[i] != 0) == is_kept(at, node, i / DROP_WIDTH, i % DROP_WIDTH, dropped_share(0.1f)))
            i++;
        found += i == DROP_ALL;
    }
    assert_int_equal(found, 1);
    free(x);
    free(y);
}

// Backward lets through exactly what forward did, scaled alike.
static void check_dropout_backward(const place *p) {
    float *x = dropout_input(), *up = dropout_input();
    for (int i = 0; i < DROP_ALL; i++) up[i] = 2 - up[i];
    scene s;
    dropout_scene(&s, p, x, 0.25f, (solo_step){.seed = 8, .update = 5, .row = 64});
    put(&s, s.seed, up);
    double *y = output(&s, s.root, true), *dx = gradient(&s, graph_parameter_at(s.g, 0));
    for (int i = 0; i < DROP_ALL; i++) {
        double want = y[i] != 0 ? (double)up[i] / 0.75 : 0;
        if (!(fabs(dx[i] - want) <= 1e-6 * fabs(want))) fail_at(&s, "gradient", i, dx[i], want);
    }
    scene_close(&s);
    free(y);
    free(dx);
    free(x);
    free(up);
}

static void check_dropout_evaluation(const place *p) {
    float *x = dropout_input();
    x[0] = -0.0f;
    x[1] = 1e-30f;
    x[2] = INFINITY;
    scene s;
    dropout_scene(&s, p, x, 0.5f, (solo_step){.seed = 8});
    double *y = output(&s, s.root, false);
    for (int i = 0; i < DROP_ALL; i++) {
        double want = (double)x[i];
        if (y[i] != want || signbit(y[i]) != signbit(want)) fail_at(&s, "evaluation", i, y[i], want);
    }
    scene_close(&s);
    free(y);
    free(x);
}

// The elements that differ in being kept, where row r of one meets row r + shift of the other.
static int64_t dropout_differs(const double *a, const double *b, int shift) {
    int64_t differ = 0;
    for (int i = 0; i + shift * DROP_WIDTH < DROP_ALL; i++) differ += (a[i] == 0) != (b[i + shift * DROP_WIDTH] == 0);
    return differ;
}

// The choice depends on the seed, the update and the row in the effective batch, and on nothing else.
static void check_dropout_counter(const place *p) {
    float *x = dropout_input();
    double *y = dropout_training(p, x, 0.5f, (solo_step){.seed = 8, .update = 2});
    double *seed = dropout_training(p, x, 0.5f, (solo_step){.seed = 9, .update = 2});
    double *update = dropout_training(p, x, 0.5f, (solo_step){.seed = 8, .update = 3});
    double *row = dropout_training(p, x, 0.5f, (solo_step){.seed = 8, .update = 2, .row = 3});
    double *same = dropout_training(p, x, 0.5f, (solo_step){.seed = 8, .update = 2, .epoch = 7, .position = 11});
    assert_true(dropout_differs(y, seed, 0) > DROP_ALL / 3 && dropout_differs(y, update, 0) > DROP_ALL / 3);
    assert_true(dropout_differs(y, row, 0) > DROP_ALL / 3 && dropout_differs(row, y, 3) == 0);
    assert_memory_equal(y, same, DROP_ALL * sizeof *y);
    double *all[] = {y, seed, update, row, same};
    for (int i = 0; i < 5; i++) free(all[i]);
    free(x);
}

// Two nodes over the same values choose apart.
static void check_dropout_nodes(const place *p) {
    float *x = dropout_input();
    scene s = scene_of("two dropouts", p);
    tensor in = given(&s, shape2(DROP_ROWS, DROP_WIDTH), x);
    tensor a = op_dropout(s.g, in, 0.5f), b = op_dropout(s.g, in, 0.5f);
    graph_keep(s.g, a);
    graph_keep(s.g, b);
    scene_open(&s, op_axpby(s.g, a, b, 1, 1), (solo_step){.seed = 8});
    double *ya = output(&s, a, true), *yb = output(&s, b, true);
    assert_true(dropout_differs(ya, yb, 0) > DROP_ALL / 3);
    scene_close(&s);
    free(ya);
    free(yb);
    free(x);
}

static void check_dropout(const place *p) {
    check_dropout_values(p);
    check_dropout_bits(p);
    check_dropout_backward(p);
    check_dropout_evaluation(p);
    check_dropout_counter(p);
    check_dropout_nodes(p);
}

// concat, slice: moves, to the last bit

static void check_concat(const place *p) {
    enum { B = 3, T = 2, C = 3 + 1 + 5 + 3 };
    float part[3][B * T * 5];
    double want[B * T * C];
    for (uint32_t k = 0; k < 3; k++) fill(part[k], (int64_t)B * T * 5, 50 + k, 1);
    for (int r = 0; r < B * T; r++)
        for (int i = 0; i < C; i++)
            want[r * C + i] = (double)(i < 3   ? part[0][r * 3 + i]
                                       : i < 4 ? part[1][r]
                                       : i < 9 ? part[2][r * 5 + i - 4]
                                               : part[0][r * 3 + i - 9]);
    for (int flat = 0; flat < 2; flat++) {
        scene s = scene_of("concat", p);
        tensor a = given(&s, flat ? shape2(B * T, 3) : shape3(B, T, 3), part[0]);
        tensor b = given(&s, flat ? shape2(B * T, 1) : shape3(B, T, 1), part[1]);
        tensor c = given(&s, flat ? shape2(B * T, 5) : shape3(B, T, 5), part[2]);
        tensor y = op_concat(s.g, (const tensor[]){a, b, c, a}, 4);
        scene_open(&s, y, (solo_step){0});
        expect_within(&s, y, want, 0);
        scene_close(&s);
    }
}

static void check_slice(const place *p) {
    enum { B = 3, T = 2, C = 9 };
    static const int ranges[][2] = {{2, 7}, {0, 1}, {8, 9}, {0, 9}, {1, 4}};
    float x[B * T * C];
    double want[B * T * C];
    fill(x, (int64_t)B * T * C, 60, 1);
    for (int k = 0; k < 5; k++) {
        int begin = ranges[k][0], width = ranges[k][1] - begin;
        for (int r = 0; r < B * T; r++)
            for (int i = 0; i < width; i++) want[r * width + i] = (double)x[r * C + begin + i];
        scene s = scene_of("slice", p);
        tensor in = given(&s, k % 2 ? shape2(B * T, C) : shape3(B, T, C), x);
        tensor y = op_slice(s.g, in, begin, begin + width);
        scene_open(&s, y, (solo_step){0});
        expect_within(&s, y, want, 0);
        scene_close(&s);
    }
}

static void check_reshape(const place *p) {
    enum { B = 3, T = 2, C = 5 };
    float x[B * T * C];
    double want[B * T * C];
    fill(x, (int64_t)B * T * C, 65, 1);
    for (int i = 0; i < B * T * C; i++) want[i] = (double)x[i];
    scene s = scene_of("reshape", p);
    tensor y = op_reshape(s.g, given(&s, shape2(B, T * C), x), shape3(B, T, C));
    scene_open(&s, y, (solo_step){0});
    expect_within(&s, y, want, 0);
    scene_close(&s);
}

// axpby

static void check_axpby(const place *p) {
    enum { B = 7, C = 5, N = B * C };
    static const float factors[][2] = {{1, 1}, {1, -1}, {1.5f, -0.25f}, {-3, 0}};
    float x[N], y[N];
    fill(x, N, 70, 1);
    fill(y, N, 71, 1);
    for (int k = 0; k < 8; k++) {
        bool two = k < 4;
        float a = factors[k % 4][0], b = factors[k % 4][1];
        double want[N];
        for (int i = 0; i < N; i++) want[i] = (double)a * (double)x[i] + (two ? (double)b * (double)y[i] : 0);
        scene s = scene_of("axpby", p);
        tensor left = given(&s, shape2(B, C), x), right = two ? given(&s, shape2(B, C), y) : TENSOR_NONE;
        tensor z = op_axpby(s.g, left, right, a, b);
        scene_open(&s, z, (solo_step){0});
        expect(&s, z, want);
        scene_close(&s);
    }
}

// mean_time

// A mask picks steps, whatever its value there; what it leaves out is not read; nothing picked gives 0.
static void check_mean_time(const place *p) {
    enum { B = 4, T = 5, C = 3 };
    static const float mask[B * T] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0.5f};
    float x[B * T * C];
    fill(x, (int64_t)B * T * C, 80, 1);
    for (int masked = 0; masked < 2; masked++) {
        double want[B * C] = {0};
        for (int b = 0; b < B; b++) {
            int steps = 0;
            for (int t = 0; t < T; t++) steps += !masked || mask[b * T + t] != 0;
            for (int t = 0; t < T; t++)
                for (int i = 0; i < C && (!masked || mask[b * T + t] != 0); i++)
                    want[b * C + i] += (double)x[(b * T + t) * C + i] / steps;
        }
        if (masked) x[0] = x[2 * T * C] = NAN; // of steps left out
        scene s = scene_of(masked ? "mean_time with a mask" : "mean_time", p);
        tensor in = given(&s, shape3(B, T, C), x);
        tensor m = masked ? graph_constant(s.g, "mask", DTYPE_F32, shape2(B, T), mask) : TENSOR_NONE;
        tensor y = op_mean_time(s.g, in, m);
        scene_open(&s, y, (solo_step){0});
        expect(&s, y, want);
        scene_close(&s);
    }
}

// scale_rows

static void check_scale_rows(const place *p) {
    enum { B = 4, C = 6, N = B * C };
    static const float scale[B] = {2, -0.75f, 10000, 3};
    float x[N];
    fill(x, N, 81, 1);
    for (int k = 0; k < 8; k++) {
        double want[N], factor = k & 4 ? 3 : 1, shift = k & 4 ? 0.5 : 0;
        for (int i = 0; i < N; i++) {
            double by = (double)scale[i / C];
            want[i] = k & 1 ? ((double)x[i] / by - shift) / factor : (factor * (double)x[i] + shift) * by;
        }
        scene s = scene_of("scale_rows", p);
        tensor in = given(&s, k & 2 ? shape3(B, 2, C / 2) : shape2(B, C), x);
        tensor y = op_scale_rows(s.g, in, graph_constant(s.g, "scale", DTYPE_F32, shape1(B), scale),
            (scale_rows_settings){k & 1, (float)factor, (float)shift});
        scene_open(&s, y, (solo_step){0});
        expect(&s, y, want);
        scene_close(&s);
    }
}

// Losses: {sum, normaliser}, each by itself; and the gradient of a loss scaled by 1

static void expect_loss(scene *s, tensor loss, tensor of, const double want[2], const double *slope) {
    static const float scale[2] = {1, 0};
    scene_open(s, loss, (solo_step){0});
    put(s, s->seed, scale);
    for (int training = 0; training < 2; training++) {
        double *is = output(s, loss, training);
        close_to(s, "sum", is, want, 1, s->p->tolerance);
        close_to(s, "normaliser", is + 1, want + 1, 1, s->p->tolerance);
        free(is);
    }
    double *d = gradient(s, of);
    close_to(s, "gradient", d, slope, shape_count(graph_info(s->g, of)->shape), s->p->tolerance);
    free(d);
    scene_close(s);
}

enum { LOSS_ROWS = 300, LOSS_WIDTH = 5, LOSS_ALL = LOSS_ROWS * LOSS_WIDTH };

typedef struct {
    float z[LOSS_ALL], target[LOSS_ALL], weight[LOSS_ROWS];
    int32_t label[LOSS_ROWS];
    double slope[LOSS_ALL];
} loss_data;

// Every fifth row has weight 0 and must not be read: it holds NaN and no valid label.
static loss_data *loss_rows(float bound) {
    loss_data *v = calloc(1, sizeof *v);
    assert_non_null(v);
    fill(v->z, LOSS_ALL, 90, bound);
    fill(v->target, LOSS_ALL, 91, 1);
    fill(v->weight, LOSS_ROWS, 92, 0.5f);
    for (int b = 0; b < LOSS_ROWS; b++) {
        bool live = b % 5 != 2;
        v->label[b] = live ? b * 7 % 11 % LOSS_WIDTH : 1000;
        v->weight[b] = live ? v->weight[b] + 1 : 0;
        for (int i = b * LOSS_WIDTH; !live && i < (b + 1) * LOSS_WIDTH; i++) v->z[i] = v->target[i] = NAN;
    }
    return v;
}

// A row's loss and its gradient, before the row's weight.
static void cross_entropy_row(
    const float *z, int32_t y, const double *class_weight, double smoothing, double *sum, double *slope) {
    double top = (double)z[0], total = 0;
    for (int k = 1; k < LOSS_WIDTH; k++) top = fmax(top, (double)z[k]);
    for (int k = 0; k < LOSS_WIDTH; k++) total += exp((double)z[k] - top);
    *sum = 0;
    for (int k = 0; k < LOSS_WIDTH; k++) slope[k] = 0;
    for (int k = 0; k < LOSS_WIDTH; k++) {
        double share = class_weight[k] * ((k == y ? 1 - smoothing : 0) + smoothing / LOSS_WIDTH);
        *sum += share * (top + log(total) - (double)z[k]);
        for (int j = 0; j < LOSS_WIDTH; j++) slope[j] += share * (exp((double)z[j] - top) / total - (j == k));
    }
}

static void cross_entropy_case(const place *p, float bound, bool classes, float smoothing) {
    static const float given_weight[LOSS_WIDTH] = {0.5f, 2, 1, 0.25f, 3};
    double class_weight[LOSS_WIDTH], want[2] = {0, 0};
    loss_data *v = loss_rows(bound);
    for (int k = 0; k < LOSS_WIDTH; k++) class_weight[k] = classes ? (double)given_weight[k] : 1;
    for (int b = 0; b < LOSS_ROWS; b++) {
        double sum, *slope = v->slope + b * LOSS_WIDTH, w = (double)v->weight[b];
        if (w == 0) continue;
        cross_entropy_row(v->z + b * LOSS_WIDTH, v->label[b], class_weight, (double)smoothing, &sum, slope);
        for (int k = 0; k < LOSS_WIDTH; k++) slope[k] *= w;
        want[0] += w * sum;
        want[1] += w * class_weight[v->label[b]];
    }
    scene s = scene_of("cross_entropy", p);
    tensor z = given(&s, shape2(LOSS_ROWS, LOSS_WIDTH), v->z);
    tensor label = graph_constant(s.g, "label", DTYPE_I32, shape1(LOSS_ROWS), v->label);
    tensor weight = graph_constant(s.g, "weight", DTYPE_F32, shape1(LOSS_ROWS), v->weight);
    tensor of = classes ? graph_constant(s.g, "class", DTYPE_F32, shape1(LOSS_WIDTH), given_weight) : TENSOR_NONE;
    expect_loss(&s, op_cross_entropy(s.g, z, label, weight, of, smoothing), z, want, v->slope);
    free(v);
}

static void check_cross_entropy(const place *p) {
    static const float bounds[] = {2, 200}; // 200: exponentials overflow unless the largest is taken off
    for (int i = 0; i < 8; i++) cross_entropy_case(p, bounds[i / 4], i % 2, i / 2 % 2 ? 0.1f : 0);
}

// (1 - p_y)^gamma times the cross-entropy, and its gradient by central differences of that.
static double focal_value(const double *z, int32_t y, const double *class_weight, double smoothing, double gamma) {
    double top = z[0], total = 0, loss = 0, rest = 0;
    for (int k = 1; k < LOSS_WIDTH; k++) top = fmax(top, z[k]);
    for (int k = 0; k < LOSS_WIDTH; k++) total += exp(z[k] - top);
    for (int k = 0; k < LOSS_WIDTH; k++) {
        double share = class_weight[k] * ((k == y ? 1 - smoothing : 0) + smoothing / LOSS_WIDTH);
        loss += share * (top + log(total) - z[k]);
        if (k != y) rest += exp(z[k] - top) / total;
    }
    return pow(rest, gamma) * loss;
}

static void focal_case(const place *p, bool classes, focal_settings settings) {
    static const float given_weight[LOSS_WIDTH] = {0.5f, 2, 1, 0.25f, 3};
    double class_weight[LOSS_WIDTH], want[2] = {0, 0}, s = (double)settings.smoothing, gamma = (double)settings.gamma;
    loss_data *v = loss_rows(3);
    for (int k = 0; k < LOSS_WIDTH; k++) class_weight[k] = classes ? (double)given_weight[k] : 1;
    for (int b = 0; b < LOSS_ROWS; b++) {
        double z[LOSS_WIDTH], w = (double)v->weight[b], h = 1e-5;
        if (w == 0) continue;
        for (int k = 0; k < LOSS_WIDTH; k++) z[k] = (double)v->z[b * LOSS_WIDTH + k];
        want[0] += w * focal_value(z, v->label[b], class_weight, s, gamma);
        want[1] += w * class_weight[v->label[b]];
        for (int k = 0; k < LOSS_WIDTH; k++) {
            double at = z[k];
            z[k] = at + h;
            double above = focal_value(z, v->label[b], class_weight, s, gamma);
            z[k] = at - h;
            double below = focal_value(z, v->label[b], class_weight, s, gamma);
            z[k] = at;
            v->slope[b * LOSS_WIDTH + k] = w * (above - below) / (2 * h);
        }
    }
    place near = *p; // differences have ten digits
    near.tolerance = fmax(p->tolerance, 1e-9);
    scene sc = scene_of("focal", &near);
    tensor z = given(&sc, shape2(LOSS_ROWS, LOSS_WIDTH), v->z);
    tensor label = graph_constant(sc.g, "label", DTYPE_I32, shape1(LOSS_ROWS), v->label);
    tensor weight = graph_constant(sc.g, "weight", DTYPE_F32, shape1(LOSS_ROWS), v->weight);
    tensor of = classes ? graph_constant(sc.g, "class", DTYPE_F32, shape1(LOSS_WIDTH), given_weight) : TENSOR_NONE;
    expect_loss(&sc, op_focal(sc.g, z, label, weight, of, settings), z, want, v->slope);
    free(v);
}

// A row that is wholly right costs nothing and has no slope, whatever gamma.
static void focal_certain(const place *p) {
    static const float z[3] = {200, -200, 0}, one = 1, gammas[] = {0, 0.5f, 1, 2};
    static const int32_t label = 0;
    static const double want[2] = {0, 1}, slope[3] = {0, 0, 0};
    for (int i = 0; i < 4; i++) {
        scene s = scene_of("focal of a certain row", p);
        tensor in = given(&s, shape2(1, 3), z), y = graph_constant(s.g, "label", DTYPE_I32, shape1(1), &label);
        tensor weight = graph_constant(s.g, "weight", DTYPE_F32, shape1(1), &one);
        expect_loss(&s, op_focal(s.g, in, y, weight, TENSOR_NONE, (focal_settings){gammas[i], 0}), in, want, slope);
    }
}

static void check_focal(const place *p) {
    static const float gammas[] = {0, 1, 2, 3.5f};
    for (int i = 0; i < 16; i++) focal_case(p, i & 1, (focal_settings){gammas[i / 4], i & 2 ? 0.1f : 0});
    focal_certain(p);
}

typedef enum { KIN_MSE, KIN_MAE, KIN_HUBER, KIN_SMAPE, KIN_MASE } kin;

static double kin_value(kin k, double p, double t) {
    double d = p - t, size = fabs(p) + fabs(t);
    switch (k) {
    case KIN_MSE: return d * d;
    case KIN_HUBER: return fabs(d) <= 0.75 ? d * d / 2 : 0.75 * (fabs(d) - 0.375);
    case KIN_SMAPE: return size > 0 ? 2 * fabs(d) / size : 0;
    default: return fabs(d);
    }
}

static double kin_slope(kin k, double p, double t) {
    double d = p - t, size = fabs(p) + fabs(t), sign = (d > 0) - (d < 0);
    switch (k) {
    case KIN_MSE: return 2 * d;
    case KIN_HUBER: return fabs(d) <= 0.75 ? d : 0.75 * sign;
    case KIN_SMAPE:
        if (p * t < 0) return 2 * sign / size; // of a fixed denominator: the value itself is 2 everywhere
        return size > 0 ? 2 * sign / size - 2 * fabs(d) / (size * size) * ((p > 0) - (p < 0)) : 0;
    default: return sign;
    }
}

static tensor kin_loss(graph *g, kin k, tensor z, tensor target, tensor weight, tensor scale) {
    switch (k) {
    case KIN_MSE: return op_mse(g, z, target, weight);
    case KIN_HUBER: return op_huber(g, z, target, weight, 0.75f);
    case KIN_SMAPE: return op_smape(g, z, target, weight);
    case KIN_MASE: return op_mase(g, z, target, weight, scale);
    default: return op_mae(g, z, target, weight);
    }
}

// Every seventh row of mase has a scale of 0, and is left out.
static void pointwise_case(const place *p, const char *name, kin k) {
    double want[2] = {0, 0};
    float scale[LOSS_ROWS];
    loss_data *v = loss_rows(2);
    v->z[3] = v->target[3]; // no error: no slope either
    v->z[4] = v->target[4] = 0;
    for (int b = 0; b < LOSS_ROWS; b++) scale[b] = b % 7 == 3 ? 0 : 0.5f + (float)(b % 5);
    for (int i = 0; i < LOSS_ALL; i++) {
        int b = i / LOSS_WIDTH;
        double w = (double)v->weight[b], by = k == KIN_MASE ? (double)scale[b] : 1;
        if (w == 0 || by == 0) continue;
        want[0] += w / by * kin_value(k, (double)v->z[i], (double)v->target[i]);
        want[1] += w;
        v->slope[i] = w / by * kin_slope(k, (double)v->z[i], (double)v->target[i]);
    }
    scene s = scene_of(name, p);
    shape all = shape2(LOSS_ROWS, LOSS_WIDTH);
    tensor z = given(&s, all, v->z), target = graph_constant(s.g, "target", DTYPE_F32, all, v->target);
    tensor weight = graph_constant(s.g, "weight", DTYPE_F32, shape1(LOSS_ROWS), v->weight);
    tensor by = graph_constant(s.g, "scale", DTYPE_F32, shape1(LOSS_ROWS), scale);
    expect_loss(&s, kin_loss(s.g, k, z, target, weight, by), z, want, v->slope);
    free(v);
}

static void check_mse(const place *p) {
    pointwise_case(p, "mse", KIN_MSE);
}

static void check_mae(const place *p) {
    pointwise_case(p, "mae", KIN_MAE);
}

static void check_huber(const place *p) {
    pointwise_case(p, "huber", KIN_HUBER);
}

static void check_smape(const place *p) {
    pointwise_case(p, "smape", KIN_SMAPE);
}

static void check_mase(const place *p) {
    pointwise_case(p, "mase", KIN_MASE);
}

// Three quantiles of five values; the targets of loss_rows stand for all of them.
static void check_quantile(const place *p) {
    enum { Q = 3, WIDE = Q * LOSS_WIDTH, ALL = LOSS_ROWS * WIDE };
    static const quantile_settings levels = {Q, {0.1f, 0.5f, 0.9f}};
    double want[2] = {0, 0}, *slope = calloc(ALL, sizeof *slope);
    float *z = calloc(ALL, sizeof *z);
    loss_data *v = loss_rows(2);
    assert_non_null(slope);
    assert_non_null(z);
    fill(z, ALL, 93, 2);
    z[3] = v->target[3];
    for (int i = 0; i < ALL; i++) {
        int b = i / WIDE, column = i % WIDE;
        double w = (double)v->weight[b], a = (double)levels.level[column / LOSS_WIDTH];
        if (w == 0) z[i] = NAN;
        if (w == 0) continue;
        double d = (double)v->target[b * LOSS_WIDTH + column % LOSS_WIDTH] - (double)z[i];
        want[0] += w * fmax(a * d, (a - 1) * d);
        want[1] += w;
        slope[i] = d == 0 ? 0 : w * (d > 0 ? -a : 1 - a);
    }
    scene s = scene_of("quantile", p);
    tensor in = given(&s, shape2(LOSS_ROWS, WIDE), z);
    tensor target = graph_constant(s.g, "target", DTYPE_F32, shape2(LOSS_ROWS, LOSS_WIDTH), v->target);
    tensor weight = graph_constant(s.g, "weight", DTYPE_F32, shape1(LOSS_ROWS), v->weight);
    expect_loss(&s, op_quantile(s.g, in, target, weight, levels), in, want, slope);
    free(v);
    free(z);
    free(slope);
}

// action_std: the deviation of noise. No gradient flows to the latent, which here also goes another way, side by side
// with the deviations.

static void action_std_case(const place *p, bool noisy) {
    enum { B = 35, A = 3, F = 5, ALL = A + F };
    float like[B * A], latent[B * F], log_std[F * A], ones[B * ALL];
    double want[B * ALL];
    fill(like, B * A, 101, 1);
    fill(latent, B * F, 102, 1);
    fill(log_std, F * A, 103, 2);
    for (int f = 0; f < F; f++) latent[f] = 0; // a row without noise
    for (int i = 0; i < B * ALL; i++) {
        int b = i / ALL, k = i % ALL;
        double variance = 1e-6;
        for (int f = 0; k < A && f < F; f++)
            variance += pow((double)latent[b * F + f] * exp((double)log_std[f * A + k]), 2);
        want[i] = k >= A ? (double)latent[b * F + k - A] : noisy ? sqrt(variance) : exp((double)log_std[k]);
        ones[i] = 1;
    }
    scene s = scene_of("action_std", p);
    tensor in = given(&s, noisy ? shape2(F, A) : shape1(A), log_std), from = given(&s, shape2(B, F), latent);
    tensor std =
        op_action_std(s.g, graph_constant(s.g, "like", DTYPE_F32, shape2(B, A), like), noisy ? from : TENSOR_NONE, in);
    tensor y = op_concat(s.g, (const tensor[]){std, from}, 2);
    scene_open(&s, y, (solo_step){0});
    put(&s, s.seed, ones);
    expect(&s, y, want);
    double *d = gradient(&s, from);
    for (int i = 0; i < B * F; i++)
        if (d[i] != 1) fail_at(&s, "gradient of the latent", i, d[i], 1);
    free(d);
    scene_close(&s);
}

static void check_action_std(const place *p) {
    action_std_case(p, false);
    action_std_case(p, true);
}

// ppo: the loss from its definition, row by row; the gradient by differences of that

enum { PPO_B = 300, PPO_A = 3, PPO_ALL = PPO_B * PPO_A, PPO_VALUES = 2 * PPO_ALL + PPO_B };

typedef struct {
    bool numbers, spread;
    bool far; // the first row's action has become so unlikely that its ratio is 0
    float knobs[KNOBS], value, value_bound, entropy_bound;
    float x[PPO_VALUES]; // scores, deviations, values: what gradients flow to
    float action[PPO_ALL], log_prob[PPO_B], advantage[PPO_B], target[PPO_B], old_value[PPO_B], weight[PPO_B];
    float moments[2];
} ppo_data;

// Every fifth row has weight 0 and must not be read: it holds NaN and no valid action.
static void ppo_fill(ppo_data *v) {
    fill(v->x, PPO_VALUES, 110, 1);
    for (int i = PPO_ALL; i < 2 * PPO_ALL; i++) v->x[i] = 1 + 0.5f * v->x[i];
    fill(v->action, PPO_ALL, 111, 1);
    for (int b = 0; b < PPO_B && !v->numbers; b++) v->action[b] = (float)(b * 7 % 11 % PPO_A);
    fill(v->log_prob, PPO_B, 112, 0.5f);
    fill(v->advantage, PPO_B, 113, 2);
    fill(v->target, PPO_B, 114, 1);
    fill(v->old_value, PPO_B, 115, 1);
    fill(v->weight, PPO_B, 116, 0.5f);
    for (int b = 0; b < PPO_B; b++) {
        bool live = b % 5 != 2;
        int columns = v->numbers ? PPO_A : 1;
        v->log_prob[b] = live ? v->log_prob[b] - (v->numbers ? 3.9f : 1.1f) : NAN;
        v->weight[b] = live ? v->weight[b] + 1 : 0;
        for (int k = 0; !live && k < PPO_A; k++) v->x[b * PPO_A + k] = NAN;
        for (int k = 0; !live && k < columns; k++) v->action[b * columns + k] = 1e9f;
    }
    if (v->far) v->log_prob[0] = 900;
    v->moments[0] = 0.125f;
    v->moments[1] = 1.5f;
}

static double ppo_log_prob(const ppo_data *v, const double *x, int b, double *entropy) {
    const double *z = x + b * PPO_A, *std = z + PPO_ALL;
    double log_prob = 0, sum = 0;
    *entropy = 0;
    for (int k = 0; k < PPO_A; k++) sum += exp(z[k]);
    for (int k = 0; k < PPO_A; k++) {
        if (v->numbers) {
            double d = ((double)v->action[b * PPO_A + k] - z[k]) / std[k];
            log_prob += log(exp(-d * d / 2) / (std[k] * sqrt(2 * acos(-1))));
            *entropy += 0.5 * log(2 * acos(-1) * exp(1) * std[k] * std[k]);
        } else {
            double share = exp(z[k]) / sum;
            if (k == (int)v->action[b]) log_prob = log(share);
            *entropy -= share * log(share);
        }
    }
    return log_prob;
}

static double ppo_clamp(double v, double low, double high) {
    return fmin(fmax(v, low), high);
}

// The sums over all rows at x, and the loss that they make.
static double ppo_plain(const ppo_data *v, const double *x, double sums[PPO_SUMS]) {
    double eps = (double)v->knobs[KNOB_CLIP], range = (double)v->knobs[KNOB_VALUE_CLIP];
    for (int k = 0; k < PPO_SUMS; k++) sums[k] = 0;
    for (int b = 0; b < PPO_B; b++) {
        double w = (double)v->weight[b], entropy, V = x[2 * PPO_ALL + b], old = (double)v->old_value[b];
        if (w == 0) continue;
        double log_ratio = ppo_log_prob(v, x, b, &entropy) - (double)v->log_prob[b], ratio = exp(log_ratio);
        double A = (double)v->advantage[b];
        if (v->spread) A = (A - (double)v->moments[0]) * (double)v->moments[1];
        if (range > 0) V = old + ppo_clamp(V - old, -range, range);
        sums[PPO_ROWS] += w;
        sums[PPO_POLICY] -= w * fmin(ratio * A, ppo_clamp(ratio, 1 - eps, 1 + eps) * A);
        sums[PPO_VALUE_LOSS] += w * pow((double)v->target[b] - V, 2);
        sums[PPO_ENTROPY] += w * entropy;
        sums[PPO_KL] += w * (ratio - 1 - log_ratio);
        sums[PPO_CLIPPED] += fabs(ratio - 1) > eps ? w : 0;
    }
    double rows = sums[PPO_ROWS], value = sums[PPO_VALUE_LOSS] / rows, entropy = sums[PPO_ENTROPY] / rows;
    if (v->value_bound > 0) value = ppo_clamp(value, (double)-v->value_bound, (double)v->value_bound);
    if (v->entropy_bound > 0) entropy = ppo_clamp(entropy, (double)-v->entropy_bound, (double)v->entropy_bound);
    return sums[PPO_POLICY] + rows * ((double)v->value * value - (double)v->knobs[KNOB_ENTROPY] * entropy);
}

static tensor ppo_graph(scene *s, const ppo_data *v, tensor x[3]) {
    graph *g = s->g;
    shape one = shape1(PPO_B), all = shape2(PPO_B, PPO_A);
    x[0] = given(s, all, v->x);
    if (v->numbers) x[1] = given(s, all, v->x + PPO_ALL);
    x[2] = given(s, shape2(PPO_B, 1), v->x + 2 * PPO_ALL);
    ppo_inputs in = {.score = x[0], .std = x[1], .value = x[2]};
    in.action = graph_constant(g, "action", DTYPE_F32, v->numbers ? all : shape2(PPO_B, 1), v->action);
    in.log_prob = graph_constant(g, "log_prob", DTYPE_F32, one, v->log_prob);
    in.advantage = graph_constant(g, "advantage", DTYPE_F32, one, v->advantage);
    in.target = graph_constant(g, "target", DTYPE_F32, one, v->target);
    in.old_value = graph_constant(g, "old value", DTYPE_F32, one, v->old_value);
    in.weight = graph_constant(g, "weight", DTYPE_F32, one, v->weight);
    in.knobs = graph_constant(g, "knobs", DTYPE_F32, shape1(KNOBS), v->knobs);
    if (v->spread) in.spread = graph_constant(g, "spread", DTYPE_F32, shape1(2), v->moments);
    return op_ppo(g, in, (ppo_settings){!v->numbers, v->value, v->entropy_bound, v->value_bound});
}

// Differences at every seventh element; rows of weight 0 have a gradient of 0.
static void ppo_slopes(scene *s, const ppo_data *v, double *x, tensor of, int first, int width) {
    double *is = gradient(s, of), sums[PPO_SUMS];
    for (int i = 0; i < PPO_B * width; i++) {
        double was = x[first + i], want = 0;
        if (v->weight[i / width] == 0) {
            if (is[i] != 0) fail_at(s, "gradient", i, is[i], 0);
        } else if (i % 7 == 3) {
            x[first + i] = was + 1e-5;
            want = ppo_plain(v, x, sums);
            x[first + i] = was - 1e-5;
            want = (want - ppo_plain(v, x, sums)) / 2e-5;
            x[first + i] = was;
            if (!(fabs(is[i] - want) <= fmax(1e-7, s->p->tolerance) * 10)) fail_at(s, "gradient", i, is[i], want);
        }
    }
    free(is);
}

static void ppo_scene(const place *p, const char *name, ppo_data *v) {
    static const float scale[2] = {1, 0};
    double x[PPO_VALUES], sums[PPO_SUMS], is[PPO_SUMS], *out;
    tensor in[3] = {0};
    err e;
    ppo_fill(v);
    for (int i = 0; i < PPO_VALUES; i++) x[i] = (double)v->x[i];
    double loss = ppo_plain(v, x, sums);
    assert_true(sums[PPO_CLIPPED] > 0.1 * sums[PPO_ROWS] && sums[PPO_CLIPPED] < 0.9 * sums[PPO_ROWS]);
    scene s = scene_of(name, p);
    tensor root = ppo_graph(&s, v, in);
    scene_open(&s, root, (solo_step){0});
    put(&s, s.seed, scale);
    for (int training = 0; training < 2; training++) {
        out = output(&s, root, training);
        close_to(&s, "sum", out, &loss, 1, p->tolerance);
        close_to(&s, "normaliser", out + 1, sums, 1, p->tolerance);
        trial_ok(solo_read(s.x, graph_sibling(s.g, root, 1), is, &e), &e);
        for (int k = 0; k < PPO_SUMS; k++) close_to(&s, "sums", is + k, sums + k, 1, p->tolerance);
        free(out);
    }
    ppo_slopes(&s, v, x, in[0], 0, PPO_A);
    if (v->numbers) ppo_slopes(&s, v, x, in[1], PPO_ALL, PPO_A);
    ppo_slopes(&s, v, x, in[2], 2 * PPO_ALL, 1);
    scene_close(&s);
}

static void check_ppo(const place *p) {
    static ppo_data plain = {.knobs = {[KNOB_CLIP] = 0.2f, [KNOB_ENTROPY] = 0.05f}, .value = 0.5f};
    static ppo_data numbers = {.numbers = true,
        .spread = true,
        .knobs = {[KNOB_CLIP] = 0.3f, [KNOB_ENTROPY] = 0.05f, [KNOB_VALUE_CLIP] = 0.4f},
        .value = 0.75f};
    static ppo_data far = {.far = true, .knobs = {[KNOB_CLIP] = 0.2f}, .value = 0.5f};
    ppo_scene(p, "ppo of choices", &plain);
    ppo_scene(p, "ppo of a policy that went far", &far);
    ppo_scene(p, "ppo of numbers", &numbers);
}

// Bounds of the means: both passed, one of them, and none.
static void check_ppo_bounds(const place *p) {
    static const float bounds[][2] = {{0.01f, 0.02f}, {0.01f, 9}, {9, 0.02f}, {9, 9}};
    static ppo_data v = {.knobs = {[KNOB_CLIP] = 0.2f, [KNOB_ENTROPY] = 0.05f}, .value = 0.5f};
    for (int k = 0; k < 4; k++) {
        v.value_bound = bounds[k][0];
        v.entropy_bound = bounds[k][1];
        ppo_scene(p, "ppo with bounds", &v);
    }
}

// confusion of logits that are not finite: the first largest wins, a NaN never over a number

static void check_confusion(const place *p) {
    enum { B = 12, K = 3 };
    const float inf = INFINITY, nan = NAN;
    const float z[B][K] = {{nan, 1, 2}, {1, nan, 0}, {0, 1, nan}, {nan, nan, nan}, {-inf, -inf, -inf},
        {nan, -inf, -inf}, {inf, nan, inf}, {0, inf, inf}, {nan, nan, -inf}, {-inf, nan, 5}, {2, 2, nan},
        {nan, nan, nan}};
    static const int winner[B] = {2, 0, 1, 0, 0, 1, 0, 1, 2, 2, 0, -1}; // the last row has weight 0
    for (int b = 0; b < B; b++) {
        err e;
        const float weight = winner[b] >= 0;
        const int32_t label = b % K;
        int64_t count[K * K] = {0}, want[K * K] = {0};
        if (weight > 0) want[label * K + winner[b]] = 1;
        graph *g = graph_new();
        tensor c = op_confusion(g, graph_constant(g, "z", DTYPE_F32, shape2(1, K), z[b]),
            graph_constant(g, "label", DTYPE_I32, shape1(1), &label),
            graph_constant(g, "weight", DTYPE_F32, shape1(1), &weight));
        dtype_assign(g, p->precision);
        queue *q = p->device->open(&(queue_options){.threads = 1, .isa = p->isa}, &e);
        trial_ok(q != NULL, &e);
        solo *x = solo_new(strict_device(p->device), q, g, &(solo_options){.rows = 1, .inference = true}, &e);
        trial_ok(x != NULL, &e);
        trial_ok(solo_play(x, PASS_EVALUATE, &e) && solo_read(x, c, count, &e), &e);
        for (int i = 0; i < K * K; i++)
            if (count[i] != want[i]) fail_msg("confusion on %s, row %d: a wrong class wins", p->device->name, b);
        solo_free(x);
        p->device->close(q);
        graph_free(g);
    }
}

// The table

typedef struct {
    op op;
    const char *name;
    void (*check)(const place *);
} row;

static const row rows[] = {
    {OP_linear, "linear", check_linear},
    {OP_lstm, "lstm, one step by hand", check_lstm_step},
    {OP_lstm, "lstm", check_lstm},
    {OP_lstm, "lstm of a NaN", check_lstm_nan},
    {OP_layernorm, "layernorm", check_layernorm},
    {OP_attention, "attention", check_attention},
    {OP_position, "position", check_position},
    {OP_dropout, "dropout", check_dropout},
    {OP_concat, "concat", check_concat},
    {OP_slice, "slice", check_slice},
    {OP_reshape, "reshape", check_reshape},
    {OP_axpby, "axpby", check_axpby},
    {OP_mean_time, "mean_time", check_mean_time},
    {OP_last_time, "last_time", check_last_time},
    {OP_basis, "basis", check_basis},
    {OP_cross_entropy, "cross_entropy", check_cross_entropy},
    {OP_scale_rows, "scale_rows", check_scale_rows},
    {OP_focal, "focal", check_focal},
    {OP_mse, "mse", check_mse},
    {OP_mae, "mae", check_mae},
    {OP_huber, "huber", check_huber},
    {OP_quantile, "quantile", check_quantile},
    {OP_smape, "smape", check_smape},
    {OP_mase, "mase", check_mase},
    {OP_confusion, "confusion", check_confusion},
    {OP_action_std, "action_std", check_action_std},
    {OP_ppo, "ppo", check_ppo},
    {OP_ppo, "ppo, bounds", check_ppo_bounds},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void test_row(void **state) {
    const row *r = *state;
    place p[PLACES_MOST], wide = {&cpu_double_device, NULL, PRECISION_FP64, 1e-12, {0}};
    int n = trial_places(p);
    r->check(&wide);
    for (int i = 0; i < n; i++) r->check(&p[i]);
}

// Operators that no gradient passes through are checked against their definition in test_ops.
static void test_every_operator_has_a_row(void **state) {
    static const op elsewhere[] = {OP_draw, OP_take, OP_window, OP_level, OP_tally, OP_clip, OP_adamw, OP_sgd,
        OP_advance, OP_env_see, OP_env_take, OP_sample, OP_write_rows, OP_write_ends, OP_sequence, OP_remember,
        OP_standardise, OP_scale_reward, OP_gae, OP_spread, OP_ppo_gate};
    (void)state;
    for (int o = 0; o < OP_COUNT; o++) {
        bool found = false;
        for (int i = 0; i < ROWS; i++) found |= rows[i].op == (op)o;
        for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) found |= elsewhere[i] == (op)o;
        if (!found) fail_msg("operator %s has no row in test_meaning", op_name((op)o));
    }
}

int main(void) {
    struct CMUnitTest tests[ROWS + 1] = {{"every operator has a row", test_every_operator_has_a_row, NULL, NULL, NULL}};
    for (int i = 0; i < ROWS; i++)
        tests[i + 1] = (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return parts_run("meaning", tests, ROWS + 1);
}
