// Known answers: signals, trades and statistics that backtesting.py gave on real files. Every trade and every figure of
// the same definition must agree.
#include "backtest/backtest.h"
#include "backtest/judge.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    const char *name, *bars;
    const char *keys[4];
} known;

static const known cases[] = {
    {"eurusd_h1_free", "EURUSD_hourly_pandas.csv", {"account.cash=10000"}},
    {"eurusd_h1_costs_stops", "EURUSD_hourly_pandas.csv",
        {"account.cash=100000", "account.spread=0.0001", "account.commission=0.00002"}},
    {"xauusd_d1_stops", "XAUUSD_D1.csv", {"account.cash=100000"}},
    {"xauusd_m15_costs_stops", "XAUUSD_M15.csv",
        {"account.cash=200000", "account.spread=0.0001", "account.commission=0.00005"}},
};

static const char *data_folder(void) {
    const char *given = getenv("TRADEWIND_DATA");
    return given ? given : TEST_DIR "/../../shared/data";
}

// A file of the known answers, which lie beside the data.
static char *answer_path(const known *k, const char *ending) {
    static char path[4200];
    snprintf(path, sizeof path, "%s/../truth/%s.%s", data_folder(), k->name, ending);
    return path;
}

// Seconds of "2017-04-23 23:00:00" or "2017-04-23".
static int64_t moment(const char *text) {
    when_stamp s;
    assert_true(when_read(text, strlen(text), &s));
    return s.time;
}

static void near(double is, double should, double by, const char *what, int64_t line) {
    if (fabs(is - should) > by) fail_msg("trade %lld: %s %.10f, not %.10f", (long long)line, what, is, should);
}

static void check_trades(const known *k, const replay *p) {
    FILE *f = fopen(answer_path(k, "trades.csv"), "r");
    char line[512], entry[64], exit[64];
    int64_t n = 0;
    assert_true(f && fgets(line, sizeof line, f));
    for (; fgets(line, sizeof line, f); n++) {
        double size, in, out, result, commission;
        assert_int_equal(
            sscanf(line, "%lf,%63[^,],%63[^,],%lf,%lf,%lf,%lf", &size, entry, exit, &in, &out, &result, &commission),
            7);
        assert_true(n < p->trades);
        const replay_trade *t = &p->trade[n];
        const double rounded = 0.5e-8 + 1e-12; // the file's figures have 8 decimals, and so have prices here
        near((double)t->units / 1e8, size, 0, "size", n);
        near((double)p->quotes->time[t->entry], (double)moment(entry), 0, "entry time", n);
        near((double)p->quotes->time[t->exit], (double)moment(exit), 0, "exit time", n);
        near((double)t->entry_price / 1e8, in, 2 * rounded, "entry price", n);
        near((double)t->exit_price / 1e8, out, 2 * rounded, "exit price", n);
        near((double)t->result / 1e8, result, 1e-7, "result", n);
        near((double)t->commission / 1e8, commission, 1e-7, "commission", n);
    }
    fclose(f);
    assert_int_equal(n, p->trades);
}

// A statistic of ours under the name that the known answers have.
static const struct {
    const char *theirs;
    stat_name ours;
    double factor;
} names[] = {{"Equity Final [$]", STAT_EQUITY_FINAL, 1}, {"Equity Peak [$]", STAT_EQUITY_PEAK, 1},
    {"Return [%]", STAT_RETURN, 100}, {"Buy & Hold Return [%]", STAT_HOLD_RETURN, 100},
    {"Max. Drawdown [%]", STAT_DRAWDOWN, -100}, {"Exposure Time [%]", STAT_EXPOSURE, 100}, {"# Trades", STAT_TRADES, 1},
    {"Win Rate [%]", STAT_WIN_RATE, 100}, {"daily_sharpe_252", STAT_SHARPE, 1}};

static void check_one(const known *k, const json_t *all, const char *name, double is, double slack) {
    const json_t *v = json_object_get(all, name);
    assert_non_null(v);
    double should = json_number_value(v), by = 1e-9 * fabs(should) + slack;
    if (!(fabs(is - should) <= by)) fail_msg("%s: %s is %.12f, not %.12f", k->name, name, is, should);
}

static void check_statistics(const known *k, const replay *p, const account_terms *t) {
    stats s;
    err e = {0};
    json_t *all = json_load_file(answer_path(k, "stats.json"), 0, NULL);
    assert_non_null(all);
    support_ok(judge(p, t, &(judge_options){.trials = 1, .brief = true}, &s, &e), &e);
    // Sums of doubles in the known answers are off in their last digits, and a small return is a difference of them.
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_one(k, all, names[i].theirs, names[i].factor * s.of[names[i].ours].value,
            names[i].ours == STAT_RETURN ? 1e-11 : 0);
    if (json_object_get(all, "Commissions [$]")) // not given where there are none
        check_one(k, all, "Commissions [$]", (double)p->books.commission / 1e8, 0);
    near(s.of[STAT_EQUITY_FINAL].value, json_number_value(json_object_get(all, "Equity Final [$]")), 1e-6,
        "final equity", -1);
    near(
        s.of[STAT_COSTS].value, (double)(p->books.commission + p->books.spread) / 1e8, 1e-6, "costs of all trades", -1);
    assert_int_equal(p->quotes->count, json_integer_value(json_object_get(all, "bars")));
    json_decref(all);
}

static void run_case(const known *k, bool events) {
    char bars[4200], signals[4200];
    const char *keys[6] = {"account.last=open", "account.days_a_year=252"};
    int n = 2;
    backtest b;
    err e = {0};
    snprintf(bars, sizeof bars, "%s/%s", data_folder(), k->bars);
    snprintf(signals, sizeof signals, "%s", answer_path(k, "signals.csv"));
    for (int i = 0; i < 4 && k->keys[i]; i++) keys[n++] = k->keys[i];
    backtest_options o = {.signals = signals, .bars = bars, .overrides = keys, .override_count = n};
    support_ok(backtest_open(&b, &o, &e), &e);
    assert_int_equal(b.orders.count, b.signals.count);
    replay *p = &b.replay;
    support_ok(events ? replay_events(p, &b.orders, &e) : replay_orders(p, &b.orders, &e), &e);
    assert_true(p->refused.no_margin == 0 && p->refused.costs_above == 0);
    check_trades(k, p);
    check_statistics(k, p, &b.terms);
    print_message("%s: %lld trades, final equity %.8f, %lld ambiguous bars\n", k->name, (long long)p->trades,
        (double)p->books.cash / 1e8, (long long)p->ambiguous);
    backtest_done(&b);
}

static void cases_agree(void **state) {
    (void)state;
    if (access(answer_path(&cases[0], "stats.json"), R_OK)) {
        print_message("skipped: no known answers at %s\n", answer_path(&cases[0], "stats.json"));
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_case(&cases[i], true);
        run_case(&cases[i], false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
