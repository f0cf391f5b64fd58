// Tasks by their structs, without the program: what they tell, that they stop when asked to, and that a task can be
// opened on a description and data in memory.
#include "task/fit.h"

#include "cpu/cpu.h"
#include "run/db.h"
#include "run/same.h"
#include "support.h"
#include "task/records.h"
#include "task/trained.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char small[] = "data: {synthetic: {bars: 2000}, windows: {fast: 8, slow: 4}}\n"
                            "model: {kind: mlp, widths: 8}\n"
                            "train: {epochs: 2, batch_size: 128}\n"
                            "gpu_optimization: {memory_monitoring: false}\n"
                            "run: {dir: made}\n";

typedef struct {
    char told[64]; // a letter an event, those of steps once an epoch
    int64_t stop_after, steps;
    double best;
    char resume_in[64];
} listener;

static bool on_event(void *arg, const task_event *e) {
    static const char letters[] = {[TASK_BARS] = 'b',
        [TASK_CHECK] = 'c',
        [TASK_ENSEMBLE_BEGIN] = 'B',
        [TASK_MEMBER] = 'm',
        [TASK_RESUME] = 'r',
        [TASK_BEGIN] = 'I',
        [TASK_KEYS] = 'K',
        [TASK_STEP] = 'S',
        [TASK_EPOCH] = 'E',
        [TASK_PRECISION] = 'P',
        [TASK_WARNING] = 'W',
        [TASK_CHECKPOINT] = 'C',
        [TASK_DONE] = 'D',
        [TASK_ENSEMBLE_DONE] = 'd',
        [TASK_LOST] = 'L',
        [TASK_TUNING] = 'T'};
    listener *l = arg;
    size_t n = strlen(l->told);
    bool again = e->kind == TASK_STEP && n && l->told[n - 1] == 'S';
    if (!again && n + 1 < sizeof l->told) l->told[n] = letters[e->kind];
    if (e->kind == TASK_STEP) return ++l->steps != l->stop_after;
    if (e->kind == TASK_DONE) {
        l->best = e->done.result->best;
        snprintf(l->resume_in, sizeof l->resume_in, "%s", e->done.resume_in);
    }
    if (e->kind == TASK_EPOCH) assert_true(e->task && e->line && e->epoch->epoch > 0);
    return true;
}

static task_options ask(listener *l) {
    return (task_options){.description = {.file = "small", .text = small},
        .devices = {.host = &cpu_device, .options = {.threads = 1}},
        .version = "test",
        .listener = {on_event, l}};
}

static void a_run_tells_how_it_goes(void **state) {
    (void)state;
    listener l = {0};
    err e = {0};
    task_options o = ask(&l);
    support_ok(task_fit(&o, &e), &e);
    assert_string_equal(l.told, "IKSESECD");
    assert_string_equal(l.resume_in, "made");
}

// Stopped in the first epoch, and gone on with to the same end.
static void a_run_stops_when_asked(void **state) {
    (void)state;
    listener whole = {0}, l = {.stop_after = 3}, rest = {0};
    err e = {0};
    task_options o = ask(&whole);
    o.description.after[0] = (task_change){"run.dir", "whole"};
    support_ok(task_fit(&o, &e), &e);
    o = ask(&l);
    support_ok(task_fit(&o, &e), &e);
    assert_string_equal(l.told, "IKSCD");
    o = ask(&rest);
    o.resume = true;
    support_ok(task_fit(&o, &e), &e);
    assert_string_equal(rest.told, "rIKSESECD");
    assert_true(rest.best == whole.best);
}

static bool read_summary(db_summary *sum, err *e) {
    db_reader *r = db_reader_open("made/run.db", e);
    bool ok = r && db_read(r, sum, e);
    db_reader_close(r);
    return ok;
}

// A run that goes on from an older checkpoint forgets what it had told of later epochs, and one that has ended puts the
// weights of its best epoch back where they are missing.
static void what_is_told_goes_with_the_checkpoint(void **state) {
    (void)state;
    listener l = {0}, again = {.stop_after = 1}, end = {0}, over = {0};
    err e = {0};
    db_summary sum;
    task_options o = ask(&l);
    o.description.after[0] = (task_change){"train.epochs", "3"};
    o.description.after[1] = (task_change){"train.checkpoint_every", "2"};
    support_ok(task_fit(&o, &e), &e);
    support_ok(read_summary(&sum, &e), &e);
    assert_int_equal(sum.epochs, 3);
    assert_int_equal(rename("made/best.safetensors", "best") | unlink("made/last.safetensors"), 0);
    o.listener.arg = &again;
    o.resume = true;
    support_ok(task_fit(&o, &e), &e);
    support_ok(read_summary(&sum, &e), &e);
    assert_int_equal(sum.epochs, 2);
    o.listener.arg = &end;
    support_ok(task_fit(&o, &e), &e);
    same_files("best", "made/best.safetensors");
    assert_int_equal(unlink("made/best.safetensors"), 0);
    o.listener.arg = &over;
    support_ok(task_fit(&o, &e), &e);
    same_files("best", "made/best.safetensors");
}

