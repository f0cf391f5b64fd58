#include "train/naive.h"

#include "data/panel.h"
#include "support.h"
#include "train/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-9 * fabs(want))) fail_msg("%.15g instead of %.15g", is, want);
}

static void seasons_repeat(void **state) {
    (void)state;
    const double y[] = {9, 9, 1, 2, 3};
    double f[7];
    naive_seasonal(y, 5, 3, f, 7);
    static const double want[] = {1, 2, 3, 1, 2, 3, 1};
    for (int i = 0; i < 7; i++) assert_true(f[i] == want[i]);
    naive_seasonal(y, 5, 1, f, 2);
    assert_true(f[0] == 3 && f[1] == 3);
    naive_seasonal(y, 2, 3, f, 2);
    assert_true(f[0] == 9 && f[1] == 9);
}

static void scales_by_hand(void **state) {
    (void)state;
    const double y[] = {1, 3, 2, 6, 2};
    near(naive_scale(y, 5, 1), (2 + 1 + 4 + 4) / 4.0);
    near(naive_scale(y, 5, 2), (1 + 3 + 0) / 3.0);
    assert_true(naive_scale(y, 5, 5) == 0 && naive_scale(y, 5, 9) == 0);
    assert_true(naive_scale((const double[]){4, 4, 4}, 3, 1) == 0);
}

static void a_season_is_found_and_kept(void **state) {
    (void)state;
    enum { N = 40, H = 6 };
    static const double season[] = {1.2, 1, 0.8, 1};
    double y[N], f[H];
    for (int t = 0; t < N; t++) y[t] = 100 * season[t % 4];
    assert_true(naive_is_seasonal(y, N, 4));
    naive_two(y, N - 1, 4, f, H); // ends within a season
    for (int h = 0; h < H; h++) near(f[h], 100 * season[(N - 1 + h) % 4]);
}

static void an_odd_season(void **state) {
    (void)state;
    enum { N = 50, H = 4 };
    static const double season[] = {0.5, 1.5, 1};
    double y[N], f[H];
    for (int t = 0; t < N; t++) y[t] = 30 * season[t % 3];
    assert_true(naive_is_seasonal(y, N, 3));
    naive_two(y, N, 3, f, H);
    for (int h = 0; h < H; h++) near(f[h], 30 * season[(N + h) % 3]);
}

// The same with a trend, where the decomposition is worked out here: trends, means of ratios, indices.
static void a_decomposition_by_hand(void **state) {
    (void)state;
    enum { N = 16 };
    double y[N], ratio[4] = {0}, count[4] = {0}, f[5], all = 0;
    for (int t = 0; t < N; t++) y[t] = (10 + t) * (t % 4 == 1 ? 3 : 1);
    assert_true(naive_is_seasonal(y, N, 4));
    for (int t = 2; t < N - 2; t++) {
        double trend = (0.5 * y[t - 2] + y[t - 1] + y[t] + y[t + 1] + 0.5 * y[t + 2]) / 4;
        ratio[t % 4] += y[t] / trend;
        count[t % 4]++;
    }
    for (int k = 0; k < 4; k++) all += ratio[k] / count[k] / 4;
    naive_two(y, N, 4, f, 5);
    for (int h = 0; h < 5; h++)
        near(f[h], y[N - 1] / (ratio[3] / count[3] / all) * (ratio[h % 4] / count[h % 4] / all));
}

static void without_a_season(void **state) {
    (void)state;
    enum { N = 60 };
    double y[N], f[3];
    unsigned draw = 1;
    for (int t = 0; t < N; t++) {
        draw = draw * 1664525u + 1013904223u;
        y[t] = 100 + (draw >> 16) / 65536.0;
    }
    assert_false(naive_is_seasonal(y, N, 4));
    naive_two(y, N, 4, f, 3);
    assert_true(f[0] == y[N - 1] && f[2] == y[N - 1]);
    for (int t = 0; t < N; t++) y[t] = 7;
    assert_false(naive_is_seasonal(y, N, 4));
    for (int t = 0; t < N; t++) y[t] = t % 4;
    assert_true(naive_is_seasonal(y, N, 4) && !naive_is_seasonal(y, N, 1));
    assert_false(naive_is_seasonal(y, 11, 4)); // less than three seasons
    for (int t = 0; t < N; t++) y[t] = 1 + t % 18;
    assert_false(naive_is_seasonal(y, N, 18)); // R's acf ends at lag 17
    for (int t = 0; t < N; t++) y[t] = t % 4 ? 1 : 0;
    naive_two(y, N, 4, f, 3); // an index of 0
    assert_true(f[0] == 1 && f[1] == 1 && f[2] == 1);
}

