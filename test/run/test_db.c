// run.db: rows arrive, a run that goes on replaces what it had written beyond its checkpoint, and trouble stops nobody.
#include "run/db.h"

#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// The system's calls that put a file on the disk, in the place of the C library's.
static int syncs;

int fsync(int fd) {
    syncs++;
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

static int64_t number(const char *query) {
    sqlite3 *file;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(file, query, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(file);
    return n;
}

static void add_epochs(db *d, int64_t from, int64_t to) {
    for (int64_t i = from; i <= to; i++) {
        const db_metric metrics[] = {{"train", "loss", 1.0 / (double)i}, {"validation", "mcc", (double)i}};
        db_epoch_row row = {i, (uint64_t)(10 * i), 0.5, 100, i % 2 == 1, "[[1]]"};
        db_epoch(d, &row, metrics, 2);
        db_steps(d, &(db_steps_row){.step = (uint64_t)(10 * i), .epoch = i, .steps = 10});
        db_steps(d, &(db_steps_row){.step = (uint64_t)(10 * i + 5), .epoch = i + 1, .steps = 5});
    }
}

static void no_trouble(const db *d) {
    err e;
    if (db_trouble(d, &e)) fail_msg("%s", e.text);
}

static void note_mcc(void *arg, const char *part, const char *name, double value) {
    if (strcmp(part, "validation") == 0 && strcmp(name, "mcc") == 0) *(double *)arg = value;
}

// The summary of a file.
static bool read_sum(const char *path, db_summary *sum, err *e) {
    db_reader *r = db_reader_open(path, e);
    bool ok = r && db_read(r, sum, e);
    db_reader_close(r);
    return ok;
}

static double read_mcc(int64_t epoch) {
    err e;
    double mcc = 0;
    db_reader *r = db_reader_open("run.db", &e);
    support_ok(r && db_read_metrics(r, epoch, note_mcc, &mcc, &e), &e);
    db_reader_close(r);
    return mcc;
}

static void rows_arrive(void **state) {
    (void)state;
    err e;
    db_summary sum;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_epochs(d, 1, 4);
    db_event(d, 40, "checkpoint", "it's \"quoted\"");
    db_sync(d);
    no_trouble(d);
    // A reader sees them while the writer has the file.
    support_ok(read_sum("run.db", &sum, &e), &e);
    assert_string_equal(sum.status, "running");
    assert_true(sum.epochs == 4 && sum.best_epoch == 3 && sum.step == 45 && sum.seconds == 2);
    assert_true(sum.begun == 5 && sum.started > 1e9 && sum.changed >= sum.started);
    assert_int_equal(number("SELECT changed < (SELECT max(time) FROM steps) FROM run"), 1);
    assert_int_equal(number("SELECT max(time) FROM steps"), (int64_t)sum.changed);
    assert_true(read_mcc(3) == 3);
    assert_int_equal(number("SELECT count(*) FROM steps"), 8);
    db_status(d, "done", "");
    db_close(d);
    support_ok(read_sum("run.db", &sum, &e), &e);
    assert_string_equal(sum.status, "done");
    assert_int_equal(number("SELECT count(*) FROM events WHERE text = 'it''s \"quoted\"'"), 1);
}

// A checkpoint may follow: what it goes on from is on the disk.
static void synchronised_rows_are_on_the_disk(void **state) {
    (void)state;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    db_sync(d);
    add_epochs(d, 1, 1);
    syncs = 0;
    db_sync(d);
    assert_true(syncs > 0);
    no_trouble(d);
    db_close(d);
}

// The last steps of an epoch that has ended begin no other.
static void an_ended_epoch_is_over(void **state) {
    (void)state;
    err e;
    db_summary sum;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    db_steps(d, &(db_steps_row){.step = 10, .epoch = 1, .steps = 10});
    db_epoch(d, &(db_epoch_row){1, 10, 0.5, 100, true, "[[1]]"}, NULL, 0);
    db_sync(d);
    support_ok(read_sum("run.db", &sum, &e), &e);
    assert_true(sum.epochs == 1 && sum.step == 10 && sum.begun == 0);
    db_close(d);
}

// Everything that readers of rows get, as sums that any lost or changed row changes.
typedef struct {
    int rows;
    double sum;
    char last[32];
} gathered;

static void gather_epoch(void *arg, const db_epoch_row *r) {
    gathered *g = arg;
    g->rows++;
    g->sum += (double)r->epoch + (double)r->step + r->seconds + r->samples_per_s + 1000 * r->best;
    snprintf(g->last, sizeof g->last, "%s", r->confusion ? r->confusion : "none");
}

static void gather_metric(void *arg, int64_t epoch, const db_metric *m) {
    gathered *g = arg;
    g->rows++;
    g->sum += (double)epoch * m->value;
    snprintf(g->last, sizeof g->last, "%s.%s", m->part, m->name);
}

static void gather_steps(void *arg, const db_steps_row *r) {
    gathered *g = arg;
    g->rows++;
    g->sum += (double)(r->step + (uint64_t)r->epoch + (uint64_t)r->steps) + r->loss_min + 2 * r->loss_mean +
              3 * r->loss_max + 4 * r->grad_norm + 5 * r->lr + (double)r->done;
}

static void gather_sample(void *arg, const db_sample_row *r) {
    gathered *g = arg;
    g->rows++;
    g->sum += r->time + r->memory_process + 10 * r->utilisation;
    snprintf(g->last, sizeof g->last, "%g %g", r->memory_used, r->power);
}

static bool each_epoch(void (*use)(void *arg, const db_epoch_row *row), void *arg, err *e) {
    db_reader *r = db_reader_open("run.db", e);
    bool ok = r && db_each_epoch(r, use, arg, e);
    db_reader_close(r);
    return ok;
}

static bool each_metric(db_use_metric *use, void *arg, err *e) {
    db_reader *r = db_reader_open("run.db", e);
    bool ok = r && db_each_metric(r, use, arg, e);
    db_reader_close(r);
    return ok;
}

static bool each_steps(void (*use)(void *arg, const db_steps_row *row), void *arg, err *e) {
    db_reader *r = db_reader_open("run.db", e);
    bool ok = r && db_each_steps(r, use, arg, e);
    db_reader_close(r);
    return ok;
}

static bool each_sample(void (*use)(void *arg, const db_sample_row *row), void *arg, err *e) {
    db_reader *r = db_reader_open("run.db", e);
    bool ok = r && db_each_sample(r, use, arg, e);
    db_reader_close(r);
    return ok;
}

static void rows_are_read_in_order(void **state) {
    (void)state;
    err e;
    gathered g = {0};
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_epochs(d, 1, 3);
    db_steps(d, &(db_steps_row){40, 4, 7, 5, 1, 2, 3, 4, 5});
    db_sample(d, &(db_sample_row){.time = 5, .memory_used = -1, .memory_process = 3, .utilisation = 50, .power = 7});
    db_sample(d, &(db_sample_row){.time = 6, .memory_used = -1, .memory_process = 4, .utilisation = 60, .power = 8});
    db_close(d);
    support_ok(each_epoch(gather_epoch, &g, &e), &e);
    assert_true(g.rows == 3 && g.sum == 1 + 2 + 3 + 60 + 1.5 + 300 + 2000);
    assert_string_equal(g.last, "[[1]]");
    g = (gathered){0};
    support_ok(each_metric(gather_metric, &g, &e), &e);
    assert_true(g.rows == 6 && g.sum == 3 + 14);
    assert_string_equal(g.last, "validation.mcc");
    g = (gathered){0};
    support_ok(each_steps(gather_steps, &g, &e), &e);
    assert_true(g.rows == 7 && g.sum == 135 + 15 + 45 + (40 + 4 + 5 + 1 + 4 + 9 + 16 + 25 + 7));
    g = (gathered){0};
    support_ok(each_sample(gather_sample, &g, &e), &e);
    assert_true(g.rows == 2 && g.sum == 5 + 6 + 7 + 1100);
    assert_string_equal(g.last, "nan 8");
    // A table that an earlier version has not made has no rows; a file that is no database is told.
    sqlite3 *file;
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "DROP TABLE samples; DROP TABLE sums", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
    g = (gathered){0};
    support_ok(each_sample(gather_sample, &g, &e), &e);
    assert_int_equal(g.rows, 0);
    assert_null(db_reader_open("missing.db", &e));
}

static void going_on_leaves_no_row_twice(void **state) {
    (void)state;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_epochs(d, 1, 6);
    db_close(d);
    double started = (double)number("SELECT started FROM run");
    d = db_open("run.db");
    db_rewind(d, 30, 4, false); // after epoch 3
    assert_int_equal(number("SELECT count(*) FROM epochs"), 3);
    assert_int_equal(number("SELECT max(step) FROM steps"), 30);
    assert_int_equal(number("SELECT max(epoch) FROM metrics"), 3);
    db_run(d, "0.2", "a: 2\n", "b: 2\n");
    add_epochs(d, 4, 6);
    db_close(d);
    assert_int_equal(number("SELECT count(*) FROM epochs"), 6);
    assert_int_equal(number("SELECT count(*) FROM metrics"), 12);
    assert_int_equal(number("SELECT count(*) FROM run"), 1);
    assert_true((double)number("SELECT started FROM run") == started);
}

static void execute(const char *sql) {
    sqlite3 *file;
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    if (sqlite3_exec(file, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(file));
    sqlite3_close(file);
}

// Rows of every table.
static void add_all(db *d) {
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_epochs(d, 1, 6);
    db_event(d, 30, "precision", "fp16 gives way");
    db_sample(d, &(db_sample_row){.time = 1, .memory_used = 1e9, .utilisation = 50, .power = -1});
    db_sync(d);
    no_trouble(d);
}

static bool is_checked(void) {
    err e;
    db_reader *r = db_reader_open("run.db", &e);
    support_ok(r != NULL, &e);
    bool checked = db_reader_checked(r);
    db_reader_close(r);
    return checked;
}

// Rows are added, removed, replaced and come twice: the sums hold after each.
static void sums_follow_the_rows(void **state) {
    (void)state;
    db *d = db_open("run.db");
    add_all(d);
    assert_true(is_checked());
    db_rewind(d, 30, 4, false);
    assert_true(is_checked());
    add_epochs(d, 3, 5);
    db_status(d, "stopped", "");
    db_sync(d);
    assert_true(is_checked());
    assert_int_equal(number("SELECT count(*) FROM epochs"), 5);
    db_rewind(d, 0, 1, false);
    assert_true(is_checked());
    assert_int_equal(number("SELECT count(*) FROM steps"), 0);
    db_close(d);
    d = db_open("run.db");
    add_all(d);
    db_close(d);
    assert_true(is_checked());
}

// One value of each table, a row that is gone and one that was added: no figure is shown, and rows can still be
// written.
static void changed_rows_are_not_shown(void **state) {
    (void)state;
    static const char *const changes[][2] = {{"run", "UPDATE run SET started = started + 1e-6"},
        {"run", "UPDATE run SET status = 'dond'"}, {"epochs", "UPDATE epochs SET seconds = -seconds WHERE epoch = 2"},
        {"epochs", "DELETE FROM epochs WHERE epoch = 6"}, {"metrics", "UPDATE metrics SET value = 2 * value"},
        {"metrics", "INSERT INTO metrics VALUES (3, 'validation', 'mcd', 3)"},
        {"metrics", "UPDATE metrics SET name = 'mcb' WHERE name = 'mcc'"},
        {"steps", "UPDATE steps SET loss_mean = 1 WHERE step = (SELECT max(step) FROM steps)"},
        {"steps", "DELETE FROM steps WHERE step = (SELECT max(step) FROM steps)"},
        {"events", "UPDATE events SET text = 'fp16 gives wax'"}, {"samples", "UPDATE samples SET utilisation = 18"}};
    err e;
    char want[64];
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        unlink("run.db");
        db *d = db_open("run.db");
        add_all(d);
        db_close(d);
        execute(changes[i][1]);
        snprintf(want, sizeof want, "run.db: the rows of its table %s do not fit their sum", changes[i][0]);
        assert_null(db_reader_open("run.db", &e));
        assert_int_equal(e.kind, ERR_INPUT);
        if (!strstr(e.text, want)) fail_msg("%s: %s", changes[i][1], e.text);
        d = db_open("run.db");
        db_event(d, 70, "stop", "x");
        db_sync(d);
        no_trouble(d);
        db_close(d);
        assert_null(db_reader_open("run.db", &e));
    }
}

// A file of an earlier program is shown, and has sums once a run goes on there.
static void a_file_without_sums_is_read(void **state) {
    (void)state;
    db_summary sum;
    err e;
    db *d = db_open("run.db");
    add_all(d);
    db_close(d);
    execute("DROP TABLE sums");
    assert_false(is_checked());
    support_ok(read_sum("run.db", &sum, &e), &e);
    assert_int_equal(sum.epochs, 6);
    d = db_open("run.db");
    db_close(d);
    assert_true(is_checked());
}

// A change of precision at the very step that a run goes on from: it comes again unless the run stands behind it.
static void going_on_tells_of_a_change_once(void **state) {
    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        db *d = db_open("run.db");
        db_event(d, 30, "checkpoint", "x");
        db_event(d, 30, "precision", "fp16 gives way");
        db_rewind(d, 30, 4, changed);
        assert_int_equal(number("SELECT count(*) FROM events WHERE kind = 'precision'"), changed);
        assert_int_equal(number("SELECT count(*) FROM events WHERE kind = 'checkpoint'"), 1 + changed);
        db_rewind(d, 29, 4, changed);
        assert_int_equal(number("SELECT count(*) FROM events WHERE kind = 'precision'"), 0);
        db_close(d);
    }
}

// A file of a later version is neither read nor written.
static void a_newer_file_is_refused(void **state) {
    (void)state;
    static const char want[] =
        "run.db: was written by a newer tradewind (format 3, this program reads up to 2); update";
    err e = {0};
    db_summary sum;
    sqlite3 *file;
    assert_true(db_known("run.db", &e)); // none is there
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    db_close(d);
    assert_true(db_known("run.db", &e) && read_sum("run.db", &sum, &e));
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "PRAGMA user_version = 3", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
    assert_false(db_known("run.db", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, want);
    assert_false(read_sum("run.db", &sum, &e));
    assert_string_equal(e.text, want);
    d = db_open("run.db");
    db_event(d, 1, "stop", "x");
    db_sync(d);
    assert_true(db_trouble(d, &e));
    assert_string_equal(e.text, want);
    db_close(d);
    assert_int_equal(number("PRAGMA user_version"), 3);
    assert_int_equal(number("SELECT count(*) FROM events"), 0);
}

// Another writer holds the file: nobody waits for long, and the rows arrive when it lets go.
static void a_locked_file_stops_nobody(void **state) {
    (void)state;
    err e;
    sqlite3 *other;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    assert_int_equal(sqlite3_open("run.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    double began = support_seconds();
    add_epochs(d, 1, 10);
    db_sync(d);
    assert_true(support_seconds() - began < 2);
    assert_true(db_trouble(d, &e) && strstr(e.text, "locked"));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    db_sync(d);
    no_trouble(d);
    assert_int_equal(number("SELECT count(*) FROM epochs"), 10);
    db_close(d);
}

// More rows than can wait: the oldest go, and that is told.
static void too_many_rows_are_dropped(void **state) {
    (void)state;
    err e;
    sqlite3 *other;
    db *d = db_open("run.db");
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    assert_int_equal(sqlite3_open("run.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (uint64_t i = 1; i <= 20000; i++) db_steps(d, &(db_steps_row){.step = i, .steps = 1});
    sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(other);
    db_sync(d);
    assert_true(db_trouble(d, &e) && strstr(e.text, "rows were lost"));
    assert_int_equal(number("SELECT max(step) FROM steps"), 20000);
    db_close(d);
}

static void what_cannot_be_opened_takes_rows(void **state) {
    (void)state;
    err e;
    db_summary sum;
    support_put("run.db", "this is not a database at all, but a text of some length\n", 57);
    db *d = db_open("run.db");
    assert_true(db_trouble(d, &e));
    db_run(d, "0.1", "a: 1\n", "b: 2\n");
    add_epochs(d, 1, 3);
    db_tick(d);
    db_sync(d);
    db_close(d);
    assert_false(read_sum("run.db", &sum, &e));
    assert_false(read_sum("missing.db", &sum, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    d = db_open("missing/run.db");
    assert_true(db_trouble(d, &e));
    db_close(d);
}

static void a_full_disk_stops_nobody(void **state) {
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        err e;
        db *d = db_open("run.db");
        db_run(d, "0.1", "a: 1\n", "b: 2\n");
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){65536, 65536});
        for (int64_t i = 0; i < 40; i++) add_epochs(d, 10 * i + 1, 10 * i + 10), db_sync(d);
        bool told = db_trouble(d, &e);
        db_close(d);
        _exit(told ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(number("SELECT count(*) FROM run"), 1);
    assert_int_equal(number("SELECT count(*) = max(epoch) FROM epochs"), 1); // no transaction is half there
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(rows_arrive),
        TEST(synchronised_rows_are_on_the_disk),
        TEST(an_ended_epoch_is_over),
        TEST(rows_are_read_in_order),
        TEST(going_on_leaves_no_row_twice),
        TEST(sums_follow_the_rows),
        TEST(changed_rows_are_not_shown),
        TEST(a_file_without_sums_is_read),
        TEST(going_on_tells_of_a_change_once),
        TEST(a_newer_file_is_refused),
        TEST(a_locked_file_stops_nobody),
        TEST(too_many_rows_are_dropped),
        TEST(what_cannot_be_opened_takes_rows),
        TEST(a_full_disk_stops_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
