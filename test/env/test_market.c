// The market environment: five bars by hand, beginnings and ends of episodes, rewards against their definitions, what
// an observation may know, and books beside a million random steps on a real file.
#include "env/plain.h"

#include "backtest/replay.h"
#include "env/batch.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MOST = 64, SEEN_MOST = 64, STRETCHES_MOST = 4 };

// One environment with its data.
typedef struct {
    env_settings s;
    env_data d;
    account_bar *bar;
    float *feature, scale[4];
    int32_t *calendar;
    market_stretch stretch[STRETCHES_MOST];
    account_rules rules[STRETCHES_MOST];
    int64_t *state;
    uint64_t moment;
    float seen[SEEN_MOST], last[SEEN_MOST];
} stage;

// Rows of two features, the second observed once: a row's number, and that plus a half. Bars are all 100; one stretch.
static void stage_init(stage *t, int64_t rows) {
    *t = (stage){.s = {.kind = ENV_market,
                     .market = {.lags = 1,
                         .lagged = 1,
                         .once = 1,
                         .stretches = 1,
                         .from_first = true,
                         .size = 0.5,
                         .ruin = 0.5,
                         .eta = 0.05,
                         .shape = 0.5}},
        .bar = calloc((size_t)rows, sizeof *t->bar),
        .feature = calloc((size_t)rows, 2 * sizeof *t->feature),
        .calendar = calloc((size_t)rows, MARKET_COLUMNS * sizeof *t->calendar),
        .state = calloc(WORDS_MOST, sizeof *t->state),
        .scale = {0, 0, 1, 1},
        .stretch = {{0, rows, 0, 0}},
        .rules = {plain_rules(), plain_rules()}};
    assert_true(t->bar && t->feature && t->calendar && t->state);
    for (int64_t i = 0; i < rows; i++) {
        t->bar[i] = (account_bar){fixed(100), fixed(100), fixed(100), fixed(100), 0};
        t->feature[2 * i] = (float)i;
        t->feature[2 * i + 1] = (float)i + 0.5f;
    }
    t->d = (env_data){{t->bar, t->feature, t->scale, t->calendar, t->stretch, t->rules}, rows};
}

static void stage_done(stage *t) {
    free(t->bar);
    free(t->feature);
    free(t->calendar);
    free(t->state);
}

static env_head *head_of(stage *t) {
    return (env_head *)t->state;
}

static market_state *state_of(stage *t) {
    return (market_state *)(head_of(t) + 1);
}

static void see(stage *t) {
    assert_true(env_words(&t->s) <= WORDS_MOST && env_shape_of(&t->s).observation <= SEEN_MOST);
    env_see_rows(&t->s, &t->d, (env_dice){1, t->moment++, 0}, t->state, t->seen, 0, 1);
}

static env_result take_pair(stage *t, float direction, float size) {
    float action[2] = {direction, size};
    env_result r;
    see(t);
    env_take_rows(&t->s, &t->d, t->state, action, &r, t->last, 0, 1);
    return r;
}

static env_result take(stage *t, int side) {
    return take_pair(t, (float)(side + 1), 0);
}

static void near(double is, double should) {
    if (!(fabs(is - should) <= 1e-12 + 1e-12 * fabs(should))) fail_msg("%.17g is not %.17g", is, should);
}

static void put_bar(stage *t, int64_t i, double open, double close) {
    t->bar[i] = (account_bar){fixed(open), fixed(fmax(open, close)), fixed(fmin(open, close)), fixed(close), 0};
}

// Closes as a random walk of ten thousandths, opens near them.
static void put_walk(stage *t, uint64_t seed) {
    dice d = {.seed = seed};
    double price = 100;
    for (int64_t i = 0; i < t->d.rows; i++) {
        double open = price * (1 + 0.0005 * (double)dice_unit(&d));
        price = open * (1 + 0.002 * (double)dice_unit(&d));
        put_bar(t, i, open, price);
    }
}

// Known answers

