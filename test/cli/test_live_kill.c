// Runs in: test-long
// A session that is killed: at random moments of a replay, and just before each write and each sync to a file. Taken up
// again until its feed ends, it has kept what one that was never killed has: decisions, intents, trades, books; and the
// lines of intents lack none, and repeat none with another content.
//
// LIVE_KILLS is how many are killed at random; TRADEWIND_TEST_SEED chooses other moments.
#include "base/json.h"
#include "cli/program.h"
#include "data/walk.h"
#include "fault/kinds.h"
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

enum { N = 2600, SPAN = 300, KILLS = 40, STARTS_MOST = 5000 };

// Runs that decide: a model, or an agent that remembers.
static const char *const deciders[] = {
    "data: {bars: {fast: train.csv}, frames: [1h], vector: false, windows: {fast: 12, slow: 4},\n"
    "  label: {kind: barrier, up: 1, down: 1, limit: 4}, features: {fast: [return, body], slow: [return]}}\n"
    "model: {kind: mlp, widths: '8'}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: run}\n"
    "signal: {threshold: 0.2}\n",
    "data: {bars: {fast: train.csv}, frames: [1h], vector: false, features: {fast: [return, body], slow: [return]}}\n"
    "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, lags: 3, total_timesteps: 512,\n"
    "  limit: 50, learning_rate: 0.03, normalize_observation: true, lstm: 8}\n"
    "model: {widths: 8-8}\nrun: {dir: run}\ntrain: {seed: 4}\n"};
enum { DECIDERS = sizeof deciders / sizeof *deciders };

static void put_run(int kind) {
    walk_put("train.csv", 1600, SPAN, 4);
    walk_put("b.csv", N, SPAN, 5);
    put_text("run.yaml", deciders[kind]);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
}

#define WORDS(state, exec)                                                                                             \
    "live", "run", "--feed", "replay:b.csv", "-q", "--history", "none", "--state", state, "--exec", exec,              \
        "account.commission=0.0001"

// Lines of intents: each id of the state is there, and always says the same.
static void check_lines(const char *exec, const char *state) {
    json_t *all = json_object();
    char line[1024], *ids = kept_rows(state, "SELECT id FROM intents ORDER BY id"), *save = NULL;
    size_t count = 0;
    FILE *f = fopen(exec, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *is = json_loads(line, 0, NULL);
        if (!is) fail_msg("%s: %s", exec, line);
        char id[32];
        snprintf(id, sizeof id, "%lld", (long long)json_integer_value(json_object_get(is, "id")));
        json_object_del(is, "repeat");
        const json_t *was = json_object_get(all, id);
        if (was && !json_equal(was, is)) fail_msg("intent %s was given twice, differently", id);
        json_object_set_new(all, id, is);
    }
    fclose(f);
    for (char *id = strtok_r(ids, "\n", &save); id; id = strtok_r(NULL, "\n", &save), count++)
        if (!json_object_get(all, id)) fail_msg("intent %s was not given", id);
    assert_int_equal(json_object_size(all), count);
    json_decref(all);
    free(ids);
}

static void check_state(const char *state, const char *exec) {
    kept_same("whole.db", state);
    check_lines(exec, state);
    char name[64];
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", state, ends[i]);
        unlink(name);
    }
    unlink(exec);
}

// Seconds that an undisturbed session takes.
static double run_whole(int kind) {
    put_run(kind);
    double began = support_seconds();
    assert_int_equal(RUN(WORDS("whole.db", "whole.jsonl")), 0);
    double took = support_seconds() - began;
    check_lines("whole.jsonl", "whole.db");
    assert_true(kept_number("whole.db", "SELECT count(*) FROM trades") > 10);
    return took;
}

static void killed_at_random(int kind) {
    const char *given = getenv("LIVE_KILLS"), *seed = getenv("TRADEWIND_TEST_SEED");
    int wanted = given ? atoi(given) : KILLS, kills = 0, ends = 0;
    program_copy(TRADEWIND_BINARY, NULL);
    dice d = {seed ? strtoull(seed, NULL, 10) : 1, 0};
    double took = run_whole(kind);
    for (int starts = 0; kills < wanted && starts < STARTS_MOST; starts++) {
        int status;
        const char *const words[] = {WORDS("k.db", "k.jsonl"), NULL};
        pid_t child = program_start("out", words);
        usleep((useconds_t)(1e6 * took * (double)dice_below(&d, 1000) / 900));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status);
        if (WIFSIGNALED(status)) continue;
        assert_int_equal(WEXITSTATUS(status), 0);
        check_state("k.db", "k.jsonl");
        ends++;
    }
    if (access("k.db", F_OK) == 0) {
        assert_int_equal(RUN(WORDS("k.db", "k.jsonl")), 0);
        check_state("k.db", "k.jsonl");
        ends++;
    }
    print_message("%d kills in %d sessions\n", kills, ends);
    assert_int_equal(kills, wanted);
}

static void killed_at_random_it_keeps_all(void **state) {
    (void)state;
    killed_at_random(0);
}

static void killed_at_random_an_agent_keeps_all(void **state) {
    (void)state;
    killed_at_random(1);
}

// Kills one session at a call of a kind, each start going on behind the one before: at calls up to `most`, or, where
// that is 0, one call later with each start, as a first call that kills would always do so.
static int kill_at_calls(const char *call, int64_t most) {
    int kills = 0, status = -1;
    for (int starts = 0; starts < STARTS_MOST && status != 0; starts++) {
        fault f = {.call = call, .at = 1 + (most ? (starts * 7) % most : starts), .how = "kill"};
        const char *const words[] = {WORDS("k.db", "k.jsonl"), NULL};
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status);
        if (!WIFSIGNALED(status)) assert_int_equal(status, 0);
    }
    check_state("k.db", "k.jsonl");
    return kills;
}

static void killed_at_a_write_it_keeps_all(void **state) {
    (void)state;
    for (int kind = 0; kind < DECIDERS; kind++) {
        program_use(TRADEWIND_BINARY);
        run_whole(kind);
        int writes = kill_at_calls("write", support_sanitized() ? 3000 : 700), syncs = kill_at_calls("sync", 0);
        print_message("%d kills at writes, %d at syncs\n", writes, syncs);
        assert_true(writes > 10 && syncs > 2);
        check_state("whole.db", "whole.jsonl");
    }
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_at_random_it_keeps_all, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(killed_at_random_an_agent_keeps_all, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(killed_at_a_write_it_keeps_all, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
