// Bars to datasets: coarser frames, samples against the parts they are made of, the future, panels.
#include "data/build.h"

#include "base/half.h"
#include "data/align.h"
#include "data/feature.h"
#include "data/frame.h"
#include "data/scaler.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/strategy.h"
#include "data/walk.h"
#include "data/when.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 4000, SPAN = 300, SLOW = 3600 };

// Frames

static void frames_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t span;
    } good[] = {{"5m", 300}, {"M5", 300}, {"1h", 3600}, {"H4", 14400}, {"90s", 90}, {"1d", 86400}, {"D1", 86400},
        {"1w", WHEN_WEEK}, {"W1", WHEN_WEEK}, {"1mo", WHEN_MONTH}, {"MN1", WHEN_MONTH}};
    static const char *const bad[] = {
        "", "m", "5", "0m", "2d", "2w", "2mo", "mo", "5x", "1.5h", "mm", "-5m", "99999999m", "h1h", "1M"};
    int64_t span;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(frame_read(good[i].text, strlen(good[i].text), &span));
        assert_int_equal(span, good[i].span);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (frame_read(bad[i], strlen(bad[i]), &span)) fail_msg("\"%s\" is a frame of %d", bad[i], (int)span);
}

static void coarse_bars_hold_the_fine_ones(void **state) {
    (void)state;
    // From 00:02 on: the first bar of 5 minutes is not whole, 00:12 is missing, the last one is not over.
    static const int minutes[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16};
    enum { FINE = sizeof minutes / sizeof *minutes };
    bar fine[FINE], *made;
    int64_t n;
    err e = {0};
    for (int i = 0; i < FINE; i++) {
        double x = 100 + minutes[i];
        fine[i] = (bar){1700006400 + 60 * minutes[i], 1700006460 + 60 * minutes[i], x, x + 5, x - 5, x + 1, 10,
            i == 4 ? 0 : 2 + i % 2};
    }
    support_ok(frame_make(&(frame_source){fine, FINE, 60, false}, 300, "f.csv", &made, &n, &e), &e);
    assert_int_equal(n, 2);
    assert_int_equal(made[0].time, 1700006400 + 300);
    assert_true(made[0].open == 105 && made[0].close == 110 && made[0].high == 114 && made[0].low == 100);
    assert_true(made[0].volume == 50 && made[0].spread == 2.75);
    assert_int_equal(made[1].time, 1700006400 + 600);
    assert_true(made[1].open == 110 && made[1].close == 115 && made[1].volume == 40);
    free(made);
    assert_false(frame_make(&(frame_source){fine, FINE, 60, false}, 90, "f.csv", &made, &n, &e));
    assert_non_null(strstr(e.text, "f.csv: bars of"));
    assert_false(frame_make(&(frame_source){fine, FINE, 60, false}, 60, "f.csv", &made, &n, &e));
    assert_false(frame_make(&(frame_source){fine, FINE, 60, false}, 7 * 60, "f.csv", &made, &n, &e));
    assert_false(frame_make(&(frame_source){fine, FINE, 60, false}, 3600, "f.csv", &made, &n, &e));
    assert_non_null(strstr(e.text, "holds no whole bar"));
}

