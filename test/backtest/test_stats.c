// The list of statistics against definitions written out in long double on random curves with weekends and trades; what
// has no value says why; text and JSON have every row.
#include "backtest/daily.h"
#include "backtest/stats.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BARS = 3000, TRADES = 60, DAY = 86400, HOUR = 3600 };

typedef struct {
    int64_t time[BARS];
    double equity[BARS], close[BARS], price[BARS];
    stats_trade trade[TRADES];
    stats_input in;
} curve;

// Four-hour bars without weekends from a Monday on; trades of 3 to 27 bars, some of which share a bar with the next.
static curve *curve_new(uint64_t seed) {
    curve *c = calloc(1, sizeof *c);
    assert_non_null(c);
    dice d = {.seed = seed};
    int64_t now = (int64_t)DAY * 4;
    double equity = 10000 + 5 * dice_unit(&d), close = 100;
    for (int i = 0; i < BARS; i++, now += 4 * HOUR) {
        if (now / DAY % 7 == 2) now += 2 * DAY;
        equity *= 1 + 0.004 * (double)dice_unit(&d) + 0.0001;
        close *= 1 + 0.01 * (double)dice_unit(&d);
        c->time[i] = now;
        c->equity[i] = equity;
        c->close[i] = close;
        c->price[i] = close * 0.999;
    }
    for (int i = 0, at = 1; i < TRADES; i++) {
        stats_trade *t = &c->trade[i];
        *t = (stats_trade){
            .entry = at, .exit = at + 3 + (int64_t)dice_below(&d, 25), .side = dice_unit(&d) < 0 ? -1 : 1};
        t->value = 1000 + 500 * (double)dice_unit(&d);
        t->traded = 2.01 * t->value;
        t->cost = 0.0002 * t->traded;
        t->result = 20 * (double)dice_unit(&d);
        at = (int)t->exit + (int)dice_below(&d, 20);
    }
    c->in = (stats_input){.time = c->time,
        .equity = c->equity,
        .close = c->close,
        .price = c->price,
        .bars = BARS,
        .cash = 10000,
        .trade = c->trade,
        .trades = TRADES,
        .trials = 1,
        .seed = 3};
    return c;
}

static stats stats_of(const stats_input *in) {
    stats s;
    err e;
    support_ok(stats_make(in, &s, &e), &e);
    return s;
}

static void is(const stats *s, stat_name k, long double must) {
    const stat_value *v = &s->of[k];
    if (v->why) fail_msg("%s: not defined: %s", stats_row(k)->key, v->why);
    if (!(fabsl(v->value - must) <= 1e-9L * (fabsl(must) > 1e-3L ? fabsl(must) : 1e-3L)))
        fail_msg("%s: %.15g, not %.15Lg", stats_row(k)->key, v->value, must);
}

static void lacks(const stats *s, stat_name k, const char *why) {
    char text[200];
    if (!s->of[k].why) fail_msg("%s is %g", stats_row(k)->key, s->of[k].value);
    assert_string_equal(s->of[k].why, why);
    assert_true(isnan(s->of[k].value));
    assert_null(strstr(stats_figure(s, k, text, sizeof text), "nan"));
    assert_non_null(strstr(text, why));
    assert_string_equal(stats_range(s, k, text, sizeof text), "");
}

// Last values of days, found by looking at every later bar.
static int plain_days(const int64_t *time, const double *value, int64_t bars, long double *last) {
    int n = 0;
    for (int64_t i = 0; i < bars; i++) {
        bool later = false;
        for (int64_t k = i + 1; k < bars && k < i + 30; k++) later |= time[k] / DAY == time[i] / DAY;
        if (!later) last[n++] = value[i];
    }
    return n;
}

typedef struct {
    long double mean, deviation, down, skew, kurtosis;
    int n;
} plain;

static plain plain_returns(const long double *last, int days) {
    plain p = {.n = days - 1};
    long double m2 = 0, m3 = 0, m4 = 0;
    for (int i = 0; i < p.n; i++) p.mean += (last[i + 1] / last[i] - 1) / p.n;
    for (int i = 0; i < p.n; i++) {
        long double r = last[i + 1] / last[i] - 1, x = r - p.mean;
        m2 += x * x / p.n;
        m3 += x * x * x / p.n;
        m4 += x * x * x * x / p.n;
        p.down += r < 0 ? r * r / p.n : 0;
    }
    p.deviation = sqrtl(m2 * p.n / (p.n - 1));
    p.down = sqrtl(p.down);
    p.skew = m3 / powl(m2, 1.5L);
    p.kurtosis = m4 / (m2 * m2);
    return p;
}

