#include "live/script.h"

#include "base/clock.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const int64_t SCRIPT_START = 1699920000;
const char script_header[] = "time,open,high,low,close,tick_volume,spread\n";

// A walk that needs no memory, of prices that few decimals write exactly.
static double level(int64_t n) {
    return 2000 + (double)((n * 7919) % 1009) / 16 + (double)((n / 97) % 211) / 8;
}

bar script_bar(int64_t n) {
    double open = level(n), close = level(n + 1);
    bar b = {.time = SCRIPT_START + n * SCRIPT_SPAN, .open = open, .close = close, .volume = (double)(n % 977 + 1)};
    b.end = b.time + SCRIPT_SPAN;
    b.high = (open > close ? open : close) + 0.25;
    b.low = (open < close ? open : close) - 0.5;
    b.spread = (double)(n % 5);
    return b;
}

int script_row(char *to, size_t room, int64_t n, double off) {
    bar b = script_bar(n);
    return snprintf(to, room, "%lld,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g\n", (long long)b.time, b.open, b.high, b.low,
        b.close + off, b.volume, b.spread);
}

void script_file(const char *path, int64_t from, int64_t to) {
    char row[SCRIPT_ROOM];
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(script_header, f);
    for (int64_t n = from; n < to; n++) {
        script_row(row, sizeof row, n, 0);
        fputs(row, f);
    }
    assert_int_equal(fclose(f), 0);
}

void script_append(const char *path, const char *text) {
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

feed_options script_options(const char *from) {
    static const int64_t spans[] = {SCRIPT_SPAN};
    return (feed_options){.from = from, .spans = spans, .span_count = 1, .clock = FEED_CLOCK_BARS};
}

live_feed *script_open(const feed_options *o) {
    err e = {0};
    live_feed *f = live_feed_open(o, &e);
    support_ok(f != NULL, &e);
    return f;
}

static void write_down(const feed_event *ev, char *log, size_t room) {
    size_t used = strlen(log);
    long long n = (ev->bar.time - SCRIPT_START) / SCRIPT_SPAN;
    const char *comma = used ? ", " : "";
    if (ev->kind == FEED_BAR)
        snprintf(log + used, room - used, "%s%s%s%lld%s", comma, ev->symbol, *ev->symbol ? " " : "", n,
            ev->history ? "h" : "");
    else if (ev->kind == FEED_QUOTE)
        snprintf(log + used, room - used, "%squote", comma);
    else if (ev->span)
        snprintf(log + used, room - used, "%s%s %lld", comma, feed_note_key(ev->note), n);
    else
        snprintf(log + used, room - used, "%s%s", comma, feed_note_key(ev->note));
}

void script_take(live_feed *f, double seconds, char *log, size_t room) {
    feed_event ev;
    err e = {0};
    feed_answer a;
    *log = 0;
    while ((a = live_feed_next(f, seconds, &ev, &e)) == FEED_GOT) write_down(&ev, log, room);
    support_ok(a != FEED_FAILED, &e);
}

void script_gives(live_feed *f, const char *log) {
    char got[4096];
    // The expected event comes soon; where it does not, the machine may be slow.
    for (int tries = 0; tries < 200; tries++) {
        size_t used = tries ? strlen(got) : 0;
        if (!used) *got = 0;
        char more[2048];
        script_take(f, 0.03, more, sizeof more);
        if (*more) snprintf(got + used, sizeof got - used, "%s%s", used ? ", " : "", more);
        if (strcmp(got, log) == 0 || strncmp(got, log, strlen(got)) != 0) break;
    }
    assert_string_equal(got, log);
}

void script_takes_bars(live_feed *f, int64_t from, int64_t to) {
    double began = clock_seconds();
    feed_event ev;
    err e = {0};
    while (from < to) {
        feed_answer a = live_feed_next(f, 1, &ev, &e);
        support_ok(a != FEED_FAILED, &e);
        if (a == FEED_NOTHING && clock_seconds() - began < 60) continue;
        if (a != FEED_GOT) fail_msg("no bar %lld", (long long)from);
        bar want = script_bar(from);
        if (ev.kind != FEED_BAR) fail_msg("%s before bar %lld", ev.text, (long long)from);
        if (memcmp(&want, &ev.bar, sizeof want) != 0) fail_msg("bar %lld is another one", (long long)from);
        from++;
    }
}
