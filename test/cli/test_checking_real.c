// `walk --check` on real files: gold in five minutes with a slow file of hours for every model, and years of hours with
// days made of them.
// Runs in: test-long
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

// Path of a data file, which the caller frees; the test is passed over where there is none.
static char *data_file(const char *name) {
    const char *folder = getenv("TRADEWIND_DATA");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder ? folder : TEST_DIR "/../../shared/data", name) > 0);
    if (access(path, R_OK) == 0) return path;
    free(path);
    skip();
    return NULL;
}

static void put_walk(const char *data, const char *walk) {
    char *text = NULL;
    assert_true(asprintf(&text,
                    "data: {%s, windows: {fast: 30, slow: 10}}\n"
                    "model: {kind: mlp}\n"
                    "walk: {%s}\n"
                    "run: {dir: made}\n"
                    "gpu_optimization: {memory_monitoring: false}\n",
                    data, walk) > 0);
    put_text("walk.yaml", text);
    free(text);
}

static void passes(const char *key, const char *other, const char *folds) {
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--check", folds, key, other), 0);
    matches("out", "inputs +[0-9,]+ +0 ");
    matches("out", "weights +[0-9,]+ +0 ");
    matches("out", "no leak found: [0-9,]+ comparisons\n");
}

static void every_model_on_gold(void **state) {
    (void)state;
    char *fast = data_file("XAUUSD_M5.csv"), *slow = data_file("XAUUSD_H1.csv"), data[9000];
    snprintf(data, sizeof data, "bars: {fast: %s, slow: %s}", fast, slow);
    put_walk(data, "train: 14d, validation: 4d, test: 4d");
    passes("model.kind=mlp", "train.class_weights=balanced", "--folds=all");
    passes("model.kind=lstm", "model.hidden=8", "--folds=first");
    passes("model.kind=transformer", "model.layers=1", "--folds=first");
    passes("model.kind=nbeats", "model.width=32", "--folds=first");
    free(fast);
    free(slow);
}

static void years_of_hours(void **state) {
    (void)state;
    char *hours = data_file("XAUUSD_H1.csv"), data[4500];
    snprintf(data, sizeof data, "bars: {fast: %s}, frames: [1d]", hours);
    put_walk(data, "train: 2y, validation: 3M, test: 6M");
    passes("data.label.kind=barrier", "model.widths=16", "--folds=first");
    passes("walk.scheme=expanding", "model.widths=16", "--folds=first");
    passes("walk.scheme=cpcv", "model.widths=16", "--folds=first");
    free(hours);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(every_model_on_gold),
        TEST(years_of_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
