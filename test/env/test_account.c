// The books of an account: each rule of a bar by hand, and a second way of book-keeping beside random strategies on
// real files.
#include "env/plain.h"

#include "backtest/quotes.h"
#include "env/account_terms.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static account_bar bar_of(double open, double high, double low, double close) {
    return (account_bar){fixed(open), fixed(high), fixed(low), fixed(close), 0};
}

static account_order order_of(double units, double stop, double target) {
    return (account_order){fixed(units), fixed(stop), fixed(target)};
}

// An account that has taken an order on a quiet bar at 100.
typedef struct {
    account_rules r;
    account a;
    account_events ev;
} bench;

static void begin(bench *t, double units, double stop, double target) {
    account_bar quiet = bar_of(100, 100, 100, 100);
    account_order o = order_of(units, stop, target);
    account_init(&t->a, &t->r);
    account_step(&t->a, &t->r, &o, &quiet, &t->ev);
}

static void next(bench *t, account_bar b) {
    account_step(&t->a, &t->r, NULL, &b, &t->ev);
}

static void exits_at(const bench *t, double price, account_reason why, bool ambiguous) {
    assert_int_equal(t->ev.count, 1);
    assert_int_equal(t->ev.fill[0].price, fixed(price));
    assert_int_equal(t->ev.fill[0].reason, why);
    assert_int_equal(t->ev.ambiguous, ambiguous);
    assert_int_equal(t->a.units, 0);
}

