// Tables of a rollout, its running moments and advantages, against the plainest computation of what each
// operator is defined to give.
#include "cpu/cpu.h"
#include "ops/agents.h"
#include "ops/stand.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Tables

enum { TABLE_B = 5, TABLE_T = 4, TABLE_C = 3 };

static void check_write_rows(const place *p) {
    enum { ROWS = TABLE_B * TABLE_T };
    double wide[ROWS * TABLE_C], thin[ROWS], x[TABLE_B * TABLE_C], y[TABLE_B], want[ROWS * TABLE_C], alone[ROWS];
    graph *g = graph_new();
    tensor to[2] = {
        graph_state(g, "wide", DTYPE_F32, shape2(ROWS, TABLE_C)), graph_state(g, "thin", DTYPE_F32, shape1(ROWS))};
    tensor from[2] = {
        graph_state(g, "x", DTYPE_F32, shape2(TABLE_B, TABLE_C)), graph_state(g, "y", DTYPE_F32, shape1(TABLE_B))};
    for (int k = 0; k < 2; k++) op_write_rows(g, to[k], from[k]);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = TABLE_B, .inference = true, .guard = 64});
    for (int i = 0; i < ROWS * TABLE_C; i++) want[i] = -1;
    for (int i = 0; i < ROWS; i++) alone[i] = -1;
    stand_put(&s, to[0], want, ROWS * TABLE_C);
    stand_put(&s, to[1], alone, ROWS);
    static const int slots[] = {2, 0, 3, 2};
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < TABLE_B * TABLE_C; i++) want[slots[k] * TABLE_B * TABLE_C + i] = x[i] = 100 * k + i;
        for (int i = 0; i < TABLE_B; i++) alone[slots[k] * TABLE_B + i] = y[i] = 1000 * k + i;
        stand_put(&s, from[0], x, TABLE_B * TABLE_C);
        stand_put(&s, from[1], y, TABLE_B);
        stand_seek(&s, 0, 7, (uint64_t)(slots[k] * TABLE_B));
        stand_play(&s, PASS_EVALUATE);
        stand_get(&s, to[0], wide);
        stand_get(&s, to[1], thin);
        assert_memory_equal(wide, want, sizeof want);
        assert_memory_equal(thin, alone, sizeof alone);
    }
    stand_close(&s);
}

enum { ENDS_K = 2, ENDS_ROWS = ENDS_K * TABLE_B };

typedef struct {
    tensor table, x, end;
    stand s;
} ends;

static ends ends_open(const place *p) {
    graph *g = graph_new();
    ends d = {graph_state(g, "table", DTYPE_F32, shape2(ENDS_ROWS, TABLE_C)),
        graph_state(g, "x", DTYPE_F32, shape2(TABLE_B, TABLE_C)), graph_state(g, "end", DTYPE_F32, shape1(TABLE_B)),
        {0}};
    op_write_ends(g, d.table, d.x, d.end);
    dtype_assign(g, p->precision);
    d.s = stand_open(p, g, (solo_options){.rows = TABLE_B, .inference = true, .guard = 64});
    return d;
}

// Values of a slot: row r, column c of it is 100 salt + 10 r + c.
static void ends_play(ends *d, int slot, int salt, const double *end) {
    double x[TABLE_B * TABLE_C];
    for (int i = 0; i < TABLE_B * TABLE_C; i++) x[i] = 100 * salt + 10 * (i / TABLE_C) + i % TABLE_C;
    stand_put(&d->s, d->x, x, TABLE_B * TABLE_C);
    stand_put(&d->s, d->end, end, TABLE_B);
    stand_seek(&d->s, 0, 35, (uint64_t)(slot * TABLE_B));
    stand_play(&d->s, PASS_EVALUATE);
}

static const double end_of[TABLE_T][TABLE_B] = {{ENV_TRUNCATED, 0, ENV_TERMINATED, 0, 0},
    {0, ENV_TRUNCATED, ENV_TRUNCATED, 0, ENV_TERMINATED}, {ENV_TRUNCATED, 0, 0, 0, ENV_TRUNCATED},
    {0, ENV_TERMINATED, ENV_TRUNCATED, 0, 0}};

// Two rollouts, of which the second begins to count anew.
static void check_write_ends(const place *p) {
    double want[ENDS_ROWS * TABLE_C] = {0}, is[ENDS_ROWS * TABLE_C];
    ends d = ends_open(p);
    for (int round = 0; round < 2; round++) {
        int count[TABLE_B] = {0};
        for (int t = 0; t < TABLE_T; t++) {
            int salt = 1 + round * TABLE_T + t;
            ends_play(&d, t, salt, end_of[t]);
            for (int r = 0; r < TABLE_B; r++) {
                if (end_of[t][r] != ENV_TRUNCATED) continue;
                int at = count[r]++ * TABLE_B + r;
                for (int c = 0; c < TABLE_C; c++) want[at * TABLE_C + c] = 100 * salt + 10 * r + c;
            }
            stand_get(&d.s, d.table, is);
            assert_memory_equal(is, want, sizeof want);
        }
    }
    stand_close(&d.s);
}

