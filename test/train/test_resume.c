// A run that is saved between any two steps and taken up again ends with the same bits as one never stopped.
#include "cli/program.h"
#include "cpu/cpu.h"
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

#define SMALL                                                                                                          \
    "data.synthetic.bars=1000 data.split.embargo=0 train.batch_size=64 train.epochs=3 train.patience=9 "               \
    "data.windows.fast=8 data.windows.slow=4 model.hidden.fast=5 model.hidden.slow=3 model.head=7 model.projection=4 "
#define MLP         SMALL "model.kind=mlp model.widths=16-8 "
#define TRANSFORMER SMALL "model.kind=transformer model.hidden.fast=4 model.hidden.slow=2 model.heads=2 model.layers=1 "
#define NBEATS      SMALL "model.kind=nbeats model.width=8 model.blocks=2 model.layers=2 model.horizon=4 "

enum { EPOCHS_MOST = 16 };

// What a run left: the history, and a checkpoint of its end in a file.
typedef struct {
    int64_t epochs;
    epoch_report report[EPOCHS_MOST];
    train_result result;
} history;

typedef struct {
    trainer *t;
    history *h;
    int64_t stop_after; // steps from here; 0: never
    bool at_epochs;     // stop after an epoch, not after a step
    int64_t steps;
    const char *path; // of the checkpoint made at the stop, or at the end
    bool stopping;
} watched;

static void save(watched *w) {
    err e;
    support_ok(trainer_checkpoint(w->t, w->path, NULL, 0, &e), &e);
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    watched *w = arg;
    (void)epoch;
    (void)done;
    (void)total;
    w->steps++;
    if (w->stopping) return false;
    if (!w->stop_after || w->at_epochs || w->steps < w->stop_after) return true;
    save(w);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    watched *w = arg;
    assert_true(r->epoch <= EPOCHS_MOST);
    w->h->report[r->epoch - 1] = *r;
    w->h->epochs = r->epoch;
    if (r->last || (w->at_epochs && w->steps >= w->stop_after)) {
        save(w);
        w->stopping = !r->last;
    }
}

// Goes on from a file (NULL: begins) for some steps; whether it came to its end.
static bool go(
    const char *keys, int threads, const char *from, int64_t stop_after, bool at_epochs, const char *path, history *h) {
    err e;
    rig r;
    rig_open(&r, &cpu_device, threads, keys);
    watched w = {.t = rig_trainer(&r), .h = h, .stop_after = stop_after, .at_epochs = at_epochs, .path = path};
    if (from) {
        safetensors *s = checkpoint_open(from, &e);
        support_ok(s && trainer_restore(w.t, s, from, &e), &e);
        safetensors_close(s);
    }
    watcher all = {.on_step = on_step, .on_epoch = on_epoch, .arg = &w};
    support_ok(trainer_run(w.t, &all, &h->result, &e), &e);
    bool ended = !h->result.interrupted;
    if (ended) support_ok(trainer_save(w.t, at_epochs ? "best_b" : "best_a", &e), &e);
    trainer_free(w.t);
    rig_close(&r);
    return ended;
}

static void same_score(const score *a, const score *b) {
    assert_memory_equal(a, b, sizeof *a);
}

static void same_history(const history *a, const history *b) {
    assert_int_equal(a->epochs, b->epochs);
    for (int64_t i = 0; i < a->epochs; i++) {
        const epoch_report *x = &a->report[i], *y = &b->report[i];
        same_score(&x->train, &y->train);
        same_score(&x->validation, &y->validation);
        assert_true(x->grad_norm == y->grad_norm && x->best == y->best && x->last == y->last);
        assert_true(x->skipped == y->skipped && x->update == y->update && x->loss_scale == y->loss_scale);
    }
    assert_int_equal(a->result.best_epoch, b->result.best_epoch);
    assert_true(a->result.best == b->result.best);
    assert_int_equal(a->result.stopped_early, b->result.stopped_early);
    assert_int_equal(a->result.epochs, b->result.epochs);
}