// Weeks begin on Monday, months on their first day; both end where the next begins.
static void weeks_and_months_are_the_calendars(void **state) {
    (void)state;
    enum { DAYS = 120 };
    bar day[DAYS], *made;
    int64_t n, first = when_day(2024, 1, 31) * WHEN_DAY; // a Wednesday
    err e = {0};
    for (int i = 0; i < DAYS; i++) {
        int64_t open = first + i * (int64_t)WHEN_DAY;
        day[i] = (bar){open, open + WHEN_DAY, i + 1, i + 2, i + 0.5, i + 1.5, 1, 0};
    }
    frame_source from = {day, DAYS, WHEN_DAY, false};
    support_ok(frame_make(&from, WHEN_WEEK, "days", &made, &n, &e), &e);
    assert_int_equal(n, 16);
    assert_int_equal(made[0].time, when_day(2024, 2, 5) * WHEN_DAY);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(when_weekday(made[i].time), 0);
        assert_int_equal(made[i].end, made[i].time + WHEN_WEEK);
        assert_true(made[i].volume == 7);
    }
    free(made);
    support_ok(frame_make(&from, WHEN_MONTH, "days", &made, &n, &e), &e);
    assert_int_equal(n, 3); // February to April; January and May are not whole
    assert_int_equal(made[0].time, when_day(2024, 2, 1) * WHEN_DAY);
    assert_int_equal(made[0].end, when_day(2024, 3, 1) * WHEN_DAY);
    assert_true(made[0].volume == 29 && made[1].volume == 31 && made[2].volume == 30);
    assert_true(made[0].open == 2 && made[0].close == 30.5 && made[2].high == day[90].high);
    free(made);
    // A month over the end of a year.
    day[0].time = when_day(2023, 12, 1) * WHEN_DAY;
    day[1].time = when_day(2024, 1, 1) * WHEN_DAY;
    day[1].end = day[1].time + WHEN_DAY;
    from.count = 2;
    support_ok(frame_make(&from, WHEN_MONTH, "days", &made, &n, &e), &e);
    assert_int_equal(n, 1);
    assert_int_equal(made[0].end, when_day(2024, 1, 1) * WHEN_DAY);
    free(made);
}

// Samples

typedef struct {
    bar *fast, *slow;
    int64_t slow_count;
    build_series series;
    build_source source;
} market;

static void market_open(market *m, bar *fast) {
    err e = {0};
    m->fast = fast;
    frame_source from = {m->fast, N, SPAN, false};
    support_ok(frame_make(&from, SLOW, "walk", &m->slow, &m->slow_count, &e), &e);
    m->series = (build_series){
        .symbol = "", .frame = {{"fast.csv", m->fast, N, false}, {"slow.csv", m->slow, m->slow_count, false}}};
    m->source = (build_source){.frames = 2,
        .frame = {{.name = "fast", .span = SPAN}, {.name = "slow", .span = SLOW}},
        .series = 1,
        .of = &m->series};
}

static void market_close(market *m) {
    free(m->fast);
    free(m->slow);
}

static dataset *built(const market *m, const build_options *o, build_report *r) {
    err e = {0};
    dataset *d = build_bars(&m->source, o, NULL, r, &e);
    support_ok(d && dataset_check(d, "built", &e), &e);
    return d;
}

