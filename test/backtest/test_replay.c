// Replays: the vectorised way against the bars one by one, the end of days and of the bars, and refusals.
#include "backtest/replay.h"
#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t fixed(double v) {
    int64_t to;
    assert_true(account_fixed(v, &to));
    return to;
}

static void make_quotes(quotes *q, int64_t count, uint64_t seed) {
    err e = {0};
    bars b = {.bar = walk_bars(count, 3600, seed), .count = count};
    support_ok(quotes_init(q, &b, "walk", 0, false, &e), &e);
    free(b.bar);
}

// Orders at random bars, one of `pace`, without stops unless told; whole units or not.
static signals_orders random_orders(dice *d, const quotes *q, uint64_t pace, double most, bool stops) {
    signals_orders o = {.item = calloc((size_t)q->count, sizeof *o.item)};
    assert_non_null(o.item);
    for (int64_t i = 1; i < q->count; i++) {
        if (dice_below(d, pace)) continue;
        double size = most * (double)dice_unit(d);
        account_order *to = &o.item[o.count].order;
        o.item[o.count++].bar = i;
        *to = (account_order){fixed(dice_below(d, 2) ? floor(size) : size), 0, 0};
        if (stops) to->stop = q->close[i - 1] / 100 * (to->units > 0 ? 98 : 102);
    }
    return o;
}

static void same_replay(const replay *a, const replay *b) {
    assert_memory_equal(a->equity, b->equity, (size_t)a->quotes->count * sizeof *a->equity);
    assert_int_equal(a->trades, b->trades);
    for (int64_t i = 0; i < a->trades; i++) {
        const replay_trade *x = &a->trade[i], *y = &b->trade[i];
        assert_true(x->units == y->units && x->entry == y->entry && x->exit == y->exit && x->result == y->result &&
                    x->entry_price == y->entry_price && x->exit_price == y->exit_price && x->reason == y->reason &&
                    x->commission == y->commission && x->value == y->value && x->traded == y->traded &&
                    x->cost == y->cost);
    }
    assert_true(a->held == b->held && a->turnover == b->turnover && a->ambiguous == b->ambiguous);
    assert_true(a->refused.no_margin == b->refused.no_margin && a->refused.bar == b->refused.bar);
    assert_true(a->books.cash == b->books.cash && a->books.commission == b->books.commission);
}

// One trial of both ways; gives whether the vectorised one was taken.
static bool both_ways(const quotes *q, uint64_t seed) {
    dice d = {.seed = seed};
    err e = {0};
    account_terms t = {.cash = 1e5, .leverage = (double)(1 + dice_below(&d, 30)), .contract = 1, .entry_stop = true};
    account_rules r;
    replay events, other;
    t.shorts = true;
    t.margin_call = 0.3 * (double)dice_below(&d, 4);
    t.spread.value = 1e-4 * (double)dice_below(&d, 3);
    t.commission.value = 1e-5 * (double)dice_below(&d, 3);
    support_ok(account_rules_make(&r, &t, q->point, &e), &e);
    signals_orders o =
        random_orders(&d, q, 1 + dice_below(&d, 100), 1.2 * t.cash * t.leverage / (double)q->close[0] * 1e8, false);
    support_ok(replay_init(&events, q, &t, &r, o.count, &e) && replay_init(&other, q, &t, &r, o.count, &e), &e);
    bool ok = replay_events(&events, &o, &e), plain = replay_plain(&other, &o);
    if (plain)
        assert_int_equal(replay_end(&other, &e), ok);
    else
        assert_int_equal(replay_events(&other, &o, &e), ok); // as if nothing had been tried
    same_replay(&events, &other);
    replay_done(&events);
    replay_done(&other);
    signals_orders_done(&o);
    return plain;
}

static void both_ways_agree(void **state) {
    (void)state;
    int plain = 0, trials = support_sanitized() ? 60 : 600;
    quotes q;
    for (int i = 0; i < trials; i++) {
        if (i % 20 == 0) make_quotes(&q, 1500, (uint64_t)i);
        plain += both_ways(&q, (uint64_t)i);
        if (i % 20 == 19) quotes_done(&q);
    }
    print_message("%d of %d were vectorised\n", plain, trials);
    assert_true(plain > trials / 10 && plain < trials - trials / 50); // margin calls need the bars one by one
}

static void stops_need_the_bars_one_by_one(void **state) {
    (void)state;
    dice d = {.seed = 5};
    err e = {0};
    quotes q;
    account_rules r;
    account_terms t = {.cash = 1e6, .leverage = 1, .contract = 1, .shorts = true};
    make_quotes(&q, 500, 1);
    support_ok(account_rules_make(&r, &t, q.point, &e), &e);
    signals_orders o = random_orders(&d, &q, 10, 10, true);
    replay p;
    support_ok(replay_init(&p, &q, &t, &r, o.count, &e), &e);
    assert_false(replay_plain(&p, &o));
    replay_done(&p);
    for (int64_t k = 0; k < o.count; k++) o.item[k].order.stop = 0;
    t.day_close = true;
    support_ok(replay_init(&p, &q, &t, &r, o.count, &e), &e);
    assert_false(replay_plain(&p, &o));
    support_ok(replay_orders(&p, &o, &e), &e);
    assert_true(p.trades > 5);
    for (int64_t i = 0; i < p.trades; i++) // no position is held overnight
        assert_int_equal(when_day_of(q.time[p.trade[i].entry]), when_day_of(q.time[p.trade[i].exit]));
    replay_done(&p);
    signals_orders_done(&o);
    quotes_done(&q);
}

