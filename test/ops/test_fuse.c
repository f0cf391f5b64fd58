// Whole small graphs, as models make them: gathering, layers, loss, metrics and their backward, over two micro-batches
// of which the second is only partly real; some with two updates. A device may join neighbouring calls; what it
// computes then must agree with double precision, with the same device when it joins nothing (card_switches, no_fuse),
// and to the bit with itself, also when it launches call by call (debug). The CPU has no such
// settings.
//
// Errors are measured over a tensor, root of the sum of squares, against its own size and a tenth of all gradients':
// single elements may land on the other side of a rounding or of ReLU's kink.
//
// Runs in: test-long
#include "base/half.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "graph/grad.h"
#include "ops/trial.h"
#include "parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTHS_MOST = 6, CLASSES_MOST = 8, RATE = 1 };

typedef struct net net;

typedef struct {
    const char *name;
    tensor (*build)(net *); // from the gathered inputs to scores or a forecast
    int64_t batch, classes;
    int64_t vector, width[WIDTHS_MOST]; // columns of the vector; of layers, as the builder reads them
    int64_t T, C;                       // window
    activation act;
    float dropout, smoothing;
    bool weighted; // classes
    int loss;      // OP_cross_entropy, OP_mse or OP_mae
    bool typed;    // the vector is i8 and f16; the window has an f16 part and a scaler
    int steps;     // whole ones, with clip and AdamW; 0: one without its update
} shape_case;

struct net {
    const shape_case *k;
    graph *g;
    tensor vector, window;
    tensor scores, totals, confusion, seed, clip;
    int layers;
    void *owned[16];
    int owns;
};

// Data

static void *net_memory(net *n, size_t bytes) {
    assert_true(n->owns < 16);
    void *p = calloc(1, bytes ? bytes : 1);
    assert_non_null(p);
    return n->owned[n->owns++] = p;
}

static float random_at(uint32_t what, int64_t i) {
    rng_block r = rng_philox(31, (uint32_t)(i >> 2), what, (uint32_t)RNG_TEST << 16, 0);
    return 2 * rng_unit(r.v[i & 3]) - 1;
}

static int steps_of(const shape_case *k) {
    return k->steps ? k->steps : 1;
}

static int64_t samples_of(const shape_case *k) {
    return 2 * steps_of(k) * k->batch - k->batch / 3; // the last micro-batch is two thirds full
}

static tensor floats(net *n, uint32_t what, shape s) {
    float *v = net_memory(n, (size_t)shape_count(s) * sizeof *v);
    for (int64_t i = 0; i < shape_count(s); i++) v[i] = random_at(what, i);
    return graph_constant(n->g, "floats", DTYPE_F32, s, v);
}

static tensor integers(net *n, uint32_t what, shape s, int64_t below) {
    int32_t *v = net_memory(n, (size_t)shape_count(s) * sizeof *v);
    for (int64_t i = 0; i < shape_count(s); i++) {
        int64_t k = (int64_t)((0.5f * random_at(what, i) + 0.5f) * (float)below);
        v[i] = (int32_t)(k < below ? k : below - 1);
    }
    return graph_constant(n->g, "integers", DTYPE_I32, s, v);
}

// Random values as i8, or as halves.
static tensor narrow(net *n, uint32_t what, shape s, bool half) {
    int8_t *bytes = net_memory(n, (size_t)shape_count(s));
    uint16_t *halves = net_memory(n, (size_t)shape_count(s) * sizeof *halves);
    for (int64_t i = 0; i < shape_count(s); i++) {
        bytes[i] = (int8_t)(1.5f * random_at(what, i));
        halves[i] = half_narrow(random_at(what, i));
    }
    return graph_constant(n->g, "narrow", half ? DTYPE_F16 : DTYPE_I8, s, half ? (const void *)halves : bytes);
}

static tensor vector_of(net *n, tensor index) {
    int64_t N = samples_of(n->k), C = n->k->vector;
    if (!n->k->typed) return op_take(n->g, floats(n, 1, shape2(N, C)), index);
    tensor parts[2] = {op_take(n->g, narrow(n, 1, shape2(N, C / 2), false), index),
        op_take(n->g, narrow(n, 5, shape2(N, C - C / 2), true), index)};
    return op_concat(n->g, parts, 2);
}

