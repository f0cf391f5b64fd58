// PyTorch's gradients of one minibatch of an agent's learner, for nets that see sequences: an LSTM over a rollout, and
// a transformer over lags. The learner's own graph is played on tables of a rollout that golden/make_ppo_nets.py made;
// its dumps hold the states, the parameters and the gradients by the names that the learner has for them.
// TRADEWIND_TEST_DIR in the environment says where they are, for a binary that has travelled.
#include "cpu/cpu.h"
#include "ops/trial.h"
#include "rl/graphs.h"
#include "rl/nets.h"
#include "rl/scene.h"
#include "run/safetensors.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    const char *name;
    safetensors *file;
    agent_settings s;
    model_spec net;
} dump;

typedef struct {
    agent_graphs graph;
    const place *p;
    queue *q;
    solo *x;
} stand;

// The dump

static const char *about(const dump *f, const char *key) {
    const char *text = safetensors_metadata(f->file, key);
    if (!text) fail_msg("%s does not say its %s", f->name, key);
    return text;
}

static int64_t setting(const dump *f, const char *key) {
    return strtoll(about(f, key), NULL, 10);
}

static bool is(const dump *f, const char *key, const char *value) {
    return strcmp(about(f, key), value) == 0;
}

static void read_settings(dump *f) {
    agent_settings s = scene_cartpole(1);
    s.world.env.kind = env_find(about(f, "env"));
    s.world.env.market = (market_settings){.lags = (int32_t)setting(f, "lags"),
        .lagged = (int32_t)setting(f, "lagged"),
        .once = (int32_t)setting(f, "once"),
        .continuous = is(f, "choices", "False")};
    s.envs = setting(f, "envs");
    s.steps = setting(f, "steps");
    s.batch = s.envs * s.steps;
    s.lstm = is(f, "net", "lstm") ? setting(f, "units") : 0;
    s.shared = is(f, "shared", "True");
    s.state_noise = is(f, "noise", "True");
    s.value = strtod(about(f, "value"), NULL);
    f->s = s;
}

static dump dump_open(const char *name) {
    err e;
    char path[4096], keys[256];
    const char *dir = getenv("TRADEWIND_TEST_DIR");
    dump f = {.name = name};
    snprintf(path, sizeof path, "%s/golden/%s.safetensors", dir ? dir : TEST_DIR, name);
    f.file = safetensors_open(path, &e);
    support_ok(f.file != NULL, &e);
    read_settings(&f);
    snprintf(keys, sizeof keys, "hidden: %lld, layers: %lld, heads: %lld, ff: %lld, projection: %lld, head: %lld",
        (long long)setting(&f, "width"), (long long)setting(&f, "layers"), (long long)setting(&f, "heads"),
        (long long)setting(&f, "ff"), (long long)setting(&f, "projection"), (long long)setting(&f, "head"));
    f.net = f.s.lstm ? scene_net_of(about(&f, "widths"), "tanh") : scene_transformer_of(keys);
    return f;
}

// Numbers of an entry in the device's own type.
static void put(const stand *s, tensor t, const safetensors_entry *from) {
    err e;
    int64_t n = (int64_t)(from->bytes / sizeof(float));
    bool wide = graph_info(s->graph.g, t)->type == DTYPE_F64;
    assert_int_equal(n, shape_count(graph_info(s->graph.g, t)->shape));
    double *v = calloc((size_t)n, sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; wide && i < n; i++) v[i] = (double)((const float *)from->data)[i];
    support_ok(solo_write(s->x, t, wide ? (const void *)v : from->data, &e), &e);
    free(v);
}

static void put_states(const stand *s, const dump *f) {
    graph *g = s->graph.g;
    int put_in = 0, there = 0;
    for (int i = 1; i <= graph_tensors(g); i++) {
        const tensor_info *t = graph_info(g, (tensor){i});
        char name[160];
        snprintf(name, sizeof name, "state.%s", t->role == ROLE_STATE && t->name ? t->name : "");
        const safetensors_entry *from = safetensors_find(f->file, name);
        if (from) put(s, (tensor){i}, from);
        put_in += from != NULL;
    }
    for (int i = 0; i < safetensors_count(f->file); i++)
        there += strncmp(safetensors_at(f->file, i)->name, "state.", 6) == 0;
    assert_int_equal(put_in, there);
}

static const safetensors_entry *entry(const dump *f, const char *prefix, const char *name) {
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const safetensors_entry *t = safetensors_find(f->file, full);
    if (!t) fail_msg("%s has no %s", f->name, full);
    return t;
}

static void put_slab(const stand *s, slab_kind kind, const double *v, int64_t n) {
    err e;
    tensor slab = graph_slab(s->graph.g, kind);
    float *narrow = calloc((size_t)n, sizeof *narrow);
    assert_non_null(narrow);
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)v[i];
    bool wide = graph_info(s->graph.g, slab)->type == DTYPE_F64;
    support_ok(solo_write(s->x, slab, wide ? (const void *)v : narrow, &e), &e);
    free(narrow);
}

static void put_parameters(const stand *s, const dump *f) {
    graph *g = s->graph.g;
    int64_t n = graph_slab_elements(g), there = 0;
    double *w = calloc((size_t)n, sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        const safetensors_entry *from = entry(f, "param.", p->name);
        assert_int_equal(from->bytes, (size_t)shape_count(p->shape) * sizeof(float));
        for (int64_t k = 0; k < shape_count(p->shape); k++) w[p->offset + k] = (double)((const float *)from->data)[k];
    }
    for (int i = 0; i < safetensors_count(f->file); i++)
        there += strncmp(safetensors_at(f->file, i)->name, "param.", 6) == 0;
    assert_int_equal(there, graph_parameters(g));
    put_slab(s, SLAB_WEIGHTS, w, n);
    free(w);
}

