// Moments: the calendar against libc's, stamps as files write them, zones against libc's and at their changes.
#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static int64_t at(int year, int month, int day, int hour, int minute) {
    return when_day(year, month, day) * WHEN_DAY + hour * 3600 + minute * 60;
}

static void calendar_is_libcs(void **state) {
    (void)state;
    for (int64_t day = when_day(1890, 1, 1); day < when_day(2210, 1, 1); day++) {
        int64_t t = day * WHEN_DAY + (day * 7919 % WHEN_DAY + WHEN_DAY) % WHEN_DAY;
        time_t given = (time_t)t;
        struct tm want;
        assert_non_null(gmtime_r(&given, &want));
        when_parts p = when_split(t);
        assert_true(p.year == want.tm_year + 1900 && p.month == want.tm_mon + 1 && p.day == want.tm_mday);
        assert_true(p.hour == want.tm_hour && p.minute == want.tm_min && p.second == want.tm_sec);
        assert_int_equal(p.weekday, (want.tm_wday + 6) % 7);
        assert_int_equal(when_day(p.year, p.month, p.day), day);
    }
    assert_true(when_date_ok(2024, 2, 29) && when_date_ok(2000, 2, 29));
    assert_false(when_date_ok(2023, 2, 29) || when_date_ok(2100, 2, 29) || when_date_ok(2024, 4, 31));
    assert_false(when_date_ok(2024, 0, 1) || when_date_ok(2024, 13, 1) || when_date_ok(2024, 1, 0));
    assert_false(when_date_ok(1899, 12, 31) || when_date_ok(2200, 1, 1));
}

static void writes_for_people(void **state) {
    (void)state;
    char buf[40];
    assert_string_equal(when_text(buf, sizeof buf, at(2024, 1, 2, 0, 0)), "2024-01-02");
    assert_string_equal(when_text(buf, sizeof buf, at(2024, 1, 2, 3, 5)), "2024-01-02 03:05");
    assert_string_equal(when_text(buf, sizeof buf, at(1927, 12, 30, 0, 0) + 7), "1927-12-30 00:00:07");
    assert_string_equal(when_span_text(buf, sizeof buf, 300), "5 min");
    assert_string_equal(when_span_text(buf, sizeof buf, 30), "30 s");
    assert_string_equal(when_span_text(buf, sizeof buf, 14400), "4 h");
    assert_string_equal(when_span_text(buf, sizeof buf, 86400), "1 day");
    assert_string_equal(when_span_text(buf, sizeof buf, 216000), "2.5 days");
    assert_string_equal(when_span_text(buf, sizeof buf, WHEN_WEEK), "1 week");
    assert_string_equal(when_span_text(buf, sizeof buf, 3 * WHEN_MONTH), "3 months");
}

static void reads(const char *text, int64_t time, when_shape shape, bool utc) {
    when_stamp s;
    if (!when_read(text, strlen(text), &s)) fail_msg("'%s' is not read", text);
    if (s.time != time || s.shape != shape || s.utc != utc)
        fail_msg("'%s': time %lld, shape %d, utc %d", text, (long long)s.time, s.shape, s.utc);
}

