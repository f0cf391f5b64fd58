// Features of volume and spread.
#include "data/feature_rule.h"

#include <math.h>

static void plan_volume(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 0));
    x->slot[1] = gauge_variance(g, GAUGE_VOLUME, feature_bars(x, 0));
}

static double value_volume_ratio(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_VOLUME], v[x->slot[0]], 1);
}

static double value_volume_zscore(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_VOLUME] - v[x->slot[0]], sqrt(v[x->slot[1]]), 0);
}

RULE(volume_ratio) = {plan_volume, value_volume_ratio};
RULE(volume_zscore) = {plan_volume, value_volume_zscore};

static void plan_volume_trend(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 1));
}

static double value_share(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]], v[x->slot[1]], 0);
}

static double value_volume_trend(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]], v[x->slot[1]], 1);
}

RULE(volume_trend) = {plan_volume_trend, value_volume_trend};

// The two windows have the same bars, though the side of a volume is known a bar later.
static void plan_volume_flow(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_VOLUME_SIDE, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 0));
}

RULE(volume_flow) = {plan_volume_flow, value_share};

static void plan_money_flow(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_MONEY_UP, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_MONEY_DOWN, feature_bars(x, 0));
}

static double value_money_flow(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]], v[x->slot[0]] + v[x->slot[1]], 0.5);
}

RULE(money_flow) = {plan_money_flow, value_money_flow};

static void plan_chaikin(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_PRESSURE, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 0));
}

RULE(chaikin) = {plan_chaikin, value_share};

static void plan_vwap_distance(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_MONEY, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_VOLUME, feature_bars(x, 0));
}

static double value_vwap_distance(const feature *x, const double *v) {
    double mean = value_share(x, v);
    return mean > 0 ? (v[GAUGE_CLOSE] - mean) / mean : 0;
}

RULE(vwap_distance) = {plan_vwap_distance, value_vwap_distance};

static void plan_spread(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_SPREAD, feature_bars(x, 0));
    x->slot[1] = gauge_variance(g, GAUGE_SPREAD, feature_bars(x, 0));
}

static double value_spread_ratio(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_SPREAD], v[x->slot[0]], 1);
}

static double value_spread_zscore(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_SPREAD] - v[x->slot[0]], sqrt(v[x->slot[1]]), 0);
}

RULE(spread_ratio) = {plan_spread, value_spread_ratio};
RULE(spread_zscore) = {plan_spread, value_spread_zscore};
