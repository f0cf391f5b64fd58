// PyTorch's numbers: outputs, loss, gradients and ten AdamW steps of small models, on every CPU device and instruction
// set, or on the card (TEST_CUDA). golden/make_golden.py made the dumps and says what is in them; TRADEWIND_TEST_DIR in
// the environment says where they are, for a binary that has travelled.
//
// Sums of products err by rounding errors of their largest terms, so tolerances ought to scale with the sum of |a||b|;
// the largest magnitude of the tensor at hand stands in for it.
#include "cpu/cpu.h"
#include "graph/grad.h"
#include "model/model.h"
#include "ops/trial.h"
#include "run/safetensors.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 10, OWNED_MOST = 16 };

typedef struct {
    const char *name;
    safetensors *file;
    void *owned[OWNED_MOST]; // copies of inputs, aligned
    int owns;
} dump;

static bool is_wide(const place *p) {
    return p->precision == PRECISION_FP64;
}

// True if products are rounded below fp32: then only losses are compared.
static bool is_low(const place *p) {
    return p->precision != PRECISION_FP32 && !is_wide(p);
}

// The dump

static const safetensors_entry *entry(const dump *f, const char *prefix, const char *name) {
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const safetensors_entry *t = safetensors_find(f->file, full);
    if (!t) fail_msg("%s has no %s", f->name, full);
    return t;
}

static float number(const safetensors_entry *t, int64_t i) {
    float v;
    assert_int_equal(t->type, SAFE_F32);
    assert_true((size_t)(i + 1) * sizeof v <= t->bytes);
    memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
    return v;
}

static void *copy_of(dump *f, const safetensors_entry *t) {
    assert_true(f->owns < OWNED_MOST);
    void *p = malloc(t->bytes);
    assert_non_null(p);
    return f->owned[f->owns++] = memcpy(p, t->data, t->bytes);
}

static shape shape_of(const safetensors_entry *t) {
    shape s = {.rank = t->rank};
    memcpy(s.dim, t->dim, (size_t)t->rank * sizeof *s.dim);
    return s;
}

static tensor constant(dump *f, graph *g, const char *prefix, const char *name) {
    const safetensors_entry *t = entry(f, prefix, name);
    dtype type = t->type == SAFE_I32 ? DTYPE_I32 : DTYPE_F32;
    return graph_constant(g, name, type, shape_of(t), copy_of(f, t));
}

static bool has(const dump *f, const char *name) {
    return safetensors_find(f->file, name) != NULL;
}

static int64_t rows_of(const dump *f, const char *parameter) {
    return entry(f, "param.", parameter)->dim[0];
}

// PyTorch's initial states are [layer * direction, B, H], ours [B, direction * H] for a layer: `name` is "h0.l1".
static float state_number(const dump *f, const char *prefix, const char *name, int64_t i) {
    char whole[16];
    snprintf(whole, sizeof whole, "%.2s", name);
    const safetensors_entry *t = entry(f, prefix, whole);
    int64_t layer = name[4] - '0', batch = t->dim[1], H = t->dim[2];
    int64_t b = i / (2 * H), direction = i / H % 2, u = i % H;
    return number(t, ((layer * 2 + direction) * batch + b) * H + u);
}

// Element i of a parameter, or of what belongs to it: "param", "grad64", "param_after".
static double stored(const dump *f, const char *kind, const tensor_info *p, int64_t i) {
    char prefix[32];
    if (strncmp(p->name, "input.", 6) != 0) {
        snprintf(prefix, sizeof prefix, "%s.", kind);
        return (double)number(entry(f, prefix, p->name), i);
    }
    bool value = strcmp(kind, "param") == 0;
    snprintf(prefix, sizeof prefix, "%s%sinput.", value ? "" : kind, value ? "" : ".");
    return (double)state_number(f, prefix, p->name + 6, i);
}

// Models

// Keys of a model, one after the other.
typedef struct {
    char text[512];
    size_t used;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    w->used += (size_t)vsnprintf(w->text + w->used, sizeof w->text - w->used, fmt, args);
    va_end(args);
    assert_true(w->used < sizeof w->text);
}

// The model of these keys over the dump's inputs. Dumps have no dropout.
static tensor build_of(dump *f, graph *g, words *keys, const model_data *d) {
    say(keys, " model.dropout=0");
    model_spec s = support_model(keys->text, d);
    for (int i = 0; i < s.streams; i++) s.stream[i].x = constant(f, g, "input.", s.stream[i].name);
    if (has(f, "input.vector")) s.vector = constant(f, g, "input.", "vector");
    return model_build(g, &s);
}

