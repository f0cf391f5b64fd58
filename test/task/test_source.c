// Sets are read against their sums before they are used: in blocks, whatever their size, and where a run goes on too.
#include "task/source.h"

#include "base/file.h"
#include "cli/program.h"
#include "data/npz.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 4, COLUMNS = 8 };

// Windows of `samples` samples, random to some degree.
static void put_windows(const char *path, int64_t samples) {
    size_t values = (size_t)samples * STEPS * COLUMNS;
    float *x = malloc(values * sizeof *x);
    int32_t *y = malloc((size_t)samples * sizeof *y);
    err e;
    npz_writer w;
    dice d = {.seed = 3};
    float some[997];
    assert_true(x && y);
    for (size_t i = 0; i < 997; i++) some[i] = dice_unit(&d);
    for (size_t i = 0; i < values; i++) x[i] = some[i % 997];
    for (int64_t i = 0; i < samples; i++) y[i] = x[i * STEPS * COLUMNS] > 0;
    support_ok(npz_writer_open(&w, path, &e), &e);
    bool ok = npz_writer_array(&w, "x_fast", NPY_F32, 3, (int64_t[]){samples, STEPS, COLUMNS}, x, &e) &&
              npz_writer_array(&w, "labels", NPY_I32, 1, &samples, y, &e) && npz_writer_commit(&w, &e);
    support_ok(ok, &e);
    free(x);
    free(y);
}

static void flip(const char *path, long at, int bit) {
    FILE *f = fopen(path, "r+");
    assert_true(f && fseek(f, at, SEEK_SET) == 0);
    int c = fgetc(f);
    assert_true(c != EOF && fseek(f, at, SEEK_SET) == 0);
    assert_int_equal(fputc(c ^ 1 << bit, f), c ^ 1 << bit);
    assert_int_equal(fclose(f), 0);
}

typedef struct {
    int calls;
    uint64_t done;
} seen;

static void on_progress(void *arg, uint64_t done) {
    seen *s = arg;
    assert_true(done > s->done);
    s->done = done;
    s->calls++;
}

static bool holds(const char *path, seen *s, err *e) {
    *s = (seen){0};
    dataset *d = source_open_file(path, e);
    support_ok(d != NULL, e);
    bool ok = npz_check(d->arrays, on_progress, s, e);
    if (ok) assert_true(s->done == npz_bytes(d->arrays));
    assert_true(source_check(d, &(task_listener){0}, e) == ok);
    dataset_free(d);
    return ok;
}

// An array of more than one round of blocks, with a bit of the first, of one in the middle and of the last byte.
static void every_block_counts(void **state) {
    (void)state;
    enum { SAMPLES = 600000 };
    static const long bytes = (long)SAMPLES * STEPS * COLUMNS * 4;
    const long places[] = {0, 4 << 20, (4 << 20) - 1, 64 << 20, bytes / 2, bytes - 1};
    seen s;
    err e;
    put_windows("set.npz", SAMPLES);
    dataset *d = source_open_file("set.npz", &e);
    support_ok(d != NULL, &e);
    long head = (long)((const unsigned char *)d->stream[0].series.part[0].data - d->arrays->zip.bytes);
    dataset_free(d);
    support_ok(holds("set.npz", &s, &e), &e);
    assert_true(s.calls > 2);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        flip("set.npz", head + places[i], 1);
        assert_false(holds("set.npz", &s, &e));
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.text, "set.npz: x_fast is damaged: its CRC-32 is wrong"));
        flip("set.npz", head + places[i], 1);
    }
    support_ok(holds("set.npz", &s, &e), &e);
}

static void what_is_large_depends_on_the_memory(void **state) {
    (void)state;
    err e;
    put_windows("set.npz", 100);
    dataset *d = source_open_file("set.npz", &e);
    support_ok(d != NULL, &e);
    double bytes = (double)npz_bytes(d->arrays);
    assert_true(source_is_large(d, 2 * bytes - 1) && !source_is_large(d, 2 * bytes));
    dataset_free(d);
}

// A bit of an exponent, which leaves every number finite.
static void a_flipped_set_is_refused(void **state) {
    (void)state;
    static const char want[] = ".*data.set: set[.]npz: x_fast is damaged: its CRC-32 is wrong.*";
    put_windows("set.npz", 400);
    put_text("run.yaml", "data: {set: set.npz, windows: {fast: 4}, split: {embargo: 0}}\n"
                         "model: {kind: mlp, widths: 4}\ntrain: {epochs: 1, batch_size: 64}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "-q", "train.ensemble=2", "run.dir=both"), 0);
    flip("set.npz", 20003, 0);
    complains(RUN("train", "run.yaml", "--device=cpu", "--resume", "train.epochs=2"), want);
    complains(
        RUN("train", "run.yaml", "--device=cpu", "--resume", "train.epochs=2", "train.ensemble=2", "run.dir=both"),
        want);
    complains(RUN("train", "run.yaml", "--device=cpu", "run.dir=other"), want);
    complains(RUN("predict", "made", "-o", "p.csv", "--device=cpu"), want);
    assert_int_not_equal(access("other", F_OK), 0);
    flip("set.npz", 20003, 0);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "--resume", "train.epochs=2", "-q"), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(every_block_counts),
        TEST(what_is_large_depends_on_the_memory),
        TEST(a_flipped_set_is_refused),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
