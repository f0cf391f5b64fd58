// Folds against a definition that looks at every pair of samples, on random datasets of every kind: with times and
// labels' ends, several interleaved series, ready-made windows, neither; the lists of doc/walk.md; calendars; and what
// is refused.
#include "data/scheme.h"

#include "data/when.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 260, DAY = 86400 };

typedef struct {
    dataset d;
    int64_t time[MOST], end[MOST];
    int32_t row[2][MOST], first[2][MOST];
    int64_t window[2];
} made;

typedef enum { PLAIN, ENDS, SERIES, SERIES_ENDS, WINDOWS, KINDS } made_kind;

// Series a to d have a sample at most moments, d at every fifth. The second stream has a row for every third of the
// first. Labels end after up to 9 minutes, one in twenty after up to 40.
static void make(made *m, made_kind kind, uint64_t seed) {
    dice d = {.seed = seed};
    int64_t n = 60 + (int64_t)dice_below(&d, MOST - 60), rows[4] = {0};
    int series = kind == SERIES || kind == SERIES_ENDS ? 4 : 1, next = 0;
    *m = (made){.d = {.name = "made", .samples = n, .horizon = (int64_t)dice_below(&d, 7)}};
    m->window[0] = 1 + (int64_t)dice_below(&d, 6);
    m->window[1] = 1 + (int64_t)dice_below(&d, 3);
    for (int64_t i = 0, now = 0; i < n; i++) {
        int s = next;
        m->time[i] = 60 * now;
        m->end[i] = 60 * (now + (int64_t)dice_below(&d, dice_below(&d, 20) ? 10 : 41));
        bool apart = kind == WINDOWS && seed % 2;
        m->first[0][i] = (int32_t)(apart ? 5 * i : 500 * s);
        m->row[0][i] = (int32_t)(apart ? 5 * i + 4 : 500 * s + rows[s]);
        m->first[1][i] = 200 * s;
        m->row[1][i] = (int32_t)(200 * s + rows[s] / 3);
        rows[s]++;
        do next++;
        while (next < series && (dice_below(&d, 8) == 0 || (next == 3 && now % 5)));
        if (next < series) continue;
        next = 0;
        now += 1 + (int64_t)(dice_below(&d, 6) == 0);
    }
    if (kind == ENDS || kind == SERIES_ENDS) m->d.end = m->end;
    if (kind != PLAIN && kind != WINDOWS) m->d.time = m->time;
    if (kind == WINDOWS) m->d.window[0] = 5;
    if (kind == PLAIN) return;
    m->d.streams = kind == WINDOWS ? 1 : 2;
    m->d.panel = series > 1 ? series : 0;
    for (int k = 0; k < m->d.streams; k++)
        m->d.stream[k] =
            (stream){.name = "s", .series = {.rows = 2000, .width = 1}, .row = m->row[k], .first = m->first[k]};
}

// Pairs

static bool plain_label(const made *m, int64_t early, int64_t late) {
    const dataset *d = &m->d;
    if (d->end) return m->time[late] <= m->end[early];
    if (!d->streams) return late <= early + d->horizon;
    if (d->window[0] && late <= early + d->horizon) return true;
    return m->first[0][early] == m->first[0][late] && m->row[0][late] <= m->row[0][early] + d->horizon;
}

// A window of the late one has a bar of the early one, or of a sample of its series that its label reaches.
static bool plain_seen(const made *m, int64_t early, int64_t late) {
    for (int k = 0; k < m->d.streams; k++)
        for (int64_t s = early; s <= late; s++) {
            if (m->first[k][s] != m->first[k][early] || m->first[k][late] != m->first[k][early]) continue;
            if (s != early && !plain_label(m, early, s)) continue;
            if (m->row[k][late] - (m->window[k] - 1) <= m->row[k][s]) return true;
        }
    return false;
}

