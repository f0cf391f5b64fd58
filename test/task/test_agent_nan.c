// Rewards and observations that are not numbers end an agent's run with a line that says so.
#include "cpu/cpu.h"
#include "data/leaks.h"
#include "data/walk.h"
#include "support.h"
#include "task/agent.h"
#include "task/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char description[] = "data: {bars: {fast: bars.csv}}\n"
                                  "agent: {env: market, n_envs: 2, n_steps: 16, batch_size: 32, n_epochs: 1,\n"
                                  "  total_timesteps: 64, limit: 20, reward: shaped}\n"
                                  "model: {kind: mlp, widths: 6}\n"
                                  "run: {dir: made}\n"
                                  "gpu_optimization: {memory_monitoring: false}\n";

static int enter(void **state) {
    if (support_enter(state)) return -1;
    walk_put("bars.csv", 2000, 300, 1);
    return 0;
}

static int leave(void **state) {
    leaks_planted = (leaks){0};
    return support_leave(state);
}

static task_options options(void) {
    return (task_options){.description = {.file = "run.yaml", .text = description},
        .devices = {.host = &cpu_device, .options = {.threads = 1}},
        .version = "test"};
}

static void says_why(const err *e) {
    assert_int_equal(e->kind, ERR_RUN);
    assert_non_null(strstr(e->text, "iteration 1: the loss is not finite"));
    assert_non_null(strstr(e->text, "a reward or an observation is not a number"));
    assert_null(strchr(e->text, '\n'));
}

static void a_reward_that_is_no_number(void **state) {
    (void)state;
    err e = {0};
    agent_task t;
    agent_report r;
    task_options o = options();
    support_ok(agent_task_open(&t, &o, NULL, &e), &e);
    t.agent.world.env.market.shape = (double)NAN;
    agent *a = agent_task_agent(&t, &e);
    assert_non_null(a);
    assert_false(agent_iterate(a, &r, &e));
    says_why(&e);
    agent_free(a);
    agent_task_close(&t);
}

static void spoil(float *feature, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i += 10) feature[i * width] = NAN;
}

// A run that fails so leaves no weights that look trained.
static void an_observation_that_is_no_number(void **state) {
    (void)state;
    err e = {0};
    task_options o = options();
    leaks_planted.observed = spoil;
    assert_false(task_fit(&o, &e));
    says_why(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reward_that_is_no_number, enter, leave),
        cmocka_unit_test_setup_teardown(an_observation_that_is_no_number, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
