#include "watch/web/listing.h"

#include "base/err.h"
#include "run/run.h"
#include "watch/tail.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 4 };

static const char *last_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add(listing *l, const char *root, const char *dir, int parent) {
    size_t n = strlen(root);
    while (n && root[n - 1] == '/') n--; // as run_path has it
    if (l->count == LISTING_MOST) {
        l->full = true;
        return;
    }
    l->run = realloc(l->run, (size_t)(l->count + 1) * sizeof *l->run);
    NEED(l->run, "out of memory for a list of runs");
    const char *name = strncmp(dir, root, n) == 0 && dir[n] == '/' ? dir + n + 1 : last_of(dir);
    listed_run *r = &l->run[l->count++];
    *r = (listed_run){strdup(dir), strdup(name), parent};
    NEED(r->dir && r->name, "out of memory for a list of runs");
}

// A run, and its folds or members, which may have members of their own.
static void add_run(listing *l, const char *root, const char *dir, int parent) {
    int at = l->count;
    add(l, root, dir, parent);
    char **parts = at < LISTING_MOST ? tail_parts(dir) : NULL;
    for (int i = 0; parts && parts[i]; i++) add_run(l, root, parts[i], at);
    tail_parts_free(parts);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static bool is_directory(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// A run may lie in the directory of others.
static void search(listing *l, const char *root, const char *dir, int depth) {
    struct dirent **list = NULL;
    bool run = run_is(dir);
    if (run) add_run(l, root, dir, -1);
    int n = depth < DEPTH_MOST && !l->full ? scandir(dir, &list, NULL, by_name) : 0;
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char *path = name[0] == '.' || (run && run_owns(name)) ? NULL : run_path(dir, name);
        if (path && is_directory(path)) search(l, root, path, depth + 1);
        free(path);
        free(list[i]);
    }
    free(list);
}

listing listing_make(const char *dir) {
    listing l = {0};
    search(&l, dir, dir, 0);
    return l;
}

void listing_done(listing *l) {
    for (int i = 0; i < l->count; i++) {
        free(l->run[i].dir);
        free(l->run[i].name);
    }
    free(l->run);
    *l = (listing){0};
}
