// A replay that follows rules: at every close the rule of that bar decides on its prediction, and the order fills at
// the next open. And the threshold of a rule, fitted by such replays.
#ifndef TRADEWIND_BACKTEST_FOLLOW_H
#define TRADEWIND_BACKTEST_FOLLOW_H

#include "backtest/decide.h"
#include "backtest/replay.h"

// Predictions by bar of the quotes.
typedef struct {
    double *score;      // [bars] NaN where there is none
    double *volatility; // [bars] of a bar; not above 0 where it is not known
} follow_series;

// Bars that one rule decides on: from `from` to the bar before the next stretch, or to the last bar.
typedef struct {
    int64_t from;
    const decide_rule *rule;
} follow_stretch;

// True where an order changes the position, or its stop or target.
bool follow_changes(const account *a, const account_order *o);

// Decides at the close of the bar that a replay has just taken: the order for the next open, false where it changes
// nothing. `held`: bars since the entry, that one included.
bool follow_decide(replay *p, const decide_rule *rule, const decide_prediction *at, int64_t held, account_order *next);

// All bars and the end, in one account. The first of `count` stretches begins with bar 0, later ones behind it; a
// position that is open where a stretch begins is then held by the new rule. `orders`, which may be NULL, gets those
// that changed something, as a list that replay_orders gives the same books for; its items are [bars], the caller's.
bool follow(
    replay *p, const follow_stretch *stretch, int64_t count, const follow_series *s, signals_orders *orders, err *e);

// A threshold that was fitted.
typedef struct {
    double threshold;
    double result;    // money after costs, with it
    int64_t trades;   // with it
    int64_t from, to; // opens of the first and the last bar
} follow_fitted;

// The threshold with the highest result after costs, among FOLLOW_CANDIDATES quantiles of the scores' sizes; the higher
// one where two are equal. Thresholds with fewer than FOLLOW_TRADES_LEAST trades count only where none has more.
// ERR_INPUT where there are no scores, or where no order could be filled.
enum { FOLLOW_CANDIDATES = 40, FOLLOW_TRADES_LEAST = 10 };
bool follow_fit(const decide_rule *r, const quotes *q, const follow_series *s, const account_terms *t,
    const account_rules *rules, follow_fitted *to, err *e);

#endif