static int64_t moments_of(const made *m, int64_t *first) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->d.samples; i++)
        if (!i || !m->d.time || m->time[i] != m->time[i - 1]) first[n++] = i;
    first[n] = m->d.samples;
    return n;
}

static int64_t clamp(int64_t v, int64_t most) {
    return v < 0 ? 0 : v > most ? most : v;
}

static void fill(bool *set, int64_t from, int64_t to, bool value) {
    for (int64_t i = from; i < to; i++) set[i] = value;
}

static void same(const split_part *p, const bool *must, int64_t n, const char *what, int64_t fold) {
    bool is[MOST] = {0};
    for (int64_t i = 0; i < p->count; i++) is[part_sample(p, i)] = true;
    for (int64_t i = 0; i < n; i++)
        if (is[i] != must[i])
            fail_msg(
                "fold %lld: sample %lld %s %s", (long long)fold, (long long)i, is[i] ? "is in" : "is missing in", what);
}

// Removes samples before a later part from a set: those of the gap, and those that share something with [from, end).
static void plain_before(const made *m, const scheme *s, int64_t gap, int64_t begin, int64_t end, bool *set) {
    fill(set, gap, begin, false);
    for (int64_t i = 0; s->purge < 0 && i < gap; i++)
        for (int64_t k = gap; k < end; k++)
            if (plain_label(m, i, k) || (s->purge == PURGE_WINDOWS && plain_seen(m, i, k))) set[i] = false;
}

// Walk-forward by moments

static void check_walk(const made *m, const scheme *s) {
    int64_t first[MOST + 1], n = moments_of(m, first), all = 0;
    int64_t step = s->step.count ? s->step.count : s->test.count;
    err e;
    scheme_folds f;
    for (int64_t k = 0;; k++) {
        int64_t test = s->train.count + s->validation.count + k * step;
        all += test < n;
        if (test + s->test.count >= n) break;
    }
    if (!scheme_make(&m->d, s, &f, &e)) {
        assert_int_equal(e.kind, ERR_INPUT);
        if (!all) assert_non_null(strstr(e.text, "too few for a fold"));
        if (all) assert_non_null(strstr(e.text, "can be trained"));
        return;
    }
    assert_int_equal(f.all, all);
    assert_int_equal(f.count, s->folds && s->folds < all ? s->folds : all);
    for (int64_t i = 0; i < f.count; i++) {
        const split *p = &f.fold[i].parts;
        int64_t k = f.fold[i].number, a = s->train.count + k * step, b = a + s->validation.count;
        int64_t back = s->embargo.count + (s->purge > 0 ? s->purge : 0), end = first[clamp(b + s->test.count, n)];
        bool train[MOST] = {0}, validation[MOST] = {0}, test[MOST] = {0};
        assert_int_equal(k, all - f.count + i);
        fill(train, first[s->kind == SCHEME_ROLLING ? k * step : 0], first[a], true);
        fill(validation, first[a], first[b], true);
        fill(test, first[b], end, true);
        plain_before(m, s, first[clamp(a - back, n)], first[a], end, train);
        plain_before(m, s, first[clamp(b - back, n)], first[b], end, validation);
        same(&p->train, train, m->d.samples, "training", k);
        same(&p->validation, validation, m->d.samples, "validation", k);
        same(&p->test, test, m->d.samples, "test", k);
        bool whole = p->train.count && p->test.count && (p->validation.count || !s->validation.count);
        assert_int_equal(f.fold[i].why[0] == 0, whole);
    }
    scheme_done(&f);
}

static int64_t some_purge(dice *d) {
    static const int64_t purges[] = {PURGE_LABELS, PURGE_WINDOWS, 0, 3};
    return purges[dice_below(d, 4)];
}

