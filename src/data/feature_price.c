// Features of price changes: returns, momentum, distances from extremes.
#include "data/feature_rule.h"

#include <math.h>

static void plan_return(feature *x, gauge *g) {
    x->slot[0] = gauge_lag(g, GAUGE_CLOSE, feature_bars(x, 0));
}

RULE(return ) = {plan_return, feature_value_distance};
RULE(roc) = {plan_return, feature_value_distance};

static void plan_log_return(feature *x, gauge *g) {
    x->slot[0] = gauge_lag(g, GAUGE_LOG_CLOSE, feature_bars(x, 0));
}

static double value_log_return(const feature *x, const double *v) {
    return v[GAUGE_LOG_CLOSE] - v[x->slot[0]];
}

RULE(log_return) = {plan_log_return, value_log_return};

static void plan_momentum(feature *x, gauge *g) {
    x->slot[0] = gauge_lag(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_TRUE_RANGE, feature_bars(x, 0));
}

static double value_momentum(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_CLOSE] - v[x->slot[0]], v[x->slot[1]] * x->number[0], 0);
}

RULE(momentum) = {plan_momentum, value_momentum};

static void plan_efficiency(feature *x, gauge *g) {
    x->slot[0] = gauge_lag(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_TRAVEL, feature_bars(x, 0));
}

static double value_efficiency(const feature *x, const double *v) {
    return fmin(feature_ratio(fabs(v[GAUGE_CLOSE] - v[x->slot[0]]), v[x->slot[1]] * x->number[0], 0), 1);
}

RULE(efficiency) = {plan_efficiency, value_efficiency};

static void plan_streak(feature *x, gauge *g) {
    (void)g;
    x->slot[0] = GAUGE_STREAK;
}

static double value_streak(const feature *x, const double *v) {
    return v[x->slot[0]] / 10;
}

RULE(streak) = {plan_streak, value_streak};

static void plan_up_share(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_DIRECTION, feature_bars(x, 0));
}

RULE(up_share) = {plan_up_share, feature_value_slot};

static void plan_autocorrelation(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_RETURN_CROSS, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_RETURN, feature_bars(x, 0));
    x->slot[2] = gauge_variance(g, GAUGE_RETURN, feature_bars(x, 0));
}

static double value_autocorrelation(const feature *x, const double *v) {
    double mean = v[x->slot[1]], r = feature_ratio(v[x->slot[0]], v[x->slot[2]] + mean * mean, 0);
    return fmax(fmin(r, 3), -3); // the pairs reach one bar further back than the squares
}

RULE(autocorrelation) = {plan_autocorrelation, value_autocorrelation};

static void plan_drawdown(feature *x, gauge *g) {
    x->slot[0] = gauge_highest(g, GAUGE_CLOSE, feature_bars(x, 0));
}

RULE(drawdown) = {plan_drawdown, feature_value_distance};

static void plan_rally(feature *x, gauge *g) {
    x->slot[0] = gauge_lowest(g, GAUGE_CLOSE, feature_bars(x, 0));
}

RULE(rally) = {plan_rally, feature_value_distance};
