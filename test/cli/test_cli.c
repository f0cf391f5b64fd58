// The program from outside: what it prints where, and how it exits. Every test runs it in a directory of its own.
#include "base/json.h"
#include "cli/program.h"
#include "run/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TINY "data.synthetic.bars=2000", "train.epochs=1", "model.hidden.fast=4", "model.hidden.slow=4"

// Complaints

static void bad_description(const char *text, const char *pattern) {
    put_text("bad.yaml", text);
    complains(RUN("train", "bad.yaml"), pattern);
    complains(RUN("plan", "bad.yaml"), pattern);
}

static void descriptions_are_checked(void **state) {
    (void)state;
    bad_description("data:\n  set: synthetic\ntrain:\n  batch_sise: 3\n",
        "bad\\.yaml:4: train\\.batch_sise: .*train\\.batch_size.*");
    bad_description("train:\n  epochs: many\n", "bad\\.yaml:2: train\\.epochs: .*integer.*");
    bad_description("train:\n\n  batch_size: 0\n", "bad\\.yaml:3: train\\.batch_size: .*from 1 .*");
    bad_description("train:\n  optimizer:\n    lr: -0.001\n", "bad\\.yaml:3: train\\.optimizer\\.lr: .*above 0.*");
    bad_description("train: {epochs: [1, 2]}\n", "bad\\.yaml:1: train\\.epochs: .*");
    bad_description("train: 3\n", "bad\\.yaml:1: train: .*");
    bad_description("train:\n  epochs: 1\n  epochs: 2\n", "bad\\.yaml:3: .*epochs.*");
    bad_description("train:\n\tepochs: 1\n", "bad\\.yaml:2: .*");
    bad_description("model: {kind: oracle}\n", "bad\\.yaml:1: model\\.kind: .*lstm.*");
    bad_description("model: {kind: mlp, widths: 12--3}\n", "bad\\.yaml:1: model\\.widths: .*");
    bad_description("data: {windows: {medium: 5}}\n", "bad\\.yaml:1: data\\.windows\\.medium: .*");
    bad_description("model: {hidden: {medium: 5}}\n", "bad\\.yaml:1: model\\.hidden\\.medium: .*");
    bad_description("data:\n  split: {train: 0.9, validation: 0.5}\n", "bad\\.yaml:2: data\\.split\\.train: .*");
    bad_description(
        "data:\n  synthetic: {bars: 1000}\n  split:\n    embargo: 9999\n", "bad\\.yaml:3: data\\.split: .*empty.*");
    complains(RUN("train", "missing.yaml"), "missing\\.yaml: .*No such file.*");
    complains(RUN("plan", "missing.yaml"), "missing\\.yaml: .*No such file.*");
    complains(RUN("train", "."), "\\.: .*directory.*");
    complains(RUN("train"), ".*description.*");
}

static void overrides_are_checked(void **state) {
    (void)state;
    put_small_run();
    complains(RUN("train", "run.yaml", "train.epochs"), "train\\.epochs: .*KEY=VALUE.*");
    complains(RUN("train", "run.yaml", "train.epochs=0"), "train\\.epochs=0: .*from 1 .*");
    complains(RUN("train", "run.yaml", "train.epoch=4"), "train\\.epoch=4: .*train\\.epochs.*");
    complains(RUN("train", "run.yaml", "=4"), "=4: .*");
    complains(RUN("train", "run.yaml", "train.optimizer.lr=fast"), "train\\.optimizer\\.lr=fast: .*number.*");
    complains(RUN("train", "run.yaml", "train=4"), "train=4: .*");
    complains(RUN("train", "run.yaml", "run.dir="), "run\\.dir=: .*");
    complains(RUN("train", "run.yaml", "run.dir=run.yaml"), "run\\.yaml: is not a directory.*");
    complains(RUN("train", "run.yaml", "--seed", "one"), ".*train\\.seed.*integer.*");
    assert_int_equal(access("made", F_OK), -1);
}

