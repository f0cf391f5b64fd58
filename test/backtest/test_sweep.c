// Sweeps: the settings of a grid, each setting against a backtest of its own, ranks, and the doubt that they share.
#include "backtest/backtest.h"
#include "backtest/judge.h"
#include "backtest/sharpe.h"
#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void read_grid(grid *g, const char *a, const char *b) {
    err e = {0};
    support_ok(grid_read(g, (const char *const[]){a, b}, b ? 2 : 1, &e), &e);
}

static void a_grid_has_every_combination(void **state) {
    (void)state;
    grid g;
    read_grid(&g, "account.spread=0,2pt,file", "account.leverage=1:2:0.1");
    assert_int_equal(g.settings, 33);
    assert_string_equal(g.axis[1].key, "account.leverage");
    assert_string_equal(grid_value(&g, 0, 0), "0");
    assert_string_equal(grid_value(&g, 10, 1), "2"); // a range has its end
    assert_string_equal(grid_value(&g, 14, 0), "2pt");
    assert_string_equal(grid_value(&g, 14, 1), "1.3");
    assert_string_equal(grid_value(&g, 32, 0), "file");
    grid_done(&g);
    read_grid(&g, "account.cash=-1:1:0.5", NULL);
    assert_int_equal(g.settings, 5);
    assert_string_equal(grid_value(&g, 2, 0), "0");
    grid_done(&g);
}

static void refuses(const char *a, const char *b, const char *text) {
    grid g;
    err e = {0};
    assert_false(grid_read(&g, (const char *const[]){a, b}, b ? 2 : 1, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, text)) fail_msg("%s", e.text);
    grid_done(&g);
}

static void odd_grids_are_refused(void **state) {
    (void)state;
    refuses("account.spread", NULL, "not a key with its values; write KEY=A,B,C or KEY=FROM:TO:STEP");
    refuses("=1,2", NULL, "not a key with its values");
    refuses("account.spread=1,,2", NULL, "a value is empty");
    refuses("account.spread=1,2,1", NULL, "1 comes twice");
    refuses("account.spread=1:2", NULL, "no such range");
    refuses("account.spread=2:1:0.1", NULL, "no such range");
    refuses("account.spread=1:2:0", NULL, "no such range");
    refuses("account.spread=1:inf:1", NULL, "no such range");
    refuses("account.spread=1:2:0.00001", NULL, "more than 10000 values");
    refuses("account.spread=1:200:1", "account.cash=1:200:1", "more than 10000 settings");
    refuses("account.spread=1", NULL, "one setting is nothing to compare");
    refuses("account.spread=1,2", "account.spread=3,4", "account.spread comes twice");
}

// Files of bars and of signals with stops, every few bars.
static void put_files(void) {
    enum { BARS = 3000 };
    bar *all = walk_bars(BARS, 3600, 7);
    FILE *f = fopen("bars.csv", "w"), *s = fopen("signals.csv", "w");
    assert_true(f && s);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    fputs("time,position,stop,target\n", s);
    for (int i = 0; i < BARS; i++) {
        const bar *b = &all[i];
        fprintf(f, "%lld,%.5f,%.5f,%.5f,%.5f,1,%d\n", (long long)b->time, b->open, b->high, b->low, b->close, i % 5);
        int side = i / 17 % 3 - 1;
        if (i % 17 == 0)
            fprintf(s, "%lld,%d,%.5f,\n", (long long)b->time, 10 * side, b->close * (side < 0 ? 1.02 : 0.98));
    }
    fclose(f);
    fclose(s);
    free(all);
}

static const char *const base[] = {"account.commission=0.00002", "account.leverage=2"};

// The same as one setting alone, and its daily returns.
static void play_alone(const grid *g, int64_t k, backtest *b, daily *d) {
    char first[128], second[128];
    err e = {0};
    snprintf(first, sizeof first, "%s=%s", g->axis[0].key, grid_value(g, k, 0));
    snprintf(second, sizeof second, "%s=%s", g->axis[1].key, grid_value(g, k, 1));
    const char *words[] = {base[0], base[1], first, second};
    backtest_options o = {"signals.csv", "bars.csv", words, 4};
    support_ok(backtest_run(b, &o, &e) && judge_daily(&b->replay, d, &e), &e);
}

static bool same_stat(const stats *a, const stats *b, stat_name k) {
    return a->of[k].value == b->of[k].value || (isnan(a->of[k].value) && isnan(b->of[k].value));
}

