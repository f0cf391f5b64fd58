// A run that is saved between any two steps and taken up again ends with the same bits as one never stopped.
#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "run/same.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SMALL                                                                                                          \
    "data.synthetic.bars=1000 data.split.embargo=0 train.batch_size=64 train.epochs=3 train.patience=9 "               \
    "data.windows.fast=8 data.windows.slow=4 model.hidden.fast=5 model.hidden.slow=3 model.head=7 model.projection=4 "
#define MLP         SMALL "model.kind=mlp model.widths=16-8 "
#define TRANSFORMER SMALL "model.kind=transformer model.hidden.fast=4 model.hidden.slow=2 model.heads=2 model.layers=1 "
#define NBEATS      SMALL "model.kind=nbeats model.width=8 model.blocks=2 model.layers=2 model.horizon=4 "

enum { EPOCHS_MOST = 16 };

// Remains of a run: the history, and a checkpoint of its end in a file.
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
    if (ended) support_ok(trainer_save(w.t, at_epochs ? "best_b" : "best_a", NULL, 0, &e), &e);
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
        assert_true(x->lr == y->lr);
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
    // Stops between epochs without progress: how many there were is known behind them.
    static const char waits[] = MLP "train.schedule.kind=plateau train.schedule.patience=2 train.schedule.factor=0.5 "
                                    "train.epochs=12 train.patience=12 data.synthetic.strength=0";
    check(waits, 9, false);
    check(waits, 1, true);
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
    assert_true(fabs(last->lr - 0.00851e-3) < 1e-8); // of the 17th of 17 updates: (1 + cos(16 pi / 17)) / 2
    assert_true(h.report[0].lr > last->lr);
    assert_true(h.report[0].train.samples > last->train.samples && !h.result.stopped_early);
}

// The time of an epoch is that of all its parts. The first step waits; what is left behind the stop does not.
static bool wait_then_stop(void *arg, int64_t epoch, int64_t done, int64_t total) {
    watched *w = arg;
    (void)epoch;
    (void)done;
    (void)total;
    if (w->steps++ == 0) usleep(400000);
    if (w->steps < 2) return true;
    save(w);
    return false;
}

static void time_goes_on(void **state) {
    (void)state;
    static history h;
    err e;
    rig r;
    rig_open(&r, &cpu_device, 1, MLP);
    watched w = {.t = rig_trainer(&r), .h = &h, .path = "piece"};
    watcher first = {.on_step = wait_then_stop, .arg = &w};
    support_ok(trainer_run(w.t, &first, &h.result, &e), &e);
    trainer_free(w.t);
    rig_close(&r);
    assert_true(go(MLP, 1, "piece", 0, false, "end", &h));
    assert_true(h.report[0].seconds >= 0.4);
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

// Scales that were fitted to other bits than the checkpoint's.
static void other_scales_are_refused(void **state) {
    (void)state;
    static history h;
    static const char keys[] = MLP "data.scale=standard ";
    err e;
    rig r;
    assert_false(go(keys, 1, NULL, 5, false, "piece", &h));
    rig_open(&r, &cpu_device, 1, keys);
    safetensors *s = checkpoint_open("piece", &e);
    trainer *t = rig_trainer(&r);
    support_ok(s && trainer_restore(t, s, "piece", &e), &e);
    for (int k = 0; k < 2; k++) {
        float mean = r.scaler->mean[1][2], std = r.scaler->std[1][2];
        scaler_set(r.scaler, 1, 2, k ? mean : nextafterf(mean, 9), k ? nextafterf(std, 9) : std);
        assert_false(trainer_restore(t, s, "piece", &e));
        assert_int_equal(e.kind, ERR_INPUT);
        const char *want = k ? "of slow has a std of" : "of slow has a mean of";
        if (!strstr(e.text, "piece: column ") || !strstr(e.text, want)) fail_msg("%s", e.text);
        scaler_set(r.scaler, 1, 2, mean, std);
    }
    trainer_free(t);
    safetensors_close(s);
    rig_close(&r);
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
    if (ok) support_ok(trainer_save(t, "loaded", NULL, 0, &e), &e);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(any_step_will_do),
        TEST(any_schedule_will_do),
        TEST(any_residency_will_do),
        TEST(the_boundary_will_do),
        TEST(early_stopping_goes_on),
        TEST(a_run_of_steps_ends_there),
        TEST(time_goes_on),
        TEST(an_ended_run_can_be_made_longer),
        TEST(other_jobs_are_refused),
        TEST(other_scales_are_refused),
        TEST(weights_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