// Every sample again, from features, strategies, labels and alignment computed over all bars.
static void samples_are_made_of_their_parts(void **state) {
    (void)state;
    market m;
    err e = {0};
    build_report r;
    market_open(&m, walk_bars(N, SPAN, 5));
    dataset *d = built(&m, &build_defaults, &r);
    static float fast[N * FEATURE_FAST], slow[N * FEATURE_SLOW], strength[N * STRATEGIES];
    static int8_t signal[N * STRATEGIES];
    static int32_t label[N], end[N], row[N];
    feature_list *f = feature_list_new(feature_default_fast, FEATURE_FAST, SPAN, &e);
    feature_list *s = feature_list_new(feature_default_slow, FEATURE_SLOW, SLOW, &e);
    strategy *rules = strategy_new(SPAN, &e);
    assert_true(f && s && rules);
    feature_list_run(f, m.fast, N, fast);
    feature_list_run(s, m.slow, m.slow_count, slow);
    strategy_run(rules, m.fast, N, signal, strength);
    double *unit = walk_volatility(m.fast, N, build_defaults.direction.volatility_bars);
    int64_t *fast_ends = walk_ends(m.fast, N), *slow_ends = walk_ends(m.slow, m.slow_count);
    support_ok(label_direction(m.fast, unit, N, &build_defaults.direction, label, end, &e), &e);
    align_rows(fast_ends, N, slow_ends, m.slow_count, row);
    free(unit);
    free(fast_ends);
    free(slow_ends);
    int64_t k = 0, warm_fast = feature_list_warm_up(f), warm_slow = feature_list_warm_up(s);
    for (int64_t t = 0; t < N; t++) {
        if (t < warm_fast || t < strategy_warm_up(rules) || row[t] < warm_slow || end[t] < 0) continue;
        float got[STRATEGY_COLUMNS];
        assert_true(k < d->samples);
        assert_int_equal(d->time[k], m.fast[t].time + SPAN);
        assert_int_equal(d->end[k], m.fast[end[t]].time + SPAN);
        assert_int_equal(d->label[k], label[t]);
        assert_true(d->price[k] == (float)m.fast[t].close);
        assert_true(m.slow[row[t]].time + SLOW <= d->time[k]);
        table_read(&d->stream[0].series, d->stream[0].row[k], 1, got);
        assert_memory_equal(got, fast + t * FEATURE_FAST, FEATURE_FAST * sizeof *got);
        table_read(&d->stream[1].series, d->stream[1].row[k], 1, got);
        assert_memory_equal(got, slow + row[t] * FEATURE_SLOW, FEATURE_SLOW * sizeof *got);
        table_read(&d->vector, k, 1, got);
        for (int i = 0; i < STRATEGIES; i++) assert_true(got[i] == (float)signal[t * STRATEGIES + i]);
        assert_memory_equal(got + STRATEGIES, strength + t * STRATEGIES, STRATEGIES * sizeof *got);
        k++;
    }
    assert_int_equal(k, d->samples);
    // The first stored rows are the first that mean something, and the last are the last that an unlabelled sample
    // sees.
    k = dataset_all(d);
    float got[FEATURE_FAST];
    table_read(&d->stream[0].series, 0, 1, got);
    assert_memory_equal(got, fast + warm_fast * FEATURE_FAST, sizeof got);
    assert_int_equal(d->stream[0].series.rows, d->stream[0].row[k - 1] + 1);
    assert_int_equal(d->stream[1].series.rows, d->stream[1].row[k - 1] + 1);
    assert_string_equal(d->stream[1].series.columns[1], "log_return_6");
    assert_string_equal(d->vector.columns[63], strategy_name(63));
    assert_true(d->raw);
    assert_int_equal(r.warm_up + r.unlabelled + d->samples, N);
    feature_list_free(f);
    feature_list_free(s);
    strategy_free(rules);
    dataset_free(d);
    market_close(&m);
}

static void compact_vectors_are_the_same_rounded(void **state) {
    (void)state;
    market m;
    market_open(&m, walk_bars(N, SPAN, 6));
    build_options o = build_defaults;
    dataset *a = built(&m, &o, NULL);
    o.compact = true;
    dataset *b = built(&m, &o, NULL);
    assert_int_equal(a->samples, b->samples);
    for (int64_t i = 0; i < a->samples; i++) {
        float x[STRATEGY_COLUMNS], y[STRATEGY_COLUMNS];
        table_read(&a->vector, i, 1, x);
        table_read(&b->vector, i, 1, y);
        for (int c = 0; c < STRATEGY_COLUMNS; c++) assert_true(half_widen(half_narrow(x[c])) == y[c]);
    }
    dataset_free(a);
    dataset_free(b);
    market_close(&m);
}

