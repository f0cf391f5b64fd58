#include "base/file.h"

#include "base/stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Advice for an errno value, with the separator before it; empty where nothing is known to help.
static const char *advice(int code) {
    switch (code) {
    case ENOSPC: return "; free some space";
    case EDQUOT: return "; free some of your space";
    case EFBIG: return "; raise the limit on a file's size (ulimit -f)";
    case ENOENT:
    case ENOTDIR: return "; check the path";
    case EACCES:
    case EPERM: return "; check the permissions";
    case EISDIR:
    case EROFS: return "; choose another place";
    default: return "";
    }
}

static bool fail_run(err *e, const char *path, const char *what, int code) {
    return err_run(e, "%s: %s: %s%s", path, what, strerror(code), advice(code));
}

bool file_fail(err *e, const char *path, const char *what, int code) {
    switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return fail_run(e, path, what, code);
    default: return err_input(e, "%s: %s: %s%s", path, what, strerror(code), advice(code));
    }
}

static int open_retry(const char *path, int flags, mode_t mode) {
    int fd;
    do fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static bool map_fd(file_map *m, int fd, const char *path, err *e) {
    struct stat st;
    if (fstat(fd, &st)) return file_fail(e, path, "cannot be read", errno);
    if (S_ISDIR(st.st_mode)) return err_input(e, "%s: is a directory; name a file in it", path);
    if (!S_ISREG(st.st_mode)) return err_input(e, "%s: is not a regular file", path);
    if ((uintmax_t)st.st_size > SIZE_MAX / 2) return err_input(e, "%s: is too large for this machine", path);
    m->data = (const unsigned char *)"";
    if (!st.st_size) return true;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        m->data = NULL;
        return file_fail(e, path, "cannot be mapped", errno);
    }
    m->data = data;
    m->size = (size_t)st.st_size;
    return true;
}

bool file_map_open(file_map *m, const char *path, err *e) {
    *m = (file_map){0};
    // O_NONBLOCK: opening a pipe that nobody writes would wait for ever before it could be refused.
    int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return file_fail(e, path, "cannot be read", errno);
    bool ok = map_fd(m, fd, path, e);
    close(fd);
    return ok;
}

void file_map_close(file_map *m) {
    if (m->size) munmap((void *)(uintptr_t)m->data, m->size);
    *m = (file_map){0};
}

