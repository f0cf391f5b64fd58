#include "fault/trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { OPEN_MOST = 16, PATTERN_MOST = 64, PATH_LENGTH = 512, BLOCK = 1 << 16 };

// Removing

static int remove_one(const char *path, const struct stat *is, int kind, struct FTW *at) {
    (void)is;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_matches(const char *pattern) {
    glob_t found;
    int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
    assert_true(rc == 0 || rc == GLOB_NOMATCH);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        if (nftw(found.gl_pathv[i], remove_one, OPEN_MOST, FTW_DEPTH | FTW_PHYS) != 0)
            fail_msg("%s: cannot be removed: %s", found.gl_pathv[i], strerror(errno));
    globfree(&found);
}

void trees_remove(const char *patterns) {
    char pattern[PATTERN_MOST];
    for (int used; sscanf(patterns, "%63s%n", pattern, &used) == 1; patterns += used) remove_matches(pattern);
}

// Copying

static void join(char path[PATH_LENGTH], const char *dir, const char *name) {
    assert_true(snprintf(path, PATH_LENGTH, "%s/%s", dir, name) < PATH_LENGTH);
}

static void copy_file(const char *from, const char *to, mode_t mode) {
    static char block[BLOCK];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (in < 0 || out < 0) fail_msg("%s: cannot be copied to %s: %s", from, to, strerror(errno));
    for (ssize_t n; (n = read(in, block, sizeof block)) != 0;) assert_true(n > 0 && write(out, block, (size_t)n) == n);
    assert_int_equal(close(in) | close(out), 0);
}

// The next name of a directory; NULL at its end.
static const char *next_name(DIR *d) {
    struct dirent *e;
    do e = readdir(d);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e ? e->d_name : NULL;
}

static DIR *open_dir(const char *path) {
    DIR *d = opendir(path);
    if (!d) fail_msg("%s: cannot be listed: %s", path, strerror(errno));
    return d;
}

void trees_copy(const char *from, const char *to) {
    char inner[PATH_LENGTH], outer[PATH_LENGTH];
    struct stat is;
    if (stat(from, &is) != 0) fail_msg("%s: %s", from, strerror(errno));
    if (!S_ISDIR(is.st_mode)) {
        copy_file(from, to, is.st_mode & 0777);
        return;
    }
    if (mkdir(to, 0777) != 0) fail_msg("%s: %s", to, strerror(errno));
    DIR *d = open_dir(from);
    for (const char *name; (name = next_name(d));) {
        join(inner, from, name);
        join(outer, to, name);
        trees_copy(inner, outer);
    }
    closedir(d);
}

// Comparing

static bool is_dir(const char *path) {
    struct stat is;
    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static bool equal_files(const char *a, const char *b) {
    FILE *x = fopen(a, "r"), *y = fopen(b, "r");
    int c = EOF, d = EOF;
    do {
        c = x ? getc(x) : EOF;
        d = y ? getc(y) : EOF;
    } while (c == d && c != EOF);
    bool equal = x && y && c == d && !ferror(x) && !ferror(y);
    if (x) fclose(x);
    if (y) fclose(y);
    return equal;
}

static int count_names(const char *path, const char *except) {
    int n = 0;
    DIR *d = open_dir(path);
    for (const char *name; (name = next_name(d));) n += !except || strcmp(name, except) != 0;
    closedir(d);
    return n;
}

bool trees_equal(const char *a, const char *b, const char *except) {
    char x[PATH_LENGTH], y[PATH_LENGTH];
    if (is_dir(a) != is_dir(b)) return false;
    if (!is_dir(a)) return equal_files(a, b);
    bool equal = count_names(a, except) == count_names(b, except);
    DIR *d = open_dir(a);
    for (const char *name; equal && (name = next_name(d));) {
        join(x, a, name);
        join(y, b, name);
        equal = (except && strcmp(name, except) == 0) || trees_equal(x, y, except);
    }
    closedir(d);
    return equal;
}
