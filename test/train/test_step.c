// The step: any split of an effective batch into micro-batches gives the same gradient and totals, rows beyond the
// epoch's end contribute nothing, dropout depends on seed, update and row alone, and steps played together are the same
// steps.
#include "base/rng.h"
#include "cpu/cpu.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EFFECTIVE = 8 };
#define LEARNING "train.class_weights=balanced train.label_smoothing=0.1 model.dropout=0.3"

// One step, seen before and after the update.
typedef struct {
    int64_t elements;
    float *gradient;
    double totals[TALLY_COUNT], clip[CLIP_COUNT];
    solo_step after;
} outcome;

static void outcome_free(outcome *o) {
    free(o->gradient);
}

// A step of `micro` micro-batches of `batch` rows from the given place in the training span.
static outcome step_with(const char *keys, int64_t batch, int micro, solo_step place) {
    err e;
    rig r;
    char text[512];
    snprintf(text, sizeof text, "%s train.batch_size=%lld", keys, (long long)batch);
    rig_open(&r, &cpu_device, 1, text);
    trainer *t = rig_trainer(&r);
    outcome o = {.elements = graph_slab_elements(r.job.g)};
    o.gradient = malloc((size_t)o.elements * sizeof *o.gradient);
    assert_non_null(o.gradient);
    place.lr = 1e-3f;
    support_ok(support_step_write(t, &place, &e), &e);
    for (int i = 0; i < micro; i++) {
        support_ok(program_poison(engine_steps(trainer_engine(t)), 0xFF, &e), &e);
        support_ok(support_play(t, i ? PASS_NEXT : PASS_FIRST, &e), &e);
    }
    support_ok(support_read(t, graph_slab(r.job.g, SLAB_GRADIENTS), o.gradient, &e), &e);
    support_ok(support_play(t, PASS_UPDATE, &e), &e);
    support_ok(support_read(t, r.job.totals, o.totals, &e) && support_read(t, r.job.clip, o.clip, &e), &e);
    support_ok(support_step_read(t, &o.after, &e), &e);
    trainer_free(t);
    rig_close(&r);
    return o;
}

static double norm_of(const float *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static double distance(const outcome *a, const outcome *b) {
    double sum = 0;
    assert_int_equal(a->elements, b->elements);
    for (int64_t i = 0; i < a->elements; i++) {
        double d = (double)a->gradient[i] - (double)b->gradient[i];
        sum += d * d;
    }
    return sqrt(sum) / norm_of(b->gradient, b->elements);
}

static void check_equal(const outcome *a, const outcome *b) {
    double d = distance(a, b);
    if (!(d <= 1e-6)) fail_msg("gradients differ by %g of their norm", d);
    for (int k = 0; k < TALLY_COUNT; k++) assert_true(fabs(a->totals[k] - b->totals[k]) <= 1e-6 * fabs(b->totals[k]));
    assert_true(fabs(a->clip[CLIP_NORM] - b->clip[CLIP_NORM]) <= 1e-6 * b->clip[CLIP_NORM]);
    assert_true(a->clip[CLIP_NONFINITE] == 0);
}

static void splits_give_equal_gradients(void **state) {
    (void)state;
    solo_step place = {.seed = 11, .update = 5, .first = 3, .count = 900, .position = 64, .epoch = 2, .shuffle = 1};
    outcome whole = step_with(LEARNING, EFFECTIVE, 1, place);
    assert_true(norm_of(whole.gradient, whole.elements) > 1e-3);
    for (int micro = 2; micro <= EFFECTIVE; micro *= 2) {
        outcome split = step_with(LEARNING, EFFECTIVE / micro, micro, place);
        check_equal(&split, &whole);
        assert_int_equal(split.after.update, 6);
        assert_int_equal(split.after.position, 64 + EFFECTIVE);
        assert_int_equal(split.after.row, 0);
        outcome_free(&split);
    }
    outcome_free(&whole);
}

// The last effective batch of an epoch of 69 samples has 5: a full shape whose other rows weigh nothing, split or not,
// with micro-batches that lie wholly beyond the end played or left out, must equal a batch of exactly 5.
static void tail_rows_contribute_nothing(void **state) {
    (void)state;
    solo_step place = {.seed = 11, .update = 5, .first = 3, .count = 69, .position = 64, .epoch = 2, .shuffle = 1};
    outcome exact = step_with(LEARNING, 5, 1, place);
    static const int splits[][2] = {{8, 1}, {4, 2}, {2, 3}, {2, 4}, {1, 5}, {1, 8}, {64, 1}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        outcome o = step_with(LEARNING, splits[i][0], splits[i][1], place);
        check_equal(&o, &exact);
        outcome_free(&o);
    }
    outcome_free(&exact);
}

// The normaliser is the sum of the drawn samples' class weights: n / (K * count of the class).
static void normaliser_is_the_sum_of_class_weights(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &cpu_device, 1, LEARNING);
    span train = r.split.train.span[0];
    solo_step place = {
        .seed = 4, .first = (uint64_t)train.first, .count = (uint64_t)train.count, .epoch = 1, .shuffle = 1};
    double count[3] = {0}, want = 0;
    for (int64_t i = 0; i < train.count; i++) count[r.data->label[train.first + i]]++;
    for (uint64_t i = 0; i < EFFECTIVE; i++) {
        uint64_t sample = place.first + rng_permute(place.seed, place.epoch, i, place.count);
        want += (double)train.count / (3 * count[r.data->label[sample]]);
    }
    rig_close(&r);
    outcome o = step_with(LEARNING, 4, 2, place);
    assert_true(fabs(o.totals[TALLY_STEP_NORM] - want) <= 1e-6 * want);
    outcome_free(&o);
}

