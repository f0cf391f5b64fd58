// Bar files: each format with its quirks, what is left out and what is counted, order, zones, frames, errors with their
// text, damage at every byte, and the figures of real files against a plain count.
#include "data/bars.h"

#include "base/rng.h"
#include "data/bars_number.h"
#include "data/when.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SAMPLES TEST_DIR "/data/samples/bars/"

static int64_t at(int year, int month, int day, int hour, int minute) {
    return when_day(year, month, day) * WHEN_DAY + hour * 3600 + minute * 60;
}

// Text that grows.
typedef struct {
    char *text;
    size_t size, room;
} sheet;

__attribute__((format(printf, 2, 3))) static void put(sheet *s, const char *fmt, ...) {
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof line);
    if (s->size + (size_t)n > s->room) {
        s->room = 2 * s->room + (size_t)n + 4096;
        s->text = realloc(s->text, s->room);
        assert_non_null(s->text);
    }
    memcpy(s->text + s->size, line, (size_t)n);
    s->size += (size_t)n;
}

static void put_bar(sheet *s, int64_t t) {
    when_parts p = when_split(t);
    put(s, "%04d-%02d-%02d %02d:%02d:%02d,10,12,9,11,5\n", p.year, p.month, p.day, p.hour, p.minute, p.second);
}

static const char head[] = "time,open,high,low,close,volume\n";

// Promises of every result.
static void check(const bars *b) {
    int64_t left_out = 0;
    for (bars_finding f = 0; f < BARS_FINDINGS; f++) {
        const bars_tally *t = &b->report.tally[f];
        if (bars_left_out(f)) left_out += t->count;
        assert_true(t->count >= 0 && (t->count > 0) == (t->line > 0));
    }
    assert_int_equal(b->report.rows, b->count + left_out);
    assert_true(b->count >= 2 && b->span > 0 && b->format);
    for (int64_t i = 0; i < b->count; i++) {
        const bar *x = &b->bar[i];
        assert_true(!i || x->time > x[-1].time);
        assert_true(x->low > 0 && x->low <= x->open && x->low <= x->close && x->high >= x->open && x->high >= x->close);
        assert_true(
            isfinite(x->high) && x->volume >= 0 && isfinite(x->volume) && x->spread >= 0 && isfinite(x->spread));
    }
    assert_int_equal(b->report.first, b->bar[0].time);
    assert_int_equal(b->report.last, b->bar[b->count - 1].time);
}

static void parse_with(bars *b, const char *text, size_t size, bars_options o) {
    err e = {0};
    support_ok(bars_parse(b, "t.csv", text, size, &o, &e), &e);
    check(b);
}

static void parse(bars *b, const char *text) {
    parse_with(b, text, strlen(text), (bars_options){0});
}

static void parse_sheet(bars *b, sheet *s, bars_options o) {
    parse_with(b, s->text, s->size, o);
    free(s->text);
    *s = (sheet){0};
}

static int64_t count_of(const bars *b, bars_finding f) {
    return b->report.tally[f].count;
}

static void expect(const bars *b, bars_finding f, int64_t count, int64_t line) {
    if (count_of(b, f) != count || b->report.tally[f].line != line)
        fail_msg("%s: %lld, first in line %lld", bars_finding_key(f), (long long)count_of(b, f),
            (long long)b->report.tally[f].line);
}

// Only the findings named, with their counts: pairs, ended by BARS_FINDINGS.
static void expect_only(const bars *b, ...) {
    int64_t want[BARS_FINDINGS] = {0};
    va_list args;
    va_start(args, b);
    for (int f = va_arg(args, int); f != BARS_FINDINGS; f = va_arg(args, int)) want[f] = va_arg(args, int);
    va_end(args);
    for (bars_finding f = 0; f < BARS_FINDINGS; f++)
        if (count_of(b, f) != want[f])
            fail_msg("%s: %lld, not %lld", bars_finding_key(f), (long long)count_of(b, f), (long long)want[f]);
}

static char *load(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *data = malloc(1 << 23);
    assert_non_null(data);
    *size = fread(data, 1, 1 << 23, f);
    fclose(f);
    return data;
}

static const struct sample {
    const char *file, *format;
    bool daily;
    double volume, step, spread; // of the first bar, more each bar, of the first bar
    int64_t first;               // hours after 2024-01-02 00:00; 0 daily
} samples[] = {
    {"mt5_terminal.csv", "MetaTrader 5 terminal", false, 100, 1, 7, 3},
    {"mt5_comma.csv", "MetaTrader 5 terminal", false, 100, 1, 7, 3},
    {"mt5_utf16.csv", "MetaTrader 5 terminal", false, 100, 1, 7, 3},
    {"mt5_semicolon_bare.csv", "MetaTrader terminal without a header", false, 100, 1, 7, 3},
    {"mt4_bare.csv", "MetaTrader terminal without a header", false, 100, 1, 0, 3},
    {"mt5_daily.csv", "MetaTrader 5 terminal", true, 5000, 1, 7, 0},
    {"mt5_python_epoch.csv", "MetaTrader 5 Python API", false, 100, 1, 0, 3},
    {"mt5_python_text.csv", "MetaTrader 5 Python API", false, 100, 1, 0, 3},
    {"binance_spot.csv", "Binance klines", false, 10.5, 1, 0, 365 * 24 - 24 + 23}, // 2024-12-31 23:50
    {"binance_futures.csv", "Binance klines", false, 10.5, 1, 0, 3},
    {"yahoo_old.csv", "Yahoo Finance", true, 5000, 1, 0, 0},
    {"yahoo_new.csv", "Yahoo Finance", true, 5000, 1, 0, 0},
    {"yahoo_intraday.csv", "Yahoo Finance", false, 5000, 1, 0, 8},
    {"dukascopy.csv", "Dukascopy", false, 100.25, 1, 0, 3},
    {"histdata.csv", "HistData", false, 0, 0, 0, 8},
    {"pandas.csv", "pandas index", false, 100, 1, 0, 3},
};

enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

// All samples hold the same four bars.
static void check_sample(const bars *b, const struct sample *s) {
    static const double price[4][4] = {{1.10000, 1.10050, 1.09980, 1.10020}, {1.10020, 1.10030, 1.09900, 1.09910},
        {1.09910, 1.10000, 1.09905, 1.09990}, {1.09990, 1.10110, 1.09990, 1.10100}};
    if (strcmp(b->format, s->format) != 0) fail_msg("%s: format '%s'", s->file, b->format);
    assert_int_equal(b->count, 4);
    assert_int_equal(b->span, s->daily ? 86400 : 300);
    for (int i = 0; i < 4; i++) {
        const bar *x = &b->bar[i];
        int64_t first = at(2024, 1, 2, 0, 0) + s->first * 3600 + (strstr(s->file, "spot") ? 3000 : 0);
        assert_int_equal(x->time, first + i * b->span);
        const double got[4] = {x->open, x->high, x->low, x->close};
        for (int k = 0; k < 4; k++)
            if (got[k] != price[i][k]) fail_msg("%s: bar %d, price %d is %.17g", s->file, i, k, got[k]);
        assert_true(x->volume == s->volume + i * s->step);
        assert_true(strstr(s->file, "mt5") && s->spread > 0 ? x->spread >= 7 && x->spread <= 10 : x->spread == 0);
    }
}

static void reads_every_format(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        char path[4096];
        snprintf(path, sizeof path, SAMPLES "%s", samples[i].file);
        bars b;
        err e = {0};
        support_ok(bars_read(&b, path, NULL, &e), &e);
        check(&b);
        check_sample(&b, &samples[i]);
        bars_done(&b);
        bars_done(&b);
    }
}

