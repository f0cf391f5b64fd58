// Bar files of several instruments: each symbol as if it had a file of its own, and what cannot be a symbol.
#include "data/bars.h"
#include "data/sources.h"
#include "data/symbols.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MOST = 1 << 16, ROWS = 200 };

// A row of one of three instruments; their spans, prices and quirks differ.
static size_t put_row(char *text, const char *symbol, int kind, int i) {
    static const int span[] = {60, 300, 3600};
    int step = kind == 1 ? ROWS - i : i + (i > 90); // one runs backwards, the others have a gap
    double price = 100.0 * (kind + 1) + step % 17;
    long long time = 1704153600 + (long long)span[kind] * step;
    bool wrong = kind == 2 && i % 50 == 7;
    return (size_t)sprintf(text, "%s%s%lld,%g,%g,%g,%g,%d\n", symbol, *symbol ? "," : "", time, price,
        wrong ? price - 3 : price + 2, price - 1, price + 1, i);
}

// Text of one instrument alone, or of all of them taking turns.
static size_t make(char *text, int kind, bool with_symbol, bool in_turns) {
    static const char *const names[] = {"GBP/USD", "AAPL.US", "_x#1=F^-"};
    size_t n = (size_t)sprintf(text, "%stime,open,high,low,close,volume\n", with_symbol ? "Ticker," : "");
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 3; k++)
            if (in_turns || k == kind) n += put_row(text + n, with_symbol ? names[k] : "", k, i);
    assert_true(n < TEXT_MOST);
    return n;
}

static void each_symbol_is_a_file_of_its_own(void **state) {
    (void)state;
    static const char *const sorted[] = {"AAPL.US", "GBP/USD", "_x#1=F^-"};
    static const int kind_of[] = {1, 0, 2};
    char *text = malloc(TEXT_MOST), *alone = malloc(TEXT_MOST);
    assert_true(text && alone);
    bars_list all;
    err e = {0};
    size_t n = make(text, 0, true, true);
    support_ok(bars_parse_list(&all, "t.csv", text, n, NULL, &e), &e);
    assert_int_equal(all.count, 3);
    for (int i = 0; i < 3; i++) {
        bars one;
        size_t bytes = make(alone, kind_of[i], false, false);
        support_ok(bars_parse(&one, "t.csv", alone, bytes, NULL, &e), &e);
        const bars *b = &all.item[i];
        assert_string_equal(b->symbol, sorted[i]);
        assert_string_equal(one.symbol, "");
        assert_int_equal(b->count, one.count);
        assert_int_equal(b->span, one.span);
        assert_memory_equal(b->bar, one.bar, (size_t)one.count * sizeof(bar));
        assert_int_equal(b->report.rows, ROWS);
        assert_int_equal(b->report.turned, kind_of[i] == 1);
        for (bars_finding f = 0; f < BARS_FINDINGS; f++)
            assert_int_equal(b->report.tally[f].count, one.report.tally[f].count);
        bars_done(&one);
    }
    assert_int_equal(all.item[2].report.tally[BARS_HIGH_LOW].count, 4);
    bars_list_done(&all);
    bars_list_done(&all);
    bars none;
    assert_false(bars_parse(&none, "t.csv", text, n, NULL, &e));
    assert_string_equal(e.text, "t.csv: holds 3 instruments (AAPL.US, GBP/USD, _x#1=F^-) where one is expected; keep "
                                "the rows of one symbol");
    free(text);
    free(alone);
}

