// Features: every row of the catalogue against its definition, computed here over whole series and windows in double;
// names and their mistakes; extreme bars; windows that do not drift and do not feel what came before; speed; the table
// in doc/features.md.
#include "data/feature.h"

#include "base/file.h"
#include "data/feature_gauge.h"
#include "data/plain.h"
#include "data/walk.h"
#include "support.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SPAN = 300 };

#define EACH(from, expression)                                                                                         \
    for (int64_t t = (from); t < w->n; t++) out[t] = (expression)

typedef void reference(world *w, const double *p, double *out);

static void ref_return(world *w, const double *p, double *out) {
    EACH(0, w->c[t] / plain_lag(w->c, t, p[0]) - 1);
}

static void ref_roc(world *w, const double *p, double *out) {
    ref_return(w, p, out);
}

static void ref_log_return(world *w, const double *p, double *out) {
    EACH(0, log(w->c[t] / plain_lag(w->c, t, p[0])));
}

static void ref_momentum(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->c[t] - plain_lag(w->c, t, p[0]), plain_sum(w->tr, t, p[0]), 0));
}

static void ref_efficiency(world *w, const double *p, double *out) {
    SERIES(travel, 0, fabs(w->change[t]));
    EACH(0, plain_over(fabs(w->c[t] - plain_lag(w->c, t, p[0])), plain_sum(travel, t, p[0]), 0));
}

static void ref_streak(world *w, const double *p, double *out) {
    (void)p;
    for (int64_t t = 1; t < w->n; t++) {
        int64_t i = t;
        double way = (w->change[t] > 0) - (w->change[t] < 0);
        while (i > 0 && w->change[i] * way > 0) i--;
        out[t] = way * (double)(t - i) / 10;
    }
}

static double *directions(world *w) {
    SERIES(d, 0, (w->c[t] > w->o[t]) - (w->c[t] < w->o[t]));
    return d;
}

static void ref_direction(world *w, const double *p, double *out) {
    (void)p;
    double *d = directions(w);
    EACH(0, d[t]);
}

static void ref_up_share(world *w, const double *p, double *out) {
    double *d = directions(w);
    EACH(0, plain_mean(d, t, p[0]));
}

static void ref_autocorrelation(world *w, const double *p, double *out) {
    SERIES(pair, 1, w->ret[t] * w->ret[t - 1]);
    SERIES(square, 1, w->ret[t] * w->ret[t]);
    EACH(0, plain_over(plain_mean(pair, t, p[0]), plain_mean(square, t, p[0]), 0));
    for (int64_t t = 0; t < w->n; t++)
        if (!isnan(out[t])) out[t] = fmax(-3, fmin(3, out[t]));
}

static void ref_drawdown(world *w, const double *p, double *out) {
    EACH(0, w->c[t] / plain_highest(w->c, t, p[0]) - 1);
}

static void ref_rally(world *w, const double *p, double *out) {
    EACH(0, w->c[t] / plain_lowest(w->c, t, p[0]) - 1);
}

static void ref_zscore(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->c[t] - plain_mean(w->c, t, p[0]), plain_deviation(w->c, t, p[0]), 0));
}

static void ref_ema_distance(world *w, const double *p, double *out) {
    double *e = plain_ema(w, w->c, p[0]);
    EACH(0, w->c[t] / e[t] - 1);
}

static void ref_sma_distance(world *w, const double *p, double *out) {
    EACH(0, w->c[t] / plain_mean(w->c, t, p[0]) - 1);
}

static void ref_ema_cross(world *w, const double *p, double *out) {
    double *a = plain_ema(w, w->c, p[0]), *b = plain_ema(w, w->c, p[1]);
    EACH(0, a[t] / b[t] - 1);
}

static void ref_sma_cross(world *w, const double *p, double *out) {
    EACH(0, plain_mean(w->c, t, p[0]) / plain_mean(w->c, t, p[1]) - 1);
}

