// Walks: folds side by side, in shards, stopped and gone on with leave the same bytes; a fold is a run like any other.
// TRADEWIND_WALK_KILLS is how often walks and shards are killed.
#include "cli/program.h"
#include "cli/walks.h"
#include "data/walk.h"
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

enum { FOLDS = 4, KILLS = 4 };

// Four folds of a small MLP on made-up bars; `more` are further lines.
static void put_walk(const char *more) {
    char text[1000];
    snprintf(text, sizeof text,
        "data: {set: set.npz, windows: {fast: 8, slow: 4}}\n"
        "model: {kind: mlp, widths: 6}\n"
        "train: {epochs: 3, batch_size: 32, checkpoint_every: 1, patience: 9}\n"
        "walk: {train: 500, validation: 100, test: 150, folds: 4, embargo: 5}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n%s",
        more);
    put_text("walk.yaml", text);
    walk_put("bars.csv", 4000, 300, 1);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "-q"), 0);
}

static void jobs_and_shards_leave_the_same(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=1", "walk.importance=true"), 0);
    matches("out", "all +[0-9]+ +[0-9.]+ ");
    matches("out", "\nreport +made/report\\.html\n");
    assert_int_equal(walk_folds_of("made", "done"), FOLDS);
    assert_int_equal(
        RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=3", "run.dir=three", "-q", "walk.importance=true"), 0);
    is_empty("out");
    same_walks("made", "three");
    pid_t first = program_start(
        "one", (const char *const[]){"walk", "walk.yaml", "--device=cpu", "--shard=1/2", "run.dir=shards", NULL});
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "run.dir=shards"), 0);
    assert_int_equal(program_finish(first), 0);
    assert_int_equal(access("shards/report.html", F_OK), -1); // left to the one that gathers
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--gather", "run.dir=shards", "walk.importance=true"), 0);
    assert_int_equal(access("shards/report.html", R_OK), 0);
    same_walks("made", "shards");
}

static void set_all(const char *const (*all)[2]) {
    static const char *const known[] = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
        "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) unsetenv(known[i]);
    for (; (*all)[0]; all++) setenv((*all)[0], (*all)[1], 1);
}

#define ENV(...) set_all((const char *const[][2]){__VA_ARGS__, {NULL, NULL}})

// Folds of the directory `made` that are trained; `first` gets the log of the first.
static int folds_there(char first[64]) {
    int n = 0;
    for (int k = 20; k >= 1; k--) {
        char path[64];
        snprintf(path, sizeof path, "made/fold_%02d/best.safetensors", k);
        if (access(path, F_OK) != 0) continue;
        snprintf(first, 64, "made/fold_%02d/training_log.txt", k);
        n++;
    }
    return n;
}

// Numbers of arrays, and a walk without shards that goes on with what they have left.
static void shards_by_number(void **state) {
    (void)state;
#define AUTO(shard) RUN("walk", "walk.yaml", "--device=cpu", "--shard=" shard)
    char log[64];
    put_walk("");
    ENV({"SLURM_ARRAY_TASK_ID", "7"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "5"},
        {"SLURM_ARRAY_TASK_MAX", "11"}, {"SLURM_ARRAY_TASK_STEP", "2"});
    assert_int_equal(AUTO("auto"), 0);
    matches("out", "(^|\n)shard +2 of 4\n");
    assert_int_equal(folds_there(log), 1);
    complains(AUTO("auto/3"), "--shard auto/3: the Slurm array has 4 tasks; submit 3, .*");
    ENV({"JOB_COMPLETION_INDEX", "2"});
    complains(
        AUTO("auto"), "--shard auto: JOB_COMPLETION_INDEX is 2, but Kubernetes does not tell of how many; give .*");
    assert_int_equal(AUTO("auto/4"), 0);
    matches("out", "(^|\n)shard +3 of 4\n");
    assert_int_equal(folds_there(log), 2);
    complains(AUTO("auto/2"), "--shard auto: JOB_COMPLETION_INDEX is 2, which is not below 2");
    ENV({"JOB_COMPLETION_INDEX", "0"}, {"JOB_COMPLETIONS", "9"});
    assert_int_equal(AUTO("auto"), 0);
    matches("out", "(^|\n)shard +1 of 9\n");
    ENV({"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_ARRAY_TASK_MIN", "1"},
        {"SLURM_ARRAY_TASK_MAX", "7"}, {"SLURM_ARRAY_TASK_STEP", "1"});
    complains(AUTO("auto"), "--shard auto: the numbers of the Slurm array are no run such as 0-3 .*");
    ENV({"SLURM_ARRAY_TASK_ID", "3"});
    complains(AUTO("auto"), "--shard auto: SLURM_ARRAY_TASK_ID is 3, but SLURM_ARRAY_TASK_COUNT is no number; .*");
    ENV({NULL, NULL});
    complains(AUTO("auto"), "--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set, .*");
    char *was = slurp(log);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0);
    matches("out", "\nresume +going on with what shards have trained here\n");
    assert_int_equal(access("made.1", F_OK), -1);
    assert_int_equal(walk_folds_of("made", "done"), FOLDS);
    assert_true(file_holds(log, was)); // kept, not trained anew
    free(was);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "run.dir=whole"), 0);
    same_walks("made", "whole");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0); // not shards alone any more
    assert_int_equal(access("made.1", F_OK), 0);
}

