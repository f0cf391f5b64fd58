// Ends of bars by the calendar of their clock, against a walk that looks at the clock minute by minute: over clock
// changes of several zones, in weekly and monthly files, and in the slow bars that alignment shows to fast ones.
#include "data/align.h"
#include "data/bars.h"
#include "data/walk.h"
#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MINUTE = 60, H1 = 3600, H4 = 4 * H1, D1 = 86400, ROOM = 64, TEXT_MOST = 1 << 20 };

static const struct {
    const char *name;
    int from, to; // years
} zones[] = {{"America/New_York", 2005, 2009}, {"Europe/Berlin", 2021, 2024}, {"mt5", 2005, 2009},
    {"Australia/Lord_Howe", 2022, 2024}, {"America/Sao_Paulo", 2014, 2018}, {"UTC", 2024, 2024},
    {"+05:30", 2024, 2024}};
enum { ZONES = sizeof zones / sizeof *zones };

static when_zone *zone_at(int i) {
    err e = {0};
    when_zone *z = when_zone_new(zones[i].name, &e);
    if (!z) support_ok(false, &e);
    return z;
}

static int64_t shown(const when_zone *z, int64_t utc) {
    size_t hint = 0;
    return when_local(z, utc, &hint);
}

// The moments at which a zone's clock changes.
static int find_changes(const when_zone *z, int from, int to, int64_t *change) {
    int n = 0;
    for (int64_t t = when_day(from, 1, 1) * D1; t < when_day(to + 1, 1, 1) * D1; t += MINUTE * 30)
        if (shown(z, t) - t != shown(z, t - MINUTE * 30) - (t - MINUTE * 30)) {
            assert_true(n < ROOM);
            change[n++] = t;
        }
    return n;
}

// True where a clock that shows `now` has reached the end of a bar that opened at `open` on it.
static bool is_over(int64_t open, int64_t now, int64_t span) {
    if (span % WHEN_MONTH) return now >= open + span;
    when_parts a = when_split(open), b = when_split(now), eve = when_split(now + D1);
    int64_t months = (b.year - a.year) * 12 + b.month - a.month - span / WHEN_MONTH;
    bool last_day = eve.month != b.month, opened_last = when_split(open + D1).month != a.month;
    if (months) return months > 0;
    if (opened_last && !last_day) return false;
    if (!opened_last && b.day != a.day && !(last_day && b.day < a.day)) return b.day > a.day;
    return now % D1 >= open % D1;
}

// The definition: walk until the clock shows the local open and the span, or later.
static int64_t walked_end(const when_zone *z, int64_t open, int64_t span) {
    int64_t local = shown(z, open), end = open;
    if (span <= H1) return open + span;
    while (!is_over(local, shown(z, end), span)) end += MINUTE;
    return end;
}

static void check_around(const when_zone *z, int64_t change, int64_t span, int64_t reach, int64_t step) {
    size_t hint = 0;
    for (int64_t open = change - reach; open <= change + D1; open += step) {
        int64_t end = when_bar_end(z, open, span, &hint), want = walked_end(z, open, span);
        if (end != want)
            fail_msg("a bar of %lld s at %lld ends at %lld, not %lld", (long long)span, (long long)open, (long long)end,
                (long long)want);
    }
}

static void bars_end_as_the_clock_shows(void **state) {
    (void)state;
    static const int64_t spans[] = {300, H1, 2 * H1, H4, 12 * H1, D1, 2 * D1};
    int seen = 0;
    for (int i = 0; i < ZONES; i++) {
        when_zone *z = zone_at(i);
        int64_t change[ROOM] = {when_day(zones[i].from, 3, 10) * D1};
        int n = find_changes(z, zones[i].from, zones[i].to, change);
        seen += n;
        for (int k = 0; k < (n ? n : 1); k++) {
            for (size_t s = 0; s < sizeof spans / sizeof *spans; s++)
                check_around(z, change[k], spans[s], spans[s] + 2 * H1, 30 * MINUTE);
            check_around(z, change[k], H4, 6 * H1, 7 * MINUTE);
        }
        for (int k = 0; k < (n ? 2 : 1); k++) {
            check_around(z, change[k], WHEN_WEEK, WHEN_WEEK + D1, 13 * H1 + 30 * MINUTE);
            check_around(z, change[k], WHEN_MONTH, 32 * D1, 3 * D1 + 11 * H1 + 30 * MINUTE);
            check_around(z, change[k], 3 * WHEN_MONTH, 62 * D1, 19 * D1 + H1);
        }
        when_zone_free(z);
    }
    assert_true(seen >= 2 * 22);
}

