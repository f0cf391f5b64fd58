// The synthetic market: the same by seed, with a signal that a sample can see and a label that it cannot.
#include "data/synthetic.h"

#include "train/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPAN = 12, LONG = 24, SHORT = 6, SLOW_LONG = 20, SLOW_SHORT = 4, FLOW = 4, PART = 4 };

static dataset *market(int64_t bars, uint64_t seed, double strength) {
    err e = {0};
    dataset *d = synthetic_new(&(synthetic_options){bars, seed, strength}, &e);
    if (!d) fail_msg("%s", e.text);
    return d;
}

static void shapes(void **state) {
    (void)state;
    dataset *d = market(5000, 7, 1.5);
    assert_string_equal(d->name, "synthetic");
    assert_int_equal(d->streams, 2);
    assert_string_equal(d->stream[0].name, "fast");
    assert_int_equal(d->stream[0].series.rows, 5000);
    assert_int_equal(d->stream[0].series.width, SYNTHETIC_FAST);
    assert_string_equal(d->stream[1].name, "slow");
    assert_int_equal(d->stream[1].series.rows, 5000 / SPAN);
    assert_int_equal(d->stream[1].series.width, SYNTHETIC_SLOW);
    assert_int_equal(d->vector.rows, d->samples);
    assert_int_equal(d->vector.width, SYNTHETIC_VECTOR);
    assert_false(d->raw);
    err e = {0};
    assert_true(dataset_check(d, "synthetic", &e));
    assert_int_equal(d->classes, 3);
    assert_int_equal(d->horizon, 1);
    assert_int_equal(d->samples, 5000 - SPAN * SLOW_LONG);
    int64_t words = 5000 * SYNTHETIC_FAST + 5000 / SPAN * SYNTHETIC_SLOW + d->samples * (SYNTHETIC_VECTOR + 4 + 2);
    assert_int_equal(dataset_bytes(d), words * 4);
    dataset_free(d);
    dataset_free(NULL);
}

static bool equal_panels(const dataset *a, const dataset *b) {
    bool same = a->samples == b->samples;
    for (int i = 0; same && i < a->streams; i++) {
        const table *s = &a->stream[i].series, *t = &b->stream[i].series;
        size_t bytes = (size_t)(s->rows * s->width) * sizeof(float);
        same = s->rows == t->rows && !memcmp(table_floats(s), table_floats(t), bytes);
    }
    size_t n = (size_t)a->samples;
    return same &&
           !memcmp(table_floats(&a->vector), table_floats(&b->vector), n * (size_t)a->vector.width * sizeof(float)) &&
           !memcmp(a->label, b->label, n * sizeof *a->label) && !memcmp(a->best, b->best, n * sizeof *a->best);
}

static void same_seed_same_market(void **state) {
    (void)state;
    dataset *a = market(3000, 7, 1.5), *b = market(3000, 7, 1.5), *c = market(3000, 8, 1.5);
    assert_true(equal_panels(a, b));
    assert_false(equal_panels(a, c));
    dataset_free(a);
    dataset_free(b);
    dataset_free(c);
}

static void check_values(int64_t bars) {
    dataset *d = market(bars, 3, 1.5);
    for (int i = 0; i < d->streams; i++)
        for (int64_t k = 0; k < d->stream[i].series.rows * d->stream[i].series.width; k++)
            assert_true(fabsf(table_floats(&d->stream[i].series)[k]) < 20);
    const float *vector = table_floats(&d->vector);
    for (int64_t k = 0; k < d->samples * d->vector.width; k += 2) {
        float signal = vector[k], strength = vector[k + 1];
        assert_true(signal == -1 || signal == 0 || signal == 1);
        assert_true(strength >= 0 && strength <= 1 && (signal != 0 || strength == 0));
    }
    dataset_free(d);
}

static void values_are_finite_and_moderate(void **state) {
    (void)state;
    check_values(5000);
    for (int64_t bars = 241; bars < 270; bars++) check_values(bars);
}

// No sample points beyond its own time; a slow bar is used only once it has closed.
static void samples_look_back_only(void **state) {
    (void)state;
    dataset *d = market(4000, 7, 1.5);
    for (int64_t i = 0; i < d->samples; i++) {
        int64_t fast = d->stream[0].row[i], slow = d->stream[1].row[i];
        assert_int_equal(fast, d->stream[0].row[0] + i);
        assert_true(fast + 1 < d->stream[0].series.rows); // the bar that its label needs exists
        assert_true(slow >= 0 && slow < d->stream[1].series.rows);
        assert_true(slow * SPAN + SPAN <= fast + 1);
        assert_true((slow + 1) * SPAN + SPAN > fast + 1); // and the newest of those
        assert_int_equal(d->stream[0].first[i], 0);
        assert_int_equal(d->stream[1].first[i], 0);
    }
    assert_true(d->stream[1].row[0] + 1 >= SLOW_LONG);
    assert_int_equal(d->stream[0].row[d->samples - 1], d->stream[0].series.rows - 2);
    dataset_free(d);
}