static void five_bars_by_hand(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 5);
    t.rules[0].spread.price = fixed(0.2);
    t.rules[0].commission_money = fixed(0.01);
    t.rules[0].swap_long.price = fixed(-0.02);
    t.rules[0].lot_step = ACCOUNT_ONE;
    t.rules[0].contract = fixed(0.5);
    put_bar(&t, 1, 101, 104);
    put_bar(&t, 2, 103, 102);
    put_bar(&t, 3, 102.5, 100);
    put_bar(&t, 4, 99, 97);
    t.calendar[2 * MARKET_COLUMNS + MARKET_NIGHTS] = 1;
    t.calendar[3 * MARKET_COLUMNS + MARKET_CLOCK] = 6 * 3600;
    account *books = &state_of(&t)->books;
    // Long: half of 10,000 at 100 are 100 lots of half a unit, bought at 101.2 for 0.5.
    near(take(&t, 1).reward, log(10139.5 / 10000));
    assert_int_equal(books->units, fixed(50));
    assert_int_equal(books->basis, fixed(50 * 101.2));
    // Kept over a night, for 1.
    near(take(&t, 1).reward, log(10038.5 / 10139.5));
    assert_int_equal(books->units, fixed(50));
    // Short: sold at 102.5 for 0.5; half of 10,038.5 at 102 are 98 lots, sold at 102.3 for 0.49.
    near(take(&t, -1).reward, log(10175.21 / 10038.5));
    assert_int_equal(books->units, fixed(-49));
    see(&t);
    const float should[] = {
        3, 3.5f, (float)(-4900 / (10175.21 * 0.5)), (float)(1 - 5012.7 / 10175.21), (float)(112.7 / 10175.21), 1, 0};
    assert_int_equal(env_shape_of(&t.s).observation, 7);
    for (int i = 0; i < 7; i++) assert_true(fabsf(t.seen[i] - should[i]) < 1e-7f);
    // Flat: bought back at 99 for 0.49. There is no bar left then.
    env_result r = take(&t, 0);
    near(r.reward, log(10223.72 / 10175.21));
    near(r.total, log(10223.72 / 10000));
    assert_int_equal(r.end, ENV_TRUNCATED);
    assert_int_equal(r.steps, 4);
    assert_true(t.last[0] == 4 && t.last[2] == 0 && t.last[3] == 1 && t.last[4] == 0);
    stage_done(&t);
}

static void the_day_ends_flat(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 4);
    t.s.market.day_close = true;
    put_bar(&t, 1, 100, 110);
    put_bar(&t, 2, 120, 120);
    t.calendar[1 * MARKET_COLUMNS + MARKET_ENDS] = 1;
    near(take(&t, 1).reward, log(10500.0 / 10000));
    assert_int_equal(state_of(&t)->books.units, 0);
    near(take(&t, 0).reward, 0);
    stage_done(&t);
}

static void a_direction_and_a_size(void **state) {
    (void)state;
    const struct {
        float direction, size;
        double units;
    } all[] = {{0.3f, 1, 0}, {0.30001f, 1, 50}, {1, 0.5f, 25}, {1, 0, 5}, {1, 7, 50}, {-0.3f, 1, 0},
        {-0.30001f, 0.25f, -12.5}, {-1, -1, -5}, {NAN, 1, 0}, {1, NAN, 5}, {0, 1, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stage t;
        stage_init(&t, 3);
        t.s.market.continuous = true;
        assert_int_equal(env_shape_of(&t.s).action, 2);
        assert_int_equal(env_shape_of(&t.s).choices, 0);
        take_pair(&t, all[i].direction, all[i].size);
        assert_int_equal(state_of(&t)->books.units, fixed(all[i].units));
        // The size counts at an entry.
        take_pair(&t, all[i].direction, 0.9f);
        assert_int_equal(state_of(&t)->books.units, fixed(all[i].units));
        stage_done(&t);
    }
}

static void without_shorts_short_is_flat(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 4);
    const float asks[2] = {-1, 1};
    account_order o;
    t.rules[0].shorts = false;
    take(&t, 1);
    assert_int_equal(state_of(&t)->books.units, fixed(50));
    assert_true(market_order(&t.s.market, &t.d, state_of(&t), asks, &o) && o.units == 0);
    take(&t, -1);
    assert_int_equal(state_of(&t)->books.units, 0);
    assert_false(market_order(&t.s.market, &t.d, state_of(&t), asks, &o)); // as it is flat already
    assert_int_equal(o.units, 0);
    stage_done(&t);
}

// Rewards

static int side_at(int i) {
    return i % 7 == 0 ? 0 : i / 5 % 2 ? -1 : 1;
}

