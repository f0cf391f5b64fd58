// A replay of an account over bars: orders, each decided at the close of the bar before, in; trades and the equity at
// every close out.
//
// Bars come one by one (replay_bar), so that a rule that decides at each close can drive a replay as well as a list of
// orders (replay_orders). Nothing is allocated between replay_init and replay_done.
#ifndef TRADEWIND_BACKTEST_REPLAY_H
#define TRADEWIND_BACKTEST_REPLAY_H

#include "backtest/quotes.h"
#include "backtest/signals.h"
#include "env/account_terms.h"

typedef struct {
    int64_t units;       // below 0 when short
    int64_t entry, exit; // bars
    int64_t entry_price, exit_price;
    int64_t value;  // of the entry's fill
    double traded;  // money, of both fills
    double cost;    // money: spread, slippage and commission less swap
    int64_t result; // after commissions, swap included
    int64_t commission, swap;
    account_reason reason; // of the exit
} replay_trade;

// Orders whose position was not opened.
typedef struct {
    int64_t no_margin, costs_above;
    int64_t bar, margin, cost; // of the first of them
} replay_refusals;

typedef struct {
    const quotes *quotes;
    account_rules rules;
    bool last_open, day_close, swaps;
    account books;
    int64_t *equity;     // [bars] cash and open result at the closes
    replay_trade *trade; // [trades], by their exits
    int64_t trades, room;
    int64_t held;      // bars with a position at any moment
    int64_t ambiguous; // bars that reached stop and target, and do not show which came first
    int64_t unsized;   // closes of a flat account at which a rule asked for a side and had no size for it
    double turnover;   // values of all fills
    replay_refusals refused;
} replay;

// A replay of at most `orders` orders over bars that outlive it. ERR_RUN where memory is short; then `p` is empty.
bool replay_init(replay *p, const quotes *q, const account_terms *t, const account_rules *r, int64_t orders, err *e);

// Safe to call twice.
void replay_done(replay *p);

// Bar `i`, behind bar i - 1: the order that was decided at that bar's close, or NULL, fills at the open.
void replay_bar(replay *p, int64_t i, const account_order *o);

// Closes what is open at the close of bar `i`, the last one of its day, which the caller knows of. Where the account
// asks for it (account.day_close), replay_bar does so by the bars that follow.
void replay_end_day(replay *p, int64_t i);

// Fills an order at a quoted price, the ask where it buys and the bid where it sells, behind the close of bar `i` and
// before the next one. The spread lies between these prices, so that the account's is not added. Stop, target and
// margin call are looked for in the next bar: a price to buy at is none to sell at.
void replay_fill(replay *p, int64_t i, int64_t price, const account_order *o);

// Closes what is open, after the last bar. ERR_INPUT where the account overflowed, or where no order could be filled
// as none was covered by the equity.
bool replay_end(replay *p, err *e);

// All bars and the end, with a list of orders. The vectorised way is taken where it gives the same; replay_events is
// the other one, for any orders.
bool replay_orders(replay *p, const signals_orders *o, err *e);
bool replay_events(replay *p, const signals_orders *o, err *e);

// The vectorised way: bars between two orders are marked by one loop over their closes. False, with the replay as after
// replay_init, where stops, targets, swaps, the ends of days or a margin call need the bars one by one.
bool replay_plain(replay *p, const signals_orders *o);

#endif
