// Lists of trades as CSV.
#ifndef TRADEWIND_BACKTEST_TRADES_H
#define TRADEWIND_BACKTEST_TRADES_H

#include "backtest/replay.h"

// The first line of such a file, without its end.
extern const char trades_header[];

// Writes the trades of a replay: times are opens of bars, positions are lots, prices and money have 8 decimals.
bool trades_write(const char *path, const replay *p, err *e);

#endif
