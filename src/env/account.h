// Books of one account in one instrument: fills, costs, stops, margin. One source for backtests, agents and live use,
// for C and for nvcc.
//
// Money, prices and units are whole numbers of 1e-8; shares (a spread of 0.01 %) are of 1e-10. A fill's value is
// computed in 128 bits and rounded once, half to even. Nothing wraps: an amount beyond ACCOUNT_MOST puts the account
// into the state ACCOUNT_OVERFLOW, with the books as they were before that fill, and it does nothing from then on.
//
// A bar is one step: an order that was decided before the bar fills at its open, then stop, target and margin call are
// looked for between its low and its high. One position at a time: an order for another size closes what is open and
// opens the new position; an order for the same size changes stop and target alone.
//
// Spread is paid at the entry; slippage at entries, at orders that close and at stops, not at targets; commission at
// both. Gross results are those of prices without costs, and at every moment, exactly:
//
//     equity = starting cash + gross results, open position included - commission - spread - slippage + swap
//
// Nothing here allocates, prints, or knows where bars come from; the caller keeps the trades.
#ifndef TRADEWIND_ENV_ACCOUNT_H
#define TRADEWIND_ENV_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ACCOUNT_FN static __host__ __device__ inline
#else
#define ACCOUNT_FN static inline
#endif

__extension__ typedef __int128 account_wide;

static const int64_t ACCOUNT_ONE = 100000000;            // of money, price, units
static const int64_t ACCOUNT_SHARE = 10000000000;        // of a share
static const int64_t ACCOUNT_MOST = 9000000000000000000; // largest amount: 9e10
static const int64_t ACCOUNT_NEVER = INT64_MAX;          // a price that is never reached

// A share of a price and a number of price units; either may be 0.
typedef struct {
    int64_t share, price;
} account_amount;

// The rules of an account. Shares are from -ACCOUNT_SHARE to ACCOUNT_SHARE, that of spread and slippage together at
// most ACCOUNT_SHARE, prices within ACCOUNT_MOST. Costs are not below 0.
typedef struct {
    int64_t cash; // at the start
    account_amount spread, slippage;
    account_amount swap_long, swap_short; // added for each night; negative ones are paid
    int64_t commission_share;             // of a fill's value
    int64_t commission_money;             // and for every `commission_units`
    int64_t commission_units;             // above 0
    int64_t leverage;                     // value of a position that one unit of equity may hold; at least ACCOUNT_ONE
    int64_t margin_call;                  // share of the margin: equity at or below it closes the position
    int64_t contract;                     // units of a lot, above 0
    int64_t lot_step;                     // lots; sizes are cut to multiples of it; 0: not
    bool target_first;                    // where one bar reaches stop and target
    bool entry_stop;                      // stop and target can be reached in the bar of the entry
    bool shorts;                          // sizes below 0 are taken, not read as 0
} account_rules;

typedef enum { ACCOUNT_OK, ACCOUNT_OVERFLOW } account_state;

// The books. `stop`, `target` and `call` are prices times the side of the position (1 long, -1 short), so that a loss
// is downwards for both; without one they are -ACCOUNT_NEVER, ACCOUNT_NEVER and -ACCOUNT_NEVER.
typedef struct {
    int64_t cash;  // without the open result
    int64_t units; // of the position, below 0 when short; 0: flat
    int64_t basis; // units at the entry's price, costs of the fill included
    int64_t stop, target, call;
    int64_t paid, lent;                         // of the position: commission at its entry, swap so far
    int64_t commission, spread, slippage, swap; // of the whole account so far
    int32_t state;                              // account_state
    bool entered;                               // in this bar
} account;

// A wanted position, to be had at the next open. Prices of 0: no stop, no target.
typedef struct {
    int64_t units, stop, target;
} account_order;

typedef struct {
    int64_t open, high, low, close;
    int64_t spread; // of this bar in price units, beside that of the rules
} account_bar;

typedef enum {
    ACCOUNT_BY_ORDER,
    ACCOUNT_BY_STOP,
    ACCOUNT_BY_TARGET,
    ACCOUNT_BY_CALL, // of margin
    ACCOUNT_BY_DAY,  // closed at the day's end
    ACCOUNT_BY_END,  // closed at the end of the bars
    ACCOUNT_REASONS
} account_reason;

typedef struct {
    int64_t units;      // bought, or sold where below 0
    int64_t raw;        // price before costs
    int64_t price;      // with spread and slippage, rounded
    int64_t value;      // units x price, rounded once
    int64_t cost;       // spread and slippage, which are in the value
    int64_t commission; // of this fill
    int64_t result;     // of an exit: the position's, after the commissions of both fills, swap included
    int64_t lent;       // of an exit: swap of the position
    int32_t reason;     // account_reason
    bool opens;
} account_fill;

