// Runs of the program that are killed at any moment and taken up again end with the same bits as one never stopped.
//
// Runs in: test-long
#include "cli/program.h"
#include "data/walk.h"
#include "run/checkpoint.h"
#include "run/same.h"
#include "support.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS_MOST = 6, KILLS = 8, KILLS_SANITIZED = 4, STARTS = 40 };

// The trained runs: each row a model and where its samples come from.
typedef struct {
    const char *keys[KEYS_MOST];
} killed_case;

static const killed_case killed_cases[] = {
    {{"model.kind=lstm", "model.dropout=0.2", "train.schedule.kind=cosine"}},
    {{"model.kind=mlp", "data.residency=host"}},
    {{"model.kind=transformer", "data.bars.fast=bars.csv", "model.hidden.fast=8"}},
    {{"model.kind=nbeats", "gpu_optimization.gradient_accumulation_steps=2", "train.schedule.kind=plateau"}},
    {{"model.kind=nbeats", "data.bars.fast=bars.csv", "data.label.kind=forecast"}},
};

// When a run is killed: some time after its start, while it writes a file, or as soon as a file is in place.
typedef enum { SOMEWHEN, IN_A_WRITE, BEHIND_A_WRITE, MOMENTS } moment;

typedef struct {
    dice dice;
    int events;    // inotify on the run's directory
    double whole;  // seconds that a run takes that is never stopped
    int kills;     // runs that were killed
    int unwritten; // of those, runs that left a file unfinished
} killer;

// TRADEWIND_TEST_SEED repeats the choices of an earlier run.
static uint64_t test_seed(void) {
    const char *given = getenv("TRADEWIND_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
    print_message("TRADEWIND_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

// Files of the directory whose names end so.
static int count_files(const char *dir, const char *end) {
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *each; d && (each = readdir(d));) n += ends_with(each->d_name, end);
    if (d) closedir(d);
    return n;
}

// True where there is a run to go on with; a directory that none was in is made anew, as it would be set aside.
static bool goes_on(void) {
    bool there = access("killed/training_log.txt", F_OK) == 0;
    if (!there) assert_int_equal(system("rm -rf killed && mkdir killed"), 0);
    return there;
}

// How many events of a kind on files of weights have happened since the last call; waits for 5 ms where there are none.
static int new_events(const killer *k, uint32_t kind) {
    _Alignas(struct inotify_event) char block[4096];
    int n = 0;
    struct pollfd p = {.fd = k->events, .events = POLLIN};
    if (poll(&p, 1, 5) <= 0) return 0;
    ssize_t bytes = read(k->events, block, sizeof block);
    for (ssize_t at = 0; at < bytes;) {
        const struct inotify_event *e = (const struct inotify_event *)(block + at);
        n += (e->mask & kind) && e->len && strstr(e->name, ".safetensors");
        at += (ssize_t)(sizeof *e + e->len);
    }
    return n;
}

static bool has_ended(pid_t child) {
    siginfo_t s = {0};
    return waitid(P_PID, (id_t)child, &s, WEXITED | WNOHANG | WNOWAIT) == 0 && s.si_pid == child;
}

static void await_moment(killer *k, pid_t child, moment m) {
    double until = support_seconds() + 0.3 * k->whole * (double)(1 + dice_unit(&k->dice));
    int left = 1 + (int)dice_below(&k->dice, 4);
    if (m != SOMEWHEN) until = support_seconds() + 60;
    while (!has_ended(child) && support_seconds() < until && left > 0)
        left -= new_events(k, m == SOMEWHEN ? 0 : m == IN_A_WRITE ? IN_CREATE : IN_MOVED_TO);
}

// Starts the run or goes on with it, and kills it; true where it came to its end before that.
static bool kill_once(killer *k, const char **arguments, int words, moment m) {
    int status;
    arguments[words] = goes_on() ? "--resume" : NULL;
    assert_true(inotify_add_watch(k->events, "killed", IN_CREATE | IN_MOVED_TO) >= 0);
    while (new_events(k, IN_CREATE)) continue;
    pid_t child = program_start("out", arguments);
    await_moment(k, child, m);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        if (WEXITSTATUS(status)) is_empty("err"); // shows what it said
        assert_int_equal(WEXITSTATUS(status), 0);
        return true;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    k->kills++;
    k->unwritten += count_files("killed", ".tmp") > 0;
    return false;
}

static int fill_arguments(const char **to, const char *dir, const char *threads, const killed_case *c) {
    int n = 0;
    to[n++] = "train";
    to[n++] = "run.yaml";
    to[n++] = dir;
    to[n++] = threads;
    for (int i = 0; i < KEYS_MOST && c->keys[i]; i++) to[n++] = c->keys[i];
    to[n] = NULL;
    return n;
}

static void check_ended(void) {
    same_runs("whole", "killed");
    assert_int_equal(count_files("killed", ".tmp"), 0);
}

// Both runs go into directories of their own names, emptied before. A run that ends before it is killed, as a short one
// does on a busy machine, is compared and begun again.
static void check_killed(killer *k, const killed_case *c) {
    const char *arguments[KEYS_MOST + 6];
    int before = k->kills, most = support_sanitized() ? KILLS_SANITIZED : KILLS;
    assert_int_equal(system("rm -rf whole killed && mkdir killed"), 0);
    fill_arguments(arguments, "run.dir=whole", "--threads=1", c);
    double began = support_seconds();
    assert_int_equal(program_finish(program_start("out", arguments)), 0);
    k->whole = support_seconds() - began;
    int words = fill_arguments(arguments, "run.dir=killed", "--threads=2", c);
    arguments[words + 1] = NULL;
    for (int i = 0; i < STARTS && k->kills - before < most; i++)
        if (kill_once(k, arguments, words, (moment)((i + 1) % MOMENTS))) {
            check_ended();
            assert_int_equal(system("rm -rf killed && mkdir killed"), 0);
        }
    arguments[words] = goes_on() ? "--resume" : NULL;
    assert_int_equal(program_finish(program_start("out", arguments)), 0);
    print_message("%s: %d kills\n", c->keys[0], k->kills - before);
    assert_true(k->kills - before >= 2);
    check_ended();
}

static void a_killed_run_loses_nothing(void **state) {
    (void)state;
    killer k = {.dice.seed = test_seed(), .events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    assert_true(k.events >= 0);
    walk_put("bars.csv", 3000, 300, 1);
    char text[512];
    snprintf(text, sizeof text,
        "data: {synthetic: {bars: 4000}, windows: {fast: 16, slow: 8}}\n"
        "model: {hidden: {fast: 6, slow: 4}, widths: 64, heads: 2, layers: 1, width: 16, blocks: 2}\n"
        "train: {epochs: %d, patience: 20, batch_size: 16, checkpoint_minutes: 0.0004, checkpoint_every: 2}\n",
        support_sanitized() ? 4 : 12);
    put_text("run.yaml", text);
    for (size_t i = 0; i < sizeof killed_cases / sizeof *killed_cases; i++) check_killed(&k, &killed_cases[i]);
    print_message("%d kills, %d of them left a file unfinished\n", k.kills, k.unwritten);
    assert_true(k.unwritten > 0);
    close(k.events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_run_loses_nothing, support_enter, support_leave),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