static void put_numbers(const stand *s, tensor t, const double *v, int64_t n) {
    err e;
    float narrow[KNOBS];
    assert_true(n <= KNOBS);
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)v[i];
    bool wide = graph_info(s->graph.g, t)->type == DTYPE_F64;
    support_ok(solo_write(s->x, t, wide ? (const void *)v : narrow, &e), &e);
}

static stand stand_open(const dump *f, const place *p, int64_t samples) {
    err e;
    stand s = {.p = p};
    agent_settings as = f->s;
    int64_t length = as.lstm ? as.steps : 1;
    as.micro = samples * length;
    as.precision = p->precision;
    agent_graph_build(&s.graph, GRAPH_MINIBATCH, &as, &f->net);
    s.q = p->device->open(&(queue_options){.threads = 1, .isa = p->isa, .card = p->card}, &e);
    support_ok(s.q != NULL, &e);
    s.x = solo_new(p->device, s.q, s.graph.g, &(solo_options){.rows = samples}, &e);
    support_ok(s.x != NULL, &e);
    put_states(&s, f);
    put_parameters(&s, f);
    put_numbers(&s, s.graph.seed, (const double[]){1, 0}, 2);
    double knobs[KNOBS] = {0};
    knobs[KNOB_CLIP] = strtod(about(f, "clip"), NULL);
    knobs[KNOB_ENTROPY] = strtod(about(f, "entropy"), NULL);
    put_numbers(&s, s.graph.knobs, knobs, KNOBS);
    solo_step begin = {.seed = 3, .count = (uint64_t)(as.batch / length), .epoch = 1, .shuffle = 1};
    support_ok(solo_step_write(s.x, &begin, &e), &e);
    return s;
}

static void check_near(const stand *s, const dump *f, const char *what, double v, double want, double tolerance) {
    if (!(fabs(v - want) <= tolerance))
        fail_msg("%s on %s %s %s: %s is %.9g instead of %.9g", f->name, s->p->device->name, s->p->isa ? s->p->isa : "",
            precision_name(s->p->precision), what, v, want);
}

static void check_gradients(const stand *s, const dump *f) {
    err e;
    graph *g = s->graph.g;
    tensor slab = graph_slab(g, SLAB_GRADIENTS);
    double *v = calloc((size_t)graph_slab_elements(g), sizeof *v);
    assert_non_null(v);
    support_ok(solo_read(s->x, slab, v, &e), &e);
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        const float *want = entry(f, "grad.", p->name)->data;
        double scale = 1e-4; // a gradient that is zero but for rounding, such as that of a key's bias
        for (int64_t k = 0; k < shape_count(p->shape); k++) scale = fmax(scale, fabs((double)want[k]));
        for (int64_t k = 0; k < shape_count(p->shape); k++)
            check_near(s, f, p->name, trial_value(graph_info(g, slab)->type, v, p->offset + k) / (double)f->s.batch,
                (double)want[k], s->p->tolerance * scale);
    }
    free(v);
}

static void check_place(const dump *f, const place *p, int64_t samples) {
    err e;
    double totals[TALLY_COUNT];
    stand s = stand_open(f, p, samples);
    int64_t all = f->s.batch / (f->s.lstm ? f->s.steps : 1);
    for (int64_t at = 0; at < all; at += samples) support_ok(solo_play(s.x, at ? PASS_NEXT : PASS_FIRST, &e), &e);
    support_ok(p->device->sync(s.q, &e), &e);
    support_ok(solo_read(s.x, s.graph.totals, totals, &e), &e);
    check_near(&s, f, "loss", totals[TALLY_STEP_SUM] / totals[TALLY_STEP_NORM],
        (double)*(const float *)entry(f, "", "loss")->data, p->tolerance);
    check_gradients(&s, f);
    solo_free(s.x);
    p->device->close(s.q);
    graph_free(s.graph.g);
}

// At once, and in micro-batches of single sequences or of a fifth of the rows.
static void check_splits(const dump *f, const place *p) {
    int64_t all = f->s.batch / (f->s.lstm ? f->s.steps : 1);
    check_place(f, p, all);
    check_place(f, p, all / 5);
}

#ifdef TEST_CUDA

static void check_places(const dump *f) {
    place p[PLACES_MOST];
    int count = trial_places(p);
    for (int i = 0; i < count; i++) {
        p[i].tolerance *= 8; // as in test_ppo_golden
        if (p[i].precision == PRECISION_FP32) check_splits(f, &p[i]);
    }
}

#else

static void check_places(const dump *f) {
    check_splits(f, &(place){&cpu_double_device, NULL, PRECISION_FP64, 1e-6, {0}});
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++) {
        check_splits(f, &(place){&cpu_device, *isa, PRECISION_FP32, 1e-5, {0}});
        check_splits(f, &(place){&cpu_plain_device, *isa, PRECISION_FP32, 1e-5, {0}});
    }
}

#endif

static void agrees_with_pytorch(void **state) {
    dump f = dump_open(*state);
    check_places(&f);
    safetensors_close(f.file);
}

int main(void) {
    static char names[][28] = {"ppo_lstm_choices", "ppo_lstm_numbers", "ppo_lstm_shared", "ppo_transformer_choices",
        "ppo_transformer_numbers"};
    enum { COUNT = sizeof names / sizeof *names };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++) tests[i] = (struct CMUnitTest){names[i], agrees_with_pytorch, NULL, NULL, names[i]};
    return _cmocka_run_group_tests("ppo nets", tests, COUNT, NULL, NULL);
}
