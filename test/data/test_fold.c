// Folding: windows come back bit for bit from the series that they were folded into, whatever order they came in.
#include "data/fold.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 7, WIDTH = 3, MOST = 4000 };

typedef float window[STEPS][WIDTH];

typedef struct {
    float (*rows)[WIDTH];
    int64_t count, room;
} series;

static bool keep(void *arg, const void *rows, int64_t count, err *e) {
    series *s = arg;
    if (count > s->room - s->count) return err_run(e, "full");
    memcpy(s->rows[s->count], rows, (size_t)count * sizeof s->rows[0]);
    s->count += count;
    return true;
}

// Folds windows in pieces of random lengths and gathers them back.
static fold_sums round_trip(window *w, int64_t samples, dice *d) {
    err e = {0};
    series s = {.rows = calloc((size_t)samples * STEPS + 1, sizeof *s.rows), .room = samples * STEPS};
    int32_t *row = malloc((size_t)(samples + 1) * sizeof *row), *first = malloc((size_t)(samples + 1) * sizeof *first);
    fold *f = fold_new(STEPS, sizeof s.rows[0], keep, &s, &e);
    support_ok(f, &e);
    for (int64_t at = 0, n; at < samples; at += n) {
        n = (int64_t)dice_below(d, 20);
        n = n < samples - at ? n : samples - at;
        support_ok(fold_push(f, w + at, n, row + at, first + at, &e), &e);
    }
    fold_sums sums = fold_so_far(f);
    assert_int_equal(sums.samples, samples);
    assert_int_equal(sums.rows, s.count);
    int64_t runs = 0;
    for (int64_t i = 0; i < samples; i++) {
        assert_true(row[i] < s.count && first[i] >= 0);
        assert_true(row[i] - STEPS + 1 >= first[i]);
        assert_memory_equal(s.rows[row[i] - STEPS + 1], w[i], sizeof w[i]);
        // Runs do not interleave: `first` and `row` never go back.
        if (i) assert_true(first[i] >= first[i - 1] && row[i] >= row[i - 1]);
        runs += !i || first[i] != first[i - 1];
    }
    assert_int_equal(runs, sums.runs);
    fold_free(f);
    free(s.rows);
    free(row);
    free(first);
    return sums;
}

static void cut(window *w, float (*bars)[WIDTH], int64_t last) {
    memcpy(*w, bars[last - STEPS + 1], sizeof *w);
}

static void fill(float (*bars)[WIDTH], int64_t count, dice *d, uint64_t values) {
    for (int64_t i = 0; i < count * WIDTH; i++)
        bars[i / WIDTH][i % WIDTH] = values ? (float)dice_below(d, values) : dice_unit(d);
}

static void moving_windows_fold(void **state) {
    (void)state;
    static float bars[MOST + STEPS][WIDTH];
    static window w[MOST];
    dice d = {.seed = 1};
    fill(bars, MOST + STEPS, &d, 0);
    for (int i = 0; i < MOST; i++) cut(&w[i], bars, STEPS - 1 + i);
    fold_sums sums = round_trip(w, MOST, &d);
    assert_int_equal(sums.runs, 1);
    assert_int_equal(sums.rows, MOST + STEPS - 1);
    // Slow bars: each window comes twelve times.
    for (int i = 0; i < MOST; i++) cut(&w[i], bars, STEPS - 1 + i / 12);
    sums = round_trip(w, MOST, &d);
    assert_int_equal(sums.runs, 1);
    assert_int_equal(sums.rows, (MOST + 11) / 12 + STEPS - 1);
    // A window that moves on by all of its rows shares none.
    for (int i = 0; i < MOST / STEPS; i++) cut(&w[i], bars, STEPS - 1 + i * STEPS);
    sums = round_trip(w, MOST / STEPS, &d);
    assert_int_equal(sums.runs, MOST / STEPS);
}

static void any_windows_come_back(void **state) {
    (void)state;
    static float bars[MOST + STEPS][WIDTH];
    static window w[MOST];
    dice d = {.seed = 2};
    for (int trial = 0; trial < 30; trial++) {
        int64_t samples = (int64_t)dice_below(&d, MOST), at = STEPS - 1;
        // Few values make rows that are equal by chance, and shifts that are not unique.
        fill(bars, MOST + STEPS, &d, trial % 3 ? (uint64_t)(trial % 3) : 0);
        for (int64_t i = 0; i < samples; i++) {
            uint64_t what = dice_below(&d, 10);
            if (what == 0) at = STEPS - 1 + (int64_t)dice_below(&d, MOST);
            if (what > 1) at += (int64_t)(what < 8 ? 1 : dice_below(&d, STEPS + 2));
            if (at >= MOST + STEPS) at = STEPS - 1;
            cut(&w[i], bars, at);
        }
        round_trip(w, samples, &d);
    }
}

