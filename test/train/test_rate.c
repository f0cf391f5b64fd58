// A description's optimizer and learning rate, down to the numbers on the device, and training that follows them.
#include "cpu/cpu.h"
#include "ops/schedule.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "model.kind=mlp model.widths=8 train.batch_size=256 train.epochs=3 "

static lr_schedule schedule_of(const char *keys) {
    char text[512] = SMALL;
    rig r;
    strncat(text, keys, sizeof text - strlen(text) - 1);
    rig_open(&r, &cpu_device, 1, text);
    lr_schedule s = r.job.schedule;
    int64_t updates = (r.split.train.count + 255) / 256;
    if (s.kind != SCHEDULE_CONSTANT) assert_true(s.total == 3 * (uint64_t)updates || s.total == 1000);
    rig_close(&r);
    return s;
}

static void kinds(void **state) {
    (void)state;
    lr_schedule s = schedule_of("");
    assert_true(s.kind == SCHEDULE_CONSTANT && s.warmup == 0);
    s = schedule_of("train.schedule.kind=cosine train.schedule.warmup=4 train.schedule.end=0.1");
    assert_true(s.kind == SCHEDULE_COSINE && s.warmup == 4 && s.end == 0.1 && s.start == 0.01);
    s = schedule_of("train.schedule.kind=linear train.schedule.total=1000");
    assert_true(s.kind == SCHEDULE_LINEAR && s.total == 1000 && s.end == 0);
    s = schedule_of("train.schedule.kind=step train.schedule.every=7");
    assert_true(s.kind == SCHEDULE_STEP && s.every == 7 && s.gamma == 0.1);
    s = schedule_of("train.schedule.kind=plateau train.schedule.warmup=2");
    assert_true(s.kind == SCHEDULE_CONSTANT && s.warmup == 2);
}

// The rate has fallen by gamma at the end of every epoch, a little at every update.
static void exponential_by_epochs(void **state) {
    (void)state;
    lr_schedule s = schedule_of("train.schedule.kind=exponential train.schedule.gamma=0.5");
    uint64_t epoch = s.total / 3;
    assert_true(fabs(schedule_factor(&s, epoch) - 0.5) < 1e-12 && fabs(schedule_factor(&s, 2 * epoch) - 0.25) < 1e-12);
    assert_true(schedule_factor(&s, 1) < 1);
    s = schedule_of("train.schedule.kind=step train.schedule.gamma=0.5");
    assert_true(schedule_factor(&s, epoch - 1) == 1 && schedule_factor(&s, epoch) == 0.5);
}

static void one_cycle_of_the_run(void **state) {
    (void)state;
    lr_schedule s = schedule_of("train.schedule.kind=one_cycle");
    assert_true(fabs(schedule_factor(&s, 0) - 1.0 / 25) < 1e-15);
    assert_true(fabs(schedule_factor(&s, s.total - 1) - 1.0 / 25e4) < 1e-15);
    assert_true(fabs(s.peak - (0.3 * (double)s.total - 1)) < 1e-12);
}