static void walks_agree_with_every_pair(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (support_sanitized() ? 60u : 400u); seed++) {
        made m;
        dice d = {.seed = seed * 77};
        make(&m, (made_kind)(seed % KINDS), seed);
        scheme s = {.kind = dice_below(&d, 2) ? SCHEME_ROLLING : SCHEME_EXPANDING, .purge = some_purge(&d)};
        s.window = m.window;
        s.train.count = 10 + (int64_t)dice_below(&d, 50);
        s.validation.count = (int64_t)dice_below(&d, 15);
        s.test.count = 1 + (int64_t)dice_below(&d, 20);
        s.step.count = (int64_t)dice_below(&d, 3) ? 0 : 1 + (int64_t)dice_below(&d, 30);
        s.embargo.count = (int64_t)dice_below(&d, 2) * (int64_t)dice_below(&d, 6);
        s.folds = (int64_t)dice_below(&d, 3);
        check_walk(&m, &s);
    }
}

// Combinations

static void plain_after(const made *m, const scheme *s, const int64_t *first, int64_t n, span test, bool *set) {
    int64_t past = test.first + test.count, end = past, k = 0;
    for (int64_t i = end; s->purge < 0 && i < m->d.samples; i++)
        for (int64_t t = test.first; t < end; t++)
            if (plain_label(m, t, i) || plain_seen(m, t, i)) {
                set[i] = false;
                past = i + 1;
            }
    while (first[k] < past) k++;
    if (s->purge > 0) past = first[k = clamp(k + s->purge, n)];
    if (s->purge > 0) fill(set, end, past, false);
    if (s->embargo.count) fill(set, past, first[clamp(k + s->embargo.count, n)], false);
}

static void check_combination(const made *m, const scheme *s, const scheme_folds *f, const scheme_fold *fold) {
    int64_t first[MOST + 1], n = moments_of(m, first), samples = m->d.samples;
    bool train[MOST], validation[MOST] = {0}, tested[SCHEME_GROUPS_MOST + 1] = {0}, test[MOST] = {0};
    int last = s->groups - 1;
    fill(train, 0, samples, true);
    for (int i = 0; i < s->tests; i++) tested[fold->group[i]] = true;
    while (tested[last]) last--;
    int64_t to = n * (last + 1) / s->groups, from = to - s->validation.count;
    if (from < n * last / s->groups) from = n * last / s->groups;
    fill(validation, first[from], first[to], true);
    fill(train, first[from], first[to], false);
    for (int g = 0, end; g < s->groups; g = end + 1) {
        for (end = g; tested[end]; end++) continue;
        span t = {first[n * g / s->groups], first[n * end / s->groups] - first[n * g / s->groups]};
        if (!t.count) continue;
        int64_t begin = n * g / s->groups, gap = first[clamp(begin - (s->purge > 0 ? s->purge : 0), n)];
        bool *sets[] = {train, validation};
        fill(test, t.first, t.first + t.count, true);
        fill(train, t.first, t.first + t.count, false);
        for (int k = 0; k < 2; k++) {
            plain_before(m, s, gap, t.first, t.first + t.count, sets[k]);
            plain_after(m, s, first, n, t, sets[k]);
        }
    }
    if (from < to)
        plain_before(m, s, first[clamp(from - (s->purge > 0 ? s->purge : 0), n)], first[from], first[to], train);
    same(&fold->parts.train, train, samples, "training", fold->number);
    same(&fold->parts.validation, validation, samples, "validation", fold->number);
    same(&fold->parts.test, test, samples, "test", fold->number);
    assert_int_equal(f->groups, s->groups);
}