static void bits_are_compared(void **state) {
    (void)state;
    static window w[4];
    dice d = {.seed = 3};
    memset(w, 0, sizeof w);
    for (int i = 0; i < 4; i++) w[i][3][1] = NAN;
    fold_sums sums = round_trip(w, 4, &d);
    assert_int_equal(sums.rows, STEPS);
    w[2][0][0] = -0.0f;
    sums = round_trip(w, 4, &d);
    assert_true(sums.rows > STEPS);
    w[2][0][0] = 0;
    memcpy(&w[3][3][1], &(uint32_t){0x7fc00001}, 4);
    sums = round_trip(w, 4, &d);
    assert_true(sums.rows > STEPS);
}

static void small_cases(void **state) {
    (void)state;
    static window w[2];
    dice d = {.seed = 4};
    fold_sums sums = round_trip(w, 0, &d);
    assert_int_equal(sums.rows + sums.runs, 0);
    sums = round_trip(w, 1, &d);
    assert_int_equal(sums.rows, STEPS);
    round_trip(w, 2, &d);
}

static void sink_may_fail(void **state) {
    (void)state;
    static window w[2];
    int32_t row[2], first[2];
    series s = {0};
    err e = {0};
    fold *f = fold_new(STEPS, sizeof(float[WIDTH]), keep, &s, &e);
    support_ok(f, &e);
    assert_false(fold_push(f, w, 2, row, first, &e));
    assert_string_equal(e.text, "full");
    fold_free(f);
    fold_free(NULL);
}

static bool drop(void *arg, const void *rows, int64_t count, err *e) {
    (void)rows, (void)e;
    *(int64_t *)arg += count;
    return true;
}

static void too_many_rows_are_refused(void **state) {
    (void)state;
    enum { LONG = 1 << 20 };
    uint8_t *two = calloc(2, LONG);
    int32_t row[2], first[2];
    int64_t rows = 0;
    err e = {0};
    memset(two, 1, LONG);
    fold *f = fold_new(LONG, 1, drop, &rows, &e);
    support_ok(f, &e);
    bool ok = true;
    for (int i = 0; ok && i < 1100; i++) ok = fold_push(f, two, 2, row, first, &e);
    assert_false(ok);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(rows, INT64_C(2047) << 20);
    fold_free(f);
    free(two);
}

// The reference set's fast windows: the rate is printed, and judged loosely, for a machine that does other things too.
static void folds_at_the_speed_of_memory(void **state) {
    (void)state;
    enum { T = 50, F = 15, N = 2000, ROUNDS = 50 };
    dice d = {.seed = 5};
    static float bars[N + T][F];
    float(*w)[T][F] = malloc(N * sizeof *w);
    static int32_t row[N], first[N];
    int64_t rows = 0;
    err e = {0};
    for (int i = 0; i < (N + T) * F; i++) bars[i / F][i % F] = dice_unit(&d);
    for (int i = 0; i < N; i++) memcpy(w[i], bars[i], sizeof *w);
    fold *f = fold_new(T, sizeof bars[0], drop, &rows, &e);
    support_ok(f, &e);
    double start = support_seconds();
    int rounds = support_sanitized() ? 2 : ROUNDS;
    for (int i = 0; i < rounds; i++) support_ok(fold_push(f, w, N, row, first, &e), &e);
    double rate = (double)rounds * N * (double)sizeof *w / (support_seconds() - start);
    assert_int_equal(rows, (int64_t)rounds * (N + T - 1));
    print_message("%.2f GB/s\n", rate / 1e9);
    if (!support_sanitized()) assert_true(rate > 2e8);
    fold_free(f);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moving_windows_fold),
        cmocka_unit_test(any_windows_come_back),
        cmocka_unit_test(bits_are_compared),
        cmocka_unit_test(small_cases),
        cmocka_unit_test(sink_may_fail),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(folds_at_the_speed_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