static void too_many_ends(void) {
    static const place p = {&cpu_plain_device, NULL, PRECISION_FP32, 0, {0}};
    ends d = ends_open(&p);
    for (int t = 0; t <= ENDS_K; t++) ends_play(&d, t, t, end_of[0]);
}

static void check_too_many_ends(const place *p) {
    if (stand_wide(p)) support_aborts(too_many_ends, "more than 2 episodes were truncated");
}

// Running moments, as Stable-Baselines3's RunningMeanStd has them: of all values so far and 1e-4 more of mean 0 and
// square 1, computed here from sums over all of them

typedef struct {
    double count, sum, square; // about `about`, which keeps digits
    double about;
} moments;

static moments moments_of(double about) {
    return (moments){1e-4, -1e-4 * about, 1e-4 * (1 + about * about), about};
}

static void moments_add(moments *m, double v) {
    m->count += 1;
    m->sum += v - m->about;
    m->square += (v - m->about) * (v - m->about);
}

static double moments_mean(const moments *m) {
    return m->about + m->sum / m->count;
}

static double moments_variance(const moments *m) {
    return m->square / m->count - m->sum / m->count * (m->sum / m->count);
}

static double cut(double v, double most) {
    return fmax(-most, fmin(most, v));
}

enum { MOMENT_B = 37, MOMENT_C = 4, MOMENT_STATE = 1 + 2 * MOMENT_C };
static const double moment_about[MOMENT_C] = {0, 10000, -3, 0.5}, moment_scale[MOMENT_C] = {1, 2, 50, 0};

typedef struct {
    tensor x, y, state;
    stand s;
    moments m[MOMENT_C];
} standard;

static standard standard_open(const place *p, bool learn) {
    graph *g = graph_new();
    standard d = {.x = graph_state(g, "x", DTYPE_F32, shape2(MOMENT_B, MOMENT_C))};
    d.y = op_standardise(g, d.x, (standardise_settings){.clip = 2, .learn = learn});
    d.state = graph_sibling(g, d.y, 1);
    graph_keep(g, d.y);
    dtype_assign(g, p->precision);
    d.s = stand_open(p, g, (solo_options){.rows = MOMENT_B, .inference = true, .guard = 64});
    for (int c = 0; c < MOMENT_C; c++) d.m[c] = moments_of(moment_about[c]);
    return d;
}

// Values of batch t in column c, as fp32 has them.
static double standard_value(int t, int i) {
    int c = i % MOMENT_C;
    return (double)(float)(moment_about[c] + moment_scale[c] * (stand_value(t * 1000 + i, 11) + 0.25 * t));
}

static void standard_play(standard *d, int t, bool learn) {
    double x[MOMENT_B * MOMENT_C], y[MOMENT_B * MOMENT_C], state[MOMENT_STATE];
    for (int i = 0; i < MOMENT_B * MOMENT_C; i++) x[i] = standard_value(t, i);
    for (int i = 0; learn && i < MOMENT_B * MOMENT_C; i++) moments_add(&d->m[i % MOMENT_C], x[i]);
    stand_put(&d->s, d->x, x, MOMENT_B * MOMENT_C);
    stand_play(&d->s, PASS_EVALUATE);
    stand_get(&d->s, d->y, y);
    stand_get(&d->s, d->state, state);
    for (int i = 0; i < MOMENT_B * MOMENT_C; i++) {
        const moments *m = &d->m[i % MOMENT_C];
        double want = cut((x[i] - moments_mean(m)) / sqrt(moments_variance(m) + 1e-8), 2);
        stand_near("standardised", i, y[i], want, stand_wide(d->s.p) ? 1e-9 : 2e-6);
    }
    for (int c = 0; learn && c < MOMENT_C; c++) {
        double mean = moments_mean(&d->m[c]), variance = moments_variance(&d->m[c]);
        stand_near("count", c, state[0], d->m[c].count, 1e-9);
        stand_near("mean", c, state[1 + c], mean, 1e-9 * (1 + fabs(mean)));
        stand_near("variance", c, state[1 + MOMENT_C + c], variance, 1e-7 * (1 + fabs(variance)));
    }
}

