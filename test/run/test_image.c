// Images of run.db: what a reader without locks sees is of one moment, and the writer's directory stays as it was.
#include "run/image.h"

#include "run/db_since.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void pass_time(double seconds) {
    usleep((useconds_t)(1e6 * seconds));
}

// Takes an image as soon as pages rest.
static sqlite3 *take(image *m) {
    err e;
    image_state state = IMAGE_MOVING;
    for (int i = 0; i < 200 && state == IMAGE_MOVING; i++) {
        state = image_take(m, &e);
        if (state == IMAGE_MOVING) pass_time(0.05);
    }
    if (state == IMAGE_BAD) fail_msg("%s", e.text);
    assert_int_equal(state, IMAGE_TAKEN);
    return image_file(m);
}

static int64_t number(sqlite3 *file, const char *query) {
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(file, query, -1, &st, NULL) != SQLITE_OK) return -1;
    int64_t n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
    sqlite3_finalize(st);
    return n;
}

static int files_here(void) {
    int n = 0;
    DIR *d = opendir(".");
    for (const struct dirent *each; (each = readdir(d));) n += each->d_name[0] != '.';
    closedir(d);
    return n;
}

static void add_steps(db *d, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i <= to; i++)
        db_steps(d, &(db_steps_row){.step = i, .epoch = 1, .loss_mean = 1.0 / (double)i});
    db_sync(d);
}

static void rows_are_seen_while_the_writer_has_them(void **state) {
    (void)state;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_steps(d, 1, 100);
    int files = files_here();
    image *m = image_new("run.db");
    assert_int_equal(image_look(m), IMAGE_CHANGED);
    assert_int_equal(number(take(m), "SELECT count(*) FROM steps"), 100);
    assert_true(image_whole(m));
    assert_int_equal(image_look(m), IMAGE_SAME);
    add_steps(d, 101, 5000);
    assert_int_equal(image_look(m), IMAGE_CHANGED);
    assert_int_equal(number(take(m), "SELECT count(*) FROM steps"), 5000);
    assert_true(image_whole(m));
    assert_int_equal(number(image_file(m), "PRAGMA integrity_check"), 0); // "ok"
    assert_int_equal(files_here(), files);
    db_close(d);
    // The log is gone, and with it nothing.
    assert_int_equal(number(take(m), "SELECT count(*) FROM steps"), 5000);
    assert_true(image_whole(m));
    assert_int_equal(files_here(), 1);
    assert_int_equal(image_count(m), 1);
    image_free(m);
}

// Writes pairs of rows whose sum is the number of pairs, and checkpoints all the time.
static void write_pairs(bool log) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sqlite3 *file;
    sqlite3_open("run.db", &file);
    sqlite3_busy_timeout(file, 0);
    sqlite3_exec(file, log ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    sqlite3_exec(file,
        "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 150; CREATE TABLE a (v INTEGER, pad TEXT);"
        "CREATE TABLE b (v INTEGER, pad TEXT); INSERT INTO a VALUES (0, ''); INSERT INTO b VALUES (0, '')",
        NULL, NULL, NULL);
    for (int i = 0;; i++) {
        int rc = sqlite3_exec(file,
            "BEGIN; INSERT INTO a VALUES (1, hex(randomblob(900))); INSERT INTO b VALUES (-1, hex(randomblob(900)));"
            "DELETE FROM a WHERE v = 1 AND rowid < (SELECT max(rowid) - 60 FROM a);"
            "DELETE FROM b WHERE v = -1 AND rowid < (SELECT max(rowid) - 60 FROM b); COMMIT",
            NULL, NULL, NULL);
        if (rc != SQLITE_OK) _exit(1); // nobody may make it wait
        usleep(i % 64 ? 300 : 80000);
    }
}

// Each whole image has as many rows in one table as in the other.
static void images_are_of_one_moment(bool log, int wanted) {
    pid_t child = fork();
    if (!child) write_pairs(log);
    image *m = image_new("run.db");
    int different = 0;
    int64_t last = -1;
    for (int i = 0; different < wanted && i < 60000; i++) {
        err e;
        if (image_look(m) == IMAGE_GONE || image_take(m, &e) != IMAGE_TAKEN) {
            pass_time(0.002);
            continue;
        }
        int64_t sum = number(image_file(m), "SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b)");
        int64_t newest = number(image_file(m), "SELECT max(rowid) FROM a WHERE length(pad) > 0");
        if (!image_whole(m) || newest < 1) continue;
        assert_int_equal(sum, 0);
        assert_true(newest >= last);
        different += newest != last;
        last = newest;
        pass_time(0.001);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0); // it still writes: nobody was in its way
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(different, wanted);
    image_free(m);
}

static void images_of_a_log_are_of_one_moment(void **state) {
    (void)state;
    images_are_of_one_moment(true, 100);
}

static void images_without_a_log_are_of_one_moment(void **state) {
    (void)state;
    images_are_of_one_moment(false, 8);
}

static void cut(const char *path, off_t bytes) {
    assert_int_equal(truncate(path, bytes), 0);
}

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

// A log whose tail is missing or noise shows what was committed before.
static void a_log_ends_where_its_sums_do(void **state) {
    (void)state;
    db *d = db_open("run.db");
    db_run(d, "0.1", "", "");
    add_steps(d, 1, 10);
    off_t before = size_of("run.db-wal");
    add_steps(d, 11, 20);
    pid_t child = fork();
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
    cut("run.db-wal", size_of("run.db-wal") - 100);
    image *m = image_new("run.db");
    assert_int_equal(number(take(m), "SELECT count(*) FROM steps"), 10);
    assert_true(image_whole(m));
    cut("run.db-wal", before + 7);
    assert_int_equal(number(take(m), "SELECT count(*) FROM steps"), 10);
    image_free(m);
    int noise = 0x5a5a5a5a;
    FILE *f = fopen("run.db-wal", "r+b");
    fseek(f, 8, SEEK_SET);
    fwrite(&noise, sizeof noise, 1, f);
    fclose(f);
    m = image_new("run.db");
    take(m); // no log at all: what the database has without it
    assert_true(number(image_file(m), "SELECT count(*) FROM steps") <= 0);
    image_free(m);
    db_close(d);
}

static void what_is_no_database_is_refused(void **state) {
    (void)state;
    err e;
    image *m = image_new("run.db");
    assert_int_equal(image_look(m), IMAGE_GONE);
    static const char text[] = "no database, but a text that is longer than the head of one, so that it is looked at; "
                               "which it is by its first bytes";
    support_put("run.db", text, sizeof text);
    pass_time(0.1);
    assert_int_equal(image_take(m, &e), IMAGE_BAD);
    assert_int_equal(e.kind, ERR_INPUT);
    support_put("run.db", "", 0);
    pass_time(0.1);
    assert_int_equal(image_take(m, &e), IMAGE_BAD);
    unlink("run.db");
    assert_int_equal(image_look(m), IMAGE_GONE);
    image_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_seen_while_the_writer_has_them, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(images_of_a_log_are_of_one_moment, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(images_without_a_log_are_of_one_moment, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_log_ends_where_its_sums_do, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(what_is_no_database_is_refused, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
