// Sets that go on: whatever the instruments, labels and the places at which the files were cut, adding the rest gives
// the bytes of importing all of it; and nothing of a sample that is known by then moves when the future changes.
#include "data/append.h"
#include "data/frame.h"
#include "data/latest.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/walk.h"
#include "support.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1400, SPAN = 300, SLOW = 3600, SYMBOLS = 3 };

static const char *const symbols[SYMBOLS] = {"AAA", "BBB", "CCC"};
static const char *const few_fast[] = {"log_return_1", "rsi_5", "volatility_10"}, *const few_slow[] = {
                                                                                      "return", "natr_5"};

// Bars of some instruments, which end at different times.
typedef struct {
    int count;
    bool slow; // with hours from a file of their own
    bar *fast[SYMBOLS], *hours[SYMBOLS];
    int64_t hour_count[SYMBOLS];
} market;

static market market_new(int count, bool slow, uint64_t seed) {
    market m = {.count = count, .slow = slow};
    err e = {0};
    for (int k = 0; k < count; k++) {
        m.fast[k] = walk_bars(N, SPAN, seed + (uint64_t)k);
        frame_source from = {m.fast[k], N, SPAN, false};
        support_ok(frame_make(&from, SLOW, "walk", &m.hours[k], &m.hour_count[k], &e), &e);
    }
    return m;
}

static void market_free(market *m) {
    for (int k = 0; k < m->count; k++) {
        free(m->fast[k]);
        free(m->hours[k]);
    }
}

static const char *file_of(char path[64], int k, bool slow) {
    snprintf(path, 64, "%s_%s.csv", symbols[k], slow ? "h1" : "m5");
    return path;
}

static void put(const char *path, const bar *bars, int64_t count) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars; b < bars + count; b++)
        fprintf(f, "%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
}

// Writes what each file had when an instrument's fast bars were `cut` and its hours `hours` long.
static void put_files(const market *m, const int64_t *cut, const int64_t *hours) {
    char path[64];
    for (int k = 0; k < m->count; k++) {
        put(file_of(path, k, false), m->fast[k], cut[k]);
        if (m->slow) put(file_of(path, k, true), m->hours[k], hours[k]);
    }
}

static int list_files(const market *m, source_ask *ask, char (*path)[64]) {
    int n = 0;
    for (int k = 0; k < m->count; k++)
        for (int slow = 0; slow <= m->slow; slow++, n++)
            ask[n] = (source_ask){file_of(path[n], k, slow), m->count > 1 ? symbols[k] : NULL, NULL};
    return n;
}

static const bars_options reading = {.written = INT64_MAX, .force = BARS_FORCE_THIN};

static void import_all(const market *m, const build_options *o, const char *out) {
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64];
    const char *const frames[] = {"1h"};
    sources s;
    err e = {0};
    int n = list_files(m, ask, path);
    support_ok(sources_read(&s, ask, n, &reading, frames, !m->slow, &e), &e);
    for (int i = 0; i < 2; i++) {
        s.build.frame[i].features = i ? few_slow : few_fast;
        s.build.frame[i].feature_count = i ? 2 : 3;
    }
    dataset *d = build_bars(&s.build, o, NULL, NULL, &e);
    support_ok(d && dataset_check(d, "built", &e), &e);
    json_t *about = sources_about(&s, o, &reading);
    support_ok(set_write(d, about, out, &e), &e);
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
}

static void append_all(const market *m, const char *set, const char *out) {
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64];
    sources s;
    err e = {0};
    build_options o;
    bars_options how = reading;
    dataset *old = set_open(set, &e);
    support_ok(old != NULL, &e);
    support_ok(append_options(old, &o, &how, &e), &e);
    support_ok(sources_follow(&s, old, ask, list_files(m, ask, path), &how, &e), &e);
    dataset *d = build_bars(&s.build, &o, old, NULL, &e);
    support_ok(d && dataset_check(d, "appended", &e), &e);
    json_t *about = append_about(old, d, s.forced);
    support_ok(set_write(d, about, out, &e), &e);
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
    dataset_free(old);
}

static void same_files(const char *a, const char *b) {
    size_t bytes[2];
    char *data[2];
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i ? b : a, "rb");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        bytes[i] = (size_t)ftell(f);
        rewind(f);
        data[i] = malloc(bytes[i]);
        assert_non_null(data[i]);
        assert_int_equal(fread(data[i], 1, bytes[i], f), bytes[i]);
        fclose(f);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

static build_options options_of(int trial) {
    build_options o = build_defaults;
    o.label = (build_label)(trial % 3);
    o.direction.horizon = 1 + trial % 5;
    o.direction.volatility_bars = trial % 4 ? 20 : 0;
    o.direction.band = 0.3;
    o.barrier.volatility_bars = 20;
    o.barrier.limit = 9;
    o.horizon = 4;
    o.value = (label_value)(trial / 3 % 3);
    o.vector = trial % 2 == 0;
    o.compact = trial % 4 == 2;
    return o;
}

