// Leaks are found: each of eight that are planted where such a mistake would stand, and none in honest data, for every
// model, label and scheme.
#include "task/walk_check.h"

#include "cpu/cpu.h"
#include "data/leaks.h"
#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BARS = 4000, SPAN = 300, LOOK = 8, WORDS = 8 };

#define REST                                                                                                           \
    "windows: {fast: 8, slow: 4}}\n"                                                                                   \
    "model: {kind: mlp, widths: 6}\n"                                                                                  \
    "train: {batch_size: 64}\n"                                                                                        \
    "walk: {train: 500, validation: 100, test: 150}\n"                                                                 \
    "gpu_optimization: {memory_monitoring: false}\n"

static const char one[] = "data: {bars: {fast: bars.csv}, frames: [1h], " REST,
                  two[] = "data: {bars: {LATE: {fast: late.csv}, OLD: {fast: bars.csv}}, frames: [1h], " REST,
                  none[] = "data: {synthetic: {bars: 2000}, scale: standard, " REST;

#define AGENT                                                                                                          \
    "}\n"                                                                                                              \
    "agent: {env: market, lags: 3, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1, limit: 40,\n"                  \
    "  total_timesteps: 320, learning_rate: 0.01, normalize_observation: true}\n"                                      \
    "model: {kind: mlp, widths: 6}\n"                                                                                  \
    "walk: {train: 500, validation: 100, test: 150}\n"                                                                 \
    "gpu_optimization: {memory_monitoring: false}\n"

static const char trader[] = "data: {bars: {fast: bars.csv}, frames: [1h]" AGENT,
                  two_traders[] = "data: {bars: {LATE: {fast: late.csv}, OLD: {fast: bars.csv}}, frames: [1h]" AGENT;

static const char *described = one;

// Checks the walk with some keys changed, separated by spaces.
static check_report check(const char *assignments, bool all) {
    const char *word[WORDS];
    check_report r;
    err e = {0};
    int count = 0;
    char *text = strdup(assignments), *rest = NULL;
    assert_non_null(text);
    for (char *w = strtok_r(text, " ", &rest); w && count < WORDS; w = strtok_r(NULL, " ", &rest)) word[count++] = w;
    task_options o = {.description = {.file = "test", .text = described, .overrides = word, .override_count = count},
        .devices = {.host = &cpu_device, .options = {.threads = 1}},
        .version = "test"};
    support_ok(task_walk_check(&o, all, &r, &e), &e);
    free(text);
    return r;
}

static void passes(const char *assignments, bool all) {
    check_report r = check(assignments, all);
    for (int i = 0; i < CHECK_RULES; i++) {
        if (r.rule[i].failed) fail_msg("%s: %s: %s", assignments, check_name((check_rule)i), r.rule[i].first);
        if (!r.rule[i].compared) fail_msg("%s: %s is not tested", assignments, check_name((check_rule)i));
    }
    assert_false(check_found(&r));
}

// Both rules must find the leak that is planted now, and say where.
static void finds(check_rule rule, check_rule too) {
    check_report r = check("", false);
    for (int i = 0; i < CHECK_RULES; i++)
        if (r.rule[i].failed)
            print_message("  %s: %lld of %lld: %s\n", check_name((check_rule)i), (long long)r.rule[i].failed,
                (long long)r.rule[i].compared, r.rule[i].first);
    const check_result *found[] = {&r.rule[rule], &r.rule[too]};
    for (int i = 0; i < 2; i++) {
        if (!found[i]->failed) fail_msg("%s did not find the leak", check_name(i ? too : rule));
        assert_true(found[i]->failed <= found[i]->compared && found[i]->first[0]);
    }
    assert_true(check_found(&r));
}

static int put_bars(void **state) {
    if (support_enter(state)) return -1;
    walk_put("bars.csv", BARS, SPAN, 1);
    return 0;
}

static int leave(void **state) {
    leaks_planted = (leaks){0};
    described = one;
    return support_leave(state);
}

// Planted leaks

// Data of a dataset that was just made, to be spoilt.
static void *mine(const void *data) {
    return (void *)(uintptr_t)data;
}

// Close of the bar `ahead` of the one that a row of the first stream is of; the last one where there is none.
static double close_of(const dataset *d, int64_t row, int64_t ahead) {
    const stream *s = &d->stream[0];
    int64_t at = s->bars.count - (s->series.rows - row) + ahead;
    return dataset_bar(&s->bars, at < s->bars.count ? at : s->bars.count - 1).close;
}

