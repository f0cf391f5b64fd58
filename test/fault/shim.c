// A library that is loaded before the C library and makes one call of a kind go wrong: the n-th fails, is cut short, or
// kills the process. Settings come from the environment:
//
//   FAULT_CALL    write, sync, rename, unlink, open, close, read, mkdir, truncate, mmap or alloc; other calls pass
//   FAULT_AT      number of the call, from 1; 0: none, calls are only counted
//   FAULT_HOW     fail, short (half of a write or a read) or kill (SIGKILL before the call)
//   FAULT_COUNT   file that gets, at the end of the process, the number of calls in all, of those before the mark, and
//                 of calls that may have changed a file or a folder anywhere: opened for writing, made, renamed,
//                 removed
//   FAULT_PLACES  file that gets the number of each call that comes from a new place: no call before it has had the
//   same
//                 chain of callers
//   FAULT_MARK    text; the mark is the first write that holds it. Without one: the end
//   FAULT_TRACE   file that gets a line for each sync, rename and unlink, in order: "sync PATH"
//   FAULT_CLOCK   microseconds by which each reading of the monotonic clock is later than the one before; what goes by
//                 the clock then happens at the same calls in every run
//   FAULT_STEM    commands are forks of this process, which waits for orders (shim_stem.h)
//   FAULT_STATFS  type of the file system, in hex, that files below the working directory seem to be on: 6969 for NFS
//
// Counted are calls on files below the working directory, where a test runs; allocations and mappings are counted
// wherever they come from. Not counted: standard output and error, and the C library's reading of its streams.
//
// A sync is counted and noted, and does nothing: a killed process leaves its files to the kernel, synced or not.
#include "fault/shim_stem.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef enum { NONE, WRITE, SYNC, RENAME, UNLINK, OPEN, CLOSE, READ, MKDIR, TRUNCATE, MMAP, ALLOC } call;
typedef enum { FAIL, SHORT, KILL } manner;

enum { CALLERS_MOST = 64, PLACES_MOST = 1 << 16 };

static const char *const names[] = {
    "", "write", "sync", "rename", "unlink", "open", "close", "read", "mkdir", "truncate", "mmap", "alloc"};

static call which;
static manner how;
static long at;
static atomic_long count, marked = -1, changes;
static const char *mark;
static long clock_by;
static atomic_long clock_read;
static char here[PATH_MAX];
static size_t here_length;
static int trace = -1, places = -1;
static bool ready;
static bool grows; // a trunk: the call forks, and goes wrong in the branch

static void set_fault(const char *name, const char *way, long number) {
    which = NONE;
    for (int i = 1; i <= ALLOC; i++)
        if (strcmp(name, names[i]) == 0) which = (call)i;
    how = strcmp(way, "short") == 0 ? SHORT : strcmp(way, "kill") == 0 ? KILL : FAIL;
    at = number;
}

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULT_CALL"), *n = getenv("FAULT_AT"), *way = getenv("FAULT_HOW"),
               *log = getenv("FAULT_TRACE"), *pace = getenv("FAULT_CLOCK"), *list = getenv("FAULT_PLACES");
    void *first[1];
    stem_order o;
    set_fault(name ? name : "", way ? way : "fail", n ? atol(n) : 0);
    mark = getenv("FAULT_MARK");
    clock_by = pace ? atol(pace) : 0;
    if (!getcwd(here, sizeof here)) here[0] = 0;
    here_length = strlen(here);
    if (log) trace = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (list) places = (int)syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (list) backtrace(first, 1); // the first one allocates
    if (stem_wait(&o)) {
        set_fault(o.call, o.how, (long)o.at);
        grows = o.act == STEM_GROW;
    }
    ready = true;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULT_COUNT");
    char text[96];
    long all = atomic_load(&count), before = atomic_load(&marked);
    int n = snprintf(text, sizeof text, "%ld %ld %ld\n", all, before < 0 ? all : before, atomic_load(&changes));
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd >= 0 && syscall(SYS_write, fd, text, (size_t)n) != n) abort();
}

// Memory that is short ends the program without its destructors.
void _exit(int status) {
    end();
    for (;;) syscall(SYS_exit_group, status);
}