// Reads until the end or until `room` bytes are in; -1 with errno set on failure.
static ssize_t read_up_to(int fd, char *data, size_t room) {
    size_t used = 0;
    while (used < room) {
        ssize_t n = read(fd, data + used, room - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

char *file_of_data(const char *path) {
    const char *folder = getenv("TRADEWIND_DATA");
    struct stat st;
    char *there = NULL;
    if (folder && *folder && *path && *path != '/' && strcmp(path, "-") != 0)
        NEED(asprintf(&there, "%s/%s", folder, path) >= 0, "out of memory for a path");
    if (there && stat(there, &st) == 0) return there;
    free(there);
    char *as_is = strdup(path);
    NEED(as_is, "out of memory for a path");
    return as_is;
}

char *file_read(const char *path, size_t most, size_t *bytes, err *e) {
    CHECK(most < SIZE_MAX / 2, "file_read of up to %zu bytes", most);
    char *data = NULL;
    bool ok = false;
    int fd = open_retry(path, O_RDONLY, 0);
    if (fd < 0) {
        file_fail(e, path, "cannot be read", errno);
        goto done;
    }
    data = malloc(most + 1);
    NEED(data, "%s: no memory for its %zu bytes", path, most);
    // The byte kept for the NUL also shows whether there is more than `most`.
    ssize_t n = read_up_to(fd, data, most + 1);
    if (n < 0) {
        if (errno == EISDIR)
            err_input(e, "%s: is a directory; name a file in it", path);
        else
            file_fail(e, path, "cannot be read", errno);
        goto done;
    }
    if ((size_t)n > most) {
        err_input(e, "%s: is larger than %zu bytes; is it the right file?", path, most);
        goto done;
    }
    data[n] = 0;
    *bytes = (size_t)n;
    ok = true;
done:
    if (fd >= 0) close(fd);
    if (ok) return data;
    free(data);
    return NULL;
}

// The process that a temporary of `name` was made by: NAME.PID.N.tmp. 0 where it is none.
static pid_t maker_of(const char *temp, const char *name) {
    size_t n = strlen(name);
    char *end;
    if (strncmp(temp, name, n) != 0 || temp[n] != '.' || temp[n + 1] < '1' || temp[n + 1] > '9') return 0;
    long pid = strtol(temp + n + 1, &end, 10);
    if (end[0] != '.' || end[1] < '0' || end[1] > '9' || pid > INT32_MAX) return 0;
    strtol(end + 1, &end, 10);
    return strcmp(end, ".tmp") == 0 ? (pid_t)pid : 0;
}

// Removes a temporary whose maker was killed. A maker on this machine is known by its number. One that shares the
// directory from elsewhere holds a lock, and for the moments without one its file is young.
static void remove_stale(int dir, const char *temp, pid_t maker) {
    enum { YOUNG = 60 };
    struct stat st;
    if (!kill(maker, 0) || errno != ESRCH) return;
    int fd = openat(dir, temp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    bool stale = !fstat(fd, &st) && S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > YOUNG;
    if (stale && !flock(fd, LOCK_EX | LOCK_NB)) unlinkat(dir, temp, 0);
    close(fd);
}

// Removes temporary files that killed processes left beside `path`. Nothing depends on it, so failures are passed over.
static void sweep(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *d = folder ? opendir(folder) : NULL;
    for (struct dirent *f; d && (f = readdir(d));) {
        pid_t maker = maker_of(f->d_name, name);
        if (maker) remove_stale(dirfd(d), f->d_name, maker);
    }
    if (d) closedir(d);
    free(folder);
}

// Creates PATH.PID.N.tmp for the first N that is free; on failure temp stays NULL, so that nobody's file is removed.
// Not mkstemp: its mode ignores the umask.
static bool temp_open(file_writer *w, err *e) {
    enum { TRIES = 1000 };
    size_t room = strlen(w->path) + 48;
    w->temp = malloc(room);
    if (!w->temp) return fail_run(e, w->path, "cannot be written", ENOMEM);
    for (int i = 0; i < TRIES; i++) {
        snprintf(w->temp, room, "%s.%ld.%d.tmp", w->path, (long)getpid(), i);
        w->fd = open_retry(w->temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (w->fd >= 0) {
            flock(w->fd, LOCK_EX | LOCK_NB); // for remove_stale; not every file system has locks
            return true;
        }
        if (errno == EEXIST) continue;
        file_fail(e, w->path, "cannot be written", errno);
        goto done;
    }
    err_run(e, "%s: cannot be written: too many %s.*.tmp beside it; remove them", w->path, w->path);
done:
    free(w->temp);
    w->temp = NULL;
    return false;
}

bool file_writer_open(file_writer *w, const char *path, err *e) {
    *w = (file_writer){.fd = -1};
    struct stat old;
    bool replaces = !stat(path, &old);
    if (replaces && S_ISDIR(old.st_mode)) return err_input(e, "%s: is a directory; name a file in it", path);
    if (replaces && !S_ISREG(old.st_mode)) return err_input(e, "%s: is not a regular file; name another", path);
    sweep(path);
    w->path = strdup(path);
    bool ok = w->path ? temp_open(w, e) : fail_run(e, path, "cannot be written", ENOMEM);
    if (ok && replaces && fchmod(w->fd, old.st_mode & 0777)) ok = file_fail(e, path, "cannot be written", errno);
    if (!ok) file_writer_abandon(w);
    return ok;
}

bool file_writer_write(file_writer *w, const void *data, size_t bytes, err *e) {
    CHECK(w->fd >= 0, "write to a file_writer that is not open");
    const char *at = data;
    while (bytes) {
        ssize_t n = write(w->fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            fail_run(e, w->path, "cannot be written", n ? errno : ENOSPC);
            file_writer_abandon(w);
            return false;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

bool file_writer_patch(file_writer *w, int64_t at, const void *data, size_t bytes, err *e) {
    CHECK(w->fd >= 0, "patch of a file_writer that is not open");
    off_t end = lseek(w->fd, 0, SEEK_CUR);
    CHECK(end >= 0 && at >= 0 && at <= end && bytes <= (uint64_t)(end - at), "patch of bytes that were not written");
    const char *from = data;
    while (bytes) {
        ssize_t n = pwrite(w->fd, from, bytes, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            fail_run(e, w->path, "cannot be written", n ? errno : ENOSPC);
            file_writer_abandon(w);
            return false;
        }
        from += n;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool sync_fd(int fd) {
    int rc;
    do rc = fsync(fd);
    while (rc && errno == EINTR);
    return !rc;
}

bool file_is_there(int fd, const char *path) {
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

int file_lock(const char *path, void (*on_wait)(void *arg), void *arg, err *e) {
    const struct timespec pause = {.tv_nsec = 20000000};
    for (bool told = false; stop_go_on(e);) {
        int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0) {
            file_fail(e, path, "cannot be read", errno);
            return -1;
        }
        bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!busy && file_is_there(fd, path)) return fd;
        close(fd);
        if (busy && !told && on_wait) on_wait(arg);
        told |= busy;
        nanosleep(&pause, NULL);
    }
    return -1;
}

// Directories that cannot be opened for reading or synchronised on this file system (EINVAL) are as durable as they
// get.
bool file_sync_place(const char *path, err *e) {
    const char *slash = strrchr(path, '/');
    char *dir = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!dir) return fail_run(e, path, "its directory cannot be synchronised", ENOMEM);
    int fd = open_retry(dir, O_RDONLY | O_DIRECTORY, 0);
    free(dir);
    if (fd < 0) return true;
    bool ok = sync_fd(fd) || errno == EINVAL || errno == ENOTSUP ||
              fail_run(e, path, "its directory cannot be synchronised", errno);
    close(fd);
    return ok;
}

bool file_writer_commit(file_writer *w, err *e) {
    CHECK(w->fd >= 0, "commit of a file_writer that is not open");
    bool ok = sync_fd(w->fd) || fail_run(e, w->path, "cannot be written", errno);
    if (ok) {
        int rc = close(w->fd);
        w->fd = -1;
        ok = !rc || errno == EINTR || fail_run(e, w->path, "cannot be written", errno);
    }
    if (ok) ok = !rename(w->temp, w->path) || fail_run(e, w->path, "cannot be replaced", errno);
    if (ok) {
        free(w->temp);
        w->temp = NULL;
        ok = file_sync_place(w->path, e);
    }
    file_writer_abandon(w);
    return ok;
}

void file_writer_abandon(file_writer *w) {
    if (w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    free(w->temp);
    free(w->path);
    *w = (file_writer){.fd = -1};
}

// One level; an existing directory is fine, whoever made it.
static bool make_dir(const char *path, err *e) {
    if (!mkdir(path, 0777)) return file_sync_place(path, e);
    int code = errno;
    struct stat st;
    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode)) return true;
        return err_input(e, "%s: is not a directory; remove it or choose another", path);
    }
    return file_fail(e, path, "cannot make the directory", code);
}

bool file_make_dirs(const char *path, err *e) {
    if (!*path) return err_input(e, "the name of a directory is empty; give one");
    char *part = strdup(path);
    if (!part) return fail_run(e, path, "cannot make the directory", ENOMEM);
    bool ok = true;
    for (char *p = part + 1; ok && *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        ok = make_dir(part, e);
        *p = '/';
    }
    ok = ok && make_dir(part, e);
    free(part);
    return ok;
}
