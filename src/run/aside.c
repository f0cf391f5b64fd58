#include "run/aside.h"

#include "base/file.h"
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The directory itself, without links and slashes at its end; the caller frees it. A link may name a directory that
// was set aside a moment ago.
static char *plain(const char *dir) {
    struct stat st;
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    char *path = strndup(dir, n);
    NEED(path, "out of memory for a path");
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    char *whole = link || strcmp(last, ".") == 0 || strcmp(last, "..") == 0 ? realpath(path, NULL) : NULL;
    if (!whole) return path;
    free(path);
    return whole;
}

// The number N of a name STEM.N; 0 where it is none.
static long number_of(const char *name, const char *stem) {
    size_t n = strlen(stem);
    if (strncmp(name, stem, n) != 0 || name[n] != '.') return 0;
    const char *digits = name + n + 1;
    if (*digits < '1' || *digits > '9' || digits[strspn(digits, "0123456789")] || strlen(digits) > 9) return 0;
    return strtol(digits, NULL, 10);
}

static char *numbered(const char *path, long n) {
    char *name;
    NEED(asprintf(&name, "%s.%ld", path, n) >= 0, "out of memory for a path");
    return name;
}

// The highest number behind the directory's name, of runs alone or of anything; 0 where there is none.
static long newest(const char *path, bool runs) {
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    NEED(folder, "out of memory for a path");
    long most = 0;
    DIR *d = opendir(folder);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", folder);
    for (const struct dirent *each; d && (each = readdir(d));) {
        long n = number_of(each->d_name, stem);
        char *name = n > most && runs ? numbered(path, n) : NULL;
        if (n > most && (!runs || run_was_in(name) || run_is(name))) most = n;
        free(name);
    }
    if (d) closedir(d);
    free(folder);
    return most;
}

// True where the working directory is this one or lies below it: it would move too, and relative paths with it.
static bool holds_us(const char *path) {
    errno = 0;
    char *whole = realpath(path, NULL), *here = getcwd(NULL, 0);
    NEED((whole && here) || errno != ENOMEM, "out of memory for a path");
    size_t n = whole ? strlen(whole) : 0;
    bool holds = n && here && strncmp(here, whole, n) == 0 && (!here[n] || here[n] == '/');
    free(whole);
    free(here);
    return holds;
}

// Renames to the first number that is free; the new name, or NULL.
static char *rename_on(const char *path, err *e) {
    enum { TRIES = 1000 };
    long n = newest(path, false);
    for (int i = 0; i < TRIES; i++) {
        char *to = numbered(path, ++n);
        if (rename(path, to) == 0) return to;
        bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR; // another process was faster
        if (errno == EBUSY || errno == EXDEV)                                   // a mount point
            err_input(e, "%s: holds an earlier run, and cannot be renamed: %s; choose a run.dir below it", path,
                strerror(errno));
        else if (!taken)
            file_fail(e, path, "the earlier run that is there cannot be renamed", errno);
        free(to);
        if (!taken) return NULL;
    }
    err_run(e, "%s: no number is free to set the earlier run aside; choose another run.dir", path);
    return NULL;
}

char *aside_set(const char *dir, err *e) {
    struct stat st;
    char *path = plain(dir), *to = NULL;
    if (holds_us(path))
        err_input(e,
            "%s: holds an earlier run and the working directory; start from outside it, or choose another "
            "run.dir",
            dir);
    else if (stat(path, &st) != 0)
        file_fail(e, dir, "cannot be read", errno);
    else
        to = rename_on(path, e);
    bool ok = to && (mkdir(path, st.st_mode & 07777) == 0 || errno == EEXIST ||
                        file_fail(e, path, "cannot make the directory", errno));
    if (!ok || !file_sync_place(path, e)) {
        free(to);
        to = NULL;
    }
    free(path);
    return to;
}

char *aside_newest(const char *dir) {
    char *path = plain(dir);
    long n = newest(path, true);
    char *name = n ? numbered(path, n) : NULL;
    free(path);
    return name;
}