static void differential_sharpe_is_its_definition(void **state) {
    (void)state;
    enum { BARS = 500 };
    stage t;
    stage_init(&t, BARS);
    put_walk(&t, 5);
    t.s.market.reward = MARKET_SHARPE;
    long double a = 0, b = 0, eta = 0.05L;
    double was = 10000;
    int above = 0;
    for (int i = 0; i < 2 * (BARS - 1); i++) {
        if (i == BARS - 1) a = b = 0, was = 10000; // the second episode
        env_result r = take(&t, side_at(i));
        double now = (double)state_of(&t)->equity / 1e8;
        long double gain = logl((long double)now / (long double)was), variance = b - a * a, should = 0;
        if (variance > 1e-12L)
            should = (b * eta * (gain - a) - 0.5L * a * eta * (gain * gain - b)) / powl(variance, 1.5L);
        above += fabsl(should) > 0.001L;
        assert_true(fabsl((long double)r.reward - should) < 1e-9L);
        a += eta * (gain - a);
        b += eta * (gain * gain - b);
        was = now;
    }
    assert_true(above > BARS);
    stage_done(&t);
}

static void shaped_rewards_add_up_to_return_less_drawdown(void **state) {
    (void)state;
    enum { BARS = 500 };
    stage t;
    stage_init(&t, BARS);
    put_walk(&t, 6);
    t.s.market.reward = MARKET_SHAPED;
    for (int episode = 0; episode < 2; episode++) {
        double peak = 10000, worst = 0, equity = 0, total = 0;
        for (int i = 0; i < BARS - 1; i++) {
            total = take(&t, side_at(i)).total;
            equity = (double)state_of(&t)->equity / 1e8;
            peak = fmax(peak, equity);
            worst = fmax(worst, log(peak / equity));
        }
        assert_true(worst > 0.001);
        assert_true(fabs(total - (log(equity / 10000) - 0.5 * worst)) < 1e-12);
    }
    stage_done(&t);
}

// Ends

static void ruin_terminates(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 10);
    t.s.market.size = 1;
    put_bar(&t, 2, 100, 50.00000001);
    for (int64_t i = 3; i < 10; i++) put_bar(&t, i, 50, 50);
    assert_int_equal(take(&t, 1).end, ENV_GOES_ON);
    assert_int_equal(take(&t, 1).end, ENV_GOES_ON); // 5,000.000001
    env_result r = take(&t, 1);
    assert_int_equal(r.end, ENV_TERMINATED);
    near(r.total, log(0.5));
    assert_true(take(&t, 0).steps == 1);
    stage_done(&t);
}

// A gap that leaves nothing, or debts: the reward is that of a thousandth of the cash.
static void debts_have_a_finite_reward(void **state) {
    (void)state;
    const double gap[] = {300, 500}, left[] = {0, -10000};
    for (int k = 0; k < 2; k++) {
        stage t;
        stage_init(&t, 5);
        put_bar(&t, 2, gap[k], gap[k]);
        take(&t, -1);
        env_result r = take(&t, -1);
        assert_int_equal(r.end, ENV_TERMINATED);
        assert_int_equal(state_of(&t)->equity, fixed(left[k]));
        near(r.reward, log(0.001));
        assert_true(t.last[2] == 0 && t.last[3] == 1 && t.last[4] == 0);
        stage_done(&t);
    }
}

static void overflow_terminates(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 4);
    t.rules[0].cash = fixed(8e10);
    put_bar(&t, 2, 100, 1000);
    take(&t, 1);
    env_result r = take(&t, 1);
    assert_int_equal(r.end, ENV_TERMINATED);
    assert_true(r.reward == 0);
    stage_done(&t);
}

static void the_limit_and_the_last_bar_truncate(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 10);
    t.s.limit = 4;
    env_result r = {0};
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(r.end, ENV_GOES_ON);
        r = take(&t, 1);
    }
    assert_int_equal(r.end, ENV_TRUNCATED);
    t.s.limit = 9;
    for (int i = 1; i <= 9; i++) r = take(&t, 1);
    assert_true(r.end == ENV_TRUNCATED && r.steps == 9);
    t.s.limit = 100;
    for (int i = 1; i <= 9; i++) r = take(&t, 1);
    assert_true(r.end == ENV_TRUNCATED && r.steps == 9);
    // Ruin in the step of the limit is an end.
    t.s.limit = 1;
    t.s.market.ruin = 1;
    assert_int_equal(take(&t, 0).end, ENV_TERMINATED);
    stage_done(&t);
}

// Beginnings

// Three stretches of two instruments; the second instrument's rows follow those of the first.
static void put_stretches(stage *t) {
    const market_stretch all[] = {{2, 300, 0, 0}, {350, 500, 0, 297}, {502, 1000, 1, 446}};
    memcpy(t->stretch, all, sizeof all);
    t->s.market.stretches = 3;
    t->s.market.lags = 3;
    t->s.market.from_first = false;
    t->rules[1].cash = fixed(777);
}