static void every_kind_of_label(void **state) {
    (void)state;
    market m;
    market_open(&m, walk_bars(N, SPAN, 7));
    build_options o = build_defaults;
    build_report r;
    o.label = BUILD_BARRIER;
    dataset *d = built(&m, &o, &r);
    assert_int_equal(d->classes, 3);
    assert_int_equal(r.barrier.up + r.barrier.down + r.barrier.timeout, d->samples);
    assert_int_equal(r.barrier.none, r.unlabelled);
    int64_t ups = 0;
    for (int64_t i = 0; i < d->samples; i++) ups += d->label[i] == LABEL_UP;
    assert_int_equal(r.barrier.up, ups);
    dataset_free(d);
    o = build_defaults;
    o.label = BUILD_FORECAST;
    o.vector = false;
    d = built(&m, &o, NULL);
    assert_null(d->label);
    assert_int_equal(d->target_width, 12);
    assert_int_equal(d->vector.width, 0);
    dataset_free(d);
    o = build_defaults;
    o.direction.classes = 5;
    d = built(&m, &o, NULL);
    assert_int_equal(d->classes, 5);
    assert_string_equal(d->class_names[4], "STRONG_UP");
    o.to_three = true;
    dataset *three = built(&m, &o, NULL);
    for (int64_t i = 0; i < d->samples; i++)
        assert_int_equal(three->label[i], d->label[i] < 2 ? 0 : d->label[i] > 2 ? 2 : 1);
    dataset_free(d);
    dataset_free(three);
    market_close(&m);
}

// A coarse file that ends early leaves its last bar in use, which is told.
static void old_bars_are_counted(void **state) {
    (void)state;
    market m;
    build_report r;
    market_open(&m, walk_bars(N, SPAN, 9));
    m.source.frame[1].features = (const char *const[]){"return"};
    m.source.frame[1].feature_count = 1;
    dataset_free(built(&m, &build_defaults, &r));
    assert_int_equal(r.stale[1], 0);
    m.series.frame[1].count -= 200;
    dataset *d = built(&m, &build_defaults, &r);
    int64_t late = 0, known = m.slow[m.slow_count - 201].time + SLOW;
    for (int64_t i = 0; i < dataset_all(d); i++) late += d->time[i] > known + SLOW + 4 * 86400;
    assert_true(late > 0);
    assert_int_equal(r.stale[1], late);
    dataset_free(d);
    market_close(&m);
}

