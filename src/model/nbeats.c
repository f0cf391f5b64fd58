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
// Forecasts are the sum, [B, quantiles * H]; for classes a head (see kind.h) is put on the sum.
#include "base/err.h"
#include "model/kind.h"
#include "model/layer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STACKS_MOST = 16, BLOCKS_MOST = 200 };
_Static_assert(STACKS_MOST *BLOCKS_MOST <= MODEL_SEGMENTS_MOST, "a block is a segment");

static const double two_pi = 6.283185307179586;

// Results of the blocks of a stack: any values, powers of time, or waves.
typedef enum { STACK_GENERIC, STACK_TREND, STACK_SEASONALITY, STACK_KINDS } stack_kind;

static const char *const stack_names[STACK_KINDS] = {"generic", "trend", "seasonality"};

typedef struct {
    int stacks;
    stack_kind stack[STACKS_MOST];
    int blocks; // of a stack
    int layers; // of a block
    int64_t width;
    int degree;      // of a trend
    int64_t horizon; // steps of the forecast, also of the one that classes are told from
    int64_t head;
} settings;

static const config_key keys[] = {
    {"model.stacks", CONFIG_LIST, "generic", 0, 0, NULL, "nbeats: generic, trend, seasonality, in any order",
        KEY_FIXED | KEY_TUNED},
    {"model.blocks", CONFIG_INT, "3", 1, BLOCKS_MOST, NULL, "nbeats: blocks of a stack", KEY_FIXED | KEY_TUNED},
    {"model.width", CONFIG_INT, "512", 1, 65536, NULL, "nbeats: width of a block's layers", KEY_FIXED | KEY_TUNED},
    {"model.degree", CONFIG_INT, "2", 0, 8, NULL, "nbeats: highest power of a trend", KEY_FIXED | KEY_TUNED},
    {"model.horizon", CONFIG_INT, "12", 1, 4096, NULL, "nbeats: steps of the forecast that classes are told from",
        KEY_FIXED | KEY_TUNED},
};

static bool read_stacks(const config *c, settings *own, err *e) {
    static const char key[] = "model.stacks";
    size_t count = config_items(c, key);
    for (size_t i = 0; i < count && i < STACKS_MOST; i++) {
        int k = 0;
        while (k < STACK_KINDS && strcmp(config_item(c, key, i), stack_names[k]) != 0) k++;
        if (k == STACK_KINDS)
            return config_fail(c, key, e, "%s is not generic, trend or seasonality", config_item(c, key, i));
        own->stack[own->stacks++] = (stack_kind)k;
    }
    return (count >= 1 && count <= STACKS_MOST) || config_fail(c, key, e, "must name 1 to %d stacks", STACKS_MOST);
}

static bool check(const config *c, err *e) {
    settings own = {0};
    return read_stacks(c, &own, e);
}

static bool read(const config *c, const model_data *d, model_spec *s, err *e) {
    settings own = {.blocks = (int)config_int(c, "model.blocks"),
        .layers = kind_layers(c, 4),
        .width = config_int(c, "model.width"),
        .degree = (int)config_int(c, "model.degree"),
        .horizon = d->classes ? config_int(c, "model.horizon") : d->horizon,
        .head = kind_fusion(c).head};
    bool fixed = false;
    if (!read_stacks(c, &own, e)) return false;
    for (int i = 0; i < own.stacks; i++) fixed |= own.stack[i] != STACK_GENERIC;
    if (d->streams == 0) return config_fail(c, "model.kind", e, "nbeats needs a stream");
    if (fixed && !d->series)
        return config_fail(
            c, "model.stacks", e, "trend and seasonality are of one series alone; these data have more; use generic");
    kind_set(s, &own, sizeof own);
    return true;
}

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
    const settings *own;
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
    for (int i = 0; i < w->own->layers; i++) {
        snprintf(name, sizeof name, "blocks.%d.fc.%d", w->block, 2 * i);
        x = layer_linear(w->g, name, x, w->own->width, ACT_RELU);
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
    const settings *own = w->own;
    stack_kind type = own->stack[stack];
    tensor back = TENSOR_NONE, fore = TENSOR_NONE;
    if (type == STACK_TREND) {
        back = trend(w->g, own->degree, w->L);
        fore = trend(w->g, own->degree, w->H);
    } else if (type == STACK_SEASONALITY) {
        back = seasonality(w->g, w->H, -w->L, w->L);
        fore = seasonality(w->g, w->H, 0, w->H);
    }
    for (int i = 0; i < own->blocks; i++, w->block++) {
        w->last = stack == own->stacks - 1 && i == own->blocks - 1;
        graph_segment_begin(w->g);
        if (type == STACK_GENERIC)
            add_generic(w);
        else
            add_functions(w, back, fore);
    }
}

static tensor build(graph *g, const model_spec *s) {
    settings own;
    tensor parts[MODEL_STREAMS_MOST];
    kind_get(s, &own, sizeof own);
    for (int i = 0; i < s->streams; i++) parts[i] = s->stream[i].x;
    CHECK(s->streams > 0 && own.stacks > 0 && own.blocks > 0 && own.horizon > 0, "nbeats: no stream, block or horizon");
    CHECK(s->quantiles <= QUANTILES_MOST, "nbeats: %lld quantiles", (long long)s->quantiles);
    tower w = {.g = g, .s = s, .own = &own, .H = own.horizon, .Q = s->quantiles && !s->classes ? s->quantiles : 1};
    w.rest = s->streams > 1 ? op_concat(g, parts, s->streams) : parts[0];
    w.L = shape_last(graph_info(g, w.rest)->shape);
    for (int i = 0; i < own.stacks; i++) add_stack(&w, i);
    graph_segment_end(g);
    return s->classes ? model_head(g, s, own.head, w.sum) : w.sum;
}

static void describe(const model_spec *s, model_text *t) {
    settings own;
    kind_get(s, &own, sizeof own);
    kind_say(t, ", %d layers, width %" PRId64 ", stacks ", own.layers, own.width);
    for (int i = 0; i < own.stacks; i++) kind_say(t, "%c", stack_names[own.stack[i]][0]);
    kind_say(t, " of %d blocks, degree %d", own.blocks, own.degree);
    if (s->classes) kind_say(t, ", by %" PRId64 " steps, head %" PRId64, own.horizon, own.head);
}

const kind model_nbeats = {.layout = WINDOW_FLAT,
    .segment = "block",
    KIND_KEYS(keys),
    .reads = "layers head dropout",
    .check = check,
    .read = read,
    .build = build,
    .describe = describe};
