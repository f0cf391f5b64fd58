// Figures of a replay: its statistics (stats.h), and amounts of its books that these do not have.
#ifndef TRADEWIND_BACKTEST_FIGURES_H
#define TRADEWIND_BACKTEST_FIGURES_H

#include "backtest/replay.h"
#include "backtest/stats.h"

// An amount of money.
typedef struct {
    const char *key;        // "commissions"
    const char *label;      // for people
    const char *definition; // in a line
    double (*of)(const replay *p);
} figure;

// The amounts, in the order in which people read them. Of a replay that has ended.
const figure *figures_all(size_t *count);

// The statistics of a replay that has ended. `days_a_year` of 0: from the bars.
bool figures_stats(stats *s, const replay *p, double days_a_year, err *e);

#endif