// A window of every sample: rows rise with the sample, and the first few have too little history.
static tensor windows(net *n, tensor index) {
    int64_t N = samples_of(n->k);
    int32_t *row = net_memory(n, (size_t)N * sizeof *row), *first = net_memory(n, (size_t)N * sizeof *first);
    for (int64_t i = 0; i < N; i++) {
        row[i] = (int32_t)i;
        first[i] = (int32_t)(i < N / 2 ? 0 : N / 2);
    }
    tensor r = op_take(n->g, graph_constant(n->g, "row", DTYPE_I32, shape1(N), row), index);
    tensor f = op_take(n->g, graph_constant(n->g, "first", DTYPE_I32, shape1(N), first), index);
    tensor series[2] = {floats(n, 4, shape2(N, n->k->C))}, scaler = TENSOR_NONE;
    if (n->k->typed) {
        series[1] = narrow(n, 6, shape2(N, 2), true);
        scaler = floats(n, 7, shape2(2, n->k->C + 2));
    }
    return op_window(n->g, series, n->k->typed ? 2 : 1, r, f, scaler, (window_shape){n->k->T, WINDOW_FLAT});
}

// Layers

static tensor layer(net *n, tensor x, int64_t O, activation act, bool bias) {
    char w[16], b[16];
    int64_t I = shape_last(graph_info(n->g, x)->shape);
    snprintf(w, sizeof w, "w%d", n->layers);
    snprintf(b, sizeof b, "b%d", n->layers++);
    init i = {INIT_UNIFORM, 1.5f / sqrtf((float)I)};
    tensor weight = graph_parameter(n->g, w, shape2(O, I), i);
    return op_linear(n->g, x, weight, bias ? graph_parameter(n->g, b, shape1(O), i) : TENSOR_NONE, act);
}

static tensor drop(net *n, tensor x) {
    return n->k->dropout > 0 ? op_dropout(n->g, x, n->k->dropout) : x;
}

static tensor build_layers(net *n, bool bias) {
    tensor x = n->vector;
    for (int i = 0; n->k->width[i]; i++) x = drop(n, layer(n, x, n->k->width[i], n->k->act, bias));
    return layer(n, x, n->k->classes, ACT_NONE, bias);
}

static tensor build_mlp(net *n) {
    return build_layers(n, true);
}

static tensor build_mlp_without_bias(net *n) {
    return build_layers(n, false);
}

// The head of the reference model, its sequences' states replaced by layers over windows.
static tensor build_head(net *n) {
    const int64_t *w = n->k->width;
    tensor parts[3] = {layer(n, n->window, w[0], ACT_TANH, true), layer(n, n->window, w[1], ACT_SIGMOID, false),
        drop(n, layer(n, n->vector, w[2], n->k->act, true))};
    tensor joined = op_concat(n->g, parts, 3);
    tensor head = drop(n, layer(n, joined, w[3], n->k->act, true));
    return layer(n, head, n->k->classes, ACT_NONE, true);
}

// Residuals, slices, a tensor that is used several times, and layers that cannot be joined.
static tensor build_residual(net *n) {
    const int64_t *w = n->k->width;
    tensor x = layer(n, n->vector, w[0], n->k->act, true), y = layer(n, x, w[0], n->k->act, false);
    tensor sum = op_axpby(n->g, x, y, 0.75f, -0.5f);
    tensor some = op_slice(n->g, sum, w[0] / 3, w[0] / 3 + w[1]);
    tensor smooth = layer(n, drop(n, sum), w[2], ACT_GELU, true);
    tensor joined = op_concat(n->g, (const tensor[]){some, smooth, some, op_axpby(n->g, x, x, 0.5f, 0.25f)}, 4);
    tensor halved = op_axpby(n->g, joined, TENSOR_NONE, 0.5f, 0);
    return layer(n, halved, n->k->classes, ACT_NONE, true);
}

#ifdef TEST_CUDA // their layers are large, but for the lowest

// The layers of a block, of which the lowest has few columns to read.
static tensor hidden(net *n, tensor x, int first) {
    for (int i = first; n->k->width[i]; i++) x = layer(n, x, n->k->width[i], n->k->act, true);
    return x;
}

