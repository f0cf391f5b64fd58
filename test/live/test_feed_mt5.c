// The exchange with a MetaTrader 5 expert advisor, whose side is played here: also badly, with documents that are torn,
// late, repeated and of another run.
#include "live/exchange.h"
#include "live/feed.h"
#include "live/script.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

// The advisor.
typedef struct {
    int64_t epoch, seq;
    int64_t clock;    // of the server, ahead of UTC
    const char *more; // lines of its status
} advisor;

// Replaces a document, as MetaTrader does.
static void replace(const char *name, const char *text) {
    char temp[64];
    snprintf(temp, sizeof temp, "x/%s.tmp", name);
    support_put(temp, text, strlen(text));
    char path[64];
    snprintf(path, sizeof path, "x/%s", name);
    assert_int_equal(rename(temp, path), 0);
}

static void add_sum(char *text, size_t room) {
    size_t n = strlen(text);
    snprintf(text + n, room - n, "crc %08x\n", (unsigned)crc32(0, (const unsigned char *)text, (unsigned)n));
}

static void write_status(advisor *a) {
    char text[1024];
    snprintf(text, sizeof text, "tradewind-advisor 1\nepoch %lld\nseq %lld\nclock %lld\naccount demo\n%s",
        (long long)a->epoch, (long long)++a->seq, (long long)a->clock, a->more ? a->more : "");
    add_sum(text, sizeof text);
    replace("advisor.txt", text);
}

// A document of bars `from` up to `to`, in `text`. Rows have the server's time.
static void bars_text(const advisor *a, char *text, size_t room, int64_t seq, int64_t from, int64_t to) {
    int n = snprintf(text, room, "tradewind-bars 1\nepoch %lld\nseq %lld\nsymbol GOLD\nspan 300\nrows %lld\n%s",
        (long long)a->epoch, (long long)seq, (long long)(to - from), script_header);
    for (int64_t i = from; i < to; i++) {
        char row[SCRIPT_ROOM];
        script_row(row, sizeof row, i, 0);
        n += snprintf(text + n, room - (size_t)n, "%lld%s", (long long)(script_bar(i).time + a->clock), row + 10);
    }
    add_sum(text, room);
}

static void write_bars(advisor *a, int64_t from, int64_t to) {
    static char text[1 << 16];
    bars_text(a, text, sizeof text, ++a->seq, from, to);
    replace("bars_GOLD_M5.txt", text);
    write_status(a);
}

static live_feed *open_exchange(const char *tz) {
    static feed_options o;
    o = script_options("mt5:x");
    o.bars.tz = tz;
    mkdir("x", 0777);
    return script_open(&o);
}

static const advisor usual = {.epoch = 1700000000000, .clock = 7200};

static void bars_come_with_their_history(void **state) {
    (void)state;
    advisor a = usual;
    live_feed *f = open_exchange("UTC+2");
    script_gives(f, "");
    write_bars(&a, 0, 4);
    script_gives(f, "GOLD 0h, GOLD 1h, GOLD 2h, GOLD 3h");
    write_bars(&a, 1, 5);
    script_gives(f, "GOLD 4");
    for (int n = 5; n < 30; n++) {
        char log[32];
        write_bars(&a, n - 3, n + 1);
        snprintf(log, sizeof log, "GOLD %d", n);
        script_gives(f, log);
    }
    live_feed_close(f);
}

static void bars_are_those_of_the_server(void **state) {
    (void)state;
    advisor a = usual;
    feed_event ev;
    live_feed *f = open_exchange("UTC+2");
    write_bars(&a, 7, 8);
    feed_answer got;
    while ((got = live_feed_next(f, 0.2, &ev, NULL)) == FEED_NOTHING) continue;
    bar want = script_bar(7);
    assert_true(got == FEED_GOT && ev.kind == FEED_BAR);
    assert_memory_equal(&ev.bar, &want, sizeof want);
    assert_true(ev.local == want.time + 7200 && ev.span == 300 && !strcmp(ev.symbol, "GOLD"));
    live_feed_close(f);
}

