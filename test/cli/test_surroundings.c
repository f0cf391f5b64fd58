// The process and its surroundings: pipes that close, files that were closed before the start, text that a terminal
// would obey.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_reader_that_leaves_ends_no_run(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(
        system("bash -c '\"" TRADEWIND_BINARY "\" train run.yaml 2>err | head -n 1 >out; exit ${PIPESTATUS[0]}'"), 0);
    is_empty("err");
    matches("made/training_log.txt", "done after 2 epochs\n$");
    assert_int_equal(RUN("evaluate", "made"), 0);
}

// No file of a run takes the number of a closed one, which messages go to.
static void closed_files_are_opened(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(system("\"" TRADEWIND_BINARY "\" train run.yaml run.dir=closed <&- >&- 2>&-"), 0);
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    same_bytes("closed/best.safetensors", "made/best.safetensors");
    assert_int_equal(RUN("inspect", "closed"), 0);
    matches("out", "\nepochs +2, ");
}

static void messages_are_printable(void **state) {
    (void)state;
    put_text("run.yaml", "data: {synthetic: {bars: 2000}}\nmodel: {kind: \"ls\\e[2Jtm\\n\"}\n");
    complains(RUN("train", "run.yaml"), ".*ls \\[2Jtm .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_reader_that_leaves_ends_no_run),
        TEST(closed_files_are_opened),
        TEST(messages_are_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