static void reads_stamps(void **state) {
    (void)state;
    const int64_t day = at(2024, 1, 2, 0, 0), moment = at(2024, 1, 2, 17, 5) + 9;
    reads("2024.01.02", day, WHEN_DATE, false);
    reads("2024-01-02", day, WHEN_DATE, false);
    reads("2024/01/02", day, WHEN_DATE, false);
    reads("02.01.2024", day, WHEN_DATE, false);
    reads("20240102", day, WHEN_DATE, false);
    reads("1927-12-30", at(1927, 12, 30, 0, 0), WHEN_DATE, false);
    reads("2024-01-02 17:05:09", moment, WHEN_TIME, false);
    reads("2024-01-02T17:05:09", moment, WHEN_TIME, false);
    reads("2024.01.02 17:05", moment - 9, WHEN_TIME, false);
    reads("2024-01-02 7:05", moment - 9 - 36000, WHEN_TIME, false);
    reads("02.01.2024 17:05:09.000", moment, WHEN_TIME, false);
    reads("20240102170509", moment, WHEN_TIME, false);
    reads("20240102 170509", moment, WHEN_COMPACT, false);
    reads("20240102 170509123", moment, WHEN_TICK, false);
    reads("2024-01-02 17:05:09+00:00", moment, WHEN_TIME, true);
    reads("2024-01-02T17:05:09Z", moment, WHEN_TIME, true);
    reads("2024-01-02 17:05:09.25-05:00", moment + 18000, WHEN_TIME, true);
    reads("2024-01-02 17:05:09 UTC", moment, WHEN_TIME, true);
    reads("02.01.2024 17:05:09.000 GMT+0530", moment - 19800, WHEN_TIME, true);
    reads("2024-1-2", day, WHEN_DATE, false);
    reads("2.1.2024", day, WHEN_DATE, false);
    reads("Jan 02, 2024", day, WHEN_DATE, false);
    reads("January 2 2024", day, WHEN_DATE, false);
    reads("02-Jan-2024", day, WHEN_DATE, false);
    reads("2 jan. 2024", day, WHEN_DATE, false);
    reads("2-JAN-24", day, WHEN_DATE, false);
    reads("31-Dec-99", at(1999, 12, 31, 0, 0), WHEN_DATE, false);
    reads("Sept 3, 2024", at(2024, 9, 3, 0, 0), WHEN_DATE, false);
    reads("Jan 02, 2024 5:05:09 PM", moment, WHEN_TIME, false);
    reads("2024-01-02, 05:05:09pm", moment, WHEN_TIME, false);
    reads("2024-01-02 12:00 AM", day, WHEN_TIME, false);
    reads("2024-01-02 12:00 pm -05:00", day + 61200, WHEN_TIME, true);
    reads("1704215109", moment, WHEN_EPOCH, false);
    reads("1704215109.0", moment, WHEN_EPOCH, false);
    reads("1704215109000", moment, WHEN_EPOCH, false);
    reads("1704215109000000", moment, WHEN_EPOCH, false);
    reads("1704215109000000000", moment, WHEN_EPOCH, false);
    reads("946684800000", at(2000, 1, 1, 0, 0), WHEN_EPOCH, false);
    reads("-1325635200", at(1927, 12, 30, 0, 0), WHEN_EPOCH, false);
}

static void refuses_stamps(void **state) {
    (void)state;
    static const char *const bad[] = {"", "-", "0", "1", "1234567", "12345678", "123456789012345678901", "2024",
        "2024-1-", "2024-001-02", "2024-13-01", "2024-02-30", "2023-02-29", "01/02/2024", "2024-01.02", "2024-01-02 ",
        "2024-01-02x", "2024-01-02 24:00", "2024-01-02 23:60", "2024-01-02 23:59:60", "2024-01-02 12",
        "2024-01-02 12:", "2024-01-02 12:00:", "2024-01-02 12:00 x", "2024-01-02 12:00+", "2024-01-02 12:00+16:00",
        "20240102 1700", "20240102 170060", "20240102x", "20241301", "2200-01-01", "1899-12-31", "99999999999",
        "9999999999999", "9999999999999999999", "-1234", "-99999999999", "NaT", "time", "2024-01-02 12:00+00:00x",
        "31.02.2024", "1704215109x", "Jan 2024", "Jan 32, 2024", "Ja 02, 2024", "Janus 02, 2024", "02-Jan", "02Jan2024",
        "02-Jan-024", "2024-01-02 13:00 PM", "2024-01-02 0:30 am", "2024-01-02 1:00 PMs", "1-2-2024", "1/2/24"};
    when_stamp s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (when_read(bad[i], strlen(bad[i]), &s)) fail_msg("'%s' is read", bad[i]);
    int64_t seconds;
    assert_true(when_read_clock("03:05", 5, &seconds) && seconds == 11100);
    assert_true(when_read_clock("03:05:07.123", 12, &seconds) && seconds == 11107);
    assert_false(when_read_clock("03:05x", 6, &seconds) || when_read_clock("3", 1, &seconds));
    assert_false(when_read_clock("25:00", 5, &seconds) || when_read_clock("", 0, &seconds));
}