// Shards that would train their folds for another number of epochs than those before; and one that has no fold.
static void shards_are_alike(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=1/2", "-q"), 0);
    complains(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "-q", "train.epochs=2"),
        "made: was made under another description: train\\.epochs is 2, was 3; shards have the same one: .*");
    complains(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "-q", "walk.folds=3"),
        "made: .*walk\\.folds is 3, was 4; .*");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "-q", "walk.jobs=1"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=6/6", "run.dir=other"), 0);
    matches("out", "\nwarning +nothing to train: of 4 folds none is shard 6's\n");
    assert_int_equal(access("other", F_OK), -1);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--resume", "train.epochs=4", "-q"), 0); // all of them
    assert_int_equal(walk_folds_of("made", "done"), FOLDS);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "train.epochs=4", "run.dir=whole", "-q"), 0);
    same_walks("made", "whole");
}

// Samples in all bins of the first class, and their probabilities' sum.
static double bins_of(json_t *from, double *sum) {
    json_t *bins = json_object_get(json_array_get(json_object_get(from, "calibration"), 0), "bins"), *bin;
    size_t i;
    double all = 0;
    json_array_foreach(bins, i, bin) {
        double count = json_number_value(json_object_get(bin, "count"));
        all += count;
        if (count > 0) *sum += count * json_number_value(json_object_get(bin, "mean"));
    }
    return all;
}

static json_t *part_of_fold(json_t *fold, const char *part, json_t **doc) {
    err e;
    char path[96];
    snprintf(path, sizeof path, "made/%s/evaluation.json", json_string_value(json_object_get(fold, "directory")));
    char *text = slurp(path);
    assert_non_null(*doc = json_read(text, strlen(text), &e));
    free(text);
    return json_object_get(json_object_get(*doc, "parts"), part);
}

static double drop_of(json_t *from, size_t column) {
    return json_number_value(json_object_get(json_array_get(json_object_get(from, "importance"), column), "drop"));
}

// The walk's calibration has the samples of all folds, its importance is the mean over them.
static void folds_are_gathered(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "walk.importance=true"), 0);
    json_t *doc = walk_document("made"), *fold, *kept;
    double sum = 0, all = 0, count = 0, drop = 0;
    size_t i, columns = json_array_size(json_object_get(doc, "importance"));
    assert_true(columns > 2);
    json_array_foreach(json_object_get(doc, "folds"), i, fold) {
        count += bins_of(part_of_fold(fold, "test", &kept), &sum);
        json_decref(kept);
        drop += drop_of(part_of_fold(fold, "validation", &kept), columns - 1) / 2;
        json_decref(kept);
    }
    assert_true(count > 0 && bins_of(doc, &all) == count);
    assert_true(all > sum - 1e-9 * count && all < sum + 1e-9 * count);
    assert_true(drop_of(doc, columns - 1) > drop - 1e-12 && drop_of(doc, columns - 1) < drop + 1e-12);
    json_decref(doc);
    matches("made/report.html", "id=\"calibration\".*id=\"importance\"");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "--gather"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    matches(
        "out", "\nmissing +Importance of columns: `tradewind walk made/config.yaml walk.importance=true --gather`\n");
}

