// tradewind backtest RUN from outside: what is printed and kept, parts, other bars, descriptions, trials, the signals
// of predict, and what is refused. Orders know nothing of later bars.
#include "backtest/stats.h"
#include "cli/program.h"
#include "data/walk.h"
#include "data/when.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 2400, SPAN = 3600, CHANGED = 1800 };

static void put_bars(const char *path, const bar *all, int64_t count) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = all; b < all + count; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
}

// A small run on bars in the directory runs/DIR.
static void put_description(const char *dir, const char *label, const char *more) {
    char text[512];
    snprintf(text, sizeof text,
        "data: {bars: {fast: a.csv}, vector: false, windows: {fast: 8}, label: {%s}, features: {fast: [return, "
        "body]}}\n"
        "model: {kind: mlp, widths: '8'}\ntrain: {epochs: 1, batch_size: 128%s}\nrun: {dir: runs/%s}\n",
        label, more, dir);
    put_text("run.yaml", text);
}

static void train(const char *dir, const char *label, const char *more) {
    put_description(dir, label, more);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
}

static const char barrier[] = "kind: barrier, up: 1.5, down: 1, limit: 6", direction[] = "horizon: 3";

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("a.csv", N, SPAN, 4);
    return 0;
}

static void copy(const char *from, const char *to) {
    char *text = slurp(from);
    put_text(to, text);
    free(text);
}

// Lists of backtest.json agree with its statistics.
static void check_document(const char *path) {
    json_t *all = json_load_file(path, 0, NULL), *each;
    size_t i;
    double grown = 1, final = 0;
    json_array_foreach(json_object_get(all, "monthly"), i, each) grown *=
        1 + json_number_value(json_object_get(each, "return"));
    json_array_foreach(json_object_get(all, "statistics"), i, each) {
        const char *key = json_string_value(json_object_get(each, "key"));
        if (strcmp(key, "equity_final") == 0) final = json_number_value(json_object_get(each, "value"));
    }
    assert_true(json_array_size(json_object_get(all, "monthly")) > 0 && fabs(100000 * grown - final) < 1e-6);
    const json_t *equity = json_object_get(json_object_get(all, "equity"), "equity");
    size_t n = json_array_size(equity);
    assert_true(n > 100 && fabs(json_number_value(json_array_get(equity, n - 1)) - final) < 1e-6);
    json_decref(all);
}

static void a_run_is_traded_and_kept(void **state) {
    (void)state;
    train("one", barrier, "");
    assert_int_equal(RUN("backtest", "runs/one", "account.spread=0.0001", "--trades", "t.csv"), 0);
    matches("out", "^bars +bars: [0-9,]+ from ");
    matches("out", "\nanswers +[0-9,]+ of runs/one, part test\n");
    matches("out", "\nsignal +scores of 0\\.[0-9]+ or more; held whatever is predicted, 6 bars at most; stop at 1 ");
    matches("out", "\nfitted +threshold 0\\.[0-9]+ on validation, ");
    matches("out", "\nbuy and hold: return +");
    matches("out", "\nbacktest overfitting +-  there is one trial alone\n");
    matches("out", "\nrandom entry: as good +");
    matches("out", "\ntrials +1, distinct descriptions");
    matches("out", "\nstored +runs/one/backtest\\.json, runs/one/signal\\.json; ");
    matches("t.csv", "^position,entry_time,");
    copy("runs/one/signal.json", "signal.json");
    copy("runs/one/backtest.json", "backtest.json");
    assert_int_equal(RUN("backtest", "runs/one", "account.spread=0.0001", "--json"), 0);
    same_bytes("runs/one/signal.json", "signal.json");
    same_bytes("runs/one/backtest.json", "backtest.json");
    json_t *all = last_line();
    for (int k = 0; k < STATS_COUNT; k++)
        if (!json_object_get(all, stats_row((stat_name)k)->key)) fail_msg("no %s", stats_row((stat_name)k)->key);
    json_decref(all);
    assert_true(number("trades") >= 10 && number("equity_final") > 0);
    assert_int_equal(RUN("report", "runs/one"), 0);
    assert_true(file_holds("runs/one/report.html", "Equity and drawdown"));
    assert_int_equal(access("runs/one/report/monthly.svg", R_OK) | access("runs/one/report/trades.svg", R_OK), 0);
    assert_int_equal(RUN("backtest", "runs/one", "--part", "validation"), 0);
    matches("out", "\nwarning +the threshold was fitted on this very part");
    assert_int_equal(RUN("backtest", "runs/one", "--part", "all"), 0);
    matches("out", "\nwarning +[0-9]+ samples lie in the time that the model was trained on\n");
    matches("out", "\nwarning +[0-9]+ of these [0-9]+ bars lie in the time that the threshold was fitted on\n");
    matches("out", "\nnot kept +runs/one/backtest\\.json is of the test part, ");
    assert_int_equal(RUN("backtest", "runs/one", "--part", "all", "-q"), 0);
    assert_false(file_holds("out", "warning"));
    matches("err", "tradewind: warning: [0-9]+ samples lie in the time that the model was trained on\n");
    assert_int_equal(RUN("backtest", "runs/one", "--bars", "a.csv"), 0);
    matches("out", "\nwarning +[0-9]+ of these [0-9]+ bars lie in the time that the threshold was fitted on\n");
    assert_int_equal(RUN("backtest", "runs/one", "--part", "all", "signal.threshold=0.4"), 0);
    assert_false(file_holds("out", "that the threshold was fitted on"));
    same_bytes("runs/one/signal.json", "signal.json");
    same_bytes("runs/one/backtest.json", "backtest.json");
    check_document("runs/one/backtest.json");
}

