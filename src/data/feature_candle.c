// Features of a bar's shape, and of the gap before it.
#include "data/feature_rule.h"

#include <math.h>

static double value_direction(const feature *x, const double *v) {
    (void)x;
    return v[GAUGE_DIRECTION];
}

RULE(direction) = {feature_plan_nothing, value_direction};

static double value_body(const feature *x, const double *v) {
    (void)x;
    return feature_ratio(v[GAUGE_CLOSE] - v[GAUGE_OPEN], v[GAUGE_RANGE], 0);
}

RULE(body) = {feature_plan_nothing, value_body};

static double value_upper_wick(const feature *x, const double *v) {
    (void)x;
    return feature_ratio(v[GAUGE_HIGH] - fmax(v[GAUGE_OPEN], v[GAUGE_CLOSE]), v[GAUGE_RANGE], 0);
}

RULE(upper_wick) = {feature_plan_nothing, value_upper_wick};

static double value_lower_wick(const feature *x, const double *v) {
    (void)x;
    return feature_ratio(fmin(v[GAUGE_OPEN], v[GAUGE_CLOSE]) - v[GAUGE_LOW], v[GAUGE_RANGE], 0);
}

RULE(lower_wick) = {feature_plan_nothing, value_lower_wick};

static double value_close_position(const feature *x, const double *v) {
    (void)x;
    return feature_ratio(v[GAUGE_CLOSE] - v[GAUGE_LOW], v[GAUGE_RANGE], 0.5);
}

RULE(close_position) = {feature_plan_nothing, value_close_position};

static double value_body_atr(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_CLOSE] - v[GAUGE_OPEN], v[x->slot[0]], 0);
}

RULE(body_atr) = {feature_plan_atr, value_body_atr};

static void plan_gap(feature *x, gauge *g) {
    (void)g;
    x->slot[0] = GAUGE_BEFORE;
}

static double value_gap(const feature *x, const double *v) {
    return (v[GAUGE_OPEN] - v[x->slot[0]]) / v[x->slot[0]];
}

RULE(gap) = {plan_gap, value_gap};

static double value_gap_atr(const feature *x, const double *v) {
    return feature_ratio(v[GAUGE_OPEN] - v[GAUGE_BEFORE], v[x->slot[0]], 0);
}

RULE(gap_atr) = {feature_plan_atr, value_gap_atr};
