// The section `walk:` of a description: defaults, every key, and what is refused by name.
#include "train/walk_keys.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static config *config_of(const char *text, err *e) {
    size_t count;
    const config_key *keys = walk_keys(&count);
    config *c = config_read("walk.yaml", text, strlen(text), keys, count, e);
    if (c && config_check(c, e)) return c;
    config_free(c);
    return NULL;
}

static walk_settings settings_of(const char *text) {
    err e;
    walk_settings w;
    config *c = config_of(text, &e);
    support_ok(c != NULL, &e);
    support_ok(walk_read(c, &w, &e), &e);
    config_free(c);
    return w;
}

static void the_section_is_read(void **state) {
    (void)state;
    walk_settings w = settings_of("walk: {start: cold}\n");
    assert_true(w.scheme.kind == SCHEME_ROLLING && w.scheme.train.unit == EXTENT_MONTHS && w.scheme.train.count == 24);
    assert_true(w.scheme.step.count == 0 && w.scheme.purge == PURGE_LABELS && w.scheme.embargo.count == 0);
    assert_true(w.scheme.folds == 0 && !w.warm && w.jobs == 0 && w.fold == 0);
    w = settings_of(
        "walk: {scheme: expanding, train: 2019-01-01, validation: 20, test: 90d, step: 500, purge: windows,\n"
        "       embargo: 5d, folds: 4, start: warm, jobs: 2, fold: 3}\n");
    assert_true(w.scheme.kind == SCHEME_EXPANDING && w.scheme.train.unit == EXTENT_DATE);
    assert_true(w.scheme.validation.count == 20 && w.scheme.test.count == 90 * 86400 && w.scheme.step.count == 500);
    assert_true(w.scheme.purge == PURGE_WINDOWS && w.scheme.embargo.count == 5 * 86400 && w.scheme.folds == 4);
    assert_true(w.warm && w.fold == 3 && w.jobs == 2);
    w = settings_of("walk: {scheme: cpcv, groups: 10, test_groups: 3, purge: 7}\n");
    assert_true(w.scheme.kind == SCHEME_CPCV && w.scheme.groups == 10 && w.scheme.tests == 3 && w.scheme.purge == 7);
}

static void section_refused(const char *text, const char *why) {
    err e;
    walk_settings w;
    config *c = config_of(text, &e);
    if (c) assert_false(walk_read(c, &w, &e));
    config_free(c);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
}

static void the_section_is_judged(void **state) {
    (void)state;
    section_refused("walk:\n  test: 15m\n",
        "walk.yaml:2: walk.test: 15m: months are written with a large M, as in 24M, and minutes as a number of bars");
    section_refused("walk:\n  scheme: rolling\n  train: 0\n", "walk.yaml:3: walk.train: the span must be above 0");
    section_refused("walk:\n  test: 2019-01-01\n",
        "walk.yaml:2: walk.test: a date is no length; write bars (500) or a time (90d, 3M)");
    section_refused("walk:\n  groups: 4\n  test_groups: 4\n",
        "walk.yaml:3: walk.test_groups: 4 of 4 groups leave none to train on; use fewer");
    section_refused("walk:\n  scheme: cpcv\n  start: warm\n",
        "walk.yaml:3: walk.start: folds of cpcv have no order of time; use cold");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_section_is_read),
        cmocka_unit_test(the_section_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
