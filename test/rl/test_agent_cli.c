// Agents as runs of the program: files, figures, resume after kills, the same bits, and lines about bad input.
#include "cli/program.h"
#include "data/walk.h"
#include "fault/kinds.h"
#include "run/same.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS_MOST = 8 };

static int enter(void **state) {
    int status = support_enter(state);
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", "agent:\n  {env: cartpole, n_envs: 4, n_steps: 16, batch_size: 32, n_epochs: 2,\n"
                         "   total_timesteps: 640, evaluate_every: 3, evaluate_episodes: 3, limit: 60}\n"
                         "model: {widths: 8-8}\n"
                         "train: {checkpoint_every: 4, checkpoint_minutes: 0}\n"
                         "run: {dir: made}\n"
                         "gpu_optimization: {memory_monitoring: false}\n");
    return status;
}

// The first number of a query on a run's database.
static double ask(const char *db_path, const char *query) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    double v = sqlite3_column_double(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return v;
}

static int train(const char *dir, const char *a, const char *b) {
    const char *words[] = {"train", "run.yaml", "--device=cpu", dir, a, a ? b : NULL, NULL};
    return program_finish(program_start("out", words));
}

// Numbers of JSON are rounded.
static void is_near(double a, double b) {
    assert_true(fabs(a - b) < 1e-9 * fabs(b));
}

// The text stands in the one line that the program ends with.
static void refuses(int status, const char *text) {
    char pattern[256];
    snprintf(pattern, sizeof pattern, "[^\n]*%s[^\n]*", text);
    complains(status, pattern);
}

// Files and figures

static const char *const metrics[] = {"rollout/ep_rew_mean", "rollout/ep_len_mean", "train/approx_kl",
    "train/clip_fraction", "train/entropy_loss", "train/policy_gradient_loss", "train/value_loss", "train/loss",
    "train/explained_variance", "train/learning_rate", "train/clip_range", "train/n_updates", "time/fps",
    "time/rollout", "time/update", "time/total_timesteps"};

static void a_run_leaves_its_figures(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=made", NULL, NULL), 0);
    matches("out", "\nagent +cartpole, 4 environments x 16 steps in a rollout, minibatches of 32, 2 passes, 640 steps "
                   "in 10 iterations\n");
    matches("out", "\nstep 64  reward [^\n]* steps/s\n");
    matches("out", "\nevaluation at step 640: reward [^\n]*\n");
    matches(
        "out", "\nbest +iteration [0-9]+, mean reward [^\n]* of 3 greedy episodes\nweights +made/best\\.safetensors\n");
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        char query[160];
        snprintf(query, sizeof query, "SELECT count(*) FROM metrics WHERE part = '' AND name = '%s'", metrics[i]);
        if (ask("made/run.db", query) != 10) fail_msg("%s is not in every iteration", metrics[i]);
    }
    assert_true(ask("made/run.db", "SELECT count(*) FROM metrics WHERE name = 'train/std'") == 0);
    assert_true(ask("made/run.db", "SELECT count(*) FROM metrics WHERE name = 'eval/mean_reward'") == 4);
    assert_true(ask("made/run.db", "SELECT max(step) FROM epochs") == 640);
    assert_true(ask("made/run.db", "SELECT value FROM metrics WHERE name = 'train/n_updates' AND epoch = 10") == 20);
    assert_true(
        ask("made/run.db", "SELECT value FROM metrics WHERE name = 'train/learning_rate' AND epoch = 10") == 3e-4);
}

