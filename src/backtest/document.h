// A backtest as the document that reports read: backtest.json (run/results.h).
#ifndef TRADEWIND_BACKTEST_DOCUMENT_H
#define TRADEWIND_BACKTEST_DOCUMENT_H

#include "backtest/assumptions.h"
#include "backtest/stats.h"

// Makes the document of a replay that has ended. Lists that are drawn have at most RESULTS_POINTS_MOST elements, at
// equal distances, the last one included. Buy-and-hold is the cash in the instrument from the first close. A new
// reference.
json_t *document_make(const assumptions *a, const replay *p, const stats *s);

// Days of a replay that have bars, numbered from 1970, and the last equity of each: {"day": [...], "equity": [...]}.
// Backtests of the same days can be compared by it. A new reference.
json_t *document_daily(const replay *p);

// Equity of a replay that has ended, as one curve of several: {time, equity} of at most DOCUMENT_CURVE_POINTS each. A
// new reference.
enum { DOCUMENT_CURVE_POINTS = 400 };
json_t *document_curve(const replay *p);

// A figure of stats as documents have it: shares in percent; null where it is not defined. And its unit.
json_t *document_figure(stat_name k, double v);
const char *document_unit(stat_name k);

#endif