static void fails(market *m, int frames, const build_options *o, const char *why) {
    err e = {0};
    m->source.frames = frames;
    if (build_bars(&m->source, o, NULL, NULL, &e)) fail_msg("is built, but %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
}

static void too_little_is_refused(void **state) {
    (void)state;
    market m;
    market_open(&m, walk_bars(N, SPAN, 8));
    build_bars_of *fast = &m.series.frame[0], *slow = &m.series.frame[1];
    fast->count = 150;
    fails(&m, 1, &build_defaults, "fast.csv: 150 bars, but macd_histogram_12_26_9 of fast needs");
    fast->count = 700;
    fails(&m, 1, &build_defaults, "the vector of strategies needs 801 before it means anything");
    fast->count = 801;
    fails(&m, 1, &build_defaults, "1 bars follow the warm-up of 800, and a label looks 1 bars ahead");
    build_options far = build_defaults;
    far.direction.horizon = 900;
    fast->count = 1500;
    fails(&m, 1, &far, "a label looks 900 bars ahead; give more history or a shorter --horizon");
    fast->count = 2000;
    slow->bar += 60;
    slow->count = 240;
    fails(&m, 2, &build_defaults, "slow.csv: its bars warm up only after the last bar of fast.csv");
    m.source.frame[0].features = (const char *const[]){"rsi_14", "no_such"};
    m.source.frame[0].feature_count = 2;
    fails(&m, 1, &build_defaults, "fast: feature no_such is not known");
    m.source.frame[0].features = NULL;
    fast->count = N;
    build_options o = build_defaults;
    o.direction.horizon = 0;
    fails(&m, 1, &o, "a horizon of 0 bars");
    o = build_defaults;
    o.label = BUILD_FORECAST;
    o.horizon = LABEL_BARS_MOST + 1;
    fails(&m, 1, &o, "a horizon of");
    market_close(&m);
}

// The future

static dataset *through_a_file(const bar *bars, const char *path) {
    market m;
    err e = {0};
    bar *copy = malloc(N * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, bars, N * sizeof *copy);
    market_open(&m, copy);
    dataset *d = built(&m, &build_defaults, NULL);
    json_t *about = json_pack("{s:s}", "made_of", "bars");
    support_ok(set_write(d, about, path, &e), &e);
    json_decref(about);
    dataset_free(d);
    market_close(&m);
    d = set_open(path, &e);
    support_ok(d != NULL, &e);
    return d;
}

// Everything of samples that are known by `now`, and of the scaler that they give.
static int64_t same_until(const dataset *a, const dataset *b, int64_t now) {
    int64_t k = 0, train = 0;
    float x[64], y[64];
    for (; k < a->samples && a->time[k] <= now; k++) {
        assert_true(k < b->samples);
        assert_int_equal(a->time[k], b->time[k]);
        assert_true(a->price[k] == b->price[k]);
        assert_int_equal(a->end[k] <= now, b->end[k] <= now);
        if (a->end[k] <= now) {
            assert_int_equal(a->label[k], b->label[k]);
            assert_int_equal(a->end[k], b->end[k]);
            train = k + 1;
        }
        for (int i = 0; i < a->streams; i++) {
            assert_int_equal(a->stream[i].row[k], b->stream[i].row[k]);
            assert_int_equal(a->stream[i].first[k], b->stream[i].first[k]);
        }
        table_read(&a->vector, k, 1, x);
        table_read(&b->vector, k, 1, y);
        assert_memory_equal(x, y, sizeof x);
    }
    for (int i = 0; i < a->streams && k; i++)
        for (int64_t r = 0; r <= a->stream[i].row[k - 1]; r++) {
            size_t width = (size_t)a->stream[i].series.width;
            table_read(&a->stream[i].series, r, 1, x);
            table_read(&b->stream[i].series, r, 1, y);
            assert_memory_equal(x, y, width * sizeof *x);
        }
    if (!train) return 0;
    err e = {0};
    int64_t window[2] = {50, 20};
    split_part part = part_of((span){0, train});
    scaler *s = scaler_fit(a, &part, window, false, &e), *t = scaler_fit(b, &part, window, false, &e);
    support_ok(s && t, &e);
    for (int i = 0; i < a->streams; i++)
        assert_memory_equal(s->value[i], t->value[i], 2 * (size_t)s->width[i] * sizeof(float));
    scaler_free(s);
    scaler_free(t);
    return train;
}

static void does_not_see_the_future(void **state) {
    (void)state;
    int trials = support_sanitized() ? 4 : 16;
    bar *bars = walk_bars(N, SPAN, 11), *changed = malloc(N * sizeof *changed);
    assert_non_null(changed);
    dataset *a = through_a_file(bars, "a.npz");
    dice d = {.seed = 12};
    int64_t compared = 0;
    for (int trial = 0; trial < trials; trial++) {
        int64_t t = 1500 + (int64_t)dice_below(&d, N - 1500);
        memcpy(changed, bars, N * sizeof *changed);
        for (int64_t i = t + 1; i < N; i++) walk_scramble(&changed[i], 100 + (uint64_t)trial);
        dataset *b = through_a_file(changed, "b.npz");
        compared += same_until(a, b, bars[t].time + SPAN);
        dataset_free(b);
    }
    assert_true(compared > 100 * trials);
    dataset_free(a);
    free(bars);
    free(changed);
}

// Panels

static void panels_become_samples(void **state) {
    (void)state;
    static const char text[] = "V1,V2,V3,V4,V5,V6,V7,V8,V9\nA,1,2,3,4,5,6,7,8\nB,11,12,13,14,15\nC,21,22\n";
    panel p;
    err e = {0};
    support_ok(panel_parse(&p, "p.csv", text, strlen(text), &e), &e);
    dataset *d = build_panel(&p, "p.csv", &(build_panel_options){2, 1, 0}, &e);
    support_ok(d && dataset_check(d, "p.csv", &e), &e);
    // A has 6 values before its last 2, which are held out; seen up to 1..4 its targets lie before them. B likewise has
    // 3, and one other. C is too short.
    static const int32_t row[] = {0, 1, 2, 3, 8, 5, 10}, first[] = {0, 0, 0, 0, 8, 0, 8};
    assert_int_equal(d->held, 2);
    assert_int_equal(d->samples, 7);
    assert_memory_equal(d->stream[0].row, row, sizeof row);
    assert_memory_equal(d->stream[0].first, first, sizeof first);
    static const float last[] = {7, 8, 14, 15};
    assert_memory_equal(d->target + 5 * 2, last, sizeof last);
    assert_int_equal(d->horizon, 2);
    dataset_free(d);
    // Only the last three targets before those held out: A is seen up to its rows 2 and 3, B to its first.
    static const int32_t recent[] = {2, 3, 8, 5, 10};
    d = build_panel(&p, "p.csv", &(build_panel_options){2, 1, 3}, &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->samples, 5);
    assert_memory_equal(d->stream[0].row, recent, sizeof recent);
    dataset_free(d);
    assert_null(build_panel(&p, "p.csv", &(build_panel_options){8, 1, 0}, &e));
    assert_null(build_panel(&p, "p.csv", &(build_panel_options){0, 1, 0}, &e));
    assert_null(build_panel(&p, "p.csv", &(build_panel_options){2, 1, 1}, &e));
    panel_done(&p);
}

// The file says what is held out, and keeps the series with their names; their ends can be forecast from.
static void panels_keep_their_series(void **state) {
    (void)state;
    static const char text[] = "A,1,2,3,4,5,6,7,8\n\"B, too\",11,12,13,14,15\nC,21,22\n";
    panel p;
    err e = {0};
    split sp;
    support_ok(panel_parse(&p, "p.csv", text, strlen(text), &e), &e);
    dataset *made = build_panel(&p, "p.csv", &(build_panel_options){2, 1, 0}, &e);
    json_t *about = json_object();
    support_ok(made && set_write(made, about, "p.npz", &e), &e);
    json_decref(about);
    dataset_free(made);
    panel_done(&p);
    dataset *d = set_open("p.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->held, 2);
    assert_int_equal(d->panel, 3);
    assert_string_equal(d->panel_names[1], "B, too");
    assert_int_equal(d->panel_first[3], 15);
    for (int64_t i = 0; i < d->samples; i++) assert_int_equal(dataset_panel_of(d, i), d->stream[0].first[i] == 8);
    split_options shares = {.train = 0.1, .validation = 0.1, .purge = PURGE_LABELS, .embargo = 1000};
    support_ok(split_make(d, NULL, &shares, &sp, &e), &e);
    assert_true(part_first(&sp.train) == 0 && sp.train.count == 5 && part_first(&sp.validation) == 5 &&
                sp.validation.count == 2);
    assert_true(sp.test.count == 0 && sp.dropped == 0);
    d = build_ends(d, &e);
    support_ok(d && dataset_check(d, "ends", &e), &e);
    static const int32_t row[] = {7, 12, 14}, first[] = {0, 8, 13};
    assert_int_equal(d->samples, 3);
    assert_memory_equal(d->stream[0].row, row, sizeof row);
    assert_memory_equal(d->stream[0].first, first, sizeof first);
    assert_int_equal(d->target_width, 2);
    for (int64_t i = 0; i < 3; i++) assert_int_equal(dataset_panel_of(d, i), i);
    d->held = 3;
    assert_false(dataset_check(d, "ends", &e));
    dataset_free(d);
    d = build_ends(synthetic_new(&(synthetic_options){.bars = 1000, .seed = 1, .strength = 1}, &e), &e);
    assert_null(d);
    assert_non_null(strstr(e.text, "holds no series with names and targets"));
}

// Files

static void streams_are_put_in_order(void **state) {
    (void)state;
    sources s;
    const bars_options any = {.force = BARS_FORCE_AGREE}; // the two are of different markets
    err e = {0};
    bar *fine = walk_bars(2000, 300, 3);
    const char *const names[] = {"fine.csv", "coarse.csv"};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(names[i], "w");
        assert_non_null(f);
        fputs("time,open,high,low,close,volume\n", f);
        for (int k = 0; k < 2000; k++)
            fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%g\n", (long long)(fine[0].time + k * (i ? 3600 : 300)), fine[k].open,
                fine[k].high, fine[k].low, fine[k].close, fine[k].volume);
        fclose(f);
    }
    const char *const frames[] = {"15m", "1h"};
    const frame_spec *got = s.build.frame;
    const source_ask two[] = {{.path = "coarse.csv"}, {.path = "fine.csv"}},
                     twice[] = {{.path = "fine.csv"}, {.path = "fine.csv"}};
    support_ok(sources_read(&s, two, 2, &any, frames, 1, &e), &e);
    assert_int_equal(s.build.frames, 3);
    assert_int_equal(got[0].span, 300);
    assert_int_equal(got[1].span, 900);
    assert_int_equal(got[2].span, 3600);
    assert_string_equal(got[0].name, "fast");
    assert_string_equal(got[2].name, "slower");
    sources_done(&s);
    sources_done(&s);
    // Frames have the same names, whether or not the files have theirs.
    support_ok(sources_read(&s, &(source_ask){"fine.csv", NULL, "fast"}, 1, &any, frames, 2, &e), &e);
    assert_string_equal(got[1].name, "slow");
    assert_string_equal(got[2].name, "slower");
    sources_done(&s);
    support_ok(sources_read(&s, (const source_ask[]){{"coarse.csv", NULL, "slow"}, {"fine.csv", NULL, "m5"}}, 2, &any,
                   frames, 1, &e),
        &e);
    assert_string_equal(got[0].name, "m5");
    assert_string_equal(got[1].name, "slower");
    assert_string_equal(got[2].name, "slow");
    sources_done(&s);
    assert_false(sources_read(&s, twice, 2, &any, NULL, 0, &e));
    assert_non_null(strstr(e.text, "the same span"));
    assert_false(sources_read(&s, two, 2, &any, frames, 2, &e));
    assert_non_null(strstr(e.text, "bars of that span are there already"));
    assert_false(sources_read(
        &s, (const source_ask[]){{"coarse.csv", NULL, "a"}, {"fine.csv", NULL, "a"}}, 2, &any, NULL, 0, &e));
    assert_non_null(strstr(e.text, "two streams are named a"));
    free(fine);
}

