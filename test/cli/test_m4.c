// Forecasts from outside: a panel imported, trained, evaluated against values that came later, and predicted;
// ensembles, stopped, killed and gone on with; forecasts of bars by every model; and the M4 competition's own files
// where they are.
#include "base/json.h"
#include "cli/program.h"
#include "data/npz.h"
#include "data/walk.h"
#include "run/safetensors.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERIES = 10, LENGTH = 70, HORIZON = 6 };

static double value_at(int series, int t) {
    double trend = 20 * pow(4, series % 4) * (1 + 0.01 * (series + 1) * t);
    return trend * (1 + 0.3 * sin(t * 3.14159265 / 3 + series));
}

// Values from..to of every series, one with a name that needs quotes.
static void put_panel(const char *path, int series, int from, int to) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int s = 0; s < series; s++) {
        fprintf(f, s == 3 ? "\"S,%d\"" : "S%d", s);
        for (int t = from; t < to; t++) fprintf(f, ",%.6g", value_at(s, t));
        fputc('\n', f);
    }
    fclose(f);
}

#define DESCRIPTION                                                                                                    \
    "data: {set: p.npz, windows: {series: 18}}\n"                                                                      \
    "model: {kind: nbeats, width: 32, blocks: 2}\n"                                                                    \
    "train: {epochs: 20, patience: 20, batch_size: 32, season: 6, optimizer: {lr: 3.0e-3}, schedule: {kind: "          \
    "cosine}}\n"                                                                                                       \
    "run: {dir: made}\n"

static void put_all(void) {
    put_panel("p.csv", SERIES, 0, LENGTH);
    put_panel("t.csv", SERIES, LENGTH, LENGTH + HORIZON);
    put_text("run.yaml", DESCRIPTION);
    assert_int_equal(RUN("import", "p.csv", "-o", "p.npz", "--horizon", "6", "--history", "12", "-q"), 0);
}

