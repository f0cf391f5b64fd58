// Synthetic bars with a planted signal: a market whose best possible classifier is known.
//
// Five-minute bars and the hourly bars that they add up to. The next bar's return is
//   sigma * (strength * s + e),  e standard normal and independent of everything before,
// where s is known from the sample alone: a difference of two averages of the fast bars' order flow, the trend of the
// slow bars' participation, and two of the 32 signals in the vector, in equal parts and of unit variance together. The
// label is DOWN, NEUTRAL or UP as that return lies below, within or above a band; given s its probabilities follow from
// the normal distribution, and the best possible classifier takes the likeliest. Everything else in the bars is noise.
#ifndef TRADEWIND_DATA_SYNTHETIC_H
#define TRADEWIND_DATA_SYNTHETIC_H

#include "base/err.h"
#include "data/dataset.h"

enum { SYNTHETIC_FAST = 15, SYNTHETIC_SLOW = 8, SYNTHETIC_VECTOR = 64 };

typedef struct {
    int64_t bars; // fast bars
    uint64_t seed;
    double strength; // of the signal against the noise
} synthetic_options;

// Streams "fast" [bars, 15] and "slow" [bars / 12, 8], a vector of 64, 3 classes. NULL on failure.
dataset *synthetic_new(const synthetic_options *o, err *e);

#endif
