// Half precision: every number widens to its value and comes back; everything between rounds to nearest, ties to even.
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// The value by its definition.
static double value_of(uint32_t h) {
    double sign = h & 0x8000 ? -1 : 1;
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    return exponent ? sign * ldexp(1024 + fraction, exponent - 25) : sign * ldexp(fraction, -24);
}

static void every_half_widens_and_returns(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        double want = value_of(h);
        float is = half_widen((uint16_t)h);
        if (isnan(want)) {
            assert_true(isnan(is) && isnan(half_widen(half_narrow(is))));
            continue;
        }
        assert_true((double)is == want && !signbit(is) == !signbit(want));
        assert_int_equal(half_narrow(is), h);
    }
}

static void between_neighbours_the_nearest(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        float low = half_widen((uint16_t)h), high = half_widen((uint16_t)(h + 1)), middle = 0.5f * (low + high);
        assert_int_equal(half_narrow(nextafterf(middle, low)), h);
        assert_int_equal(half_narrow(nextafterf(middle, high)), h + 1);
        assert_int_equal(half_narrow(middle), h + (h & 1));
        assert_int_equal(half_narrow(-middle), 0x8000 | (h + (h & 1)));
    }
}

static void beyond_the_largest(void **state) {
    (void)state;
    assert_int_equal(half_narrow(65504), 0x7BFF);
    assert_int_equal(half_narrow(nextafterf(65520, 0)), 0x7BFF);
    assert_int_equal(half_narrow(65520), 0x7C00);
    assert_int_equal(half_narrow(-1e30f), 0xFC00);
    assert_int_equal(half_narrow(1e-30f), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_widens_and_returns),
        cmocka_unit_test(between_neighbours_the_nearest),
        cmocka_unit_test(beyond_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