typedef enum { ACCOUNT_TAKEN, ACCOUNT_NO_MARGIN, ACCOUNT_COSTS_ABOVE } account_refusal;

enum { ACCOUNT_FILLS_MOST = 3 }; // of a step: the old position closed, the new one opened, and that one closed

// Events of a step.
typedef struct {
    account_fill fill[ACCOUNT_FILLS_MOST];
    int32_t count;
    int32_t refused;      // account_refusal of the order's new position, which was not opened
    int64_t margin, cost; // of the position that was refused
    bool ambiguous;       // the bar reached stop and target, and does not show which came first
} account_events;

// Arithmetic

// whole + v / by, rounded once, half to even; `by` is above 0. Fills do this several times: an amount of 64 bits is not
// divided as one of 128.
ACCOUNT_FN account_wide account_near(account_wide whole, account_wide v, int64_t by) {
    int64_t few = (int64_t)v, left;
    account_wide q;
    if (few == v) {
        q = whole + few / by;
        left = few % by;
    } else {
        q = v / by;
        left = (int64_t)(v - q * by);
        q += whole;
    }
    int64_t size = left < 0 ? -left : left, more = by - size;
    if (size > more || (size == more && (q & 1))) q += left < 0 ? -1 : 1;
    return q;
}

// A quotient rounded half to even; `by` is above 0.
ACCOUNT_FN account_wide account_round(account_wide v, int64_t by) {
    return account_near(0, v, by);
}

// Units at a price of 0 or more, rounded half to even. As account_round has it, but without a division of 128 bits:
// this is done at every bar.
ACCOUNT_FN account_wide account_mark(int64_t units, int64_t price) {
    int64_t part = units % ACCOUNT_ONE;
    account_wide whole = (account_wide)(units / ACCOUNT_ONE) * price + part * (price / ACCOUNT_ONE);
    return account_near(whole, part * (price % ACCOUNT_ONE), ACCOUNT_ONE);
}

// The amount, or 0 and `*over` set where it is larger than any account.
ACCOUNT_FN int64_t account_fit(account_wide v, bool *over) {
    if (v <= ACCOUNT_MOST && v >= -ACCOUNT_MOST) return (int64_t)v;
    *over = true;
    return 0;
}

ACCOUNT_FN bool account_is_none(account_amount a) {
    return !a.share && !a.price;
}

// A price with costs that are added on one side (1) or taken off on the other (-1); never below 0.
ACCOUNT_FN int64_t account_price(int64_t price, account_amount cost, int side, bool *over) {
    if (account_is_none(cost)) return price;
    account_wide at = (account_wide)price + (side > 0 ? cost.price : -cost.price);
    if (at <= 0) return 0;
    return account_fit(account_near(at, at * (side > 0 ? cost.share : -cost.share), ACCOUNT_SHARE), over);
}

// Units at such a price, which is not rounded before.
ACCOUNT_FN int64_t account_worth(int64_t units, int64_t price, account_amount cost, int side, bool *over) {
    if (account_is_none(cost)) return account_fit(account_mark(units, price), over);
    account_wide at = (account_wide)price + (side > 0 ? cost.price : -cost.price);
    account_wide v = at > 0 ? at * units : 0, most = (account_wide)ACCOUNT_MOST * ACCOUNT_ONE;
    if (v > most || v < -most) {
        *over = true;
        return 0;
    }
    v *= ACCOUNT_SHARE + (side > 0 ? cost.share : -cost.share);
    return account_fit(account_round(v, ACCOUNT_SHARE * ACCOUNT_ONE), over);
}

// Commission of a fill of this value.
ACCOUNT_FN int64_t account_commission(const account_rules *r, int64_t units, int64_t value, bool *over) {
    account_wide n = units < 0 ? -(account_wide)units : units, v = value < 0 ? -(account_wide)value : value;
    account_wide fee = r->commission_share ? account_round(v * r->commission_share, ACCOUNT_SHARE) : 0;
    if (r->commission_money) fee += account_round(n * r->commission_money, r->commission_units);
    return account_fit(fee, over);
}

// Units of a number of lots, cut to the lot step; a number of lots within ACCOUNT_MOST. `*over` is set where there are
// too many.
ACCOUNT_FN int64_t account_units(const account_rules *r, int64_t lots, bool *over) {
    if (r->lot_step) lots -= lots % r->lot_step;
    return account_fit(account_round((account_wide)lots * r->contract, ACCOUNT_ONE), over);
}

// Books

ACCOUNT_FN void account_flat(account *a) {
    a->units = a->basis = a->paid = a->lent = 0;
    a->stop = a->call = -ACCOUNT_NEVER;
    a->target = ACCOUNT_NEVER;
}