// Dates whose order is given, or shown by their numbers.
static void orders_of_dates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        when_order order;
        int year, month, day; // year 0: refused
        when_order shown;
    } cases[] = {
        {"03/04/2024", WHEN_DMY, 2024, 4, 3, WHEN_ORDER_NONE},
        {"03/04/2024", WHEN_MDY, 2024, 3, 4, WHEN_ORDER_NONE},
        {"03/04/2024", WHEN_YMD, 0, 0, 0, WHEN_ORDER_NONE},
        {"3-4-2024", WHEN_MDY, 2024, 3, 4, WHEN_ORDER_NONE},
        {"03.04.2024", WHEN_ORDER_NONE, 2024, 4, 3, WHEN_ORDER_NONE},
        {"03.04.2024", WHEN_MDY, 2024, 3, 4, WHEN_ORDER_NONE},
        {"31/01/2024", WHEN_DMY, 2024, 1, 31, WHEN_DMY},
        {"31/01/2024", WHEN_MDY, 0, 0, 0, WHEN_DMY},
        {"01/31/2024", WHEN_MDY, 2024, 1, 31, WHEN_MDY},
        {"13/13/2024", WHEN_DMY, 0, 0, 0, WHEN_ORDER_NONE},
        {"3/4/24", WHEN_DMY, 2024, 4, 3, WHEN_ORDER_NONE},
        {"3/4/70", WHEN_MDY, 1970, 3, 4, WHEN_ORDER_NONE},
        {"24/03/04", WHEN_YMD, 2024, 3, 4, WHEN_ORDER_NONE},
        {"31/01/24", WHEN_DMY, 2024, 1, 31, WHEN_ORDER_NONE}, // may be a day of 2031
        {"3/4/124", WHEN_DMY, 0, 0, 0, WHEN_ORDER_NONE},
    };
    when_stamp s;
    when_order order;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        bool ok = when_read_as(text, strlen(text), cases[i].order, &s);
        if (ok != (cases[i].year > 0)) fail_msg("'%s' as %s", text, when_order_text(cases[i].order));
        if (ok) assert_int_equal(s.time, at(cases[i].year, cases[i].month, cases[i].day, 0, 0));
        assert_true(when_order_of(text, strlen(text), &order));
        assert_int_equal(order, cases[i].shown);
    }
    assert_true(when_read_as("01/02/2024, 1:05:00 PM", 22, WHEN_MDY, &s) && s.time == at(2024, 1, 2, 13, 5));
    // A year of four digits in front needs no order.
    assert_true(when_read_as("2024/01/02", 10, WHEN_DMY, &s) && s.time == at(2024, 1, 2, 0, 0));
    assert_false(when_order_of("2024/01/02", 10, &order) || when_order_of("20240102", 8, &order));
    for (when_order o = WHEN_DMY; o <= WHEN_YMD; o++)
        assert_true(when_order_read(when_order_text(o), &order) && order == o);
    assert_false(when_order_read("auto", &order) || when_order_read("", &order));
    int64_t seconds;
    assert_true(when_read_clock("1:05 PM", 7, &seconds) && seconds == 47100);
    assert_true(when_read_clock("093000", 6, &seconds) && seconds == 34200);
    assert_false(when_read_clock("246000", 6, &seconds) || when_read_clock("0930", 4, &seconds));
}

static when_zone *zone(const char *name) {
    err e = {0};
    when_zone *z = when_zone_new(name, &e);
    support_ok(z != NULL, &e);
    return z;
}

static void fixed(const char *name, int64_t ahead) {
    when_zone *z = zone(name);
    size_t hint = 0;
    when_kind kind;
    assert_int_equal(when_utc(z, 1000000000, 0, &hint, &kind), 1000000000 - ahead);
    assert_int_equal(kind, WHEN_PLAIN);
    assert_int_equal(when_local(z, 1000000000, &hint), 1000000000 + ahead);
    when_zone_free(z);
}