// Four batches; what they left is then used by a graph that does not learn, and stays as it is.
static void check_standardise(const place *p) {
    double state[MOMENT_STATE], after[MOMENT_STATE];
    standard d = standard_open(p, true), still = standard_open(p, false);
    standard_play(&still, 0, false); // as it begins: mean 0, variance 1
    for (int t = 0; t < 4; t++) standard_play(&d, t, true);
    stand_get(&d.s, d.state, state);
    stand_put(&still.s, still.state, state, MOMENT_STATE);
    memcpy(still.m, d.m, sizeof d.m);
    standard_play(&still, 9, false);
    stand_get(&still.s, still.state, after);
    assert_memory_equal(after, state, sizeof state);
    stand_close(&d.s);
    stand_close(&still.s);
}

enum { REWARDS = 7, REWARD_STEPS = 12 };

static void check_scale_reward(const place *p) {
    double y[REWARDS], state[3], returns[REWARDS], reward[REWARDS], end[REWARDS], want[REWARDS] = {0};
    const double gamma = (double)0.9f, clip = 1.5;
    graph *g = graph_new();
    tensor r = graph_state(g, "reward", DTYPE_F32, shape1(REWARDS)),
           e = graph_state(g, "end", DTYPE_F32, shape1(REWARDS));
    tensor kept = graph_state(g, "returns", DTYPE_F64, shape1(REWARDS));
    tensor scaled = op_scale_reward(g, r, e, kept, (scale_reward_settings){0.9f, 1.5f});
    graph_keep(g, scaled);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = REWARDS, .inference = true, .guard = 64});
    moments m = moments_of(0);
    int cuts = 0;
    for (int t = 0; t < REWARD_STEPS; t++) {
        for (int i = 0; i < REWARDS; i++) {
            reward[i] = 3 * stand_value(t * REWARDS + i, 13) + (i == 2 ? 2 : 0);
            reward[i] = (double)(float)reward[i];
            end[i] = (t + i) % 5 == 3 ? ENV_TERMINATED : (t + 2 * i) % 7 == 4 ? ENV_TRUNCATED : ENV_GOES_ON;
            want[i] = want[i] * gamma + reward[i];
            moments_add(&m, want[i]);
        }
        stand_put(&s, r, reward, REWARDS);
        stand_put(&s, e, end, REWARDS);
        stand_play(&s, PASS_EVALUATE);
        stand_get(&s, scaled, y);
        stand_get(&s, graph_sibling(g, scaled, 1), state);
        stand_get(&s, kept, returns);
        stand_near("count", t, state[0], m.count, 1e-9);
        stand_near("mean", t, state[1], moments_mean(&m), 1e-9);
        stand_near("variance", t, state[2], moments_variance(&m), 1e-9);
        for (int i = 0; i < REWARDS; i++) {
            double free = reward[i] / sqrt(moments_variance(&m) + 1e-8);
            stand_near("reward", i, y[i], cut(free, clip), stand_wide(p) ? 1e-9 : 1e-6);
            cuts += fabs(free) > clip;
            if (end[i] != ENV_GOES_ON) want[i] = 0;
            stand_near("return", i, returns[i], want[i], 1e-9);
        }
    }
    assert_true(cuts > 0 && cuts < REWARDS * REWARD_STEPS / 2);
    stand_close(&s);
}

// gae

typedef struct {
    int T, N, K;
    const float *reward, *end, *value, *beyond;
    float gamma, lambda;
} rollout;

static void gae_play(const place *p, const rollout *r, double *advantage, double *target) {
    int64_t rows = r->T * r->N;
    graph *g = graph_new();
    tensor a = op_gae(g, graph_constant(g, "reward", DTYPE_F32, shape1(rows), r->reward),
        graph_constant(g, "end", DTYPE_F32, shape1(rows), r->end),
        graph_constant(g, "value", DTYPE_F32, shape1(rows), r->value),
        graph_constant(g, "beyond", DTYPE_F32, shape1((r->K + 1) * r->N), r->beyond),
        (gae_settings){r->gamma, r->lambda});
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = r->N, .inference = true, .guard = 64});
    stand_play(&s, PASS_EVALUATE);
    stand_get(&s, a, advantage);
    stand_get(&s, graph_sibling(g, a, 1), target);
    stand_close(&s);
}

