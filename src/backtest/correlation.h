// Information coefficients: the correlation of predictions with what came of them.
#ifndef TRADEWIND_BACKTEST_CORRELATION_H
#define TRADEWIND_BACKTEST_CORRELATION_H

#include "base/err.h"

#include <stdint.h>

// Pearson's correlation (IC) of `count` pairs, and Spearman's (rank IC): the same of ranks, where equal values share
// the mean of their ranks. NaN for fewer than 2 pairs and where one side does not vary. ERR_RUN where memory is short.
double correlation(const double *x, const double *y, int64_t count);
bool correlation_of_ranks(const double *x, const double *y, int64_t count, double *to, err *e);

#endif