// A walk that is killed again and again, at moments that are spread over it.
static void killed_walks_go_on(void **state) {
    (void)state;
    static const char *const words[] = {"walk", "walk.yaml", "--device=cpu", "walk.jobs=2", NULL};
    int kills = walk_kills(KILLS);
    put_walk("");
    print_message("killed %d of %d\n", walk_killed(words, kills), kills);
}

static void killed_shards_go_on(void **state) {
    (void)state;
    static const char *const words[] = {"walk", "walk.yaml", "--device=cpu", NULL};
    int kills = walk_kills(KILLS) / 2;
    put_walk("");
    print_message("killed %d of %d\n", walk_shards_killed(words, kills), 2 * kills);
}

static void a_fold_is_a_run(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0);
    json_t *doc = NULL;
    err e;
    char *text = slurp("made/walk.json"), fold[64], dir[64];
    assert_non_null(doc = json_read(text, strlen(text), &e));
    json_t *last = json_array_get(json_object_get(doc, "folds"), FOLDS - 1);
    long long at = json_integer_value(json_object_get(last, "number"));
    double mcc = json_real_value(json_object_get(json_object_get(last, "metrics"), "mcc"));
    snprintf(fold, sizeof fold, "walk.fold=%lld", at);
    snprintf(dir, sizeof dir, "made/fold_%02lld", at);
    assert_int_equal(RUN("train", "walk.yaml", fold, "run.dir=alone", "--device=cpu"), 0);
    same_runs("alone", dir);
    char kept[96];
    snprintf(kept, sizeof kept, "%s/predictions_test.npz", dir);
    assert_int_equal(rename(kept, "before.npz"), 0);
    assert_int_equal(RUN("evaluate", dir, "--json", "--device=cpu"), 0);
    same_bytes(kept, "before.npz");
    assert_true(number("mcc") > mcc - 1e-8 && number("mcc") < mcc + 1e-8);
    complains(RUN("train", "walk.yaml", "walk.fold=99"), "walk.*: there is no fold 99; these data have [0-9]+");
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "made +done +mlp walk");
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "walk +made: done, 4 folds begun");
    json_decref(doc);
    free(text);
}

// Later folds begin with the weights of the one before; members of an ensemble are tested together.
static void warm_folds_and_ensembles(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "run.dir=cold"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "walk.start=warm"), 0);
    matches("out", "folds +2, 2 of them here, 1 at once");
    assert_int_not_equal(system("cmp -s cold/walk.json made/walk.json"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "train.ensemble=2", "run.dir=both"), 0);
    assert_int_equal(system("test $(ls both/fold_*/member_2/best.safetensors | wc -l) = 2"), 0);
    assert_int_equal(
        RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "train.ensemble=2", "run.dir=both", "--resume"), 0);
}

// Seeds of folds are runs of their own: side by side, one after another, killed, or by `train`, they have the same
// bits.
static void seeds_run_side_by_side(void **state) {
    (void)state;
    static const char *const words[] = {
        "walk", "walk.yaml", "--device=cpu", "walk.jobs=3", "walk.folds=2", "train.ensemble=3", NULL};
    put_walk("");
    print_message("killed %d of %d\n", walk_killed(words, KILLS), KILLS);
    matches("out", "\nfolds +2, 2 of them here with 3 seeds each, 3 runs at once on 1 thread each");
    matches("out", "\nfold +[0-9]+ +was trained before\n");
    assert_int_equal(
        RUN("walk", "walk.yaml", "--device=cpu", "walk.jobs=1", "walk.folds=2", "train.ensemble=3", "run.dir=one"), 0);
    matches("out", "\nfold +[0-9]+ +3 epochs, best [1-3]: ");
    same_walks("whole", "one");
    assert_int_equal(system("cp $(ls -d one/fold_* | head -1)/config.yaml fold.yaml"), 0);
    assert_int_equal(RUN("train", "fold.yaml", "--device=cpu", "run.dir=alone", "-q"), 0);
    assert_int_equal(system("mv $(ls -d one/fold_* | head -1) first"), 0);
    same_runs("first/member_3", "alone/member_3");
    // A seed that fails is told; those beside it are kept, and so is the ensemble's place.
    assert_int_equal(
        RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "train.ensemble=4", "run.dir=whole", "--resume"), 2);
    matches("err", "train.ensemble");
}

