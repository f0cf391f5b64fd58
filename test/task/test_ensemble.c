#include "task/ensemble.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void means_of_probabilities(void **state) {
    (void)state;
    const float a[] = {0.5f, 0.25f, 0.25f}, b[] = {0.25f, 0.75f, 0}, *both[] = {a, b};
    float out[3], sum = 0;
    ensemble_mean(both, 2, 3, out);
    assert_true(out[0] == 0.375f && out[1] == 0.5f && out[2] == 0.125f);
    for (int i = 0; i < 3; i++) sum += out[i];
    assert_true(sum == 1);
    ensemble_mean(both, 1, 3, out);
    for (int i = 0; i < 3; i++) assert_true(out[i] == a[i]);
}

static void medians_of_forecasts(void **state) {
    (void)state;
    float a[] = {1, 5, -INFINITY}, b[] = {3, 4, 2}, c[] = {2, 1e30f, 7}, d[] = {10, 6, 9};
    const float *member[] = {a, b, c, d};
    float out[3];
    ensemble_median(member, 1, 3, out);
    for (int i = 0; i < 3; i++) assert_true(out[i] == a[i]);
    ensemble_median(member, 3, 3, out);
    assert_true(out[0] == 2 && out[1] == 5 && out[2] == 2);
    ensemble_median(member, 4, 3, out);
    assert_true(out[0] == 2.5f && out[1] == 5.5f && out[2] == 4.5f);
    ensemble_median(member, 3, 3, a);
    assert_true(a[0] == 2 && a[1] == 5 && a[2] == 2);
}

static void NaN_is_not_hidden(void **state) {
    (void)state;
    const float a[] = {1, NAN}, b[] = {NAN, 2}, c[] = {3, 4}, *member[] = {a, b, c};
    float out[2];
    ensemble_median(member, 3, 2, out);
    assert_true(isnan(out[0]) && isnan(out[1]));
    ensemble_mean(member, 3, 2, out);
    assert_true(isnan(out[0]) && isnan(out[1]));
}

// Sums of large values stay in range.
static void large_values(void **state) {
    (void)state;
    const float a[] = {3e38f}, b[] = {3.2e38f}, *member[] = {a, b};
    float out;
    ensemble_mean(member, 2, 1, &out);
    assert_true(out == 3.1e38f);
    ensemble_median(member, 2, 1, &out);
    assert_true(out == 3.1e38f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_of_probabilities),
        cmocka_unit_test(medians_of_forecasts),
        cmocka_unit_test(NaN_is_not_hidden),
        cmocka_unit_test(large_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
