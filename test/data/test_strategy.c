// The strategy vector: every rule against its definition, computed here over whole series; what a signal and a strength
// may be; on gold, columns that vary and differ; speed; the table in doc/features.md.
#include "data/strategy.h"

#include "base/file.h"
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

enum { SPAN = 300, FIRST = 199 };

// Quantities of the definitions.
typedef struct {
    world w;
    double *ema9, *ema20, *ema21, *ema50, *line, *signal, *atr, *atr100, *up, *down, *adx, *rsi14, *rsi2, *place, *k,
        *d;
} facts;

typedef struct {
    double signal, strength; // strength before it is brought within 0..1
} opinion;

static const opinion NONE = {0, 0};

static double sign(double x) {
    return (x > 0) - (x < 0);
}

static double *rsi(world *w, double n) {
    SERIES(gain, 1, fmax(w->change[t], 0));
    SERIES(loss, 1, fmax(-w->change[t], 0));
    double *g = plain_wilder(w, gain, n), *l = plain_wilder(w, loss, n);
    SERIES(r, 0, 100 * plain_over(g[t], g[t] + l[t], 0.5));
    return r;
}

static void facts_open(facts *f, const bar *bars, int64_t n) {
    world *w = &f->w;
    world_open(w, bars, n);
    f->ema9 = plain_ema(w, w->c, 9), f->ema20 = plain_ema(w, w->c, 20);
    f->ema21 = plain_ema(w, w->c, 21), f->ema50 = plain_ema(w, w->c, 50);
    double *ema12 = plain_ema(w, w->c, 12), *ema26 = plain_ema(w, w->c, 26);
    SERIES(line, 0, ema12[t] - ema26[t]);
    f->line = line, f->signal = plain_ema(w, line, 9);
    f->atr = plain_wilder(w, w->tr, 14), f->atr100 = plain_wilder(w, w->tr, 100);
    plain_moves(w, 14, &f->up, &f->down);
    SERIES(dx, 0, 100 * plain_over(fabs(f->up[t] - f->down[t]), f->up[t] + f->down[t], 0));
    f->adx = plain_wilder(w, dx, 14);
    f->rsi14 = rsi(w, 14), f->rsi2 = rsi(w, 2);
    f->place = plain_place(w, 14);
    SERIES(k, 0, 100 * plain_mean(f->place, t, 3));
    SERIES(d, 0, plain_mean(k, t, 3));
    f->k = k, f->d = d;
}

typedef opinion definition(facts *f, int64_t t);

// Shorthands for definitions: the close, and the average true range.
#define C   (f->w.c[t])
#define ATR (f->atr[t])

static opinion apart(double a, double b, double unit) {
    return (opinion){sign(a - b), fabs(a - b) / unit};
}

// Buys below `low`, sells above `high`.
static opinion fade(double x, double low, double high, double unit) {
    return x < low ? (opinion){1, (low - x) / unit} : x > high ? (opinion){-1, (x - high) / unit} : NONE;
}

static opinion follow(double x, double low, double high, double unit) {
    opinion o = fade(x, low, high, unit);
    o.signal = -o.signal;
    return o;
}

static opinion def_ema_cross_9_21(facts *f, int64_t t) {
    return apart(f->ema9[t], f->ema21[t], ATR);
}

static opinion def_ema_cross_20_50(facts *f, int64_t t) {
    return apart(f->ema20[t], f->ema50[t], 2 * ATR);
}

static opinion def_sma_cross_50_200(facts *f, int64_t t) {
    return apart(plain_mean(f->w.c, t, 50), plain_mean(f->w.c, t, 200), 5 * ATR);
}

static opinion def_macd_12_26_9(facts *f, int64_t t) {
    return apart(f->line[t], f->signal[t], 0.5 * ATR);
}

static opinion def_adx_14(facts *f, int64_t t) {
    return f->adx[t] > 20 ? (opinion){sign(f->up[t] - f->down[t]), f->adx[t] / 60} : NONE;
}

static opinion def_ichimoku_9_26(facts *f, int64_t t) {
    double conversion = (plain_highest(f->w.h, t, 9) + plain_lowest(f->w.l, t, 9)) / 2;
    double base = (plain_highest(f->w.h, t, 26) + plain_lowest(f->w.l, t, 26)) / 2;
    double side = sign(conversion - base);
    return side && sign(C - conversion) == side ? (opinion){side, fabs(C - base) / (3 * ATR)} : NONE;
}

