// tradewind live with agents, from outside: a replay gives the actions and trades of a backtest of the same bars,
// however bars come and wherever the history ends; a session that was killed goes on with what its agent remembers.
#include "cli/program.h"
#include "data/walk.h"
#include "data/when.h"
#include "live/kept.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1200, SPAN = 300 };

static void put_run(const char *path, const char *data, const char *model) {
    char text[900];
    snprintf(text, sizeof text,
        "data: {%s, split: {train: 0.5, validation: 0.2}}\n"
        "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, lags: 3, total_timesteps: 512,\n"
        "  limit: 50, learning_rate: 0.03, normalize_observation: true}\n"
        "account: {spread: 0.0001, commission: 0.00002, swap_long: -0.0001}\n"
        "model: {%s}\nrun: {dir: run}\ngpu_optimization: {memory_monitoring: false}\n",
        data, model);
    put_text(path, text);
}

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("train.csv", N, SPAN, 4);
    walk_put("b.csv", N, SPAN, 5);
    put_run("run.yaml",
        "bars: {fast: train.csv}, frames: [1h], vector: false, features: {fast: [return, body, rsi_14], "
        "slow: [return]}",
        "widths: 8-8");
    return 0;
}

#define TRAIN_OF(file, run, ...)                                                                                       \
    assert_int_equal(RUN("train", file, "-q", "--device=cpu", "run.dir=" run, __VA_ARGS__), 0)
#define TRAIN(run, ...)  TRAIN_OF("run.yaml", run, __VA_ARGS__)
#define REPLAY(run, ...) RUN("live", run, "--feed", "replay:b.csv", "-q", "--history", "none", __VA_ARGS__)

// Lines of `predict` as the journal has them: the numbers of the columns from the first to the last named.
static char *predicted(const char *first, int width) {
    char *text = slurp("p.csv"), *to = NULL, *save = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&to, &bytes);
    char *header = strtok_r(text, "\n", &save), *names = NULL;
    int before = 0;
    for (char *name = strtok_r(header, ",", &names); name && strcmp(name, first); name = strtok_r(NULL, ",", &names))
        before++;
    for (char *line; (line = strtok_r(NULL, "\n", &save));) {
        for (int i = 0; i < before; i++) line = strchr(line, ',') + 1;
        fputc('[', f);
        for (int k = 0; k < width; k++) {
            fprintf(f, "%s%.9g", k ? "," : "", (double)strtof(line, NULL));
            line += strcspn(line, ",") + 1;
        }
        fputs("]\n", f);
    }
    fclose(f);
    free(text);
    return to;
}

static const char answers[] = "SELECT answer FROM decisions WHERE answer IS NOT NULL ORDER BY time";

// Labelled bars are what `predict` answers; a session goes on to the newest one.
static void check_answers(const char *state, bool choices) {
    char *is = kept_rows(state, answers), *want = predicted(choices ? "p_short" : "direction", choices ? 3 : 2);
    if (strncmp(is, want, strlen(want)) != 0) fail_msg("%s: answers differ:\n%.200s\n---\n%.200s", state, is, want);
    assert_true(strlen(want) > 1000);
    free(is);
    free(want);
}

static void check_replay(const char *run, bool choices) {
    char state[64];
    snprintf(state, sizeof state, "%s.db", run);
    assert_int_equal(RUN("backtest", run, "--bars", "b.csv", "--trades", "bt.csv", "-q"), 0);
    assert_int_equal(REPLAY(run, "--state", state, "--trades", "lv.csv"), 0);
    same_bytes("bt.csv", "lv.csv");
    assert_true(kept_number(state, "SELECT count(*) FROM trades") > 2);
    assert_int_equal(
        RUN("predict", run, "data.bars.fast=b.csv", "--part", "all", "-o", "p.csv", "-q", "--device", "cpu"), 0);
    check_answers(state, choices);
}

static void a_replay_is_a_backtest(void **state) {
    (void)state;
    TRAIN("mlp", "train.seed=1");
    check_replay("mlp", true);
    TRAIN("lstm", "agent.lstm=8", "agent.actions=continuous");
    check_replay("lstm", false);
    put_run(
        "attends.yaml", "bars: {fast: train.csv}, vector: true", "kind: transformer, width: 8, heads: 2, layers: 1");
    walk_put("train.csv", 2000, SPAN, 4); // the strategies look back far
    walk_put("b.csv", 2000, SPAN, 5);
    TRAIN_OF("attends.yaml", "transformer", "agent.lags=6");
    check_replay("transformer", true);
}

