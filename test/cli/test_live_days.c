// tradewind live where days end in the account (account.day_close): trades are those of a backtest as long as days end
// as their hours say, for a model and for an agent; a day that ends earlier is told, and closes at the next open.
#include "cli/program.h"
#include "data/walk.h"
#include "live/kept.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1600, DAY = 86400, FIRST = 19660 };

// A market's days: span of its bars, how many of them, and when it opens.
typedef struct {
    int span, bars, opens;
} market;

static const market office = {1800, 16, 28800}, always = {300, 288, 0}, half_days = {14400, 2, 28800},
                    whole_days = {7200, 12, 0};

// Bars of a market from a day on; day `cut` ends after half of its bars.
static void put_market_from(const char *path, int64_t first, const market *m, uint64_t seed, int cut) {
    bar *all = walk_bars(N, m->span, seed);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (int i = 0; i < N; i++) {
        const bar *b = &all[i];
        int day = i / m->bars, slot = i % m->bars;
        if (day == cut && slot >= m->bars / 2) continue;
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)(first + day) * DAY + m->opens + slot * m->span,
            b->open, b->high, b->low, b->close, b->volume, b->spread);
    }
    fclose(f);
    free(all);
}

static void put_market(const char *path, const market *m, uint64_t seed, int cut) {
    put_market_from(path, FIRST, m, seed, cut);
}

static int setup(void **state) {
    if (support_enter(state)) return -1;
    put_market("train.csv", &office, 4, -1);
    put_market("b.csv", &office, 5, -1);
    put_text("mlp.yaml",
        "data: {bars: {fast: train.csv}, vector: false, windows: {fast: 8}, features: {fast: [return, body]},\n"
        "  label: {kind: barrier, up: 1.5, down: 1, limit: 6}}\n"
        "model: {kind: mlp, widths: '8'}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: mlp}\n"
        "signal: {threshold: 0.2}\naccount: {day_close: on, spread: 0.0001}\n");
    put_text("ppo.yaml", "data: {bars: {fast: train.csv}, vector: false, features: {fast: [return, body]}}\n"
                         "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, lags: 2,\n"
                         "  total_timesteps: 512, limit: 50, learning_rate: 0.03}\n"
                         "model: {widths: 8-8}\nrun: {dir: ppo}\naccount: {day_close: on, spread: 0.0001}\n");
    for (int k = 0; k < 2; k++) assert_int_equal(RUN("train", k ? "ppo.yaml" : "mlp.yaml", "-q", "--device", "cpu"), 0);
    return 0;
}

#define REPLAY(run, ...) RUN("live", run, "--feed", "replay:b.csv", "-q", "--history", "none", __VA_ARGS__)

static const char by_day[] = "SELECT count(*) FROM trades WHERE reason = 'day'";

static void check_replay(const char *run) {
    char state[32];
    snprintf(state, sizeof state, "%s.db", run);
    assert_int_equal(RUN("backtest", run, "--bars", "b.csv", "--trades", "bt.csv", "-q"), 0);
    assert_int_equal(REPLAY(run, "--state", state, "--trades", "lv.csv"), 0);
    same_bytes("bt.csv", "lv.csv");
    assert_true(kept_number(state, by_day) > 20);
    assert_int_equal(kept_number(state, "SELECT count(*) FROM events WHERE kind = 'day_close'"), 0);
    // Whoever carries intents out is told of each day's end.
    assert_int_equal(
        kept_number(state, "SELECT count(*) FROM trades t WHERE reason = 'day' AND NOT EXISTS (SELECT 1 FROM "
                           "intents i WHERE i.time = t.exit + 1800)"),
        0);
}

static void a_day_ends_as_in_a_backtest(void **state) {
    (void)state;
    check_replay("mlp");
    check_replay("ppo");
    put_market("b.csv", &always, 5, -1); // of few days, from which no hours are learned
    put_market("train.csv", &always, 4, -1);
    assert_int_equal(RUN("train", "mlp.yaml", "-q", "--device", "cpu", "run.dir=always"), 0);
    assert_int_equal(RUN("backtest", "always", "--bars", "b.csv", "--trades", "bt.csv", "-q"), 0);
    assert_int_equal(REPLAY("always", "--state", "a.db", "--trades", "lv.csv"), 0);
    same_bytes("bt.csv", "lv.csv");
    assert_true(kept_number("a.db", by_day) > 1);
}

static void check_replay_of(const market *m, int64_t first, const char *run) {
    char dir[32], state[32];
    snprintf(dir, sizeof dir, "run.dir=%s", run);
    snprintf(state, sizeof state, "%s.db", run);
    put_market("train.csv", m, 4, -1);
    put_market_from("b.csv", first, m, 5, -1);
    assert_int_equal(RUN("train", "mlp.yaml", "-q", "--device", "cpu", dir), 0);
    assert_int_equal(RUN("backtest", run, "--bars", "b.csv", "--trades", "bt.csv", "-q"), 0);
    assert_int_equal(REPLAY(run, "--state", state, "--trades", "lv.csv"), 0);
    same_bytes("bt.csv", "lv.csv");
    assert_true(kept_number(state, by_day) > 20);
    assert_true(kept_number(state, "SELECT count(*) FROM trades WHERE reason <> 'day'") > 0);
}

// Bars of years before the newest of the run, whose hours are those of its older bars; and of years before all of them,
// where nothing is known but midnight.
static void so_it_does_years_before(void **state) {
    (void)state;
    check_replay_of(&half_days, FIRST, "half"); // of 800 days
    check_replay_of(&whole_days, FIRST - 3000, "whole");
}

// Parts of the file one after the other: the end of a file is no end of a day.
static void a_restart_ends_no_day(void **state) {
    (void)state;
    char line[200];
    assert_int_equal(REPLAY("mlp", "--state", "whole.db"), 0);
    for (int n = 701; n < N + 300; n += 301) {
        snprintf(line, sizeof line, "head -n %d b.csv > part.csv", n);
        assert_int_equal(system(line), 0);
        assert_int_equal(
            RUN("live", "mlp", "--feed", "replay:part.csv", "-q", "--history", "none", "--state", "parts.db"), 0);
    }
    kept_same("whole.db", "parts.db");
}

static void a_day_that_ends_early_is_told(void **state) {
    (void)state;
    int told = 0;
    for (int cut = 60; cut < 70; cut++) {
        put_market("b.csv", &office, 5, cut);
        assert_int_equal(REPLAY("mlp", "--state", "s.db", "--exec", "intents.jsonl"), 0);
        told += (int)kept_number("s.db", "SELECT count(*) FROM events WHERE kind = 'day_close'");
        // Nothing is held from one day to the next.
        assert_int_equal(
            kept_number("s.db", "SELECT count(*) FROM trades WHERE entry / 86400 < exit / 86400 AND exit % "
                                "86400 <> 28800"),
            0);
        assert_int_equal(system("rm -f s.db* intents.jsonl"), 0);
    }
    assert_true(told > 0);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_day_ends_as_in_a_backtest, setup, support_leave),
        cmocka_unit_test_setup_teardown(so_it_does_years_before, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_restart_ends_no_day, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_day_that_ends_early_is_told, setup, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