static void one_symbol_is_one_instrument(void **state) {
    (void)state;
    static const char *const names[] = {"symbol", "TICKER", "<TICKER>", "Instrument", "\"Sym\""};
    err e = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        bars b;
        int n = snprintf(text, sizeof text,
            "time,%s,open,high,low,close\n2024-01-02,\"X\",2,3,1,2\n2024-01-03, X ,2,3,1,2\n", names[i]);
        assert_true(n > 0 && n < (int)sizeof text);
        support_ok(bars_parse(&b, "t.csv", text, (size_t)n, NULL, &e), &e);
        assert_string_equal(b.symbol, "X");
        assert_int_equal(b.count, 2);
        bars_done(&b);
    }
    bars_list all;
    const char *plain = "time,open,high,low,close\n2024-01-02,2,3,1,2\n2024-01-03,2,3,1,2\n";
    support_ok(bars_parse_list(&all, "t.csv", plain, strlen(plain), NULL, &e), &e);
    assert_int_equal(all.count, 1);
    assert_string_equal(all.item[0].symbol, "");
    bars_list_done(&all);
}

static void expect_error(const char *text, const char *want) {
    bars_list all;
    err e = {0};
    assert_false(bars_parse_list(&all, "t.csv", text, strlen(text), NULL, &e));
    assert_true(!all.item && !all.count && e.kind == ERR_INPUT);
    assert_string_equal(e.text, want);
}

static void wrong_symbols_are_named(void **state) {
    (void)state;
#define HEAD "time,symbol,open,high,low,close\n2024-01-02,A,2,3,1,2\n2024-01-03,A,2,3,1,2\n"
    expect_error(HEAD "2024-01-04,,2,3,1,2\n", "t.csv:4: symbol is empty; fill it or remove the row");
    expect_error(HEAD "2024-01-04,A B,2,3,1,2\n",
        "t.csv:4: symbol 'A B' is not a name of at most 31 letters, digits and _ - . # / = ^; rename it");
    expect_error(HEAD "2024-01-04,12345678901234567890123456789012,2,3,1,2\n",
        "t.csv:4: symbol '12345678901234567890123456789012' is not a name of at most 31 letters, digits and _ - . # / "
        "= ^; rename it");
    expect_error(HEAD "2024-01-04,B,2,3,1,2\n",
        "t.csv: only 1 of 1 rows of B can be used; at least two bars are needed, or no row of it");
    expect_error("time,symbol,open,high,low,close\n", "t.csv: has a header but no rows; expected bars");
#undef HEAD
}

static void too_many_symbols_are_refused(void **state) {
    (void)state;
    size_t room = (size_t)(BARS_SYMBOLS_MOST + 2) * 128, n = 0;
    char *text = malloc(room);
    bars_list all;
    assert_non_null(text);
    for (int more = 0; more < 2; more++) {
        err e = {0};
        n = (size_t)sprintf(text, "symbol,time,open,high,low,close\n");
        for (int day = 2; day < 4; day++)
            for (int i = 0; i < BARS_SYMBOLS_MOST + more; i++)
                n += (size_t)sprintf(text + n, "s%d,2024-01-0%d,2,3,1,2\n", i, day);
        assert_true(n < room);
        bool ok = bars_parse_list(&all, "t.csv", text, n, NULL, &e);
        assert_int_equal(ok, !more);
        if (ok) assert_int_equal(all.count, BARS_SYMBOLS_MOST);
        if (!ok) assert_string_equal(e.text, "t.csv:4098: symbol 's4096' is one too many; a file may have 4096");
        bars_list_done(&all);
    }
    free(text);
}

static void a_symbol_before_an_epoch_is_no_panel(void **state) {
    (void)state;
    static const char file[] = "symbol,time,open,high,low,close\nEURUSD,1704153600,2,3,1,2\n";
    static const char stooq[] = "<TICKER>,<DATE>,<OPEN>,<HIGH>,<LOW>,<CLOSE>\r\nX,1704153600,2,3,1,2\r\n";
    static const char panel[] = "ticker,V2,V3\nEURUSD,1704153600,2\n";
    assert_int_equal(source_kind_in(file, strlen(file)), SOURCE_BARS);
    assert_int_equal(source_kind_in(stooq, strlen(stooq)), SOURCE_BARS);
    assert_int_equal(source_kind_in(panel, strlen(panel)), SOURCE_PANEL);
}