// Four bars, two of them on another day, and a purchase of 10 at the second one's open.
static void run_small(replay *p, quotes *q, account_terms *t, double units, err *e) {
    static bar all[] = {{.time = 0, .open = 100, .high = 101, .low = 99, .close = 100},
        {.time = 3600, .open = 102, .high = 103, .low = 101, .close = 103},
        {.time = 86400, .open = 104, .high = 106, .low = 103, .close = 105},
        {.time = 90000, .open = 106, .high = 108, .low = 105, .close = 107}};
    static signals_order item;
    bars b = {.bar = all, .count = 4};
    account_rules r;
    item = (signals_order){1, {fixed(units), 0, 0}};
    support_ok(quotes_init(q, &b, "small", 0, false, e) && account_rules_make(&r, t, q->point, e), e);
    support_ok(replay_init(p, q, t, &r, 1, e), e);
    signals_orders o = {.item = &item, .count = 1};
    bool ok = replay_orders(p, &o, e);
    assert_int_equal(ok, e->kind == ERR_NONE);
}

static void the_end_is_a_rule(void **state) {
    (void)state;
    quotes q;
    replay p;
    err e = {0};
    account_terms t = {.cash = 10000, .leverage = 1, .contract = 1};
    run_small(&p, &q, &t, 10, &e);
    assert_true(p.trades == 1 && p.trade[0].exit == 3 && p.trade[0].exit_price == fixed(107));
    assert_true(p.equity[0] == fixed(10000) && p.equity[1] == fixed(10010) && p.equity[3] == fixed(10050));
    assert_true(p.held == 3 && p.trade[0].reason == ACCOUNT_BY_END && q.point == ACCOUNT_ONE);
    replay_done(&p);
    quotes_done(&q);
    t.last_open = true;
    run_small(&p, &q, &t, 10, &e);
    assert_true(p.trade[0].exit_price == fixed(106) && p.equity[3] == fixed(10040));
    replay_done(&p);
    quotes_done(&q);
    t.swap_short = (account_rate){-0.5, ACCOUNT_IN_PRICE};
    t.shorts = true;
    run_small(&p, &q, &t, -10, &e);
    assert_true(p.trade[0].traded == 2080 && p.trade[0].cost == 5);
    assert_true(p.trade[0].swap == fixed(-5) && p.equity[1] == fixed(9990) && p.equity[2] == fixed(9965));
    replay_done(&p);
    quotes_done(&q);
    t.day_close = true;
    run_small(&p, &q, &t, -10, &e);
    assert_true(p.trades == 1 && p.trade[0].exit == 1 && p.trade[0].reason == ACCOUNT_BY_DAY && p.held == 1);
    replay_done(&p);
    quotes_done(&q);
}

static void nothing_filled_is_an_error(void **state) {
    (void)state;
    quotes q;
    replay p;
    err e = {0};
    account_terms t = {.cash = 1000, .leverage = 1, .contract = 1};
    run_small(&p, &q, &t, 10, &e);
    assert_non_null(strstr(e.text, "needs a margin of 1020.00"));
    replay_done(&p);
    quotes_done(&q);
    t.commission = (account_rate){200, ACCOUNT_PER_UNIT};
    e = (err){0};
    run_small(&p, &q, &t, 10, &e);
    assert_non_null(strstr(e.text, "costs are above the capital: the first order, of 1970-01-01 01:00, costs 2000.00"));
    replay_done(&p);
    quotes_done(&q);
    e = (err){0};
    t = (account_terms){.cash = 9e10, .leverage = 10000, .contract = 1};
    run_small(&p, &q, &t, 9e9, &e);
    assert_non_null(strstr(e.text, "beyond 9e10"));
    replay_done(&p);
    quotes_done(&q);
}

static void prices_must_fit(void **state) {
    (void)state;
    bar all[2] = {{.time = 0, .open = 1, .high = 1, .low = 1, .close = 1},
        {.time = 60, .open = 1.25, .high = 1.25, .low = 1.25, .close = 1.25}};
    bars b = {.bar = all, .count = 2};
    quotes q;
    err e = {0};
    support_ok(quotes_init(&q, &b, "b", 0, false, &e), &e);
    assert_int_equal(q.point, ACCOUNT_ONE / 100);
    quotes_done(&q);
    assert_false(quotes_init(&q, &b, "b", 0, true, &e));
    assert_non_null(strstr(e.text, "b: has no column of spreads"));
    b.report.has_spread = true;
    all[1].spread = 3;
    support_ok(quotes_init(&q, &b, "b", 0.5, true, &e), &e);
    assert_true(q.spread[0] == 0 && q.spread[1] == 3 * ACCOUNT_ONE / 2);
    quotes_done(&q);
    all[1].low = 1.23456e-6;
    assert_false(quotes_init(&q, &b, "b", 0, false, &e));
    assert_non_null(strstr(e.text, "needs more than 8 decimals"));
    all[1].low = 1;
    all[1].high = 1e11;
    assert_false(quotes_init(&q, &b, "b", 0, false, &e));
    assert_non_null(strstr(e.text, "is above 9e10"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_agree),
        cmocka_unit_test(stops_need_the_bars_one_by_one),
        cmocka_unit_test(the_end_is_a_rule),
        cmocka_unit_test(nothing_filled_is_an_error),
        cmocka_unit_test(prices_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
