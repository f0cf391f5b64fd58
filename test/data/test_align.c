// Alignment against its definition, on whole markets and at the edges: a slow bar is used from the close of the fast
// bar that ends with it, across weekends, holes and stamps shifted by an hour.
#include "data/align.h"

#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { M5 = 300, H1 = 3600, D1 = 86400 };

// Gives bars of a span their ends.
static void end_all(bar *bars, int64_t count, int64_t span) {
    for (int64_t i = 0; i < count; i++) bars[i].end = bars[i].time + span;
}

// The definition, by looking at every slow bar.
static int32_t plain(const bar *fast, const bar *slow, int64_t count) {
    int32_t found = -1;
    for (int64_t i = 0; i < count; i++)
        if (slow[i].end <= fast->end) found = (int32_t)i;
    return found;
}

static void align(const bar *fast, int64_t n, const bar *slow, int64_t m, int32_t *row) {
    int64_t *a = walk_ends(fast, n), *b = walk_ends(slow, m);
    align_rows(a, n, b, m, row);
    free(a);
    free(b);
}

static void check(bar *fast, int64_t n, int64_t fast_span, bar *slow, int64_t m, int64_t slow_span) {
    int32_t *row = calloc((size_t)n + 1, sizeof *row);
    assert_non_null(row);
    row[n] = 77;
    end_all(fast, n, fast_span);
    end_all(slow, m, slow_span);
    align(fast, n, slow, m, row);
    for (int64_t t = 0; t < n; t++) assert_int_equal(row[t], plain(&fast[t], slow, m));
    assert_int_equal(row[n], 77);
    free(row);
}

static void waits_for_the_close(void **state) {
    (void)state;
    bar slow[3] = {{.time = 0}, {.time = H1}, {.time = 2 * H1}}, fast[36] = {{0}};
    int32_t row[36];
    for (int i = 0; i < 36; i++) fast[i].time = i * M5;
    end_all(fast, 36, M5);
    end_all(slow, 3, H1);
    align(fast, 36, slow, 3, row);
    // The bar opened at 00:55 closes at 01:00 with the first hour; that of 00:50 is too early.
    for (int i = 0; i < 36; i++) assert_int_equal(row[i], i < 11 ? -1 : i < 23 ? 0 : i < 35 ? 1 : 2);
    align(fast, 36, slow, 0, row);
    for (int i = 0; i < 36; i++) assert_int_equal(row[i], -1);
    align(fast, 0, slow, 3, row);
    // The same span: a bar's own row. A faster "slow" series: its newest bar that has closed.
    align(slow, 3, slow, 3, row);
    for (int i = 0; i < 3; i++) assert_int_equal(row[i], i);
    align(slow, 3, fast, 36, row);
    for (int i = 0; i < 3; i++) assert_int_equal(row[i], 12 * i + 11);
}

static void keeps_the_last_over_holes(void **state) {
    (void)state;
    // Friday's last hour is used on Monday until Monday's first has closed.
    bar slow[2] = {{.time = 0}, {.time = 3 * D1}},
        fast[3] = {{.time = H1}, {.time = 3 * D1}, {.time = 3 * D1 + 55 * 60}};
    int32_t row[3];
    end_all(slow, 2, H1);
    end_all(fast, 3, M5);
    align(fast, 3, slow, 2, row);
    assert_int_equal(row[0], 0);
    assert_int_equal(row[1], 0);
    assert_int_equal(row[2], 1);
}

static void matches_the_definition(void **state) {
    (void)state;
    dice d = {.seed = 31};
    bar *fast = walk_bars(4000, M5, 32), *slow = walk_bars(600, H1, 33), *days = walk_bars(60, D1 / 2, 34);
    check(fast, 4000, M5, slow, 600, H1);
    check(fast, 4000, M5, days, 60, D1 / 2);
    check(slow, 600, H1, fast, 4000, M5);
    // A broker's clock that goes back an hour leaves equal stamps, forward a hole; and hours of the two files may
    // differ by it.
    for (int64_t i = 300; i < 600; i++) slow[i].time -= H1;
    for (int64_t i = 1; i < 600; i++)
        if (slow[i].time < slow[i - 1].time) slow[i].time = slow[i - 1].time;
    check(fast, 4000, M5, slow, 600, H1);
    for (int64_t i = 2000; i < 4000; i++) fast[i].time += H1;
    check(fast, 4000, M5, slow, 600, H1);
    // Hours gone at random.
    int64_t left = 0;
    for (int64_t i = 0; i < 600; i++)
        if (dice_below(&d, 3)) slow[left++] = slow[i];
    check(fast, 4000, M5, slow, left, H1);
    free(fast);
    free(slow);
    free(days);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_the_close),
        cmocka_unit_test(keeps_the_last_over_holes),
        cmocka_unit_test(matches_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