static opinion def_trailing_stop_14_3(facts *f, int64_t now) {
    double side = 0, stop = 0;
    for (int64_t t = FIRST; t <= now; t++) {
        bool crossed = side > 0 ? C < stop : side < 0 ? C > stop : true;
        side = !crossed ? side : side > 0 ? -1 : 1;
        double fresh = C - side * 3 * ATR;
        stop = crossed || (fresh - stop) * side > 0 ? fresh : stop;
    }
    return (opinion){side, fabs(f->w.c[now] - stop) / (6 * f->atr[now])};
}

static opinion def_higher_highs_10(facts *f, int64_t t) {
    double high = plain_highest(f->w.h, t, 10) - plain_highest(f->w.h, t - 10, 10);
    double low = plain_lowest(f->w.l, t, 10) - plain_lowest(f->w.l, t - 10, 10);
    return sign(high) == sign(low) ? (opinion){sign(high), fmin(fabs(high), fabs(low)) / (2 * ATR)} : NONE;
}

static opinion def_momentum_10(facts *f, int64_t t) {
    opinion o = apart(C, f->w.c[t - 10], 6 * ATR);
    return o.strength > 1.0 / 6 ? o : NONE;
}

static opinion def_rsi_14(facts *f, int64_t t) {
    return fade(f->rsi14[t], 30, 70, 20);
}

static opinion def_bollinger_20_2(facts *f, int64_t t) {
    double mean = plain_mean(f->w.c, t, 20), sd = plain_deviation(f->w.c, t, 20);
    return fade(C, mean - 2 * sd, mean + 2 * sd, sd);
}

static opinion def_stochastic_14_3_3(facts *f, int64_t t) {
    opinion o = fade(f->k[t], 20, 80, 20);
    return o.signal == sign(f->k[t] - f->d[t]) ? o : NONE;
}

static opinion def_cci_20(facts *f, int64_t t) {
    double mean = plain_mean(f->w.typical, t, 20), about = 0;
    for (int i = 0; i < 20; i++) about += fabs(f->w.typical[t - i] - mean) / 20;
    return about > 1e-9 ? fade((f->w.typical[t] - mean) / (0.015 * about), -100, 100, 200) : NONE;
}

static opinion def_williams_14(facts *f, int64_t t) {
    return fade(100 * f->place[t] - 100, -90, -10, 10);
}

static opinion def_zscore_50(facts *f, int64_t t) {
    double sd = plain_deviation(f->w.c, t, 50);
    return sd > 0 ? fade((C - plain_mean(f->w.c, t, 50)) / sd, -1.5, 1.5, 2) : NONE;
}

static opinion def_rsi_2(facts *f, int64_t t) {
    opinion o = fade(f->rsi2[t], 10, 90, 10);
    return o.signal == sign(C - plain_mean(f->w.c, t, 200)) ? o : NONE;
}

static opinion def_keltner_20_2(facts *f, int64_t t) {
    double low = f->ema20[t] - 2 * ATR, high = f->ema20[t] + 2 * ATR;
    if (f->w.l[t] < low && C > low) return (opinion){1, (C - low) / ATR};
    return f->w.h[t] > high && C < high ? (opinion){-1, (high - C) / ATR} : NONE;
}

static opinion def_donchian_20(facts *f, int64_t t) {
    return follow(C, plain_lowest(f->w.l, t - 1, 20), plain_highest(f->w.h, t - 1, 20), ATR);
}

static opinion def_donchian_55(facts *f, int64_t t) {
    return follow(C, plain_lowest(f->w.l, t - 1, 55), plain_highest(f->w.h, t - 1, 55), ATR);
}

static opinion def_support_resistance_100(facts *f, int64_t t) {
    double support = plain_lowest(f->w.l, t, 100), resistance = plain_highest(f->w.h, t, 100);
    if (C > f->w.o[t] && C < support + ATR) return (opinion){1, 1 - (C - support) / ATR};
    return C < f->w.o[t] && C > resistance - ATR ? (opinion){-1, 1 - (resistance - C) / ATR} : NONE;
}

static bool squeezed(facts *f, int64_t t) {
    return t >= FIRST && 2 * plain_deviation(f->w.c, t, 20) < 1.5 * ATR;
}