static void rounds_half_to_even(void **state) {
    (void)state;
    static const int64_t all[][3] = {{5, 10, 0}, {15, 10, 2}, {25, 10, 2}, {26, 10, 3}, {24, 10, 2}, {-5, 10, 0},
        {-15, 10, -2}, {-25, 10, -2}, {-26, 10, -3}, {7, 7, 1}, {0, 3, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal((int64_t)account_round(all[i][0], all[i][1]), all[i][2]);
}

// v / by half to even, by the definition.
static account_wide quotient(account_wide v, account_wide by) {
    account_wide q = v / by, rest = v - q * by, twice = rest < 0 ? -2 * rest : 2 * rest;
    return twice > by || (twice == by && q % 2) ? q + (v < 0 ? -1 : 1) : q;
}

// Amounts of 64 and of 128 bits, halves among them, with a whole part of either sign.
static void nearest_are_quotients(void **state) {
    (void)state;
    dice d = {.seed = 4};
    for (int i = 0; i < 200000; i++) {
        int64_t by = (int64_t)(2 + 2 * dice_below(&d, UINT64_C(1) << (1 + dice_below(&d, 60))));
        account_wide v = (account_wide)dice_below(&d, UINT64_C(1) << (1 + dice_below(&d, 62)));
        v *= (account_wide)dice_below(&d, UINT64_C(1) << (1 + dice_below(&d, 40)));
        if (i % 3 == 0) v = v / by * by + by / 2;
        if (i % 2) v = -v;
        int64_t whole = (int64_t)dice_below(&d, 1000000) - 500000;
        assert_true(account_round(v, by) == quotient(v, by));
        assert_true(account_near(whole, v, by) == quotient((account_wide)whole * by + v, by));
    }
}

// Units at a price without a long division, against the division.
static void marks_are_quotients(void **state) {
    (void)state;
    dice d = {.seed = 3};
    for (int i = 0; i < 200000; i++) {
        int64_t units = (int64_t)dice_below(&d, UINT64_C(1) << (1 + dice_below(&d, 62)));
        int64_t price = (int64_t)dice_below(&d, UINT64_C(1) << (1 + dice_below(&d, 62)));
        if (i % 3 == 0) price = price % 100000 * 50000000; // halves
        if (i % 2) units = -units;
        assert_true(account_mark(units, price) == quotient((account_wide)units * price, ACCOUNT_ONE));
    }
}

static void exits_inside_a_bar(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    begin(&t, 10, 95, 110);
    assert_int_equal(t.ev.count, 1);
    next(&t, bar_of(100, 110, 95, 100));
    exits_at(&t, 95, ACCOUNT_BY_STOP, true);
    t.r.target_first = true;
    begin(&t, 10, 95, 110);
    next(&t, bar_of(100, 110, 95, 100));
    exits_at(&t, 110, ACCOUNT_BY_TARGET, true);
    begin(&t, 10, 95, 110);
    next(&t, bar_of(94, 112, 90, 100)); // the open decides
    exits_at(&t, 94, ACCOUNT_BY_STOP, false);
    begin(&t, 10, 95, 110);
    next(&t, bar_of(95, 112, 90, 100));
    exits_at(&t, 95, ACCOUNT_BY_STOP, false);
    begin(&t, 10, 95, 110);
    next(&t, bar_of(111, 112, 90, 100));
    exits_at(&t, 111, ACCOUNT_BY_TARGET, false);
    begin(&t, 10, 95, 110);
    next(&t, bar_of(100, 109.99999999, 95.00000001, 100));
    assert_int_equal(t.ev.count, 0);
    // Short: the same upside down.
    t.r.target_first = false;
    begin(&t, -10, 105, 90);
    next(&t, bar_of(100, 105, 90, 100));
    exits_at(&t, 105, ACCOUNT_BY_STOP, true);
    assert_int_equal(t.ev.fill[0].result, fixed(-50));
    begin(&t, -10, 105, 90);
    next(&t, bar_of(89, 100, 88, 100));
    exits_at(&t, 89, ACCOUNT_BY_TARGET, false);
    assert_int_equal(t.a.cash, fixed(10110));
}

static void the_bar_of_the_entry(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    account_bar wide = bar_of(100, 120, 80, 100);
    account_order o = order_of(10, 95, 130);
    account_init(&t.a, &t.r);
    account_step(&t.a, &t.r, &o, &wide, &t.ev);
    assert_int_equal(t.ev.count, 2);
    assert_true(t.ev.fill[0].opens && !t.ev.fill[1].opens && t.ev.fill[1].price == fixed(95));
    t.r.entry_stop = false;
    account_init(&t.a, &t.r);
    account_step(&t.a, &t.r, &o, &wide, &t.ev);
    assert_int_equal(t.ev.count, 1);
    next(&t, wide);
    exits_at(&t, 95, ACCOUNT_BY_STOP, false);
}

static void an_order_replaces_a_position(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    account_bar b = bar_of(102, 103, 101, 102);
    account_order same = order_of(10, 99, 0), other = order_of(-5, 0, 0), flat = order_of(0, 0, 0);
    begin(&t, 10, 95, 110);
    account_step(&t.a, &t.r, &same, &b, &t.ev);
    assert_true(t.ev.count == 0 && t.a.stop == fixed(99) && t.a.target == ACCOUNT_NEVER);
    account_step(&t.a, &t.r, &other, &b, &t.ev);
    assert_int_equal(t.ev.count, 2);
    assert_true(t.ev.fill[0].result == fixed(20) && t.a.units == fixed(-5));
    account_step(&t.a, &t.r, &flat, &b, &t.ev);
    assert_true(t.ev.count == 1 && !t.a.units && t.a.cash == fixed(10020));
    t.r.shorts = false;
    account_step(&t.a, &t.r, &other, &b, &t.ev);
    assert_true(t.ev.count == 0 && !t.ev.refused && !t.a.units);
}

static void costs_are_kept_apart(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    t.r.spread = (account_amount){ACCOUNT_SHARE / 100, fixed(0.5)};
    t.r.slippage = (account_amount){0, fixed(0.25)};
    t.r.commission_share = ACCOUNT_SHARE / 1000;
    begin(&t, 10, 0, 120);
    // (100 + 0.75) x 1.01 = 101.7575; slippage alone is 100.25
    assert_int_equal(t.ev.fill[0].price, fixed(101.7575));
    assert_int_equal(t.a.slippage, fixed(2.5));
    assert_int_equal(t.a.spread, fixed(1017.575 - 1002.5));
    assert_int_equal(t.a.commission, fixed(1.017575));
    assert_int_equal(account_equity(&t.a, fixed(100)), fixed(10000 - 17.575 - 1.017575));
    account_bar b = bar_of(119, 121, 119, 120);
    next(&t, b);
    exits_at(&t, 120, ACCOUNT_BY_TARGET, false); // no slippage there
    assert_int_equal(t.ev.fill[0].commission, fixed(1.2));
    assert_int_equal(t.ev.fill[0].result, fixed(200 - 17.575 - 2.217575));
    begin(&t, 10, 90, 0);
    next(&t, bar_of(95, 96, 89, 90));
    exits_at(&t, 89.75, ACCOUNT_BY_STOP, false);
    t.r = plain_rules();
    t.r.commission_money = fixed(7);
    t.r.commission_units = t.r.contract = fixed(100);
    begin(&t, 50, 0, 0);
    assert_int_equal(t.a.commission, fixed(3.5));
    bool over = false;
    t.r.lot_step = fixed(0.1);
    assert_int_equal(account_units(&t.r, fixed(0.57), &over), fixed(50));
    assert_int_equal(account_units(&t.r, fixed(-0.57), &over), fixed(-50));
    assert_false(over);
}

static void nights_have_swap(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    t.r.swap_long = (account_amount){-ACCOUNT_SHARE / 10000, 0};
    t.r.swap_short = (account_amount){0, fixed(0.02)};
    begin(&t, 10, 0, 0);
    account_night(&t.a, &t.r, 3, fixed(110));
    assert_int_equal(t.a.cash, fixed(10000 - 0.33));
    account_close(&t.a, &t.r, fixed(100), ACCOUNT_BY_END, &t.ev);
    assert_int_equal(t.ev.fill[t.ev.count - 1].result, fixed(-0.33));
    begin(&t, -10, 0, 0);
    assert_int_equal(t.a.call, fixed(-1100));
    account_night(&t.a, &t.r, 1, fixed(110));
    assert_int_equal(t.a.call, fixed(-1100.02));
    assert_true(t.a.cash == fixed(10000.2) && t.a.swap == fixed(0.2));
    account_flat(&t.a);
    account_night(&t.a, &t.r, 1, fixed(110));
    assert_int_equal(t.a.swap, fixed(0.2));
}

static void margin_is_called_and_refused(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    begin(&t, 100.00000001, 0, 0);
    assert_true(t.ev.refused == ACCOUNT_NO_MARGIN && !t.a.units && t.ev.margin == fixed(10000.000001));
    begin(&t, 100, 0, 0);
    assert_true(t.a.units == fixed(100));
    t.r.spread.share = ACCOUNT_SHARE / 100;
    t.r.cash = fixed(10100); // what 100 units cost at 101
    begin(&t, 100, 0, 0);
    assert_true(t.a.units == fixed(100));
    t.r.cash--;
    begin(&t, 100, 0, 0);
    assert_true(t.ev.refused == ACCOUNT_NO_MARGIN && t.ev.margin == fixed(10000) && t.ev.cost == fixed(100));
    t.r = plain_rules();
    t.r.leverage = 10 * ACCOUNT_ONE;
    begin(&t, 1000, 80, 0);
    assert_int_equal(t.a.call, fixed(90)); // equity is used up
    next(&t, bar_of(95, 96, 90.00000001, 95));
    assert_int_equal(t.ev.count, 0);
    next(&t, bar_of(95, 96, 70, 95));
    exits_at(&t, 90, ACCOUNT_BY_CALL, false);
    assert_int_equal(t.a.cash, 0);
    begin(&t, -300, 0, 0);
    next(&t, bar_of(100, 133.33333333, 100, 100)); // a millionth is left
    assert_int_equal(t.ev.count, 0);
    next(&t, bar_of(100, 133.33333334, 100, 100));
    exits_at(&t, 133.33333334, ACCOUNT_BY_CALL, false);
    t.r.margin_call = ACCOUNT_SHARE / 2;
    begin(&t, -1000, 0, 0);
    next(&t, bar_of(104, 105, 103, 104));
    exits_at(&t, 105, ACCOUNT_BY_CALL, false);
    assert_int_equal(t.a.cash, fixed(5000));
    begin(&t, 1000, 0, 0);
    next(&t, bar_of(80, 81, 79, 80)); // a gap leaves a debt, and nothing can be opened any more
    exits_at(&t, 80, ACCOUNT_BY_CALL, false);
    assert_int_equal(t.a.cash, fixed(-10000));
    account_order o = order_of(1, 0, 0);
    account_bar b = bar_of(80, 81, 79, 80);
    account_step(&t.a, &t.r, &o, &b, &t.ev);
    assert_true(t.ev.refused == ACCOUNT_NO_MARGIN && !t.a.units);
    t.r.commission_money = fixed(20000);
    begin(&t, 1, 0, 0);
    assert_int_equal(t.ev.refused, ACCOUNT_COSTS_ABOVE);
}

static void nothing_wraps(void **state) {
    (void)state;
    bench t = {.r = plain_rules()};
    t.r.leverage = 10000 * ACCOUNT_ONE;
    t.r.cash = ACCOUNT_MOST;
    begin(&t, 9e8, 0, 0); // worth 9e10
    assert_true(t.a.state == ACCOUNT_OK && t.a.units == fixed(9e8));
    assert_int_equal(account_equity(&t.a, fixed(200)), ACCOUNT_MOST);
    assert_int_equal(t.a.state, ACCOUNT_OVERFLOW);
    account was = t.a;
    account_order o = order_of(1, 0, 0);
    account_bar b = bar_of(100, 100, 100, 100);
    account_step(&t.a, &t.r, &o, &b, &t.ev);
    account_close(&t.a, &t.r, fixed(100), ACCOUNT_BY_END, &t.ev);
    account_night(&t.a, &t.r, 1, fixed(100));
    was.entered = false;
    assert_memory_equal(&t.a, &was, sizeof was);
    begin(&t, -9e10, 0, 0);
    assert_true(t.a.state == ACCOUNT_OVERFLOW && !t.a.units && t.a.cash == ACCOUNT_MOST);
    begin(&t, 9.1e8, 0, 0);
    assert_true(t.a.state == ACCOUNT_OVERFLOW && !t.a.units && t.a.cash == ACCOUNT_MOST);
}

// A second way of book-keeping: every fill is paid from a purse at the price before costs, and costs are added up from
// the fills.
typedef struct {
    account_wide purse;
    int64_t units;
    account_wide results; // of the trades
    account_wide paid;    // as the fills say
    long double costs;    // of the fills, in real numbers
    int64_t fills, calls, stops, refused;
} ledger;

static int64_t worth(int64_t units, int64_t price) {
    return (int64_t)account_round((account_wide)units * price, ACCOUNT_ONE);
}

static void book(ledger *l, const account_rules *r, const account_events *ev, int64_t bar_spread) {
    for (int i = 0; i < ev->count; i++) {
        const account_fill *f = &ev->fill[i];
        long double size = fabsl((long double)f->units) / 1e8L, raw = (long double)f->raw / 1e8L;
        int side = f->units > 0 ? 1 : -1;
        bool slips = f->reason != ACCOUNT_BY_TARGET;
        long double share = slips ? (long double)r->slippage.share / 1e10L : 0;
        long double fixed_cost = slips ? (long double)r->slippage.price / 1e8L : 0;
        if (f->opens) share += (long double)r->spread.share / 1e10L;
        if (f->opens) fixed_cost += (long double)(r->spread.price + bar_spread) / 1e8L;
        long double price = (raw + side * fixed_cost) * (1 + side * share);
        l->costs += side * (price - raw) * size + price * size * (long double)r->commission_share / 1e10L +
                    size * 1e8L * (long double)r->commission_money / (long double)r->commission_units / 1e8L;
        l->purse -= worth(f->units, f->raw);
        l->paid += (account_wide)f->cost + f->commission;
        l->units += f->units;
        l->results += f->result;
        l->calls += f->reason == ACCOUNT_BY_CALL;
        l->stops += f->reason == ACCOUNT_BY_STOP;
    }
    l->fills += ev->count;
    l->refused += ev->refused != 0;
}

// The identity of account.h, to the last digit; costs in real numbers to half a digit a fill and rounding.
static void check_books(account *a, const account_rules *r, const ledger *l, int64_t close) {
    int64_t equity = account_equity(a, close);
    assert_int_equal(a->state, ACCOUNT_OK);
    account_wide should =
        l->purse + worth(l->units, close) - a->commission - a->spread - a->slippage + (account_wide)a->swap;
    assert_true(equity == should && a->units == l->units);
    assert_true(l->paid == (account_wide)a->commission + a->spread + a->slippage);
    if (a->units) return;
    assert_true(a->cash == r->cash + l->results);
    long double costs = (long double)a->commission + (long double)a->spread + (long double)a->slippage;
    assert_true(fabsl(costs / 1e8L - l->costs) <= 4e-8L * (long double)l->fills + 1e-12L * l->costs);
}

static account_rules random_rules(dice *d, int64_t price) {
    account_rules r = plain_rules();
    r.cash = fixed((double)(1 + dice_below(d, 100)) * 1000);
    r.leverage = (int64_t)(1 + dice_below(d, 60)) * ACCOUNT_ONE;
    r.margin_call = (int64_t)dice_below(d, 2) * (int64_t)dice_below(d, 9) * ACCOUNT_SHARE / 10;
    r.spread.share = (int64_t)(dice_below(d, 2) * dice_below(d, 10000000));
    r.spread.price = (int64_t)(dice_below(d, 2) * dice_below(d, (uint64_t)price / 500));
    r.slippage.share = (int64_t)(dice_below(d, 2) * dice_below(d, 1000000));
    r.slippage.price = (int64_t)(dice_below(d, 2) * dice_below(d, (uint64_t)price / 5000));
    r.commission_share = (int64_t)(dice_below(d, 2) * dice_below(d, 2000000));
    r.commission_money = (int64_t)(dice_below(d, 2) * dice_below(d, 1000000));
    r.swap_long.share = (int64_t)dice_below(d, 2000001) - 1500000;
    r.swap_short.price = ((int64_t)dice_below(d, 1000) - 700) * price / 10000000;
    r.target_first = dice_below(d, 2);
    r.entry_stop = dice_below(d, 2);
    r.shorts = dice_below(d, 8) > 0;
    return r;
}

// A wanted position of up to the leverage, whole units or not, with or without stop and target.
static account_order random_order(dice *d, const account *a, const account_rules *r, int64_t price) {
    double most = (double)a->cash / (double)price * (double)r->leverage / 1e8 * 1.1;
    account_order o = {0, 0, 0};
    double size = most > 0 && most < 1e9 ? most * fabs((double)dice_unit(d)) : 1;
    if (dice_below(d, 5)) o.units = dice_below(d, 2) ? fixed(floor(size) + 1) : fixed(size);
    if (dice_below(d, 2)) o.units = -o.units;
    int64_t step = price / 1000 * (int64_t)(1 + dice_below(d, 30)), side = o.units < 0 ? -1 : 1;
    if (dice_below(d, 3)) o.stop = price - side * step;
    if (dice_below(d, 3)) o.target = price + side * step * (int64_t)(1 + dice_below(d, 3));
    return o;
}

// A strategy on the whole file or, nine times of ten, on a stretch of it.
static void trade_at_random(const quotes *q, uint64_t seed, ledger *sum) {
    dice d = {.seed = seed};
    enum { STRETCH = 2000 };
    bool whole = seed % 10 == 0;
    int64_t from = whole ? 0 : (int64_t)dice_below(&d, (uint64_t)(q->count - STRETCH));
    int64_t to = whole ? q->count : from + STRETCH;
    account_rules r = random_rules(&d, q->close[from]);
    account a;
    ledger l = {.purse = r.cash};
    account_events ev;
    uint64_t pace = 1 + dice_below(&d, 200);
    account_init(&a, &r);
    for (int64_t i = from; i < to; i++) {
        account_bar b = {q->open[i], q->high[i], q->low[i], q->close[i], (int64_t)dice_below(&d, 3)};
        account_order o;
        bool orders = i > from && !dice_below(&d, pace);
        if (orders) o = random_order(&d, &a, &r, q->close[i - 1]);
        int64_t nights = i > from ? when_day_of(q->time[i]) - when_day_of(q->time[i - 1]) : 0;
        if (nights) account_night(&a, &r, nights, q->close[i - 1]);
        account_step(&a, &r, orders ? &o : NULL, &b, &ev);
        book(&l, &r, &ev, b.spread);
        check_books(&a, &r, &l, b.close);
    }
    sum->fills += l.fills;
    sum->calls += l.calls;
    sum->stops += l.stops;
    sum->refused += l.refused;
}

static void books_balance_on_real_files(void **state) {
    static const char *const files[] = {"XAUUSD_D1.csv", "EURUSD_hourly_pandas.csv", "XAUUSD_M15.csv", "EURUSD_M5.csv"};
    const char *folder = getenv("TRADEWIND_DATA");
    int each = support_sanitized() ? 50 : 2500;
    ledger sum = {0};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4200];
        quotes q;
        err e = {0};
        snprintf(path, sizeof path, "%s/%s", folder ? folder : TEST_DIR "/../../shared/data", files[i]);
        if (access(path, R_OK)) {
            print_message("skipped: no file %s\n", path);
            skip();
        }
        support_ok(quotes_read(&q, path, 0, false, &e), &e);
        for (int k = 0; k < each; k++) trade_at_random(&q, (uint64_t)k + 100000 * i, &sum);
        quotes_done(&q);
    }
    print_message("%d strategies: %lld fills, %lld stops, %lld margin calls, %lld refused\n", 4 * each,
        (long long)sum.fills, (long long)sum.stops, (long long)sum.calls, (long long)sum.refused);
    assert_true(sum.fills > 50 * each && sum.stops > each && sum.calls > 0 && sum.refused > 0);
}

