// Lines about classes: those that a part of a split has no sample of, by name, and those that no part has left out.
#include "task/lines.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 12 };

static split parts_of(int64_t validation, int64_t test) {
    return (split){.train = part_of((span){0, validation}),
        .validation = part_of((span){validation, test - validation}),
        .test = part_of((span){test, SAMPLES - test})};
}

static void says(const dataset *d, const split *s, const char *must) {
    char line[LINE_ROOM];
    bool told = lines_classes(d, s, line, sizeof line);
    assert_int_equal(told, must != NULL);
    if (must) assert_string_equal(line, must);
}

static void classes_that_parts_have_not(void **state) {
    (void)state;
    static const int32_t label[SAMPLES] = {0, 1, 1, 0, 2, 1, 0, 2, 2, 2, 1, 0};
    static const char *const names[] = {"DOWN", "NEUTRAL", "UP", "NEVER"};
    dataset d = {.samples = SAMPLES, .classes = 4, .label = label, .class_names = names};
    split s = parts_of(5, 8);
    says(&d, &s, NULL); // no sample at all is NEVER
    s = parts_of(4, 7);
    says(&d, &s, "classes without a sample: UP in training, which cannot be learned");
    s = parts_of(7, 9);
    says(&d, &s, "classes without a sample: DOWN, NEUTRAL in validation");
    s = parts_of(4, 10);
    says(&d, &s, "classes without a sample: UP in training, which cannot be learned; UP in the test");
    d.class_names = NULL;
    s = parts_of(5, SAMPLES); // no test, of which nothing is said
    says(&d, &s, NULL);
    s = parts_of(4, SAMPLES);
    says(&d, &s, "classes without a sample: 2 in training, which cannot be learned");
}

// Training may be of several spans, and classes are more than there is room to name.
static void spans_and_many_classes(void **state) {
    (void)state;
    static const int32_t label[SAMPLES] = {0, 6, 1, 1, 1, 2, 3, 4, 5, 6, 7, 0};
    dataset d = {.samples = SAMPLES, .classes = 8, .label = label};
    split s = {.validation = part_of((span){1, 9}), .test = {0}};
    part_add(&s.train, (span){0, 1});
    part_add(&s.train, (span){10, 2});
    says(&d, &s,
        "classes without a sample: 1, 2, 3, 4 and 2 more in training, which cannot be learned; 0, 7 in "
        "validation");
}

static void data_without_classes(void **state) {
    (void)state;
    dataset d = {.samples = SAMPLES};
    split s = parts_of(4, 8);
    says(&d, &s, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_that_parts_have_not),
        cmocka_unit_test(spans_and_many_classes),
        cmocka_unit_test(data_without_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
