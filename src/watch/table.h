// Tables of a report's page: scores, statistics, folds, assumptions. Nothing is written where there is nothing.
#ifndef TRADEWIND_WATCH_TABLE_H
#define TRADEWIND_WATCH_TABLE_H

#include "watch/facts.h"

#include <stdio.h>

// Scores of each part beside trivial answers.
void table_scores(const facts *f, FILE *out);

// Statistics of the backtest with intervals, buy-and-hold and definitions.
void table_statistics(const facts *f, FILE *out);

// Folds of a walk.
void table_folds(const facts *f, FILE *out);

// Assumptions of the backtest, folded.
void table_assumptions(const facts *f, FILE *out);

// A metric as people read it: shares of money and time are percentages, with the unit in `*unit`; "" of others.
double table_metric(const char *name, double value, const char **unit);

#endif
