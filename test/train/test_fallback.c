// fp16 that gives way to another precision: when that is due, and that the run goes on from where it stood, to the same
// bits however often it is stopped.
//
// The CPU computes fp32 alone. Its runs here call themselves fp16 (tests do this to the job, nothing else may) and
// begin with a loss scale at which every gradient overflows and which does not fall; the other precision is fp32 by its
// name. What it is on a card is gpu_test_card's.
#include "train/fallback.h"

#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "run/same.h"
#include "support.h"
#include "train/predictor.h"
#include "train/snapshot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void only_fp16_gives_way(void **state) {
    (void)state;
    static const precision others[] = {PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP64};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int other = 0; other < 2; other++) assert_int_equal(fallback_judge(others[i], 1e9, other), FALLBACK_STAY);
    assert_int_equal(fallback_judge(PRECISION_FP16, 0, true), FALLBACK_STAY);
    assert_int_equal(fallback_judge(PRECISION_FP16, FALLBACK_OVERFLOWS - 1, true), FALLBACK_STAY);
    assert_int_equal(fallback_judge(PRECISION_FP16, FALLBACK_OVERFLOWS, true), FALLBACK_CHANGE);
    assert_int_equal(fallback_judge(PRECISION_FP16, FALLBACK_OVERFLOWS - 1, false), FALLBACK_STAY);
    assert_int_equal(fallback_judge(PRECISION_FP16, FALLBACK_OVERFLOWS, false), FALLBACK_END);
    assert_int_equal(fallback_of(true), PRECISION_BF16);
    assert_int_equal(fallback_of(false), PRECISION_FP32);
    // Whatever the scale was, so many overflows have brought it down.
    assert_true(ldexp(LOSS_SCALE_FLOOR, FALLBACK_OVERFLOWS) > LOSS_SCALE_MOST);
}

static void looks_depend_on_steps_alone(void **state) {
    (void)state;
    assert_int_equal(fallback_ahead(0), FALLBACK_LOOK);
    assert_int_equal(fallback_ahead(1), FALLBACK_LOOK - 1);
    assert_int_equal(fallback_ahead(FALLBACK_LOOK - 1), 1);
    assert_int_equal(fallback_ahead(3 * FALLBACK_LOOK), FALLBACK_LOOK);
}

// Runs

#define SMALL                                                                                                          \
    "data.synthetic.bars=3000 data.split.embargo=0 train.batch_size=16 train.epochs=3 train.patience=9 "               \
    "data.windows.fast=8 data.windows.slow=4 model.kind=mlp model.widths=16 "

typedef struct {
    trainer *t;
    uint64_t stop_after;
    const char *path;
    epoch_report report[8];
    int64_t epochs;
    change_report change;
    int changes;
} seen;

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    seen *s = arg;
    err e;
    uint64_t update;
    int64_t at, of;
    (void)epoch;
    (void)done;
    (void)total;
    trainer_stands(s->t, &update, &at, &of);
    if (!s->stop_after || update < s->stop_after) return true;
    support_ok(trainer_checkpoint(s->t, s->path, NULL, 0, &e), &e);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    seen *s = arg;
    err e;
    s->report[s->epochs++ % 8] = *r;
    if (r->last) support_ok(trainer_checkpoint(s->t, s->path, NULL, 0, &e), &e);
}

static bool on_change(void *arg, const change_report *r, err *e) {
    seen *s = arg;
    (void)e;
    s->change = *r;
    s->changes++;
    return true;
}

// The CPU as a card: steps are played several at once.
static device card;
static const device *computing = &cpu_device;

static void rig_pretend(rig *r, const char *keys, bool fallback) {
    rig_open(r, computing, 1, keys);
    r->job.precision = PRECISION_FP16;
    if (fallback)
        job_add_fallback(&r->job, r->data, &r->split, &r->settings, &r->model, r->window, r->scaler, PRECISION_FP32);
}

// From the start, with a scale that overflows, or from a checkpoint; whether it came to its end.
static bool go(const char *keys, const char *from, uint64_t stop_after, const char *to, seen *s) {
    err e;
    rig r;
    train_result result;
    static const float high[2] = {INFINITY, 0};
    rig_pretend(&r, keys, true);
    *s = (seen){.t = rig_trainer(&r), .stop_after = stop_after, .path = to};
    if (from) {
        safetensors *f = checkpoint_open(from, &e);
        support_ok(f && trainer_restore(s->t, f, from, &e), &e);
        safetensors_close(f);
    } else {
        support_ok(support_write(s->t, r.job.seed, high, &e), &e);
    }
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .on_change = on_change, .arg = s};
    support_ok(trainer_run(s->t, &w, &result, &e), &e);
    if (!result.interrupted) support_ok(trainer_save(s->t, "best", NULL, 0, &e), &e);
    trainer_free(s->t);
    rig_close(&r);
    return !result.interrupted;
}

