// Faults: the n-th write, sync, rename, unlink, open, mapping or allocation of a run fails, is cut short, or is where
// the run is killed. Afterwards the same command, without the fault, must end in what an undisturbed one leaves:
// nothing lost, nothing doubled, nothing silently different.
//
// Every n-th fault is tried, n being TRADEWIND_FAULTS_EVERY (40 where it is not set; `make faults` tries all).
#include "cli/program.h"
#include "data/walk.h"
#include "run/same.h"
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

enum { WORDS_MOST = 12, CALLS = 7, WAYS_MOST = 3 };

static const struct {
    const char *name;
    const char *ways[WAYS_MOST];
} calls[CALLS] = {
    {"write", {"fail", "short", "kill"}}, {"sync", {"fail", "kill"}}, {"rename", {"fail", "kill"}},
    {"unlink", {"fail", "kill"}}, {"open", {"fail", "kill"}}, {"mmap", {"fail", "kill"}},
    {"alloc", {"fail"}}, // of these one in ten
};

// A kind of run: the shell line that puts its inputs in place, its words, and how its result is compared with that of
// the undisturbed run, which lies in `whole`.
typedef struct {
    const char *name, *put;
    const char *words[WORDS_MOST];
    const char *again; // word that is added where it goes on, or NULL
    void (*check)(void);
} kind;

typedef struct {
    int64_t tried, killed, failed, passed; // passed: the fault had no effect
} tally;

static void shell(const char *line) {
    if (system(line) != 0) fail_msg("%s", line);
}

static void same_run(void) {
    same_runs("whole", "made");
}

// The earlier run is whole where it is, and so is the new one.
static void same_and_aside(void) {
    same_run();
    if (access("made.1", F_OK) == 0) shell("diff -r -x lock half made.1");
}

static void same_members(void) {
    same_runs("whole/member_1", "made/member_1");
    same_runs("whole/member_2", "made/member_2");
}

static void same_set(void) {
    same_bytes("whole", "set.npz");
}

static void same_answers(void) {
    same_bytes("whole", "p.csv");
}

static const kind kinds[] = {
    {"train", "rm -rf made*", {"train", "run.yaml"}, "--resume", same_run},
    {"resume", "rm -rf made* && cp -r half made", {"train", "run.yaml", "--resume"}, NULL, same_run},
    {"anew", "rm -rf made* && cp -r half made", {"train", "run.yaml"}, "--resume", same_and_aside},
    {"ensemble", "rm -rf made*", {"train", "run.yaml", "train.ensemble=2"}, "--resume", same_members},
    {"import", "rm -f set.npz", {"import", "bars.csv", "-o", "set.npz", "--frames=1h"}, NULL, same_set},
    {"append", "cp old.npz set.npz", {"import", "--append", "set.npz", "bars.csv"}, NULL, same_set},
    {"predict", "rm -f p.csv", {"predict", "first", "-o", "p.csv"}, NULL, same_answers},
};

// Starts a kind's command with a fault; at 0: none.
static int run_with(const kind *k, const char *call, const char *way, int64_t at) {
    const char *words[WORDS_MOST + 3] = {0};
    char number[32];
    int n = 0, status;
    for (; k->words[n]; n++) words[n] = k->words[n];
    words[n++] = "--device=cpu";
    words[n++] = "--threads=1";
    snprintf(number, sizeof number, "%lld", (long long)at);
    setenv("FAULT_CALL", call, 1);
    setenv("FAULT_HOW", way, 1);
    setenv("FAULT_AT", number, 1);
    setenv("FAULT_COUNT", "count", 1);
    setenv("LD_PRELOAD", FAULT_SHIM, 1);
    pid_t child = program_start("out", words);
    unsetenv("LD_PRELOAD");
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

// Calls of a process that came to its end.
static int64_t calls_made(void) {
    char *text = slurp("count");
    int64_t n = strtoll(text, NULL, 10);
    free(text);
    return n;
}

static int64_t count_calls(const kind *k, const char *call) {
    shell(k->put);
    assert_int_equal(run_with(k, call, "fail", 0), 0);
    return calls_made();
}

// The command once more, without a fault.
static void go_on(const kind *k) {
    const char *words[WORDS_MOST + 3] = {0};
    int n = 0;
    for (; k->words[n]; n++) words[n] = k->words[n];
    words[n++] = "--device=cpu";
    words[n++] = "--threads=1";
    if (k->again && access("made/config.yaml", F_OK) == 0) words[n++] = k->again;
    if (program_finish(program_start("out", words)) != 0) matches("err", "^$");
}

// A fault ends a command with status 1 and one line that gives the reason, or it has no effect. Rows of run.db are
// written by the clock, so the last calls of a kind may not come.
static void check_end(const kind *k, int status, const char *way, int64_t at, tally *t) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && strcmp(way, "kill") == 0) {
        t->killed++;
        return;
    }
    if (!WIFEXITED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    t->failed += WEXITSTATUS(status) == 1;
    t->passed += WEXITSTATUS(status) == 0;
    if (WEXITSTATUS(status) == 1) matches("err", "^tradewind: [^\n]+\n$");
    if (WEXITSTATUS(status) > 1) matches("err", "^$");
    if (WEXITSTATUS(status) == 0 && strcmp(way, "kill") == 0 && calls_made() >= at)
        fail_msg("%s: was not killed", k->name);
}

static void try_fault(const kind *k, const char *call, const char *way, int64_t at, tally *t) {
    print_message("%s: %s %lld: %s\n", k->name, call, (long long)at, way);
    shell(k->put);
    check_end(k, run_with(k, call, way, at), way, at, t);
    go_on(k);
    k->check();
    t->tried++;
}

