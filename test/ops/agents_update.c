// Operators that agents learn with: deviations of actions, the loss of PPO, the spread of advantages, and the stop of
// an update.
#include "base/rng.h"
#include "ops/agents.h"
#include "ops/stand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Gradients

static tensor action_std_plain(trial *t) {
    tensor like = trial_floats(t, shape2(t->n, 3), -1, 1);
    return op_action_std(t->g, like, TENSOR_NONE, trial_weight(t, shape1(3), 1));
}

// More features than a card's warp has lanes.
static tensor action_std_latent(trial *t) {
    tensor like = trial_floats(t, shape2(t->n, 3), -1, 1), latent = trial_floats(t, shape2(t->n, 37), -1, 1);
    return op_action_std(t->g, like, latent, trial_weight(t, shape2(37, 3), 1));
}

typedef struct {
    bool numbers, spread;
    int64_t width; // of scores
    int64_t steps; // of sequences; 0: rows are single steps
    float knobs[KNOBS], value_bound, entropy_bound;
} ppo_case;

#define USUAL_KNOBS                                                                                                    \
    { [KNOB_CLIP] = 0.2f, [KNOB_ENTROPY] = 0.1f }

// Logarithms of old probabilities are such that ratios lie on both sides of the clip's range, and inside.
static tensor ppo_row(trial *t, ppo_case k) {
    int64_t T = k.steps ? k.steps : 1, n = t->n * T, A = k.width;
    ppo_inputs in = {.score = trial_weight(t, k.steps ? shape3(t->n, T, A) : shape2(n, A), 1),
        .value = trial_weight(t, k.steps ? shape3(t->n, T, 1) : shape2(n, 1), 1)};
    t->offsets[graph_parameters(t->g)] = 1; // deviations from 0.5 to 1.5
    if (k.numbers) in.std = trial_weight(t, k.steps ? shape3(t->n, T, A) : shape2(n, A), 0.5f);
    float *action = trial_memory(t, (size_t)(n * A) * sizeof *action), *knobs = trial_memory(t, sizeof k.knobs);
    for (int64_t i = 0; i < n * A; i++)
        action[i] = k.numbers ? trial_random(t) : floorf((trial_random(t) + 1) / 2 * (float)A);
    in.action = graph_constant(t->g, "action", DTYPE_F32, shape2(n, k.numbers ? A : 1), action);
    float usual = k.numbers ? -1.3f * (float)A : -logf((float)A);
    in.log_prob = trial_floats(t, shape1(n), usual - 0.5f, usual + 0.5f);
    in.advantage = trial_floats(t, shape1(n), -2, 2);
    in.target = trial_floats(t, shape1(n), -1, 1);
    in.old_value = trial_floats(t, shape1(n), -1, 1);
    in.weight = trial_row_weights(t);
    memcpy(knobs, k.knobs, sizeof k.knobs);
    in.knobs = graph_constant(t->g, "knobs", DTYPE_F32, shape1(KNOBS), knobs);
    if (k.spread) in.spread = trial_floats(t, shape1(2), 0.5f, 1.5f);
    return op_ppo(t->g, in, (ppo_settings){!k.numbers, 0.5f, k.entropy_bound, k.value_bound});
}

static tensor ppo_choices(trial *t) {
    return ppo_row(t, (ppo_case){.width = 3, .knobs = USUAL_KNOBS});
}

static tensor ppo_many_choices(trial *t) {
    return ppo_row(t, (ppo_case){.width = 41, .knobs = USUAL_KNOBS, .spread = true});
}

static tensor ppo_numbers(trial *t) {
    return ppo_row(t, (ppo_case){.numbers = true, .width = 2, .knobs = USUAL_KNOBS, .spread = true});
}

static tensor ppo_sequences(trial *t) {
    return ppo_row(t, (ppo_case){.numbers = true, .width = 2, .steps = 3, .knobs = USUAL_KNOBS, .spread = true});
}

static tensor ppo_value_clip(trial *t) {
    return ppo_row(t, (ppo_case){.width = 3, .knobs = {[KNOB_CLIP] = 0.1f, [KNOB_VALUE_CLIP] = 0.3f}});
}

// Bounds that the means of value loss and entropy pass, and bounds that they come nowhere near.
static tensor ppo_bounds_active(trial *t) {
    return ppo_row(t, (ppo_case){.width = 3, .knobs = USUAL_KNOBS, .value_bound = 1e-3f, .entropy_bound = 0.05f});
}

