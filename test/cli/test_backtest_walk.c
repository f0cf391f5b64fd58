// tradewind backtest WALK from outside: one account over all tests, folds that are missing, its report, what is
// refused.
#include "cli/program.h"
#include "data/walk.h"
#include "run/results.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 2200, SPAN = 3600, FOLDS = 3, FIRST = 4 };

static const char traded[] =
    "data: {bars: {fast: a.csv}, vector: false, windows: {fast: 8}, label: {kind: barrier, up: "
    "1.5, down: 1, limit: 6}, features: {fast: [return, body]}}\n";

// Three folds, 4 to 6 of the scheme, of a small model into the directory DIR.
static void walk(const char *dir, const char *data, const char *more) {
    char text[700];
    snprintf(text, sizeof text,
        "%smodel: {kind: mlp, widths: '8'}\ntrain: {epochs: 1, batch_size: 128%s}\n"
        "walk: {train: 800, validation: 200, test: 200, folds: 3}\nrun: {dir: %s}\n",
        data, more, dir);
    put_text("walk.yaml", text);
    assert_int_equal(RUN("walk", "walk.yaml", "--device", "cpu"), 0);
}

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("a.csv", N, SPAN, 4);
    return 0;
}

static json_t *read_doc(const char *dir, results_kind k) {
    err e = {0};
    json_t *doc;
    support_ok(results_read(dir, k, &doc, &e) && doc, &e);
    return doc;
}

static double at(json_t *doc, const char *list, size_t i) {
    return results_number(json_array_get(results_get(doc, list), i));
}

// Until the second fold decides, the account is that of the first fold's own backtest, to the cent.
static void the_first_fold_trades_as_it_does_alone(void **state) {
    (void)state;
    walk("made", traded, "");
    assert_int_equal(RUN("backtest", "made", "--trades", "t.csv", "account.spread=0.0001"), 0);
    matches("out", "^bars +bars: [0-9,]+ from ");
    matches("out", "\nanswers +[0-9]+ of made, tests of 3 folds\n");
    matches("out", "\nfitted +threshold on each fold's own validation: fold 4 0\\.[0-9]+, fold 5 0\\.[0-9]+, ");
    matches("out", "\nstored +made/backtest\\.json; `tradewind report made` draws it\n");
    assert_int_equal(RUN("backtest", "made/fold_04", "account.spread=0.0001", "--json"), 0);
    double alone = number("equity_final");
    json_t *folds = read_doc("made", RESULTS_WALK), *all = read_doc("made", RESULTS_BACKTEST);
    json_t *one = read_doc("made/fold_04", RESULTS_BACKTEST);
    json_t *first = json_array_get(results_get(folds, "folds"), 0);
    size_t tested = (size_t)at(first, "samples", 2), moved = 0;
    assert_true(tested > 100 && json_array_size(results_get(all, "equity.time")) > 2 * tested);
    for (size_t i = 0; i < tested; i++) {
        assert_true(at(all, "equity.time", i) == at(one, "equity.time", i));
        if (at(all, "equity.equity", i) != at(one, "equity.equity", i)) fail_msg("bar %zu differs", i);
        moved += i && at(all, "equity.equity", i) != at(all, "equity.equity", i - 1);
    }
    assert_true(moved > 10);
    size_t end = json_array_size(results_get(all, "equity.equity")) - 1;
    assert_true(at(all, "equity.equity", end) != alone);
    json_decref(folds);
    json_decref(all);
    json_decref(one);
}

// Lines of a list of trades that another list has too, the first and the last trade aside; all of them must be there.
static int count_shared(const char *path, const char *in) {
    char *text = slurp(path), *all = slurp(in), *rest = NULL;
    int lines = 0;
    strtok_r(text, "\n", &rest); // header
    strtok_r(NULL, "\n", &rest);
    for (char *line = strtok_r(NULL, "\n", &rest), *next; line; line = next) {
        next = strtok_r(NULL, "\n", &rest);
        if (next && !strstr(all, line)) fail_msg("%s is not in %s: %s", line, in, path);
        lines += next != NULL;
    }
    free(text);
    free(all);
    return lines;
}

// With positions that follow from each bar's own score, of one size and free of costs, a fold's trades are the walk's.
static void every_test_has_its_own_weights_and_threshold(void **state) {
    (void)state;
#define PLAIN "signal.exit=neutral", "signal.hold=none", "signal.stop=none", "signal.target=none", "signal.sizing=fixed"
    walk("made", traded, "");
    assert_int_equal(RUN("backtest", "made", PLAIN, "--trades", "all.csv", "--json"), 0);
    json_t *line = last_line(), *folds = json_object_get(line, "folds");
    for (int k = 0; k < FOLDS; k++) {
        char dir[32];
        snprintf(dir, sizeof dir, "made/fold_%02d", FIRST + k);
        assert_int_equal(RUN("backtest", dir, PLAIN, "--trades", "one.csv", "--json"), 0);
        json_t *alone = last_line(), *fold = json_array_get(folds, (size_t)k);
        assert_true(results_number(results_get(fold, "signal.threshold")) ==
                    results_number(results_get(alone, "signal.threshold")));
        json_decref(alone);
        assert_true(count_shared("one.csv", "all.csv") >= 5);
    }
    json_decref(line);
}

