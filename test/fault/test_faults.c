// Faults: the n-th write, sync, rename, unlink, open, close, read, mkdir, truncation, mapping or allocation of a
// command fails, is cut short, or is where it is killed. Afterwards the same command, without the fault, must end in
// what an undisturbed one leaves: nothing lost, nothing doubled, nothing silently different. A command that ends with
// status 0 and without a word has left that already.
//
// Two commands need no second run: one that fails before it opens a file for writing, makes, renames or removes one has
// left its inputs as they were; and one that ends without a word after a failed allocation, with the same result.
//
// Allocations fail one by one up to the first step, member or fold. Behind it the first one of each place fails: a
// place is a chain of callers, from the allocation to main. Commands that print only are tried with failing allocations
// alone: what they print then is what they print always, or they end with status 1 and one line.
//
// Every n-th fault is tried, n being TRADEWIND_FAULTS_EVERY (800 where it is not set; `make faults` tries all).
// TRADEWIND_FAULTS_PART=1/2 tries the first half of those, of every kind, so that two processes share the work;
// TRADEWIND_FAULTS_ONLY=train tries one kind, TRADEWIND_FAULTS_CALLS=files or memory half of its calls;
// TRADEWIND_FAULTS_EACH=1 tries every allocation, wherever it is;
// TRADEWIND_FAULTS_COUNT=1 tries none, and says how many there are. After a failure, which gives the fault's turn,
// TRADEWIND_FAULTS_FROM=turn goes on there.
#include "cli/program.h"
#include "fault/kinds.h"
#include "fault/stem.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAYS_MOST = 3, EVENTS_MOST = 2048 };

static const struct {
    const char *name;
    const char *ways[WAYS_MOST];
} calls[] = {
    {"write", {"fail", "short", "kill"}},
    {"sync", {"fail", "kill"}},
    {"rename", {"fail", "kill"}},
    {"unlink", {"fail", "kill"}},
    {"open", {"fail", "kill"}},
    {"close", {"fail", "kill"}},
    {"read", {"fail", "short"}},
    {"mkdir", {"fail", "kill"}},
    {"truncate", {"fail", "kill"}},
    {"mmap", {"fail", "kill"}},
    {"alloc", {"fail"}},
};
enum { CALLS = sizeof calls / sizeof *calls };

typedef struct {
    int64_t tried, killed, failed, passed; // passed: the fault had no effect
    double seconds;                        // of a processor
} tally;

// Faults that are tried: every `every`-th, of those each `parts`-th.
typedef struct {
    int every, part, parts;
    bool each;         // every allocation, not the first of its place
    bool counted;      // none is tried
    const char *calls; // files or memory; NULL: both
    int64_t turn, from;
} sample;

static char trying[128]; // the fault at work, for a test that fails
static int64_t trying_turn;

static sample read_sample(void) {
    sample c = {.every = 800,
        .part = 1,
        .parts = 1,
        .each = getenv("TRADEWIND_FAULTS_EACH") != NULL,
        .counted = getenv("TRADEWIND_FAULTS_COUNT") != NULL,
        .calls = getenv("TRADEWIND_FAULTS_CALLS")};
    const char *every = getenv("TRADEWIND_FAULTS_EVERY"), *part = getenv("TRADEWIND_FAULTS_PART"),
               *from = getenv("TRADEWIND_FAULTS_FROM");
    if (every) c.every = atoi(every);
    if (from) c.from = atoll(from);
    if (part) assert_int_equal(sscanf(part, "%d/%d", &c.part, &c.parts), 2);
    assert_true(c.every > 0 && c.part > 0 && c.part <= c.parts);
    return c;
}

static bool is_chosen(sample *c) {
    int64_t turn = trying_turn = c->turn++;
    return turn >= c->from && turn % c->every == 0 && turn / c->every % c->parts == c->part - 1;
}