// |r_m| / sqrt((1 + 2 (r_1^2 + ... + r_(m-1)^2)) / n), r_k being the autocorrelation at lag k.
static double season_statistic(const double *y, int n, int m) {
    double mean = 0, r[32] = {0}, around = 1;
    for (int t = 0; t < n; t++) mean += y[t] / n;
    for (int k = 0; k <= m; k++)
        for (int t = k; t < n; t++) r[k] += (y[t] - mean) * (y[t - k] - mean);
    for (int k = 1; k < m; k++) around += 2 * (r[k] / r[0]) * (r[k] / r[0]);
    return fabs(r[m] / r[0]) / sqrt(around / n);
}

// A season counts from 1.645, the two-sided 90 % of the competition, on: series with seasons of many strengths.
static void a_season_counts_at_90_percent(void **state) {
    (void)state;
    enum { N = 80, M = 4, SERIES = 2000 };
    double y[N];
    dice d = {.seed = 7};
    int above = 0, near_below = 0, near_above = 0;
    for (int s = 0; s < SERIES; s++) {
        for (int t = 0; t < N; t++) y[t] = 10 + (double)dice_unit(&d) + (t % M == 1) * (double)s / SERIES;
        double statistic = season_statistic(y, N, M);
        above += statistic > 1.645;
        near_below += statistic > 1.6 && statistic < 1.645;
        near_above += statistic > 1.645 && statistic < 1.69;
        assert_int_equal(naive_is_seasonal(y, N, M), statistic > 1.645);
    }
    assert_true(above > SERIES / 10 && above < SERIES * 9 / 10 && near_below > 0 && near_above > 0);
}

// The competition's own figures

static bool read_panel(panel *p, const char *name) {
    const char *dir = getenv("TRADEWIND_DATA");
    char path[4200];
    err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir ? dir : TEST_DIR "/../../shared/data", name);
    if (access(path, R_OK)) return false;
    support_ok(panel_read(p, path, &e), &e);
    return true;
}

typedef struct {
    double smape, mase;
} figures;

static figures scored(const panel *known, const panel *future, int64_t period) {
    figures all = {0, 0};
    for (int64_t i = 0; i < future->series; i++) {
        const double *y = known->value + known->offset[i], *is = future->value + future->offset[i];
        int64_t n = known->offset[i + 1] - known->offset[i], h = future->offset[i + 1] - future->offset[i];
        double f[64], smape = 0, error = 0;
        assert_true(h <= 64);
        naive_two(y, n, period, f, h);
        for (int64_t k = 0; k < h; k++) {
            smape += 200 * fabs(is[k] - f[k]) / (fabs(is[k]) + fabs(f[k])) / (double)h;
            error += fabs(is[k] - f[k]) / (double)h;
        }
        all.smape += smape / (double)future->series;
        all.mase += error / naive_scale(y, n, period) / (double)future->series;
    }
    return all;
}

static void published(const char *known, const char *future, int64_t period, figures want) {
    panel a, b;
    if (!read_panel(&a, known)) skip();
    assert_true(read_panel(&b, future));
    assert_int_equal(a.series, b.series);
    figures is = scored(&a, &b, period);
    print_message("naive2 of %s: sMAPE %.3f, MASE %.3f\n", known, is.smape, is.mase);
    assert_true(fabs(is.smape - want.smape) < 0.002 && fabs(is.mase - want.mase) < 0.002);
    near(metric_owa(is.smape, is.mase, is.smape, is.mase), 1);
    panel_done(&a);
    panel_done(&b);
}

static void naive2_of_the_competition(void **state) {
    (void)state;
    published("M4-Hourly-train.csv", "M4-Hourly-test.csv", 24, (figures){18.383, 2.395});
    published("M4-Weekly-train.csv", "M4-Weekly-test.csv", 1, (figures){9.161, 2.777});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seasons_repeat),
        cmocka_unit_test(scales_by_hand),
        cmocka_unit_test(a_season_is_found_and_kept),
        cmocka_unit_test(an_odd_season),
        cmocka_unit_test(a_decomposition_by_hand),
        cmocka_unit_test(without_a_season),
        cmocka_unit_test(a_season_counts_at_90_percent),
        cmocka_unit_test(naive2_of_the_competition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