static long double plain_drawdown(const double *value, int64_t bars, long double first) {
    long double worst = 0;
    for (int64_t i = 0; i < bars; i++) {
        long double peak = first;
        for (int64_t k = 0; k <= i; k++) peak = value[k] > peak ? value[k] : peak;
        worst = 1 - value[i] / peak > worst ? 1 - value[i] / peak : worst;
    }
    return worst;
}

static void daily_figures_agree_with_long_double(void **state) {
    (void)state;
    static long double last[BARS];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        curve *c = curve_new(seed);
        c->in.days_a_year = 252;
        stats s = stats_of(&c->in);
        int days = plain_days(c->time, c->equity, BARS, last);
        plain p = plain_returns(last, days);
        long double root = sqrtl(252), years = (c->time[BARS - 1] - c->time[0]) / (365.2425L * DAY),
                    times = c->equity[BARS - 1] / 10000.0L;
        is(&s, STAT_DAYS, days);
        is(&s, STAT_DAYS_A_YEAR, 252);
        is(&s, STAT_RETURN, times - 1);
        is(&s, STAT_CAGR, powl(times, 1 / years) - 1);
        is(&s, STAT_VOLATILITY, p.deviation * root);
        is(&s, STAT_SHARPE, p.mean / p.deviation * root);
        is(&s, STAT_SORTINO, p.mean / p.down * root);
        is(&s, STAT_SKEW, p.skew);
        is(&s, STAT_KURTOSIS, p.kurtosis);
        long double drawdown = plain_drawdown(c->equity, BARS, 10000), ratio = p.mean / p.deviation;
        is(&s, STAT_DRAWDOWN, drawdown);
        is(&s, STAT_CALMAR, (powl(times, 1 / years) - 1) / drawdown);
        long double spread = 1 - p.skew * ratio + (p.kurtosis - 1) / 4 * ratio * ratio;
        is(&s, STAT_PSR, erfcl(-ratio * sqrtl((p.n - 1) / spread) / sqrtl(2)) / 2);
        is(&s, STAT_DSR, s.of[STAT_PSR].value); // one trial
        is(&s, STAT_TRACK_DAYS, 1 + spread * powl(1.6448536269514722L / ratio, 2));
        int n = plain_days(c->time, c->close, BARS, last);
        plain h = plain_returns(last, n);
        is(&s, STAT_HOLD_RETURN, (long double)c->close[BARS - 1] / c->close[0] - 1);
        is(&s, STAT_HOLD_SHARPE, h.mean / h.deviation * root);
        is(&s, STAT_HOLD_DRAWDOWN, plain_drawdown(c->close, BARS, c->close[0]));
        for (int i = 0; i < BARS; i++) last[i] = c->equity[i];
        plain b = plain_returns(last, BARS);
        is(&s, STAT_SHARPE_BAR, b.mean / b.deviation * sqrtl(252.0L * BARS / days));
        free(c);
    }
}

static void trials_deflate(void **state) {
    (void)state;
    curve *c = curve_new(4);
    double before = stats_of(&c->in).of[STAT_DSR].value;
    c->in.trials = 20;
    stats s = stats_of(&c->in);
    assert_true(s.of[STAT_DSR].value < before && s.of[STAT_TRIALS].value == 20);
    lacks(&s, STAT_PBO, "returns of the trials were not kept");
    // Without a variance the trials differ as ratios of so many returns without skill do.
    c->in.trial_variance = s.of[STAT_DAYS_A_YEAR].value / (s.of[STAT_DAYS].value - 2);
    is(&s, STAT_DSR, stats_of(&c->in).of[STAT_DSR].value);
    free(c);
}

