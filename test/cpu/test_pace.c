// The pace of a call: what is timed, and what is made of it.
#include "cpu/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Plays a call that takes so long shared and alone until it is settled; the number of plays.
static int settle(pace *p, double shared, double alone) {
    int plays = 0;
    while (pace_looks(p)) {
        pace_played(p, pace_shares(p) ? shared : alone);
        assert_true(++plays < 1000);
    }
    return plays;
}

static void the_faster_way_is_taken(void **state) {
    (void)state;
    pace p = {0};
    assert_true(settle(&p, 5e-6, 9e-6) > 4);
    assert_true(pace_shares(&p));
    p = (pace){0};
    settle(&p, 9e-6, 5e-6);
    assert_false(pace_shares(&p));
    p = (pace){0};
    settle(&p, 5e-6, 5.2e-6); // a gain that is not worth a second thread
    assert_false(pace_shares(&p));
}

// A long call never waits for one thread, not even once.
static void a_long_call_is_shared_at_once(void **state) {
    (void)state;
    pace p = {0};
    assert_true(pace_shares(&p));
    assert_int_equal(settle(&p, 0.5, 1e9), 1);
    assert_true(pace_shares(&p));
}

// One play that something else held up decides nothing.
static void the_shortest_time_counts(void **state) {
    (void)state;
    pace p = {0};
    for (int i = 0; pace_looks(&p); i++) {
        bool shared = pace_shares(&p);
        pace_played(&p, i < 4 ? 1e-4 : shared ? 4e-6 : 9e-6);
    }
    assert_true(pace_shares(&p));
}

// Other programs come and go, so it is looked at anew.
static void it_is_looked_at_again(void **state) {
    (void)state;
    pace p = {0};
    settle(&p, 9e-6, 5e-6);
    int plays = 0;
    for (; !pace_looks(&p); plays++) {
        assert_false(pace_shares(&p));
        pace_played(&p, 0);
        assert_true(plays < 1000000);
    }
    assert_true(plays > 1000);
    settle(&p, 5e-6, 9e-6);
    assert_true(pace_shares(&p));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_is_taken),
        cmocka_unit_test(a_long_call_is_shared_at_once),
        cmocka_unit_test(the_shortest_time_counts),
        cmocka_unit_test(it_is_looked_at_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