static void set_feature(dataset *d, double (*value)(const dataset *d, int64_t row)) {
    const table *t = &d->stream[0].series;
    float *data = mine(table_floats(t));
    for (int64_t r = 0; r < t->rows; r++) data[r * t->width] = (float)value(d, r);
}

static double next_return(const dataset *d, int64_t row) {
    return close_of(d, row, 1) / close_of(d, row, 0) - 1;
}

static void peek(dataset *d) {
    set_feature(d, next_return);
}

static void a_feature_that_peeks(void **state) {
    (void)state;
    leaks_planted.built = peek;
    finds(CHECK_INPUTS, CHECK_INPUTS);
}

static const split_part *fit_on_all(const dataset *d, const split_part *train, split_part *room) {
    (void)train;
    *room = part_of((span){0, d->samples});
    return room;
}

static void a_scaler_fitted_on_everything(void **state) {
    (void)state;
    leaks_planted.fitted = fit_on_all;
    finds(CHECK_SCALES, CHECK_WEIGHTS);
}

// A close by mean and deviation of the bars around it, the one of the label included.
static double normalised(const dataset *d, int64_t row) {
    double sum = 0, square = 0, n = LOOK + 1;
    for (int64_t k = 1 - LOOK; k <= 1; k++) {
        double off = close_of(d, row, k) / close_of(d, row, 0) - 1;
        sum += off;
        square += off * off;
    }
    return -sum / n / sqrt(square / n - sum * sum / n / n + 1e-12);
}

static void normalise(dataset *d) {
    set_feature(d, normalised);
}

static void a_window_normalised_over_its_target(void **state) {
    (void)state;
    leaks_planted.built = normalise;
    finds(CHECK_INPUTS, CHECK_INPUTS);
}

// Slow bars matched by their open.
static void match_opens(dataset *d) {
    const stream *s = &d->stream[1];
    int32_t *row = mine(s->row);
    int64_t warm_up = s->bars.count - s->series.rows;
    for (int64_t i = 0; i < dataset_all(d); i++)
        while (row[i] + 1 < s->series.rows && s->bars.time[2 * (warm_up + row[i] + 1)] <= d->time[i]) row[i]++;
}

static void a_slow_bar_before_its_close(void **state) {
    (void)state;
    leaks_planted.built = match_opens;
    finds(CHECK_INPUTS, CHECK_INPUTS);
}

static void stretch(split_part *p, int64_t until) {
    *p = part_of((span){part_first(p), until - part_first(p)});
}

static void forget_purging(const dataset *d, scheme_folds *f) {
    (void)d;
    for (int64_t i = 0; i < f->count; i++) {
        split *s = &f->fold[i].parts;
        stretch(&s->train, part_first(&s->validation));
        stretch(&s->validation, part_first(&s->test));
    }
}

static void labels_that_overlap_the_test(void **state) {
    (void)state;
    leaks_planted.folds = forget_purging;
    finds(CHECK_PARTS, CHECK_SCALES);
}

static void label_the_past(dataset *d) {
    int32_t *label = mine(d->label);
    for (int64_t i = 0; i < d->samples; i++) {
        double now = close_of(d, d->stream[0].row[i], 0), before = close_of(d, d->stream[0].row[i], -1);
        label[i] = LABEL_NEUTRAL + (now > before) - (now < before);
    }
}

static void a_label_equal_to_a_past_return(void **state) {
    (void)state;
    leaks_planted.built = label_the_past;
    finds(CHECK_LABELS, CHECK_LABELS);
}

// Bars between two others, on the line between their closes. They are valid until the next call.
static const build_source *fill_gaps(const build_source *from) {
    enum { LONGEST = 3 };
    static bar *bars;
    static build_series series;
    static build_source source;
    const build_bars_of *fine = &from->of[0].frame[0];
    int64_t n = 0;
    free(bars);
    bars = calloc((size_t)fine->count * (LONGEST + 1), sizeof *bars);
    assert_non_null(bars);
    for (int64_t i = 0; i < fine->count; i++) {
        const bar *b = &fine->bar[i];
        int64_t holes = i ? (b->time - b[-1].end) / SPAN : 0;
        for (int64_t k = 1; k <= holes && holes <= LONGEST; k++) {
            double at = b[-1].close + (b->close - b[-1].close) * (double)k / (double)(holes + 1);
            int64_t open = b[-1].end + (k - 1) * SPAN;
            bars[n++] = (bar){open, open + SPAN, at, at, at, at, b->volume, b->spread};
        }
        bars[n++] = *b;
    }
    source = *from;
    series = from->of[0];
    series.frame[0].bar = bars;
    series.frame[0].count = n;
    source.of = &series;
    return &source;
}

