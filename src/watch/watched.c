#include "watch/watched.h"

#include "run/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 2, RUNS_MOST = 1000 };

static bool is_known(const watched *w, const char *dir) {
    for (int i = 0; i < w->runs; i++)
        if (strcmp(tail_dir(w->run[i].tail), dir) == 0) return true;
    return false;
}

// `whole`: the directory in which a session keeps its state.
static void add(watched *w, const char *dir, const char *whole) {
    if (w->runs == RUNS_MOST || is_known(w, dir)) return;
    w->run = realloc(w->run, (size_t)(w->runs + 1) * sizeof *w->run);
    NEED(w->run, "out of memory for a list of runs");
    w->run[w->runs++] = (watched_run){.tail = tail_open(dir), .story = story_new(), .live = live_view_new(whole)};
}

static void add_run(watched *w, const char *dir) {
    char **parts = tail_parts(dir);
    for (char **each = parts; *each; each++) add(w, *each, dir);
    if (!parts[0]) add(w, dir, dir);
    tail_parts_free(parts);
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_visible(const struct dirent *d) {
    return d->d_name[0] != '.';
}

// The runs below a directory, in the order of their names.
static void add_below(watched *w, const char *dir, int depth) {
    struct dirent **names;
    int n = scandir(dir, &names, is_visible, versionsort);
    for (int i = 0; i < n; i++) {
        char *path = run_path(dir, names[i]->d_name);
        if (run_is(path))
            add_run(w, path);
        else if (depth < DEPTH_MOST && is_directory(path))
            add_below(w, path, depth + 1);
        free(path);
        free(names[i]);
    }
    if (n >= 0) free(names);
}

bool watched_look(watched *w) {
    int before = w->runs;
    for (int i = 0; i < w->dirs; i++) {
        int had = w->runs;
        if (run_is(w->dir[i]))
            add_run(w, w->dir[i]);
        else
            add_below(w, w->dir[i], 1);
        if (!before && w->runs == had) add(w, w->dir[i], w->dir[i]);
    }
    return w->runs > before;
}

void watched_open(watched *w, const char *const *dir, int dirs) {
    *w = (watched){.dir = dir, .dirs = dirs};
    watched_look(w);
}

void watched_close(watched *w) {
    for (int i = 0; i < w->runs; i++) {
        tail_close(w->run[i].tail);
        story_free(w->run[i].story);
        live_view_free(w->run[i].live);
    }
    free(w->run);
    *w = (watched){0};
}

bool watched_poll(watched_run *r) {
    bool news = tail_poll(r->tail) == TAIL_NEW;
    bool behind = r->cursor.life != tail_at(r->tail)->life; // rows were not to be had before
    if (news || behind) news |= story_take(r->story, r->tail, &r->cursor);
    return live_view_poll(r->live) || news;
}