// True where no call before had these callers.
static bool is_new(void) {
    static _Atomic uint64_t seen[PLACES_MOST];
    void *caller[CALLERS_MOST];
    uint64_t key = 1469598103934665603u;
    int n = backtrace(caller, CALLERS_MOST);
    for (int i = 0; i < n; i++) key = (key ^ (uintptr_t)caller[i]) * 1099511628211u;
    for (uint64_t i = key >> 48;; i = (i + 1) % PLACES_MOST) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&seen[i], &there, key)) return true;
        if (there == key) return false;
    }
}

static void note_place(long number) {
    char text[32];
    if (places < 0 || !is_new()) return;
    int n = snprintf(text, sizeof text, "%ld\n", number);
    if (syscall(SYS_write, places, text, (size_t)n) != n) abort();
}

// True in the branch of a trunk; false in the trunk, which has the next call to fork at then.
static bool branches(void) {
    stem_order next;
    if (atomic_load(&changes) || !stem_may_branch()) kill(getpid(), SIGKILL);
    grows = !stem_branch(&next);
    if (grows) at = (long)next.at;
    return !grows;
}

// True where this call is to go wrong. A kill does not come back.
static bool strikes(call c) {
    if (!ready || c != which) return false;
    long number = atomic_fetch_add(&count, 1) + 1;
    note_place(number);
    if (number != at || (grows && !branches())) return false;
    if (how == KILL) kill(getpid(), SIGKILL);
    return true;
}

static bool is_below(const char *path) {
    return path[0] != '/' || (strncmp(path, here, here_length) == 0 && path[here_length] == '/');
}

// The path of a descriptor; false where it is no file below the working directory.
static bool path_of(int fd, char path[PATH_MAX]) {
    char link[64];
    if (fd <= STDERR_FILENO || fd == trace) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return n > 0 && path[0] == '/' && is_below(path);
}

static void note(const char *what, const char *path) {
    char line[PATH_MAX + 16];
    if (trace < 0) return;
    const char *name =
        strncmp(path, here, here_length) == 0 && path[here_length] == '/' ? path + here_length + 1 : path;
    int n = snprintf(line, sizeof line, "%s %s\n", what, name);
    if (syscall(SYS_write, trace, line, (size_t)n) != n) abort();
}

// Writing

static void note_mark(const void *data, size_t bytes) {
    if (!mark || atomic_load(&marked) >= 0 || !memmem(data, bytes, mark, strlen(mark))) return;
    atomic_store(&marked, atomic_load(&count));
}