static void the_same_walk_leaves_the_same_bytes(void **state) {
    (void)state;
    walk("made", traded, "");
    assert_int_equal(RUN("backtest", "made", "-q"), 0);
    assert_int_equal(rename("made/backtest.json", "before.json"), 0);
    assert_int_equal(RUN("backtest", "made", "--json"), 0);
    same_bytes("before.json", "made/backtest.json");
    json_t *line = last_line(), *folds = json_object_get(line, "folds");
    assert_int_equal(json_array_size(folds), FOLDS);
    for (int k = 0; k < FOLDS; k++) {
        json_t *fold = json_array_get(folds, (size_t)k);
        assert_int_equal(json_integer_value(json_object_get(fold, "number")), FIRST + k);
        assert_true(results_number(results_get(fold, "signal.threshold")) > 0);
    }
    json_decref(line);
    assert_int_equal(access("made/signal.json", F_OK), -1);
}

static void reports_show_what_is_there(void **state) {
    (void)state;
    walk("made", traded, "");
    matches("out", "\nreport +made/report\\.html\n");
    assert_true(file_holds("made/report.html", "tests of all folds"));
    assert_true(file_holds("made/report.html", "tradewind backtest made"));
    assert_true(file_holds("made/report.html", "walk, rolling, mlp, bars<"));
    assert_false(file_holds("made/report.html", "tradewind evaluate made"));
    assert_int_equal(RUN("backtest", "made", "-q"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    matches("out", "walk +mlp, rolling, 3 of 3 folds done: ");
    matches("out",
        "\nmissing +Importance of columns: `tradewind walk made/config.yaml walk.importance=true --gather`\nrep");
    assert_int_equal(access("made/report/equity.svg", R_OK) | access("made/report/monthly.svg", R_OK) |
                         access("made/report/trades.svg", R_OK) | access("made/report/confusion.svg", R_OK),
        0);
    put_text("made/report.html", "mine");
    assert_int_equal(RUN("walk", "walk.yaml", "--device", "cpu", "--resume"), 0);
    matches("out", "\nnote +no report: made/report\\.html: ");
    assert_true(file_holds("made/report.html", "mine"));
}

static void missing_folds_are_told(void **state) {
    (void)state;
    walk("made", traded, "");
    assert_int_equal(RUN("backtest", "made", "--json"), 0);
    double answers = number("predictions"), bars = number("bars");
    assert_int_equal(rename("made/fold_05", "fold_05"), 0);
    assert_int_equal(RUN("backtest", "made"), 0);
    matches("out", "\nmissing +fold 5, so that its rows have no answers: made/fold_05: ");
    matches("out", ": fold 4 0\\.[0-9]+, fold 6 0\\.[0-9]+\n");
    assert_int_equal(RUN("backtest", "made", "--json"), 0);
    assert_true(number("predictions") == answers - 200 && number("bars") == bars);
    assert_int_equal(rename("fold_05", "made/fold_05"), 0);
    assert_int_equal(rename("made/fold_04", "fold_04"), 0);
    assert_int_equal(RUN("backtest", "made", "--json"), 0); // begins with the first fold that is there
    assert_true(number("predictions") == answers - 200 && number("bars") < bars - 190);
    assert_int_equal(system("rm -r made/fold_05 made/fold_06"), 0);
    complains(RUN("backtest", "made"), "made: no fold can be traded: made/fold_04: .*");
}

// The description of a walk counts though its first fold is not kept.
static void walks_are_trials(void **state) {
    (void)state;
    walk("runs/one", traded, "");
    walk("runs/two", traded, ", clip_norm: 0.5");
    assert_int_equal(RUN("backtest", "runs/one", "--json"), 0);
    assert_true(number("trials") == 2);
    assert_int_equal(RUN("backtest", "runs/one/fold_05", "--json"), 0);
    assert_true(number("trials") == 2);
}

// The signals of a path into path.csv: each group's rows are those that the fold which the path names predicts.
static void put_signals(json_t *path, json_t *groups) {
    long long from = 0;
    char command[200], dir[32];
    put_text("path.csv", "time,position\n");
    for (size_t g = 0; g < json_array_size(groups); g++) {
        long long end = from + json_integer_value(json_object_get(json_array_get(groups, g), "samples"));
        snprintf(dir, sizeof dir, "choices/fold_%02d", (int)at(path, "folds", g));
        assert_int_equal(RUN("predict", dir, "-o", "p.csv", "signal.threshold=0.05", PLAIN, "-q"), 0);
        matches("p.csv", "^sample,open_time,close_time,close,signal,");
        snprintf(command, sizeof command, "awk -F, '$1 >= %lld && $1 < %lld { print $2 \",\" $5 }' p.csv >>path.csv",
            from, end);
        assert_int_equal(system(command), 0);
        from = end;
    }
}

// Every path is a whole history: what anyone's signals earn that are put together of the folds' predictions, group by
// group as walk.json says.
static void paths_are_put_together(void **state) {
    (void)state;
    walk("made", traded, "");
    assert_int_equal(RUN("walk", "walk.yaml", "--device", "cpu", "walk.scheme=cpcv", "walk.groups=4",
                         "walk.validation=100", "run.dir=choices"),
        0);
    assert_true(file_holds("choices/report.html", "tradewind backtest choices"));
    complains(RUN("backtest", "choices", "--trades", "t.csv"), "--trades: every path of cpcv has its own; .*");
    // The first path has 4 groups, two of which one fold answers for.
    assert_int_equal(RUN("backtest", "choices"), 0);
    matches("out", "\nanswers +[0-9,]+ of choices, tests of 4 groups, lines below are of path 1\n");
    matches("out", "\nfitted +[0-3] of 3 thresholds earned their costs on validation\n");
    assert_int_equal(RUN("backtest", "choices", "signal.threshold=0.05", PLAIN, "--json"), 0);
    json_t *line = last_line(), *folds = read_doc("choices", RESULTS_WALK),
           *doc = read_doc("choices", RESULTS_BACKTEST);
    json_t *paths = results_get(doc, "paths");
    double mean = 0, final[3];
    assert_int_equal(json_array_size(paths), 3);
    for (size_t p = 0; p < 3; p++) {
        json_t *path = json_array_get(paths, p), *named = json_array_get(results_get(folds, "paths"), p);
        assert_true(json_equal(results_get(path, "folds"), results_get(named, "folds")));
        json_t *told = json_array_get(results_get(line, "paths"), p);
        mean += results_number(json_object_get(told, "sharpe")) / 3;
        final[p] = results_number(json_object_get(path, "equity_final"));
        put_signals(path, results_get(folds, "groups"));
        assert_int_equal(RUN("backtest", "--signals", "path.csv", "--bars", "a.csv", "--json"), 0);
        assert_true(number("trades") > 20 && number("trades") == results_number(json_object_get(path, "trades")));
        assert_true(fabs(number("equity_final") - final[p]) < 1e-6);
    }
    assert_true(final[0] != final[1] && final[1] != final[2]);
    assert_true(fabs(results_number(results_get(line, "spread.sharpe.mean")) - mean) < 1e-9);
    json_decref(line);
    json_decref(folds);
    json_decref(doc);
}

static void paths_are_told(void **state) {
    (void)state;
    walk("made", traded, "");
    assert_int_equal(RUN("walk", "walk.yaml", "--device", "cpu", "walk.scheme=cpcv", "walk.groups=3",
                         "walk.validation=100", "run.dir=choices"),
        0);
    assert_int_equal(system("rm -r choices/fold_02"), 0);
    assert_int_equal(RUN("backtest", "choices"), 0);
    matches("out", "\nmissing +path 1 has no answers for 1 of its 3 groups\n");
    matches("out", "\npath +return +CAGR +Sharpe +largest drawdown +trades +final equity\n1 .*\n2 .*\nmean .*\n"
                   "standard deviation .*\nleast .*\nlargest ");
    assert_int_equal(RUN("report", "choices"), 0);
    assert_int_equal(access("choices/report/paths.svg", R_OK), 0);
    assert_true(file_holds("choices/report.html", "<caption>Paths</caption>"));
}

static void faults_are_one_line(void **state) {
    (void)state;
    walk("made", traded, "");
    complains(RUN("backtest", "made", "--part", "validation"), "--part validation: a walk is traded on the tests .*");
    complains(RUN("backtest", "made", "--bars", "a.csv"), "made: a walk is traded on the tests of its folds; .*");
    complains(RUN("backtest", "made", "--data", "s.npz"), "made: a walk is traded on the tests of its folds; .*");
    complains(RUN("backtest", "made", "--symbol", "CCC"), "made: no fold .*--symbol CCC: .*has no such instrument.*");
    complains(RUN("backtest", "made", "signal.threshold=high"), "signal\\.threshold=high: .*");
    walk("without", "data: {synthetic: {bars: 2200}}\n", "");
    matches("out", "\nreport +without/report\\.html\n"); // of samples without times
    complains(RUN("backtest", "without"), "without: no fold can be traded: .*keeps no bars to trade on; .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(the_first_fold_trades_as_it_does_alone),
        TEST(every_test_has_its_own_weights_and_threshold),
        TEST(the_same_walk_leaves_the_same_bytes),
        TEST(reports_show_what_is_there),
        TEST(missing_folds_are_told),
        TEST(walks_are_trials),
        TEST(paths_are_put_together),
        TEST(paths_are_told),
        TEST(faults_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
