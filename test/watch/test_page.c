// Runs in: test-long
//
// The page of a report in a real browser, at the width of a phone and of a desk, and in print; skipped where Chromium
// is not installed.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void has_browser(void) {
    if (system("command -v chromium chromium-browser google-chrome >/dev/null") == 0) return;
    print_message("skipped: Chromium is not installed\n");
    skip();
}

static void pages_open_in_a_browser(void **state) {
    (void)state;
    has_browser();
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "--importance", "-q"), 0);
    assert_int_equal(RUN("report", "made"), 0);
    assert_int_equal(system(TEST_DIR "/../tools/page.sh made/report.html"), 0);
}

static void faulty_pages_are_found(void **state) {
    (void)state;
    has_browser();
    assert_int_equal(system(TEST_DIR "/../tools/page.sh --self-test"), 0);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(pages_open_in_a_browser),
        TEST(faulty_pages_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
