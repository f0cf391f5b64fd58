// The future is not seen: when every bar after t is changed, features, strategy columns and alignment up to t stay the
// same to the bit, and so do labels that were known by t.
#include "data/align.h"
#include "data/feature.h"
#include "data/label.h"
#include "data/strategy.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000, HOURS = 250, SPAN = 300, KINDS = 3, H = 4 };

// Everything that is computed from bars.
typedef struct {
    int width;
    float *feature;
    int8_t *signal;
    float *strength;
    int32_t *row;
    int32_t *label[KINDS], *end[KINDS];
    float *target;
} outcome;

static void *zeroed(size_t items, size_t size) {
    void *p = calloc(items, size);
    assert_non_null(p);
    return p;
}

static outcome outcome_new(void) {
    outcome o = {.width = feature_count()};
    o.feature = zeroed((size_t)(N * o.width), sizeof *o.feature);
    o.signal = zeroed(N * STRATEGIES, sizeof *o.signal);
    o.strength = zeroed(N * STRATEGIES, sizeof *o.strength);
    o.row = zeroed(N, sizeof *o.row);
    for (int k = 0; k < KINDS; k++) {
        o.label[k] = zeroed(N, sizeof **o.label);
        o.end[k] = zeroed(N, sizeof **o.end);
    }
    o.target = zeroed(N * H, sizeof *o.target);
    return o;
}

static void outcome_free(outcome *o) {
    free(o->feature);
    free(o->signal);
    free(o->strength);
    free(o->row);
    for (int k = 0; k < KINDS; k++) free(o->label[k]), free(o->end[k]);
    free(o->target);
}

static void compute(outcome *o, const bar *bars, const bar *slow) {
    err e = {0};
    const char *specs[256];
    for (int i = 0; i < o->width; i++) specs[i] = feature_at(i).name;
    feature_list *l = feature_list_new(specs, o->width, SPAN, &e);
    support_ok(l != NULL, &e);
    feature_list_run(l, bars, N, o->feature);
    feature_list_free(l);
    strategy *s = strategy_new(SPAN, &e);
    support_ok(s != NULL, &e);
    strategy_run(s, bars, N, o->signal, o->strength);
    strategy_free(s);
    int64_t *fast_ends = walk_ends(bars, N), *slow_ends = walk_ends(slow, HOURS);
    double *unit = walk_volatility(bars, N, 30);
    align_rows(fast_ends, N, slow_ends, HOURS, o->row);
    label_direction_options way = {6, LABEL_LOG, 0.5, 30, 3, 0};
    label_barrier_options barrier = {2, 2, 30, 24, 1, LABEL_TIMEOUT_SIGN};
    support_ok(label_direction(bars, unit, N, &way, o->label[0], o->end[0], &e), &e);
    support_ok(label_barrier(bars, unit, N, &barrier, o->label[1], o->end[1], NULL, &e), &e);
    support_ok(label_forecast(bars, N, H, LABEL_PATH, o->target, o->end[2], &e), &e);
    free(fast_ends);
    free(slow_ends);
    free(unit);
}

// Bars after t become others, each a little later than it was but before the next.
static void change_after(bar *bars, int64_t count, int64_t t, uint64_t seed) {
    dice d = {.seed = seed};
    for (int64_t i = t + 1; i < count; i++) {
        walk_scramble(&bars[i], seed);
        int64_t later = i + 1 < count ? (int64_t)dice_below(&d, (uint64_t)(bars[i + 1].time - bars[i].time)) : 0;
        bars[i].time += later;
        bars[i].end += later;
    }
}

static void same_up_to(const outcome *a, const outcome *b, int64_t t) {
    size_t rows = (size_t)t + 1;
    assert_memory_equal(a->feature, b->feature, rows * (size_t)a->width * sizeof *a->feature);
    assert_memory_equal(a->signal, b->signal, rows * STRATEGIES);
    assert_memory_equal(a->strength, b->strength, rows * STRATEGIES * sizeof *a->strength);
    for (int k = 0; k < KINDS; k++)
        for (int64_t i = 0; i <= t; i++) {
            bool known = a->end[k][i] >= 0 && a->end[k][i] <= t;
            if (!known) {
                // Values unknown by t stay unknown when later bars change.
                assert_true(b->end[k][i] < 0 || b->end[k][i] > t);
                continue;
            }
            assert_int_equal(b->label[k][i], a->label[k][i]);
            assert_int_equal(b->end[k][i], a->end[k][i]);
            if (k == 2) assert_memory_equal(a->target + i * H, b->target + i * H, H * sizeof *a->target);
        }
}

static void does_not_see_the_future(void **state) {
    (void)state;
    int trials = support_sanitized() ? 12 : 80;
    bar *bars = walk_bars(N, SPAN, 51), *slow = walk_bars(HOURS, 3600, 52), changed[N], hours[HOURS];
    outcome a = outcome_new(), b = outcome_new();
    dice d = {.seed = 53};
    compute(&a, bars, slow);
    for (int trial = 0; trial < trials; trial++) {
        int64_t t = trial < 2 ? trial * (N - 1) : (int64_t)dice_below(&d, N), closed = 0;
        memcpy(changed, bars, sizeof changed);
        memcpy(hours, slow, sizeof hours);
        change_after(changed, N, t, 100 + (uint64_t)trial);
        // Slow bars that have not closed when bar t closes are the future too; that they come later stays true.
        while (closed < HOURS && slow[closed].time + 3600 <= bars[t].time + SPAN) closed++;
        change_after(hours, HOURS, closed - 1, 200 + (uint64_t)trial);
        compute(&b, changed, hours);
        same_up_to(&a, &b, t);
        assert_memory_equal(a.row, b.row, ((size_t)t + 1) * sizeof *a.row);
    }
    outcome_free(&a);
    outcome_free(&b);
    free(bars);
    free(slow);
}

// The test itself must be able to fail: with the bar at t changed as well, the row at t is another.
static void sees_the_present(void **state) {
    (void)state;
    bar *bars = walk_bars(N, SPAN, 51), *slow = walk_bars(HOURS, 3600, 52);
    outcome a = outcome_new(), b = outcome_new();
    int64_t t = 2000;
    compute(&a, bars, slow);
    change_after(bars, N, t - 1, 7);
    compute(&b, bars, slow);
    assert_memory_not_equal(a.feature + t * a.width, b.feature + t * b.width, (size_t)a.width * sizeof *a.feature);
    assert_memory_not_equal(a.strength + t * STRATEGIES, b.strength + t * STRATEGIES, STRATEGIES * sizeof *a.strength);
    outcome_free(&a);
    outcome_free(&b);
    free(bars);
    free(slow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_not_see_the_future),
        cmocka_unit_test(sees_the_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