// An epoch has 121 steps, all of which overflow: it changes at its end, before its validation.
static void a_run_goes_on_in_the_other_precision(void **state) {
    (void)state;
    static seen s;
    assert_true(go(SMALL, NULL, 0, "end", &s));
    assert_int_equal(s.epochs, 3);
    assert_int_equal(s.changes, 1);
    assert_true(s.change.from == PRECISION_FP16 && s.change.to == PRECISION_FP32);
    assert_true(s.change.update == s.report[0].update && s.change.epoch == 1);
    assert_true(s.change.in_a_row == (int64_t)s.change.update && s.change.skipped == s.change.in_a_row);
    for (int i = 0; i < 3; i++) {
        const epoch_report *r = &s.report[i];
        assert_true(r->precision == PRECISION_FP32 && isfinite(r->validation.loss) && r->loss_scale == 1.0f);
        assert_int_equal(r->skipped, s.change.skipped); // none was added, none is forgotten
    }
    assert_true(s.report[2].validation.loss < s.report[0].validation.loss);
}

// The weights that the change began with are the initial ones: its validation is that of a run that has not begun.
static void skipped_steps_changed_nothing(void **state) {
    (void)state;
    err e;
    rig r;
    score want;
    static seen s;
    assert_true(go(SMALL, NULL, 0, "end", &s));
    rig_open(&r, &cpu_device, 1, SMALL);
    trainer *t = rig_trainer(&r);
    support_ok(trainer_evaluate(t, &r.split.validation, &want, &e), &e);
    assert_true(want.loss == s.report[0].validation.loss);
    trainer_free(t);
    rig_close(&r);
}

// Stopped before the change and behind it, in the middle of an epoch and where a look within one changes it.
static void check_resumed(const char *keys, uint64_t every) {
    static seen whole, piece;
    assert_true(go(keys, NULL, 0, "whole", &whole));
    assert_int_equal(whole.changes, 1);
    int changes = 0;
    uint64_t stop = every;
    bool ended = go(keys, NULL, stop, "piece", &piece);
    for (changes += piece.changes; !ended; changes += piece.changes) {
        stop += every;
        ended = go(keys, "piece", stop, "piece", &piece);
        if (piece.changes) assert_memory_equal(&piece.change, &whole.change, sizeof whole.change);
    }
    assert_int_equal(changes, 1);
    same_files("whole", "piece");
}

static void stopped_runs_change_at_the_same_step(void **state) {
    (void)state;
    check_resumed(SMALL, 70);
    check_resumed(SMALL "data.residency=host", 97);
    check_resumed(SMALL "train.optimizer.kind=sgd gpu_optimization.gradient_accumulation_steps=2", 41);
    check_resumed(SMALL "train.batch_size=1 train.epochs=1", 900); // changes after 1024 of its 1932 steps
}

// 1932 steps, wherever the data lie, however many are played at once, and wherever a run was stopped in between.
static void runs_change_at_the_same_step_everywhere(void **state) {
    (void)state;
#define LONG SMALL "train.batch_size=1 train.epochs=1 "
    static const char *const places[] = {LONG "data.residency=device", LONG "data.residency=host"};
    static seen s;
    card = cpu_device;
    card.host_memory = false;
    for (int i = 0; i < 4; i++) {
        computing = i < 2 ? &card : &cpu_device;
        assert_true(go(places[i % 2], NULL, 0, "end", &s));
        assert_true(s.changes == 1 && s.change.update == FALLBACK_LOOK);
    }
    computing = &card;
    for (uint64_t stop = 1; stop < 950; stop += 300)
        for (int i = 0; i < 2; i++) {
            assert_false(go(places[i], NULL, stop, "piece", &s));
            assert_true(go(places[1 - i], "piece", 0, "end", &s));
            assert_true(s.changes == 1 && s.change.update == FALLBACK_LOOK);
        }
    computing = &cpu_device;
}

// Weights say what they were trained in, and a predictor follows.
static void weights_are_followed(void **state) {
    (void)state;
    err e;
    rig r;
    static seen s;
    assert_true(go(SMALL, NULL, 0, "end", &s));
    rig_pretend(&r, SMALL, true);
    predictor *p = predictor_new(&(predictor_place){.device = &cpu_device, .queue = r.queue}, &r.job, &r.settings, &e);
    support_ok(p != NULL, &e);
    engine *x = predictor_inference(p)->engine;
    assert_ptr_equal(engine_job(x), &r.job);
    support_ok(predictor_load(p, "best", &e), &e);
    assert_ptr_equal(engine_job(x), r.job.fallback);
    snapshot of = {.x = x, .weights = engine_job(x)->precision};
    support_ok(snapshot_save_weights(&of, "again", NULL, 0, &e), &e);
    same_files("best", "again");
    predictor_free(p);
    rig_close(&r);
}

// Overflows from the second epoch on, and checkpoints after the first.
static void overflow_later(void *arg, const epoch_report *r) {
    static const float high[2] = {INFINITY, 0};
    seen *s = arg;
    err e;
    on_epoch(arg, r);
    if (r->epoch == 1) support_ok(support_write(s->t, trainer_job(s->t)->seed, high, &e), &e);
}

