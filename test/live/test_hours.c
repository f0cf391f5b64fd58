// Hours of a market, learned from its bars: holes are missing bars only where it was open.
#include "live/hours.h"

#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WEEKS = 100 };

// Hourly bars of a market that is open from Monday to Friday but from 22:00 to 24:00, on the clock of a zone; in each
// `tail`-th week it closes an hour later.
static bar *bars_with_tail(const char *tz, int tail, int64_t *count) {
    size_t hint = 0;
    when_zone *z = when_zone_new(tz, NULL);
    bar *all = malloc((size_t)WEEKS * 168 * sizeof *all);
    int64_t first = when_day(2022, 1, 3) * WHEN_DAY;
    assert_true(z && all);
    *count = 0;
    for (int64_t i = 0; i < WEEKS * 168; i++) {
        int64_t time = first + i * WHEN_HOUR, local = when_local(z, time, &hint);
        int closes = tail && i / 168 % tail == 0 ? 23 : 22;
        if (when_weekday(local) > 4 || when_split(local).hour >= closes) continue;
        all[(*count)++] = (bar){.time = time, .end = time + WHEN_HOUR, .open = 1, .high = 1, .low = 1, .close = 1};
    }
    when_zone_free(z);
    return all;
}

static bar *bars_of(const char *tz, int64_t *count) {
    return bars_with_tail(tz, 0, count);
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

static bool ends_day(const hours *h, int64_t time) {
    return hours_ends_day(h, "", 3600, &(bar){.time = time, .end = time + 3600});
}

// A day ends where its hours say, years before the newest bars too. Before the first bar, and ten years behind the last
// one, nothing is known: there only midnight ends a day.
static void days_end_by_their_hours(void **state) {
    (void)state;
    err e = {0};
    int64_t count;
    bar *all = bars_of("UTC", &count);
    hours *h = hours_new();
    support_ok(hours_learn(h, "", 3600, NULL, all, count, &e), &e);
    for (int64_t i = 0; i < count; i++)
        if (ends_day(h, all[i].time) != (when_split(all[i].time).hour == 21)) fail_msg("bar %lld", (long long)i);
    static const struct {
        int year, day;
        bool known;
    } wednesdays[] = {{2012, 16, false}, {2021, 19, false}, {2023, 17, true}, {2030, 15, true}, {2039, 18, false}};
    for (size_t i = 0; i < sizeof wednesdays / sizeof *wednesdays; i++) {
        int64_t day = at(wednesdays[i].year, 5, wednesdays[i].day, 0);
        assert_int_equal(when_weekday(day), 2);
        assert_int_equal(ends_day(h, day + 21 * 3600), wednesdays[i].known);
        assert_false(ends_day(h, day + 20 * 3600));
        assert_true(ends_day(h, day + 23 * 3600));
    }
    hours_free(h);
    free(all);
}

// A bar is the last of its day only where none ever followed, however few weeks had one.
static void rare_bars_end_a_day(void **state) {
    (void)state;
    err e = {0};
    int64_t count;
    bar *all = bars_with_tail("UTC", 4, &count);
    hours *h = hours_new();
    support_ok(hours_learn(h, "", 3600, NULL, all, count, &e), &e);
    assert_false(ends_day(h, at(2023, 5, 17, 21)));
    assert_true(ends_day(h, at(2023, 5, 17, 22)));
    assert_int_equal(hours_missing(h, "", 3600, at(2024, 5, 15, 21), at(2024, 5, 15, 24)), 0); // it is mostly closed
    hours_free(h);
    free(all);
}

// A moment lies in the next bar, or behind a whole one: by the hours where they are known, else by the span alone.
static void a_bar_may_be_late(void **state) {
    (void)state;
    err e = {0};
    int64_t count, friday = at(2023, 5, 19, 21), monday = at(2023, 5, 22, 0);
    bar *all = bars_of("UTC", &count), last = {.time = friday, .end = friday + 3600};
    hours *h = hours_new();
    assert_true(hours_none_since(h, "", 3600, &last, last.end + 3599));
    assert_false(hours_none_since(h, "", 3600, &last, last.end + 3600));
    assert_false(hours_none_since(h, "", 3600, &last, monday));
    support_ok(hours_learn(h, "", 3600, NULL, all, count, &e), &e);
    assert_true(hours_none_since(h, "", 3600, &last, last.end + 3600)); // nothing is traded then
    assert_true(hours_none_since(h, "", 3600, &last, monday + 3599));
    assert_false(hours_none_since(h, "", 3600, &last, monday + 3600));
    last.time -= 3600, last.end -= 3600;
    assert_false(hours_none_since(h, "", 3600, &last, monday));
    hours_free(h);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_hours_are_no_hole),
        cmocka_unit_test(hours_move_with_the_clock),
        cmocka_unit_test(few_bars_teach_nothing),
        cmocka_unit_test(days_end_by_their_hours),
        cmocka_unit_test(rare_bars_end_a_day),
        cmocka_unit_test(a_bar_may_be_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
