// A sweep: many settings replayed over the same bars, ranked by Sharpe ratio, with the doubt that choosing the best of
// them deserves: each setting is a trial of the deflated Sharpe ratio, whose trial variance is that of the settings,
// and the probability of backtest overfitting is that of their daily returns.
//
// Settings share the bars and nothing else, so the result is the same for any number of threads.
#ifndef TRADEWIND_BACKTEST_SWEEP_H
#define TRADEWIND_BACKTEST_SWEEP_H

#include "backtest/replay.h"
#include "backtest/stats.h"
#include "base/pool.h"

// One setting as it is played. The replay reads `quotes`, a view of the bars that all settings share.
typedef struct {
    account_terms terms;
    quotes quotes;
    replay replay;
    double fitted; // threshold; NaN: none was fitted
} sweep_play;

// Replays a setting to its end, in a thread of its own. ERR_INPUT: this setting cannot be traded, others can. The
// replay is given back by the caller, also on failure.
typedef bool sweep_fn(void *arg, int64_t setting, sweep_play *to, err *e);

typedef struct {
    stats stats; // without intervals and control
    double fitted;
    char why[240]; // the setting could not be traded, and has no statistics; "": it was
} sweep_row;

typedef struct {
    int64_t count, traded;
    sweep_row *row; // [count] by setting
    int64_t *order; // [count] settings, the highest Sharpe ratio first; those without one behind, not traded ones last
    double trials;
    bool trials_given; // by the user
    double variance;   // of the settings' annual Sharpe ratios; NaN for fewer than two
    overfit overfit;
    char no_overfit[200];   // reason why there is none; "": there is
    int64_t bars, from, to; // number of bars, opens of the first and the last
} sweep;

// Plays settings 0..count-1 on the pool's threads. `trials` is at least 1. ERR_INPUT where no setting could be traded,
// ERR_RUN where memory is short. `s` must stay where it is. On failure it is empty.
bool sweep_make(sweep *s, int64_t count, double trials, sweep_fn *play, void *arg, pool *p, err *e);

// Safe to call twice.
void sweep_done(sweep *s);

#endif