static void options_are_checked(void **state) {
    (void)state;
    put_small_run();
    complains(RUN("trian", "run.yaml"), "trian: unknown command; did you mean train[?]");
    complains(RUN("--verison"), "--verison: unknown command; did you mean --version[?]");
    complains(RUN("xylophone"), "xylophone: unknown command; `tradewind --help` lists them");
    assert_int_equal(RUN("help", "import"), 0);
    matches("out", "^usage: tradewind import FILE");
    complains(RUN("import", "a.csv", "-o", "a.npz", "-o", "b.npz"), "-o b.npz: -o a.npz is given too; leave one out");
    put_text("bars.csv", "time,open,high,low,close\n1704067200,1,2,1,2\n");
    complains(
        RUN("plan", "bars.csv"), "bars.csv: is a file of bars, not a description; name it in one as data.bars: .*");
    put_text("one.yaml", "data: {bars: bars.csv}\n");
    complains(RUN("plan", "one.yaml"), ".*data.bars: must be a section, not bars.csv; .* as [{]fast: FILE[}].*");
    complains(RUN("train", "--fast", "run.yaml"), "--fast: not an option of train.*");
    complains(RUN("train", "run.yaml", "--threads", "0"), "--threads 0: .*from 1 .*");
    complains(RUN("train", "run.yaml", "--threads=two"), "--threads two: .*integer.*");
    complains(RUN("train", "run.yaml", "--threads"), "--threads needs a value.*");
    complains(RUN("train", "run.yaml", "--device", "abacus"), "--device abacus: .*");
    complains(RUN("train", "run.yaml", "--isa=mmx"), ".*mmx.*");
    complains(RUN("train", "run.yaml", "--batch", "4096"), "--batch: not an option of train.*");
    complains(RUN("doctor", "--seed=3"), "--seed=3: not an option of doctor.*");
    complains(RUN("doctor", "now"), "now: .*no further argument.*");
}

// Help

static void check_help(const char *command) {
    char usage[128];
    snprintf(usage, sizeof usage, "^usage: tradewind %s ", command);
    assert_int_equal(RUN(command, "--help"), 0);
    matches("out", usage);
    matches("out", "--json");
    is_empty("err");
    assert_int_equal(RUN(command, "-h"), 0);
    matches("out", usage);
}

static void every_command_has_help(void **state) {
    (void)state;
    int commands = 0;
    assert_int_equal(RUN("--help"), 0);
    is_empty("err");
    matches("out", "usage: tradewind COMMAND");
    char *text = slurp("out"), *rest = NULL, *end = strstr(text, "\noptions");
    assert_non_null(end);
    *end = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[32];
        if (strncmp(line, "  ", 2) != 0 || line[2] == ' ' || sscanf(line, "  %31s", name) != 1) continue;
        check_help(name);
        commands++;
    }
    free(text);
    assert_true(commands >= 4);
}

static void version_and_bare(void **state) {
    (void)state;
    assert_int_equal(RUN("--version"), 0);
    matches("out", "^tradewind [0-9]+\\.[0-9]+\\.[0-9]+\n$");
    is_empty("err");
    const char *none[] = {NULL};
    assert_int_equal(program_finish(program_start("out", none)), 2);
    assert_int_equal(RUN("help"), 0);
    matches("out", "usage: ");
}

// Training

static void same_weights(const char *a, const char *b, bool same) {
    char *x = slurp(a), *y = slurp(b);
    struct stat s, t;
    assert_int_equal(stat(a, &s) | stat(b, &t), 0);
    assert_int_equal(s.st_size, t.st_size);
    assert_true(s.st_size < 1 << 18);
    assert_int_equal(memcmp(x, y, (size_t)s.st_size) == 0, same);
    free(x);
    free(y);
}