// Position, time and price of the entries up to a moment, as one text that the caller frees.
static char *entries_until(const char *path, const char *moment) {
    char *text = slurp(path), *to = calloc(strlen(text) + 1, 1), *at = to;
    assert_non_null(to);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char position[64], entry[64], price[64];
        if (sscanf(line, "%63[^,],%63[^,],%*[^,],%63[^,]", position, entry, price) == 3 && strcmp(entry, moment) <= 0)
            at += sprintf(at, "%s,%s,%s\n", position, entry, price);
    }
    free(text);
    return to;
}

// Everything but the open of bar `from` is another from there on.
static void change_from(int64_t from) {
    bar *all = walk_bars(N, SPAN, 4);
    for (int64_t i = from; i < N; i++) {
        double by = 1 + 0.01 * sin((double)i);
        all[i].open *= i == from ? 1 : by;
        all[i].close *= by;
        all[i].high = 1.01 * fmax(all[i].open, all[i].close);
        all[i].low = 0.99 * fmin(all[i].open, all[i].close);
    }
    put_bars("b.csv", all, N);
    free(all);
}

// Cuts lie side by side, so that some orders are decided on the last bar that stays and filled at the changed one.
static void later_bars_change_no_earlier_order(void **state) {
    (void)state;
    enum { CUTS = 8 };
    static const char threshold[] = "signal.threshold=0.34", sizing[] = "signal.sizing=volatility",
                      size[] = "signal.size=0.01";
    bar *all = walk_bars(N, SPAN, 4);
    int filled = 0;
    train("one", barrier, "");
    assert_int_equal(RUN("backtest", "runs/one", "--bars", "a.csv", "--trades", "t.csv", threshold, sizing, size), 0);
    matches("out", "^bars +a\\.csv: [0-9,]+ from .*, row by row as they are\n");
    for (int64_t cut = CHANGED; cut < CHANGED + CUTS; cut++) {
        char moment[32];
        when_moment_text(moment, sizeof moment, all[cut].time);
        change_from(cut);
        assert_int_equal(
            RUN("backtest", "runs/one", "--bars", "b.csv", "--trades", "u.csv", threshold, sizing, size), 0);
        char *was = entries_until("t.csv", moment), *is = entries_until("u.csv", moment);
        assert_true(strlen(was) > 2000);
        assert_string_equal(was, is);
        filled += strstr(was, moment) != NULL;
        free(was);
        free(is);
    }
    assert_true(filled > 0);
    free(all);
}

