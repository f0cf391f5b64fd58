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

#endif
