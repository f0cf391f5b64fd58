// How agents act: environments and the drawing of actions, against the plainest computation of what each operator is
// defined to give.
#include "env/batch.h"
#include "ops/agents.h"
#include "ops/stand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Environments

enum { WORLDS = 37, WORLD_LIMIT = 12, WORLD_STEPS = 60, WORLD_WIDE = 4 };

typedef struct {
    graph *g;
    tensor action, seen, reward;
    env_attr settings;
} world;

static world world_graph(const place *p, env_kind kind, uint32_t stream) {
    world w = {.g = graph_new(), .settings = {{.kind = kind, .limit = WORLD_LIMIT}, stream}};
    tensor state = graph_state(w.g, "worlds", DTYPE_I64, shape2(WORLDS, env_words(&w.settings.env)));
    w.action = graph_state(w.g, "action", DTYPE_F32, shape2(WORLDS, 1));
    w.seen = op_env_see(w.g, state, NULL, 0, w.settings);
    w.reward = op_env_take(w.g, state, w.action, NULL, 0, w.settings);
    graph_keep(w.g, w.seen);
    for (int k = ENV_TAKE_REWARD; k <= ENV_TAKE_STEPS; k++) graph_keep(w.g, graph_sibling(w.g, w.reward, k));
    dtype_assign(w.g, p->precision);
    return w;
}

// One environment by the functions of its header alone, and what it has told.
typedef struct {
    cartpole_state cart;
    pendulum_state swing;
    bool live;
    int steps;
    double total, reward;
    env_end end;
    float seen[WORLD_WIDE], last[WORLD_WIDE];
} shadow;

static void shadow_observe(const world *w, const shadow *h, float *to) {
    if (w->settings.env.kind == ENV_cartpole)
        cartpole_observe(&w->settings.env, NULL, &h->cart, to);
    else
        pendulum_observe(&w->settings.env, NULL, &h->swing, to);
}

static void shadow_see(const world *w, shadow *h, env_dice dice) {
    bool cart = w->settings.env.kind == ENV_cartpole;
    if (!h->live) {
        h->steps = 0;
        h->total = 0;
        if (cart) cartpole_reset(&w->settings.env, NULL, &dice, &h->cart);
        if (!cart) pendulum_reset(&w->settings.env, NULL, &dice, &h->swing);
    }
    h->live = true;
    shadow_observe(w, h, h->seen);
}

static void shadow_take(const world *w, shadow *h, float action) {
    bool over = w->settings.env.kind == ENV_cartpole
                    ? cartpole_step(&w->settings.env, NULL, &h->cart, &action, &h->reward)
                    : pendulum_step(&w->settings.env, NULL, &h->swing, &action, &h->reward);
    h->steps++;
    h->total += h->reward;
    h->end = over ? ENV_TERMINATED : h->steps == WORLD_LIMIT ? ENV_TRUNCATED : ENV_GOES_ON;
    h->live = h->end == ENV_GOES_ON;
    memset(h->last, 0, sizeof h->last);
    if (!h->live) shadow_observe(w, h, h->last);
}

static void compare_world(stand *s, const world *w, const shadow *h) {
    int64_t columns = env_shape_of(&w->settings.env).observation;
    double seen[WORLDS * WORLD_WIDE], last[WORLDS * WORLD_WIDE], figure[4][WORLDS];
    static const int results[] = {ENV_TAKE_REWARD, ENV_TAKE_END, ENV_TAKE_TOTAL, ENV_TAKE_STEPS};
    stand_get(s, w->seen, seen);
    stand_get(s, graph_sibling(w->g, w->reward, ENV_TAKE_LAST), last);
    for (int k = 0; k < 4; k++) stand_get(s, graph_sibling(w->g, w->reward, results[k]), figure[k]);
    for (int i = 0; i < WORLDS; i++) {
        stand_near("reward", i, figure[0][i], (double)(float)h[i].reward, 0);
        stand_near("end", i, figure[1][i], h[i].end, 0);
        stand_near("total", i, figure[2][i], (double)(float)h[i].total, 0);
        stand_near("steps", i, figure[3][i], h[i].steps, 0);
        for (int64_t c = 0; c < columns; c++) {
            stand_near("seen", i, seen[i * columns + c], (double)h[i].seen[c], 0);
            stand_near("last", i, last[i * columns + c], (double)h[i].last[c], 0);
        }
    }
}