static void ref_ema_slope(world *w, const double *p, double *out) {
    double *e = plain_ema(w, w->c, p[0]);
    EACH(1, e[t] / e[t - 1] - 1);
}

static double *macd_line(world *w, const double *p) {
    double *a = plain_ema(w, w->c, p[0]), *b = plain_ema(w, w->c, p[1]);
    SERIES(line, 0, a[t] - b[t]);
    return line;
}

static void ref_macd(world *w, const double *p, double *out) {
    double *line = macd_line(w, p);
    EACH(0, line[t] / w->c[t]);
}

static void ref_macd_signal(world *w, const double *p, double *out) {
    double *signal = plain_ema(w, macd_line(w, p), p[2]);
    EACH(0, signal[t] / w->c[t]);
}

static void ref_macd_histogram(world *w, const double *p, double *out) {
    double *line = macd_line(w, p), *signal = plain_ema(w, line, p[2]);
    EACH(0, (line[t] - signal[t]) / w->c[t]);
}

static void ref_rsi(world *w, const double *p, double *out) {
    SERIES(gain, 1, fmax(w->change[t], 0));
    SERIES(loss, 1, fmax(-w->change[t], 0));
    double *g = plain_wilder(w, gain, p[0]), *l = plain_wilder(w, loss, p[0]);
    EACH(0, isnan(g[t]) ? NAN : l[t] > 0 ? 1 - 1 / (1 + g[t] / l[t]) : g[t] > 0 ? 1 : 0.5);
}

static void ref_stochastic_k(world *w, const double *p, double *out) {
    double *k = plain_place(w, p[0]);
    EACH(0, plain_mean(k, t, p[1]));
}

static void ref_stochastic_d(world *w, const double *p, double *out) {
    double *k = plain_place(w, p[0]);
    SERIES(slow, 0, plain_mean(k, t, p[1]));
    EACH(0, plain_mean(slow, t, p[2]));
}

static void ref_williams(world *w, const double *p, double *out) {
    double *k = plain_place(w, p[0]);
    EACH(0, k[t] - 1);
}

static void ref_donchian_position(world *w, const double *p, double *out) {
    double *k = plain_place(w, p[0]);
    EACH(0, k[t]);
}

static void ref_donchian_width(world *w, const double *p, double *out) {
    EACH(0, (plain_highest(w->h, t, p[0]) - plain_lowest(w->l, t, p[0])) / w->c[t]);
}

static void ref_cci(world *w, const double *p, double *out) {
    for (int64_t t = (int64_t)p[0] - 1; t < w->n; t++) {
        double m = plain_mean(w->typical, t, p[0]), about = 0;
        for (int64_t i = 0; i < (int64_t)p[0]; i++) about += fabs(w->typical[t - i] - m) / p[0];
        out[t] = about > 1e-9 ? (w->typical[t] - m) / (0.015 * about) / 100 : 0;
    }
}

static void ref_di(world *w, const double *p, double *out) {
    double *up, *down;
    plain_moves(w, p[0], &up, &down);
    EACH(0, plain_over(up[t] - down[t], up[t] + down[t], 0));
}

static void ref_adx(world *w, const double *p, double *out) {
    double *up, *down;
    plain_moves(w, p[0], &up, &down);
    SERIES(dx, 0, plain_over(fabs(up[t] - down[t]), up[t] + down[t], 0));
    double *adx = plain_wilder(w, dx, p[0]);
    EACH(0, adx[t]);
}

static double middle(world *w, int64_t t, double n) {
    return (plain_highest(w->h, t, n) + plain_lowest(w->l, t, n)) / 2;
}

static void ref_ichimoku(world *w, const double *p, double *out) {
    EACH(0, (middle(w, t, p[0]) - middle(w, t, p[1])) / w->c[t]);
}

static void ref_range(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, w->range[t] / w->c[t]);
}

static void ref_true_range(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, w->tr[t] / w->c[t]);
}

