#include "base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static int enter(void **state) {
    const char *base = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/test_log.XXXXXX", base ? base : "/tmp") < 0) return -1;
    *state = path;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int leave(void **state) {
    int rc = unlink(*state);
    free(*state);
    return rc;
}

// Reads the next line without its newline and checks that it starts with a time; the text after it.
static const char *next_text(FILE *f, char *line, size_t room) {
    if (!fgets(line, (int)room, f)) return NULL;
    size_t n = strlen(line);
    assert_true(n > 20 && line[n - 1] == '\n');
    line[n - 1] = 0;
    int year, month, day, hour, minute, second, end = 0;
    int got = sscanf(line, "%4d-%2d-%2d %2d:%2d:%2d %n", &year, &month, &day, &hour, &minute, &second, &end);
    assert_int_equal(got, 6);
    assert_true(year > 2000 && month >= 1 && month <= 12 && hour < 24);
    assert_true(end >= 20);
    return line + 20;
}

static void appends_lines(void **state) {
    err e = {0};
    char line[8192];
    log_file *l = log_open(*state, &e);
    assert_non_null(l);
    log_line(l, "epoch %d", 1);
    FILE *f = fopen(*state, "r");
    assert_non_null(f);
    assert_string_equal(next_text(f, line, sizeof line), "epoch 1"); // before the log is closed
    log_close(l);
    l = log_open(*state, &e);
    log_line(l, "two\nlines\tand %s", "a tab");
    log_line(l, "%s", "");
    log_line(l, "%9000d", 7);
    assert_false(log_failed(l));
    log_close(l);
    assert_string_equal(next_text(f, line, sizeof line), "two lines and a tab");
    assert_string_equal(next_text(f, line, sizeof line), "");
    const char *text = next_text(f, line, sizeof line);
    assert_true(strlen(line) < 4096 && strlen(line) > 4000);
    assert_string_equal(text + strlen(text) - 3, "...");
    assert_null(next_text(f, line, sizeof line));
    fclose(f);
}

static void null_does_nothing(void **state) {
    (void)state;
    log_line(NULL, "nobody %s", "reads");
    assert_false(log_failed(NULL));
    log_close(NULL);
}

static void full_disk_is_remembered(void **state) {
    (void)state;
    err e = {0};
    log_file *l = log_open("/dev/full", &e);
    if (!l) skip();
    assert_false(log_failed(l));
    log_line(l, "lost");
    assert_true(log_failed(l));
    log_line(l, "lost too");
    assert_true(log_failed(l));
    log_close(l);
}

// A limit on the size of files cuts a line in half; the next one that fits stands on its own.
static void a_torn_line_spoils_no_other(void **state) {
    err e = {0};
    char line[256];
    struct rlimit before, small;
    log_file *l = log_open(*state, &e);
    assert_non_null(l);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 30;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    log_line(l, "first line, cut short");
    log_line(l, "second line, lost");
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    log_line(l, "third line");
    assert_true(log_failed(l));
    log_close(l);
    FILE *f = fopen(*state, "r");
    assert_non_null(f);
    assert_string_equal(next_text(f, line, sizeof line), "first line");
    assert_string_equal(next_text(f, line, sizeof line), "third line");
    fclose(f);
}

static void refuses_bad_paths(void **state) {
    (void)state;
    err e = {0};
    assert_null(log_open("/", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "/: cannot be written: Is a directory; choose another place");
    assert_null(log_open("missing/dir/log", NULL));
}

enum { THREADS = 4, LINES = 500 };

static void *many_lines(void *log) {
    for (int i = 0; i < LINES; i++) log_line(log, "line %d of a thread, long enough to be torn apart", i);
    return NULL;
}

static void threads_do_not_mix(void **state) {
    err e = {0};
    char line[256];
    pthread_t thread[THREADS];
    log_file *l = log_open(*state, &e);
    assert_non_null(l);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, many_lines, l), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    log_close(l);
    FILE *f = fopen(*state, "r");
    assert_non_null(f);
    int count = 0;
    for (const char *text; (text = next_text(f, line, sizeof line)); count++)
        assert_non_null(strstr(text, "long enough to be torn apart"));
    assert_int_equal(count, THREADS * LINES);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appends_lines, enter, leave),
        cmocka_unit_test(null_does_nothing),
        cmocka_unit_test(full_disk_is_remembered),
        cmocka_unit_test_setup_teardown(a_torn_line_spoils_no_other, enter, leave),
        cmocka_unit_test(refuses_bad_paths),
        cmocka_unit_test_setup_teardown(threads_do_not_mix, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
