#include "base/arena.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void memory_is_zeroed_aligned_and_apart(void **state) {
    (void)state;
    enum { COUNT = 400 };
    unsigned char *taken[COUNT];
    size_t size[COUNT];
    arena a;
    arena_init(&a);
    for (size_t i = 0; i < COUNT; i++) {
        size[i] = i * 7 % 1500;
        taken[i] = arena_take(&a, size[i]);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % 16, 0);
        for (size_t j = 0; j < size[i]; j++) assert_int_equal(taken[i][j], 0);
        memset(taken[i], (int)(i % 251), size[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < size[i]; j++) assert_int_equal(taken[i][j], i % 251);
    arena_done(&a);
}

static void large_pieces_fit(void **state) {
    (void)state;
    arena a;
    arena_init(&a);
    for (size_t bytes = 1; bytes < 1 << 22; bytes = bytes * 3 + 1) {
        unsigned char *p = arena_take(&a, bytes);
        assert_int_equal(p[0] | p[bytes - 1], 0);
        memset(p, 0xFF, bytes);
    }
    uint64_t *items = arena_array(&a, 20000, sizeof *items);
    items[19999] = 1;
    assert_non_null(arena_array(&a, 0, 8));
    arena_done(&a);
}

static void texts(void **state) {
    (void)state;
    arena a;
    arena_init(&a);
    char source[] = "lstm";
    const char *copy = arena_text(&a, source);
    source[0] = 'X';
    assert_string_equal(copy, "lstm");
    assert_string_equal(arena_text(&a, ""), "");
    assert_string_equal(arena_format(&a, "%s.%d", copy, 3), "lstm.3");
    assert_int_equal(strlen(arena_format(&a, "%100000d", 1)), 100000);
    arena_done(&a);
}

static void done_twice_and_anew(void **state) {
    (void)state;
    arena a;
    arena_init(&a);
    arena_done(&a);
    arena_take(&a, 10);
    arena_done(&a);
    arena_done(&a);
}

// Chunks are filled to their last byte and no further, whatever was taken first: the heap's own records lie behind
// them.
static void chunks_are_filled_to_the_brim(void **state) {
    (void)state;
    for (size_t first = 0; first < 64; first += 16)
        for (size_t bytes = 16; bytes <= 80; bytes += 16) {
            arena a;
            arena_init(&a);
            arena_take(&a, first);
            for (size_t taken = 0; taken < 300000; taken += bytes) memset(arena_take(&a, bytes), 0xFF, bytes);
            arena_done(&a);
        }
}

// The product of these is 8, were it not looked at before.
static void take_too_many(void) {
    arena a;
    arena_init(&a);
    arena_array(&a, ((size_t)1 << 61) + 1, 8);
}

static void too_many_are_refused(void **state) {
    (void)state;
    support_aborts(take_too_many, "items of 8 bytes asked of an arena");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(large_pieces_fit),
        cmocka_unit_test(texts),
        cmocka_unit_test(done_twice_and_anew),
        cmocka_unit_test(chunks_are_filled_to_the_brim),
        cmocka_unit_test(too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