static tensor ppo_bounds_active_numbers(trial *t) {
    return ppo_row(
        t, (ppo_case){.numbers = true, .width = 2, .knobs = USUAL_KNOBS, .value_bound = 1e-3f, .entropy_bound = 0.05f});
}

static tensor ppo_bounds_inactive(trial *t) {
    return ppo_row(t, (ppo_case){.numbers = true,
                          .width = 2,
                          .knobs = {[KNOB_CLIP] = 0.2f, [KNOB_ENTROPY] = 0.1f, [KNOB_VALUE_CLIP] = 0.5f},
                          .value_bound = 50,
                          .entropy_bound = 50});
}

// spread

typedef struct {
    int64_t micro, rows; // of a micro-batch, of the effective batch
    uint32_t shuffle;
    step_span span[2];
    uint64_t count; // samples in both
} spread_case;

typedef struct {
    graph *g;
    tensor spread, index, weight;
    stand s;
} spreader;

static spreader spread_open(const place *p, const spread_case *k, const float *table, int64_t size) {
    spreader d = {.g = graph_new()};
    d.spread = op_spread(d.g, graph_constant(d.g, "table", DTYPE_F32, shape1(size), table), k->rows, 1);
    d.index = op_draw(d.g, BATCH);
    d.weight = graph_sibling(d.g, d.index, 1);
    graph_keep(d.g, d.spread);
    graph_keep(d.g, d.index);
    graph_keep(d.g, d.weight);
    op_advance(d.g, PHASE_AFTER);
    dtype_assign(d.g, p->precision);
    d.s = stand_open(p, d.g, (solo_options){.rows = k->micro, .inference = true, .guard = 64});
    return d;
}

// Plays the micro-batches of the effective batch at `position`; every one must tell the same. Returns how many samples
// it had, with their values, as `draw` gave them.
static int64_t spread_play(
    spreader *d, const spread_case *k, uint64_t position, const float *table, double *value, double spread[2]) {
    err e;
    int64_t n = 0;
    step_cursor c = {.count = k->count, .position = position, .epoch = 2, .shuffle = k->shuffle, .spans = 2};
    memcpy(c.span, k->span, sizeof k->span);
    trial_ok(solo_step_write(d->s.x, &(solo_step){.seed = 8}, &e), &e);
    trial_ok(program_seek(solo_program(d->s.x, false), &c, &e), &e);
    int32_t *index = calloc((size_t)k->micro, sizeof *index);
    double *weight = calloc((size_t)k->micro, sizeof *weight), again[2];
    assert_true(index && weight);
    for (int64_t row = 0; row < k->rows; row += k->micro) {
        stand_play(&d->s, PASS_EVALUATE);
        trial_ok(solo_peek(d->s.x, d->index, false, index, &e), &e);
        stand_get(&d->s, d->weight, weight);
        stand_get(&d->s, d->spread, row ? again : spread);
        if (row) assert_memory_equal(again, spread, sizeof again);
        for (int64_t i = 0; i < k->micro; i++)
            if (weight[i] > 0) value[n++] = (double)table[index[i]];
    }
    free(index);
    free(weight);
    return n;
}

