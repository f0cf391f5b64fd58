// tradewind runs: the runs below a directory, a line each.
#include "base/json.h"
#include "cli/cli.h"
#include "cli/look.h"
#include "data/when.h"
#include "run/run.h"
#include "task/members.h"
#include "task/walk.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 4, RUNS_MOST = 100000 };

typedef struct {
    char **dir;
    int count;
} found;

static bool is_directory(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add_run(const char *dir, found *f) {
    if (f->count == RUNS_MOST) return;
    f->dir = realloc(f->dir, (size_t)(f->count + 1) * sizeof *f->dir);
    NEED(f->dir && (f->dir[f->count] = strdup(dir)), "out of memory for a list of runs");
    f->count++;
}

// A run, and the members of an ensemble.
static void add_members(const char *dir, found *f) {
    add_run(dir, f);
    for (int k = 1, members = members_of(dir); k <= members; k++) {
        char *path = members_dir(dir, k);
        if (run_is(path)) add_run(path, f);
        free(path);
    }
}

static void add_fold(void *arg, const char *dir) {
    add_members(dir, arg);
}

// A run may lie in the directory of others, as with run.dir: runs.
static void search(const char *dir, int depth, found *f) {
    bool run = run_is(dir);
    if (run) add_members(dir, f);
    if (run) run_each_fold(dir, add_fold, f);
    DIR *d = depth < DEPTH_MOST ? opendir(dir) : NULL;
    NEED(d || depth >= DEPTH_MOST || errno != ENOMEM, "out of memory to look into %s", dir);
    for (const struct dirent *each; d && (each = readdir(d));) {
        if (each->d_name[0] == '.' || (run && run_owns(each->d_name))) continue;
        char *path = run_path(dir, each->d_name);
        if (is_directory(path)) search(path, depth + 1, f);
        free(path);
    }
    if (d) closedir(d);
}

static int by_name(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static void print_json(const char *dir, const look *l) {
    const db_summary *s = &l->sum;
    json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "run", dir, "status", l->status, "model", l->model,
        "started", json_number(s->started), "epochs", (json_int_t)s->epochs, "best_epoch", (json_int_t)s->best_epoch);
    look_add_json(l, all);
    json_line(stdout, all);
}

// Cells keep to their columns; names of directories have the room that the longest needs.
#define ROW "%-*s %-10s %-18s %7s %6s %10s %18s %10s  %s\n"

static void print_look(const char *dir, const look *l, int width) {
    const db_summary *s = &l->sum;
    char when[32], model[48], loss[16] = "-", metric[32] = "-", epochs[24], best[24] = "-", seconds[32];
    if (s->best_epoch && !isnan(l->loss)) snprintf(loss, sizeof loss, "%.4g", l->loss);
    if (s->best_epoch && l->title) snprintf(metric, sizeof metric, "%s %.4g", l->title, l->value);
    snprintf(model, sizeof model, "%s", l->model);
    if (l->members) snprintf(model, sizeof model, "%s x%d", l->model, l->members);
    if (l->folds) snprintf(model, sizeof model, "%s walk", l->model);
    if (l->agent[0]) snprintf(model, sizeof model, "%s", l->agent);
    when_text(when, sizeof when, (int64_t)s->started / 60 * 60);
    snprintf(epochs, sizeof epochs, "%lld", (long long)s->epochs);
    if (s->best_epoch) snprintf(best, sizeof best, "%lld", (long long)s->best_epoch);
    snprintf(seconds, sizeof seconds, "%.1f", s->seconds);
    printf(ROW, width, dir, l->status, model, epochs, best, loss, metric, seconds, when);
}

// A run that cannot be read is a line like the others.
static void print_run(const char *dir, int width, bool json) {
    look l;
    err why;
    bool read = look_at_run(dir, &l, &why);
    if (read && json)
        print_json(dir, &l);
    else if (read)
        print_look(dir, &l, width);
    else if (json)
        json_line(stdout, json_pack("{s:s, s:s, s:s}", "run", dir, "status", "unreadable", "why", why.text));
    else
        printf("%-*s %s\n", width, dir, why.text);
}

// Columns for the names of directories, within bounds.
static int widest(const found *f) {
    size_t most = 32;
    for (int i = 0; i < f->count; i++)
        if (strlen(f->dir[i]) > most) most = strlen(f->dir[i]);
    return most > 80 ? 80 : (int)most;
}

static bool list(const cli_options *o, err *e) {
    const char *dir = o->words ? o->word[0] : "runs";
    found f = {0};
    struct stat st;
    if (stat(dir, &st) != 0) return err_input(e, "%s: cannot be read: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return err_input(e, "%s: is not a directory", dir);
    search(dir, 0, &f);
    int width = widest(&f);
    if (f.count) qsort(f.dir, (size_t)f.count, sizeof *f.dir, by_name);
    if (f.count && !o->json)
        printf(ROW, width, "run", "status", "model", "epochs", "best", "val. loss", "val. metric", "seconds",
            "started (UTC)");
    for (int i = 0; i < f.count; i++) print_run(f.dir[i], width, o->json);
    for (int i = 0; i < f.count; i++) free(f.dir[i]);
    free(f.dir);
    return f.count > 0 || err_input(e, "%s: no runs found in it", dir);
}

const cli_command cli_runs = {"runs", "[DIR]", "a table of the runs below a directory (default: runs)",
    "Status is running, done, stopped (by a signal), failed, or killed (ended without a word).\n", NULL, NULL, 1, list,
    NULL, NULL};