// Runs once through, then in pieces of `every` steps or epochs, on changing numbers of threads.
static void check(const char *keys, int64_t every, bool at_epochs) {
    static history whole, pieces;
    memset(&whole, 0, sizeof whole);
    memset(&pieces, 0, sizeof pieces);
    assert_true(go(keys, 1, NULL, 0, false, "whole", &whole));
    bool ended = go(keys, 1, NULL, every, at_epochs, "piece", &pieces);
    for (int i = 0; !ended; i++) {
        assert_true(i < 1000);
        ended = go(keys, 1 + i % 3, "piece", every, at_epochs, "piece", &pieces);
    }
    same_files("whole", "piece");
    same_history(&whole, &pieces);
}

static void any_step_will_do(void **state) {
    (void)state;
    check(SMALL, 7, false);
    check(MLP, 1, false);
    check(TRANSFORMER, 11, false);
    check(NBEATS, 11, false);
    check(MLP "gpu_optimization.gradient_accumulation_steps=3 train.class_weights=balanced", 2, false);
    check(MLP "train.optimizer.kind=sgd data.scale=standard", 5, false);
}

static void any_schedule_will_do(void **state) {
    (void)state;
    check(MLP "train.schedule.kind=cosine train.schedule.warmup=7", 5, false);
    check(MLP "train.schedule.kind=one_cycle train.optimizer.kind=adam", 1, true);
    static const char falls[] = MLP "train.schedule.kind=plateau train.schedule.patience=0 train.schedule.factor=0.5 "
                                    "train.epochs=10 data.synthetic.strength=0";
    check(falls, 9, false);
    check(falls, 1, true);
}

static void any_residency_will_do(void **state) {
    (void)state;
    check(SMALL "data.residency=host data.scale=standard", 8, false);
    check(MLP "data.residency=host data.num_workers=0 gpu_optimization.gradient_accumulation_steps=2", 3, false);
}

static void the_boundary_will_do(void **state) {
    (void)state;
    check(SMALL, 1, true);
    check(MLP, 1, true);
    check(TRANSFORMER, 1, true);
    check(NBEATS, 1, true);
}

static void early_stopping_goes_on(void **state) {
    (void)state;
    static const char keys[] = MLP "train.epochs=16 train.patience=2 data.synthetic.strength=0";
    check(keys, 9, false);
    check(keys, 1, true);
}

// Steps that end within the second epoch: it is cut short, scored on what it had, and the rate's schedule ends there.
static void a_run_of_steps_ends_there(void **state) {
    (void)state;
    static history h;
    static const char keys[] = MLP "train.steps=17 train.schedule.kind=cosine train.optimizer.lr=1e-3 ";
    check(keys, 3, false);
    check(keys, 1, true);
    check(MLP "train.steps=17 data.residency=host gpu_optimization.gradient_accumulation_steps=2", 4, false);
    memset(&h, 0, sizeof h);
    assert_true(go(keys, 1, NULL, 0, false, "whole", &h));
    const epoch_report *last = &h.report[1];
    assert_int_equal(h.epochs, 2);
    assert_true(last->last && last->update == 17 && !h.report[0].last);
    assert_int_equal(last->train.samples, (17 - (int64_t)h.report[0].update) * 64);
    assert_true(
        last->lr < 0.02e-3 && h.report[0].lr > last->lr); // of the 17th of 17 updates: (1 + cos(16 pi / 17)) / 2
    assert_true(h.report[0].train.samples > last->train.samples && !h.result.stopped_early);
}

// A run that has ended ends again, and goes on where more epochs are asked for.
static void an_ended_run_can_be_made_longer(void **state) {
    (void)state;
    static history once, longer;
    assert_true(go(MLP "train.epochs=2", 1, NULL, 0, false, "short", &longer));
    assert_true(go(MLP "train.epochs=2", 1, "short", 0, false, "again", &longer));
    assert_int_equal(longer.result.epochs, 2);
    assert_true(go(MLP "train.epochs=4", 1, "short", 0, false, "long", &longer));
    assert_true(go(MLP "train.epochs=4", 1, NULL, 0, false, "whole", &once));
    same_files("whole", "long");
    assert_int_equal(longer.result.best_epoch, once.result.best_epoch);
}