static void formats_report_their_zone(void **state) {
    (void)state;
    static const struct {
        const char *file, *tz, *zone;
        bool assumed;
        int64_t hour; // of the first bar
    } cases[] = {
        {"pandas.csv", NULL, "UTC", true, 3},
        {"pandas.csv", "+2", "+2", false, 1},
        {"mt5_terminal.csv", "mt5", "mt5", false, 1},
        {"mt5_python_epoch.csv", "mt5", "mt5", false, 1},
        {"histdata.csv", NULL, "EST", true, 8},
        {"histdata.csv", "UTC", "UTC", false, 3},
        {"dukascopy.csv", NULL, "UTC", false, 3},
        {"binance_futures.csv", NULL, "UTC", false, 3},
        {"binance_futures.csv", "mt5", "UTC", false, 3},
        {"yahoo_intraday.csv", "+3", "as stamped", false, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[4096];
        snprintf(path, sizeof path, SAMPLES "%s", cases[i].file);
        bars b;
        err e = {0};
        support_ok(bars_read(&b, path, &(bars_options){.tz = cases[i].tz}, &e), &e);
        assert_string_equal(b.report.zone, cases[i].zone);
        assert_int_equal(b.report.zone_assumed, cases[i].assumed);
        assert_int_equal(b.bar[0].time, at(2024, 1, 2, (int)cases[i].hour, 0));
        bars_done(&b);
    }
}

static void refuses_ticks_by_name(void **state) {
    (void)state;
    bars b;
    err e = {0};
    assert_false(bars_read(&b, SAMPLES "mt5_ticks.csv", NULL, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, SAMPLES "mt5_ticks.csv: is a MetaTrader 5 tick export (bid and ask), not bars; export "
                                        "bars, for example of one minute");
    assert_false(bars_read(&b, SAMPLES "histdata_ticks.csv", NULL, &e));
    assert_string_equal(
        e.text, SAMPLES "histdata_ticks.csv: is a HistData tick file, not bars; take their 1-minute bars");
    assert_null(b.bar);
    static const char bare[] = "2024.01.02\t03:00:00.123\t1.10000\t1.10007\t\t\t6\n";
    assert_false(bars_parse(&b, "t.csv", bare, strlen(bare), NULL, &e));
    assert_string_equal(
        e.text, "t.csv: is a MetaTrader 5 tick export (times with milliseconds), not bars; export bars");
    assert_false(bars_read(&b, SAMPLES "missing.csv", NULL, &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

// The same bars, written as differently as files are.
static void reads_variants(void **state) {
    (void)state;
    static const char *const variants[] = {
        "time,open,high,low,close\n2024-01-02,10,12,9,11\n2024-01-03,10,12,9,11",
        "\xEF\xBB\xBFtime,open,high,low,close\n2024-01-02,10,12,9,11\n2024-01-03,10,12,9,11\n",
        "\r\n\n time , open ,high,low,close \r\n\r\n2024-01-02, 10 ,12,9,11\r\n2024-01-03,10,12,9,11\r\n\r\n\n\n",
        "\"Time\",\"Open\",High,\"Low\",\"Close\"\n\"2024-01-02\",\"10\",12,\"9\",11\n\"2024-01-03\",10,12,9,\"11\"",
        "close\tLOW\t<high>\tOpen\tDate\n11\t9\t12\t10\t2024.01.02\n11\t9\t12\t10\t03.01.2024\n",
        "sep=;\ntimestamp;open;high;low;close;note\n20240102;10;12;9;11;a,b\n20240103;+10.0;1.2e1;9.;11.000;\n",
        "2024-01-02,10,12,9,11\n2024-01-03,10,12,9,11\n",
        "2024/01/02 00:00:00;10;12;9;11;3;\n2024/01/03 00:00:00;10;12;9;11;3;\n",
        ",time,open,high,low,close\n0,2024-01-02,10,12,9,11\n1,2024-01-03,10,12,9,11\n",
        "Date,Time,Open,High,Low,Close\n2024-01-02,00:00,10,12,9,11\n2024-01-03,0:00:00,10,12,9,11\n",
        "time,open,high,low,close\n2024-01-02T02:00:00+02:00,10,12,9,11\n2024-01-03 02:00:00+0200,10,12,9,11\n",
        "time,open,high,low,close,,,\n2024-01-02,10,12,9,11,,,\n2024-01-03,10,12,9,11,,,,,\n",
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        bars b;
        parse(&b, variants[i]);
        assert_int_equal(b.count, 2);
        for (int k = 0; k < 2; k++) {
            const bar *x = &b.bar[k];
            assert_int_equal(x->time, at(2024, 1, 2 + k, 0, 0));
            assert_true(x->open == 10 && x->high == 12 && x->low == 9 && x->close == 11);
        }
        bars_done(&b);
    }
}

static void reads_utf16(void **state) {
    (void)state;
    static const char plain[] = "time,open,high,low,close\n2024-01-02,10,12,9,11\n2024-01-03,10,12,9,11\n";
    for (int form = 0; form < 4; form++) { // little or big, with or without a mark
        char wide[2 * sizeof plain];
        size_t n = 0;
        bool big = form & 1;
        if (form & 2) n += (size_t)snprintf(wide, sizeof wide, "%s", big ? "\xFE\xFF" : "\xFF\xFE");
        for (size_t i = 0; plain[i]; i++) {
            wide[n++] = big ? 0 : plain[i];
            wide[n++] = big ? plain[i] : 0;
        }
        bars b;
        parse_with(&b, wide, n, (bars_options){0});
        assert_int_equal(b.count, 2);
        bars_done(&b);
    }
}

static void same_as_strtod(const char *text) {
    double v, want = strtod(text, NULL);
    number_kind kind = bars_number(text, strlen(text), &v);
    if (kind != NUMBER_OK || memcmp(&v, &want, sizeof v) != 0) fail_msg("'%s' is %.17g, not %.17g", text, v, want);
}

static void numbers_are_strtods(void **state) {
    (void)state;
    static const char *const special[] = {"0", "-0", "0.0", "1", "1.", ".5", "+3", "1e5", "1E-5", "9007199254740993",
        "9007199254740992.5", "1.1615199999999999", "18446744073709551615", "9999999999999999999",
        "0.9999999999999999999", "1844674407370955161.5", "123456789012345678901234567890",
        "0.000000000000000000000000001", "4.9e-324", "1e308", "00000000000000000000000000001.5",
        "2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993.0", "4503599627370496.5",
        "4503599627370497.5", "1e-400"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) same_as_strtod(special[i]);
    dice d = {.seed = 7};
    for (int i = 0; i < (support_sanitized() ? 100000 : 1000000); i++) {
        char text[64];
        size_t n = 0, digits = 1 + dice_below(&d, 22), point = dice_below(&d, digits + 2);
        for (size_t k = 0; k < digits; k++) {
            if (k == point) text[n++] = '.';
            text[n++] = (char)('0' + dice_below(&d, 10));
        }
        text[n] = 0;
        same_as_strtod(text);
    }
    // Halfway cases and their neighbours, which a careless division rounds wrongly.
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t odd = (1ull << 53) + 2 * dice_below(&d, 1ull << 40) + 1;
        snprintf(text, sizeof text, "%llu.%03d", (unsigned long long)odd, (int)dice_below(&d, 3));
        same_as_strtod(text);
    }
}

static void numbers_that_are_none(void **state) {
    (void)state;
    static const char *const bad[] = {"abc", "1,5", "0x10", "1e", "1e+", "1.2.3", "--1", "+", ".", "1 2", "inf", "-inf",
        "infinity", "1e999", "1_000", "$5", "1e5x"};
    static const char *const missing[] = {"", "null", "NaN", "nan", "N/A", "None", "-", "<NA>"};
    double v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (bars_number(bad[i], strlen(bad[i]), &v) != NUMBER_BAD) fail_msg("'%s' is read", bad[i]);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_int_equal(bars_number(missing[i], strlen(missing[i]), &v), NUMBER_MISSING);
    char *long_one = malloc(10000);
    assert_non_null(long_one);
    memset(long_one, '1', 10000);
    assert_int_equal(bars_number(long_one, 10000, &v), NUMBER_BAD);
    assert_int_equal(bars_number(long_one, 300, &v), NUMBER_OK);
    free(long_one);
}

static void rows_left_out_are_counted(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close,volume,spread\n"
              "2024-01-02 00:00,10,12,9,11,5,1\n"
              "2024-01-02 01:00,,,,,,\n"
              "2024-01-02 02:00,NaN,nan,null,None,0,0\n"
              "2024-01-02 03:00,0,12,0,11,5,1\n"
              "2024-01-02 04:00,-10,12,-10,11,5,1\n"
              "2024-01-02 05:00,10,10.5,9,11,5,1\n"
              "2024-01-02 06:00,10,12,10.5,11,5,1\n"
              "2024-01-02 07:00,10,9,12,11,5,1\n"
              "2024-01-02 08:00,10,12,9,11,5,1\n"
              "2024-01-02 09:00,11,11,11,11,0,1\n"
              "2024-01-02 10:00,10,12,9,11,,0\n"
              "2024-01-02 11:00,10,12,9,11,-1,-1\n");
    expect(&b, BARS_EMPTY, 2, 3);
    expect(&b, BARS_NOT_POSITIVE, 2, 5);
    expect(&b, BARS_HIGH_LOW, 3, 7);
    expect(&b, BARS_FLAT, 1, 11);
    expect(&b, BARS_NO_VOLUME, 3, 11);
    expect(&b, BARS_NO_SPREAD, 2, 12);
    assert_int_equal(b.report.rows, 12);
    assert_int_equal(b.count, 5);
    assert_int_equal(b.span, 3600);
    assert_true(b.report.has_volume && b.report.has_spread);
    bars_done(&b);
}

static void dukascopys_filling(void **state) {
    (void)state;
    bars b;
    err e = {0};
    support_ok(bars_read(&b, SAMPLES "dukascopy.csv", NULL, &e), &e);
    expect(&b, BARS_FILLED, 3, 6);
    assert_int_equal(b.count, 4);
    bars_done(&b);
    support_ok(bars_read(&b, SAMPLES "dukascopy.csv", &(bars_options){.keep_filled = true}, &e), &e);
    expect(&b, BARS_FILLED, 0, 0);
    expect(&b, BARS_FLAT, 3, 6);
    assert_int_equal(b.count, 7);
    bars_done(&b);
}

static void turns_files_round(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close\n2024-01-04,4,4.5,3,4\n2024-01-03,3,3.5,2,3\n2024-01-03,3,3.5,2,3.1\n"
              "2024-01-02,2,2.5,1,2\n2024-01-01,1,1.5,1,1\n");
    assert_true(b.report.turned);
    expect_only(&b, BARS_CONFLICT, 1, BARS_FINDINGS);
    expect(&b, BARS_CONFLICT, 1, 3);
    assert_int_equal(b.count, 4);
    assert_true(b.bar[2].close == 3.1); // the later line
    assert_true(b.bar[0].close == 1 && b.bar[3].close == 4);
    bars_done(&b);
}

static void sorts_and_unites(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close\n"
              "2024-01-01,1,1.5,1,1\n"
              "2024-01-03,3,3.5,2,3\n"
              "2024-01-02,2,2.5,1,2\n"
              "2024-01-04,4,4.5,3,4\n"
              "2024-01-04,4,4.5,3,4\n"
              "2024-01-05,5,5.5,4,5\n"
              "2024-01-03,3,3.5,2,2.5\n"
              "2024-01-04,4,4.5,3,4\n");
    assert_false(b.report.turned);
    expect(&b, BARS_UNSORTED, 3, 4);
    expect(&b, BARS_DUPLICATE, 2, 5);
    expect(&b, BARS_CONFLICT, 1, 3);
    assert_int_equal(b.count, 5);
    assert_true(b.bar[2].close == 2.5);
    bars_done(&b);
}

static void sorts_a_shuffled_file(void **state) {
    (void)state;
    enum { N = 2000 };
    sheet s = {0};
    put(&s, head);
    for (int64_t i = 0; i < N; i++) put_bar(&s, at(2024, 1, 1, 0, 0) + 60 * (int64_t)rng_permute(3, 0, (uint64_t)i, N));
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    assert_int_equal(b.count, N);
    assert_int_equal(b.span, 60);
    for (int i = 0; i < N; i++) assert_int_equal(b.bar[i].time, at(2024, 1, 1, 0, 0) + 60 * i);
    assert_true(count_of(&b, BARS_UNSORTED) > 0);
    bars_done(&b);
}

// Half-hour bars as a clock in Berlin shows them while it goes back at 03:00: 02:00 and 02:30 come twice.
static void repeated_hours_keep_their_order(void **state) {
    (void)state;
    err probe = {0};
    when_zone *z = when_zone_new("Europe/Berlin", &probe);
    if (!z) skip();
    for (int turned = 0; turned < 2; turned++) {
        sheet s = {0};
        put(&s, head);
        for (int k = 0; k < 12; k++) {
            size_t hint = 0;
            put_bar(&s, when_local(z, at(2024, 10, 26, 22, 0) + 1800 * (turned ? 11 - k : k), &hint));
        }
        bars b;
        parse_sheet(&b, &s, (bars_options){.tz = "Europe/Berlin"});
        assert_int_equal(b.count, 12);
        for (int k = 0; k < 12; k++) assert_int_equal(b.bar[k].time, at(2024, 10, 26, 22, 0) + 1800 * k);
        expect_only(&b, BARS_REPEATED, 4, BARS_WEEKEND, 12, BARS_FINDINGS);
        assert_int_equal(b.report.turned, turned);
        bars_done(&b);
    }
    when_zone_free(z);
}

static void skipped_hours_are_noted(void **state) {
    (void)state;
    bars b;
    static const char text[] =
        "time,open,high,low,close\n2024-03-10 07:30,10,12,9,11\n2024-03-10 08:30,10,12,9,11\n"
        "2024-03-10 09:30,10,12,9,11\n2024-03-10 10:30,10,12,9,11.5\n2024-03-10 11:30,10,12,9,11\n";
    parse_with(&b, text, strlen(text), (bars_options){.tz = "mt5"});
    expect(&b, BARS_SKIPPED, 1, 4);
    expect(&b, BARS_CONFLICT, 1, 4); // 09:30 is what 10:30 is called
    assert_int_equal(b.count, 4);
    assert_int_equal(b.bar[2].time, at(2024, 3, 10, 7, 30));
    assert_true(b.bar[2].close == 11.5);
    bars_done(&b);
}

// Daily bars on a clock with daylight saving: days of 23 and 25 hours are days.
static void days_are_days_on_the_clock(void **state) {
    (void)state;
    for (int week = 5; week <= 7; week += 2) {
        sheet s = {0};
        put(&s, head);
        for (int64_t day = when_day(2023, 1, 2); day < when_day(2024, 12, 30); day++)
            if (when_weekday(day * WHEN_DAY) < week) put_bar(&s, day * WHEN_DAY);
        bars b;
        parse_sheet(&b, &s, (bars_options){.tz = "mt5"});
        assert_int_equal(b.span, WHEN_DAY);
        assert_int_equal(b.count, 104 * week);
        expect_only(&b, BARS_WEEKEND, 104 * (week - 5), BARS_FINDINGS);
        bars_done(&b);
    }
}

// Hours that a clock skips or shows twice are no gaps of a market that never closes.
static void changes_of_the_clock_are_no_gaps(void **state) {
    (void)state;
    sheet s = {0};
    err e = {0};
    when_zone *z = when_zone_new("mt5", &e);
    support_ok(z != NULL, &e);
    size_t hint = 0;
    put(&s, head);
    for (int64_t t = at(2024, 1, 1, 0, 0); t < at(2024, 12, 30, 0, 0); t += 3600) put_bar(&s, when_local(z, t, &hint));
    when_zone_free(z);
    bars b;
    parse_sheet(&b, &s, (bars_options){.tz = "mt5"});
    assert_int_equal(b.count, 364 * 24);
    expect_only(&b, BARS_REPEATED, 2, BARS_WEEKEND, 52 * 48, BARS_FINDINGS);
    bars_done(&b);
}

// `rows` bars of weekdays from `*t` on, `span` apart.
static void put_weekdays(sheet *s, int64_t *t, int64_t span, int rows) {
    while (rows) {
        if (when_weekday(*t) < 5) {
            put_bar(s, *t);
            rows--;
        }
        *t += span;
    }
}

static void coarse_beginnings_are_dropped(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        sheet s = {0};
        int64_t t = at(2020, 1, 6, 0, 0);
        put(&s, head);
        put_weekdays(&s, &t, WHEN_DAY, 300);
        int64_t until = t - WHEN_DAY;
        while (when_weekday(until) >= 5) until -= WHEN_DAY;
        while (when_weekday(t) >= 5) t += WHEN_DAY;
        int64_t fine = t;
        put(&s, "%lld,10,12.5,9,11,5\n", (long long)t); // the fine stretch begins higher
        t += 3600;
        put_weekdays(&s, &t, 3600, 200);
        bars b;
        parse_sheet(&b, &s, (bars_options){.keep_coarse = keep});
        assert_int_equal(b.span, 3600);
        assert_int_equal(b.report.coarse_rows, 300);
        assert_int_equal(b.report.coarse_span, WHEN_DAY);
        assert_int_equal(b.report.coarse_until, until);
        // Its first bar encloses the day, so it cannot be told from a last daily bar.
        assert_int_equal(b.count, keep ? 501 : 200);
        assert_int_equal(b.bar[0].time, keep ? at(2020, 1, 6, 0, 0) : fine + 3600);
        expect(&b, BARS_COARSE, keep ? 0 : 300, keep ? 0 : 2);
        expect(&b, BARS_STRADDLING, keep ? 0 : 1, keep ? 0 : 302);
        bars_done(&b);
    }
}

