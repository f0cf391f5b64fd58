// A trainer that is advanced some steps at a time ends with the bits of one that runs to its end, and tells the same;
// it stops where the watcher says so, and goes on.
#include "cpu/cpu.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL                                                                                                          \
    "data.synthetic.bars=1000 data.split.embargo=0 model.kind=mlp model.widths=16 train.batch_size=32 train.epochs=3 "

enum { EPOCHS_MOST = 4, STEPS_MOST = 128 };

typedef struct {
    int64_t epoch, done, total;
} step_event;

// Events of a run, the times taken out.
typedef struct {
    step_event step[STEPS_MOST];
    epoch_report report[EPOCHS_MOST];
    int steps, epochs, stop_after;
} seen;

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    seen *s = arg;
    assert_true(s->steps < STEPS_MOST);
    s->step[s->steps++] = (step_event){epoch, done, total};
    return s->steps != s->stop_after;
}

static void on_epoch(void *arg, const epoch_report *r) {
    seen *s = arg;
    assert_true(s->epochs < EPOCHS_MOST);
    epoch_report *to = &s->report[s->epochs++];
    memcpy(to, r, sizeof *to);
    to->seconds = to->samples_per_s = 0;
}

// Scores and predicts in the middle of an epoch.
static void look_aside(rig *r, trainer *t) {
    err e;
    static score s;
    float *out = malloc((size_t)r->split.validation.count * 3 * sizeof *out);
    assert_non_null(out);
    support_ok(trainer_evaluate(t, &r->split.validation, &s, &e), &e);
    support_ok(trainer_predict(t, &r->split.validation, out, &e), &e);
    free(out);
}

// Steps at a time; 0: trainer_run. How many calls it took is checked too. With `aside`, something is evaluated between.
static float *trained_aside(rig *r, int64_t chunk, bool aside, seen *s, train_result *result) {
    err e;
    trainer *t = rig_trainer(r);
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = s};
    if (!chunk) {
        support_ok(trainer_run(t, &w, result, &e), &e);
    } else {
        int calls = 0;
        for (bool more = true; more; calls++) {
            int before = s->steps;
            support_ok(trainer_advance(t, chunk, &w, &more, &e), &e);
            assert_true(s->steps - before == chunk || !more);
            if (aside) look_aside(r, t);
        }
        assert_int_equal(calls, ((int64_t)s->steps + chunk - 1) / chunk);
        support_ok(trainer_finish(t, result, &e), &e);
    }
    float *weights = rig_weights(r, t);
    trainer_free(t);
    return weights;
}

static float *trained(rig *r, int64_t chunk, seen *s, train_result *result) {
    return trained_aside(r, chunk, false, s, result);
}

static void check_chunks(const char *keys) {
    static const int64_t chunks[] = {1, 3, 7, 1000};
    static seen want, is;
    train_result all, some;
    rig r;
    rig_open(&r, &cpu_device, 2, keys);
    size_t bytes = (size_t)graph_slab_elements(r.job.g) * sizeof(float);
    memset(&want, 0, sizeof want);
    memset(&all, 0, sizeof all);
    float *whole = trained(&r, 0, &want, &all);
    assert_true(want.epochs > 1 && want.steps > 7);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        memset(&is, 0, sizeof is);
        memset(&some, 0, sizeof some);
        float *weights = trained(&r, chunks[i], &is, &some);
        assert_memory_equal(whole, weights, bytes);
        assert_memory_equal(&want, &is, sizeof want);
        assert_true(some.epochs == all.epochs && some.best_epoch == all.best_epoch && some.best == all.best);
        assert_true(some.stopped_early == all.stopped_early && !some.interrupted && !some.diverged);
        free(weights);
    }
    free(whole);
    rig_close(&r);
}

static void chunks_change_no_bit(void **state) {
    (void)state;
    check_chunks(SMALL);
    check_chunks(SMALL "gpu_optimization.gradient_accumulation_steps=2");
    check_chunks(SMALL "data.residency=host");
    check_chunks(SMALL "train.patience=1 train.optimizer.lr=0.5 train.epochs=4"); // stops early
    check_chunks(SMALL "train.steps=37");                                         // within an epoch
}