// The label is the class of the next bar's return, the first feature of the row after the sample's own.
static void labels_are_the_next_bars(void **state) {
    (void)state;
    dataset *d = market(20000, 7, 1.5);
    int64_t count[3] = {0};
    for (int64_t i = 0; i < d->samples; i++) {
        assert_true(d->label[i] >= 0 && d->label[i] < 3);
        assert_true(d->best[i] >= 0 && d->best[i] < 3);
        count[d->label[i]]++;
        float next = table_floats(&d->stream[0].series)[(d->stream[0].row[i] + 1) * SYNTHETIC_FAST];
        if (fabs(fabs((double)next) - 0.6) < 1e-6) continue; // rounding
        assert_int_equal(d->label[i], next < -0.6f ? 0 : next > 0.6f ? 2 : 1);
    }
    for (int k = 0; k < 3; k++) assert_true((double)count[k] > 0.2 * (double)d->samples);
    assert_true(fabs((double)(count[0] - count[2])) < 0.05 * (double)d->samples);
    dataset_free(d);
}

static double best_mcc(double strength) {
    dataset *d = market(20000, 7, strength);
    int64_t count[9] = {0};
    for (int64_t i = 0; i < d->samples; i++) count[d->label[i] * 3 + d->best[i]]++;
    dataset_free(d);
    return metric_mcc(count, 3);
}

static void best_classifier_beats_chance(void **state) {
    (void)state;
    double none = best_mcc(0), some = best_mcc(0.5), usual = best_mcc(1.5), strong = best_mcc(10);
    assert_true(none == 0);
    assert_true(some > 0.1 && usual > some + 0.1 && strong > 0.85);
    assert_true(usual > 0.4 && usual < 0.6);
}

static double mean_back(const float *x, int64_t row, int64_t features, int column, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[(row - k) * features + column];
    return sum / (double)n;
}

static double correlation(const double *x, const double *y, int64_t n) {
    double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) mx += x[i] / (double)n, my += y[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xy / sqrt(xx * yy);
}

static void divide_by_deviation(double *x, int64_t n) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) / sqrt(square);
}

// The signal can be worked out from rows that the sample points to, and predicts the next return as well as the
// strength promises: a correlation of strength / sqrt(1 + strength^2). Everything else in the last bar predicts
// nothing.
static void signal_is_in_the_sample(void **state) {
    (void)state;
    dataset *d = market(20000, 11, 1.5);
    int64_t n = d->samples;
    double *a = calloc((size_t)(5 * n), sizeof *a), *b = a + n, *c = b + n, *next = c + n, *noise = next + n;
    assert_non_null(a);
    const stream *fast = &d->stream[0], *slow = &d->stream[1];
    const float *quick = table_floats(&fast->series), *lazy = table_floats(&slow->series);
    for (int64_t i = 0; i < n; i++) {
        int64_t f = fast->row[i], s = slow->row[i];
        const float *v = table_floats(&d->vector) + i * d->vector.width;
        a[i] = mean_back(quick, f, SYNTHETIC_FAST, FLOW, SHORT) - mean_back(quick, f, SYNTHETIC_FAST, FLOW, LONG);
        b[i] =
            mean_back(lazy, s, SYNTHETIC_SLOW, PART, SLOW_SHORT) - mean_back(lazy, s, SYNTHETIC_SLOW, PART, SLOW_LONG);
        c[i] = (double)(v[0] * v[1] + v[2] * v[3]);
        next[i] = (double)quick[(f + 1) * SYNTHETIC_FAST];
        noise[i] = (double)quick[f * SYNTHETIC_FAST + 5]; // the volume
    }
    divide_by_deviation(a, n);
    divide_by_deviation(b, n);
    divide_by_deviation(c, n);
    for (int64_t i = 0; i < n; i++) a[i] += b[i] + c[i];
    assert_true(fabs(correlation(a, next, n) - 1.5 / sqrt(1 + 1.5 * 1.5)) < 0.02);
    assert_true(fabs(correlation(noise, next, n)) < 0.03);
    free(a);
    dataset_free(d);
}

static void refuses_sizes_out_of_range(void **state) {
    (void)state;
    static const int64_t bad[] = {-1, 0, 240, INT32_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err e = {0};
        assert_null(synthetic_new(&(synthetic_options){bad[i], 1, 1}, &e));
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.text, "bars"));
    }
    dataset *least = market(241, 1, 1);
    assert_int_equal(least->samples, 1);
    dataset_free(least);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(same_seed_same_market),
        cmocka_unit_test(values_are_finite_and_moderate),
        cmocka_unit_test(samples_look_back_only),
        cmocka_unit_test(labels_are_the_next_bars),
        cmocka_unit_test(best_classifier_beats_chance),
        cmocka_unit_test(signal_is_in_the_sample),
        cmocka_unit_test(refuses_sizes_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