// Every third cart is always pushed right and falls before the limit; others go left and right.
static double action_of(env_kind kind, int i, int t) {
    if (kind == ENV_pendulum) return 2.5 * stand_value(i * WORLD_STEPS + t, 1);
    return i % 3 ? t % 2 : 1;
}

static void check_world(const place *p, env_kind kind, uint32_t stream) {
    const uint64_t seed = 11, position = 1000;
    int ends[3] = {0};
    world w = world_graph(p, kind, stream);
    stand s = stand_open(p, w.g, (solo_options){.rows = WORLDS, .inference = true, .guard = 64});
    shadow *h = calloc(WORLDS, sizeof *h);
    assert_non_null(h);
    for (int t = 0; t < WORLD_STEPS; t++) {
        double action[WORLDS];
        for (int i = 0; i < WORLDS; i++) action[i] = action_of(kind, i, t);
        stand_put(&s, w.action, action, WORLDS);
        stand_seek(&s, seed, position, (uint64_t)(t * WORLDS));
        stand_play(&s, PASS_EVALUATE);
        for (int i = 0; i < WORLDS; i++) {
            shadow_see(&w, &h[i], (env_dice){seed, position + (uint64_t)(t * WORLDS + i), stream});
            shadow_take(&w, &h[i], (float)action[i]);
            ends[h[i].end]++;
        }
        compare_world(&s, &w, h);
    }
    assert_true(ends[ENV_TRUNCATED] > 0 && (ends[ENV_TERMINATED] > 0) == (kind == ENV_cartpole));
    free(h);
    stand_close(&s);
}

static void check_carts(const place *p) {
    check_world(p, ENV_cartpole, 0);
    check_world(p, ENV_cartpole, 3);
}

static void check_pendulums(const place *p) {
    check_world(p, ENV_pendulum, 1);
}

// sample

enum { DRAWS = 4096, CHOICES = 5, SLOTS = 4 };

typedef struct {
    tensor action, log_prob;
    stand s;
} sampler;

static sampler sampler_open(const place *p, graph *g, tensor action, int64_t rows) {
    sampler d = {action, graph_sibling(g, action, 1), {0}};
    graph_keep(g, action);
    graph_keep(g, d.log_prob);
    dtype_assign(g, p->precision);
    d.s = stand_open(p, g, (solo_options){.rows = rows, .inference = true, .guard = 64});
    return d;
}

static void sampler_play(sampler *d, uint64_t seed, uint64_t position, uint64_t row, double *action, double *log_prob) {
    stand_seek(&d->s, seed, position, row);
    stand_play(&d->s, PASS_EVALUATE);
    stand_get(&d->s, d->action, action);
    if (log_prob) stand_get(&d->s, d->log_prob, log_prob);
}

static const float choice_score[CHOICES] = {0.5f, -1, 2, 2, -40};

static sampler choices_open(const place *p, float *score, sample_settings settings) {
    graph *g = graph_new();
    for (int i = 0; i < DRAWS * CHOICES; i++) score[i] = choice_score[i % CHOICES];
    tensor z = graph_constant(g, "score", DTYPE_F32, shape2(DRAWS, CHOICES), score);
    settings.choices = true;
    return sampler_open(p, g, op_sample(g, z, TENSOR_NONE, TENSOR_NONE, TENSOR_NONE, settings), DRAWS);
}

static double choice_log(int k) {
    double sum = 0;
    for (int i = 0; i < CHOICES; i++) sum += exp((double)choice_score[i]);
    return (double)choice_score[k] - log(sum);
}

static double chi_square(const int *count, int draws) {
    double chi = 0;
    for (int k = 0; k < CHOICES; k++) {
        double want = draws * exp(choice_log(k));
        chi += want < 1e-6 ? 1e9 * count[k] : (count[k] - want) * (count[k] - want) / want;
    }
    return chi;
}

