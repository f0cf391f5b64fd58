// Lines of a feed: every layout of a bar file gives the bars that import reads; objects and pairs give them too.
#include "live/row_reader.h"

#include "base/file.h"
#include "data/text_file.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static row_reader *reader_of(const feed_options *o, int64_t span) {
    err e = {0};
    row_reader *r = row_reader_new(o, "stdin", "", span, &e);
    support_ok(r != NULL, &e);
    return r;
}

static bool take(row_reader *r, const char *line, feed_raw *raw) {
    return row_reader_take(r, (text){line, strlen(line)}, 7, raw);
}

static bool same(const bar *a, const bar *b) {
    return a->time == b->time && a->end == b->end && a->open == b->open && a->high == b->high && a->low == b->low &&
           a->close == b->close && a->volume == b->volume && a->spread == b->spread;
}

static const bar *bar_at(const bars_list *l, const feed_event *ev) {
    for (int i = 0; i < l->count; i++)
        for (int64_t k = 0; k < l->item[i].count; k++)
            if (!strcmp(l->item[i].symbol, ev->symbol) && l->item[i].bar[k].time == ev->bar.time)
                return &l->item[i].bar[k];
    return NULL;
}

// Reads a sample line by line. Rows that import leaves out by looking at their neighbours are more than it has.
static int compare_sample(const char *path, const char *tz) {
    feed_options o = {.bars = {.tz = tz, .keep_coarse = true, .force = ~0u}};
    bars_list l;
    text_file t;
    char *owned = NULL;
    err e = {0};
    if (!bars_read_list(&l, path, &o.bars, &e)) return 0;
    support_ok(text_file_open(&t, path, SIZE_MAX, &e), &e);
    text all = {t.data, t.size}, line;
    support_ok(bars_text_decode(&all, path, &owned, &e), &e);
    row_reader *r = reader_of(&o, l.item[0].span);
    int64_t found = 0, number = 0, total = 0;
    feed_raw raw;
    while (bars_text_line(&all, &line)) {
        if (!row_reader_take(r, line, ++number, &raw) || raw.event.kind != FEED_BAR) continue;
        const bar *want = bar_at(&l, &raw.event);
        if (!want) continue;
        if (same(want, &raw.event.bar))
            found++;
        else if (l.item[0].report.tally[BARS_DUPLICATE].count + l.item[0].report.tally[BARS_CONFLICT].count == 0)
            fail_msg("%s:%lld: is another bar than import reads", path, (long long)number);
    }
    for (int i = 0; i < l.count; i++) total += l.item[i].count;
    if (found < total) fail_msg("%s: %lld of %lld bars", path, (long long)found, (long long)total);
    row_reader_free(r);
    bars_list_done(&l);
    free(owned);
    text_file_close(&t);
    return 1;
}

static void samples_are_read_as_import_reads_them(void **state) {
    (void)state;
    DIR *d = opendir(TEST_DIR "/data/samples/bars");
    assert_non_null(d);
    int compared = 0;
    for (struct dirent *f; (f = readdir(d));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", TEST_DIR "/data/samples/bars", f->d_name);
        if (*f->d_name != '.') compared += compare_sample(path, "UTC");
    }
    closedir(d);
    if (compared < 10) fail_msg("%d samples were compared", compared);
}

static void is_bar(const char *line, row_reader *r, const char *symbol, int64_t span, feed_state state) {
    feed_raw raw;
    if (!take(r, line, &raw)) fail_msg("%s: nothing", line);
    if (raw.event.kind != FEED_BAR) fail_msg("%s: %s", line, raw.event.text);
    const bar want = {.time = 1704215100,
        .end = 1704215100 + span,
        .open = 1.5,
        .high = 2.25,
        .low = 1.25,
        .close = 2,
        .volume = 17,
        .spread = 3};
    if (!same(&want, &raw.event.bar)) fail_msg("%s: is another bar", line);
    assert_string_equal(raw.event.symbol, symbol);
    assert_int_equal(raw.event.span, span);
    assert_int_equal(raw.state, state);
}

