// Scaled targets: the unit of the data changes no bit of the weights and only the unit of every figure; closes are
// forecast around the last one; host and device agree; weights of targets that were not scaled are not gone on with.
#include "cpu/cpu.h"
#include "data/walk.h"
#include "run/checkpoint.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BARS = 1800, HORIZON = 3 };

// Forecasts of a walk, all prices (and the returns) times `factor`, a power of two.
static dataset *walk(label_value value, float factor) {
    err e = {0};
    bar *bars = walk_bars(BARS, 3600, 5);
    build_options o = build_defaults;
    o.label = BUILD_FORECAST;
    o.horizon = HORIZON;
    o.value = value;
    build_series one = {.symbol = "", .frame = {{"walk", bars, BARS, false}}};
    build_source from = {.frames = 1, .frame = {{.name = "fast", .span = 3600}}, .series = 1, .of = &one};
    dataset *d = build_bars(&from, &o, NULL, NULL, &e);
    support_ok(d != NULL, &e);
    for (int64_t i = 0; i < d->samples * HORIZON; i++) ((float *)d->target)[i] *= factor;
    for (int64_t i = 0; i < d->samples; i++) ((float *)d->price)[i] *= factor;
    free(bars);
    return d;
}

typedef struct {
    rig r;
    trainer *t;
    epoch_report first, last;
    double step_loss; // of the first step
    float *weights, *forecast;
} trial;

static void on_epoch(void *arg, const epoch_report *r) {
    trial *t = arg;
    if (r->epoch == 1) t->first = *r;
    t->last = *r;
}

static void on_steps(void *arg, const step_report *r) {
    trial *t = arg;
    if (isinf(t->step_loss)) t->step_loss = r->loss_min;
}

#define KEYS                                                                                                           \
    "model.kind=mlp model.widths=16 data.windows.fast=4 train.batch_size=128 train.epochs=3 data.split.embargo=0 "

static void run(trial *t, dataset *d, const char *more) {
    err e = {0};
    char keys[512];
    train_result result;
    *t = (trial){.step_loss = INFINITY};
    snprintf(keys, sizeof keys, KEYS "%s", more);
    rig_open_on(&t->r, d, &cpu_device, 2, PRECISION_FP32, keys);
    t->t = rig_trainer(&t->r);
    watcher w = {.on_epoch = on_epoch, .on_steps = on_steps, .arg = t};
    support_ok(trainer_run(t->t, &w, &result, &e), &e);
    t->weights = rig_weights(&t->r, t->t);
    int64_t n = t->r.split.validation.count * inference_width(&t->r.job);
    t->forecast = malloc((size_t)n * sizeof *t->forecast);
    assert_non_null(t->forecast);
    support_ok(trainer_predict(t->t, &t->r.split.validation, t->forecast, &e), &e);
}

static void end(trial *t) {
    free(t->weights);
    free(t->forecast);
    trainer_free(t->t);
    rig_close(&t->r);
}

static void same_weights(const trial *a, const trial *b) {
    size_t bytes = (size_t)graph_slab_elements(a->r.job.g) * sizeof(float);
    assert_memory_equal(a->weights, b->weights, bytes);
}

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-6 * fabs(want))) fail_msg("%.9g is not %.9g", is, want);
}

// Units 1024 times as small: the same weights, and figures 1024 times as large, or their squares.
static void check_units(label_value value, const char *loss, const char *loss_large, int degree) {
    enum { F = 1024 };
    trial a, b;
    run(&a, walk(value, 1), loss);
    run(&b, walk(value, F), loss_large);
    double unit = pow(F, degree);
    int64_t n = a.r.split.validation.count * inference_width(&a.r.job);
    same_weights(&a, &b);
    near(b.last.train.loss, unit * a.last.train.loss);
    near(b.last.validation.loss, unit * a.last.validation.loss);
    near(b.step_loss, unit * a.step_loss);
    near(b.last.validation.mae, F * a.last.validation.mae);
    near(b.last.validation.rmse, F * a.last.validation.rmse);
    near(b.last.validation.smape, a.last.validation.smape);
    for (int64_t i = 0; i < n; i++) assert_true(b.forecast[i] == F * a.forecast[i]);
    end(&a);
    end(&b);
}

