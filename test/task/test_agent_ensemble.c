// Ensembles of agents: members with seeds of their own, each to the bits that it has alone, whose probabilities or
// numbers are averaged in one pass with one account; going on, walks, and what is refused.
#include "cli/program.h"
#include "cli/walks.h"
#include "data/walk.h"
#include "fault/kinds.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMBERS = 3 };

static void works(int status) {
    if (status) kinds_shell("cat err >&2");
    assert_int_equal(status, 0);
}

static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    walk_put("bars.csv", 3000, 900, 1);
    put_text("run.yaml", "data: {set: set.npz}\n"
                         "agent: {env: market, n_envs: 4, n_steps: 32, batch_size: 64, n_epochs: 2, lags: 2,\n"
                         "  total_timesteps: 512, limit: 50, learning_rate: 0.01}\n"
                         "account: {spread: 0.0001}\n"
                         "model: {widths: 8-8}\ntrain: {seed: 5, ensemble: 3}\n"
                         "run: {dir: all}\ngpu_optimization: {memory_monitoring: false}\n");
    works(RUN("import", "bars.csv", "--frames", "1h", "-o", "set.npz", "-q"));
    return status;
}

// Columns of the first bar of a pass, at which all books are alike.
static void first_bar(const char *run, const char *columns, double *to, int count) {
    works(RUN("predict", run, "-o", "p.csv", "-q"));
    char *text = slurp("p.csv"), *names = text, *row = strchr(text, '\n') + 1;
    int found = 0;
    row[strcspn(row, "\n")] = names[strcspn(names, "\n")] = 0;
    for (char *name; (name = strsep(&names, ","));) {
        char *value = strsep(&row, ",");
        if (!strstr(columns, name)) continue;
        assert_true(found < count);
        to[found++] = atof(value);
    }
    assert_int_equal(found, count);
    free(text);
}

static void answers_are_means(const char *columns, int count) {
    double whole[3], mean[3] = {0}, one[3];
    first_bar("all", columns, whole, count);
    for (int k = 1; k <= MEMBERS; k++) {
        char dir[32];
        snprintf(dir, sizeof dir, "all/member_%d", k);
        first_bar(dir, columns, one, count);
        for (int i = 0; i < count; i++) mean[i] += one[i] / MEMBERS;
        assert_true(fabs(one[0] - whole[0]) > 1e-6); // no member stands for all
    }
    for (int i = 0; i < count; i++)
        if (fabs(whole[i] - mean[i]) > 1e-6) fail_msg("%g is not the mean, %g", whole[i], mean[i]);
}

static void members_decide_together(void **state) {
    (void)state;
    works(RUN("train", "run.yaml", "--device=cpu"));
    matches("out", "\nensemble +all: 3 members, which evaluate and predict take together\n");
    answers_are_means("p_short,p_flat,p_long", 3);
    works(RUN("evaluate", "all", "--json"));
    double reward = number("mean_reward");
    works(RUN("backtest", "all", "--json"));
    // The environment leaves open what the account closes.
    assert_true(fabs(log(number("equity_final") / 100000) - reward) < 0.001 && number("trades") > 0);
    works(RUN("report", "all"));
    matches("out", "^run +all: done, mlp, 0 iterations\n");
    assert_false(file_holds("out", "mean reward 0"));
    matches("out", "Learning curve: reward: no episode has ended; an ensemble's are in its members' directories");
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "agent.actions=continuous"));
    answers_are_means("direction", 1);
}

static void a_memory_is_each_members_own(void **state) {
    (void)state;
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "agent.lstm=4", "train.ensemble=2"));
    works(RUN("predict", "all", "-o", "all.csv", "-q"));
    // The same member twice answers as it does alone.
    kinds_shell("rm -r all/member_2 && cp -r all/member_1 all/member_2");
    works(RUN("predict", "all", "-o", "twice.csv", "-q"));
    works(RUN("predict", "all/member_1", "-o", "one.csv", "-q"));
    same_bytes("twice.csv", "one.csv");
    kinds_shell("! cmp -s all.csv one.csv");
}

static void a_member_is_the_run_of_its_seed(void **state) {
    (void)state;
    works(RUN("train", "run.yaml", "--device=cpu", "-q"));
    works(RUN("train", "run.yaml", "--device=cpu", "-q", "train.ensemble=1", "train.seed=6", "run.dir=alone"));
    same_bytes("all/member_2/best.safetensors", "alone/best.safetensors");
    // A member that is missing is trained where it goes on, and the others stay.
    kinds_shell("cp all/member_3/best.safetensors third && rm -r all/member_3");
    complains(RUN("evaluate", "all"), "all: its members are not all trained; go on with `tradewind train .*");
    works(RUN("train", "all/config.yaml", "--device=cpu", "--resume"));
    matches("out", "\nmember +2 of 3, seed 6: trained already\nmember +3 of 3, seed 7\n");
    same_bytes("all/member_3/best.safetensors", "third");
    works(RUN("evaluate", "all"));
}

static void folds_have_members(void **state) {
    (void)state;
    put_text("walk.yaml", "data: {set: set.npz}\n"
                          "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 2, limit: 40,\n"
                          "  total_timesteps: 128}\nmodel: {widths: 6}\ntrain: {ensemble: 2}\n"
                          "walk: {train: 500, validation: 100, test: 150, folds: 3, jobs: 2}\n"
                          "run: {dir: walked}\ngpu_optimization: {memory_monitoring: false}\n");
    works(RUN("walk", "walk.yaml", "--device=cpu", "-q"));
    assert_int_equal(walk_folds_of("walked", "done"), 3);
    works(RUN("backtest", "walked", "--json"));
    works(RUN("walk", "walk.yaml", "--device=cpu", "-q", "walk.jobs=1", "run.dir=slowly"));
    same_walks("walked", "slowly");
    kinds_shell("test $(ls walked/fold_*/member_2/best.safetensors | wc -l) = 3");
}

// The ensemble's own description says how many members there are.
static void a_changed_description_is_told(void **state) {
    (void)state;
    works(RUN("train", "run.yaml", "--device=cpu", "-q"));
    works(RUN("evaluate", "all", "--json"));
    assert_false(file_holds("out", "was changed after the run"));
    kinds_shell("sed -i 's/ensemble: 3/ensemble: 2/' all/config.yaml");
    works(RUN("evaluate", "all", "--json"));
    matches("out", "all/config.yaml was changed after the run, so these may be other members than the weights' own");
}

static void mistakes_are_told(void **state) {
    (void)state;
    complains(RUN("train", "run.yaml", "--device=cpu", "agent.env=cartpole"),
        "run.yaml:6: train.ensemble: members decide together at the bars of agent.env: market, and cartpole has .*");
    complains(RUN("train", "run.yaml", "--device=cpu", "agent.batch_size=48"), ".*agent.batch_size: a rollout of .*");
    assert_int_equal(access("all", F_OK), -1); // nothing was begun
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(members_decide_together),
        TEST(a_memory_is_each_members_own),
        TEST(a_member_is_the_run_of_its_seed),
        TEST(folds_have_members),
        TEST(a_changed_description_is_told),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