ACCOUNT_FN void account_init(account *a, const account_rules *r) {
    account_flat(a);
    a->cash = r->cash;
    a->commission = a->spread = a->slippage = a->swap = 0;
    a->state = ACCOUNT_OK;
    a->entered = false;
}

// Cash and the position at a price. Beyond ACCOUNT_MOST the account overflows, and the cash alone is given.
ACCOUNT_FN int64_t account_equity(account *a, int64_t price) {
    if (!a->units) return a->cash;
    bool over = false;
    int64_t equity = account_fit(account_mark(a->units, price) - a->basis + a->cash, &over);
    if (!over) return equity;
    a->state = ACCOUNT_OVERFLOW;
    return a->cash;
}

// Equity that a position of this value binds.
ACCOUNT_FN int64_t account_margin(const account_rules *r, int64_t basis) {
    int64_t value = basis < 0 ? -basis : basis;
    return r->leverage == ACCOUNT_ONE ? value : (int64_t)account_round((account_wide)value * ACCOUNT_ONE, r->leverage);
}

// The price, times the side, at or below which equity is the margin call's share of the margin.
ACCOUNT_FN int64_t account_call(const account *a, const account_rules *r) {
    account_wide over = (account_wide)a->basis - a->cash, size = a->units < 0 ? -(account_wide)a->units : a->units;
    if (r->margin_call)
        over += account_round((account_wide)account_margin(r, a->basis) * r->margin_call, ACCOUNT_SHARE);
    over *= ACCOUNT_ONE;
    account_wide at = over / size;
    if (over < at * size) at--; // down: equity is above it at the next price
    return at > ACCOUNT_NEVER ? ACCOUNT_NEVER : at < -ACCOUNT_NEVER ? -ACCOUNT_NEVER : (int64_t)at;
}

// Takes over books that fit; otherwise they stay as they were.
ACCOUNT_FN bool account_settle(account *a, const account *next, bool over) {
    if (over)
        a->state = ACCOUNT_OVERFLOW;
    else
        *a = *next;
    return !over;
}

// Adds the swap of `nights` to an open position, by the price before them.
ACCOUNT_FN void account_night(account *a, const account_rules *r, int64_t nights, int64_t price) {
    if (!a->units || a->state) return;
    account_amount rate = a->units > 0 ? r->swap_long : r->swap_short;
    if (!rate.share && !rate.price) return;
    bool over = false;
    account next = *a;
    account_wide size = a->units < 0 ? -(account_wide)a->units : a->units,
                 one = account_round(size * price, ACCOUNT_ONE);
    account_wide each = account_round(account_fit(one, &over) * (account_wide)rate.share, ACCOUNT_SHARE) +
                        account_round(size * rate.price, ACCOUNT_ONE);
    int64_t all = account_fit((account_wide)account_fit(each, &over) * nights, &over);
    next.cash = account_fit((account_wide)a->cash + all, &over);
    next.lent = account_fit((account_wide)a->lent + all, &over);
    next.swap = account_fit((account_wide)a->swap + all, &over);
    next.call = account_call(&next, r);
    account_settle(a, &next, over);
}

// Fills

// Puts a fill's costs into the books: `slipped` is the cost of slippage, `full` that of slippage and spread.
ACCOUNT_FN void account_charge(account *next, account_wide slipped, account_wide full, int64_t commission, bool *over) {
    next->slippage = account_fit((account_wide)next->slippage + slipped, over);
    next->spread = account_fit((account_wide)next->spread + full - slipped, over);
    next->commission = account_fit((account_wide)next->commission + commission, over);
    next->cash = account_fit((account_wide)next->cash - commission, over);
}

// Closes an open position at a price. At a target there is no slippage.
ACCOUNT_FN void account_close(
    account *a, const account_rules *r, int64_t price, account_reason why, account_events *ev) {
    account_amount cost = {0, 0};
    if (a->state || !a->units) return;
    if (why != ACCOUNT_BY_TARGET) cost = r->slippage;
    int side = a->units > 0 ? -1 : 1;
    bool over = false;
    account_amount none = {0, 0};
    int64_t raw = account_worth(a->units, price, none, side, &over);
    int64_t value = account_worth(a->units, price, cost, side, &over);
    int64_t commission = account_commission(r, a->units, value, &over);
    account next = *a;
    account_wide gross = (account_wide)value - a->basis;
    account_charge(&next, (account_wide)raw - value, (account_wide)raw - value, commission, &over);
    next.cash = account_fit((account_wide)next.cash + gross, &over);
    account_fill f = {-a->units, price, 0, value < 0 ? -value : value, 0, commission, 0, a->lent, (int32_t)why, false};
    f.cost = account_fit((account_wide)raw - value, &over);
    f.price = account_price(price, cost, side, &over);
    f.result = account_fit(gross - commission - a->paid + a->lent, &over);
    account_flat(&next);
    if (account_settle(a, &next, over)) ev->fill[ev->count++] = f;
}

