// The sequencer of feeds: closed bars in order, whatever comes.
#include "live/sequence.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPAN = 300 };
static const int64_t START = 1700000100;

typedef struct {
    feed_options options;
    sequence *s;
    char log[4096]; // what came out: "3" bar 3, "late 4", ...
} desk;

static void desk_open(desk *d, bool hold, bool machine) {
    d->s = sequence_new(&(sequence_rules){.options = &d->options, .hold = hold, .machine = machine});
    *d->log = 0;
}

static feed_raw raw_of(const char *symbol, int64_t n, double close, feed_state state) {
    feed_raw raw = {.event = {.kind = FEED_BAR, .span = SPAN}, .state = state};
    raw.event.bar = (bar){.time = START + n * SPAN,
        .end = START + (n + 1) * SPAN,
        .open = 10,
        .high = 30,
        .low = 5,
        .close = close,
        .volume = 1};
    raw.event.local = raw.event.bar.time + 7200;
    snprintf(raw.event.symbol, sizeof raw.event.symbol, "%s", symbol);
    return raw;
}

static void write_down(desk *d) {
    feed_event ev;
    while (sequence_next(d->s, &ev)) {
        size_t used = strlen(d->log);
        long long n = (ev.bar.time - START) / SPAN;
        const char *key = ev.kind == FEED_NOTE ? feed_note_key(ev.note) : "";
        snprintf(d->log + used, sizeof d->log - used, "%s%s%s%s%lld%s", used ? ", " : "", ev.symbol, key,
            *key ? " " : "", n, ev.history ? "h" : "");
        if (ev.kind == FEED_NOTE) assert_true(strlen(ev.text) > 0);
    }
}

static void take_raw(desk *d, const feed_raw *raw, double now) {
    sequence_take(d->s, raw, now);
    write_down(d);
}

// Bar `n` comes `after` seconds behind its close.
static void take(desk *d, int64_t n, double close, double after) {
    feed_raw raw = raw_of("", n, close, FEED_AS_TOLD);
    take_raw(d, &raw, (double)raw.event.bar.end + after);
}

static void came(desk *d, const char *log) {
    assert_string_equal(d->log, log);
    sequence_free(d->s);
}

static void closed_bars_come_at_once(void **state) {
    (void)state;
    desk d = {.options = {.late = 60}};
    desk_open(&d, false, true);
    for (int n = 0; n < 4; n++) take(&d, n, 20, 0.1);
    came(&d, "0, 1, 2, 3");
}

static void take_of(desk *d, const char *symbol, int64_t n) {
    feed_raw raw = raw_of(symbol, n, 20, FEED_CLOSED);
    take_raw(d, &raw, (double)raw.event.bar.end);
}

static void end_feed(desk *d) {
    feed_raw raw;
    feed_raw_note(&raw, FEED_END, "the feed has ended");
    raw.event.bar.time = START;
    take_raw(d, &raw, (double)START);
}

// Bars of other symbols alone are told once they come round, or the feed ends; beside wanted ones they are not.
static void other_names_are_told(void **state) {
    (void)state;
    static const char *const wanted[] = {"GOLD"};
    desk d = {.options = {.wanted = wanted, .wanted_count = 1}};
    desk_open(&d, false, false);
    take_of(&d, "A", 0);
    take_of(&d, "B", 0);
    take_of(&d, "GOLD", 0);
    for (int n = 1; n < 40; n++) take_of(&d, "A", n);
    end_feed(&d);
    came(&d, "GOLD0, end 0");
    desk_open(&d, false, false);
    take_of(&d, "A", 0);
    take_of(&d, "B", 0);
    take_of(&d, "A", 0);
    assert_string_equal(d.log, "");
    take_of(&d, "A", 1);
    assert_string_equal(d.log, "unwanted 0");
    for (int n = 2; n < 40; n++) take_of(&d, "A", n);
    end_feed(&d);
    came(&d, "unwanted 0, end 0");
    desk_open(&d, false, false);
    for (int k = 0; k < 16; k++) {
        assert_string_equal(d.log, "");
        take_of(&d, (const char[]){(char)('a' + k), 0}, 0);
    }
    came(&d, "unwanted 0");
    desk_open(&d, false, false);
    take_of(&d, "A", 0);
    end_feed(&d);
    came(&d, "unwanted 0, end 0");
    desk_open(&d, false, false);
    end_feed(&d);
    came(&d, "end 0");
}