static void the_unit_changes_no_bit(void **state) {
    (void)state;
    check_units(LABEL_PATH, "train.loss=mae", "train.loss=mae", 1);
    check_units(LABEL_STEP, "train.loss=mse", "train.loss=mse", 2);
    check_units(LABEL_PATH, "train.loss=quantile", "train.loss=quantile", 1);
    check_units(LABEL_PATH, "train.loss=huber train.huber_delta=0.001", "train.loss=huber train.huber_delta=1.024", 2);
    check_units(LABEL_PATH, "train.loss=smape", "train.loss=smape", 0);
    check_units(LABEL_CLOSE, "train.loss=mae", "train.loss=mae", 0); // of closes by the last close
}

// Errors of the forecasts or, `still`, of saying that the price stays, on the validation samples: RMSE or MAE.
static double errors(const trial *t, bool still, bool squares) {
    const dataset *d = t->r.data;
    const split_part *p = &t->r.split.validation;
    double sum = 0;
    for (int64_t i = 0; i < p->count; i++)
        for (int h = 0; h < HORIZON; h++) {
            int64_t sample = part_sample(p, i);
            double last = target_kind_of(d) == TARGET_CLOSES ? (double)d->price[sample] : 0;
            double f = still ? last : (double)t->forecast[i * HORIZON + h];
            double off = fabs((double)d->target[sample * HORIZON + h] - f);
            sum += (squares ? off * off : off) / (double)(p->count * HORIZON);
        }
    return squares ? sqrt(sum) : sum;
}

// Metrics are those of the forecasts that come out, in prices, and near the last value's from the first epoch on.
static void closes_are_forecast_around_the_last(void **state) {
    (void)state;
    trial t;
    run(&t, walk(LABEL_CLOSE, 1), "train.epochs=1");
    near(t.last.validation.mae, errors(&t, false, false));
    near(t.last.validation.rmse, errors(&t, false, true));
    assert_true(t.first.validation.rmse < 2 * errors(&t, true, true));
    end(&t);
}

// With the squares as the loss, it is the square of the RMSE in the data's units.
static void the_loss_is_in_the_datas_units(void **state) {
    (void)state;
    trial t;
    run(&t, walk(LABEL_PATH, 1), "train.loss=mse");
    near(t.last.validation.loss, t.last.validation.rmse * t.last.validation.rmse);
    near(t.last.validation.rmse, errors(&t, false, true));
    assert_true(t.first.validation.rmse < 2 * errors(&t, true, true));
    end(&t);
}

static void host_and_device_agree(void **state) {
    (void)state;
    trial a, b;
    run(&a, walk(LABEL_CLOSE, 1), "data.residency=device");
    run(&b, walk(LABEL_CLOSE, 1), "data.residency=host");
    same_weights(&a, &b);
    assert_true(a.last.validation.mae == b.last.validation.mae);
    end(&a);
    end(&b);
}

static void refused(trial *to, const char *path, const char *words) {
    err e = {0};
    safetensors *f = checkpoint_open(path, &e);
    support_ok(f != NULL, &e);
    assert_false(trainer_restore(to->t, f, path, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, words)) fail_msg("%s", e.text);
    safetensors_close(f);
}

static void other_scales_are_refused(void **state) {
    err e = {0};
    (void)state;
    trial plain, scaled, large;
    run(&plain, walk(LABEL_PATH, 1), "data.scale=none");
    run(&scaled, walk(LABEL_PATH, 1), "");
    run(&large, walk(LABEL_PATH, 2), "");
    support_ok(
        trainer_checkpoint(plain.t, "plain", NULL, 0, &e) && trainer_checkpoint(large.t, "large", NULL, 0, &e), &e);
    refused(&scaled, "plain", "was trained on targets that were not scaled yet; train without --resume");
    refused(&scaled, "large", "was trained on targets that were scaled otherwise; train without --resume");
    refused(&plain, "large", "scaled otherwise");
    end(&plain);
    end(&scaled);
    end(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_unit_changes_no_bit),
        cmocka_unit_test(closes_are_forecast_around_the_last),
        cmocka_unit_test(the_loss_is_in_the_datas_units),
        cmocka_unit_test(host_and_device_agree),
        cmocka_unit_test_setup_teardown(other_scales_are_refused, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