// Chi-square has 3 degrees of freedom, as the last choice must never come: 20 is passed once in 6,000 times, by the
// seed alone.
static void check_choices(const place *p) {
    float *score = calloc(DRAWS * CHOICES, sizeof *score);
    double *was = calloc(3 * DRAWS, sizeof *was), *is = was + DRAWS, *log_prob = is + DRAWS;
    int count[CHOICES] = {0}, same = 0;
    assert_true(score && was);
    sampler d = choices_open(p, score, (sample_settings){.stream = 2});
    for (int t = 0; t < SLOTS; t++) {
        sampler_play(&d, 5, 700, (uint64_t)t * DRAWS, is, log_prob);
        for (int i = 0; i < DRAWS; i++) {
            assert_true(is[i] >= 0 && is[i] < CHOICES && is[i] == floor(is[i]));
            stand_near("log_prob", i, log_prob[i], choice_log((int)is[i]), stand_wide(p) ? 1e-12 : 1e-6);
            count[(int)is[i]]++;
            same += t > 0 && is[i] == was[i];
        }
        memcpy(was, is, DRAWS * sizeof *was);
    }
    double chi = chi_square(count, SLOTS * DRAWS), likely = 0;
    if (!(chi < 20)) fail_msg("chi-square is %g", chi);
    for (int k = 0; k < CHOICES; k++) likely += exp(2 * choice_log(k));
    stand_near("share of repeated choices", 0, same / (double)((SLOTS - 1) * DRAWS), likely, 0.02);
    sampler_play(&d, 5, 700 + (SLOTS - 1) * DRAWS, 0, is, NULL); // the same moments, counted otherwise
    assert_memory_equal(is, was, DRAWS * sizeof *is);
    sampler_play(&d, 6, 700 + (SLOTS - 1) * DRAWS, 0, is, NULL); // another seed
    assert_memory_not_equal(is, was, DRAWS * sizeof *is);
    stand_close(&d.s);
    d = choices_open(p, score, (sample_settings){.stream = 3});
    sampler_play(&d, 5, 700, (SLOTS - 1) * DRAWS, is, NULL); // another stream
    assert_memory_not_equal(is, was, DRAWS * sizeof *is);
    stand_close(&d.s);
    free(was);
    free(score);
}

static void check_choices_greedy(const place *p) {
    float *score = calloc(DRAWS * CHOICES, sizeof *score);
    double *is = calloc(2 * DRAWS, sizeof *is), *log_prob = is + DRAWS;
    assert_true(score && is);
    sampler d = choices_open(p, score, (sample_settings){.greedy = true});
    sampler_play(&d, 5, 0, DRAWS, is, log_prob);
    for (int i = 0; i < DRAWS; i++) {
        assert_true(is[i] == 2); // the first of two that are equal
        stand_near("log_prob", i, log_prob[i], choice_log(2), stand_wide(p) ? 1e-12 : 1e-6);
    }
    stand_close(&d.s);
    free(is);
    free(score);
}

enum { NUMBERS = 3 };
static const float number_mean[NUMBERS] = {0.5f, -100, 0}, number_std[NUMBERS] = {2, 0.25f, 1};

static sampler numbers_open(const place *p, float *of, sample_settings settings) {
    graph *g = graph_new();
    float *mean = of, *std = of + DRAWS * NUMBERS;
    for (int i = 0; i < DRAWS * NUMBERS; i++) mean[i] = number_mean[i % NUMBERS];
    for (int i = 0; i < DRAWS * NUMBERS; i++) std[i] = number_std[i % NUMBERS];
    tensor z = graph_constant(g, "mean", DTYPE_F32, shape2(DRAWS, NUMBERS), mean);
    tensor by = graph_constant(g, "std", DTYPE_F32, shape2(DRAWS, NUMBERS), std);
    return sampler_open(p, g, op_sample(g, z, by, TENSOR_NONE, TENSOR_NONE, settings), DRAWS);
}

static double log_normal(double x, double mean, double std) {
    return log(exp(-(x - mean) * (x - mean) / (2 * std * std)) / sqrt(2 * acos(-1) * std * std));
}

// Moments of a column of standard normal numbers, and its correlation with the next column: each within five
// deviations of what so many draws give.
static void check_moments(const double *z, int column) {
    double one = 0, two = 0, four = 0, with = 0, n = DRAWS;
    for (int i = 0; i < DRAWS; i++) {
        double v = z[i * NUMBERS + column];
        one += v / n;
        two += v * v / n;
        four += v * v * v * v / n;
        with += v * z[i * NUMBERS + (column + 1) % NUMBERS] / n;
    }
    stand_near("mean", column, one, 0, 5 / sqrt(n));
    stand_near("square", column, two, 1, 5 * sqrt(2 / n));
    stand_near("fourth power", column, four, 3, 5 * sqrt(96 / n));
    stand_near("correlation", column, with, 0, 5 / sqrt(n));
}

