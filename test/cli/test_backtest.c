// tradewind backtest from outside: the block that is printed, JSON, the list of trades, and what is refused.
#include "cli/program.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Four hours: up, up, a bar that reaches 98 and 112, down. One row twice, with the stamp of the row before it.
static const char bars_text[] = "time,open,high,low,close,tick_volume,spread,real_volume\n"
                                "2024-01-02 00:00:00,100.0,101.0,99.0,100.5,10,5,0\n"
                                "2024-01-02 01:00:00,101.0,103.0,100.0,102.0,10,5,0\n"
                                "2024-01-02 02:00:00,102.0,112.0,98.0,104.0,10,5,0\n"
                                "2024-01-02 02:00:00,104.0,105.0,104.0,104.0,10,5,0\n"
                                "2024-01-02 03:00:00,104.0,104.0,100.0,101.0,10,5,0\n";
static const char signals_text[] = "time,position,stop,target\n"
                                   "2023-01-02 00:00:00,1,,\n"
                                   "2024-01-02 00:00:00,10,98,112\n"
                                   "2024-01-02 02:00:00,-10,,\n"
                                   "2024-01-02 03:00:00,1,,\n";

static void put_files(void) {
    put_text("bars.csv", bars_text);
    put_text("signals.csv", signals_text);
}

#define BACKTEST(...) RUN("backtest", "--signals", "signals.csv", "--bars", "bars.csv", __VA_ARGS__)

static void the_block_says_what_it_assumes(void **state) {
    (void)state;
    put_files();
    assert_int_equal(BACKTEST("account.spread=0.001", "account.commission=1/unit", "--trades", "t.csv"), 0);
    matches("out", "^bars +bars\\.csv: 5 from 2024-01-02 to 2024-01-02 03:00, row by row as they are\n");
    matches("out", "\nsignals +signals\\.csv: 2 used, 1 ignored outside the bars, 1 ignored at the last bar, which ");
    matches(
        "out", "\ncosts +spread at entries: 0\\.1 % of the price; commission at each fill: 1 a unit; slippage: none");
    matches("out",
        "the stop where one bar reaches both;\n +also in the bar of the entry; what is open at the end at the "
        "last close\n");
    matches("out", "\nambiguous 1 bar reached stop and target\n");
    matches("out", "\npaid +commission 40\\.00, spread 2\\.05, slippage 0\\.00; swap received 0\\.00\n");
    // Long 10 from 101.101 to 98, short 10 from 103.896 to 101: -31.01 - 20 + 28.96 - 20.
    matches("out", "\nfinal equity +99957\\.95\n");
    matches("out", "\nreturn +-0\\.042[01] %\n");
    matches("out", "\nbuy and hold: return +0\\.50 %\n");
    matches("out", "\ntrades +2\n");
    matches("out", "\nexposure +60\\.00 %\n");
    matches("out", "\nSharpe +-  needs two daily returns\n");
    put_text("want.csv",
        "position,entry_time,exit_time,entry_price,exit_price,result,commission,swap,exit_reason\n"
        "10,2024-01-02 01:00,2024-01-02 02:00,101.10100000,98.00000000,-51.01000000,20.00000000,0.00000000,stop\n"
        "-10,2024-01-02 03:00,2024-01-02 03:00,103.89600000,101.00000000,8.96000000,20.00000000,0.00000000,end\n");
    same_bytes("t.csv", "want.csv");
    assert_int_equal(BACKTEST("--trades", "t.csv", "-q"), 0); // a list of trades is written over
    matches("out", "^[ \n]*final equity +[0-9.]+\n");
    assert_int_equal(BACKTEST("-v"), 0);
    matches("out", "\nreturn +0\\.00 %\n +final equity / cash - 1\n");
    is_empty("err");
}

