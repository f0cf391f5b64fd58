// Runs and walks in a directory that seems to be on a network file system: a line says so once, and every reader works.
#include "cli/program.h"
#include "fault/kinds.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state) {
    if (support_enter(state)) return -1;
    return setenv("FAULT_STATFS", "6969", 1);
}

static int teardown(void **state) {
    unsetenv("FAULT_STATFS");
    return support_leave(state);
}

#define ON_NFS(...) program_finish(fault_start((const char *const[]){__VA_ARGS__, NULL}, NULL, NULL))

static int count(const char *path, const char *text) {
    int n = 0;
    char *all = slurp(path);
    for (const char *at = all; (at = strstr(at, text)); at++) n++;
    free(all);
    return n;
}

// Bytes 18 and 19 of a database are 1, and 2 with WAL.
static void has_no_wal(const char *path) {
    unsigned char head[20];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    fclose(f);
    assert_true(head[18] == 1 && head[19] == 1);
}

static void a_run_is_told_and_read(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // its library must come first
    put_small_run();
    assert_int_equal(ON_NFS("train", "run.yaml"), 0);
    matches("out", "\nwarning +made is on a network file system \\(NFS\\): run\\.db has no WAL there");
    assert_int_equal(count("out", "network file system"), 1);
    assert_int_equal(count("made/training_log.txt", "network file system"), 1);
    has_no_wal("made/run.db");
    assert_int_equal(ON_NFS("runs", "."), 0);
    matches("out", "made");
    assert_int_equal(ON_NFS("inspect", "made"), 0);
    matches("out", "done");
    assert_int_equal(ON_NFS("report", "made"), 0);
    assert_int_equal(ON_NFS("train", "run.yaml", "--resume", "train.epochs=3", "--json"), 0);
    assert_int_equal(count("out", "{\"warning\":\"made is on a network file system"), 1);
    assert_int_equal(RUN("train", "run.yaml"), 0); // on a disk of this machine
    assert_int_equal(count("out", "network file system"), 0);
}

static void members_are_told_once(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // its library must come first
    put_small_run();
    assert_int_equal(ON_NFS("train", "run.yaml", "train.ensemble=2", "train.epochs=1"), 0);
    assert_int_equal(count("out", "network file system"), 1);
    has_no_wal("made/member_2/run.db");
}

static void a_walk_is_told_once(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // its library must come first
    put_small_run();
    assert_int_equal(
        ON_NFS("walk", "run.yaml", "walk.train=600", "walk.validation=200", "walk.test=200", "train.epochs=1"), 0);
    assert_int_equal(count("out", "network file system"), 1);
    has_no_wal("made/run.db");
    has_no_wal("made/fold_01/run.db");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_told_and_read),
        TEST(members_are_told_once),
        TEST(a_walk_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