// The hours of the market are those of the fine bars, so that a gap among them is found, kept or not.
static void coarse_beginnings_hide_no_gaps(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        sheet s = {0};
        int64_t t = at(2020, 1, 6, 0, 0);
        put(&s, head);
        put_weekdays(&s, &t, WHEN_DAY, 600);
        put_weekdays(&s, &t, 3600, 250);
        t += 5 * 3600;
        put_weekdays(&s, &t, 3600, 250);
        bars b;
        parse_sheet(&b, &s, (bars_options){.keep_coarse = keep});
        assert_int_equal(b.report.coarse_rows, 600);
        assert_int_equal(count_of(&b, BARS_GAP), 1);
        assert_int_equal(b.report.missing, 5);
        bars_done(&b);
    }
}

static void first_fine_bar_stays(void **state) {
    (void)state;
    sheet s = {0};
    int64_t t = at(2020, 1, 6, 0, 0);
    put(&s, head);
    put_weekdays(&s, &t, WHEN_DAY, 20);
    while (when_weekday(t) >= 5) t += WHEN_DAY;
    for (int i = 0; i < 100; i++, t += 3600) put(&s, "%lld,10,%g,9,10,5\n", (long long)t, 11 + i / 10.0);
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    assert_int_equal(b.count, 100);
    expect(&b, BARS_COARSE, 20, 2);
    expect(&b, BARS_STRADDLING, 0, 0);
    bars_done(&b);
}

