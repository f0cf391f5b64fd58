// Files and directories that the tests of faults put in place, remove and compare.
#include "fault/trees.h"

#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void put_tree(void) {
    assert_int_equal(mkdir("a", 0777) | mkdir("a/in", 0777), 0);
    put_text("a/one", "1");
    put_text("a/in/two", "2");
}

static void a_copy_is_equal(void **state) {
    (void)state;
    put_tree();
    trees_copy("a", "b");
    trees_copy("a/one", "c");
    assert_true(trees_equal("a", "b", NULL) && trees_equal("a/one", "c", NULL));
    matches("b/in/two", "^2$");
}

static void every_difference_is_seen(void **state) {
    (void)state;
    put_tree();
    trees_copy("a", "b");
    put_text("b/in/two", "3");
    assert_false(trees_equal("a", "b", NULL));
    put_text("b/in/two", "22");
    assert_false(trees_equal("a", "b", NULL) || trees_equal("b", "a", NULL));
    put_text("b/in/two", "2");
    put_text("b/in/three", "");
    assert_false(trees_equal("a", "b", NULL) || trees_equal("b", "a", NULL));
    assert_true(trees_equal("a", "b", "three"));
    trees_remove("b/in");
    put_text("b/in", "2");
    assert_false(trees_equal("a", "b", NULL) || trees_equal("b", "a", NULL));
}

static void patterns_name_what_goes(void **state) {
    (void)state;
    put_tree();
    put_text("ab", "");
    put_text("c", "");
    assert_int_equal(symlink("c", "aside"), 0);
    trees_remove("nothing a*");
    assert_true(access("a", F_OK) && access("ab", F_OK) && access("aside", F_OK));
    assert_int_equal(access("c", F_OK), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_equal),
        TEST(every_difference_is_seen),
        TEST(patterns_name_what_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
