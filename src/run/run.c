#include "run/run.h"

#include "base/file.h"
#include "run/aside.h"
#include "run/checkpoint.h"
#include "run/command.h"
#include "run/sum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MOST = 1 << 20 };

struct run {
    char *dir;
    int lock;
    log_file *log;
    db *db;
    char *earlier; // where the run before this one is now, or NULL
};

static const char *const files[] = {"config.yaml", "plan.yaml", "training_log.txt", "best.safetensors", "run.db",
    "run.db-wal", "run.db-shm", "run.db-journal"};
enum { FILES = sizeof files / sizeof *files };

char *run_path(const char *dir, const char *name) {
    int length = (int)strlen(dir);
    while (length > 1 && dir[length - 1] == '/') length--; // as shells complete a directory
    size_t n = (size_t)length + strlen(name) + 2;
    char *path = malloc(n);
    NEED(path, "out of memory for a path");
    snprintf(path, n, "%.*s%s%s", length, dir, length == 1 && *dir == '/' ? "" : "/", name);
    return path;
}

static bool is_ours(const char *name) {
    checkpoint_kind kind;
    uint64_t number;
    for (int i = 0; i < FILES; i++)
        if (strcmp(files[i], name) == 0) return true;
    return checkpoint_named(name, &kind, &number);
}

// The directory of a run that belongs to the one above it: member_K of an ensemble, fold_K of a walk.
static bool is_member(const char *name) {
    static const char *const stems[] = {"member_", "fold_"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        size_t n = strlen(stems[i]);
        if (strncmp(name, stems[i], n) == 0 && name[n] && !name[n + strspn(name + n, "0123456789")]) return true;
    }
    return false;
}

