// Skill: scores beside those of trivial answers, against definitions written out; by instrument and together; moments
// and labels that decide the blocks; words that the intervals allow.
#include "train/skill.h"

#include "support.h"
#include "train/metric.h"
#include "train/naive.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%.12g is not %.12g", is, want);
}

static skill_table table_for(const skill_input *in) {
    skill_table t;
    err e = {0};
    support_ok(skill_make(in, &t, &e), &e);
    return t;
}

// Classes

enum { N = 600, K = 3 };

static struct {
    dataset d;
    int32_t label[N];
    int64_t time[N], end[N];
    float answer[N * K], target[N * 2], price[N], value[N * 2];
    int32_t row[N], first[N];
} m;

// Labels of shares 0.2, 0.3 and 0.5 and answers that give the true class `right` on average.
static void make_classes(double right) {
    dice w = {.seed = 11};
    for (int i = 0; i < N; i++) {
        double u = ((double)dice_unit(&w) + 1) / 2;
        m.label[i] = u < 0.2 ? 0 : u < 0.5 ? 1 : 2;
        for (int k = 0; k < K; k++) m.answer[i * K + k] = (float)((1 - right) / (K - 1));
        m.answer[i * K + (dice_below(&w, 4) ? m.label[i] : (int)dice_below(&w, K))] = (float)right;
        double sum = 0;
        for (int k = 0; k < K; k++) sum += (double)m.answer[i * K + k];
        for (int k = 0; k < K; k++) m.answer[i * K + k] /= (float)sum;
        m.time[i] = 3600 * i;
    }
    m.d = (dataset){.samples = N, .classes = K, .label = m.label, .time = m.time, .horizon = 5};
}

static void classes_are_compared_with_majority_and_prior(void **state) {
    (void)state;
    make_classes(0.8);
    double share[K] = {0.25, 0.25, 0.5}, loss = 0, prior = 0, right = 0, majority = 0;
    int64_t count[K * K] = {0};
    for (int i = 0; i < N; i++) {
        const float *p = m.answer + i * K;
        int said = p[1] > p[0] ? 1 : 0;
        said = p[2] > p[said] ? 2 : said;
        loss -= log((double)p[m.label[i]]) / N;
        prior -= log(share[m.label[i]]) / N;
        right += (double)(said == m.label[i]) / N;
        majority += (double)(m.label[i] == 2) / N;
        count[m.label[i] * K + said]++;
    }
    skill_table t = table_for(&(skill_input){.data = &m.d,
        .samples = part_of((span){0, N}),
        .task = METRIC_CLASSES,
        .answer = m.answer,
        .width = K,
        .share = share,
        .season = 1});
    const skill_row *r = t.group[0].row;
    assert_true(t.rows == 3 && t.trivials == 2 && t.groups == 1 && t.majority == 2 && t.group[0].samples == N);
    assert_true(t.units == N && t.block == 9);
    near(r[0].score, loss);
    near(r[0].trivial[1], prior);
    near(r[0].skill, 1 - loss / prior);
    near(r[1].score, right);
    near(r[1].trivial[0], majority);
    near(r[1].skill, right - majority);
    near(r[2].score, metric_mcc(count, K));
    near(r[2].skill, r[2].score);
    assert_true(isnan(r[0].trivial[0]) && isnan(r[1].trivial[1]) && r[0].best == 1 && r[1].best == 0 && r[2].best == 0);
    for (int k = 0; k < 3; k++) {
        assert_true(r[k].score_range.low < r[k].score && r[k].score < r[k].score_range.high);
        assert_true(r[k].skill_range.low < r[k].skill && r[k].skill < r[k].skill_range.high);
        assert_int_equal(skill_judge(&r[k]), SKILL_BETTER);
    }
    skill_done(&t);
}

// The prior as the answer has a skill of 0 in every resample; a coin has less than the prior.
static void no_better_and_worse_are_told_apart(void **state) {
    static const double share[K] = {0.2, 0.3, 0.5};
    (void)state;
    make_classes(0.8);
    skill_input in = {.data = &m.d, .samples = part_of((span){0, N}), .task = METRIC_CLASSES, .width = K};
    in.answer = m.answer;
    in.share = share;
    for (int i = 0; i < N * K; i++) m.answer[i] = (float)share[i % K];
    skill_table t = table_for(&in);
    assert_true(fabs(t.group[0].row[0].skill) < 1e-6 && t.group[0].row[1].skill == 0 && t.group[0].row[2].skill == 0);
    assert_int_equal(skill_judge(&t.group[0].row[1]), SKILL_EQUAL);
    assert_int_equal(skill_judge(&t.group[0].row[2]), SKILL_EQUAL);
    skill_done(&t);
    for (int i = 0; i < N * K; i++) m.answer[i] = i % K == 0 ? 0.8f : 0.1f;
    t = table_for(&in);
    assert_int_equal(skill_judge(&t.group[0].row[0]), SKILL_WORSE);
    assert_int_equal(skill_judge(&t.group[0].row[1]), SKILL_WORSE);
    skill_done(&t);
    in.answer = NULL;
    t = table_for(&in);
    assert_true(isnan(t.group[0].row[0].score) && t.group[0].row[0].trivial[1] > 1);
    assert_int_equal(skill_judge(&t.group[0].row[0]), SKILL_OPEN);
    skill_done(&t);
}