static void adding_is_importing_all(void **state) {
    (void)state;
    dice d = {.seed = 71};
    int trials = support_sanitized() ? 8 : 30;
    for (int trial = 0; trial < trials; trial++) {
        build_options o = options_of(trial);
        market m = market_new(1 + trial % SYMBOLS, trial % 2, 80 + (uint64_t)trial);
        int64_t cut[SYMBOLS], hours[SYMBOLS], least = o.vector ? 900 : 600;
        for (int k = 0; k < m.count; k++) {
            // Some files end in the middle, some with all, and hours behind or before the fast bars.
            cut[k] = trial % 5 == 4 && k ? N : least + (int64_t)dice_below(&d, (uint64_t)(N - least));
            hours[k] = m.hour_count[k] / 2 + (int64_t)dice_below(&d, (uint64_t)(m.hour_count[k] / 2));
        }
        put_files(&m, cut, hours);
        import_all(&m, &o, "part.npz");
        for (int k = 0; k < m.count; k++) cut[k] += (int64_t)dice_below(&d, (uint64_t)(N - cut[k]) + 1);
        put_files(&m, cut, hours);
        append_all(&m, "part.npz", "more.npz"); // in two steps, the first of which may add nothing
        for (int k = 0; k < m.count; k++) {
            cut[k] = N;
            hours[k] = m.hour_count[k];
        }
        put_files(&m, cut, hours);
        append_all(&m, "more.npz", "more.npz");
        import_all(&m, &o, "whole.npz");
        same_files("more.npz", "whole.npz");
        market_free(&m);
    }
}

// What is not the set's own is refused.
static void other_bars_are_refused(void **state) {
    (void)state;
    market m = market_new(2, true, 90);
    build_options o = options_of(3), got;
    bars_options how = reading;
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64], *last;
    sources s;
    err e = {0};
    int64_t cut[] = {1000, 1000}, hours[] = {80, 80};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *old = set_open("set.npz", &e);
    support_ok(old && append_options(old, &got, &how, &e), &e);
    int n = list_files(&m, ask, path);
    m.fast[0][999].close *= 1.0001;
    m.fast[0][999].high = m.fast[0][999].close * 1.01;
    put(path[0], m.fast[0], N);
    assert_false(sources_follow(&s, old, ask, n, &how, &e));
    assert_non_null(strstr(e.text, "differs from the one in set.npz; import all bars anew"));
    ask[0].symbol = "ZZZ";
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "ZZZ is not in set.npz"));
    ask[0].symbol = NULL;
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "say which instrument of set.npz it is: --symbol NAME"));
    walk_put("m15.csv", 300, 900, 5);
    ask[0] = (source_ask){"m15.csv", symbols[0], NULL};
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(last = strstr(e.text, "is not made of such files"));
    dataset_free(old);
    market_free(&m);
}

// Samples of several instruments

static void samples_are_in_order_of_close_and_symbol(void **state) {
    (void)state;
    market m = market_new(SYMBOLS, false, 95);
    build_options o = options_of(0);
    err e = {0};
    int64_t cut[] = {N, N - 200, N - 50}, hours[] = {0, 0, 0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *d = set_open("set.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->panel, SYMBOLS);
    for (int64_t i = 0; i < dataset_all(d); i++) {
        int64_t series = dataset_panel_of(d, i), at = dataset_bar_of(d, i);
        const stream *s = &d->stream[0];
        bar b = dataset_bar(&s->bars, at);
        assert_int_equal(b.end, d->time[i]);
        assert_true(d->price[i] == (float)b.close);
        assert_int_equal(s->first[i], s->start[series]);
        // The bar is one of its own instrument.
        assert_int_equal(b.time, m.fast[series][at - s->bars.start[series]].time);
        for (int k = 1; k < d->streams; k++) {
            assert_int_equal(d->stream[k].first[i], d->stream[k].start[series]);
            assert_true(d->stream[k].row[i] < d->stream[k].start[series + 1]);
        }
        if (!i || i == d->samples) continue;
        int64_t before = dataset_panel_of(d, i - 1);
        assert_true(d->time[i - 1] < d->time[i] || (d->time[i - 1] == d->time[i] && before < series));
    }
    dataset_free(d);
    market_free(&m);
}

// The newest bars

static void newest_bars_are_a_view(void **state) {
    (void)state;
    market m = market_new(2, false, 97);
    build_options o = options_of(1);
    err e = {0};
    int64_t cut[] = {N, N - 100}, hours[] = {0, 0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *whole = set_open("set.npz", &e), *d = latest_new(set_open("set.npz", &e), 12, &e);
    support_ok(whole && d, &e);
    assert_int_equal(d->samples, 24);
    assert_int_equal(d->unlabelled, 0);
    int64_t unknown = 0;
    for (int64_t i = 0; i < d->samples; i++) {
        int64_t k = 0;
        while (whole->time[k] != d->time[i] || dataset_panel_of(whole, k) != dataset_panel_of(d, i)) k++;
        assert_int_equal(d->known[i], k < whole->samples);
        if (d->known[i]) assert_int_equal(d->label[i], whole->label[k]);
        unknown += !d->known[i];
        for (int s = 0; s < d->streams; s++) assert_int_equal(d->stream[s].row[i], whole->stream[s].row[k]);
        assert_true(i == 0 || d->time[i] >= d->time[i - 1]);
    }
    assert_int_equal(unknown, whole->unlabelled);
    dataset_free(d);
    dataset_free(whole);
    market_free(&m);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(adding_is_importing_all),
        TEST(other_bars_are_refused),
        TEST(samples_are_in_order_of_close_and_symbol),
        TEST(newest_bars_are_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