static void say_number(words *w, const char *key, int64_t value) {
    say(w, " model.%s=%lld", key, (long long)value);
}

static tensor build_lstm(dump *f, graph *g) {
    words w = {"model.kind=lstm", 15};
    say_number(&w, "hidden.fast", rows_of(f, "fast.weight_hh_l0") / 4);
    say_number(&w, "hidden.slow", rows_of(f, "slow.weight_hh_l0") / 4);
    say_number(&w, "projection", rows_of(f, "strat.0.weight"));
    say_number(&w, "head", rows_of(f, "head.0.weight"));
    return build_of(f, g, &w, &(model_data){.streams = 2, .stream = {"fast", "slow"}, .classes = 3});
}

static tensor build_mlp(dump *f, graph *g) {
    words w = {"model.kind=mlp", 14};
    say(&w, " model.widths=%lld-%lld", (long long)rows_of(f, "net.0.weight"), (long long)rows_of(f, "net.2.weight"));
    say(&w, " model.activation=%s", strstr(f->name, "gelu") ? "gelu" : "relu");
    return build_of(f, g, &w, &(model_data){.streams = 1, .stream = {"x"}, .classes = 3});
}

// A setting that the dump tells of its model.
static const char *setting(const dump *f, const char *name) {
    const char *text = safetensors_metadata(f->file, name);
    if (!text) fail_msg("%s does not say its %s", f->name, name);
    return text;
}

static int64_t setting_number(const dump *f, const char *name) {
    return strtoll(setting(f, name), NULL, 10);
}

static tensor build_transformer(dump *f, graph *g) {
    words w = {"model.kind=transformer", 22};
    bool slow = has(f, "input.slow");
    say_number(&w, "hidden.fast", rows_of(f, "fast.input.weight"));
    if (slow) say_number(&w, "hidden.slow", rows_of(f, "slow.input.weight"));
    if (has(f, "input.vector")) say_number(&w, "projection", rows_of(f, "strat.0.weight"));
    say_number(&w, "head", has(f, "param.head.3.weight") ? rows_of(f, "head.0.weight") : 0);
    say_number(&w, "layers", setting_number(f, "layers"));
    say_number(&w, "heads", setting_number(f, "heads"));
    say_number(&w, "ff", rows_of(f, "fast.encoder.layers.0.linear1.weight"));
    say(&w, " model.activation=%s model.pooling=%s", setting(f, "activation"), setting(f, "pooling"));
    say(&w, " model.causal=%s", setting_number(f, "causal") ? "true" : "false");
    return build_of(f, g, &w, &(model_data){.streams = slow ? 2 : 1, .stream = {"fast", "slow"}, .classes = 3});
}

static tensor build_nbeats(dump *f, graph *g) {
    words w = {"model.kind=nbeats", 17};
    model_data d = {.streams = 1, .stream = {"fast"}, .series = true, .horizon = setting_number(f, "horizon")};
    char stacks[128];
    snprintf(stacks, sizeof stacks, "%s", setting(f, "stacks"));
    for (char *at = stacks; *at; at++)
        if (*at == ' ') *at = ',';
    say(&w, " model.stacks=%s", stacks);
    say_number(&w, "blocks", setting_number(f, "blocks"));
    say_number(&w, "layers", setting_number(f, "layers"));
    say_number(&w, "degree", setting_number(f, "degree"));
    say_number(&w, "width", rows_of(f, "blocks.0.fc.0.weight"));
    if (has(f, "param.head.0.weight")) {
        d.classes = 3;
        say_number(&w, "horizon", d.horizon);
        say_number(&w, "head", rows_of(f, "head.0.weight"));
    }
    return build_of(f, g, &w, &d);
}

static tensor parameter(const dump *f, graph *g, const char *name) {
    return graph_parameter(g, name, shape_of(entry(f, "param.", name)), (init){INIT_ZERO, 0});
}

// A layer's initial state: a parameter where its gradient is wanted, else a constant.
static tensor initial_state(dump *f, graph *g, const char *which, int layer, bool train) {
    char name[32];
    const safetensors_entry *t = entry(f, "input.", which);
    shape s = shape2(t->dim[1], 2 * t->dim[2]);
    snprintf(name, sizeof name, "input.%s.l%d", which, layer);
    if (!train) return graph_parameter(g, name, s, (init){INIT_ZERO, 0});
    float *v = copy_of(f, t); // as large as both layers
    for (int64_t i = 0; i < shape_count(s); i++) v[i] = state_number(f, "input.", name + 6, i);
    return graph_constant(g, name, DTYPE_F32, s, v);
}