static void episodes_stay_within_their_instrument(void **state) {
    (void)state;
    enum { ROWS = 1000, EPISODES = 20000 };
    stage t;
    stage_init(&t, ROWS);
    put_stretches(&t);
    t.s.limit = 40;
    int count[3] = {0}, began[ROWS] = {0};
    for (int i = 0; i < EPISODES; i++) {
        see(&t);
        market_state *m = state_of(&t);
        int at = m->row < 300 ? 0 : m->row < 500 ? 1 : 2;
        count[at]++;
        began[m->row]++;
        assert_true(m->row >= t.stretch[at].first && m->row + 40 < t.stretch[at].end);
        assert_true(m->books.cash == (at == 2 ? fixed(777) : fixed(10000)));
        // The oldest lag is a row of the same instrument, and the newest is the row itself.
        assert_true(t.seen[0] == (float)(m->row - 2) && t.seen[2] == (float)m->row);
        assert_true(t.seen[0] >= (at == 2 ? 500 : 0));
        head_of(&t)->live = 0; // the next one begins
    }
    for (int k = 0; k < 3; k++) {
        double share = (double)(t.stretch[k].end - t.stretch[k].first - 1) / 943;
        assert_true(fabs((double)count[k] / EPISODES - share) < 0.015);
        assert_true(began[t.stretch[k].first] && began[t.stretch[k].end - 41]);
    }
    // To the end of the stretch, never beyond.
    t.s.limit = 0;
    for (int i = 0; i < 300; i++) {
        env_result r = take(&t, 1);
        int64_t end = state_of(&t)->end;
        while (r.end == ENV_GOES_ON) r = take(&t, 1);
        assert_true(r.end == ENV_TRUNCATED && state_of(&t)->row == end - 1);
    }
    stage_done(&t);
}

static void a_pass_begins_with_the_first_bar(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 1000);
    put_stretches(&t);
    t.s.market.from_first = true;
    for (int i = 0; i < 6; i++) {
        see(&t);
        assert_int_equal(state_of(&t)->row, t.stretch[i % 3].first);
        head_of(&t)->live = 0;
    }
    stage_done(&t);
}

// Known answers

static void change_from(stage *t, int64_t row) {
    for (int64_t i = row; i < t->d.rows; i++) {
        put_bar(t, i, 33, 34);
        t->feature[2 * i] = t->feature[2 * i + 1] = -7;
        for (int k = 0; k < MARKET_COLUMNS; k++) t->calendar[i * MARKET_COLUMNS + k] = 1;
    }
}

// Observations and rewards of bars up to `row`, with everything behind it changed or not.
static void trace(float *seen, double *reward, int64_t row, bool changed, int64_t shift) {
    stage t;
    stage_init(&t, 200);
    put_walk(&t, 9);
    t.s.market.lags = 8;
    t.stretch[0].first = 7;
    if (changed) change_from(&t, row + 1);
    for (int64_t i = 0; shift && i < 2 * (200 - shift); i++) t.feature[i] = t.feature[i + 2 * shift];
    for (int64_t i = 7; i < row; i++) *reward++ = take(&t, side_at((int)i)).reward;
    see(&t);
    assert_int_equal(state_of(&t)->row, row);
    memcpy(seen, t.seen, sizeof t.seen);
    stage_done(&t);
}

static void later_bars_are_not_seen(void **state) {
    (void)state;
    float seen[2][SEEN_MOST];
    double reward[2][200] = {{0}};
    for (int64_t row = 7; row < 190; row += 13) {
        trace(seen[0], reward[0], row, false, 0);
        trace(seen[1], reward[1], row, true, 0);
        assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
        assert_memory_equal(reward[0], reward[1], sizeof reward[0]);
        // Features from one bar ahead are noticed: the newest lag and the feature that is observed once.
        trace(seen[0], reward[0], row, false, 1);
        trace(seen[1], reward[1], row, true, 1);
        assert_memory_equal(seen[0], seen[1], 7 * sizeof *seen[0]);
        assert_true(seen[0][7] != seen[1][7] && seen[0][8] != seen[1][8]);
    }
}

