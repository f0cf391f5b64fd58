// Splits: training before validation before test, with gaps between them as labels, windows and numbers ask for, and an
// error where a part would be empty. Parts are lists of spans.
#include "data/split.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void splits_by_time(void **state) {
    (void)state;
    err e = {0};
    split s;
    dataset d = {.samples = 1000, .horizon = 3};
    assert_true(split_make(&d, NULL, &(split_options){0.7, 0.2, -1, 10}, &s, &e));
    assert_int_equal(part_first(&s.train), 0);
    assert_int_equal(s.train.count, 700);
    assert_int_equal(part_first(&s.validation), 713); // horizon 3, embargo 10
    assert_int_equal(s.validation.count, 200);
    assert_int_equal(part_first(&s.test), 926);
    assert_int_equal(s.test.count, 74);
    assert_int_equal(s.dropped, 26);
    assert_true(split_make(&d, NULL, &(split_options){0.7, 0.2, 5, 0}, &s, &e));
    assert_int_equal(part_first(&s.validation), 705);
    assert_true(split_make(&d, NULL, &(split_options){0.7, 0.2, 0, 0}, &s, &e));
    assert_int_equal(part_first(&s.validation), 700);
}

static void gap_comes_out_of_validation(void **state) {
    (void)state;
    err e = {0};
    split s;
    dataset d = {.samples = 1000, .horizon = 1};
    assert_true(split_make(&d, NULL, &(split_options){0.8, 0.2, -1, 50}, &s, &e));
    assert_int_equal(s.train.count, 800);
    assert_int_equal(part_first(&s.validation), 851);
    assert_int_equal(s.validation.count, 149);
    assert_int_equal(s.test.count, 0);
    assert_int_equal(s.dropped, 51);
}

static void parts_never_meet(void **state) {
    (void)state;
    for (int64_t samples = 1; samples < 400; samples += 13) {
        for (int i = 0; i < 6 * 6 * 4; i++) {
            err e = {0};
            split s;
            dataset d = {.samples = samples, .horizon = 1 + i % 3};
            split_options o = {0.1 + 0.16 * (i % 6), 0.05 + 0.18 * (i / 6 % 6), i % 2 ? -1 : i % 5, i / 36 * 17};
            int64_t gap = (o.purge < 0 ? d.horizon : o.purge) + o.embargo;
            if (!split_make(&d, NULL, &o, &s, &e)) {
                assert_int_equal(e.kind, ERR_INPUT);
                continue;
            }
            assert_true(part_first(&s.train) == 0 && s.train.count > 0 && s.validation.count > 0);
            assert_int_equal(part_first(&s.validation), s.train.count + gap);
            int64_t end = part_first(&s.validation) + s.validation.count;
            assert_true(end <= samples);
            int64_t test = end + gap < samples ? end + gap : samples;
            assert_int_equal(s.test.count, samples - test);
            if (s.test.count) assert_int_equal(part_first(&s.test), test);
            assert_int_equal(s.dropped, gap + test - end);
        }
    }
}

static void refuse(int64_t samples, int64_t horizon, split_options o, const char *remedy) {
    err e = {0};
    split s;
    dataset d = {.samples = samples, .horizon = horizon};
    assert_false(split_make(&d, NULL, &o, &s, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "leaves a part empty"));
    if (!strstr(e.text, remedy)) fail_msg("%s: not %s", e.text, remedy);
    assert_null(strchr(e.text, '\n'));
}

static void empty_parts_are_refused(void **state) {
    (void)state;
    refuse(0, 1, (split_options){0.7, 0.2, -1, 0}, "use more data");
    refuse(1, 1, (split_options){0.7, 0.2, -1, 0}, "use more data");
    refuse(100, 1, (split_options){0.001, 0.2, -1, 0}, "larger shares");
    refuse(100, 1, (split_options){0.7, 0.001, -1, 0}, "larger shares");
    refuse(100, 1, (split_options){1.0, 0.2, 0, 0}, "use more data");
    refuse(100, 1, (split_options){0.7, 0.2, -1, 50}, "a smaller embargo");
    refuse(100, 1, (split_options){0.7, 0.2, 1000000000, 1000000000}, "a smaller embargo");
    refuse(2000, 5000, (split_options){0.7, 0.15, PURGE_LABELS, 50}, "a shorter label horizon");
    refuse(2000, 1, (split_options){0.7, 0.15, 700, 50}, "a smaller purge");
}

