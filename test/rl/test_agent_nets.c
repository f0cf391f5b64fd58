// Agents whose nets see lags as a sequence, as runs of the program: trained, resumed to the same bits, evaluated,
// split, and refused where there is no sequence. And the beginnings of a shared net.
#include "cli/program.h"
#include "data/walk.h"
#include "run/safetensors.h"
#include "run/same.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    walk_put("bars.csv", 3000, 300, 1);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "-q"), 0);
    put_text("trade.yaml", "data: {set: set.npz}\n"
                           "agent: {env: market, lags: 6, n_envs: 4, n_steps: 16, batch_size: 32, n_epochs: 2,\n"
                           "  total_timesteps: 256, limit: 20, evaluate_every: 2, normalize_observation: true}\n"
                           "model: {kind: transformer, hidden: 8, layers: 1, heads: 2, head: 8, projection: 4}\n"
                           "train: {checkpoint_every: 2}\n"
                           "run: {dir: made}\ngpu_optimization: {memory_monitoring: false}\n");
    return status;
}

#define DEVICE "--device=cpu"

static void refuses(int status, const char *text) {
    char pattern[400];
    snprintf(pattern, sizeof pattern, "[^\n]*%s[^\n]*", text);
    complains(status, pattern);
}

static void a_transformer_is_an_agent(void **state) {
    (void)state;
    assert_int_equal(RUN("train", "trade.yaml", DEVICE, "--threads=1"), 0);
    matches(
        "out", "\nmodel +two nets for policy and value over 6 bars: transformer, 1 layers, hidden 8, [^\n]*, fp32\n");
    assert_false(file_holds("out", "\nunused"));
    assert_int_equal(RUN("train", "trade.yaml", DEVICE, "--threads=2", "run.dir=two"), 0);
    same_runs("made", "two");
    assert_int_equal(RUN("train", "trade.yaml", DEVICE, "run.dir=half", "agent.total_timesteps=128"), 0);
    assert_int_equal(RUN("train", "half/config.yaml", DEVICE, "--resume", "agent.total_timesteps=256"), 0);
    assert_int_equal(system("cmp made/best.safetensors half/best.safetensors"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_int_equal(RUN("inspect", "made"), 0);
    assert_int_equal(RUN("train", "trade.yaml", DEVICE, "run.dir=numbers", "agent.actions=continuous",
                         "agent.noise=state", "agent.shared=true", "model.hidden=12"),
        0);
    assert_false(file_holds("out", "\nunused"));
}

static void usual_keys_are_an_agents(void **state) {
    (void)state;
    assert_int_equal(system("sed -i 's/, hidden.*/}/' trade.yaml"), 0);
    assert_int_equal(RUN("plan", "trade.yaml", DEVICE), 0);
    matches("out", ": transformer, 2 layers, hidden 64, projection 32, head 64, relu, 4 heads, ");
}

static void what_has_no_sequence_is_refused(void **state) {
    (void)state;
    refuses(RUN("train", "trade.yaml", DEVICE, "agent.env=cartpole"),
        "model.kind: a transformer sees the bars of agent.env: market as a sequence, and cartpole has none");
    refuses(RUN("train", "trade.yaml", DEVICE, "agent.lags=1"), "set agent.lags to 2 or more");
    refuses(RUN("train", "trade.yaml", DEVICE, "agent.lstm=8"), "agent.lstm: a transformer sees bars itself");
    refuses(RUN("train", "trade.yaml", DEVICE, "model.heads=3"), "model.heads: 3 do not share the width 8");
    refuses(RUN("train", "trade.yaml", DEVICE, "model.kind=nbeats"),
        "model.kind: agents are of kind mlp, or transformer over lags of market, not nbeats");
    assert_int_not_equal(access("made", F_OK), 0);
}

// The norm of a layer's weights, each output's row of which is orthogonal to the others.
static double gain(const safetensors *f, const char *name) {
    const safetensors_entry *t = safetensors_find(f, name);
    if (!t) fail_msg("no %s", name);
    double sum = 0;
    for (size_t i = 0; i < t->bytes / sizeof(float); i++)
        sum += (double)((const float *)t->data)[i] * (double)((const float *)t->data)[i];
    return sqrt(sum / (double)t->dim[0]);
}

static void a_shared_net_has_a_head_for_each(void **state) {
    (void)state;
    err e;
    assert_int_equal(RUN("train", "trade.yaml", DEVICE, "agent.shared=true", "model.kind=mlp", "agent.learning_rate=0",
                         "agent.total_timesteps=64"),
        0);
    safetensors *f = safetensors_open("made/best.safetensors", &e);
    support_ok(f != NULL, &e);
    assert_true(fabs(gain(f, "shared.value.weight") - 1) < 1e-4);
    assert_true(fabs(gain(f, "shared.net.4.weight") - 0.01) < 1e-6);
    assert_true(fabs(gain(f, "shared.net.2.weight") - sqrt(2)) < 1e-4);
    safetensors_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_transformer_is_an_agent, enter, support_leave),
        cmocka_unit_test_setup_teardown(usual_keys_are_an_agents, enter, support_leave),
        cmocka_unit_test_setup_teardown(what_has_no_sequence_is_refused, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_shared_net_has_a_head_for_each, enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
