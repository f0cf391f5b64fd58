// The decision: a prediction, the position that is held and the account become the position to have at the next open.
//
// One function decides, for backtests and for live use. It is pure, looks at one closed bar, and allocates nothing.
//
// A prediction is one signed number, its score: of classes the probability of UP, or minus that of DOWN, whichever is
// larger; of forecasts the log return at the horizon. A score at or beyond the threshold asks for a side.
//
// A flat account enters the side that is asked for. A position is held until its exit (train/signal_keys.h) or until it
// was held `hold` bars. It then ends, or is reversed, or goes on where its own side is asked for: with the size that it
// has, and with stop and target anew from this close. Size, stop and target do not move otherwise.
#ifndef TRADEWIND_BACKTEST_DECIDE_H
#define TRADEWIND_BACKTEST_DECIDE_H

#include "data/build.h"
#include "env/account.h"
#include "train/signal_keys.h"

// Distances for one side, in volatilities of a bar or as log returns; 0: none.
typedef struct {
    double stop, target;
} decide_distance;

typedef struct {
    double threshold;
    int64_t hold; // bars; 0: no limit
    signal_exit exit;
    decide_distance up, down; // of long and of short positions
    bool returns;             // distances are log returns
    signal_sizing sizing;
    double size;
    int64_t volatility_bars; // that the volatility of a bar is measured over
    double bars_a_year;      // for a size by volatility
} decide_rule;

// A closed bar and what a model says of it.
typedef struct {
    double score;      // NaN: nothing
    double volatility; // of a bar, as a log return; not above 0: not known
    int64_t close;     // 1e-8
} decide_prediction;

// The rule of a description for a kind of label; where the threshold is to be fitted it is SIGNAL_AUTO. A label without
// volatility leaves it to be measured over 100 bars.
void decide_rule_make(decide_rule *r, const signal_settings *s, const build_options *label, double bars_a_year);

// True where the rule needs the volatility of a bar.
bool decide_needs_volatility(const decide_rule *r);

// The side that a score asks for: -1, 0, 1.
int decide_side(const decide_rule *r, double score);

// The score of an answer, of `classes` classes from DOWN to UP.
double decide_score_classes(const float *probability, int classes);

// The score of a forecast of `horizon` values, made at a bar that closed at `close`.
double decide_score_forecast(const float *forecast, int64_t horizon, label_value value, double close);

// The position to have at the next open. `held`: bars since its entry, that one included; read where there is one.
// Where the account holds that position with that stop and target already, the order changes nothing.
account_order decide(
    const decide_rule *r, const decide_prediction *p, int64_t held, const account *a, const account_rules *rules);

// The rule in words for people, "long at 0.55 or more, ...". Returns `text`.
const char *decide_text(const decide_rule *r, char *text, size_t room);

#endif
