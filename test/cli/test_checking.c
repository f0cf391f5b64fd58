// `walk --check` on sets and bar files: a line a rule, status 1 where a leak is found, and nothing is written.
#include "cli/program.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void put_walk(const char *data) {
    char *text = NULL;
    assert_true(asprintf(&text,
                    "data: {%s, windows: {fast: 8, slow: 4}}\n"
                    "model: {kind: mlp, widths: 6}\n"
                    "train: {batch_size: 64}\n"
                    "walk: {train: 500, validation: 100, test: 150, folds: 2}\n"
                    "run: {dir: made}\n"
                    "gpu_optimization: {memory_monitoring: false}\n",
                    data) > 0);
    put_text("walk.yaml", text);
    free(text);
}

// A set is made of its own bars once more, coarser ones of the finer.
static void sets_are_checked(void **state) {
    (void)state;
    put_walk("set: set.npz");
    walk_put("bars.csv", 4000, 300, 1);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "--types=compact", "-q"), 0);
    assert_int_equal(unlink("bars.csv"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--check"), 0);
    matches("out", "inputs +[0-9,]+ +0 +inputs at or before a moment stay, .*");
    matches("out", "weights +[0-9,]+ +0 +weights stay to the bit, .*");
    matches("out", "no leak found: [0-9,]+ comparisons\n");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--check", "--folds=all", "--json"), 0);
    assert_true(number("comparisons") > 1e6 && number("folds") == 2 && number("trained") == 2);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--check", "walk.purge=0"), 1);
    matches("out", "parts +[0-9,]+ +[1-9][0-9]* .*\n +first: fold [0-9]+: training sample .* label reaches the .*");
    matches("err", "tradewind: leak found: parts, scales\n");
    assert_int_equal(access("made", F_OK), -1);
}

// Samples that were made elsewhere have no bars: what is fitted to them is looked at alone.
static void untested_rules_are_told(void **state) {
    (void)state;
    put_walk("synthetic: {bars: 2000}");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--check"), 0);
    matches("out", "inputs +- +- .*\n +not tested: the data keep no bars .*");
    matches("out", "no leak found: [0-9,]+ comparisons; not tested: inputs, labels, samples\n");
}

static void mistakes_are_told(void **state) {
    (void)state;
    put_walk("synthetic: {bars: 2000}");
    complains(RUN("walk", "walk.yaml", "--check", "--folds=5"), "--folds 5: must be first or all");
    complains(RUN("walk", "walk.yaml", "--folds=all"), "--folds: goes with --check; .*");
    complains(RUN("walk", "walk.yaml", "--check", "--resume"), "--check: trains nothing that stays; .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(sets_are_checked),
        TEST(untested_rules_are_told),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
