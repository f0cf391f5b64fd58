// Signal files: columns by name, the bar of each signal, and one line for each thing that is wrong.
#include "backtest/signals.h"
#include "env/account_terms.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool parse(signals *s, const char *text, err *e) {
    return signals_parse(s, "s.csv", text, strlen(text), e);
}

static void columns_go_by_name(void **state) {
    (void)state;
    signals s;
    err e = {0};
    support_ok(parse(&s, "Target;TIME;position\r\n\r\n1.25;2024-01-02 03:00;-0.5\r\n;2024-01-03;1e3\r\n", &e), &e);
    assert_int_equal(s.count, 2);
    assert_true(s.row[0].lots == -ACCOUNT_ONE / 2 && s.row[0].target == 5 * ACCOUNT_ONE / 4 && s.row[0].stop == 0);
    assert_true(s.row[1].lots == 1000 * ACCOUNT_ONE && s.row[1].target == 0 && s.row[1].line == 4);
    assert_int_equal(s.row[1].time - s.row[0].time, 21 * WHEN_HOUR);
    signals_done(&s);
    signals_done(&s);
}

static void each_fault_is_a_line(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"time,position,size\n", "s.csv:1: column 'size' is unknown; the columns are time, position, stop and target"},
        {"time,stop\n", "s.csv:1: has no column position"},
        {"position\n", "s.csv:1: has no column time"},
        {"time,position,time\n", "s.csv:1: column time is there twice"},
        {"2024-01-02,1\n", "s.csv:1: the header is missing"},
        {"time,position\n", "s.csv: holds no signals"},
        {"", "s.csv: holds no signals"},
        {"time,position\nsoon,1\n", "s.csv:2: time 'soon' cannot be read; write 2024-01-31"},
        {"time,position\n2024-01-02,\n", "s.csv:2: position is empty"},
        {"time,position\n2024-01-02,many\n", "s.csv:2: position 'many' cannot be read"},
        {"time,position\n2024-01-02,inf\n", "s.csv:2: position 'inf' cannot be read"},
        {"time,position\n2024-01-02,1e11\n", "s.csv:2: position '1e11' cannot be read; write a number below 9e10"},
        {"time,position,stop\n2024-01-02,1,0\n", "s.csv:2: stop '0' cannot be read; it is a price above 0"},
        {"time,position,target\n2024-01-02,1,-4\n", "s.csv:2: target '-4' cannot be read; it is a price above 0"},
        {"time,position\n2024-01-02,1,2\n", "s.csv:2: has 3 columns, not 2"},
        {"time,position,stop\n2024-01-02,1\n", "s.csv:2: has 2 columns, not 3"},
        {"time,position\n2024-01-02,1\n2024-01-01,1\n", "s.csv:3: time 2024-01-01 is not after"},
        {"time,position\n2024-01-02,1\n2024-01-02,1\n", "s.csv:3: time 2024-01-02 is not after"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        signals s;
        err e = {0};
        if (parse(&s, bad[i][0], &e)) fail_msg("case %zu was taken", i);
        if (e.kind != ERR_INPUT || !strstr(e.text, bad[i][1])) fail_msg("case %zu: %s", i, e.text);
        assert_null(s.row);
    }
}

// Bars of 2024-01-01 to 04, the third one twice.
static quotes five_bars(void) {
    static int64_t time[5], close[5];
    for (int i = 0; i < 5; i++) {
        time[i] = (when_day(2024, 1, 1) + (i > 2 ? i - 1 : i)) * WHEN_DAY;
        close[i] = 100 * ACCOUNT_ONE;
    }
    return (quotes){.count = 5, .time = time, .close = close};
}

static bool place(signals_orders *o, const char *text, err *e) {
    signals s;
    quotes q = five_bars();
    account_rules r = {.contract = 100 * ACCOUNT_ONE, .lot_step = ACCOUNT_ONE / 10};
    support_ok(parse(&s, text, e), e);
    bool ok = signals_place(o, &s, &q, &r, e);
    signals_done(&s);
    return ok;
}

static void signals_fill_at_the_next_bar(void **state) {
    (void)state;
    signals_orders o;
    err e = {0};
    support_ok(
        place(&o,
            "time,position\n2023-12-31,1\n2024-01-01,0.29\n2024-01-03,-1\n2024-01-04,2\n2024-01-05,3\n2024-02-05,"
            "3\n",
            &e),
        &e);
    assert_true(o.count == 2 && o.outside == 3 && o.late == 1);
    assert_true(o.item[0].bar == 1 && o.item[0].order.units == 20 * ACCOUNT_ONE);
    assert_true(o.item[1].bar == 4 && o.item[1].order.units == -100 * ACCOUNT_ONE); // behind the last of a stamp's rows
    signals_orders_done(&o);
    support_ok(place(&o, "time,position\n2024-01-04,1\n", &e), &e);
    assert_true(o.count == 0 && o.late == 1);
    signals_orders_done(&o);
}

static void signals_outside_the_bars(void **state) {
    (void)state;
    signals_orders o;
    err e = {0};
    assert_false(place(&o, "time,position\n2023-12-30,1\n2025-01-01,1\n", &e));
    assert_non_null(strstr(e.text, "s.csv: no signal lies within the bars, which open from 2024-01-01 to 2024-01-04"));
    assert_false(place(&o, "time,position\n2024-01-01,1\n2024-01-02 01:00,1\n", &e));
    assert_non_null(strstr(e.text, "s.csv:3: no bar opens at 2024-01-02 01:00, the one before it at 2024-01-02"));
    assert_false(place(&o, "time,position\n2024-01-01,8e9\n", &e));
    assert_non_null(strstr(e.text, "s.csv:2: position of more than 9e10 units"));
    assert_null(o.item);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_go_by_name),
        cmocka_unit_test(each_fault_is_a_line),
        cmocka_unit_test(signals_fill_at_the_next_bar),
        cmocka_unit_test(signals_outside_the_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