static void settings_are_backtests(void **state) {
    (void)state;
    static const stat_name compared[] = {
        STAT_EQUITY_FINAL, STAT_SHARPE, STAT_DRAWDOWN, STAT_TRADES, STAT_COSTS, STAT_WIN_RATE, STAT_PSR, STAT_SORTINO};
    put_files();
    grid g;
    err e = {0};
    sweep s;
    read_grid(&g, "account.spread=0,0.0002,3pt,file", "account.short=true,false");
    backtest_options o = {"signals.csv", "bars.csv", base, 2};
    pool *p = pool_new(3, &e);
    support_ok(p != NULL, &e);
    support_ok(backtest_sweep(&s, &o, &g, p, &e), &e);
    assert_true(s.count == 8 && s.traded == 8 && s.trials == 8 && s.bars == 3000);
    double *back = NULL, sum = 0, square = 0;
    int64_t days = 0;
    for (int64_t k = 0; k < s.count; k++) {
        backtest b;
        daily d;
        play_alone(&g, k, &b, &d);
        for (size_t i = 0; i < sizeof compared / sizeof *compared; i++)
            assert_true(same_stat(&s.row[k].stats, &b.stats, compared[i]));
        days = d.backs;
        if (!back) back = calloc((size_t)(days * s.count), sizeof *back);
        assert_non_null(back);
        for (int64_t i = 0; i < days; i++) back[i * s.count + k] = d.back[i];
        double x = b.stats.of[STAT_SHARPE].value;
        sum += x;
        square += x * x;
        daily_done(&d);
        backtest_done(&b);
    }
    overfit must;
    support_ok(overfit_make(back, days, s.count, OVERFIT_BLOCKS, &must, &e), &e);
    assert_true(must.probability == s.overfit.probability && must.logit == s.overfit.logit && must.choices == 12870);
    assert_true(must.probability > 0 && must.probability < 1);
    double variance = (square - sum * sum / 8) / 7;
    assert_true(fabs(s.variance - variance) < 1e-9);
    for (int64_t k = 0; k < s.count; k++) {
        const stat_value *of = s.row[k].stats.of;
        double a_year = of[STAT_DAYS_A_YEAR].value;
        sharpe_sample is = {
            of[STAT_SHARPE].value / sqrt(a_year), of[STAT_SKEW].value, of[STAT_KURTOSIS].value, (double)days};
        assert_true(fabs(of[STAT_DSR].value - sharpe_probability(&is, sharpe_luck(8, variance / a_year))) < 1e-9);
        assert_true(of[STAT_PBO].value == must.probability);
        if (k)
            assert_true(
                s.row[s.order[k - 1]].stats.of[STAT_SHARPE].value >= s.row[s.order[k]].stats.of[STAT_SHARPE].value);
    }
    free(back);
    sweep_done(&s);
    pool_free(p);
    grid_done(&g);
}

// Settings that cannot be traded are told; threads change nothing.
static void bad_settings_leave_the_others(void **state) {
    (void)state;
    put_files();
    grid g;
    err e = {0};
    sweep s, again;
    read_grid(&g, "account.cash=0.5,100000,200000", "account.commission=0,0.0001");
    backtest_options o = {"signals.csv", "bars.csv", (const char *const[]){"report.trials=50"}, 1};
    pool *p = pool_new(2, &e);
    support_ok(p && backtest_sweep(&s, &o, &g, p, &e) && backtest_sweep(&again, &o, &g, NULL, &e), &e);
    assert_true(s.traded == 4 && s.trials == 50 && s.trials_given);
    assert_non_null(strstr(s.row[0].why, "no order could be filled"));
    assert_true(s.order[4] == 0 && s.order[5] == 1);
    assert_memory_equal(s.order, again.order, (size_t)s.count * sizeof *s.order);
    for (int64_t k = 2; k < 6; k++) assert_true(same_stat(&s.row[k].stats, &again.row[k].stats, STAT_EQUITY_FINAL));
    sweep_done(&s);
    sweep_done(&again);
    grid_done(&g);
    read_grid(&g, "account.cash=0.5,0.6", NULL);
    assert_false(backtest_sweep(&s, &o, &g, p, &e));
    assert_non_null(strstr(e.text, "no setting could be traded; the first: account: no order"));
    grid_done(&g);
    pool_free(p);
}

static void other_keys_are_refused(void **state) {
    (void)state;
    static const char *const all[][2] = {{"account.point=0.1,0.2", "account.point: has one value for all settings"},
        {"report.trials=1,2", "report.trials: has one value for all settings"},
        {"signal.hold=1,2", "signal.hold: has one value for all settings"},
        {"account.cahs=1,2", "account.cahs=1: account.cahs: unknown key; did you mean account.cash"},
        {"account.leverage=1,x", "account.leverage=x"}};
    put_files();
    backtest_options o = {"signals.csv", "bars.csv", NULL, 0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        grid g;
        sweep s;
        err e = {0};
        read_grid(&g, all[i][0], NULL);
        assert_false(backtest_sweep(&s, &o, &g, NULL, &e));
        assert_int_equal(e.kind, ERR_INPUT);
        if (!strstr(e.text, all[i][1])) fail_msg("%s", e.text);
        grid_done(&g);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_grid_has_every_combination),
        TEST(odd_grids_are_refused),
        TEST(settings_are_backtests),
        TEST(bad_settings_leave_the_others),
        TEST(other_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