static void keys_become_rules(void **state) {
    (void)state;
    size_t count;
    err e = {0};
    account_terms t;
    account_rules r;
    const config_key *keys = account_keys(&count);
    config *c = config_read("test", "", 0, keys, count, &e);
    static const char *const good[] = {"account.spread=2pt", "account.commission=7/lot", "account.slippage=0.3abs",
        "account.swap_long=-3.5pt", "account.contract=100000", "account.leverage=30", "account.both=target"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) support_ok(config_override(c, good[i], &e), &e);
    support_ok(config_check(c, &e) && account_terms_read(c, &t, &e), &e);
    support_ok(account_rules_make(&r, &t, 1000, &e), &e);
    assert_true(account_needs_point(&t) && r.spread.price == 2000 && r.spread.share == 0);
    assert_true(r.commission_money == fixed(7) && r.commission_units == fixed(100000) && r.commission_share == 0);
    assert_true(r.slippage.price == fixed(0.3) && r.swap_long.price == -3500 && r.leverage == 30 * ACCOUNT_ONE);
    assert_true(r.target_first && r.entry_stop && r.shorts);
    static const char *const bad[][2] = {{"account.spread=2points", "is no such amount; write 0\\.0001"},
        {"account.spread=-1pt", "must be 0 to"}, {"account.spread=0.6", "must be 0 to 0.5"},
        {"account.spread=nan", "must be 0 to"}, {"account.spread=0x1p-9", "is no such amount"},
        {"account.spread=7/lot", "is no such amount"}, {"account.commission=2pt", "is no such amount"},
        {"account.slippage=file", "is no such amount"}, {"account.spread=", "is no such amount"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config *other = config_read("test", "", 0, keys, count, &e);
        support_ok(config_override(other, bad[i][0], &e), &e);
        bool ok = config_check(other, &e) && account_terms_read(other, &t, &e);
        if (ok || e.kind != ERR_INPUT) fail_msg("%s was taken", bad[i][0]);
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(bad[i][1], "\\"), bad[i][1]);
        if (i != 8 && !strstr(e.text, text)) fail_msg("%s: %s", bad[i][0], e.text);
        config_free(other);
    }
    config_free(c);
}

static void amounts_have_texts(void **state) {
    char text[64];
    (void)state;
    assert_string_equal(account_text(text, sizeof text, fixed(-1.5), 8), "-1.50000000");
    assert_string_equal(account_text(text, sizeof text, fixed(-1.5), 0), "-1.5");
    assert_string_equal(account_text(text, sizeof text, fixed(20), 0), "20");
    assert_string_equal(account_text(text, sizeof text, -1, 0), "-0.00000001");
    assert_string_equal(account_text(text, sizeof text, 0, 2), "0.00");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_half_to_even),
        cmocka_unit_test(nearest_are_quotients),
        cmocka_unit_test(marks_are_quotients),
        cmocka_unit_test(exits_inside_a_bar),
        cmocka_unit_test(the_bar_of_the_entry),
        cmocka_unit_test(an_order_replaces_a_position),
        cmocka_unit_test(costs_are_kept_apart),
        cmocka_unit_test(nights_have_swap),
        cmocka_unit_test(margin_is_called_and_refused),
        cmocka_unit_test(nothing_wraps),
        cmocka_unit_test(keys_become_rules),
        cmocka_unit_test(amounts_have_texts),
        cmocka_unit_test(books_balance_on_real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
