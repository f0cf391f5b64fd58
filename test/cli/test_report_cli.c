// evaluate keeps what it found in the run, and report makes a page of it, from outside.
#include "cli/program.h"
#include "data/npz.h"
#include "run/results.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool there(const char *path) {
    return access(path, F_OK) == 0;
}

static json_t *document(const char *dir) {
    err e = {0};
    json_t *doc;
    support_ok(results_read(dir, RESULTS_EVALUATION, &doc, &e), &e);
    assert_non_null(doc);
    return doc;
}

static double sum_of(const json_t *list, const char *key) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_number_value(json_object_get(json_array_get(list, i), key));
    return sum;
}

// Bins count every sample once a class, and their shares are those of the confusion matrix's rows.
static void check_calibration(json_t *part) {
    json_t *classes = results_get(part, "calibration"), *matrix = results_get(part, "confusion"), *bin;
    double samples = results_number(results_get(part, "samples"));
    assert_int_equal(json_array_size(classes), 3);
    for (size_t k = 0; k < 3; k++) {
        json_t *bins = json_object_get(json_array_get(classes, k), "bins");
        double right = 0, row = 0;
        size_t i;
        assert_int_equal(json_array_size(bins), 10);
        assert_true(sum_of(bins, "count") == samples);
        json_array_foreach(bins, i, bin) {
            double count = results_number(json_object_get(bin, "count")),
                   mean = results_number(json_object_get(bin, "mean"));
            assert_true(isnan(mean) == (count == 0));
            if (count == 0) continue;
            assert_true(mean >= results_number(json_object_get(bin, "low")) - 1e-9);
            assert_true(mean <= results_number(json_object_get(bin, "high")) + 1e-9);
            right += count * results_number(json_object_get(bin, "share"));
        }
        for (size_t i2 = 0; i2 < 3; i2++) row += results_number(json_array_get(json_array_get(matrix, k), i2));
        assert_true(fabs(right - row) < 1e-6);
    }
}

static void evaluations_are_kept(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    double mcc = number("mcc");
    json_t *line = last_line(), *doc = document("made");
    assert_string_equal(json_string_value(json_array_get(json_object_get(line, "stored"), 0)), "made/evaluation.json");
    json_t *part = results_get(doc, "parts.test");
    assert_true(fabs(results_number(results_get(part, "metrics.mcc")) - mcc) < 1e-12);
    assert_true(json_equal(json_object_get(line, "confusion"), results_get(part, "confusion")));
    assert_int_equal(json_array_size(results_get(part, "scores")), 3);
    assert_true(results_number(results_get(part, "epoch")) >= 1);
    check_calibration(part);
    json_decref(doc);
    json_decref(line);
    assert_int_equal(RUN("predict", "made", "-o", "p.npz", "-q"), 0);
    same_bytes("p.npz", "made/predictions_test.npz");
    assert_int_equal(RUN("evaluate", "made", "--part", "validation", "-q"), 0);
    is_empty("err");
    doc = document("made");
    assert_non_null(results_get(doc, "parts.test"));
    assert_non_null(results_get(doc, "parts.validation"));
    json_decref(doc);
    matches("out", "macro F1 +[0-9.]+\n$");
}

// Scores of something else than the run's own part by its best weights are not the run's.
static void other_evaluations_are_not_kept(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "data.split.train=0.5"), 0);
    assert_int_equal(RUN("evaluate", "made/last.safetensors"), 0);
    assert_int_equal(RUN("evaluate", "made", "--part", "all"), 0);
    assert_false(
        there("made/evaluation.json") || there("made/predictions_test.npz") || there("made/predictions_all.npz"));
    // An evaluation that cannot be kept is a note.
    put_text("made/evaluation.json", "mine");
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "note +not stored: made/evaluation.json: JSON line 1.*damaged");
    assert_true(file_holds("made/evaluation.json", "mine"));
    assert_false(there("made/predictions_test.npz"));
    unlink("made/evaluation.json");
    put_text("made/predictions_test.npz", "mine");
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    matches("err", "not stored: made/predictions_test.npz: is there and is not an output of predict");
    assert_true(file_holds("made/predictions_test.npz", "mine") && there("made/evaluation.json"));
    assert_true(file_holds("made/evaluation.json", "\"epoch\""));
}