static void other_commands_know_agents(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=made", NULL, NULL), 0);
    double best = ask("made/run.db", "SELECT max(value) FROM metrics WHERE name = 'eval/mean_reward'");
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    is_near(number("mean_reward"), best);
    assert_true(number("episodes") == 3);
    assert_int_equal(RUN("evaluate", "made", "agent.evaluate_episodes=7", "--json"), 0);
    assert_true(number("episodes") == 7);
    assert_int_equal(RUN("evaluate", "made/last.safetensors"), 0);
    matches("out", "\nepisodes +3 in cartpole, greedy, of 60 steps at most\nreward ");
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nsteps +640 in 10 iterations, [^\n]*\nbest +iteration [0-9]+, mean reward ");
    assert_int_equal(RUN("runs", ".", "--json"), 0);
    is_near(number("mean_reward"), best);
    assert_int_equal(RUN("report", "made", "--json"), 0);
    is_near(number("mean_reward"), best);
    assert_true(file_holds("made/report.html", "Learning curve: reward"));
    assert_int_equal(RUN("plan", "run.yaml", "--device=cpu", "--json"), 0);
    assert_true(number("slab_bytes") > 0);
    refuses(RUN("predict", "made", "-o", "p.csv"),
        "made/best.safetensors: is an agent of cartpole, which has no bars to answer for");
    refuses(RUN("backtest", "made"), "made: is an agent of cartpole, which has no bars to trade on");
    refuses(RUN("tune", "run.yaml"), "not for agents; train, plan, ");
    refuses(RUN("evaluate", "made", "--part", "test"), "--part: the environment of this run, cartpole, has no data");
    refuses(
        RUN("evaluate", "made", "agent.env=cartpole_positions"), "was trained in cartpole, not in cartpole_positions");
}

// The same bits

static void threads_change_nothing(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=one", "--threads=1", NULL), 0);
    assert_int_equal(train("run.dir=two", "--threads=2", NULL), 0);
    assert_int_equal(train("run.dir=again", "--threads=2", NULL), 0);
    assert_int_equal(train("run.dir=other", "train.seed=2", NULL), 0);
    same_runs("one", "two");
    same_runs("two", "again");
    assert_int_not_equal(system("cmp -s one/best.safetensors other/best.safetensors"), 0);
}

// The trained agents: each row an agent with states of its own that a checkpoint must keep.
static const char *const killed[][KEYS_MOST] = {
    {"agent.learning_rate=lin_0.01", "agent.normalize_observation=true"},
    {"agent.env=pendulum", "agent.noise=state", "agent.noise_every=5", "agent.normalize_reward=true",
        "agent.target_kl=0.001", "agent.n_epochs=5"},
    {"agent.lstm=4", "agent.env=cartpole_positions"},
    {"agent.shared=true", "train.patience=1", "agent.learning_rate=0", "agent.evaluate_every=2"},
};

