// Trained agents in use: backtests with the books of the environment, other data, answers bar by bar, evaluations that
// are kept, and what is refused.
#include "task/agent_backtest.h"

#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "fault/kinds.h"
#include "parts.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void works(int status) {
    if (status) kinds_shell("cat err >&2");
    assert_int_equal(status, 0);
}

// An agent of 3,000 bars in `made`, one of continuous actions in `numbers`.
static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    walk_put("bars.csv", 3000, 900, 1);
    put_text("run.yaml", "data: {set: set.npz}\n"
                         "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, lags: 2,\n"
                         "  total_timesteps: 512, limit: 50}\n"
                         "account: {spread: 0.0001, commission: 0.00002}\n"
                         "model: {widths: 8-8}\nrun: {dir: made}\ngpu_optimization: {memory_monitoring: false}\n");
    works(RUN("import", "bars.csv", "--frames", "1h", "-o", "set.npz", "-q"));
    works(RUN("train", "run.yaml", "--device=cpu", "-q"));
    return status;
}

static void refuses(int status, const char *text) {
    char pattern[256];
    snprintf(pattern, sizeof pattern, "[^\n]*%s[^\n]*", text);
    complains(status, pattern);
}

static trained_options options_of(const char *run, const char *const *overrides, int count) {
    return (trained_options){.run = run,
        .overrides = overrides,
        .override_count = count,
        .devices = {.host = &cpu_device, .options = {.threads = 1}},
        .version = "test"};
}

// The replay against the pass that the same agent plays.
static int64_t check_books(const char *run, const char *part, const char *const *overrides, int count) {
    err e = {0};
    trained_agent t;
    backtested b;
    agent_pass p;
    trained_options o = options_of(run, overrides, count);
    o.part = part;
    support_ok(trained_agent_open(&t, &o, &e), &e);
    support_ok(trained_agent_play(&t, &p, &e), &e);
    support_ok(agent_backtest_trade(&b, &t, NULL, run, &e), &e);
    assert_true(p.runs == 1 && p.run[0].count == b.quotes.count && b.scores == p.bars);
    for (int64_t i = 0; i + 1 < p.bars; i++) {
        bar at = dataset_bar(&t.task.world.task.data->stream[0].bars,
            agent_market_bar(&t.task.world.market, t.task.world.task.data, p.bar[i].row));
        assert_true(b.quotes.time[i] == at.time && b.replay.equity[i] == p.bar[i].equity);
    }
    // A position open at the end is closed by the replay alone.
    const play_bar *last = &p.bar[p.bars - 1];
    if (!last->units) assert_true(b.replay.equity[p.bars - 1] == last->equity);
    int64_t trades = b.replay.trades;
    agent_pass_done(&p);
    backtest_run_done(&b);
    trained_agent_close(&t);
    return trades;
}

static void a_backtest_has_the_books_of_the_environment(void **state) {
    (void)state;
    static const char *const costly[] = {"account.swap_long=-0.0001", "account.swap_short=0.00005",
        "account.day_close=on", "account.cash=5000", "account.slippage=2pt", "account.lot_step=0.01"};
    static const char *const margin[] = {"account.leverage=20", "agent.position=15", "account.short=false"};
    assert_true(check_books("made", "test", NULL, 0) > 5);
    assert_true(check_books("made", "validation", costly, 6) > 5);
    assert_true(check_books("made", "train", costly, 3) > 5);
    check_books("made", "test", margin, 3);
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "run.dir=numbers", "agent.actions=continuous",
        "agent.learning_rate=0.03", "agent.normalize_observation=true"));
    assert_true(check_books("numbers", "test", costly, 6) > 5);
}

