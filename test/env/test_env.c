// Environments against known answers, and their arithmetic against the C library's.
#include "env/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORDS_MOST = 64 };

static int steps_until_end(const int *pattern, int length) {
    env_settings s = {.kind = ENV_cartpole, .limit = 500};
    env_data none = {{NULL}, 0};
    int64_t state[WORDS_MOST] = {0};
    float seen[4];
    env_see_rows(&s, &none, (env_dice){1, 0, 0}, state, seen, 0, 1);
    cartpole_state *c = (cartpole_state *)((env_head *)state + 1);
    *c = (cartpole_state){0.01, -0.02, 0.03, -0.04};
    for (int i = 0;; i++) {
        float action = (float)pattern[i % length];
        env_result r;
        env_take_rows(&s, &none, state, &action, &r, seen, 0, 1);
        if (r.end != ENV_GOES_ON) return r.steps;
    }
}

static void test_cartpole_falls_when_it_should(void **state) {
    (void)state;
    assert_int_equal(steps_until_end((const int[]){1}, 1), 10);
    assert_int_equal(steps_until_end((const int[]){1, 0}, 2), 44);
    assert_int_equal(steps_until_end((const int[]){0, 1, 1, 0}, 4), 38);
}

static void test_arithmetic_is_that_of_the_library(void **state) {
    (void)state;
    for (int i = -200000; i <= 200000; i++) {
        double x = i * 0.37;
        assert_true(fabs(maths_sin(x) - sin(x)) < 4e-16);
        assert_true(fabs(maths_cos(x) - cos(x)) < 4e-16);
        if (i > 0) assert_true(fabs(maths_log(x) - log(x)) <= 4e-16 * fmax(1, fabs(log(x))));
        if (i > 0) assert_true(fabs(maths_log(1 / x) - log(1 / x)) <= 4e-16 * fmax(1, fabs(log(x))));
    }
}

// A pendulum that hangs is truncated at the limit, never terminated; the state begins anew by itself.
static void test_an_episode_is_cut_off_at_the_limit(void **state) {
    (void)state;
    env_settings s = {.kind = ENV_pendulum, .limit = 200};
    env_data none = {{NULL}, 0};
    int64_t one[WORDS_MOST] = {0};
    float seen[3], before[3], last[3], torque = 0.5f;
    env_result r = {0};
    env_see_rows(&s, &none, (env_dice){1, 0, 0}, one, seen, 0, 1);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(r.end, ENV_GOES_ON);
        env_take_rows(&s, &none, one, &torque, &r, last, 0, 1);
    }
    assert_int_equal(r.end, ENV_TRUNCATED);
    assert_true(r.total < 0 && r.steps == 200);
    for (int k = 0; k < 3; k++) before[k] = last[k];
    env_see_rows(&s, &none, (env_dice){1, 1, 0}, one, seen, 0, 1);
    assert_true(before[2] != seen[2]);
    env_take_rows(&s, &none, one, &torque, &r, last, 0, 1);
    assert_int_equal(r.steps, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cartpole_falls_when_it_should),
        cmocka_unit_test(test_arithmetic_is_that_of_the_library),
        cmocka_unit_test(test_an_episode_is_cut_off_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
