// Formats of our files, from outside: a file of a newer format is refused by name with status 2, one without a number,
// as earlier programs wrote them, is read. What commit 7a0ccf0 wrote is in test_old_run.c.
#include "cli/program.h"
#include "data/npz.h"
#include "run/checkpoint.h"
#include "run/weights.h"
#include "support.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEWER(file, known)                                                                                             \
    file ": was written by a newer tradewind \\(format 9, this program reads up to " known "\\); update"

static void train(void) {
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device=cpu"), 0);
}

// Writes a file of tensors again with another value of a note, or without the note (NULL).
static void change_note(const char *path, const char *key, const char *value) {
    err e = {0};
    safetensors_note notes[32];
    int n = 0, found = 0;
    safetensors *s = safetensors_open(path, &e);
    support_ok(s != NULL, &e);
    for (int i = 0; i < safetensors_notes(s); i++) {
        safetensors_note note = safetensors_note_at(s, i);
        bool is = strcmp(note.key, key) == 0;
        found += is;
        if (is && !value) continue;
        notes[n++] = (safetensors_note){note.key, is ? value : note.value};
    }
    assert_int_equal(found, 1);
    support_ok(safetensors_write("changed", safetensors_at(s, 0), safetensors_count(s), notes, n, &e), &e);
    safetensors_close(s);
    assert_int_equal(rename("changed", path), 0);
}

static void weights(void **state) {
    (void)state;
    train();
    change_note("made/best.safetensors", "weights", NULL);
    change_note("made/best.safetensors", "sum", NULL);
    assert_int_equal(RUN("evaluate", "made", "--device=cpu"), 0);
    assert_int_equal(
        RUN("train", "run.yaml", "--device=cpu", "-q", "run.dir=other", "train.init_from=made/best.safetensors"), 0);
    change_note("other/best.safetensors", "weights", "9");
#define WEIGHTS NEWER("other/best\\.safetensors", "2")
    complains(RUN("evaluate", "other"), WEIGHTS);
    complains(RUN("predict", "other", "-o", "p.csv"), WEIGHTS);
    complains(RUN("inspect", "other/best.safetensors"), WEIGHTS);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=more", "train.init_from=other/best.safetensors"), 2);
    matches("err", "^tradewind: .*" WEIGHTS "\n$");
}

static void checkpoints(void **state) {
    (void)state;
    train();
    change_note("made/last.safetensors", "checkpoint", "9");
#define CHECKPOINT NEWER("made/last\\.safetensors", "2")
    complains(RUN("inspect", "made/last.safetensors"), CHECKPOINT);
    complains(RUN("evaluate", "made/last.safetensors"), CHECKPOINT);
    complains(RUN("train", "run.yaml", "--resume", "train.epochs=3"), CHECKPOINT);
    // An earlier one is not taken in its place.
    assert_int_equal(RUN("train", "run.yaml", "run.dir=other", "-q", "--device=cpu", "train.checkpoint_every=1"), 0);
    change_note("other/checkpoint_epoch_2.safetensors", "checkpoint", "9");
    complains(RUN("train", "run.yaml", "run.dir=other", "--resume", "train.epochs=3"),
        NEWER("other/checkpoint_epoch_2\\.safetensors", "2"));
    change_note("other/checkpoint_epoch_2.safetensors", "checkpoint", "none");
    assert_int_equal(RUN("train", "run.yaml", "run.dir=other", "--resume", "train.epochs=3", "-q", "--device=cpu"), 0);
}

static void databases(void **state) {
    (void)state;
    sqlite3 *db;
    train();
    assert_int_equal(sqlite3_open("made/run.db", &db), SQLITE_OK);
    // One of before there were numbers.
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA user_version = 0; DROP TABLE samples; DROP TABLE sums", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nepochs +2, (.*\n)*note +run.db is of an earlier tradewind");
    assert_int_equal(RUN("train", "run.yaml", "--resume", "train.epochs=3", "-q", "--device=cpu"), 0);
    assert_int_equal(RUN("inspect", "made"), 0);
    matches("out", "\nepochs +3, ");
    assert_int_equal(sqlite3_open("made/run.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    complains(RUN("inspect", "made"), NEWER("made/run\\.db", "2"));
    complains(RUN("train", "run.yaml", "--resume", "train.epochs=4"), NEWER("made/run\\.db", "2"));
}

static void datasets(void **state) {
    (void)state;
    err e = {0};
    npz_writer w;
    support_ok(npz_writer_open(&w, "set.npz", &e), &e);
    support_ok(npz_writer_text(&w, "tradewind", (const char *const[]){"{\"version\": 9}"}, 1, &e), &e);
    support_ok(npz_writer_commit(&w, &e), &e);
    put_small_run();
    complains(RUN("inspect", "set.npz"), NEWER("set\\.npz", "2"));
    assert_int_equal(RUN("train", "run.yaml", "data.set=set.npz"), 2);
    matches("err", "^tradewind: .*" NEWER("set\\.npz", "2") "\n$");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {TEST(weights), TEST(checkpoints), TEST(databases), TEST(datasets)};
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