static void combinations_agree_with_every_pair(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (support_sanitized() ? 20u : 100u); seed++) {
        made m;
        err e;
        scheme_folds f;
        dice d = {.seed = seed * 91};
        make(&m, (made_kind)(seed % KINDS), seed);
        scheme s = {.kind = SCHEME_CPCV, .purge = some_purge(&d), .groups = 2 + (int)dice_below(&d, 6)};
        s.window = m.window;
        s.tests = 1 + (int)dice_below(&d, (uint64_t)s.groups - 1);
        s.validation.count = (int64_t)dice_below(&d, 12);
        s.embargo.count = (int64_t)dice_below(&d, 2) * (int64_t)dice_below(&d, 6);
        if (!scheme_make(&m.d, &s, &f, &e)) {
            assert_non_null(strstr(e.text, "can be trained"));
            continue;
        }
        for (int64_t i = 0; i < f.count; i++) check_combination(&m, &s, &f, &f.fold[i]);
        scheme_done(&f);
    }
}

// Every path has every group once; every choice of groups is there once.
static void check_paths(int groups, int tests, int64_t folds, int paths) {
    err e;
    scheme_folds f;
    dataset d = {.samples = 1000, .horizon = 1};
    scheme s = {.kind = SCHEME_CPCV, .groups = groups, .tests = tests, .purge = PURGE_LABELS};
    support_ok(scheme_make(&d, &s, &f, &e), &e);
    assert_int_equal(f.count, folds);
    assert_int_equal(f.paths, paths);
    int *seen = calloc((size_t)(groups * paths), sizeof *seen);
    assert_non_null(seen);
    for (int64_t i = 0; i < f.count; i++) {
        int64_t tested = 0;
        for (int k = 0; k < tests; k++) {
            assert_true(f.fold[i].path[k] >= 0 && f.fold[i].path[k] < paths);
            assert_true(!k || f.fold[i].group[k] > f.fold[i].group[k - 1]);
            seen[f.fold[i].group[k] * paths + f.fold[i].path[k]]++;
            tested += f.group[f.fold[i].group[k]].count;
        }
        assert_int_equal(f.fold[i].parts.test.count, tested);
    }
    for (int i = 0; i < groups * paths; i++) assert_int_equal(seen[i], 1);
    free(seen);
    scheme_done(&f);
}

static void folds_and_paths_are_counted(void **state) {
    (void)state;
    check_paths(6, 2, 15, 5);
    check_paths(10, 2, 45, 9);
    check_paths(5, 1, 5, 1);
    check_paths(10, 5, 252, 126);
    check_paths(32, 31, 32, 31);
}

// The lists of doc/walk.md

static void put_part(char *to, size_t room, const split_part *p) {
    size_t at = strlen(to);
    for (int i = 0; i < p->spans; i++) {
        int64_t a = p->span[i].first, b = a + p->span[i].count - 1;
        at += (size_t)snprintf(to + at, room - at, "%s%lld", i ? "," : "", (long long)a);
        if (b > a) at += (size_t)snprintf(to + at, room - at, "-%lld", (long long)b);
    }
    snprintf(to + at, room - at, "%s", p->spans ? " | " : "none | ");
}

static void lists_are(const scheme *s, int64_t samples, const char *const *must, int64_t count) {
    err e;
    scheme_folds f;
    dataset d = {.samples = samples, .horizon = 1};
    support_ok(scheme_make(&d, s, &f, &e), &e);
    assert_int_equal(f.count, count);
    for (int64_t i = 0; i < count; i++) {
        char text[200] = "";
        put_part(text, sizeof text, &f.fold[i].parts.train);
        put_part(text, sizeof text, &f.fold[i].parts.validation);
        put_part(text, sizeof text, &f.fold[i].parts.test);
        for (int k = 0; k < s->tests; k++) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%s%d", k ? "," : "", f.fold[i].path[k]);
        }
        assert_string_equal(text, must[i]);
    }
    scheme_done(&f);
}