// A quote of the future fills nothing: an account would be charged the nights up to it.
static void quotes_of_the_future_are_told(void **state) {
    (void)state;
    desk d = {.options = {.late = 60}};
    feed_raw quote = raw_of("", 0, 20, FEED_AS_TOLD);
    quote.event.kind = FEED_QUOTE;
    quote.event.span = 0;
    desk_open(&d, false, true);
    take_raw(&d, &quote, (double)START);
    take_raw(&d, &quote, (double)START - 7200);
    take_raw(&d, &quote, (double)START - 7200);
    came(&d, "0, unreadable 0");
    desk_open(&d, false, false); // of a file with a clock of its own
    take_raw(&d, &quote, (double)START - 7200);
    came(&d, "0");
}

// Quotes come each second: they are told once a day for each symbol, as quotes.
static void quotes_of_the_future_are_told_once_a_day(void **state) {
    (void)state;
    const int64_t midnight = (START / 86400 + 1) * 86400;
    desk d = {.options = {.late = 60}};
    feed_event ev;
    int notes = 0;
    desk_open(&d, false, true);
    for (int i = -5; i < 5; i++)
        for (int k = 0; k < 2; k++) {
            feed_raw quote = raw_of(k ? "B" : "A", 0, 20, FEED_AS_TOLD);
            quote.event.kind = FEED_QUOTE;
            quote.event.span = 0;
            quote.event.bar.time = quote.event.bar.end = midnight + i;
            sequence_take(d.s, &quote, (double)(midnight + i - 7200));
            for (; sequence_next(d.s, &ev); notes++) {
                assert_true(i == -5 || i == 0);
                assert_true(ev.note == FEED_UNREADABLE && !strcmp(ev.symbol, k ? "B" : "A"));
                assert_non_null(strstr(ev.text, " quote of 2023-11-1"));
                assert_non_null(strstr(ev.text, " UTC lies 2 h after now"));
            }
        }
    assert_int_equal(notes, 4);
    // Bars are told apart by their series, too.
    for (int k = 0; k < 2; k++) {
        feed_raw bar = raw_of(k ? "B" : "A", 99, 20, FEED_CLOSED);
        take_raw(&d, &bar, (double)START);
        take_raw(&d, &bar, (double)START);
    }
    came(&d, "Aunreadable 99, Bunreadable 99");
}

static void newest_bar_is_held_back(void **state) {
    (void)state;
    desk d = {0};
    desk_open(&d, true, true);
    take(&d, 0, 20, -200);
    take(&d, 0, 21, -100); // goes on
    take(&d, 0, 22, 0);
    assert_string_equal(d.log, "");
    take(&d, 1, 20, -299);
    assert_string_equal(d.log, "0");
    feed_event ev;
    take(&d, 2, 20, -299);
    assert_false(sequence_next(d.s, &ev));
    assert_true(isinf(sequence_due(d.s)) && !sequence_tick(d.s, 1e12));
    came(&d, "0, 1");
}

static void held_bar_has_its_last_figures(void **state) {
    (void)state;
    desk d = {0};
    feed_event ev;
    desk_open(&d, true, true);
    take(&d, 0, 20, -200);
    take(&d, 0, 22, -1);
    feed_raw next = raw_of("", 1, 20, FEED_AS_TOLD);
    sequence_take(d.s, &next, (double)START + SPAN);
    assert_true(sequence_next(d.s, &ev) && ev.bar.close == 22 && ev.local == ev.bar.time + 7200);
    came(&d, "");
}

static void clock_ends_a_held_bar_where_asked(void **state) {
    (void)state;
    desk d = {.options = {.grace = 2, .late = 60}};
    desk_open(&d, true, true);
    take(&d, 0, 20, -200);
    double end = (double)START + SPAN;
    assert_true(sequence_due(d.s) == end + 2);
    assert_false(sequence_tick(d.s, end + 1.9));
    assert_true(sequence_tick(d.s, end + 2));
    write_down(&d);
    assert_false(sequence_tick(d.s, end + 3));
    take(&d, 0, 20, 4); // as it was given
    take(&d, 0, 21, 5);
    take(&d, 1, 20, -250);
    take(&d, 2, 20, -250);
    came(&d, "0, doubled 0, revised 0, 1");
}

// A row is final where it was written behind its close; one that was seen before it may still change.
static void rows_written_late_have_closed(void **state) {
    (void)state;
    desk d = {0};
    desk_open(&d, true, true);
    for (int n = 0; n < 3; n++) {
        feed_raw raw = raw_of("", n, 20, FEED_AS_TOLD);
        double end = (double)raw.event.bar.end;
        raw.written = end - 0.1;
        take_raw(&d, &raw, end + 10);
        raw.event.bar.close = 21;
        raw.written = end;
        take_raw(&d, &raw, end + 10);
        take_raw(&d, &raw, end + 10); // seen again
    }
    came(&d, "0, doubled 0, 1, doubled 1, 2, doubled 2");
    desk_open(&d, true, false); // by the clock of the bars nothing is known of it
    feed_raw raw = raw_of("", 0, 20, FEED_AS_TOLD);
    raw.written = 1e10;
    take_raw(&d, &raw, 1e10);
    came(&d, "");
}

