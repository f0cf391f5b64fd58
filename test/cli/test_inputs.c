// A model knows its inputs: data that are not those of its training are refused in words, from outside.
#include "cli/program.h"
#include "data/walk.h"
#include "run/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define IMPORT(out, features) RUN("import", "bars.csv", "-o", out, "--features", features, "-q")

static void put_trained(void) {
    walk_put("bars.csv", 1500, 300, 1);
    assert_int_equal(IMPORT("a.npz", "fast=body,rsi_14,natr_14"), 0);
    put_text("run.yaml", "data: {set: a.npz, windows: {fast: 8}}\nmodel: {hidden: {fast: 4}}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
}

static void weights_carry_their_contract(void **state) {
    (void)state;
    err e = {0};
    put_trained();
    static const char *const files[] = {"made/best.safetensors", "made/last.safetensors"};
    for (int i = 0; i < 2; i++) {
        safetensors *s = safetensors_open(files[i], &e);
        support_ok(s != NULL, &e);
        const char *text = safetensors_metadata(s, "tradewind.contract");
        assert_non_null(text);
        assert_non_null(strstr(text, "\"columns\":[\"body\",\"rsi_14\",\"natr_14\"]"));
        assert_non_null(strstr(text, "\"classes\":[\"DOWN\",\"NEUTRAL\",\"UP\"]"));
        assert_non_null(strstr(text, "\"label\":{\"kind\":\"direction\",\"horizon\":1,"));
        assert_non_null(strstr(text, "\"span\":300,\"window\":8,"));
        assert_non_null(strstr(text, "\"scaler\":\"standard\""));
        safetensors_close(s);
        assert_int_equal(RUN("inspect", files[i]), 0);
        matches(
            "out", "\n  stream fast: bars of 5 min, 8 steps of body,rsi_14,natr_14\n  classes DOWN,NEUTRAL,UP, kind");
    }
}

static void other_columns_are_refused(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(IMPORT("swapped.npz", "fast=body,natr_14,rsi_14"), 0);
    assert_int_equal(IMPORT("other.npz", "fast=body,rsi_14,log_return_1"), 0);
    complains(RUN("evaluate", "made", "--data", "swapped.npz"),
        "made/best\\.safetensors: columns of fast differ: column 2 is rsi_14 in the weights and natr_14 in "
        "swapped\\.npz; import with --features fast=body,rsi_14,natr_14");
    complains(RUN("predict", "made", "--data", "other.npz", "-o", "p.csv"),
        ".*: column 3 is natr_14 in the weights and log_return_1 in other\\.npz; .*");
    assert_int_not_equal(access("p.csv", F_OK), 0);
    complains(RUN("train", "run.yaml", "--resume", "data.set=swapped.npz"),
        "made/last\\.safetensors: columns of fast differ: column 2 is rsi_14 in the weights and natr_14 in .*");
    complains(RUN("train", "run.yaml", "data.set=swapped.npz", "run.dir=next", "train.init_from=made/best.safetensors"),
        "made/best\\.safetensors: columns of fast differ: column 2 .*");
    complains(RUN("evaluate", "made", "data.windows.fast=9"),
        ".*: windows of fast: 8 in the weights, 9 described; set data\\.windows\\.fast=8");
}

static void other_labels_are_refused(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(
        RUN("import", "bars.csv", "-o", "far.npz", "--features", "fast=body,rsi_14,natr_14", "--horizon=5", "-q"), 0);
    complains(RUN("evaluate", "made", "--data", "far.npz"),
        ".*: labels differ: horizon is 1 in the weights and 5 in far\\.npz; use data with the same labels");
    // Other labels may be meant where weights are only begun with; that is told.
    assert_int_equal(
        RUN("train", "run.yaml", "data.set=far.npz", "run.dir=next", "train.init_from=made/best.safetensors"), 0);
    matches("out", "\nwarning +train\\.init_from made/best\\.safetensors: labels differ: horizon is 1 in the weights");
}

static void changed_data_are_named(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(system("head -n 1401 bars.csv >short && mv short bars.csv"), 0);
    assert_int_equal(IMPORT("a.npz", "fast=body,rsi_14,natr_14"), 0);
    complains(RUN("train", "made/config.yaml", "--resume", "train.epochs=2"),
        "made/last\\.safetensors: was made of other data: a\\.npz is of other bars: bars\\.csv has 1,400 bars, had "
        "1,500; its last sample is of "
        "20[0-9: -]+, was of 20[0-9: -]+; go on with the file as it was, or begin a new run");
}

// A part of data that grew, or other data, may hold samples that were trained on.
static void samples_of_training_are_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_false(file_holds("out", "warning "));
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    assert_true(number("trained_on") == 0);
    assert_int_equal(RUN("evaluate", "made", "--part", "train"), 0);
    assert_false(file_holds("out", "warning "));
    assert_int_equal(system("head -n 1251 bars.csv >short.csv"), 0);
    assert_int_equal(RUN("import", "short.csv", "-o", "short.npz", "--features", "fast=body,rsi_14,natr_14", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "data.set=short.npz"), 0);
    matches("out", "\ndata +short\\.npz, [^\n]+\nwarning +([0-9]+) of these [0-9]+ samples lie in the "
                   "time that the model was trained on [(]to 20[0-9]{2}-[0-9: -]+[)]\naccuracy ");
    assert_int_equal(RUN("evaluate", "made", "--data", "short.npz", "--json"), 0);
    assert_true(number("trained_on") == number("samples"));
    assert_int_equal(RUN("predict", "made", "--data", "short.npz", "-o", "p.csv"), 0);
    matches("out", "\nwarning +[0-9]+ of these [0-9]+ samples lie in the time ");
    matches("out", "\nnote +[0-9]+ newer bars? ha(s|ve) no label; --latest answers for (it|them)\n");
    assert_int_equal(RUN("predict", "made", "--part", "validation", "-o", "p.csv"), 0);
    assert_false(file_holds("out", "newer"));
}

