// Feeds of lines, growing files and replays, as a session sees them.
#include "live/feed.h"

#include "base/clock.h"
#include "live/script.h"
#include "support.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// Standard input becomes a pipe; returns its other end.
static int pipe_input(void) {
    int end[2];
    assert_int_equal(pipe(end), 0);
    assert_int_equal(dup2(end[0], STDIN_FILENO), STDIN_FILENO);
    close(end[0]);
    return end[1];
}

static void put_text(int fd, const char *text) {
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void put_row(int fd, int64_t n) {
    char row[SCRIPT_ROOM];
    script_row(row, sizeof row, n, 0);
    put_text(fd, row);
}

static void lines_come_when_they_end(void **state) {
    (void)state;
    int in = pipe_input();
    feed_options o = script_options("-");
    live_feed *f = script_open(&o);
    assert_int_equal(live_feed_descriptor(f), STDIN_FILENO);
    put_text(in, script_header);
    script_gives(f, "");
    put_row(in, 0);
    script_gives(f, "0");
    put_text(in, "1699920300,2010,2020,2000,2015");
    script_gives(f, "");
    put_text(in, ",5,1\r\n{\"time\":1699920600,\"open\":5,\"high\":6,\"low\":5,\"close\":6}\n");
    script_gives(f, "1, 2");
    put_text(in, "nonsense\n");
    put_row(in, 3);
    close(in);
    script_gives(f, "unreadable, 3, end");
    feed_event ev;
    assert_int_equal(live_feed_next(f, 1, &ev, NULL), FEED_OVER);
    assert_int_equal(live_feed_descriptor(f), -1);
    live_feed_close(f);
}

static void last_line_needs_no_newline(void **state) {
    (void)state;
    int in = pipe_input();
    feed_options o = script_options("-");
    live_feed *f = script_open(&o);
    put_text(in, "time=1699920000 open=5 high=6 low=5 close=6");
    close(in);
    script_gives(f, "0, end");
    live_feed_close(f);
}

static void endless_lines_take_no_memory(void **state) {
    (void)state;
    char junk[FEED_LINE_MOST];
    memset(junk, 'x', sizeof junk);
    int in = pipe_input();
    feed_options o = script_options("-");
    live_feed *f = script_open(&o);
    put_text(in, script_header);
    put_row(in, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write(in, junk, sizeof junk), (ssize_t)sizeof junk);
        script_gives(f, i ? "" : "0");
    }
    put_text(in, "\n");
    put_row(in, 1);
    script_gives(f, "unreadable, 1");
    close(in);
    live_feed_close(f);
}

static void no_call_waits_beyond_its_time(void **state) {
    (void)state;
    int in = pipe_input();
    feed_options o = script_options("-");
    feed_event ev;
    live_feed *f = script_open(&o);
    double began = clock_seconds();
    assert_int_equal(live_feed_next(f, 0, &ev, NULL), FEED_NOTHING);
    assert_int_equal(live_feed_next(f, 0.2, &ev, NULL), FEED_NOTHING);
    assert_true(clock_seconds() - began >= 0.2);
    close(in);
    live_feed_close(f);
}

static void utf16_is_read(void **state) {
    (void)state;
    int in = pipe_input();
    feed_options o = script_options("-");
    live_feed *f = script_open(&o);
    char row[SCRIPT_ROOM];
    script_row(row, sizeof row, 0, 0);
    put_text(in, "\xFF\xFE");
    for (const char *t = script_header; *t; t++) assert_int_equal(write(in, (char[]){*t, 0}, 2), 2);
    size_t n = strlen(row);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(write(in, row + i, 1), 1);
        if (i % 16 == 0) script_gives(f, ""); // half a character
        assert_int_equal(write(in, (char[]){0}, 1), 1);
    }
    script_gives(f, "0");
    close(in);
    live_feed_close(f);
}

// Files

static void growing_file_holds_its_newest_row(void **state) {
    (void)state;
    char row[SCRIPT_ROOM];
    script_file("g.csv", 0, 3);
    feed_options o = script_options("g.csv");
    live_feed *f = script_open(&o);
    script_gives(f, "0h, 1h");
    script_row(row, sizeof row, 3, 0);
    script_append("g.csv", row);
    script_gives(f, "2");
    row[20] = 0;
    script_row(row, sizeof row, 4, 0);
    script_append("g.csv", (char[]){row[0], row[1], 0}); // half a line
    script_gives(f, "");
    script_append("g.csv", row + 2);
    script_gives(f, "3");
    live_feed_close(f);
}

