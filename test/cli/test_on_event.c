// on_event: a run tells a command of the user's, and goes on whatever the command does.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_run_tells_a_command(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "on_event.command=cat >>got; echo >>got"), 0);
    matches("got", "\"event\":\"best\".*\"epoch\":1,\"metric\":\"mcc\"");
    matches("got", "\"event\":\"finished\".*\"text\":\"done\"");
    matches("made/training_log.txt", "epoch +1 .*samples/s  ETA 0:[0-9][0-9]");
    assert_int_equal(RUN("train", "run.yaml", "on_event.command=cat >few", "on_event.events=finished"), 0);
    assert_false(file_holds("few", "best"));
}

static void a_command_that_fails_is_an_event(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "on_event.command=exit 3"), 0);
    matches("made/training_log.txt", "warning: on_event: the command ended with status 3");
    assert_int_equal(RUN("watch", "--once", "made"), 0);
    matches("out", "on_event +on_event: the command ended with status 3");
    assert_int_equal(RUN("train", "run.yaml", "on_event.command=/nowhere"), 0);
    matches("made/training_log.txt", "was not found");
}

static void a_run_that_fails_tells_it(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "model.kind=mlp", "train.optimizer.kind=sgd", "train.clip_norm=0",
                         "train.optimizer.lr=100", "model.widths=64", "on_event.command=cat >>got; echo >>got",
                         "on_event.events=[finished, failed]"),
        1);
    assert_true(file_holds("got", "\"event\":\"failed\""));
    assert_false(file_holds("got", "\"event\":\"finished\""));
}

static void mistakes_are_refused(void **state) {
    (void)state;
    put_small_run();
    complains(RUN("train", "run.yaml", "on_event.command=true", "on_event.events=[best, lunch]"),
        ".*on_event.events: lunch: unknown event; finished, failed, best, memory and stop are known");
    complains(RUN("train", "run.yaml", "on_event.events=[best]"), ".*there is no on_event.command.*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_tells_a_command, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_command_that_fails_is_an_event, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_run_that_fails_tells_it, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(mistakes_are_refused, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
