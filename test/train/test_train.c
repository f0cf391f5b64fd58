// Training as a whole: exact by seed on any number of threads, able to learn, stopping when it should, and leaving the
// best weights behind.
#include "train/trainer.h"

#include "base/half.h"
#include "cpu/cpu.h"
#include "run/safetensors.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A watcher's sights, and the moment when it asks to stop.
typedef struct {
    int64_t stop_after, steps, epochs;
    double first_loss, last_loss, best_mcc;
    int64_t best_epoch;
    float *best;
    rig *r;
    trainer *t;
} witness;

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    witness *w = arg;
    w->steps++;
    assert_int_equal(epoch, w->epochs + 1);
    assert_true(done > 0 && done <= total);
    return !w->stop_after || w->steps < w->stop_after;
}

static void on_epoch(void *arg, const epoch_report *r) {
    witness *w = arg;
    assert_int_equal(r->epoch, ++w->epochs);
    assert_true(isfinite(r->train.loss) && isfinite(r->grad_norm) && r->skipped == 0);
    if (r->epoch == 1) w->first_loss = r->train.loss;
    w->last_loss = r->train.loss;
    assert_int_equal(r->best, !w->best_epoch || r->validation.mcc > w->best_mcc);
    if (!r->best) return;
    w->best_epoch = r->epoch;
    w->best_mcc = r->validation.mcc;
    free(w->best);
    w->best = w->t ? rig_weights(w->r, w->t) : NULL;
}

static train_result run(trainer *t, witness *w) {
    err e;
    train_result result;
    support_ok(trainer_run(t, &(watcher){.on_step = on_step, .on_epoch = on_epoch, .arg = w}, &result, &e), &e);
    return result;
}

// Exactness

#define SMALL "data.synthetic.bars=1000 data.split.embargo=0 train.batch_size=32 train.epochs=2 train.patience=9 "

static float *trained(const char *keys, int threads, size_t *bytes) {
    err e;
    rig r;
    solo_step last;
    witness w = {0};
    rig_open(&r, &cpu_device, threads, keys);
    trainer *t = rig_trainer(&r);
    run(t, &w);
    assert_int_equal(w.epochs, 2);
    support_ok(support_step_read(t, &last, &e), &e);
    assert_int_equal(last.update, w.steps); // counted on from epoch to epoch
    float *weights = rig_weights(&r, t);
    *bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *weights;
    trainer_free(t);
    rig_close(&r);
    return weights;
}

static void check_exact(const char *keys, const char *other_seed) {
    size_t bytes;
    float *once = trained(keys, 1, &bytes), *again = trained(keys, 1, &bytes), *threads = trained(keys, 3, &bytes),
          *other = trained(other_seed, 1, &bytes);
    assert_memory_equal(once, again, bytes);
    assert_memory_equal(once, threads, bytes);
    assert_memory_not_equal(once, other, bytes);
    free(once);
    free(again);
    free(threads);
    free(other);
}

static void equal_seeds_give_equal_bits(void **state) {
    (void)state;
    check_exact(SMALL, SMALL "train.seed=2");
    check_exact(SMALL "model.kind=mlp gpu_optimization.gradient_accumulation_steps=3",
        SMALL "model.kind=mlp gpu_optimization.gradient_accumulation_steps=3 train.seed=2");
    check_exact(SMALL "model.kind=mlp train.optimizer.kind=sgd model.activation=gelu",
        SMALL "model.kind=mlp train.optimizer.kind=sgd model.activation=gelu train.seed=2");
}

// Where the data lie and how their columns are stored makes no difference

static void check_residencies(const char *keys) {
    static const char *const places[] = {"data.residency=device", "data.residency=host",
        "data.residency=host data.num_workers=0", "data.residency=host data.num_workers=3 data.prefetch_factor=1"};
    size_t bytes;
    float *first = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char all[512];
        snprintf(all, sizeof all, "%s %s", keys, places[i]);
        float *weights = trained(all, 2, &bytes);
        if (first) assert_memory_equal(first, weights, bytes);
        if (first) free(weights);
        first = first ? first : weights;
    }
    free(first);
}

