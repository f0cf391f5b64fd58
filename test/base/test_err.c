#include "base/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void kinds(void **state) {
    (void)state;
    err e = {0};
    assert_false(err_input(&e, "%s:%d: close is empty; fill it", "bars.csv", 12));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "bars.csv:12: close is empty; fill it");
    assert_false(err_run(&e, "disk full"));
    assert_int_equal(e.kind, ERR_RUN);
    assert_string_equal(e.text, "disk full");
}

static void null_is_accepted(void **state) {
    (void)state;
    assert_false(err_input(NULL, "nobody listens"));
    assert_false(err_run(NULL, "%d", 1));
}

static void long_text_is_cut(void **state) {
    (void)state;
    err e;
    char text[4096];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    err_input(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

// Runs a failing CHECK in a child; its stderr goes to `out`.
static int child_check(int out) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(out, STDERR_FILENO);
        CHECK(1 + 1 == 3, "sum of %d", 2);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void check_aborts(void **state) {
    (void)state;
    CHECK(true, "never said");
    FILE *f = tmpfile();
    assert_non_null(f);
    int status = child_check(fileno(f));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    char text[512];
    rewind(f);
    assert_non_null(fgets(text, sizeof text, f));
    assert_non_null(strstr(text, "1 + 1 == 3"));
    assert_non_null(strstr(text, "sum of 2"));
    assert_non_null(strstr(text, "test_err.c:"));
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(null_is_accepted),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(check_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
