// Walks of agents that are killed: at fixed places, just before every file that they put in place, and 20 times at
// moments spread over their time, with folds side by side. Gone on with, each leaves what an undisturbed one leaves.
//
// Runs in: test-long
#include "cli/program.h"
#include "cli/walks.h"
#include "data/walk.h"
#include "fault/kinds.h"
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

enum { KILLS = 20 };

static void put_walk(const char *steps) {
    char text[800];
    snprintf(text, sizeof text,
        "data: {set: set.npz}\n"
        "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 2, limit: 40,\n"
        "  total_timesteps: %s, evaluate_every: 2, learning_rate: 0.01, normalize_reward: true,\n"
        "  normalize_observation: true}\n"
        "model: {widths: 6}\n"
        "train: {checkpoint_minutes: 0.0001, checkpoint_every: 2, patience: 9}\n"
        "walk: {train: 500, validation: 100, test: 150, folds: 2}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n",
        steps);
    put_text("walk.yaml", text);
}

static int enter(void **state) {
    int rc = support_enter(state);
    if (rc) return rc;
    program_use(TRADEWIND_BINARY);
    walk_put("bars.csv", 4000, 300, 1);
    return RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "-q");
}

static int walk_once(const fault *f, bool resume) {
    const char *words[] = {
        "walk", "walk.yaml", "--device=cpu", "--threads=1", "walk.jobs=1", resume ? "--resume" : NULL, NULL};
    int status;
    pid_t child = fault_start(words, f, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void killed_before_each_file(void **state) {
    (void)state;
    int64_t all, opening;
    fault f = {.call = "rename", .how = "kill"};
    if (support_sanitized()) skip(); // its runtime must be loaded first
    put_walk("256");
    if (walk_once(&f, false) != 0) is_empty("err");
    kind_calls(&all, &opening);
    kinds_shell("mv made whole");
    assert_true(all >= 10);
    for (f.at = 1; f.at <= all; f.at++) {
        kinds_shell("rm -rf made");
        int status = walk_once(&f, false);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (walk_once(NULL, access("made/config.yaml", F_OK) == 0) != 0) is_empty("err");
        same_walks("whole", "made");
    }
    print_message("killed before each of %lld files\n", (long long)all);
}

// The same walk twice has the same bits; so has one that is killed again and again, side by side or not.
static void killed_at_moments(void **state) {
    (void)state;
    static const char *const words[] = {"walk", "walk.yaml", "--device=cpu", "walk.jobs=2", NULL};
    put_walk("19200");
    int killed = walk_killed(words, KILLS);
    print_message("%d kills, %d of them before the end\n", KILLS, killed);
    assert_true(killed >= KILLS / 2);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=1", "run.dir=once"), 0);
    same_walks("whole", "once");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(killed_before_each_file),
        TEST(killed_at_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