// Labels that know their ends

enum { MANY = 100 };

typedef struct {
    dataset d;
    int64_t time[MANY], end[MANY];
    int32_t row[2][MANY], first[2][MANY];
} made;

// A sample a minute; labels take three.
static void make_timed(made *m) {
    *m = (made){.d = {.samples = MANY, .horizon = 1, .time = m->time, .end = m->end}};
    for (int i = 0; i < MANY; i++) {
        m->time[i] = 60 * i;
        m->end[i] = 60 * (i + 3);
    }
}

static split split_of(const made *m, const int64_t *window, split_options o) {
    err e;
    split s;
    if (!split_make(&m->d, window, &o, &s, &e)) fail_msg("%s", e.text);
    return s;
}

static void ends_decide_where_they_are_known(void **state) {
    (void)state;
    made m;
    make_timed(&m);
    split s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 0});
    assert_int_equal(s.train.count, 50);
    assert_int_equal(part_first(&s.validation), 53); // sample 49 is known at minute 52
    assert_int_equal(part_first(&s.test), 76);
    m.end[10] = 60 * 60; // one early sample whose label takes long
    s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 4});
    assert_int_equal(part_first(&s.validation), 65);
    assert_int_equal(s.validation.count, 20);
    assert_int_equal(part_first(&s.test), 92);
    assert_int_equal(s.test.count, 8);
    assert_int_equal(s.dropped, 15 + 7);
    s = split_of(&m, NULL, (split_options){0.5, 0.2, 2, 0}); // a number is taken at its word
    assert_int_equal(part_first(&s.validation), 52);
}

static void equal_times_stay_together(void **state) {
    (void)state;
    made m;
    make_timed(&m);
    for (int i = 0; i < MANY; i++) {
        m.time[i] = 60 * (i / 4); // four series, a sample of each a minute
        m.end[i] = m.time[i] + 60;
    }
    split s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 0});
    assert_int_equal(s.train.count, 50); // up to minute 12, known at 13
    assert_int_equal(part_first(&s.validation), 56);
    for (int64_t i = 0; i < s.train.count; i++) assert_true(m.end[i] < m.time[part_first(&s.validation)]);
}

static void labels_beyond_the_last_sample(void **state) {
    (void)state;
    err e = {0};
    split s;
    made m;
    make_timed(&m);
    m.end[0] = 60 * MANY;
    assert_false(split_make(&m.d, NULL, &(split_options){0.5, 0.2, PURGE_LABELS, 0}, &s, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    int64_t past = 0;
    assert_true(split_past(&m.d, (span){0, 1}, NULL, &past, &e));
    assert_int_equal(past, MANY);
    assert_true(split_past(&m.d, (span){7, 0}, NULL, &past, &e));
    assert_int_equal(past, 7);
}

// Panels

// Two instruments, two samples a minute: an embargo of four is four minutes, and takes eight samples.
static void an_embargo_counts_moments(void **state) {
    (void)state;
    made m;
    make_timed(&m);
    m.d.panel = 2;
    for (int i = 0; i < MANY; i++) {
        m.time[i] = 60 * (i / 2);
        m.end[i] = m.time[i] + 60;
    }
    split s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 4});
    assert_int_equal(s.train.count, 50); // minutes 0 to 24, known by 25
    assert_int_equal(part_first(&s.validation), 52 + 8);
    assert_int_equal(part_first(&s.test), 60 + 20 + 2 + 8);
    // A purge by number counts the same way, and the refusal counts all in samples.
    s = split_of(&m, NULL, (split_options){0.5, 0.2, 3, 4});
    assert_int_equal(part_first(&s.validation), 50 + 6 + 8);
    err e = {0};
    assert_false(split_make(&m.d, NULL, &(split_options){0.5, 0.2, PURGE_LABELS, 24}, &s, &e));
    assert_string_equal(e.text,
        "a split of 100 samples into 50 for training (50 %), a gap of 50 (2 as far as labels reach, 48 of embargo) and "
        "20 % for validation leaves a part empty; use more data or a smaller embargo");
}

