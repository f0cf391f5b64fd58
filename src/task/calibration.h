// Calibration of answers: shares of what was predicted with a probability that came true, in ten bins of equal width
// over the probability of each class; and shares of targets at or below each quantile of forecasts.
//
// It is made of sums, so that those of several parts can be taken together.
#ifndef TRADEWIND_TASK_CALIBRATION_H
#define TRADEWIND_TASK_CALIBRATION_H

#include "base/json.h"
#include "task/answers.h"

enum { CALIBRATION_BINS = 10 };

typedef struct {
    int64_t count, right;
    double sum; // of probabilities
} calibration_bin;

typedef struct {
    int classes; // 0 for forecasts
    calibration_bin bin[CLASSES_MOST][CALIBRATION_BINS];
    int quantiles; // 0 for classes, and for forecasts of one value
    float level[QUANTILES_MOST];
    int64_t below[QUANTILES_MOST], targets;
} calibration;

// Adds answers whose labels or targets are known. `c` is zero in the beginning.
void calibration_add(calibration *c, const answers *a);

// Puts "calibration" or "coverage" (task/evaluation.h) into an object; nothing where there is neither. Classes are
// those of the data.
void calibration_put(const calibration *c, const dataset *d, json_t *to);

#endif