static void lists_of_the_document(void **state) {
    (void)state;
    static const char *const rolling[] = {"0-3 | 5 | 7-9 | ", "3-6 | 8 | 10-12 | ", "6-9 | 11 | 13-15 | "};
    static const char *const expanding[] = {"0-3 | 5 | 7-9 | ", "0-6 | 8 | 10-12 | ", "0-9 | 11 | 13-15 | "};
    static const char *const cpcv[] = {"7-11 | none | 0-5 | 0,0", "4,10-11 | none | 0-2,6-8 | 1,0",
        "4-7 | none | 0-2,9-11 | 2,0", "0-1,10-11 | none | 3-8 | 1,1", "0-1,7 | none | 3-5,9-11 | 2,1",
        "0-4 | none | 6-11 | 2,2"};
    scheme s = {.kind = SCHEME_ROLLING,
        .train = {EXTENT_MOMENTS, 5},
        .validation = {EXTENT_MOMENTS, 2},
        .test = {EXTENT_MOMENTS, 3},
        .purge = PURGE_LABELS};
    lists_are(&s, 16, rolling, 3);
    s.kind = SCHEME_EXPANDING;
    lists_are(&s, 16, expanding, 3);
    s.folds = 1;
    lists_are(&s, 16, expanding + 2, 1);
    scheme c = {.kind = SCHEME_CPCV, .groups = 4, .tests = 2, .purge = PURGE_LABELS};
    lists_are(&c, 12, cpcv, 6);
}

// Calendars

typedef struct {
    dataset d;
    int64_t time[2000];
} days;

// A sample at noon of every weekday from 2019-01-02 on.
static void make_days(days *m, int64_t n) {
    *m = (days){.d = {.name = "days", .samples = n, .horizon = 0, .time = m->time}};
    int64_t day = when_day(2019, 1, 2);
    for (int64_t i = 0; i < n; day++)
        if (when_weekday(day * DAY) < 5) m->time[i++] = day * DAY + DAY / 2;
}

static void test_is(const days *m, const scheme_fold *f, const char *from, const char *to) {
    char text[32];
    assert_string_equal(when_text(text, 11, m->time[part_first(&f->parts.test)]), from);
    assert_string_equal(when_text(text, 11, m->time[part_end(&f->parts.test) - 1]), to);
}

static void tests_are_months_of_the_calendar(void **state) {
    (void)state;
    static days m;
    err e;
    scheme_folds f;
    char text[32];
    make_days(&m, 400);
    scheme s = {.kind = SCHEME_ROLLING,
        .train = {EXTENT_MONTHS, 6},
        .validation = {EXTENT_MONTHS, 1},
        .test = {EXTENT_MONTHS, 2},
        .purge = 0,
        .embargo = {EXTENT_SECONDS, 3 * DAY}};
    support_ok(scheme_make(&m.d, &s, &f, &e), &e);
    assert_int_equal(f.count, 6);
    test_is(&m, &f.fold[0], "2019-08-01", "2019-09-30");
    test_is(&m, &f.fold[1], "2019-10-01", "2019-11-29");
    test_is(&m, &f.fold[5], "2020-06-01", "2020-07-14"); // ends with the data
    const split *p = &f.fold[1].parts;
    assert_string_equal(when_text(text, 11, m.time[part_first(&p->train)]), "2019-03-01");
    assert_string_equal(
        when_text(text, 11, m.time[part_end(&p->train) - 1]), "2019-08-28"); // three days before September
    assert_string_equal(when_text(text, 11, m.time[part_first(&p->validation)]), "2019-09-02");
    assert_string_equal(when_text(text, 11, m.time[part_end(&p->validation) - 1]), "2019-09-27");
    scheme_done(&f);
    s.train = (extent){EXTENT_DATE, when_day(2019, 12, 15) * DAY};
    s.kind = SCHEME_EXPANDING;
    support_ok(scheme_make(&m.d, &s, &f, &e), &e);
    test_is(&m, &f.fold[0], "2020-01-15", "2020-03-13");
    assert_int_equal(part_first(&f.fold[1].parts.train), 0);
    scheme_done(&f);
    s.train.count = when_day(2019, 12, 30) * DAY;
    assert_false(scheme_make(&m.d, &s, &f, &e));
    assert_non_null(strstr(e.text, "29th"));
    s = (scheme){.train = {EXTENT_SECONDS, 90 * DAY}, .test = {EXTENT_MOMENTS, 10}, .step = {EXTENT_SECONDS, 7 * DAY}};
    support_ok(scheme_make(&m.d, &s, &f, &e), &e);
    test_is(&m, &f.fold[0], "2019-04-02", "2019-04-15"); // 90 days from the second of January
    test_is(&m, &f.fold[1], "2019-04-09", "2019-04-22");
    scheme_done(&f);
}

