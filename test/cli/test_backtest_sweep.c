// tradewind backtest --sweep from outside: the table, JSON, every setting against a backtest of its own, parts,
// warnings, and what is refused.
#include "backtest/overfit.h"
#include "cli/program.h"
#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 2400, SPAN = 14400 };

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("a.csv", N, SPAN, 4);
    return 0;
}

static void train_in(const char *dir, const char *widths) {
    char text[512];
    snprintf(text, sizeof text,
        "data: {bars: {fast: a.csv}, vector: false, windows: {fast: 8}, label: {kind: barrier, up: 1.5, down: 1, "
        "limit: 6}, features: {fast: [return, body]}}\n"
        "model: {kind: mlp, widths: '%s'}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: runs/%s}\n",
        widths, dir);
    put_text("run.yaml", text);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
}

static void train(void) {
    train_in("one", "8");
}

static double value_of(const json_t *from, const char *key) {
    const json_t *v = json_object_get(from, key);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

static const char *set_of(const json_t *row, const char *key) {
    return json_string_value(json_object_get(json_object_get(row, "setting"), key));
}

// Each row of a sweep's JSON against a backtest with that setting.
static void compare(json_t *all, const char *part, const char *one, const char *other) {
    json_t *row;
    size_t i;
    double above = INFINITY;
    json_array_foreach(json_object_get(all, "settings"), i, row) {
        char first[96], second[96];
        snprintf(first, sizeof first, "%s=%s", one, set_of(row, one));
        snprintf(second, sizeof second, "%s=%s", other, set_of(row, other));
        assert_int_equal(RUN("backtest", "runs/one", "--part", part, "--json", first, second), 0);
        static const char *const keys[] = {"equity_final", "trades", "sharpe", "drawdown", "costs", "psr"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) assert_true(value_of(row, keys[k]) == number(keys[k]));
        assert_true(value_of(row, "sharpe") <= above);
        above = value_of(row, "sharpe");
        json_t *alone = last_line();
        const json_t *fitted = json_object_get(row, "threshold");
        if (fitted) assert_true(json_number_value(fitted) == value_of(json_object_get(alone, "signal"), "threshold"));
        json_decref(alone);
    }
}

static void settings_of_a_run(void **state) {
    (void)state;
    train();
    assert_int_equal(RUN("backtest", "runs/one", "--json", "--sweep", "signal.threshold=0.34,0.36,0.38", "--sweep",
                         "signal.hold=3,6"),
        0);
    json_t *all = last_line();
    assert_int_equal(json_array_size(json_object_get(all, "settings")), 6);
    assert_true(value_of(all, "trials") == 6 && value_of(all, "pbo_choices") == 12870);
    assert_true(value_of(all, "pbo") >= 0 && value_of(all, "pbo") <= 1 && value_of(all, "trial_variance") > 0);
    compare(all, "validation", "signal.threshold", "signal.hold");
    json_decref(all);
    assert_int_equal(access("runs/one/backtest.json", F_OK), -1); // a sweep keeps nothing
    assert_int_equal(RUN("backtest", "runs/one", "--json", "--part", "test", "--sweep", "signal.hold=4,6", "--sweep",
                         "account.spread=0,0.0002"),
        0);
    all = last_line();
    compare(all, "test", "signal.hold", "account.spread"); // with a threshold fitted on validation in each
    json_decref(all);
}

static void the_table_warns(void **state) {
    (void)state;
    train();
    assert_int_equal(RUN("backtest", "runs/one", "--sweep", "signal.hold=3:6:1"), 0);
    matches("out", "\nanswers +[0-9,]+ of runs/one, part validation\n");
    matches("out", "\nnext +try the chosen setting once on the test part: `tradewind backtest runs/one ");
    matches("out", "\ntrials +4, the settings");
    matches("out", "\noverfit +[0-9.]+ %: probability of backtest overfitting, the share of 12,870 choices ");
    matches("out", "\nsignal\\.hold +threshold +Sharpe +return +drawdown +trades +win rate +costs +deflated\n");
    matches("out", "\n[3-6] +0\\.[0-9]+ +-?[0-9.]+ +");
    assert_int_equal(
        RUN("backtest", "runs/one", "--part", "test", "--sweep", "signal.hold=3,4", "report.trials=70"), 0);
    matches("out", "\nwarning +a setting that is chosen by this table is fitted to the test part");
    matches("out", "\ntrials +70, as report\\.trials says\n");
    assert_int_equal(RUN("backtest", "runs/one", "-q", "--sweep", "signal.hold=3,4"), 0);
    matches("out", "^\nsignal\\.hold ");
}

// Daily returns of the backtest that a run keeps, as column `k` of `trials`; how many.
static int64_t take_returns(const char *path, double *back, int64_t k, int64_t trials) {
    json_t *all = json_load_file(path, 0, NULL), *daily = json_object_get(all, "daily");
    const json_t *equity = json_object_get(daily, "equity");
    int64_t days = (int64_t)json_array_size(equity) - 1;
    assert_true(days >= 32 && days < 400);
    assert_int_equal(json_array_size(json_object_get(daily, "day")), days + 1);
    for (int64_t i = 0; i < days; i++)
        back[i * trials + k] = json_number_value(json_array_get(equity, (size_t)i + 1)) /
                                   json_number_value(json_array_get(equity, (size_t)i)) -
                               1;
    json_decref(all);
    return days;
}

// Overfitting among runs beside each other, of the backtests that they keep.
static void runs_are_compared(void **state) {
    (void)state;
    static double back[2 * 400];
    overfit must;
    err e = {0};
    train_in("one", "8");
    train_in("two", "4");
    assert_int_equal(RUN("backtest", "runs/one", "--json"), 0);
    json_t *all = last_line();
    assert_true(json_is_null(json_object_get(all, "pbo")) && value_of(all, "trials") == 2);
    json_decref(all);
    assert_int_equal(RUN("backtest", "runs/two"), 0);
    matches("out", "\noverfit +measured among 2 of them, whose kept backtests are of the same days\n");
    assert_int_equal(RUN("backtest", "runs/two", "--json"), 0);
    double pbo = number("pbo");
    // The run's own backtest comes first.
    int64_t days = take_returns("runs/two/backtest.json", back, 0, 2);
    assert_int_equal(take_returns("runs/one/backtest.json", back, 1, 2), days);
    support_ok(overfit_make(back, days, 2, OVERFIT_BLOCKS, &must, &e), &e);
    assert_true(fabs(pbo - must.probability) < 1e-3 && pbo > 0);
    all = json_load_file("runs/one/backtest.json", 0, NULL); // as if of other days
    json_array_set_new(json_object_get(json_object_get(all, "daily"), "day"), 0, json_integer(1));
    json_object_del(all, "sum");
    assert_int_equal(json_dump_file(all, "runs/one/backtest.json", 0), 0);
    json_decref(all);
    assert_int_equal(RUN("backtest", "runs/two", "--json"), 0);
    all = last_line();
    assert_true(json_is_null(json_object_get(all, "pbo")));
    json_decref(all);
}

// Three bars of one day have no daily returns.
static void short_bars_have_no_overfitting(void **state) {
    (void)state;
    put_text("bars.csv", "time,open,high,low,close\n2024-01-02 00:00,100,101,99,100\n2024-01-02 01:00,101,103,100,102\n"
                         "2024-01-02 02:00,102,112,98,104\n");
    put_text("signals.csv", "time,position\n2024-01-02 00:00,1\n");
    assert_int_equal(
        RUN("backtest", "--signals", "signals.csv", "--bars", "bars.csv", "--sweep", "account.cash=50,1000,2000"), 0);
    matches("out", "\nwarning +the best of several settings is chosen with hindsight; ");
    matches("out", "\noverfit +not known: ");
    matches("out", "\n50 +not traded: account: no order could be filled: ");
    assert_int_equal(RUN("backtest", "--signals", "signals.csv", "--bars", "bars.csv", "--json", "--sweep",
                         "account.cash=50,1000,2000"),
        0);
    json_t *all = last_line();
    assert_true(json_is_null(json_object_get(all, "pbo")) && value_of(all, "not_traded") == 1);
    json_decref(all);
}

static void faults_are_one_line(void **state) {
    (void)state;
    train();
#define SWEEP(...) RUN("backtest", "runs/one", "--sweep", __VA_ARGS__)
    complains(SWEEP("signal.hold"), "--sweep signal\\.hold: not a key with its values; write .*");
    complains(SWEEP("signal.hold=3"), "--sweep: one setting is nothing to compare; .*");
    complains(SWEEP("train.epochs=1,2"), "--sweep train\\.epochs: has one value for all settings; .*");
    complains(SWEEP("signal.hod=3,4"), "signal\\.hod=3: .*unknown key.*");
    complains(SWEEP("signal.hold=3,4", "--trades", "t.csv"), "--trades: a sweep has many lists of trades; .*");
    complains(SWEEP("signal.hold=3,4", "--bars", "a.csv"), "--sweep: settings are compared on the run's own data; .*");
    complains(SWEEP("signal.hold=3,4", "--part", "all"), "--part all: a sweep is of one part; .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(settings_of_a_run),
        TEST(the_table_warns),
        TEST(runs_are_compared),
        TEST(short_bars_have_no_overfitting),
        TEST(faults_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