// Every way of cutting or changing a document is seen, and the whole one behind it is read.
static void torn_documents_are_read_again(void **state) {
    (void)state;
    static char text[1 << 16], part[1 << 16];
    char log[64];
    advisor a = usual;
    dice d = {.seed = 5};
    live_feed *f = open_exchange("UTC+2");
    write_bars(&a, 0, 1);
    script_gives(f, "GOLD 0h");
    for (int n = 1; n < 25; n++) {
        bars_text(&a, text, sizeof text, ++a.seq, n - 1, n + 1);
        size_t size = strlen(text), cut = (size_t)dice_below(&d, size - 1);
        memcpy(part, text, size + 1);
        if (n % 2) part[cut] = 0;
        if (n % 2 == 0) part[cut] ^= 1;
        replace("bars_GOLD_M5.txt", part);
        write_status(&a);
        script_gives(f, "torn");
        replace("bars_GOLD_M5.txt", text);
        snprintf(log, sizeof log, "GOLD %d", n);
        script_gives(f, log);
    }
    // A status that is torn, and again whole.
    replace("advisor.txt", "tradewind-advisor 1\nepoch 17");
    script_gives(f, "torn");
    write_bars(&a, 24, 26);
    script_gives(f, "GOLD 25");
    live_feed_close(f);
}

static void late_and_repeated_documents_change_nothing(void **state) {
    (void)state;
    static char old[1 << 16], same[1 << 16];
    advisor a = usual;
    live_feed *f = open_exchange("UTC+2");
    write_bars(&a, 0, 3);
    script_gives(f, "GOLD 0h, GOLD 1h, GOLD 2h");
    bars_text(&a, old, sizeof old, a.seq - 2, 0, 9); // late: a number that is over
    replace("bars_GOLD_M5.txt", old);
    write_status(&a);
    script_gives(f, "");
    bars_text(&a, same, sizeof same, ++a.seq, 0, 4);
    replace("bars_GOLD_M5.txt", same);
    write_status(&a);
    script_gives(f, "GOLD 3");
    for (int i = 0; i < 3; i++) { // the same bytes in a new file
        replace("bars_GOLD_M5.txt", same);
        write_status(&a);
        script_gives(f, "");
    }
    advisor before = a;
    before.epoch--; // another run of it, that was over
    before.seq += 100;
    bars_text(&before, old, sizeof old, before.seq, 0, 9);
    replace("bars_GOLD_M5.txt", old);
    write_status(&before);
    script_gives(f, "");
    advisor next = {.epoch = a.epoch + 1, .clock = a.clock}; // begins anew, with numbers from 1
    write_bars(&next, 2, 6);
    script_gives(f, "GOLD 4, GOLD 5");
    live_feed_close(f);
}

static void revised_bars_are_told(void **state) {
    (void)state;
    static char text[1 << 16];
    advisor a = usual;
    live_feed *f = open_exchange("UTC+2");
    write_bars(&a, 0, 3);
    script_gives(f, "GOLD 0h, GOLD 1h, GOLD 2h");
    bars_text(&a, text, sizeof text, ++a.seq, 0, 3);
    text[strlen(text) - 15] = '9'; // the spread of the last row
    *strstr(text, "crc ") = 0;
    add_sum(text, sizeof text);
    replace("bars_GOLD_M5.txt", text);
    write_status(&a);
    script_gives(f, "revised 2");
    live_feed_close(f);
}

static void clock_of_the_server_is_checked(void **state) {
    (void)state;
    advisor a = usual;
    feed_event ev;
    err e = {0};
    live_feed *f = open_exchange("UTC+3");
    write_status(&a);
    feed_answer got;
    while ((got = live_feed_next(f, 0.2, &ev, &e)) == FEED_NOTHING) continue;
    assert_int_equal(got, FEED_FAILED);
    assert_non_null(strstr(e.text, "the server's clock is +2 h from UTC, that of the zone UTC+3 +3 h"));
    live_feed_close(f);
    // Later it is a note.
    f = open_exchange("UTC+2");
    script_gives(f, "");
    a.clock += 3600;
    write_status(&a);
    script_gives(f, "unreadable");
    write_status(&a);
    script_gives(f, "");
    live_feed_close(f);
}