// A fault ends a command with status 1 and one line that gives the reason, or it has no effect. Memory that is short is
// nobody's input, and no reason to call checkpoints damaged. True where another run of the command could tell more.
static bool check_end(const kind *k, int status, const fault *f, tally *t) {
    int64_t all, opening;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && strcmp(f->how, "kill") == 0) {
        t->killed++;
        return true;
    }
    if (!WIFEXITED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    t->failed += WEXITSTATUS(status) == 1;
    t->passed += WEXITSTATUS(status) == 0;
    if (WEXITSTATUS(status) == 1) matches("err", "^tradewind: [^\n]+\n$");
    if (WEXITSTATUS(status) > 1) is_empty("err"); // shows it
    if (WEXITSTATUS(status) > 1) fail_msg("ended with status %d", WEXITSTATUS(status));
    if (file_holds("err", "no whole checkpoint")) is_empty("err");
    bool silent = status == 0 && (!k->writes || !kind_told());
    if (silent) k->check();
    kind_calls(&all, &opening);
    if (strcmp(f->how, "kill") == 0 && all >= f->at) fail_msg("was not killed");
    return status == 0 ? !silent || strcmp(f->call, "alloc") != 0 : kind_changed();
}

static double spent(int who) {
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// Time that this process and its children have taken of processors, whatever else the machine does.
static double processor_seconds(void) {
    return spent(RUSAGE_SELF) + spent(RUSAGE_CHILDREN);
}

static void try_fault(const kind *k, bool card, const fault *f, tally *t) {
    snprintf(trying, sizeof trying, "%s%s: %s %lld: %s", k->name, card ? " on the card" : "", f->call, (long long)f->at,
        f->how);
    if (check_end(k, kind_run(k, card, f), f, t) && k->writes) kind_go_on(k, card);
    t->tried++;
}

static void try_call(const kind *k, bool card, int call, sample *c, tally *t) {
    int64_t all, opening, places = 0;
    double begun = processor_seconds();
    fault f = {.call = calls[call].name, .how = "fail"};
    bool allocates = strcmp(f.call, "alloc") == 0;
    if (kind_run(k, card, &f) != 0) is_empty("err");
    kind_calls(&all, &opening);
    bool *first = kind_places(all);
    for (int64_t i = 1; i <= all; i++) places += first[i];
    for (int w = 0; w < WAYS_MOST && calls[call].ways[w]; w++) {
        f.how = calls[call].ways[w];
        for (f.at = 1; f.at <= all; f.at++) {
            bool any = c->each || !allocates || f.at <= opening;
            if ((!any && !first[f.at]) || !is_chosen(c)) continue;
            if (c->counted)
                t->tried++;
            else
                try_fault(k, card, &f, t);
        }
    }
    if (allocates)
        print_message("%s: %lld allocations, %lld up to the first step, from %lld places\n", k->name, (long long)all,
            (long long)opening, (long long)places);
    free(first);
    stem_leave();
    t->seconds += processor_seconds() - begun;
}

static void add(tally *to, const tally *t) {
    to->tried += t->tried;
    to->killed += t->killed;
    to->failed += t->failed;
    to->passed += t->passed;
    to->seconds += t->seconds;
}

static void print_tally(const char *name, const char *what, const tally *t) {
    print_message(
        "%-12s %-8s %6lld faults: %lld killed, %lld ended with status 1, %lld without effect; %.1f s of a processor\n",
        name, what, (long long)t->tried, (long long)t->killed, (long long)t->failed, (long long)t->passed, t->seconds);
}

// Other calls are made by the same code wherever the program computes.
static void try_kind(const kind *k, bool card, sample *c, tally *all) {
    tally files = {0}, memory = {0};
    kind_whole(k, card);
    for (int i = 0; i < CALLS; i++) {
        bool allocates = strcmp(calls[i].name, "alloc") == 0;
        if (c->calls && strcmp(c->calls, allocates ? "memory" : "files") != 0) continue;
        if (allocates || (k->writes && !card)) try_call(k, card, i, c, allocates ? &memory : &files);
    }
    if (files.tried) print_tally(k->name, "files", &files);
    if (memory.tried) print_tally(k->name, card ? "card" : "memory", &memory);
    add(all, &files);
    add(all, &memory);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    const char *only = getenv("TRADEWIND_FAULTS_ONLY");
    sample c = read_sample();
    tally t = {0};
    if (support_sanitized()) {
        print_message("skipped: a sanitizer's runtime must be loaded first\n");
        skip();
    }
    for (int card = 0; card < 2; card++) {
        kinds_enter(card);
        for (int i = 0; i < kinds_count; i++)
            if ((!card || kinds[i].card) && (!only || strcmp(only, kinds[i].name) == 0))
                try_kind(&kinds[i], card, &c, &t);
    }
    print_tally("all", "", &t);
    trying[0] = 0;
    assert_true(c.counted || (t.failed > 0 && (only || t.killed > 0)));
}

static int leave(void **state) {
    if (trying[0]) print_error("tried: %s (turn %lld)\n", trying, (long long)trying_turn);
    trying[0] = 0;
    stem_leave();
    return support_leave(state);
}

// Forks

typedef struct {
    int status;
    char *count, *out, *err;
} ending;

static ending take_ending(int status) {
    return (ending){status, access("count", F_OK) ? strdup("") : slurp("count"), slurp("out"), slurp("err")};
}

// Figures are measured anew by a command that comes to its end.
static void same_ending(ending *a, ending *b) {
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->err, b->err);
    if (a->status) assert_string_equal(a->out, b->out);
    if (a->status) assert_string_equal(a->count, b->count);
    free(a->count);
    free(a->out);
    free(a->err);
    free(b->count);
    free(b->out);
    free(b->err);
}

