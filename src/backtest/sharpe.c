#include "backtest/sharpe.h"

#include "base/err.h"

#include <math.h>

double normal_below(double x) {
    return 0.5 * erfc(-x / sqrt(2));
}

// Bisection down to neighbouring numbers. The lower half alone, where erfc has all its digits.
double normal_at(double probability) {
    CHECK(probability > 0 && probability < 1, "a probability of %g", probability);
    if (probability > 0.5) return -normal_at(1 - probability);
    double low = -40, high = 0;
    for (;;) {
        double x = (low + high) / 2;
        if (x <= low || x >= high) return high;
        if (normal_below(x) < probability)
            low = x;
        else
            high = x;
    }
}

// Rounding of equity / equity - 1; a deviation up to this is none.
static const double ROUNDING = 1e-14;

void sharpe_moments(const double *back, int64_t count, double *mean, double *deviation, sharpe_sample *s) {
    double n = (double)count, sum = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int64_t i = 0; i < count; i++) sum += back[i];
    *mean = count ? sum / n : (double)NAN;
    for (int64_t i = 0; i < count; i++) {
        double x = back[i] - *mean;
        m2 += x * x;
        m3 += x * x * x;
        m4 += x * x * x * x;
    }
    *deviation = count > 1 ? sqrt(m2 / (n - 1)) : (double)NAN;
    if (*deviation <= ROUNDING) *deviation = 0;
    *s = (sharpe_sample){NAN, NAN, NAN, n};
    if (!(*deviation > 0)) return;
    *s = (sharpe_sample){*mean / *deviation, m3 / n / pow(m2 / n, 1.5), m4 / n / (m2 / n * (m2 / n)), n};
}

// Variance of the estimated ratio, times the returns less one.
static double spread_of(const sharpe_sample *s) {
    return 1 - s->skew * s->sharpe + (s->kurtosis - 1) / 4 * s->sharpe * s->sharpe;
}

double sharpe_probability(const sharpe_sample *s, double threshold) {
    double spread = spread_of(s);
    if (!(spread > 0) || s->count < 2) return NAN;
    return normal_below((s->sharpe - threshold) * sqrt((s->count - 1) / spread));
}

double sharpe_luck(double trials, double variance) {
    static const double euler = 0.57721566490153286;
    CHECK(trials >= 1 && variance >= 0, "%g trials of variance %g", trials, variance);
    if (trials <= 1) return 0;
    return sqrt(variance) * (-(1 - euler) * normal_at(1 / trials) - euler * normal_at(1 / (trials * exp(1))));
}

double sharpe_track(const sharpe_sample *s, double threshold, double confidence) {
    double above = s->sharpe - threshold, spread = spread_of(s), z = normal_at(confidence);
    return above > 0 && spread > 0 ? 1 + spread * (z / above) * (z / above) : (double)NAN;
}
