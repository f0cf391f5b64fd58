// Made-up bars for tests: a seeded random walk with trading days, weekends, holes and gaps, and the bars of a real file
// where it is at hand.
#ifndef TRADEWIND_TEST_DATA_WALK_H
#define TRADEWIND_TEST_DATA_WALK_H

#include "data/bar.h"

#include <stdbool.h>

// `count` bars of `span` seconds from `seed`, which the caller frees. The market is closed from Friday 21:00 to Sunday
// 22:00 and for an hour every day; bars are missing now and then; some bars have no range or no volume. Volatility
// comes in waves.
bar *walk_bars(int64_t count, int64_t span, uint64_t seed);

// Writes such bars as MetaTrader's Python API has them.
void walk_put(const char *path, int64_t count, int64_t span, uint64_t seed);

// Makes a bar's prices, volume and spread others, at random; its time stays.
void walk_scramble(bar *b, uint64_t seed);

// The bars of a file of the MetaTrader Python API in TRADEWIND_DATA, or in shared/data beside the source tree, whose
// folder of tests is `tests`. NULL where there is none. The caller frees them.
bar *walk_file(const char *tests, const char *name, int64_t *count);

// Volatility over `n` bars at each of them, by volatility.h; the caller frees it. NULL where n is 0.
double *walk_volatility(const bar *bars, int64_t count, int64_t n);

// The bars' ends; the caller frees them.
int64_t *walk_ends(const bar *bars, int64_t count);

#endif