static void a_backtest_tells_and_keeps(void **state) {
    (void)state;
    works(RUN("backtest", "made", "--trades", "t.csv"));
    matches("out", "\nagent +greedy, short, flat or long, with 0.95 of the equity [^\n]*\n");
    matches("out", "\nbuy and hold: return +[^\n]*\nbuy and hold: Sharpe [^\n]*\n");
    matches("out", "\nstored +made/backtest.json; `tradewind report made` draws it\n");
    assert_true(file_holds("t.csv", "position,entry_time,") && file_holds("made/backtest.json", "\"hold\""));
    works(RUN("backtest", "made", "--json", "account.cash=20000"));
    double first = number("equity_final");
    assert_true(number("trades") > 5 && first > 10000 && first < 40000);
    works(RUN("backtest", "made", "--json", "--part", "validation"));
    works(RUN("backtest", "made", "--part", "validation"));
    matches("out", "\nnot kept +made/backtest.json is of the test part");
    refuses(RUN("backtest", "made", "--bars", "bars.csv", "--part", "test"), "--part: with --bars every bar ");
    refuses(RUN("backtest", "made", "--sweep", "account.cash=1,2"), "--sweep: the run is of an agent, ");
    refuses(RUN("backtest", "made", "signal.threshold=0.5"), "signal.threshold=0.5: has no effect on an agent");
    refuses(RUN("backtest", "made", "train.seed=5"), "train.seed=5: has no effect on a backtest");
    refuses(RUN("backtest", "made", "--symbol", "GOLD"), "--symbol GOLD: ");
}

// Costs of a twenty-fifth of the price at each entry.
static void a_ruined_agent_trades_no_more(void **state) {
    (void)state;
    works(RUN("backtest", "made", "account.spread=0.04", "agent.ruin=0.8"));
    matches("out", "\nruin +at the close of the bar of 20[^\n]* equity had fallen to 0.8 of the cash");
    works(RUN("backtest", "made", "account.spread=0.04", "agent.ruin=0.8", "--json"));
    assert_true(number("equity_final") < 81000 && number("equity_final") > 70000);
}

static void one_of_several_instruments_is_traded(void **state) {
    (void)state;
    walk_put("other.csv", 3000, 900, 2);
    assert_int_equal(
        RUN("import", "--symbol", "AAA", "bars.csv", "--symbol", "BBB", "other.csv", "-o", "two.npz", "-q"), 0);
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "data.set=two.npz", "run.dir=both"));
    refuses(RUN("backtest", "both"), "has several instruments");
    for (int k = 0; k < 2; k++) {
        const char *symbol = k ? "BBB" : "AAA";
        works(RUN("backtest", "both", "--symbol", symbol, "--json"));
        assert_true(number("trades") > 0);
    }
    works(RUN("evaluate", "both", "--json"));
    assert_true(number("episodes") == 2);
}

// Other data are used where columns and frames agree; scales are those of the weights.
static void weights_know_their_data(void **state) {
    (void)state;
    works(RUN("evaluate", "made", "--part", "validation", "--json"));
    double own = number("mean_reward");
    kinds_shell("cp set.npz copy.npz");
    works(RUN("backtest", "made", "--part", "all", "--json"));
    double all = number("equity_final");
    works(RUN("backtest", "made", "--data", "copy.npz", "--json"));
    assert_true(number("equity_final") == all);
    works(RUN("backtest", "made", "--data", "copy.npz"));
    matches("out", "\nwarning +[0-9]+ samples lie in the time that the model was trained on\n");
    works(RUN("import", "bars.csv", "--frames", "1h", "--features", "fast=return", "-o", "few.npz", "-q"));
    refuses(RUN("backtest", "made", "--data", "few.npz"), "made/best.safetensors: columns of fast differ: ");
    refuses(RUN("evaluate", "made", "--data", "few.npz"), "made/best.safetensors: columns of fast differ: ");
    // Labels are nothing to an agent.
    works(RUN("import", "bars.csv", "--frames", "1h", "--horizon", "5", "-o", "other.npz", "-q"));
    works(RUN("evaluate", "made", "--data", "other.npz", "--json"));
    // A checkpoint knows the same, and the run's own data stay those that it was trained on.
    works(RUN("evaluate", "made/last.safetensors", "--data", "copy.npz", "--json"));
    works(RUN("evaluate", "made", "--part", "validation", "--json"));
    assert_true(number("mean_reward") == own);
    kinds_shell("cp other.npz set.npz");
    refuses(RUN("evaluate", "made"), "made/best.safetensors: was trained on other data or parts of them: ");
    refuses(RUN("backtest", "made"), "made/best.safetensors: was trained on other data or parts of them: ");
}