// An account without short positions is asked for none, by whoever carries intents out neither.
static void short_is_flat_where_the_account_takes_none(void **state) {
    (void)state;
    TRAIN("mlp", "account.short=false");
    check_replay("mlp", true);
    assert_true(kept_number("mlp.db", "SELECT count(*) FROM decisions WHERE side < 0") > 2);
    assert_int_equal(kept_number("mlp.db", "SELECT count(*) FROM decisions WHERE units < 0"), 0);
    assert_int_equal(kept_number("mlp.db", "SELECT count(*) FROM intents WHERE lots < 0 OR units < 0"), 0);
    assert_true(kept_number("mlp.db", "SELECT count(*) FROM intents WHERE lots = 0") > 2);
}

// Books that run out of money, days that end, bars that the model does not know.
static void so_is_one_that_is_ruined(void **state) {
    (void)state;
    static const char *const words[] = {"account.spread=0.02", "agent.ruin=0.97", "live.max_loss=none"};
    TRAIN("mlp", "agent.lstm=8");
    assert_int_equal(RUN("backtest", "mlp", "--bars", "b.csv", "--trades", "bt.csv", "-q", words[0], words[1]), 0);
    assert_int_equal(REPLAY("mlp", "--state", "s.db", "--trades", "lv.csv", words[0], words[1], words[2]), 0);
    same_bytes("bt.csv", "lv.csv");
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM events WHERE kind = 'ruin'"), 1);
    assert_int_equal(kept_number("s.db", "SELECT units FROM books"), 0);
    assert_true(kept_number("s.db", "SELECT count(*) FROM decisions WHERE why LIKE 'the agent is ruined%'") > 10);
}

static void put_prices(const char *path, const char *mode, int from, int to, double by) {
    bar *all = walk_bars(N, SPAN, 5);
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    if (*mode == 'w') fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = all + from; b < all + to; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open * by, b->high * by, b->low * by,
            b->close * by, b->volume, b->spread);
    fclose(f);
    free(all);
}

// Bars that nobody can trade may ruin it, too, also where the price has come back by the first one that can be traded:
// they lie in the file when it is opened, with a price that goes both ways.
static void bars_that_are_caught_up_may_ruin_it(void **state) {
    (void)state;
    enum { PART = 400 };
    TRAIN("mlp", "agent.lstm=8");
    put_prices("grows.csv", "w", 0, PART, 1);
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:grows.csv", "-q", "--history", "none", "--state", "s.db"), 0);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM events WHERE kind = 'ruin'"), 0);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM books WHERE units <> 0 OR order_units <> 0"), 1);
    put_prices("grows.csv", "a", PART, PART + 2, 1);
    put_prices("grows.csv", "a", PART + 2, PART + 3, 0.2);
    put_prices("grows.csv", "a", PART + 3, PART + 4, 1.9);
    put_prices("grows.csv", "a", PART + 4, PART + 8, 1);
    const char *const words[] = {"live", "mlp", "--feed", "grows.csv", "-q", "--history", "none", "--state", "s.db",
        "live.max_loss=none", "live.max_day_loss=none", NULL};
    pid_t child = program_start("out", words);
    for (int i = 0; i < 100 && kept_number("s.db", "SELECT count(*) FROM decisions") < PART + 6; i++) usleep(100000);
    kill(child, SIGTERM);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(kept_number("s.db", "SELECT count(*) FROM decisions WHERE kind = 'caught_up'") > 3);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM events WHERE kind = 'ruin'"), 1);
}

// An ensemble's members answer together, and remember each for itself, over restarts, too.
static void members_decide_together(void **state) {
    (void)state;
    TRAIN("all", "agent.lstm=4", "train.ensemble=2");
    assert_int_equal(RUN("backtest", "all", "--bars", "b.csv", "--trades", "bt.csv", "-q"), 0);
    assert_int_equal(
        RUN("live", "all", "--feed", "replay:b.csv", "--history", "none", "--state", "s.db", "--trades", "lv.csv"), 0);
    matches("out", "run +all, an ensemble\n");
    same_bytes("bt.csv", "lv.csv");
    assert_true(kept_number("s.db", "SELECT count(*) FROM trades") > 10);
    for (int end = 300; end < N + 300; end += 300) {
        put_prices("part.csv", "w", 0, end < N ? end : N, 1);
        assert_int_equal(
            RUN("live", "all", "--feed", "replay:part.csv", "-q", "--history", "none", "--state", "parts.db"), 0);
    }
    kept_same("s.db", "parts.db");
}

