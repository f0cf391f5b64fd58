// Uses of a trained run: evaluate, predict, inspect and runs, from outside.
#include "base/json.h"
#include "cli/program.h"
#include "data/npz.h"
#include "data/walk.h"
#include "run/command.h"
#include "support.h"
#include "task/lines.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void put_description(const char *more) {
    char text[1024];
    snprintf(text, sizeof text,
        "data: {synthetic: {bars: 2000}%s}\nmodel: {hidden: {fast: 4, slow: 4}}\n"
        "train: {epochs: 2, batch_size: 128}\nrun: {dir: made}\n",
        more);
    put_text("run.yaml", text);
}

// Evaluating

static void check_evaluate(const char *more) {
    put_description(more);
    assert_int_equal(RUN("train", "run.yaml", "--json"), 0);
    double mcc = number("validation_mcc");
    assert_int_equal(RUN("evaluate", "made", "--part=validation", "--json"), 0);
    assert_float_equal(number("mcc"), mcc, 1e-8);
    assert_int_equal(RUN("evaluate", "made", "--part=validation", "--json", "data.residency=host"), 0);
    assert_float_equal(number("mcc"), mcc, 1e-8);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    json_t *v = last_line();
    assert_string_equal(json_string_value(json_object_get(v, "part")), "test");
    const json_t *rows = json_object_get(v, "confusion");
    json_int_t all = 0;
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 9; i++) all += json_integer_value(json_array_get(json_array_get(rows, i / 3), i % 3));
    assert_int_equal(all, json_integer_value(json_object_get(v, "samples")));
    assert_int_equal(json_array_size(json_object_get(v, "classes")), 3);
    json_decref(v);
}

static void evaluation_agrees_with_training(void **state) {
    (void)state;
    check_evaluate("");
    check_evaluate(", scale: standard");
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "^weights +made/best\\.safetensors\ndata +synthetic, test: [0-9,]+ samples\naccuracy +[0-9.]+\n");
    matches("out", "\ntrivial +majority class [012]: accuracy [0-9.]+, MCC 0\\.0000; prior: log loss [0-9.]+\n");
    matches(
        "out", "\nlog loss +[0-9.]+  [0-9.]+ to [0-9.]+ +[0-9.]+  prior +[-+][0-9.]+  [-+][0-9.]+ to [-+][0-9.]+\n");
    matches("out", "\ntrue +0 +1 +2 +recall\n0 +[0-9]+ ");
    assert_int_equal(RUN("evaluate", "made", "-q"), 0);
    matches("out", "\nmacro F1 +[0-9.]+\n$");
    // The training loss is told where it is not the log loss, which it then is not.
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.class_weights=balanced", "train.label_smoothing=0.1"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "\nloss +[0-9.]+ [(]of training: cross_entropy, weighted by class, labels smoothed by 0.1[)]\n");
    // Overrides that nothing reads.
    assert_int_equal(RUN("evaluate", "made", "model.heads=3", "data.label.horizon=3"), 0);
    matches("out", "^unused +data\\.label\\.horizon: [^\n]+\nunused +model\\.heads: [^\n]+\nweights ");
    assert_int_equal(RUN("evaluate", "made", "model.heads=3", "--json"), 0);
    matches("err", "^unused +model\\.heads: model\\.kind lstm does not read it\n$");
    assert_int_equal(RUN("predict", "made", "model.heads=3", "-o", "p.csv"), 0);
    matches("out", "^unused +model\\.heads: [^\n]+\np[.]csv: ");
    assert_int_equal(RUN("evaluate", "made", "epochs=5", "train.patience=3", "account.spread=2"), 0);
    matches("out",
        "^key +epochs: read as train\\.epochs\nunused +train\\.epochs: is of training, and these weights are "
        "trained\nunused +train\\.patience: [^\n]+\nunused +account\\.spread: evaluate does not read "
        "it\nweights ");
    assert_int_equal(RUN("predict", "made", "live.late=3", "signal.threshold=0.5", "-o", "p.csv"), 0);
    matches("out", "^unused +live\\.late: predict does not read it\np[.]csv: ");
    assert_int_equal(RUN("evaluate", "made/last.safetensors", "--part=train"), 0);
    matches("out", "^weights +made/last\\.safetensors\ndata +synthetic, train: ");
}