// Series a has a sample every time, b every fourth: a a a b a a a b. Rows of a are 0.., of b 200..; the second stream
// has a row for every second sample of a.
static void make_panel(made *m) {
    *m = (made){.d = {.samples = MANY, .streams = 2, .horizon = 5}};
    for (int i = 0; i < MANY; i++) {
        bool b = i % 4 == 3;
        m->row[0][i] = b ? 200 + i / 4 : i - i / 4;
        m->first[0][i] = b ? 200 : 0;
        m->row[1][i] = m->row[0][i] / 2;
        m->first[1][i] = m->first[0][i] / 2;
    }
    m->d.stream[0] =
        (stream){.name = "fast", .series = {.rows = 300, .width = 1}, .row = m->row[0], .first = m->first[0]};
    m->d.stream[1] =
        (stream){.name = "slow", .series = {.rows = 300, .width = 1}, .row = m->row[1], .first = m->first[1]};
}

// True if sample j's label or bars meet those of a sample of the part, looked at one by one.
static bool touches(const made *m, span part, const int64_t *window, int64_t j, int64_t past_labels) {
    for (int64_t i = part.first; i < part.first + part.count; i++) {
        if (m->first[0][i] != m->first[0][j]) continue;
        if (m->row[0][i] + m->d.horizon >= m->row[0][j]) return true;
    }
    for (int64_t i = part.first; window && i < past_labels; i++)
        for (int k = 0; k < 2; k++)
            if (m->first[k][i] == m->first[k][j] && m->row[k][j] - window[k] + 1 <= m->row[k][i]) return true;
    return false;
}

static void every_series_keeps_its_distance(void **state) {
    (void)state;
    static const int64_t windows[][2] = {{1, 1}, {4, 1}, {1, 5}, {6, 3}};
    err e;
    made m;
    make_panel(&m);
    for (int64_t first = 0; first < 40; first += 13)
        for (int64_t count = 1; count < 30; count += 3) {
            span part = {first, count};
            int64_t labels, past;
            assert_true(split_past(&m.d, part, NULL, &labels, &e));
            for (int64_t j = labels; j < MANY; j++) assert_false(touches(&m, part, NULL, j, labels));
            assert_true(labels == first + count || touches(&m, part, NULL, labels - 1, labels));
            for (size_t k = 0; k < 4; k++) {
                assert_true(split_past(&m.d, part, windows[k], &past, &e));
                assert_true(past >= labels);
                for (int64_t j = past; j < MANY; j++) assert_false(touches(&m, part, windows[k], j, labels));
                assert_true(past == labels || touches(&m, part, windows[k], past - 1, labels));
            }
        }
}

// Sample 49 of a has row 37, its label is known with row 42; sample 47 of b has row 211, its with row 216, which is
// that of sample 67.
// Windows that were not folded are a series each; their labels reach as many samples as those of folded ones.
static void windows_apart_are_purged_by_samples(void **state) {
    (void)state;
    made m = {.d = {.samples = MANY, .streams = 1, .horizon = 7}};
    for (int apart = 0; apart < 2; apart++) {
        for (int i = 0; i < MANY; i++) {
            m.row[0][i] = apart ? 5 * i + 4 : i + 4;
            m.first[0][i] = apart ? 5 * i : 0;
        }
        m.d.stream[0] = (stream){.name = "fast", .row = m.row[0], .first = m.first[0]};
        m.d.stream[0].series.rows = apart ? 5 * MANY : MANY + 4;
        m.d.window[0] = 5;
        split s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 0});
        assert_int_equal(part_first(&s.validation), 57);
    }
}

static void the_slowest_series_decides(void **state) {
    (void)state;
    made m;
    make_panel(&m);
    split s = split_of(&m, NULL, (split_options){0.5, 0.2, PURGE_LABELS, 0});
    assert_int_equal(part_first(&s.validation), 68);
    static const int64_t window[2] = {3, 1};
    s = split_of(&m, window, (split_options){0.5, 0.1, PURGE_WINDOWS, 0});
    assert_int_equal(part_first(&s.validation), 76); // b's windows of three rows are clear of row 216
}

static int64_t first_validated(const made *m, const int64_t *window, int64_t purge) {
    split s = split_of(m, window, (split_options){0.5, 0.2, purge, 0});
    return part_first(&s.validation);
}