static void train_leaves_its_results(void **state) {
    (void)state;
    err e = {0};
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml"), 0);
    matches("out", "\nepoch +1  loss [0-9.]+  validation loss [0-9.]+  accuracy [0-9.]+  mcc -?[0-9.]+");
    matches("out", "\nepoch +2  ");
    matches("out", "\nbest +epoch [12], validation MCC");
    matches("out", "made/best\\.safetensors\n$");
    matches("made/training_log.txt", "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} training lstm with");
    matches("made/training_log.txt", "epoch +2  loss");
    matches("made/config.yaml", "epochs: 2");
    matches("made/config.yaml", "weight_decay: 0.01");
    safetensors *f = safetensors_open("made/best.safetensors", &e);
    support_ok(f != NULL, &e);
    assert_non_null(safetensors_find(f, "head.3.weight"));
    safetensors_close(f);
    // The description that was left behind is complete: it gives the same weights.
    assert_int_equal(RUN("train", "made/config.yaml", "run.dir=a/b/again"), 0);
    same_weights("made/best.safetensors", "a/b/again/best.safetensors", true);
    // A second run into the same directory sets the first one aside.
    assert_int_equal(RUN("train", "made/config.yaml", "run.dir=a/b/again", "train.epochs=1"), 0);
    matches("out", "\nearlier +the run that was in a/b/again is now a/b/again\\.1\n");
    same_weights("made/best.safetensors", "a/b/again.1/best.safetensors", true);
    matches("a/b/again.1/training_log.txt", "epoch +2  loss");
    assert_int_equal(RUN("train", "run.yaml", "run.dir=other", "--seed=2", "-q", "--threads", "1"), 0);
    same_weights("made/best.safetensors", "other/best.safetensors", false);
    is_empty("out");
    is_empty("err");
}

static void any_metric_decides(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "train.metric=loss"), 0);
    matches("out", "\nbest +epoch [12], validation loss [0-9.]+\n");
    assert_int_equal(RUN("train", "run.yaml", "train.metric=macro_f1", "--json"), 0);
    matches("out", "\"metric\":\"macro_f1\",\"validation_best\":0\\.[0-9]+,\"validation_mcc\":null");
    complains(RUN("train", "run.yaml", "train.metric=smape"), ".*train\\.metric.*");
}

static void a_tiny_run_needs_no_file_but_its_description(void **state) {
    (void)state;
    put_text("empty.yaml", "");
    assert_int_equal(RUN("train", "empty.yaml", TINY, "run.dir=made"), 0);
    matches("out", "\nepoch +1  ");
    assert_int_equal(RUN("train", "empty.yaml", TINY, "model.kind=mlp", "model.widths=8-4", "run.dir=mlp", "-v"), 0);
    matches("out", "blocks over [0-9]+ instructions");
}

// Calls `check` with every line of the file out, parsed; returns how many there were.
static int each_json_line(void (*check)(const json_t *line, bool last)) {
    int lines = 0;
    char *text = slurp("out"), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
        err e = {0};
        json_t *v = json_read(line, strlen(line), &e);
        if (!v) fail_msg("%s: %s", line, e.text);
        assert_true(json_is_object(v));
        check(v, !rest || !*rest);
        json_decref(v);
    }
    free(text);
    return lines;
}

static void check_train_line(const json_t *v, bool last) {
    if (last) {
        assert_string_equal(json_string_value(json_object_get(v, "weights")), "made/best.safetensors");
        assert_true(json_is_number(json_object_get(v, "validation_mcc")));
        assert_true(json_is_false(json_object_get(v, "interrupted")));
        return;
    }
    const json_t *trivial = json_object_get(v, "trivial");
    if (trivial) {
        assert_true(json_number_value(json_object_get(json_object_get(trivial, "majority"), "accuracy")) > 0);
        assert_true(json_number_value(json_object_get(json_object_get(trivial, "prior"), "log_loss")) > 0);
        return;
    }
    assert_true(json_is_integer(json_object_get(v, "epoch")));
    assert_true(json_number_value(json_object_get(v, "train_loss")) > 0);
    assert_true(json_number_value(json_object_get(v, "samples_per_s")) > 0);
    assert_true(json_is_boolean(json_object_get(v, "best")));
}

static void check_plan_line(const json_t *v, bool last) {
    (void)last;
    json_int_t slab = json_integer_value(json_object_get(v, "slab_bytes"));
    assert_int_equal(json_integer_value(json_object_get(v, "batch")), 128);
    assert_true(slab >= json_integer_value(json_object_get(v, "activation_bytes")) && slab > 0);
}

