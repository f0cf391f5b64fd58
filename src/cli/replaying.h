// Speed of a backtest's event pass, for `tradewind bench replay`.
#ifndef TRADEWIND_CLI_REPLAYING_H
#define TRADEWIND_CLI_REPLAYING_H

#include "base/err.h"

#include <stdint.h>

typedef struct {
    double rate;  // bars a second on one processor, median of the passes
    int64_t bars; // of a pass
    int64_t trades;
    double megabytes; // of bars, orders, equity and trades
} replaying;

// Replays made-up bars with an order every twenty bars, each with a stop and a target, and with spread, commission and
// slippage: bars and orders are in memory, statistics are not part of it.
bool replaying_measure(int64_t bars, int64_t passes, replaying *r, err *e);

#endif
