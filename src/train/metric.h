// Metrics of a classifier, from its confusion matrix. Undefined ratios (0 / 0) are 0.
#ifndef TRADEWIND_TRAIN_METRIC_H
#define TRADEWIND_TRAIN_METRIC_H

#include <stdint.h>

// `count` is [K, K], rows are true classes.
double metric_accuracy(const int64_t *count, int K);

// Matthews' correlation for K classes: (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2)(s^2 - sum t_k^2)).
double metric_mcc(const int64_t *count, int K);

double metric_macro_f1(const int64_t *count, int K);

#endif
