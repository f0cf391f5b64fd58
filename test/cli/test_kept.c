// Nothing of the user's is lost: outputs, copied runs, other directories, runs without a checkpoint, a closed terminal.
#include "cli/program.h"
#include "data/npz.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void shell(const char *command) {
    if (system(command) != 0) fail_msg("%s", command);
}

static bool there(const char *path) {
    return access(path, F_OK) == 0;
}

static void put_bars_run(void) {
    walk_put("bars.csv", 1500, 300, 1);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "-q"), 0);
    put_text("run.yaml", "data: {set: set.npz, windows: {fast: 8}}\nmodel: {hidden: {fast: 4}}\n"
                         "train: {epochs: 2, batch_size: 128}\nrun: {dir: made}\n");
}

// Outputs

static void import_replaces_datasets_alone(void **state) {
    (void)state;
    put_bars_run();
    shell("cp bars.csv kept.csv; ln bars.csv linked.npz; ln -s bars.csv soft.npz");
    complains(
        RUN("import", "bars.csv", "-o", "kept.csv"), "kept\\.csv: is there and is not a dataset of tradewind; .*");
    complains(RUN("import", "bars.csv", "-o", "bars.csv"), "bars\\.csv: is both input and output; .*");
    complains(RUN("import", "bars.csv", "-o", "linked.npz"), "linked\\.npz: is both input and output; .*");
    complains(RUN("import", "bars.csv", "-o", "soft.npz"), ".*bars\\.csv: is both input and output; .*");
    same_bytes("bars.csv", "kept.csv");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "made", "-o", "p.npz", "-q"), 0);
    complains(RUN("import", "bars.csv", "-o", "p.npz"), "p\\.npz: is there and is not a dataset of tradewind; .*");
    complains(RUN("import", "bars.csv", "-o", "made/run.db"), "made/run\\.db: is there and is not a dataset .*");
    put_text("empty.npz", "");
    assert_int_equal(RUN("import", "bars.csv", "-o", "empty.npz", "-q"), 0);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "-q"), 0);
    same_bytes("empty.npz", "set.npz");
}

// Files that resemble outputs of predict and are not.
static void put_theirs(void) {
    static const char *const headers[] = {"id,prediction,p_value", "sample,prediction,p_value", "prediction,p_0,p_1",
        "sample,prediction,p_0,note", "date,forecast_1", "sample,target_1,forecast_1,secret", "q0.5_1,q0.9_1",
        "open_time,close,prediction,p_0,p_1", "sample,forecast_2", "sample"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        put_text("their.csv", headers[i]);
        complains(
            RUN("predict", "made", "-o", "their.csv"), "their\\.csv: is there and is not an output of predict; .*");
    }
    npz_writer w;
    err e = {0};
    const int64_t two = 2;
    const float x[2] = {1, 2};
    support_ok(npz_writer_open(&w, "their.npz", &e) && npz_writer_array(&w, "forecast", NPY_F32, 1, &two, x, &e) &&
                   npz_writer_array(&w, "secret", NPY_F32, 1, &two, x, &e) && npz_writer_commit(&w, &e),
        &e);
    complains(RUN("predict", "made", "-o", "their.npz"), "their\\.npz: is there and is not an output of predict; .*");
}

static void predict_replaces_its_own_alone(void **state) {
    (void)state;
    put_bars_run();
    shell("cp set.npz kept.npz; cp bars.csv kept.csv");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    complains(RUN("predict", "made", "-o", "set.npz"), "set\\.npz: is both input and output; .*");
    complains(RUN("predict", "made", "-o", "kept.npz"), "kept\\.npz: is there and is not an output of predict; .*");
    complains(RUN("predict", "made", "-o", "bars.csv"), "bars\\.csv: is there and is not an output of predict; .*");
    same_bytes("set.npz", "kept.npz");
    same_bytes("bars.csv", "kept.csv");
    put_theirs();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(RUN("predict", "made", "-o", "p.npz", "-q"), 0);
        assert_int_equal(RUN("predict", "made", "-o", "p.csv", "-q"), 0);
        assert_int_equal(RUN("predict", "made", "--latest", "3", "-o", "p.npz", "-q"), 0);
        assert_int_equal(RUN("predict", "made", "--latest", "3", "-o", "p.csv", "-q"), 0);
    }
    // The same of forecasts, with quantiles.
    assert_int_equal(RUN("import", "bars.csv", "-o", "next.npz", "--label=forecast", "--horizon=2", "-q"), 0);
    static const char *const losses[] = {"mae", "quantile"};
    for (int i = 0; i < 4; i++) {
        char loss[32];
        snprintf(loss, sizeof loss, "train.loss=%s", losses[i / 2]);
        if (i % 2 == 0)
            assert_int_equal(
                RUN("train", "run.yaml", "data.set=next.npz", "run.dir=next", loss, "train.epochs=1", "-q"), 0);
        assert_int_equal(RUN("predict", "next", "-o", "f.npz", "-q"), 0);
        assert_int_equal(RUN("predict", "next", "-o", "f.csv", "-q"), 0);
    }
}