static void trades_are_counted(void **state) {
    (void)state;
    curve *c = curve_new(5);
    c->trade[0].exit = c->trade[1].entry; // two trades in one bar count it once
    stats s = stats_of(&c->in);
    long double win = 0, loss = 0, cost = 0, traded = 0, equity = 0;
    int wins = 0, held = 0;
    for (int i = 0; i < TRADES; i++) {
        const stats_trade *t = &c->trade[i];
        wins += t->result > 0;
        *(t->result > 0 ? &win : &loss) += fabs(t->result);
        cost += t->cost;
        traded += t->traded;
    }
    for (int i = 0; i < BARS; i++) {
        bool in = false;
        for (int k = 0; k < TRADES; k++) in |= c->trade[k].entry <= i && i <= c->trade[k].exit;
        held += in;
        equity += (long double)c->equity[i] / BARS;
    }
    long double years = (c->time[BARS - 1] - c->time[0]) / (365.2425L * DAY);
    is(&s, STAT_TRADES, TRADES);
    is(&s, STAT_EXPOSURE, (long double)held / BARS);
    is(&s, STAT_WIN_RATE, (long double)wins / TRADES);
    is(&s, STAT_PROFIT_FACTOR, win / loss);
    is(&s, STAT_EXPECTANCY, (win - loss) / TRADES);
    is(&s, STAT_COSTS, cost);
    is(&s, STAT_TURNOVER, traded / equity / years);
    is(&s, STAT_BREAKEVEN_COST, (win - loss + cost) / traded);
    assert_true(s.of[STAT_RANDOM_LOW].value < s.of[STAT_RANDOM_RETURN].value);
    assert_true(s.of[STAT_RANDOM_HIGH].value > s.of[STAT_RANDOM_RETURN].value);
    free(c);
}

// A drawdown of 10 % for three bars, one of 20 % for three, and a small one behind them.
static void drawdowns_have_lengths(void **state) {
    (void)state;
    double equity[] = {100, 110, 99, 105, 111, 88.8, 90, 112, 113, 110};
    int64_t time[10];
    for (int i = 0; i < 10; i++) time[i] = i * (int64_t)DAY;
    time[3] += DAY / 2;
    stats_input in = {.time = time, .equity = equity, .bars = 10, .cash = 100, .trials = 1};
    stats s = stats_of(&in);
    is(&s, STAT_DRAWDOWN, 0.2L);
    is(&s, STAT_DRAWDOWN_DAYS, 3);
    is(&s, STAT_UNDERWATER_DAYS, 3);
    in.bars = 7; // not made up for: until the end
    s = stats_of(&in);
    is(&s, STAT_DRAWDOWN_DAYS, 2);
    is(&s, STAT_UNDERWATER_DAYS, 3);
    in.cash = 125; // the cash is a peak too
    s = stats_of(&in);
    is(&s, STAT_DRAWDOWN, 1 - 88.8L / 125);
    is(&s, STAT_DRAWDOWN_DAYS, 6);
}

static void growth_without_loss(void **state) {
    (void)state;
    double equity[] = {100, 110, 110, 132};
    int64_t time[] = {0, DAY, 2 * DAY, 3 * DAY};
    stats_input in = {.time = time, .equity = equity, .bars = 4, .cash = 100, .trials = 1};
    stats s = stats_of(&in);
    is(&s, STAT_DRAWDOWN, 0);
    is(&s, STAT_DRAWDOWN_DAYS, 0);
    is(&s, STAT_UNDERWATER_DAYS, 0);
    lacks(&s, STAT_SORTINO, "no day with a loss");
    lacks(&s, STAT_CALMAR, "no drawdown");
    assert_null(s.of[STAT_SHARPE].why);
}

