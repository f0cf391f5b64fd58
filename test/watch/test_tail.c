// Following a run: rows come once, and a run that goes back, is replaced, broken or gone is told.
#include "watch/tail.h"

#include "run/run.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void epoch(db *d, int64_t i) {
    const db_metric metrics[] = {{"train", "loss", 1.0 / (double)i}, {"validation", "mcc", (double)i}};
    db_epoch(d, &(db_epoch_row){i, (uint64_t)(10 * i), 0.5, 100, i == 2, "[[1]]"}, metrics, 2);
    for (int k = 1; k <= 10; k++)
        db_steps(d, &(db_steps_row){.step = (uint64_t)(10 * (i - 1) + k), .epoch = i, .steps = 1});
    db_sync(d);
}

static db *begin(const char *dir) {
    mkdir(dir, 0777);
    char *path = run_path(dir, "run.db");
    db *d = db_open(path);
    free(path);
    db_run(d, "0.1", "train:\n  epochs: 9\n", "b: 2\n");
    return d;
}

// Polls until something is new; pages may move for a moment.
static void poll_news(tail *f) {
    int i = 0;
    while (tail_poll(f) == TAIL_SAME && i++ < 400) usleep(10000);
    assert_true(i < 400);
}

static void poll_state(tail *f, tail_state wanted) {
    int i = 0;
    tail_poll(f);
    while (tail_at(f)->state != wanted && i++ < 400) {
        usleep(10000);
        tail_poll(f);
    }
    assert_int_equal(tail_at(f)->state, wanted);
}

static tail_rows rows_of(tail *f, tail_cursor *c) {
    tail_rows r;
    for (int i = 0; i < 400; i++) {
        if (tail_read(f, c, &r)) return r;
        usleep(10000);
        tail_poll(f);
    }
    fail_msg("no rows");
    return r;
}

static void rows_come_once(void **state) {
    (void)state;
    tail *f = tail_open("run");
    tail_cursor c = {0}, late = {0};
    assert_int_equal(tail_poll(f), TAIL_SAME);
    assert_int_equal(tail_at(f)->state, TAIL_ABSENT);
    db *d = begin("run");
    epoch(d, 1);
    poll_state(f, TAIL_READY);
    assert_string_equal(tail_at(f)->status, "running");
    tail_rows r = rows_of(f, &c);
    assert_true(!r.again && !r.more);
    assert_true(r.rows->epochs == 1 && r.rows->metrics == 2 && r.rows->steps == 10 && r.rows->samples == 0);
    assert_string_equal(r.rows->epoch[0].row.confusion, "[[1]]");
    r = rows_of(f, &c);
    assert_true(r.rows->epochs == 0 && r.rows->metrics == 0 && r.rows->steps == 0);
    assert_int_equal(tail_poll(f), TAIL_SAME);
    epoch(d, 2);
    db_event(d, 20, "checkpoint", "here");
    db_sample(d, &(db_sample_row){.time = 1, .memory_used = 5, .power = -1});
    db_sync(d);
    poll_news(f);
    r = rows_of(f, &c);
    assert_true(r.rows->epochs == 1 && r.rows->metrics == 2 && r.rows->steps == 10 && r.rows->samples == 1);
    assert_true(r.rows->metric[1].epoch == 2 && r.rows->metric[1].metric.value == 2);
    assert_true(r.rows->sample[0].memory_used == 5 && r.rows->sample[0].power != r.rows->sample[0].power);
    assert_string_equal(r.rows->event[0].text, "here");
    r = rows_of(f, &late);
    assert_true(r.rows->epochs == 2 && r.rows->metrics == 4 && r.rows->steps == 20);
    assert_true(tail_at(f)->run.best_epoch == 2);
    db_status(d, "done", "");
    db_close(d);
    poll_news(f);
    assert_string_equal(tail_at(f)->status, "done");
    tail_close(f);
}

static void many_rows_come_in_pieces(void **state) {
    (void)state;
    db *d = begin("run");
    for (int64_t i = 1; i <= 20000; i++) {
        const db_metric metrics[] = {{"", "a", 1}, {"", "b", 2}};
        db_epoch(d, &(db_epoch_row){.epoch = i}, metrics, 2);
    }
    db_sync(d);
    tail *f = tail_open("run");
    poll_state(f, TAIL_READY);
    tail_cursor c = {0};
    tail_rows r;
    int64_t epochs = 0, metrics = 0, pieces = 0, newest = 0;
    do {
        r = rows_of(f, &c);
        epochs += r.rows->epochs;
        metrics += r.rows->metrics;
        pieces++;
        for (int i = 0; i < r.rows->metrics; i++) {
            assert_true(r.rows->metric[i].epoch >= newest);
            newest = r.rows->metric[i].epoch;
        }
    } while (r.more);
    assert_true(pieces > 1 && epochs == 20000 && metrics == 40000);
    tail_close(f);
    db_close(d);
}

static void a_run_that_went_back_begins_anew(void **state) {
    (void)state;
    db *d = begin("run");
    epoch(d, 1);
    epoch(d, 2);
    tail *f = tail_open("run");
    tail_cursor c = {0};
    poll_state(f, TAIL_READY);
    rows_of(f, &c);
    uint64_t life = tail_at(f)->life;
    db_rewind(d, 10, 2, false);
    poll_news(f);
    assert_true(tail_at(f)->life > life);
    tail_rows r = rows_of(f, &c);
    assert_true(r.again && r.rows->epochs == 1 && r.rows->steps == 10);
    // Rows that have overtaken the cursor meanwhile: the event tells.
    db_rewind(d, 0, 1, false);
    db_event(d, 0, "resume", "from nothing");
    epoch(d, 1);
    epoch(d, 2);
    poll_news(f);
    r = rows_of(f, &c);
    assert_true(r.again && r.rows->epochs == 2 && r.rows->steps == 20);
    tail_close(f);
    db_close(d);
}

