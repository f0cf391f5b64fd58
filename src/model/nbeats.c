// N-BEATS: blocks one behind the other, each of which explains a part of its input, the backcast, and adds to a sum,
// the forecast; the next one sees what is left of the input.
//
//   blocks.I:  fc = Linear, ReLU, ... (as many as layers); theta = Linear
//   generic:   theta [L + H] is the backcast and the forecast
//   trend, seasonality: theta has a factor for each of K functions of the backcast, then as many of the forecast. Step
//   i
//              of n is time i / n; a trend's functions are its powers 0 .. degree; those of a seasonality are 1 and the
//              cosines and sines of 2 pi k i / H, k = 1 .. (H - 1) / 2, which the backcast continues to steps before 0.
// The input, L columns, is everything that the streams have, laid flat; with a vector, every block sees that beside it.
// Forecasts are the sum, [B, quantiles * H]; for classes a head (see builders.h) is put on the sum.
#include "base/err.h"
#include "model/builders.h"
#include "model/layer.h"

#include <math.h>
#include <stdio.h>

static const double two_pi = 6.283185307179586;

// K functions of n steps.
typedef struct {
    int64_t K, n;
    float *value;
} functions;

static functions functions_of(graph *g, int64_t K, int64_t n) {
    functions f = {K, n, graph_memory(g, (size_t)(K * n) * sizeof(float))};
    return f;
}

static tensor functions_constant(graph *g, const functions *f) {
    return graph_constant(g, "basis", DTYPE_F32, shape2(f->K, f->n), f->value);
}

static tensor trend(graph *g, int degree, int64_t n) {
    functions f = functions_of(g, degree + 1, n);
    for (int64_t p = 0; p <= degree; p++)
        for (int64_t i = 0; i < n; i++) f.value[p * n + i] = (float)pow((double)i / (double)n, (double)p);
    return functions_constant(g, &f);
}

// Waves of `period` steps and less, at steps first .. first + n - 1.
static tensor seasonality(graph *g, int64_t period, int64_t first, int64_t n) {
    int64_t waves = (period - 1) / 2;
    functions f = functions_of(g, 1 + 2 * waves, n);
    for (int64_t i = 0; i < n; i++) {
        f.value[i] = 1;
        for (int64_t k = 1; k <= waves; k++) {
            double turn = two_pi * (double)k * (double)(first + i) / (double)period;
            f.value[k * n + i] = (float)cos(turn);
            f.value[(waves + k) * n + i] = (float)sin(turn);
        }
    }
    return functions_constant(g, &f);
}

// Where a model is while it is built.
typedef struct {
    graph *g;
    const model_spec *s;
    int64_t L, H, Q; // columns of the input, steps of the forecast, forecasts of each
    tensor rest, sum;
    int block;
    bool last;
} tower;

static void add_forecast(tower *w, tensor forecast) {
    w->sum = w->sum.id ? op_axpby(w->g, w->sum, forecast, 1, 1) : forecast;
}

static tensor block_theta(const tower *w, int64_t outputs) {
    char name[LAYER_NAME_MOST];
    tensor x = w->s->vector.id ? op_concat(w->g, (const tensor[]){w->rest, w->s->vector}, 2) : w->rest;
    for (int i = 0; i < w->s->layers; i++) {
        snprintf(name, sizeof name, "blocks.%d.fc.%d", w->block, 2 * i);
        x = layer_linear(w->g, name, x, w->s->width[0], ACT_RELU);
    }
    snprintf(name, sizeof name, "blocks.%d.theta", w->block);
    return layer_linear(w->g, name, x, outputs, ACT_NONE);
}

static void add_generic(tower *w) {
    int64_t all = w->L + w->Q * w->H;
    tensor theta = block_theta(w, all);
    add_forecast(w, op_slice(w->g, theta, w->L, all));
    if (!w->last) w->rest = op_axpby(w->g, w->rest, op_slice(w->g, theta, 0, w->L), 1, -1);
}

static void add_functions(tower *w, tensor back, tensor fore) {
    tensor part[QUANTILES_MOST];
    int64_t K = graph_info(w->g, fore)->shape.dim[0];
    tensor theta = block_theta(w, K * (1 + w->Q));
    for (int64_t q = 0; q < w->Q; q++) part[q] = op_basis(w->g, op_slice(w->g, theta, K * (1 + q), K * (2 + q)), fore);
    add_forecast(w, w->Q > 1 ? op_concat(w->g, part, (int)w->Q) : part[0]);
    if (!w->last) w->rest = op_axpby(w->g, w->rest, op_basis(w->g, op_slice(w->g, theta, 0, K), back), 1, -1);
}

static void add_stack(tower *w, int stack) {
    const model_spec *s = w->s;
    stack_kind kind = s->stack[stack];
    tensor back = TENSOR_NONE, fore = TENSOR_NONE;
    if (kind == STACK_TREND) {
        back = trend(w->g, s->degree, w->L);
        fore = trend(w->g, s->degree, w->H);
    } else if (kind == STACK_SEASONALITY) {
        back = seasonality(w->g, w->H, -w->L, w->L);
        fore = seasonality(w->g, w->H, 0, w->H);
    }
    for (int i = 0; i < s->blocks; i++, w->block++) {
        w->last = stack == s->stacks - 1 && i == s->blocks - 1;
        graph_segment_begin(w->g);
        if (kind == STACK_GENERIC)
            add_generic(w);
        else
            add_functions(w, back, fore);
    }
}

tensor model_build_nbeats(graph *g, const model_spec *s) {
    tensor parts[MODEL_STREAMS_MOST];
    for (int i = 0; i < s->streams; i++) parts[i] = s->stream[i].x;
    CHECK(s->streams > 0 && s->stacks > 0 && s->blocks > 0 && s->horizon > 0, "nbeats: no stream, block or horizon");
    CHECK(s->quantiles <= QUANTILES_MOST, "nbeats: %lld quantiles", (long long)s->quantiles);
    tower w = {.g = g, .s = s, .H = s->horizon, .Q = s->quantiles && !s->classes ? s->quantiles : 1};
    w.rest = s->streams > 1 ? op_concat(g, parts, s->streams) : parts[0];
    w.L = shape_last(graph_info(g, w.rest)->shape);
    for (int i = 0; i < s->stacks; i++) add_stack(&w, i);
    graph_segment_end(g);
    return s->classes ? model_head(g, s, w.sum) : w.sum;
}