static opinion def_squeeze_20(facts *f, int64_t t) {
    int64_t end = t, begin;
    while (end >= FIRST && !squeezed(f, end)) end--;
    for (begin = end; squeezed(f, begin);) begin--;
    if (end == t || t - end > 3 || end - begin < 3) return NONE;
    return (opinion){sign(C - f->w.c[t - 10]), (double)(end - begin) / 20};
}

static double hour(const facts *f, int64_t t) {
    return (double)(f->w.bars[t].time % 86400) / 3600;
}

static opinion def_opening_range(facts *f, int64_t t) {
    double low = INFINITY, high = -INFINITY;
    if (hour(f, t) < 8 || hour(f, t) >= 16) return NONE;
    for (int64_t i = t; i >= FIRST && f->w.bars[i].time / 86400 == f->w.bars[t].time / 86400; i--) {
        if (hour(f, i) < 7 || hour(f, i) >= 8) continue;
        low = fmin(low, f->w.l[i]);
        high = fmax(high, f->w.h[i]);
    }
    return high > 0 ? follow(C, low, high, 5 * ATR) : NONE;
}

static opinion def_inside_bar(facts *f, int64_t t) {
    const double *h = f->w.h, *l = f->w.l;
    return h[t - 1] <= h[t - 2] && l[t - 1] >= l[t - 2] ? follow(C, l[t - 2], h[t - 2], ATR) : NONE;
}

static opinion def_engulfing(facts *f, int64_t t) {
    const double *o = f->w.o, *c = f->w.c;
    bool larger = fabs(c[t] - o[t]) > fabs(c[t - 1] - o[t - 1]);
    if (larger && c[t - 1] < o[t - 1] && c[t] > o[t] && o[t] <= c[t - 1] && c[t] >= o[t - 1])
        return (opinion){1, (c[t] - o[t]) / (2 * ATR)};
    if (larger && c[t - 1] > o[t - 1] && c[t] < o[t] && o[t] >= c[t - 1] && c[t] <= o[t - 1])
        return (opinion){-1, (o[t] - c[t]) / (2 * ATR)};
    return NONE;
}

static opinion def_hammer(facts *f, int64_t t) {
    const bar *b = &f->w.bars[t];
    double top = fmax(b->open, b->close), bottom = fmin(b->open, b->close);
    double upper = b->high - top, lower = bottom - b->low, before = f->w.c[t - 1] - f->w.c[t - 3];
    if (before < 0 && lower > 2 * (top - bottom) && lower > 2 * upper) return (opinion){1, lower / (2 * ATR)};
    if (before > 0 && upper > 2 * (top - bottom) && upper > 2 * lower) return (opinion){-1, upper / (2 * ATR)};
    return NONE;
}

static opinion def_doji(facts *f, int64_t t) {
    bool doji = f->w.range[t] > 0 && fabs(C - f->w.o[t]) <= 0.1 * f->w.range[t];
    return doji ? apart(f->w.c[t - 5], C, 4 * ATR) : NONE;
}

static opinion def_three_soldiers(facts *f, int64_t t) {
    int up = 0, down = 0;
    for (int64_t i = t - 2; i <= t; i++) {
        double body = f->w.c[i] - f->w.o[i];
        up += body > f->w.range[i] / 2 && f->w.change[i] > 0;
        down += -body > f->w.range[i] / 2 && f->w.change[i] < 0;
    }
    return (opinion){(up == 3) - (down == 3), fabs(C - f->w.c[t - 3]) / (4 * ATR)};
}

static opinion def_volume_confirmation(facts *f, int64_t t) {
    double mean = plain_mean(f->w.v, t, 20);
    return f->w.v[t] > 1.5 * mean ? (opinion){sign(C - f->w.o[t]), (f->w.v[t] / mean - 1.5) / 2} : NONE;
}

static opinion def_atr_filter(facts *f, int64_t t) {
    return follow(ATR / f->atr100[t], 0.9, 1.1, 0.5);
}

static opinion def_session(facts *f, int64_t t) {
    double x = hour(f, t);
    if (x >= 12 && x < 16) return (opinion){1, 1 - fabs(x - 14) / 4};
    if (x >= 21) return (opinion){-1, 1 - fabs(x - 25.5) / 9};
    return x < 6 ? (opinion){-1, 1 - fabs(x - 1.5) / 9} : NONE;
}