static float *read_floats(const char *path, const char *name, int rank, const int64_t *dim) {
    err e = {0};
    npz z;
    support_ok(npz_open(&z, path, &e), &e);
    const npz_entry *n = npz_find(&z, name);
    if (!n) fail_msg("%s: no %s", path, name);
    assert_int_equal(n->header.rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(n->header.dim[i], dim[i]);
    float *v = malloc((size_t)n->header.count * sizeof *v);
    assert_non_null(v);
    support_ok(npz_read(&z, n, NULL, NPY_F32, v, &e), &e);
    npz_close(&z);
    return v;
}

static double smape_of(const float *forecast, int series) {
    double sum = 0;
    for (int h = 0; h < HORIZON; h++) {
        double f = (double)forecast[h], y = value_at(series, LENGTH + h);
        sum += 200 * fabs(f - y) / (fabs(f) + fabs(y)) / HORIZON;
    }
    return sum;
}

// From the import to the score, which is that of the forecasts that predict writes.
static void a_panel_is_forecast(void **state) {
    (void)state;
    put_all();
    assert_int_equal(RUN("train", "run.yaml"), 0);
    matches(
        "out", "\ndata +[0-9]+ training and 10 validation samples \\(p\\.npz, which holds the last 6 values of each");
    matches("out", "\nforecast +6 values, relative to the mean size of the window\n");
    matches("out", "\nepoch +1  loss [0-9.e-]+  validation loss [0-9.e-]+  sMAPE [0-9.]+  MASE [0-9.]+ \\*");
    matches("out", "\nbest +epoch [0-9]+, validation sMAPE [0-9.]+\n");
    assert_int_equal(RUN("evaluate", "made", "--test", "t.csv", "--json"), 0);
    double smape = number("smape");
    assert_true(number("series") == SERIES && smape < number("naive2_smape") && number("owa") < 1);
    assert_int_equal(RUN("evaluate", "made", "--test", "t.csv"), 0);
    matches(
        "out", "^weights +made/best\\.safetensors\ntest +t\\.csv: 10 series of 6 values, forecast from the ends of p");
    matches("out", "\nsMAPE +[0-9.]+\nMASE +[0-9.]+\nOWA +[0-9.]+ \\(naive2 has sMAPE [0-9.]+, MASE [0-9.]+\\)\n");
    matches(
        "out", "\ntrivial +last value: RMSE [0-9.]+, .*; last season: RMSE [0-9.]+, MAE [0-9.]+, sMAPE [0-9.]+, MASE ");
    matches("out", "\nintervals by 1,000 resamples, in blocks of 1 series\n");
    matches(
        "out", "\nsMAPE +[0-9.]+  [0-9.]+ to [0-9.]+ +[0-9.]+  last season +\\+[0-9.]+  \\+[0-9.]+ to \\+[0-9.]+\n");
    matches("out", "\nRMSE, MAE, sMAPE, MASE: better than the trivial answer on these rows\n$");
    assert_int_equal(RUN("predict", "made", "--part", "future", "-o", "f.npz"), 0);
    float *forecast = read_floats("f.npz", "forecast", 2, (const int64_t[]){SERIES, HORIZON});
    double mean = 0;
    for (int s = 0; s < SERIES; s++) mean += smape_of(forecast + s * HORIZON, s) / SERIES;
    assert_true(fabs(mean - smape) < 1e-3); // the files have six digits
    free(forecast);
    assert_int_equal(RUN("predict", "made", "--part", "future", "-o", "f.csv"), 0);
    matches("f.csv", "^series,forecast_1,.*,forecast_6\nS0,[0-9.]+,");
    matches("f.csv", "\n\"S,3\",[0-9.]+,");
}

static void parts_are_evaluated_and_predicted(void **state) {
    (void)state;
    put_all();
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=3", "--json"), 0);
    double best = number("validation_best");
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    // Training has an error in fp32, evaluate in fp64: of values up to 200 a rounding is 200 * 2^-24, or 1.2e-5, and
    // each has passed a handful of them.
    assert_float_equal(number("smape"), best, 1e-4);
    assert_true(number("loss") > 0 && number("mae") > 0 && number("rmse") > 0 && number("mase") > 0);
    assert_int_equal(RUN("evaluate", "made", "--json", "data.residency=host"), 0);
    assert_float_equal(number("smape"), best, 1e-4);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "\ndata +p\\.npz, validation: 10 samples [(]there is no test part; validation chose the best "
                   "epoch[)]\nloss +[0-9.e-]+\nMAE ");
    assert_int_equal(RUN("predict", "made", "-o", "v.npz"), 0);
    matches("out", "^v\\.npz: forecasts of 6 values for 10 samples \\(p\\.npz, validation\\) by made/best");
    free(read_floats("v.npz", "target", 2, (const int64_t[]){SERIES, HORIZON}));
    assert_int_equal(RUN("predict", "made", "-o", "v.csv"), 0);
    matches("v.csv", "^sample,series,target_1,.*,target_6,forecast_1,.*\n[0-9]+,S0,");
    assert_int_equal(RUN("runs", "."), 0);
    matches("out", "\\./made +done +nbeats +3 +[123] +[0-9.e-]+ +sMAPE +[0-9.]+ ");
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nbest +epoch [123], validation loss [0-9.e-]+, sMAPE [0-9.]+\n");
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.epochs=1", "train.loss=quantile", "run.dir=q"), 0);
    assert_int_equal(RUN("predict", "q", "-o", "q.npz"), 0);
    free(read_floats("q.npz", "forecast", 3, (const int64_t[]){SERIES, 3, HORIZON}));
    free(read_floats("q.npz", "quantiles", 1, (const int64_t[]){3}));
    assert_int_equal(RUN("predict", "q", "-o", "q.csv"), 0);
    matches("q.csv", "target_6,q0\\.1_1,.*,q0\\.9_6\n");
    assert_int_equal(RUN("evaluate", "q", "--test", "t.csv"), 0);
}

static void mistakes_are_told(void **state) {
    (void)state;
    put_all();
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.epochs=1"), 0);
    put_panel("less.csv", SERIES - 1, LENGTH, LENGTH + HORIZON);
    put_panel("more.csv", SERIES + 1, LENGTH, LENGTH + HORIZON);
    put_panel("short.csv", SERIES, LENGTH, LENGTH + HORIZON - 1);
    complains(
        RUN("evaluate", "made", "--test", "less.csv"), "less\\.csv: has no series named S9, which is in p\\.npz; .*");
    complains(RUN("evaluate", "made", "--test", "more.csv"), "more\\.csv: has 11 series and p\\.npz has 10; .*");
    complains(RUN("evaluate", "made", "--test", "short.csv"),
        "short\\.csv: series S0 has 5 values and the run forecasts 6; .*");
    complains(RUN("predict", "made", "--latest", "1"),
        "p\\.npz: keeps no bars, so none is its newest; a panel of series is forecast with --part future");
    complains(RUN("evaluate", "made", "--test", "none.csv"), "none\\.csv: .*No such file.*");
    complains(RUN("evaluate", "made", "--part", "future"), "--part future: has no values to compare with; .*");
    complains(RUN("evaluate", "made", "--part", "test"), "--part test: series that are forecast have no such part; .*");
    complains(RUN("evaluate", "made", "--test", "t.csv", "--part", "all"), "--part: means nothing to a test; .*");
    complains(RUN("train", "run.yaml", "train.metric=accuracy"),
        ".*accuracy is for classes; use one of smape, mase, owa, mae, rmse, loss");
    complains(RUN("train", "run.yaml", "train.ensemble=2", "data.set=none.npz", "run.dir=never"), ".*No such file.*");
    assert_int_equal(access("never", F_OK), -1);
    put_text("classes.yaml", "data: {synthetic: {bars: 1000}}\nmodel: {kind: mlp, widths: 4}\ntrain: {epochs: 1}\n"
                             "run: {dir: classes}\n");
    assert_int_equal(RUN("train", "classes.yaml", "-q", "data.split.embargo=0"), 0);
    complains(RUN("predict", "classes", "--part", "future", "-o", "f.csv"),
        "synthetic: holds no series with names and targets; .*");
}