static tensor build_deep(dump *f, graph *g, bool train) {
    static const char *const parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    tensor x = constant(f, g, "input.", "x");
    for (int layer = 0; layer < 2; layer++) {
        tensor w[2 * LSTM_PER_DIRECTION];
        for (int k = 0; k < 2 * LSTM_PER_DIRECTION; k++) {
            char name[64];
            snprintf(name, sizeof name, "lstm.%s_l%d%s", parts[k % 4], layer, k < 4 ? "" : "_reverse");
            w[k] = parameter(f, g, name);
        }
        tensor h0 = initial_state(f, g, "h0", layer, train), c0 = initial_state(f, g, "c0", layer, train);
        x = op_lstm(g, x, w, 2, h0, c0, TENSOR_NONE, true);
    }
    return op_linear(
        g, op_mean_time(g, x, TENSOR_NONE), parameter(f, g, "out.weight"), parameter(f, g, "out.bias"), ACT_NONE);
}

static tensor build_model(dump *f, graph *g, bool train) {
    if (strcmp(f->name, "lstm_deep") == 0) return build_deep(f, g, train);
    if (strncmp(f->name, "transformer", 11) == 0) return build_transformer(f, g);
    if (strncmp(f->name, "nbeats", 6) == 0) return build_nbeats(f, g);
    return strncmp(f->name, "lstm", 4) == 0 ? build_lstm(f, g) : build_mlp(f, g);
}

// A model with its loss and optimizer on a device

typedef struct {
    graph *g;
    tensor logits, totals, clip, seed;
    const place *p;
    queue *q;
    solo *x;
} stand;

static float smoothing_of(const dump *f) {
    const char *text = safetensors_metadata(f->file, "label_smoothing");
    assert_non_null(text);
    return strtof(text, NULL);
}

// Dumps that do not say their objective are of cross-entropy.
static tensor loss_of(dump *f, graph *g, tensor y) {
    const char *objective = safetensors_metadata(f->file, "objective");
    tensor weight = constant(f, g, "", "weight");
    if (objective && strcmp(objective, "mae") == 0) return op_mae(g, y, constant(f, g, "", "target"), weight);
    if (objective && strcmp(objective, "huber") == 0) return op_huber(g, y, constant(f, g, "", "target"), weight, 0.5f);
    tensor balance = has(f, "class_weight") ? constant(f, g, "", "class_weight") : TENSOR_NONE;
    return op_cross_entropy(g, y, constant(f, g, "", "label"), weight, balance, smoothing_of(f));
}

static void build(stand *s, dump *f, bool train) {
    graph *g = s->g = graph_new();
    s->logits = build_model(f, g, train);
    tensor loss = loss_of(f, g, s->logits);
    s->totals = op_tally(g, loss);
    op_advance(g, PHASE_AFTER);
    graph_keep(g, s->logits);
    dtype_assign(g, s->p->precision);
    s->seed = grad_build(g, loss);
    s->clip = op_clip(g, s->totals, s->seed, 1, s->p->precision == PRECISION_FP16);
    op_adamw(g, s->clip, (adamw_settings){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0.01f});
    op_advance(g, PHASE_UPDATE);
}

// Doubles to and from the device's own type.
static void put(stand *s, tensor t, const double *v, int64_t n) {
    err e;
    float *narrow = malloc((size_t)n * sizeof *narrow);
    assert_non_null(narrow);
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)v[i];
    support_ok(solo_write(s->x, t, is_wide(s->p) ? (const void *)v : narrow, &e), &e);
    free(narrow);
}

static double *get(stand *s, tensor t, bool peek) {
    err e;
    int64_t n = shape_count(graph_info(s->g, t)->shape);
    double *v = malloc((size_t)n * sizeof *v);
    float *narrow = malloc((size_t)n * sizeof *narrow);
    assert_non_null(v);
    assert_non_null(narrow);
    void *to = is_wide(s->p) ? (void *)v : narrow;
    support_ok(peek ? solo_peek(s->x, t, true, to, &e) : solo_read(s->x, t, to, &e), &e);
    for (int64_t i = 0; !is_wide(s->p) && i < n; i++) v[i] = (double)narrow[i];
    free(narrow);
    return v;
}

static void load_parameters(stand *s, const dump *f) {
    int64_t n = graph_slab_elements(s->g);
    double *w = calloc((size_t)n, sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < graph_parameters(s->g); i++) {
        const tensor_info *p = graph_info(s->g, graph_parameter_at(s->g, i));
        for (int64_t k = 0; k < shape_count(p->shape); k++) w[p->offset + k] = stored(f, "param", p, k);
    }
    put(s, graph_slab(s->g, SLAB_WEIGHTS), w, n);
    free(w);
}