static void ref_range_ratio(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->range[t], plain_mean(w->range, t, p[0]), 1));
}

static void ref_atr(world *w, const double *p, double *out) {
    double *atr = plain_wilder(w, w->tr, p[0]);
    EACH(0, atr[t]);
}

static void ref_natr(world *w, const double *p, double *out) {
    double *atr = plain_wilder(w, w->tr, p[0]);
    EACH(0, atr[t] / w->c[t]);
}

static void ref_atr_ratio(world *w, const double *p, double *out) {
    double *a = plain_wilder(w, w->tr, p[0]), *b = plain_wilder(w, w->tr, p[1]);
    EACH(0, plain_over(a[t], b[t], 1));
}

static void ref_volatility(world *w, const double *p, double *out) {
    SERIES(square, 0, w->ret[t] * w->ret[t]);
    EACH(0, sqrt(plain_mean(square, t, p[0])));
}

static void ref_volatility_ratio(world *w, const double *p, double *out) {
    SERIES(square, 0, w->ret[t] * w->ret[t]);
    EACH(0, plain_over(sqrt(plain_mean(square, t, p[0])), sqrt(plain_mean(square, t, p[1])), 1));
}

static void ref_parkinson(world *w, const double *p, double *out) {
    SERIES(square, 0, pow(log(w->h[t]) - log(w->l[t]), 2));
    EACH(0, sqrt(plain_mean(square, t, p[0]) / (4 * log(2))));
}

static void ref_bollinger_position(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->c[t] - plain_mean(w->c, t, p[0]), p[1] * plain_deviation(w->c, t, p[0]), 0));
}

static void ref_bollinger_width(world *w, const double *p, double *out) {
    EACH(0, 2 * p[1] * plain_deviation(w->c, t, p[0]) / plain_mean(w->c, t, p[0]));
}

static void ref_keltner_position(world *w, const double *p, double *out) {
    double *e = plain_ema(w, w->c, p[0]), *atr = plain_wilder(w, w->tr, p[0]);
    EACH(0, plain_over(w->c[t] - e[t], p[1] * atr[t], 0));
}

static void ref_volume_ratio(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->v[t], plain_mean(w->v, t, p[0]), 1));
}

static void ref_volume_zscore(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->v[t] - plain_mean(w->v, t, p[0]), plain_deviation(w->v, t, p[0]), 0));
}

static void ref_volume_trend(world *w, const double *p, double *out) {
    EACH(0, plain_over(plain_mean(w->v, t, p[0]), plain_mean(w->v, t, p[1]), 1));
}

static void ref_volume_flow(world *w, const double *p, double *out) {
    SERIES(side, 1, w->change[t] > 0 ? w->v[t] : w->change[t] < 0 ? -w->v[t] : 0);
    EACH(0, plain_over(plain_sum(side, t, p[0]), plain_sum(w->v, t, p[0]), 0));
}

static void ref_money_flow(world *w, const double *p, double *out) {
    SERIES(up, 1, w->typical[t] > w->typical[t - 1] ? w->typical[t] * w->v[t] : 0);
    SERIES(down, 1, w->typical[t] < w->typical[t - 1] ? w->typical[t] * w->v[t] : 0);
    EACH(0, plain_over(plain_sum(up, t, p[0]), plain_sum(up, t, p[0]) + plain_sum(down, t, p[0]), 0.5));
}

static void ref_chaikin(world *w, const double *p, double *out) {
    SERIES(gauge, 0, plain_over(2 * w->c[t] - w->h[t] - w->l[t], w->range[t], 0) * w->v[t]);
    EACH(0, plain_over(plain_sum(gauge, t, p[0]), plain_sum(w->v, t, p[0]), 0));
}

static void ref_vwap_distance(world *w, const double *p, double *out) {
    SERIES(money, 0, w->typical[t] * w->v[t]);
    EACH(0, plain_over(w->c[t], plain_over(plain_sum(money, t, p[0]), plain_sum(w->v, t, p[0]), w->c[t]), 1) - 1);
}

