// tradewind compare and the table of runs: two runs side by side, noise, filters and orders.
#include "cli/program.h"
#include "data/walk.h"
#include "run/results.h"
#include "support.h"
#include "task/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void means_have_the_interval_of_welch(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, 4, 5}, b[] = {3, 4, 5, 6, 7};
    interval r = compare_means(a, 5, b, 5); // difference 2, error 1, 8 degrees of freedom
    assert_true(fabs(r.low - (2 - 2.306)) < 1e-9 && fabs(r.high - (2 + 2.306)) < 1e-9);
    assert_true(isnan(compare_means(a, 1, b, 5).low));
}

static void folds_have_the_interval_of_student(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, 4}, b[] = {2, 4, 4, 6}; // differences 1, 2, 1, 2: mean 1.5, error 0.2887
    interval r = compare_pairs(a, b, 4);
    double reach = 3.182 * sqrt(1.0 / 12);
    assert_true(fabs(r.low - (1.5 - reach)) < 1e-9 && fabs(r.high - (1.5 + reach)) < 1e-9);
    assert_true(isnan(compare_pairs(a, b, 1).low));
}

static void two_runs_are_compared(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=a", "run.tags=[gold, first]"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=b", "train.seed=2", "run.tags=[golden]"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "settings +run.tags");
    matches("out", "train.seed +1 +2");
    matches("out", "noise +cannot be told: `tradewind evaluate` both");
    assert_int_equal(RUN("evaluate", "a", "-q"), 0);
    assert_int_equal(RUN("evaluate", "b", "-q"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "noise +MCC [-0-9.]+ and [-0-9.]+, B - A [-+0-9.e]+, 95 %: .*more than noise");
    // A run and itself: nothing differs.
    assert_int_equal(RUN("compare", "a", "a"), 0);
    matches("out", "settings +the same");
    matches("out", "B - A \\+0, 95 %: \\+0 to \\+0: no more than noise");
    assert_int_equal(RUN("compare", "a", "b", "--json"), 0);
    json_t *all = last_line(), *noise = json_object_get(all, "noise");
    assert_string_equal(json_string_value(json_object_get(noise, "by")), "answers");
    json_decref(all);
    // A run on files of bars has no data.set, whatever that key's default is.
    walk_put("bars.csv", 1500, 3600, 4);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=c", "data.bars.fast=bars.csv", "data.frames=[4h]"), 0);
    assert_int_equal(RUN("import", "bars.csv", "--frames", "4h", "-o", "s.npz", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=d", "data.set=s.npz"), 0);
    assert_int_equal(RUN("compare", "d", "c"), 0);
    matches("out", "data\\.set +[^ ]+ +-\n");
    complains(RUN("compare", "a", "nowhere"), "nowhere: is no run's directory.*");
    complains(RUN("compare", "a"), "name two runs");
    // The table.
    assert_int_equal(RUN("runs", ".", "--filter", "tag=gold"), 0);
    assert_true(file_holds("out", "./a ") && !file_holds("out", "./b "));
    assert_int_equal(RUN("runs", ".", "--filter", "train.seed!=1", "--filter", "status=done"), 0);
    assert_true(file_holds("out", "./b ") && !file_holds("out", "./a "));
    assert_int_equal(RUN("runs", ".", "--sort", "started", "--reverse"), 0);
    char *text = slurp("out");
    assert_true(strstr(text, "./b ") < strstr(text, "./a "));
    assert_null(strstr(text, "failed"));
    free(text);
    complains(RUN("runs", ".", "--sort", "beauty"), "--sort beauty: must be name, .*");
    complains(RUN("runs", ".", "--filter", "status"), "--filter status: must be KEY=VALUE .*");
    complains(RUN("runs", ".", "--filter", "tag="), "--filter tag=: must be KEY=VALUE .*");
    complains(RUN("runs", ".", "--filter", "!=done"), "--filter !=done: must be KEY=VALUE .*");
    complains(RUN("runs", ".", "--filter", "status!=finished"), "--filter status!=finished: status is running, .*");
    complains(RUN("runs", ".", "--filter", "train.sed!=1"), "--filter train.sed!=1: no run here has the key train.sed");
}

static void ensembles_are_compared_by_seeds(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "run.dir=a", "train.ensemble=2", "train.epochs=1"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=b", "train.ensemble=2", "train.epochs=1", "train.seed=9"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "2 and 2 members of other seeds");
    assert_int_equal(RUN("runs", ".", "--sort", "epochs"), 0); // those without epochs of their own come last
    matches("out", "\n\\./b/member_2 [^\n]*\n\\./a +done +lstm x2 +- +- +- +- +-  2");
}

static void ensembles_of_agents_are_compared_by_seeds(void **state) {
    (void)state;
    walk_put("bars.csv", 1500, 900, 1);
    put_text("agent.yaml", "data: {bars: {fast: bars.csv}, vector: false, features: {fast: [return, body]}}\n"
                           "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1, limit: 40,\n"
                           "  total_timesteps: 128}\nmodel: {widths: 6}\ntrain: {ensemble: 2}\nrun: {dir: a}\n");
    assert_int_equal(RUN("train", "agent.yaml", "-q", "--device", "cpu"), 0);
    assert_int_equal(RUN("train", "agent.yaml", "-q", "--device", "cpu", "run.dir=b", "train.seed=9"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "noise +reward [-0-9.e]+ and [-0-9.e]+, B - A ");
    matches("out", "2 and 2 members of other seeds");
}

// A walk as it is left, with the folds' scores.
static void put_walk(const char *dir, const char *env, const char *metric, const double *scores, int folds) {
    char path[64], config[64];
    err e = {0};
    json_t *list = json_array();
    assert_int_equal(mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/config.yaml", dir);
    snprintf(config, sizeof config, "%s%s", *env ? "agent:\n  env: " : "model:\n  kind: mlp\n", env);
    put_text(path, config);
    for (int i = 0; i < folds; i++) {
        char day[32];
        snprintf(day, sizeof day, "2026-0%d-01", i + 1);
        json_array_append_new(
            list, json_pack("{s:i, s:[s, s], s:{s:f}}", "number", i, "test", day, day, "metrics", metric, scores[i]));
    }
    support_ok(results_write(dir, RESULTS_WALK,
                   json_pack("{s:o, s:i, s:i, s:{s:f}}", "folds", list, "done", folds, "samples", 100, "metrics",
                       metric, scores[0]),
                   &e),
        &e);
}

static void walks_are_compared_by_folds(void **state) {
    (void)state;
    put_walk("a", "market", "reward", (const double[]){0.1, -0.2, 0.3}, 3);
    put_walk("b", "market", "reward", (const double[]){0.2, -0.1, 0.4}, 3);
    put_walk("c", "", "mcc", (const double[]){0.2}, 1);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "\nfolds +3 +3 +\\+0\n");
    matches("out", "\ntest reward +0.1 +0.2 +\\+0.1\n");
    matches("out", "\nreward of tests from\n2026-01-01 +0.1 +0.2 +\\+0.1\n2026-02-01 +-0.2 +-0.1 +\\+0.1\n");
    matches("out", "noise +reward 0.06667 and 0.1667, B - A \\+0.1, 95 %: \\+0.1 to \\+0.1: more than noise");
    matches("out", "means of 3 folds with the same test, in pairs");
    assert_false(file_holds("out", "nan"));
    assert_int_equal(RUN("compare", "a", "c"), 0);
    matches("out", "\ntest reward +0.1 +-\ntest mcc +- +0.2\n");
    matches("out", "noise +cannot be told: the walks have fewer than two folds with the same test and metric");
    assert_int_equal(RUN("compare", "a", "b", "--json"), 0);
    json_t *all = last_line();
    assert_string_equal(json_string_value(results_get(all, "noise.by")), "folds");
    assert_true(json_is_true(results_get(all, "noise.more_than_noise")));
    assert_true(fabs(results_number(results_get(all, "test.reward.b")) - 0.2) < 1e-12);
    json_decref(all);
    put_text("c/walk.json", "{\"version\": 1, \"folds\": 7}");
    complains(RUN("compare", "a", "c"), "c/walk.json: .*");
}

// Tests of cpcv have holes: those of groups 1, 2 and 4 begin and end with those of 1, 3 and 4, and are not the same.
static void folds_of_groups_are_compared_by_number(void **state) {
    (void)state;
    put_text("walk.yaml", "data: {set: synthetic, synthetic: {bars: 1000}, windows: {fast: 5, slow: 3}}\n"
                          "model: {kind: mlp, widths: 4}\ntrain: {batch_size: 128, epochs: 1}\nrun: {dir: a}\n"
                          "walk: {scheme: cpcv, groups: 4, test_groups: 3, train: 100, validation: 30, test: 30}\n"
                          "gpu_optimization: {memory_monitoring: false}\n");
    assert_int_equal(RUN("walk", "walk.yaml", "-q", "--device", "cpu"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "-q", "--device", "cpu", "run.dir=b", "train.seed=2"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "\nmcc of tests of fold\n1 [^\n]*\n2 [^\n]*\n3 [^\n]*\n4 [^\n]*\n\n");
    matches("out", "means of 4 folds with the same test");
    // Other groups are other tests.
    assert_int_equal(RUN("walk", "walk.yaml", "-q", "--device", "cpu", "run.dir=c", "walk.groups=5"), 0);
    assert_int_equal(RUN("compare", "a", "c"), 0);
    matches("out", "noise +cannot be told: the walks have fewer than two folds with the same test and metric");
}

static void agents_are_compared_by_their_rewards(void **state) {
    (void)state;
    put_text("agent.yaml", "agent: {env: cartpole, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1,\n"
                           "  total_timesteps: 256, evaluate_every: 2, evaluate_episodes: 2}\n"
                           "model: {widths: 8}\nrun: {dir: a}\n");
    assert_int_equal(RUN("train", "agent.yaml", "-q"), 0);
    assert_int_equal(RUN("train", "agent.yaml", "-q", "run.dir=b", "train.seed=2"), 0);
    assert_int_equal(RUN("compare", "a", "b"), 0);
    matches("out", "\nbest iteration +[0-9]+ +[0-9]+");
    matches("out", "\neval/mean_reward +[0-9.]+ +[0-9.]+");
    matches("out", "noise +cannot be told of single agents: walk both");
    assert_false(file_holds("out", "nan"));
    assert_false(file_holds("out", "train/"));
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "./a +done +cartpole +4 +[24] +- +reward [0-9.]+");
    assert_int_equal(RUN("watch", "--json", "a"), 0);
    json_t *all = last_line();
    assert_true(json_is_null(json_object_get(all, "epochs")));
    assert_int_equal(json_integer_value(json_object_get(all, "timesteps")), 256);
    json_decref(all);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_have_the_interval_of_welch),
        cmocka_unit_test(folds_have_the_interval_of_student),
        cmocka_unit_test_setup_teardown(two_runs_are_compared, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(ensembles_are_compared_by_seeds, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(ensembles_of_agents_are_compared_by_seeds, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(walks_are_compared_by_folds, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(folds_of_groups_are_compared_by_number, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(agents_are_compared_by_their_rewards, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