static void source_may_know(void **state) {
    (void)state;
    desk d = {0};
    desk_open(&d, false, false);
    feed_raw open = raw_of("", 0, 20, FEED_UNFINISHED), closed = raw_of("", 0, 21, FEED_CLOSED);
    take_raw(&d, &open, 0);
    take_raw(&d, &closed, 0);
    open = raw_of("", 1, 20, FEED_UNFINISHED);
    take_raw(&d, &open, 0);
    open = raw_of("", 2, 20, FEED_UNFINISHED);
    take_raw(&d, &open, 0);
    came(&d, "0, 1");
}

static void what_was_given_stays(void **state) {
    (void)state;
    desk d = {.options = {.late = 60}};
    desk_open(&d, false, true);
    take(&d, 0, 20, 0);
    take(&d, 2, 20, 0);
    take(&d, 2, 20, 1);
    take(&d, 2, 25, 1);
    take(&d, 0, 26, 1);
    take(&d, 1, 20, 300); // the one that was missing
    take(&d, 3, 20, 0);
    came(&d, "0, missing 2, 2, doubled 2, revised 2, revised 0, out_of_order 1, 3");
}

static void revision_has_both_bars(void **state) {
    (void)state;
    desk d = {0};
    feed_event ev;
    desk_open(&d, false, true);
    take(&d, 0, 20, 0);
    feed_raw again = raw_of("", 0, 21.5, FEED_CLOSED);
    sequence_take(d.s, &again, 0x1p40);
    assert_true(sequence_next(d.s, &ev) && ev.note == FEED_REVISED && ev.was.close == 20 && ev.bar.close == 21.5);
    assert_non_null(strstr(ev.text, "5 min bar of 2023-11-14 22:15 UTC came again with close 21.5, not 20"));
    came(&d, "0");
}

static void late_bars_are_told(void **state) {
    (void)state;
    desk d = {.options = {.late = 60}};
    desk_open(&d, false, true);
    take(&d, 0, 20, 60);
    take(&d, 1, 20, 61);
    feed_raw old = raw_of("", 4, 20, FEED_CLOSED); // what lies in a source is neither late nor behind a hole
    old.event.history = true;
    take_raw(&d, &old, 0x1p40);
    came(&d, "0, late 1, 1, 4h");
    desk_open(&d, false, false); // bars of the past by their own clock
    take(&d, 0, 20, 1e6);
    came(&d, "0");
}

static void holes_are_counted(void **state) {
    (void)state;
    desk d = {0};
    feed_event ev;
    desk_open(&d, false, true);
    take(&d, 0, 20, 0);
    feed_raw raw = raw_of("", 4, 20, FEED_CLOSED);
    sequence_take(d.s, &raw, 0x1p40);
    assert_true(sequence_next(d.s, &ev) && ev.note == FEED_MISSING && ev.count == 3);
    write_down(&d);
    take(&d, 100, 20, 0); // closed meanwhile
    came(&d, "0, 4, 100");
}

static int64_t two(const void *arg, const char *symbol, int64_t span, int64_t from, int64_t to) {
    assert_true(arg == &START && !strcmp(symbol, "") && span == SPAN && from == START && to == START + 100 * SPAN);
    return 2;
}

static void holes_are_the_callers_to_judge(void **state) {
    (void)state;
    desk d = {.options = {.missing = two, .arg = &START}};
    desk_open(&d, false, true);
    take(&d, 0, 20, 0);
    take(&d, 100, 20, 0);
    came(&d, "0, missing 100, 100");
}

static void series_are_apart(void **state) {
    (void)state;
    desk d = {0};
    const char *const wanted[] = {"A", "B"};
    const int64_t spans[] = {SPAN};
    d.options.wanted = wanted;
    d.options.wanted_count = 2;
    d.options.spans = spans;
    d.options.span_count = 1;
    desk_open(&d, false, true);
    for (int n = 0; n < 2; n++)
        for (const char *s = "ABC"; *s; s++) {
            feed_raw raw = raw_of((char[]){*s, 0}, n, 20, FEED_CLOSED);
            take_raw(&d, &raw, 0x1p40);
            raw.event.span = 900;
            take_raw(&d, &raw, 0x1p40);
        }
    assert_int_equal(sequence_series(d.s), 2);
    came(&d, "A0, B0, A1, B1");
}

