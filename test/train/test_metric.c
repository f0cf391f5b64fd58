#include "train/metric.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes_by_hand),
        cmocka_unit_test(three_classes_by_hand),
        cmocka_unit_test(perfect_and_opposite),
        cmocka_unit_test(undefined_is_zero),
        cmocka_unit_test(large_counts_keep_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
