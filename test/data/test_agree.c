// Agreement of a coarser file with the finest: clocks, instruments and time covered.
#include "data/agree.h"

#include "data/bars.h"
#include "data/frame.h"
#include "data/walk.h"
#include "data/when.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FAST = 300, SLOW = WHEN_HOUR };

typedef struct {
    bar *fast, *slow;
    int64_t fasts, slows;
} pair;

static pair pair_new(int64_t count) {
    err e = {0};
    pair p = {.fast = walk_bars(count, FAST, 5), .fasts = count};
    for (int64_t i = 0; i < count; i++) p.fast[i].end = p.fast[i].time + FAST;
    frame_source from = {p.fast, count, FAST, false};
    support_ok(frame_make(&from, SLOW, "walk", &p.slow, &p.slows, &e), &e);
    return p;
}

static void pair_done(pair *p) {
    free(p->fast);
    free(p->slow);
}

static void move(bar *b, int64_t count, int64_t by) {
    for (int64_t i = 0; i < count; i++) {
        b[i].time += by;
        b[i].end += by;
    }
}

static bool check(const pair *p, unsigned force, agree_report *r, err *e) {
    return agree_check(
        &(agree_bars){p->fast, p->fasts, FAST, "M5"}, &(agree_bars){p->slow, p->slows, SLOW, "H1"}, force, r, e);
}

static void refused(const pair *p, bars_force check_name, const char *text, agree_report *r) {
    err e = {0};
    assert_false(check(p, 0, r, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, text)) fail_msg("\"%s\" does not say \"%s\"", e.text, text);
    assert_non_null(strstr(e.text, bars_force_name(check_name)));
    support_ok(check(p, check_name, r, &e), &e);
    assert_int_equal(r->forced, check_name);
}

static void same_bars_agree(void **state) {
    (void)state;
    pair p = pair_new(20000);
    agree_report r;
    err e = {0};
    support_ok(check(&p, 0, &r, &e), &e);
    assert_int_equal(r.compared > 400, 1);
    assert_true(r.agreed == 1 && r.shift == 0 && r.stale == 0 && r.factor == 1 && r.forced == 0);
    // Another feed: closes some tenths of a fast bar's range away.
    dice d = {.seed = 1};
    for (int64_t i = 0; i < p.slows; i++)
        p.slow[i].close *= 1 + dice_unit(&d) * (p.fast[0].high - p.fast[0].low) / p.fast[0].low / 2;
    support_ok(check(&p, 0, &r, &e), &e);
    assert_true(r.agreed > 0.9 && r.shift == 0);
    pair_done(&p);
}

// Without the fast bars at an hour's end, the hour still closes where its last fast bar does.
static void bars_missing_at_the_end_of_a_slow_one(void **state) {
    (void)state;
    pair p = pair_new(20000);
    agree_report r;
    err e = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < p.fasts; i++)
        if (p.fast[i].end % SLOW != 0) p.fast[n++] = p.fast[i];
    p.fasts = n;
    support_ok(check(&p, 0, &r, &e), &e);
    assert_true(r.compared > 400 && r.agreed > 0.8 && r.shift == 0);
    pair_done(&p);
}