static void fixed_offsets(void **state) {
    (void)state;
    fixed("UTC", 0);
    fixed("GMT", 0);
    fixed("Z", 0);
    fixed("EST", -18000);
    fixed("+2", 7200);
    fixed("+02:00", 7200);
    fixed("-0530", -19800);
    fixed("-05:30", -19800);
    fixed("UTC+3", 10800);
    fixed("GMT-11", -39600);
}

static void refuses_zones(void **state) {
    (void)state;
    static const char *const bad[] = {"", "+", "+16", "+02:60", "+2:0", "+02:00x", "2", "Nowhere/Else", "/etc/passwd",
        "../../../etc/passwd", "Europe/../Europe/Berlin", "Europe/", "Europe", "Europe//Berlin", "a b", "tzdata.zi",
        "ThisNameIsMuchTooLongToBeAZoneThisNameIsMuchTooLongToBeAZoneThisNameIs"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err e = {0};
        when_zone *z = when_zone_new(bad[i], &e);
        if (z) fail_msg("'%s' is a zone", bad[i]);
        assert_int_equal(e.kind, ERR_INPUT);
    }
    err e = {0};
    assert_null(when_zone_new("Mars/Olympus", &e));
    assert_string_equal(e.text,
        "time zone 'Mars/Olympus' is not known; give UTC, an offset such as +02:00, mt5, or a name "
        "such as Europe/Berlin");
}

static bool have_zoneinfo(void) {
    FILE *f = fopen("/usr/share/zoneinfo/America/New_York", "rb");
    if (f) fclose(f);
    return f != NULL;
}

// The clock shows, hour by hour, the time that libc says; and each moment comes back from the time shown.
static void zones_are_libcs(void **state) {
    (void)state;
    if (!have_zoneinfo()) skip();
    static const char *const names[] = {"Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Tokyo",
        "Asia/Kolkata", "Europe/London", "America/Sao_Paulo", "Africa/Casablanca", "Australia/Lord_Howe",
        "Pacific/Apia", "Europe/Dublin", "America/Nuuk"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        when_zone *z = zone(names[i]);
        setenv("TZ", names[i], 1);
        tzset();
        size_t hint = 0, back = 0;
        int64_t before = INT64_MIN;
        for (int64_t t = at(1925, 1, 1, 0, 0); t < at(2120, 1, 1, 0, 0);
             t += support_sanitized() ? 11 * 3600 : 3 * 3600 + 1800) {
            time_t given = (time_t)t;
            struct tm shown;
            localtime_r(&given, &shown);
            int64_t local = when_local(z, t, &hint);
            if (local != t + shown.tm_gmtoff) fail_msg("%s at %lld", names[i], (long long)t);
            when_kind kind;
            int64_t utc = when_utc(z, local, before, &back, &kind);
            if (kind == WHEN_PLAIN ? utc != t : utc > t || t - utc > 3600 * 24)
                fail_msg("%s: %lld comes back as %lld", names[i], (long long)t, (long long)utc);
            assert_int_not_equal(kind, WHEN_SKIPPED);
            before = t;
        }
        when_zone_free(z);
    }
    unsetenv("TZ");
    tzset();
}

static void mt5_is_new_york_and_seven_hours(void **state) {
    (void)state;
    if (!have_zoneinfo()) skip();
    when_zone *mt5 = zone("mt5"), *york = zone("America/New_York");
    size_t a = 0, b = 0;
    for (int64_t t = at(1976, 1, 1, 0, 0); t < at(2199, 12, 1, 0, 0); t += 1800)
        if (when_local(mt5, t, &a) != when_local(york, t, &b) + 7 * 3600) fail_msg("at %lld", (long long)t);
    when_zone_free(mt5);
    when_zone_free(york);
}