static void known_ends(void **state) {
    (void)state;
    err e = {0};
    size_t hint = 0;
    when_zone *z = when_zone_new("America/New_York", &e);
    assert_non_null(z);
    int64_t spring = when_day(2024, 3, 10) * D1 + 5 * H1, autumn = when_day(2024, 11, 3) * D1 + 4 * H1;
    assert_int_equal(when_bar_end(z, spring, D1, &hint) - spring, 23 * H1);
    assert_int_equal(when_bar_end(z, autumn, D1, &hint) - autumn, 25 * H1);
    assert_int_equal(when_bar_end(z, autumn, H4, &hint) - autumn, 5 * H1);
    assert_int_equal(when_bar_end(z, autumn, H1, &hint) - autumn, H1);
    // 22:30 and four hours are 02:30, which the clock skips: it shows 03:00 when 02:00 is over.
    assert_int_equal(when_bar_end(z, spring - 90 * MINUTE, H4, &hint), spring + 2 * H1);
    int64_t january = when_day(2024, 1, 31) * D1 + 5 * H1;
    assert_int_equal(when_bar_end(z, january, WHEN_MONTH, &hint), when_day(2024, 2, 29) * D1 + 5 * H1);
    assert_int_equal(when_bar_end(z, january, 2 * WHEN_MONTH, &hint), when_day(2024, 3, 31) * D1 + 4 * H1);
    int64_t february = when_day(2023, 2, 28) * D1 + 15 * H1;
    assert_int_equal(when_bar_end(z, february, WHEN_MONTH, &hint), when_day(2023, 3, 31) * D1 + 14 * H1);
    when_zone_free(z);
}

// Text that a file would hold: bars stamped with the zone's clock.
static size_t put_bars(char *text, const when_zone *z, const int64_t *open, int n) {
    size_t used = (size_t)sprintf(text, "time,open,high,low,close\n");
    for (int i = 0; i < n; i++) {
        when_parts p = when_split(shown(z, open[i]));
        used +=
            (size_t)sprintf(text + used, "%d-%02d-%02d %02d:%02d,2,3,1,2\n", p.year, p.month, p.day, p.hour, p.minute);
        assert_true(used < TEXT_MOST - 64);
    }
    return used;
}

// Months of Tokyo's clock in a file stamped in UTC, which open on the last day of a month: none is over before the next
// one opens, and the last one, which has no next, ends where the next would open.
static void months_of_an_eastern_clock(void **state) {
    (void)state;
    enum { MONTHS = 40 };
    char *text = malloc(TEXT_MOST);
    int64_t open[MONTHS + 1];
    err e = {0};
    bars b;
    assert_non_null(text);
    for (int i = 0; i <= MONTHS; i++) open[i] = when_day(2022 + i / 12, i % 12 + 1, 1) * D1 - 9 * H1;
    when_zone *z = when_zone_new("UTC", &e);
    for (int n = 3; n <= MONTHS; n++) {
        size_t size = put_bars(text, z, open, n);
        support_ok(bars_parse(&b, "months.csv", text, size, NULL, &e), &e);
        assert_int_equal(b.count, n);
        assert_int_equal(b.span, WHEN_MONTH);
        for (int i = 0; i < n; i++) assert_int_equal(b.bar[i].end, open[i + 1]);
        bars_done(&b);
    }
    when_zone_free(z);
    free(text);
}

// Opens of a frame: moments of a grid at which the zone's clock shows a multiple of the span.
static int make_opens(const when_zone *z, int64_t from, int64_t to, int64_t span, int64_t *open) {
    int n = 0;
    for (int64_t t = from; t < to; t += 5 * MINUTE) {
        bool opens = span <= H1 ? t % span == 0 : shown(z, t) % span == 0;
        // A clock that skips the start of a day opens it where the day begins.
        if (span > H1 && !opens && shown(z, t) - shown(z, t - 5 * MINUTE) > 5 * MINUTE)
            opens = shown(z, t) / span != shown(z, t - 5 * MINUTE) / span;
        if (opens) open[n++] = t;
    }
    return n;
}