static void ref_spread_ratio(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->s[t], plain_mean(w->s, t, p[0]), 1));
}

static void ref_spread_zscore(world *w, const double *p, double *out) {
    EACH(0, plain_over(w->s[t] - plain_mean(w->s, t, p[0]), plain_deviation(w->s, t, p[0]), 0));
}

static void ref_body(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, plain_over(w->c[t] - w->o[t], w->range[t], 0));
}

static void ref_upper_wick(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, plain_over(w->h[t] - (w->c[t] > w->o[t] ? w->c[t] : w->o[t]), w->range[t], 0));
}

static void ref_lower_wick(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, plain_over((w->c[t] < w->o[t] ? w->c[t] : w->o[t]) - w->l[t], w->range[t], 0));
}

static void ref_close_position(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, plain_over(w->c[t] - w->l[t], w->range[t], 0.5));
}

static void ref_body_atr(world *w, const double *p, double *out) {
    double *atr = plain_wilder(w, w->tr, p[0]);
    EACH(0, plain_over(w->c[t] - w->o[t], atr[t], 0));
}

static void ref_gap(world *w, const double *p, double *out) {
    (void)p;
    EACH(1, w->o[t] / w->c[t - 1] - 1);
}

static void ref_gap_atr(world *w, const double *p, double *out) {
    double *atr = plain_wilder(w, w->tr, p[0]);
    EACH(1, plain_over(w->o[t] - w->c[t - 1], atr[t], 0));
}

static double hour(const world *w, int64_t t) {
    return (double)(w->bars[t].time % 86400 / 60) / 60;
}

static void ref_session_asia(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, hour(w, t) < 8);
}

static void ref_session_london(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, hour(w, t) >= 7 && hour(w, t) < 16);
}

static void ref_session_new_york(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, hour(w, t) >= 12 && hour(w, t) < 21);
}

static void ref_session_overlap(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, hour(w, t) >= 12 && hour(w, t) < 16);
}

static void ref_hour_sin(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, sin(hour(w, t) / 12 * acos(-1)));
}

static void ref_hour_cos(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, cos(hour(w, t) / 12 * acos(-1)));
}

// 1704067200, 2024-01-01, was a Monday.
static double weekday(const world *w, int64_t t) {
    return (double)((w->bars[t].time - 1704067200) / 86400 % 7);
}

static void ref_weekday_sin(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, sin(weekday(w, t) * 2 / 7 * acos(-1)));
}

static void ref_weekday_cos(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, cos(weekday(w, t) * 2 / 7 * acos(-1)));
}

static void ref_year_sin(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, sin((double)(w->bars[t].time / 86400) * 2 * acos(-1) / 365.2425));
}

static void ref_year_cos(world *w, const double *p, double *out) {
    (void)p;
    EACH(0, cos((double)(w->bars[t].time / 86400) * 2 * acos(-1) / 365.2425));
}

static void ref_missed_bars(world *w, const double *p, double *out) {
    (void)p;
    EACH(1, log((double)(w->bars[t].time - w->bars[t - 1].time) / SPAN));
}

static reference *const references[] = {
#define FEATURE(name, ...) ref_##name,
#include "data/feature.def"
#undef FEATURE
};

// Comparing

static void check_column(const char *spec, int kind, const double *p, const bar *bars, int64_t n) {
    err e = {0};
    world w;
    feature_list *l = feature_list_new(&spec, 1, SPAN, &e);
    support_ok(l != NULL, &e);
    world_open(&w, bars, n);
    double *want = plain_series(&w);
    float *got = arena_array(&w.memory, (size_t)n, sizeof *got);
    references[kind](&w, p, want);
    feature_list_run(l, bars, n, got);
    int64_t defined = 0;
    for (int64_t t = 0; t < n; t++) {
        double ref = isnan(want[t]) ? 0 : want[t];
        defined += !isnan(want[t]);
        // Differences of prices cancel: what is left of a double is 1e-12 of a ratio near 1.
        if (fabs(got[t] - ref) > 1e-6 * fabs(ref) + 1e-10 || !isfinite(got[t]))
            fail_msg("%s at bar %lld: %.9g, not %.9g", spec, (long long)t, got[t], want[t]);
    }
    assert_true(defined > 0);
    world_close(&w);
    feature_list_free(l);
}