static void check_aside(const char *keys) {
    static seen want, is;
    train_result all, some;
    rig r;
    rig_open(&r, &cpu_device, 2, keys);
    job_keep_logits(&r.job);
    memset(&want, 0, sizeof want);
    memset(&is, 0, sizeof is);
    float *whole = trained(&r, 0, &want, &all), *weights = trained_aside(&r, 3, true, &is, &some);
    assert_memory_equal(whole, weights, (size_t)graph_slab_elements(r.job.g) * sizeof(float));
    assert_memory_equal(&want, &is, sizeof want);
    free(whole);
    free(weights);
    rig_close(&r);
}

// An evaluation in the middle of an epoch changes neither its bits nor its figures.
static void evaluation_changes_no_epoch(void **state) {
    (void)state;
    check_aside(SMALL);
    check_aside(SMALL "data.residency=host");
    check_aside(SMALL "gpu_optimization.gradient_accumulation_steps=2 data.residency=host");
}

// The nth call of a device fails, once. A run that met the failure never ends well, whichever step that was.

static int failing_play, plays;

static bool failing(queue *q, recording *r, err *e) {
    if (++plays == failing_play) return err_run(e, "the device gave up");
    return cpu_device.play(q, r, e);
}

static void no_failed_step_is_passed_over(void **state) {
    (void)state;
    device d = cpu_device;
    d.play = failing;
    rig r;
    rig_open(&r, &d, 1, SMALL "train.batch_size=100 train.steps=10");
    for (failing_play = 1;; failing_play++) {
        err e = {0};
        train_result result;
        plays = 0;
        trainer *t = rig_trainer(&r);
        bool ok = trainer_run(t, &(watcher){.arg = NULL}, &result, &e);
        trainer_free(t);
        if (plays < failing_play) {
            assert_true(ok);
            break;
        }
        if (ok) fail_msg("play %d failed and the run did not", failing_play);
        assert_string_equal(e.text, "the device gave up");
    }
    assert_true(failing_play > 20);
    rig_close(&r);
}

// The watcher's word ends the run after the step at hand, wherever that is in a chunk.
static void the_watcher_stops_it(void **state) {
    (void)state;
    err e;
    static seen s;
    rig r;
    rig_open(&r, &cpu_device, 1, SMALL);
    int64_t steps = job_updates(&r.split, &r.settings);
    for (int after = 1; after < 3 * steps; after += 8) {
        bool more = true;
        uint64_t update;
        int64_t epoch, done;
        train_result result;
        memset(&s, 0, sizeof s);
        s.stop_after = after;
        watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = &s};
        trainer *t = rig_trainer(&r);
        for (int calls = 0; more && calls < 1000; calls++) support_ok(trainer_advance(t, 5, &w, &more, &e), &e);
        trainer_stands(t, &update, &epoch, &done);
        assert_true(!more && s.steps == after && update == (uint64_t)after);
        support_ok(trainer_advance(t, 5, &w, &more, &e), &e);
        assert_true(!more && s.steps == after); // nothing follows
        support_ok(trainer_finish(t, &result, &e), &e);
        assert_true(result.interrupted && result.epochs == s.epochs);
        trainer_free(t);
    }
    rig_close(&r);
}

// No steps: nothing happens, and there is more.
static void no_steps_are_no_steps(void **state) {
    (void)state;
    err e;
    static seen s;
    rig r;
    bool more = false;
    memset(&s, 0, sizeof s);
    rig_open(&r, &cpu_device, 1, SMALL);
    trainer *t = rig_trainer(&r);
    support_ok(trainer_advance(t, 0, &(watcher){.on_step = on_step, .arg = &s}, &more, &e), &e);
    assert_true(more && s.steps == 0);
    trainer_free(t);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_change_no_bit),
        cmocka_unit_test(the_watcher_stops_it),
        cmocka_unit_test(no_steps_are_no_steps),
        cmocka_unit_test(evaluation_changes_no_epoch),
        cmocka_unit_test(no_failed_step_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