static bool write_strikes(int fd, const void *data, size_t *bytes) {
    char path[PATH_MAX];
    note_mark(data, *bytes);
    if (which != WRITE || !path_of(fd, path) || !strikes(WRITE)) return false;
    if (how == SHORT && *bytes > 1) {
        *bytes /= 2;
        return false;
    }
    errno = ENOSPC;
    return true;
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (write_strikes(fd, data, &bytes)) return -1;
    return syscall(SYS_write, fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t to) {
    if (write_strikes(fd, data, &bytes)) return -1;
    return syscall(SYS_pwrite64, fd, data, bytes, to);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t to) {
    if (write_strikes(fd, data, &bytes)) return -1;
    return syscall(SYS_pwrite64, fd, data, bytes, to);
}

// Reading

static bool read_strikes(int fd, size_t *bytes) {
    char path[PATH_MAX];
    if (which != READ || !path_of(fd, path) || !strikes(READ)) return false;
    if (how == SHORT && *bytes > 1) {
        *bytes /= 2;
        return false;
    }
    errno = EIO;
    return true;
}

ssize_t read(int fd, void *to, size_t bytes) {
    if (read_strikes(fd, &bytes)) return -1;
    return syscall(SYS_read, fd, to, bytes);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t from) {
    if (read_strikes(fd, &bytes)) return -1;
    return syscall(SYS_pread64, fd, to, bytes, from);
}

// Names and the disk

static int sync_file(int fd) {
    char path[PATH_MAX];
    bool counts = path_of(fd, path) || strcmp(path, here) == 0;
    if (counts && strikes(SYNC)) {
        errno = EIO;
        return -1;
    }
    if (counts) note("sync", path);
    return 0;
}

int fsync(int fd) {
    return sync_file(fd);
}

int fdatasync(int fd) {
    return sync_file(fd);
}

int rename(const char *from, const char *to) {
    atomic_fetch_add(&changes, 1);
    if (is_below(to) && strikes(RENAME)) {
        errno = EIO;
        return -1;
    }
    if (is_below(to)) note("rename", to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
    atomic_fetch_add(&changes, 1);
    if (is_below(path) && strikes(UNLINK)) {
        errno = EIO;
        return -1;
    }
    if (is_below(path)) note("unlink", path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int dir, const char *path, int flags) {
    atomic_fetch_add(&changes, 1);
    if (is_below(path) && strikes(UNLINK)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

int statfs(const char *path, struct statfs *to) {
    const char *type = getenv("FAULT_STATFS");
    int rc = (int)syscall(SYS_statfs, path, to);
    if (rc == 0 && type && is_below(path)) to->f_type = (__fsword_t)strtoul(type, NULL, 16);
    return rc;
}

int mkdir(const char *path, mode_t mode) {
    atomic_fetch_add(&changes, 1);
    if (is_below(path) && strikes(MKDIR)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

// A file that is closed is closed, whatever the call says.
int close(int fd) {
    char path[PATH_MAX];
    bool fails = which == CLOSE && path_of(fd, path) && strikes(CLOSE);
    int rc = (int)syscall(SYS_close, fd);
    if (!fails) return rc;
    errno = EIO;
    return -1;
}

#define TRUNCATE_AS(name)                                                                                              \
    int name(int fd, off_t bytes) {                                                                                    \
        char path[PATH_MAX];                                                                                           \
        if (path_of(fd, path) && strikes(TRUNCATE)) {                                                                  \
            errno = EIO;                                                                                               \
            return -1;                                                                                                 \
        }                                                                                                              \
        return (int)syscall(SYS_ftruncate, fd, bytes);                                                                 \
    }

TRUNCATE_AS(ftruncate)
TRUNCATE_AS(ftruncate64)

static bool open_strikes(const char *path, int flags) {
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) atomic_fetch_add(&changes, 1);
    if (!is_below(path) || !strikes(OPEN)) return false;
    errno = EMFILE;
    return true;
}

static mode_t mode_of(int flags, va_list args) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN_AS(name)                                                                                                  \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode_t mode = mode_of(flags, args);                                                                            \
        va_end(args);                                                                                                  \
        if (open_strikes(path, flags)) return -1;                                                                      \
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);                                                  \
    }

OPEN_AS(open)
OPEN_AS(open64)

int openat(int dir, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    if (open_strikes(path, flags)) return -1;
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

DIR *opendir(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d) syscall(SYS_close, fd);
    return d;
}

// The C library's own fopen opens files without the functions above.
FILE *fopen(const char *path, const char *mode) {
    int flags = mode[0] == 'r'   ? O_RDONLY
                : mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                                 : O_WRONLY | O_CREAT | O_APPEND;
    if (strchr(mode, '+')) flags = (flags & ~(O_RDONLY | O_WRONLY)) | O_RDWR;
    if (strchr(mode, 'e')) flags |= O_CLOEXEC;
    int fd = open(path, flags, 0666);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    return fopen(path, mode);
}

// Memory

#define MMAP_AS(name)                                                                                                  \
    void *name(void *to, size_t bytes, int protection, int flags, int fd, off_t from) {                                \
        if (strikes(MMAP)) {                                                                                           \
            errno = ENOMEM;                                                                                            \
            return MAP_FAILED;                                                                                         \
        }                                                                                                              \
        return (void *)syscall(SYS_mmap, to, bytes, protection, flags, fd, from);                                      \
    }

MMAP_AS(mmap)
MMAP_AS(mmap64)

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t to, size_t bytes);

static bool alloc_strikes(void) {
    if (!strikes(ALLOC)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) {
    return alloc_strikes() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    return alloc_strikes() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes) {
    return alloc_strikes() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t to, size_t bytes) {
    return alloc_strikes() ? NULL : __libc_memalign(to, bytes);
}

int posix_memalign(void **out, size_t to, size_t bytes) {
    if (alloc_strikes()) return ENOMEM;
    *out = __libc_memalign(to, bytes);
    return *out ? 0 : ENOMEM;
}

// Time

int clock_gettime(clockid_t id, struct timespec *to) {
    if (!clock_by || id != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, id, to);
    long now = (atomic_fetch_add(&clock_read, 1) + 1) * clock_by;
    *to = (struct timespec){.tv_sec = 1000 + now / 1000000, .tv_nsec = now % 1000000 * 1000};
    return 0;
}