static void matches_the_definitions(void **state) {
    (void)state;
    int64_t n = 1200;
    bar *bars = walk_bars(n, SPAN, 1);
    assert_int_equal(feature_count(), sizeof references / sizeof *references);
    for (int i = 0; i < feature_count(); i++) {
        feature_info info = feature_at(i);
        check_column(info.name, i, info.number, bars, n);
        if (!*info.parameters) continue;
        // Others than the defaults: lengths of 1, and odd ones.
        static const double odd[] = {7, 33, 5};
        char spec[64];
        double p[3] = {odd[0], info.parameters[1] == 'k' ? 1.25 : odd[1], odd[2]};
        size_t count = strlen(info.parameters);
        int at = snprintf(spec, sizeof spec, "%s", info.name);
        for (size_t k = 0; k < count; k++) at += snprintf(spec + at, sizeof spec - (size_t)at, "_%g", p[k]);
        check_column(spec, i, p, bars, n);
        p[0] = 1;
        snprintf(spec, sizeof spec, "%s_1", info.name);
        for (int k = 1; k < 3; k++) p[k] = info.number[k];
        check_column(spec, i, p, bars, n);
    }
    free(bars);
}

static void refuses(const char *spec, const char *says) {
    err e = {0};
    assert_null(feature_list_new(&spec, 1, SPAN, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, says)) fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void reads_names(void **state) {
    (void)state;
    err e = {0};
    static const char *const specs[] = {
        "rsi", "rsi_7", "macd_12_26_9", "bollinger_position_20_2.5", "hour_sin", "ema_cross_5"};
    static const char *const names[] = {
        "rsi_14", "rsi_7", "macd_12_26_9", "bollinger_position_20_2.5", "hour_sin", "ema_cross_5_21"};
    feature_list *l = feature_list_new(specs, 6, SPAN, &e);
    support_ok(l != NULL, &e);
    assert_int_equal(feature_list_width(l), 6);
    for (int i = 0; i < 6; i++) assert_string_equal(feature_list_name(l, i), names[i]);
    feature_list_free(l);
    refuses("rsy_14", "did you mean rsi?");
    refuses("logreturn_3", "did you mean log_return?");
    refuses("bolinger_width", "did you mean bollinger_width?");
    refuses("", "did you mean");
    refuses("_14", "did you mean");
    refuses("14", "did you mean");
    refuses("rsi_", "did you mean rsi?");
    refuses("rsi_1e3", "did you mean rsi?");
    refuses("rsi_-3", "did you mean rsi?");
    refuses("rsi_nan", "did you mean");
    refuses("rsi_0", "use 1 to 10000");
    refuses("rsi_10001", "use 1 to 10000");
    refuses("rsi_2.5", "no number of bars");
    refuses("rsi_99999999999999999999999999999999999999", "use 1 to 10000");
    refuses("rsi_14_3", "takes 1 number;");
    refuses("hour_sin_3", "takes 0 numbers");
    refuses("macd_26_12_9", "shorter length first");
    refuses("ema_cross_21", "shorter length first");
    refuses("bollinger_width_20_0", "use 0.01 to 100");
    refuses("bollinger_width_20_101", "use 0.01 to 100");
    refuses(
        "rsi_14_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "longer than any name");
    assert_null(feature_list_new((const char *const[]){"rsi", "atr", "rsi_14"}, 3, SPAN, &e));
    assert_non_null(strstr(e.text, "rsi_14 is listed twice"));
    assert_null(feature_list_new(specs, 0, SPAN, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_null(feature_list_new(specs, 1, 0, &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

static feature_list *whole_catalogue(void) {
    const char *specs[256];
    err e = {0};
    assert_true(feature_count() <= 256);
    for (int i = 0; i < feature_count(); i++) specs[i] = feature_at(i).name;
    feature_list *l = feature_list_new(specs, feature_count(), SPAN, &e);
    support_ok(l != NULL, &e);
    return l;
}

static void has_default_sets(void **state) {
    (void)state;
    err e = {0};
    feature_list *fast = feature_list_new(feature_default_fast, FEATURE_FAST, 300, &e);
    support_ok(fast != NULL, &e);
    feature_list *slow = feature_list_new(feature_default_slow, FEATURE_SLOW, 3600, &e);
    support_ok(slow != NULL, &e);
    for (int i = 0; i < FEATURE_FAST; i++) assert_string_equal(feature_list_name(fast, i), feature_default_fast[i]);
    for (int i = 0; i < FEATURE_SLOW; i++) assert_string_equal(feature_list_name(slow, i), feature_default_slow[i]);
    feature_list_free(fast);
    feature_list_free(slow);
}

// The bounds that a row of the catalogue promises: "-1..1", "0..", "any".
static void check_row(const feature_list *l, const float *row, int64_t t) {
    for (int i = 0; i < feature_list_width(l); i++) {
        const char *range = feature_at(i).range, *dots = strstr(range, "..");
        if (!isfinite(row[i])) fail_msg("%s at bar %lld: %g", feature_list_name(l, i), (long long)t, row[i]);
        if (!dots) continue;
        double least = strtod(range, NULL), most = dots[2] ? strtod(dots + 2, NULL) : INFINITY;
        if (row[i] < least - 1e-6 || row[i] > most + 1e-6)
            fail_msg("%s at bar %lld: %.9g is not within %s", feature_list_name(l, i), (long long)t, row[i], range);
    }
}

static double wild(dice *d) {
    static const double hard[] = {DBL_MIN, 1e-300, 1e-60, 1e-5, 1, 1 + DBL_EPSILON, 2000, 1e9, 1e60, 1e300, DBL_MAX};
    return hard[dice_below(d, sizeof hard / sizeof *hard)];
}

static void stays_finite(void **state) {
    (void)state;
    feature_list *l = whole_catalogue();
    dice d = {.seed = 3};
    float row[256];
    for (int trial = 0; trial < 40; trial++) {
        feature_list_reset(l);
        int64_t time = trial % 2 ? -4000000 : 1704067200;
        double price = wild(&d), volume = dice_below(&d, 2) ? 0 : wild(&d);
        for (int64_t t = 0; t < 700; t++) {
            bool steady = dice_below(&d, 10) < 8; // long flat stretches between the jumps
            if (!steady) price = wild(&d);
            bar b = {time, time, price, price, price, price, volume, volume};
            if (!steady) b.open = wild(&d), b.high = wild(&d), b.low = wild(&d), b.volume = wild(&d);
            feature_list_push(l, &b, row);
            check_row(l, row, t);
            time += SPAN * (1 + (int64_t)dice_below(&d, 3));
        }
    }
    bar first = {INT64_MIN, INT64_MIN, 1, 1, 1, 1, 0, 0}, last = {INT64_MAX, INT64_MAX, 1, 1, 1, 1, 0, 0};
    feature_list_reset(l);
    feature_list_push(l, &first, row);
    feature_list_push(l, &last, row);
    check_row(l, row, 1);
    feature_list_free(l);
}

// On a real file: within the catalogue's ranges, and no column the same everywhere.
static void varies_on_gold(void **state) {
    (void)state;
    int64_t n;
    bar *bars = walk_file(TEST_DIR, "XAUUSD_M5.csv", &n);
    if (!bars) {
        print_message("XAUUSD_M5.csv is not here: set TRADEWIND_DATA\n");
        skip();
    }
    feature_list *l = whole_catalogue();
    float row[256], least[256], most[256];
    for (int i = 0; i < 256; i++) least[i] = INFINITY, most[i] = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        feature_list_push(l, &bars[t], row);
        check_row(l, row, t);
        for (int i = 0; i < feature_list_width(l) && t >= feature_list_warm_up(l); i++) {
            least[i] = fminf(least[i], row[i]);
            most[i] = fmaxf(most[i], row[i]);
        }
    }
    for (int i = 0; i < feature_list_width(l); i++)
        if (!(least[i] < most[i])) fail_msg("%s is %g everywhere", feature_list_name(l, i), most[i]);
    feature_list_free(l);
    free(bars);
}

// A million bars: sums and extremes of windows against the plain ones, in double.
static void does_not_drift(void **state) {
    (void)state;
    int64_t n = support_sanitized() ? 100000 : 1000000;
    static const int sources[] = {GAUGE_CLOSE, GAUGE_VOLUME, GAUGE_TRUE_RANGE, GAUGE_LOG_CLOSE, GAUGE_RETURN},
                     bars_of[] = {1, 20, 500};
    enum { SOURCES = 5, WINDOWS = 3 };
    err e = {0};
    int slot[SOURCES][WINDOWS];
    gauge *f = gauge_new(SPAN, 80, &e);
    support_ok(f != NULL, &e);
    for (int i = 0; i < SOURCES * WINDOWS; i++) {
        int *s = &slot[i / WINDOWS][i % WINDOWS], of = sources[i / WINDOWS], size = bars_of[i % WINDOWS];
        *s = gauge_mean(f, of, size);
        assert_int_equal(gauge_variance(f, of, size), *s + 1);
        assert_int_equal(gauge_highest(f, of, size), *s + 2);
        assert_int_equal(gauge_lowest(f, of, size), *s + 3);
    }
    support_ok(gauge_start(f, &e), &e);
    bar *bars = walk_bars(n, SPAN, 5);
    double *x[SOURCES], worst = 0;
    for (int i = 0; i < SOURCES; i++) x[i] = calloc((size_t)n, sizeof **x);
    for (int64_t t = 0; t < n; t++) {
        gauge_push(f, &bars[t]);
        const double *v = gauge_values(f);
        for (int i = 0; i < SOURCES; i++) x[i][t] = v[sources[i]];
        if (t < 1000 || t % 499) continue;
        for (int i = 0; i < SOURCES * WINDOWS; i++) {
            const double *y = x[i / WINDOWS], *got = &v[slot[i / WINDOWS][i % WINDOWS]];
            int size = bars_of[i % WINDOWS];
            double sd = plain_deviation(y, t, size), m = plain_mean(y, t, size);
            worst = fmax(worst, fabs(got[0] - m) / (fabs(m) + sd + DBL_MIN));
            worst = fmax(worst, fabs(got[1] - sd * sd) / (sd * sd + DBL_MIN));
            assert_true(got[2] == plain_highest(y, t, size) && got[3] == plain_lowest(y, t, size));
        }
    }
    print_message("largest relative error of a window's mean or variance: %.2g\n", worst);
    assert_true(worst < 1e-9);
    for (int i = 0; i < SOURCES; i++) free(x[i]);
    free(bars);
    gauge_free(f);
}

static bool recursive(const char *name) {
    static const char *const parts[] = {"ema", "macd", "rsi", "atr", "keltner", "adx", "di_", "streak"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]) && strncmp(name, "direction", 9)) return true;
    return false;
}

// A stream that begins later gives the same once it is warm: windows to rounding, exponential averages nearly.
static void forgets_what_came_before(void **state) {
    (void)state;
    int64_t n = 4000;
    bar *bars = walk_bars(n, SPAN, 6);
    feature_list *a = whole_catalogue(), *b = whole_catalogue();
    int width = feature_list_width(a);
    static const int64_t starts[] = {1, 137, 1000, 2000};
    float *all = calloc((size_t)(n * width), sizeof *all), row[256];
    feature_list_run(a, bars, n, all);
    for (size_t s = 0; s < 4; s++) {
        feature_list_reset(b);
        for (int64_t t = starts[s]; t < n; t++) {
            feature_list_push(b, &bars[t], row);
            if (t < starts[s] + feature_list_warm_up(b)) continue;
            for (int i = 0; i < width; i++) {
                bool slow = recursive(feature_list_name(b, i));
                double want = all[t * width + i], most = slow ? 5e-3 * fabs(want) + 5e-3 : 1e-6 * fabs(want) + 1e-9;
                if (fabs(row[i] - want) > most)
                    fail_msg("%s at %lld from %lld: %.9g, not %.9g", feature_list_name(b, i), (long long)t,
                        (long long)starts[s], row[i], want);
            }
        }
    }
    free(all);
    free(bars);
    feature_list_free(a);
    feature_list_free(b);
}

static void resets_to_the_bit(void **state) {
    (void)state;
    int64_t n = 1500;
    bar *bars = walk_bars(n, SPAN, 8), *others = walk_bars(n, SPAN, 9);
    feature_list *l = whole_catalogue();
    size_t bytes = (size_t)(n * feature_list_width(l)) * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    feature_list_run(l, bars, n, a);
    feature_list_reset(l);
    feature_list_run(l, others, n - 77, b);
    feature_list_reset(l);
    feature_list_run(l, bars, n, b);
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
    free(bars);
    free(others);
    feature_list_free(l);
}

static void is_fast(void **state) {
    (void)state;
    int64_t n = support_sanitized() ? 20000 : 1000000;
    bar *bars = walk_bars(n, SPAN, 10);
    feature_list *l = whole_catalogue();
    float row[256];
    clock_t start = clock();
    for (int64_t t = 0; t < n; t++) feature_list_push(l, &bars[t], row);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%lld bars, %d columns: %.2f s of one core\n", (long long)n, feature_list_width(l), seconds);
    if (!support_sanitized()) assert_true(seconds < 6); // ten times what it takes: machines are shared
    free(bars);
    feature_list_free(l);
}

// doc/features.md has the row of every feature, with what its defaults need to warm up.
static void is_documented(void **state) {
    (void)state;
    err e = {0};
    size_t bytes;
    char *doc = file_read(TEST_DIR "/../doc/features.md", 1 << 20, &bytes, &e), row[512];
    support_ok(doc != NULL, &e);
    int missing = 0;
    for (int i = 0; i < feature_count(); i++) {
        feature_info info = feature_at(i);
        feature_list *l = feature_list_new(&info.name, 1, SPAN, &e);
        support_ok(l != NULL, &e);
        char numbers[64] = "";
        for (size_t k = 0, at = 0; k < strlen(info.parameters); k++)
            at += (size_t)snprintf(numbers + at, sizeof numbers - at, "%s%g", k ? ", " : "", info.number[k]);
        snprintf(row, sizeof row, "| `%s` | %s | %s | %s | %lld |\n", info.name, numbers, info.meaning, info.range,
            (long long)feature_list_warm_up(l));
        if (!strstr(doc, row) && ++missing) print_message("%s", row);
        feature_list_free(l);
    }
    free(doc);
    if (missing) fail_msg("doc/features.md lacks the %d rows above", missing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_the_definitions),
        cmocka_unit_test(reads_names),
        cmocka_unit_test(has_default_sets),
        cmocka_unit_test(stays_finite),
        cmocka_unit_test(varies_on_gold),
        cmocka_unit_test(does_not_drift),
        cmocka_unit_test(forgets_what_came_before),
        cmocka_unit_test(resets_to_the_bit),
        cmocka_unit_test(is_fast),
        cmocka_unit_test(is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