// Ensembles

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void members_answer_together(void **state) {
    (void)state;
    put_all();
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=2", "train.ensemble=3", "--seed=5"), 0);
    matches("out", "^member +1 of 3, seed 5\n.*\nmember +2 of 3, seed 6\n.*\nmember +3 of 3, seed 7\n");
    matches("out", "\nensemble +made: 3 members, .*\n$");
    assert_int_equal(RUN("train", "run.yaml", "train.epochs=2", "train.seed=6", "run.dir=alone", "-q"), 0);
    same_bytes("made/member_2/best.safetensors", "alone/best.safetensors");
    float *one[4];
    static const char *const runs[] = {"made/member_1", "made/member_2", "made/member_3", "made"};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(RUN("predict", runs[k], "-o", "f.npz"), 0);
        one[k] = read_floats("f.npz", "forecast", 2, (const int64_t[]){SERIES, HORIZON});
    }
    for (int i = 0; i < SERIES * HORIZON; i++) {
        float of[3] = {one[0][i], one[1][i], one[2][i]};
        qsort(of, 3, sizeof *of, by_size);
        assert_true(one[3][i] == of[1]);
    }
    for (int k = 0; k < 4; k++) free(one[k]);
    assert_int_equal(RUN("evaluate", "made", "--test", "t.csv", "--json"), 0);
    assert_true(number("members") == 3);
    matches("out", "\"skill_interval\":\\[[-0-9.e]+,[-0-9.e]+\\],\"skill_is\":\"1 - score / trivial\"");
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "^weights +made, 3 members\n");
    matches("out", "\nskill +1 - score / trivial; 1: perfect, 0: as good as the trivial answer\n");
    assert_int_equal(RUN("inspect", "made"), 0);
    matches(
        "out", "^ensemble +made: done, 3 members, nbeats, .*\nmember +1: done, best epoch [12] of 2, validation sMAPE");
    assert_int_equal(RUN("runs", "made"), 0);
    matches("out", "\nmade +done +nbeats x3 ");
    put_text("classes.yaml", "data: {synthetic: {bars: 1500}, split: {embargo: 0}}\nmodel: {kind: mlp, widths: 4}\n"
                             "train: {epochs: 1, ensemble: 2}\nrun: {dir: classes}\n");
    assert_int_equal(RUN("train", "classes.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "classes", "--json"), 0);
    double accuracy = number("accuracy"), samples = number("samples");
    assert_true(number("loss") > 0 && samples > 100 && number("members") == 2);
    assert_int_equal(RUN("predict", "classes", "-o", "c.npz"), 0);
    float *p = read_floats("c.npz", "probability", 2, (const int64_t[]){(int64_t)samples, 3}),
          *label = read_floats("c.npz", "label", 1, (const int64_t[]){(int64_t)samples});
    double right = 0;
    for (int i = 0; i < (int)samples; i++) {
        const float *row = p + 3 * i;
        int most = row[1] > row[0] ? 1 : 0;
        right += (row[2] > row[most] ? 2 : most) == (int)label[i];
    }
    assert_float_equal(right / samples, accuracy, 1e-8);
    free(p);
    free(label);
}

#define LONG "train.ensemble=3", "train.epochs=40", "train.patience=40", "train.checkpoint_every=2"

// Asked to stop in the first member, killed in the second, gone on with twice: as if nothing had happened.
static void ensembles_go_on(void **state) {
    (void)state;
    put_all();
    assert_int_equal(RUN("train", "run.yaml", LONG, "run.dir=whole", "-q"), 0);
    const char *train[] = {"train", "run.yaml", LONG, "run.dir=cut", NULL};
    const char *again[] = {"train", "cut/config.yaml", "--resume", NULL};
    pid_t child = program_start("one", train);
    wait_for("one", "epoch   3 ");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("one", "\nresume +tradewind train cut/config\\.yaml --resume\n");
    complains(RUN("evaluate", "cut"), "cut: its members are not all trained; go on with `tradewind train cut/config.*");
    child = program_start("two", again);
    wait_for("two", "member    2 of 3");
    wait_for("cut/member_2/training_log.txt", "epoch   5 ");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(RUN("inspect", "cut"), 0);
    matches("out",
        "^ensemble +cut: killed, 3 members, .*\nmember +1: done, .*\nmember +2: killed, .*\nmember +3: not begun\n");
    assert_int_equal(RUN("train", "cut/config.yaml", "--resume"), 0);
    matches("out", "^member +1 of 3, seed 1: trained already\nmember +2 of 3, seed 2\n");
    same_bytes("whole/member_1/best.safetensors", "cut/member_1/best.safetensors");
    same_bytes("whole/member_2/best.safetensors", "cut/member_2/best.safetensors");
    same_bytes("whole/member_3/best.safetensors", "cut/member_3/best.safetensors");
    assert_int_equal(RUN("evaluate", "cut", "--test", "t.csv"), 0);
}

// Bars

static void bars_are_forecast_by_every_model(void **state) {
    static const char *const models[] = {"lstm", "mlp", "transformer", "nbeats"};
    (void)state;
    walk_put("m5.csv", 4000, 300, 3);
    put_text("run.yaml", "data: {bars: {fast: m5.csv}, frames: [1h], label: {kind: forecast, horizon: 4},\n"
                         "  windows: {fast: 8, slow: 4}}\n"
                         "model: {hidden: {fast: 8, slow: 8}, heads: 2, layers: 1, width: 16, widths: 16}\n"
                         "train: {epochs: 2, batch_size: 256}\nrun: {dir: made}\n");
    for (int i = 0; i < 4; i++) {
        char kind[64];
        snprintf(kind, sizeof kind, "model.kind=%s", models[i]);
        assert_int_equal(RUN("train", "run.yaml", "--json", kind), 0);
        double best = number("validation_best");
        matches("out", "\"metric\":\"mae\"");
        matches("out", "(^|\n)\\{\"trivial\":\\{\"zero\":\\{\"rmse\":[0-9.e-]+,\"mae\":[0-9.e-]+\\}\\},\"part\":"
                       "\"validation\"\\}\n");
        assert_int_equal(RUN("evaluate", "made", "--part=validation", "--json"), 0);
        assert_true(fabs(number("mae") - best) <= 1e-5 * best); // fp32 and fp64, as above
        matches("out", "\"mase\":null,\"owa\":null");
        assert_int_equal(RUN("evaluate", "made", "--part=validation"), 0);
        matches(
            "out", "\nMAE +[0-9.e-]+\nRMSE +[0-9.e-]+\nsMAPE +[0-9.]+\ntrivial +zero forecast: RMSE [0-9.e-]+, MAE ");
        matches("out", "\nRMSE, MAE: no better than the trivial answer on these rows\n\nstored +made/evaluation.json, "
                       "made/pred.*\n$");
    }
    assert_int_equal(RUN("predict", "made", "-o", "p.csv"), 0);
    matches("p.csv",
        "^sample,open_time,close_time,close,target_1,.*,target_4,forecast_1,.*,forecast_4\n[0-9]+,20[0-9: -]+,");
    complains(RUN("predict", "made", "--part=future", "-o", "p.csv"), ".*holds no series with names and targets; .*");
}

// Several instruments have a line each, and one together.
static void instruments_are_scored_apart(void **state) {
    (void)state;
    walk_put("a.csv", 2000, 300, 3);
    walk_put("b.csv", 2000, 300, 4);
    put_text("run.yaml", "data: {set: two.npz, windows: {fast: 4}, split: {embargo: 0}}\n"
                         "model: {kind: mlp, widths: 8}\ntrain: {epochs: 1}\nrun: {dir: made}\n");
    assert_int_equal(RUN("import", "--symbol", "GOLD", "a.csv", "--symbol", "EURO", "b.csv", "-o", "two.npz", "--label",
                         "forecast", "--horizon", "2", "-q"),
        0);
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out",
        "\nsymbol +samples +RMSE +MAE +skill  95 % interval \\(skill by RMSE\\)\n"
        "EURO +[0-9,]+ +[0-9.e-]+ +[0-9.e-]+ +[-+][0-9.]+  [-+][0-9.]+ to [-+][0-9.]+ +(no better|better|worse)\n"
        "GOLD .*\ntogether .*\n$");
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    json_t *v = last_line();
    const json_t *symbols = json_object_get(v, "symbols");
    json_int_t samples = 0;
    assert_int_equal(json_array_size(symbols), 2);
    for (size_t i = 0; i < 2; i++)
        samples += json_integer_value(json_object_get(json_array_get(symbols, i), "samples"));
    assert_int_equal(samples, json_integer_value(json_object_get(v, "samples")));
    json_decref(v);
}