// Blocks one behind the other, as in N-BEATS: each sees what those before it have left.
static tensor build_blocks(net *n) {
    int64_t L = n->k->vector, all = L + n->k->classes;
    tensor first = layer(n, hidden(n, n->vector, 0), all, ACT_NONE, true);
    tensor rest = op_axpby(n->g, n->vector, op_slice(n->g, first, 0, L), 1, -1);
    tensor second = layer(n, hidden(n, rest, 0), all, ACT_NONE, true);
    return op_axpby(n->g, op_slice(n->g, first, L, all), op_slice(n->g, second, L, all), 1, 1);
}

// The lowest layer's result goes into a sum too: its gradient is there before the layer above it adds to that.
static tensor build_skip(net *n) {
    tensor x = layer(n, n->vector, n->k->width[0], n->k->act, true);
    return layer(n, op_axpby(n->g, x, hidden(n, x, 1), 0.75f, 1), n->k->classes, ACT_NONE, true);
}

// A small layer reads it too, and adds to its gradient behind the layer above it.
static tensor build_branch(net *n) {
    enum { BRANCH = 64 };
    tensor x = layer(n, n->vector, n->k->width[0], n->k->act, true);
    tensor parts[2] = {layer(n, x, BRANCH, n->k->act, true)};
    parts[1] = hidden(n, x, 1);
    return layer(n, op_concat(n->g, parts, 2), n->k->classes, ACT_NONE, true);
}

#endif

// The scores that a sample must have: gathered with its columns, before any layer.
static tensor truth_of(net *n, tensor index) {
    int64_t N = samples_of(n->k), classes = n->k->classes;
    bool forecast = n->k->loss != OP_cross_entropy;
    return op_take(n->g, forecast ? floats(n, 2, shape2(N, classes)) : integers(n, 2, shape1(N), classes), index);
}

static tensor loss_of(net *n, tensor truth, tensor weight) {
    const shape_case *k = n->k;
    tensor balance = TENSOR_NONE;
    if (k->loss == OP_mse) return op_mse(n->g, n->scores, truth, weight);
    if (k->loss == OP_mae) return op_mae(n->g, n->scores, truth, weight);
    if (k->weighted) {
        float *w = net_memory(n, (size_t)k->classes * sizeof *w);
        for (int64_t i = 0; i < k->classes; i++) w[i] = 0.5f + 0.25f * (float)i;
        balance = graph_constant(n->g, "balance", DTYPE_F32, shape1(k->classes), w);
    }
    n->confusion = op_confusion(n->g, n->scores, truth, weight);
    return op_cross_entropy(n->g, n->scores, truth, weight, balance, k->smoothing);
}

// With an eps that is large beside the gradients, AdamW's update is all but linear in them, so that errors of gradients
// are errors of updates and no larger. The rate changes scores by half and more, which old weights would not.
static void add_update(net *n) {
    n->clip = op_clip(n->g, n->totals, n->seed, 0.5f, false);
    op_adamw(n->g, n->clip, (adamw_settings){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1, .weight_decay = 0.01f});
    op_advance(n->g, PHASE_UPDATE);
}

static void net_init(net *n, const shape_case *k, precision p) {
    *n = (net){.k = k, .g = graph_new()};
    tensor index = op_draw(n->g, BATCH), weight = graph_sibling(n->g, index, 1);
    if (k->T) n->window = windows(n, index);
    n->vector = vector_of(n, index);
    tensor truth = truth_of(n, index);
    n->scores = k->build(n);
    graph_keep(n->g, n->scores);
    tensor loss = loss_of(n, truth, weight);
    n->totals = op_tally(n->g, loss);
    op_advance(n->g, PHASE_AFTER);
    dtype_assign(n->g, p);
    n->seed = grad_build(n->g, loss);
    if (k->steps) add_update(n);
}

static void net_done(net *n) {
    graph_free(n->g);
    for (int i = 0; i < n->owns; i++) free(n->owned[i]);
}

// Running

typedef struct {
    int64_t scores, elements;
    double *score[2], *gradient; // of the last step's micro-batches; of their sum
    double *moved;               // how far the weights have come
    double totals[TALLY_COUNT], clip[CLIP_COUNT];
    int64_t confusion[CLASSES_MOST * CLASSES_MOST];
    solo_step end;
} outcome;