// Columns of many symbols and samples are refused by their size before memory is asked for.
static void columns_of_symbols_have_a_limit(void **state) {
    (void)state;
    err e = {0};
    const char *names[100];
    for (int k = 0; k < 100; k++) names[k] = "same";
    dataset d = {.name = "big.npz", .samples = 100 << 20, .panel = 100, .panel_names = names};
    assert_null(symbols_new(&d, NULL, 0, false, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "big.npz: a column of the vector for each of 100 symbols takes 9.77 GB, more than 1; "
                                "leave model.symbol out or use fewer instruments");
}

// Symbols as an input

// Five samples with a label and two without, of two instruments that take turns; rows 0 to 2 are of the first.
static const int32_t turn_row[] = {0, 3, 1, 4, 5, 2, 6}, turn_first[] = {0, 3, 0, 3, 3, 0, 3};
static const int of_second[] = {0, 1, 0, 1, 1, 0, 1};

static void check_symbols(const char *const *names, int64_t count, int64_t first, int64_t second) {
    static const char *const symbols[] = {"EUR/USD", "XAUUSD.m"}, *const columns[] = {"trend"};
    static const int64_t start[] = {0, 3, 7};
    static const float trend[] = {10, 11, 12, 13, 14, 15, 16};
    dataset from = {.name = "two.npz", .samples = 5, .unlabelled = 2, .streams = 1, .panel = 2};
    from.stream[0] = (stream){.name = "fast", .row = turn_row, .first = turn_first};
    from.panel_names = symbols;
    from.panel_first = start;
    from.vector = table_of(COLUMN_F32, 7, 1, trend);
    from.vector.columns = columns;
    err e = {0};
    float row[8];
    dataset *d = symbols_new(&from, names, count, false, &e);
    support_ok(d != NULL, &e);
    int64_t width = 1 + (names ? count : 2);
    assert_int_equal(d->vector.width, width);
    assert_string_equal(d->vector.columns[0], "trend");
    assert_string_equal(d->vector.columns[1 + first], "symbol_EUR/USD");
    assert_string_equal(d->vector.columns[1 + second], "symbol_XAUUSD.m");
    for (int i = 0; i < 7; i++) {
        table_read(&d->vector, i, 1, row);
        assert_true(row[0] == trend[i]);
        for (int64_t c = 0; c < width - 1; c++) assert_true(row[1 + c] == (c == (of_second[i] ? second : first)));
    }
    dataset_free(d);
}

static void columns_are_of_their_instruments(void **state) {
    (void)state;
    static const char *const known[] = {"AUD", "XAUUSD.m", "CHF", "EUR/USD"};
    check_symbols(NULL, 0, 0, 1);
    check_symbols(known, 4, 3, 1);
}

static void other_symbols_have_no_column(void **state) {
    (void)state;
    static const char *const symbols[] = {"EUR"}, *const known[] = {"AUD", "XAU"};
    dataset from = {.name = "eur.npz", .samples = 1, .streams = 1, .panel = 1, .panel_names = symbols};
    err e = {0};
    assert_null(symbols_new(&from, known, 2, false, &e));
    assert_string_equal(e.text, "eur.npz holds EUR, which is no symbol of the model; leave it out");
    from.panel = 0;
    assert_null(symbols_new(&from, NULL, 0, false, &e));
    assert_string_equal(e.text, "eur.npz holds one instrument without a symbol; leave model.symbol out");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_symbol_is_a_file_of_its_own),
        cmocka_unit_test(one_symbol_is_one_instrument),
        cmocka_unit_test(wrong_symbols_are_named),
        cmocka_unit_test(columns_are_of_their_instruments),
        cmocka_unit_test(other_symbols_have_no_column),
        cmocka_unit_test(too_many_symbols_are_refused),
        cmocka_unit_test(a_symbol_before_an_epoch_is_no_panel),
        cmocka_unit_test(columns_of_symbols_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