static void kinds_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *text;
        source_kind kind;
    } files[] = {{"PK\3\4...", SOURCE_ARRAYS}, {"\x93NUMPY.", SOURCE_RECORDS}, {"", SOURCE_BARS}, {",", SOURCE_BARS},
        {"V1,V2,V3\nH1,5,6\n", SOURCE_PANEL}, {"\"V1\",\"V2\"\r\n\"H1\",\"5.5\"\r\n", SOURCE_PANEL},
        {"H1,5", SOURCE_PANEL}, {"a,", SOURCE_BARS}, {"time,open\n1700000000,5\n", SOURCE_BARS},
        {",Open,High\n2017-04-19 09:00:00,1.0716,1\n", SOURCE_BARS}, {"2024.01.02,00:00,1,2,0.5,1\n", SOURCE_BARS},
        {"ticker,date,open\nEURUSD,20240102,1.1\n", SOURCE_BARS},
        {"ticker,date,open\nEURUSD,2024-01-02,1.1\n", SOURCE_BARS}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        // In a block of its own size, so that reading beyond it is seen.
        size_t n = strlen(files[i].text);
        char *text = malloc(n ? n : 1);
        assert_non_null(text);
        memcpy(text, files[i].text, n);
        if (source_kind_in(text, n) != files[i].kind) fail_msg("\"%s\" is mistaken", files[i].text);
        free(text);
    }
}

