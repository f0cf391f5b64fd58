// Trivial answers, which need no model: what a score is to be compared with.
//
// Classes: the majority class of the training part, always; and the shares of its classes as probabilities (prior).
// Forecasts: zero, which for returns says that the price stays; the mean of the training part's targets; the last
// value, which for closes is the price at the sample; the last season again and again (train.season).
#ifndef TRADEWIND_TRAIN_TRIVIAL_H
#define TRADEWIND_TRAIN_TRIVIAL_H

#include "data/split.h"

typedef enum {
    TRIVIAL_MAJORITY,
    TRIVIAL_PRIOR,
    TRIVIAL_ZERO,
    TRIVIAL_MEAN,
    TRIVIAL_LAST,
    TRIVIAL_SEASONAL,
    TRIVIAL_KINDS
} trivial_kind;

enum { TRIVIAL_MOST = 2 }; // that fit one task

// As people write it, and as JSON has it.
const char *trivial_title(trivial_kind k);
const char *trivial_name(trivial_kind k);

// Trivial answers that fit what is predicted (METRIC_CLASSES and so on, train/metric.h); their number.
int trivial_list(unsigned task, const dataset *d, int64_t season, trivial_kind list[TRIVIAL_MOST]);

// Shares of the classes in a part, [classes]; and the largest of them.
void trivial_shares(const dataset *d, const split_part *train, double *share);
int trivial_majority(const double *share, int classes);

// The mean of all targets of a part.
double trivial_mean(const dataset *d, const split_part *train);

// Inputs of a trivial forecast: those that its kind needs.
typedef struct {
    const double *known; // [n] values of the series up to the sample
    int64_t n, season;
    double mean, price;
} trivial_inputs;

void trivial_forecast(trivial_kind k, const trivial_inputs *in, double *forecast, int64_t horizon);

#endif
