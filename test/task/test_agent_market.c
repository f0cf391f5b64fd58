// The arrays of an agent's market against the dataset that they are made of; stretches of parts; what is refused.
#include "task/agent_market.h"

#include "cpu/cpu.h"
#include "data/frame.h"
#include "data/synthetic.h"
#include "data/walk.h"
#include "data/when.h"
#include "rl/scene.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BARS = 1500, SYMBOLS = 2, LAGS = 6, SPAN = 900, SLOW = 3600, WORDS_MOST = 64 };

static const char *const fast_features[] = {"return", "body"}, *const slow_features[] = {"return"};

static const account_terms terms = {.cash = 10000,
    .leverage = 2,
    .contract = 1,
    .point = 0.01,
    .shorts = true,
    .day_close = true,
    .spread = {0, ACCOUNT_FROM_FILE},
    .slippage = {3, ACCOUNT_PER_POINT}};

// Two instruments, the second one shorter, with a coarser frame; bars from `changed` on are others.
static dataset *make_set(int64_t count, int64_t changed) {
    static const char *const symbols[SYMBOLS] = {"AAA", "BBB"};
    build_series of[SYMBOLS] = {{0}};
    bar *fast[SYMBOLS], *slow[SYMBOLS];
    err e = {0};
    for (int k = 0; k < SYMBOLS; k++) {
        int64_t n = count - 100 * k, coarse;
        fast[k] = walk_bars(n, SPAN, 5 + (uint64_t)k);
        for (int64_t i = changed; i < n; i++) walk_scramble(&fast[k][i], 9);
        frame_source from = {fast[k], n, SPAN, false};
        support_ok(frame_make(&from, SLOW, "walk", &slow[k], &coarse, &e), &e);
        of[k] = (build_series){symbols[k], {{"walk", fast[k], n, false}, {"walk", slow[k], coarse, true}}};
    }
    build_source from = {.frames = 2,
        .frame = {{"fast", SPAN, fast_features, 2}, {"slow", SLOW, slow_features, 1}},
        .series = SYMBOLS,
        .of = of};
    dataset *d = build_bars(&from, &build_defaults, NULL, NULL, &e);
    support_ok(d && dataset_check(d, "built", &e), &e);
    d->name = "walk";
    for (int k = 0; k < SYMBOLS; k++) {
        free(fast[k]);
        free(slow[k]);
    }
    return d;
}

static const int64_t window[STREAMS_MOST] = {LAGS, 1};

static split parts_of(const dataset *d) {
    split s;
    err e = {0};
    support_ok(
        split_make(d, window, &(split_options){.train = 0.6, .validation = 0.2, .purge = PURGE_LABELS}, &s, &e), &e);
    return s;
}

static scaler *fit(const dataset *d, const split *s) {
    err e = {0};
    scaler *sc = scaler_fit(d, &s->train, window, false, &e);
    support_ok(sc != NULL, &e);
    return sc;
}

static void make(agent_market *m, const dataset *d, const scaler *s) {
    err e = {0};
    support_ok(agent_market_make(m, d, LAGS, s, &terms, &e), &e);
}

static int64_t fixed(double v) {
    int64_t to;
    assert_true(account_fixed(v, &to));
    return to;
}

static void check_bar(const agent_market *m, int64_t row, const bar *b, const bar *before) {
    const account_bar *is = &m->bar[row];
    const int32_t *calendar = m->calendar + row * MARKET_COLUMNS;
    assert_true(is->open == fixed(b->open) && is->high == fixed(b->high) && is->low == fixed(b->low));
    assert_true(is->close == fixed(b->close) && is->spread == fixed(b->spread * 0.01));
    assert_int_equal(calendar[MARKET_NIGHTS], b->time / WHEN_DAY - before->time / WHEN_DAY);
    assert_int_equal(calendar[MARKET_CLOCK], b->end % WHEN_DAY);
    if (before->time >= b->time) return;
    assert_int_equal(calendar[MARKET_ENDS - MARKET_COLUMNS], before->time / WHEN_DAY != b->time / WHEN_DAY);
}

static int64_t width_of(const agent_market *m) {
    return (int64_t)m->lagged + m->once;
}

