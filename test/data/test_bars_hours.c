// Hours of markets, as files on several clocks show them: seasons, holidays, changes, holes by a pattern.
#include "data/bars_hours_text.h"

#include "data/bars.h"
#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOUR = WHEN_HOUR, SPAN = 1800 };

// A market: its own clock, the clock of the file, and when it is open on its own clock.
typedef struct {
    const char *clock, *file;
    int64_t from, to; // days
    bool (*open)(int64_t local);
} market;

static char *text;
static size_t size;

static void read_market(const market *m, bars *b, const bars_options *o) {
    err e = {0};
    when_zone *z = when_zone_new(m->clock, &e), *f = when_zone_new(m->file, &e);
    size_t hint = 0, other = 0;
    support_ok(z && f, &e);
    free(text);
    FILE *out = open_memstream(&text, &size);
    fputs("time,open,high,low,close\n", out);
    for (int64_t t = m->from * WHEN_DAY; t < m->to * WHEN_DAY; t += SPAN)
        if (m->open(when_local(z, t, &hint))) fprintf(out, "%lld,10,12,9,11\n", (long long)when_local(f, t, &other));
    fclose(out);
    when_zone_free(z);
    when_zone_free(f);
    bars_options with = o ? *o : (bars_options){0};
    with.tz = m->file;
    support_ok(bars_parse(b, "m.csv", text, size, &with, &e), &e);
    assert_int_equal(b->span, SPAN);
}

static bool always(int64_t t) {
    (void)t;
    return true;
}

static bool on_weekdays(int64_t t, int64_t from, int64_t to) {
    return when_weekday(t) < 5 && t % WHEN_DAY >= from && t % WHEN_DAY < to;
}

// New York's exchange: holidays, and half a day now and then.
static bool shares(int64_t t) {
    when_parts p = when_split(t);
    if ((p.month == 12 && p.day == 25) || (p.month == 7 && p.day == 4) || (p.month == 1 && p.day == 1)) return false;
    if ((p.month == 12 && p.day == 24) || (p.month == 7 && p.day == 3)) return on_weekdays(t, 34200, 13 * HOUR);
    return on_weekdays(t, 34200, 16 * HOUR);
}

static bool frankfurt(int64_t t) {
    return on_weekdays(t, 9 * HOUR, 17 * HOUR + SPAN);
}

static void crypto_never_closes(void **state) {
    (void)state;
    bars b;
    const market m = {"UTC", "UTC", when_day(2023, 1, 2), when_day(2024, 1, 1), always};
    read_market(&m, &b, NULL);
    assert_int_equal(b.report.missing, 0);
    assert_string_equal(b.report.hours[0], "Mon-Sun 00:00-23:30");
    assert_true(!b.report.hours[1][0] && !b.report.hours_pattern && !b.report.hours_changes);
    bars_done(&b);
}

// On its own clock an exchange has one set of hours, in UTC two; holidays and half days are the only gaps in both.
static void seasons_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *file, *winter, *summer;
    } cases[] = {{"America/New_York", "Mon-Fri 09:30-15:30", ""}, {"mt5", "Mon-Fri 16:30-22:30", ""},
        {"UTC", "Mon-Fri 14:30-20:30", "Mon-Fri 13:30-19:30"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bars b;
        const market m = {"America/New_York", cases[i].file, when_day(2021, 1, 4), when_day(2024, 1, 1), shares};
        read_market(&m, &b, NULL);
        assert_string_equal(b.report.hours[0], cases[i].winter);
        assert_string_equal(b.report.hours[1], cases[i].summer);
        // Whole days off: 2022-07-04, 2023-07-04 and 2023-12-25; half ones on 2021-12-24 and 2023-07-03.
        assert_int_equal(b.report.missing, 3 * 13 + 2 * 6);
        assert_int_equal(b.report.tally[BARS_GAP].count, 4); // July 3 and 4 are one
        assert_false(b.report.hours_pattern);
        bars_done(&b);
    }
    bars b;
    const market m = {"Europe/Berlin", "UTC", when_day(2021, 1, 4), when_day(2024, 1, 1), frankfurt};
    read_market(&m, &b, NULL);
    assert_int_equal(b.report.seasons, BARS_SEASONS_EUROPE);
    assert_string_equal(b.report.hours[0], "Mon-Fri 08:00-16:00");
    assert_string_equal(b.report.hours[1], "Mon-Fri 07:00-15:00");
    assert_int_equal(b.report.missing, 0);
    bars_done(&b);
}

static bool longer_since_2022(int64_t t) {
    return on_weekdays(t, 9 * HOUR, (t < when_day(2022, 5, 2) * WHEN_DAY ? 17 : 20) * HOUR);
}

static bool changed_twice(int64_t t) {
    return longer_since_2022(t) && (t < when_day(2023, 3, 6) * WHEN_DAY || t % WHEN_DAY >= 10 * HOUR);
}

