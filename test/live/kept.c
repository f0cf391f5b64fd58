#include "live/kept.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sqlite3 *open_state(const char *state) {
    sqlite3 *db;
    if (sqlite3_open_v2(state, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        fail_msg("%s: %s", state, sqlite3_errmsg(db));
    return db;
}

static void put_rows(sqlite3 *db, const char *sql, FILE *out) {
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(st); c++) {
            const unsigned char *text = sqlite3_column_text(st, c);
            fprintf(out, "%s%s", c ? "|" : "", text ? (const char *)text : "");
        }
        fputc('\n', out);
    }
    sqlite3_finalize(st);
}

char *kept_rows(const char *state, const char *sql) {
    char *text = NULL;
    size_t bytes = 0;
    sqlite3 *db = open_state(state);
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    put_rows(db, sql, f);
    fclose(f);
    sqlite3_close(db);
    return text;
}

int64_t kept_number(const char *state, const char *sql) {
    char *text = kept_rows(state, sql);
    int64_t n = strtoll(text, NULL, 10);
    free(text);
    return n;
}

char *kept_text(const char *state) {
    static const char *const all[] = {
        "SELECT symbol, time, end, kind, inputs, answer, score, volatility, side, units, stop, target, changes, equity,"
        " why FROM decisions ORDER BY symbol, time",
        "SELECT id, symbol, time, until, units, lots, stop, target, price, status, filled FROM intents ORDER BY id",
        "SELECT id, symbol, units, entry, exit, entry_price, exit_price, result, commission, swap, reason, value, "
        "traded,"
        " cost FROM trades ORDER BY id",
        "SELECT symbol, time, units, stop, target, cash, equity, entry, entry_price, held, order_units, hex(numbers)"
        " FROM books ORDER BY symbol",
        "SELECT symbol, time, weights, hex(memory) FROM memories ORDER BY symbol",
        "SELECT symbol, frame, time, close FROM bars ORDER BY symbol, frame, time"};
    char *text = NULL;
    size_t bytes = 0;
    sqlite3 *db = open_state(state);
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) put_rows(db, all[i], f);
    fclose(f);
    sqlite3_close(db);
    return text;
}

void kept_same(const char *a, const char *b) {
    char *x = kept_text(a), *y = kept_text(b);
    size_t at = 0;
    while (x[at] && x[at] == y[at]) at++;
    size_t from = at < 100 ? 0 : at - 100;
    if (x[at] || y[at]) fail_msg("%s and %s differ:\n%.300s\n---\n%.300s", a, b, x + from, y + from);
    free(x);
    free(y);
}