static void future_bars_are_refused(void **state) {
    (void)state;
    desk d = {0};
    desk_open(&d, false, true);
    take(&d, 0, 20, 0);
    take(&d, 30, 20, -7200);
    take(&d, 30, 20, -7200);
    take(&d, 1, 20, 0);
    came(&d, "0, unreadable 30, 1");
    // A bar that is said to have closed half an hour or half its span early.
    desk_open(&d, false, true);
    feed_raw hour = raw_of("", 0, 20, FEED_CLOSED), day = hour;
    hour.event.span = 3600;
    hour.event.bar.end = hour.event.bar.time + 3600;
    take_raw(&d, &hour, (double)hour.event.bar.time + 1790);
    take_raw(&d, &hour, (double)hour.event.bar.time + 1810);
    day.event.span = 86400;
    day.event.bar.end = day.event.bar.time + 86400;
    take_raw(&d, &day, (double)day.event.bar.time + 50000);
    came(&d, "unreadable 0, 0, 0");
}

static void series_are_bounded(void **state) {
    (void)state;
    desk d = {0};
    feed_event ev;
    desk_open(&d, false, true);
    for (int i = 0; i <= FEED_SERIES_MOST; i++) {
        char symbol[16];
        snprintf(symbol, sizeof symbol, "S%d", i);
        feed_raw raw = raw_of(symbol, 0, 20, FEED_CLOSED);
        sequence_take(d.s, &raw, 0x1p40);
        assert_true(sequence_next(d.s, &ev) && (ev.kind == FEED_BAR) == (i < FEED_SERIES_MOST));
    }
    assert_int_equal(sequence_series(d.s), FEED_SERIES_MOST);
    came(&d, "");
}

// A source that is read anew: repeats say nothing, revisions do.
static void rereading_is_quiet(void **state) {
    (void)state;
    desk d = {0};
    desk_open(&d, false, true);
    for (int pass = 0; pass < 2; pass++)
        for (int n = 0; n < 100; n++) {
            if (n == 0 && pass == 0) continue;
            feed_raw raw = raw_of("", n, n == 99 && pass ? 21 : 20, FEED_CLOSED);
            raw.again = true;
            raw.event.history = !pass;
            sequence_take(d.s, &raw, 0x1p40);
            feed_event ev;
            while (sequence_next(d.s, &ev)) {
                if (pass) assert_true(ev.note == FEED_REVISED && n == 99 && !ev.history);
                if (!pass) assert_true(ev.kind == FEED_BAR && ev.history);
            }
        }
    came(&d, "");
}

static void restart_goes_on_behind_what_was_decided(void **state) {
    (void)state;
    desk d = {0};
    bar known[80];
    desk_open(&d, false, true);
    for (int n = 0; n < 80; n++) known[n] = raw_of("", n, 20, FEED_CLOSED).event.bar;
    sequence_know(d.s, "", SPAN, known, 80);
    for (int n = 0; n < 82; n++) take(&d, n, n == 70 ? 22 : 20, 0);
    assert_null(strstr(d.log, "doubled 3,")); // older than what is compared
    assert_non_null(strstr(d.log, "doubled 69, revised 70, doubled 71"));
    const char *end = strstr(d.log, "doubled 79, 80, 81");
    assert_true(end && strlen(end) == strlen("doubled 79, 80, 81"));
    came(&d, d.log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_bars_come_at_once),
        cmocka_unit_test(other_names_are_told),
        cmocka_unit_test(quotes_of_the_future_are_told),
        cmocka_unit_test(quotes_of_the_future_are_told_once_a_day),
        cmocka_unit_test(newest_bar_is_held_back),
        cmocka_unit_test(held_bar_has_its_last_figures),
        cmocka_unit_test(clock_ends_a_held_bar_where_asked),
        cmocka_unit_test(rows_written_late_have_closed),
        cmocka_unit_test(source_may_know),
        cmocka_unit_test(what_was_given_stays),
        cmocka_unit_test(revision_has_both_bars),
        cmocka_unit_test(late_bars_are_told),
        cmocka_unit_test(holes_are_counted),
        cmocka_unit_test(holes_are_the_callers_to_judge),
        cmocka_unit_test(series_are_apart),
        cmocka_unit_test(future_bars_are_refused),
        cmocka_unit_test(series_are_bounded),
        cmocka_unit_test(rereading_is_quiet),
        cmocka_unit_test(restart_goes_on_behind_what_was_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
