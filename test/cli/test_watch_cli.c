// tradewind watch where there is no terminal: a frame, figures, and what is refused.
#include "cli/program.h"
#include "run/db.h"
#include "run/run.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static db *put_run(const char *dir) {
    mkdir(dir, 0777);
    char *path = run_path(dir, "run.db"), *config = run_path(dir, "config.yaml");
    put_text(config, "model:\n  kind: lstm\n");
    db *d = db_open(path);
    db_run(
        d, "0.1", "model:\n  kind: lstm\ntrain:\n  epochs: 4\n  metric: mcc\n", "device: cpu, avx2\nparameters: 9\n");
    for (int i = 1; i <= 2; i++) {
        const db_metric m[] = {{"validation", "loss", 1.0 / i}, {"validation", "mcc", 0.25 * i}};
        db_epoch(d, &(db_epoch_row){i, (uint64_t)(10 * i), 5, 100, true, "[[3,1],[0,4]]"}, m, 2);
    }
    db_sync(d);
    free(path);
    free(config);
    return d;
}

static int files_in(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *each; (each = readdir(d));) n += each->d_name[0] != '.';
    closedir(d);
    return n;
}

static int count_lines(const char *path, const char *a, const char *b) {
    char line[4096];
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) n += strstr(line, a) && strstr(line, b);
    fclose(f);
    return n;
}

static void a_frame_and_figures(void **state) {
    (void)state;
    db *d = put_run("one");
    int files = files_in("one");
    assert_int_equal(RUN("watch", "--once", "one"), 0);
    matches("out", "one +running for 0:0[0-9]");
    matches("out", "epoch 2 of 4 .*50 %  100 samples/s  ETA 0:10");
    matches("out", "mcc +0.5 +0.5");
    setenv("LINES", "12", 1);
    assert_int_equal(RUN("watch", "--once", "one"), 0);
    unsetenv("LINES");
    assert_in_range(count_lines("out", "", ""), 8, 12);
    assert_int_equal(RUN("watch", "--json", "one"), 0);
    assert_true(number("epoch") == 2 && number("best_epoch") == 2 && number("share") == 0.5 && number("eta_s") == 10);
    assert_int_equal(files_in("one"), files);
    db_close(d);
    // A finished run: nothing is made in its directory.
    files = files_in("one");
    assert_int_equal(RUN("watch", "--once", "one"), 0);
    assert_int_equal(files_in("one"), files);
}

static void runs_of_a_directory(void **state) {
    (void)state;
    mkdir("all", 0777);
    db_close(put_run("all/a"));
    db_close(put_run("all/b"));
    db_close(put_run("all/w"));
    db_close(put_run("all/w/fold_1"));
    put_text("all/b/run.db",
        "this is no database at all, though it stands where one should be, and is long enough to be one...");
    assert_int_equal(RUN("watch", "--once", "all"), 0);
    assert_true(file_holds("out", "all/a") && file_holds("out", "all/w/fold_1") && file_holds("out", "run 3 of 3"));
    matches("out", "all/b .*cannot be read");
    matches("out", "all/b/run.db: is not the database of a run");
    assert_int_equal(RUN("watch", "--json", "all"), 0);
    assert_true(file_holds("out", "\"unreadable\""));
}

static void mistakes_are_told(void **state) {
    (void)state;
    complains(RUN("watch", "--once", "nowhere"), "nowhere: there is no such directory");
    mkdir("empty", 0777);
    complains(RUN("watch", "--once", "empty"), "empty: there is no run in it.*");
    complains(RUN("watch", "--json", "empty"), "empty: there is no run in it.*");
    put_text("file", "x");
    complains(RUN("watch", "file"), "file: is not a directory.*");
    complains(RUN("watch", "empty"), "there is no terminal to draw on; --once prints a frame, --json figures");
}

// A watcher only reads: it takes no lock, and opens nothing in the run's directory for writing.
static void the_run_is_left_alone(void **state) {
    (void)state;
    if (system("strace -o /dev/null true 2>no") != 0) skip();
    db *d = put_run("one");
    // The sanitizer that looks for leaks cannot do so under strace.
    assert_int_equal(
        system("ASAN_OPTIONS=detect_leaks=0 strace -f -o calls " TRADEWIND_BINARY " watch --once one >out"), 0);
    assert_true(count_lines("calls", "one/run.db\"", "O_RDONLY") > 0);
    assert_int_equal(count_lines("calls", "one/", "O_RDWR"), 0);
    assert_int_equal(count_lines("calls", "one/", "O_WRONLY"), 0);
    assert_int_equal(count_lines("calls", "one/", "O_CREAT"), 0);
    assert_int_equal(count_lines("calls", "F_SETLK", ""), 0);
    assert_int_equal(count_lines("calls", "F_OFD_SETLK", ""), 0);
    assert_int_equal(count_lines("calls", "flock(", ""), 0);
    assert_int_equal(count_lines("calls", "unlink", "one/"), 0);
    db_close(d);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_frame_and_figures, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(runs_of_a_directory, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(the_run_is_left_alone, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(mistakes_are_told, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