// Daily, four-hourly, hourly: the finest stays, although it is the shortest.
static void several_frames(void **state) {
    (void)state;
    sheet s = {0};
    int64_t t = at(2020, 1, 6, 0, 0);
    put(&s, head);
    put_weekdays(&s, &t, WHEN_DAY, 500);
    put_weekdays(&s, &t, 14400, 400);
    put_weekdays(&s, &t, 3600, 310);
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    assert_int_equal(b.span, 3600);
    assert_int_equal(b.report.coarse_rows, 900);
    assert_in_range(b.count, 309, 310);
    bars_done(&b);
}

// A market that trades in one minute of three is thin, not coarse.
static void thin_markets_are_kept(void **state) {
    (void)state;
    dice d = {.seed = 5};
    sheet s = {0};
    put(&s, head);
    int rows = 0;
    for (int64_t t = at(2024, 1, 1, 0, 0); t < at(2024, 1, 6, 0, 0); t += 60)
        if (!dice_below(&d, t < at(2024, 1, 3, 0, 0) ? 4 : 2)) put_bar(&s, t), rows++;
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    assert_int_equal(b.span, 60);
    assert_int_equal(b.count, rows);
    expect_only(&b, BARS_FINDINGS);
    bars_done(&b);
}

static void thin_bars_after_coarse_ones(void **state) {
    (void)state;
    dice d = {.seed = 6};
    sheet s = {0};
    int64_t t = at(2024, 1, 1, 0, 0);
    put(&s, head);
    put_weekdays(&s, &t, WHEN_DAY, 100);
    for (int64_t end = t + 6 * WHEN_DAY; t < end; t += 60)
        if (end - t < WHEN_DAY || !dice_below(&d, 4)) put_bar(&s, t);
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    assert_int_equal(b.span, 60);
    assert_in_range(b.report.coarse_rows, 100, 110); // a few thin bars until the first two neighbours
    bars_done(&b);
}

static void short_steps_are_noted(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close\n2024-01-02 00:00,10,12,9,11\n2024-01-02 01:00,10,12,9,11\n"
              "2024-01-02 01:30,10,12,9,11\n2024-01-02 02:30,10,12,9,11\n2024-01-02 03:30,10,12,9,11\n");
    assert_int_equal(b.span, 3600);
    expect(&b, BARS_SHORT_STEP, 1, 4);
    bars_done(&b);
}

// Gaps counted as bars_hours.h defines them, slot by slot, in files of four weeks and more.
typedef struct {
    int64_t gaps, missing, longest, longest_at;
} gap_count;

// Kinds of slots: a weekday, and a season where hours have them.
enum { KINDS = 14 };