// MetaTrader's rates as numpy saves them: packed records.
static void put_rates(const char *path, const bar *bars, int count) {
    char text[448];
    unsigned char head[10] = "\x93NUMPY\x01\x00";
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    snprintf(text, sizeof text,
        "{'descr': [('time', '<i8'), ('open', '<f8'), ('high', '<f8'), ('low', '<f8'), ('close', '<f8'), "
        "('tick_volume', '<u8'), ('spread', '<i4'), ('real_volume', '<u8')], 'fortran_order': False, 'shape': (%d,), }",
        count);
    snprintf(text, sizeof text, "%-437.437s", strdupa(text));
    text[437] = '\n';
    head[8] = 438 & 255;
    head[9] = 438 >> 8;
    fwrite(head, 1, sizeof head, f);
    fwrite(text, 1, 438, f);
    for (int i = 0; i < count; i++) {
        uint64_t volume = (uint64_t)bars[i].volume, real = 0;
        int32_t spread = 3;
        fwrite(&bars[i].time, 8, 1, f);
        fwrite(&bars[i].open, 8, 4, f); // open, high, low, close
        fwrite(&volume, 8, 1, f);
        fwrite(&spread, 4, 1, f);
        fwrite(&real, 8, 1, f);
    }
    fclose(f);
}