static void check_numbers(const place *p) {
    float *of = calloc(2 * DRAWS * NUMBERS, sizeof *of);
    double *is = calloc(2 * DRAWS * NUMBERS + DRAWS, sizeof *is), *was = is + DRAWS * NUMBERS,
           *log_prob = was + DRAWS * NUMBERS;
    assert_true(of && is);
    sampler d = numbers_open(p, of, (sample_settings){.hold = 8}); // which is for noise of a latent alone
    for (int t = 0; t < 2; t++) {
        memcpy(was, is, DRAWS * NUMBERS * sizeof *is);
        sampler_play(&d, 5, 0, (uint64_t)t * DRAWS, is, log_prob);
        for (int i = 0; i < DRAWS; i++) {
            double want = 0, *a = is + i * NUMBERS;
            for (int k = 0; k < NUMBERS; k++) want += log_normal(a[k], (double)number_mean[k], (double)number_std[k]);
            stand_near("log_prob", i, log_prob[i], want, (stand_wide(p) ? 1e-12 : 1e-6) * (1 + fabs(want)));
            for (int k = 0; k < NUMBERS; k++) a[k] = (a[k] - (double)number_mean[k]) / (double)number_std[k];
        }
        for (int k = 0; k < NUMBERS; k++) check_moments(is, k);
    }
    int same = 0;
    for (int i = 0; i < DRAWS * NUMBERS; i++) same += is[i] == was[i];
    assert_true(same < 5); // fp32 has few numbers around -100
    stand_close(&d.s);
    d = numbers_open(p, of, (sample_settings){.greedy = true});
    sampler_play(&d, 5, 0, 0, is, log_prob);
    for (int i = 0; i < DRAWS * NUMBERS; i++) assert_true(is[i] == (double)number_mean[i % NUMBERS]);
    stand_near("log_prob of the means", 0, log_prob[0], -log(2 * 0.25) - 1.5 * log(2 * acos(-1)), 1e-6);
    stand_close(&d.s);
    free(is);
    free(of);
}

// Noise that is a function of the policy's state: latents that are unit vectors show the matrix, one after the other

enum { NOISY = 64, LATENT = 6, HOLD = LATENT + 1, PAIR = 2, MATRIX = LATENT * PAIR };

typedef struct {
    sampler d;
    tensor latent;
    float mean[NOISY * PAIR], std[NOISY * PAIR], log_std[MATRIX];
} noise;

static void noise_open(noise *n, const place *p, int32_t hold, bool greedy) {
    graph *g = graph_new();
    for (int i = 0; i < NOISY * PAIR; i++) {
        n->mean[i] = (float)stand_value(i, 5);
        n->std[i] = 1 + 0.5f * (float)stand_value(i, 6);
    }
    for (int i = 0; i < MATRIX; i++) n->log_std[i] = (float)stand_value(i, 7);
    tensor mean = graph_constant(g, "mean", DTYPE_F32, shape2(NOISY, PAIR), n->mean);
    tensor std = graph_constant(g, "std", DTYPE_F32, shape2(NOISY, PAIR), n->std);
    tensor log_std = graph_constant(g, "log_std", DTYPE_F32, shape2(LATENT, PAIR), n->log_std);
    n->latent = graph_state(g, "latent", DTYPE_F32, shape2(NOISY, LATENT));
    n->d = sampler_open(
        p, g, op_sample(g, mean, std, n->latent, log_std, (sample_settings){.hold = hold, .greedy = greedy}), NOISY);
}