// Forecasts of bars

// Targets of a kind, `answer` that share of them with noise.
static void make_targets(const char *kind, double level) {
    dice w = {.seed = 5};
    for (int i = 0; i < N; i++) {
        m.time[i] = 3600 * i;
        m.end[i] = m.time[i] + 2 * 3600;
        m.price[i] = (float)(level + i);
        for (int h = 0; h < 2; h++) {
            double move = (double)dice_unit(&w), off = (double)dice_unit(&w);
            double base = strcmp(kind, "close") == 0 ? (double)m.price[i] : level;
            m.target[2 * i + h] = (float)(base + move);
            m.answer[3 * i + 1 + h] = (float)(base + 0.5 * move + 0.2 * off);
        }
        m.answer[3 * i] = 1e9f; // a column that is not asked for
    }
    m.d = (dataset){.samples = N, .target_width = 2, .target = m.target, .price = m.price, .time = m.time};
    m.d.end = m.end;
    m.d.about = json_pack("{s:{s:s, s:s}}", "label", "kind", "forecast", "value", kind);
}

static void check_targets(const char *kind, double level, trivial_kind want, double mean) {
    split_part part = part_of((span){100, 400});
    make_targets(kind, level);
    if (strcmp(kind, "none") == 0) m.d.price = NULL;
    skill_table t = table_for(&(skill_input){.data = &m.d,
        .samples = part,
        .task = METRIC_FORECASTS,
        .answer = m.answer + 300,
        .width = 3,
        .at = 1,
        .mean = mean,
        .season = 1});
    double sum[2][2] = {{0}};
    for (int i = 100; i < 500; i++)
        for (int h = 0; h < 2; h++) {
            double y = (double)m.target[2 * i + h], f = (double)m.answer[3 * i + 1 + h];
            double naive = want == TRIVIAL_LAST ? (double)m.price[i] : want == TRIVIAL_MEAN ? mean : 0;
            sum[0][0] += (y - f) * (y - f) / 800;
            sum[0][1] += fabs(y - f) / 800;
            sum[1][0] += (y - naive) * (y - naive) / 800;
            sum[1][1] += fabs(y - naive) / 800;
        }
    const skill_row *r = t.group[0].row;
    assert_true(t.rows == 2 && r[0].metric == SKILL_RMSE && r[1].metric == SKILL_MAE);
    assert_int_equal(t.trivial[r[0].best], want);
    near(r[0].score, sqrt(sum[0][0]));
    near(r[0].skill, 1 - sqrt(sum[0][0] / sum[1][0]));
    near(r[1].score, sum[0][1]);
    near(r[1].skill, 1 - sum[0][1] / sum[1][1]);
    assert_true(t.units == 400 && t.block == 8); // the cube root is longer than two bars
    json_decref(m.d.about);
    skill_done(&t);
}

static void forecasts_are_compared_by_kind(void **state) {
    (void)state;
    check_targets("path", 0, TRIVIAL_ZERO, 0);
    check_targets("close", 1500, TRIVIAL_LAST, 0);
    check_targets("none", 40, TRIVIAL_MEAN, 40.25);
}

// Series

// MASE by the naive error within a window of 9 values.
static void check_window(int series, int length) {
    enum { WINDOW = 9 };
    double mase = 0;
    for (int s = 0; s < series; s++) {
        double seen[WINDOW], error = 0;
        for (int t = 0; t < WINDOW; t++) seen[t] = (double)m.value[(s + 1) * length - WINDOW + t];
        for (int h = 0; h < 2; h++) error += fabs((double)m.target[2 * s + h] - seen[WINDOW - 4 + h]) / 2;
        mase += error / naive_scale(seen, WINDOW, 4) / series;
    }
    skill_table t = table_for(&(skill_input){
        .data = &m.d, .samples = part_of((span){0, series}), .task = METRIC_SERIES, .season = 4, .window = WINDOW});
    near(t.group[0].row[3].trivial[1], mase);
    skill_done(&t);
}