static void mistakes_are_told(void **state) {
    (void)state;
    put_description("");
    complains(RUN("evaluate"), "no run given; .*");
    complains(RUN("evaluate", "made"), "made: cannot be read: .*");
    complains(RUN("evaluate", "."), "\\.: holds no trained weights .*");
    assert_int_equal(
        system("mkdir -p walk/fold_2 walk/fold_10 && touch walk/fold_2/config.yaml walk/fold_10/config.yaml"), 0);
    complains(RUN("evaluate", "walk"), "walk: is a walk's directory, and its .*; name one, such as walk/fold_10");
    complains(RUN("predict", "walk", "-o", "p.csv"), "walk: is a walk's directory, .*; name one, such as walk/fold_10");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    complains(RUN("evaluate", "made", "--part", "all of it"), "--part all of it: unknown part; .*");
    complains(RUN("evaluate", "made", "model.head=9"), "made/best\\.safetensors: does not fit the model; .*");
    complains(RUN("evaluate", "made", "--data", "missing.npz"), ".*data\\.set.*missing\\.npz.*");
    complains(RUN("evaluate", "run.yaml"), "run\\.yaml: is not in a run's directory, .*; name a run's directory");
    complains(RUN("evaluate", "made/config.yaml"), "made/config\\.yaml: is the description of a run; .*, made");
    complains(RUN("train", "run.yaml", "train.metric=rmse"),
        ".*train\\.metric: rmse is for forecasts; use one of mcc, accuracy, balanced_accuracy, macro_f1, loss");
    complains(RUN("train", "made"), "made: is a run's directory; its description is made/config\\.yaml");
    complains(RUN("train", "run.yaml", "train.batch_size=100000"),
        ".*train\\.batch_size: a step of 100000 samples is more than 4 times the 1[0-9]+ training samples; .*");
    complains(
        RUN("train", "run.yaml", "train.batch_size=100000", "train.ensemble=2"), ".*train\\.batch_size: a step .*");
    assert_int_equal(RUN("plan", "run.yaml", "train.batch_size=100000"), 0);
    matches("out", ", more than there are for training\n +train refuses it: [^\n]+\n");
    complains(RUN("predict", "made"), "no file to write given; .*");
    complains(RUN("predict", "made", "-o", "p.txt"), "-o p\\.txt: must end in .*");
    complains(RUN("runs", "missing"), "missing: cannot be read: .*");
    mkdir("empty", 0777);
    complains(RUN("runs", "empty"), "empty: no runs found in it");
    complains(RUN("runs", "empty", "--filter", "train.seed=1"), "empty: no runs found in it");
    complains(RUN("inspect", "empty"), "empty: is no run's directory; .*");
}

// Predicting

static void check_arrays(int64_t samples, double accuracy) {
    err e = {0};
    npz z;
    support_ok(npz_open(&z, "p.npz", &e), &e);
    const npz_entry *p = npz_find(&z, "probability"), *a = npz_find(&z, "prediction"), *l = npz_find(&z, "label");
    assert_true(p && a && l);
    assert_true(p->header.rank == 2 && p->header.dim[0] == samples && p->header.dim[1] == 3);
    float *probability = malloc((size_t)samples * 3 * sizeof *probability);
    int32_t *answer = malloc((size_t)samples * sizeof *answer), *label = malloc((size_t)samples * sizeof *label);
    assert_true(probability && answer && label);
    support_ok(npz_read(&z, p, NULL, NPY_F32, probability, &e) && npz_read(&z, a, NULL, NPY_I32, answer, &e) &&
                   npz_read(&z, l, NULL, NPY_I32, label, &e),
        &e);
    int64_t right = 0;
    for (int64_t i = 0; i < samples; i++) {
        const float *row = probability + 3 * i;
        assert_true(fabs((double)row[0] + (double)row[1] + (double)row[2] - 1) < 1e-5);
        for (int k = 0; k < 3; k++) assert_true(row[answer[i]] >= row[k]);
        right += answer[i] == label[i];
    }
    assert_float_equal((double)right / (double)samples, accuracy, 1e-8);
    free(probability);
    free(answer);
    free(label);
    npz_close(&z);
}

