// Statistics of a replay: its equity, trades and bars as backtest/stats.h takes them.
#ifndef TRADEWIND_BACKTEST_JUDGE_H
#define TRADEWIND_BACKTEST_JUDGE_H

#include "backtest/daily.h"
#include "backtest/replay.h"
#include "backtest/stats.h"

typedef struct {
    double trials;                      // settings tried, this one included; 1 or more
    const double *prediction, *outcome; // [predictions]; NULL: none
    int64_t predictions;
    const overfit *overfit; // of the trials; NULL: not known
    bool brief;             // neither intervals nor control
} judge_options;

// Statistics of a replay that has ended. ERR_RUN where memory is short.
bool judge(const replay *p, const account_terms *t, const judge_options *o, stats *s, err *e);

// Daily equity and returns of a replay that has ended; given back with daily_done. ERR_RUN where memory is short.
bool judge_daily(const replay *p, daily *d, err *e);

#endif