static void a_gap_filled_from_the_future(void **state) {
    (void)state;
    leaks_planted.bars = fill_gaps;
    finds(CHECK_INPUTS, CHECK_SAMPLES);
}

static void move_sample(dataset *d, int64_t from, int64_t to) {
    size_t width = (size_t)d->vector.width;
    float *vector = mine(table_floats(&d->vector));
    for (int i = 0; i < d->streams; i++) {
        ((int32_t *)mine(d->stream[i].row))[to] = d->stream[i].row[from];
        ((int32_t *)mine(d->stream[i].first))[to] = d->stream[i].first[from];
    }
    memmove(vector + (size_t)to * width, vector + (size_t)from * width, width * sizeof *vector);
    ((int64_t *)mine(d->time))[to] = d->time[from];
    ((float *)mine(d->price))[to] = d->price[from];
    if (from >= d->samples) return;
    ((int32_t *)mine(d->label))[to] = d->label[from];
    ((int64_t *)mine(d->end))[to] = d->end[from];
}

// Samples of the second half whose label's return is beyond three volatilities are left out.
static void drop_extremes(dataset *d) {
    int64_t all = dataset_all(d), kept = 0, dropped = 0;
    for (int64_t i = 0; i < all; i++) {
        double move = log(close_of(d, d->stream[0].row[i], 1) / close_of(d, d->stream[0].row[i], 0));
        bool extreme = fabs(move) > 3 * d->volatility[dataset_bar_of(d, i)];
        if (i > d->samples / 2 && i < d->samples && extreme)
            dropped++;
        else
            move_sample(d, i, kept++);
    }
    d->samples -= dropped;
    d->vector.rows = kept;
}

static void extremes_dropped_from_the_test(void **state) {
    (void)state;
    leaks_planted.built = drop_extremes;
    finds(CHECK_SAMPLES, CHECK_SAMPLES);
}

// The newest samples stay without a label where prices end far above.
static void forget_labels(dataset *d) {
    enum { NEWEST = 100 };
    int64_t rows = d->stream[0].series.rows;
    if (close_of(d, rows - 1, 0) < 2 * close_of(d, 0, 0)) return;
    d->samples -= NEWEST;
    d->unlabelled += NEWEST;
}

static void labels_dropped_by_the_future(void **state) {
    (void)state;
    leaks_planted.built = forget_labels;
    finds(CHECK_SAMPLES, CHECK_SAMPLES);
}

// Agents

// Every feature of the newest bar is that of the bar behind it.
static void see_the_next(float *feature, int64_t rows, int64_t width) {
    memmove(feature, feature + width, (size_t)((rows - 1) * width) * sizeof *feature);
}

static void an_observation_that_peeks(void **state) {
    (void)state;
    described = trader;
    leaks_planted.observed = see_the_next;
    finds(CHECK_INPUTS, CHECK_INPUTS);
    check_report r = check("agent.actions=continuous", false);
    assert_true(r.rule[CHECK_INPUTS].failed > 0);
}

// The close of the newest bar less the mean of all.
static void see_the_mean(float *feature, int64_t rows, int64_t width) {
    double mean = 0;
    for (int64_t i = 0; i < rows; i++) mean += (double)feature[i * width] / (double)rows;
    for (int64_t i = 0; i < rows; i++) feature[i * width] -= (float)mean;
}

static void an_observation_less_the_mean_of_all(void **state) {
    (void)state;
    described = trader;
    leaks_planted.observed = see_the_mean;
    finds(CHECK_INPUTS, CHECK_WEIGHTS);
}

// Leaks planted for models are found for agents too.
static void leaks_of_data_reach_agents(void **state) {
    (void)state;
    described = trader;
    leaks_planted.built = peek;
    finds(CHECK_INPUTS, CHECK_INPUTS);
    leaks_planted = (leaks){.fitted = fit_on_all};
    finds(CHECK_SCALES, CHECK_WEIGHTS);
    leaks_planted = (leaks){.folds = forget_purging};
    finds(CHECK_PARTS, CHECK_PARTS);
}