// Answers bar by bar

// The line of a file of comma-separated values that begins with a text; the caller frees it.
static char *line_of(const char *path, const char *begin) {
    char *text = slurp(path), *at = text;
    while (at && strncmp(at, begin, strlen(begin)) != 0) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    char *line = at ? strndup(at, strcspn(at, "\n")) : NULL;
    free(text);
    return line;
}

static void actions_are_told_bar_by_bar(void **state) {
    (void)state;
    works(RUN("predict", "made", "-o", "p.csv"));
    matches(
        "out", "^p.csv: actions at [0-9,]+ bars \\(set.npz, test\\) by made/best.safetensors\npass +greedy, from 20");
    matches("p.csv",
        "^open_time,close_time,close,signal,action,p_short,p_flat,p_long,position,equity\n20[^\n]*,(-1,short|0,"
        "flat|1,long),[0-9.]+,[0-9.]+,[0-9.]+,0,100000.00\n");
    works(RUN("predict", "made", "-o", "p.csv", "--json"));
    double bars = number("bars");
    works(RUN("backtest", "made", "--json"));
    assert_true(number("predictions") == bars && number("bars") == bars);
    works(RUN("predict", "made", "-o", "p.npz", "--part", "validation"));
    works(RUN("predict", "made", "-o", "p.npz", "--part", "all")); // its own output may be replaced
    refuses(RUN("predict", "made", "-o", "bars.csv"), "bars.csv: is there and is not an output of predict");
    refuses(RUN("predict", "made", "-o", "set.npz"), "set.npz: is both input and output");
    refuses(RUN("predict", "made", "-o", "p.csv", "--part", "latest"), "--part: latest is no part of an agent's data");
    refuses(RUN("predict", "made", "--latest", "0"), "--latest 0: must be a number of bars");
}

// The newest bar's answer is that of the same bar from data that go on behind it: nothing later is in it.
static void the_newest_bar_is_answered(void **state) {
    (void)state;
    kinds_shell("head -n 2901 bars.csv >cut.csv");
    works(RUN("import", "cut.csv", "--frames", "1h", "-o", "cut.npz", "-q"));
    works(RUN("predict", "made", "--data", "cut.npz", "--latest", "1", "-o", "newest.csv", "-q"));
    works(RUN("predict", "made", "--latest", "2000", "-o", "long.csv", "-q"));
    char *newest = line_of("newest.csv", "20"), begin[48];
    assert_non_null(newest);
    snprintf(begin, sizeof begin, "%.16s", newest);
    char *same = line_of("long.csv", begin);
    assert_string_equal(newest, same);
    free(newest);
    free(same);
    // The pass begins behind the training part, which is 0.7 of the samples.
    works(RUN("predict", "made", "--latest", "100000", "-o", "pass.csv", "--json"));
    double passed = number("bars");
    assert_true(number("trained_on") == 0); // of the bars that are answered
    works(RUN("predict", "made", "--part", "all", "-o", "pass.csv", "--json"));
    assert_true(number("trained_on") > 0.6 * number("bars") && number("trained_on") < 0.8 * number("bars"));
    assert_true(passed < 0.4 * number("bars") && passed > 0.2 * number("bars"));
    works(RUN("predict", "made", "--latest", "2"));
    matches("out", "^pass +greedy, from 20[^\n]* UTC, over [0-9,]+ bars, with a cash of 100000.00 at the beginning\n");
    matches("out", "\nclosed 20[^\n]* UTC  close [^\n]*  signal -?[01]  position [^\n]*  equity [^\n]*\n$");
    works(RUN("predict", "made", "--latest", "1", "--json"));
    assert_true(number("equity") > 0 && number("close") > 0);
    assert_false(file_holds("out", "trained_on"));
    kinds_shell("head -n 1001 bars.csv >old.csv");
    works(RUN("import", "old.csv", "--frames", "1h", "-o", "old.npz", "-q"));
    works(RUN("predict", "made", "--data", "old.npz", "--latest", "1", "--json"));
    matches("out", "\"trained_on\": ?true");
    // Bars that came later are answered too, without training.
    works(RUN("import", "--append", "cut.npz", "bars.csv", "-q"));
    works(RUN("predict", "made", "--data", "cut.npz", "--latest", "2000", "-o", "again.csv", "-q"));
    same_bytes("again.csv", "long.csv");
}