static void refusals_are_told_once(void **state) {
    (void)state;
    advisor a = usual;
    live_feed *f = open_exchange("UTC+2");
    a.more = "refused 3 GOLD of before\n";
    write_status(&a);
    script_gives(f, "");
    a.more = "refused 4 GOLD no money\nrefused 3 GOLD of before\n";
    write_status(&a);
    write_status(&a);
    script_gives(f, "rejected");
    write_status(&a);
    script_gives(f, "");
    live_feed_close(f);
}

static int64_t field(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) fail_msg("no %s in %s", key, text);
    return strtoll(at + strlen(key), NULL, 10);
}

// The advisor's reading.
static void read_targets(char *text, size_t room, exchange_head *h) {
    FILE *f = fopen("x/targets.txt", "r");
    err e = {0};
    assert_non_null(f);
    size_t n = fread(text, 1, room - 1, f);
    fclose(f);
    text[n] = 0;
    support_ok(exchange_open(h, "targets", text, n, &e), &e);
}

static void targets_are_replaced_whole(void **state) {
    (void)state;
    char text[4096];
    exchange_head h, again;
    err e = {0};
    live_feed *f = open_exchange("UTC+2");
    assert_true(live_feed_takes_targets(f));
    feed_target t[2] = {{.id = 7, .symbol = "GOLD", .lots = -0.25, .stop = 2010.5, .decided = 100, .until = 400},
        {.id = 8, .symbol = "EURUSD", .lots = 1}};
    support_ok(live_feed_put_targets(f, t, 2, &e), &e);
    read_targets(text, sizeof text, &h);
    assert_non_null(strstr(text, "\ntarget 7 GOLD -0.25000000 2010.5 0 100 400\n"));
    assert_non_null(strstr(text, "\ntarget 8 EURUSD 1.00000000 0 0 0 0\n"));
    assert_true(field(text, "\nwritten ") >= time(NULL) - 60);
    t[0].lots = 0;
    t[0].id = 9;
    support_ok(live_feed_put_targets(f, t, 2, &e), &e);
    read_targets(text, sizeof text, &again);
    assert_true(again.epoch == h.epoch && again.seq > h.seq && strstr(text, "\ntarget 9 GOLD 0.00000000 "));
    assert_true(access("x/targets.txt.tmp", F_OK) != 0);
    // A folder that is gone is an error, and no end.
    assert_int_equal(rename("x", "y"), 0);
    assert_int_equal(rmdir("x") == 0, 0);
    support_ok(live_feed_put_targets(f, t, 2, &e), &e); // the folder itself is held
    live_feed_close(f);
}

static void position_without_a_symbol_is_of_the_only_one(void **state) {
    (void)state;
    char text[4096];
    exchange_head h;
    advisor a = usual;
    err e = {0};
    feed_target t = {.id = 1, .lots = 1};
    live_feed *f = open_exchange("UTC+2");
    support_ok(live_feed_put_targets(f, &t, 1, &e), &e); // it waits, as nothing is known yet
    script_gives(f, "");
    assert_true(access("x/targets.txt", F_OK) != 0);
    write_bars(&a, 0, 2);
    script_gives(f, "GOLD 0h, GOLD 1h");
    script_gives(f, "");
    read_targets(text, sizeof text, &h);
    assert_non_null(strstr(text, "\ntarget 1 GOLD 1.0"));
    live_feed_close(f);
}

static void silence_needs_no_file(void **state) {
    (void)state;
    exchange_bars b;
    exchange_status s;
    err e = {0};
    static const char *const bad[] = {
        "", "crc 00000000\n", "tradewind-bars 1\ncrc zzzzzzzz\n", "crc 0000000", "tradewind-bars 2\nepoch 1\nseq 1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", bad[i]);
        assert_false(exchange_bars_open(&b, text, strlen(text), &e));
        add_sum(text, sizeof text);
        assert_false(exchange_bars_open(&b, text, strlen(text), &e));
        assert_false(exchange_status_open(&s, text, strlen(text), &e));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bars_come_with_their_history, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(bars_are_those_of_the_server, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(torn_documents_are_read_again, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(late_and_repeated_documents_change_nothing, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(revised_bars_are_told, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(clock_of_the_server_is_checked, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(refusals_are_told_once, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(targets_are_replaced_whole, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(position_without_a_symbol_is_of_the_only_one, support_enter, support_leave),
        cmocka_unit_test(silence_needs_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