// Trivial answers know the training samples and are scored on the validation's, of which the best possible score is
// too.
static bool on_scores(void *arg, const task_event *e) {
    const task *t = e->task;
    if (e->kind == TASK_BEGIN) {
        const split_part *v = &t->split.validation;
        double share[CLASSES_MOST], loss = 0;
        trivial_shares(t->data, &t->split.train, share);
        for (int64_t k = 0; k < v->count; k++) loss -= log(share[t->data->label[part_sample(v, k)]]) / (double)v->count;
        const skill_table *s = e->begin.trivial;
        assert_true(s->trivial[1] == TRIVIAL_PRIOR && s->group[0].row[0].metric == SKILL_LOG_LOSS);
        assert_true(fabs(s->group[0].row[0].trivial[1] - loss) < 1e-9);
    }
    if (e->kind == TASK_DONE) {
        assert_true(e->done.best_possible == rig_best_mcc(t, &t->split.validation));
        assert_true(e->done.best_possible != rig_best_mcc(t, &t->split.train));
        *(int *)arg = 1;
    }
    return true;
}

static void scores_are_of_their_parts(void **state) {
    (void)state;
    int done = 0;
    err e = {0};
    task_options o = ask(NULL);
    o.listener = (task_listener){on_scores, &done};
    support_ok(task_fit(&o, &e), &e);
    assert_true(done);
}

// Where a schedule ends with the epochs, other epochs are another schedule.
static void epochs_matter_to_some_schedules(void **state) {
    (void)state;
    char text[128];
    for (int k = 0; k < RATE_KINDS; k++) {
        bool ends = k == RATE_COSINE || k == RATE_LINEAR || k == RATE_ONE_CYCLE;
        snprintf(text, sizeof text, "train:\n  schedule:\n    kind: %s\n    total: auto\n", rate_name((rate_kind)k));
        assert_int_equal(records_epochs_matter(text), ends);
        snprintf(text, sizeof text, "train:\n  schedule:\n    kind: %s\n    total: 99\n", rate_name((rate_kind)k));
        assert_false(records_epochs_matter(text));
    }
}

// While it goes on a run has three checkpoints of steps, and when it is over one.
static void an_ended_run_keeps_one_checkpoint_of_steps(void **state) {
    (void)state;
    listener l = {.stop_after = 9}, rest = {0};
    err e = {0};
    task_options o = ask(&l);
    o.description.after[0] = (task_change){"train.checkpoint_minutes", "1e-9"};
    support_ok(task_fit(&o, &e), &e);
    assert_int_equal(system("test $(ls made | grep -c checkpoint_step_) = 3"), 0);
    o.listener.arg = &rest;
    o.resume = true;
    support_ok(task_fit(&o, &e), &e);
    assert_int_equal(system("test $(ls made | grep -c checkpoint_step_) = 1"), 0);
}

// When checkpoints came, and where the run is stopped.
typedef struct {
    double when[2];
    int count;
} clocked;

static bool on_checkpoint(void *arg, const task_event *e) {
    clocked *c = arg;
    if (e->kind == TASK_CHECKPOINT && c->count < 2) c->when[c->count++] = support_seconds();
    return c->count < 2;
}

// The clock begins anew with every checkpoint, so that two are never closer than asked for.
static void checkpoints_keep_their_distance(void **state) {
    (void)state;
    clocked c = {0};
    err e = {0};
    task_options o = ask(NULL);
    o.listener = (task_listener){on_checkpoint, &c};
    o.description.after[0] = (task_change){"train.checkpoint_minutes", "0.005"};
    o.description.after[1] = (task_change){"train.epochs", "1000000"};
    o.description.after[2] = (task_change){"train.patience", "1000000"};
    o.description.after[3] = (task_change){"train.checkpoint_every", "1000000"};
    support_ok(task_fit(&o, &e), &e);
    assert_int_equal(c.count, 2);
    assert_true(c.when[1] - c.when[0] > 0.29);
}

