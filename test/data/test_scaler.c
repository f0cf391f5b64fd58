// The scaler: fitted on what training windows see and on nothing else, right at large offsets, and strict about NaN.
#include "data/scaler.h"

#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, C = 3, SAMPLES = 30 };

// Two series, rows 0..19 and 20..39; samples take turns. Column 0 is a price around 10^4, column 1 does not change.
typedef struct {
    dataset d;
    float series[ROWS * C];
    int32_t row[SAMPLES], first[SAMPLES];
} made;

static made *make(void) {
    static const char *const names[C] = {"close", "constant", "volume"};
    made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (int r = 0; r < ROWS; r++) {
        m->series[r * C] = 10000 + 0.25f * (float)(r * 7 % 11);
        m->series[r * C + 1] = 12345.678f;
        m->series[r * C + 2] = (float)(r * r % 13) - 5;
    }
    for (int i = 0; i < SAMPLES; i++) {
        m->first[i] = i % 2 ? 20 : 0;
        m->row[i] = m->first[i] + 2 + i / 2;
    }
    m->d = (dataset){.samples = SAMPLES, .streams = 1};
    m->d.stream[0] =
        (stream){.name = "fast", .series = table_of(COLUMN_F32, ROWS, C, m->series), .row = m->row, .first = m->first};
    m->d.stream[0].series.columns = names;
    return m;
}

static scaler *fitted(const made *m, const split_part *train, int64_t window) {
    err e;
    scaler *s = scaler_fit(&m->d, train, &window, false, &e);
    if (!s) fail_msg("%s", e.text);
    return s;
}

static void by_hand(const made *m, const split_part *train, int64_t window, int column, double *mean, double *std) {
    double sum = 0, square = 0, n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < ROWS; r++) {
            bool seen = false;
            for (int k = 0; k < train->spans; k++)
                for (int64_t i = train->span[k].first; i < train->span[k].first + train->span[k].count; i++)
                    seen |= r <= m->row[i] && r > m->row[i] - window && r >= m->first[i];
            double v = (double)m->series[r * C + column] - 10000;
            if (!seen) continue;
            n += pass == 0;
            sum += pass ? 0 : v;
            square += pass ? (v - sum / n) * (v - sum / n) : 0;
        }
    *mean = 10000 + sum / n;
    *std = sqrt(square / n);
}

static void fits_what_windows_see(void **state) {
    (void)state;
    made *m = make();
    static const span spans[][2] = {
        {{0, SAMPLES}}, {{0, 1}}, {{0, 7}}, {{5, 10}}, {{29, 1}}, {{0, 4}, {20, 6}}, {{3, 1}, {11, 12}}};
    for (size_t k = 0; k < sizeof spans / sizeof *spans; k++)
        for (int64_t window = 1; window < 12; window += 5) {
            split_part train = part_of(spans[k][0]);
            if (spans[k][1].count) part_add(&train, spans[k][1]);
            scaler *s = fitted(m, &train, window);
            for (int c = 0; c < C; c++) {
                double mean, std;
                by_hand(m, &train, window, c, &mean, &std);
                if (std < 1e-9) std = 1;
                assert_true(fabs((double)s->mean[0][c] - mean) <= 1e-3 + 1e-7 * fabs(mean));
                assert_true(fabs((double)s->std[0][c] - std) <= 1e-6 * std);
                assert_true(s->value[0][c] == s->mean[0][c]);
                assert_true(s->value[0][C + c] == (float)(1 / (double)s->std[0][c]));
            }
            scaler_free(s);
        }
    free(m);
}

// Rows beyond the training part may be anything.
static void the_future_changes_nothing(void **state) {
    (void)state;
    made *m = make();
    split_part train = part_of((span){0, 12}); // rows up to 7 and 27
    scaler *before = fitted(m, &train, 4);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < C; c++)
            if ((r > 7 && r < 20) || r > 27) m->series[r * C + c] = NAN;
    scaler *after = fitted(m, &train, 4);
    assert_memory_equal(before->memory, after->memory, 4 * C * sizeof(float));
    scaler_free(before);
    scaler_free(after);
    free(m);
}

static void what_is_not_finite_is_named(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err e;
        int64_t window = 4;
        made *m = make();
        split_part all = part_of((span){0, SAMPLES});
        m->series[5 * C + 2] = bad[i];
        assert_null(scaler_fit(&m->d, &all, &window, false, &e));
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.text, "fast: row 5, column 3 (volume)"));
        m->d.stream[0].series.columns = NULL;
        assert_null(scaler_fit(&m->d, &all, &window, false, &e));
        assert_non_null(strstr(e.text, "row 5, column 3"));
        free(m);
    }
}

// Raw prices over many rows, where sums of squares in fp32 or without an offset would have lost all digits.
static void large_offsets_keep_their_digits(void **state) {
    (void)state;
    enum { MANY = 100000 };
    err e;
    float *x = malloc(MANY * sizeof *x);
    int32_t row = MANY - 1, first = 0;
    int64_t window = MANY;
    assert_non_null(x);
    for (int i = 0; i < MANY; i++) x[i] = 16777216.0f + (float)(2 * (i % 2));
    dataset d = {.samples = 1, .streams = 1};
    d.stream[0] = (stream){.name = "fast", .series = table_of(COLUMN_F32, MANY, 1, x), .row = &row, .first = &first};
    split_part one = part_of((span){0, 1});
    scaler *s = scaler_fit(&d, &one, &window, false, &e);
    assert_non_null(s);
    assert_true(fabs((double)s->std[0][0] - 1) < 1e-6);
    scaler_free(s);
    free(x);
}

