// Splits: training before validation, with the asked gap between them, and an error where a part would be empty.
#include "data/split.h"

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
    assert_int_equal(s.train.first, 0);
    assert_int_equal(s.train.count, 700);
    assert_int_equal(s.validation.first, 713); // horizon 3, embargo 10
    assert_int_equal(s.validation.count, 200);
    assert_int_equal(s.dropped, 13);
    assert_true(split_make(&d, NULL, &(split_options){0.7, 0.2, 5, 0}, &s, &e));
    assert_int_equal(s.validation.first, 705);
    assert_true(split_make(&d, NULL, &(split_options){0.7, 0.2, 0, 0}, &s, &e));
    assert_int_equal(s.validation.first, 700);
}

static void gap_comes_out_of_validation(void **state) {
    (void)state;
    err e = {0};
    split s;
    dataset d = {.samples = 1000, .horizon = 1};
    assert_true(split_make(&d, NULL, &(split_options){0.8, 0.2, -1, 50}, &s, &e));
    assert_int_equal(s.train.count, 800);
    assert_int_equal(s.validation.first, 851);
    assert_int_equal(s.validation.count, 149);
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
            assert_true(s.train.first == 0 && s.train.count > 0 && s.validation.count > 0);
            assert_int_equal(s.validation.first, s.train.count + gap);
            assert_int_equal(s.dropped, gap);
            assert_true(s.validation.first + s.validation.count <= samples);
        }
    }
}

static void refuse(int64_t samples, split_options o) {
    err e = {0};
    split s;
    dataset d = {.samples = samples, .horizon = 1};
    assert_false(split_make(&d, NULL, &o, &s, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "leaves a part empty"));
    assert_null(strchr(e.text, '\n'));
}

static void empty_parts_are_refused(void **state) {
    (void)state;
    refuse(0, (split_options){0.7, 0.2, -1, 0});
    refuse(1, (split_options){0.7, 0.2, -1, 0});
    refuse(100, (split_options){0.001, 0.2, -1, 0});
    refuse(100, (split_options){0.7, 0.001, -1, 0});
    refuse(100, (split_options){1.0, 0.2, 0, 0});
    refuse(100, (split_options){0.7, 0.2, -1, 50});
    refuse(100, (split_options){0.7, 0.2, 1000000000, 1000000000});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_by_time),
        cmocka_unit_test(gap_comes_out_of_validation),
        cmocka_unit_test(parts_never_meet),
        cmocka_unit_test(empty_parts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