static double *widened(dtype type, const void *raw, int64_t n) {
    double *v = calloc((size_t)n + 1, sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = trial_value(type, raw, i);
    return v;
}

static double *peek(net *n, solo *x, int64_t count) {
    err e;
    void *raw = malloc((size_t)(count + 1) * sizeof(double));
    assert_non_null(raw);
    trial_ok(solo_peek(x, n->scores, true, raw, &e), &e);
    double *v = widened(graph_info(n->g, n->scores)->type, raw, count);
    free(raw);
    return v;
}

static double *slab(net *n, solo *x, slab_kind kind, bool wide) {
    err e;
    int64_t count = graph_slab_elements(n->g);
    void *raw = malloc((size_t)count * sizeof(double));
    assert_non_null(raw);
    trial_ok(solo_read(x, graph_slab(n->g, kind), raw, &e), &e);
    double *v = widened(wide ? DTYPE_F64 : DTYPE_F32, raw, count);
    free(raw);
    return v;
}

static void put_start(net *n, solo *x, bool wide) {
    err e;
    int64_t count = graph_slab_elements(n->g);
    float *w = calloc((size_t)count, sizeof *w), scale[2] = {0.5f, 0};
    double *d = calloc((size_t)count, sizeof *d), scales[2] = {0.5, 0};
    assert_true(w && d);
    graph_initial(n->g, 9, w);
    for (int64_t i = 0; i < count; i++) d[i] = (double)w[i];
    trial_ok(solo_write(x, graph_slab(n->g, SLAB_WEIGHTS), wide ? (const void *)d : w, &e), &e);
    trial_ok(solo_write(x, n->seed, wide ? (const void *)scales : scale, &e), &e);
    solo_step s = {.seed = 5, .update = 3, .count = (uint64_t)samples_of(n->k), .epoch = 2, .shuffle = 1, .lr = RATE};
    trial_ok(solo_step_write(x, &s, &e), &e);
    trial_ok(solo_clear(x, n->totals, &e), &e);
    if (n->confusion.id) trial_ok(solo_clear(x, n->confusion, &e), &e);
    free(w);
    free(d);
}

static void play_micros(net *n, const device *d, queue *q, solo *x, outcome *o) {
    static const pass parts[2] = {PASS_FIRST, PASS_NEXT};
    err e;
    for (int i = 0; i < 2; i++) {
        trial_ok(solo_poison(x, 0xFF, true, &e), &e);
        trial_ok(solo_play(x, parts[i], &e), &e);
        trial_ok(d->sync(q, &e), &e);
        trial_ok(solo_guards_whole(x, true, &e), &e);
        free(o->score[i]);
        o->score[i] = peek(n, x, o->scores);
    }
}

static outcome run_parts(net *n, const device *d, queue *q, solo *x, bool wide) {
    err e;
    outcome o = {.scores = n->k->batch * n->k->classes, .elements = graph_slab_elements(n->g)};
    put_start(n, x, wide);
    double *start = slab(n, x, SLAB_WEIGHTS, wide);
    for (int i = 0; i < steps_of(n->k); i++) {
        play_micros(n, d, q, x, &o);
        if (n->k->steps) trial_ok(solo_play(x, PASS_UPDATE, &e), &e);
    }
    o.gradient = slab(n, x, SLAB_GRADIENTS, wide);
    o.moved = slab(n, x, SLAB_WEIGHTS, wide);
    for (int64_t i = 0; i < o.elements; i++) o.moved[i] -= start[i];
    free(start);
    trial_ok(solo_read(x, n->totals, o.totals, &e) && solo_step_read(x, &o.end, &e), &e);
    if (n->k->steps) trial_ok(solo_read(x, n->clip, o.clip, &e), &e);
    if (n->confusion.id) trial_ok(solo_read(x, n->confusion, o.confusion, &e), &e);
    return o;
}

typedef struct {
    card_switches card;
    size_t guard;
    bool beside; // another queue is open
} manner;

static outcome run(const shape_case *k, const place *p, manner m) {
    err e;
    net n;
    net_init(&n, k, p->precision);
    int threads = p->precision == PRECISION_FP64 ? 0 : 1; // 0: all there are
    queue *q = p->device->open(&(queue_options){.threads = threads, .isa = p->isa, .card = m.card}, &e);
    trial_ok(q != NULL, &e);
    queue *other = m.beside ? p->device->open(&(queue_options){.threads = 1}, &e) : NULL;
    trial_ok(other || !m.beside, &e);
    solo *x = solo_new(p->device, q, n.g, &(solo_options){.rows = k->batch, .guard = m.guard}, &e);
    trial_ok(x != NULL, &e);
    outcome o = run_parts(&n, p->device, q, x, p->precision == PRECISION_FP64);
    solo_free(x);
    p->device->close(q);
    if (other) p->device->close(other);
    net_done(&n);
    return o;
}

static void outcome_free(outcome *o) {
    free(o->score[0]);
    free(o->score[1]);
    free(o->gradient);
    free(o->moved);
}

// Comparing

static double norm(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

static void near(const char *what, const double *a, const double *ref, int64_t n, double share, double beside) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - ref[i]) * (a[i] - ref[i]);
    if (!(sqrt(sum) <= share * (norm(ref, n) + beside)))
        fail_msg(
            "%s: off by %.3g of %.3g, %.3g allowed", what, sqrt(sum), norm(ref, n), share * (norm(ref, n) + beside));
}