static void another_run_begins_anew(void **state) {
    (void)state;
    db *d = begin("run");
    epoch(d, 1);
    tail *f = tail_open("run");
    tail_cursor c = {0};
    poll_state(f, TAIL_READY);
    rows_of(f, &c);
    db_close(d);
    rename("run", "run.1");
    poll_state(f, TAIL_ABSENT);
    assert_true(tail_at(f)->was_there);
    d = begin("run");
    epoch(d, 1);
    epoch(d, 2);
    poll_state(f, TAIL_READY);
    tail_rows r = rows_of(f, &c);
    assert_true(r.again && r.rows->epochs == 2);
    tail_close(f);
    db_close(d);
}

static void what_cannot_be_read_is_told_and_mends(void **state) {
    (void)state;
    mkdir("run", 0777);
    support_put("run/run.db", "", 0);
    tail *f = tail_open("run");
    tail_cursor c = {0};
    tail_rows r;
    poll_state(f, TAIL_BROKEN);
    assert_non_null(strstr(tail_at(f)->trouble.text, "run/run.db"));
    assert_false(tail_read(f, &c, &r));
    unlink("run/run.db");
    db *d = begin("run");
    epoch(d, 1);
    db_close(d);
    poll_state(f, TAIL_READY);
    assert_int_equal(rows_of(f, &c).rows->epochs, 1);
    // Pages of noise behind the head.
    char noise[4096];
    memset(noise, 0x5c, sizeof noise);
    int file = open("run/run.db", O_WRONLY);
    for (int page = 1; page < 40; page++) assert_int_equal(pwrite(file, noise, sizeof noise, 4096 * page), 4096);
    close(file);
    poll_state(f, TAIL_BROKEN);
    tail_close(f);
}

static void note_table(void *arg, const char *name, bool known) {
    if (strcmp(name, "mine") == 0 && !known) ++*(int *)arg;
}

static bool note_row(void *arg, int columns, const char *const *values) {
    char *to = arg;
    for (int i = 0; i < columns; i++) sprintf(to + strlen(to), "%s%s", i ? "," : "", values[i] ? values[i] : "-");
    strcat(to, ";");
    return true;
}

static void tables_that_are_not_known_are_listed(void **state) {
    (void)state;
    db *d = begin("run");
    db_close(d);
    sqlite3 *file;
    sqlite3_open("run/run.db", &file);
    sqlite3_exec(
        file, "CREATE TABLE mine (a, \"b \"\"c\"); INSERT INTO mine VALUES (1, NULL), ('x', 2.5)", NULL, NULL, NULL);
    sqlite3_close(file);
    tail *f = tail_open("run");
    poll_state(f, TAIL_READY);
    int found = 0;
    char text[200] = "";
    assert_true(tail_each_table(f, note_table, &found));
    assert_int_equal(found, 1);
    assert_true(tail_each_row(f, "mine", note_row, text));
    assert_string_equal(text, "a,b \"c;1,-;x,2.5;");
    assert_false(tail_each_row(f, "sqlite_master", note_row, text));
    assert_false(tail_each_row(f, "\"; DROP TABLE run", note_row, text));
    tail_close(f);
}

static void a_newer_file_is_refused_by_name(void **state) {
    (void)state;
    db_close(begin("run"));
    sqlite3 *file;
    sqlite3_open("run/run.db", &file);
    sqlite3_exec(file, "PRAGMA user_version = 99", NULL, NULL, NULL);
    sqlite3_close(file);
    tail *f = tail_open("run");
    poll_state(f, TAIL_BROKEN);
    assert_non_null(strstr(tail_at(f)->trouble.text, "newer tradewind"));
    tail_close(f);
}

static void change(const char *query) {
    sqlite3 *file;
    assert_int_equal(sqlite3_open("run/run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, query, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
}

static void a_flipped_row_of_a_run_that_ended_is_told(void **state) {
    (void)state;
    db *d = begin("run");
    epoch(d, 1);
    db_status(d, "done", "");
    db_close(d);
    tail *f = tail_open("run");
    tail_cursor c = {0};
    tail_rows r;
    poll_state(f, TAIL_READY);
    change("UPDATE metrics SET value = 9 WHERE epoch = 1");
    poll_state(f, TAIL_BROKEN);
    assert_non_null(strstr(tail_at(f)->trouble.text, "do not fit their sum"));
    assert_false(tail_read(f, &c, &r));
    tail_close(f);
}

static void parts_are_found(void **state) {
    (void)state;
    static const char *const made[] = {"w", "w/fold_2", "w/fold_10", "w/fold_1", "w/fold_1.1", "w/other"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        mkdir(made[i], 0777);
        char *config = run_path(made[i], "config.yaml");
        support_put(config, "a: 1\n", 5);
        free(config);
    }
    mkdir("w/fold_11", 0777); // has not begun
    char **parts = tail_parts("w");
    assert_string_equal(parts[0], "w/fold_1");
    assert_string_equal(parts[1], "w/fold_2");
    assert_string_equal(parts[2], "w/fold_10");
    assert_null(parts[3]);
    tail_parts_free(parts);
    parts = tail_parts("nowhere");
    assert_null(parts[0]);
    tail_parts_free(parts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_once, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(many_rows_come_in_pieces, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_run_that_went_back_begins_anew, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(another_run_begins_anew, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_told_and_mends, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(tables_that_are_not_known_are_listed, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_newer_file_is_refused_by_name, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_flipped_row_of_a_run_that_ended_is_told, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(parts_are_found, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
