#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// The vectors that the authors of Philox publish with their code.
static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t *c = rows[i].counter;
        uint64_t key = (uint64_t)rows[i].key[1] << 32 | rows[i].key[0];
        rng_block got = rng_philox(key, c[0], c[1], c[2], c[3]);
        for (int j = 0; j < 4; j++) assert_int_equal(got.v[j], rows[i].want[j]);
    }
}

// From the authors' vectors for seven rounds.
static void known_answers_of_seven_rounds(void **state) {
    (void)state;
    static const uint32_t want[3][4] = {{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48},
        {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}, {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}};
    rng_block got[] = {rng_philox_rounds(7, 0, 0, 0, 0, 0), rng_philox_rounds(7, ~0ull, ~0u, ~0u, ~0u, ~0u),
        rng_philox_rounds(7, 0x299f31d0a4093822, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344)};
    for (int i = 0; i < 12; i++) assert_int_equal(got[i / 4].v[i % 4], want[i / 4][i % 4]);
}

static void unit_stays_below_one(void **state) {
    (void)state;
    assert_true(rng_unit(0) == 0.0f);
    assert_true(rng_unit(~0u) < 1.0f);
    assert_true(rng_unit(0x80000000u) == 0.5f);
}

static void unit_is_uniform(void **state) {
    (void)state;
    enum { BINS = 64, DRAWS = 1 << 18 };
    int count[BINS] = {0};
    double sum = 0;
    for (uint32_t i = 0; i < DRAWS / 4; i++) {
        rng_block b = rng_philox(7, i, 0, (uint32_t)RNG_TEST << 16, 0);
        for (int j = 0; j < 4; j++) {
            float u = rng_unit(b.v[j]);
            assert_true(u >= 0 && u < 1);
            count[(int)(u * BINS)]++;
            sum += u;
        }
    }
    // Chi-square with 63 degrees of freedom: 120 is beyond its 99.99 % point. The draws are fixed, so this never
    // flickers.
    double chi = 0, want = (double)DRAWS / BINS;
    for (int i = 0; i < BINS; i++) chi += (count[i] - want) * (count[i] - want) / want;
    assert_true(chi > 25 && chi < 120);
    assert_true(sum / DRAWS > 0.498 && sum / DRAWS < 0.502);
}

static void assert_bijection(uint64_t key, uint32_t round, uint64_t count) {
    unsigned char *seen = calloc(1, count);
    assert_non_null(seen);
    for (uint64_t at = 0; at < count; at++) {
        uint64_t to = rng_permute(key, round, at, count);
        assert_true(to < count);
        assert_false(seen[to]);
        seen[to] = 1;
    }
    free(seen);
}

static void permute_is_a_bijection(void **state) {
    (void)state;
    static const uint64_t counts[] = {63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 100003};
    for (uint64_t count = 1; count <= 40; count++) assert_bijection(count * 77, 3, count);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_bijection(0x123456789abcdefu, (uint32_t)i, counts[i]);
}

// Positions that two permutations of `count` share.
static int shared(uint64_t key_a, uint32_t round_a, uint64_t key_b, uint32_t round_b, uint64_t count) {
    int same = 0;
    for (uint64_t at = 0; at < count; at++)
        same += rng_permute(key_a, round_a, at, count) == rng_permute(key_b, round_b, at, count);
    return same;
}

static void permute_depends_on_round_and_key(void **state) {
    (void)state;
    assert_int_equal(shared(1, 0, 1, 0, 1000), 1000);
    assert_true(shared(1, 0, 1, 1, 1000) < 20);
    assert_true(shared(1, 0, 2, 0, 1000) < 20);
    assert_true(shared(1, 0, 1ull << 32 | 1, 0, 1000) < 20);
    int fixed = 0;
    for (uint64_t at = 0; at < 65537; at++) fixed += rng_permute(5, 0, at, 65537) == at;
    assert_true(fixed < 20);
}

// Over many rounds every element stands at every place about as often: chi-square over the cells of a 13 x 13 table, of
// 144 degrees of freedom, is above 220 by chance about once in 20,000 keys.
static void permute_is_even(void **state) {
    enum { COUNT = 13, ROUNDS = 26000 };
    static int seen[COUNT][COUNT];
    double expected = (double)ROUNDS / COUNT, chi = 0;
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint64_t at = 0; at < COUNT; at++) seen[at][rng_permute(77, round, at, COUNT)]++;
    for (int i = 0; i < COUNT * COUNT; i++) {
        double d = seen[i / COUNT][i % COUNT] - expected;
        chi += d * d / expected;
    }
    assert_true(chi > 70 && chi < 220);
}

// Neighbours in the order are no nearer in the data than chance has them: the mean distance of two of n is n / 3.
static void permute_parts_neighbours(void **state) {
    enum { COUNT = 100003 };
    double sum = 0;
    (void)state;
    for (uint64_t at = 0; at + 1 < COUNT; at++) {
        double d = (double)rng_permute(3, 1, at, COUNT) - (double)rng_permute(3, 1, at + 1, COUNT);
        sum += d < 0 ? -d : d;
    }
    double mean = sum / (COUNT - 1) / COUNT;
    assert_true(mean > 0.327 && mean < 0.340);
}

static void permute_takes_large_counts(void **state) {
    (void)state;
    uint64_t count = ((uint64_t)1 << 62) + 12345;
    for (uint64_t at = 0; at < 100; at++) assert_true(rng_permute(9, 1, count - 1 - at, count) < count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(known_answers_of_seven_rounds),
        cmocka_unit_test(unit_stays_below_one),
        cmocka_unit_test(unit_is_uniform),
        cmocka_unit_test(permute_is_a_bijection),
        cmocka_unit_test(permute_depends_on_round_and_key),
        cmocka_unit_test(permute_is_even),
        cmocka_unit_test(permute_parts_neighbours),
        cmocka_unit_test(permute_takes_large_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