// Two slabs, parameter by parameter.
static void near_slabs(const char *where, const char *of, net *n, const double *a, const double *ref, double share) {
    char what[320];
    double all = norm(ref, graph_slab_elements(n->g));
    for (int i = 0; i < graph_parameters(n->g); i++) {
        const tensor_info *p = graph_info(n->g, graph_parameter_at(n->g, i));
        snprintf(what, sizeof what, "%s, %s of %s", where, of, p->name);
        near(what, a + p->offset, ref + p->offset, shape_count(p->shape), share, 0.1 * all);
    }
}

static void compare(const char *where, const shape_case *k, const outcome *a, const outcome *ref, double share) {
    char what[320];
    net n;
    for (int i = 0; i < 2; i++) {
        snprintf(what, sizeof what, "%s, scores of micro-batch %d", where, i);
        near(what, a->score[i], ref->score[i], ref->scores, share, 0);
    }
    net_init(&n, k, PRECISION_FP32);
    near_slabs(where, "gradient", &n, a->gradient, ref->gradient, share);
    near_slabs(where, "update", &n, a->moved, ref->moved, share);
    net_done(&n);
    snprintf(what, sizeof what, "%s, clip", where);
    near(what, &a->clip[CLIP_NORM], &ref->clip[CLIP_NORM], 1, share, 0);
    near(what, &a->clip[CLIP_FACTOR], &ref->clip[CLIP_FACTOR], 1, share, 0);
    if (memcmp(a->clip + CLIP_TAKEN, ref->clip + CLIP_TAKEN, (CLIP_COUNT - CLIP_TAKEN) * sizeof *a->clip) != 0)
        fail_msg("%s differs", what);
    snprintf(what, sizeof what, "%s, totals", where);
    near(what, a->totals, ref->totals, TALLY_COUNT, share, 0);
    int64_t rows = 0, moved = 0, live = k->loss == OP_cross_entropy ? samples_of(k) : 0;
    for (int i = 0; i < CLASSES_MOST * CLASSES_MOST; i++) {
        rows += a->confusion[i];
        moved += llabs(a->confusion[i] - ref->confusion[i]);
    }
    if (rows != live || (double)moved > 2 * (1 + share * 8 * (double)live))
        fail_msg("%s: %lld rows counted instead of %lld, %lld of them elsewhere", where, (long long)rows,
            (long long)live, (long long)moved / 2);
    if (memcmp(&a->end, &ref->end, sizeof a->end) != 0) fail_msg("%s: the step record differs", where);
}

static bool are_same_bits(const outcome *a, const outcome *b) {
    bool same = memcmp(a->gradient, b->gradient, (size_t)a->elements * sizeof(double)) == 0 &&
                memcmp(a->moved, b->moved, (size_t)a->elements * sizeof(double)) == 0 &&
                memcmp(a->totals, b->totals, sizeof a->totals) == 0 && memcmp(a->clip, b->clip, sizeof a->clip) == 0 &&
                memcmp(a->confusion, b->confusion, sizeof a->confusion) == 0;
    for (int i = 0; i < 2; i++)
        same = same && memcmp(a->score[i], b->score[i], (size_t)a->scores * sizeof(double)) == 0;
    return same;
}

static void same_bits(const char *where, const outcome *a, const outcome *b) {
    if (!are_same_bits(a, b)) fail_msg("%s: bits differ between equal runs", where);
}

// A ReLU may be on one side here and on the other there: often where operands are rounded, so that such nets are
// compared with double precision in fp32 alone, and once in a million elements otherwise, each of which is worth up to
// a percent.
static bool kinked(const shape_case *k, const place *p) {
    return k->act == ACT_RELU && p->precision != PRECISION_FP32;
}