static void refuse(const char *keys, const char *text) {
    err e;
    rig r;
    rig_open(&r, &cpu_device, 1, keys);
    trainer *t = rig_trainer(&r);
    safetensors *s = checkpoint_open("piece", &e);
    support_ok(s != NULL, &e);
    assert_false(trainer_restore(t, s, "piece", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "piece: "));
    if (!strstr(e.text, text)) fail_msg("%s", e.text);
    safetensors_close(s);
    trainer_free(t);
    rig_close(&r);
}

static void other_jobs_are_refused(void **state) {
    (void)state;
    static history h;
    assert_false(go(MLP, 1, NULL, 5, false, "piece", &h));
    refuse(SMALL, "of another shape");
    refuse(MLP "model.widths=16-9", "of another shape");
    refuse(MLP "train.seed=2", "seed");
    refuse(MLP "data.split.train=0.6", "other samples");
}

// The program, killed

enum { KEYS_MOST = 6, KILLS = 8, KILLS_SANITIZED = 4 };

// What is trained: each row a model and where its samples come from.
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

static int count_checkpoints(void) {
    return count_files("killed", ".safetensors") - (access("killed/best.safetensors", F_OK) == 0);
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
    arguments[words] = count_checkpoints() ? "--resume" : NULL;
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

// Both runs go into directories of their own names, emptied before.
static void check_killed(killer *k, const killed_case *c) {
    const char *arguments[KEYS_MOST + 6];
    int before = k->kills, most = support_sanitized() ? KILLS_SANITIZED : KILLS;
    bool ended = false;
    assert_int_equal(system("rm -rf whole killed && mkdir killed"), 0);
    fill_arguments(arguments, "run.dir=whole", "--threads=1", c);
    double began = support_seconds();
    assert_int_equal(program_finish(program_start("out", arguments)), 0);
    k->whole = support_seconds() - began;
    int watch = inotify_add_watch(k->events, "killed", IN_CREATE | IN_MOVED_TO);
    assert_true(watch >= 0);
    int words = fill_arguments(arguments, "run.dir=killed", "--threads=2", c);
    arguments[words + 1] = NULL;
    for (int i = 0; !ended && k->kills - before < most; i++)
        ended = kill_once(k, arguments, words, (moment)((i + 1) % MOMENTS));
    arguments[words] = count_checkpoints() ? "--resume" : NULL;
    if (!ended) assert_int_equal(program_finish(program_start("out", arguments)), 0);
    inotify_rm_watch(k->events, watch);
    print_message("%s: %d kills\n", c->keys[0], k->kills - before);
    assert_true(k->kills - before >= 2);
    same_runs("whole", "killed");
    assert_int_equal(count_files("killed", ".tmp"), 0);
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

// Weights as a start

static void expect_load(const char *keys, const char *path, const char *text) {
    err e;
    rig r;
    rig_open(&r, &cpu_device, 1, keys);
    trainer *t = rig_trainer(&r);
    bool ok = trainer_load(t, path, &e);
    if (ok != !text) fail_msg("%s: loaded: %d", path, ok);
    if (text && (e.kind != ERR_INPUT || !strstr(e.text, text))) fail_msg("%s", e.text);
    if (ok) support_ok(trainer_save(t, "loaded", &e), &e);
    trainer_free(t);
    rig_close(&r);
}

static void weights_are_taken(void **state) {
    (void)state;
    static history h;
    assert_true(go(MLP "train.epochs=1", 1, NULL, 0, false, "last", &h));
    expect_load(MLP "train.seed=9", "best_a", NULL);
    same_files("best_a", "loaded");
    expect_load(MLP "train.seed=9", "last", NULL); // a checkpoint's weights
    expect_load(MLP "model.widths=16-9", "best_a", "of another shape or type ");
    expect_load(MLP "model.widths=16", "best_a", "unknown ");
    expect_load(MLP "model.widths=16-8-8", "best_a", "missing ");
    expect_load(MLP, "missing", "missing: ");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(any_step_will_do),
        TEST(any_schedule_will_do),
        TEST(any_residency_will_do),
        TEST(the_boundary_will_do),
        TEST(early_stopping_goes_on),
        TEST(a_run_of_steps_ends_there),
        TEST(an_ended_run_can_be_made_longer),
        TEST(other_jobs_are_refused),
        TEST(a_killed_run_loses_nothing),
        TEST(weights_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
