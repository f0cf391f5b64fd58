// Runs in: test-long
//
// Agents on markets whose best answer is known: a sine with noise is traded on its slope, a random walk is left alone.
#include "cpu/cpu.h"
#include "rl/scene.h"
#include "support.h"
#include "task/agent_market.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAGS = 16, TESTED = 4000, PERIOD = 40 };

static const double amplitude = 0.01, deviation = 0.001; // of the sine; of a bar of the walk

// Closes of a market, opens at the close before; the one feature is the return, in deviations.
typedef struct {
    int64_t train;
    agent_market m;
    agent_stretches part[2]; // training, test
    market_stretch stretch[2];
    account_rules rules;
} field;

static double normal(dice *d) {
    double u = ((double)dice_below(d, 1 << 30) + 0.5) / (1 << 30), v = (double)dice_below(d, 1 << 30) / (1 << 30);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double truth(int64_t i) {
    return amplitude * sin(6.283185307179586 * (double)i / PERIOD);
}

static void put_bar(field *f, int64_t i, double before, double now, double unit) {
    account_bar *b = &f->m.bar[i];
    assert_true(account_fixed(1000 * exp(before), &b->open) && account_fixed(1000 * exp(now), &b->close));
    b->high = b->open > b->close ? b->open : b->close;
    b->low = b->open < b->close ? b->open : b->close;
    f->m.feature[i] = (float)((now - before) / unit);
}

static void field_init(field *f, int64_t train, bool walk) {
    int64_t rows = train + TESTED;
    dice d = {.seed = 11};
    double before = 0, noise = amplitude / 10, unit = walk ? deviation : amplitude / 5;
    *f = (field){.train = train,
        .m = {.rows = rows, .instruments = 1, .lags = LAGS, .lagged = 1},
        .stretch = {{LAGS - 1, train, 0, 0}, {train, rows, 0, 0}},
        .rules = {.cash = 10000 * ACCOUNT_ONE,
            .commission_units = ACCOUNT_ONE,
            .leverage = ACCOUNT_ONE,
            .contract = ACCOUNT_ONE,
            .shorts = true}};
    f->m.bar = calloc((size_t)rows, sizeof *f->m.bar);
    f->m.feature = calloc((size_t)rows, sizeof *f->m.feature);
    f->m.calendar = calloc((size_t)rows, MARKET_COLUMNS * sizeof *f->m.calendar);
    f->m.scale = calloc(2, sizeof *f->m.scale);
    f->m.rules = &f->rules;
    assert_true(f->m.bar && f->m.feature && f->m.calendar && f->m.scale);
    f->m.scale[1] = 1;
    for (int64_t i = 0; i < rows; i++) {
        double now = walk ? before + deviation * normal(&d) : truth(i) + noise * normal(&d);
        put_bar(f, i, before, now, unit);
        before = now;
    }
    if (walk) f->rules.slippage.share = (int64_t)(deviation / 2 * 1e10);
    if (!walk) f->rules.spread.share = (int64_t)(amplitude / 20 * 1e10);
    f->part[0] = (agent_stretches){"train stretches", 1, &f->stretch[0], train - LAGS, 0, 0};
    f->part[1] = (agent_stretches){"test stretches", 1, &f->stretch[1], TESTED - 1, 0, 0};
}

static void field_done(field *f) {
    free(f->m.bar);
    free(f->m.feature);
    free(f->m.calendar);
    free(f->m.scale);
}

static agent_settings settings_of(const field *f, uint64_t seed, int64_t total) {
    agent_settings s = scene_cartpole(seed);
    s.world.env = (env_settings){.limit = 400, .market = {.size = 0.95, .ruin = 0.5}};
    s.test.env = (env_settings){.market = {.size = 0.95, .ruin = 0.5, .from_first = true}};
    agent_market_world(&f->m, &f->part[0], &s.world);
    agent_market_world(&f->m, &f->part[1], &s.test);
    s.envs = 32;
    s.steps = 256;
    s.batch = s.micro = 1024;
    s.epochs = 4;
    s.total = total;
    s.tests = 1;
    s.gamma = 0.9;
    s.lambda = 0.95;
    s.clip = (ramp){RAMP_CONSTANT, 0.2, 0};
    s.normalise_observation = s.normalise_reward = true;
    return s;
}

// The log return of a greedy pass over the unseen stretch.
static double learn_with(const field *f, model_spec net, uint64_t seed, int64_t total) {
    agent_settings s = settings_of(f, seed, total);
    agent_report r;
    agent_score score;
    err e = {0};
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    agent *a = q ? agent_new(&(agent_place){.device = &cpu_device, .queue = q}, &s, &net, &e) : NULL;
    support_ok(a != NULL, &e);
    while (!agent_is_over(a)) support_ok(agent_iterate(a, &r, &e), &e);
    support_ok(agent_evaluate(a, &score, &e), &e);
    assert_true(score.length == TESTED - 1);
    agent_free(a);
    cpu_device.close(q);
    return score.mean;
}

static double learn(const field *f, uint64_t seed, int64_t total) {
    return learn_with(f, scene_net(), seed, total);
}

// The log return of holding the sign of the true slope.
static double best_of(const field *f) {
    agent_settings s = settings_of(f, 1, 1);
    env_data d = {.rows = f->m.rows};
    for (int k = 0; k < s.test.parts; k++) d.part[k] = s.test.part[k].data;
    int64_t *state = calloc((size_t)env_words(&s.test.env), sizeof *state);
    assert_non_null(state);
    env_result r = {0};
    for (int64_t i = f->train; r.end == ENV_GOES_ON; i++) {
        float seen[LAGS + MARKET_OWN], last[LAGS + MARKET_OWN], action = truth(i + 1) > truth(i) ? 2 : 0;
        env_see_rows(&s.test.env, &d, (env_dice){0}, state, seen, 0, 1);
        env_take_rows(&s.test.env, &d, state, &action, &r, last, 0, 1);
    }
    free(state);
    return r.total;
}

static void a_sine_is_traded_on_its_slope(void **state) {
    (void)state;
    field f;
    field_init(&f, 20000, false);
    double best = best_of(&f);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double is = learn(&f, seed, 500000);
        print_message("seed %d: log return %.3f, the true slope's %.3f\n", (int)seed, is, best);
        assert_true(best > 1 && is >= 0.9 * best);
    }
    field_done(&f);
}

static void a_transformer_over_lags_trades_it_too(void **state) {
    (void)state;
    field f;
    field_init(&f, 20000, false);
    double best = best_of(&f), is = learn_with(&f, scene_transformer(), 1, 200000);
    print_message("transformer: log return %.3f, the true slope's %.3f\n", is, best);
    assert_true(is >= 0.9 * best);
    field_done(&f);
}

// Every entry costs half a bar's deviation: a pass whose return is 0 was never in the market.
static void a_random_walk_is_left_alone(void **state) {
    (void)state;
    field f;
    field_init(&f, 400000, true);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double is = learn(&f, seed, 1000000);
        print_message("seed %d: log return %.6f\n", (int)seed, is);
        assert_true(is == 0);
    }
    field_done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transformer_over_lags_trades_it_too),
        cmocka_unit_test(a_sine_is_traded_on_its_slope),
        cmocka_unit_test(a_random_walk_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
