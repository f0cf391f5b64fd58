// Strips: a million values in bounded memory, and every extreme of them at every zoom.
#include "watch/strip.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { VALUES = 1000000, POINTS = 500 };

// The values, with peaks of one value each.
static double *values(void) {
    double *v = malloc(VALUES * sizeof *v);
    dice d = {.seed = 5};
    assert_non_null(v);
    for (int i = 0; i < VALUES; i++) v[i] = sin(i * 1e-4) + 0.01 * (double)dice_unit(&d);
    for (int i = 0; i < 40; i++) v[dice_below(&d, VALUES)] = (i & 1 ? 1 : -1) * (10 + i);
    return v;
}

static void fill(strip *s, const double *v) {
    for (int i = 0; i < VALUES; i++) strip_add(s, i + 1, i + 1, v[i]);
}

static void check_window(const strip *s, const double *v, int first, int count, strip_point *out) {
    double low = INFINITY, high = -INFINITY, drawn_low = INFINITY, drawn_high = -INFINITY, last = -INFINITY;
    int n = strip_draw(s, first, first + count - 1, POINTS, out);
    assert_true(n <= 2 * POINTS + 4);
    for (int i = first; i < first + count; i++) {
        low = fmin(low, v[i - 1]);
        high = fmax(high, v[i - 1]);
    }
    for (int i = 0; i < n; i++) {
        assert_true(out[i].x > last);
        last = out[i].x;
        assert_true(out[i].y == v[(int)out[i].x - 1]); // each point is a value, at its place
        drawn_low = fmin(drawn_low, out[i].y);
        drawn_high = fmax(drawn_high, out[i].y);
    }
    assert_true(drawn_low <= low && drawn_high >= high);
}

static void every_extreme_is_drawn_at_every_zoom(void **state) {
    (void)state;
    double *v = values();
    strip s = {0};
    strip_point *out = malloc((2 * POINTS + 4) * sizeof *out);
    dice d = {.seed = 9};
    fill(&s, v);
    assert_int_equal(s.count, VALUES);
    assert_true(strip_bytes(&s) <= STRIP_CELLS * sizeof(strip_cell));
    for (int count = VALUES; count >= 1000; count = count * 2 / 3)
        for (int k = 0; k < 5; k++)
            check_window(&s, v, 1 + (int)dice_below(&d, (uint64_t)(VALUES - count + 1)), count, out);
    strip_done(&s);
    free(out);
    free(v);
}

static void coarse_windows_name_their_rows(void **state) {
    (void)state;
    double *v = values();
    strip s = {0};
    int64_t first = 0, last = 0;
    fill(&s, v);
    assert_false(strip_is_coarse(&s, -INFINITY, INFINITY, POINTS, &first, &last));
    assert_true(strip_is_coarse(&s, 500000, 500100, POINTS, &first, &last));
    assert_true(first <= 500000 && last >= 500100 && last - first <= 8 * s.each);
    assert_true(strip_is_coarse(&s, VALUES - 10, VALUES, POINTS, &first, &last));
    assert_int_equal(last, VALUES);
    strip_done(&s);
    free(v);
}

static void few_values_are_drawn_as_they_are(void **state) {
    (void)state;
    strip s = {0};
    strip_point out[2 * POINTS + 4];
    assert_int_equal(strip_draw(&s, -INFINITY, INFINITY, POINTS, out), 0);
    for (int i = 0; i < 300; i++) strip_add(&s, i, i, i % 7 == 3 ? NAN : i % 5);
    int n = strip_draw(&s, -INFINITY, INFINITY, POINTS, out);
    assert_int_equal(n, s.count);
    assert_int_equal(s.missing, 43);
    assert_int_equal(s.last_key, 299);
    for (int i = 0; i < n; i++) assert_true(out[i].y == (int)out[i].x % 5);
    n = strip_draw(&s, 100, 110, POINTS, out);
    assert_true(out[0].x < 100 && out[n - 1].x > 110); // lines go on beyond the window
    n = strip_draw(&s, 1000, 2000, POINTS, out);
    assert_int_equal(n, 1);
    strip_done(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_extreme_is_drawn_at_every_zoom),
        cmocka_unit_test(coarse_windows_name_their_rows), cmocka_unit_test(few_values_are_drawn_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