// Parts the run's bars: those that `predict` has rows of, and those before.
static void cut_at_predicted(void) {
    char *text = slurp("p.csv"), *bars = slurp("train.csv"), *save = NULL, when[32];
    bar *all = walk_bars(N, SPAN, 4);
    int64_t count = -1, from = 0;
    for (const char *c = text; *c; c++) count += *c == '\n';
    const char *first = strchr(text, '\n') + 1;
    while (from < N && strncmp(when_text(when, sizeof when, all[from].time), first, 16) != 0) from++;
    assert_true(from > 0 && from < N);
    FILE *before = fopen("before.csv", "w"), *rest = fopen("rest.csv", "w");
    assert_true(before && rest);
    char *line = strtok_r(bars, "\n", &save);
    fprintf(before, "%s\n", line);
    fprintf(rest, "%s\n", line);
    for (int64_t k = 0; (line = strtok_r(NULL, "\n", &save)) && k < from + count; k++)
        fprintf(k < from ? before : rest, "%s\n", line);
    fclose(before);
    fclose(rest);
    free(text);
    free(bars);
    free(all);
}

// The test part of the run's own data, with the bars before it as history: wherever that part begins.
static void the_history_may_end_anywhere(void **state) {
    (void)state;
    static const char *const splits[] = {"data.split.train=0.5", "data.split.train=0.613", "data.split.train=0.57"};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        TRAIN("own", "agent.lstm=4", splits[i]);
        assert_int_equal(RUN("predict", "own", "--part", "test", "-o", "p.csv", "-q", "--device", "cpu"), 0);
        assert_int_equal(RUN("backtest", "own", "--trades", "bt.csv", "-q"), 0);
        cut_at_predicted();
        assert_int_equal(
            RUN("live", "own", "--feed", "replay:rest.csv", "-q", "--state", "a.db", "--trades", "lv.csv"), 0);
        same_bytes("bt.csv", "lv.csv");
        check_answers("a.db", true);
        assert_int_equal(
            RUN("live", "own", "--feed", "replay:rest.csv", "-q", "--state", "b.db", "--history", "before.csv"), 0);
        kept_same("a.db", "b.db");
        unlink("a.db");
        unlink("b.db");
    }
}

static void put_head(const char *path, int lines) {
    char line[256];
    FILE *from = fopen("b.csv", "r"), *to = fopen(path, "w");
    assert_true(from && to);
    for (int i = 0; i <= lines && fgets(line, sizeof line, from); i++) fputs(line, to);
    fclose(from);
    fclose(to);
}

// Parts of a file one after the other, lines with pauses, kills: all have what one session has.
static void a_session_goes_on(void **state) {
    (void)state;
    TRAIN("mlp", "agent.lstm=8");
    assert_int_equal(REPLAY("mlp", "--state", "whole.db"), 0);
    static const int ends[] = {2, 200, 201, 700, 1100, N};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        put_head("part.csv", ends[i]);
        assert_int_equal(
            RUN("live", "mlp", "--feed", "replay:part.csv", "-q", "--history", "none", "--state", "parts.db"), 0);
    }
    kept_same("whole.db", "parts.db");
    char line[700];
    snprintf(line, sizeof line,
        "(head -n 500 b.csv; sleep 0.2; tail -n +501 b.csv | head -n 300; sleep 0.1; tail -n +801 b.csv) | %s live mlp "
        "--feed - -q --history none --state lines.db live.late=none live.stale=none live.max_loss=none "
        "live.max_day_loss=none live.max_exposure=none live.max_orders=none live.outside_share=none",
        TRADEWIND_BINARY);
    assert_int_equal(system(line), 0);
    kept_same("whole.db", "lines.db");
}

static void it_is_killed_and_goes_on(void **state) {
    (void)state;
    TRAIN("mlp", "agent.lstm=8");
    double began = support_seconds();
    assert_int_equal(REPLAY("mlp", "--state", "whole.db"), 0);
    double took = support_seconds() - began;
    int kills = 0;
    for (int i = 0; i < 12; i++) {
        int status;
        const char *const words[] = {
            "live", "mlp", "--feed", "replay:b.csv", "-q", "--history", "none", "--state", "k.db", NULL};
        pid_t child = program_start("out", words);
        usleep((useconds_t)(1e6 * took * (0.3 + 0.06 * i)));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status);
    }
    print_message("%d kills\n", kills);
    assert_int_equal(REPLAY("mlp", "--state", "k.db"), 0);
    kept_same("whole.db", "k.db");
}