static void residency_changes_no_bit(void **state) {
    (void)state;
    check_residencies(SMALL);
    check_residencies(SMALL "data.scale=standard train.class_weights=balanced");
    check_residencies(SMALL "model.kind=mlp model.widths=32 gpu_optimization.gradient_accumulation_steps=3");
    check_residencies(SMALL "model.kind=mlp model.widths=32 train.batch_size=1000 data.scale=standard");
}

// Rounds a table's values to halves, in place or as a table of halves and floats.
static void store_as(table *t, bool typed) {
    int64_t n = t->rows * t->width, left = t->width / 2, right = t->width - left;
    float *values = (float *)(uintptr_t)table_floats(t);
    for (int64_t i = 0; i < n; i++) values[i] = half_widen(half_narrow(values[i]));
    if (!typed) return;
    uint16_t *halves = malloc((size_t)(t->rows * left) * sizeof *halves);
    float *floats = malloc((size_t)(t->rows * right) * sizeof *floats);
    assert_true(halves && floats);
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t c = 0; c < left; c++) halves[r * left + c] = half_narrow(values[r * t->width + c]);
        memcpy(floats + r * right, values + r * t->width + left, (size_t)right * sizeof *floats);
    }
    *t = (table){.rows = t->rows};
    table_add(t, COLUMN_F16, left, halves);
    table_add(t, COLUMN_F32, right, floats);
}

static float *trained_from(const char *keys, bool typed, size_t *bytes) {
    rig r;
    witness w = {0};
    rig_open(&r, &cpu_device, 2, keys);
    job_done(&r.job);
    table *tables[3] = {&r.data->stream[0].series, &r.data->stream[1].series, &r.data->vector};
    for (int i = 0; i < 3; i++) store_as(tables[i], typed);
    job_init(&r.job, r.data, &r.split, &r.settings, &r.model, r.window, r.scaler, PRECISION_FP32);
    trainer *t = rig_trainer(&r);
    run(t, &w);
    float *weights = rig_weights(&r, t);
    *bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *weights;
    trainer_free(t);
    for (int i = 0; typed && i < 3; i++)
        for (int k = 0; k < 2; k++) free((void *)(uintptr_t)tables[i]->part[k].data);
    rig_close(&r);
    return weights;
}

static void storage_changes_no_bit(void **state) {
    (void)state;
    static const char *const keys[] = {SMALL, SMALL "data.residency=host", SMALL "data.scale=standard",
        SMALL "model.kind=mlp model.widths=32", SMALL "model.kind=mlp model.widths=32 data.residency=host"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t bytes;
        float *plain = trained_from(keys[i], false, &bytes), *typed = trained_from(keys[i], true, &bytes);
        assert_memory_equal(plain, typed, bytes);
        free(plain);
        free(typed);
    }
}

// Learning

static void one_batch_overfits(void **state) {
    (void)state;
    err e;
    rig r;
    witness w = {0};
    static score s;
    rig_open(&r, &cpu_device, 1,
        "data.synthetic.bars=1000 data.split.embargo=0 model.dropout=0 train.batch_size=32 train.epochs=250 "
        "train.patience=1000 train.optimizer.lr=5e-3 train.optimizer.weight_decay=0");
    r.split.train = r.split.validation = part_of((span){0, 32});
    trainer *t = rig_trainer(&r);
    run(t, &w);
    assert_int_equal(w.steps, 250);
    assert_true(w.first_loss > 1.0 && w.last_loss < 0.05);
    support_ok(trainer_evaluate(t, &r.split.train, &s, &e), &e);
    assert_true(s.accuracy == 1 && s.mcc == 1);
    trainer_free(t);
    rig_close(&r);
}