static void check_note(const char *path, const char *key, const char *want) {
    err e = {0};
    safetensors *f = safetensors_open(path, &e);
    support_ok(f != NULL, &e);
    const char *is = safetensors_metadata(f, key);
    assert_string_equal(is ? is : "none", want);
    safetensors_close(f);
}

// The first epoch is the best, in fp16; the second overflows and ends in the other precision, no better. The best
// weights stay what they were, also in a checkpoint and where a run that goes on writes them.
static void the_best_weights_keep_their_precision(void **state) {
    (void)state;
    err e = {0};
    rig r;
    train_result result;
    static seen s;
    rig_pretend(&r, SMALL "train.epochs=2", true);
    s = (seen){.t = rig_trainer(&r), .path = "end"};
    watcher w = {.on_epoch = overflow_later, .on_change = on_change, .arg = &s};
    support_ok(trainer_run(s.t, &w, &result, &e), &e);
    assert_true(s.changes == 1 && result.best_epoch == 1 && s.report[1].precision == PRECISION_FP32);
    support_ok(trainer_save(s.t, "best", NULL, 0, &e), &e);
    trainer_free(s.t);
    check_note("best", "precision", "fp16");
    check_note("end", "precision", "fp32");
    check_note("end", "best_precision", "fp16");
    trainer *t = rig_trainer(&r);
    safetensors *f = checkpoint_open("end", &e);
    support_ok(f && trainer_restore(t, f, "end", &e), &e);
    safetensors_close(f);
    support_ok(trainer_run(t, &(watcher){.arg = NULL}, &result, &e), &e);
    support_ok(trainer_save(t, "again", NULL, 0, &e), &e);
    same_files("best", "again");
    trainer_free(t);
    rig_close(&r);
}

static void other_precisions_are_refused(void **state) {
    (void)state;
    err e;
    rig r;
    static seen s;
    assert_false(go(SMALL, NULL, 50, "piece", &s));
    rig_open(&r, &cpu_device, 1, SMALL);
    trainer *t = rig_trainer(&r);
    safetensors *f = checkpoint_open("piece", &e);
    support_ok(f != NULL, &e);
    assert_false(trainer_restore(t, f, "piece", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "piece: was made in fp16"));
    safetensors_close(f);
    trainer_free(t);
    rig_close(&r);
}

static void without_another_precision_it_ends(void **state) {
    (void)state;
    err e;
    rig r;
    train_result result;
    static const float high[2] = {INFINITY, 0};
    rig_pretend(&r, SMALL, false);
    trainer *t = rig_trainer(&r);
    support_ok(support_write(t, r.job.seed, high, &e), &e);
    assert_false(trainer_run(t, &(watcher){.arg = NULL}, &result, &e));
    assert_non_null(strstr(e.text, "fp16 overflows"));
    trainer_free(t);
    rig_close(&r);
}

static size_t allocated;
static int allocations;

static void *count_allocation(queue *q, size_t bytes, err *e) {
    allocated += bytes;
    allocations++;
    return cpu_device.allocate(q, bytes, e);
}

static engine_memory memory_of(const rig *r) {
    return trainer_memory(&r->job, &r->split, &r->settings, r->device, r->queue);
}

// The space holds the larger of both plans: a fallback that needs more makes it larger, one that needs less does not.
// Changing over allocates nothing. Longer windows give an LSTM the same parameters and more activations.
static void the_space_has_room_for_both(void **state) {
    (void)state;
    err e;
    rig small, large;
    device d = cpu_device;
    d.allocate = count_allocation;
    rig_open(&small, &d, 1, SMALL "model.kind=lstm");
    rig_open(&large, &d, 1, SMALL "model.kind=lstm data.windows.fast=24 data.windows.slow=12");
    size_t low = memory_of(&small).total, high = memory_of(&large).total;
    assert_true(low < high);
    job_add_fallback(
        &small.job, small.data, &small.split, &large.settings, &large.model, large.window, NULL, PRECISION_FP32);
    job_add_fallback(
        &large.job, large.data, &large.split, &small.settings, &small.model, small.window, NULL, PRECISION_FP32);
    assert_int_equal(memory_of(&small).total, high);
    assert_int_equal(memory_of(&large).total, high);
    allocated = 0;
    allocations = 0;
    trainer *t = rig_trainer(&small);
    support_ok(engine_change(trainer_engine(t), small.job.fallback, &e), &e);
    support_ok(engine_change(trainer_engine(t), &small.job, &e), &e);
    assert_int_equal(allocations, 1);
    assert_int_equal(allocated, high);
    trainer_free(t);
    rig_close(&small);
    rig_close(&large);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(only_fp16_gives_way),
        TEST(looks_depend_on_steps_alone),

        TEST(a_run_goes_on_in_the_other_precision),
        TEST(skipped_steps_changed_nothing),
        TEST(stopped_runs_change_at_the_same_step),
        TEST(runs_change_at_the_same_step_everywhere),
        TEST(weights_are_followed),
        TEST(the_best_weights_keep_their_precision),
        TEST(other_precisions_are_refused),
        TEST(without_another_precision_it_ends),
        TEST(the_space_has_room_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
