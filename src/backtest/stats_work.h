// Parts of stats_make. For backtest/stats*.c alone.
#ifndef TRADEWIND_BACKTEST_STATS_WORK_H
#define TRADEWIND_BACKTEST_STATS_WORK_H

#include "backtest/daily.h"
#include "backtest/sharpe.h"
#include "backtest/stats.h"

// A value, with the reason to give where it is not finite; and no value, with its reason.
void stat_put(stats *s, stat_name k, double value, const char *otherwise);
void stat_lack(stats *s, stat_name k, const char *why);

// Figures that several statistics are made of.
typedef struct {
    const stats_input *in;
    daily daily;
    double a_year; // days
    double years;  // from the first bar to the last
    double mean, deviation;
    sharpe_sample sample; // of daily returns
} stats_base;

// Return, growth, volatility, ratios and drawdown of equity, and those of buying and holding.
bool stats_of_equity(const stats_base *b, stats *s, err *e);

// Exposure, results, turnover and costs; the control.
void stats_of_trades(const stats_base *b, stats *s);
bool stats_of_control(const stats_base *b, stats *s, err *e);

// Probabilistic and deflated Sharpe, track record, overfitting; intervals.
void stats_of_doubt(const stats_base *b, stats *s);
bool stats_of_ranges(const stats_base *b, stats *s, err *e);

#endif
