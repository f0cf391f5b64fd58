// Features of ranges and volatility, and of the bands drawn from them.
#include "data/feature_rule.h"

#include <math.h>

static const double LN2 = 0.69314718055994530942;

static double value_range(const feature *x, const double *v) {
    (void)x;
    return v[GAUGE_RANGE] / v[GAUGE_CLOSE];
}

RULE(range) = {feature_plan_nothing, value_range};

static void plan_true_range(feature *x, gauge *g) {
    (void)g;
    x->slot[0] = GAUGE_TRUE_RANGE;
}

RULE(true_range) = {plan_true_range, feature_value_of_close};

static void plan_range_ratio(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_RANGE, feature_bars(x, 0));
}

static double value_range_ratio(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_RANGE], v[x->slot[0]], 1);
}

RULE(range_ratio) = {plan_range_ratio, value_range_ratio};

RULE(atr) = {feature_plan_atr, feature_value_slot};
RULE(natr) = {feature_plan_atr, feature_value_of_close};

static void plan_atr_ratio(feature *x, gauge *g) {
    x->slot[0] = gauge_wilder(g, GAUGE_TRUE_RANGE, feature_bars(x, 0));
    x->slot[1] = gauge_wilder(g, GAUGE_TRUE_RANGE, feature_bars(x, 1));
}

static double value_atr_ratio(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]], v[x->slot[1]], 1);
}

RULE(atr_ratio) = {plan_atr_ratio, value_atr_ratio};

static void plan_volatility(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_RETURN, feature_bars(x, 0));
    x->slot[1] = gauge_variance(g, GAUGE_RETURN, feature_bars(x, 0));
}

static double mean_square(const double *v, int mean, int variance) {
    return v[variance] + v[mean] * v[mean];
}

static double value_volatility(const feature *x, const double *v) {
    return sqrt(mean_square(v, x->slot[0], x->slot[1]));
}

RULE(volatility) = {plan_volatility, value_volatility};

static void plan_volatility_ratio(feature *x, gauge *g) {
    plan_volatility(x, g);
    x->slot[2] = gauge_mean(g, GAUGE_RETURN, feature_bars(x, 1));
    x->slot[3] = gauge_variance(g, GAUGE_RETURN, feature_bars(x, 1));
}

static double value_volatility_ratio(const feature *x, const double *v) {
    const int *s = x->slot;
    return sqrt(feature_ratio(mean_square(v, s[0], s[1]), mean_square(v, s[2], s[3]), 1));
}

RULE(volatility_ratio) = {plan_volatility_ratio, value_volatility_ratio};

static void plan_parkinson(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_LOG_RANGE, feature_bars(x, 0));
}

static double value_parkinson(const feature *x, const double *v) {
    return sqrt(fmax(v[x->slot[0]], 0) / (4 * LN2));
}

RULE(parkinson) = {plan_parkinson, value_parkinson};

static void plan_moments(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_variance(g, GAUGE_CLOSE, feature_bars(x, 0));
}

static double value_zscore(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_CLOSE] - v[x->slot[0]], sqrt(v[x->slot[1]]), 0);
}

RULE(zscore) = {plan_moments, value_zscore};

static double value_bollinger_position(const feature *x, const double *v) {
    return value_zscore(x, v) / x->number[1];
}

RULE(bollinger_position) = {plan_moments, value_bollinger_position};

static double value_bollinger_width(const feature *x, const double *v) {
    return 2 * x->number[1] * sqrt(v[x->slot[1]]) / v[x->slot[0]];
}

RULE(bollinger_width) = {plan_moments, value_bollinger_width};

static void plan_keltner_position(feature *x, gauge *g) {
    x->slot[0] = gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_wilder(g, GAUGE_TRUE_RANGE, feature_bars(x, 0));
}

static double value_keltner_position(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_CLOSE] - v[x->slot[0]], v[x->slot[1]] * x->number[1], 0);
}

RULE(keltner_position) = {plan_keltner_position, value_keltner_position};