static void typed_columns(void **state) {
    (void)state;
    static const int8_t bytes[4] = {-1, 1, -1, 1};
    static const int32_t row = 3, first = 0;
    static uint16_t halves[4];
    err e;
    int64_t window = 4;
    for (int i = 0; i < 4; i++) halves[i] = half_narrow(i < 2 ? 0.5f : 1.5f);
    dataset d = {.samples = 1, .streams = 1};
    d.stream[0] = (stream){.name = "fast", .series = table_of(COLUMN_I8, 4, 1, bytes), .row = &row, .first = &first};
    table_add(&d.stream[0].series, COLUMN_F16, 1, halves);
    split_part one = part_of((span){0, 1});
    scaler *s = scaler_fit(&d, &one, &window, false, &e);
    assert_non_null(s);
    assert_true(s->mean[0][0] == 0 && s->std[0][0] == 1 && s->mean[0][1] == 1 && s->std[0][1] == 0.5f);
    assert_true(s->value[0][3] == 2);
    scaler_free(s);
    scaler_free(NULL);
}

// Every instrument by its own rows: the scale that its samples alone give, and a view that has it applied.
static void instruments_have_their_own(void **state) {
    (void)state;
    static const char *const symbols[] = {"AAA", "BBB"};
    static const int64_t start[] = {0, 20, ROWS};
    made *m = make(), *alone = make();
    err e = {0};
    int64_t window = 4;
    split_part train = part_of((span){0, 16});
    m->d.panel = 2;
    m->d.panel_names = symbols;
    m->d.panel_first = m->d.stream[0].start = start;
    scaler *own = scaler_fit(&m->d, &train, &window, true, &e);
    assert_non_null(own);
    assert_int_equal(own->series, 2);
    dataset *scaled = scaler_apply(own, &m->d, false, &e);
    assert_non_null(scaled);
    const float *to = table_floats(&scaled->stream[0].series);
    for (int k = 0; k < 2; k++) {
        // The other instrument's samples see the first row of this one instead.
        for (int i = 0; i < SAMPLES; i++) {
            alone->first[i] = i % 2 == k ? m->first[i] : (int32_t)start[k];
            alone->row[i] = i % 2 == k ? m->row[i] : (int32_t)start[k];
        }
        scaler *one = fitted(alone, &train, window);
        for (int c = 0; c < C; c++) {
            assert_true(own->mean[0][k * C + c] == one->mean[0][c] && own->std[0][k * C + c] == one->std[0][c]);
            for (int64_t r = start[k]; r < start[k + 1]; r++)
                assert_true(to[r * C + c] == (m->series[r * C + c] - one->mean[0][c]) * one->value[0][C + c]);
        }
        scaler_free(one);
    }
    // The graph's own scale then changes nothing.
    for (int c = 0; c < C; c++) assert_true(own->value[0][c] == 0 && own->value[0][C + c] == 1);
    dataset_free(scaled);
    scaler_free(own);
    split_part first = part_of((span){0, 1});
    assert_null(scaler_fit(&m->d, &first, &window, true, &e));
    assert_non_null(strstr(e.text, "BBB has no training samples to fit its scale on"));
    free(m);
    free(alone);
}

// A window that ends on the last row of one instrument leaves no mark on the next one, whose future may be anything.
static void the_end_of_one_instrument_is_not_the_next_ones(void **state) {
    (void)state;
    static const char *const symbols[] = {"AAA", "BBB"};
    static const int64_t start[] = {0, 20, ROWS};
    made *m = make();
    err e = {0};
    int64_t window = 4;
    split_part train = part_of((span){0, 12});
    m->d.panel = 2;
    m->d.panel_names = symbols;
    m->d.panel_first = m->d.stream[0].start = start;
    for (int i = 8; i < 12; i += 2) m->row[i] = 19; // AAA ends inside training; BBB's samples see rows 20 to 27
    for (int future = 0; future < 2; future++) {
        scaler *s = scaler_fit(&m->d, &train, &window, true, &e);
        if (!s) fail_msg("%s", e.text);
        static float before[6 * C];
        if (future) assert_memory_equal(before, s->memory, sizeof before);
        memcpy(before, s->memory, sizeof before);
        scaler_free(s);
        for (int r = 28; r < ROWS; r++)
            for (int c = 0; c < C; c++) m->series[r * C + c] = NAN;
    }
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_what_windows_see),
        cmocka_unit_test(the_future_changes_nothing),
        cmocka_unit_test(what_is_not_finite_is_named),
        cmocka_unit_test(large_offsets_keep_their_digits),
        cmocka_unit_test(typed_columns),
        cmocka_unit_test(instruments_have_their_own),
        cmocka_unit_test(the_end_of_one_instrument_is_not_the_next_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