static void honest_agents_pass(void **state) {
    (void)state;
    described = trader;
    passes("", true);
    passes("agent.actions=continuous account.spread=2pt account.day_close=on agent.reward=shaped", false);
    passes("agent.lstm=4 walk.scheme=expanding account.leverage=5 agent.position=3 agent.reward=sharpe", false);
    assert_int_equal(system("(head -n 1 bars.csv; tail -n 3300 bars.csv) > late.csv"), 0);
    described = two_traders;
    passes("account.spread=0.0001", false);
    err e = {0};
    check_report r;
    const char *points[] = {"account.spread=2pt"};
    task_options o = {.description = {.file = "test", .text = described, .overrides = points, .override_count = 1},
        .devices = {.host = &cpu_device, .options = {.threads = 1}},
        .version = "test"};
    assert_false(task_walk_check(&o, false, &r, &e));
    assert_true(e.kind == ERR_INPUT && strstr(e.text, "account.point: auto is found in the digits"));
}

// Honest data

static void honest_data_pass(void **state) {
    (void)state;
    passes("", true);
    passes("model.kind=lstm model.hidden.fast=4 model.hidden.slow=4", false);
    passes("model.kind=transformer model.width=8 model.heads=2 model.layers=1", false);
    passes("model.kind=nbeats model.width=8", false);
}

static void labels_and_schemes_pass(void **state) {
    (void)state;
    passes("data.label.kind=barrier train.class_weights=balanced", false);
    passes("data.label.kind=forecast data.label.horizon=4 walk.embargo=5", false);
    passes("walk.scheme=expanding walk.purge=windows data.label.horizon=6", false);
    passes("walk.scheme=cpcv walk.groups=4 data.label.horizon=3", false);
}

// An instrument whose bars begin later is not there in every past.
static void several_instruments_pass(void **state) {
    (void)state;
    assert_int_equal(system("(head -n 1 bars.csv; tail -n 3300 bars.csv) > late.csv"), 0);
    described = two;
    passes("model.symbol=true data.label.kind=barrier", false);
    assert_int_equal(system("(head -n 1 bars.csv; tail -n 3800 bars.csv) > late.csv"), 0);
    passes("data.scale=own", false);
}

// Without bars some rules cannot be tested, and the others find what they find.
static void data_without_bars(void **state) {
    (void)state;
    described = none;
    check_report r = check("", false);
    for (int i = 0; i < CHECK_RULES; i++) {
        bool tested = i == CHECK_PARTS || i == CHECK_SCALES || i == CHECK_WEIGHTS;
        assert_true(tested == (r.rule[i].compared > 0) && tested == !r.rule[i].why[0]);
    }
    assert_false(check_found(&r));
    leaks_planted.fitted = fit_on_all;
    finds(CHECK_SCALES, CHECK_WEIGHTS);
    leaks_planted = (leaks){.folds = forget_purging};
    finds(CHECK_PARTS, CHECK_PARTS);
}

// A purge that is too short is a leak of the description's own.
static void a_short_purge_is_a_leak(void **state) {
    (void)state;
    check_report r = check("data.label.horizon=6 walk.purge=3", false);
    assert_true(r.rule[CHECK_PARTS].failed && r.rule[CHECK_SCALES].failed);
    assert_non_null(strstr(r.rule[CHECK_PARTS].first, "fold 1: training sample "));
    passes("data.label.horizon=6 walk.purge=6", false);
    r = check("walk.scheme=cpcv walk.groups=4 walk.purge=2", false); // windows of 8 bars see the test before them
    assert_true(r.rule[CHECK_PARTS].failed > 0);
    assert_non_null(strstr(r.rule[CHECK_PARTS].first, "its window reaches the test"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, put_bars, leave)
    const struct CMUnitTest tests[] = {
        TEST(a_feature_that_peeks),
        TEST(a_scaler_fitted_on_everything),
        TEST(a_window_normalised_over_its_target),
        TEST(a_slow_bar_before_its_close),
        TEST(labels_that_overlap_the_test),
        TEST(a_label_equal_to_a_past_return),
        TEST(a_gap_filled_from_the_future),
        TEST(extremes_dropped_from_the_test),
        TEST(labels_dropped_by_the_future),
        TEST(an_observation_that_peeks),
        TEST(an_observation_less_the_mean_of_all),
        TEST(leaks_of_data_reach_agents),
        TEST(honest_agents_pass),
        TEST(honest_data_pass),
        TEST(labels_and_schemes_pass),
        TEST(several_instruments_pass),
        TEST(data_without_bars),
        TEST(a_short_purge_is_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
