// Labels against their definitions, written out here row by row; edges of bands and barriers; bars that touch both
// barriers or open beyond one; rows without a label; options out of range.
#include "data/label.h"

#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000, SPAN = 300 };

// The labels with the volatility that they ask for.
static bool direction(
    const bar *bars, int64_t n, const label_direction_options *o, int32_t *label, int32_t *end, err *e) {
    double *unit = o->volatility_bars > 0 && o->volatility_bars <= LABEL_BARS_MOST
                       ? walk_volatility(bars, n, o->volatility_bars)
                       : NULL;
    bool ok = label_direction(bars, unit, n, o, label, end, e);
    free(unit);
    return ok;
}

static bool barrier(const bar *bars, int64_t n, const label_barrier_options *o, int32_t *label, int32_t *end,
    label_barrier_counts *counts, err *e) {
    double *unit = o->volatility_bars > 0 && o->volatility_bars <= LABEL_BARS_MOST
                       ? walk_volatility(bars, n, o->volatility_bars)
                       : NULL;
    bool ok = label_barrier(bars, unit, n, o, label, end, counts, e);
    free(unit);
    return ok;
}

static double volatility(const bar *bars, int64_t t, int64_t n) {
    double sum = 0;
    if (n == 0) return 1;
    if (t < n) return NAN;
    for (int64_t i = t - n + 1; i <= t; i++) sum += pow(log(bars[i].close / bars[i - 1].close), 2);
    return sqrt(sum / (double)n);
}

static int32_t plain_direction(const bar *bars, int64_t t, const label_direction_options *o) {
    double band = o->band * volatility(bars, t, o->volatility_bars);
    if (t + o->horizon >= N || isnan(band)) return -1;
    double from = bars[t].close, to = bars[t + o->horizon].close;
    double move = o->measure == LABEL_LOG ? log(to) - log(from) : (to - from) / from;
    double edges[] = {-o->strong * band, -band, band, o->strong * band};
    int32_t label = 0;
    if (o->classes == 3) return move < -band ? 0 : move > band ? 2 : 1;
    // The lower edges belong to the class above them, the upper ones to the class below.
    for (int i = 0; i < 4; i++) label += i < 2 ? move >= edges[i] : move > edges[i];
    return label;
}

static void labels_directions(void **state) {
    (void)state;
    static const label_direction_options options[] = {
        {1, LABEL_RELATIVE, 0, 0, 3, 0},
        {3, LABEL_LOG, 0.0005, 0, 3, 0},
        {12, LABEL_RELATIVE, 0.7, 20, 3, 0},
        {5, LABEL_LOG, 1, 100, 5, 2.5},
        {N - 1, LABEL_LOG, 0, 0, 3, 0},
    };
    bar *bars = walk_bars(N, SPAN, 41);
    int32_t label[N], end[N];
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        err e = {0};
        int64_t seen[5] = {0};
        support_ok(direction(bars, N, &options[k], label, end, &e), &e);
        for (int64_t t = 0; t < N; t++) {
            int32_t want = plain_direction(bars, t, &options[k]);
            if (label[t] != want) fail_msg("case %zu, row %lld: %d, not %d", k, (long long)t, label[t], want);
            assert_int_equal(end[t], want < 0 ? -1 : t + options[k].horizon);
            if (want >= 0) seen[want]++;
        }
        for (int i = 0; i < options[k].classes && k < 4; i++) assert_true(seen[i] > 0);
        if (options[k].classes != 5) continue;
        int32_t five[N];
        memcpy(five, label, sizeof five);
        label_to_three(label, N);
        for (int64_t t = 0; t < N; t++)
            assert_int_equal(label[t], five[t] < 0   ? -1
                                       : five[t] < 2 ? LABEL_DOWN
                                       : five[t] > 2 ? LABEL_UP
                                                     : LABEL_NEUTRAL);
    }
    free(bars);
}