// A mean absolute error has a kink at every element.
static double share_of(const shape_case *k, const place *p) {
    double share = p->tolerance * (k->loss == OP_mae ? 8 : 2);
    return k->act == ACT_RELU && share < 0.03 ? 0.03 : share;
}

// The same without joining, launched call by call, and beside another queue, where no block waits for another.
static void check_joined(
    const char *where, const shape_case *k, const place *p, const outcome *fused, const outcome *shared) {
    outcome eager = run(k, p, (manner){.card.debug = true, .guard = 64}),
            alone = run(k, p, (manner){.card.no_fuse = true, .guard = 64}),
            beside = run(k, p, (manner){.guard = 64, .beside = true});
    compare(where, k, fused, &alone, share_of(k, p));
    compare(where, k, shared, &alone, share_of(k, p));
    same_bits(where, fused, &eager);
    same_bits(where, fused, &beside);
    outcome_free(&beside);
    outcome_free(&eager);
    outcome_free(&alone);
}

// Large cases are for cards: the CPU takes them with its best instruction set. Under a slow checker, which sets a size,
// the case with the least work stands for what takes so many rows.
static bool is_large(const shape_case *k) {
    return k->batch * k->vector > 200000;
}

// True if the card has products of its own for large layers.
static bool is_hopper(const device *d) {
    device_identity is;
    err e;
    queue *q = d->open(&(queue_options){.threads = 1}, &e);
    trial_ok(q != NULL, &e);
    d->identify(q, &is);
    d->close(q);
    return is.arch == 90 && !is.ptx;
}

// The same with the library's products: operands are rounded in the same places, so that results are closer than to
// those of any other manner. The last rows of a share, lost, are worth more than the 1 % that is allowed. Of weight
// gradients together they are not the same bits, since others add up the rows.
static void check_products(const char *where, const shape_case *k, const place *p, const outcome *fused) {
    if (!is_large(k) || k->act != ACT_RELU || (p->precision != PRECISION_BF16 && p->precision != PRECISION_FP16))
        return;
    outcome library = run(k, p, (manner){.card.no_product = true, .guard = 64});
    compare(where, k, fused, &library, 0.01);
    if (strstr(k->name, "weights") && is_hopper(p->device) && are_same_bits(fused, &library))
        fail_msg("%s: the library's products were used", where);
    outcome_free(&library);
}

// The same by a row kernel's instructions: rounded in the same places, so that only the order of sums differs. The
// last rows of a block, lost, are worth more than what is allowed. Where no product is large, since the library cannot
// compute it, the layer below may join the row kernel, which then is no head.
static void check_head(const char *where, const shape_case *k, const place *p, const outcome *fused) {
    bool low = p->precision == PRECISION_BF16 || p->precision == PRECISION_FP16;
    if (!strstr(k->name, "one pass")) return;
    outcome other = run(k, p, (manner){.card.no_head = true, .guard = 64});
    compare(where, k, fused, &other, p->precision == PRECISION_BF16 ? 4e-3 : 1e-3);
    bool used = !are_same_bits(fused, &other);
    if (low && !used && is_hopper(p->device)) fail_msg("%s: the head was not used", where);
    if (!low && used) fail_msg("%s: the head was used", where);
    outcome_free(&other);
}

static void check_place(const shape_case *k, const place *p, const outcome *ref) {
    char where[256];
    snprintf(where, sizeof where, "%s, batch %lld, on %s %s", k->name, (long long)k->batch, p->device->name,
        precision_name(p->precision));
    outcome fused = run(k, p, (manner){.guard = 64}), again = run(k, p, (manner){.guard = 64}),
            shared = run(k, p, (manner){0});
    if (!kinked(k, p)) compare(where, k, &fused, ref, share_of(k, p));
    if (!kinked(k, p)) compare(where, k, &shared, ref, share_of(k, p));
    same_bits(where, &fused, &again);
    if (!p->device->host_memory) check_joined(where, k, p, &fused, &shared);
    if (!p->device->host_memory) check_products(where, k, p, &fused);
    if (!p->device->host_memory) check_head(where, k, p, &fused);
    outcome_free(&fused);
    outcome_free(&again);
    outcome_free(&shared);
}

