// tradewind compare and the table of runs: two runs side by side, noise, filters and orders.
#include "cli/program.h"
#include "support.h"
#include "task/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void means_have_the_interval_of_welch(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, 4, 5}, b[] = {3, 4, 5, 6, 7};
    interval r = compare_means(a, 5, b, 5); // difference 2, error 1, 8 degrees of freedom
    assert_true(fabs(r.low - (2 - 2.306)) < 1e-9 && fabs(r.high - (2 + 2.306)) < 1e-9);
    assert_true(isnan(compare_means(a, 1, b, 5).low));
}

static void two_runs_are_compared(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=a", "run.tags=[gold, first]"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=b", "train.seed=2", "run.tags=[golden]"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "settings +run.tags");
    matches("out", "train.seed +1 +2");
    matches("out", "noise +cannot be told: `tradewind evaluate` both");
    assert_int_equal(RUN("evaluate", "a", "-q"), 0);
    assert_int_equal(RUN("evaluate", "b", "-q"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "noise +MCC [-0-9.]+ and [-0-9.]+, B - A [-+0-9.e]+, 95 %: .*more than noise");
    // A run and itself: nothing differs.
    assert_int_equal(RUN("compare", "a", "a"), 0);
    matches("out", "settings +the same");
    matches("out", "B - A \\+0, 95 %: \\+0 to \\+0: no more than noise");
    assert_int_equal(RUN("compare", "a", "b", "--json"), 0);
    json_t *all = last_line(), *noise = json_object_get(all, "noise");
    assert_string_equal(json_string_value(json_object_get(noise, "by")), "answers");
    json_decref(all);
    complains(RUN("compare", "a", "nowhere"), "nowhere: is no run's directory.*");
    complains(RUN("compare", "a"), "name two runs");
    // The table.
    assert_int_equal(RUN("runs", ".", "--filter", "tag=gold"), 0);
    assert_true(file_holds("out", "./a ") && !file_holds("out", "./b "));
    assert_int_equal(RUN("runs", ".", "--filter", "train.seed!=1", "--filter", "status=done"), 0);
    assert_true(file_holds("out", "./b ") && !file_holds("out", "./a "));
    assert_int_equal(RUN("runs", ".", "--sort", "started", "--reverse"), 0);
    char *text = slurp("out");
    assert_true(strstr(text, "./b ") < strstr(text, "./a "));
    assert_null(strstr(text, "failed"));
    free(text);
    complains(RUN("runs", ".", "--sort", "beauty"), "--sort beauty: must be name, .*");
    complains(RUN("runs", ".", "--filter", "status"), "--filter status: must be KEY=VALUE .*");
}

static void ensembles_are_compared_by_seeds(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=a", "train.ensemble=2", "train.epochs=1"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=b", "train.ensemble=2", "train.epochs=1", "train.seed=9"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "2 and 2 members of other seeds");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_have_the_interval_of_welch),
        cmocka_unit_test_setup_teardown(two_runs_are_compared, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(ensembles_are_compared_by_seeds, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
