// examples/ppo_cartpole.yaml learns what it says, as a user runs it, for two seeds.
//
// Runs in: test-long
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void cartpole_is_learnt(void **state) {
    (void)state;
    static const char *const seeds[] = {"1", "2"};
    program_use(TRADEWIND_BINARY);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        const char *seed = seeds[i];
        assert_int_equal(RUN("train", TEST_DIR "/../examples/ppo_cartpole.yaml", "--device=cpu", "--seed", seed,
                             "run.dir=made", "-q"),
            0);
        // Weights as the run ended, and the best ones.
        assert_int_equal(RUN("evaluate", "made/last.safetensors", "--device=cpu", "--json"), 0);
        print_message(
            "seed %s: %.1f in the mean of %.0f greedy episodes\n", seed, number("mean_reward"), number("episodes"));
        assert_true(number("mean_reward") >= 490 && number("episodes") == 20);
        assert_int_equal(RUN("evaluate", "made", "--device=cpu", "--json"), 0);
        assert_true(number("mean_reward") >= 490);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cartpole_is_learnt, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
