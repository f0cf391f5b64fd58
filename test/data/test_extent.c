// Lengths of time as people write them: read, written back, refused with what can be written; months of the calendar.
#include "data/extent.h"

#include "data/when.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void spans_are_read_and_written(void **state) {
    (void)state;
    static const struct {
        const char *text;
        extent_unit unit;
        int64_t count;
        const char *back;
    } cases[] = {
        {"2000", EXTENT_MOMENTS, 2000, "2000"},
        {"0", EXTENT_MOMENTS, 0, "0"},
        {"20190101", EXTENT_MOMENTS, 20190101, "20190101"},
        {"6h", EXTENT_SECONDS, 6 * 3600, "6h"},
        {"48h", EXTENT_SECONDS, 2 * 86400, "2d"},
        {"180d", EXTENT_SECONDS, 180 * 86400, "180d"},
        {"4w", EXTENT_SECONDS, 28 * 86400, "4w"},
        {"24M", EXTENT_MONTHS, 24, "2y"},
        {"5M", EXTENT_MONTHS, 5, "5M"},
        {"3y", EXTENT_MONTHS, 36, "3y"},
        {"2019-03-01", EXTENT_DATE, 1551398400, "2019-03-01"},
        {"300y", EXTENT_MONTHS, 3600, "300y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        extent x;
        err e;
        char text[EXTENT_TEXT_ROOM];
        support_ok(extent_read(cases[i].text, &x, &e), &e);
        assert_int_equal(x.unit, cases[i].unit);
        assert_int_equal(x.count, cases[i].count);
        assert_string_equal(extent_text(text, x), cases[i].back);
        support_ok(extent_read(text, &x, &e), &e);
        assert_true(x.unit == cases[i].unit && x.count == cases[i].count);
    }
}

static void refused(const char *text, const char *why) {
    extent x;
    err e;
    assert_false(extent_read(text, &x, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
}

static void other_texts_are_refused(void **state) {
    (void)state;
    static const char *const none[] = {"", "d", "-5", "1.5M", "10 d", "10days", "5D", "2019-13-01", "2019-01", "24M ",
        "2019-01-01 10:00", "01/02/2019"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        extent x;
        err e;
        assert_false(extent_read(none[i], &x, &e));
        assert_non_null(
            strstr(e.text, "is no span: write a number of bars (2000), a time (12h, 180d, 4w, 24M, 2y) or"));
    }
    refused("15m", "15m: months are written with a large M, as in 24M, and minutes as a number of bars");
    refused("12345678901", "12345678901 is too long a span; write at most 9 digits");
    refused("301y", "301y is too long a span; write at most 300y");
    refused("999999999w", "999999999w is too long a span; write at most 300y");
}

static void on_is(const char *from, int64_t months, const char *to) {
    when_stamp a, b;
    assert_true(when_read(from, strlen(from), &a) && when_read(to, strlen(to), &b));
    assert_int_equal(extent_months_on(a.time, months), b.time);
}

static void months_are_those_of_the_calendar(void **state) {
    (void)state;
    on_is("2019-01-31", 1, "2019-02-28");
    on_is("2020-01-31", 1, "2020-02-29");
    on_is("2019-01-31", 2, "2019-03-31");
    on_is("2019-01-15 06:30", 12, "2020-01-15 06:30");
    on_is("2019-01-15", -1, "2018-12-15");
    on_is("2019-03-31", -25, "2017-02-28");
    on_is("1970-01-01", -1, "1969-12-01");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_read_and_written),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(months_are_those_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