static const shape_case cases[] = {
    {"mlp", build_mlp, 512, 3, 64, {512, 256}, 0, 0, ACT_RELU, 0, 0, false, OP_cross_entropy, false, 0},
    {"mlp, tanh", build_mlp, 257, 3, 64, {512, 256}, 0, 0, ACT_TANH, 0.25f, 0.125f, true, OP_cross_entropy, false, 0},
    {"mlp of one row", build_mlp, 1, 2, 1, {1, 3}, 0, 0, ACT_TANH, 0.5f, 0, false, OP_cross_entropy, false, 0},
    {"mlp of odd widths", build_mlp, 33, 7, 7, {33, 1, 129, 35}, 0, 0, ACT_SIGMOID, 0.25f, 0, true, OP_cross_entropy,
        false, 0},
    {"head", build_head, 1000, 3, 64, {64, 32, 32, 64}, 20, 8, ACT_RELU, 0.25f, 0, true, OP_cross_entropy, false, 0},
    {"head, tanh", build_head, 257, 3, 64, {64, 32, 32, 64}, 20, 8, ACT_TANH, 0.25f, 0.125f, false, OP_cross_entropy,
        false, 0},
    {"head, odd", build_head, 7, 5, 3, {5, 2, 9, 17}, 3, 3, ACT_TANH, 0.5f, 0.25f, true, OP_cross_entropy, false, 0},
    {"head, two tiles a block", build_head, 4300, 3, 33, {64, 32, 31, 64}, 5, 3, ACT_TANH, 0.25f, 0, false,
        OP_cross_entropy, false, 0},
    {"residual", build_residual, 33, 7, 9, {36, 7, 33}, 0, 0, ACT_TANH, 0.25f, 0, false, OP_mse, false, 0},
    {"residual, many rows", build_residual, 1000, 12, 60, {128, 64, 128}, 0, 0, ACT_TANH, 0, 0, false, OP_mse, false,
        0},
    {"residual, absolute", build_residual, 257, 1, 5, {6, 3, 2}, 0, 0, ACT_SIGMOID, 0.25f, 0, false, OP_mae, false, 0},
    {"head, typed columns", build_head, 257, 3, 9, {64, 32, 32, 64}, 5, 4, ACT_TANH, 0.25f, 0, false, OP_cross_entropy,
        true, 0},
    {"wide, uneven", build_mlp, 257, 3, 60, {260, 256}, 0, 0, ACT_TANH, 0.25f, 0, false, OP_cross_entropy, false, 0},
    {"wide, without bias", build_mlp_without_bias, 100, 5, 33, {264, 520}, 0, 0, ACT_SIGMOID, 0.25f, 0, true,
        OP_cross_entropy, false, 0},
    {"wide, two tiles a block", build_mlp, 4300, 3, 60, {256, 40}, 0, 0, ACT_TANH, 0.25f, 0, false, OP_cross_entropy,
        false, 0},
    {"wide, two tiles a block, without bias", build_mlp_without_bias, 4300, 3, 33, {264}, 0, 0, ACT_TANH, 0, 0, false,
        OP_cross_entropy, false, 0},
    {"gradients in large tiles", build_mlp, 4300, 3, 1028, {66}, 0, 0, ACT_TANH, 0, 0, false, OP_cross_entropy, false,
        0},
    {"two steps", build_mlp, 257, 3, 64, {512, 256}, 0, 0, ACT_TANH, 0.25f, 0, true, OP_cross_entropy, false, 2},
    {"two steps, head", build_head, 100, 5, 9, {33, 7, 32, 40}, 5, 3, ACT_TANH, 0.25f, 0.125f, false, OP_cross_entropy,
        false, 2},
    {"two steps, forecast", build_residual, 33, 7, 9, {36, 7, 33}, 0, 0, ACT_TANH, 0.25f, 0, false, OP_mse, false, 2},
#ifdef TEST_CUDA // products that the card leaves to cuBLASLt, between others; minutes for a CPU's plain kernels
    {"large products", build_residual, 2048, 12, 384, {384, 128, 256}, 0, 0, ACT_TANH, 0.25f, 0, false, OP_mse, false,
        2},
    {"large products, relu", build_mlp, 4100, 3, 64, {512, 256}, 0, 0, ACT_RELU, 0, 0, false, OP_cross_entropy, false,
        2},
    {"large products, weights together", build_mlp, 1032, 3, 512, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products, relu, long sums", build_mlp, 2060, 3, 512, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products, weights in shares", build_mlp, 4150, 3, 512, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products, weights in shares, uneven", build_mlp, 7200, 3, 520, {776, 328, 648}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 0},
    {"large products, weights in shares, without bias", build_mlp_without_bias, 5000, 3, 520, {776, 328, 648}, 0, 0,
        ACT_RELU, 0, 0, false, OP_cross_entropy, false, 0},
    {"large products, relu, one tile a block", build_mlp, 1030, 3, 512, {512, 256}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 0},
    {"large products, relu and dropout", build_mlp, 4100, 3, 64, {512, 256}, 0, 0, ACT_RELU, 0.25f, 0, false,
        OP_cross_entropy, false, 0},
    // The last layer, its loss and back in one pass: whole rows of blocks and not, two to four classes, runs in all
    // lanes or some.
    {"large products, head in one pass", build_mlp, 4352, 3, 64, {512, 256}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products, head in one pass, dropout", build_mlp, 4301, 4, 64, {512, 128}, 0, 0, ACT_RELU, 0.25f, 0.125f,
        true, OP_cross_entropy, false, 2},
    {"large products, head in one pass, tanh", build_mlp, 4230, 2, 64, {512, 200}, 0, 0, ACT_TANH, 0.25f, 0.125f, true,
        OP_cross_entropy, false, 0},
    {"large products, head in one pass, many rows", build_mlp, 17001, 3, 64, {128}, 0, 0, ACT_TANH, 0, 0, false,
        OP_cross_entropy, false, 0},
    {"large products, head in one pass, over a small layer", build_mlp, 17001, 3, 196, {256}, 0, 0, ACT_RELU, 0, 0,
        false, OP_cross_entropy, false, 0},
    {"large products, weights in shares, head in one pass", build_mlp, 4352, 3, 512, {512, 512, 256}, 0, 0, ACT_RELU, 0,
        0, false, OP_cross_entropy, false, 0},
    {"large products, head in one pass, without bias", build_mlp_without_bias, 4300, 3, 64, {512, 64}, 0, 0, ACT_TANH,
        0, 0, false, OP_cross_entropy, false, 0},
    // The lowest layers have 196, 100 or 24 columns to read, which makes them small; a large one does their slope.
    {"large products over a small layer", build_mlp, 1032, 3, 196, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products over a small layer, long sums", build_mlp, 2060, 3, 100, {512, 512}, 0, 0, ACT_RELU, 0, 0, false,
        OP_cross_entropy, false, 2},
    {"large products over a small layer, without bias", build_mlp_without_bias, 1032, 3, 196, {512, 512}, 0, 0,
        ACT_RELU, 0, 0, false, OP_cross_entropy, false, 0},
    {"blocks", build_blocks, 1032, 12, 196, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse, false, 0},
    {"blocks, long sums", build_blocks, 2060, 12, 100, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse, false, 0},
    {"blocks, weights in shares", build_blocks, 7200, 12, 100, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse,
        false, 0},
    {"blocks, two tiles a block", build_blocks, 8400, 12, 24, {512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse, false,
        0},
    // Here others add to the lowest layer's gradient: it does its slope itself.
    {"blocks, skipped", build_skip, 1032, 12, 196, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse, false, 0},
    {"blocks, branched", build_branch, 1032, 12, 196, {512, 512, 512}, 0, 0, ACT_RELU, 0, 0, false, OP_mse, false, 0},
#endif
};
enum { CASES = sizeof cases / sizeof *cases };

static const place double_place = {&cpu_double_device, NULL, PRECISION_FP64, 1e-12, {0}};

static void test_case(void **state) {
    const shape_case *k = *state;
    if (is_large(k) && trial_size_most() < k->batch) skip();
    place p[PLACES_MOST];
    int count = trial_places(p);
    outcome ref = run(k, &double_place, (manner){0});
    for (int i = 0; i < count; i++)
        if (!is_large(k) || !p[i].device->host_memory || i == 0) check_place(k, &p[i], &ref);
    outcome_free(&ref);
}

int main(void) {
    struct CMUnitTest tests[CASES];
    for (int i = 0; i < CASES; i++)
        tests[i] = (struct CMUnitTest){cases[i].name, test_case, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    return parts_run("fused", tests, CASES);
}
