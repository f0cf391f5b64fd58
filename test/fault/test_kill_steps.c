// Runs that are killed at fixed steps: just before every file that a run puts in place, one after the other, mid-epoch
// and at the ends of epochs. What a checkpoint does not keep is lost at the same place every time, so it is found every
// time. Taken up again, each run ends as one that was never stopped: weights, moments, best weights, rows of run.db.
//
// Time goes by the readings of the clock (shim.c), so that checkpoints come at the same steps on every machine.
#include "cli/program.h"
#include "fault/kinds.h"
#include "run/same.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS_MOST = 9, WORDS_MOST = KEYS_MOST + 6 };

// One run: its keys, and what an undisturbed one must have gone through, or the row would show nothing.
typedef struct {
    const char *keys[KEYS_MOST];
    int rates;  // different learning rates, at least
    bool early; // it stops early
    int marks;  // checkpoints in the middle of an epoch, at least
} steps_case;

// Each plateau row waits for epochs with a better metric, of which there are none: improvements of half do not come.
#define PLATEAU "train.schedule.kind=plateau", "train.schedule.threshold=0.5", "train.schedule.factor=0.5"

static const steps_case cases[] = {
    {{PLATEAU, "train.schedule.patience=2", "train.patience=8", "train.epochs=12"}, 3, false, 8},
    {{PLATEAU, "train.schedule.patience=1", "train.patience=3", "train.epochs=30", "train.checkpoint_minutes=0",
         "train.checkpoint_every=1"},
        2, true, 0},
    {{"model.kind=lstm", "model.dropout=0.2", "train.schedule.kind=cosine", "train.epochs=4",
         "gpu_optimization.gradient_accumulation_steps=2"},
        4, false, 4},
};

static void put_description(void) {
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", "data: {synthetic: {bars: 1000}, windows: {fast: 8, slow: 4}}\n"
                         "model: {widths: 6, hidden: {fast: 4, slow: 4}, kind: mlp}\n"
                         "train: {batch_size: 64, checkpoint_minutes: 0.0002, checkpoint_every: 2}\n"
                         "run: {dir: made}\n"
                         "gpu_optimization: {memory_monitoring: false}\n");
}

static int run_with(const steps_case *c, const fault *f, bool resume) {
    const char *words[WORDS_MOST] = {"train", "run.yaml", "--device=cpu", "--threads=1"};
    int n = 4, status;
    for (int i = 0; i < KEYS_MOST && c->keys[i]; i++) words[n++] = c->keys[i];
    if (resume) words[n++] = "--resume";
    pid_t child = fault_start(words, f, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

// The steps of an undisturbed run

static int ask(const char *query) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open("whole/run.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

static void check_whole(const steps_case *c) {
    int rates = ask("SELECT count(DISTINCT value) FROM metrics WHERE name = 'lr'");
    int marks = ask("SELECT count(*) FROM events WHERE kind = 'checkpoint' AND text LIKE '%step%'");
    int early = ask("SELECT count(*) FROM run WHERE note = 'stopped early'");
    print_message("%d learning rates, %d checkpoints in epochs, %s\n", rates, marks, early ? "stopped early" : "done");
    if (rates < c->rates || marks < c->marks || early != c->early) fail_msg("the run shows too little");
}

static void check_case(const steps_case *c) {
    int64_t all, opening;
    fault f = {.call = "rename", .how = "kill"};
    kinds_shell("rm -rf made whole");
    if (run_with(c, &f, false) != 0) is_empty("err");
    kind_calls(&all, &opening);
    kinds_shell("mv made whole");
    check_whole(c);
    for (f.at = 1; f.at <= all; f.at++) {
        kinds_shell("rm -rf made");
        int status = run_with(c, &f, false);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (run_with(c, NULL, access("made/config.yaml", F_OK) == 0) != 0) is_empty("err");
        same_runs("whole", "made");
    }
    print_message("killed before each of %lld files\n", (long long)all);
}

static void runs_killed_at_each_file_lose_nothing(void **state) {
    (void)state;
    if (support_sanitized()) skip();
    put_description();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

// Checkpoints in an epoch are a time apart, which is 24 readings of the clock here; a step takes a few of them.
static void checkpoints_keep_their_distance(void **state) {
    (void)state;
    if (support_sanitized()) skip();
    put_description();
    if (run_with(&cases[0], NULL, false) != 0) is_empty("err");
    kinds_shell("mv made whole");
    int least =
        ask("SELECT min(b.step - (SELECT max(a.step) FROM events a WHERE a.kind = 'checkpoint' AND a.id < b.id))"
            " FROM events b WHERE b.kind = 'checkpoint' AND b.text LIKE '%step%'");
    print_message("at least %d steps apart\n", least);
    assert_true(least >= 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(runs_killed_at_each_file_lose_nothing),
        TEST(checkpoints_keep_their_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
