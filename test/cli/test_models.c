// Several models of one train command: each is the run that it is alone, one table has them all, and what is done
// stays.
#include "cli/program.h"
#include "data/walk.h"
#include "run/same.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void put_model(const char *name, const char *data, const char *model, const char *train) {
    char path[32], text[500];
    snprintf(path, sizeof path, "%s.yaml", name);
    snprintf(text, sizeof text,
        "data: {split: {embargo: 0}, %s}\nmodel: {%s}\ntrain: {batch_size: 64, %s}\nrun: {dir: runs/%s}\n"
        "gpu_optimization: {memory_monitoring: false}\n",
        data, model, train, name);
    put_text(path, text);
}

static const char synthetic[] = "synthetic: {bars: 1500}", two[] = "epochs: 2";

static json_t *row_at(json_t *table, size_t i) {
    json_t *row = json_array_get(json_object_get(table, "models"), i);
    assert_non_null(row);
    return row;
}

static double number_at(json_t *row, const char *key) {
    json_t *value = json_object_get(row, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static void one_table_of_runs(void **state) {
    (void)state;
    put_model("a", synthetic, "kind: mlp, widths: 4", two);
    put_model(
        "b", "synthetic: {bars: 1500}, windows: {fast: 9, slow: 5}", "kind: lstm, hidden: {fast: 4, slow: 3}", two);
    put_model("c", synthetic, "kind: mlp, widths: 3", "ensemble: 2, epochs: 1");
    assert_int_equal(RUN("train", "a.yaml", "b.yaml", "c.yaml", "--device=cpu", "train.patience=5"), 0);
    matches("out", "\nmodel +2 of 3: b.yaml, in runs/b\n");
    matches("out", "\nrun +model +parameters +epoch +validation +test +trivial answer +samples/s\n"
                   "runs/a +mlp +[0-9,]+ +[12] +MCC -?[0-9.e-]+ +MCC -?[0-9.e-]+ +MCC 0 +[0-9,]+\n"
                   "runs/b +lstm .*\nruns/c +mlp +[0-9,]+ +- +- +MCC ");
    assert_int_equal(RUN("train", "a.yaml", "b.yaml", "--device=cpu", "train.patience=5", "--resume", "--json"), 0);
    json_t *table = last_line(), *test = json_object_get(row_at(table, 1), "test");
    double mcc = number_at(test, "score"), samples = number_at(test, "samples");
    assert_true(number_at(row_at(table, 1), "parameters") > 100);
    json_decref(table);
    assert_int_equal(RUN("evaluate", "runs/b", "--json"), 0);
    assert_true(number("mcc") > mcc - 1e-9 && number("mcc") < mcc + 1e-9);
    assert_true(number("samples") == samples);
    assert_int_equal(RUN("train", "b.yaml", "--device=cpu", "train.patience=5", "run.dir=alone"), 0);
    same_runs("alone", "runs/b");
}

// The second is asked to stop; what was done before is left as it is, and the rest is what it would have been.
static void stopped_models_go_on(void **state) {
    (void)state;
    put_model("a", synthetic, "kind: mlp, widths: 4", two);
    put_model("b", synthetic, "kind: lstm, hidden: {fast: 8, slow: 4}", "epochs: 40, patience: 99");
    put_model("c", synthetic, "kind: mlp, widths: 3", two);
    assert_int_equal(system("sed -i 's/batch_size: 64/batch_size: auto/' a.yaml"), 0);
    pid_t child = program_start(
        "out", (const char *const[]){"train", "a.yaml", "b.yaml", "c.yaml", "--device=cpu", "--seed=4", NULL});
    wait_for("out", "model     lstm, ");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("out", "\nstopped by a signal in epoch [0-9]+\n");
    matches("out", "\nruns/b +lstm +[0-9,]+ +stopped\nruns/c +mlp +[0-9,]+ +not begun\n"
                   "resume +tradewind train a.yaml b.yaml c.yaml --resume --seed 4\n$");
    assert_int_equal(access("runs/c", F_OK), -1);
    assert_int_equal(system("cp -r runs/a before"), 0);
    assert_int_equal(RUN("train", "a.yaml", "b.yaml", "c.yaml", "--device=cpu", "--seed=4", "--resume"), 0);
    matches("out", "^model +1 of 3: a.yaml, in runs/a, trained already\n\nmodel +2 of 3");
    assert_int_equal(system("diff -r before runs/a"), 0);
    assert_int_equal(RUN("train", "b.yaml", "--device=cpu", "--seed=4", "run.dir=alone"), 0);
    same_runs("alone", "runs/b");
    assert_int_equal(access("runs/c/best.safetensors", F_OK), 0);
}

static void a_model_that_fails_is_told(void **state) {
    (void)state;
    put_model("a", synthetic, "kind: mlp, widths: 4", "epochs: 2, optimizer: {kind: sgd, lr: 100, weight_decay: 100}");
    put_model("b", synthetic, "kind: mlp, widths: 3", two);
    assert_int_equal(RUN("train", "a.yaml", "b.yaml", "--device=cpu"), 1);
    matches("err", "^tradewind: a.yaml: .* finite .*; the others are kept, and --resume tries this one again\n$");
    matches("out", "\nruns/a +mlp +[0-9,]+ +failed: .*\nruns/b +mlp +[0-9,]+ +[12] +MCC ");
}

// Bars are one set whatever is kept of them; other labels make another.
static void one_set_for_all(void **state) {
    (void)state;
    walk_put("bars.csv", 4000, 300, 1);
    put_model("a", "bars: {fast: bars.csv}, frames: [1h], windows: {fast: 8, slow: 4}", "kind: mlp, widths: 4", two);
    put_model("b", "bars: {fast: bars.csv}, frames: [1h], windows: {fast: 6, slow: 4}, types: compact",
        "kind: mlp, widths: 4", two);
    put_model("c", "bars: {fast: bars.csv}, frames: [1h], label: {band: 0.9}", "kind: mlp, widths: 4", two);
    assert_int_equal(RUN("train", "a.yaml", "b.yaml", "--device=cpu"), 0);
    matches("out", "\nruns/b +mlp ");
    complains(
        RUN("train", "a.yaml", "c.yaml", "run.dir=runs", "--device=cpu"), "a.yaml and c.yaml have one run.dir, .*");
    assert_int_equal(RUN("train", "a.yaml", "c.yaml", "--device=cpu"), 2);
    matches("err", "^tradewind: c.yaml: is of another set than a.yaml: labels are others; .*\n$");
}

static void mistakes_are_told(void **state) {
    (void)state;
    put_model("a", synthetic, "kind: mlp, widths: 4", two);
    put_model("b", synthetic, "kind: mlp, widths: 4", two);
    complains(RUN("train", "a.yaml", "a.yaml"), "a.yaml and a.yaml have one run.dir, runs/a; give each model its own");
    assert_int_equal(system("sed 's|runs/b|.//runs/./a/|' b.yaml >c.yaml"), 0);
    complains(RUN("train", "b.yaml", "a.yaml", "c.yaml"), "a.yaml and c.yaml have one run.dir, .*");
    complains(RUN("train", "a.yaml", "none.yaml"), "none.yaml: .*");
    complains(RUN("train", "a.yaml", "b.yaml", "train.epoch"), "train\\.epoch: .*KEY=VALUE.*");
    assert_int_equal(system("sed 's|synthetic: {bars: 1500}|synthetic: {seed: 8, bars: 1500}|' b.yaml >c.yaml"), 0);
    complains(RUN("train", "a.yaml", "c.yaml"), "c.yaml: is of another set than a.yaml: .*");
    complains(RUN("train", "a.yaml", "b.yaml", "train.metric=rmse"), ".*train.metric.*");
    assert_int_equal(access("runs", F_OK), -1); // nothing was begun
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(one_table_of_runs),
        TEST(stopped_models_go_on),
        TEST(a_model_that_fails_is_told),
        TEST(one_set_for_all),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