static void sets_of_import_are_made_anew(void **state) {
    (void)state;
    assert_int_equal(
        RUN("import", "a.csv", "--frames", "4h", "--label", "barrier", "--limit", "6", "-o", "s.npz", "-q"), 0);
    put_text("run.yaml", "data: {set: s.npz, windows: {fast: 8, slow: 4}}\nmodel: {kind: mlp, widths: '8'}\n"
                         "train: {epochs: 1}\nrun: {dir: runs/set}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("backtest", "runs/set", "--part", "all", "--trades", "t.csv"), 0);
    assert_int_equal(RUN("backtest", "runs/set", "--bars", "a.csv", "--trades", "u.csv"), 0);
    same_bytes("t.csv", "u.csv");
    assert_int_equal(RUN("backtest", "runs/set", "--data", "s.npz", "--trades", "u.csv"), 0);
    same_bytes("t.csv", "u.csv");
}

static void forecasts_have_a_threshold_of_returns(void **state) {
    (void)state;
    train("ahead", "kind: forecast, horizon: 4", "");
    assert_int_equal(RUN("backtest", "runs/ahead", "--json", "signal.threshold=0"), 0);
    assert_true(number("trades") >= 1);
    double many = number("trades");
    assert_int_equal(RUN("backtest", "runs/ahead", "--json", "signal.threshold=0.9"), 0);
    assert_true(number("trades") == 0 && many > 0 && number("return") == 0);
}

// Sides as the rule has them, by the probabilities of the same row.
static void predict_tells_the_side(void **state) {
    (void)state;
    train("one", barrier, "");
    assert_int_equal(RUN("predict", "runs/one", "-o", "p.csv"), 0);
    assert_false(file_holds("p.csv", ",signal,"));
    assert_int_equal(RUN("backtest", "runs/one", "-q"), 0);
    json_t *rule = json_load_file("runs/one/signal.json", 0, NULL);
    double least = json_number_value(json_object_get(rule, "threshold"));
    json_decref(rule);
    assert_int_equal(RUN("predict", "runs/one", "-o", "p.csv"), 0); // its own output, with another header
    char *text = slurp("p.csv");
    int sides[3] = {0};
    assert_int_equal(strncmp(text, "sample,open_time,close_time,close,signal,label,prediction,p_DOWN,", 65), 0);
    char *line = strtok(text, "\n");
    for (line = strtok(NULL, "\n"); line; line = strtok(NULL, "\n")) {
        int side;
        double down, up;
        assert_int_equal(
            sscanf(line, "%*[^,],%*[^,],%*[^,],%*[^,],%d,%*[^,],%*[^,],%lf,%*[^,],%lf", &side, &down, &up), 3);
        int should = up > down && up >= least ? 1 : down > up && down >= least ? -1 : 0;
        assert_int_equal(side, should);
        sides[side + 1]++;
    }
    free(text);
    assert_true(sides[0] + sides[2] > 0);
    assert_int_equal(RUN("predict", "runs/one", "--latest", "2", "--json", "signal.threshold=0"), 0);
    assert_true(fabs(number("signal")) == 1);
    put_text("runs/one/signal.json", "{\"version\": 1, \"threshold\": -3}");
    complains(RUN("predict", "runs/one", "--latest", "1"), "runs/one/signal\\.json: .*make it anew with .*");
}

static void trials_are_counted(void **state) {
    (void)state;
    train("one", direction, "");
    train("two", direction, ", seed: 2");
    train("others/three", direction, ", clip_norm: 0.5");
    assert_int_equal(RUN("backtest", "runs/one", "--json"), 0);
    assert_true(number("trials") == 2);
    assert_int_equal(RUN("backtest", "runs/one", "--json", "--part", "validation", "report.trials=30"), 0);
    assert_true(number("bars") == number("predictions") + 3); // to the bar that makes the last label known
    assert_true(number("trials") == 30);
    walk_put("a.csv", N, SPAN, 9); // other data
    train("four", direction, ", clip_norm: 0.25");
    assert_int_equal(RUN("backtest", "runs/four", "--json"), 0);
    assert_true(number("trials") == 1);
}

static void descriptions_of_a_backtest(void **state) {
    (void)state;
    train("one", direction, "");
    put_text("bt.yaml", "run: runs/one\npart: validation\ntrades: t.csv\naccount: {cash: 5000, short: false}\n"
                        "signal: {threshold: 0.3, sizing: fixed, size: 0.5, hold: none, exit: neutral, stop: none}\n"
                        "report: {trials: 4}\n");
    assert_int_equal(RUN("backtest", "--config", "bt.yaml"), 0);
    matches(
        "out", "\nsignal +scores of 0\\.3 or more; held until its side is not asked for; no stop, .*; 0\\.5 lots\n");
    matches("out", "\naccount +cash 5,000, .*, no short positions\n");
    matches("out", "\ntrials +4, as report\\.trials says\n");
    assert_false(file_holds("t.csv", "\n-"));
    assert_int_equal(RUN("backtest", "--config", "bt.yaml", "account.cash=3000", "--part", "test"), 0);
    matches("out", ", part test\n(.*\n)*account +cash 3,000,");
    put_text("bt.yaml", "signals: s.csv\nbars: a.csv\n");
    complains(RUN("backtest", "--config", "bt.yaml"), "s\\.csv: cannot be read: No such file or directory; .*");
    assert_int_equal(mkdir("data", 0777), 0);
    char signal[96], when[32];
    bar *all = walk_bars(N, SPAN, 4);
    snprintf(signal, sizeof signal, "time,position\n%s,1\n", when_moment_text(when, sizeof when, all[9].time));
    free(all);
    put_text("data/s.csv", signal);
    assert_int_equal(setenv("TRADEWIND_DATA", "data", 1), 0);
    assert_int_equal(RUN("backtest", "--config", "bt.yaml"), 0);
    matches("out", "\nsignals +data/s\\.csv: 1 used");
    unsetenv("TRADEWIND_DATA");
    put_text("bt.yaml", "runs: one\n");
    complains(RUN("backtest", "--config", "bt.yaml"), "bt\\.yaml:1: runs: unknown key; did you mean run\\?.*");
}

static void instruments_are_traded_one_at_a_time(void **state) {
    (void)state;
    walk_put("b.csv", N, SPAN, 5);
    put_text("run.yaml", "data: {bars: {AAA: {fast: a.csv}, BBB: {fast: b.csv}}, vector: false, windows: {fast: 8}}\n"
                         "model: {kind: mlp, widths: '8'}\ntrain: {epochs: 1}\nrun: {dir: runs/pair}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    complains(RUN("backtest", "runs/pair"), ".*has several instruments.*--symbol, one of: AAA, BBB");
    complains(RUN("backtest", "runs/pair", "--symbol", "CCC"), "--symbol CCC: .*has no such instrument, but: AAA, BBB");
    assert_int_equal(RUN("backtest", "runs/pair", "--symbol", "BBB", "-q"), 0); // whose rule is kept
    assert_int_equal(RUN("backtest", "runs/pair", "--symbol", "BBB", "--part", "all", "--trades", "t.csv"), 0);
    matches("out", "^bars +bars, BBB: ");
    assert_int_equal(RUN("backtest", "runs/pair", "--symbol", "BBB", "--bars", "b.csv", "--trades", "u.csv"), 0);
    same_bytes("t.csv", "u.csv");
    assert_int_equal(RUN("predict", "runs/pair", "--latest", "1"), 0);
    matches("out", "\nBBB  closed .*  signal -?[01]\n");
    assert_false(file_holds("out", "AAA.*signal"));
}

// Trained on GOLD_H1.csv, with `words`.
static void check_other_bars(const char *run, const char *words) {
    assert_int_equal(RUN("backtest", run, "--bars", "GOLD_H1.csv", words), 0);
    assert_false(file_holds("out", "another instrument") || file_holds("out", "by its name"));
    assert_int_equal(RUN("backtest", run, "--bars", "EURO_H1.csv", words, "--json"), 0);
    json_t *line = last_line(), *told = json_object_get(line, "assumptions"), *each;
    size_t i, prices = 0, names = 0;
    json_array_foreach(told, i, each) {
        const char *text = json_string_value(json_object_get(each, "text"));
        prices += text && strstr(text, "bars of another instrument or in other units");
        names += text && strstr(text, "EURO_H1.csv is of EURO by its name, and the run was trained on GOLD");
    }
    assert_true(prices == 1 && names == 1);
    json_decref(line);
    complains(RUN("backtest", run, "--bars", "daily.csv", words),
        "--bars daily\\.csv: has bars of 1 d[a-z]*, and the run "
        "was trained on bars of 1 h; give bars of the same span");
    complains(RUN("backtest", run, "--bars", "minutes.csv", words),
        "--bars minutes\\.csv: has bars of 5 min, and the run was trained on bars of 1 h; give bars of the same span");
}

// Bars of another instrument fit the run as well as its own: their prices and the names of their files are told, of a
// model and of an agent. Bars of another span do not fit.
static void bars_of_another_instrument_are_told(void **state) {
    (void)state;
    copy("a.csv", "GOLD_H1.csv");
    bar *all = walk_bars(N, SPAN, 5);
    for (bar *b = all; b < all + N; b++) b->open /= 1e3, b->high /= 1e3, b->low /= 1e3, b->close /= 1e3;
    put_bars("EURO_H1.csv", all, N);
    free(all);
    walk_put("daily.csv", 400, 86400, 4);
    walk_put("minutes.csv", N, SPAN / 12, 4);
    put_description("one", direction, "");
    assert_int_equal(RUN("train", "run.yaml", "-q", "data.bars.fast=GOLD_H1.csv", "data.frames=[2h]"), 0);
    check_other_bars("runs/one", "signal.threshold=0.3");
    put_text("agent.yaml", "data: {bars: {fast: GOLD_H1.csv}, frames: [2h], vector: false,\n"
                           "  features: {fast: [return, body], slow: [return]}}\n"
                           "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1, limit: 40,\n"
                           "  total_timesteps: 128}\nmodel: {widths: 6}\nrun: {dir: agent}\n");
    assert_int_equal(RUN("train", "agent.yaml", "-q", "--device", "cpu"), 0);
    check_other_bars("agent", "account.spread=0.0001");
}

// Keys of the training are refused; others that nothing reads are told.
static void keys_without_effect_are_told(void **state) {
    (void)state;
    train("one", direction, "");
    complains(RUN("backtest", "runs/one", "train.epochs=4"), "train\\.epochs=4: has no effect on a backtest, .*");
    complains(RUN("backtest", "runs/one", "model.widths=9"), "model\\.widths=9: has no effect on a backtest, .*");
    complains(RUN("backtest", "runs/one", "--sweep", "signal.hold=2,3", "run.dir=x"),
        "run\\.dir=x: has no effect on a backtest, .*");
    assert_int_equal(RUN("backtest", "runs/one", "data.label.up=3", "num_epochs=9"), 0);
    matches("out", "\nunused +(num_epochs: read as train\\.epochs, which has no effect on a\n? *backtest; "
                   ")?data\\.label\\.up: labels of ");
    matches("out", "num_epochs: read as train\\.epochs, which has");
    assert_int_equal(RUN("backtest", "runs/one", "account.cash=5000", "signal.threshold=0"), 0);
    assert_false(file_holds("out", "\nunused") || file_holds("out", "without a size"));
    assert_int_equal(
        RUN("backtest", "runs/one", "account.cash=5000", "signal.threshold=0", "account.lot_step=1000"), 0);
    matches("out", "\nnote +[0-9]+ predictions asked for a position without a size: below account\\.lot_step, ");
    matches("out", "\ntrades +0\n");
}

static void faults_are_one_line(void **state) {
    (void)state;
    train("one", direction, "");
    complains(RUN("backtest", "runs/none"), "runs/none: cannot be read: .*");
    complains(RUN("backtest", "runs/one", "--part", "future"), "--part future: unknown part; .*");
    complains(RUN("backtest", "runs/one", "--signals", "s.csv"), "--signals: a run makes its own signals; .*");
    complains(RUN("backtest", "runs/one", "--bars", "a.csv", "--part", "test"), "--part: with --bars every bar .*");
    complains(RUN("backtest", "runs/one", "--data", "s.npz", "--part", "test"), "--part test: another set is .*");
    complains(RUN("backtest", "runs/one", "--bars", "none.csv"), ".*none\\.csv: cannot be read: .*");
    complains(RUN("backtest", "runs/one", "signal.hold=none"), "signal\\.hold=none: .*never end.*");
    complains(RUN("backtest", "runs/one", "signal.threshold=high"), "signal\\.threshold=high: .*");
    complains(RUN("backtest", "runs/one", "signal.treshold=1"), ".*unknown key; did you mean signal\\.threshold.*");
    complains(RUN("backtest", "runs/one", "signal.sizing=fixed", "signal.size=1e6"), "account: no order could be .*");
    complains(RUN("backtest", "runs/one", "account.spread=nought"), "account\\.spread=nought: .*is no such amount.*");
    complains(RUN("backtest", "runs/one", "--trades", "a.csv"), "a\\.csv: is there and is not a list of trades .*");
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.epochs=1"), 0);
    complains(RUN("backtest", "made"), "synthetic: keeps no bars to trade on; .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_traded_and_kept),
        TEST(later_bars_change_no_earlier_order),
        TEST(sets_of_import_are_made_anew),
        TEST(forecasts_have_a_threshold_of_returns),
        TEST(predict_tells_the_side),
        TEST(trials_are_counted),
        TEST(descriptions_of_a_backtest),
        TEST(instruments_are_traded_one_at_a_time),
        TEST(bars_of_another_instrument_are_told),
        TEST(keys_without_effect_are_told),
        TEST(faults_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