static void nothing_is_printed_as_a_number(void **state) {
    (void)state;
    double flat[400];
    int64_t time[400];
    for (int i = 0; i < 400; i++) {
        flat[i] = 1000;
        time[i] = i * (int64_t)DAY;
    }
    stats_input in = {.time = time, .equity = flat, .bars = 400, .cash = 1000, .trials = 1};
    stats s = stats_of(&in); // no trades, no predictions, no prices
    is(&s, STAT_RETURN, 0);
    is(&s, STAT_CAGR, 0);
    is(&s, STAT_VOLATILITY, 0);
    is(&s, STAT_TURNOVER, 0);
    is(&s, STAT_EXPOSURE, 0);
    lacks(&s, STAT_SHARPE, "daily returns do not vary");
    lacks(&s, STAT_PSR, "daily returns do not vary");
    lacks(&s, STAT_TRACK_DAYS, "daily returns do not vary");
    lacks(&s, STAT_SHARPE_BAR, "returns of bars do not vary");
    lacks(&s, STAT_WIN_RATE, "no trades");
    lacks(&s, STAT_PROFIT_FACTOR, "no trades");
    lacks(&s, STAT_EXPECTANCY, "no trades");
    lacks(&s, STAT_BREAKEVEN_COST, "no trades");
    lacks(&s, STAT_HOLD_RETURN, "no prices");
    lacks(&s, STAT_RANDOM_RETURN, "no prices");
    lacks(&s, STAT_IC, "orders were given without predictions");
    lacks(&s, STAT_PBO, "there is one trial alone");
    in.price = in.close = flat;
    s = stats_of(&in);
    lacks(&s, STAT_RANDOM_BETTER, "no trades");
    lacks(&s, STAT_HOLD_SHARPE, "daily returns do not vary");
    in.bars = 1;
    s = stats_of(&in);
    lacks(&s, STAT_CAGR, "less than a day of bars");
    lacks(&s, STAT_VOLATILITY, "needs two daily returns");
    lacks(&s, STAT_SHARPE_BAR, "needs two returns");
    lacks(&s, STAT_TURNOVER, "the bars have one time");
    for (int k = 0; k < STATS_COUNT; k++) assert_true(isfinite(s.of[k].value) == !s.of[k].why);
}

static void ruin_has_no_ratio(void **state) {
    (void)state;
    double equity[] = {100, 90, -5, -5, -5}, price[] = {1, 2, 3, 0, 1};
    int64_t time[] = {0, DAY, 2 * DAY, 3 * DAY, 4 * DAY};
    stats_trade trade = {.entry = 1, .exit = 2, .side = 1, .value = 10, .traded = 20, .result = -105};
    stats_input in = {
        .time = time, .equity = equity, .bars = 5, .cash = 100, .trials = 1, .trade = &trade, .trades = 1};
    in.close = in.price = price;
    stats s = stats_of(&in);
    is(&s, STAT_RETURN, -1.05L);
    is(&s, STAT_DRAWDOWN, 1.05L);
    lacks(&s, STAT_CAGR, "equity falls to 0 or below");
    lacks(&s, STAT_CALMAR, "equity falls to 0 or below");
    lacks(&s, STAT_SHARPE, "equity falls to 0 or below");
    lacks(&s, STAT_SORTINO, "equity falls to 0 or below");
    lacks(&s, STAT_DSR, "equity falls to 0 or below");
    lacks(&s, STAT_SHARPE_BAR, "equity falls to 0 or below");
    lacks(&s, STAT_HOLD_RETURN, "a price is 0 or below");
    lacks(&s, STAT_RANDOM_LOW, "a price is 0 or below");
    is(&s, STAT_PROFIT_FACTOR, 0);
}

// Weekdays of the calendar decide below a year, days that have bars above it.
static void days_of_a_year(void **state) {
    (void)state;
    static int64_t time[2000];
    int n = 0;
    for (int64_t day = 4; n < 2000; day++) // 1970-01-05 is a Monday
        if (day % 7 != 2 && day % 7 != 3) time[n++] = day * DAY + 3 * HOUR;
    for (int bars = 5; bars < 200; bars++) assert_true(fabs(daily_a_year(time, bars) - 5 * 365.2425 / 7) < 1e-9);
    assert_true(fabs(daily_a_year(time, 2000) - 2000 * 365.2425 / 2798) < 1e-9);
    assert_true(fabs(daily_a_year(time, 1) - 365.2425 / 7) < 1e-9);
    time[0] = -1; // the day before 1970, and the one of it
    time[1] = 0;
    assert_true(fabs(daily_a_year(time, 2) - 2 * 365.2425 / 7) < 1e-9);
    err e;
    daily d;
    support_ok(daily_make(time, (double[]){2, 3}, 2, &d, &e), &e);
    assert_true(d.days == 2 && d.back[0] == 0.5);
    daily_done(&d);
}