static void check_doctor_line(const json_t *v, bool last) {
    (void)last;
    assert_true(json_is_string(json_object_get(v, "version")));
    assert_true(json_number_value(json_object_get(v, "matmul_gflop_per_s")) > 0);
}

// 6 for every weight of 64-512-256-3 and every row.
static void check_bench_line(const json_t *v, bool last) {
    (void)last;
    double ms = json_number_value(json_object_get(v, "ms_per_step"));
    double flop = json_number_value(json_object_get(v, "tflop_per_s")) * ms * 1e9;
    assert_string_equal(json_string_value(json_object_get(v, "variant")), "tradewind");
    assert_string_equal(json_string_value(json_object_get(v, "precision")), "fp32");
    assert_int_equal(json_integer_value(json_object_get(v, "batch")), 64);
    assert_true(ms > 0 && json_number_value(json_object_get(v, "samples_per_s")) > 0);
    assert_true(json_number_value(json_object_get(v, "memory_mb")) > 0);
    assert_true(json_number_value(json_object_get(v, "gb_per_s")) > 0);
    assert_float_equal(flop / (6 * (64 * 512 + 512 * 256 + 256 * 3) * 64.0), 1, 1e-5);
}

// The loader, then the copies, of which it has a share.
static void check_loader_line(const json_t *v, bool last) {
    const char *variant = json_string_value(json_object_get(v, "variant"));
    double rate = json_number_value(json_object_get(v, "samples_per_s"));
    assert_string_equal(json_string_value(json_object_get(v, "case")), "loader");
    assert_string_equal(variant, last ? "memcpy" : "tradewind");
    assert_int_equal(json_integer_value(json_object_get(v, "batch")), 3072);
    assert_true(rate > 0 && json_number_value(json_object_get(v, "memory_mb")) > 0);
    assert_float_equal(json_number_value(json_object_get(v, "ms_per_step")) * rate, 3072e3, 1);
    assert_true(json_number_value(json_object_get(v, "ratio")) > 0.2);
}

static void json_is_one_object_a_line(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "--json"), 0);
    assert_int_equal(each_json_line(check_train_line), 4);
    is_empty("err");
    assert_int_equal(RUN("plan", "run.yaml", "--json"), 0);
    assert_int_equal(each_json_line(check_plan_line), 1);
    assert_int_equal(RUN("doctor", "--json", "--threads=1"), 0);
    assert_int_equal(each_json_line(check_doctor_line), 1);
    assert_int_equal(RUN("bench", "mlp", "--json", "--device=cpu", "--no-peer", "--batch=64", "--steps=1"), 0);
    assert_int_equal(each_json_line(check_bench_line), 1);
    if (!support_sanitized()) {
        assert_int_equal(RUN("bench", "loader", "--json", "--device=cpu", "--no-peer", "--steps=1"), 0);
        assert_int_equal(each_json_line(check_loader_line), 2);
    }
    complains(RUN("bench", "oracle"), "oracle: unknown case.*");
    complains(RUN("bench", "copy"), "the case copy and --data FILE go together.*");
    complains(RUN("bench", "lstm", "--data=set.npz"), "the case copy and --data FILE go together.*");
}

static void plan_runs_nothing(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("plan", "run.yaml", "train.batch_size=5000000"), 0);
    matches("out", "blocks over [0-9]+ instructions");
    is_empty("err");
    assert_int_equal(access("made", F_OK), -1);
}

// On a market without a signal the best possible classifier scores 0, of which nothing is a share.
static void no_signal_is_said_plainly(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "data.synthetic.strength=0", "train.epochs=1"), 0);
    char *text = slurp("out");
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "nan"));
    free(text);
}