static void try_kind(const kind *k, int every, int64_t *turn, tally *t) {
    for (int c = 0; c < CALLS; c++) {
        int64_t n = count_calls(k, calls[c].name), by = strcmp(calls[c].name, "alloc") == 0 ? 10 : 1;
        for (int w = 0; w < WAYS_MOST && calls[c].ways[w]; w++)
            for (int64_t at = 1; at <= n; at += by)
                if ((*turn)++ % every == 0) try_fault(k, calls[c].name, calls[c].ways[w], at, t);
    }
}

// Inputs of every kind of run: a run that was stopped after its first epoch, one that has ended, a set without its
// newest bars.
static void put_inputs(void) {
    put_text("run.yaml", "data: {set: train.npz, windows: {fast: 8, slow: 4}}\n"
                         "model: {kind: mlp, widths: 6}\n"
                         "train: {epochs: 2, batch_size: 64, checkpoint_minutes: 0, checkpoint_every: 1, patience: 9}\n"
                         "run: {dir: made}\n"
                         "gpu_optimization: {memory_monitoring: false}\n");
    walk_put("bars.csv", 3000, 300, 1);
    shell("head -n 2900 bars.csv > cut.csv");
    assert_int_equal(RUN("import", "bars.csv", "-o", "train.npz", "--frames=1h", "-q"), 0);
    assert_int_equal(RUN("import", "cut.csv", "-o", "old.npz", "--frames=1h", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=first", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=half", "--device=cpu", "train.epochs=1", "-q"), 0);
}

// Leaves the undisturbed result as `whole`.
static void put_whole(const kind *k) {
    shell(k->put);
    assert_int_equal(run_with(k, "write", "fail", 0), 0);
    shell(k->check == same_set       ? "rm -rf whole && cp set.npz whole"
          : k->check == same_answers ? "rm -rf whole && cp p.csv whole"
                                     : "rm -rf whole && cp -r made whole");
}

static void faults_lose_nothing(void **state) {
    (void)state;
    const char *given = getenv("TRADEWIND_FAULTS_EVERY");
    int every = given ? atoi(given) : 40;
    int64_t turn = 0;
    tally t = {0};
    assert_true(every > 0);
    if (support_sanitized()) {
        print_message("skipped: a sanitizer's runtime must be loaded first\n");
        skip();
    }
    put_inputs();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        put_whole(&kinds[i]);
        try_kind(&kinds[i], every, &turn, &t);
    }
    print_message("%lld of %lld faults: %lld killed, %lld ended with status 1, %lld without effect\n",
        (long long)t.tried, (long long)turn, (long long)t.killed, (long long)t.failed, (long long)t.passed);
    assert_true(t.killed > 0 && t.failed > 0);
}

// Durability

typedef struct {
    char what[16], path[200];
} event;

static int read_trace(event *list, int most) {
    FILE *f = fopen("trace", "r");
    assert_non_null(f);
    int n = 0;
    while (n < most && fscanf(f, "%15s %199s", list[n].what, list[n].path) == 2) n++;
    fclose(f);
    return n;
}

static bool is_event(const event *e, const char *what, const char *path) {
    return strcmp(e->what, what) == 0 && strcmp(e->path, path) == 0;
}

// A file that is renamed has been synced under its temporary name just before, and its directory is synced after.
static void check_rename(const event *list, int n, int i) {
    char dir[200], stem[208];
    snprintf(dir, sizeof dir, "%s", list[i].path);
    char *slash = strrchr(dir, '/');
    snprintf(stem, sizeof stem, "%s.", list[i].path);
    if (i == 0 || strcmp(list[i - 1].what, "sync") != 0 || strncmp(list[i - 1].path, stem, strlen(stem)) != 0)
        fail_msg("%s was renamed before it was synced", list[i].path);
    if (slash) *slash = 0;
    char here[4096];
    if (!slash) snprintf(dir, sizeof dir, "%.199s", getcwd(here, sizeof here) ? here : "");
    if (i + 1 == n || !is_event(&list[i + 1], "sync", dir)) fail_msg("%s was not synced after %s", dir, list[i].path);
}

static void trace(const kind *k) {
    unlink("trace");
    shell(k->put);
    setenv("FAULT_TRACE", "trace", 1);
    assert_int_equal(run_with(k, "write", "fail", 0), 0);
    unsetenv("FAULT_TRACE");
}

static void what_is_renamed_is_on_the_disk(void **state) {
    (void)state;
    static event list[512];
    if (support_sanitized()) skip();
    put_inputs();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int renames = 0;
        trace(&kinds[k]);
        int n = read_trace(list, 512);
        for (int i = 0; i < n; i++) {
            bool aside = strcmp(list[i].what, "rename") == 0 && strcmp(list[i].path, "made.1") == 0;
            if (strcmp(list[i].what, "rename") != 0 || aside) continue;
            check_rename(list, n, i);
            renames++;
        }
        assert_true(renames > 0);
    }
}

// Rows of run.db are on the disk before a checkpoint that follows them is.
static void a_checkpoint_finds_its_past(void **state) {
    (void)state;
    static event list[512];
    int synced = -1, checkpoints = 0;
    if (support_sanitized()) skip();
    put_inputs();
    trace(&kinds[0]);
    int n = read_trace(list, 512);
    for (int i = 0; i < n; i++) {
        if (is_event(&list[i], "sync", "made/run.db-wal")) synced = i;
        if (strcmp(list[i].what, "rename") != 0 || !strstr(list[i].path, "checkpoint_")) continue;
        if (synced < 0) fail_msg("run.db was not synced before %s", list[i].path);
        synced = -1;
        checkpoints++;
    }
    assert_true(checkpoints >= 2);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(faults_lose_nothing),
        TEST(what_is_renamed_is_on_the_disk),
        TEST(a_checkpoint_finds_its_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
