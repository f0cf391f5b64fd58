#include "train/metric.h"

#include "ops/attr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-12)) fail_msg("%.15g instead of %.15g", is, want);
}

// Two classes: MCC is (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)).
static void two_classes_by_hand(void **state) {
    (void)state;
    const int64_t count[] = {50, 10, 5, 35};
    near(metric_accuracy(count, 2), 0.85);
    near(metric_mcc(count, 2), (50.0 * 35 - 10 * 5) / sqrt(55.0 * 60 * 45 * 40));
    near(metric_macro_f1(count, 2), (100.0 / 115 + 70.0 / 85) / 2);
}

// Three: s = 30, c = 18, true counts 10 12 8, predicted counts 9 12 9.
static void three_classes_by_hand(void **state) {
    (void)state;
    const int64_t count[] = {6, 3, 1, 2, 7, 3, 1, 2, 5};
    near(metric_accuracy(count, 3), 18.0 / 30);
    double pt = 9 * 10 + 12 * 12 + 9 * 8, pp = 81 + 144 + 81, tt = 100 + 144 + 64;
    near(metric_mcc(count, 3), (18.0 * 30 - pt) / sqrt((900 - pp) * (900 - tt)));
    near(metric_macro_f1(count, 3), (12.0 / 19 + 14.0 / 24 + 10.0 / 17) / 3);
}

static void perfect_and_opposite(void **state) {
    (void)state;
    const int64_t right[] = {7, 0, 0, 0, 1, 0, 0, 0, 4}, wrong[] = {0, 5, 5, 0};
    near(metric_accuracy(right, 3), 1);
    near(metric_mcc(right, 3), 1);
    near(metric_macro_f1(right, 3), 1);
    near(metric_accuracy(wrong, 2), 0);
    near(metric_mcc(wrong, 2), -1);
    near(metric_macro_f1(wrong, 2), 0);
}

static void undefined_is_zero(void **state) {
    (void)state;
    const int64_t none[9] = {0}, always_one[] = {0, 4, 0, 0, 9, 0, 0, 2, 0}, only_one_true[] = {3, 1, 0, 0};
    near(metric_accuracy(none, 3), 0);
    near(metric_mcc(none, 3), 0);
    near(metric_macro_f1(none, 3), 0);
    near(metric_mcc(always_one, 3), 0);
    near(metric_accuracy(always_one, 3), 0.6);
    near(metric_macro_f1(always_one, 3), 18.0 / 24 / 3);
    near(metric_mcc(only_one_true, 2), 0);
    near(metric_accuracy((int64_t[]){5}, 1), 1);
    near(metric_mcc((int64_t[]){5}, 1), 0);
}

// Sums of squares of such counts leave 64-bit integers behind.
static void large_counts_keep_their_digits(void **state) {
    (void)state;
    const int64_t k = 3000000000;
    const int64_t count[] = {6 * k, 3 * k, 1 * k, 2 * k, 7 * k, 3 * k, 1 * k, 2 * k, 5 * k};
    const int64_t small[] = {6, 3, 1, 2, 7, 3, 1, 2, 5};
    near(metric_mcc(count, 3), metric_mcc(small, 3));
    near(metric_accuracy(count, 3), metric_accuracy(small, 3));
    near(metric_macro_f1(count, 3), metric_macro_f1(small, 3));
}

static void each_class_by_hand(void **state) {
    (void)state;
    const int64_t count[] = {6, 3, 1, 2, 7, 3, 0, 0, 0};
    class_score a = metric_of_class(count, 3, 0), c = metric_of_class(count, 3, 2);
    near(a.precision, 6.0 / 8);
    near(a.recall, 0.6);
    near(a.f1, 2 * 0.75 * 0.6 / 1.35);
    assert_int_equal(a.support, 10);
    near(c.precision, 0);
    near(c.recall, 0);
    near(c.f1, 0);
    assert_int_equal(c.support, 0);
    near(metric_balanced_accuracy(count, 3), (0.6 + 7.0 / 12) / 2); // the third class has no samples
    near(metric_balanced_accuracy((const int64_t[]){0, 0, 0, 0}, 2), 0);
    near(metric_macro_f1(count, 3), (12.0 / 18 + 14.0 / 22 + 0) / 3); // a class that is only ever said counts
    const int64_t full[] = {6, 3, 1, 2, 7, 3, 1, 2, 5};
    double f1 = 0;
    for (int k = 0; k < 3; k++) f1 += metric_of_class(full, 3, k).f1 / 3;
    near(f1, metric_macro_f1(full, 3));
}

