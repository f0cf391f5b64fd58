// Training on a part of several spans: class weights of all its samples, each sample once an epoch, the same bits from
// host and device, and a run that goes on where it was stopped.
#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL                                                                                                          \
    "data.synthetic.bars=1000 data.split.embargo=0 model.kind=mlp model.widths=16 train.batch_size=32 train.epochs=2 " \
    "train.class_weights=balanced data.scale=standard "

// A rig whose training part is three spans, and whose validation is two.
static void rig_spans(rig *r, const char *keys) {
    err e;
    static const span train[] = {{0, 77}, {90, 130}, {300, 1}}, validation[] = {{400, 33}, {450, 40}};
    rig_open(r, &cpu_device, 1, keys);
    r->split.train = r->split.validation = (split_part){0};
    for (int k = 0; k < 3; k++) part_add(&r->split.train, train[k]);
    for (int k = 0; k < 2; k++) part_add(&r->split.validation, validation[k]);
    job_done(&r->job);
    scaler_free(r->scaler);
    r->scaler = scaler_fit(r->data, &r->split.train, r->window, false, &e);
    support_ok(r->scaler != NULL, &e);
    job_init(&r->job, r->data, &r->split, &r->settings, &r->model, r->window, r->scaler, PRECISION_FP32);
}

static void count_labels(const rig *r, const split_part *p, int64_t count[3]) {
    for (int k = 0; k < p->spans; k++)
        for (int64_t i = 0; i < p->span[k].count; i++) count[r->data->label[p->span[k].first + i]]++;
}

static void class_weights_are_those_of_all_spans(void **state) {
    (void)state;
    rig r;
    rig_spans(&r, SMALL);
    int64_t count[3] = {0};
    count_labels(&r, &r.split.train, count);
    assert_int_equal(count[0] + count[1] + count[2], 208);
    for (int k = 0; k < 3; k++) assert_true(r.job.class_weight[k] == (float)(208.0 / (3.0 * (double)count[k])));
    rig_close(&r);
}

// A class without training samples, of which label smoothing would otherwise ask for a share.
static void a_class_without_samples_weighs_nothing(void **state) {
    (void)state;
    err e;
    rig r;
    dataset *d = synthetic_new(&(synthetic_options){.bars = 1000, .seed = 3, .strength = 1}, &e);
    support_ok(d != NULL, &e);
    int32_t *label = (int32_t *)(uintptr_t)d->label;
    for (int64_t i = 0; i < d->samples / 2; i++) label[i] = label[i] == 2 ? 1 : label[i];
    rig_open_on(&r, d, &cpu_device, 1, PRECISION_FP32, SMALL "data.split.train=0.5 train.label_smoothing=0.1");
    int64_t count[3] = {0};
    count_labels(&r, &r.split.train, count);
    assert_true(count[0] > 0 && count[1] > 0 && count[2] == 0);
    assert_true(r.job.class_weight[2] == 0);
    for (int k = 0; k < 2; k++)
        assert_true(r.job.class_weight[k] == (float)((double)r.split.train.count / (3.0 * (double)count[k])));
    rig_close(&r);
}

typedef struct {
    trainer *t;
    epoch_report report[2];
    int64_t steps, stop_after;
} seen;

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    seen *s = arg;
    err e;
    (void)epoch;
    assert_true(done <= total && total == 208);
    if (++s->steps != s->stop_after) return true;
    support_ok(trainer_checkpoint(s->t, "stopped", NULL, 0, &e), &e);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    ((seen *)arg)->report[r->epoch - 1] = *r;
}

static float *trained(rig *r, const char *from, int64_t stop_after, seen *s) {
    err e;
    train_result result;
    *s = (seen){.t = rig_trainer(r), .stop_after = stop_after};
    if (from) {
        safetensors *f = checkpoint_open(from, &e);
        support_ok(f && trainer_restore(s->t, f, from, &e), &e);
        safetensors_close(f);
    }
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = s};
    support_ok(trainer_run(s->t, &w, &result, &e), &e);
    float *weights = rig_weights(r, s->t);
    trainer_free(s->t);
    return weights;
}

// Rows of the confusion matrix count the samples by their labels.
static void check_counted(const rig *r, const split_part *p, const score *s) {
    int64_t rows[3] = {0}, labels[3] = {0};
    for (int i = 0; i < 9; i++) rows[i / 3] += s->confusion[i];
    count_labels(r, p, labels);
    assert_memory_equal(rows, labels, sizeof rows);
    assert_int_equal(s->samples, p->count);
}

static void every_sample_comes_once(void **state) {
    (void)state;
    static seen s;
    rig r;
    rig_spans(&r, SMALL);
    free(trained(&r, NULL, 0, &s));
    for (int k = 0; k < 2; k++) {
        check_counted(&r, &r.split.train, &s.report[k].train);
        check_counted(&r, &r.split.validation, &s.report[k].validation);
    }
    rig_close(&r);
}

// From the device, from the host, and stopped in the second epoch and gone on with.
static void all_ways_give_the_same_bits(void **state) {
    (void)state;
    static seen s;
    rig r, host;
    rig_spans(&r, SMALL);
    rig_spans(&host, SMALL "data.residency=host");
    size_t bytes = (size_t)graph_slab_elements(r.job.g) * sizeof(float);
    float *want = trained(&r, NULL, 0, &s), *streamed = trained(&host, NULL, 0, &s);
    assert_memory_equal(want, streamed, bytes);
    free(trained(&r, NULL, 10, &s));
    float *on = trained(&r, "stopped", 0, &s), *streamed_on = trained(&host, "stopped", 0, &s);
    assert_memory_equal(want, on, bytes);
    assert_memory_equal(want, streamed_on, bytes);
    free(want);
    free(streamed);
    free(on);
    free(streamed_on);
    rig_close(&r);
    rig_close(&host);
}

// A checkpoint that stands among other spans, though as many samples, is refused.
static void other_spans_are_refused(void **state) {
    (void)state;
    err e;
    static seen s;
    rig r, other;
    rig_spans(&r, SMALL);
    rig_spans(&other, SMALL);
    free(trained(&r, NULL, 10, &s));
    other.split.train.span[1].first++;
    trainer *t = rig_trainer(&other);
    safetensors *f = checkpoint_open("stopped", &e);
    support_ok(f != NULL, &e);
    assert_false(trainer_restore(t, f, "stopped", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "among other samples"));
    safetensors_close(f);
    trainer_free(t);
    rig_close(&r);
    rig_close(&other);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(class_weights_are_those_of_all_spans),
        TEST(a_class_without_samples_weighs_nothing),
        TEST(every_sample_comes_once),
        TEST(all_ways_give_the_same_bits),
        TEST(other_spans_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