static void objects_and_pairs_are_rows(void **state) {
    (void)state;
    feed_options o = {0};
    row_reader *r = reader_of(&o, 300);
    is_bar("{\"time\": 1704215100, \"open\": 1.5, \"high\": 2.25, \"low\": 1.25, \"close\": 2, \"volume\": 17, "
           "\"spread\": 3}",
        r, "", 300, FEED_AS_TOLD);
    is_bar("{\"symbol\": \"GC=F\", \"timeframe\": \"M15\", \"time\": \"2024-01-02T17:05:00Z\", \"open\": \"1.5\", "
           "\"high\": \"2.25\", \"low\": 1.25, \"close\": 2.0, \"tick_volume\": 17, \"spread\": 3, \"closed\": true}",
        r, "GC=F", 900, FEED_CLOSED);
    is_bar(
        "{\"x\": false, \"o\": {\"deep\": 1}, \"time\": 1704215100000, \"open\": 1.5, \"high\": 2.25, \"low\": 1.25, "
        "\"close\": 2, \"volume\": 17, \"spread\": 3}",
        r, "", 300, FEED_UNFINISHED);
    is_bar("time=2024-01-02T17:05:00 open=1.5 high=2.25 low=1.25 close=2 volume=17 spread=3", r, "", 300, FEED_AS_TOLD);
    is_bar("symbol=EURUSD;time=\"2024-01-02 "
           "17:05\";frame=1h;open=1.5;high=2.25;low=1.25;close=2;volume=17;spread=3;closed=1",
        r, "EURUSD", 3600, FEED_CLOSED);
    row_reader_free(r);
    o.bars.columns = "time=t,open=o,high=h,low=l,close=c,volume=v,spread=s";
    r = reader_of(&o, 300);
    is_bar("{\"t\": 1704215100, \"o\": 1.5, \"h\": 2.25, \"l\": 1.25, \"c\": 2, \"v\": 17, \"s\": 3}", r, "", 300,
        FEED_AS_TOLD);
    row_reader_free(r);
}

static void headers_are_optional(void **state) {
    (void)state;
    feed_options o = {.bars = {.tz = "mt5"}};
    row_reader *r = reader_of(&o, 300);
    feed_raw raw;
    is_bar("2024.01.02\t19:05:00\t1.5\t2.25\t1.25\t2\t17\t0\t3", r, "", 300, FEED_AS_TOLD);
    row_reader_reset(r);
    const char *header = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>";
    assert_false(take(r, header, &raw));
    is_bar("2024.01.02\t19:05:00\t1.5\t2.25\t1.25\t2\t17\t0\t3", r, "", 300, FEED_AS_TOLD);
    assert_false(take(r, header, &raw)); // once more, as where a file begins anew
    assert_false(take(r, "", &raw));
    assert_true(take(r, "2024.01.02\t19:10:00\t1.5\t2.25\t1.25\t2\t17\t0\t3", &raw));
    assert_true(raw.event.local == raw.event.bar.time + 7200);
    row_reader_free(r);
}

static void quotes_are_read(void **state) {
    (void)state;
    feed_options o = {0};
    row_reader *r = reader_of(&o, 300);
    feed_raw raw;
    assert_true(take(r, "{\"symbol\":\"EURUSD\",\"time\":1704215101,\"bid\":1.0951,\"ask\":1.0953}", &raw));
    assert_true(raw.event.kind == FEED_QUOTE && raw.event.bid == 1.0951 && raw.event.ask == 1.0953);
    assert_true(raw.event.bar.time == 1704215101 && !strcmp(raw.event.symbol, "EURUSD"));
    assert_true(take(r, "{\"symbol\":\"EURUSD\",\"time\":1704215101,\"bid\":1.0951,\"ask\":1.09}", &raw));
    assert_true(raw.event.kind == FEED_NOTE && raw.event.note == FEED_UNREADABLE);
    assert_false(take(r, "time,bid,ask", &raw));
    assert_true(take(r, "1704215101,1.5,1.75", &raw) && raw.event.kind == FEED_QUOTE);
    assert_false(take(r, "time,bid,ask", &raw));
    row_reader_free(r);
}