// A run does not need its run.db: the scores are kept, and the epoch that is missing is told.
static void an_evaluation_without_its_epoch_says_so(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    unlink("made/run.db-wal");
    put_text("made/run.db", "mine");
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "note +not stored: its epoch: made/run.db: ");
    assert_true(there("made/evaluation.json") && !file_holds("made/evaluation.json", "\"epoch\""));
    unlink("made/run.db");
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_false(file_holds("out", "not stored"));
}

static void reports_are_made(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "-q"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    matches("out", "^run +made: done, lstm on cpu, .*2 epochs\nbest +epoch [12], validation loss [0-9.]+, mcc ");
    matches("out", "\ntest +[0-9]+ samples: loss [0-9.]+, accuracy ");
    matches("out", "\nmissing +Importance of columns: `tradewind evaluate made --importance`\n");
    matches("out", "\nreport +made/report.html, [0-9]+ figures in made/report\n$");
    assert_true(file_holds("made/report.html", "id=\"calibration\""));
    assert_int_equal(RUN("report", "made", "-q", "-o", "x.html"), 0);
    matches("out", "^report +x.html, [0-9]+ figures in x\n$");
    assert_int_equal(RUN("report", "made", "--json"), 0);
    assert_true(number("epochs") == 2);
    complains(RUN("report", "."), "\\.: is neither a run's directory .* nor a walk's .*");
    complains(RUN("report"), "no run given; name its directory");
    complains(RUN("report", "made", "-o", "run.yaml"), "-o run.yaml: must end in .html");
    complains(RUN("report", "made", "-o", "no/such/a.html"),
        "-o no/such/a\\.html: there is no directory no/such; make it, .*");
    assert_false(there("no"));
    // The next training finds the directory as any run's, and sets all of it aside.
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_true(there("made.1/report.html") && there("made.1/evaluation.json") && !there("made/report.html"));
}

// A class that one column decides: a column of the vector, or the last bar of a stream. One column is noise, one never
// changes.
typedef enum { WINDOWS_STREAM, WINDOWS_VECTOR, WINDOWS_SIGN } windows_kind;

#define MLP                                                                                                            \
    "data: {set: set.npz, windows: {fast: 4}, split: {embargo: 0}}\nmodel: {kind: mlp, dropout: 0}\n"                  \
    "train: {epochs: 12, batch_size: 64}\nrun: {dir: made}\n"

static void put_windows(windows_kind kind) {
    enum { SAMPLES = 1500, STEPS = 4, COLUMNS = 3 };
    static float fast[SAMPLES][STEPS][COLUMNS], more[SAMPLES][COLUMNS];
    static int64_t label[SAMPLES];
    dice d = {.seed = 11};
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < STEPS; k++)
            for (int c = 0; c < COLUMNS; c++) fast[i][k][c] = c == 2 ? 1 : dice_unit(&d);
        for (int c = 0; c < COLUMNS; c++) more[i][c] = c == 2 ? 1 : dice_unit(&d);
        if (kind == WINDOWS_SIGN) more[i][0] = more[i][0] > 0 ? 1 : -1;
        label[i] = kind == WINDOWS_STREAM ? fast[i][STEPS - 1][0] > 0 : more[i][0] > 0;
    }
    npz_writer w;
    err e;
    int64_t n = SAMPLES;
    bool ok = npz_writer_open(&w, "windows.npz", &e) &&
              npz_writer_array(&w, "x_fast", NPY_F32, 3, (int64_t[]){SAMPLES, STEPS, COLUMNS}, fast, &e) &&
              npz_writer_array(&w, "x_strategy", NPY_F32, 2, (int64_t[]){SAMPLES, COLUMNS}, more, &e) &&
              npz_writer_array(&w, "labels", NPY_I64, 1, &n, label, &e) && npz_writer_commit(&w, &e);
    support_ok(ok, &e);
    npz_writer_abandon(&w);
}