// A row's features as they are observed.
static const float *observed(const agent_market *m, int64_t row) {
    static float as[256];
    int64_t width = width_of(m);
    assert_true(width <= 256);
    for (int64_t c = 0; c < width; c++) as[c] = market_feature(m->feature + row * width, m->scale, width, c);
    return as;
}

// Scaled as (x - mean) / std, in fp32.
static void check_features(const float *is, const dataset *d, const scaler *s, int64_t sample) {
    for (int k = 0; k < d->streams; k++)
        for (int64_t c = 0; c < d->stream[k].series.width; c++, is++) {
            float x = table_floats(&d->stream[k].series)[d->stream[k].row[sample] * d->stream[k].series.width + c];
            float should = (x - s->mean[k][c]) / s->std[k][c];
            assert_true(fabsf(*is - should) <= 1e-5f + 1e-5f * fabsf(should));
        }
    float vector[128];
    assert_true(d->vector.width > 0 && d->vector.width <= 128);
    table_read(&d->vector, sample, 1, vector);
    assert_memory_equal(is, vector, (size_t)d->vector.width * sizeof *vector);
}

static int64_t row_of(const agent_market *m, const dataset *d, int64_t sample) {
    int64_t k = dataset_panel_of(d, sample);
    return m->start[k + 1] - d->stream[0].bars.start[k + 1] + dataset_bar_of(d, sample);
}

static void rows_are_the_samples(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    split parts = parts_of(d);
    scaler *s = fit(d, &parts);
    agent_market m;
    make(&m, d, s);
    const bar_table *bars = &d->stream[0].bars;
    int64_t next[SYMBOLS] = {m.start[0], m.start[1]};
    uint8_t *seen = calloc((size_t)m.rows, 1);
    assert_non_null(seen);
    assert_int_equal(m.rows, dataset_all(d));
    assert_int_equal(m.lagged, 2);
    assert_int_equal(m.once, 1 + d->vector.width);
    assert_true(d->unlabelled > 0);
    for (int64_t i = 0; i < dataset_all(d); i++) {
        int64_t k = dataset_panel_of(d, i), at = dataset_bar_of(d, i), row = row_of(&m, d, i);
        bar b = dataset_bar(bars, at), before = dataset_bar(bars, at - 1);
        assert_true(row >= m.start[k] && row < m.start[k + 1] && !seen[row]++);
        if (i < d->samples) assert_true(row >= next[k]); // in order of time
        next[k] = row;
        if (row == m.start[k]) before.time = b.time - (int64_t)m.calendar[row * MARKET_COLUMNS] * WHEN_DAY;
        check_bar(&m, row, &b, &before);
        check_features(observed(&m, row), d, s, i);
    }
    for (int k = 0; k < SYMBOLS; k++) assert_int_equal(m.rules[k].slippage.price, fixed(0.03));
    free(seen);
    agent_market_done(&m);
    agent_market_done(&m);
    scaler_free(s);
    dataset_free(d);
}

// Times of the samples of a part.
static void times_of(const dataset *d, const split_part *part, int64_t *from, int64_t *to) {
    *from = d->time[part_first(part)];
    *to = d->time[part_end(part) - 1];
}

static void parts_keep_to_their_time(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    split s = parts_of(d);
    agent_market m;
    make(&m, d, NULL);
    const split_part *part[] = {&s.train, &s.validation, &s.test};
    const bar_table *bars = &d->stream[0].bars;
    int64_t before = 0;
    for (int i = 0; i < 3; i++) {
        agent_stretches p;
        err e = {0};
        int64_t from, to, orders = 0;
        times_of(d, part[i], &from, &to);
        support_ok(agent_market_part(&p, &m, d, part[i], "some", 0, &e), &e);
        assert_int_equal(p.count, SYMBOLS);
        for (int64_t k = 0; k < p.count; k++) {
            const market_stretch *x = &p.item[k];
            int64_t shift = bars->start[k + 1] - m.start[k + 1];
            assert_int_equal(x->rules, k);
            assert_int_equal(x->before, orders);
            orders += x->end - x->first - 1;
            assert_true(x->first >= m.start[k] + LAGS - 1 && x->end <= m.start[k + 1]);
            // All of the part's bars, and none beside.
            int64_t first = dataset_bar(bars, x->first + shift).end, last = dataset_bar(bars, x->end - 1 + shift).end;
            assert_true(first >= from && last <= to);
            if (i) assert_true(dataset_bar(bars, x->first - 1 + shift).end < from);
            if (!i) assert_int_equal(x->first, m.start[k] + LAGS - 1);
            // The last moment may be cut between instruments.
            assert_true(dataset_bar(bars, x->end + shift).end >= to || i == 2);
        }
        assert_int_equal(p.orders, orders);
        assert_true(from > before);
        before = to;
        agent_stretches_done(&p);
        agent_stretches_done(&p);
    }
    agent_market_done(&m);
    dataset_free(d);
}

