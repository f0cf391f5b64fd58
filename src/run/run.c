#include "run/run.h"

#include "base/file.h"
#include "run/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    char *dir;
    int lock;
    log_file *log;
    db *db;
    bool moved;
};

static const char *const files[] = {
    "config.yaml", "plan.yaml", "training_log.txt", "best.safetensors", "run.db", "run.db-wal", "run.db-shm"};
enum { FILES = sizeof files / sizeof *files };

char *run_path(const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    CHECK(path, "out of memory for a path");
    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static bool is_ours(const char *name) {
    checkpoint_kind kind;
    uint64_t number;
    for (int i = 0; i < FILES; i++)
        if (strcmp(files[i], name) == 0) return true;
    return checkpoint_named(name, &kind, &number);
}

// Whether a name is that of the directory of an ensemble's member.
static bool is_member(const char *name) {
    static const char stem[] = "member_";
    const char *number = name + sizeof stem - 1;
    return strncmp(name, stem, sizeof stem - 1) == 0 && *number && !number[strspn(number, "0123456789")];
}

// Whether a name is that of a file of ours that was never finished: NAME.PID.N.tmp.
static bool is_leftover(const char *name) {
    size_t n = strlen(name);
    char stem[256];
    if (n < 8 || n >= sizeof stem || strcmp(name + n - 4, ".tmp") != 0) return false;
    memcpy(stem, name, n + 1);
    for (int dots = 0; dots < 3; dots++) {
        char *dot = strrchr(stem, '.');
        if (!dot) return false;
        *dot = 0;
    }
    return is_ours(stem);
}

// The lock

static bool take_lock(run *r, err *e) {
    char *path = run_path(r->dir, "lock"), holder[32] = "";
    r->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool ok = r->lock >= 0 || err_input(e, "%s: cannot be written: %s; choose another run.dir", path, strerror(errno));
    if (ok && flock(r->lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = read(r->lock, holder, sizeof holder - 1);
        holder[n > 0 ? strspn(holder, "0123456789") : 0] = 0;
        ok = err_run(e, "%s: another process (%s) trains here; wait for it or choose another run.dir", r->dir,
            holder[0] ? holder : "unknown");
    } else if (ok) {
        // Who holds it, for the line above; the lock itself does not need it.
        int n = snprintf(holder, sizeof holder, "%ld\n", (long)getpid());
        if (ftruncate(r->lock, 0) == 0 && pwrite(r->lock, holder, (size_t)n, 0) != n) holder[0] = 0;
    }
    free(path);
    return ok;
}

// What is there

static void remove_leftovers(const char *dir) {
    DIR *d = opendir(dir);
    for (const struct dirent *each; d && (each = readdir(d));) {
        char *path = run_path(dir, each->d_name);
        if (is_leftover(each->d_name)) unlink(path);
        free(path);
    }
    if (d) closedir(d);
}

static bool move_file(const run *r, const char *aside, const char *name, err *e) {
    char *from = run_path(r->dir, name), *to = run_path(aside, name);
    bool ok = rename(from, to) == 0 || err_run(e, "%s: cannot be moved aside: %s", from, strerror(errno));
    free(from);
    free(to);
    return ok;
}

// Files of a directory that are ours, and members' directories, are given to `use`, which may remove them; false where
// it is.
static bool each_file(const char *dir, bool (*use)(run *r, const char *aside, const char *name, err *e), run *r,
    const char *aside, err *e) {
    bool ok = true;
    DIR *d = opendir(dir);
    for (const struct dirent *each; ok && d && (each = readdir(d));)
        if (is_ours(each->d_name) || is_member(each->d_name)) ok = use(r, aside, each->d_name, e);
    if (d) closedir(d);
    return ok;
}

static bool remove_file(run *r, const char *dir, const char *name, err *e);

// A member goes with its directory, unless there are files in it that are not ours.
static bool remove_member(run *r, const char *dir, err *e) {
    char *lock = run_path(dir, "lock"), *aside = run_path(dir, "earlier");
    bool ok = each_file(aside, remove_file, r, aside, e) && each_file(dir, remove_file, r, dir, e);
    remove_leftovers(dir);
    rmdir(aside);
    unlink(lock);
    if (ok && rmdir(dir) != 0)
        ok = err_run(e, "%s: cannot be removed: %s; move it away or choose another run.dir", dir, strerror(errno));
    free(lock);
    free(aside);
    return ok;
}

static bool remove_file(run *r, const char *dir, const char *name, err *e) {
    char *path = run_path(dir, name);
    bool ok = true;
    if (is_member(name))
        ok = remove_member(r, path, e);
    else
        unlink(path);
    free(path);
    return ok;
}

static bool is_free(run *r, const char *dir, const char *name, err *e) {
    (void)r;
    char *path = run_path(dir, name);
    bool locked = is_member(name) && run_is_locked(path);
    if (locked) err_run(e, "%s: another process trains here; wait for it or choose another run.dir", path);
    free(path);
    return !locked;
}

// Is not true of a file of weights, so that it ends a walk over files.
static bool holds_no_weights(run *r, const char *dir, const char *name, err *e) {
    checkpoint_kind kind;
    uint64_t number;
    if (is_member(name)) {
        char *path = run_path(dir, name);
        bool none = each_file(path, holds_no_weights, r, path, e);
        free(path);
        return none;
    }
    if (strcmp(name, "best.safetensors") != 0 && !checkpoint_named(name, &kind, &number)) return true;
    return err_run(e, "%s: holds weights", name);
}

// The first file that is moved makes the directory, and empties it of what an even earlier run left.
static bool move_aside(run *r, const char *aside, const char *name, err *e) {
    if (!r->moved) {
        if (!file_make_dirs(aside, e) || !each_file(aside, remove_file, r, aside, e)) return false;
        r->moved = true;
    }
    return move_file(r, aside, name, e);
}

// Makes place for a run that begins. One that has saved no weights is not worth the place of the one before it, which
// earlier/ may hold: it is removed.
static bool clear(run *r, const char *aside, err *e) {
    err unused;
    if (!each_file(r->dir, is_free, r, r->dir, e)) return false;
    if (each_file(r->dir, holds_no_weights, r, r->dir, &unused)) return each_file(r->dir, remove_file, r, r->dir, e);
    return each_file(r->dir, move_aside, r, aside, e);
}

// Files that are not a run's

static bool has(const char *dir, const char *name) {
    char *path = run_path(dir, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

// run.db may have been lost.
bool run_was_in(const char *dir) {
    return has(dir, "run.db") || (has(dir, "lock") && has(dir, "training_log.txt"));
}

static bool refuse_file(run *r, const char *dir, const char *name, err *e) {
    (void)r;
    return err_input(e, "%s: has a %s that no run has written; choose another run.dir, or move that away", dir, name);
}

// False where a directory that no run was in has files of the names that a run would replace.
static bool has_place(const char *dir, err *e) {
    return run_was_in(dir) || each_file(dir, refuse_file, NULL, dir, e);
}

// True where a path below a run's directory, such as "earlier/member_1/best.safetensors", is of a file of a run.
static bool is_ours_below(char *path) {
    char *rest = NULL, *part = strtok_r(path, "/", &rest), *next;
    while (part && (next = strtok_r(NULL, "/", &rest))) {
        if (strcmp(part, "earlier") != 0 && !is_member(part)) return false;
        part = next;
    }
    return part && is_ours(part);
}

bool run_replaces(const char *dir, const char *path) {
    char *whole = realpath(dir, NULL), *file = realpath(path, NULL);
    size_t n = whole ? strlen(whole) : 0;
    bool below = n && file && strncmp(whole, file, n) == 0 && file[n] == '/';
    bool replaces = below && is_ours_below(file + n);
    free(whole);
    free(file);
    return replaces;
}

// Opening

static run *open_run(const char *dir, bool begins, err *e) {
    run *r = calloc(1, sizeof *r);
    CHECK(r, "out of memory for a run");
    r->lock = -1;
    r->dir = strdup(dir);
    CHECK(r->dir, "out of memory for a path");
    char *log = run_path(dir, "training_log.txt"), *db = run_path(dir, "run.db"), *aside = run_path(dir, "earlier");
    bool ok = take_lock(r, e);
    if (ok) remove_leftovers(dir);
    if (ok && begins) ok = clear(r, aside, e);
    if (ok && !begins) ok = db_known(db, e);
    if (ok) r->log = log_open(log, e);
    if (r->log) r->db = db_open(db);
    free(log);
    free(db);
    free(aside);
    if (r->log) return r;
    run_close(r);
    return NULL;
}

run *run_begin(const char *dir, err *e) {
    return file_make_dirs(dir, e) && has_place(dir, e) ? open_run(dir, true, e) : NULL;
}

run *run_resume(const char *dir, err *e) {
    struct stat st;
    if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode)) return open_run(dir, false, e);
    err_input(e, "%s: there is no run to resume; leave --resume out to begin one", dir);
    return NULL;
}

void run_close(run *r) {
    if (!r) return;
    db_close(r->db);
    log_close(r->log);
    if (r->lock >= 0) close(r->lock);
    free(r->dir);
    free(r);
}

const char *run_dir(const run *r) {
    return r->dir;
}

log_file *run_log(run *r) {
    return r->log;
}

db *run_db(run *r) {
    return r->db;
}

bool run_moved(const run *r) {
    return r->moved;
}

bool run_write(const run *r, const char *name, const char *text, err *e) {
    file_writer w;
    char *path = run_path(r->dir, name);
    bool ok =
        file_writer_open(&w, path, e) && file_writer_write(&w, text, strlen(text), e) && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    free(path);
    return ok;
}

bool run_is(const char *path) {
    struct stat st;
    char *config = run_path(path, "config.yaml");
    bool is = stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(config, F_OK) == 0;
    free(config);
    return is;
}

bool run_is_locked(const char *dir) {
    char *path = run_path(dir, "lock");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return locked;
}
