// A run that is saved between any two steps and taken up again ends with the same bits as one never stopped.
#include "cli/program.h"
#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#define SMALL                                                                                                          \
    "data.synthetic.bars=1000 data.split.embargo=0 train.batch_size=64 train.epochs=3 train.patience=9 "               \
    "data.windows.fast=8 data.windows.slow=4 model.hidden.fast=5 model.hidden.slow=3 model.head=7 model.projection=4 "
#define MLP SMALL "model.kind=mlp model.widths=16-8 "

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

// Same tensors, bit for bit; of the values, the time spent aside.
static void same_files(const char *a, const char *b) {
    err e;
    safetensors *x = safetensors_open(a, &e), *y = safetensors_open(b, &e);
    support_ok(x && y, &e);
    assert_int_equal(safetensors_count(x), safetensors_count(y));
    for (int i = 0; i < safetensors_count(x); i++) {
        const safetensors_entry *s = safetensors_at(x, i), *t = safetensors_find(y, s->name);
        if (!t || s->bytes != t->bytes) fail_msg("%s: not in both", s->name);
        size_t skip = strcmp(s->name, "trainer.values") == 0 ? sizeof(double) : 0;
        if (memcmp((const char *)s->data + skip, (const char *)t->data + skip, s->bytes - skip) != 0)
            fail_msg("%s differs", s->name);
    }
    safetensors_close(x);
    safetensors_close(y);
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
}

static void early_stopping_goes_on(void **state) {
    (void)state;
    static const char keys[] = MLP "train.epochs=16 train.patience=2 data.synthetic.strength=0";
    check(keys, 9, false);
    check(keys, 1, true);
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

static void sleep_seconds(double s) {
    nanosleep(&(struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

// Waits until the run has saved itself, then kills it at a random moment; false where it ended before that.
static bool kill_somewhen(pid_t child, const char *first, dice *d) {
    double until = support_seconds() + 60;
    while (first && !file_holds("killed/training_log.txt", first) && support_seconds() < until) sleep_seconds(0.002);
    sleep_seconds((support_sanitized() ? 0.4 : 0.1) * (double)(1 + dice_unit(d)));
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

// All rows of a query, as text; the caller frees it.
static char *rows_of(const char *path, const char *query) {
    sqlite3 *db;
    sqlite3_stmt *st;
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(st); i++) {
            if (sqlite3_column_type(st, i) == SQLITE_FLOAT)
                fprintf(f, "%a ", sqlite3_column_double(st, i));
            else
                fprintf(f, "%s ", (const char *)sqlite3_column_text(st, i));
        }
    sqlite3_finalize(st);
    sqlite3_close(db);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void same_rows(const char *query) {
    char *a = rows_of("whole/run.db", query), *b = rows_of("killed/run.db", query);
    assert_true(strlen(a) > 0);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void check_killed(const char *model, const char *more, uint64_t seed) {
    dice d = {.seed = seed};
    put_text("run.yaml",
        "data: {synthetic: {bars: 4000}, windows: {fast: 16, slow: 8}}\nmodel: {hidden: {fast: 6, slow: 4}, widths: "
        "64}\n"
        "train: {epochs: 12, patience: 20, batch_size: 16, checkpoint_minutes: 0.0004, checkpoint_every: 2}\n");
    assert_int_equal(RUN("train", "run.yaml", "run.dir=whole", "--threads=1", model, more), 0);
    const char *first[] = {"train", "run.yaml", "run.dir=killed", "--threads=1", model, more, NULL},
               *next[] = {"train", "run.yaml", "run.dir=killed", "--threads=2", model, more, "--resume", NULL};
    int kills = kill_somewhen(program_start("out", first), "checkpoint ", &d);
    for (int i = 0; i < 5; i++) kills += kill_somewhen(program_start("out", next), NULL, &d);
    assert_int_equal(program_finish(program_start("out", next)), 0);
    print_message("%d kills\n", kills);
    assert_true(kills >= 2);
    same_files("whole/last.safetensors", "killed/last.safetensors");
    same_files("whole/best.safetensors", "killed/best.safetensors");
    same_rows("SELECT epoch, step, best, confusion FROM epochs ORDER BY epoch");
    same_rows("SELECT epoch, part, name, value FROM metrics ORDER BY epoch, part, name");
    same_rows("SELECT version, plan, status, note FROM run");
}

static void a_killed_run_loses_nothing(void **state) {
    (void)state;
    check_killed("model.kind=lstm", "model.dropout=0.2", 1);
    check_killed("model.kind=mlp", "data.residency=host", 2);
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
        TEST(an_ended_run_can_be_made_longer),
        TEST(other_jobs_are_refused),
        TEST(a_killed_run_loses_nothing),
        TEST(weights_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