// Spans of a part become stretches of their own.
static void gaps_are_not_traded_over(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    agent_market m;
    agent_stretches p;
    err e = {0};
    make(&m, d, NULL);
    split_part part = part_of((span){200, 300});
    part_add(&part, (span){700, 2}); // a bar of each instrument
    part_add(&part, (span){900, 400});
    support_ok(agent_market_part(&p, &m, d, &part, "train", 0, &e), &e);
    assert_int_equal(p.count, 2 * SYMBOLS);
    for (int k = 0; k < SYMBOLS; k++)
        assert_true(p.item[k].end < p.item[k + SYMBOLS].first && p.item[k].rules == p.item[k + SYMBOLS].rules);
    agent_stretches_done(&p);
    agent_market_done(&m);
    dataset_free(d);
}

static void an_environment_trades_a_part(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    split s = parts_of(d);
    scaler *sc = fit(d, &s);
    agent_market m;
    agent_stretches p;
    err e = {0};
    make(&m, d, sc);
    support_ok(agent_market_part(&p, &m, d, &s.validation, "validation", 50, &e), &e);
    agent_world w = {.env = {.limit = 50, .market = {.size = 1.9, .ruin = 0.5}}};
    agent_market_world(&m, &p, &w);
    assert_true(w.parts == MARKET_PARTS && w.env.market.day_close);
    env_data data = {.rows = w.part[0].shape.dim[0]};
    for (int k = 0; k < w.parts; k++) data.part[k] = w.part[k].data;
    assert_int_equal(w.part[MARKET_RULES].shape.dim[1] * 8, sizeof(account_rules));
    int64_t *words = calloc(WORDS_MOST, sizeof *words), columns = env_shape_of(&w.env).observation, ends[3] = {0};
    float *seen = calloc(2 * (size_t)columns, sizeof *seen);
    assert_true(words && seen && columns == LAGS * m.lagged + m.once + MARKET_OWN);
    dice die = {.seed = 3};
    const market_state *at = (market_state *)((env_head *)words + 1);
    for (uint64_t i = 0; i < 20000; i++) {
        env_result r;
        float action = (float)dice_below(&die, 3);
        env_see_rows(&w.env, &data, (env_dice){2, i, 0}, words, seen, 0, 1);
        assert_memory_equal(seen + (LAGS - 1) * m.lagged, observed(&m, at->row), (size_t)width_of(&m) * sizeof *seen);
        assert_memory_equal(seen, observed(&m, at->row - (LAGS - 1)), (size_t)m.lagged * sizeof *seen);
        env_take_rows(&w.env, &data, words, &action, &r, seen + columns, 0, 1);
        assert_true(at->row > p.item[at->rules].first && at->row < p.item[at->rules].end);
        ends[r.end]++;
    }
    assert_true(ends[ENV_TRUNCATED] >= 390);
    free(words);
    free(seen);
    agent_stretches_done(&p);
    agent_market_done(&m);
    scaler_free(sc);
    dataset_free(d);
}

// Two iterations of an agent on a training part and a pass over validation, from the same seed.
static void train(const agent_settings *s, agent_report *r, agent_score *score) {
    err e = {0};
    model_spec net = scene_net();
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    agent *a = q ? agent_new(&(agent_place){.device = &cpu_device, .queue = q}, s, &net, &e) : NULL;
    support_ok(a != NULL, &e);
    support_ok(agent_iterate(a, r, &e) && agent_iterate(a, r, &e) && agent_evaluate(a, score, &e), &e);
    agent_free(a);
    cpu_device.close(q);
}