static void members_follow_each_other(void **state) {
    (void)state;
    listener l = {0}, again = {0};
    err e = {0};
    task_options o = ask(&l);
    o.description.after[0] = (task_change){"train.ensemble", "2"};
    support_ok(task_fit(&o, &e), &e);
    assert_string_equal(l.told, "KBmISESECDmISESECDd");
    assert_string_equal(l.resume_in, "made");
    o = ask(&again);
    o.description.after[0] = (task_change){"train.ensemble", "2"};
    o.resume = true;
    support_ok(task_fit(&o, &e), &e);
    assert_string_equal(again.told, "KBmmd");
}

static void data_in_memory_are_trained_on(void **state) {
    (void)state;
    listener l = {0};
    err e = {0};
    task t;
    dataset *d = synthetic_new(&(synthetic_options){.bars = 3000, .seed = 9, .strength = 1.5}, &e);
    support_ok(d != NULL, &e);
    task_options o = ask(&l);
    o.data = d;
    o.whole = true;
    support_ok(task_open(&t, &o, &e), &e);
    assert_ptr_equal(t.data, d);
    assert_int_equal(t.split.train.count, d->samples);
    task_close(&t);
    o.whole = false;
    support_ok(task_fit(&o, &e), &e);
    dataset_free(d);
}

// Probabilities of a trained run sum to 1, and its score is that of the run.
static void a_trained_run_answers(void **state) {
    (void)state;
    listener l = {0};
    err e = {0};
    trained t;
    score *s = calloc(1, sizeof *s);
    assert_non_null(s);
    task_options o = ask(&l);
    support_ok(task_fit(&o, &e), &e);
    trained_options use = {.run = "made", .part = "validation", .devices = o.devices, .version = "test"};
    support_ok(trained_open(&t, &use, &e), &e);
    float *all = task_predict(&t, &e);
    support_ok(all != NULL, &e);
    for (int64_t i = 0; i < t.samples.count; i++) assert_true(all[3 * i] + all[3 * i + 1] + all[3 * i + 2] > 0.999f);
    skill_table skill;
    support_ok(task_evaluate(&t, all, s, &skill, &e), &e);
    assert_true(s->mcc == l.best);
    assert_true(fabs(skill.group[0].row[2].score - l.best) < 1e-12 && skill.group[0].row[2].metric == SKILL_MCC);
    skill_done(&skill);
    free(all);
    trained_close(&t);
    free(s);
}

// Shares of the classes are those of the training, whatever part of which split is judged.
static void weights_know_the_shares_of_classes(void **state) {
    (void)state;
    listener l = {0};
    err e = {0};
    trained t;
    double share[CLASSES_MOST];
    static const char *const less[] = {"data.split.train=0.2"};
    task_options o = ask(&l);
    support_ok(task_fit(&o, &e), &e);
    trained_options use = {.run = "made", .devices = o.devices, .version = "test"};
    support_ok(trained_open(&t, &use, &e), &e);
    trivial_shares(t.task.data, &t.task.split.train, share);
    for (int k = 0; k < 3; k++) assert_true(share[k] > 0 && fabs(t.share[k] - share[k]) < 1e-8);
    trained_close(&t);
    use.overrides = less;
    use.override_count = 1;
    support_ok(trained_open(&t, &use, &e), &e);
    for (int k = 0; k < 3; k++) assert_true(fabs(t.share[k] - share[k]) < 1e-8);
    trained_close(&t);
}

// A mistake is told with its place, and nothing is left open.
static void a_mistake_is_told(void **state) {
    (void)state;
    listener l = {0};
    err e = {0};
    task_options o = ask(&l);
    o.description.after[0] = (task_change){"train.epochs", "none"};
    assert_false(task_fit(&o, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "train.epochs=none"));
    o = ask(&l);
    o.devices.host = NULL;
    o.devices.card = &cpu_device;
    o.devices.options.isa = "none such";
    assert_false(task_fit(&o, &e));
    assert_string_equal(l.told, "");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_run_tells_how_it_goes),
        TEST(a_run_stops_when_asked),
        TEST(what_is_told_goes_with_the_checkpoint),
        TEST(scores_are_of_their_parts),
        TEST(epochs_matter_to_some_schedules),
        TEST(an_ended_run_keeps_one_checkpoint_of_steps),
        TEST(checkpoints_keep_their_distance),
        TEST(members_follow_each_other),
        TEST(data_in_memory_are_trained_on),
        TEST(a_trained_run_answers),
        TEST(weights_know_the_shares_of_classes),
        TEST(a_mistake_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