static void numbers_are_answers_too(void **state) {
    (void)state;
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "run.dir=numbers", "agent.actions=continuous"));
    works(RUN("predict", "numbers", "-o", "p.csv"));
    matches("p.csv",
        "^open_time,close_time,close,signal,direction,size,position,equity\n20[^\n]*,-?[01],[^\n]*,100000.00\n");
    works(RUN("predict", "numbers", "-o", "p.npz"));
    works(RUN("predict", "numbers", "--latest", "1"));
    matches("out", "  direction -?[0-9.]+  size [0-9.]+  signal ");
}

// Evaluations

// A number of the first account that evaluate --json tells.
static double account_number(const char *key) {
    json_t *line = last_line(), *v = json_object_get(json_array_get(json_object_get(line, "accounts"), 0), key);
    assert_true(json_is_number(v));
    double is = json_number_value(v);
    json_decref(line);
    return is;
}

static void an_evaluation_has_accounts_and_is_kept(void **state) {
    (void)state;
    works(RUN("report", "made"));
    matches("out", "\nmissing +Greedy pass: equity and drawdown: `tradewind evaluate made`\n");
    matches("out", "\nmissing +Equity and drawdown; [^\n]*: `tradewind backtest made`\n");
    works(RUN("evaluate", "made"));
    matches("out", "\n +return +hold +drawdown +hold +Sharpe +hold +exposure +trades +win rate +costs +final equity\n"
                   "account +-?[0-9.]+ % +-?[0-9.]+ % +[0-9.]+ % ");
    matches("out", "\nstored +made/evaluation.json, made/predictions_test.npz\n");
    assert_true(file_holds("made/evaluation.json", "\"accounts\""));
    works(RUN("evaluate", "made", "--json"));
    double trades = account_number("trades"), equity = account_number("equity_final"),
           hold = account_number("hold_return");
    works(RUN("backtest", "made", "--json"));
    assert_true(number("trades") == trades && number("equity_final") == equity && number("hold_return") == hold);
    works(RUN("report", "made", "--json"));
    assert_true(file_holds("made/report.html", "Greedy pass: equity and drawdown"));
    assert_true(file_holds("made/report.html", "test: greedy pass over") && !file_holds("out", "`tradewind evaluate"));
    // Nothing is kept of other settings.
    works(RUN("evaluate", "made", "account.spread=0.01", "--part", "validation"));
    assert_false(file_holds("out", "stored"));
    assert_int_not_equal(access("made/predictions_validation.npz", F_OK), 0);
}

static void accounts_of_several_instruments_are_drawn(void **state) {
    (void)state;
    walk_put("other.csv", 3000, 900, 2);
    works(RUN("import", "--symbol", "AAA", "bars.csv", "--symbol", "BBB", "other.csv", "-o", "two.npz", "-q"));
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "data.set=two.npz", "run.dir=both"));
    works(RUN("evaluate", "both"));
    matches("out", "\nAAA +-?[0-9.]+ % [^\n]*\nBBB +-?[0-9.]+ % [^\n]*\n");
    works(RUN("report", "both"));
    assert_true(file_holds("both/report/pass.svg", "AAA") && file_holds("both/report/pass.svg", "return %"));
    works(RUN("predict", "both", "--latest", "1"));
    matches("out", "\nBBB  closed [^\n]*\nAAA  closed [^\n]*\n");
}