static void an_agent_trains_on_a_part(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    split parts = parts_of(d);
    scaler *sc = fit(d, &parts);
    agent_market m;
    agent_stretches p[2];
    err e = {0};
    make(&m, d, sc);
    support_ok(agent_market_part(&p[0], &m, d, &parts.train, "train", 20, &e), &e);
    support_ok(agent_market_part(&p[1], &m, d, &parts.validation, "validation", 0, &e), &e);
    for (int k = 0; k < 2; k++) {
        agent_settings s = scene_cartpole(3);
        agent_report r[2];
        agent_score score[2];
        s.world.env = (env_settings){.limit = 20, .market = {.size = 1, .ruin = 0.5, .continuous = k}};
        s.test.env = (env_settings){.market = {.size = 1, .ruin = 0.5, .continuous = k, .from_first = true}};
        agent_market_world(&m, &p[0], &s.world);
        agent_market_world(&m, &p[1], &s.test);
        s.tests = p[1].count;
        for (int i = 0; i < 2; i++) train(&s, &r[i], &score[i]);
        assert_true(r[0].loss == r[1].loss && isfinite(r[0].loss) && r[0].ep_len_mean == 20);
        assert_true(score[0].mean == score[1].mean && isfinite(score[0].mean));
        // One environment for every stretch, from its first bar to its last.
        assert_true(score[0].episodes == p[1].count && score[0].length == (double)p[1].orders / (double)p[1].count);
    }
    agent_stretches_done(&p[0]);
    agent_stretches_done(&p[1]);
    agent_market_done(&m);
    scaler_free(sc);
    dataset_free(d);
}

// Rows before a change are the same to the bit, scaled as the training part has it.
static void later_bars_change_no_earlier_row(void **state) {
    (void)state;
    enum { CHANGED = 1350 };
    agent_market m[2];
    dataset *d[2];
    for (int k = 0; k < 2; k++) {
        d[k] = make_set(BARS, k ? CHANGED : BARS);
        split s = parts_of(d[k]);
        scaler *sc = fit(d[k], &s);
        make(&m[k], d[k], sc);
        scaler_free(sc);
    }
    assert_int_equal(m[0].rows, m[1].rows);
    size_t width = (size_t)(m[0].lagged + m[0].once);
    for (int k = 0; k < SYMBOLS; k++) {
        int64_t at = m[0].start[k],
                gone = d[0]->stream[0].bars.start[k + 1] - d[0]->stream[0].bars.start[k] - (m[0].start[k + 1] - at);
        size_t same = (size_t)(CHANGED - gone);
        assert_memory_equal(m[0].bar + at, m[1].bar + at, same * sizeof *m->bar);
        assert_memory_equal(
            m[0].feature + (size_t)at * width, m[1].feature + (size_t)at * width, same * width * sizeof(float));
        assert_memory_equal(m[0].scale, m[1].scale, 2 * width * sizeof(float));
        assert_memory_equal(m[0].calendar + at * MARKET_COLUMNS, m[1].calendar + at * MARKET_COLUMNS,
            same * MARKET_COLUMNS * sizeof(int32_t));
        assert_true(m[0].bar[at + (int64_t)same].close != m[1].bar[at + (int64_t)same].close);
    }
    for (int k = 0; k < 2; k++) {
        agent_market_done(&m[k]);
        dataset_free(d[k]);
    }
}

static void complains(bool ok, const err *e, const char *text) {
    if (ok || e->kind != ERR_INPUT || !strstr(e->text, text)) fail_msg("\"%s\" does not say %s", e->text, text);
}

