// Metrics: of a classifier from its confusion matrix, of forecasts from sums of their errors, and the table
// metric.def, which finds them by name and knows which way is better. Ratios 0 / 0 are 0 for classes, and NaN for
// forecasts, where 0 would be the best there is.
#ifndef TRADEWIND_TRAIN_METRIC_H
#define TRADEWIND_TRAIN_METRIC_H

#include <stdbool.h>
#include <stdint.h>

// Classes. `count` is [K, K], rows are true classes.

double metric_accuracy(const int64_t *count, int K);

// Matthews' correlation for K classes: (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2)(s^2 - sum t_k^2)).
double metric_mcc(const int64_t *count, int K);

double metric_macro_f1(const int64_t *count, int K);

// The mean recall of the classes that have samples.
double metric_balanced_accuracy(const int64_t *count, int K);

typedef struct {
    double precision, recall, f1;
    int64_t support; // samples of the class
} class_score;

class_score metric_of_class(const int64_t *count, int K, int k);

// Forecasts. `errors` is [ERRORS_COUNT]. Weights count elements, not rows.

enum {
    ERRORS_WEIGHT,
    ERRORS_ABSOLUTE,
    ERRORS_SQUARE,
    ERRORS_SMAPE,
    ERRORS_SCALED,        // of rows that have a scale
    ERRORS_SCALED_WEIGHT, //
    ERRORS_COUNT
};

double metric_mae(const double *errors);
double metric_rmse(const double *errors);

// In percent, as the M4 competition has it: the mean of 200 |e| / (|y| + |f|).
double metric_smape(const double *errors);

// The mean of |e| / scale, the scale being the series' own (naive_scale in train/naive.h).
double metric_mase(const double *errors);

// The mean of sMAPE and MASE, each divided by what the naive2 forecasts score.
double metric_owa(double smape, double mase, double naive2_smape, double naive2_mase);

// The table

// The thing predicted: classes, targets, or the next values of series, of which more is known.
enum { METRIC_CLASSES = 1, METRIC_FORECASTS = 2, METRIC_SERIES = 4 };

// A set of predictions, for metrics. Parts that are not known are NULL or 0.
typedef struct {
    double loss;
    const int64_t *confusion; // [classes, classes]
    int classes;
    const double *errors; // [ERRORS_COUNT]
    double naive2_smape, naive2_mase;
} metric_score;

typedef struct {
    const char *name;  // as in train.metric
    const char *title; // as people write it
    bool higher;       // is better
    unsigned tasks;    // METRIC_CLASSES and so on, or-ed: where it has a meaning
    double (*value)(const metric_score *s);
} metric;

// NULL where there is none of that name. metric_at counts from 0 and gives NULL behind the last.
const metric *metric_find(const char *name);
const metric *metric_at(int i);

// The default metric: mcc for classes, smape for series, mae for other targets, which may
// lie around 0.
const metric *metric_usual(unsigned task);

// NaN where the score lacks what the metric needs.
double metric_value(const metric *m, const metric_score *s);

#endif
