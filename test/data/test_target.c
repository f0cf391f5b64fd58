// Targets of forecasts: their kind by the maker's words, and the scale of each kind against its definition.
#include "data/target.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 50, H = 3, TRAIN = 30 };

static struct {
    dataset d;
    float target[N * H], price[N];
} made;

static void make(const char *value, double level, double spread) {
    dice w = {.seed = 3};
    for (int i = 0; i < N; i++) {
        made.price[i] = (float)(level + 10 * i);
        for (int h = 0; h < H; h++) made.target[i * H + h] = (float)(level + spread * (double)dice_unit(&w));
    }
    made.d = (dataset){.samples = N, .target_width = H, .target = made.target, .price = made.price};
    if (value) made.d.about = json_pack("{s:{s:s, s:s}}", "label", "kind", "forecast", "value", value);
}

static target_scale fitted(void) {
    split_part train = part_of((span){0, TRAIN});
    target_scale s;
    err e = {0};
    support_ok(target_fit(&made.d, &train, &s, &e), &e);
    json_decref(made.d.about);
    return s;
}

// Root mean square of the training part's targets, by their level, around `mean`.
static double root(double mean, bool closes) {
    double sum = 0;
    for (int i = 0; i < TRAIN * H; i++) {
        double off = (double)made.target[i] / (closes ? (double)made.price[i / H] : 1) - mean;
        sum += off * off / (TRAIN * H);
    }
    return sqrt(sum);
}

static void kinds_are_known_by_words(void **state) {
    static const struct {
        const char *value;
        target_kind want;
    } all[] = {{"close", TARGET_CLOSES}, {"path", TARGET_RETURNS}, {"step", TARGET_RETURNS}, {NULL, TARGET_VALUES}};
    (void)state;
    for (int k = 0; k < 4; k++) {
        make(all[k].value, 1, 1);
        assert_int_equal(target_kind_of(&made.d), all[k].want);
        made.d.price = NULL;
        assert_int_equal(target_kind_of(&made.d), TARGET_VALUES);
        json_decref(made.d.about);
    }
}

static void each_kind_has_its_scale(void **state) {
    (void)state;
    make("path", 0, 1e-3);
    target_scale s = fitted();
    assert_true(s.mean == 0 && fabs((double)s.std / root(0, false) - 1) < 1e-6);
    make("close", 1800, 20);
    s = fitted();
    assert_true(s.mean == 1 && fabs((double)s.std / root(1, true) - 1) < 1e-6);
    make(NULL, 1e4, 2);
    s = fitted();
    double mean = 0;
    for (int i = 0; i < TRAIN * H; i++) mean += (double)made.target[i] / (TRAIN * H);
    assert_true(fabs((double)s.mean - mean) < 1e-3 && fabs((double)s.std / root(mean, false) - 1) < 1e-4);
    assert_true(target_scales(s));
}

static void a_still_target_is_divided_by_1(void **state) {
    (void)state;
    make(NULL, 7, 0);
    target_scale s = fitted();
    assert_true(s.mean == 7 && s.std == 1);
    assert_false(target_scales((target_scale){0}) || target_scales((target_scale){0, 1}));
}

// Later parts are not looked at; a value that is not finite is named.
static void only_the_training_part_counts(void **state) {
    split_part train = part_of((span){0, TRAIN});
    target_scale s, other;
    err e = {0};
    (void)state;
    make("path", 0, 1e-3);
    support_ok(target_fit(&made.d, &train, &s, &e), &e);
    for (int i = TRAIN * H; i < N * H; i++) made.target[i] = NAN;
    support_ok(target_fit(&made.d, &train, &other, &e), &e);
    assert_memory_equal(&s, &other, sizeof s);
    made.target[4 * H + 1] = INFINITY;
    assert_false(target_fit(&made.d, &train, &s, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "target 2 of sample 4 is not a finite number; clean the data");
    json_decref(made.d.about);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_known_by_words),
        cmocka_unit_test(each_kind_has_its_scale),
        cmocka_unit_test(a_still_target_is_divided_by_1),
        cmocka_unit_test(only_the_training_part_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