static int kind_of(int64_t t, bars_seasons seasons) {
    err e = {0};
    size_t hint = 0;
    int64_t noon = t - t % WHEN_DAY + WHEN_DAY / 2;
    if (seasons == BARS_SEASONS_NONE) return when_weekday(t);
    when_zone *z = when_zone_new(seasons == BARS_SEASONS_EUROPE ? "Europe/Berlin" : "America/New_York", &e);
    support_ok(z != NULL, &e);
    bool summer = when_local(z, noon, &hint) - noon == (seasons == BARS_SEASONS_EUROPE ? 2 : -4) * 3600;
    when_zone_free(z);
    return when_weekday(t) + (summer ? 7 : 0);
}

static int64_t week_of(int64_t t) {
    return (t / WHEN_DAY + 3) / 7;
}

static gap_count count_gaps(const bar *bar, int64_t count, int64_t span, bars_seasons seasons) {
    gap_count g = {0};
    int64_t slots = (WHEN_DAY + span - 1) / span, first = bar[0].time / WHEN_DAY, last = bar[count - 1].time / WHEN_DAY;
    int64_t *seen = calloc((size_t)(KINDS * slots), sizeof *seen), *can = calloc((size_t)(KINDS * slots), sizeof *can);
    bool *active = calloc((size_t)(week_of(bar[count - 1].time) + 1), sizeof *active);
    int *kinds = calloc((size_t)(last + 1), sizeof *kinds);
    assert_true(seen && can && active && kinds);
    for (int64_t day = first; day <= last; day++) kinds[day] = kind_of(day * WHEN_DAY, seasons);
    for (int64_t i = 0; i < count; i++) {
        active[week_of(bar[i].time)] = true;
        seen[kinds[bar[i].time / WHEN_DAY] * slots + bar[i].time % WHEN_DAY / span]++;
    }
    for (int64_t day = first; day <= last; day++)
        for (int64_t slot = 0; slot < slots; slot++) {
            bool early = day == first && slot < bar[0].time % WHEN_DAY / span;
            bool late = day == last && slot > bar[count - 1].time % WHEN_DAY / span;
            can[kinds[day] * slots + slot] += active[week_of(day * WHEN_DAY)] && !early && !late;
        }
    for (int64_t i = 1; i < count; i++) {
        int64_t missing = 0, grid = bar[i - 1].time - bar[i - 1].time % WHEN_DAY % span;
        for (int64_t t = grid + span; t < bar[i].time - bar[i].time % WHEN_DAY % span; t += span) {
            int64_t at = kinds[t / WHEN_DAY] * slots + t % WHEN_DAY / span;
            missing += seen[at] && 2 * seen[at] >= can[at];
        }
        g.gaps += missing > 0;
        g.missing += missing;
        if (!missing || bar[i].time - bar[i - 1].time <= g.longest) continue;
        g.longest = bar[i].time - bar[i - 1].time;
        g.longest_at = bar[i - 1].time;
    }
    free(seen);
    free(can);
    free(active);
    free(kinds);
    return g;
}

static void check_gaps(const bars *b) {
    assert_int_equal(b->report.hours_changes, 0);
    gap_count g = count_gaps(b->bar, b->count, b->span, b->report.seasons);
    assert_int_equal(count_of(b, BARS_GAP), g.gaps);
    assert_int_equal(b->report.missing, g.missing);
    assert_int_equal(b->report.longest, g.longest);
    assert_int_equal(b->report.longest_at, g.longest_at);
}

static void gaps_are_not_closures(void **state) {
    (void)state;
    sheet s = {0};
    put(&s, head);
    // Weekdays from 01:00 to 24:00, as gold trades; one Wednesday without 10:00 and 11:00, one Friday off.
    for (int64_t t = at(2024, 1, 1, 0, 0); t < at(2024, 3, 1, 0, 0); t += 3600) {
        if (when_weekday(t) >= 5 || t % WHEN_DAY == 0) continue;
        if (t == at(2024, 1, 17, 10, 0) || t == at(2024, 1, 17, 11, 0)) continue;
        if (t / WHEN_DAY == when_day(2024, 2, 9)) continue;
        put_bar(&s, t);
    }
    bars b;
    parse_sheet(&b, &s, (bars_options){0});
    expect_only(&b, BARS_GAP, 2, BARS_FINDINGS);
    assert_int_equal(b.report.missing, 2 + 23);
    assert_int_equal(b.report.longest, 74 * 3600); // Thursday 23:00 to Monday 01:00
    assert_int_equal(b.report.longest_at, at(2024, 2, 8, 23, 0));
    assert_int_equal(b.report.tally[BARS_GAP].line, 2 + 12 * 23 + 9);
    check_gaps(&b);
    bars_done(&b);
}

static void gaps_are_as_defined(void **state) {
    (void)state;
    static const int64_t spans[] = {300, 900, 3600, 14400, 86400};
    dice d = {.seed = 11};
    for (int round = 0; round < 20; round++) {
        int64_t span = spans[round % 5];
        sheet s = {0};
        put(&s, head);
        bool round_the_clock = round % 2;
        for (int64_t t = at(2024, 1, 1, 0, 0); t < at(2024, 2, 20, 0, 0); t += span)
            if (dice_below(&d, 20) && (round_the_clock || when_weekday(t) < 5)) put_bar(&s, t);
        bars b;
        parse_sheet(&b, &s, (bars_options){0});
        assert_int_equal(b.span, span);
        assert_true(span > 3600 || count_of(&b, BARS_GAP) > 0);
        check_gaps(&b);
        bars_done(&b);
    }
}

static void weekly_gaps(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close\n2024-01-01,10,12,9,11\n2024-01-08,10,12,9,11\n2024-01-15,10,12,9,11\n"
              "2024-01-29,10,12,9,11\n2024-02-05,10,12,9,11\n");
    assert_int_equal(b.span, 7 * WHEN_DAY);
    expect(&b, BARS_GAP, 1, 5);
    assert_int_equal(b.report.missing, 1);
    bars_done(&b);
}

// Known spans: one bar, a weekend, and a weekend on which clocks changed.
static void known_spans_are_taken(void **state) {
    (void)state;
    static const int64_t day[] = {WHEN_DAY}, two[] = {300, 4 * WHEN_HOUR};
    static const struct {
        const char *text, *tz;
        const int64_t *spans;
        int count;
        int64_t span;
    } cases[] = {
        {"time,open,high,low,close\n2024-01-05,10,12,9,11\n", NULL, day, 1, WHEN_DAY},
        {"time,open,high,low,close\n2024-01-05,10,12,9,11\n2024-01-08,10,12,9,11\n", NULL, day, 1, WHEN_DAY},
        {"time,open,high,low,close\n2024-03-08,10,12,9,11\n2024-03-11,10,12,9,11\n", "mt5", day, 1, WHEN_DAY},
        {"time,open,high,low,close\n2024-03-08 20:00,10,12,9,11\n2024-03-11 00:00,10,12,9,11\n", "mt5", two, 2,
            4 * WHEN_HOUR},
        {"time,open,high,low,close\n2024-03-08 20:05,10,12,9,11\n", "mt5", two, 2, 300},
        {"time,open,high,low,close\n2024-03-08 20:05,10,12,9,11\n2024-03-08 20:20,10,12,9,11\n", NULL, two, 2, 300},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bars b;
        err e = {0};
        bars_options o = {.tz = cases[i].tz, .spans = cases[i].spans, .span_count = cases[i].count};
        support_ok(bars_parse(&b, "t.csv", cases[i].text, strlen(cases[i].text), &o, &e), &e);
        assert_int_equal(b.span, cases[i].span);
        bars_done(&b);
    }
}

