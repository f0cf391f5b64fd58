// Files as sellers write them for people: the order of dates, dressed numbers, columns named by the user, and the error
// lines of files whose columns are not what they seem.
#include "data/bars.h"
#include "data/bars_number.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int64_t day(int year, int month, int of_month) {
    return when_day(year, month, of_month) * WHEN_DAY;
}

static void read(bars *b, const char *text, bars_options o) {
    err e = {0};
    support_ok(bars_parse(b, "t.csv", text, strlen(text), &o, &e), &e);
}

static void refuse(const char *text, bars_options o, const char *why) {
    bars b;
    err e = {0};
    if (bars_parse(&b, "t.csv", text, strlen(text), &o, &e)) fail_msg("'%.60s' is read", text);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
}

static void expect_bar(const bar *b, int64_t time, double open, double high, double low, double close, double volume) {
    assert_int_equal(b->time, time);
    assert_true(b->open == open && b->high == high && b->low == low && b->close == close);
    if (b->volume != volume) fail_msg("volume %.17g, not %.17g", b->volume, volume);
}

static void investing(void **state) {
    (void)state;
    bars b;
    read(&b,
        "\xEF\xBB\xBF\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n"
        "\"01/31/2024\",\"2,053.25\",\"2,050.90\",\"2,072.10\",\"2,046.35\",\"1.23K\",\"0.11%\"\n"
        "\"01/30/2024\",\"2,050.90\",\"2,046.60\",\"2,062.90\",\"2,045.00\",\"4.5M\",\"-0.23%\"\n"
        "\"01/29/2024\",\"2,045\",\"2,036.20\",\"2,053.20\",\"2,035.10\",\"2.1B\",\"0.41%\"\n"
        "\"01/26/2024\",\"2,036.10\",\"2,036.10\",\"2,042.50\",\"2,027.30\",\"-\",\"0.00%\"\n",
        (bars_options){0});
    assert_string_equal(b.format, "Investing");
    assert_int_equal(b.count, 4);
    assert_true(b.report.turned);
    assert_int_equal(b.report.date_order, WHEN_MDY);
    assert_int_equal(b.report.date_order_line, 2);
    expect_bar(&b.bar[3], day(2024, 1, 31), 2050.90, 2072.10, 2046.35, 2053.25, 1230);
    expect_bar(&b.bar[2], day(2024, 1, 30), 2046.60, 2062.90, 2045.00, 2050.90, 4.5e6);
    expect_bar(&b.bar[1], day(2024, 1, 29), 2036.20, 2053.20, 2035.10, 2045, 2.1e9);
    expect_bar(&b.bar[0], day(2024, 1, 26), 2036.10, 2042.50, 2027.30, 2036.10, 0);
    bars_done(&b);
    read(&b,
        "\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n"
        "\"Jan 03, 2024\",\"1.0921\",\"1.0940\",\"1.0966\",\"1.0893\",\"\",\"-0.18%\"\n"
        "\"Jan 02, 2024\",\"1.0941\",\"1.1044\",\"1.1046\",\"1.0937\",\"\",\"-0.86%\"\n",
        (bars_options){0});
    expect_bar(&b.bar[0], day(2024, 1, 2), 1.1044, 1.1046, 1.0937, 1.0941, 0);
    bars_done(&b);
}

static void nasdaq(void **state) {
    (void)state;
    bars b;
    read(&b,
        "Date,Close/Last,Volume,Open,High,Low\n"
        "01/03/2024,$184.25,58414460,$184.22,$185.88,$183.43\n"
        "01/02/2024,$185.64,82488670,$187.15,$188.44,$183.885\n",
        (bars_options){0});
    assert_string_equal(b.format, "Nasdaq");
    assert_true(b.report.turned && !b.report.date_order);
    expect_bar(&b.bar[0], day(2024, 1, 2), 187.15, 188.44, 183.885, 185.64, 82488670);
    expect_bar(&b.bar[1], day(2024, 1, 3), 184.22, 185.88, 183.43, 184.25, 58414460);
    bars_done(&b);
}

static void stooq_and_others(void **state) {
    (void)state;
    bars b;
    read(&b,
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\n"
        "EURUSD,60,20240102,000000,2,3,1,2,5,0\nEURUSD,60,20240102,010000,2,3,1,2,5,0\n",
        (bars_options){0});
    assert_string_equal(b.format, "Stooq");
    assert_string_equal(b.symbol, "EURUSD");
    assert_int_equal(b.bar[1].time, day(2024, 1, 2) + 3600);
    bars_done(&b);
    read(&b,
        "ticker,volume,open,close,high,low,window_start,transactions\n"
        "AAPL,5,2,2,3,1,1704205800000000000,9\nAAPL,6,2,2,3,1,1704205860000000000,9\n",
        (bars_options){0});
    assert_int_equal(b.bar[0].time, 1704205800);
    bars_done(&b);
    read(&b, "Time,Open,High,Low,Last,Change\n01/13/2024,2,3,1,2.5,0\n01/14/2024,2,3,1,2.5,0\n", (bars_options){0});
    expect_bar(&b.bar[0], day(2024, 1, 13), 2, 3, 1, 2.5, 0);
    bars_done(&b);
}