// The interval of the mean over deviation is that of the ratio's error, 1 / sqrt(years), for independent returns.
static void intervals_are_as_wide_as_theory_says(void **state) {
    (void)state;
    curve *c = curve_new(6);
    stats s = stats_of(&c->in);
    const stat_value *sharpe = &s.of[STAT_SHARPE];
    double years = s.of[STAT_DAYS].value / s.of[STAT_DAYS_A_YEAR].value, wide = 2 * 1.96 / sqrt(years);
    assert_true(fabs((sharpe->range.high - sharpe->range.low) / wide - 1) < 0.25);
    for (stat_name k = STAT_RETURN; k <= STAT_SORTINO; k++)
        assert_true(s.of[k].range.low < s.of[k].value && s.of[k].value < s.of[k].range.high);
    assert_true(s.block >= 8); // the cube root of 500 days
    c->in.brief = true;
    s = stats_of(&c->in);
    assert_true(isnan(s.of[STAT_SHARPE].range.low) && s.block == 0);
    lacks(&s, STAT_RANDOM_RETURN, "not asked for");
    free(c);
}

static void predictions_have_correlations(void **state) {
    (void)state;
    double prediction[] = {1, 2, 3, 4, 10}, outcome[] = {2, 1, 3, 5, 4};
    curve *c = curve_new(7);
    c->in.prediction = prediction;
    c->in.outcome = outcome;
    c->in.predictions = 5;
    overfit o = {.probability = 0.25};
    c->in.overfit = &o;
    stats s = stats_of(&c->in);
    is(&s, STAT_IC, 13 / sqrtl(50 * 10.0L));
    is(&s, STAT_RANK_IC, 0.8L);
    is(&s, STAT_PBO, 0.25L);
    free(c);
}

static void text_and_json_have_every_row(void **state) {
    (void)state;
    curve *c = curve_new(8);
    stats s = stats_of(&c->in);
    json_t *j = stats_json(&s);
    char text[200];
    for (int k = 0; k < STATS_COUNT; k++) {
        const stat_row *r = stats_row((stat_name)k);
        json_t *v = json_object_get(j, r->key);
        assert_non_null(v);
        assert_true(strlen(r->label) > 0 && strlen(r->definition) > 10);
        assert_true(s.of[k].why ? json_is_null(v) : json_number_value(v) == s.of[k].value);
        for (int i = 0; i < k; i++) assert_string_not_equal(stats_row((stat_name)i)->key, r->key);
        assert_true(strlen(stats_figure(&s, (stat_name)k, text, sizeof text)) > 0);
    }
    assert_true(json_is_integer(json_object_get(j, "trades")));
    assert_int_equal(json_array_size(json_object_get(j, "sharpe_range")), 2);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(j, "not_defined"), "pbo")), "there is one trial alone");
    s.of[STAT_WIN_RATE].value = 0.4;
    assert_string_equal(stats_figure(&s, STAT_WIN_RATE, text, sizeof text), "40.00 %");
    s.of[STAT_BREAKEVEN_COST].value = 0.000035;
    assert_string_equal(stats_figure(&s, STAT_BREAKEVEN_COST, text, sizeof text), "0.0035 %");
    s.of[STAT_SHARPE].range = (interval){-0.5, 1.25};
    assert_string_equal(stats_range(&s, STAT_SHARPE, text, sizeof text), "-0.5 to 1.25");
    json_decref(j);
    free(c);
}

static void the_document_has_every_row(void **state) {
    (void)state;
    static char text[100000];
    FILE *f = fopen(TEST_DIR "/../doc/statistics.md", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (int k = 0; k < STATS_COUNT; k++) {
        char line[400];
        const stat_row *r = stats_row((stat_name)k);
        snprintf(line, sizeof line, "\n| `%s` | %s | %s |\n", r->key, r->label, r->definition);
        if (!strstr(text, line)) fail_msg("doc/statistics.md lacks%s", line);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daily_figures_agree_with_long_double),
        cmocka_unit_test(trials_deflate),
        cmocka_unit_test(trades_are_counted),
        cmocka_unit_test(drawdowns_have_lengths),
        cmocka_unit_test(growth_without_loss),
        cmocka_unit_test(nothing_is_printed_as_a_number),
        cmocka_unit_test(ruin_has_no_ratio),
        cmocka_unit_test(days_of_a_year),
        cmocka_unit_test(intervals_are_as_wide_as_theory_says),
        cmocka_unit_test(predictions_have_correlations),
        cmocka_unit_test(text_and_json_have_every_row),
        cmocka_unit_test(the_document_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