static void an_account_that_cannot_trade_is_told(void **state) {
    (void)state;
    works(RUN("evaluate", "made", "account.cash=1", "account.lot_step=1"));
    matches("out", "\naccount +0.00 % +[^\n]* 0.00 % +0 +-");
    works(RUN("evaluate", "made", "account.spread=0.09"));
    matches("out", "\nwarning +account: no order could be filled: ");
}

// An account that can never trade is refused where it would be trained; short stretches are told.
static void training_tells_what_is_not_traded(void **state) {
    (void)state;
    refuses(RUN("train", "run.yaml", "run.dir=none", "account.lot_step=1000"),
        "account: no order can ever be opened: 0.95 of the equity in a full position are below the lot step of 1000 "
        "lots");
    refuses(RUN("train", "run.yaml", "run.dir=none", "account.spread=0.09"),
        "account: no order can ever be opened: the cash of 100000 does not cover the margin and the costs");
    assert_int_not_equal(access("none", F_OK), 0);
    walk_put("other.csv", 3000, 900, 2);
    kinds_shell("head -n 1200 bars.csv >brief.csv");
    works(RUN("import", "--symbol", "AAA", "other.csv", "--symbol", "BBB", "brief.csv", "-o", "two.npz", "-q"));
    works(RUN("train", "run.yaml", "--device=cpu", "data.set=two.npz", "run.dir=both", "agent.limit=500"));
    matches("out",
        "\nleft out +1 stretch of the training part, [0-9]+ bars in all, is shorter than an episode of 500 steps");
    assert_true(file_holds("both/training_log.txt", "left out: 1 stretch of the training part"));
}

// As of a model: what is odd in them is told where the run begins, of each member anew, and by plan.
static void files_of_bars_are_told(void **state) {
    (void)state;
    static const char line[] =
        "\nbars +bars\\.csv: 3,000 bars of 15 min, [^\n]*\ndata +[0-9,]+ bars to train on, [0-9,]+ of "
        "validation \\(bars\\); [0-9]+ numbers observed\n";
    put_text("file.yaml", "data: {bars: {fast: bars.csv}, vector: false, features: {fast: [return, body]}}\n"
                          "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1, limit: 40,\n"
                          "  total_timesteps: 128}\nmodel: {widths: 6}\nrun: {dir: told}\n");
    works(RUN("plan", "file.yaml", "--device=cpu"));
    matches("out", line);
    works(RUN("train", "file.yaml", "--device=cpu", "train.ensemble=2"));
    matches("out", line);
    kinds_shell("test $(grep -c '^bars ' out) = 2");
    works(RUN("plan", "file.yaml", "--device=cpu", "-q"));
    assert_false(file_holds("out", "bars.csv"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, support_leave)
    struct CMUnitTest tests[] = {
        TEST(a_backtest_has_the_books_of_the_environment),
        TEST(a_backtest_tells_and_keeps),
        TEST(a_ruined_agent_trades_no_more),
        TEST(one_of_several_instruments_is_traded),
        TEST(weights_know_their_data),
        TEST(actions_are_told_bar_by_bar),
        TEST(the_newest_bar_is_answered),
        TEST(numbers_are_answers_too),
        TEST(an_evaluation_has_accounts_and_is_kept),
        TEST(accounts_of_several_instruments_are_drawn),
        TEST(an_account_that_cannot_trade_is_told),
        TEST(training_tells_what_is_not_traded),
        TEST(files_of_bars_are_told),
    };
    return parts_run("agent_use", tests, sizeof tests / sizeof *tests);
}
