// Walks of agents: folds side by side, in shards, killed at fixed places and gone on with leave the same bytes; a fold
// is an agent's run like any other, and what cannot be walked is told.
#include "cli/program.h"
#include "cli/walks.h"
#include "data/walk.h"
#include "fault/kinds.h"
#include "run/same.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FOLDS = 3, KILLS = 4 };

static void put_walk(void) {
    put_text("walk.yaml",
        "data: {set: set.npz}\n"
        "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 2, limit: 40,\n"
        "  total_timesteps: 320, evaluate_every: 2, learning_rate: 0.01, normalize_observation: true}\n"
        "model: {widths: 6}\n"
        "train: {checkpoint_every: 2, patience: 9}\n"
        "account: {spread: 0.0001}\n"
        "walk: {train: 500, validation: 100, test: 150, folds: 3, embargo: 5}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n");
    walk_put("bars.csv", 4000, 300, 1);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "-q"), 0);
}

static int enter(void **state) {
    int rc = support_enter(state);
    if (rc) return rc;
    program_use(TRADEWIND_BINARY);
    put_walk();
    return 0;
}

static void jobs_and_shards_leave_the_same(void **state) {
    (void)state;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=1"), 0);
    matches("out", "\nfolds +3, 3 of them here, 1 at once on [0-9]+ threads? each");
    matches("out", "\nfold +[0-9]+ +5 iterations, best [0-9]+: validation reward -?[0-9.e-]+\n");
    matches("out", "\nfold +test from +to +samples +reward +skill +return +skill\n");
    matches("out", "\nall +[0-9]+ +-?[0-9.e-]+ +[+-][0-9.]+ +-?[0-9.e-]+ +[+-][0-9.]+\n");
    matches("out", "\nreport +made/report\\.html\n");
    assert_int_equal(walk_folds_of("made", "done"), FOLDS);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=3", "run.dir=three", "-q"), 0);
    is_empty("out");
    same_walks("made", "three");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=1/2", "run.dir=shards"), 0);
    assert_int_equal(access("shards/walk.json", F_OK), -1);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "run.dir=shards"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--gather", "run.dir=shards"), 0);
    same_walks("made", "shards");
}

static double figure(const json_t *of, const char *kind, const char *name) {
    return json_number_value(json_object_get(json_object_get(of, kind), name));
}

// walk.json has the score that evaluate gives; rewards are sums, returns their exponentials.
static void a_fold_is_a_run(void **state) {
    (void)state;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0);
    json_t *doc = walk_document("made"), *folds = json_object_get(doc, "folds"), *fold;
    double sum = 0;
    size_t i;
    json_array_foreach(folds, i, fold) {
        double reward = figure(fold, "metrics", "reward"), trivial = figure(fold, "trivial", "reward");
        sum += reward;
        assert_true(fabs(figure(fold, "metrics", "return") - expm1(reward)) < 1e-12 && trivial >= 0);
        assert_true(fabs(figure(fold, "skill", "reward") - (reward - trivial)) < 1e-12);
        long long bars = json_integer_value(json_array_get(json_object_get(fold, "samples"), 2));
        assert_int_equal(json_integer_value(json_object_get(fold, "steps")), bars - 1);
    }
    assert_true(fabs(figure(doc, "metrics", "reward") - sum) < 1e-12);
    assert_true(fabs(figure(doc, "metrics", "return") - expm1(sum)) < 1e-12);
    json_t *last = json_array_get(folds, FOLDS - 1);
    char name[64], dir[64];
    long long at = json_integer_value(json_object_get(last, "number"));
    snprintf(name, sizeof name, "walk.fold=%lld", at);
    snprintf(dir, sizeof dir, "made/fold_%02lld", at);
    assert_int_equal(RUN("train", "walk.yaml", name, "run.dir=alone", "--device=cpu"), 0);
    same_runs("alone", dir);
    assert_int_equal(RUN("evaluate", dir, "--json", "--device=cpu"), 0);
    assert_true(fabs(number("mean_reward") - figure(last, "metrics", "reward")) < 1e-8);
    assert_int_equal(RUN("runs", "."), 0);
    assert_int_equal(RUN("report", "made"), 0);
    assert_false(file_holds("out", "Learning curve") || file_holds("out", "Greedy pass")); // they are the folds'
    json_decref(doc);
}

// The agent of the next fold begins with the weights of the one before.
static void warm_folds(void **state) {
    (void)state;
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "run.dir=cold", "-q"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.start=warm"), 0);
    matches("out", "folds +3, 3 of them here, 1 at once");
    assert_int_not_equal(system("cmp -s cold/walk.json made/walk.json"), 0);
    assert_int_equal(system("set -- made/fold_*; cmp -s \"$1/best.safetensors\" cold/${1#made/}/best.safetensors"), 0);
}

// With a rate of 0 the weights stay those that it began with.
static void an_agent_begins_with_weights(void **state) {
    (void)state;
#define FOLD(...) RUN("train", "walk.yaml", "walk.fold=2", "agent.normalize_observation=false", "-q", __VA_ARGS__)
    assert_int_equal(FOLD("run.dir=made"), 0);
    assert_int_equal(FOLD("run.dir=same", "agent.learning_rate=0", "train.init_from=made/best.safetensors"), 0);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    double reward = number("mean_reward");
    assert_int_equal(RUN("evaluate", "same", "--json"), 0);
    assert_true(number("mean_reward") == reward);
    complains(RUN("train", "walk.yaml", "walk.fold=2", "train.init_from=made/best.safetensors", "agent.env=cartpole",
                  "run.dir=other"),
        "made/best.safetensors: was trained in market, not in cartpole; .*");
}

static void killed_walks_go_on(void **state) {
    (void)state;
    static const char *const words[] = {"walk", "walk.yaml", "--device=cpu", "walk.jobs=2", NULL};
    print_message("killed %d of %d\n", walk_killed(words, KILLS), KILLS);
}

static void mistakes_are_told(void **state) {
    (void)state;
    complains(RUN("walk", "walk.yaml", "agent.env=cartpole"),
        "agent.env=cartpole: agent.env: only an agent of env: market has data to walk through; use train");
    complains(RUN("walk", "walk.yaml", "walk.importance=true"),
        "walk.importance=true: walk.importance: importance of columns is not measured for agents; leave it out");
    complains(
        RUN("walk", "walk.yaml", "agent.limit=600"), "set.npz: is shorter than an episode: the part train has .*");
    complains(
        RUN("walk", "walk.yaml", "agent.batch_size=48"), "agent.batch_size=48: agent.batch_size: a rollout of 2 .*");
    assert_int_equal(access("made", F_OK), -1); // nothing was begun
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(jobs_and_shards_leave_the_same),
        TEST(a_fold_is_a_run),
        TEST(warm_folds),
        TEST(an_agent_begins_with_weights),
        TEST(killed_walks_go_on),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