static void importance_finds_the_column(void **state) {
    (void)state;
    put_text("run.yaml", MLP);
    for (int vector = 0; vector < 2; vector++) {
        put_windows(vector ? WINDOWS_VECTOR : WINDOWS_STREAM);
        assert_int_equal(RUN("import", "windows.npz", "-o", "set.npz", "-q"), 0);
        assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
        assert_int_equal(RUN("evaluate", "made", "--importance"), 0);
        matches("out", vector ? "\nvector +column 1 +\\+[01]" : "\nfast +column 1 +\\+[01]");
        json_t *doc = document("made"), *list = results_get(doc, "parts.validation.importance");
        assert_int_equal(json_array_size(list), 6);
        for (size_t i = 0; i < 6; i++) {
            double drop = results_number(json_object_get(json_array_get(list, i), "drop"));
            if (i == (vector ? 3u : 0u))
                assert_true(drop > 0.5);
            else if (i % 3 == 2)
                assert_true(drop == 0);
            else
                assert_true(fabs(drop) < 0.25);
        }
        // Once more, and from the host: the same in all digits that are printed. A plain evaluation keeps it.
        json_t *was = json_deep_copy(list);
        json_decref(doc);
        assert_int_equal(RUN("evaluate", "made", "--importance", "--json", "data.residency=host"), 0);
        json_t *line = last_line();
        for (size_t i = 0; i < 6; i++) {
            const json_t *one = json_array_get(json_object_get(line, "importance"), i);
            double other = results_number(json_object_get(json_array_get(was, i), "drop"));
            assert_true(fabs(results_number(json_object_get(one, "drop")) - other) < 1e-12);
        }
        json_decref(line);
        assert_int_equal(RUN("evaluate", "made", "--part", "validation", "-q"), 0);
        doc = document("made");
        assert_true(json_equal(results_get(doc, "parts.validation.importance"), was));
        json_decref(doc);
        json_decref(was);
    }
    complains(RUN("evaluate", "made", "--importance", "--part", "test"), "--importance: is measured on validation; .*");
}

// A vector of several types, of which a column of the second part decides: a sign, kept in 8 bits.
static void importance_knows_parts_of_tables(void **state) {
    (void)state;
    put_windows(WINDOWS_SIGN);
    put_text("run.yaml", MLP);
    assert_int_equal(RUN("import", "windows.npz", "--types", "compact", "-o", "set.npz", "-q"), 0);
    assert_int_equal(RUN("inspect", "set.npz"), 0);
    matches("out", "i8");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--importance", "-q"), 0);
    json_t *doc = document("made"), *list = results_get(doc, "parts.validation.importance");
    int found = 0, none = 0;
    for (size_t i = 0; i < 6; i++) {
        double drop = results_number(json_object_get(json_array_get(list, i), "drop"));
        found += i >= 3 && drop > 0.5;
        none += drop == 0;
        assert_true(drop > 0.5 || fabs(drop) < 0.25);
    }
    assert_true(json_array_size(list) == 6 && found == 1 && none >= 2);
    json_decref(doc);
}

// Members answer together and have an importance each.
static void ensembles_are_kept_too(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.ensemble=2"), 0);
    assert_int_equal(RUN("evaluate", "made", "-q"), 0);
    complains(
        RUN("evaluate", "made", "--importance"), "made: is an ensemble, whose members have an importance each; .*");
    assert_int_equal(RUN("report", "made"), 0);
    matches("out", "missing +Learning curve: loss.*members' directories");
    assert_true(there("made/report/confusion.svg") && there("made/report/calibration.svg"));
    assert_int_equal(RUN("report", "made/member_1"), 0);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(evaluations_are_kept),
        TEST(other_evaluations_are_not_kept),
        TEST(an_evaluation_without_its_epoch_says_so),
        TEST(reports_are_made),
        TEST(importance_finds_the_column),
        TEST(importance_knows_parts_of_tables),
        TEST(ensembles_are_kept_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