// Names of classes with commas and quotes stay one column each.
static void headers_quote_names(void **state) {
    (void)state;
    enum { SAMPLES = 200 };
    static const char *const names[] = {"up, strong", "a \"fall\"", "flat"};
    const char *label[SAMPLES];
    float x[SAMPLES];
    npz_writer w;
    err e = {0};
    for (int i = 0; i < SAMPLES; i++) {
        label[i] = names[i % 3];
        x[i] = (float)(i % 7);
    }
    support_ok(npz_writer_open(&w, "w.npz", &e) &&
                   npz_writer_array(&w, "x_strategy", NPY_F32, 2, (int64_t[]){SAMPLES, 1}, x, &e) &&
                   npz_writer_text(&w, "labels", label, SAMPLES, &e) && npz_writer_commit(&w, &e),
        &e);
    put_text("run.yaml", "data: {set: w.npz}\nmodel: {kind: mlp, widths: 4}\n"
                         "train: {epochs: 1, batch_size: 32}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(RUN("predict", "made", "-o", "p.csv", "-q"), 0);
    matches("p.csv", "^sample,time,label,prediction,\"p_a \"\"fall\"\"\",p_flat,\"p_up, strong\"\n");
}

static void a_run_replaces_runs_alone(void **state) {
    (void)state;
    put_small_run();
    shell("mkdir own; cp run.yaml own/config.yaml; cp run.yaml own/notes.txt");
    complains(RUN("train", "own/config.yaml", "run.dir=own"),
        "own: has a config\\.yaml that no run has written; choose another run\\.dir, or move that away");
    same_bytes("own/config.yaml", "run.yaml");
    assert_false(there("own/lock"));
    complains(RUN("train", "run.yaml", "run.dir=run.yaml"), ".*run\\.yaml.*");
    put_text("own/plan.yaml", "theirs"); // whatever else lies there
    put_text("own/lock", "theirs");
    assert_int_equal(RUN("train", "own/config.yaml", "-q"), 0); // it is no run's description
    assert_true(there("made/best.safetensors"));
    complains(RUN("train", "run.yaml", "train.init_from=made/best.safetensors"),
        ".*: run\\.dir: made/best\\.safetensors is an input, and would be set aside with the earlier run that lies "
        "there; "
        "choose another run\\.dir");
    assert_false(there("made.1"));
    shell("cp run.yaml made/notes.txt");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    same_bytes("made.1/notes.txt", "run.yaml");
    assert_int_equal(RUN("train", "run.yaml", "train.init_from=made.1/best.safetensors", "-q"), 0);
    assert_true(there("made.2/best.safetensors"));
    assert_int_equal(RUN("train", "run.yaml", "run.dir=next", "train.init_from=made/best.safetensors", "-q"), 0);
}

// Places

static void a_copied_run_goes_on_in_itself(void **state) {
    (void)state;
    put_bars_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("cp -r made copy; cp -r made kept; rm copy/run.db");
    assert_int_equal(RUN("train", "copy/config.yaml", "--resume", "train.epochs=3"), 0);
    matches("out", "resume +from copy/last\\.safetensors: ");
    matches("out", "\nweights +copy/best\\.safetensors\n");
    same_bytes("made/last.safetensors", "kept/last.safetensors");
    same_bytes("made/training_log.txt", "kept/training_log.txt");
    assert_false(file_holds("out", "run.dir"));
    // So does one that was moved, and one that begins anew.
    shell("mv made moved");
    assert_int_equal(RUN("train", "moved/config.yaml", "--resume", "-q"), 0);
    assert_int_equal(RUN("train", "moved/config.yaml", "-q"), 0);
    assert_false(there("made"));
    assert_int_equal(RUN("train", "moved/config.yaml", "run.dir=made", "-q"), 0);
    assert_true(there("made/best.safetensors"));
}

static void a_copied_ensemble_goes_on_in_itself(void **state) {
    (void)state;
    put_bars_run();
    assert_int_equal(RUN("train", "run.yaml", "train.ensemble=2", "train.epochs=1", "-q"), 0);
    shell("cp -r made copy; mv made gone");
    assert_int_equal(RUN("train", "copy/config.yaml", "--resume", "train.ensemble=3"), 0);
    matches("out", "^member +1 of 3, seed 1: trained already\nmember +2 of 3, seed 2: trained already\nmember +3 of");
    assert_false(there("made"));
    assert_int_equal(RUN("evaluate", "copy"), 0);
}

static void paths_hold_from_any_directory(void **state) {
    put_bars_run();
    mkdir("away", 0777);
    shell("ln -s ../bars.csv away/nothing");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    put_text("bars.yaml", "data: {bars: {fast: ./bars.csv}, windows: {fast: 8}}\nmodel: {hidden: {fast: 4}}\n"
                          "train: {epochs: 1, init_from: made/best.safetensors}\nrun: {dir: of_bars}\n");
    assert_int_equal(RUN("train", "bars.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    double loss = number("loss");
    assert_int_equal(chdir("away"), 0);
    assert_int_equal(RUN("evaluate", "../made", "--json"), 0);
    assert_true(number("loss") == loss);
    assert_int_equal(RUN("evaluate", "../of_bars", "-q"), 0);
    assert_int_equal(RUN("train", "../of_bars/config.yaml", "--resume", "train.epochs=2", "-q"), 0);
    assert_int_equal(RUN("train", "../of_bars/config.yaml", "run.dir=again", "-q"), 0);
    assert_int_equal(chdir(*state), 0);
    // The description as it was given still means the same run; other names of the same data do too.
    assert_int_equal(RUN("train", "run.yaml", "--resume", "train.epochs=3", "-q"), 0);
    shell("mv set.npz away/other.npz");
    assert_int_equal(RUN("train", "made/config.yaml", "--resume", "data.set=away/other.npz", "train.epochs=4"), 0);
    complains(RUN("evaluate", "made", "data.set=none.npz"), "data\\.set=none\\.npz: .*");
    matches("made/config.yaml", "\n  set: [^\n]*away/other\\.npz\n");
    rename("away/other.npz", "away/moved.npz");
    complains(RUN("evaluate", "made"), "made/config\\.yaml:[0-9]+: data\\.set: away/other\\.npz: cannot be read: .*");
    rename("away/moved.npz", "away/other.npz");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "data.set=away/other.npz", "train.epochs=5", "-q"), 0);
    shell("cp away/other.npz set.npz");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "train.epochs=6"), 0);
    matches("out",
        "resume +changed: data\\.set is [^\n]*/set\\.npz, was [^\n]*away/other\\.npz; train\\.epochs is 6, was 5");
}

