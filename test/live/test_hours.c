// Hours of a market, learned from its bars: holes are missing bars only where it was open.
#include "live/hours.h"

#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WEEKS = 100 };

// Hourly bars of a market that is open from Monday to Friday but from 22:00 to 24:00, on the clock of a zone.
static bar *bars_of(const char *tz, int64_t *count) {
    size_t hint = 0;
    when_zone *z = when_zone_new(tz, NULL);
    bar *all = malloc((size_t)WEEKS * 168 * sizeof *all);
    int64_t first = when_day(2022, 1, 3) * WHEN_DAY;
    assert_true(z && all);
    *count = 0;
    for (int64_t i = 0; i < WEEKS * 168; i++) {
        int64_t time = first + i * WHEN_HOUR, local = when_local(z, time, &hint);
        if (when_weekday(local) > 4 || when_split(local).hour >= 22) continue;
        all[(*count)++] = (bar){.time = time, .end = time + WHEN_HOUR, .open = 1, .high = 1, .low = 1, .close = 1};
    }
    when_zone_free(z);
    return all;
}

static int64_t at(int year, int month, int day, int hour) {
    return when_day(year, month, day) * WHEN_DAY + hour * WHEN_HOUR;
}

static void closed_hours_are_no_hole(void **state) {
    (void)state;
    err e = {0};
    int64_t count;
    bar *all = bars_of("UTC", &count);
    hours *h = hours_new();
    support_ok(hours_learn(h, "GOLD", 3600, "UTC", all, count, &e), &e);
    // Days behind the bars that were learned from, years too.
    for (int year = 2024; year < 2031; year += 3) {
        int64_t monday = when_day(year, 5, 20) * WHEN_DAY;
        monday -= when_weekday(monday) * WHEN_DAY;
        assert_int_equal(hours_missing(h, "GOLD", 3600, monday + 21 * 3600, monday + 24 * 3600), 0);   // the night
        assert_int_equal(hours_missing(h, "GOLD", 3600, monday + 117 * 3600, monday + 168 * 3600), 0); // a weekend
        assert_int_equal(hours_missing(h, "GOLD", 3600, monday + 10 * 3600, monday + 13 * 3600), 2);
        assert_int_equal(hours_missing(h, "GOLD", 3600, monday + 10 * 3600, monday + 11 * 3600), 0);
        assert_int_equal(hours_missing(h, "GOLD", 3600, monday + 21 * 3600, monday + 48 * 3600), 22); // a holiday
    }
    // A span or a symbol that nothing is known of.
    assert_int_equal(hours_missing(h, "GOLD", 300, 0, 900), 2);
    assert_int_equal(hours_missing(h, "SILVER", 3600, 0, 3600 * 100), 0);
    hours_free(h);
    free(all);
}

// The market's hours are those of its own clock, in summer and winter.
static void hours_move_with_the_clock(void **state) {
    (void)state;
    err e = {0};
    int64_t count;
    bar *all = bars_of("Europe/Berlin", &count);
    for (int as = 0; as < 2; as++) {
        hours *h = hours_new();
        support_ok(hours_learn(h, "", 3600, as ? "UTC" : "Europe/Berlin", all, count, &e), &e);
        // In Berlin 21:00 is 20:00 UTC in winter and 19:00 in summer.
        assert_int_equal(hours_missing(h, "", 3600, at(2025, 1, 15, 20), at(2025, 1, 15, 23)), 0);
        assert_int_equal(hours_missing(h, "", 3600, at(2025, 7, 16, 19), at(2025, 7, 16, 22)), 0);
        assert_int_equal(hours_missing(h, "", 3600, at(2025, 7, 16, 18), at(2025, 7, 16, 22)), 1);
        hours_free(h);
    }
    free(all);
}

static void few_bars_teach_nothing(void **state) {
    (void)state;
    err e = {0};
    int64_t count;
    bar *all = bars_of("UTC", &count);
    hours *h = hours_new();
    support_ok(hours_learn(h, "", 3600, NULL, all, 100, &e), &e);
    support_ok(hours_learn(h, "", 3600, NULL, all, 0, &e), &e);
    assert_int_equal(hours_missing(h, "", 3600, all[0].time, all[0].time + 3 * 3600), 2);
    assert_false(hours_learn(h, "", 3600, "Europe/Nowhere", all, count, &e));
    hours_free(h);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_hours_are_no_hole),
        cmocka_unit_test(hours_move_with_the_clock),
        cmocka_unit_test(few_bars_teach_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
