// Batches from the host on a device that lags behind it: the same bits as with the data on the device, whenever the
// device reads them, for every model, with tails, micro-batches, evaluation, predictions and a run that goes on from a
// checkpoint; and staging that is planned.
#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "support.h"
#include "train/slow_card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "data.synthetic.bars=1000 data.split.embargo=0 train.batch_size=32 train.epochs=2 train.patience=9 "

// Remains of a run.
typedef struct {
    size_t bytes;
    float *weights;
    epoch_report last;
    float *predicted;
    int64_t values;
    trainer *t;
    int64_t stop_after, steps;
} outcome;

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    outcome *o = arg;
    (void)epoch;
    (void)done;
    (void)total;
    if (++o->steps != o->stop_after) return true;
    err e;
    support_ok(trainer_checkpoint(o->t, "stopped", NULL, 0, &e), &e);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    ((outcome *)arg)->last = *r;
}

static void predict(outcome *o, rig *r, trainer *t) {
    err e;
    o->values = r->split.test.count * inference_width(trainer_job(t));
    o->predicted = malloc((size_t)o->values * sizeof *o->predicted);
    assert_true(o->predicted && o->values > 0);
    support_ok(trainer_predict(t, &r->split.test, o->predicted, &e), &e);
}

// Trains from the start or a checkpoint; a run that is stopped leaves one.
static outcome trained(const device *d, const char *keys, int64_t stop_after, const char *from) {
    err e;
    rig r;
    train_result result;
    outcome o = {.stop_after = stop_after};
    rig_open(&r, d, 2, keys);
    graph_keep(r.job.g, r.job.logits);
    trainer *t = rig_trainer(&r);
    o.t = t;
    if (from) {
        safetensors *s = checkpoint_open(from, &e);
        support_ok(s && trainer_restore(t, s, from, &e), &e);
        safetensors_close(s);
    }
    support_ok(trainer_run(t, &(watcher){.on_step = on_step, .on_epoch = on_epoch, .arg = &o}, &result, &e), &e);
    assert_int_equal(result.interrupted, stop_after > 0);
    o.weights = rig_weights(&r, t);
    o.bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *o.weights;
    predict(&o, &r, t);
    trainer_free(t);
    rig_close(&r);
    return o;
}

static void outcome_free(outcome *o) {
    free(o->weights);
    free(o->predicted);
}

static void check_same(const char *keys, const outcome *a, const outcome *b) {
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->values, b->values);
    if (memcmp(a->weights, b->weights, a->bytes) != 0) fail_msg("%s: weights differ", keys);
    if (memcmp(a->predicted, b->predicted, (size_t)a->values * sizeof(float)) != 0)
        fail_msg("%s: predictions differ", keys);
    assert_memory_equal(&a->last.train, &b->last.train, sizeof a->last.train);
    assert_memory_equal(&a->last.validation, &b->last.validation, sizeof a->last.validation);
}

static void check(const char *keys, bool runs_ahead) {
    static const char *const ways[] = {"", "data.num_workers=0 data.prefetch_factor=1", "data.num_workers=3"};
    char all[512];
    snprintf(all, sizeof all, "%s data.residency=device", keys);
    outcome want = trained(&cpu_device, all, 0, NULL);
    for (size_t i = 0; i < 2 * sizeof ways / sizeof *ways; i++) {
        const device *d = i % 2 ? slow_card_early() : slow_card_late();
        snprintf(all, sizeof all, "%s data.residency=host %s", keys, ways[i / 2]);
        outcome is = trained(d, all, 0, NULL);
        check_same(all, &want, &is);
        assert_int_equal(slow_card_behind() > 0, runs_ahead || i % 2 == 0);
        outcome_free(&is);
    }
    outcome_free(&want);
}

static void streaming_changes_no_bit(void **state) {
    (void)state;
    check(SMALL "model.kind=lstm model.hidden.fast=8 model.hidden.slow=8 data.scale=standard", true);
    check(SMALL "model.kind=mlp model.widths=32 train.class_weights=balanced", true);
    check(SMALL "model.kind=transformer model.hidden.fast=16 model.hidden.slow=16 model.layers=1 model.heads=2 "
                "data.windows.fast=12 data.windows.slow=5",
        true);
    check(SMALL "model.kind=nbeats model.width=16 model.blocks=1", true);
}

// 532 training samples are 16 batches of 32 and one of 20: the last step has no second of two micro-batches, and no
// third of three. A batch may be more than all samples; there is then nothing to run ahead of.
static void micro_batches_change_no_bit(void **state) {
    (void)state;
    check(SMALL "model.kind=mlp model.widths=32 gpu_optimization.gradient_accumulation_steps=2", true);
    check(SMALL "model.kind=mlp model.widths=32 gpu_optimization.gradient_accumulation_steps=3 data.scale=standard",
        true);
    check(SMALL "model.kind=mlp model.widths=32 train.batch_size=7", true);
    check(SMALL "model.kind=mlp model.widths=32 train.batch_size=2000", false);
}

// Stopped on one device, gone on with on another.
static void a_stopped_run_goes_on(void **state) {
    (void)state;
    static const char keys[] = SMALL "model.kind=mlp model.widths=32 data.residency=host";
    for (int accumulation = 1; accumulation <= 2; accumulation++) {
        char all[512];
        snprintf(all, sizeof all, "%s gpu_optimization.gradient_accumulation_steps=%d", keys, accumulation);
        outcome want = trained(&cpu_device, all, 0, NULL), some = trained(slow_card_late(), all, 5, NULL),
                more = trained(slow_card_early(), all, 8, "stopped"), is = trained(slow_card_late(), all, 0, "stopped");
        check_same(all, &want, &is);
        outcome_free(&want);
        outcome_free(&some);
        outcome_free(&more);
        outcome_free(&is);
    }
}

// Staging

static size_t allocated;

static void *count_bytes(queue *q, size_t bytes, err *e) {
    allocated += bytes;
    return cpu_device.allocate(q, bytes, e);
}

static void staging_is_planned(void **state) {
    (void)state;
    rig r;
    device d = *slow_card_late();
    d.allocate = count_bytes;
    allocated = 0;
    rig_open(&r, &d, 1, SMALL "model.kind=mlp model.widths=32 data.residency=host");
    size_t bytes = r.job.feed_bytes;
    size_t row = (size_t)(r.window[0] * r.data->stream[0].series.width + r.window[1] * r.data->stream[1].series.width +
                          r.data->vector.width + 2);
    assert_true(bytes >= 4 * 32 * row && bytes < 4 * 32 * row + (size_t)r.job.feeds * 64);
    engine_memory m = trainer_memory(&r.job, &r.split, &r.settings, &d, r.queue),
                  here = trainer_memory(&r.job, &r.split, &r.settings, &cpu_device, r.queue);
    assert_int_equal(m.staging, LANES * plan_aligned(bytes));
    assert_int_equal(here.staging, plan_aligned(bytes)); // the CPU reads one block at a time
    trainer *t = rig_trainer(&r);
    assert_int_equal(allocated, m.total);
    trainer_free(t);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streaming_changes_no_bit),
        cmocka_unit_test(micro_batches_change_no_bit),
        cmocka_unit_test_setup_teardown(a_stopped_run_goes_on, support_enter, support_leave),
        cmocka_unit_test(staging_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