// Three quarters of what the best possible classifier scores, on samples that it has not seen.
static void reaches_a_known_score(void **state) {
    (void)state;
    rig r;
    witness w = {0};
    rig_open(&r, &cpu_device, 0,
        support_sanitized() ? "data.synthetic.bars=6000 model.kind=mlp model.widths=64 data.windows.fast=24 "
                              "train.batch_size=64 train.epochs=6 train.optimizer.lr=2e-3"
                            : "data.synthetic.bars=20000 train.batch_size=128 train.epochs=5 train.optimizer.lr=2e-3");
    trainer *t = rig_trainer(&r);
    train_result result = run(t, &w);
    double possible = rig_best_mcc(&r, &r.split.validation), wanted = support_sanitized() ? 0.4 : 0.75;
    print_message("validation MCC %.4f of %.4f\n", result.best, possible);
    assert_true(result.best >= wanted * possible);
    assert_true(result.best <= possible + 0.05);
    trainer_free(t);
    rig_close(&r);
}

// A market without a signal cannot be learnt: whoever scores on it has seen the future.
static void noise_stays_noise(void **state) {
    (void)state;
    rig r;
    witness w = {0};
    rig_open(&r, &cpu_device, 0,
        "data.synthetic.bars=8000 data.synthetic.strength=0 model.kind=mlp model.widths=64 train.batch_size=128 "
        "train.epochs=3");
    trainer *t = rig_trainer(&r);
    train_result result = run(t, &w);
    assert_true(fabs(result.best) < 0.12);
    trainer_free(t);
    rig_close(&r);
}

static void note_skipped(void *arg, const epoch_report *r) {
    *(int64_t *)arg = r->skipped;
}

// Weights that have run away: steps are skipped and counted, no epoch counts as the best, and the run ends.
static void divergence_is_counted(void **state) {
    (void)state;
    err e;
    rig r;
    int64_t skipped = 0;
    train_result result;
    rig_open(&r, &cpu_device, 1,
        "model.kind=mlp model.widths=16-16 train.batch_size=64 train.epochs=3 train.clip_norm=0 "
        "train.optimizer.kind=sgd train.optimizer.lr=100 train.optimizer.weight_decay=0");
    trainer *t = rig_trainer(&r);
    float *weights = rig_weights(&r, t);
    for (int64_t i = 0; i < graph_slab_elements(r.job.g); i++) weights[i] *= 1e20f;
    support_ok(support_write(t, graph_slab(r.job.g, SLAB_WEIGHTS), weights, &e), &e);
    support_ok(trainer_run(t, &(watcher){.on_epoch = note_skipped, .arg = &skipped}, &result, &e), &e);
    assert_int_equal(result.epochs, 1);
    assert_int_equal(skipped, (r.split.train.count + 63) / 64);
    assert_int_equal(result.best_epoch, 0);
    assert_true(result.diverged && !result.stopped_early);
    free(weights);
    trainer_free(t);
    rig_close(&r);
}

// The loss scale. The CPU does not compute in fp16, but a job that claims to starts with fp16's scale and is watched.

static float *scaled(precision p, size_t *bytes) {
    rig r;
    witness w = {0};
    rig_open(&r, &cpu_device, 1, SMALL "model.dropout=0.1");
    r.job.precision = p;
    trainer *t = rig_trainer(&r);
    run(t, &w);
    float *weights = rig_weights(&r, t);
    *bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *weights;
    trainer_free(t);
    rig_close(&r);
    return weights;
}

static void loss_scale_changes_no_bit(void **state) {
    (void)state;
    size_t bytes;
    float *plain = scaled(PRECISION_FP32, &bytes), *high = scaled(PRECISION_FP16, &bytes);
    assert_memory_equal(plain, high, bytes);
    free(plain);
    free(high);
}

static void note_scale(void *arg, const epoch_report *r) {
    (void)arg;
    assert_true(r->loss_scale == LOSS_SCALE_START && r->skipped > 0);
}

