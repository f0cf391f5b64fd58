// Greedy passes of an agent: the bits of the device's own evaluation, whatever is played side by side, and books that
// a replay of the orders has too, at every close.
#include "task/agent_play.h"

#include "backtest/replay.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "data/when.h"
#include "rl/scene.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 900, FEATURES = 2, LAGS = 3, STRETCHES = 3, SPAN = 3600 };

// Bars of a random walk with nights and weekends, and worlds of a training and a tested part.
typedef struct {
    bar *bars;
    account_bar bar[ROWS];
    float feature[ROWS * FEATURES];
    int32_t calendar[ROWS * MARKET_COLUMNS];
    market_stretch stretch[STRETCHES];
    account_rules rules;
    agent_world train, test;
} field;

static int64_t fixed(double v) {
    int64_t to;
    assert_true(account_fixed(v, &to));
    return to;
}

static void put_row(field *f, int64_t i) {
    const bar *b = &f->bars[i];
    int64_t day = when_day_of(b->time);
    float *x = f->feature + i * FEATURES;
    f->bar[i] = (account_bar){fixed(b->open), fixed(b->high), fixed(b->low), fixed(b->close), fixed(0.0001)};
    f->calendar[i * MARKET_COLUMNS + MARKET_NIGHTS] = i ? (int32_t)(day - when_day_of(f->bars[i - 1].time)) : 0;
    f->calendar[i * MARKET_COLUMNS + MARKET_ENDS] = i + 1 == ROWS || when_day_of(f->bars[i + 1].time) != day;
    f->calendar[i * MARKET_COLUMNS + MARKET_CLOCK] = (int32_t)(b->end % WHEN_DAY);
    x[0] = i ? (float)(300 * log(b->close / f->bars[i - 1].close)) : 0;
    x[1] = (float)(300 * log(b->close / b->open));
}

static const float plain_scale[2 * FEATURES] = {0, 0, 1, 1};

static agent_world world_of(field *f, int count, market_settings m) {
    agent_world w = {.env = {.kind = ENV_market, .market = m}, .parts = MARKET_PARTS};
    w.env.market.lags = LAGS;
    w.env.market.lagged = FEATURES;
    w.env.market.stretches = count;
    w.part[MARKET_BARS] = (agent_part){"bars", DTYPE_I64, shape2(ROWS, 5), f->bar, false};
    w.part[MARKET_FEATURES] = (agent_part){"features", DTYPE_F32, shape2(ROWS, FEATURES), f->feature, false};
    w.part[MARKET_SCALE] = (agent_part){"scale", DTYPE_F32, shape2(2, FEATURES), plain_scale, false};
    w.part[MARKET_CALENDAR] = (agent_part){"calendar", DTYPE_I32, shape2(ROWS, MARKET_COLUMNS), f->calendar, false};
    w.part[MARKET_STRETCHES] = (agent_part){"stretches", DTYPE_I64, shape2(count, 4), f->stretch, false};
    w.part[MARKET_RULES] = (agent_part){"rules", DTYPE_I64, shape2(1, sizeof f->rules / 8), &f->rules, false};
    return w;
}

static const account_rules plain = {.cash = 10000 * ACCOUNT_ONE,
    .spread = {.share = ACCOUNT_SHARE / 10000},
    .slippage = {.price = 20},
    .commission_share = ACCOUNT_SHARE / 50000,
    .commission_units = ACCOUNT_ONE,
    .swap_long = {.share = -ACCOUNT_SHARE / 20000},
    .swap_short = {.share = ACCOUNT_SHARE / 50000},
    .leverage = 2 * ACCOUNT_ONE,
    .contract = ACCOUNT_ONE,
    .lot_step = ACCOUNT_ONE / 100,
    .shorts = true};

static field *field_new(market_settings m) {
    field *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->bars = walk_bars(ROWS, SPAN, 7);
    for (int64_t i = 0; i < ROWS; i++) put_row(f, i);
    f->rules = plain;
    f->stretch[0] = (market_stretch){LAGS, 400, 0, 0};
    f->stretch[1] = (market_stretch){400, 650, 0, 399 - LAGS};
    f->stretch[2] = (market_stretch){700, ROWS, 0, 399 - LAGS + 249};
    f->train = f->test = world_of(f, STRETCHES, m);
    f->train.env.limit = 50;
    f->test.env.market.from_first = true;
    return f;
}

static void field_done(field *f) {
    free(f->bars);
    free(f);
}

