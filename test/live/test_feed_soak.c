// Runs in: test-long
// A million bars through every feed: each comes, in order, and neither memory nor open files grow.
#include "live/exchange.h"
#include "live/feed.h"
#include "live/gauge.h"
#include "live/script.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

enum { PIECE = 1000 };

static int64_t bars_of_soak(void) {
    return support_sanitized() ? 50000 : 1000000;
}

static void check(gauge *g, int64_t n) {
    gauge_check(g, n, bars_of_soak());
}

static void write_rows(FILE *f, int64_t from, int64_t to) {
    char row[SCRIPT_ROOM];
    for (int64_t n = from; n < to; n++) {
        script_row(row, sizeof row, n, 0);
        fputs(row, f);
    }
}

static void lines_flow(void **state) {
    (void)state;
    int end[2];
    gauge g = {.name = "lines"};
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = fdopen(end[1], "w");
        fputs(script_header, f);
        write_rows(f, 0, bars_of_soak());
        fflush(f);
        _exit(0);
    }
    dup2(end[0], STDIN_FILENO);
    close(end[0]);
    close(end[1]);
    feed_options o = script_options("-");
    live_feed *f = script_open(&o);
    for (int64_t n = 0; n < bars_of_soak(); n += PIECE) {
        script_takes_bars(f, n, n + PIECE);
        check(&g, n + PIECE);
    }
    script_gives(f, "end");
    live_feed_close(f);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void file_grows(void **state) {
    (void)state;
    gauge g = {.name = "file"};
    FILE *out = fopen("grows.csv", "w");
    fputs(script_header, out);
    fflush(out);
    feed_options o = script_options("grows.csv");
    o.poll = 1e-4;
    live_feed *f = script_open(&o);
    script_gives(f, "");
    for (int64_t n = 0; n < bars_of_soak(); n += PIECE) {
        write_rows(out, n, n + PIECE + (n + PIECE == bars_of_soak()));
        fflush(out);
        int64_t from = n ? n - 1 : 0, to = n + PIECE - (n + PIECE < bars_of_soak()); // the newest is held back
        script_takes_bars(f, from, to);
        check(&g, n + PIECE);
    }
    fclose(out);
    live_feed_close(f);
}

static void files_take_turns(void **state) {
    (void)state;
    gauge g = {.name = "a file of one bar after another, 2,000 of"};
    char text[64];
    int64_t given = 0;
    script_file("turn.csv", 0, 1);
    feed_options o = script_options("turn.csv");
    o.poll = 1e-4;
    o.hold = FEED_HOLD_NONE;
    live_feed *f = script_open(&o);
    script_gives(f, "0h");
    for (int64_t n = 1; n < 2000; n++) {
        script_file("next.csv", n, n + 1);
        assert_int_equal(rename("next.csv", "turn.csv"), 0);
        snprintf(text, sizeof text, "rotated, %lld", (long long)n);
        feed_event ev;
        for (int k = 0; k < 2;) k += live_feed_next(f, 1, &ev, NULL) == FEED_GOT;
        assert_true(ev.kind == FEED_BAR && ev.bar.time == script_bar(n).time);
        given++;
        if (n == 200) check(&g, bars_of_soak() / 10);
    }
    assert_int_equal(given, 1999);
    check(&g, bars_of_soak());
    live_feed_close(f);
}

static void replay_runs(void **state) {
    (void)state;
    gauge g = {.name = "replay"};
    script_file("all.csv", 0, bars_of_soak());
    feed_options o = script_options("replay:all.csv");
    o.bars.force = ~0u;
    live_feed *f = script_open(&o);
    for (int64_t n = 0; n < bars_of_soak(); n += PIECE) {
        script_takes_bars(f, n, n + PIECE);
        check(&g, n + PIECE);
    }
    script_gives(f, "end");
    live_feed_close(f);
}

static void replace(const char *name, char *text, size_t size) {
    char path[64];
    size += (size_t)sprintf(text + size, "crc %08x\n", (unsigned)crc32(0, (const unsigned char *)text, (unsigned)size));
    support_put("x/new", text, size);
    snprintf(path, sizeof path, "x/%s", name);
    assert_int_equal(rename("x/new", path), 0);
}

// The advisor's side: bars `from` up to `to`, then its status.
static void advise(int64_t seq, int64_t from, int64_t to) {
    static char text[EXCHANGE_MOST];
    int n = sprintf(
        text, "tradewind-bars 1\nepoch 5\nseq %lld\nsymbol GOLD\nspan 300\nrows 1\n%s", (long long)seq, script_header);
    for (int64_t i = from; i < to; i++) n += script_row(text + n, SCRIPT_ROOM, i, 0);
    replace("bars_GOLD_M5.txt", text, (size_t)n);
    n = sprintf(text, "tradewind-advisor 1\nepoch 5\nseq %lld\nclock 0\n", (long long)seq);
    replace("advisor.txt", text, (size_t)n);
}

static void exchange_goes_on(void **state) {
    (void)state;
    enum { ROWS = 4 * PIECE, REPEATED = 50 };
    gauge g = {.name = "mt5"};
    assert_int_equal(mkdir("x", 0777), 0);
    feed_options o = script_options("mt5:x");
    o.bars.tz = "UTC";
    o.symbol = "GOLD";
    o.poll = 1e-4;
    live_feed *f = script_open(&o);
    feed_target t = {.id = 1, .symbol = "GOLD", .lots = 0.1};
    for (int64_t n = 0; n < bars_of_soak(); n += ROWS) {
        int64_t to = n + ROWS < bars_of_soak() ? n + ROWS : bars_of_soak();
        advise(n + 1, n > REPEATED ? n - REPEATED : 0, to);
        script_takes_bars(f, n, to);
        t.id++;
        assert_true(live_feed_put_targets(f, &t, 1, NULL));
        if (n < bars_of_soak() / 10 && to >= bars_of_soak() / 10) check(&g, bars_of_soak() / 10);
    }
    check(&g, bars_of_soak());
    live_feed_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_flow, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(file_grows, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(files_take_turns, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(replay_runs, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(exchange_goes_on, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