static void takes_the_edge_as_neutral(void **state) {
    (void)state;
    err e = {0};
    bar bars[4] = {{.close = 64}, {.close = 80}, {.close = 60}, {.close = 75.5}};
    int32_t label[4], end[4];
    label_direction_options o = {1, LABEL_RELATIVE, 0.25, 0, 3, 0};
    support_ok(direction(bars, 4, &o, label, end, &e), &e);
    assert_int_equal(label[0], LABEL_NEUTRAL); // exactly 0.25
    assert_int_equal(label[1], LABEL_NEUTRAL); // exactly -0.25
    assert_int_equal(label[2], LABEL_UP);
    assert_int_equal(label[3], LABEL_NONE);
    assert_int_equal(end[2], 3);
    assert_int_equal(end[3], -1);
}

static int32_t plain_barrier(const bar *bars, int64_t t, const label_barrier_options *o, int32_t *end) {
    double v = volatility(bars, t, o->volatility_bars);
    *end = -1;
    if (!(v > 0)) return -1;
    double upper = bars[t].close * exp(o->up * v), lower = bars[t].close * exp(-o->down * v);
    for (int64_t i = t + 1; i <= t + o->limit; i++) {
        if (i >= N) return -1;
        *end = (int32_t)i;
        if (bars[i].open >= upper) return LABEL_UP;
        if (bars[i].open <= lower) return LABEL_DOWN;
        if (bars[i].high >= upper && bars[i].low <= lower) return o->side > 0 ? LABEL_DOWN : LABEL_UP;
        if (bars[i].high >= upper) return LABEL_UP;
        if (bars[i].low <= lower) return LABEL_DOWN;
    }
    double move = bars[t + o->limit].close - bars[t].close;
    return o->timeout == LABEL_TIMEOUT_NEUTRAL || move == 0 ? LABEL_NEUTRAL : move > 0 ? LABEL_UP : LABEL_DOWN;
}

static void labels_first_touches(void **state) {
    (void)state;
    static const label_barrier_options options[] = {
        {2, 2, 20, 12, 1, LABEL_TIMEOUT_NEUTRAL},
        {0.5, 0.5, 50, 24, -1, LABEL_TIMEOUT_SIGN},
        {0.5, 0.5, 50, 24, 1, LABEL_TIMEOUT_SIGN},
        {3, 1, 100, 100, 1, LABEL_TIMEOUT_SIGN},
        {0.002, 0.003, 0, 50, 1, LABEL_TIMEOUT_NEUTRAL},
    };
    bar *bars = walk_bars(N, SPAN, 42);
    int32_t label[N], end[N];
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        err e = {0};
        label_barrier_counts n;
        int64_t seen[4] = {0};
        support_ok(barrier(bars, N, &options[k], label, end, &n, &e), &e);
        for (int64_t t = 0; t < N; t++) {
            int32_t last, want = plain_barrier(bars, t, &options[k], &last);
            if (label[t] != want) fail_msg("case %zu, row %lld: %d, not %d", k, (long long)t, label[t], want);
            assert_int_equal(end[t], want < 0 ? -1 : last);
            seen[want + 1]++;
        }
        assert_int_equal(n.none, seen[0]);
        assert_int_equal(n.up + n.down + n.timeout + n.none, N);
        assert_true(n.gap > 0);
        if (k == 1 || k == 2) assert_true(n.both > 0);
        if (options[k].timeout == LABEL_TIMEOUT_NEUTRAL) assert_int_equal(n.timeout, seen[LABEL_NEUTRAL + 1]);
    }
    free(bars);
}

