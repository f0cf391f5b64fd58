// tradewind live with fills at quotes (live.fills=quote): an order fills at the first bid or ask behind the close that
// it was decided at, whether these come as columns of the bars or as lines of their own; without any, at the next open.
#include "cli/program.h"
#include "data/walk.h"
#include "live/kept.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 900, SPAN = 300 };

// Quotes lie 1 beside the close, and so off every open: half a spread of a quarter around it.
static const double aside = 1, half = 0.25;

static const char *const free_of_limits =
    "live.late=none live.stale=none live.max_loss=none live.max_day_loss=none live.max_exposure=none "
    "live.max_orders=none live.outside_share=none";

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("train.csv", N, SPAN, 4);
    walk_put("b.csv", N, SPAN, 5);
    put_text("run.yaml",
        "data: {bars: {fast: train.csv}, vector: false, windows: {fast: 8}, features: {fast: [return, body]},\n"
        "  label: {kind: barrier, up: 1.5, down: 1, limit: 6}}\nmodel: {kind: mlp, widths: '8'}\n"
        "train: {epochs: 1, batch_size: 128}\nrun: {dir: run}\nsignal: {threshold: 0.2}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
    return 0;
}

static void put_bar(FILE *f, const bar *b, const char *more) {
    fprintf(f, "{\"time\": %lld, \"open\": %.9g, \"high\": %.9g, \"low\": %.9g, \"close\": %.9g, \"volume\": 1%s}\n",
        (long long)b->time, b->open, b->high, b->low, b->close, more);
}

// Lines of bars with quotes of their own behind each: one of before its close, and two that come behind it.
static void put_lines(const char *path) {
    bar *all = walk_bars(N, SPAN, 5);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (const bar *b = all; b < all + N; b++) {
        put_bar(f, b, "");
        for (int k = -1; k < 2; k++)
            fprintf(f, "{\"time\": %lld, \"bid\": %.9g, \"ask\": %.9g}\n", (long long)(b->end + 7 * k),
                b->close + aside * (1 + abs(k) * 5) - half, b->close + aside * (1 + abs(k) * 5) + half);
    }
    fclose(f);
    free(all);
}

static void put_columns(const char *path, int first, int count) {
    bar *all = walk_bars(N, SPAN, 5);
    FILE *f = fopen(path, "w");
    char more[80];
    assert_non_null(f);
    for (const bar *b = all + first; b < all + first + count; b++) {
        snprintf(more, sizeof more, ", \"bid\": %.9g, \"ask\": %.9g", b->close + aside - half, b->close + aside + half);
        put_bar(f, b, more);
    }
    fclose(f);
    free(all);
}

static int run_lines(const char *path, const char *state, const char *words) {
    char line[700];
    snprintf(line, sizeof line, "cat %s | %s live run --feed - -q --history none --state %s %s %s", path,
        TRADEWIND_BINARY, state, free_of_limits, words);
    return system(line);
}

// Every fill is at the ask where it buys and at the bid where it sells, by the quote that lies at the decision's close.
static void check_fills(const char *state, int64_t late) {
    char sql[400];
    int64_t fills = kept_number(state, "SELECT count(*) FROM fills");
    assert_true(fills > 20);
    snprintf(sql, sizeof sql,
        "SELECT count(*) FROM fills f JOIN intents i ON f.id = i.id WHERE f.time <> i.time + %lld OR i.status <> "
        "'filled'"
        " OR abs(f.bid - i.price / 1e8 - %g) > 1e-6 OR abs(f.ask - f.bid - %g) > 1e-6",
        (long long)late, aside - half, 2 * half);
    assert_int_equal(kept_number(state, sql), 0);
    assert_int_equal(kept_number(state, "SELECT count(*) FROM fills WHERE abs(price / 1e8 - bid) > 1e-6 AND "
                                        "abs(price / 1e8 - ask) > 1e-6"),
        0);
    // Long positions were bought at an ask and sold at a bid, short ones the other way round.
    assert_int_equal(
        kept_number(state, "SELECT count(*) FROM trades t WHERE NOT EXISTS (SELECT 1 FROM fills f WHERE "
                           "f.time = t.entry AND f.price = t.entry_price AND abs(f.price / 1e8 - CASE WHEN "
                           "t.units > 0 THEN f.ask ELSE f.bid END) < 1e-6)"),
        0);
    assert_int_equal(
        kept_number(state, "SELECT count(*) FROM trades t WHERE reason = 'order' AND NOT EXISTS (SELECT 1 FROM "
                           "fills f WHERE f.time = t.exit AND f.price = t.exit_price AND abs(f.price / 1e8 - "
                           "CASE WHEN t.units > 0 THEN f.bid ELSE f.ask END) < 1e-6)"),
        0);
    assert_true(kept_number(state, "SELECT count(*) FROM trades") > 20);
}