static void compare_spread(const place *p, const double *value, int64_t n, const double spread[2]) {
    double mean = 0, square = 0, share = stand_wide(p) ? 1e-9 : 1e-6;
    for (int64_t i = 0; i < n; i++) mean += value[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (value[i] - mean) * (value[i] - mean);
    double by = n > 1 ? 1 / (sqrt(square / (double)(n - 1)) + 1e-8) : 1;
    stand_near("mean", n, spread[0], n > 1 ? mean : 0, share * (1 + fabs(mean)));
    stand_near("inverse deviation", n, spread[1], by, share * by);
}

// A whole epoch of effective batches, the last of which has fewer samples than the others.
static void spread_epoch(const place *p, const spread_case *k, float about) {
    int64_t size = (int64_t)(k->span[1].first + k->count);
    float *table = calloc((size_t)size, sizeof *table);
    double *value = calloc((size_t)k->rows, sizeof *value), spread[2];
    assert_true(table && value);
    for (int64_t i = 0; i < size; i++) table[i] = about + (float)stand_value(i, 31);
    spreader d = spread_open(p, k, table, size);
    uint64_t seen = 0;
    for (uint64_t at = 0; at < k->count; at += (uint64_t)k->rows) {
        int64_t n = spread_play(&d, k, at, table, value, spread);
        compare_spread(p, value, n, spread);
        seen += (uint64_t)n;
    }
    assert_int_equal(seen, k->count);
    stand_close(&d.s);
    free(value);
    free(table);
}

static void check_spread(const place *p) {
    static const spread_case cases[] = {
        {16, 64, 1, {{3, 0}, {120, 100}}, 200},        // four micro-batches; 8 samples in the last
        {16, 64, 1, {{3, 0}, {120, 100}}, 250},        // 58 in the last
        {64, 64, 1, {{3, 0}, {120, 100}}, 200},        // the first in one
        {8, 64, 0, {{3, 0}, {120, 100}}, 193},         // in order; one sample in the last
        {1, 1, 1, {{0, 0}, {5, 4}}, 6},                // of one sample each
        {700, 2800, 1, {{10, 0}, {2000, 1500}}, 3000}, // several pieces
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spread_epoch(p, &cases[i], 0);
        spread_epoch(p, &cases[i], 1024);
    }
}

// Values that are all the same: a deviation of 0, and what is divided by it stays 0.
static void check_spread_flat(const place *p) {
    static const float table[8] = {2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f};
    static const spread_case k = {8, 8, 1, {{0, 0}, {4, 4}}, 8};
    double value[8], spread[2];
    spreader d = spread_open(p, &k, table, 8);
    spread_play(&d, &k, 0, table, value, spread);
    stand_near("mean", 0, spread[0], 2.5, 0);
    stand_near("inverse deviation", 0, spread[1], 1e8, 10);
    stand_close(&d.s);
}

// Sequences of three steps in a table of four environments, two of which are the batch.
static void check_spread_steps(const place *p) {
    enum { T = 3, N = 4, B = 2 };
    float table[T * N];
    double spread[2], mean = 0, square = 0;
    for (int i = 0; i < T * N; i++) table[i] = (float)stand_value(i, 31);
    graph *g = graph_new();
    tensor of = op_spread(g, graph_constant(g, "table", DTYPE_F32, shape1(T * N), table), B, T);
    graph_keep(g, of);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = B, .inference = true, .guard = 64});
    err e;
    trial_ok(solo_step_write(s.x, &(solo_step){.seed = 5, .count = N, .position = 1}, &e), &e);
    stand_play(&s, PASS_EVALUATE);
    stand_get(&s, of, spread);
    for (int i = 0; i < T * B; i++) mean += (double)table[i / B * N + 1 + i % B] / (T * B);
    for (int i = 0; i < T * B; i++) square += pow((double)table[i / B * N + 1 + i % B] - mean, 2);
    stand_near("mean", 0, spread[0], mean, 1e-6);
    stand_near("inverse deviation", 0, spread[1], 1 / (sqrt(square / (T * B - 1)) + 1e-8), 1e-5);
    stand_close(&s);
}

// ppo_gate, before clip and an optimizer: a weight falls by the rate at every minibatch that is not dropped

typedef struct {
    tensor sums, totals, gate, clip, w;
    stand s;
} gated;

static gated gated_open(const place *p, const float *knobs) {
    gated d = {0};
    graph *g = graph_new();
    d.sums = graph_state(g, "sums", DTYPE_F64, shape1(PPO_SUMS));
    d.totals = graph_state(g, "totals", DTYPE_F64, shape1(TALLY_COUNT));
    d.w = graph_parameter(g, "w", shape1(1), (init){INIT_ZERO, 0});
    tensor root = graph_state(g, "root", DTYPE_F32, shape1(2));
    d.gate = op_ppo_gate(g, d.sums, d.totals, graph_constant(g, "knobs", DTYPE_F32, shape1(KNOBS), knobs));
    d.clip = op_clip(g, d.totals, root, 0, false);
    op_sgd(g, d.clip, (sgd_settings){0});
    op_advance(g, PHASE_UPDATE);
    dtype_assign(g, p->precision);
    d.s = stand_open(p, g, (solo_options){.rows = 1, .guard = 64});
    stand_put(&d.s, root, (const double[]){1, 0}, 2);
    double ones[SLAB_ALIGN];
    for (int i = 0; i < SLAB_ALIGN; i++) ones[i] = 1;
    stand_put(&d.s, graph_slab(g, SLAB_GRADIENTS), ones, graph_slab_elements(g));
    err e;
    trial_ok(solo_step_write(d.s.x, &(solo_step){.lr = 0.5f, .count = 100}, &e), &e);
    return d;
}