static int run_killed(const char *const *keys, const fault *f, bool resume) {
    const char *words[KEYS_MOST + 6] = {"train", "run.yaml", "--device=cpu", "--threads=1"};
    int n = 4, status;
    for (int i = 0; i < KEYS_MOST && keys[i]; i++) words[n++] = keys[i];
    if (resume) words[n++] = "--resume";
    pid_t child = fault_start(words, f, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void check_killed(const char *const *keys) {
    int64_t all, opening;
    fault f = {.call = "rename", .how = "kill"};
    kinds_shell("rm -rf made whole");
    if (run_killed(keys, &f, false) != 0) is_empty("err");
    kind_calls(&all, &opening);
    kinds_shell("mv made whole");
    assert_true(all >= 5);
    for (f.at = 1; f.at <= all; f.at++) {
        kinds_shell("rm -rf made");
        int status = run_killed(keys, &f, false);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (run_killed(keys, NULL, access("made/config.yaml", F_OK) == 0) != 0) is_empty("err");
        same_runs("whole", "made");
    }
}

static void runs_killed_at_each_file_lose_nothing(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // its runtime must be loaded first
    for (size_t i = 0; i < sizeof killed / sizeof *killed; i++) check_killed(killed[i]);
}

static void a_signal_saves(void **state) {
    (void)state;
    const char *words[] = {"train", "run.yaml", "--device=cpu", "agent.total_timesteps=100000000", NULL};
    pid_t child = program_start("out", words);
    wait_for("out", "evaluation at step 192");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches(
        "out", "\nstopped by a signal after iteration [0-9]+\nresume +tradewind train made/config\\.yaml --resume\n");
    // A whole run of as many iterations, and one more, has the same agent.
    int64_t steps = (int64_t)ask("made/run.db", "SELECT max(step) FROM epochs") + 64;
    char total[64];
    snprintf(total, sizeof total, "agent.total_timesteps=%lld", (long long)steps);
    assert_int_equal(RUN("train", "made/config.yaml", "--device=cpu", "--resume", total), 0);
    assert_int_equal(train("run.dir=whole", total, NULL), 0);
    same_runs("whole", "made");
}

// Going on

static void what_differs_is_refused_by_key(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=made", NULL, NULL), 0);
    refuses(train("run.dir=made", "--resume", "agent.gamma=0.5"),
        "made/last.safetensors: was made under another description: agent.gamma is 0.5, was 0.99; ");
    refuses(train("run.dir=made", "--resume", "model.widths=9"), "model.widths is 9, was 8-8; ");
    assert_int_equal(train("run.dir=made", "--resume", NULL), 0);
    matches("out", "\nover +the run had ended after iteration 10; a larger agent.total_timesteps goes on\n");
    assert_int_equal(train("run.dir=made", "--resume", "agent.total_timesteps=704"), 0);
    assert_true(ask("made/run.db", "SELECT max(epoch) FROM epochs") == 11);
    // Fewer steps than were taken are refused, and the description stays.
    assert_int_equal(train("run.dir=made", "--resume", "agent.total_timesteps=320"), 2);
    matches("err", "agent.total_timesteps: 320 are asked for, and made/last.safetensors stands at step 704; ");
    assert_true(file_holds("made/config.yaml", "total_timesteps: 704"));
    assert_int_equal(train("run.dir=falls", "agent.clip_range=lin_0.2", NULL), 0);
    refuses(RUN("train", "falls/config.yaml", "--device=cpu", "--resume", "agent.total_timesteps=704"),
        "agent.total_timesteps is 704, was 640, and a value that changes over the run goes by it; put that back");
}

// A market's data are part of the run: other bars behind the same name are refused.
static void an_agent_of_a_market_keeps_its_data(void **state) {
    (void)state;
    walk_put("bars.csv", 3000, 300, 1);
    kinds_shell("head -n 2900 bars.csv >cut.csv");
    put_text("trade.yaml", "data: {set: set.npz}\n"
                           "agent: {env: market, n_envs: 2, n_steps: 16, batch_size: 32, n_epochs: 1,\n"
                           "  total_timesteps: 64, limit: 20}\n"
                           "model: {widths: 6}\nrun: {dir: made}\ngpu_optimization: {memory_monitoring: false}\n");
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "-q"), 0);
    assert_int_equal(RUN("train", "trade.yaml", "--device=cpu"), 0);
    matches("made/plan.yaml", "\ndata_sum: [0-9a-f]+\nsamples:\n  all: [1-9]");
    assert_int_equal(RUN("evaluate", "made", "--part", "validation", "--json"), 0);
    is_near(
        number("mean_reward"), ask("made/run.db", "SELECT max(value) FROM metrics WHERE name = 'eval/mean_reward'"));
    assert_int_equal(RUN("evaluate", "made", "--part", "train", "--json"), 0);
    refuses(RUN("evaluate", "made", "--part", "tset"), "--part: tset is no part of an agent's data; ");
    refuses(RUN("evaluate", "made", "data.split.train=0.5"),
        "made/best.safetensors: was trained on other data or parts of them: ");
    assert_int_equal(RUN("train", "made/config.yaml", "--device=cpu", "--resume", "agent.total_timesteps=96"), 0);
    assert_int_equal(RUN("import", "cut.csv", "-o", "set.npz", "-q"), 0);
    refuses(RUN("train", "made/config.yaml", "--device=cpu", "--resume"), "the data have changed");
    refuses(RUN("evaluate", "made"), "made/best.safetensors: was trained on other data or parts of them: ");
}

