// Texts that are printed into memory: whole, or not at all.
#include "base/text.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static void texts_grow(void **state) {
    enum { LINES = 100000 };
    (void)state;
    text_out t;
    text_open(&t);
    for (int i = 0; i < LINES; i++) fprintf(t.out, "%d\n", i);
    char *text = text_close(&t), *at = text;
    assert_non_null(text);
    assert_int_equal(strlen(text), t.bytes);
    for (int i = 0; i < LINES; i++) assert_int_equal(strtol(at, &at, 10), i);
    assert_string_equal(at, "\n");
    free(text);
    text_open(&t);
    text = text_close(&t);
    assert_string_equal(text, "");
    free(text);
}

// Memory runs out for a while, and is there again before the end.
static void a_text_with_a_gap_is_none(void **state) {
    (void)state;
    enum { BLOCK = 1 << 20 };
    struct rlimit was, little = {0};
    text_out t;
    if (support_sanitized()) skip();
    char *block = malloc(BLOCK);
    assert_non_null(block);
    memset(block, 'x', BLOCK);
    text_open(&t);
    for (int i = 0; i < 64; i++) assert_int_equal(fwrite(block, 1, BLOCK, t.out), BLOCK);
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    little.rlim_max = was.rlim_max;
    little.rlim_cur = BLOCK;
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    for (int i = 0; i < 128 && !t.failed; i++) fwrite(block, 1, BLOCK, t.out);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    assert_true(t.failed);
    fputs("the end", t.out);
    assert_null(text_close(&t));
    free(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_grow),
        cmocka_unit_test(a_text_with_a_gap_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