// The figures that everyone can compute by hand.
static void check_gae(const place *p) {
    static const float reward[] = {1, 0.5f, -1, 2, 0.25f}, end[] = {0, 0, ENV_TERMINATED, 0, 0},
                       value[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, beyond[] = {0.6f};
    static const double want[] = {0.509576175, -0.62565, -1.3, 2.418532, 0.344};
    double a[5], target[5];
    gae_play(p, &(rollout){5, 1, 0, reward, end, value, beyond, 0.99f, 0.95f}, a, target);
    for (int t = 0; t < 5; t++) {
        stand_near("advantage", t, a[t], want[t], 5e-7);
        stand_near("target", t, target[t], want[t] + 0.1 * (t + 1), 5e-7);
    }
}

// The sum over later steps of the episode of (gamma lambda)^l delta, from each step anew. Behind an episode that was
// truncated stands the value of its last observation, and behind the rollout that of the one to come.
static double advantage_of(const rollout *r, int t, int i) {
    double sum = 0, factor = 1, gamma = (double)r->gamma;
    int cuts = 0;
    for (int k = 0; k < t; k++) cuts += r->end[k * r->N + i] == ENV_TRUNCATED;
    for (; t < r->T; t++, factor *= gamma * (double)r->lambda) {
        int at = t * r->N + i;
        double next = t + 1 < r->T ? (double)r->value[at + r->N] : (double)r->beyond[r->K * r->N + i];
        if (r->end[at] == ENV_TERMINATED) next = 0;
        if (r->end[at] == ENV_TRUNCATED) next = (double)r->beyond[cuts * r->N + i];
        sum += factor * ((double)r->reward[at] + gamma * next - (double)r->value[at]);
        if (r->end[at] != ENV_GOES_ON) break;
    }
    return sum;
}

// Several environments, some truncated more often than others, also in the last step; values beyond of truncations
// that did not come hold NaN.
static void check_gae_truncated(const place *p) {
    enum { T = 6, N = 4, K = 3 };
    static const float end[T * N] = {0, 2, 0, 0, 2, 0, 1, 0, 0, 2, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 2, 1, 0};
    static const int cuts[N] = {2, 3, 1, 0};
    float reward[T * N], value[T * N], beyond[(K + 1) * N];
    double a[T * N], target[T * N];
    for (int i = 0; i < T * N; i++) reward[i] = (float)stand_value(i, 21);
    for (int i = 0; i < T * N; i++) value[i] = (float)stand_value(i, 22);
    for (int i = 0; i < (K + 1) * N; i++)
        beyond[i] = i / N < cuts[i % N] || i / N == K ? 2 + (float)stand_value(i, 23) : NAN;
    rollout r = {T, N, K, reward, end, value, beyond, 0.9f, 0.8f};
    gae_play(p, &r, a, target);
    for (int i = 0; i < T * N; i++) {
        double want = advantage_of(&r, i / N, i % N);
        stand_near("advantage", i, a[i], want, stand_wide(p) ? 1e-12 : 1e-5);
        stand_near("target", i, target[i], want + (double)value[i], stand_wide(p) ? 1e-12 : 1e-5);
    }
}

// Steps of environments out of a table that has all of them side by side; a state that takes over what is computed.
static void check_sequence(const place *p) {
    enum { T = 3, N = 4, C = 2, B = 3 };
    static const int32_t index[B] = {2, 0, 2};
    float wide[T * N * C], thin[T * N];
    double got[B * T * C], one[B * T], kept[B * T];
    for (int i = 0; i < T * N * C; i++) wide[i] = (float)i;
    for (int i = 0; i < T * N; i++) thin[i] = (float)(100 + i);
    graph *g = graph_new();
    tensor at = graph_constant(g, "index", DTYPE_I32, shape1(B), index);
    tensor a = op_sequence(g, graph_constant(g, "wide", DTYPE_F32, shape2(T * N, C), wide), at, T);
    tensor b = op_sequence(g, graph_constant(g, "thin", DTYPE_F32, shape1(T * N), thin), at, T);
    tensor state = op_remember(g, graph_state(g, "kept", DTYPE_F32, shape1(B * T)), b);
    graph_keep(g, a);
    graph_keep(g, b);
    dtype_assign(g, p->precision);
    stand s = stand_open(p, g, (solo_options){.rows = B, .inference = true, .guard = 64});
    stand_play(&s, PASS_EVALUATE);
    stand_get(&s, a, got);
    stand_get(&s, b, one);
    stand_get(&s, state, kept);
    for (int r = 0; r < B; r++)
        for (int t = 0; t < T; t++) {
            int row = t * N + index[r];
            assert_true(one[r * T + t] == 100 + row && kept[r * T + t] == 100 + row);
            for (int k = 0; k < C; k++) assert_true(got[(r * T + t) * C + k] == row * C + k);
        }
    stand_close(&s);
}

const row agents_rollout_rows[] = {
    {OP_sequence, "sequence", NULL, check_sequence, false},
    {OP_remember, "remember", NULL, check_sequence, false},
    {OP_write_rows, "write_rows", NULL, check_write_rows, false},
    {OP_write_ends, "write_ends", NULL, check_write_ends, false},
    {OP_write_ends, "write_ends, too many", NULL, check_too_many_ends, false},
    {OP_standardise, "standardise", NULL, check_standardise, false},
    {OP_scale_reward, "scale_reward", NULL, check_scale_reward, false},
    {OP_gae, "gae", NULL, check_gae, false},
    {OP_gae, "gae, truncated episodes", NULL, check_gae_truncated, false},
};
const int agents_rollout_count = sizeof agents_rollout_rows / sizeof *agents_rollout_rows;