// A program that appends each bar when it is over: no bar waits for the next one.
static void closed_rows_come_at_once(void **state) {
    (void)state;
    char row[SCRIPT_ROOM];
    script_file("c.csv", 0, 2);
    feed_options o = script_options("c.csv");
    o.clock = FEED_CLOCK_MACHINE;
    live_feed *f = script_open(&o);
    script_gives(f, "0h, 1h");
    script_row(row, sizeof row, 2, 0);
    script_append("c.csv", row);
    script_gives(f, "2");
    live_feed_close(f);
}

// Writes bytes over others in place.
static void overwrite(const char *path, off_t at, const char *text) {
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
    close(fd);
}

static void last_row_may_be_written_over(void **state) {
    (void)state;
    char row[SCRIPT_ROOM];
    struct stat st;
    feed_event ev;
    script_file("o.csv", 0, 2);
    feed_options o = script_options("o.csv");
    live_feed *f = script_open(&o);
    script_gives(f, "0h");
    assert_int_equal(stat("o.csv", &st), 0);
    int n = script_row(row, sizeof row, 1, 0);
    for (double off = -0.2; off < 0.3; off += 0.1) {
        script_row(row, sizeof row, 1, off);
        overwrite("o.csv", st.st_size - n, row);
        assert_int_equal(truncate("o.csv", st.st_size - n + (off_t)strlen(row)), 0);
        script_gives(f, "");
    }
    script_row(row, sizeof row, 2, 0);
    script_append("o.csv", row);
    while (live_feed_next(f, 0.1, &ev, NULL) != FEED_GOT) continue;
    assert_true(ev.kind == FEED_BAR && fabs(ev.bar.close - script_bar(1).close - 0.2) < 1e-9);
    // A row before the newest that is written over was given already.
    int first = script_row(row, sizeof row, 0, 0);
    overwrite("o.csv", (off_t)strlen(script_header) + first - 2, "4");
    script_gives(f, "revised 0");
    live_feed_close(f);
}

static void shortened_file_is_read_again(void **state) {
    (void)state;
    script_file("t.csv", 0, 200);
    feed_options o = script_options("t.csv");
    char all[4096];
    live_feed *f = script_open(&o);
    script_take(f, 0.1, all, sizeof all);
    script_file("t.csv", 100, 202); // in place, with the last rows and two more
    script_gives(f, "truncated, 199, 200");
    live_feed_close(f);
}

static void other_file_in_its_place_is_noticed(void **state) {
    (void)state;
    char row[SCRIPT_ROOM];
    script_file("r.csv", 0, 5);
    feed_options o = script_options("r.csv");
    live_feed *f = script_open(&o);
    script_gives(f, "0h, 1h, 2h, 3h");
    script_row(row, sizeof row, 5, 0);
    script_append("r.csv", row); // the last words of the old file are not lost
    assert_int_equal(rename("r.csv", "r.csv.1"), 0);
    script_file("new.csv", 6, 8);
    assert_int_equal(rename("new.csv", "r.csv"), 0);
    char all[512];
    script_take(f, 0.2, all, sizeof all);
    const char *end = strstr(all, "4");
    assert_true(end && strstr(end, "rotated, 5, 6"));
    assert_int_equal(unlink("r.csv"), 0);
    script_gives(f, "absent");
    script_file("r.csv", 6, 9);
    script_gives(f, "back, 7");
    live_feed_close(f);
}

static void several_files_come_in_order(void **state) {
    (void)state;
    static const int64_t spans[] = {300, 900};
    char row[SCRIPT_ROOM];
    script_file("fast.csv", 0, 10);
    FILE *slow = fopen("slow.csv", "w");
    fputs(script_header, slow);
    for (int n = 0; n < 12; n += 3) {
        script_row(row, sizeof row, n, 0);
        fputs(row, slow);
    }
    fclose(slow);
    feed_options o = script_options("XAU=fast.csv,XAU=slow.csv");
    o.spans = spans;
    o.span_count = 2;
    live_feed *f = script_open(&o);
    // At the same moment the slow bar comes first; the newest of each is held.
    script_gives(f, "XAU 0h, XAU 1h, XAU 0h, XAU 2h, XAU 3h, XAU 4h, XAU 3h, XAU 5h, XAU 6h, XAU 7h, XAU 6h, XAU 8h");
    assert_int_equal(live_feed_series(f), 2);
    live_feed_close(f);
    // By the machine's clock all have closed; a slow bar comes with the fast one that closes with it.
    o.clock = FEED_CLOCK_MACHINE;
    f = script_open(&o);
    script_gives(f, "XAU 0h, XAU 1h, XAU 0h, XAU 2h, XAU 3h, XAU 4h, XAU 3h, XAU 5h, XAU 6h, XAU 7h, XAU 6h, XAU 8h, "
                    "XAU 9h, XAU 9h");
    live_feed_close(f);
}

