// Targets of forecasts from bars: what they are, and how they are scaled for training.
//
// A model trains on (y / level - mean) / std and its answers go the way back, so that every figure is in the units of
// the data. There is one pair of mean and std for all columns and instruments: columns keep their weights against each
// other in the loss. Both are of the training part alone, in double, then floats.
//
// Closes are measured by the price at their sample (level), with a mean of 1: an answer of 0 repeats the last value.
// Returns have a mean of 0: an answer of 0 is the zero forecast, and a drift that the training part happened to have is
// not taken for granted. Other targets have the mean and deviation that they have. The std of the first two is the root
// mean square around that mean. Targets that do not change are divided by 1.
#ifndef TRADEWIND_DATA_TARGET_H
#define TRADEWIND_DATA_TARGET_H

#include "data/split.h"

typedef enum { TARGET_VALUES, TARGET_RETURNS, TARGET_CLOSES } target_kind;

// Kind of the targets of a dataset, by its maker's words: VALUES where these say nothing.
target_kind target_kind_of(const dataset *d);

// The zero scale, all of it 0, leaves targets as they are.
typedef struct {
    float mean, std;
} target_scale;

static inline bool target_scales(target_scale s) {
    return s.std > 0 && (s.std != 1 || s.mean != 0);
}

// Fits a scale to the targets of a part. ERR_INPUT names a target that is not finite.
bool target_fit(const dataset *d, const split_part *train, target_scale *s, err *e);

#endif