static void changed_hours_are_told(void **state) {
    (void)state;
    bars b;
    market m = {"UTC", "UTC", when_day(2021, 1, 4), when_day(2024, 1, 1), longer_since_2022};
    read_market(&m, &b, NULL);
    assert_string_equal(b.report.hours[0], "Mon-Fri 09:00-19:30");
    assert_int_equal(b.report.hours_changes, 1);
    assert_int_equal(b.report.hours_since, when_day(2022, 5, 2) * WHEN_DAY);
    assert_int_equal(b.report.missing, 0);
    bars_done(&b);
    m.open = changed_twice;
    read_market(&m, &b, NULL);
    assert_string_equal(b.report.hours[0], "Mon-Fri 10:00-19:30");
    assert_int_equal(b.report.hours_changes, 2);
    assert_int_equal(b.report.hours_since, when_day(2023, 3, 6) * WHEN_DAY);
    assert_int_equal(b.report.missing, 0);
    bars_done(&b);
}

// A hole of two years closes nothing, and is one gap.
static bool without_two_years(int64_t t) {
    return (t < when_day(2021, 2, 1) * WHEN_DAY || t >= when_day(2023, 2, 6) * WHEN_DAY) && frankfurt(t);
}

static void a_long_hole_is_a_gap(void **state) {
    (void)state;
    bars b;
    const market m = {"UTC", "UTC", when_day(2021, 1, 4), when_day(2023, 4, 3), without_two_years};
    read_market(&m, &b, NULL);
    assert_string_equal(b.report.hours[0], "Mon-Fri 09:00-17:00");
    assert_int_equal(b.report.tally[BARS_GAP].count, 1);
    assert_int_equal(b.report.missing, 105 * 5 * 17);
    bars_done(&b);
}

// Under four weeks the middle of the week is taken together.
static bool without_a_wednesday(int64_t t) {
    return frankfurt(t) && (t / WHEN_DAY != when_day(2021, 1, 13) || t % WHEN_DAY < 12 * HOUR);
}

static void short_files_find_their_gaps(void **state) {
    (void)state;
    bars b;
    const market m = {"UTC", "UTC", when_day(2021, 1, 4), when_day(2021, 1, 23), without_a_wednesday};
    read_market(&m, &b, NULL);
    assert_int_equal(b.report.tally[BARS_GAP].count, 1);
    assert_int_equal(b.report.missing, 11);
    bars_done(&b);
}

static void put_day(bool *open, int day, int from, int to) {
    for (int i = from; i <= to; i++) open[day * 48 + i] = true;
}

static void hours_in_words(void **state) {
    (void)state;
    char buf[160], tiny[24];
    bool open[7 * 48] = {0}, pattern = false;
    assert_string_equal(
        bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern), "none: no slot has bars in half of the weeks");
    for (int d = 0; d < 5; d++) put_day(open, d, 2, d == 4 ? 43 : 47);
    bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern);
    assert_string_equal(buf, "Mon-Thu 01:00-23:30, Fri 01:00-21:30");
    assert_false(pattern);
    // A break on every day is the market's.
    for (int d = 0; d < 5; d++) open[d * 48 + 24] = open[d * 48 + 25] = false;
    bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern);
    assert_string_equal(buf, "Mon-Thu 01:00-23:30, Fri 01:00-21:30; closed inside: Mon-Fri 12:00-12:30");
    assert_false(pattern);
    // One on some days is not.
    open[2 * 48 + 28] = open[4 * 48 + 28] = false;
    bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern);
    assert_non_null(strstr(buf, "closed inside: Mon-Fri 12:00-12:30, Wed, Fri 14:00"));
    assert_true(pattern);
    pattern = false;
    for (int d = 0; d < 5; d++) {
        put_day(open, d, 2, 47);
        for (int i = 3; i < 47; i += 2) open[d * 48 + i] = false;
    }
    bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern);
    assert_string_equal(buf, "Mon-Fri 01:00-23:30; closed inside: Mon-Fri 01:30 and every 1 h to 22:30");
    assert_true(pattern);
    assert_string_equal(bars_hours_text(tiny, sizeof tiny, open, 48, SPAN, &pattern), "Mon-Fri 01:00-23:30;...");
    // A list that is too long ends with a whole item.
    for (int d = 0; d < 5; d++)
        for (int i = 3; i < 47; i++) open[d * 48 + i] = (i * i + 3 * d) % 7 > 1;
    pattern = false;
    bars_hours_text(buf, sizeof buf, open, 48, SPAN, &pattern);
    assert_true(pattern && strlen(buf) > 60);
    assert_string_equal(buf + strlen(buf) - 13, "0, and others");
}

static int done(void **state) {
    (void)state;
    free(text);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crypto_never_closes),
        cmocka_unit_test(seasons_are_told_apart),
        cmocka_unit_test(changed_hours_are_told),
        cmocka_unit_test(a_long_hole_is_a_gap),
        cmocka_unit_test(short_files_find_their_gaps),
        cmocka_unit_test(hours_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
