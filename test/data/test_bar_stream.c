// States of features, strategies and volatility: a stream that is saved and loaded at any bar goes on to the same bits.
#include "data/stream.h"

#include "data/volatility.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1500, SPAN = 300 };

// Every feature of the catalogue, with its defaults.
static frame_spec every_feature(const char **names) {
    for (int i = 0; i < feature_count(); i++) names[i] = feature_at(i).name;
    return (frame_spec){.name = "fast", .span = SPAN, .features = names, .feature_count = feature_count()};
}

typedef struct {
    float *row;
    int8_t *signal;
    float *strength;
} rows;

static rows rows_new(int width) {
    rows r = {
        calloc((size_t)(N * width), sizeof(float)), calloc(N * STRATEGIES, 1), calloc(N * STRATEGIES, sizeof(float))};
    assert_true(r.row && r.signal && r.strength);
    return r;
}

static void rows_free(rows *r) {
    free(r->row);
    free(r->signal);
    free(r->strength);
}

static void push(bar_stream *s, const bar *bars, int64_t from, int64_t to, int width, rows *r) {
    for (int64_t t = from; t < to; t++) {
        bar_stream_push(s, 0, &bars[t], r->row + t * width);
        bar_stream_judge(s, &bars[t], r->signal + t * STRATEGIES, r->strength + t * STRATEGIES);
    }
}

static void goes_on_from_any_bar(void **state) {
    (void)state;
    err e = {0};
    const char *names[256];
    frame_spec frame = every_feature(names);
    bar *bars = walk_bars(N, SPAN, 61);
    bar_stream *a = bar_stream_new(&frame, 1, true, &e), *b = bar_stream_new(&frame, 1, true, &e);
    support_ok(a && b, &e);
    int width = feature_list_width(bar_stream_features(a, 0));
    rows whole = rows_new(width), parts = rows_new(width);
    size_t bytes = bar_stream_state(a) * sizeof(double);
    double *saved = malloc(bytes), *again = malloc(bytes);
    dice d = {.seed = 62};
    assert_true(saved && again);
    push(a, bars, 0, N, width, &whole);
    for (int trial = 0; trial < 24; trial++) {
        int64_t cut = trial < 3 ? trial : (int64_t)dice_below(&d, N);
        bar_stream_reset(a);
        push(a, bars, 0, cut, width, &parts);
        bar_stream_save(a, saved);
        // The other stream has seen other bars before.
        assert_true(bar_stream_load(b, saved));
        bar_stream_save(b, again);
        assert_memory_equal(saved, again, bytes);
        push(b, bars, cut, N, width, &parts);
        assert_memory_equal(whole.row, parts.row, (size_t)(N * width) * sizeof(float));
        assert_memory_equal(whole.signal, parts.signal, N * STRATEGIES);
        assert_memory_equal(whole.strength, parts.strength, N * STRATEGIES * sizeof(float));
    }
    bar_stream_free(a);
    bar_stream_free(b);
    rows_free(&whole);
    rows_free(&parts);
    free(saved);
    free(again);
    free(bars);
}

static void volatility_goes_on(void **state) {
    (void)state;
    err e = {0};
    bar *bars = walk_bars(N, SPAN, 63);
    double *whole = walk_volatility(bars, N, 37);
    volatility *a = volatility_new(37, &e), *b = volatility_new(37, &e);
    support_ok(a && b, &e);
    double *saved = malloc(volatility_state(a) * sizeof *saved);
    assert_non_null(saved);
    for (int64_t t = 0; t < N; t++) {
        volatility_save(a, saved);
        assert_true(volatility_load(b, saved));
        assert_true(volatility_push(b, &bars[t]) == whole[t]);
        volatility_push(a, &bars[t]);
    }
    volatility_free(a);
    volatility_free(b);
    free(saved);
    free(whole);
    free(bars);
}

// Numbers that no gauge can have are refused; none makes the stream write out of its windows.
static void damaged_states_are_refused(void **state) {
    (void)state;
    err e = {0};
    const char *names[256];
    frame_spec frame = every_feature(names);
    bar *bars = walk_bars(N, SPAN, 64);
    bar_stream *s = bar_stream_new(&frame, 1, true, &e);
    support_ok(s != NULL, &e);
    int width = feature_list_width(bar_stream_features(s, 0));
    rows r = rows_new(width);
    size_t n = bar_stream_state(s);
    double *saved = malloc(n * sizeof *saved);
    dice d = {.seed = 65};
    int refused = 0;
    push(s, bars, 0, N / 2, width, &r);
    bar_stream_save(s, saved);
    for (int trial = 0; trial < 300; trial++) {
        static const double odd[] = {-1, 1e18, -1e300, 0.0 / 0.0, 1.0 / 0.0, 12345};
        double *x = &saved[dice_below(&d, n)], was = *x;
        *x = odd[dice_below(&d, 6)];
        if (bar_stream_load(s, saved))
            push(s, bars, N / 2, N / 2 + 150, width, &r);
        else
            refused++;
        *x = was;
    }
    saved[0] = -1;
    assert_false(bar_stream_load(s, saved));
    assert_true(refused > 0);
    bar_stream_free(s);
    rows_free(&r);
    free(saved);
    free(bars);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_from_any_bar),
        cmocka_unit_test(volatility_goes_on),
        cmocka_unit_test(damaged_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
