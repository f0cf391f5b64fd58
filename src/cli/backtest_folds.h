// Rules of a walk's folds as lines of a backtest's assumptions.
#ifndef TRADEWIND_CLI_BACKTEST_FOLDS_H
#define TRADEWIND_CLI_BACKTEST_FOLDS_H

#include "task/backtest_walk.h"

// Adds the rule, the thresholds of the folds that are traded, and the folds that are not: a few lines, however many
// folds there are.
void backtest_folds_add(assumptions *to, const backtested_walk *w);

#endif
