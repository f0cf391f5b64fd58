// Probability of backtest overfitting by combinatorially symmetric cross-validation (Bailey, Borwein, López de Prado
// and Zhu, "The probability of backtest overfitting", 2017).
//
// Returns of all trials over the same periods are cut into an even number of blocks. Each choice of half the blocks is
// in-sample once: the trial of the highest Sharpe ratio there has a rank among all trials on the other half.
// Overfitting is a choice whose winner is no better than the median out of sample. A trial whose returns do not vary
// has a ratio of 0; equal ratios share the mean of their ranks, and the first of equal winners is taken.
#ifndef TRADEWIND_BACKTEST_OVERFIT_H
#define TRADEWIND_BACKTEST_OVERFIT_H

#include "base/err.h"

#include <stdint.h>

enum { OVERFIT_BLOCKS_MOST = 20, OVERFIT_BLOCKS = 16 };

typedef struct {
    double probability; // share of choices whose winner is at or below the median out of sample
    double loss;        // share of choices whose winner loses out of sample: its mean return is below 0
    double logit;       // mean over choices of log(w / (1 - w)), w = rank / (trials + 1), rank 1 the worst
    int64_t choices;
} overfit;

// `back` is [periods, trials]; `blocks` is even, 2 to OVERFIT_BLOCKS_MOST, of as equal length as periods allow.
// ERR_INPUT for fewer than two trials or fewer than two periods a block; ERR_RUN where memory is short.
bool overfit_make(const double *back, int64_t periods, int64_t trials, int blocks, overfit *to, err *e);

#endif