// A price that no account can hold is none: such a line is told, and a bar with it has no quote.
static void absurd_quotes_are_none(void **state) {
    (void)state;
    static const char *const prices[] = {
        "\"bid\":1.5,\"ask\":1e11", "\"bid\":1e-9,\"ask\":1.5", "\"bid\":0,\"ask\":1.5", "\"bid\":1e-8,\"ask\":9e10"};
    feed_options o = {0};
    row_reader *r = reader_of(&o, 300);
    feed_raw raw;
    for (int i = 0; i < 4; i++) {
        char line[200];
        bool ok = i == 3;
        snprintf(line, sizeof line, "{\"time\":1704215101,%s}", prices[i]);
        assert_true(take(r, line, &raw));
        assert_int_equal(raw.event.kind, ok ? FEED_QUOTE : FEED_NOTE);
        if (!ok) assert_non_null(strstr(raw.event.text, "stdin:7: bid and ask are no prices of 1e-8 to 9e10"));
        snprintf(line, sizeof line, "{\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":2,%s}", prices[i]);
        assert_true(take(r, line, &raw) && raw.event.kind == FEED_BAR);
        assert_true((raw.event.bid > 0) == ok && (raw.event.ask > 0) == ok);
    }
    row_reader_free(r);
}

// The order of a date is found in the first row that shows it; rows before it are refused, not guessed.
static void order_of_dates_is_not_guessed(void **state) {
    (void)state;
    feed_options o = {0};
    row_reader *r = reader_of(&o, 86400);
    feed_raw raw;
    assert_false(take(r, "Date,Open,High,Low,Close,Volume", &raw));
    assert_true(take(r, "03/04/2024,1,2,1,2,5", &raw) && raw.event.kind == FEED_NOTE);
    assert_non_null(strstr(raw.event.text, "stdin:7: "));
    assert_true(take(r, "13/04/2024,1,2,1,2,5", &raw) && raw.event.kind == FEED_BAR);
    assert_true(take(r, "03/04/2024,1,2,1,2,5", &raw) && raw.event.bar.time == when_day(2024, 4, 3) * WHEN_DAY);
    row_reader_free(r);
}

static void refused(row_reader *r, const char *line, const char *why) {
    feed_raw raw;
    if (!take(r, line, &raw)) fail_msg("%s: nothing", line);
    assert_int_equal(raw.event.kind, FEED_NOTE);
    assert_int_equal(raw.event.note, FEED_UNREADABLE);
    if (!strstr(raw.event.text, why)) fail_msg("%s: says '%s', not '%s'", line, raw.event.text, why);
}

static void bad_lines_are_named(void **state) {
    (void)state;
    feed_options o = {0};
    row_reader *r = reader_of(&o, 0);
    feed_raw raw;
    refused(r, "{\"time\": 1704215100", "stdin:7: ");
    refused(r, "{}", "stdin:7: ");
    refused(r, "{\"time\": 1704215100}", "stdin:7: has no column named open");
    refused(r, "{\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":2}", "does not say its span");
    refused(
        r, "{\"frame\":\"5x\",\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":2}", "its span is none");
    refused(r, "{\"frame\":\"5m\",\"symbol\":\"a b\",\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":2}",
        "its symbol is no name");
    refused(r, "{\"frame\":\"5m\",\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":-2}", "zero or");
    refused(r, "{\"frame\":\"5m\",\"time\":1704215100,\"open\":1,\"high\":2,\"low\":1,\"close\":3}", "high or low");
    refused(
        r, "{\"frame\":\"5m\",\"time\":1704215100,\"open\":1,\"high\":2,\"low\":null,\"close\":2}", "low is missing");
    refused(r, "time=\"2024 open=1", "a quote is not closed");
    refused(r, "hello", "has no column named open");
    assert_false(take(r, "time,open,high,low,close,frame", &raw));
    refused(r, "1704215100,1,2,1,inf,5m", "close 'inf' is not a finite number");
    refused(r, "1704215100,1,2,1", "has 4 columns, not 6");
    refused(r, "2024-01-02 10:00:00-05:00,1,2,1,2,4h", "name its zone");
    refused(r, "\xff\xc3\xa4\x1b[1m\xc2\x9b\xc3,1,2,1,2,5m", "time '?\xc3\xa4 [1m ?' is not a time");
    assert_true(take(r, "2024-01-02 10:00:00-05:00,1,2,1,2,1h", &raw) && raw.event.kind == FEED_BAR);
    row_reader_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_as_import_reads_them),
        cmocka_unit_test(objects_and_pairs_are_rows),
        cmocka_unit_test(headers_are_optional),
        cmocka_unit_test(quotes_are_read),
        cmocka_unit_test(absurd_quotes_are_none),
        cmocka_unit_test(order_of_dates_is_not_guessed),
        cmocka_unit_test(bad_lines_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