// A year without bars: folds that meet it say so, others are kept.
static void a_hole_spoils_its_folds_alone(void **state) {
    (void)state;
    static days m;
    err e;
    scheme_folds f;
    make_days(&m, 500);
    for (int i = 250; i < 500; i++) m.time[i] += 366 * (int64_t)DAY;
    scheme s = {.train = {EXTENT_MONTHS, 3}, .validation = {EXTENT_MONTHS, 1}, .test = {EXTENT_MONTHS, 1}};
    support_ok(scheme_make(&m.d, &s, &f, &e), &e);
    int64_t spoilt = 0;
    for (int64_t i = 0; i < f.count; i++) {
        const split *p = &f.fold[i].parts;
        bool whole = p->train.count && p->validation.count && p->test.count;
        assert_int_equal(whole, f.fold[i].why[0] == 0);
        spoilt += !whole;
    }
    assert_true(spoilt >= 12 && f.count - spoilt >= 10);
    assert_string_equal(f.fold[8].why, "no sample is left for test (0 purged or within the embargo)");
    scheme_done(&f);
    s.embargo = (extent){EXTENT_MONTHS, 1};
    assert_false(scheme_make(&m.d, &s, &f, &e));
    assert_string_equal(e.text,
        "none of the walk's 32 folds can be trained; fold 1: no sample is left for validation (43 purged or within the "
        "embargo); its test is 2019-05-01 12:00 to 2019-05-31 12:00; use more data or shorter spans");
}

