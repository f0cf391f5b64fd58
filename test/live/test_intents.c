// Lines of intents: whole or not at all, also where the disk takes only a part.
#include "live/intents.h"

#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int64_t size_of(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void a_line_is_whole_or_not_there(void **state) {
    (void)state;
    err e = {0};
    intents to;
    struct rlimit was, little;
    session_intent i = {.intent = {.id = 1, .symbol = "GOLD", .lots = 100000000}};
    support_ok(intents_open(&to, "i.jsonl", &e) && intents_put(&to, &i, &e), &e);
    int64_t one = size_of("i.jsonl");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    little = was;
    little.rlim_cur = (rlim_t)one + 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    bool put = intents_put(&to, &i, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_false(put);
    assert_non_null(strstr(e.text, "i.jsonl: cannot be written"));
    assert_int_equal(size_of("i.jsonl"), one);
    support_ok(intents_put(&to, &i, &e), &e);
    assert_int_equal(size_of("i.jsonl"), 2 * one);
    intents_close(&to);
}

// A kill leaves half a line where it lies across two pages.
static void a_torn_line_is_cut_off(void **state) {
    (void)state;
    err e = {0};
    intents to, other;
    session_intent i = {.intent = {.id = 1, .symbol = "GOLD", .lots = 100000000}};
    support_ok(intents_open(&to, "i.jsonl", &e) && intents_put(&to, &i, &e), &e);
    int64_t one = size_of("i.jsonl");
    intents_close(&to);
    for (int64_t kept = one; kept >= 0; kept -= one) { // behind a whole line, and alone
        assert_int_equal(truncate("i.jsonl", kept), 0);
        FILE *f = fopen("i.jsonl", "a");
        assert_non_null(f);
        fwrite("{\"id\":2,\"sym\0", 1, 13, f); // a power cut leaves zeros
        fclose(f);
        support_ok(intents_open(&to, "i.jsonl", &e), &e);
        support_ok(intents_open(&other, "i.jsonl", &e) && intents_put(&other, &i, &e), &e);
        assert_int_equal(size_of("i.jsonl"), kept + 13 + one); // it may be the other's, which has not ended it yet
        intents_close(&other);
        assert_int_equal(truncate("i.jsonl", kept + 13), 0);
        support_ok(intents_put(&to, &i, &e) && intents_put(&to, &i, &e), &e);
        assert_int_equal(size_of("i.jsonl"), kept + 2 * one);
        intents_close(&to);
    }
}

static void the_newest_line_is_found(void **state) {
    (void)state;
    err e = {0};
    intents to;
    int64_t id = 0;
    double position = 1;
    assert_false(intents_newest("i.jsonl", "GOLD", &id, &position));
    support_ok(intents_open(&to, "i.jsonl", &e), &e);
    for (int n = 1; n <= 1000; n++) {
        session_intent i = {.intent = {.id = n, .lots = n * 50000000ll}};
        strcpy(i.intent.symbol, n % 3 ? "GOLD" : "");
        support_ok(intents_put(&to, &i, &e), &e);
    }
    intents_close(&to);
    assert_true(intents_newest("i.jsonl", "GOLD", &id, &position) && id == 1000 && position == 500);
    assert_true(intents_newest("i.jsonl", "", &id, &position) && id == 999 && position == 499.5);
    assert_false(intents_newest("i.jsonl", "SILVER", &id, &position));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_false(intents_newest("pipe", "GOLD", &id, &position));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_is_whole_or_not_there, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_torn_line_is_cut_off, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(the_newest_line_is_found, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
