// Books of a session between two bars: orders that fill at quotes, and the nights that lie before or behind them.
#include "live/books.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DAY = 86400, QUARTER = 900 };

static const int64_t midnight = 101 * (int64_t)DAY;

// An account of 100,000, whose only cost is a night's swap of a thousandth of a long position.
static account_terms terms(void) {
    account_terms t;
    size_t count;
    err e = {0};
    const config_key *keys = account_keys(&count);
    config *c = config_read("test", "", 0, keys, count, &e);
    support_ok(c && account_terms_read(c, &t, &e), &e);
    config_free(c);
    t.swap_long = (account_rate){-0.001, ACCOUNT_PER_PRICE};
    return t;
}

// A bar that opens and closes at 100; the trades that ended.
static int take_low(books *b, int64_t time, double low, const account_order *o, books_trade *ended) {
    const bar x = {.time = time, .end = time + QUARTER, .open = 100, .high = 100, .low = low, .close = 100};
    err e = {0};
    int n = books_bar(b, &x, o, false, ended, &e);
    support_ok(n >= 0, &e);
    return n;
}

static void take(books *b, int64_t time, const account_order *o) {
    books_trade ended[BOOKS_TRADES_MOST];
    take_low(b, time, 100, o, ended);
}

static int quote_at(books *b, int64_t time, double bid, double ask, const account_order *o) {
    books_trade ended[BOOKS_TRADES_MOST];
    int64_t price;
    err e = {0};
    int n = books_quote(b, time, bid, ask, o, &price, ended, &e);
    support_ok(n >= 0, &e);
    return n;
}

static void quote(books *b, int64_t time, const account_order *o) {
    quote_at(b, time, 100, 100, o);
}

// Nights of swap that were paid up to the first bar behind midnight: an order to open (or to close, where one is held)
// fills at a quote of this moment, and a new process goes on from there.
static int64_t nights(bool held, int64_t at) {
    static const account_order opens = {.units = 10 * ACCOUNT_ONE}, closes = {0};
    const int64_t night = ACCOUNT_ONE; // a thousandth of 10 units at 100
    account_terms t = terms();
    books b, next;
    int64_t numbers[BOOKS_NUMBERS];
    err e = {0};
    support_ok(books_init(&b, &t, 1, "GOLD", &e) && books_init(&next, &t, 1, "GOLD", &e), &e);
    take(&b, midnight - 3 * QUARTER, NULL);
    take(&b, midnight - 2 * QUARTER, held ? &opens : NULL);
    quote(&b, at, held ? &closes : &opens);
    books_save(&b, numbers);
    assert_true(books_load(&next, numbers));
    take(&next, midnight, NULL);
    assert_int_equal(next.replay.books.units, held ? 0 : opens.units);
    int64_t paid = -next.replay.books.swap;
    assert_int_equal(paid % night, 0);
    books_done(&b);
    books_done(&next);
    return paid / night;
}

// Swap is of nights over which a position is held, as in a backtest, where orders fill at opens.
static void a_night_is_paid_by_who_holds_over_it(void **state) {
    (void)state;
    assert_int_equal(nights(false, midnight - 5), 1);
    assert_int_equal(nights(false, midnight + 5), 0);
    assert_int_equal(nights(true, midnight - 5), 0);
    assert_int_equal(nights(true, midnight + 5), 1);
}

// An entry at a quote is no exit, though the price that was paid lies beyond the target: the next bar tells. So it does
// of a margin call.
static void exits_are_of_bars(void **state) {
    (void)state;
    static const account_order aims = {.units = 10 * ACCOUNT_ONE, .target = 101 * ACCOUNT_ONE},
                               borrows = {.units = 9000 * ACCOUNT_ONE};
    books_trade ended[BOOKS_TRADES_MOST];
    account_terms t = terms();
    err e = {0};
    books b;
    t.leverage = 10;
    t.margin_call = 0.5;
    support_ok(books_init(&b, &t, 1, "GOLD", &e), &e);
    take(&b, midnight, NULL);
    assert_int_equal(quote_at(&b, midnight + QUARTER, 99, 102, &aims), 0);
    assert_int_equal(b.replay.books.units, aims.units);
    take(&b, midnight + QUARTER, NULL);
    assert_int_equal(b.replay.books.units, aims.units);
    assert_int_equal(quote_at(&b, midnight + 2 * QUARTER, 50, 100, &borrows), 1); // the one before, sold at the bid
    assert_int_equal(b.replay.books.units, borrows.units);
    assert_int_equal(take_low(&b, midnight + 2 * QUARTER, 93, NULL, ended), 1); // 37,000 of 99,480 are left
    assert_int_equal(ended[0].trade.reason, ACCOUNT_BY_CALL);
    books_done(&b);
}

// A price of nothing would be a position without a value.
static void a_quote_has_a_price(void **state) {
    (void)state;
    static const account_order opens = {.units = ACCOUNT_ONE};
    const double none[] = {1e-12, 1e15};
    account_terms t = terms();
    books b;
    books_trade ended[BOOKS_TRADES_MOST];
    int64_t price;
    for (int i = 0; i < 2; i++) {
        err e = {0};
        support_ok(books_init(&b, &t, 1, "GOLD", &e), &e);
        take(&b, midnight, NULL);
        assert_int_equal(books_quote(&b, midnight + QUARTER, none[i], none[i], &opens, &price, ended, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        books_done(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_night_is_paid_by_who_holds_over_it),
        cmocka_unit_test(exits_are_of_bars),
        cmocka_unit_test(a_quote_has_a_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