static void endless_overflow_ends_the_run(void **state) {
    (void)state;
    err e;
    rig r;
    train_result result;
    rig_open(
        &r, &cpu_device, 1, "model.kind=mlp model.widths=16-16 train.batch_size=64 train.epochs=30 train.patience=30");
    r.job.precision = PRECISION_FP16;
    trainer *t = rig_trainer(&r);
    float *weights = rig_weights(&r, t);
    weights[0] = NAN;
    support_ok(support_write(t, graph_slab(r.job.g, SLAB_WEIGHTS), weights, &e), &e);
    assert_false(trainer_run(t, &(watcher){.on_epoch = note_scale}, &result, &e));
    assert_non_null(strstr(e.text, "bf16"));
    assert_true(result.epochs >= 1 && result.epochs < 10);
    free(weights);
    trainer_free(t);
    rig_close(&r);
}

// Stopping

#define HOPELESS                                                                                                       \
    "data.synthetic.bars=1000 data.synthetic.strength=0 model.kind=mlp model.widths=8 train.batch_size=64 "            \
    "train.epochs=60 train.patience=3 "

static void stops_early(void **state) {
    (void)state;
    rig r;
    witness w = {0};
    rig_open(&r, &cpu_device, 1, HOPELESS);
    w.r = &r;
    trainer *t = w.t = rig_trainer(&r);
    train_result result = run(t, &w);
    assert_true(result.stopped_early && !result.interrupted);
    assert_int_equal(result.epochs, w.epochs);
    assert_int_equal(result.best_epoch, w.best_epoch);
    assert_true(result.best == w.best_mcc);
    assert_int_equal(result.epochs, result.best_epoch + 3);
    float *weights = rig_weights(&r, t);
    assert_memory_equal(weights, w.best, (size_t)graph_slab_elements(r.job.g) * sizeof *weights);
    free(weights);
    free(w.best);
    trainer_free(t);
    rig_close(&r);
}

static void check_interruption(int64_t whole_epochs, int64_t more_steps) {
    err e;
    rig r;
    witness w = {.r = &r};
    static score s;
    rig_open(&r, &cpu_device, 1, "model.kind=mlp model.widths=8 train.batch_size=50 train.epochs=20");
    trainer *t = w.t = rig_trainer(&r);
    int64_t per_epoch = (r.split.train.count + 49) / 50;
    w.stop_after = whole_epochs * per_epoch + more_steps;
    train_result result = run(t, &w);
    assert_true(result.interrupted && !result.stopped_early);
    assert_int_equal(w.steps, w.stop_after);
    assert_int_equal(result.epochs, whole_epochs);
    assert_int_equal(result.best_epoch, w.best_epoch);
    if (whole_epochs) {
        float *weights = rig_weights(&r, t);
        assert_memory_equal(weights, w.best, (size_t)graph_slab_elements(r.job.g) * sizeof *weights);
        support_ok(trainer_evaluate(t, &r.split.validation, &s, &e), &e);
        assert_true(s.mcc == result.best);
        free(weights);
    }
    free(w.best);
    trainer_free(t);
    rig_close(&r);
}

static void interruption_keeps_the_best(void **state) {
    (void)state;
    check_interruption(0, 1);
    check_interruption(2, 1);
    check_interruption(3, 7);
}

// Evaluation

static void evaluation_counts_every_sample_once(void **state) {
    (void)state;
    err e;
    rig r;
    static score s, halves[2];
    rig_open(&r, &cpu_device, 2, "train.batch_size=64");
    trainer *t = rig_trainer(&r);
    span all = {5, 333}, part[2] = {{5, 100}, {105, 233}};
    split_part whole = part_of(all);
    support_ok(trainer_evaluate(t, &whole, &s, &e), &e);
    int64_t count = 0, rows[3] = {0}, labels[3] = {0};
    for (int i = 0; i < 9; i++) rows[i / 3] += s.confusion[i];
    for (int64_t i = all.first; i < all.first + all.count; i++) labels[r.data->label[i]]++;
    assert_memory_equal(rows, labels, sizeof rows);
    for (int k = 0; k < 2; k++) {
        split_part half = part_of(part[k]);
        support_ok(trainer_evaluate(t, &half, &halves[k], &e), &e);
    }
    for (int i = 0; i < 9; i++) {
        count += s.confusion[i];
        assert_int_equal(s.confusion[i], halves[0].confusion[i] + halves[1].confusion[i]);
    }
    assert_int_equal(count, all.count);
    assert_true(fabs(s.loss - (100 * halves[0].loss + 233 * halves[1].loss) / 333) < 1e-6);
    trainer_free(t);
    rig_close(&r);
}