static void patience_counts_evaluations(void **state) {
    (void)state;
    // Nothing is learnt, so no evaluation is better than the first.
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "agent.learning_rate=0", "train.patience=1"), 0);
    matches("out", "\nstopped early: no better evaluation in 1\n");
    assert_true(ask("made/run.db", "SELECT max(epoch) FROM epochs") == 6);
    assert_true(ask("made/run.db", "SELECT note = 'stopped early' FROM run") == 1);
    assert_int_equal(RUN("train", "made/config.yaml", "--device=cpu", "--resume", "train.patience=2"), 0);
    assert_true(ask("made/run.db", "SELECT max(epoch) FROM epochs") == 9);
    assert_true(ask("made/run.db", "SELECT sum(best) FROM epochs") == 1);
    // Patience that runs out with the last step has stopped nothing.
    const char *const whole[] = {"train", "run.yaml", "--device=cpu", "agent.learning_rate=0", "train.patience=2",
        "agent.total_timesteps=576", "run.dir=whole", NULL};
    assert_int_equal(program_finish(program_start("out", whole)), 0);
    assert_false(file_holds("out", "stopped early"));
    assert_int_equal(RUN("train", "whole/config.yaml", "--device=cpu", "--resume"), 0);
    matches("out", "\nover +the run had ended after iteration 9; a larger agent.total_timesteps goes on\n");
}

// Offset of a text in the line of a file that begins with another; -1: there is no such line.
static long column_of(const char *path, const char *line, const char *text) {
    char *all = slurp(path), *at = all;
    while (at && strncmp(at, line, strlen(line)) != 0) at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    const char *found = at ? strstr(at, text) : NULL;
    long column = found ? (long)(found - at) : -1;
    free(all);
    return column;
}

// Names and rewards that are long.
static void a_table_keeps_its_columns(void **state) {
    (void)state;
    const char *const words[] = {"train", "run.yaml", "--device=cpu", "agent.env=cartpole_positions",
        "run.dir=a_directory_whose_name_is_longer_than_others", NULL};
    assert_int_equal(program_finish(program_start("out", words)), 0);
    const char *const far[] = {"train", "run.yaml", "--device=cpu", "agent.env=pendulum", "agent.limit=20000",
        "agent.evaluate_episodes=1", "run.dir=made", NULL};
    assert_int_equal(program_finish(program_start("out", far)), 0);
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "reward -[0-9.]+e\\+0[45] ");
    long ends = column_of("out", "./made", "\n");
    assert_true(ends > 0 && column_of("out", "./a_directory", "\n") == ends);
    assert_true(column_of("out", "run ", "started (UTC)") + (long)strlen("2026-01-01 00:00") == ends);
}

static void an_earlier_run_is_set_aside(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=made", NULL, NULL), 0);
    assert_int_equal(train("run.dir=made", NULL, NULL), 0);
    matches("out", "\nearlier +the run that was in made is now made\\.1\n");
    same_runs("made.1", "made");
}

// Input

static void bad_input_is_told(void **state) {
    (void)state;
    static const char *const all[][2] = {
        {"agent.batch_size=48",
            "agent.batch_size: a rollout of 4 environments x 16 steps is 64 rows, which minibatches "
            "of 48 do not divide"},
        {"gpu_optimization.gradient_accumulation_steps=3", "minibatches of 96, 3 micro-batches of 32, do not divide"},
        {"agent.noise=state", "agent.noise: cartpole has choices"},
        {"agent.actions=continuous", "agent.actions: cartpole has choices, not numbers, as actions; leave it out"},
        {"agent.env=mountain", "agent.env: must be .*cartpole.*, not mountain"},
        {"model.kind=lstm",
            "model.kind: agents are of kind mlp, or transformer over lags of market, not lstm; agent.lstm puts"},
        {"model.kind=nbeats", "model.kind: agents are of kind mlp, or "},
        {"model.dropout=0.1", "model.dropout: an agent's nets have none"},
        {"agent.n_env=3", "agent.n_env: unknown key; did you mean agent.n_envs\\?"},
        {"agent.learning_rate=fast", "agent.learning_rate: must be a number from 0 on, lin_NUMBER, or .*, not fast"},
        {"agent.learning_rate=-1", "agent.learning_rate: must be a number from 0 on, .*, not -1"},
        {"agent.use_sde=true", "agent.use_sde: has another name here; write agent.noise: state"},
        {"agent.net_arch=64", "agent.net_arch: has another name here; write model.widths, such as 64-64"},
        {"agent.ent_coef.to=1", "agent.ent_coef.from: is missing"},
        {"agent.lstm=-1", "agent.lstm: must be an integer from 0"},
        {"agent.limit=0", "agent.limit: must be an integer from 1 to .* or auto"},
        {"train.ensemble=2",
            "train.ensemble: members decide together at the bars of agent.env: market, and cartpole has none; "},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) refuses(train("run.dir=made", all[i][0], NULL), all[i][1]);
    put_text("none.yaml", "agent: {n_envs: 2}\n");
    refuses(RUN("train", "none.yaml"), "none.yaml:1: agent.env: is missing; name an environment: cartpole, ");
    assert_int_not_equal(access("made", F_OK), 0);
}