static void check_alignment(int zone, const when_zone *z, int64_t change, int64_t fast_span, int64_t slow_span) {
    enum { MOST = 10000 };
    char *text = malloc(TEXT_MOST);
    int64_t *open = malloc(MOST * sizeof *open);
    int32_t *row = malloc(MOST * sizeof *row);
    assert_true(text && open && row);
    bars fast, slow;
    err e = {0};
    bars_options o = {.tz = zones[zone].name};
    size_t n = put_bars(text, z, open, make_opens(z, change - 6 * D1, change + 6 * D1, fast_span, open));
    support_ok(bars_parse(&fast, "fast.csv", text, n, &o, &e), &e);
    n = put_bars(text, z, open, make_opens(z, change - 6 * D1, change + 6 * D1, slow_span, open));
    support_ok(bars_parse(&slow, "slow.csv", text, n, &o, &e), &e);
    assert_true(fast.span == fast_span && slow.span == slow_span);
    int64_t *fast_ends = walk_ends(fast.bar, fast.count), *slow_ends = walk_ends(slow.bar, slow.count);
    align_rows(fast_ends, fast.count, slow_ends, slow.count, row);
    free(fast_ends);
    free(slow_ends);
    for (int64_t t = 0; t < fast.count; t++) {
        int64_t end = walked_end(z, fast.bar[t].time, fast_span);
        assert_int_equal(fast.bar[t].end, end);
        assert_true(row[t] < 0 || walked_end(z, slow.bar[row[t]].time, slow_span) <= end);
        assert_true(row[t] + 1 >= slow.count || walked_end(z, slow.bar[row[t] + 1].time, slow_span) > end);
    }
    bars_done(&fast);
    bars_done(&slow);
    free(text);
    free(open);
    free(row);
}

static void slow_bars_are_never_seen_early(void **state) {
    (void)state;
    for (int i = 0; i < ZONES; i++) {
        when_zone *z = zone_at(i);
        int64_t change[ROOM] = {when_day(zones[i].from, 3, 10) * D1};
        int n = find_changes(z, zones[i].from, zones[i].to, change);
        for (int k = 0; k < (n ? 2 : 1); k++) {
            check_alignment(i, z, change[k], 300, D1);
            check_alignment(i, z, change[k], H1, H4);
            check_alignment(i, z, change[k], H1, D1);
        }
        when_zone_free(z);
    }
}

static void read(bars *b, const char *text, const char *tz) {
    err e = {0};
    support_ok(bars_parse(b, "t.csv", text, strlen(text), &(bars_options){.tz = tz}, &e), &e);
}

// A file of opens on the first days of months, or of every `days` days.
static size_t put_days(char *text, int days, int skip) {
    size_t n = (size_t)sprintf(text, "date,open,high,low,close\n");
    for (int i = 0; i < 60; i++) {
        when_parts p = when_split((when_day(2019, 1, 6) + (int64_t)i * days) * D1);
        if (!days) p = (when_parts){.year = 2019 + i / 12, .month = i % 12 + 1, .day = 1};
        if (i == skip) continue;
        n += (size_t)sprintf(text + n, "%d-%02d-%02d,2,3,1,2\n", p.year, p.month, p.day);
    }
    return n;
}

static void weeks_and_months_are_frames(void **state) {
    (void)state;
    static const char *const tz[] = {NULL, "America/New_York", "mt5"};
    static char text[4096];
    for (int i = 0; i < 3; i++)
        for (int skip = 0; skip < 60; skip += 25) {
            bars b;
            char span[32];
            put_days(text, 7, skip);
            read(&b, text, tz[i]);
            assert_int_equal(b.span, WHEN_WEEK);
            assert_string_equal(when_span_text(span, sizeof span, b.span), "1 week");
            for (bars_finding f = 0; f < BARS_FINDINGS; f++)
                assert_int_equal(b.report.tally[f].count, f == BARS_GAP && skip > 0);
            assert_int_equal(b.report.missing, skip > 0);
            bars_done(&b);
            put_days(text, 0, skip);
            read(&b, text, tz[i]);
            assert_int_equal(b.span, WHEN_MONTH);
            assert_string_equal(when_span_text(span, sizeof span, b.span), "1 month");
            for (bars_finding f = 0; f < BARS_FINDINGS; f++)
                assert_int_equal(b.report.tally[f].count, f == BARS_GAP && skip > 0);
            assert_int_equal(b.report.missing, skip > 0);
            for (int64_t k = 0; k + 1 < b.count; k++)
                assert_true(b.bar[k].end == b.bar[k + 1].time || (skip && k == skip - 1));
            bars_done(&b);
        }
}

