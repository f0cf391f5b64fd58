// Several models' predictions as one: probabilities by their mean, forecasts by their median, which one model that went
// astray does not move. All members have the same n values; the result may be one of them.
#ifndef TRADEWIND_TASK_ENSEMBLE_H
#define TRADEWIND_TASK_ENSEMBLE_H

#include <stdint.h>

void ensemble_mean(const float *const *member, int members, int64_t n, float *out);

// The mean of the middle two where their number is even. NaN where a member is NaN.
void ensemble_median(const float *const *member, int members, int64_t n, float *out);

#endif