// True if a name is that of a file of ours that was never finished: NAME.PID.N.tmp.
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
    bool ok = r->lock >= 0 || file_fail(e, path, "cannot be written", errno);
    if (ok && (flock(r->lock, LOCK_EX | LOCK_NB) != 0 || !file_is_there(r->lock, path))) {
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

// The run before

static void remove_leftovers(const char *dir) {
    DIR *d = opendir(dir);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    for (const struct dirent *each; d && (each = readdir(d));) {
        char *path = run_path(dir, each->d_name);
        if (is_leftover(each->d_name)) unlink(path);
        free(path);
    }
    if (d) closedir(d);
}

// The first file of ours, or member's directory, that `is` is true of, which the caller frees; NULL where none is.
static char *find_file(const char *dir, bool (*is)(const char *dir, const char *name)) {
    char *found = NULL;
    DIR *d = opendir(dir);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    for (const struct dirent *each; !found && d && (each = readdir(d));)
        if ((is_ours(each->d_name) || is_member(each->d_name)) && is(dir, each->d_name))
            NEED(found = strdup(each->d_name), "out of memory for a name");
    if (d) closedir(d);
    return found;
}

static bool is_member_in_use(const char *dir, const char *name) {
    if (!is_member(name)) return false;
    char *path = run_path(dir, name);
    bool locked = run_is_locked(path);
    free(path);
    return locked;
}

bool run_owns(const char *name) {
    char stem[64];
    snprintf(stem, sizeof stem, "%.60s", name);
    char *dot = strrchr(stem, '.');
    if (dot && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")]) *dot = 0; // a member that was set aside
    return is_member(stem) || strcmp(name, "earlier") == 0;
}

// The first directory below that holds a run of its own, which the caller frees; NULL where there is none.
static char *find_other_run(const char *dir) {
    char *found = NULL;
    DIR *d = opendir(dir);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    for (const struct dirent *each; !found && d && (each = readdir(d));) {
        if (each->d_name[0] == '.' || run_owns(each->d_name)) continue;
        char *path = run_path(dir, each->d_name);
        if (run_is(path)) found = path;
        if (!found) free(path);
    }
    if (d) closedir(d);
    return found;
}

// Makes place for a run that begins: the one before it goes aside, with its lock, and another is taken.
static bool set_aside(run *r, err *e) {
    int held = r->lock;
    char *member = find_file(r->dir, is_member_in_use);
    if (member) {
        err_run(e, "%s/%s: another process trains here; wait for it or choose another run.dir", r->dir, member);
        free(member);
        return false;
    }
    char *other = find_other_run(r->dir);
    if (other) {
        err_input(e, "%s: holds an earlier run, and %s lies below it; choose another run.dir", r->dir, other);
        free(other);
        return false;
    }
    r->earlier = aside_set(r->dir, e);
    if (!r->earlier) return false;
    bool ok = take_lock(r, e);
    close(held);
    return ok;
}

// Files that are not a run's

static bool has(const char *dir, const char *name) {
    char *path = run_path(dir, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

// A database by its first bytes, not by its name.
static bool has_db(const char *dir) {
    static const char mark[16] = "SQLite format 3";
    char *path = run_path(dir, "run.db"), head[sizeof mark];
    FILE *f = fopen(path, "rb");
    NEED(f || errno != ENOMEM, "out of memory to look into %s", path);
    bool is = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, mark, sizeof head) == 0;
    if (f) fclose(f);
    free(path);
    return is;
}

// run.db may have been lost.
bool run_was_in(const char *dir) {
    return has_db(dir) || (has(dir, "lock") && has(dir, "training_log.txt"));
}

static bool is_any(const char *dir, const char *name) {
    (void)dir;
    (void)name;
    return true;
}

// False where a directory that no run was in has files of the names that a run would replace.
static bool has_place(const char *dir, err *e) {
    char *name = run_was_in(dir) ? NULL : find_file(dir, is_any);
    if (!name) return true;
    err_input(e, "%s: has a %s that no run has written; choose another run.dir, or move that away", dir, name);
    free(name);
    return false;
}

bool run_moves(const char *dir, const char *path) {
    errno = 0;
    char *whole = run_was_in(dir) ? realpath(dir, NULL) : NULL, *file = realpath(path, NULL);
    NEED((whole && file) || errno != ENOMEM, "out of memory for a path");
    size_t n = whole ? strlen(whole) : 0;
    bool below = n && file && strncmp(whole, file, n) == 0 && file[n] == '/';
    free(whole);
    free(file);
    return below;
}

// Opening

static run *open_run(const char *dir, bool begins, err *e) {
    run *r = calloc(1, sizeof *r);
    NEED(r, "out of memory for a run");
    r->lock = -1;
    r->dir = strdup(dir);
    NEED(r->dir, "out of memory for a path");
    char *log = run_path(dir, "training_log.txt"), *db = run_path(dir, "run.db");
    bool ok = take_lock(r, e);
    if (ok && begins && run_was_in(dir)) ok = set_aside(r, e);
    if (ok && !begins) remove_leftovers(dir);
    if (ok && !begins) ok = db_known(db, e);
    if (ok) r->log = log_open(log, e);
    if (r->log) r->db = db_open(db);
    free(log);
    free(db);
    if (r->log) return r;
    run_close(r);
    return NULL;
}

run *run_begin(const char *dir, err *e) {
    return file_make_dirs(dir, e) && has_place(dir, e) ? open_run(dir, true, e) : NULL;
}

// A directory that holds a lock alone is what a kill leaves just behind the rename of an earlier run.
run *run_resume(const char *dir, err *e) {
    if (run_is(dir) || run_was_in(dir) || checkpoint_any(dir)) return open_run(dir, false, e);
    char *earlier = aside_newest(dir), *resume = earlier ? command_resume(earlier) : NULL;
    if (resume)
        err_input(e, "%s: there is no run to resume; the one that was there goes on with `%s`", dir, resume);
    else
        err_input(e, "%s: there is no run to resume; leave --resume out to begin one", dir);
    free(resume);
    free(earlier);
    return NULL;
}

void run_close(run *r) {
    if (!r) return;
    db_close(r->db);
    log_close(r->log);
    if (r->lock >= 0) close(r->lock);
    free(r->earlier);
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

const char *run_earlier(const run *r) {
    return r->earlier;
}

static const char sum_line[] = "# sum of the lines above: ";

// True where a text of so many bytes has a last line with a sum that the lines above do not fit, or bytes behind its
// end. It is changed on the way, and put back.
static bool is_changed(char *text, size_t bytes) {
    char sum[SUM_ROOM], want[SUM_ROOM + 1], *at = text, *last = NULL;
    if (strlen(text) != bytes) return true;
    while ((at = strstr(at, sum_line))) last = at++;
    if (!last) return false;
    *last = 0;
    sum_of_text(text, sum);
    *last = sum_line[0];
    snprintf(want, sizeof want, "%s\n", sum);
    return strcmp(last + strlen(sum_line), want) != 0;
}

bool run_read_summed(const char *dir, const char *name, char **text, bool *changed, err *e) {
    err why = {0};
    size_t bytes;
    char *path = run_path(dir, name);
    bool there = access(path, F_OK) == 0;
    *text = there ? file_read(path, TEXT_MOST, &bytes, &why) : NULL;
    *changed = *text && is_changed(*text, bytes);
    free(path);
    return why.kind != ERR_RUN || err_run(e, "%s", why.text);
}

bool run_read(const char *dir, const char *name, char **text, err *e) {
    bool unused;
    return run_read_summed(dir, name, text, &unused, e);
}

char *run_text(const char *dir, const char *name) {
    char *text;
    run_read(dir, name, &text, NULL);
    return text;
}

static bool write_text(const char *dir, const char *name, const char *text, err *e) {
    file_writer w;
    char *path = run_path(dir, name);
    bool ok =
        file_writer_open(&w, path, e) && file_writer_write(&w, text, strlen(text), e) && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    free(path);
    return ok;
}

// Descriptions and plans. The last line is a comment with the sum of those before it.

static bool write_summed(const char *dir, const char *name, const char *lines, err *e) {
    char sum[SUM_ROOM], *text = NULL;
    sum_of_text(lines, sum);
    NEED(asprintf(&text, "%s%s%s\n", lines, sum_line, sum) >= 0, "out of memory for %s", name);
    bool ok = write_text(dir, name, text, e);
    free(text);
    return ok;
}

bool run_put_description(const run *r, const char *config, err *e) {
    return write_summed(r->dir, "config.yaml", config, e);
}

bool run_put_plan(const run *r, const char *plan, err *e) {
    return write_summed(r->dir, "plan.yaml", plan, e);
}

bool run_describe(const char *dir, const char *config, err *e) {
    return file_make_dirs(dir, e) && has_place(dir, e) && write_summed(dir, "config.yaml", config, e);
}

bool run_text_changed(const char *file) {
    err unused;
    size_t bytes;
    char *text = file_read(file, TEXT_MOST, &bytes, &unused);
    bool changed = text && is_changed(text, bytes);
    free(text);
    return changed;
}

bool run_each_fold(const char *dir, void (*use)(void *arg, const char *dir), void *arg, err *e) {
    DIR *d = opendir(dir);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    if (!d && errno != ENOENT && errno != ENOTDIR) return file_fail(e, dir, "cannot be read", errno);
    for (const struct dirent *each; d && (each = readdir(d));) {
        bool fold = strncmp(each->d_name, "fold_", 5) == 0 && !strchr(each->d_name, '.') && run_owns(each->d_name);
        char *path = fold ? run_path(dir, each->d_name) : NULL;
        if (path && run_is(path)) use(arg, path);
        free(path);
    }
    if (d) closedir(d);
    return true;
}

bool run_is(const char *path) {
    struct stat st;
    char *config = run_path(path, "config.yaml");
    bool is = stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(config, F_OK) == 0;
    free(config);
    return is;
}

bool run_has_no_checkpoint(const char *dir) {
    return (run_is(dir) || run_was_in(dir)) && !checkpoint_any(dir);
}

bool run_has_weights(const char *dir) {
    return has(dir, "best.safetensors");
}

bool run_is_locked(const char *dir) {
    char *path = run_path(dir, "lock");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return locked;
}

const char *run_status(const char *dir, const db_summary *s) {
    return strcmp(s->status, "running") == 0 && !run_is_locked(dir) ? "killed" : s->status;
}