// Validation stands in for a test that is not there.
static void a_missing_test_is_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(RUN("train", "run.yaml", "data.split.validation=0.3", "data.split.train=0.7", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "\ndata [^\n]+ samples [(]there is no test part; validation chose the best epoch[)]\n");
    assert_int_equal(RUN("evaluate", "made", "--part", "validation"), 0);
    assert_false(file_holds("out", "no test part"));
}

// A run on bar files is used on a dataset.
static void runs_on_bars_take_sets(void **state) {
    (void)state;
    put_trained();
    put_text("run.yaml",
        "data: {bars: {fast: bars.csv}, features: {fast: [body, rsi_14, natr_14]}, windows: {fast: 8}}\n"
        "model: {hidden: {fast: 4}}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: bars}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "bars", "--data", "a.npz", "--json"), 0);
    assert_true(number("samples") > 400);
    complains(RUN("train", "a.npz"), "a\\.npz: is a dataset; name it as data\\.set in a description");
}

// Labels that reach over the end of the training part are told where the description lets them.
static void shared_labels_are_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(
        RUN("import", "bars.csv", "-o", "far.npz", "--features", "fast=body,rsi_14,natr_14", "--horizon=5", "-q"), 0);
#define FAR "run.yaml", "data.set=far.npz", "data.split.embargo=0"
    assert_int_equal(RUN("plan", FAR, "data.split.purge=0"), 0);
    matches(
        "out", "\nwarning +labels of training samples reach [5-6] samples into validation; leave data\\.split\\.purge");
    assert_int_equal(RUN("train", FAR, "data.split.purge=0", "run.dir=far", "--json"), 0);
    matches("out", "[{]\"warning\": ?\"labels of training samples reach ");
    assert_int_equal(RUN("plan", FAR), 0);
    assert_false(file_holds("out", "labels of training"));
    assert_int_equal(RUN("evaluate", "far"), 0);
}

#define ENTERED(test) cmocka_unit_test_setup_teardown(test, support_enter, support_leave)

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        ENTERED(weights_carry_their_contract),
        ENTERED(other_columns_are_refused),
        ENTERED(other_labels_are_refused),
        ENTERED(changed_data_are_named),
        ENTERED(samples_of_training_are_told),
        ENTERED(a_missing_test_is_told),
        ENTERED(runs_on_bars_take_sets),
        ENTERED(shared_labels_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