static void predictions_agree_with_evaluation(void **state) {
    (void)state;
    put_description("");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    double accuracy = number("accuracy"), samples = number("samples");
    assert_int_equal(RUN("predict", "made", "-o", "p.npz"), 0);
    matches("out", "^p\\.npz: probabilities of 3 classes for [0-9,]+ samples \\(synthetic, test\\) by made/best");
    check_arrays((int64_t)samples, accuracy);
    assert_int_equal(RUN("predict", "made", "-o", "q.npz", "data.residency=host", "train.batch_size=100", "-q"), 0);
    rename("q.npz", "p.npz");
    check_arrays((int64_t)samples, accuracy);
    assert_int_equal(RUN("predict", "made", "-o", "p.csv", "--json"), 0);
    assert_true(number("samples") == samples);
    matches("p.csv", "^sample,label,prediction,p_0,p_1,p_2\n[0-9]+,[012],[012],[0-9.e-]+,[0-9.e-]+,[0-9.e-]+\n");
    char *text = slurp("p.csv");
    int lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, (int)samples + 1);
    free(text);
}

// Other data

static void put_bars(const char *path, int count, uint64_t seed, double factor) {
    bar *bars = walk_bars(count, 300, seed);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (int i = 0; i < count; i++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)bars[i].time, factor * bars[i].open,
            factor * bars[i].high, factor * bars[i].low, factor * bars[i].close, bars[i].volume, bars[i].spread);
    fclose(f);
    free(bars);
}