// Steps of which none is the span: nothing is coarser than the file itself, and no row is lost.
static void a_span_of_no_step_leaves_the_rows(void **state) {
    (void)state;
    static const int64_t spans[] = {300, WHEN_HOUR};
    sheet s = {0};
    bars b;
    int64_t t = at(2024, 1, 1, 0, 0);
    put(&s, head);
    for (int i = 0; i < 26; t += 600 * ++i) put(&s, "%lld,10,12,9,11,5\n", (long long)t);
    parse_sheet(&b, &s, (bars_options){.spans = spans, .span_count = 2, .force = BARS_FORCE_THIN});
    assert_int_equal(b.span, 300);
    assert_int_equal(b.count, 26);
    bars_done(&b);
}

// One fine step, and coarser ones behind it: too few bars are left.
static void rows_that_a_stretch_leaves_are_counted(void **state) {
    (void)state;
    sheet s = {0};
    bars b;
    err e = {0};
    int64_t t = at(2024, 1, 1, 0, 0);
    put(&s, head);
    put(&s, "%lld,10,12,9,11,5\n", (long long)t - 60);
    for (int i = 0; i < 30; t += 120 * ++i) put(&s, "%lld,10,12,9,11,5\n", (long long)t);
    assert_false(bars_parse(&b, "t.csv", s.text, s.size, NULL, &e));
    assert_string_equal(e.text, "t.csv: only 1 of 31 rows can be used; at least two bars are needed");
    free(s.text);
}

static void last_bar_is_judged(void **state) {
    (void)state;
    for (int volume = 0; volume < 2; volume++) {
        sheet s = {0};
        put(&s, head);
        int64_t t = at(2024, 1, 2, 0, 0);
        for (int i = 0; i < 60; i++, t += 60) put(&s, "%lld,10,12,9,11,%d\n", (long long)t, 100 + i);
        put(&s, "%lld,10,12,9,11,%d\n", (long long)t, volume ? 90 : 3);
        bars b;
        parse_with(&b, s.text, s.size, (bars_options){.written = t + 59});
        assert_int_equal(b.report.last_bar, BARS_OPEN_WHEN_WRITTEN);
        bars_done(&b);
        parse_sheet(&b, &s, (bars_options){.written = t + 60});
        assert_int_equal(b.report.last_bar, volume ? BARS_FINISHED : BARS_THIN);
        bars_done(&b);
    }
}

static void refuse_bytes(const char *text, size_t size, const char *why) {
    bars b;
    err e = {0};
    if (bars_parse(&b, "t.csv", text, size, NULL, &e)) fail_msg("'%.60s' is read", text);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
    assert_true(!b.bar && !b.count);
    assert_false(bars_parse(&b, "t.csv", text, size, NULL, NULL));
}

static void refuse(const char *text, const char *why) {
    refuse_bytes(text, strlen(text), why);
}

static void errors_name_file_and_files_shape(void **state) {
    (void)state;
    refuse("", "t.csv: is empty; expected bars");
    refuse("\n\r\n  \n", "t.csv: is empty; expected bars");
    refuse("time,open,high,low,close\n", "t.csv: has a header but no rows; expected bars");
    refuse("time,open,high,low,close\r\n2024-01-02,1,2,0.5,1\r\ntime,open,high,low,close\r\n2024-01-03,1,2,0.5,1\r\n",
        "t.csv:3: is a second header; remove the line");
    refuse(",Open,High,Low,Close\n2024-01-02,1,2,0.5,1\n,Open,High,Low,Close\n2024-01-03,1,2,0.5,1\n",
        "t.csv:3: is a second header; remove the line");
    refuse("time,open,high,low,close\n2024-01-02,1,1,1,1\n",
        "t.csv: only 1 of 1 rows can be used; at least two bars are needed");
    refuse("time,open,high,low,close\n2024-01-02,1,1,1,1\n2024-01-02,1,1,1,1\n2024-01-03,0,1,1,1\n",
        "t.csv: only 1 of 3 rows can be used; at least two bars are needed");
    refuse("hello\n", "t.csv:1: has no column named open; a bar file needs open, high, low and close; another "
                      "column is named with --columns open=NAME (data.columns)");
    refuse("time,open,high,low\n", "t.csv:1: has no column named close; a bar file needs open, high, low and close; "
                                   "another column is named with --columns close=NAME (data.columns)");
    refuse("\nopen,high,low,close\n1,1,1,1\n", "t.csv:2: has no column for the time; name it time, date or datetime, "
                                               "or say --columns time=NAME (data.columns)");
    refuse("time,open,high,low,close,close\n", "t.csv:1: has two columns named close; keep the columns of one market");
    refuse("Price,Close,Close,High,High,Low,Low,Open,Open\nTicker,A,B,A,B,A,B,A,B\nDate,,,,,,,,\n",
        "t.csv:1: has two columns named open; keep the columns of one market");
    refuse("time,bid,ask\n1,2,3\n",
        "t.csv: is a file of ticks (bid and ask), not bars; export bars, for example of one minute");
    refuse("1 o'clock,1,1,1,1\n", "t.csv:1: '1 o'clock' is not a time; write 2024-01-31 or 2024-01-31 09:30:00");
    refuse("2024-01-02,1,1,1\n",
        "t.csv:1: has no header, and its first row is not a bar: it needs a time, open, high, low and close");
    refuse("2024-01-02,a,b,c,d\n",
        "t.csv:1: has no header, and its first row is not a bar: open, high, low and close must be numbers");
    refuse_bytes("time,op\0n,high\n", 15, "t.csv:1: contains zero bytes; this is no text file");
    refuse("PK\3\4....", "t.csv: is a zip archive or a workbook; unpack it, or save the sheet as CSV");
    refuse("\x1f\x8b\x08", "t.csv: is compressed with gzip; unpack it first");
    sheet s = {0};
    put(&s, "time,open,high,low,close");
    for (int i = 0; i < 4000; i++) put(&s, ",x%d", i);
    refuse_bytes(s.text, s.size, "t.csv:1: has more than 256 columns; is it a bar file?");
    free(s.text);
}

static void errors_name_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *row, *why;
    } cases[] = {
        {"x,1,1,1,1,1,1", "time 'x' is not a time; write 2024-01-31 or 2024-01-31 09:30:00"},
        {"1/2/2024,1,1,1,1,1,1", "time '1/2/2024' does not show the order of day and month; say "
                                 "--date-order dmy, mdy or ymd (data.date_order)"},
        {",1,1,1,1,1,1", "time is empty; fill it or remove the row"},
        {"2024-01-03,1,1,1,abc,1,1", "close 'abc' is not a finite number; correct or remove the row"},
        {"2024-01-03,1,inf,1,1,1,1", "high 'inf' is not a finite number; correct or remove the row"},
        {"2024-01-03,1,1,,1,1,1", "low is missing (empty, NaN or null); fill it or remove the row"},
        {"2024-01-03,nan,1,1,1,1,1", "open is missing (empty, NaN or null); fill it or remove the row"},
        {"2024-01-03,1,1,1,1,many,1", "volume 'many' is not a finite number; correct or remove the row"},
        {"2024-01-03,1,1,1,1,1,wide", "spread 'wide' is not a finite number; correct or remove the row"},
        {"2024-01-03,1,1", "has 3 columns, not 7; is the file cut short?"},
        {"2024-01-03", "has 1 column, not 7; is the file cut short?"},
        {"2024-01-03,1,1,1,1,1,1,1", "has more than 7 columns; correct or remove the row"},
        {"2024-01-03,1,1,1,\"1\"\"\",1", "has 6 columns, not 7; is the file cut short?"},
        {"2024-01-03,1,1,1,01234567890123456789012345678901234567890123456789x,1,1",
            "close '012345678901234567890123456789012345...' is not a finite number; correct or remove the row"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], why[512];
        snprintf(
            text, sizeof text, "time,open,high,low,close,volume,spread\n\n2024-01-02,1,1,1,1,1,1\n%s\n", cases[i].row);
        snprintf(why, sizeof why, "t.csv:4: %s", cases[i].why);
        refuse(text, why);
    }
    refuse("time;open;high;low;close\n2024-01-02;1,5;1,5;1,5;1,5\n",
        "t.csv:2: open '1,5' is not a finite number; export with decimal points");
    refuse("<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\n2024.01.02\t9 am\t1\t1\t1\t1\n",
        "t.csv:2: time '9 am' is not a time; write 09:30:00");
    bars b;
    err e = {0};
    assert_false(bars_parse(&b, "t.csv", head, strlen(head), &(bars_options){.tz = "Nowhere"}, &e));
    assert_string_equal(e.text,
        "t.csv: time zone 'Nowhere' is not known; give UTC, an offset such as +02:00, mt5, or a "
        "name such as Europe/Berlin");
}