static void forecasts_by_hand(void **state) {
    (void)state;
    const double errors[ERRORS_COUNT] = {[ERRORS_WEIGHT] = 8,
        [ERRORS_ABSOLUTE] = 12,
        [ERRORS_SQUARE] = 32,
        [ERRORS_SMAPE] = 80,
        [ERRORS_SCALED] = 6,
        [ERRORS_SCALED_WEIGHT] = 4};
    near(metric_mae(errors), 1.5);
    near(metric_rmse(errors), 2);
    near(metric_smape(errors), 10);
    near(metric_mase(errors), 1.5);
    near(metric_owa(10, 1.5, 20, 1), 1);
    const double none[ERRORS_COUNT] = {0};
    assert_true(isnan(metric_mae(none)) && isnan(metric_rmse(none)) && isnan(metric_smape(none)));
    assert_true(isnan(metric_mase(none)) && isnan(metric_owa(10, 1.5, 0, 1)) && isnan(metric_owa(10, 1.5, 20, 0)));
}

static void metrics_by_name(void **state) {
    (void)state;
    const int64_t count[] = {50, 10, 5, 35};
    const double errors[ERRORS_COUNT] = {4, 2, 16, 40, 2, 4};
    metric_score classes = {.loss = 0.7, .confusion = count, .classes = 2};
    metric_score forecasts = {.loss = 0.2, .errors = errors, .naive2_smape = 20, .naive2_mase = 1};
    near(metric_value(metric_find("mcc"), &classes), metric_mcc(count, 2));
    near(metric_value(metric_find("accuracy"), &classes), 0.85);
    near(metric_value(metric_find("balanced_accuracy"), &classes), (50.0 / 60 + 35.0 / 40) / 2);
    near(metric_value(metric_find("macro_f1"), &classes), metric_macro_f1(count, 2));
    near(metric_value(metric_find("loss"), &classes), 0.7);
    near(metric_value(metric_find("loss"), &forecasts), 0.2);
    near(metric_value(metric_find("mae"), &forecasts), 0.5);
    near(metric_value(metric_find("rmse"), &forecasts), 2);
    near(metric_value(metric_find("smape"), &forecasts), 10);
    near(metric_value(metric_find("mase"), &forecasts), 0.5);
    near(metric_value(metric_find("owa"), &forecasts), 0.5);
    assert_true(isnan(metric_value(metric_find("mcc"), &forecasts)));
    assert_true(isnan(metric_value(metric_find("rmse"), &classes)));
    assert_null(metric_find("mc"));
    for (int i = 0; metric_at(i); i++) {
        assert_ptr_equal(metric_find(metric_at(i)->name), metric_at(i));
        assert_true(metric_at(i)->higher == (metric_at(i)->tasks == METRIC_CLASSES));
    }
    assert_null(metric_at(-1));
    assert_string_equal(metric_usual(METRIC_CLASSES)->name, "mcc");
    assert_string_equal(metric_usual(METRIC_FORECASTS)->name, "mae");
    assert_string_equal(metric_usual(METRIC_SERIES)->name, "smape");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes_by_hand),
        cmocka_unit_test(three_classes_by_hand),
        cmocka_unit_test(perfect_and_opposite),
        cmocka_unit_test(undefined_is_zero),
        cmocka_unit_test(large_counts_keep_their_digits),
        cmocka_unit_test(each_class_by_hand),
        cmocka_unit_test(forecasts_by_hand),
        cmocka_unit_test(metrics_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