static void orders_fill_at_quotes(void **state) {
    (void)state;
    put_lines("lines.txt");
    put_columns("columns.txt", 0, N);
    assert_int_equal(run_lines("lines.txt", "l.db", "live.fills=quote"), 0);
    check_fills("l.db", 0);
    assert_int_equal(run_lines("columns.txt", "c.db", "live.fills=quote"), 0);
    check_fills("c.db", 0);
    char *lines = kept_rows("l.db", "SELECT * FROM trades"), *columns = kept_rows("c.db", "SELECT * FROM trades");
    assert_string_equal(lines, columns);
    free(lines);
    free(columns);
}

// Without the wish, and without quotes, orders fill at the next open: as in a replay.
static void without_quotes_they_fill_at_the_open(void **state) {
    (void)state;
    assert_int_equal(RUN("live", "run", "--feed", "replay:b.csv", "-q", "--history", "none", "--state", "open.db",
                         "live.fills=quote"),
        0);
    put_columns("columns.txt", 0, N);
    assert_int_equal(run_lines("columns.txt", "c.db", ""), 0);
    assert_int_equal(kept_number("open.db", "SELECT count(*) FROM fills"), 0);
    assert_int_equal(kept_number("c.db", "SELECT count(*) FROM fills"), 0);
    static const char trades[] = "SELECT units, entry, exit, entry_price, exit_price, result FROM trades ORDER BY id";
    char *open = kept_rows("open.db", trades), *columns = kept_rows("c.db", trades);
    assert_string_equal(open, columns);
    assert_true(strlen(open) > 1000);
    free(open);
    free(columns);
}

// A fill belongs to its bar: what was begun in parts has what one session has.
static void a_session_goes_on(void **state) {
    (void)state;
    put_columns("whole.txt", 0, N);
    assert_int_equal(run_lines("whole.txt", "whole.db", "live.fills=quote"), 0);
    for (int first = 0; first < N; first += 150) {
        put_columns("part.txt", first, 150);
        assert_int_equal(run_lines("part.txt", "parts.db", "live.fills=quote"), 0);
    }
    kept_same("whole.db", "parts.db");
}

// An order that is decided at the last close of a day is of the next day: it fills at that day's first open.
static void a_day_that_ended_fills_nothing(void **state) {
    (void)state;
    static const char at_midnight[] = "SELECT count(*) FROM fills WHERE time % 86400 = 0";
    put_columns("columns.txt", 0, N);
    put_lines("lines.txt");
    assert_int_equal(run_lines("columns.txt", "open.db", "live.fills=quote"), 0);
    assert_true(kept_number("open.db", at_midnight) > 0);
    for (int i = 0; i < 2; i++) {
        const char *state_of[] = {"c.db", "l.db"}, *from[] = {"columns.txt", "lines.txt"};
        assert_int_equal(run_lines(from[i], state_of[i], "live.fills=quote account.day_close=on"), 0);
        assert_true(kept_number(state_of[i], "SELECT count(*) FROM fills") > 20);
        assert_int_equal(kept_number(state_of[i], at_midnight), 0);
        assert_int_equal(
            kept_number(state_of[i],
                "SELECT count(*) FROM trades WHERE entry % 86400 = 0 AND exit = entry AND reason = 'order'"),
            0);
        assert_true(kept_number(state_of[i], "SELECT count(*) FROM trades WHERE entry % 86400 = 0") > 0);
    }
}

// A state that was kept with the newest bar knows its close: intents of a stop are of then.
static void a_stop_behind_a_state_has_a_time(void **state) {
    (void)state;
    enum { SAVED = 513 }; // bars after which features are kept anew
    bar *all = walk_bars(N, SPAN, 5);
    char sql[200];
    put_columns("part.txt", 0, SAVED);
    assert_int_equal(run_lines("part.txt", "s.db", ""), 0);
    assert_int_equal(kept_number("s.db", "SELECT b.time = s.time FROM books b, states s"), 1);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM books WHERE units <> 0 OR order_units <> 0"), 1);
    assert_int_equal(RUN("live", "--stop", "s.db"), 0);
    put_columns("part.txt", SAVED, 2);
    run_lines("part.txt", "s.db", "");
    snprintf(sql, sizeof sql, "SELECT count(*) FROM intents WHERE time < %lld", (long long)all[0].end);
    assert_int_equal(kept_number("s.db", sql), 0);
    snprintf(
        sql, sizeof sql, "SELECT count(*) FROM intents WHERE time = %lld AND units = 0", (long long)all[SAVED - 1].end);
    assert_true(kept_number("s.db", sql) > 0);
    free(all);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(orders_fill_at_quotes, setup, support_leave),
        cmocka_unit_test_setup_teardown(without_quotes_they_fill_at_the_open, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_session_goes_on, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_day_that_ended_fills_nothing, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_stop_behind_a_state_has_a_time, setup, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