#define ROW ",2,3,1,2\n"

static void orders_are_given_or_shown(void **state) {
    (void)state;
    static const char unclear[] = "date,open,high,low,close\n03/04/2024" ROW "04/04/2024" ROW "05/04/2024" ROW;
    bars b;
    refuse(unclear, (bars_options){0},
        "t.csv:2: time '03/04/2024' does not show the order of day and month; say --date-order dmy, mdy or "
        "ymd (data.date_order)");
    read(&b, unclear, (bars_options){.date_order = WHEN_DMY});
    assert_true(b.bar[0].time == day(2024, 4, 3) && b.span == WHEN_DAY && !b.report.date_order);
    bars_done(&b);
    read(&b, unclear, (bars_options){.date_order = WHEN_MDY});
    assert_true(b.bar[0].time == day(2024, 3, 4) && b.span == WHEN_MONTH);
    bars_done(&b);
    // A day over 12 anywhere decides for the whole file, with and without a header.
    static const char *const shown[] = {"date,open,high,low,close\n12-01-2024 1:00 PM" ROW "\n13-01-2024 1:00 PM" ROW,
        "12-01-2024 13:00" ROW "\n13-01-2024 13:00" ROW};
    for (int i = 0; i < 2; i++) {
        read(&b, shown[i], (bars_options){0});
        assert_int_equal(b.bar[0].time, day(2024, 1, 12) + 13 * 3600);
        assert_int_equal(b.report.date_order, WHEN_DMY);
        assert_int_equal(b.report.date_order_line, i ? 3 : 4);
        bars_done(&b);
    }
    refuse("date,open,high,low,close\n01/02/2024" ROW "01/13/2024" ROW "13/01/2024" ROW, (bars_options){0},
        "t.csv:4: time '13/01/2024' is not a time; line 3 shows the order mdy; correct one of them");
    refuse("date,open,high,low,close\n01/13/2024" ROW, (bars_options){.date_order = WHEN_DMY},
        "t.csv:2: time '01/13/2024' is not a time; dates are read in the order dmy; --date-order names another");
    // Years of two digits need the order.
    static const char brief[] = "date,time,open,high,low,close\n31/01/24,9:30 AM" ROW "31/01/24,4:30 PM" ROW;
    refuse(brief, (bars_options){0},
        "t.csv:2: date '31/01/24' does not show the order of day and month; say --date-order dmy, mdy or "
        "ymd (data.date_order)");
    read(&b, brief, (bars_options){.date_order = WHEN_DMY});
    assert_int_equal(b.bar[1].time, day(2024, 1, 31) + 16 * 3600 + 1800);
    bars_done(&b);
    read(&b, "01/31/2024,09:30" ROW "01/31/2024,09:31" ROW, (bars_options){0});
    assert_int_equal(b.bar[1].time, day(2024, 1, 31) + 9 * 3600 + 1860);
    bars_done(&b);
}

static void columns_are_named(void **state) {
    (void)state;
    static const char text[] = "Datum;Zuletzt;Er\xC3\xB6"
                               "ffn.;Hoch;Tief;High;Stk\n2024-01-02;2;2.5;3;1;9;7\n2024-01-03;2;2.5;3;1;9;7\n";
    bars b;
    read(&b, text,
        (bars_options){.columns = "time=Datum, close=Zuletzt,open=Er\xC3\xB6"
                                  "ffn.,high=hoch,low=TIEF,volume=Stk"});
    expect_bar(&b.bar[1], day(2024, 1, 3), 2.5, 3, 1, 2, 7);
    bars_done(&b);
    read(&b,
        "when,day,open,high,low,close,adj close,name\n10:00,2024-01-02,2,3,1,2,1.5,X\n11:00,2024-01-02,2,3,1,2,1.5,X\n",
        (bars_options){.columns = "date=day,time=when,close=Adj Close,symbol=name"});
    expect_bar(&b.bar[0], day(2024, 1, 2) + 36000, 2, 3, 1, 1.5, 0);
    assert_string_equal(b.symbol, "X");
    bars_done(&b);
    // Places, in files without a header: all of them, or some on top of the usual order.
    read(&b, "X,2024-01-02,2,1,3,2\nX,2024-01-03,2,1,3,2\n",
        (bars_options){.columns = "symbol=1,time=2,open=3,low=4,high=5,close=6"});
    expect_bar(&b.bar[0], day(2024, 1, 2), 2, 3, 1, 2, 0);
    assert_string_equal(b.symbol, "X");
    bars_done(&b);
    read(&b, "2024-01-02,2,1,3,2\n2024-01-03,2,1,3,2\n", (bars_options){.columns = "high=4,low=3"});
    expect_bar(&b.bar[0], day(2024, 1, 2), 2, 3, 1, 2, 0);
    bars_done(&b);
}