static opinion def_gap(facts *f, int64_t t) {
    opinion o = apart(f->w.c[t - 1], f->w.o[t], 2 * ATR);
    return o.strength > 0.125 ? o : NONE;
}

static opinion def_round_number(facts *f, int64_t t) {
    double step = 1e-3;
    while (step < 5 * ATR) step *= 10;
    double below = floor(C / step) * step, above = below + step;
    if (f->w.l[t] < below) return (opinion){1, (C - below) / ATR};
    return f->w.h[t] > above ? (opinion){-1, (above - C) / ATR} : NONE;
}

static definition *const definitions[STRATEGIES] = {
#define STRATEGY(name, ...) def_##name,
#include "data/strategy.def"
#undef STRATEGY
};

typedef struct {
    int64_t n;
    int8_t *signal;
    float *strength;
} vectors;

static vectors vectors_of(const bar *bars, int64_t n) {
    err e = {0};
    vectors v = {n, calloc((size_t)n, STRATEGIES), calloc((size_t)n, STRATEGIES * sizeof(float))};
    strategy *s = strategy_new(SPAN, &e);
    support_ok(s != NULL, &e);
    strategy_run(s, bars, n, v.signal, v.strength);
    strategy_free(s);
    return v;
}

static void vectors_free(vectors v) {
    free(v.signal);
    free(v.strength);
}

static double column(const vectors *v, int64_t t, int i) {
    return i < STRATEGIES ? v->signal[t * STRATEGIES + i] : v->strength[t * STRATEGIES + i - STRATEGIES];
}

static void matches_the_definitions(void **state) {
    (void)state;
    int64_t n = 3000;
    bar *bars = walk_bars(n, SPAN, 21);
    vectors v = vectors_of(bars, n);
    facts f;
    facts_open(&f, bars, n);
    for (int i = 0; i < STRATEGIES; i++) {
        int spoke[3] = {0};
        for (int64_t t = 0; t < n; t++) {
            opinion o = t < FIRST ? NONE : definitions[i](&f, t);
            double strength = o.signal == 0 ? 0 : fmax(0, fmin(1, o.strength));
            if (column(&v, t, i) != o.signal || fabs(column(&v, t, i + STRATEGIES) - strength) > 1e-6)
                fail_msg("%s at bar %lld: %g %g, not %g %g", strategy_name(i), (long long)t, column(&v, t, i),
                    column(&v, t, i + STRATEGIES), o.signal, strength);
            spoke[(int)o.signal + 1]++;
        }
        if (!spoke[0] || !spoke[1] || !spoke[2])
            fail_msg("%s: %d, %d, %d signals of -1, 0, 1", strategy_name(i), spoke[0], spoke[1], spoke[2]);
    }
    world_close(&f.w);
    vectors_free(v);
    free(bars);
}