// Every n-th call of a command's opening goes wrong in a fork, and in a command that is started anew; the last call is
// one. Calls rise, so that a trunk goes from one to the next. Behind the opening a walk has threads: which of them
// makes the n-th call goes by the machine's clock.
static void compare_forks(const kind *k, bool card, const char *call, const char *how, int n) {
    int64_t all, opening;
    fault f = {.call = call, .how = how};
    assert_int_equal(kind_run_anew(k, card, &f), 0);
    kind_calls(&all, &opening);
    for (f.at = opening % n ? opening % n : n; f.at <= opening; f.at += n) {
        snprintf(trying, sizeof trying, "%s: %s %lld: %s", k->name, call, (long long)f.at, how);
        ending fork = take_ending(kind_run(k, card, &f));
        ending anew = take_ending(kind_run_anew(k, card, &f));
        same_ending(&fork, &anew);
    }
    trying[0] = 0;
    stem_leave();
}

static void a_fork_ends_as_a_command_of_its_own(void **state) {
    (void)state;
    const char *only = getenv("TRADEWIND_FAULTS_ONLY");
    if (support_sanitized()) skip();
    kinds_enter(false);
    for (int i = 0; i < kinds_count; i++) {
        if (only && strcmp(only, kinds[i].name) != 0) continue;
        int n = kinds[i].writes ? 1999 : 499;
        if (strcmp(kinds[i].name, "tune") == 0) continue; // figures on standard error of the progress
        compare_forks(&kinds[i], false, "alloc", "fail", n);
        if (i > 0) continue;
        compare_forks(&kinds[i], false, "write", "kill", 39);
        compare_forks(&kinds[i], false, "read", "short", 39);
    }
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
    setenv("FAULT_TRACE", "trace", 1);
    assert_int_equal(kind_run(k, false, NULL), 0);
    unsetenv("FAULT_TRACE");
}

static void what_is_renamed_is_on_the_disk(void **state) {
    (void)state;
    static event list[EVENTS_MOST];
    if (support_sanitized()) skip();
    kinds_enter(false);
    for (int k = 0; k < kinds_count; k++) {
        int renames = 0;
        if (!kinds[k].writes) continue;
        trace(&kinds[k]);
        int n = read_trace(list, EVENTS_MOST);
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
    static event list[EVENTS_MOST];
    int synced = -1, checkpoints = 0;
    if (support_sanitized()) skip();
    kinds_enter(false);
    trace(&kinds[0]);
    int n = read_trace(list, EVENTS_MOST);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(faults_lose_nothing),
        TEST(a_fork_ends_as_a_command_of_its_own),
        TEST(what_is_renamed_is_on_the_disk),
        TEST(a_checkpoint_finds_its_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