static void very_long_lines(void **state) {
    (void)state;
    size_t n = 1 << 20;
    char *text = malloc(n + 200);
    assert_non_null(text);
    int used = sprintf(text, "time,open,high,low,close,note\n2024-01-02,1,1,1,1,a\n2024-01-03,1,1,1,1,");
    memset(text + used, 'x', n);
    bars b;
    parse_with(&b, text, (size_t)used + n, (bars_options){0});
    assert_int_equal(b.count, 2);
    bars_done(&b);
    memset(text + used, ',', n);
    parse_with(&b, text, (size_t)used + n, (bars_options){0});
    bars_done(&b);
    free(text);
}

// Every sample cut at every byte and with every byte changed, in memory of exactly its size.
static void damage(const char *file) {
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, SAMPLES "%s", file);
    char *data = load(path, &size);
    assert_non_null(data);
    static const char bytes[] = {0, '\n', ',', '"', '9', '-', (char)0xFF};
    for (size_t i = 0; i < size * (1 + sizeof bytes); i++) {
        size_t n = i < size ? i : size;
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, data, n);
        if (i >= size) copy[i % size] = bytes[i / size - 1];
        bars b;
        err e = {0};
        bool ok = bars_parse(&b, "t.csv", copy, n, &(bars_options){.keep_filled = i % 2}, &e);
        if (ok) check(&b);
        assert_true(ok || (e.kind == ERR_INPUT && !strchr(e.text, '\n')));
        bars_done(&b);
        free(copy);
    }
    free(data);
}

static void damaged_files(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLE_COUNT; i++) damage(samples[i].file);
    damage("mt5_ticks.csv");
    damage("histdata_ticks.csv");
}

static char *printed(const bars *b) {
    static char text[4096];
    FILE *f = fmemopen(text, sizeof text, "w");
    assert_non_null(f);
    bars_report_print(f, "t.csv", b);
    fclose(f);
    return text;
}

static void report_is_plain(void **state) {
    (void)state;
    bars b;
    parse(&b, "time,open,high,low,close,volume\n2024-01-02 00:00,10,12,9,11,5\n2024-01-02 01:00,10,12,9,11,5\n"
              "2024-01-02 01:00,10,12,9,11,6\n2024-01-02 02:00,10,10,10,10,5\n2024-01-02 03:00,0,12,9,11,5\n");
    assert_string_equal(printed(&b),
        "t.csv: table with named columns, bars of 1 h\n"
        "  bars               3  of 5 rows\n"
        "  time       2024-01-02 to 2024-01-02 02:00 UTC\n"
        "  zone       UTC (assumed; --tz or data.tz names another)\n"
        "  left out           1  a price of zero or less, first in line 6\n"
        "                     1  the stamp of a later row, other figures, first in line 3\n"
        "  noted              1  flat (open, high, low and close equal), first in line 5\n"
        "  spread     unknown\n");
    json_t *j = bars_report_json("t.csv", &b);
    assert_non_null(j);
    assert_int_equal(json_integer_value(json_object_get(j, "bars")), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "span")), 3600);
    assert_string_equal(json_string_value(json_object_get(j, "zone")), "UTC");
    json_t *found = json_object_get(json_object_get(j, "findings"), "not_positive");
    assert_int_equal(json_integer_value(json_object_get(found, "line")), 6);
    assert_int_equal(json_object_size(json_object_get(j, "findings")), 3);
    json_decref(j);
    bars_done(&b);
    parse(&b, "time,open,high,low,close,volume,spread\n2024-01-03,10,12,9,11,5,1\n2024-01-02,10,12,9,11,5,1\n");
    assert_string_equal(printed(&b), "t.csv: table with named columns, bars of 1 day\n"
                                     "  bars               2  of 2 rows\n"
                                     "  time       2024-01-02 to 2024-01-03 UTC\n"
                                     "  zone       UTC (assumed; --tz or data.tz names another)\n"
                                     "  order      from new to old; turned round\n"
                                     "  findings   none\n");
    bars_done(&b);
    for (bars_finding f = 0; f < BARS_FINDINGS; f++) assert_true(bars_finding_key(f) && bars_finding_text(f));
}

static void a_million_rows(void **state) {
    (void)state;
    const int rows = support_sanitized() ? 20000 : 1000000;
    sheet s = {0};
    dice d = {.seed = 1};
    put(&s, "time,open,high,low,close,tick_volume,spread,real_volume\n");
    for (int i = 0; i < rows; i++) {
        when_parts p = when_split(at(2020, 1, 1, 0, 0) + 60 * (int64_t)i);
        put(&s, "%04d-%02d-%02d %02d:%02d:%02d,1.%05d,1.9%04d,1.0%04d,1.%05d,%d,%d,0\n", p.year, p.month, p.day, p.hour,
            p.minute, p.second, 10000 + (int)dice_below(&d, 70000), (int)dice_below(&d, 10000),
            (int)dice_below(&d, 10000), 10000 + (int)dice_below(&d, 70000), 1 + (int)dice_below(&d, 300),
            1 + (int)dice_below(&d, 9));
    }
    bars b;
    err e = {0};
    clock_t start = clock();
    support_ok(bars_parse(&b, "t.csv", s.text, s.size, NULL, &e), &e);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%d rows, %.1f MB: %.3f s of CPU\n", rows, (double)s.size * 1e-6, seconds);
    assert_int_equal(b.count, rows);
    if (!support_sanitized()) assert_true(seconds < 1.0);
    check(&b);
    bars_done(&b);
    free(s.text);
}

// A real file, counted plainly: line by line, with sscanf and strtod, without the reader's help.
typedef struct {
    bar *bar;
    int64_t count, weekend, flat, no_volume, no_spread, fine; // fine: rows before the first step of `span`
} plain;