static void refuse(const char *keys, const char *text) {
    static const char nothing[] = "data: {}\n";
    err e = {0};
    settings s;
    config *c = config_read("test", nothing, sizeof nothing - 1, settings_keys(), settings_key_count(), &e);
    assert_non_null(c);
    char copy[256], *save = NULL;
    strncpy(copy, keys, sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    for (char *k = strtok_r(copy, " ", &save); k; k = strtok_r(NULL, " ", &save))
        support_ok(config_override(c, k, &e), &e);
    assert_false(config_check(c, &e) && settings_read(c, &s, &e));
    assert_non_null(strstr(e.text, text));
    config_free(c);
}

static void contradictions(void **state) {
    (void)state;
    refuse("train.schedule.kind=one_cycle train.schedule.warmup=5", "one_cycle rises by itself");
    refuse("train.schedule.kind=cosine train.schedule.warmup=5 train.schedule.total=5", "as long as the schedule");
    refuse("train.optimizer.kind=sgd train.optimizer.nesterov=true train.optimizer.momentum=0", "needs a momentum");
    refuse("train.schedule.kind=cosin", "train.schedule.kind");
}

static const metric *metric_of(const char *key, unsigned task, err *e) {
    static const char nothing[] = "data: {}\n";
    config *c = config_read("test", nothing, sizeof nothing - 1, settings_keys(), settings_key_count(), e);
    assert_non_null(c);
    support_ok(config_override(c, key, e) && config_check(c, e), e);
    const metric *m = settings_metric(c, task, e);
    config_free(c);
    return m;
}

static void any_metric_decides(void **state) {
    (void)state;
    err e = {0};
    char key[64];
    for (int i = 0; metric_at(i); i++) {
        snprintf(key, sizeof key, "train.metric=%s", metric_at(i)->name);
        for (unsigned task = METRIC_CLASSES; task <= METRIC_SERIES; task *= 2)
            assert_ptr_equal(metric_of(key, task, &e), metric_at(i)->tasks & task ? metric_at(i) : NULL);
    }
    assert_ptr_equal(metric_of("train.metric=auto", METRIC_CLASSES, &e), metric_find("mcc"));
    assert_ptr_equal(metric_of("train.metric=auto", METRIC_FORECASTS, &e), metric_find("mae"));
    assert_ptr_equal(metric_of("train.metric=auto", METRIC_SERIES, &e), metric_find("smape"));
    assert_null(metric_of("train.metric=owa", METRIC_FORECASTS, &e));
    assert_non_null(strstr(e.text, "train.metric: owa is for forecasts of series; use one of smape, mae, rmse, loss"));
    assert_null(metric_of("train.metric=rmse", METRIC_CLASSES, &e));
    assert_non_null(strstr(
        e.text, "train.metric: rmse is for forecasts; use one of mcc, accuracy, balanced_accuracy, macro_f1, loss"));
}

// The distance that a first step goes.
static double first_step(const char *keys) {
    char text[512] = SMALL "model.dropout=0 train.clip_norm=0 ";
    rig r;
    err e;
    strncat(text, keys, sizeof text - strlen(text) - 1);
    rig_open(&r, &cpu_device, 1, text);
    trainer *t = rig_trainer(&r);
    float *before = rig_weights(&r, t);
    solo_step s = {.seed = 1, .count = (uint64_t)r.split.train.count, .lr = 1e-3f};
    support_ok(support_step_write(t, &s, &e), &e);
    support_ok(support_play(t, PASS_FIRST, &e) && support_play(t, PASS_UPDATE, &e), &e);
    float *after = rig_weights(&r, t);
    double sum = 0;
    for (int64_t i = 0; i < graph_slab_elements(r.job.g); i++) sum += fabs((double)after[i] - (double)before[i]);
    free(before);
    free(after);
    trainer_free(t);
    rig_close(&r);
    return sum;
}

static void a_job_follows_its_schedule(void **state) {
    (void)state;
    double full = first_step("train.optimizer.weight_decay=0");
    double warm = first_step("train.optimizer.weight_decay=0 train.schedule.warmup=10 train.schedule.start=0.25");
    assert_true(fabs(warm / full - 0.25) < 1e-3);
    double cycle = first_step("train.optimizer.weight_decay=0 train.schedule.kind=one_cycle");
    assert_true(fabs(cycle / full - 0.04) < 1e-3);
    full = first_step("train.optimizer.kind=sgd");
    warm = first_step("train.optimizer.kind=sgd train.schedule.warmup=10 train.schedule.start=0.25");
    assert_true(fabs(warm / full - 0.25) < 1e-3);
    assert_true(fabs(first_step("train.optimizer.kind=sgd train.optimizer.nesterov=true") / full - 1.9) < 1e-3);
}

static char *named(char text[128], const char *kind, const char *more) {
    snprintf(text, 128, "train.optimizer.kind=%s train.optimizer.weight_decay=0 %s", kind, more);
    return text;
}

// Every optimizer of the table has its keys, moves the weights, follows the schedule and lets them decay.
static void every_optimizer_steps(void **state) {
    (void)state;
    for (int k = 0; k < OPTIMIZER_COUNT; k++) {
        char text[128];
        const char *name = optimizer_name((optimizer_kind)k);
        double full = first_step(named(text, name, ""));
        double warm = first_step(named(text, name, "train.schedule.warmup=10 train.schedule.start=0.25"));
        if (!(full > 0 && fabs(warm / full - 0.25) < 1e-3)) fail_msg("%s: %g, then %g", name, full, warm);
        snprintf(text, sizeof text, "train.optimizer.kind=%s train.optimizer.weight_decay=1", name);
        if (first_step(text) == full) fail_msg("%s: nothing decays", name);
    }
}

// Every loss of classes trains.
static void every_loss_of_classes_steps(void **state) {
    (void)state;
    for (int k = 0; k < LOSS_COUNT; k++) {
        char text[64];
        snprintf(text, sizeof text, "train.loss=%s", loss_name((loss_kind)k));
        if (loss_at((loss_kind)k)->classes) assert_true(first_step(text) > 0);
    }
}

static void what_decays_matters(void **state) {
    (void)state;
    double all = first_step("train.optimizer.weight_decay=1"), some;
    some = first_step("train.optimizer.weight_decay=1 train.optimizer.decay=weights");
    assert_true(all != some && fabs(all - some) < 0.2 * all);
    assert_true(first_step("train.optimizer.weight_decay=0") ==
                first_step("train.optimizer.weight_decay=0 train.optimizer.decay=weights"));
    assert_true(first_step("train.optimizer.weight_decay=1 train.optimizer.kind=adam") != all);
}

// The plateau of a trainer is that of the metric by which epochs are judged.
typedef struct {
    plateau want;
    plateau_options o;
    const metric *by;
    int epochs;
} judged;

static void on_judged(void *arg, const epoch_report *r) {
    judged *j = arg;
    double value = j->o.higher ? r->validation.mcc : r->validation.loss;
    assert_true(fabs(r->lr - j->want.lr) <= 1e-7 * j->want.lr);
    plateau_take(&j->want, &j->o, value);
    j->epochs++;
}

static void a_plateau_follows_its_metric(void **state) {
    (void)state;
    static const char *const metrics[] = {"mcc", "loss"};
    for (int k = 0; k < 2; k++) {
        err e;
        rig r;
        train_result result;
        rig_open(&r, &cpu_device, 1,
            SMALL "train.epochs=12 train.patience=12 train.schedule.kind=plateau train.schedule.patience=0 "
                  "train.schedule.factor=0.5 train.optimizer.lr=1e-2");
        trainer *t = rig_trainer(&r);
        judged j = {.by = metric_find(metrics[k]), .o = r.settings.rate.plateau};
        j.o.higher = j.by->higher;
        plateau_init(&j.want, 1e-2);
        trainer_judge_by(t, j.by, NULL);
        support_ok(trainer_run(t, &(watcher){.on_epoch = on_judged, .arg = &j}, &result, &e), &e);
        assert_true(j.epochs == 12 && j.want.falls > 0 && j.want.falls < 11);
        trainer_free(t);
        rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(exponential_by_epochs),
        cmocka_unit_test(one_cycle_of_the_run),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(any_metric_decides),
        cmocka_unit_test(a_job_follows_its_schedule),
        cmocka_unit_test(every_optimizer_steps),
        cmocka_unit_test(every_loss_of_classes_steps),
        cmocka_unit_test(what_decays_matters),
        cmocka_unit_test(a_plateau_follows_its_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
