// on_event: a run tells a command of the user's, and goes on whatever the command does.
#include "cli/program.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
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

static void a_run_that_is_stopped_tells_it(void **state) {
    (void)state;
    put_small_run();
    pid_t child =
        program_start("out", (const char *const[]){"train", "run.yaml", "train.epochs=100000", "train.patience=100000",
                                 "-q", "on_event.command=cat >>got; echo >>got", "on_event.events=[best, stop]", NULL});
    wait_for("got", "best");
    kill(child, SIGINT);
    assert_int_equal(program_finish(child), 0);
    matches("got", "\\{\"event\":\"stop\",[^\n]*\"text\":\"stopped by a signal\",\"step\":[0-9]+\\}\n*$");
}

// Its folds tell nothing.
static void a_walk_tells_its_end(void **state) {
    (void)state;
    put_text("walk.yaml", "data: {bars: {fast: a.csv}, vector: false, windows: {fast: 8}, label: {horizon: 3}}\n"
                          "model: {kind: mlp, widths: 6}\ntrain: {epochs: 1, batch_size: 64}\n"
                          "walk: {train: 900, validation: 200, test: 300, folds: 2, embargo: 5}\n");
    walk_put("a.csv", 2400, 3600, 4);
    assert_int_equal(RUN("walk", "walk.yaml", "run.dir=made", "-q", "--device=cpu", "on_event.command=cat >>got"), 0);
    matches("got", "^\\{\"event\":\"finished\",[^{}]*\"folds\":2\\}\n*$");
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
        cmocka_unit_test_setup_teardown(a_run_that_is_stopped_tells_it, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_walk_tells_its_end, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(mistakes_are_refused, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
