// Forecasts of series judged on the host, by hand.
#include "train/series.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-9 * fabs(want))) fail_msg("%.15g instead of %.15g", is, want);
}

// Two series whose naive2 forecasts are their last values, 3 and 10.
static const double a[] = {1, 2, 3}, b[] = {10, 14, 6, 10};
static const float future_a[] = {4, 5}, forecast_a[] = {4, 4}, future_b[] = {10, 0}, forecast_b[] = {12, 0};

static void two_series_by_hand(void **state) {
    (void)state;
    series_score s = {0};
    double naive2[2];
    series_add(&s, a, 3, 0, 1, future_a, forecast_a, 2);
    series_add(&s, b, 4, 0, 1, future_b, forecast_b, 2);
    near(series_mae(&s), (0 + 1 + 2 + 0) / 4.0);
    near(series_rmse(&s), sqrt((1 + 4) / 4.0));
    near(series_smape(&s), ((200 / 9.0) / 2 + (200 * 2 / 22.0) / 2) / 2); // 0 where both are 0
    near(series_mase(&s), (0.5 / 1 + 1 / (16 / 3.0)) / 2);
    series_naive2(&s, naive2);
    near(naive2[0], ((200 / 7.0 + 200 * 2 / 8.0) / 2 + 200 / 2.0) / 2);
    near(naive2[1], (1.5 / 1 + 5 / (16 / 3.0)) / 2);
    near(series_owa(&s), (series_smape(&s) / naive2[0] + series_mase(&s) / naive2[1]) / 2);
}

static void windows_and_seasons(void **state) {
    (void)state;
    series_score s = {0};
    series_add(&s, b, 4, 3, 1, future_b, forecast_b, 2); // scale over 14, 6, 10
    near(series_mase(&s), 1 / 6.0);
    s = (series_score){0};
    series_add(&s, b, 4, 0, 2, future_b, forecast_b, 2); // scale over seasons of 2
    near(series_mase(&s), 1 / 4.0);
    s = (series_score){0};
    series_add(&s, b, 4, 0, 1, future_b, NULL, 2);
    near(series_owa(&s), 1);
}

// Without a scale there is no MASE; with a season of 0 no naive2 either.
static void what_is_not_known_is_no_number(void **state) {
    (void)state;
    static const double flat[] = {5, 5, 5};
    series_score s = {0};
    assert_true(isnan(series_mae(&s)) && isnan(series_smape(&s)) && isnan(series_owa(&s)));
    series_add(&s, flat, 3, 0, 1, future_a, forecast_a, 2);
    assert_true(isnan(series_mase(&s)) && isnan(series_owa(&s)) && series_smape(&s) > 0);
    series_add(&s, a, 3, 0, 1, future_a, forecast_a, 2);
    near(series_mase(&s), 0.5);
    s = (series_score){0};
    series_add(&s, NULL, 0, 0, 0, future_a, forecast_a, 2);
    assert_true(isnan(series_mase(&s)) && isnan(series_owa(&s)));
    near(series_mae(&s), 0.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_series_by_hand),
        cmocka_unit_test(windows_and_seasons),
        cmocka_unit_test(what_is_not_known_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