static void records_are_bars(void **state) {
    (void)state;
    enum { COUNT = 500 };
    sources s;
    err e = {0};
    source_kind kind;
    bar *bars = walk_bars(COUNT, 300, 4);
    const char *path = "rates.npy", *other = TEST_DIR "/data/samples/npz/rates.npy";
    put_rates(path, bars, COUNT);
    support_ok(source_kind_of(path, &kind, &e), &e);
    assert_int_equal(kind, SOURCE_RECORDS);
    support_ok(sources_read(&s, &(source_ask){.path = path}, 1, NULL, NULL, 0, &e), &e);
    const build_bars_of *got = &s.build.of[0].frame[0];
    assert_int_equal(got->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(got->bar[i].time, bars[i].time);
        assert_true(got->bar[i].close == bars[i].close && got->bar[i].high == bars[i].high);
        assert_true(got->bar[i].spread == 3);
    }
    sources_done(&s);
    // A bar that was not over when the file was written is left out, as of any file.
    struct timespec both[2] = {{.tv_sec = bars[COUNT - 1].time + 10}, {.tv_sec = bars[COUNT - 1].time + 10}};
    assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
    support_ok(sources_read(&s, &(source_ask){.path = path}, 1, NULL, NULL, 0, &e), &e);
    assert_int_equal(s.build.of[0].frame[0].count, COUNT - 1);
    assert_int_equal(s.file[0].bars.report.last_bar, BARS_OPEN_WHEN_WRITTEN);
    sources_done(&s);
    assert_false(sources_read(&s, &(source_ask){.path = other}, 1, NULL, NULL, 0, &e));
    assert_non_null(strstr(e.text, "no field high"));
    free(bars);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(frames_are_read),
        TEST(coarse_bars_hold_the_fine_ones),
        TEST(weeks_and_months_are_the_calendars),
        TEST(samples_are_made_of_their_parts),
        TEST(compact_vectors_are_the_same_rounded),
        TEST(every_kind_of_label),
        TEST(old_bars_are_counted),
        TEST(too_little_is_refused),
        TEST(does_not_see_the_future),
        TEST(panels_become_samples),
        TEST(panels_keep_their_series),
        TEST(kinds_are_told_apart),
        TEST(streams_are_put_in_order),
        TEST(records_are_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
