// A signal in the midst of an iteration that would take very long: the run stops at once, leaves a checkpoint of the
// iteration's beginning, and goes on from there.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", "agent: {env: cartpole, n_envs: 8, n_steps: 4096, batch_size: 32, n_epochs: 10000,\n"
                         "  total_timesteps: 100000, evaluate_episodes: 2}\n"
                         "run: {dir: made}\ngpu_optimization: {memory_monitoring: false}\n");
    return status;
}

// Ten million minibatches are an iteration.
static void stop_one(const char *const *words) {
    pid_t child = program_start("out", words);
    wait_for("out", "\nmemory ");
    usleep(200000);
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("out", "\nstopped by a signal after iteration 0\nresume +tradewind train made/config\\.yaml --resume\n");
    assert_int_equal(access("made/last.safetensors", F_OK), 0);
}

static void a_long_iteration_is_given_up(void **state) {
    (void)state;
    const char *first[] = {"train", "run.yaml", "--device=cpu", NULL};
    const char *again[] = {"train", "made/config.yaml", "--device=cpu", "--resume", NULL};
    stop_one(first);
    assert_int_equal(system("cp made/last.safetensors first.safetensors"), 0);
    stop_one(again);
    assert_int_equal(system("cmp first.safetensors made/last.safetensors"), 0);
    assert_int_equal(RUN("inspect", "made"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_long_iteration_is_given_up, enter, support_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