static plain count_plainly(char *data, size_t size, int64_t span, int spread_column) {
    plain p = {.fine = -1};
    p.bar = calloc(size / 10, sizeof *p.bar);
    assert_non_null(p.bar);
    data[size] = 0;
    char *save = NULL;
    strtok_r(data, "\n", &save);
    for (char *line; (line = strtok_r(NULL, "\n", &save));) {
        struct tm t = {0};
        double v[7] = {0};
        int n = sscanf(line, "%d-%d-%d %d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec);
        assert_true(n == 3 || n == 6);
        t.tm_year -= 1900;
        t.tm_mon -= 1;
        char *cell = strchr(line, ',');
        for (int i = 0; i < 7 && cell; i++, cell = strchr(cell + 1, ',')) v[i] = strtod(cell + 1, NULL);
        bar *b = &p.bar[p.count++];
        *b = (bar){
            (int64_t)timegm(&t), (int64_t)timegm(&t) + span, v[0], v[1], v[2], v[3], v[4], spread_column ? v[5] : 0};
        assert_true(p.count == 1 || b->time > b[-1].time);
        if (p.fine < 0 && p.count > 1 && b->time - b[-1].time == span) p.fine = p.count - 2;
    }
    return p;
}

static void count_rest(plain *p, int64_t from) {
    for (int64_t i = from; i < p->count; i++) {
        time_t t = (time_t)p->bar[i].time;
        struct tm day;
        gmtime_r(&t, &day);
        p->weekend += day.tm_wday == 0 || day.tm_wday == 6;
        p->flat += p->bar[i].high == p->bar[i].low;
        p->no_volume += p->bar[i].volume == 0;
        p->no_spread += p->bar[i].spread == 0;
    }
}

static void real_file(const char *folder, const char *file, int64_t span, const char *format, int64_t coarse) {
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *data = load(path, &size);
    if (!data) return;
    bars b;
    err e = {0};
    support_ok(bars_read(&b, path, NULL, &e), &e);
    check(&b);
    bool spread = strstr(data, "spread") != NULL;
    plain p = count_plainly(data, size, span, spread);
    assert_string_equal(b.format, format);
    assert_int_equal(b.span, span);
    assert_int_equal(b.report.rows, p.count);
    assert_int_equal(b.report.coarse_rows, coarse);
    int64_t from = coarse ? p.fine + 1 : 0; // and the bar that straddles
    if (coarse) assert_int_equal(p.fine, coarse);
    expect(&b, BARS_COARSE, coarse, coarse ? 2 : 0);
    expect(&b, BARS_STRADDLING, coarse > 0, coarse ? coarse + 2 : 0);
    count_rest(&p, from);
    assert_int_equal(b.count, p.count - from);
    for (int64_t i = 0; i < b.count; i++) assert_memory_equal(&b.bar[i], &p.bar[from + i], sizeof(bar));
    assert_int_equal(count_of(&b, BARS_WEEKEND), p.weekend);
    assert_int_equal(count_of(&b, BARS_FLAT), p.flat);
    assert_int_equal(count_of(&b, BARS_NO_VOLUME), p.no_volume);
    assert_int_equal(count_of(&b, BARS_NO_SPREAD), spread ? p.no_spread : 0);
    assert_int_equal(count_of(&b, BARS_UNSORTED) + count_of(&b, BARS_DUPLICATE) + count_of(&b, BARS_CONFLICT), 0);
    check_gaps(&b);
    bars_done(&b);
    free(p.bar);
    free(data);
}

static void real_files(void **state) {
    (void)state;
    static const char python[] = "MetaTrader 5 Python API";
    const char *folder = getenv("TRADEWIND_DATA");
    if (!folder) folder = TEST_DIR "/../../shared/data";
    char path[4096];
    snprintf(path, sizeof path, "%s/XAUUSD_H1.csv", folder);
    FILE *f = fopen(path, "rb");
    if (!f) skip();
    fclose(f);
    real_file(folder, "XAUUSD_H1.csv", 3600, python, 2938);
    real_file(folder, "XAUUSD_H4.csv", 14400, python, 2889);
    real_file(folder, "XAUUSD_D1.csv", 86400, python, 0);
    real_file(folder, "XAUUSD_M15.csv", 900, python, 0);
    real_file(folder, "XAUUSD_M5.csv", 300, python, 0);
    real_file(folder, "EURUSD_M5.csv", 300, python, 0);
    real_file(folder, "EURUSD_hourly_pandas.csv", 3600, "pandas index", 0);
}

// Rows that are taken as they are: two of one stamp, one whose high is below its close, and prices that import refuses
// as two instruments. A file from new to old is still turned round.
static void rows_as_they_are(void **state) {
    (void)state;
    static const char text[] = "time,open,high,low,close,volume\n"
                               "2024-01-02 02:00,1000,1000,1000,1000,0\n"
                               "2024-01-02 01:00,10,12,9,13,5\n"
                               "2024-01-02 00:00,10,12,9,12,5\n"
                               "2024-01-02 00:00,10,12,9,11,5\n"
                               "2024-01-01 23:00,10,12,9,11,5\n";
    bars b;
    err e = {0};
    bars_options o = {.as_is = true};
    support_ok(bars_parse(&b, "b.csv", text, sizeof text - 1, &o, &e), &e);
    assert_true(b.count == 5 && b.span == 0 && b.report.rows == 5);
    assert_true(b.bar[0].time == at(2024, 1, 1, 23, 0) && b.bar[1].time == b.bar[2].time && b.bar[3].close == 13);
    bars_done(&b);
    static const char zero[] = "time,open,high,low,close\n2024-01-02,1,1,1,1\n2024-01-03,1,1,-1,1\n";
    assert_false(bars_parse(&b, "b.csv", zero, sizeof zero - 1, &o, &e));
    assert_string_equal(e.text, "b.csv:3: low is zero or less; correct or remove the row");
    static const char none[] = "time,open,high,low,close\n2024-01-02,1,1,1,1\n2024-01-03,,,,\n";
    assert_false(bars_parse(&b, "b.csv", none, sizeof none - 1, &o, &e));
    assert_string_equal(e.text, "b.csv:3: open is missing (empty, NaN or null); fill it or remove the row");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_format),
        cmocka_unit_test(formats_report_their_zone),
        cmocka_unit_test(refuses_ticks_by_name),
        cmocka_unit_test(reads_variants),
        cmocka_unit_test(reads_utf16),
        cmocka_unit_test(numbers_are_strtods),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(rows_left_out_are_counted),
        cmocka_unit_test(dukascopys_filling),
        cmocka_unit_test(turns_files_round),
        cmocka_unit_test(sorts_and_unites),
        cmocka_unit_test(sorts_a_shuffled_file),
        cmocka_unit_test(repeated_hours_keep_their_order),
        cmocka_unit_test(skipped_hours_are_noted),
        cmocka_unit_test(days_are_days_on_the_clock),
        cmocka_unit_test(changes_of_the_clock_are_no_gaps),
        cmocka_unit_test(coarse_beginnings_are_dropped),
        cmocka_unit_test(coarse_beginnings_hide_no_gaps),
        cmocka_unit_test(first_fine_bar_stays),
        cmocka_unit_test(several_frames),
        cmocka_unit_test(thin_markets_are_kept),
        cmocka_unit_test(thin_bars_after_coarse_ones),
        cmocka_unit_test(short_steps_are_noted),
        cmocka_unit_test(gaps_are_not_closures),
        cmocka_unit_test(gaps_are_as_defined),
        cmocka_unit_test(weekly_gaps),
        cmocka_unit_test(known_spans_are_taken),
        cmocka_unit_test(a_span_of_no_step_leaves_the_rows),
        cmocka_unit_test(rows_that_a_stretch_leaves_are_counted),
        cmocka_unit_test(last_bar_is_judged),
        cmocka_unit_test(errors_name_file_and_files_shape),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(very_long_lines),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(report_is_plain),
        cmocka_unit_test(rows_as_they_are),
        cmocka_unit_test(a_million_rows),
        cmocka_unit_test(real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