static void refused(const dataset *d, const scheme *s, const char *why) {
    err e;
    scheme_folds f;
    assert_false(scheme_make(d, s, &f, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
    assert_true(!f.fold && !f.count);
}

static void what_cannot_be_walked(void **state) {
    (void)state;
    dataset d = {.name = "x.npz", .samples = 100, .horizon = 1};
    scheme s = {.train = {EXTENT_MOMENTS, 80}, .validation = {EXTENT_MOMENTS, 20}, .test = {EXTENT_MOMENTS, 5}};
    refused(&d, &s, "100 samples are too few for a fold: training 80 and validation 20 leave no test");
    s.validation.unit = EXTENT_SECONDS;
    refused(&d, &s, "x.npz has no times; give the spans of a walk as numbers of samples");
    s.validation = (extent){EXTENT_MOMENTS, 1};
    s.purge = 200;
    refused(&d, &s,
        "none of the walk's 4 folds can be trained; fold 1: no sample is left for training (81 purged or within the "
        "embargo); use more data or shorter spans");
    scheme c = {.kind = SCHEME_CPCV, .groups = 32, .tests = 16};
    refused(&d, &c, "16 of 32 groups can be chosen in more than 10000 ways; use fewer groups");
    d.samples = 20;
    c.tests = 2;
    refused(&d, &c, "20 samples at different times are too few for 32 groups");
    static days m;
    make_days(&m, 100);
    s = (scheme){.train = {EXTENT_MONTHS, 24}, .test = {EXTENT_MONTHS, 3}};
    refused(&m.d, &s,
        "100 samples from 2019-01-02 12:00 to 2019-05-21 12:00 are too few for a fold: training 2y and validation 0 "
        "leave no test; use more data or shorter spans");
    m.d.held = 10;
    refused(&m.d, &s, "days holds out its own validation part; a walk needs samples in order of time");
    m.d.held = m.d.samples = 0;
    refused(&m.d, &s, "days has no samples with labels; a walk needs some");
    dataset long_one = {.samples = 100000};
    s = (scheme){.train = {EXTENT_MOMENTS, 8}, .test = {EXTENT_MOMENTS, 1}};
    refused(&long_one, &s,
        "a walk of 99992 folds, and 10000 are the most; use a longer step, or keep the newest alone (walk.folds)");
    s.only = 99993;
    refused(&long_one, &s, "there is no fold 99993; these data have 99992");
    long_one.samples = 1000009;
    refused(&long_one, &s, "a walk of more than 1000000 folds; use a longer step");
}

// Folds that are not kept are only counted, however many there are; one alone is as it is among all.
static void few_of_many_folds_are_made(void **state) {
    (void)state;
    err e;
    dataset d = {.samples = 100000};
    scheme s = {.train = {EXTENT_MOMENTS, 8}, .test = {EXTENT_MOMENTS, 1}, .folds = 3};
    scheme_folds some, one;
    support_ok(scheme_make(&d, &s, &some, &e), &e);
    assert_true(some.count == 3 && some.all == 99992);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(some.fold[i].number, 99989 + i);
        assert_int_equal(part_first(&some.fold[i].parts.test), 99997 + i);
        s.only = some.fold[i].number + 1;
        support_ok(scheme_make(&d, &s, &one, &e), &e);
        assert_int_equal(one.count, 1);
        assert_memory_equal(&one.fold[0], &some.fold[i], sizeof one.fold[0]);
        scheme_done(&one);
    }
    scheme_done(&some);
    // A fold that cannot be trained says so by itself.
    s = (scheme){.train = {EXTENT_MOMENTS, 8}, .test = {EXTENT_MOMENTS, 1}, .purge = 200, .only = 5};
    support_ok(scheme_make(&d, &s, &one, &e), &e);
    assert_true(one.count == 1 && one.fold[0].why[0]);
    scheme_done(&one);
}

// Labels that end at random leave more spans than a part has: the longest are kept.
static void the_longest_spans_are_kept(void **state) {
    (void)state;
    enum { N = 2000, GAPS = 100 };
    static int64_t time[N], end[N];
    err e;
    scheme_folds f;
    dataset d = {.samples = N, .time = time, .end = end};
    for (int i = 0; i < N; i++) time[i] = end[i] = i;
    int at = 0;
    for (int i = 0; i < GAPS; i++) { // gaps of one sample, the spans before them 1 to 10 long
        at += 1 + i % 10;
        end[at++] = N;
    }
    scheme s = {.train = {EXTENT_MOMENTS, at}, .test = {EXTENT_MOMENTS, N}, .purge = PURGE_LABELS};
    support_ok(scheme_make(&d, &s, &f, &e), &e);
    const split_part *p = &f.fold[0].parts.train;
    assert_int_equal(p->spans, PART_SPANS_MOST);
    int64_t must = 10 * (10 + 9 + 8 + 7 + 6 + 5) + 4 * 4;
    assert_int_equal(p->count, must);
    for (int i = 0; i < p->spans; i++)
        for (int64_t k = p->span[i].first; k < p->span[i].first + p->span[i].count; k++) assert_true(end[k] < at);
    scheme_done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_agree_with_every_pair),
        cmocka_unit_test(combinations_agree_with_every_pair),
        cmocka_unit_test(folds_and_paths_are_counted),
        cmocka_unit_test(lists_of_the_document),
        cmocka_unit_test(tests_are_months_of_the_calendar),
        cmocka_unit_test(a_hole_spoils_its_folds_alone),
        cmocka_unit_test(what_cannot_be_walked),
        cmocka_unit_test(few_of_many_folds_are_made),
        cmocka_unit_test(the_longest_spans_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