static void wrong_columns_are_told(void **state) {
    (void)state;
    static const char text[] = "Date,Price,Open,High,Low\n2024-01-02,2,2,3,1\n2024-01-03,2,2,3,1\n";
    static const char bare[] = "2024-01-02,2,3,1,2\n2024-01-03,2,3,1,2\n";
    refuse(text, (bars_options){0},
        "t.csv:1: has no column named close; a bar file needs open, high, low and close; another column is named with "
        "--columns close=NAME (data.columns)");
    refuse("Date,Close\n2024-01-02,2\n", (bars_options){0},
        "t.csv:1: has no column named open; a bar file needs open, high, low and close; another column is named with "
        "--columns open=NAME (data.columns)");
    refuse(text, (bars_options){.columns = "close=Last"},
        "t.csv:1: has no column 'Last', which --columns (data.columns) names; its columns are Date, Price, Open, High, "
        "Low");
    refuse(text, (bars_options){.columns = "last=Price"},
        "t.csv: 'last' in --columns is no role; roles are time, date, open, high, low, close, volume, spread, symbol, "
        "as in time=Date,close=Price");
    refuse(text, (bars_options){.columns = "close"}, "t.csv: --columns gives close no column; write close=NAME");
    refuse(text, (bars_options){.columns = "close=Price,open=price"},
        "t.csv: --columns names 'price' twice; a column has one role");
    refuse(text, (bars_options){.columns = "close=Price,close=Open"},
        "t.csv: --columns gives close two columns; a role has one");
    refuse(bare, (bars_options){.columns = "close=Price"},
        "t.csv:1: has no header, so --columns takes numbers from 1 to 5, not 'Price'");
    refuse(bare, (bars_options){.columns = "close=6"},
        "t.csv:1: has no header, so --columns takes numbers from 1 to 5, not '6'");
    refuse(
        bare, (bars_options){.columns = "close=4"}, "t.csv:1: has no column left for low; add low=NUMBER to --columns");
    refuse(bare, (bars_options){.columns = "volume=1"},
        "t.csv:1: has no column left for the time; add time=NUMBER to --columns");
}

static void swapped_columns_are_told(void **state) {
    (void)state;
    refuse("Date,Open,High,Low,Close\n2024-01-02,2,1,3,2\n2024-01-03,2,3,1,2\n2024-01-04,2,1,3,2\n", (bars_options){0},
        "t.csv:2: high is below low in 2 of 3 rows, this is the first; the columns look swapped: --columns "
        "high=Low,low=High");
    refuse("2024-01-02,2,1,3,2\n2024-01-03,2,1,3,2\n", (bars_options){0},
        "t.csv:1: high is below low in 2 of 2 rows, this is the first; the columns look swapped: --columns "
        "high=4,low=3");
    bars b;
    read(&b, "Date,Open,High,Low,Close\n2024-01-02,2,1,3,2\n2024-01-03,2,1,3,2\n",
        (bars_options){.columns = "high=Low,low=High"});
    expect_bar(&b.bar[0], day(2024, 1, 2), 2, 3, 1, 2, 0);
    bars_done(&b);
    read(&b, "Date,Open,High,Low,Close\n2024-01-02,2,1,3,2\n2024-01-03,2,3,1,2\n2024-01-04,2,3,1,2\n",
        (bars_options){0});
    assert_int_equal(b.report.tally[BARS_HIGH_LOW].count, 1);
    bars_done(&b);
}

static void dressed_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool english, lettered, ok;
        double v;
    } cases[] = {{"$1,843.20", false, false, true, 1843.20}, {"1,234,567", false, false, true, 1234567},
        {"1,843", true, false, true, 1843}, {"1,843", false, false, false, 0}, {"12,34.5", true, false, false, 0},
        {"1,8430", true, false, false, 0}, {"1234,567.0", true, false, false, 0}, {",123.0", true, false, false, 0},
        {"1.234,5", true, false, false, 0}, {"1.234,567", true, false, false, 0}, {"-$5", false, false, true, -5},
        {"$", false, false, false, 0}, {"$-5", false, false, false, 0}, {"1.23K", false, true, true, 1230},
        {"1.23K", false, false, false, 0}, {"0.1b", false, true, true, 1e8}, {"7T", false, true, true, 7e12},
        {"1e3K", false, true, false, 0}, {"K", false, true, false, 0}, {"1,234.5M", false, true, true, 1234.5e6},
        {"1,,234", true, false, false, 0}, {"1,234,", true, false, false, 0}, {"$$5", false, false, false, 0},
        {"0x10", true, true, false, 0}, {"inf", true, true, false, 0}, {"", true, true, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v = 0;
        number_kind kind =
            bars_number_dressed(cases[i].text, strlen(cases[i].text), cases[i].english, cases[i].lettered, &v);
        if (kind != (cases[i].ok ? NUMBER_OK : NUMBER_BAD) || (cases[i].ok && v != cases[i].v))
            fail_msg("'%s': %d, %.17g", cases[i].text, kind, v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(investing),
        cmocka_unit_test(nasdaq),
        cmocka_unit_test(stooq_and_others),
        cmocka_unit_test(orders_are_given_or_shown),
        cmocka_unit_test(columns_are_named),
        cmocka_unit_test(wrong_columns_are_told),
        cmocka_unit_test(swapped_columns_are_told),
        cmocka_unit_test(dressed_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