// True where the cash covers the costs of an entry and the margin of its value before costs. Otherwise says why not.
ACCOUNT_FN bool account_covers(
    const account *a, const account_rules *r, int64_t raw, account_wide cost, account_events *ev) {
    int64_t margin = account_margin(r, raw);
    if ((account_wide)a->cash - cost >= margin) return true;
    ev->refused = a->cash > 0 && cost > a->cash ? ACCOUNT_COSTS_ABOVE : ACCOUNT_NO_MARGIN;
    ev->margin = margin;
    ev->cost = (int64_t)cost;
    return false;
}

// Opens a position from flat, unless the cash does not cover it.
ACCOUNT_FN void account_open(
    account *a, const account_rules *r, const account_order *o, const account_bar *b, account_events *ev) {
    if (a->state) return;
    int side = o->units > 0 ? 1 : -1;
    bool over = false;
    account_amount none = {0, 0}, all = {r->spread.share + r->slippage.share, 0};
    all.price = account_fit((account_wide)r->spread.price + r->slippage.price + b->spread, &over);
    int64_t raw = account_worth(o->units, b->open, none, side, &over);
    int64_t slipped = account_worth(o->units, b->open, r->slippage, side, &over);
    account next = *a;
    next.units = o->units;
    next.basis = account_worth(o->units, b->open, all, side, &over);
    next.paid = account_commission(r, o->units, next.basis, &over);
    account_charge(&next, (account_wide)slipped - raw, (account_wide)next.basis - raw, next.paid, &over);
    account_wide cost = (account_wide)next.basis - raw + next.paid;
    if (!over) account_fit(cost, &over);
    if (!over && !account_covers(a, r, raw, cost, ev)) return;
    next.stop = o->stop ? side * o->stop : -ACCOUNT_NEVER;
    next.target = o->target ? side * o->target : ACCOUNT_NEVER;
    if (!over) next.call = account_call(&next, r);
    next.entered = true;
    account_fill f = {o->units, b->open, 0, next.basis < 0 ? -next.basis : next.basis, 0, next.paid, 0, 0,
        (int32_t)ACCOUNT_BY_ORDER, true};
    f.cost = account_fit((account_wide)next.basis - raw, &over);
    f.price = account_price(b->open, all, side, &over);
    if (account_settle(a, &next, over)) ev->fill[ev->count++] = f;
}

// An order at the open of a bar.
ACCOUNT_FN void account_take(
    account *a, const account_rules *r, const account_order *o, const account_bar *b, account_events *ev) {
    account_order want = *o;
    if (want.units < 0 && !r->shorts) want.units = 0;
    if (a->units && want.units == a->units) {
        int side = a->units > 0 ? 1 : -1;
        a->stop = want.stop ? side * want.stop : -ACCOUNT_NEVER;
        a->target = want.target ? side * want.target : ACCOUNT_NEVER;
        return;
    }
    account_close(a, r, b->open, ACCOUNT_BY_ORDER, ev);
    if (want.units) account_open(a, r, &want, b, ev);
}

// Stop, target and margin call of an open position inside a bar. A bar that opens beyond one of them fills at its open.
ACCOUNT_FN void account_touch(account *a, const account_rules *r, const account_bar *b, account_events *ev) {
    bool up = a->units > 0, exits = !a->entered || r->entry_stop;
    int64_t open = up ? b->open : -b->open, low = up ? b->low : -b->high, high = up ? b->high : -b->low;
    int64_t stop = exits ? a->stop : -ACCOUNT_NEVER, target = exits ? a->target : ACCOUNT_NEVER;
    account_reason why = a->call >= stop ? ACCOUNT_BY_CALL : ACCOUNT_BY_STOP;
    if (a->call > stop) stop = a->call;
    bool stopped = low <= stop || open <= stop, reached = high >= target || open >= target;
    if (!stopped && !reached) return;
    bool clear = open <= stop || open >= target;
    ev->ambiguous = stopped && reached && !clear;
    if (stopped && reached) stopped = clear ? open <= stop : !r->target_first;
    int64_t at = stopped ? stop : target;
    if (clear) at = open;
    account_close(a, r, up ? at : -at, stopped ? why : ACCOUNT_BY_TARGET, ev);
}

// One bar: the order, which may be NULL, fills at the open; then exits inside the bar. `ev` is what happened.
ACCOUNT_FN void account_step(
    account *a, const account_rules *r, const account_order *o, const account_bar *b, account_events *ev) {
    ev->count = 0;
    ev->refused = ACCOUNT_TAKEN;
    ev->ambiguous = false;
    a->entered = false;
    if (a->state) return;
    if (o) account_take(a, r, o, b, ev);
    if (a->units && !a->state) account_touch(a, r, b, ev);
}

#endif
