// Agents under limits of memory: the planner splits their minibatches, the limit that `plan` names works, and a run
// keeps its split.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Minibatches of 16,384 rows, whose activations take some 30 MB.
static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", "agent: {env: cartpole, n_envs: 32, n_steps: 512, batch_size: 16384, n_epochs: 1,\n"
                         "  total_timesteps: 32768, evaluate_episodes: 1, limit: 20}\n"
                         "run: {dir: made}\ngpu_optimization: {memory_monitoring: false}\n");
    return status;
}

#define DEVICE "--device=cpu", "--threads=1"

static const char *limited(double gb) {
    static char word[64];
    snprintf(word, sizeof word, "gpu_optimization.max_host_memory_gb=%.2f", gb);
    return word;
}

static double smallest_limit(const char *key) {
    assert_int_equal(RUN("plan", "run.yaml", DEVICE, "--json", key), 0);
    return number("smallest_limit_gb");
}

static void what_does_not_fit_is_split(void **state) {
    (void)state;
    double least = smallest_limit("train.seed=1"),
           whole = smallest_limit("gpu_optimization.dynamic_batch_sizing=false");
    assert_true(number("accumulation") == 1);
    assert_true(least < whole);
    assert_int_equal(RUN("plan", "run.yaml", DEVICE, "--json", limited(least)), 0);
    assert_true(file_holds("out", "\"fits\":true") || file_holds("out", "\"fits\": true"));
    assert_true(number("accumulation") > 1);
    assert_true(number("accumulation") * number("micro_batch") == 16384);
    // One that is planned whole fits under its own limit, and is not split there.
    assert_int_equal(RUN("plan", "run.yaml", DEVICE, "--json", limited(whole)), 0);
    assert_true(number("accumulation") == 1);
    if (support_sanitized()) return; // a process is larger then
    assert_int_equal(RUN("train", "run.yaml", DEVICE, limited(least)), 0);
    matches("out", "\nsplit +minibatches of 16,384 rows in [0-9]+ micro-batches of [0-9,]+, as memory demands\n");
    matches("made/plan.yaml", "(^|\n)accumulation: ([2-9]|[0-9][0-9])");
    matches("made/training_log.txt", "split: minibatches of 16,384 rows in ");
}

static void refusals_name_keys_that_help(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // a process is larger then
    assert_int_equal(RUN("train", "run.yaml", DEVICE, limited(0.01), "gpu_optimization.dynamic_batch_sizing=false"), 1);
    matches("err", "set gpu_optimization.max_host_memory_gb to [0-9.]+ or more, "
                   "set gpu_optimization.dynamic_batch_sizing, or use a smaller agent.batch_size\n$");
    assert_int_equal(RUN("train", "run.yaml", DEVICE, limited(0.01), "agent.entropy_bound=1"), 1);
    matches("err", "or use a smaller agent.batch_size\n$");
    // Tables of a rollout are there whatever the split.
    assert_int_equal(RUN("train", "run.yaml", DEVICE, limited(0.02), "agent.n_steps=65536"), 1);
    matches("err", "or use a smaller agent.n_envs or agent.n_steps\n$");
    assert_int_not_equal(access("made", F_OK), 0);
}

static void a_split_can_be_fixed(void **state) {
    (void)state;
    assert_int_equal(RUN("plan", "run.yaml", DEVICE, "--json", "agent.batch_size=2048",
                         "gpu_optimization.gradient_accumulation_steps=4"),
        0);
    assert_true(number("batch") == 8192 && number("micro_batch") == 2048 && number("accumulation") == 4);
    assert_int_equal(
        RUN("plan", "run.yaml", DEVICE, "agent.batch_size=2048", "gpu_optimization.gradient_accumulation_steps=4"), 0);
    matches("out", "\nsplit +minibatches of 8,192 rows in 4 micro-batches of 2,048\n");
    assert_false(file_holds("out", "unused"));
    // Left to the planner, the same rows are taken at once.
    assert_int_equal(
        RUN("plan", "run.yaml", DEVICE, "--json", "agent.batch_size=2048",
            "gpu_optimization.gradient_accumulation_steps=4", "gpu_optimization.dynamic_batch_sizing=true"),
        0);
    assert_true(number("batch") == 8192 && number("accumulation") == 1);
    assert_int_equal(RUN("plan", "run.yaml", DEVICE, "agent.value_loss_bound=1", "agent.batch_size=2048",
                         "gpu_optimization.gradient_accumulation_steps=4"),
        2);
    matches("err", "agent.entropy_bound and agent.value_loss_bound are of a whole minibatch[^\n]*leave "
                   "gpu_optimization.gradient_accumulation_steps out\n$");
}

// A split moves the last digits, so a run that goes on keeps its own, with another limit too.
static void a_run_keeps_its_split(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // a process is larger then
    double least = smallest_limit("train.seed=1");
    assert_int_equal(RUN("train", "run.yaml", DEVICE, limited(least)), 0);
    char *was = slurp("made/plan.yaml"), *parts = strstr(was, "accumulation: ");
    assert_int_equal(
        RUN("train", "made/config.yaml", DEVICE, "--resume", limited(1), "agent.total_timesteps=49152"), 0);
    char *is = slurp("made/plan.yaml"), *now = strstr(is, "accumulation: ");
    assert_true(parts && now && strncmp(parts, now, 16) == 0);
    assert_true(atoi(parts + 14) > 1);
    free(was);
    free(is);
    assert_int_equal(RUN("evaluate", "made"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_split, enter, support_leave),
        cmocka_unit_test_setup_teardown(refusals_name_keys_that_help, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_split_can_be_fixed, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_run_keeps_its_split, enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
