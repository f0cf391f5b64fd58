#include "base/file.h"
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// The system's calls as they are made, in the place of the C library's: f and d for a file or a directory that is
// synchronised, r for a renaming. `behind` takes the name of a file just before that is locked.
static char calls[64];
static const char *behind;

static void note(char what) {
    size_t n = strlen(calls);
    if (n + 1 < sizeof calls) calls[n] = what;
}

int fsync(int fd) {
    struct stat st;
    note(!fstat(fd, &st) && S_ISDIR(st.st_mode) ? 'd' : 'f');
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
    note('r');
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int flock(int fd, int how) {
    if (behind) assert_int_equal(rename(behind, "locked"), 0);
    behind = NULL;
    return (int)syscall(SYS_flock, fd, how);
}

// Each test runs with a fresh directory as its working directory.
static int enter(void **state) {
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/test_file.XXXXXX", base ? base : "/tmp") < 0) return -1;
    *state = dir;
    return mkdtemp(dir) && !chdir(dir) ? 0 : -1;
}

static int leave(void **state) {
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    int rc = chdir("/") || system(command);
    free(*state);
    return rc;
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *path, const char *text) {
    file_map m;
    err e = {0};
    assert_true(file_map_open(&m, path, &e));
    assert_int_equal(m.size, strlen(text));
    assert_memory_equal(m.data, text, m.size);
    file_map_close(&m);
}

static int entries(const char *path) {
    DIR *d = opendir(path);
    assert_non_null(d);
    int count = 0;
    for (const struct dirent *i; (i = readdir(d));) count += strcmp(i->d_name, ".") && strcmp(i->d_name, "..");
    closedir(d);
    return count;
}

static void maps_files(void **state) {
    (void)state;
    put("a", "hello");
    put("empty", "");
    assert_holds("a", "hello");
    assert_holds("empty", "");
    file_map m;
    err e;
    assert_true(file_map_open(&m, "empty", &e));
    assert_non_null(m.data);
    file_map_close(&m);
    file_map_close(&m);
    assert_null(m.data);
}

static void refuse_map(const char *path, const char *reason) {
    file_map m;
    err e = {0};
    assert_false(file_map_open(&m, path, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
    assert_non_null(strstr(e.text, reason));
    assert_null(m.data);
    file_map_close(&m);
}

static void map_refuses_what_is_no_file(void **state) {
    (void)state;
    refuse_map("missing", "No such file");
    refuse_map(".", "is a directory");
    put("a", "x");
    refuse_map("a/b", "Not a directory");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refuse_map("pipe", "not a regular file");
    refuse_map("/dev/null", "not a regular file");
}

static void reads_small_files(void **state) {
    (void)state;
    err e = {0};
    size_t bytes = 9;
    put("a", "12345");
    char *text = file_read("a", 5, &bytes, &e);
    assert_non_null(text);
    assert_int_equal(bytes, 5);
    assert_string_equal(text, "12345");
    free(text);
    assert_null(file_read("a", 4, &bytes, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "a: is larger than 4 bytes; is it the right file?");
    assert_null(file_read("missing", 4, &bytes, &e));
    assert_non_null(strstr(e.text, "missing: cannot be read: No such file or directory"));
    assert_null(file_read(".", 4, &bytes, &e));
    assert_non_null(strstr(e.text, ".: is a directory"));
}

static void writer_replaces(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    put("a", "old");
    assert_int_equal(chmod("a", 0640), 0);
    assert_true(file_writer_open(&w, "a", &e));
    assert_true(file_writer_write(&w, "new ", 4, &e));
    assert_true(file_writer_write(&w, NULL, 0, &e));
    assert_true(file_writer_write(&w, "text", 4, &e));
    assert_holds("a", "old");
    assert_true(file_writer_commit(&w, &e));
    assert_holds("a", "new text");
    file_writer_abandon(&w);
    file_writer_abandon(&w);
    assert_holds("a", "new text");
    assert_int_equal(entries("."), 1);
    struct stat st;
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void patch_beyond_the_end(void) {
    err e;
    file_writer w;
    if (file_writer_open(&w, "b", &e) && file_writer_write(&w, "abc", 3, &e)) file_writer_patch(&w, 2, "xy", 2, &e);
}

static void writer_patches(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    assert_true(file_writer_open(&w, "a", &e));
    assert_true(file_writer_write(&w, "?? world", 8, &e));
    assert_true(file_writer_patch(&w, 0, "My", 2, &e));
    assert_true(file_writer_patch(&w, 8, NULL, 0, &e));
    assert_true(file_writer_write(&w, "!", 1, &e));
    assert_true(file_writer_patch(&w, 8, ".", 1, &e));
    assert_true(file_writer_commit(&w, &e));
    assert_holds("a", "My world.");
    support_aborts(patch_beyond_the_end, "not written");
}

static void writer_makes_with_the_usual_mode(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    struct stat st;
    char path[4200];
    mode_t before = umask(027);
    snprintf(path, sizeof path, "%s/full", (char *)*state);
    assert_true(file_writer_open(&w, path, &e));
    assert_true(file_writer_commit(&w, &e));
    umask(before);
    assert_holds(path, "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void writer_abandons(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    put("a", "old");
    assert_true(file_writer_open(&w, "a", &e));
    assert_true(file_writer_write(&w, "new", 3, &e));
    assert_int_equal(entries("."), 2);
    file_writer_abandon(&w);
    assert_holds("a", "old");
    assert_int_equal(entries("."), 1);
}

static void writers_of_one_file_do_not_meet(void **state) {
    (void)state;
    err e = {0};
    file_writer a, b;
    assert_true(file_writer_open(&a, "x", &e));
    assert_true(file_writer_open(&b, "x", &e));
    assert_true(file_writer_write(&a, "a", 1, &e));
    assert_true(file_writer_write(&b, "b", 1, &e));
    assert_true(file_writer_commit(&b, &e));
    assert_true(file_writer_commit(&a, &e));
    assert_holds("x", "a");
    assert_int_equal(entries("."), 1);
}

// The number of a process that is no more.
static pid_t dead(void) {
    pid_t child = fork();
    if (!child) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

static void put_old(const char *path) {
    const struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    put(path, "left behind");
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

static void writer_sweeps_what_the_dead_left(void **state) {
    (void)state;
    char stale[64], young[64], alive[64], other[64];
    pid_t pid = dead();
    snprintf(stale, sizeof stale, "f.%ld.0.tmp", (long)pid);
    snprintf(young, sizeof young, "f.%ld.1.tmp", (long)pid);
    snprintf(alive, sizeof alive, "f.%ld.7.tmp", (long)getppid());
    snprintf(other, sizeof other, "g.%ld.0.tmp", (long)pid);
    put_old(stale);
    put(young, "");
    put_old(alive);
    put_old(other);
    put_old("f.notes.tmp");
    file_writer w;
    err e = {0};
    assert_true(file_writer_open(&w, "./f", &e));
    file_writer_abandon(&w);
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(access(young, F_OK), 0);
    assert_int_equal(access(alive, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(access("f.notes.tmp", F_OK), 0);
}

static void refuse_writer(const char *path, const char *reason) {
    file_writer w;
    err e = {0};
    assert_false(file_writer_open(&w, path, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
    assert_non_null(strstr(e.text, reason));
    file_writer_abandon(&w);
}

static void writer_refuses_what_is_no_file(void **state) {
    (void)state;
    refuse_writer(".", "is a directory");
    refuse_writer("missing/a", "No such file");
    refuse_writer("/dev/null", "not a regular file");
    assert_int_equal(entries("."), 0);
}

// A limit on the size of files stands in for a full disk: writes come short, then fail.
static void full_disk_leaves_the_old_file(void **state) {
    (void)state;
    static char block[3000];
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4096;
    put("a", "old");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    err e = {0};
    file_writer w;
    bool opened = file_writer_open(&w, "a", &e);
    bool first = opened && file_writer_write(&w, block, sizeof block, &e);
    bool second = first && file_writer_write(&w, block, sizeof block, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_true(opened && first);
    assert_false(second);
    assert_int_equal(e.kind, ERR_RUN);
    assert_string_equal(e.text, "a: cannot be written: File too large; raise the limit on a file's size (ulimit -f)");
    assert_int_equal(entries("."), 1);
    assert_holds("a", "old");
    file_writer_abandon(&w);
}

static void failed_commit_leaves_nothing(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    assert_true(file_writer_open(&w, "a", &e));
    assert_int_equal(mkdir("a", 0777), 0);
    assert_false(file_writer_commit(&w, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_non_null(strstr(e.text, "a: cannot be replaced: "));
    assert_int_equal(entries("."), 1);
    file_writer_abandon(&w);
}

// Bytes are on the disk before they have a name, and the name is when the call returns: a power cut at any moment
// leaves the old file or the new one.
static void writer_keeps_the_order(void **state) {
    (void)state;
    err e = {0};
    file_writer w;
    support_ok(file_writer_open(&w, "a", &e) && file_writer_write(&w, "new", 3, &e), &e);
    memset(calls, 0, sizeof calls);
    support_ok(file_writer_commit(&w, &e), &e);
    assert_string_equal(calls, "frd");
    memset(calls, 0, sizeof calls);
    support_ok(file_make_dirs("x/y", &e), &e);
    assert_string_equal(calls, "dd");
}

// A file that is replaced between its opening and its locking is locked under the name that it then has.
static void lock_is_of_the_file_that_is_there(void **state) {
    (void)state;
    err e = {0};
    put("locked", "old");
    put("next", "new");
    behind = "next";
    int fd = file_lock("locked", NULL, NULL, &e);
    support_ok(fd >= 0, &e);
    assert_true(file_is_there(fd, "locked"));
    close(fd);
}

static void makes_directories(void **state) {
    (void)state;
    err e = {0};
    struct stat st;
    char path[4200];
    assert_true(file_make_dirs("x/y//z/", &e));
    assert_true(file_make_dirs("x/y/z", &e));
    assert_int_equal(stat("x/y/z", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    snprintf(path, sizeof path, "%s/p/q", (char *)*state);
    assert_true(file_make_dirs(path, &e));
    assert_true(file_make_dirs("/", &e));
    assert_true(file_make_dirs(".", &e));
    put("f", "x");
    assert_false(file_make_dirs("f", &e));
    assert_string_equal(e.text, "f: is not a directory; remove it or choose another");
    assert_false(file_make_dirs("f/g", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_false(file_make_dirs("", &e));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(maps_files),
        TEST(map_refuses_what_is_no_file),
        TEST(reads_small_files),
        TEST(writer_replaces),
        TEST(writer_patches),
        TEST(writer_makes_with_the_usual_mode),
        TEST(writer_abandons),
        TEST(writers_of_one_file_do_not_meet),
        TEST(writer_sweeps_what_the_dead_left),
        TEST(writer_refuses_what_is_no_file),
        TEST(full_disk_leaves_the_old_file),
        TEST(failed_commit_leaves_nothing),
        TEST(writer_keeps_the_order),
        TEST(lock_is_of_the_file_that_is_there),
        TEST(makes_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
