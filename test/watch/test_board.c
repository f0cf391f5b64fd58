// Event files of TensorBoard: sums, records and values, as a reader that shares no code with them finds them.
#include "watch/board.h"

#include "cli/program.h"
#include "run/db.h"
#include "support.h"
#include "watch/tfevents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void sums_are_castagnoli(void **state) {
    (void)state;
    assert_int_equal(tfevents_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(tfevents_crc32c("", 0), 0);
}

static void put_epoch(db *d, int64_t i) {
    const db_metric metrics[] = {{"", "lr", 0.001}, {"validation", "mcc", 0.125 * (double)i}};
    db_epoch(d, &(db_epoch_row){i, (uint64_t)(10 * i), 0.5, 100, true, NULL}, metrics, 2);
    db_steps(
        d, &(db_steps_row){.step = (uint64_t)(10 * i), .epoch = i, .loss_mean = 1.5, .loss_min = 1, .loss_max = 2});
    db_sync(d);
}

// The other reader's text of the file, or false where there is no Python.
static bool read_back(const board *b) {
    char command[1024];
    if (system("python3 -c 0 2>/dev/null") != 0) return false;
    snprintf(command, sizeof command, "python3 %s/watch/tfevents.py %s > read", TEST_DIR, board_path(b));
    assert_int_equal(system(command), 0);
    return true;
}

static void values_are_those_of_run_db(void **state) {
    (void)state;
    err e = {0};
    bool running = false;
    assert_int_equal(mkdir("made", 0777), 0);
    db *d = db_open("made/run.db");
    db_run(d, "0.1", "", "");
    put_epoch(d, 1);
    put_epoch(d, 2);
    board *b = board_open("made", &e);
    support_ok(b && board_go_on(b, &running, &e), &e);
    assert_true(running);
    put_epoch(d, 3);
    db_status(d, "done", "");
    db_close(d);
    double until = support_seconds() + 20;
    do support_ok(board_go_on(b, &running, &e), &e);
    while (running && support_seconds() < until);
    assert_false(running);
    assert_int_equal(board_values(b), 3 * (2 + 2 + 5));
    if (read_back(b)) {
        matches("read", "(^|\n)validation/mcc 10 0\\.125\n");
        matches("read", "\nvalidation/mcc 30 0\\.375\n");
        matches("read", "\nsteps/loss 20 1\\.5\n");
        matches("read", "\nlr 30 0\\.001");
        matches("read", "(^|\n)epoch/samples_per_s 10 100\\.0\n");
    } else {
        puts("skipped: python3 is not installed");
    }
    board_close(b);
}

static void what_is_no_run_is_told(void **state) {
    (void)state;
    err e = {0};
    assert_null(board_open("missing", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(mkdir("made", 0777), 0);
    put_text(
        "made/run.db", "nothing of the kind, but long enough to be looked at as if it were a database of some kind");
    assert_null(board_open("made", &e));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_castagnoli), TEST(values_are_those_of_run_db), TEST(what_is_no_run_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