static stand stand_open(dump *f, const place *p, bool train) {
    err e;
    stand s = {.p = p};
    build(&s, f, train);
    s.q = p->device->open(&(queue_options){.threads = 1, .isa = p->isa}, &e);
    support_ok(s.q != NULL, &e);
    s.x = solo_new(p->device, s.q, s.g, &(solo_options){.rows = entry(f, "", "weight")->dim[0]}, &e);
    support_ok(s.x != NULL, &e);
    load_parameters(&s, f);
    put(&s, s.seed, (double[2]){p->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0}, 2);
    solo_step begin = {.count = 1000, .lr = 1e-3f};
    support_ok(solo_step_write(s.x, &begin, &e), &e);
    return s;
}

static void stand_close(stand *s) {
    solo_free(s->x);
    s->p->device->close(s->q);
    graph_free(s->g);
}

static void play(stand *s, pass part) {
    err e;
    support_ok(solo_play(s->x, part, &e), &e);
}

static double loss_now(stand *s) {
    err e;
    double totals[TALLY_COUNT];
    support_ok(solo_read(s->x, s->totals, totals, &e), &e);
    return totals[TALLY_STEP_SUM] / totals[TALLY_STEP_NORM];
}

static double normaliser(stand *s) {
    err e;
    double totals[TALLY_COUNT];
    support_ok(solo_read(s->x, s->totals, totals, &e), &e);
    return totals[TALLY_STEP_NORM];
}

// Comparing

static void check_near(const dump *f, const place *p, const char *what, double is, double want, double tolerance) {
    if (!(fabs(is - want) <= tolerance))
        fail_msg("%s on %s %s %s: %s is %.9g instead of %.9g", f->name, p->device->name, p->isa ? p->isa : "",
            precision_name(p->precision), what, is, want);
}

static void check_output(stand *s, const dump *f, double tolerance) {
    const safetensors_entry *ref = entry(f, "", "output64");
    assert_true(shape_equal(graph_info(s->g, s->logits)->shape, shape_of(ref)));
    double *z = get(s, s->logits, true), scale = 0;
    int64_t n = ref->dim[0] * ref->dim[1];
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs((double)number(ref, i)));
    for (int64_t i = 0; i < n; i++) check_near(f, s->p, "an output", z[i], (double)number(ref, i), tolerance * scale);
    free(z);
}

// A bias of attention's keys moves no probability: its gradient is 0, and AdamW steps by the sign of what rounding
// left.
static bool moves_nothing(const tensor_info *p, int64_t k) {
    int64_t n = shape_count(p->shape);
    return strstr(p->name, "in_proj_bias") && k >= n / 3 && k < 2 * n / 3;
}

// `v` is a slab, divided by `by`; `kind` names what each of its parameters is compared with.
static void check_slab(stand *s, const dump *f, tensor slab, double by, const char *kind, double share, double floor) {
    double *v = get(s, slab, false);
    for (int i = 0; i < graph_parameters(s->g); i++) {
        const tensor_info *p = graph_info(s->g, graph_parameter_at(s->g, i));
        int64_t n = shape_count(p->shape);
        double scale = 0;
        for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs(stored(f, kind, p, k)));
        for (int64_t k = 0; k < n; k++)
            if (strcmp(kind, "param_after") != 0 || !moves_nothing(p, k))
                check_near(f, s->p, p->name, v[p->offset + k] / by, stored(f, kind, p, k), share * scale + floor);
    }
    free(v);
}

static void check_gradients(dump *f, const place *p) {
    stand s = stand_open(f, p, false);
    play(&s, PASS_FIRST);
    check_output(&s, f, p->tolerance);
    check_near(f, p, "the loss", loss_now(&s), (double)number(entry(f, "", "loss"), 0), fmax(1e-5, p->tolerance));
    check_slab(&s, f, graph_slab(s.g, SLAB_GRADIENTS), normaliser(&s), "grad64", p->tolerance, 0);
    stand_close(&s);
}

