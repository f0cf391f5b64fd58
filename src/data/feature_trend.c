// Features of averages, and the oscillators built on them.
#include "data/feature_rule.h"

#include <math.h>

static double value_cross(const feature *x, const double *v) {
    return (v[x->slot[0]] - v[x->slot[1]]) / v[x->slot[1]];
}

static void plan_ema_distance(feature *x, gauge *g) {
    x->slot[0] = gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 0));
}

RULE(ema_distance) = {plan_ema_distance, feature_value_distance};

static void plan_sma_distance(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_CLOSE, feature_bars(x, 0));
}

RULE(sma_distance) = {plan_sma_distance, feature_value_distance};

static void plan_ema_cross(feature *x, gauge *g) {
    x->slot[0] = gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 1));
}

RULE(ema_cross) = {plan_ema_cross, value_cross};

static void plan_sma_cross(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_mean(g, GAUGE_CLOSE, feature_bars(x, 1));
}

RULE(sma_cross) = {plan_sma_cross, value_cross};

static void plan_ema_slope(feature *x, gauge *g) {
    x->slot[0] = gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 0));
    x->slot[1] = gauge_lag(g, x->slot[0], 1);
}

RULE(ema_slope) = {plan_ema_slope, value_cross};

static void plan_macd(feature *x, gauge *g) {
    x->slot[0] =
        gauge_less(g, gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 0)), gauge_ema(g, GAUGE_CLOSE, feature_bars(x, 1)));
}

RULE(macd) = {plan_macd, feature_value_of_close};

static void plan_macd_signal(feature *x, gauge *g) {
    plan_macd(x, g);
    x->slot[0] = gauge_ema(g, x->slot[0], feature_bars(x, 2));
}

RULE(macd_signal) = {plan_macd_signal, feature_value_of_close};

static void plan_macd_histogram(feature *x, gauge *g) {
    plan_macd(x, g);
    x->slot[1] = gauge_ema(g, x->slot[0], feature_bars(x, 2));
}

static double value_macd_histogram(const feature *x, const double *v) {
    return (v[x->slot[0]] - v[x->slot[1]]) / v[GAUGE_CLOSE];
}

RULE(macd_histogram) = {plan_macd_histogram, value_macd_histogram};

static void plan_rsi(feature *x, gauge *g) {
    x->slot[0] = gauge_wilder(g, GAUGE_GAIN, feature_bars(x, 0));
    x->slot[1] = gauge_wilder(g, GAUGE_LOSS, feature_bars(x, 0));
}

static double value_rsi(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]], v[x->slot[0]] + v[x->slot[1]], 0.5);
}

RULE(rsi) = {plan_rsi, value_rsi};

static int place(gauge *g, int bars) {
    return gauge_position(g, GAUGE_CLOSE, gauge_lowest(g, GAUGE_LOW, bars), gauge_highest(g, GAUGE_HIGH, bars));
}

static void plan_stochastic_k(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, place(g, feature_bars(x, 0)), feature_bars(x, 1));
}

RULE(stochastic_k) = {plan_stochastic_k, feature_value_slot};

static void plan_stochastic_d(feature *x, gauge *g) {
    plan_stochastic_k(x, g);
    x->slot[0] = gauge_mean(g, x->slot[0], feature_bars(x, 2));
}

RULE(stochastic_d) = {plan_stochastic_d, feature_value_slot};

static void plan_place(feature *x, gauge *g) {
    x->slot[0] = place(g, feature_bars(x, 0));
}

static double value_williams(const feature *x, const double *v) {
    return v[x->slot[0]] - 1;
}

RULE(williams) = {plan_place, value_williams};
RULE(donchian_position) = {plan_place, feature_value_slot};

static void plan_donchian_width(feature *x, gauge *g) {
    x->slot[0] =
        gauge_less(g, gauge_highest(g, GAUGE_HIGH, feature_bars(x, 0)), gauge_lowest(g, GAUGE_LOW, feature_bars(x, 0)));
}

RULE(donchian_width) = {plan_donchian_width, feature_value_of_close};

static void plan_cci(feature *x, gauge *g) {
    x->slot[0] = gauge_mean(g, GAUGE_TYPICAL, feature_bars(x, 0));
    x->slot[1] = gauge_spread_about(g, GAUGE_TYPICAL, feature_bars(x, 0));
}

// Equal typical prices leave a deviation of rounding errors: less than 1e-13 of the price is none.
static double value_cci(const feature *x, const double *v) {
    double mean = v[x->slot[0]], about = v[x->slot[1]];
    return about > 1e-13 * mean ? (v[GAUGE_TYPICAL] - mean) / (1.5 * about) : 0;
}

RULE(cci) = {plan_cci, value_cci};

static void plan_di(feature *x, gauge *g) {
    x->slot[0] = gauge_wilder(g, GAUGE_RISE, feature_bars(x, 0));
    x->slot[1] = gauge_wilder(g, GAUGE_FALL, feature_bars(x, 0));
}

static double value_di(const feature *x, const double *v) {
    return feature_ratio(v[x->slot[0]] - v[x->slot[1]], v[x->slot[0]] + v[x->slot[1]], 0);
}

RULE(di) = {plan_di, value_di};

static void plan_adx(feature *x, gauge *g) {
    plan_di(x, g);
    x->slot[0] = gauge_wilder(g, gauge_contrast(g, x->slot[0], x->slot[1]), feature_bars(x, 0));
}

RULE(adx) = {plan_adx, feature_value_slot};

static void plan_ichimoku(feature *x, gauge *g) {
    for (int i = 0; i < 2; i++) {
        x->slot[2 * i] = gauge_highest(g, GAUGE_HIGH, feature_bars(x, i));
        x->slot[2 * i + 1] = gauge_lowest(g, GAUGE_LOW, feature_bars(x, i));
    }
}

static double value_ichimoku(const feature *x, const double *v) {
    const int *s = x->slot;
    return ((v[s[0]] + v[s[1]]) - (v[s[2]] + v[s[3]])) / (2 * v[GAUGE_CLOSE]);
}

RULE(ichimoku) = {plan_ichimoku, value_ichimoku};