static agent_settings settings_of(const field *f) {
    agent_settings s = scene_cartpole(5);
    s.world = f->train;
    s.test = f->test;
    s.envs = 4;
    s.steps = 32;
    s.batch = s.micro = 64;
    s.epochs = 4;
    s.tests = STRETCHES;
    // Means of numbers begin near 0, where an agent stays flat.
    s.rate = (ramp){RAMP_CONSTANT, f->test.env.market.continuous ? 3e-2 : 1e-4, 0};
    return s;
}

typedef struct {
    queue *q;
    agent_settings s;
    model_spec net;
} stage;

static agent_place place_of(const stage *t) {
    return (agent_place){.device = &cpu_device, .queue = t->q};
}

// An agent after two iterations; its weights are left in "weights", and the device's own evaluation in `score`.
static void train(const stage *t, agent_score *score) {
    err e = {0};
    agent_report r;
    agent_place at = place_of(t);
    agent *a = agent_new(&at, &t->s, &t->net, &e);
    support_ok(a != NULL, &e);
    support_ok(agent_iterate(a, &r, &e) && agent_iterate(a, &r, &e), &e);
    support_ok(agent_evaluate(a, score, &e) && agent_save(a, "weights", NULL, 0, &e), &e);
    agent_free(a);
}

static agent_pass play(const stage *t, int64_t rows) {
    err e = {0};
    agent_pass p = {0};
    agent_place at = place_of(t);
    actor *a = actor_new(&at, &t->s, &t->net, rows, &e);
    support_ok(a && actor_load(a, "weights", &e) && agent_play(&p, a, &t->s.test, &e), &e);
    assert_true(actor_rows(a) == rows && actor_measure(&at, &t->s, &t->net, rows) > 0);
    actor_free(a);
    return p;
}

static stage stage_open(agent_settings s) {
    err e = {0};
    stage t = {.q = cpu_device.open(&(queue_options){.threads = 1}, &e), .s = s, .net = scene_net()};
    support_ok(t.q != NULL, &e);
    return t;
}

static void is_complete(const agent_pass *p, const field *f) {
    assert_int_equal(p->runs, STRETCHES);
    for (int64_t k = 0; k < p->runs; k++) {
        const play_run *r = &p->run[k];
        assert_true(r->stretch == k && !r->ruined && r->count == f->stretch[k].end - f->stretch[k].first);
        for (int64_t i = 0; i < r->count; i++) assert_true(p->bar[r->first + i].row == f->stretch[k].first + i);
        assert_true(p->bar[r->first].equity == plain.cash && !p->bar[r->first].units);
    }
}

static void check_chances(const agent_pass *p) {
    for (int64_t i = 0; i < p->bars; i++) {
        const play_bar *b = &p->bar[i];
        float sum = 0, most = 0;
        for (int k = 0; k < PLAY_CHOICES; k++) {
            sum += b->chance[k];
            most = fmaxf(most, b->chance[k]);
        }
        assert_true(fabsf(sum - 1) < 1e-6f && b->chance[(int)b->action[0]] == most);
        assert_int_equal(b->side, (int)b->action[0] - 1);
    }
}

// Choices and numbers, with and without a memory, observations as they are and normalised.
static void a_pass_is_the_evaluation(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool numbers = k == 1, lstm = k >= 2;
        field *f = field_new((market_settings){.size = 1.5, .ruin = 0.1, .continuous = numbers});
        agent_settings s = settings_of(f);
        agent_score score;
        s.normalise_observation = k == 0 || k == 2;
        s.lstm = lstm ? 8 : 0;
        s.shared = k == 3;
        s.seed = 5;
        stage t = stage_open(s);
        train(&t, &score);
        agent_pass p = play(&t, STRETCHES), one = play(&t, 1);
        agent_score is = agent_pass_score(&p);
        is_complete(&p, f);
        assert_true(is.mean == score.mean && is.deviation == score.deviation && is.length == score.length);
        if (!numbers) check_chances(&p);
        assert_true(one.bars == p.bars);
        for (int64_t i = 0; i < p.bars; i++)
            assert_true(one.bar[i].equity == p.bar[i].equity && one.bar[i].side == p.bar[i].side);
        int64_t trades = 0;
        for (int64_t i = 0; i < p.bars; i++) trades += p.bar[i].orders && p.bar[i].order;
        assert_true(trades > 3); // the pass has something to be compared
        agent_pass_done(&p);
        agent_pass_done(&one);
        cpu_device.close(t.q);
        field_done(f);
    }
}