static void answers_within_bounds(void **state) {
    (void)state;
    err e = {0};
    strategy *s = strategy_new(SPAN, &e);
    support_ok(s != NULL, &e);
    static const double hard[] = {DBL_MIN, 1e-60, 1e-5, 1, 1 + DBL_EPSILON, 2000, 1e60, DBL_MAX};
    dice d = {.seed = 4};
    int8_t signal[STRATEGIES];
    float strength[STRATEGIES];
    for (int64_t t = 0; t < 20000; t++) {
        double p = hard[t < 10000 ? 5 : dice_below(&d, 8)], q = hard[dice_below(&d, 8)];
        bar b = {t * SPAN, t * SPAN + SPAN, p, t % 3 ? p : q, t % 5 ? p : q, p, t % 7 ? 0 : q, 0};
        strategy_push(s, &b, signal, strength);
        for (int i = 0; i < STRATEGIES; i++) {
            assert_true(signal[i] >= -1 && signal[i] <= 1);
            assert_true(strength[i] >= 0 && strength[i] <= 1);
            assert_true(signal[i] || strength[i] == 0);
        }
    }
    strategy_free(s);
    assert_null(strategy_new(0, &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

static void resets_to_the_bit(void **state) {
    (void)state;
    err e = {0};
    int64_t n = 2000;
    bar *bars = walk_bars(n, SPAN, 22), *others = walk_bars(n, SPAN, 23);
    vectors a = vectors_of(bars, n), b = vectors_of(others, n);
    strategy *s = strategy_new(SPAN, &e);
    support_ok(s != NULL, &e);
    strategy_run(s, others, n - 5, b.signal, b.strength);
    strategy_reset(s);
    strategy_run(s, bars, n, b.signal, b.strength);
    assert_memory_equal(a.signal, b.signal, (size_t)n * STRATEGIES);
    assert_memory_equal(a.strength, b.strength, (size_t)n * STRATEGIES * sizeof(float));
    assert_int_equal(strategy_warm_up(s), 800);
    strategy_free(s);
    vectors_free(a);
    vectors_free(b);
    free(bars);
    free(others);
}

// Columns of gold less their means, over their norms.
static double *standardised(const vectors *v, int64_t from) {
    int64_t n = v->n - from;
    double *x = calloc((size_t)(n * STRATEGY_COLUMNS), sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < STRATEGY_COLUMNS; i++) {
        double mean = 0, norm = 0, *y = x + i * n;
        for (int64_t t = 0; t < n; t++) mean += (y[t] = column(v, t + from, i)) / (double)n;
        for (int64_t t = 0; t < n; t++) norm += (y[t] - mean) * (y[t] - mean);
        if (norm < 1e-9) fail_msg("%s is constant on gold", strategy_name(i));
        for (int64_t t = 0; t < n; t++) y[t] = (y[t] - mean) / sqrt(norm);
    }
    return x;
}

static void differs_on_gold(void **state) {
    (void)state;
    int64_t n;
    bar *bars = walk_file(TEST_DIR, "XAUUSD_M5.csv", &n);
    if (!bars) {
        print_message("XAUUSD_M5.csv is not here: set TRADEWIND_DATA\n");
        skip();
    }
    vectors v = vectors_of(bars, n);
    int64_t from = 500, rows = n - from;
    double *x = standardised(&v, from), most = 0;
    int a = 0, b = 0;
    for (int i = 0; i < STRATEGY_COLUMNS; i++)
        for (int j = 0; j < i; j++) {
            double r = 0;
            for (int64_t t = 0; t < rows; t++) r += x[i * rows + t] * x[j * rows + t];
            if (fabs(r) > fabs(most)) most = r, a = j, b = i;
        }
    print_message("largest correlation of two columns on %lld bars of gold: %.3f, %s and %s\n", (long long)rows, most,
        strategy_name(a), strategy_name(b));
    assert_true(fabs(most) <= 0.999);
    free(x);
    vectors_free(v);
    free(bars);
}

static void is_fast(void **state) {
    (void)state;
    err e = {0};
    int64_t n = support_sanitized() ? 20000 : 1000000;
    bar *bars = walk_bars(n, SPAN, 24);
    strategy *s = strategy_new(SPAN, &e);
    support_ok(s != NULL, &e);
    int8_t signal[STRATEGIES];
    float strength[STRATEGIES];
    clock_t start = clock();
    for (int64_t t = 0; t < n; t++) strategy_push(s, &bars[t], signal, strength);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%lld bars, 64 columns: %.2f s of one core\n", (long long)n, seconds);
    if (!support_sanitized()) assert_true(seconds < 5); // ten times what it takes: machines are shared
    strategy_free(s);
    free(bars);
}

static void is_documented(void **state) {
    (void)state;
    err e = {0};
    size_t bytes;
    char *doc = file_read(TEST_DIR "/../doc/features.md", 1 << 20, &bytes, &e), row[512], name[64];
    support_ok(doc != NULL, &e);
    int missing = 0;
    for (int i = 0; i < STRATEGIES; i++) {
        strategy_info info = strategy_at(i);
        snprintf(
            row, sizeof row, "| %d, %d | `%s` | %s | %s |\n", i, i + STRATEGIES, info.name, info.signal, info.strength);
        if (!strstr(doc, row) && ++missing) print_message("%s", row);
        assert_string_equal(strategy_name(i), info.name);
        snprintf(name, sizeof name, "%s_strength", info.name);
        assert_string_equal(strategy_name(i + STRATEGIES), name);
    }
    free(doc);
    if (missing) fail_msg("doc/features.md lacks the %d rows above", missing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_the_definitions),
        cmocka_unit_test(answers_within_bounds),
        cmocka_unit_test(resets_to_the_bit),
        cmocka_unit_test(differs_on_gold),
        cmocka_unit_test(is_fast),
        cmocka_unit_test(is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