static void a_full_disk_is_told(void **state) {
    (void)state;
    put_small_run();
    static const char *const commands[][4] = {{"plan", "run.yaml"}, {"plan", "run.yaml", "--json"},
        {"doctor", "--json"}, {"train", "run.yaml"}, {"train", "run.yaml", "--json"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(program_finish(program_start("/dev/full", commands[i])), 1);
        matches("err", "tradewind: [^\n]*No space left[^\n]*\n$");
    }
}

// Signals

static void await_text(pid_t child, const char *path, const char *text) {
    double until = support_seconds() + 60;
    while (!file_holds(path, text)) {
        if (waitpid(child, NULL, WNOHANG) == child) fail_msg("ended before %s held %s", path, text);
        if (support_seconds() > until) fail_msg("%s does not hold %s", path, text);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static int interrupt(pid_t child, int number) {
    double began = support_seconds();
    assert_int_equal(kill(child, number), 0);
    int status = program_finish(child);
    double took = support_seconds() - began;
    if (took > (support_sanitized() ? 20 : 3)) fail_msg("took %.1f s to stop", took);
    return status;
}

// A weight file and a checkpoint; the run goes on to its end with what it was told to type.
static void interruption_keeps_what_there_is(void **state) {
    (void)state;
    err e = {0};
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        put_small_run();
        const char *train[] = {"train", "run.yaml", "train.epochs=100000", "train.patience=100000", NULL};
        pid_t child = program_start("out", train);
        await_text(child, "out", "epoch   1 ");
        assert_int_equal(interrupt(child, signals[i]), 0);
        matches("out", "stopped by a signal in epoch [0-9]+\nresume +tradewind train made/config.yaml --resume\n");
        matches("made/training_log.txt", "stopped by a signal in epoch [0-9]+; go on with: tradewind train ");
        safetensors *f = safetensors_open("made/best.safetensors", &e);
        support_ok(f != NULL, &e);
        safetensors_close(f);
        assert_int_equal(RUN("train", "made/config.yaml", "--resume", "train.epochs=2"), 0);
        matches("out", "resume +changed: train.epochs is 2, was 100000");
        matches("out", "resume +from made/last.safetensors: step [0-9]+, in epoch [0-9]+ after [0-9]+ samples\n");
    }
}

static void interruption_before_the_first_epoch_is_saved(void **state) {
    (void)state;
    put_text("long.yaml", "data: {synthetic: {bars: 400000}}\ntrain: {batch_size: 64}\nrun: {dir: made}\n");
    const char *train[] = {"train", "long.yaml", "--json", NULL};
    pid_t child = program_start("out", train);
    await_text(child, "made/training_log.txt", "training lstm");
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    assert_int_equal(interrupt(child, SIGINT), 0);
    matches("out", "\"interrupted\":true,\"resume\":\"tradewind train made/config.yaml --resume\",\"weights\":null");
    assert_int_equal(access("made/best.safetensors", F_OK), -1);
    assert_int_equal(access("made/last.safetensors", F_OK), 0);
}

static void two_interruptions_end_at_once(void **state) {
    (void)state;
    put_small_run();
    const char *train[] = {"train", "run.yaml", "train.epochs=100000", "train.patience=100000", NULL};
    pid_t child = program_start("out", train);
    await_text(child, "out", "epoch   1 ");
    int status;
    kill(child, SIGSTOP); // so that both arrive before the next step is done
    kill(child, SIGINT);
    kill(child, SIGTERM);
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM));
}

// Resuming

static void resume_is_checked(void **state) {
    (void)state;
    put_small_run();
    complains(RUN("train", "run.yaml", "--resume"), "made: there is no run to resume; .*");
    assert_int_equal(RUN("train", "run.yaml"), 0);
    complains(RUN("train", "run.yaml", "--resume", "train.batch_size=64"),
        "made/last\\.safetensors: was made under another description: train\\.batch_size is 64, was 128; .*");
    complains(RUN("train", "run.yaml", "--resume", "--isa=base"),
        "made/last\\.safetensors: was made under another plan: device is cpu, base, was cpu, .*");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "--threads=1"), 0);
    matches("out", "^resume +from made/last\\.safetensors: step [0-9]+, after epoch 2\n");
    matches("out", "\nover +the run had ended after epoch 2; a larger train\\.epochs goes on\nbest +epoch ");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "--threads=1", "--json"), 0);
    matches("out", "\"first_step_s\":null");
    static const char *const fixed[] = {"train.schedule.kind=cosine", "train.steps=3"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(RUN("train", "run.yaml", fixed[i], "run.dir=fixed"), 0);
        assert_int_equal(RUN("train", "run.yaml", fixed[i], "run.dir=fixed", "--resume"), 0);
        matches("out", "\nover +the run had ended after epoch [12]\nbest +epoch ");
    }
    put_text("made/last.safetensors", "cut off");
    assert_int_equal(RUN("train", "run.yaml", "--resume"), 2);
    matches("err", "^tradewind: made: has no whole checkpoint to go on from; leave --resume out to begin anew\n$");
    matches("out", "^resume +passed over: made/last\\.safetensors: too short ");
    matches("made/training_log.txt", "passed over: made/last\\.safetensors: too short ");
}

