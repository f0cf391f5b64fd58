// Differences between two descriptions.
#include "run/outline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char old[] =
    "data:\n  set: \"a: b.npz\"\n  windows:\n    fast: 50\n    slow: 20\ntrain:\n  seed: 1\n  list: [a, "
    "b]\n";

static bool skips_seed(const char *path) {
    return strcmp(path, "train.seed") == 0;
}

static void check(const char *new, bool (*skip)(const char *path), int count, const char *expected) {
    char text[256];
    assert_int_equal(outline_compare(old, new, skip, text, sizeof text), count);
    assert_string_equal(text, expected);
}

static void differences_are_named(void **state) {
    (void)state;
    check(old, NULL, 0, "");
    char commented[512];
    snprintf(commented, sizeof commented, "%s  # a comment: it means nothing\n", old);
    check(commented, NULL, 0, "");
    // The order of lines says nothing.
    check("train:\n  list: [a, b]\n  seed: 1\ndata:\n  windows:\n    slow: 20\n    fast: 50\n  set: \"a: b.npz\"\n",
        NULL, 0, "");
    static const char other[] =
        "data:\n  set: \"a: b.npz\"\n  windows:\n    fast: 49\ntrain:\n  seed: 2\n  list: [a, b]\n"
        "  more: x\n";
    check(other, NULL, 4,
        "data.windows.fast is 49, was 50; data.windows.slow is not given, was 20; train.more is x, was not given; "
        "train.seed is 2, was 1");
    check(other, skips_seed, 3,
        "data.windows.fast is 49, was 50; data.windows.slow is not given, was 20; train.more is x, was not given");
}

static void values_are_found(void **state) {
    (void)state;
    char *value = outline_value(old, "data.windows.slow");
    assert_non_null(value);
    assert_string_equal(value, "20");
    free(value);
    value = outline_value(old, "data.set");
    assert_string_equal(value, "\"a: b.npz\"");
    free(value);
    assert_null(outline_value(old, "data.windows"));
    assert_null(outline_value("", "data"));
}

// Whatever stands in a file's note: nothing is written beyond the room.
static void odd_texts_do_no_harm(void **state) {
    (void)state;
    static const char *const odd[] = {"", "\n\n", ":", ": ", "      deep: 1\n", "a", "# a: b\n", "a:\nb:\n  :\n  : x\n",
        "                                                  far: 1\n"};
    char text[16];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        outline_compare(old, odd[i], NULL, text, sizeof text);
        assert_true(strlen(text) < sizeof text);
        outline_compare(odd[i], old, NULL, text, 1);
        assert_int_equal(outline_compare(odd[i], odd[i], NULL, text, sizeof text), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(values_are_found),
        cmocka_unit_test(odd_texts_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