// Going on

static void a_run_without_a_checkpoint_begins_anew(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("cp -r made kept; rm made/*.safetensors");
    assert_int_equal(RUN("train", "made/config.yaml", "--resume"), 0);
    matches("out", "^resume +made has no checkpoint yet: the run begins anew\n");
    same_bytes("made/best.safetensors", "kept/best.safetensors");
    shell("test $(grep -c 'training lstm' made/training_log.txt) = 2 && ! test -e made.1"); // the log goes on
    // The run before is named, where it has more.
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("rm made/*.safetensors made/config.yaml");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "run.dir=made"), 0);
    matches("out",
        "^resume +made has no checkpoint yet: the run begins anew; the run before it goes on with `tradewind "
        "train made\\.1/config\\.yaml --resume`\n");
    // Weights that were saved are not replaced: the run is set aside.
    shell("rm -rf made*");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("cp -r made was; rm made/last.safetensors made/checkpoint_*; true");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "train.seed=5"), 0);
    matches("out", "\nearlier +the run that was in made is now made\\.1\n");
    same_bytes("made.1/best.safetensors", "was/best.safetensors");
    // Nor is a description moved that lies beside the run.
    shell("rm -rf made* && mkdir made && cp run.yaml made/mine.yaml");
    assert_int_equal(RUN("train", "made/mine.yaml", "-q"), 0);
    complains(RUN("train", "made/mine.yaml"), ".*run\\.dir: made/mine\\.yaml is an input, and would be set aside .*");
    complains(RUN("train", "run.yaml", "--resume", "run.dir=none"), "none: there is no run to resume; .*");
}

static void an_ignored_hangup_stays_ignored(void **state) {
    (void)state;
    put_small_run();
    const char *train[] = {"train", "run.yaml", "train.epochs=100000", "train.patience=100000", NULL};
    signal(SIGHUP, SIG_IGN);
    pid_t child = program_start("long", train);
    signal(SIGHUP, SIG_DFL);
    wait_for("long", "epoch   1 ");
    kill(child, SIGHUP);
    kill(child, SIGHUP);
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("long", "\nstopped by a signal in epoch ");
    child = program_start("long", train);
    wait_for("long", "epoch   1 ");
    kill(child, SIGHUP);
    assert_int_equal(program_finish(child), 0);
}

#define ENTERED(test) cmocka_unit_test_setup_teardown(test, support_enter, support_leave)

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        ENTERED(import_replaces_datasets_alone),
        ENTERED(predict_replaces_its_own_alone),
        ENTERED(headers_quote_names),
        ENTERED(a_run_replaces_runs_alone),
        ENTERED(a_copied_run_goes_on_in_itself),
        ENTERED(a_copied_ensemble_goes_on_in_itself),
        ENTERED(paths_hold_from_any_directory),
        ENTERED(a_run_without_a_checkpoint_begins_anew),
        ENTERED(an_ignored_hangup_stays_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
