// The M4 competition's reference forecasts and the scales of its errors, one series at a time.
//
// A season is `period` steps; 1 means that there is none (weekly series: 1, hourly: 24). Series are those known when
// the forecast is made, oldest first.
#ifndef TRADEWIND_TRAIN_NAIVE_H
#define TRADEWIND_TRAIN_NAIVE_H

#include <stdbool.h>
#include <stdint.h>

// The competition's test of a season, with 90 % confidence: |r_m| > 1.645 sqrt((1 + 2 (r_1^2 + ... + r_(m-1)^2)) / n),
// r_k being the autocorrelation at lag k and m the period. Series shorter than three seasons have none, and those so
// short that 10 log10(n) does not reach the period, since R's acf stops there.
bool naive_is_seasonal(const double *y, int64_t n, int64_t period);

// The last season, again and again; with a period of 1, or a series shorter than it, the last value.
void naive_seasonal(const double *y, int64_t n, int64_t period, double *forecast, int64_t horizon);

// The last value of the series without its season, times the season's indices (classical multiplicative decomposition);
// where the test finds no season, or the decomposition has an index that is no positive number, the last value.
void naive_two(const double *y, int64_t n, int64_t period, double *forecast, int64_t horizon);

// The divisor of MASE: the mean of |y_t - y_(t-period)| over the series; 0 where it is constant or no longer than the
// period.
double naive_scale(const double *y, int64_t n, int64_t period);

#endif
