// The learning rate that falls when a metric no longer gets better, as PyTorch's ReduceLROnPlateau. The trainer asks at
// the end of every epoch; between epochs the rate stays. What is kept is a few numbers, for a checkpoint to hold.
#ifndef TRADEWIND_TRAIN_PLATEAU_H
#define TRADEWIND_TRAIN_PLATEAU_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double factor;    // what a fall multiplies the rate by, below 1
    double threshold; // better means better by this share of the best value's size
    double least;     // the rate falls no lower
    int64_t patience; // epochs in a row without a better value that are borne; the next one makes the rate fall
    bool higher;      // whether a higher value is better
} plateau_options;

typedef struct {
    double lr;
    double best;     // NaN before the first value
    int64_t waiting; // epochs since the best value or the last fall
    int64_t falls;
} plateau;

void plateau_init(plateau *p, double lr);

// Takes an epoch's value; a NaN is never better. Returns whether the rate fell, to p->lr.
bool plateau_take(plateau *p, const plateau_options *o, double value);

#endif
