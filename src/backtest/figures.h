// Figures of a replay, with those of buy-and-hold beside them: one table for text and JSON.
#ifndef TRADEWIND_BACKTEST_FIGURES_H
#define TRADEWIND_BACKTEST_FIGURES_H

#include "backtest/replay.h"

typedef enum { FIGURE_MONEY, FIGURE_SHARE, FIGURE_COUNT } figure_unit;

typedef struct {
    const char *key;   // "equity_final"
    const char *label; // "final equity"
    const char *means; // its definition, in a line
    figure_unit unit;
    double (*of)(const replay *p);
    double (*hold)(const replay *p); // of the whole cash in the instrument from the first close to the last; NULL: none
} figure;

// All figures, in the order in which people read them. A figure is NAN where it is not defined. Of a replay that has
// ended.
const figure *figures_all(size_t *count);

#endif