// Saving

static void check_saved(const rig *r, const safetensors *f, const float *weights) {
    assert_int_equal(safetensors_count(f), graph_parameters(r->job.g));
    assert_string_equal(safetensors_metadata(f, "format"), "pt");
    for (int i = 0; i < graph_parameters(r->job.g); i++) {
        const tensor_info *p = graph_info(r->job.g, graph_parameter_at(r->job.g, i));
        const safetensors_entry *s = safetensors_find(f, p->name);
        assert_non_null(s);
        assert_int_equal(s->type, SAFE_F32);
        assert_int_equal(s->rank, p->shape.rank);
        for (int k = 0; k < s->rank; k++) assert_int_equal(s->dim[k], p->shape.dim[k]);
        assert_memory_equal(s->data, weights + p->offset, s->bytes);
    }
}

static void saves_what_it_learnt(void **state) {
    (void)state;
    err e;
    rig r;
    static const char *const names[] = {"fast.weight_ih_l0", "fast.weight_hh_l0_reverse", "fast.bias_ih_l1",
        "slow.bias_hh_l1_reverse", "strat.0.weight", "strat.0.bias", "head.0.weight", "head.3.bias"};
    witness w = {0};
    rig_open(&r, &cpu_device, 1, SMALL "model.layers=2 train.epochs=1");
    trainer *t = rig_trainer(&r);
    run(t, &w);
    float *weights = rig_weights(&r, t);
    support_ok(trainer_save(t, "model.safetensors", NULL, 0, &e), &e);
    safetensors *f = safetensors_open("model.safetensors", &e);
    support_ok(f != NULL, &e);
    check_saved(&r, f, weights);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_non_null(safetensors_find(f, names[i]));
    safetensors_close(f);
    assert_false(trainer_save(t, "missing/model.safetensors", NULL, 0, &e));
    assert_non_null(strstr(e.text, "missing/model.safetensors"));
    free(weights);
    trainer_free(t);
    rig_close(&r);
}

// The weights' file alone tells how inputs were scaled.
static void saves_the_scaler(void **state) {
    (void)state;
    err e;
    rig r;
    rig_open(&r, &cpu_device, 1, SMALL "data.scale=standard");
    trainer *t = rig_trainer(&r);
    support_ok(trainer_save(t, "model.safetensors", NULL, 0, &e), &e);
    safetensors *f = safetensors_open("model.safetensors", &e);
    support_ok(f != NULL, &e);
    assert_int_equal(safetensors_count(f), graph_parameters(r.job.g) + 4);
    for (int i = 0; i < 2; i++) {
        char name[64];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "scaler.%s.%s", r.data->stream[i].name, k ? "std" : "mean");
            const safetensors_entry *s = safetensors_find(f, name);
            assert_non_null(s);
            assert_true(s->rank == 1 && s->dim[0] == r.data->stream[i].series.width);
            assert_memory_equal(s->data, k ? r.scaler->std[i] : r.scaler->mean[i], s->bytes);
        }
    }
    safetensors_close(f);
    trainer_free(t);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_seeds_give_equal_bits),
        cmocka_unit_test(residency_changes_no_bit),
        cmocka_unit_test(storage_changes_no_bit),
        cmocka_unit_test(one_batch_overfits),
        cmocka_unit_test(reaches_a_known_score),
        cmocka_unit_test(noise_stays_noise),
        cmocka_unit_test(divergence_is_counted),
        cmocka_unit_test(loss_scale_changes_no_bit),
        cmocka_unit_test(endless_overflow_ends_the_run),
        cmocka_unit_test(stops_early),
        cmocka_unit_test(interruption_keeps_the_best),
        cmocka_unit_test(evaluation_counts_every_sample_once),
        cmocka_unit_test_setup_teardown(saves_what_it_learnt, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(saves_the_scaler, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