// Seasons of 4 with a trend: the last season beats the last value. Known are all values up to the sample.
static void series_are_compared_with_their_season(void **state) {
    enum { SERIES = 12, LENGTH = 40 };
    static const char *const names[SERIES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    static int64_t first[SERIES + 1];
    double sum[3][3] = {{0}};
    (void)state;
    for (int s = 0; s < SERIES; s++) {
        double known[LENGTH];
        first[s + 1] = (s + 1) * LENGTH;
        for (int t = 0; t < LENGTH; t++)
            known[t] = (double)(m.value[s * LENGTH + t] = (float)(50 + s + t * 0.1 + 20 * sin(t * 1.5707963 + s)));
        m.row[s] = (s + 1) * LENGTH - 1;
        m.first[s] = s * LENGTH;
        double scale = naive_scale(known, LENGTH, 4);
        for (int h = 0; h < 2; h++) {
            double y = (double)(m.target[2 * s + h] =
                                    (float)(50 + s + (LENGTH + h) * 0.1 + 20 * sin((40 + h) * 1.5707963 + s)));
            double f = (double)(m.answer[2 * s + h] = (float)(y + 1)), naive = known[LENGTH - 4 + h];
            const double all[3] = {f, naive, known[LENGTH - 1]};
            for (int a = 0; a < 3; a++) {
                sum[a][0] += fabs(y - all[a]) / (2 * SERIES);
                sum[a][1] += 200 * fabs(y - all[a]) / (fabs(y) + fabs(all[a])) / (2 * SERIES);
                sum[a][2] += fabs(y - all[a]) / scale / (2 * SERIES);
            }
        }
    }
    m.d = (dataset){.samples = SERIES, .streams = 1, .target_width = 2, .target = m.target, .held = SERIES};
    m.d.stream[0] = (stream){
        .name = "series", .series = table_of(COLUMN_F32, SERIES * LENGTH, 1, m.value), .row = m.row, .first = m.first};
    m.d.panel = SERIES;
    m.d.panel_names = names;
    m.d.panel_first = first;
    skill_table t = table_for(&(skill_input){.data = &m.d,
        .samples = part_of((span){0, SERIES}),
        .task = METRIC_SERIES,
        .answer = m.answer,
        .width = 2,
        .season = 4});
    const skill_row *r = t.group[0].row;
    assert_true(t.series && t.units == SERIES && t.block == 1 && t.groups == 1 && t.rows == 4 && t.trivials == 2);
    for (int k = 0; k < 4; k++) assert_int_equal(t.trivial[r[k].best], TRIVIAL_SEASONAL);
    for (int k = 0; k < 3; k++) near(r[k + 1].score, sum[0][k]);
    for (int k = 0; k < 3; k++) near(r[k + 1].trivial[1], sum[1][k]);
    for (int k = 0; k < 3; k++) near(r[k + 1].trivial[0], sum[2][k]);
    skill_done(&t);
    check_window(SERIES, LENGTH);
}

// Instruments

// The scores of forecasts of several instruments, whose rows and first rows are in the market `m`.
static skill_table table_of_panel(const char *const *names, const int64_t *first, int panel) {
    m.d.streams = 1;
    m.d.stream[0] = (stream){
        .name = "fast", .series = table_of(COLUMN_F32, first[panel], 1, m.value), .row = m.row, .first = m.first};
    m.d.panel = panel;
    m.d.panel_names = names;
    m.d.panel_first = first;
    skill_input in = {.data = &m.d, .samples = part_of((span){0, N}), .task = METRIC_FORECASTS, .answer = m.answer};
    in.width = 3;
    in.at = 1;
    in.season = 1;
    return table_for(&in);
}

// Two instruments of which one is forecast and one is not. Both have each moment; together they have all samples.
static void instruments_have_groups_of_their_own(void **state) {
    static const char *const names[] = {"GOLD", "NONE", "EURO"};
    static const int64_t first[] = {0, 300, 400, 700};
    dice w = {.seed = 8};
    (void)state;
    make_targets("path", 0);
    for (int i = 0; i < N; i++) {
        bool gold = i % 2 == 0;
        m.time[i] = 3600 * (i / 2);
        m.end[i] = m.time[i] + 30 * 3600;
        m.row[i] = (gold ? 0 : 400) + i / 2;
        m.first[i] = gold ? 0 : 400;
        if (!gold) m.answer[3 * i + 1] = m.answer[3 * i + 2] = 0.3f * dice_unit(&w);
    }
    skill_table t = table_of_panel(names, first, 3);
    assert_true(t.groups == 3 && t.units == N / 2 && t.block == 30 && !t.series);
    assert_null(t.group[0].name);
    assert_string_equal(t.group[1].name, "GOLD");
    assert_string_equal(t.group[2].name, "EURO");
    assert_true(t.group[0].samples == N && t.group[1].samples == N / 2 && t.group[2].samples == N / 2);
    double all = t.group[0].row[0].score, gold = t.group[1].row[0].score, euro = t.group[2].row[0].score;
    near(all * all, (gold * gold + euro * euro) / 2);
    assert_int_equal(skill_judge(&t.group[1].row[0]), SKILL_BETTER);
    assert_int_equal(skill_judge(&t.group[2].row[0]), SKILL_WORSE);
    json_decref(m.d.about);
    skill_done(&t);
}

// An instrument that came into the market late has one or two moments, or one fewer than two blocks: scores, but no
// interval, so that nobody calls it better or worse. The others keep theirs.
static void instruments_of_few_moments_are_not_judged(void **state) {
    static const char *const names[] = {"GOLD", "LATE"};
    static const int64_t first[] = {0, 700, 1400};
    static const int moments[] = {1, 2, 19, 20};
    (void)state;
    for (size_t k = 0; k < sizeof moments / sizeof *moments; k++) {
        int late = moments[k];
        make_targets("path", 0);
        for (int i = 0; i < N; i++) { // at its last moments, beside the other one
            int both = N - 2 * late, at = i < both ? i : both + (i - both) / 2;
            bool is = i >= both && (i - both) % 2;
            m.time[i] = 3600 * at;
            m.end[i] = m.time[i] + 10 * 3600;
            m.row[i] = (is ? 700 : 0) + at;
            m.first[i] = is ? 700 : 0;
            if (is) m.answer[3 * i + 1] = m.answer[3 * i + 2] = -5;
        }
        skill_table t = table_of_panel(names, first, 2);
        assert_true(t.groups == 3 && t.units == N - late && t.block == 10);
        assert_true(t.group[2].samples == late && t.group[2].units == late && t.group[1].units == t.units);
        assert_int_equal(skill_judge(&t.group[1].row[0]), SKILL_BETTER);
        assert_int_equal(skill_judge(&t.group[2].row[0]), late < 20 ? SKILL_OPEN : SKILL_WORSE);
        assert_true(!isnan(t.group[2].row[0].skill) && isnan(t.group[2].row[0].score_range.low) == (late < 20));
        json_decref(m.d.about);
        skill_done(&t);
    }
}

// Without answers there is nothing to tell by instrument.
static void trivial_answers_alone_have_one_group(void **state) {
    static const char *const names[] = {"GOLD", "EURO"};
    static const int64_t first[] = {0, 300, 600};
    (void)state;
    make_targets("path", 0);
    for (int i = 0; i < N; i++) m.row[i] = m.first[i] = i % 2 * 300;
    m.d.streams = 1;
    m.d.stream[0] = (stream){.name = "fast", .row = m.row, .first = m.first};
    m.d.panel = 2;
    m.d.panel_names = names;
    m.d.panel_first = first;
    skill_input in = {.data = &m.d, .samples = part_of((span){0, N}), .task = METRIC_FORECASTS, .season = 1};
    skill_table t = table_for(&in);
    assert_true(t.groups == 1 && t.group[0].samples == N && t.group[0].row[0].trivial[0] > 0);
    json_decref(m.d.about);
    skill_done(&t);
}

// An interval that holds 0 tells nothing.
static void intervals_are_judged_by_their_ends(void **state) {
    (void)state;
    static const struct {
        interval of;
        skill_verdict want;
    } all[] = {{{0.1, 0.2}, SKILL_BETTER}, {{-0.1, 0.2}, SKILL_EQUAL}, {{0, 0.2}, SKILL_EQUAL},
        {{-0.2, 0}, SKILL_EQUAL}, {{-0.2, -0.1}, SKILL_WORSE}, {{NAN, NAN}, SKILL_OPEN}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(skill_judge(&(skill_row){.skill_range = all[i].of}), all[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_compared_with_majority_and_prior),
        cmocka_unit_test(no_better_and_worse_are_told_apart),
        cmocka_unit_test(intervals_are_judged_by_their_ends),
        cmocka_unit_test(forecasts_are_compared_by_kind),
        cmocka_unit_test(series_are_compared_with_their_season),
        cmocka_unit_test(instruments_have_groups_of_their_own),
        cmocka_unit_test(instruments_of_few_moments_are_not_judged),
        cmocka_unit_test(trivial_answers_alone_have_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