static void rules_are_keys(void **state) {
    (void)state;
    put_files();
    assert_int_equal(BACKTEST("--json"), 0);
    assert_true(fabs(number("equity_final") - 100000) < 1e-9); // -30 and +30
    assert_true(number("trades") == 2 && number("ambiguous_bars") == 1 && number("signals_late") == 1);
    assert_int_equal(BACKTEST("--json", "account.both=target"), 0);
    assert_true(fabs(number("equity_final") - 100140) < 1e-9 && number("win_rate") == 1);
    assert_int_equal(BACKTEST("--json", "account.last=open"), 0);
    assert_true(fabs(number("equity_final") - 99970) < 1e-9);
    assert_int_equal(BACKTEST("--json", "account.spread=file"), 0); // 5 points of 0.1: one digit
    assert_true(fabs(number("equity_final") - (100000 - 10)) < 1e-9 && number("spread_costs") == 10);
    assert_int_equal(BACKTEST("--json", "account.spread=2pt", "account.point=0.01"), 0);
    assert_true(fabs(number("spread_costs") - 0.4) < 1e-9);
    assert_int_equal(BACKTEST("--json", "account.short=false"), 0);
    assert_true(number("trades") == 1);
    assert_int_equal(BACKTEST("--json", "account.contract=100", "account.leverage=2"), 0);
    assert_true(fabs(number("equity_final") - 100000) < 1e-9 && number("turnover") > 1000);
    assert_true(number("hold_return") > 0.004 && number("trials") == 1);
    assert_int_equal(BACKTEST("--json", "report.trials=9"), 0);
    assert_true(number("trials") == 9);
}

static void odd_signals_are_counted(void **state) {
    (void)state;
    put_files();
    assert_int_equal(BACKTEST("--json"), 0);
    assert_true(number("signals_crossed") == 0 && number("signals_small") == 0);
    put_text("signals.csv", "time,position,stop,target\n2024-01-02 00:00:00,10,100.5,112\n"
                            "2024-01-02 01:00:00,-10,103,102\n2024-01-02 02:00:00,0.4,,\n");
    assert_int_equal(BACKTEST("account.lot_step=1"), 0);
    matches("out", "\nnote +2 positions with a stop above or a target below the close \\(the other way round when "
                   "short\\); 1 position below\n +account\\.lot_step, which opens nothing\n");
    assert_int_equal(BACKTEST("account.lot_step=1", "--json"), 0);
    assert_true(number("signals_crossed") == 2 && number("signals_small") == 1);
    assert_int_equal(BACKTEST("--json"), 0);
    assert_true(number("signals_crossed") == 2 && number("signals_small") == 0);
}

static void faults_are_one_line(void **state) {
    (void)state;
    put_files();
    complains(RUN("backtest", "--bars", "bars.csv"),
        "no run and no signals given; name a run's directory, or --signals FILE");
    complains(RUN("backtest", "--signals", "signals.csv"), "no bars given; .*--bars FILE");
    complains(
        RUN("backtest", "--signals", "-", "--bars", "-"), "--signals - and --bars - both read standard input; .*");
    complains(BACKTEST("--part", "test"), "--part, --symbol and --data are of a run, and signals are given; .*");
    complains(BACKTEST("signal.threshold=1"), "signal\\.threshold=1: .*unknown key.*");
    complains(BACKTEST("account.cahs=1"), "account\\.cahs=1: .*unknown key; did you mean account\\.cash.*");
    complains(BACKTEST("account.spread=2points"), "account\\.spread=2points: .*is no such amount; write 0\\.0001.*");
    complains(BACKTEST("account.cash=500"), "account: no order could be filled: .*; raise account\\.cash or .*");
    complains(BACKTEST("account.commission=20000/unit"), "account: costs are above the capital: .*; lower .*");
    complains(BACKTEST("--trades", "bars.csv"), "bars\\.csv: is both input and output; name another output");
    put_text("notes.csv", "mine\n");
    complains(BACKTEST("--trades", "notes.csv"), "notes\\.csv: is there and is not a list of trades by backtest; .*");
    put_text("signals.csv", "time,position,confidence\n2024-01-02,1,0.5\n");
    complains(BACKTEST("-q"), "signals\\.csv:1: column 'confidence' is unknown; the columns are .*");
    put_text("signals.csv", "time,position\n2020-01-02,1\n");
    complains(BACKTEST("-q"), "signals\\.csv: no signal lies within the bars, .*");
    put_text("signals.csv", "time,position\n2024-01-02 00:30,1\n");
    complains(BACKTEST("-q"), "signals\\.csv:2: no bar opens at 2024-01-02 00:30, .*");
    put_text("bars.csv", "time,open,high,low,close\n2024-01-02,1,1,1,1\n2024-01-03,1,1,0,1\n");
    complains(BACKTEST("-q"), "bars\\.csv:3: low is zero or less; correct or remove the row");
}

static void help_has_the_keys(void **state) {
    (void)state;
    assert_int_equal(RUN("backtest", "--help"), 0);
    matches("out", "\naccount\\.entry_stop +on or off +on ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_block_says_what_it_assumes),
        TEST(rules_are_keys),
        TEST(odd_signals_are_counted),
        TEST(faults_are_one_line),
        TEST(help_has_the_keys),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