static void decides_hard_bars(void **state) {
    (void)state;
    err e = {0};
    label_barrier_counts n;
    int32_t label[5], end[5];
    label_barrier_options o = {log(1.1), log(1.1), 0, 2, 1, LABEL_TIMEOUT_SIGN};
    // Row 0 meets a bar that reaches both barriers; row 1 one that opens above and falls through both; row 2 times out.
    bar bars[5] = {
        {.open = 100, .high = 100, .low = 100, .close = 100},
        {.open = 100, .high = 120, .low = 80, .close = 100},
        {.open = 115, .high = 116, .low = 70, .close = 100},
        {.open = 100, .high = 105, .low = 95, .close = 99},
        {.open = 99, .high = 105, .low = 95, .close = 101},
    };
    support_ok(barrier(bars, 5, &o, label, end, &n, &e), &e);
    static const int32_t want[] = {LABEL_DOWN, LABEL_UP, LABEL_UP, -1, -1}, ends[] = {1, 2, 4, -1, -1};
    for (int i = 0; i < 5; i++) assert_int_equal(label[i], want[i]);
    for (int i = 0; i < 5; i++) assert_int_equal(end[i], ends[i]);
    assert_int_equal(n.both, 1);
    assert_int_equal(n.gap, 1);
    assert_int_equal(n.timeout, 1);
    assert_int_equal(n.none, 2);
    o.side = -1;
    support_ok(barrier(bars, 5, &o, label, end, NULL, &e), &e);
    assert_int_equal(label[0], LABEL_UP);
}

static void forecasts_next_values(void **state) {
    (void)state;
    enum { H = 5 };
    err e = {0};
    bar *bars = walk_bars(N, SPAN, 43);
    float *target = calloc(N * H, sizeof *target);
    int32_t end[N];
    assert_non_null(target);
    for (label_value v = LABEL_CLOSE; v <= LABEL_PATH; v++) {
        memset(target, 0xff, N * H * sizeof *target);
        support_ok(label_forecast(bars, N, H, v, target, end, &e), &e);
        for (int64_t t = 0; t < N; t++) {
            assert_int_equal(end[t], t < N - H ? t + H : -1);
            double path = 0;
            for (int64_t i = 0; i < H; i++) {
                double step = t < N - H ? log(bars[t + i + 1].close) - log(bars[t + i].close) : 0;
                path += step;
                double want = v == LABEL_STEP ? step : v == LABEL_PATH ? path : t < N - H ? bars[t + i + 1].close : 0;
                assert_true(fabs(target[t * H + i] - want) <= 1e-6 * fabs(want) + 1e-12);
            }
        }
    }
    free(target);
    free(bars);
}

static void refuses_options(void **state) {
    (void)state;
    err e;
    bar bars[2] = {{.close = 1}, {.close = 1}};
    int32_t label[2], end[2];
    float target[2];
    static const label_direction_options wrong[] = {
        {0, LABEL_LOG, 0, 0, 3, 0},
        {10001, LABEL_LOG, 0, 0, 3, 0},
        {1, LABEL_LOG, -1, 0, 3, 0},
        {1, LABEL_LOG, NAN, 0, 3, 0},
        {1, LABEL_LOG, 1, -1, 3, 0},
        {1, LABEL_LOG, 1, 0, 4, 0},
        {1, LABEL_LOG, 0, 0, 5, 2},
        {1, LABEL_LOG, 1, 0, 5, 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        e.kind = ERR_NONE;
        assert_false(direction(bars, 2, &wrong[i], label, end, &e));
        assert_int_equal(e.kind, ERR_INPUT);
    }
    static const label_barrier_options bad[] = {{0, 1, 5, 5, 1, LABEL_TIMEOUT_SIGN},
        {1, 0, 5, 5, 1, LABEL_TIMEOUT_SIGN}, {1, 1, 10001, 5, 1, LABEL_TIMEOUT_SIGN},
        {1, 1, 5, 0, 1, LABEL_TIMEOUT_SIGN}, {NAN, 1, 5, 1, 1, LABEL_TIMEOUT_SIGN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e.kind = ERR_NONE;
        assert_false(barrier(bars, 2, &bad[i], label, end, NULL, &e));
        assert_int_equal(e.kind, ERR_INPUT);
    }
    assert_false(label_forecast(bars, 2, 0, LABEL_STEP, target, end, &e));
    // Nothing to label is no mistake.
    label_direction_options o = {1, LABEL_LOG, 0, 5, 3, 0};
    support_ok(direction(bars, 0, &o, label, end, &e), &e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_directions),
        cmocka_unit_test(takes_the_edge_as_neutral),
        cmocka_unit_test(labels_first_touches),
        cmocka_unit_test(decides_hard_bars),
        cmocka_unit_test(forecasts_next_values),
        cmocka_unit_test(refuses_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