static void put_two(void) {
    FILE *f = fopen("two.csv", "w");
    assert_non_null(f);
    fputs("symbol,time,open,high,low,close,tick_volume,spread\n", f);
    for (int k = 0; k < 2; k++) {
        bar *all = walk_bars(N, SPAN, 8 + (uint64_t)k);
        for (const bar *b = all; b < all + N; b++)
            fprintf(f, "%s,%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", k ? "BBB" : "AAA", (long long)b->time, b->open,
                b->high, b->low, b->close, b->volume, b->spread);
        free(all);
    }
    fclose(f);
}

// A backtest of a set ends with its last labelled bar, and its last trade there.
static void check_trades_begin(void) {
    char *want = slurp("bt.csv"), *is = slurp("lv.csv");
    for (int i = 0; i < 2; i++) *strrchr(want, '\n') = 0;
    assert_true(strlen(want) > 200);
    if (strncmp(want, is, strlen(want)) != 0) fail_msg("trades differ:\n%.400s\n---\n%.400s", want, is);
    free(want);
    free(is);
}

// Each instrument has an account and a memory of its own, also where each has a scale of its own.
static void several_are_traded_at_once(void **state) {
    (void)state;
    put_two();
    assert_int_equal(RUN("import", "two.csv", "--frames", "1h", "--features", "slow=return", "--features",
                         "fast=return,rsi_14", "--no-vector", "-o", "two.npz", "-q"),
        0);
    put_run("two.yaml", "set: two.npz, scale: own", "widths: 8-8");
    TRAIN_OF("two.yaml", "two", "agent.lstm=4");
    assert_int_equal(RUN("live", "two", "--feed", "replay:two.csv", "-q", "--history", "none", "--state", "two.db"), 0);
    for (int k = 0; k < 2; k++) {
        const char *symbol = k ? "BBB" : "AAA";
        char sql[120];
        assert_int_equal(RUN("live", "two", "--feed", "replay:two.csv", "-q", "--history", "none", "--symbol", symbol,
                             "--state", k ? "b.db" : "a.db", "--trades", "lv.csv"),
            0);
        assert_int_equal(RUN("backtest", "two", "--part", "all", "--symbol", symbol, "--trades", "bt.csv", "-q"), 0);
        check_trades_begin();
        snprintf(sql, sizeof sql, "SELECT entry, exit, result FROM trades WHERE symbol = '%s' ORDER BY id", symbol);
        char *both = kept_rows("two.db", sql), *one = kept_rows(k ? "b.db" : "a.db", sql);
        assert_string_equal(both, one);
        assert_true(strlen(one) > 20);
        free(both);
        free(one);
    }
}

static void what_makes_no_sense_is_told(void **state) {
    (void)state;
    TRAIN("mlp", "train.seed=1");
    put_text("cart.yaml", "agent: {env: cartpole, n_envs: 2, n_steps: 16, batch_size: 32, total_timesteps: 64}\n"
                          "model: {widths: 8-8}\nrun: {dir: cart}\n");
    TRAIN_OF("cart.yaml", "cart", "train.seed=1");
    assert_int_equal(REPLAY("mlp", "--state", "s.db"), 0);
    assert_int_equal(REPLAY("mlp", "--model-dir", "."), 2);
    matches("err", "--model-dir: mlp is of an agent, which no other replaces");
    assert_int_equal(RUN("live", "--drift", "s.db"), 2);
    matches("err", "of an agent, whose actions have no label");
    assert_int_equal(RUN("live", "--status", "s.db"), 0);
    assert_int_equal(REPLAY("mlp", "signal.threshold=0.4"), 2);
    matches("err", "signal.threshold=0.4: has no effect on an agent");
    assert_int_equal(REPLAY("cart", "-v"), 2);
    matches("err", "has no bars to trade on");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_replay_is_a_backtest, setup, support_leave),
        cmocka_unit_test_setup_teardown(short_is_flat_where_the_account_takes_none, setup, support_leave),
        cmocka_unit_test_setup_teardown(so_is_one_that_is_ruined, setup, support_leave),
        cmocka_unit_test_setup_teardown(bars_that_are_caught_up_may_ruin_it, setup, support_leave),
        cmocka_unit_test_setup_teardown(members_decide_together, setup, support_leave),
        cmocka_unit_test_setup_teardown(the_history_may_end_anywhere, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_session_goes_on, setup, support_leave),
        cmocka_unit_test_setup_teardown(it_is_killed_and_goes_on, setup, support_leave),
        cmocka_unit_test_setup_teardown(several_are_traded_at_once, setup, support_leave),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_told, setup, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
