#include "watch/watched.h"

#include "run/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 2, RUNS_MOST = 1000 };

static watched_run *find(const watched *w, const char *dir) {
    for (int i = 0; i < w->runs; i++)
        if (strcmp(tail_dir(w->run[i].tail), dir) == 0) return &w->run[i];
    return NULL;
}

static bool is_below(const char *dir, const char *above) {
    size_t n = strlen(above);
    while (n > 1 && above[n - 1] == '/') n--;
    return strncmp(dir, above, n) == 0 && dir[n] == '/';
}

static void done(watched_run *r) {
    tail_close(r->tail);
    story_free(r->story);
    live_view_free(r->live);
}

// `whole`: the directory in which a session keeps its state.
static void add(watched *w, const char *dir, const char *whole) {
    int at = 0;
    if (w->runs == RUNS_MOST || find(w, dir)) return;
    while (at < w->runs && !(w->run[at].awaits && is_below(dir, tail_dir(w->run[at].tail)))) at++;
    if (at < w->runs) {
        done(&w->run[at]);
    } else {
        w->run = realloc(w->run, (size_t)(w->runs + 1) * sizeof *w->run);
        NEED(w->run, "out of memory for a list of runs");
        w->runs++;
    }
    w->run[at] = (watched_run){.tail = tail_open(dir), .story = story_new(), .live = live_view_new(whole)};
}

static void add_run(watched *w, const char *dir) {
    char **parts = tail_parts(dir);
    watched_run *early = parts[0] ? find(w, dir) : NULL;
    if (early) early->awaits = true;
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
        if (before || w->runs > had) continue;
        add(w, w->dir[i], w->dir[i]);
        watched_run *added = find(w, w->dir[i]);
        if (added) added->awaits = true;
    }
    return w->runs > before;
}

void watched_open(watched *w, const char *const *dir, int dirs) {
    *w = (watched){.dir = dir, .dirs = dirs};
    watched_look(w);
}

void watched_close(watched *w) {
    for (int i = 0; i < w->runs; i++) done(&w->run[i]);
    free(w->run);
    *w = (watched){0};
}

bool watched_poll(watched_run *r) {
    bool news = tail_poll(r->tail) == TAIL_NEW;
    bool behind = r->cursor.life != tail_at(r->tail)->life; // rows were not to be had before
    if (news || behind) news |= story_take(r->story, r->tail, &r->cursor);
    return live_view_poll(r->live) || news;
}