// Two folds: arrays of one of them, a scale of each.
static void folds_read_one_set_of_arrays(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    split parts = parts_of(d), later = parts;
    later.train = parts.test;
    scaler *of[2] = {fit(d, &parts), fit(d, &later)};
    agent_market m[2], own;
    err e = {0};
    make(&m[0], d, of[0]);
    make(&own, d, of[1]);
    support_ok(agent_market_like(&m[1], &m[0], d, of[1], &e), &e);
    assert_true(m[1].feature == m[0].feature && m[1].bar == m[0].bar && m[1].scale != m[0].scale);
    size_t width = (size_t)width_of(&own);
    assert_memory_equal(m[1].scale, own.scale, 2 * width * sizeof(float));
    assert_memory_equal(m[1].feature, own.feature, (size_t)own.rows * width * sizeof(float));
    assert_true(memcmp(m[0].scale, own.scale, 2 * width * sizeof(float)) != 0);
    agent_market_done(&m[1]);
    for (int64_t i = 0; i < dataset_all(d); i++) check_features(observed(&m[0], row_of(&m[0], d, i)), d, of[0], i);
    of[1]->value[0][0] = INFINITY;
    complains(agent_market_like(&m[1], &m[0], d, of[1], &e), &e, "walk: feature 1 of 20");
    assert_null(m[1].bar);
    agent_market_done(&m[0]);
    agent_market_done(&own);
    for (int k = 0; k < 2; k++) scaler_free(of[k]);
    dataset_free(d);
}

static void mistakes_are_named(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS), *made;
    split s = parts_of(d);
    agent_market m;
    agent_stretches p;
    err e = {0};
    made = synthetic_new(&(synthetic_options){.bars = 500, .seed = 1, .strength = 1}, &e);
    support_ok(made != NULL, &e);
    complains(agent_market_make(&m, made, LAGS, NULL, &terms, &e), &e, "synthetic: keeps no bars to trade on; use");
    assert_null(m.bar);
    complains(agent_market_make(&m, d, 4000, NULL, &terms, &e), &e, "agent.lags: 4000 lags of 2 features and");
    make(&m, d, NULL);
    complains(agent_market_part(&p, &m, d, &s.test, "test", 5000, &e), &e,
        "walk: is shorter than an episode: the part test has ");
    assert_null(p.item);
    split_part bar_each = part_of((span){700, 2});
    complains(agent_market_part(&p, &m, d, &bar_each, "train", 0, &e), &e, "has no two bars in a row to trade on");
    agent_market_done(&m);
    dataset holed = *d;
    holed.unlabelled--;
    complains(agent_market_make(&m, &holed, LAGS, NULL, &terms, &e), &e, "walk: has bars without samples");
    int64_t width = d->stream[1].series.width, row = d->stream[1].row[d->samples - 1];
    ((float *)table_floats(&d->stream[1].series))[row * width] = NAN;
    complains(agent_market_make(&m, d, LAGS, NULL, &terms, &e), &e, "walk: feature 3 of 2024-");
    dataset_free(made);
    dataset_free(d);
}

// The longest stretch has as many bars as an episode needs, or one too few.
static void an_episode_just_fits(void **state) {
    (void)state;
    dataset *d = make_set(BARS, BARS);
    agent_market m;
    agent_stretches p;
    err e = {0};
    make(&m, d, NULL);
    split_part part = part_of((span){400, 201});
    support_ok(agent_market_part(&p, &m, d, &part, "train", 0, &e), &e);
    int64_t longest = 0;
    for (int64_t k = 0; k < p.count; k++)
        if (p.item[k].end - p.item[k].first > longest) longest = p.item[k].end - p.item[k].first;
    int64_t kept = 0;
    for (int64_t k = 0; k < p.count; k++) kept += p.item[k].end - p.item[k].first == longest;
    agent_stretches_done(&p);
    support_ok(agent_market_part(&p, &m, d, &part, "train", longest - 1, &e), &e);
    assert_int_equal(p.count, kept); // shorter ones are left out
    assert_true(kept < SYMBOLS);
    agent_stretches_done(&p);
    complains(agent_market_part(&p, &m, d, &part, "train", longest, &e), &e, "is shorter than an episode");
    agent_market_done(&m);
    dataset_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_samples),
        cmocka_unit_test(parts_keep_to_their_time),
        cmocka_unit_test(gaps_are_not_traded_over),
        cmocka_unit_test(an_environment_trades_a_part),
        cmocka_unit_test(an_agent_trains_on_a_part),
        cmocka_unit_test(later_bars_change_no_earlier_row),
        cmocka_unit_test(folds_read_one_set_of_arrays),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(an_episode_just_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
