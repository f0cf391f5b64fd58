// Sharpe ratios under doubt: how sure one is that a ratio is above a threshold, after how many returns one would be,
// and what the best of several trials without skill would show (Bailey and López de Prado, "The Sharpe ratio efficient
// frontier", 2012, and "The deflated Sharpe ratio", 2014).
//
// Ratios are of one period, not annualised: that of a year is divided by the root of the periods in a year. Kurtosis is
// 3 for a normal distribution. Results that do not exist are NaN.
#ifndef TRADEWIND_BACKTEST_SHARPE_H
#define TRADEWIND_BACKTEST_SHARPE_H

#include <stdint.h>

// Probability that a standard normal number is at most x, and the x of a probability in (0, 1).
double normal_below(double x);
double normal_at(double probability);

typedef struct {
    double sharpe;   // mean / standard deviation (ddof 1) of the returns
    double skew;     // m3 / m2^1.5, of central moments with divisor n
    double kurtosis; // m4 / m2^2
    double count;    // returns
} sharpe_sample;

// Mean and standard deviation (ddof 1) of returns, and their sample; the deviation is 0 where returns differ by no more
// than rounding, and NaN for fewer than two of them. All of `s` but `count` is NaN then.
void sharpe_moments(const double *back, int64_t count, double *mean, double *deviation, sharpe_sample *s);

// Probabilistic Sharpe ratio: the probability that the true ratio is above `threshold`. NaN for fewer than 2 returns
// and where the moments contradict each other.
double sharpe_probability(const sharpe_sample *s, double threshold);

// Expected highest ratio of `trials` (1 or more) independent trials without skill, whose ratios have this variance.
double sharpe_luck(double trials, double variance);

// Minimum track record: the least number of returns at which the probability of a ratio above `threshold` reaches
// `confidence`. NaN where the ratio is not above the threshold.
double sharpe_track(const sharpe_sample *s, double threshold, double confidence);

#endif