// Ten steps err by ten times what one does; fp32's losses by 1e-4 at most, on a card too. In less than fp32 the loss is
// held to the rounding of what it is made from; a gradient may then be nearer to 0 than its error, and AdamW steps by
// its sign.
static void check_training(dump *f, const place *p) {
    err e;
    stand s = stand_open(f, p, true);
    const safetensors_entry *losses = entry(f, "", "losses"), *norms = entry(f, "", "grad_norm");
    double bound = is_low(p) ? p->tolerance : fmax(1e-4, 10 * p->tolerance), loss_bound = is_low(p) ? bound : 1e-4;
    double most = 0;
    for (int i = 0; i < STEPS; i++) {
        double clip[CLIP_COUNT], norm = (double)number(norms, i), loss = (double)number(losses, i);
        play(&s, PASS_FIRST);
        play(&s, PASS_UPDATE);
        support_ok(solo_read(s.x, s.clip, clip, &e), &e);
        most = fmax(most, fabs(loss_now(&s) - loss));
        check_near(f, p, "a step's loss", loss_now(&s), loss, loss_bound);
        assert_true(clip[CLIP_TAKEN] == i + 1);
        if (!is_low(p)) check_near(f, p, "a step's gradient norm", clip[CLIP_NORM], norm, bound * norm);
    }
    if (!is_low(p)) check_slab(&s, f, graph_slab(s.g, SLAB_WEIGHTS), 1, "param_after", 0, bound);
    if (!p->device->host_memory)
        print_message("%s in %s: losses within %.2g of PyTorch's, %.2g allowed\n", f->name,
            precision_name(p->precision), most, loss_bound);
    stand_close(&s);
}

static void dump_release(dump *f) {
    for (int i = 0; i < f->owns; i++) free(f->owned[i]);
    f->owns = 0;
}

static void check_place(dump *f, const place *p) {
    if (!is_low(p)) check_gradients(f, p);
    dump_release(f);
    check_training(f, p);
    dump_release(f);
}

#ifdef TEST_CUDA

// On the card an fp32 product is three products of tf32 halves, which err by 2^-21 instead of 2^-24: 8 times the CPU's
// tolerance. The other precisions have their own, from their mantissas (trial_places).
static void check_places(dump *f) {
    place p[PLACES_MOST];
    int count = trial_places(p);
    for (int i = 0; i < count; i++) {
        if (p[i].precision == PRECISION_FP32) p[i].tolerance *= 8;
        check_place(f, &p[i]);
    }
}

#else

static void check_places(dump *f) {
    check_place(f, &(place){&cpu_double_device, NULL, PRECISION_FP64, 2e-7, {0}});
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++) {
        check_place(f, &(place){&cpu_device, *isa, PRECISION_FP32, 1e-5, {0}});
        check_place(f, &(place){&cpu_plain_device, *isa, PRECISION_FP32, 1e-5, {0}});
    }
}

#endif

// Every parameter of the dump is one of the model, under the same name.
static void check_names(dump *f) {
    place p = {&cpu_device, NULL, PRECISION_FP32, 0, {0}};
    stand s = stand_open(f, &p, true);
    int named = 0;
    for (int i = 0; i < safetensors_count(f->file); i++) {
        const char *name = safetensors_at(f->file, i)->name;
        if (strncmp(name, "param.", 6) != 0) continue;
        named++;
        tensor t = graph_parameter_named(s.g, name + 6);
        if (!t.id) fail_msg("%s: the model has no parameter %s", f->name, name + 6);
        assert_true(shape_equal(graph_info(s.g, t)->shape, shape_of(safetensors_at(f->file, i))));
    }
    assert_int_equal(named, graph_parameters(s.g));
    stand_close(&s);
    dump_release(f);
}

static void agrees_with_pytorch(void **state) {
    err e;
    char path[4096];
    dump f = {.name = *state};
    const char *dir = getenv("TRADEWIND_TEST_DIR");
    snprintf(path, sizeof path, "%s/golden/%s.safetensors", dir ? dir : TEST_DIR, f.name);
    if (access(path, F_OK) != 0) {
        print_message("SKIPPED: %s: there is no %s; test/golden/make_golden.py makes it\n", f.name, path);
        skip();
    }
    f.file = safetensors_open(path, &e);
    support_ok(f.file != NULL, &e);
    check_names(&f);
    check_places(&f);
    safetensors_close(f.file);
}

int main(void) {
    static char names[][24] = {"lstm_reference", "lstm_small", "lstm_deep", "mlp", "mlp_gelu", "transformer",
        "transformer_causal", "transformer_two", "nbeats", "nbeats_basis", "nbeats_class"};
    enum { COUNT = sizeof names / sizeof *names };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++) tests[i] = (struct CMUnitTest){names[i], agrees_with_pytorch, NULL, NULL, names[i]};
    return _cmocka_run_group_tests("golden", tests, COUNT, NULL, NULL);
}