// Weights of a version that did not scale targets: the same without their scale.
static double drop_scale(const char *from, const char *to) {
    enum { MOST = 64 };
    err e = {0};
    float std = 0;
    int n = 0;
    safetensors_entry entry[MOST];
    safetensors *f = safetensors_open(from, &e);
    support_ok(f != NULL, &e);
    for (int i = 0; i < safetensors_count(f) && n < MOST; i++) {
        const safetensors_entry *t = safetensors_at(f, i);
        if (strcmp(t->name, "scaler.target.std") == 0) memcpy(&std, t->data, sizeof std);
        if (strncmp(t->name, "scaler.target.", 14) != 0) entry[n++] = *t;
    }
    support_ok(safetensors_write(to, entry, n, NULL, 0, &e), &e);
    safetensors_close(f);
    return (double)std;
}

// They answer in the units that they were trained in.
static void older_weights_answer_as_they_were_trained(void **state) {
    (void)state;
    walk_put("m5.csv", 3000, 300, 3);
    put_text("run.yaml", "data: {bars: {fast: m5.csv}, label: {kind: forecast, horizon: 2}, windows: {fast: 4},\n"
                         "  split: {embargo: 0}}\n"
                         "model: {kind: mlp, widths: 8}\ntrain: {epochs: 2}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    int64_t dim[2] = {(int64_t)number("samples"), 2};
    assert_int_equal(RUN("predict", "made", "-o", "new.npz"), 0);
    double std = drop_scale("made/best.safetensors", "made/older.safetensors");
    assert_true(std > 0 && std < 0.1);
    assert_int_equal(RUN("predict", "made/older.safetensors", "-o", "old.npz"), 0);
    float *now = read_floats("new.npz", "forecast", 2, dim), *then = read_floats("old.npz", "forecast", 2, dim);
    for (int64_t i = 0; i < 2 * dim[0]; i++)
        assert_true(fabs((double)now[i] - std * (double)then[i]) <= 1e-5 * std * (1 + fabs((double)then[i])));
    free(now);
    free(then);
}

// The competition's files

static void the_competitions_files(void **state) {
    (void)state;
    char known[4200], future[4200];
    const char *folder = getenv("TRADEWIND_DATA");
    if (!folder) folder = TEST_DIR "/../../shared/data";
    snprintf(known, sizeof known, "%s/M4-Weekly-train.csv", folder);
    snprintf(future, sizeof future, "%s/M4-Weekly-test.csv", folder);
    if (access(known, R_OK) || access(future, R_OK)) skip();
    assert_int_equal(RUN("import", known, "-o", "m4.npz", "--horizon=13", "--recent=65", "-q"), 0);
    put_text("run.yaml", "data: {set: m4.npz, windows: {series: 65}}\nmodel: {kind: nbeats, width: 128, blocks: 3}\n"
                         "train: {epochs: 16, patience: 16, batch_size: 256, schedule: {kind: cosine}}\n"
                         "run: {dir: made}\n");
    bool brief = support_sanitized();
    assert_int_equal(RUN("train", "run.yaml", "-q", brief ? "train.epochs=1" : "train.epochs=16"), 0);
    assert_int_equal(RUN("evaluate", "made", "--test", future, "--json"), 0);
    assert_true(number("series") == 359);
    // As published.
    assert_float_equal(number("naive2_smape"), 9.161, 0.002);
    assert_float_equal(number("naive2_mase"), 2.777, 0.002);
    print_message("sMAPE %.3f, MASE %.3f, OWA %.3f\n", number("smape"), number("mase"), number("owa"));
    // This description reaches 0.85 and naive2 has 1; half the way is left to other instruction sets' rounding.
    assert_true(brief || number("owa") < 0.95);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_panel_is_forecast),
        TEST(parts_are_evaluated_and_predicted),
        TEST(mistakes_are_told),
        TEST(members_answer_together),
        TEST(ensembles_go_on),
        TEST(bars_are_forecast_by_every_model),
        TEST(instruments_are_scored_apart),
        TEST(older_weights_answer_as_they_were_trained),
        TEST(the_competitions_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
