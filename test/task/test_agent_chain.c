// Backtests of walks of agents: one account that goes from agent to agent, with the books that each of them sees.
#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "support.h"
#include "task/agent_backtest.h"
#include "task/backtest_walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    walk_put("bars.csv", 4000, 300, 1);
    put_text("walk.yaml", "data: {set: set.npz}\n"
                          "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, limit: 40,\n"
                          "  total_timesteps: 512, learning_rate: 0.01}\n"
                          "model: {widths: 6}\n"
                          "account: {spread: 0.00005, commission: 0.00002}\n"
                          "walk: {train: 500, validation: 100, test: 130}\n"
                          "run: {dir: made}\n"
                          "gpu_optimization: {memory_monitoring: false}\n");
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "-q"), 0);
    return status;
}

static void trade(backtested_walk *w, const char *dir, const char *const *overrides, int count) {
    err e = {0};
    backtest_run_options o = {.run = {.run = dir,
                                  .overrides = overrides,
                                  .override_count = count,
                                  .devices = {.host = &cpu_device, .options = {.threads = 1}},
                                  .version = "test"}};
    support_ok(backtest_walk_make(w, &o, &e), &e);
}

// At the last close of every agent but the last one the replay has what that agent's environment has.
static void check_books(const backtested_walk *w, bool joined) {
    const backtest_fold *f = w->fold;
    for (int64_t i = 0; i + 1 < w->traded; i++) {
        assert_true(f[i].equity > 0 && w->all.replay.equity[f[i].to - f[0].from] == f[i].equity);
        assert_true(f[i + 1].from > f[i].from && (!joined || f[i].to == f[i + 1].from));
    }
    assert_int_equal(w->all.quotes.count, f[w->traded - 1].to + 1 - f[0].from);
}

static void one_account_goes_from_agent_to_agent(void **state) {
    (void)state;
    static const char *const costly[] = {"account.swap_long=-0.0001", "account.cash=5000", "account.slippage=2pt"};
    static const char *const ways[][3] = {{"walk.step=130"}, {"walk.step=80"}, {"walk.step=200"},
        {"agent.lstm=4", "agent.batch_size=64"}, {"agent.actions=continuous", "walk.start=warm"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        backtested_walk w;
        assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q", ways[i][0], ways[i][1] ? ways[i][1] : "-q"), 0);
        trade(&w, "made", costly, i ? 3 : 0);
        assert_true(w.traded >= 2 && w.traded == w.count && w.all.agent && w.all.replay.trades > 5);
        check_books(&w, true);
        backtest_walk_done(&w);
    }
}

// The account over a walk of one fold is that of the fold.
static void one_fold_is_its_backtest(void **state) {
    (void)state;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q", "walk.folds=1"), 0);
    assert_int_equal(RUN("backtest", "made", "--json"), 0);
    double equity = number("equity_final"), trades = number("trades");
    assert_int_equal(system("cp -r $(ls -d made/fold_*) fold"), 0);
    assert_int_equal(RUN("backtest", "fold", "--json"), 0);
    assert_true(number("equity_final") == equity && number("trades") == trades);
}

// A fold that is not there is told; the agent before it trades on.
static void missing_folds_and_ruin(void **state) {
    (void)state;
    backtested_walk w;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q"), 0);
    assert_int_equal(system("rm -r made/fold_02"), 0);
    trade(&w, "made", NULL, 0);
    assert_true(w.count >= 4 && w.traded == w.count - 1 && w.fold[1].why[0]);
    assert_int_equal(w.fold[0].to, w.fold[2].from);
    backtest_walk_done(&w);
    assert_int_equal(RUN("backtest", "made"), 0);
    matches("out", "\nmissing +fold 2, so that its rows have no answers: ");
    matches("out", "\nagent +greedy, short, flat or long, ");
    assert_int_equal(RUN("report", "made"), 0);
    // Costs that eat half of the money at the first fold already.
    assert_int_equal(RUN("backtest", "made", "account.spread=0.02"), 0);
    matches("out", "\nmissing +fold [0-9]+, so that its rows have no answers: the account was ruined before it\n");
    matches("out", "\nruin +at the close of the bar of ");
    complains(RUN("backtest", "made", "signal.threshold=0.5"), "signal.threshold=0.5: has no effect on an agent, .*");
}

static void paths_are_traded(void **state) {
    (void)state;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q", "walk.scheme=cpcv", "walk.groups=4",
                         "agent.total_timesteps=128"),
        0);
    assert_int_equal(RUN("backtest", "made"), 0);
    matches("out", "\n3 +[-+0-9.]+ % ");
    assert_int_equal(RUN("backtest", "made", "--json"), 0);
    json_t *line = last_line();
    assert_int_equal(json_array_size(json_object_get(line, "paths")), 3);
    json_decref(line);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(one_account_goes_from_agent_to_agent),
        TEST(one_fold_is_its_backtest),
        TEST(missing_folds_and_ruin),
        TEST(paths_are_traded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