// Bars of one stretch as a backtest takes them.
static quotes quotes_of(const field *f, const market_stretch *at) {
    quotes q = {.count = at->end - at->first, .point = 1};
    int64_t *all = calloc((size_t)q.count * 6, sizeof *all);
    assert_non_null(all);
    int64_t **column[] = {&q.time, &q.open, &q.high, &q.low, &q.close, &q.spread};
    for (int c = 0; c < 6; c++) *column[c] = all + c * q.count;
    for (int64_t i = 0; i < q.count; i++) {
        const account_bar *b = &f->bar[at->first + i];
        q.time[i] = f->bars[at->first + i].time;
        q.open[i] = b->open, q.high[i] = b->high, q.low[i] = b->low, q.close[i] = b->close;
        q.spread[i] = b->spread;
    }
    return q;
}

static void check_replay(const field *f, const agent_pass *p, int64_t run, const account_terms *t) {
    const play_run *r = &p->run[run];
    quotes q = quotes_of(f, &f->stretch[r->stretch]);
    replay books;
    err e = {0};
    support_ok(replay_init(&books, &q, t, &f->rules, q.count, &e), &e);
    for (int64_t i = 0; i < q.count; i++) {
        const play_bar *before = i && i <= r->count ? &p->bar[r->first + i - 1] : NULL;
        account_order o = {before ? before->order : 0, 0, 0};
        replay_bar(&books, i, before && before->orders ? &o : NULL);
        if (i < r->count && !(t->day_close && i + 1 == q.count))
            assert_true(books.equity[i] == p->bar[r->first + i].equity);
        if (i < r->count && !(t->day_close && i + 1 == q.count))
            assert_true(books.books.units == p->bar[r->first + i].units);
    }
    support_ok(replay_end(&books, &e), &e);
    if (!r->ruined) assert_true(books.trades > 1);
    replay_done(&books);
    free(q.time);
}

static void a_replay_has_the_same_books(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        field *f = field_new((market_settings){.size = 1.5, .ruin = 0.1, .continuous = k == 1, .day_close = k == 2});
        account_terms terms = {.day_close = k == 2};
        agent_score score;
        stage t = stage_open(settings_of(f));
        train(&t, &score);
        agent_pass p = play(&t, STRETCHES);
        for (int64_t i = 0; i < p.runs; i++) check_replay(f, &p, i, &terms);
        agent_pass_done(&p);
        cpu_device.close(t.q);
        field_done(f);
    }
}

// Costs of a tenth of the price at each entry, until half of the cash is lost.
static void ruin_ends_a_pass(void **state) {
    (void)state;
    field *f = field_new((market_settings){.size = 1.5, .ruin = 0.5});
    f->rules.spread.share = ACCOUNT_SHARE / 10;
    agent_score score;
    stage t = stage_open(settings_of(f));
    train(&t, &score);
    agent_pass p = play(&t, STRETCHES);
    bool any = false;
    for (int64_t i = 0; i < p.runs; i++) {
        const play_run *r = &p.run[i];
        const play_bar *last = &p.bar[r->first + r->count - 1];
        if (!r->ruined) continue;
        any = true;
        assert_true(last->equity <= plain.cash / 2 && !last->side && !last->order);
        assert_true(last->orders == (last->units != 0));
        assert_true(r->count < f->stretch[i].end - f->stretch[i].first);
        check_replay(f, &p, i, &(account_terms){0});
    }
    assert_true(any);
    agent_score is = agent_pass_score(&p);
    assert_true(is.mean == score.mean && is.length == score.length);
    agent_pass_done(&p);
    cpu_device.close(t.q);
    field_done(f);
}

static void weights_that_diverged_are_told(void **state) {
    (void)state;
    field *f = field_new((market_settings){.size = 1.5, .ruin = 0.1});
    agent_score score;
    err e = {0};
    agent_pass p;
    stage t = stage_open(settings_of(f));
    train(&t, &score);
    agent_place at = place_of(&t);
    actor *a = actor_new(&at, &t.s, &t.net, 1, &e);
    support_ok(a && actor_load(a, "weights", &e), &e);
    f->feature[(400 + LAGS) * FEATURES] = NAN;
    assert_false(agent_play(&p, a, &t.s.test, &e));
    assert_true(e.kind == ERR_RUN && strstr(e.text, "not finite") && !p.bar);
    actor_free(a);
    cpu_device.close(t.q);
    field_done(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pass_is_the_evaluation, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_replay_has_the_same_books, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(ruin_ends_a_pass, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(weights_that_diverged_are_told, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