// A step wholly beyond the end: no normaliser, nothing learnt, nothing counted as not finite.
static void empty_step_changes_nothing(void **state) {
    (void)state;
    solo_step place = {.seed = 4, .count = 64, .position = 64, .epoch = 1, .shuffle = 1};
    outcome o = step_with(LEARNING, 4, 2, place);
    assert_true(norm_of(o.gradient, o.elements) == 0);
    assert_true(o.totals[TALLY_STEP_SUM] == 0 && o.totals[TALLY_STEP_NORM] == 0);
    assert_true(o.clip[CLIP_FACTOR] == 0 && o.clip[CLIP_NONFINITE] == 0);
    outcome_free(&o);
}

static bool same_bits(const outcome *a, const outcome *b) {
    return memcmp(a->gradient, b->gradient, (size_t)a->elements * sizeof *a->gradient) == 0;
}

// Without shuffling the samples stay the same, so that only dropout can change a gradient.
static void dropout_depends_on_seed_and_update(void **state) {
    (void)state;
    solo_step place = {.seed = 11, .update = 5, .count = 900};
    solo_step updated = place, seeded = place;
    updated.update = 6;
    seeded.seed = 12;
    outcome first = step_with(LEARNING, 4, 2, place), again = step_with(LEARNING, 4, 2, place);
    outcome later = step_with(LEARNING, 4, 2, updated), other = step_with(LEARNING, 4, 2, seeded);
    assert_true(same_bits(&first, &again));
    assert_true(distance(&later, &first) > 0.01);
    assert_true(distance(&other, &first) > 0.01);
    outcome_free(&first);
    outcome_free(&again);
    outcome_free(&later);
    outcome_free(&other);
    outcome dry = step_with("model.dropout=0", 4, 2, place), dry_later = step_with("model.dropout=0", 4, 2, updated);
    assert_true(same_bits(&dry, &dry_later));
    outcome_free(&dry);
    outcome_free(&dry_later);
}

// Rows of the effective batch have dropout of their own: the same sample twice in a batch is not dropped alike.
static void dropout_differs_between_rows(void **state) {
    (void)state;
    solo_step place = {.seed = 11, .count = 900};
    outcome first = step_with(LEARNING, 1, 1, place);
    place.row = 1;
    place.position = UINT64_MAX; // position + row is sample 0 again
    outcome second = step_with(LEARNING, 1, 1, place);
    assert_true(fabs(first.totals[TALLY_STEP_NORM] - second.totals[TALLY_STEP_NORM]) == 0);
    assert_true(distance(&second, &first) > 0.01);
    outcome_free(&first);
    outcome_free(&second);
}

static void steps_together_are_the_same_steps(void **state) {
    static const char *const keys[] = {
        LEARNING " train.batch_size=48", "model.kind=mlp train.optimizer.kind=sgd train.batch_size=100"};
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rig r;
        rig_open(&r, &cpu_device, 1, keys[i]);
        rig_check_together(&r);
        rig_close(&r);
    }
}

