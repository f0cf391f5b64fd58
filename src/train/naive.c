#include "train/naive.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>

// The autocovariance at a lag, times n.
static double covariance(const double *y, int64_t n, double mean, int64_t lag) {
    double sum = 0;
    for (int64_t t = lag; t < n; t++) sum += (y[t] - mean) * (y[t - lag] - mean);
    return sum;
}

bool naive_is_seasonal(const double *y, int64_t n, int64_t period) {
    if (period < 2 || n / 3 < period || floor(10 * log10((double)n)) < (double)period) return false;
    double mean = 0, around = 1;
    for (int64_t t = 0; t < n; t++) mean += (y[t] - y[0]) / (double)n;
    mean += y[0];
    double all = covariance(y, n, mean, 0);
    if (!(all > 0)) return false;
    for (int64_t lag = 1; lag < period; lag++) {
        double r = covariance(y, n, mean, lag) / all;
        around += 2 * r * r;
    }
    return fabs(covariance(y, n, mean, period) / all) > 1.645 / sqrt((double)n) * sqrt(around);
}

void naive_seasonal(const double *y, int64_t n, int64_t period, double *forecast, int64_t horizon) {
    CHECK(n > 0 && period > 0, "a forecast from %lld values with seasons of %lld", (long long)n, (long long)period);
    if (n < period) period = 1;
    for (int64_t h = 0; h < horizon; h++) forecast[h] = y[n - period + h % period];
}

// The mean around t over a season; where that is even, its first and its last step count half.
static double trend_at(const double *y, int64_t t, int64_t period) {
    int64_t half = period / 2;
    bool even = period % 2 == 0;
    double sum = even ? (y[t - half] + y[t + half]) / 2 : y[t - half] + y[t + half];
    for (int64_t i = t - half + 1; i < t + half; i++) sum += y[i];
    return sum / (double)period;
}

// The indices of a season that starts with the series: means of value / trend, with a mean of 1. False where one of
// them is no positive number.
static bool decompose(const double *y, int64_t n, int64_t period, double *index) {
    int64_t half = period / 2;
    double all = 0;
    for (int64_t k = 0; k < period; k++) {
        double sum = 0, count = 0;
        for (int64_t t = k; t < n - half; t += period) {
            if (t < half) continue;
            sum += y[t] / trend_at(y, t, period);
            count++;
        }
        index[k] = sum / count;
        all += index[k] / (double)period;
    }
    bool good = true;
    for (int64_t k = 0; k < period; k++) {
        index[k] /= all;
        good &= index[k] > 0 && isfinite(index[k]);
    }
    return good;
}

void naive_two(const double *y, int64_t n, int64_t period, double *forecast, int64_t horizon) {
    naive_seasonal(y, n, 1, forecast, horizon);
    if (!naive_is_seasonal(y, n, period)) return;
    double *index = malloc((size_t)period * sizeof *index);
    NEED(index, "out of memory for a season of %lld", (long long)period);
    if (decompose(y, n, period, index)) {
        double level = y[n - 1] / index[(n - 1) % period];
        for (int64_t h = 0; h < horizon; h++) forecast[h] = level * index[(n + h) % period];
    }
    free(index);
}

double naive_scale(const double *y, int64_t n, int64_t period) {
    double sum = 0;
    for (int64_t t = period; t < n; t++) sum += fabs(y[t] - y[t - period]);
    return n > period ? sum / (double)(n - period) : 0;
}