static void files_that_are_none_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *why;
    } all[] = {{"absent.csv", "absent.csv: "}, {"/", "is no regular file"}, {"a.csv,,b.csv", "a file without a name"},
        {"replay:absent.csv", "absent.csv: "}, {"replay:h.csv@0", "a speed of 0"}, {"mt5:absent", "absent: "},
        {"mt5:", "names no folder"}};
    script_file("a.csv", 0, 3);
    script_file("h.csv", 0, 3);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        err e = {0};
        feed_options o = script_options(all[i].from);
        assert_null(live_feed_open(&o, &e));
        if (!strstr(e.text, all[i].why)) fail_msg("%s: says '%s'", all[i].from, e.text);
        assert_int_equal(e.kind, ERR_INPUT);
    }
}

// Replays

static void replay_gives_the_bars_of_its_file(void **state) {
    (void)state;
    script_file("p.csv", 0, 5000);
    feed_options o = script_options("replay:p.csv");
    live_feed *f = script_open(&o);
    script_takes_bars(f, 0, 5000);
    assert_true(live_feed_now(f) == (double)script_bar(4999).end);
    script_gives(f, "end");
    live_feed_close(f);
}

static void replay_has_a_speed(void **state) {
    (void)state;
    feed_event ev;
    script_file("s.csv", 0, 4);
    feed_options o = script_options("replay:s.csv@1000");
    live_feed *f = script_open(&o);
    double began = clock_seconds();
    script_takes_bars(f, 0, 1);
    assert_int_equal(live_feed_next(f, 0, &ev, NULL), FEED_NOTHING);
    script_takes_bars(f, 1, 4);
    assert_true(clock_seconds() - began >= 0.9 - 1e-3); // three bars of 0.3 s
    live_feed_close(f);
}

static void replays_of_other_bars_are_refused(void **state) {
    (void)state;
    static const int64_t hour[] = {3600};
    err e = {0};
    script_file("q.csv", 0, 100);
    feed_options o = script_options("replay:q.csv");
    o.spans = hour;
    assert_null(live_feed_open(&o, &e));
    assert_non_null(strstr(e.text, "the first are of 5 min, and 1 h is wanted"));
    o = script_options("replay:A=q.csv,A=q.csv");
    assert_null(live_feed_open(&o, &e));
    assert_non_null(strstr(e.text, "its symbol and span are those of another file"));
    o = script_options("replay:A=q.csv,B=q.csv");
    live_feed *f = script_open(&o);
    for (int n = 0; n < 4; n++) {
        feed_event ev;
        assert_int_equal(live_feed_next(f, 0, &ev, NULL), FEED_GOT);
        assert_string_equal(ev.symbol, n % 2 ? "B" : "A");
        assert_int_equal(ev.bar.time, script_bar(n / 2).time);
    }
    live_feed_close(f);
}

static void names_are_known(void **state) {
    (void)state;
    assert_true(live_feed_is_named("-") && live_feed_is_named("replay:x") && live_feed_is_named("mt5:x"));
    assert_false(live_feed_is_named("x.csv") || live_feed_is_named("-x.csv") || live_feed_is_named("./replay:x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_when_they_end),
        cmocka_unit_test(last_line_needs_no_newline),
        cmocka_unit_test(endless_lines_take_no_memory),
        cmocka_unit_test(no_call_waits_beyond_its_time),
        cmocka_unit_test(utf16_is_read),
        cmocka_unit_test_setup_teardown(growing_file_holds_its_newest_row, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(closed_rows_come_at_once, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(last_row_may_be_written_over, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(shortened_file_is_read_again, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(other_file_in_its_place_is_noticed, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(several_files_come_in_order, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(files_that_are_none_are_refused, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(replay_gives_the_bars_of_its_file, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(replay_has_a_speed, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(replays_of_other_bars_are_refused, support_enter, support_leave),
        cmocka_unit_test(names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
