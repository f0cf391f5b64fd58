#include "train/metric.h"

#include <math.h>

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static double row_sum(const int64_t *count, int K, int k) {
    double sum = 0;
    for (int i = 0; i < K; i++) sum += (double)count[k * K + i];
    return sum;
}

static double column_sum(const int64_t *count, int K, int k) {
    double sum = 0;
    for (int i = 0; i < K; i++) sum += (double)count[i * K + k];
    return sum;
}

double metric_accuracy(const int64_t *count, int K) {
    double correct = 0, all = 0;
    for (int k = 0; k < K; k++) {
        correct += (double)count[k * K + k];
        all += row_sum(count, K, k);
    }
    return ratio(correct, all);
}

double metric_mcc(const int64_t *count, int K) {
    double c = 0, s = 0, pt = 0, pp = 0, tt = 0;
    for (int k = 0; k < K; k++) {
        double t = row_sum(count, K, k), p = column_sum(count, K, k);
        c += (double)count[k * K + k];
        s += t;
        pt += p * t;
        pp += p * p;
        tt += t * t;
    }
    return ratio(c * s - pt, sqrt((s * s - pp) * (s * s - tt)));
}

double metric_macro_f1(const int64_t *count, int K) {
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += ratio(2 * (double)count[k * K + k], row_sum(count, K, k) + column_sum(count, K, k));
    return K > 0 ? sum / K : 0;
}