// Epochs through the trainer

static int plays;

static bool count_play(queue *q, recording *p, err *e) {
    plays++;
    return cpu_device.play(q, p, e);
}

typedef struct {
    int64_t told, last;
} progress;

static bool tell(void *arg, int64_t epoch, int64_t done, int64_t total) {
    progress *p = arg;
    (void)epoch;
    assert_true(done > (done == total ? 0 : p->last) && done <= total);
    p->told++;
    p->last = done == total ? 0 : done;
    return true;
}

typedef struct {
    int64_t steps, checks; // of an epoch; micro-batches of an evaluation
    int plays;
    progress progress;
    float *weights;
    size_t bytes;
} epochs;

static epochs train_with(const device *d, const char *keys) {
    err e;
    rig r;
    train_result result;
    epochs o = {0};
    rig_open(&r, d, 1, keys);
    trainer *t = rig_trainer(&r);
    plays = 0;
    support_ok(trainer_run(t, &(watcher){.on_step = tell, .arg = &o.progress}, &result, &e), &e);
    o.plays = plays;
    o.steps = (r.split.train.count + r.settings.batch_size - 1) / r.settings.batch_size;
    o.checks = (r.split.validation.count + r.settings.batch_size - 1) / r.settings.batch_size;
    o.weights = rig_weights(&r, t);
    o.bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *o.weights;
    trainer_free(t);
    rig_close(&r);
    return o;
}

// The plays that an epoch of so many steps can do with: recordings of up to 64 steps, and single steps.
static void fewest_plays(int64_t steps, int64_t *runs, int64_t *rest) {
    *runs = 0, *rest = steps;
    for (int64_t n = 2; n <= 64; n++)
        if (steps / n + steps % n < *runs + *rest) *runs = steps / n, *rest = steps % n;
}

// A device with memory of its own takes many steps at a time as far as an epoch has so many, and then one by one.
static void epochs_end_with_single_steps(void **state) {
    (void)state;
    enum { EPOCHS = 2 };
    static const char keys[] = "model.kind=mlp train.batch_size=15 train.epochs=2 train.patience=9";
    int64_t runs, rest;
    device near = cpu_device, far = cpu_device;
    near.play = far.play = count_play;
    far.host_memory = false;
    epochs one = train_with(&near, keys), many = train_with(&far, keys);
    fewest_plays(one.steps, &runs, &rest);
    assert_true(runs > 1 && rest > 0);
    assert_int_equal(one.progress.told, EPOCHS * one.steps);
    assert_int_equal(many.progress.told, EPOCHS * (runs + rest));
    assert_int_equal(one.plays, EPOCHS * (2 * one.steps + one.checks));
    assert_int_equal(many.plays, EPOCHS * (runs + 2 * rest + one.checks));
    assert_memory_equal(one.weights, many.weights, one.bytes);
    free(one.weights);
    free(many.weights);
}

// How many steps a recording has, for small products and for large ones.
static void recordings_are_few(void **state) {
    (void)state;
    device far = cpu_device;
    rig r;
    far.host_memory = false;
    rig_open(&r, &cpu_device, 1, "model.kind=mlp train.batch_size=64");
    for (int64_t steps = 0; steps < 300; steps++) {
        int64_t runs, rest, n = program_together(&far, r.job.g, 64, steps);
        fewest_plays(steps, &runs, &rest);
        assert_int_equal(n ? steps / n + steps % n : steps, runs + rest);
    }
    assert_int_equal(program_together(&far, r.job.g, 64, INT64_MAX / 64 * 64), 64);
    assert_int_equal(program_together(&far, r.job.g, 100000000, 300), 0);
    assert_int_equal(program_together(&cpu_device, r.job.g, 64, 300), 0);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_are_few),
        cmocka_unit_test(splits_give_equal_gradients),
        cmocka_unit_test(tail_rows_contribute_nothing),
        cmocka_unit_test(normaliser_is_the_sum_of_class_weights),
        cmocka_unit_test(empty_step_changes_nothing),
        cmocka_unit_test(dropout_depends_on_seed_and_update),
        cmocka_unit_test(dropout_differs_between_rows),
        cmocka_unit_test(steps_together_are_the_same_steps),
        cmocka_unit_test(epochs_end_with_single_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