static void failures_are_told(void **state) {
    (void)state;
    assert_int_equal(train("run.dir=made", "agent.learning_rate=1e30", "agent.env=pendulum"), 1);
    matches("err", "(the loss is not|no gradient of the last .* was) finite.*; no weights were saved yet\n");
    assert_true(ask("made/run.db", "SELECT status = 'failed' FROM run") == 1);
    assert_int_equal(train("run.dir=small", "gpu_optimization.max_host_memory_gb=0.001", NULL), 1);
    matches("err", "the plan needs [0-9.]+ MB, .*set gpu_optimization.max_host_memory_gb to [0-9.]+ or more");
    assert_int_not_equal(access("small", F_OK), 0);
}

static void keys_are_told(void **state) {
    (void)state;
    put_text("theirs.yaml",
        "agent:\n  {env: cartpole, N_ENVS: 4, N_STEPS: 16, BATCH_SIZE: 32, N_EPOCHS: 2, TARGET_KL: 0.02, GAMMA: 0.9,\n"
        "   GAE_LAMBDA: 0.9, CLIP_RANGE: 0.1, ENT_COEF: 0.01, VF_COEF: 0.4, MAX_GRAD_NORM: 1, LEARNING_RATE: 1e-3,\n"
        "   CLIP_RANGE_VF: 5, NORMALIZE_ADVANTAGE: false, total_timesteps: 64, noise_every: 3}\ndata: {set: "
        "some.npz}\ntrain: {batch_size: 7, optimizer: {lr: 1}}\n");
    assert_int_equal(RUN("train", "theirs.yaml", "--device=cpu"), 0);
    matches("out", "\nkey +agent\\.N_ENVS: read as agent\\.n_envs\n");
    matches("out", "\nunused +data\\.set: the environment has no data\n");
    matches("out", "\nunused +train\\.batch_size: the key of an agent is agent\\.batch_size\n");
    matches("out", "\nunused +train\\.optimizer\\.lr: the key of an agent is agent\\.learning_rate\n");
    matches("out", "\nunused +agent\\.noise_every: is of agent\\.noise: state\n");
    matches("runs/last/config.yaml", "\n  max_grad_norm: 1\n");
    matches("runs/last/config.yaml", "\n  clip_range_vf: 5\n");
    put_text("top.yaml", "N_ENVS: 4\nagent: {env: cartpole}\n");
    assert_int_equal(RUN("train", "top.yaml", "--device=cpu"), 2);
    matches("err", "^tradewind: top.yaml:1: N_ENVS: unknown key; did you mean agent\\.n_envs\\?\n");
    assert_int_equal(RUN("train", "--help"), 0);
    matches("out", "\nagent\\.n_envs ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_leaves_its_figures, enter, support_leave),
        cmocka_unit_test_setup_teardown(other_commands_know_agents, enter, support_leave),
        cmocka_unit_test_setup_teardown(threads_change_nothing, enter, support_leave),
        cmocka_unit_test_setup_teardown(runs_killed_at_each_file_lose_nothing, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_signal_saves, enter, support_leave),
        cmocka_unit_test_setup_teardown(what_differs_is_refused_by_key, enter, support_leave),
        cmocka_unit_test_setup_teardown(an_agent_of_a_market_keeps_its_data, enter, support_leave),
        cmocka_unit_test_setup_teardown(patience_counts_evaluations, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_table_keeps_its_columns, enter, support_leave),
        cmocka_unit_test_setup_teardown(an_earlier_run_is_set_aside, enter, support_leave),
        cmocka_unit_test_setup_teardown(bad_input_is_told, enter, support_leave),
        cmocka_unit_test_setup_teardown(failures_are_told, enter, support_leave),
        cmocka_unit_test_setup_teardown(keys_are_told, enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