// The same set given as other data is scaled by the training's scaler, not by its own: the same figures.
static void other_data_are_scaled_as_in_training(void **state) {
    (void)state;
    put_bars("a.csv", 3000, 1, 1);
    put_bars("b.csv", 1500, 2, 3);
    assert_int_equal(RUN("import", "a.csv", "-o", "a.npz", "-q"), 0);
    assert_int_equal(RUN("import", "b.csv", "-o", "b.npz", "-q"), 0);
    put_text("set.yaml", "data: {set: a.npz, windows: {fast: 8}}\nmodel: {hidden: {fast: 4}}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "set.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--part=all", "--json"), 0);
    double mcc = number("mcc"), loss = number("loss");
    assert_int_equal(RUN("evaluate", "made", "--data", "a.npz", "--json"), 0);
    assert_true(number("mcc") == mcc && number("loss") == loss);
    assert_int_equal(RUN("evaluate", "made", "--data", "a.npz", "--json", "data.split.train=0.3"), 0);
    assert_true(number("mcc") == mcc && number("loss") == loss);
    assert_int_equal(RUN("evaluate", "made", "--data", "b.npz", "--json"), 0);
    assert_true(number("samples") > 100 && number("loss") != loss);
    assert_int_equal(RUN("predict", "made", "--data", "b.npz", "-o", "p.csv"), 0);
    matches("p.csv",
        "^sample,open_time,close_time,close,label,prediction,p_DOWN,p_NEUTRAL,p_UP\n0,20[0-9: -]+,20[0-9: -]+,");
}

// Looking

static void runs_are_listed(void **state) {
    (void)state;
    put_description("");
    assert_int_equal(RUN("train", "run.yaml", "run.dir=all/one", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=all/more/two", "-q", "model.kind=mlp", "model.widths=8"), 0);
    const char *train[] = {"train", "run.yaml", "run.dir=all/three", "train.epochs=100000", "train.patience=100000",
        "train.checkpoint_every=1", NULL};
    pid_t child = program_start("long", train);
    double until = support_seconds() + 60;
    while (!file_holds("long", "epoch   2 ") && support_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(RUN("runs", "all"), 0);
    matches("out", "^run +status +model .*\nall/more/two +done +mlp +2 +[12] .*\nall/one +done +lstm +2 +[12] ");
    matches("out", "\nall/three +running +lstm ");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(RUN("runs", "all", "--json"), 0);
    matches("out", "\"run\":\"all/three\",\"status\":\"killed\",\"model\":\"lstm\"");
    assert_int_equal(RUN("inspect", "all/three"), 0);
    matches("out", "^run +all/three: killed, lstm on cpu");
    matches("out", "\nfiles +best\\.safetensors\n +checkpoint_epoch_[0-9]+\\.safetensors\n");
    matches("out", "\nresume +tradewind train all/three/config\\.yaml --resume\n");
}

// A run in the directory of others, as run.dir: all makes it, hides none of them; an ensemble's members are listed
// once.
static void a_run_among_runs_is_listed(void **state) {
    (void)state;
    put_description("");
    assert_int_equal(RUN("train", "run.yaml", "run.dir=all/two", "-q", "train.epochs=1", "train.ensemble=2"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=all", "-q", "train.epochs=1"), 0);
    assert_int_equal(mkdir("all/earlier", 0777), 0); // as earlier versions left it
    assert_int_equal(system("cp all/config.yaml all/earlier"), 0);
    assert_int_equal(RUN("runs", "all"), 0);
    matches("out", "^run [^\n]+\nall +done [^\n]+\nall/two +done [^\n]+\nall/two/member_1 +done [^\n]+\n"
                   "all/two/member_2 +done [^\n]+\n$");
}

// The command that goes on is as a shell takes it, whatever the directory is called.
static void resume_lines_are_for_a_shell(void **state) {
    static const char *const dirs[][2] = {{"plain-1/x_2", "tradewind train plain-1/x_2/config.yaml --resume"},
        {"my runs/it's $one", "tradewind train 'my runs/it'\\''s $one/config.yaml' --resume"}};
    char deep[700] = "d", want[800];
    (void)state;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *line = command_resume(dirs[i][0]);
        assert_string_equal(line, dirs[i][1]);
        free(line);
    }
    memset(deep, 'd', sizeof deep - 1);
    snprintf(want, sizeof want, "tradewind train %s/config.yaml --resume", deep);
    char *line = command_resume(deep);
    assert_string_equal(line, want);
    free(line);
}

// Killed in its first epoch: what run.db has is shown.
static void a_killed_run_shows_its_steps(void **state) {
    (void)state;
    put_description("");
    const char *train[] = {
        "train", "run.yaml", "run.dir=cut", "data.synthetic.bars=200000", "train.batch_size=16", "--device=cpu", NULL};
    pid_t child = program_start("long", train);
    double until = support_seconds() + 60;
    for (bool there = false; !there && support_seconds() < until;) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        there = RUN("inspect", "cut") == 0 && file_holds("out", "\nwithin ");
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(RUN("inspect", "cut"), 0);
    matches("out", "^run +cut: killed, lstm on cpu");
    matches(
        "out", "\nepochs +0, [1-9][0-9,]* steps, 0\\.0 s\nwithin +epoch 1, [1-9][0-9,]* samples of it, loss [0-9.]+\n");
    assert_int_equal(RUN("inspect", "cut", "--json"), 0);
    matches("out", "\"steps\":[1-9][0-9]*,\"epochs\":0,");
    matches("out", "\"within\":\\{\"epoch\":1,\"samples\":[1-9][0-9]*,\"loss\":[0-9.]+\\},");
}

static void checkpoints_are_shown(void **state) {
    (void)state;
    put_description("");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "^run +made: done, lstm on cpu, .*\nbest +epoch [12], validation loss [0-9.]+, MCC ");
    assert_int_equal(RUN("inspect", "made", "--json"), 0);
    matches("out", "\"files\":\\[\"best.safetensors\",\"last.safetensors\"\\]");
    assert_int_equal(RUN("inspect", "made/last.safetensors"), 0);
    matches("out", "^made/last\\.safetensors: checkpoint, whole, [0-9]+ tensors, [0-9,]+ parameters\n");
    matches("out", "\n  fast\\.weight_ih_l0 +f32 +\\[16, 15\\]\n");
    assert_int_equal(RUN("inspect", "made/best.safetensors", "--json"), 0);
    matches("out", "\"name\":\"fast.weight_ih_l0\",\"type\":\"f32\"");
    assert_int_equal(truncate("made/last.safetensors", 5000), 0);
    complains(RUN("inspect", "made/last.safetensors"), "made/last\\.safetensors: .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(evaluation_agrees_with_training),
        TEST(mistakes_are_told),
        TEST(predictions_agree_with_evaluation),
        TEST(other_data_are_scaled_as_in_training),
        TEST(runs_are_listed),
        TEST(a_run_among_runs_is_listed),
        TEST(resume_lines_are_for_a_shell),
        TEST(a_killed_run_shows_its_steps),
        TEST(checkpoints_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