// (feature - the first) * the second, in fp32: of every lag, and of what is observed once.
static void features_are_scaled(void **state) {
    (void)state;
    stage t;
    stage_init(&t, 20);
    t.s.market.lags = 2;
    t.stretch[0].first = 1;
    memcpy(t.scale, (float[]){3.1f, 0.5f, 0.3f, -2.0f}, sizeof t.scale);
    for (int i = 0; i < 5; i++) take(&t, 1);
    see(&t);
    int64_t row = state_of(&t)->row;
    assert_int_equal(row, 6);
    for (int lag = 0; lag < 2; lag++) {
        float should = ((float)(row - lag) - 3.1f) * 0.3f;
        assert_true(t.seen[1 - lag] == should);
    }
    assert_true(t.seen[2] == (float)row * -2.0f);
    stage_done(&t);
}

// A real file

static bool load(stage *t, quotes *q) {
    const char *folder = getenv("TRADEWIND_DATA");
    char path[4200];
    err e = {0};
    snprintf(path, sizeof path, "%s/XAUUSD_M15.csv", folder ? folder : TEST_DIR "/../../shared/data");
    if (access(path, R_OK)) {
        print_message("skipped: no file %s\n", path);
        return false;
    }
    support_ok(quotes_read(q, path, 0, true, &e), &e);
    stage_init(t, q->count);
    for (int64_t i = 0; i < q->count; i++) {
        int32_t *c = t->calendar + i * MARKET_COLUMNS;
        t->bar[i] = (account_bar){q->open[i], q->high[i], q->low[i], q->close[i], q->spread[i]};
        c[MARKET_NIGHTS] = i ? (int32_t)(when_day_of(q->time[i]) - when_day_of(q->time[i - 1])) : 0;
        c[MARKET_ENDS] = i + 1 == q->count || when_day_of(q->time[i]) != when_day_of(q->time[i + 1]);
    }
    account_rules *r = t->rules;
    r->spread = (account_amount){.share = 100000, .price = fixed(0.03)};
    r->slippage = (account_amount){.share = 50000, .price = fixed(0.01)};
    r->swap_long = (account_amount){.share = -700000, .price = fixed(-0.01)};
    r->swap_short = (account_amount){.share = 200000, .price = fixed(-0.02)};
    r->commission_share = 200000;
    r->commission_money = fixed(0.005);
    r->leverage = 5 * ACCOUNT_ONE;
    r->lot_step = fixed(0.01);
    t->s.market.size = 4;
    t->s.market.continuous = true;
    return true;
}

// A second way of book-keeping, for fills at opens and at the ends of days.
typedef struct {
    account_wide purse; // cash, were there no costs
    int64_t units, fills;
    long double costs; // of all fills, in money
} ledger;

static account_wide worth(int64_t units, int64_t price) {
    return account_round((account_wide)units * price, ACCOUNT_ONE);
}

static void book(ledger *l, const account_rules *r, int64_t units, int64_t price, int64_t spread, bool opens) {
    long double side = units > 0 ? 1 : -1, size = fabsl((long double)units) / 1e8L, raw = (long double)price / 1e8L;
    long double fixed_cost = (long double)r->slippage.price, share = (long double)r->slippage.share;
    if (!units) return;
    if (opens) fixed_cost += (long double)(r->spread.price + spread);
    if (opens) share += (long double)r->spread.share;
    long double at = (raw + side * fixed_cost / 1e8L) * (1 + side * share / 1e10L);
    l->costs += side * (at - raw) * size + at * size * (long double)r->commission_share / 1e10L +
                size * (long double)r->commission_money / 1e8L;
    l->purse -= worth(units, price);
    l->units += units;
    l->fills++;
}

// A bar as the ledger has it: `wanted` units are to be had, from the open on.
static void follow_bar(ledger *l, const stage *t, int64_t row, bool orders, int64_t wanted) {
    const account_bar *b = t->bar + row;
    if (orders) book(l, t->rules, -l->units, b->open, 0, false);
    if (orders) book(l, t->rules, wanted, b->open, b->spread, true);
    if (t->s.market.day_close && t->calendar[row * MARKET_COLUMNS + MARKET_ENDS])
        book(l, t->rules, -l->units, b->close, 0, false);
}

static void check_books(const ledger *l, const stage *t, const market_state *m) {
    const account *a = &m->books;
    account_wide costs = (account_wide)a->commission + a->spread + a->slippage;
    assert_int_equal(a->units, l->units);
    assert_true(m->equity == l->purse + worth(l->units, t->bar[m->row].close) - costs + a->swap);
    assert_true(fabsl((long double)costs / 1e8L - l->costs) <= 4e-8L * (long double)l->fills + 1e-12L * l->costs);
}