static void another_clock_is_named(void **state) {
    (void)state;
    static const struct {
        int64_t by;
        const char *text;
    } cases[] = {{2 * WHEN_HOUR, "moved by -2 h;"}, {-3 * WHEN_HOUR, "moved by +3 h;"},
        {WHEN_HOUR, "moved by -1 h, which is its span"}, {-(5 * WHEN_HOUR + 1800), "moved by +5.5 h;"},
        {-14 * WHEN_HOUR, "moved by +14 h;"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair p = pair_new(20000);
        agree_report r;
        move(p.slow, p.slows, cases[i].by);
        refused(&p, BARS_FORCE_AGREE, cases[i].text, &r);
        assert_int_equal(r.shift, -cases[i].by);
        assert_int_equal(r.summer, 0);
        pair_done(&p);
    }
}

// A broker's clock beside UTC, over both changes of the clock; and one without daylight saving beside one with it.
static void a_clock_with_daylight_saving_is_named(void **state) {
    (void)state;
    err e = {0};
    when_zone *z = when_zone_new("mt5", &e);
    for (int64_t less = 0; less <= 2 * WHEN_HOUR; less += 2 * WHEN_HOUR) {
        pair p = pair_new(90000);
        agree_report r;
        size_t hint = 0;
        for (int64_t i = 0; i < p.slows; i++)
            move(&p.slow[i], 1, when_local(z, p.slow[i].time, &hint) - p.slow[i].time - less);
        refused(&p, BARS_FORCE_AGREE, "in New York's summer)", &r);
        assert_int_equal(r.shift, less - 2 * WHEN_HOUR);
        assert_int_equal(r.summer, -1);
        pair_done(&p);
    }
    when_zone_free(z);
}

// Days that close with their main session, at 16:00, beside bars that go on: late, but never early. Closes of the next
// morning are refused.
// A clock that changes within the slow file, for good or for some weeks; what is wrong does not teach what is usual.
static void a_clock_that_changes_is_named(void **state) {
    (void)state;
    static const struct {
        double from, to; // shares of the slow file
        int64_t by;
        const char *text;
    } cases[] = {{0.5, 1, -3 * SLOW, "moved by +3 h: its clock changed"}, {0, 0.8, -SLOW, "moved by +1 h"},
        {0.8, 1, -2 * SLOW, "moved by +2 h: its clock changed"}, {0.4, 0.6, -SLOW, "moved by +1 h: its clock changed"},
        {0.6, 1, 5 * SLOW, "moved by -5 h: its clock changed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agree_report r;
        pair p = pair_new(20000);
        int64_t from = (int64_t)(cases[i].from * (double)p.slows), to = (int64_t)(cases[i].to * (double)p.slows);
        move(p.slow + from, to - from, cases[i].by);
        refused(&p, BARS_FORCE_AGREE, cases[i].text, &r);
        pair_done(&p);
    }
}

static void days_may_close_with_their_session(void **state) {
    (void)state;
    err e = {0};
    agree_report r;
    pair p = pair_new(20000);
    bar *days;
    int64_t count;
    support_ok(frame_make(&(frame_source){p.fast, p.fasts, FAST, false}, WHEN_DAY, "walk", &days, &count, &e), &e);
    for (int64_t hour = 16; hour <= 30; hour += 14) {
        for (int64_t i = 0, k = 0; i < count; i++) {
            while (k + 1 < p.fasts && p.fast[k + 1].end <= days[i].time + hour * WHEN_HOUR) k++;
            days[i].close = p.fast[k].close;
        }
        bool ok = agree_check(
            &(agree_bars){p.fast, p.fasts, FAST, "M5"}, &(agree_bars){days, count, WHEN_DAY, "D1"}, 0, &r, &e);
        assert_true(r.compared >= 20);
        assert_int_equal(ok, hour < 24);
        assert_int_equal(r.shift, (hour - 24) * WHEN_HOUR);
    }
    free(days);
    pair_done(&p);
}

static void another_instrument_is_refused(void **state) {
    (void)state;
    agree_report r;
    pair p = pair_new(20000);
    bar *other = walk_bars(p.fasts, FAST, 99);
    for (int64_t i = 0; i < p.fasts; i++) other[i].end = other[i].time + FAST;
    free(p.fast);
    p.fast = other;
    refused(&p, BARS_FORCE_AGREE, "no shift of its clock fits", &r);
    pair_done(&p);
    p = pair_new(20000);
    for (int64_t i = 0; i < p.slows; i++) p.slow[i].close *= 100;
    refused(&p, BARS_FORCE_AGREE, "100 times", &r);
    pair_done(&p);
}

static void a_stale_file_is_refused(void **state) {
    (void)state;
    agree_report r;
    err e = {0};
    pair p = pair_new(20000);
    int64_t all = p.slows;
    p.slows = all / 3;
    refused(&p, BARS_FORCE_STALE, "export both for the same time", &r);
    assert_true(r.stale > 0.5 && r.stale < 0.75);
    p.slows = 3 * all / 4;
    support_ok(check(&p, 0, &r, &e), &e);
    assert_true(r.stale > 0.1 && r.stale < 0.3);
    move(p.slow, all, 4 * 365 * (int64_t)WHEN_DAY);
    refused(&p, BARS_FORCE_STALE, "100 %", &r);
    assert_int_equal(r.compared, 0);
    pair_done(&p);
}

// Closes of the newest bars are those of the middle of the bar; up to ten of twenty are let pass.
static void newest_bars_must_agree(void **state) {
    (void)state;
    agree_report r;
    err e = {0};
    pair p = pair_new(20000);
    for (int64_t i = 0; i < p.slows; i++) p.slow[i].close *= i % 3 ? 1 : 1.00001;
    for (int k = 1; k <= 13; k++) {
        bar *b = &p.slow[p.slows - 1 - k];
        b->close *= 1.01;
        if (k == 9) support_ok(check(&p, 0, &r, &e), &e);
    }
    refused(&p, BARS_FORCE_AGREE, "13 of its newest closes are not those of M5, from 20", &r);
    assert_true(r.agreed > 0.9 && r.newest == 13);
    pair_done(&p);
}

static void few_moments_say_nothing(void **state) {
    (void)state;
    agree_report r;
    err e = {0};
    pair p = pair_new(150);
    for (int64_t i = 0; i < p.slows; i++) p.slow[i].close *= 2;
    support_ok(check(&p, 0, &r, &e), &e);
    assert_true(r.compared < 20);
    pair_done(&p);
}

static bool real(const char *name, bars *b) {
    char path[4096];
    err e = {0};
    const char *folder = getenv("TRADEWIND_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : TEST_DIR "/../../shared/data", name);
    return bars_read(b, path, NULL, &e);
}

// Files of two feeds of one instrument agree in every pair, but for bars that were not over, and an hour's shift of any
// is found.
static void real_files(void **state) {
    (void)state;
    static const char *const names[] = {
        "XAUUSD_M5.csv", "XAUUSD_M15.csv", "XAUUSD_H1.csv", "XAUUSD_H4.csv", "XAUUSD_D1.csv"};
    enum { FILES = sizeof names / sizeof *names };
    bars b[FILES];
    for (int i = 0; i < FILES; i++)
        if (!real(names[i], &b[i])) skip();
    for (int i = 0; i < FILES; i++)
        for (int k = i + 1; k < FILES; k++)
            for (int64_t by = -2 * WHEN_HOUR; by <= 2 * WHEN_HOUR; by += WHEN_HOUR) {
                agree_report r;
                err e = {0};
                move(b[k].bar, b[k].count, by);
                bool ok = agree_check(&(agree_bars){b[i].bar, b[i].count, b[i].span, names[i]},
                    &(agree_bars){b[k].bar, b[k].count, b[k].span, names[k]}, 0, &r, &e);
                // The newest days were saved before they were over; M5 and M15 end before them.
                bool snapshots = k == 4 && i >= 2;
                if (!by && !snapshots) support_ok(ok, &e);
                if (!by && snapshots) assert_non_null(strstr(e.text, "17 of its newest closes are not those of"));
                if (!by && snapshots) assert_non_null(strstr(e.text, "from 2026-04-17 on"));
                if (by && k < 4) assert_int_equal(r.shift, -by); // a day's end may move within closed hours
                move(b[k].bar, b[k].count, -by);
            }
    for (int i = 0; i < FILES; i++) bars_done(&b[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bars_agree),
        cmocka_unit_test(bars_missing_at_the_end_of_a_slow_one),
        cmocka_unit_test(another_clock_is_named),
        cmocka_unit_test(a_clock_with_daylight_saving_is_named),
        cmocka_unit_test(a_clock_that_changes_is_named),
        cmocka_unit_test(days_may_close_with_their_session),
        cmocka_unit_test(another_instrument_is_refused),
        cmocka_unit_test(a_stale_file_is_refused),
        cmocka_unit_test(newest_bars_must_agree),
        cmocka_unit_test(few_moments_say_nothing),
        cmocka_unit_test(real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