// A minibatch of `rows` rows whose means are these.
static void gated_step(gated *d, double rows, const double *mean) {
    double sums[PPO_SUMS] = {rows}, totals[TALLY_COUNT] = {0, 1, 0, 1};
    for (int k = PPO_ROWS + 1; k < PPO_SUMS; k++) sums[k] = mean[k] * rows;
    stand_put(&d->s, d->sums, sums, PPO_SUMS);
    stand_put(&d->s, d->totals, totals, TALLY_COUNT);
    stand_play(&d->s, PASS_UPDATE);
    stand_get(&d->s, d->totals, totals);
    assert_true(totals[TALLY_STEP_SUM] == 0 && totals[TALLY_SUM] == 0 && totals[TALLY_NORM] == 1);
}

static void gated_expect(gated *d, const double *gate, int taken) {
    double is[GATE_COUNT], clip[CLIP_COUNT], w;
    stand_get(&d->s, d->gate, is);
    stand_get(&d->s, d->clip, clip);
    stand_get(&d->s, d->w, &w);
    for (int k = 0; k < GATE_COUNT; k++) stand_near("gate", k, is[k], gate[k], 1e-12);
    stand_near("steps taken", 0, clip[CLIP_TAKEN], taken, 0);
    stand_near("weight", 0, w, -0.5 * taken, 0);
}

// The divergences of six minibatches. The third is above the target and below 1.5 times that, which the fifth is above:
// it is counted in the means and dropped, and the sixth is dropped uncounted.
static void check_gate_of(const place *p, float target) {
    static const double kl[] = {0.01, 0.02, 0.029, 0.0299, 0.0301, 0.001};
    float knobs[KNOBS] = {[KNOB_TARGET_KL] = target};
    double want[GATE_COUNT] = {0};
    gated d = gated_open(p, knobs);
    int taken = 0;
    for (int i = 0; i < 6; i++) {
        double mean[PPO_SUMS] = {0, -0.5 * i, 2 + i, 0.25 * i, kl[i], 0.125};
        if (!want[GATE_STOPPED]) {
            want[PPO_ROWS]++;
            for (int k = PPO_ROWS + 1; k < PPO_SUMS; k++) want[k] += mean[k];
            want[GATE_EPOCH_KL] += kl[i];
            want[GATE_EPOCH_COUNT]++;
        }
        if (target > 0 && i == 4) want[GATE_STOPPED] = 1;
        taken += !want[GATE_STOPPED];
        gated_step(&d, i + 3, mean);
        gated_expect(&d, want, taken);
    }
    assert_int_equal(taken, target > 0 ? 4 : 6);
    memset(want, 0, sizeof want); // the next update
    stand_put(&d.s, d.gate, want, GATE_COUNT);
    gated_step(&d, 0, want); // no rows: nothing to count
    gated_expect(&d, want, ++taken);
    stand_close(&d.s);
}

static void check_gate(const place *p) {
    check_gate_of(p, 0.02f);
    check_gate_of(p, 0);
}

const row agents_update_rows[] = {
    {OP_action_std, "action_std", action_std_plain, NULL, false},
    {OP_action_std, "action_std of a latent", action_std_latent, NULL, false},
    {OP_spread, "spread", NULL, check_spread, false},
    {OP_spread, "spread of sequences", NULL, check_spread_steps, false},
    {OP_spread, "spread of equal values", NULL, check_spread_flat, false},
    {OP_ppo, "ppo of choices", ppo_choices, NULL, false},
    {OP_ppo, "ppo of many choices, spread", ppo_many_choices, NULL, false},
    {OP_ppo, "ppo of numbers, spread", ppo_numbers, NULL, false},
    {OP_ppo, "ppo of sequences", ppo_sequences, NULL, false},
    {OP_ppo, "ppo, value clipping", ppo_value_clip, NULL, false},
    {OP_ppo, "ppo, bounds passed", ppo_bounds_active, NULL, false},
    {OP_ppo, "ppo of numbers, bounds passed", ppo_bounds_active_numbers, NULL, false},
    {OP_ppo, "ppo, value clipping, bounds far off", ppo_bounds_inactive, NULL, false},
    {OP_ppo_gate, "ppo_gate", NULL, check_gate, false},
};
const int agents_update_count = sizeof agents_update_rows / sizeof *agents_update_rows;