static void books_balance_over_a_million_steps(void **state) {
    (void)state;
    stage t;
    quotes q;
    ledger l = {0};
    dice d = {.seed = 4};
    int64_t steps = support_sanitized() ? 50000 : 1000000, fills = 0, swaps = 0, ends[3] = {0};
    if (!load(&t, &q)) skip();
    t.s.limit = 700;
    t.s.market.from_first = false;
    t.s.market.ruin = 0.97;
    market_state *m = state_of(&t);
    for (int64_t i = 0; i < steps; i++) {
        float action[2] = {dice_unit(&d), dice_unit(&d)};
        double share;
        env_result r;
        see(&t);
        if (head_of(&t)->steps == 0) {
            l = (ledger){.purse = t.rules[0].cash};
            t.s.market.day_close = i & 1;
        }
        int side = market_side(&t.s.market, action, &share), has = (l.units > 0) - (l.units < 0);
        int64_t wanted = side ? market_units(&t.s.market, t.rules, m, t.bar[m->row].close, side, share) : 0;
        follow_bar(&l, &t, m->row + 1, side != has, wanted);
        env_take_rows(&t.s, &t.d, t.state, action, &r, t.last, 0, 1);
        check_books(&l, &t, m);
        ends[r.end]++;
        if (r.end != ENV_GOES_ON) fills += l.fills, swaps += m->books.swap != 0;
    }
    print_message("%lld fills, %lld episodes with swap, %lld terminated, %lld truncated\n", (long long)fills,
        (long long)swaps, (long long)ends[ENV_TERMINATED], (long long)ends[ENV_TRUNCATED]);
    assert_true(fills > steps / 4 && swaps && ends[ENV_TERMINATED] && ends[ENV_TRUNCATED]);
    stage_done(&t);
    quotes_done(&q);
}

// A pass over a file, and a replay of the same orders as a backtest has it: the same equity at every close.
static void compare(stage *t, const quotes *q, bool day_close) {
    replay p;
    err e = {0};
    dice d = {.seed = 8};
    account_terms terms = {.day_close = day_close};
    t->s.market.day_close = day_close;
    support_ok(replay_init(&p, q, &terms, t->rules, q->count, &e), &e);
    replay_bar(&p, 0, NULL);
    market_state *m = state_of(t);
    for (int64_t i = 1; i < q->count; i++) {
        float action[2] = {dice_unit(&d), dice_unit(&d)};
        double share;
        env_result r;
        see(t);
        int side = market_side(&t->s.market, action, &share), has = (p.books.units > 0) - (p.books.units < 0);
        if (i % 50) action[0] = (float)(side = has);
        account_order o = {0};
        if (side) o.units = market_units(&t->s.market, t->rules, m, q->close[i - 1], side, share);
        replay_bar(&p, i, side == has ? NULL : &o);
        env_take_rows(&t->s, &t->d, t->state, action, &r, t->last, 0, 1);
        assert_int_equal(p.equity[i], m->equity);
        assert_int_equal(r.end, i + 1 < q->count ? ENV_GOES_ON : ENV_TRUNCATED);
    }
    assert_true(p.trades > 50 && !p.books.swap == day_close);
    replay_done(&p);
}

static void a_backtest_has_the_same_books(void **state) {
    (void)state;
    stage t;
    quotes q;
    if (!load(&t, &q)) skip();
    t.s.market.ruin = -100;
    compare(&t, &q, false);
    compare(&t, &q, true);
    stage_done(&t);
    quotes_done(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_bars_by_hand),
        cmocka_unit_test(the_day_ends_flat),
        cmocka_unit_test(a_direction_and_a_size),
        cmocka_unit_test(without_shorts_short_is_flat),
        cmocka_unit_test(differential_sharpe_is_its_definition),
        cmocka_unit_test(shaped_rewards_add_up_to_return_less_drawdown),
        cmocka_unit_test(ruin_terminates),
        cmocka_unit_test(debts_have_a_finite_reward),
        cmocka_unit_test(overflow_terminates),
        cmocka_unit_test(the_limit_and_the_last_bar_truncate),
        cmocka_unit_test(episodes_stay_within_their_instrument),
        cmocka_unit_test(a_pass_begins_with_the_first_bar),
        cmocka_unit_test(later_bars_are_not_seen),
        cmocka_unit_test(features_are_scaled),
        cmocka_unit_test(books_balance_over_a_million_steps),
        cmocka_unit_test(a_backtest_has_the_same_books),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