static void months_that_open_on_trading_days(void **state) {
    (void)state;
    // The first trading days of New York in 2023, newest first as sellers write them.
    static const char text[] =
        "date,open,high,low,close\n2023-12-01,2,3,1,2\n2023-11-01,2,3,1,2\n2023-10-02,2,3,1,2\n2023-09-01,2,3,1,2\n"
        "2023-08-01,2,3,1,2\n2023-07-03,2,3,1,2\n2023-06-01,2,3,1,2\n2023-05-01,2,3,1,2\n2023-04-03,2,3,1,2\n"
        "2023-03-01,2,3,1,2\n2023-02-01,2,3,1,2\n2023-01-03,2,3,1,2\n";
    bars b;
    read(&b, text, NULL);
    assert_int_equal(b.span, WHEN_MONTH);
    assert_int_equal(b.report.tally[BARS_GAP].count + b.report.tally[BARS_SHORT_STEP].count, 0);
    assert_true(b.report.turned);
    bars_done(&b);
    // Weeks whose Monday is a holiday.
    read(&b,
        "date,open,high,low,close\n2024-01-02,2,3,1,2\n2024-01-08,2,3,1,2\n2024-01-16,2,3,1,2\n2024-01-22,2,3,1,2\n"
        "2024-01-29,2,3,1,2\n2024-02-05,2,3,1,2\n2024-02-12,2,3,1,2\n2024-02-20,2,3,1,2\n2024-02-26,2,3,1,2\n2024-03-"
        "04,2,3,1,2\n2024-03-11,2,3,1,2\n",
        NULL);
    assert_int_equal(b.span, WHEN_WEEK);
    assert_int_equal(b.report.tally[BARS_GAP].count + b.report.tally[BARS_SHORT_STEP].count, 0);
    bars_done(&b);
}

static void stamps_with_offsets_end_by_their_clock(void **state) {
    (void)state;
    static const char autumn[] = "Date,Open,High,Low,Close\n2024-11-01 00:00:00-04:00,2,3,1,2\n"
                                 "2024-11-02 00:00:00-04:00,2,3,1,2\n2024-11-03 00:00:00-04:00,2,3,1,2\n"
                                 "2024-11-04 00:00:00-05:00,2,3,1,2\n2024-11-05 00:00:00-05:00,2,3,1,2\n";
    bars b;
    read(&b, autumn, NULL);
    assert_int_equal(b.bar[2].end - b.bar[2].time, 25 * H1);
    assert_int_equal(b.bar[2].end, b.bar[3].time);
    assert_string_equal(b.report.zone, "as stamped (America/New_York)");
    assert_false(b.report.zone_assumed);
    bars_done(&b);
    read(&b, autumn, "America/Toronto");
    assert_string_equal(b.report.zone, "as stamped (America/Toronto)");
    bars_done(&b);
    // One offset is a clock that does not change, whatever zone is given for other files.
    read(&b, "Date,Open,High,Low,Close\n2024-03-09T00:00Z,2,3,1,2\n2024-03-10T00:00Z,2,3,1,2\n", "America/New_York");
    assert_int_equal(b.bar[1].end - b.bar[1].time, D1);
    assert_string_equal(b.report.zone, "as stamped");
    bars_done(&b);
    // Unless it is the given zone's own for now.
    static const char summer[] = "Date,Open,High,Low,Close\n2024-11-02 00:00:00-04:00,2,3,1,2\n"
                                 "2024-11-03 00:00:00-04:00,2,3,1,2\n";
    read(&b, summer, NULL);
    assert_int_equal(b.bar[1].end - b.bar[1].time, D1);
    bars_done(&b);
    read(&b, summer, "America/New_York");
    assert_int_equal(b.bar[1].end - b.bar[1].time, 25 * H1);
    bars_done(&b);
    // All stamps are looked at, also where only new rows are asked for.
    err e = {0};
    bars_options late = {.from = when_day(2024, 11, 4) * D1};
    support_ok(bars_parse(&b, "t.csv", autumn, sizeof autumn - 1, &late, &e), &e);
    assert_true(b.count == 5 && b.bar[2].end == b.bar[3].time);
    bars_done(&b);
    static const char nowhere[] = "Date,Open,High,Low,Close\n2024-11-01 00:00:00-04:00,2,3,1,2\n"
                                  "2024-11-02 00:00:00+07:00,2,3,1,2\n2024-11-03 00:00:00+07:00,2,3,1,2\n";
    assert_false(bars_parse(&b, "t.csv", nowhere, strlen(nowhere), NULL, &e));
    assert_string_equal(e.text, "t.csv: its stamps show offsets of -4 h and +7 h, so its clock changes; name its zone "
                                "with --tz or data.tz, so that the end of each bar is known");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_end_as_the_clock_shows),
        cmocka_unit_test(known_ends),
        cmocka_unit_test(months_of_an_eastern_clock),
        cmocka_unit_test(slow_bars_are_never_seen_early),
        cmocka_unit_test(weeks_and_months_are_frames),
        cmocka_unit_test(months_that_open_on_trading_days),
        cmocka_unit_test(stamps_with_offsets_end_by_their_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
