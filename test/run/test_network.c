// File systems that other machines share: they are told by their type, run.db has no WAL there, and its readers get
// along with what a killed writer leaves.
#include "base/network.h"

#include "run/db.h"
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LOCAL = 0xEF53, NFS = 0x6969 };

// The system's calls in place of the C library's: the type of every file system, and a kill where a journal is removed.
static unsigned long type = LOCAL;
static bool dies;

int statfs(const char *path, struct statfs *to) {
    *to = (struct statfs){.f_type = (__fsword_t)type};
    if (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0) return 0;
    errno = ENOENT;
    return -1;
}

int unlink(const char *path) {
    const char *end = strstr(path, "-journal");
    if (dies && end && !end[8]) kill(getpid(), SIGKILL);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static void types_are_known(void **state) {
    (void)state;
    static const struct {
        unsigned long type;
        const char *name;
    } all[] = {{NFS, "NFS"}, {0xFE534D42, "SMB2"}, {0xFFFFFFFFFF534D42, "SMB (CIFS)"},
        {0x65735546, "FUSE, such as sshfs"}, {0x01021997, "9p"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
        {0x00C36400, "Ceph"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        type = all[i].type;
        assert_string_equal(network_of("."), all[i].name);
        assert_string_equal(network_of("missing"), all[i].name); // that of the directory
        assert_string_equal(network_of("./missing"), all[i].name);
        assert_null(network_of("missing/too"));
    }
    type = LOCAL;
    assert_null(network_of("."));
}

static void journal_is(const char *name) {
    sqlite3 *file;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(file, "PRAGMA journal_mode", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(st, 0), name);
    sqlite3_finalize(st);
    sqlite3_close(file);
}

static void add_epoch(db *d, int64_t epoch) {
    db_epoch(d, &(db_epoch_row){epoch, (uint64_t)epoch, 0.5, 100, true, NULL}, NULL, 0);
    db_sync(d);
}

static int64_t epochs(void) {
    err e = {0};
    db_summary sum;
    db_reader *r = db_reader_open("run.db", &e);
    support_ok(r && db_read(r, &sum, &e), &e);
    db_reader_close(r);
    return sum.epochs;
}

static void a_network_has_no_wal(void **state) {
    (void)state;
    err e;
    for (int again = 0; again < 3; again++) { // begun here, taken there, and back
        type = again == 1 ? NFS : LOCAL;
        db *d = db_open("run.db");
        db_run(d, "0.1", "a: 1\n", "b: 2\n");
        add_epoch(d, again + 1);
        assert_false(db_trouble(d, &e));
        assert_int_equal(epochs(), again + 1); // while it is written
        assert_int_equal(access("run.db-wal", F_OK) == 0, again != 1);
        assert_int_equal(access("run.db-shm", F_OK) == 0, again != 1);
        db_close(d);
        assert_int_equal(epochs(), again + 1);
        journal_is(again == 1 ? "delete" : "wal");
    }
}

// A writer that is killed before its commit leaves a journal; a reader sees the rows before it.
static void a_kill_leaves_whole_rows(void **state) {
    (void)state;
    int status;
    type = NFS;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        db *d = db_open("run.db");
        db_run(d, "0.1", "a: 1\n", "b: 2\n");
        add_epoch(d, 1);
        dies = true;
        add_epoch(d, 2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(access("run.db-journal", F_OK), 0);
    assert_int_equal(epochs(), 1);
    err e;
    assert_true(db_known("run.db", &e));
    db *d = db_open("run.db");
    add_epoch(d, 2);
    assert_false(db_trouble(d, &e));
    db_close(d);
    assert_int_equal(epochs(), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(types_are_known),
        TEST(a_network_has_no_wal),
        TEST(a_kill_leaves_whole_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