// The noise of a slot of the rollout, for latents that are the unit vector `f`, or random ones of this salt.
static void noise_play(noise *n, int slot, int f, uint32_t salt, double *to) {
    double latent[NOISY * LATENT], log_prob[NOISY];
    for (int i = 0; i < NOISY * LATENT; i++) latent[i] = f < LATENT ? i % LATENT == f : stand_value(i, salt);
    stand_put(&n->d.s, n->latent, latent, NOISY * LATENT);
    sampler_play(&n->d, 9, 64, (uint64_t)(slot * NOISY), to, log_prob);
    for (int i = 0; i < NOISY; i++) {
        double want = 0;
        for (int k = i * PAIR; k < (i + 1) * PAIR; k++) {
            want += log_normal(to[k], (double)n->mean[k], (double)n->std[k]);
            to[k] -= (double)n->mean[k];
        }
        stand_near("log_prob", i, log_prob[i], want, (stand_wide(n->d.s.p) ? 1e-12 : 2e-6) * (1 + fabs(want)));
    }
}

// The matrices of all environments [NOISY, LATENT, PAIR] in the slots from `slot` on; the last slot of their hold, with
// latents of any kind, must have them too.
static void noise_matrices(noise *n, int slot, double *m) {
    double v[NOISY * PAIR];
    for (int f = 0; f < LATENT; f++) {
        noise_play(n, slot + f, f, 0, v);
        for (int i = 0; i < NOISY * PAIR; i++) m[(i / PAIR * LATENT + f) * PAIR + i % PAIR] = v[i];
    }
    noise_play(n, slot + LATENT, LATENT, 77, v);
    for (int i = 0; i < NOISY * PAIR; i++) {
        double want = 0;
        for (int f = 0; f < LATENT; f++)
            want += stand_value(i / PAIR * LATENT + f, 77) * m[(i / PAIR * LATENT + f) * PAIR + i % PAIR];
        stand_near("noise of a held matrix", i, v[i], want, stand_wide(n->d.s.p) ? 1e-12 : 5e-6);
    }
}

static void check_noise(const place *p) {
    noise *n = calloc(1, sizeof *n);
    double *m = calloc(2 * NOISY * MATRIX, sizeof *m), mean = 0, square = 0;
    assert_true(n && m);
    noise_open(n, p, HOLD, false);
    for (int k = 0; k < 2; k++) noise_matrices(n, k * HOLD, m + k * NOISY * MATRIX);
    for (int i = 0; i < 2 * NOISY * MATRIX; i++) {
        double z = m[i] / exp((double)n->log_std[i % MATRIX]), all = 2 * NOISY * MATRIX;
        mean += z / all;
        square += z * z / all;
        for (int k = i % MATRIX; k < i; k += MATRIX) assert_true(m[i] != m[k]); // of other environments, and before
    }
    stand_near("mean of the matrices", 0, mean, 0, 5 / sqrt(2 * NOISY * MATRIX));
    stand_near("square of the matrices", 0, square, 1, 5 * sqrt(2.0 / (2 * NOISY * MATRIX)));
    stand_close(&n->d.s);
    free(m);
    free(n);
}

// Without a hold every slot has noise of its own; greedy actions have none.
static void check_noise_anew(const place *p) {
    double v[2][NOISY * PAIR];
    noise *n = calloc(1, sizeof *n);
    assert_non_null(n);
    noise_open(n, p, 0, false);
    for (int t = 0; t < 2; t++) noise_play(n, t, 3, 0, v[t]);
    for (int i = 0; i < NOISY * PAIR; i++) assert_true(v[0][i] != v[1][i]);
    stand_close(&n->d.s);
    noise_open(n, p, HOLD, true);
    noise_play(n, 1, 3, 0, v[0]);
    for (int i = 0; i < NOISY * PAIR; i++) assert_true(v[0][i] == 0);
    stand_close(&n->d.s);
    free(n);
}

const row agents_act_rows[] = {
    {OP_env_see, "env_see and env_take of carts", NULL, check_carts, false},
    {OP_env_take, "env_see and env_take of pendulums", NULL, check_pendulums, false},
    {OP_sample, "sample of choices", NULL, check_choices, false},
    {OP_sample, "sample of choices, greedy", NULL, check_choices_greedy, false},
    {OP_sample, "sample of numbers", NULL, check_numbers, false},
    {OP_sample, "sample with noise of a latent, held", NULL, check_noise, false},
    {OP_sample, "sample with noise of a latent, anew or none", NULL, check_noise_anew, false},
};
const int agents_act_count = sizeof agents_act_rows / sizeof *agents_act_rows;