static void expect(const when_zone *z, int64_t local, int64_t before, int64_t utc, when_kind kind) {
    for (size_t hint = 0; hint < 3; hint++) { // right, wrong or beyond: a hint changes nothing
        size_t h = hint * 400;
        when_kind found;
        assert_int_equal(when_utc(z, local, before, &h, &found), utc);
        assert_int_equal(found, kind);
    }
}

// In 2024 the United States changed on 10 March and 3 November: 09:00 on the server's clock.
static void changes_of_the_clock(void **state) {
    (void)state;
    when_zone *z = zone("mt5");
    expect(z, at(2024, 3, 10, 8, 59), 0, at(2024, 3, 10, 6, 59), WHEN_PLAIN);
    expect(z, at(2024, 3, 10, 9, 0), 0, at(2024, 3, 10, 7, 0), WHEN_SKIPPED); // what 10:00 is called
    expect(z, at(2024, 3, 10, 9, 59), 0, at(2024, 3, 10, 7, 59), WHEN_SKIPPED);
    expect(z, at(2024, 3, 10, 10, 0), 0, at(2024, 3, 10, 7, 0), WHEN_PLAIN);
    expect(z, at(2024, 11, 3, 7, 59), 0, at(2024, 11, 3, 4, 59), WHEN_PLAIN);
    const int64_t local = at(2024, 11, 3, 8, 30), early = at(2024, 11, 3, 5, 30), late = at(2024, 11, 3, 6, 30);
    expect(z, local, early - 1800, early, WHEN_AMBIGUOUS);
    expect(z, local, early, late, WHEN_AMBIGUOUS); // the same again
    expect(z, local, late - 1800, late, WHEN_AMBIGUOUS);
    expect(z, local, late, early, WHEN_AMBIGUOUS); // neither keeps the order
    expect(z, at(2024, 11, 3, 9, 0), 0, at(2024, 11, 3, 7, 0), WHEN_PLAIN);
    when_zone_free(z);
}

// Damaged zoneinfo files: every truncation and many a changed byte give a zone or an error, never a crash.
static void damaged_zone_files(void **state) {
    if (!have_zoneinfo()) skip();
    static unsigned char data[1 << 14];
    FILE *f = fopen("/usr/share/zoneinfo/America/New_York", "rb");
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    setenv("TZDIR", *state, 1);
    for (size_t i = 0; i < n + 4 * n; i++) {
        static unsigned char copy[1 << 14];
        memcpy(copy, data, n);
        if (i >= n) copy[(i - n) / 4] = (unsigned char)(copy[(i - n) / 4] + 85 * ((i - n) % 4));
        support_put("Zone", copy, i < n ? i : n);
        err e = {0};
        when_zone *z = when_zone_new("Zone", &e);
        if (!z) assert_int_equal(e.kind, ERR_INPUT);
        if (!z) continue;
        size_t hint = 0;
        when_kind kind;
        for (int64_t t = at(1900, 1, 1, 0, 0); t < at(2199, 1, 1, 0, 0); t += 40000000) {
            when_local(z, t, &hint);
            when_utc(z, t, 0, &hint, &kind);
        }
        when_zone_free(z);
    }
    err e = {0};
    support_put("Zone", data, n / 2);
    assert_null(when_zone_new("Zone", &e));
    assert_string_equal(
        e.text, "time zone 'Zone': its zoneinfo file is damaged; reinstall tzdata or give an offset such as +02:00");
    unsetenv("TZDIR");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calendar_is_libcs),
        cmocka_unit_test(writes_for_people),
        cmocka_unit_test(reads_stamps),
        cmocka_unit_test(refuses_stamps),
        cmocka_unit_test(orders_of_dates),
        cmocka_unit_test(fixed_offsets),
        cmocka_unit_test(refuses_zones),
        cmocka_unit_test(zones_are_libcs),
        cmocka_unit_test(mt5_is_new_york_and_seven_hours),
        cmocka_unit_test(changes_of_the_clock),
        cmocka_unit_test_setup_teardown(damaged_zone_files, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