static void a_walk_sets_the_earlier_aside(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=1"), 0);
    assert_int_equal(system("cp -r made before"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=1"), 0);
    matches("out", "earlier +the walk that was in made is now made.1");
    assert_int_equal(system("diff -r -x lock -x run.db* before made.1"), 0);
    same_walks("made", "made.1");
}

// A fold, or a member of one, that was killed behind a best epoch and before its first checkpoint leaves nothing that
// is kept for ever: it has the same description, and so the same weights.
static void a_fold_without_a_checkpoint_begins_in_its_place(void **state) {
    (void)state;
    static const char *const seeds[] = {"train.ensemble=1", "train.ensemble=2"};
    put_walk("");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "-q", seeds[i]), 0);
        assert_int_equal(system("rm -rf whole; cp -r made whole; cd made && rm walk.json $(find . -name 'last.*') "
                                "$(find . -name 'checkpoint_*')"),
            0);
        assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "walk.folds=2", "-q", seeds[i], "--resume"), 0);
        assert_int_equal(system("test -z \"$(find . -name '*_*.1')\""), 0);
        same_walks("whole", "made");
    }
}

// Folds that are not there, or damaged, are told with status 1; --resume mends them.
static void damaged_folds_are_told(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0);
    assert_int_equal(system("cp -r made whole && cd made/fold_02 && rm checkpoint_* && "
                            "for f in last best; do printf x >>$f.safetensors; done"),
        0);
    assert_int_equal(system("printf x >made/fold_03/evaluation.json"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--gather"), 1);
    matches("err", "^tradewind: made: 1 fold is not there or damaged, as walk.json says; --resume trains it\n$");
    assert_int_equal(walk_folds_of("made", "missing"), 1);
    complains(RUN("train", "made/config.yaml", "--resume"), "made: holds a walk; go on with `tradewind walk .*");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--resume"), 0);
    same_walks("whole", "made");
}

// A walk that was stopped before its test is no run, and says how far it came.
static void incomplete_walks_are_told(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q"), 0);
    assert_int_equal(system("rm -r made/walk.json $(ls -d made/fold_* | tail -1)"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    matches("out",
        "^walk +mlp, rolling, incomplete\nnote +incomplete: 3 of 4 folds are trained, and none is tested; go on "
        "with `tradewind walk made/config.yaml --resume`\n");
    assert_true(file_holds("made/report.html", "incomplete: 3 of 4 folds are trained"));
    assert_true(file_holds("made/report.html", "walk, incomplete, mlp"));
    put_text("made/backtest.json", "{"); // costs its figures alone
    assert_int_equal(RUN("report", "made"), 0);
    matches("out", "\nnote +made/backtest.json: .*is damaged");
    assert_int_equal(unlink("made/backtest.json"), 0);
    assert_int_equal(RUN("walk", "made/config.yaml", "--device=cpu", "--resume", "-q"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    matches("out", "^walk +mlp, rolling, 4 of 4 folds done: ");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=1/2", "run.dir=shards", "-q"), 0);
    assert_int_equal(RUN("report", "shards", "--json"), 0);
    json_t *line = last_line(), *walk = json_object_get(line, "walk");
    assert_true(json_is_true(json_object_get(walk, "incomplete")) && json_is_null(json_object_get(walk, "folds")));
    assert_int_equal(json_integer_value(json_object_get(walk, "done")), 2);
    json_decref(line);
    put_text("made/walk.json", "{");
    complains(RUN("report", "made"), "made/walk.json: .*");
}

// Shards that had different files: what is there is no walk.
static void folds_of_different_data_are_refused(void **state) {
    (void)state;
    put_walk("");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=1/2", "-q"), 0);
    assert_int_equal(rename("set.npz", "first.npz"), 0);
    walk_put("bars.csv", 4000, 300, 2);
    assert_int_equal(RUN("import", "bars.csv", "-o", "set.npz", "--frames=1h", "-q"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "-q"), 0);
    complains(RUN("walk", "walk.yaml", "--device=cpu", "--gather"),
        "made/fold_[0-9]+: was trained on other data than those here: .*; gather with the data .*");
    assert_int_equal(rename("first.npz", "set.npz"), 0);
    complains(RUN("walk", "walk.yaml", "--device=cpu", "--gather"), "made/fold_[0-9]+: was trained on other data .*");
    assert_int_equal(access("made/walk.json", F_OK), -1);
    assert_int_equal(system("rm -r $(ls -d made/fold_* | sed -n '2p;4p')"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--shard=2/2", "-q"), 0);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "--gather", "-q"), 0);
    assert_int_equal(walk_folds_of("made", "done"), FOLDS);
}

// Hours of a price that goes both ways, but for a while up alone.
static void put_rise(void) {
    enum { HOURS = 2400, FROM = 900, TO = 1800 };
    FILE *f = fopen("bars.csv", "w");
    dice d = {.seed = 1};
    double price = 1000;
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume\n", f);
    for (int i = 0; i < HOURS; i++) {
        double move = 0.8 * (double)dice_unit(&d), open = price;
        price += i >= FROM && i < TO ? fabs(move) + 0.4 : move;
        fprintf(f, "%lld,%.3f,%.3f,%.3f,%.3f,%d\n", 1577836800LL + 3600LL * i, open, fmax(open, price) + 0.1,
            fmin(open, price) - 0.1, price, 100 + i % 7);
    }
    assert_int_equal(fclose(f), 0);
}

// A class that a part of a fold has no sample of is told before the fold is trained, and in its log; the fold is kept.
static void classes_without_samples_are_told(void **state) {
    (void)state;
    put_rise();
    put_text("walk.yaml", "data: {bars: {fast: bars.csv}, windows: {fast: 8}}\n"
                          "model: {kind: mlp, widths: 4}\n"
                          "train: {epochs: 1, batch_size: 32, class_weights: balanced}\n"
                          "walk: {train: 400, validation: 100, test: 300}\n"
                          "run: {dir: made}\n"
                          "gpu_optimization: {memory_monitoring: false}\n");
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu"), 0);
    matches("out",
        "\nwarning +fold 1: classes without a sample: DOWN in validation; DOWN in the test\n"
        "warning +fold 2: classes without a sample: DOWN in training, which cannot be learned; DOWN in validation\n");
    assert_false(file_holds("out", "fold 4: classes"));
    assert_int_equal(walk_folds_of("made", "missing"), 0);
    assert_true(walk_folds_of("made", "done") >= 4);
    matches("made/fold_02/training_log.txt", " warning: classes without a sample: DOWN in training");
    assert_int_equal(RUN("train", "walk.yaml", "walk.fold=2", "run.dir=alone", "--device=cpu"), 0);
    matches("out", "\nwarning +classes without a sample: DOWN in training, which cannot be learned; ");
    same_runs("made/fold_02", "alone");
}

static void mistakes_are_told(void **state) {
    (void)state;
    put_walk("");
    complains(RUN("walk", "walk.yaml", "walk.train=900000"), "walk.yaml:4: walk: .* are too few for a fold: .*");
    complains(RUN("walk", "walk.yaml", "walk.test=3 weeks"), "walk.test=3 weeks: walk.test: 3 weeks is no span: .*");
    complains(RUN("walk", "walk.yaml", "--shard=5/4"), "--shard 5/4: must be such as 1/4, .*");
    complains(RUN("walk", "walk.yaml", "--shard=1/4", "--gather"), "--gather: .*; leave --shard out");
    complains(RUN("walk", "walk.yaml", "walk.fold=2"), "walk.fold=2: walk.fold: a walk has all folds; .*");
    complains(RUN("walk", "walk.yaml", "--gather"), "made: holds no walk to gather; .*");
    complains(RUN("walk", "walk.yaml", "walk.scheme=cpcv", "walk.test_groups=6"),
        "walk.test_groups=6: walk.test_groups: 6 of 6 groups leave none to train on; .*");
    put_text("plain.yaml", "data: {set: set.npz}\n");
    complains(RUN("walk", "plain.yaml"), "plain.yaml: describes no walk; add a section such as walk: .*");
    assert_int_equal(access("made", F_OK), -1); // nothing was begun
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(jobs_and_shards_leave_the_same),
        TEST(shards_by_number),
        TEST(shards_are_alike),
        TEST(folds_are_gathered),
        TEST(killed_walks_go_on),
        TEST(killed_shards_go_on),
        TEST(a_fold_is_a_run),
        TEST(warm_folds_and_ensembles),
        TEST(seeds_run_side_by_side),
        TEST(a_walk_sets_the_earlier_aside),
        TEST(a_fold_without_a_checkpoint_begins_in_its_place),
        TEST(damaged_folds_are_told),
        TEST(incomplete_walks_are_told),
        TEST(folds_of_different_data_are_refused),
        TEST(classes_without_samples_are_told),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