static void a_locked_directory_is_told(void **state) {
    (void)state;
    put_small_run();
    const char *train[] = {"train", "run.yaml", "train.epochs=100000", "train.patience=100000", NULL};
    pid_t child = program_start("long", train);
    await_text(child, "long", "epoch   1 ");
    static const char *const ways[] = {"--resume", "-v"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(RUN("train", "run.yaml", ways[i]), 1);
        char pattern[128];
        snprintf(
            pattern, sizeof pattern, "^tradewind: made: another process \\(%ld\\) trains here; [^\n]*\n$", (long)child);
        matches("err", pattern);
    }
    interrupt(child, SIGINT);
}

// No place for weights: the run ends with status 1 and one line, and what was there stays.
static void a_full_disk_ends_the_run(void **state) {
    (void)state;
    put_small_run();
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){16384, 16384});
        int status = RUN("train", "run.yaml");
        _exit(status);
    }
    assert_int_equal(program_finish(child), 1);
    matches("err", "(^|\n)tradewind: made/best\\.safetensors: [^\n]*; no weights were saved yet\n$");
    matches("err", "^tradewind: warning: made/run\\.db: ");
    assert_int_equal(access("made/best.safetensors", F_OK), -1);
    matches("made/training_log.txt", "warning: made/run\\.db: ");
    matches("made/training_log.txt", "ended: made/best\\.safetensors: ");
}

static void a_directory_that_cannot_be_written_is_told(void **state) {
    (void)state;
    put_small_run();
    complains(RUN("train", "run.yaml", "run.dir=/proc/self/made"), "/proc/self/made: .*");
    if (geteuid() == 0) skip(); // root writes anywhere
    assert_int_equal(mkdir("made", 0555), 0);
    complains(RUN("train", "run.yaml"), "made/lock: cannot be written: .*");
}

static void weights_can_be_a_start(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=next", "train.init_from=made/best.safetensors"), 0);
    same_weights("made/best.safetensors", "next/best.safetensors", false);
    complains(RUN("train", "run.yaml", "run.dir=none", "train.init_from=made/best.safetensors", "model.head=9"),
        "made/best\\.safetensors: does not fit the model; of another shape or type head\\.0\\.weight.*");
    complains(RUN("train", "run.yaml", "run.dir=none", "train.init_from=missing"), "missing: .*");
    assert_int_equal(access("none", F_OK), -1);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(descriptions_are_checked),
        TEST(overrides_are_checked),
        TEST(options_are_checked),
        TEST(every_command_has_help),
        TEST(version_and_bare),
        TEST(train_leaves_its_results),
        TEST(any_metric_decides),
        TEST(a_tiny_run_needs_no_file_but_its_description),
        TEST(json_is_one_object_a_line),
        TEST(plan_runs_nothing),
        TEST(no_signal_is_said_plainly),
        TEST(a_full_disk_is_told),
        TEST(interruption_keeps_what_there_is),
        TEST(interruption_before_the_first_epoch_is_saved),
        TEST(two_interruptions_end_at_once),
        TEST(resume_is_checked),
        TEST(a_locked_directory_is_told),
        TEST(a_full_disk_ends_the_run),
        TEST(a_directory_that_cannot_be_written_is_told),
        TEST(weights_can_be_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