// One series, a sample a row: a label of one bar, then windows that would look back into training.
static void windows_push_the_next_part_away(void **state) {
    (void)state;
    made m;
    make_panel(&m);
    for (int i = 0; i < MANY; i++) {
        m.row[0][i] = i;
        m.row[1][i] = i / 4;
        m.first[0][i] = m.first[1][i] = 0;
    }
    m.d.horizon = 1;
    static const int64_t fast[2] = {10, 1}, slow[2] = {10, 3};
    assert_int_equal(first_validated(&m, fast, PURGE_LABELS), 51);
    assert_int_equal(first_validated(&m, fast, PURGE_WINDOWS), 60);
    split s = split_of(&m, slow, (split_options){0.5, 0.2, PURGE_WINDOWS, 2});
    assert_int_equal(part_first(&s.validation), 62); // row 50 / 4 is 12; 15 - 2 is beyond it
    assert_int_equal(part_first(&s.test), 94);       // labels reach row 82; 92 - 9 is beyond it, as 23 - 2 is beyond 20
}

// Parts as lists of spans

static void spans_that_touch_are_joined(void **state) {
    (void)state;
    split_part p = part_of((span){5, 0});
    assert_true(p.count == 0 && p.spans == 0 && part_first(&p) == 0 && part_end(&p) == 0);
    part_add(&p, (span){10, 4});
    part_add(&p, (span){14, 6});
    assert_true(p.spans == 1 && p.count == 10 && part_first(&p) == 10 && part_end(&p) == 20);
    part_add(&p, (span){20, 0});
    part_add(&p, (span){21, 2});
    assert_true(p.spans == 2 && p.count == 12 && p.span[1].first == 21 && part_end(&p) == 23);
    split_part same = part_of((span){10, 10});
    part_add(&same, (span){21, 2});
    assert_memory_equal(&p, &same, sizeof p);
}

// Every position against a plain list of the samples.
static void positions_count_through_all_spans(void **state) {
    (void)state;
    for (int spans = 1; spans <= PART_SPANS_MOST; spans += 7) {
        split_part p = {0};
        int64_t list[4 * PART_SPANS_MOST], n = 0, at = 0;
        for (int k = 0; k < spans; k++) {
            span s = {at + 1 + k % 3, 1 + k * 5 % 4};
            part_add(&p, s);
            for (int64_t i = 0; i < s.count; i++) list[n++] = s.first + i;
            at = s.first + s.count;
        }
        assert_true(p.spans == spans && p.count == n && part_end(&p) == at);
        for (int64_t i = 0; i < n; i++) assert_int_equal(part_sample(&p, i), list[i]);
    }
}

static void add_before(void) {
    split_part p = part_of((span){10, 4});
    part_add(&p, (span){13, 2});
}

static void add_too_many(void) {
    split_part p = {0};
    for (int k = 0; k <= PART_SPANS_MOST; k++) part_add(&p, (span){2 * k, 1});
}

static void look_beyond(void) {
    split_part p = part_of((span){10, 4});
    part_sample(&p, 4);
}

static void spans_out_of_order_are_mistakes(void **state) {
    (void)state;
    support_aborts(add_before, "out of order");
    support_aborts(add_too_many, "more than 64 spans");
    support_aborts(look_beyond, "sample 4 of a part of 4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_by_time),
        cmocka_unit_test(gap_comes_out_of_validation),
        cmocka_unit_test(parts_never_meet),
        cmocka_unit_test(empty_parts_are_refused),
        cmocka_unit_test(ends_decide_where_they_are_known),
        cmocka_unit_test(equal_times_stay_together),
        cmocka_unit_test(an_embargo_counts_moments),
        cmocka_unit_test(labels_beyond_the_last_sample),
        cmocka_unit_test(every_series_keeps_its_distance),
        cmocka_unit_test(windows_apart_are_purged_by_samples),
        cmocka_unit_test(the_slowest_series_decides),
        cmocka_unit_test(windows_push_the_next_part_away),
        cmocka_unit_test(spans_that_touch_are_joined),
        cmocka_unit_test(positions_count_through_all_spans),
        cmocka_unit_test(spans_out_of_order_are_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
