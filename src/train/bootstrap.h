// Intervals by the circular block bootstrap of Politis and Romano (1992): units in time order are drawn in blocks, each
// beginning anywhere with the same probability and going round at the end, until there are as many as before.
//
// Neighbours in time share label spans and weather, so single units are not independent; blocks keep what neighbours
// have in common. A block is as long as a label reaches, and at least the cube root of the number of units.
// 1,000 resamples, 95 % between the percentiles, and random numbers that are a function of the resample and the block:
// the same units give the same interval.
#ifndef TRADEWIND_TRAIN_BOOTSTRAP_H
#define TRADEWIND_TRAIN_BOOTSTRAP_H

#include "base/err.h"

#include <stdint.h>

enum { BOOTSTRAP_RESAMPLES = 1000 };

typedef struct {
    double low, high; // NaN: none
} interval;

// Units in time order, each with the terms whose sums the statistics are made of.
typedef struct {
    double *value; // [units, terms]; running sums after bootstrap_intervals
    int64_t units, terms;
    int64_t block; // units
} bootstrap_table;

// Statistics of sums over units, [terms], into `to`.
typedef void bootstrap_statistics(const void *arg, const double *sums, double *to);

// Length of a block for so many units whose labels reach over `horizon` of them.
int64_t bootstrap_block(int64_t units, int64_t horizon);

// The 95 % intervals of `count` statistics. There are none where the units are fewer than two blocks. A resample that
// has no value of a statistic (NaN) is left out of it. ERR_RUN where memory is short.
bool bootstrap_intervals(
    const bootstrap_table *t, bootstrap_statistics *of, const void *arg, int count, interval *to, err *e);

#endif
