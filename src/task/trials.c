#include "task/trials.h"

#include "run/results.h"
#include "run/run.h"
#include "task/chosen.h"
#include "task/describe.h"
#include "task/members.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 4, TRIALS_MOST = 100000 };

typedef void use_fn(void *arg, const char *dir);

typedef struct {
    chosen plan;    // of the run that is asked about
    uint64_t *hash; // of the descriptions found
    int64_t count, room;
    use_fn *use; // gets the directory of each but the first; or NULL
    void *arg;
} trials;

typedef struct {
    chosen *plan;
    bool found;
} finding;

static void take_plan(void *arg, const char *fold) {
    finding *f = arg;
    f->found = f->found || members_plan(fold, f->plan);
}

// Folds of a walk, which has no plan, are of the same data: any of them stands for it.
static bool read_plan(const char *dir, chosen *plan) {
    finding f = {plan, members_plan(dir, plan)};
    if (!f.found) run_each_fold(dir, take_plan, &f);
    return f.found;
}

// By the sum of the file or bars; data that come from no file by their samples.
static bool same_data(const chosen *a, const chosen *b) {
    if (a->summed || b->summed) return a->summed == b->summed && a->data_sum == b->data_sum;
    return a->samples == b->samples && a->labels == b->labels && a->targets == b->targets;
}

// A sum over the lines of a description, each with the sections that it stands in: keys stand in the order in which
// they were given, which does not matter.
static uint64_t hash_lines(char *text) {
    enum { DEEPEST = 16, INDENT = 2 };
    uint64_t above[DEEPEST + 1] = {0}, sum = 0;
    for (char *next = text, *line; (line = strsep(&next, "\n"));) {
        size_t depth = strspn(line, " ") / INDENT;
        if (depth >= DEEPEST) depth = DEEPEST - 1;
        above[depth + 1] = chosen_hash(line, strlen(line)) + 31 * above[depth];
        sum += chosen_hash(&above[depth + 1], sizeof *above);
    }
    return sum;
}

// A description without seed and place.
static bool hash_description(const char *dir, uint64_t *hash) {
    err unused;
    settings s;
    char *file = run_path(dir, "config.yaml");
    task_description d = {.file = file, .seed = "0", .after = {{"run.dir", "."}}};
    config *c = task_describe(&d, &s, &unused);
    char *text = c ? task_description_text(c, &unused) : NULL;
    if (text) *hash = hash_lines(text);
    bool ok = text != NULL;
    free(text);
    config_free(c);
    free(file);
    return ok;
}

static void add(trials *t, const char *dir) {
    chosen plan;
    uint64_t hash;
    if (!read_plan(dir, &plan) || !same_data(&plan, &t->plan) || !hash_description(dir, &hash)) return;
    for (int64_t i = 0; i < t->count; i++)
        if (t->hash[i] == hash) return;
    if (t->count == TRIALS_MOST) return;
    if (t->count == t->room) {
        t->room = 2 * t->room + 16;
        t->hash = realloc(t->hash, (size_t)t->room * sizeof *t->hash);
        NEED(t->hash, "out of memory for a list of runs");
    }
    t->hash[t->count++] = hash;
    if (t->use && t->count > 1) t->use(t->arg, dir);
}

static bool is_directory(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// Members of an ensemble and folds of a walk are of one description.
static void search(trials *t, const char *dir, int depth) {
    bool run = run_is(dir);
    if (run) add(t, dir);
    DIR *d = depth < DEPTH_MOST ? opendir(dir) : NULL;
    for (const struct dirent *each; d && (each = readdir(d));) {
        if (each->d_name[0] == '.' || (run && run_owns(each->d_name))) continue;
        char *path = run_path(dir, each->d_name);
        if (is_directory(path)) search(t, path, depth + 1);
        free(path);
    }
    if (d) closedir(d);
}

// Cuts the last name off a path; true where that leaves the directory of a run whose member or fold it named.
static bool cut_name(char *path) {
    char *slash = strrchr(path, '/');
    bool owned = run_owns(slash + 1);
    slash[slash == path] = 0;
    return owned && run_is(path);
}

// Finds the trials; that of the run itself, or of the whole that it is a part of, comes first.
static int64_t find(const char *run, use_fn *use, void *arg) {
    trials t = {.use = use, .arg = arg};
    char *whole = realpath(run, NULL);
    bool part = whole && read_plan(run, &t.plan);
    while (part) {
        char *own = strdup(whole);
        NEED(own, "out of memory for a path");
        part = cut_name(whole);
        if (!part) add(&t, own);
        free(own);
        if (!part) search(&t, whole, 0);
    }
    free(whole);
    free(t.hash);
    return t.count > 1 ? t.count : 1;
}

int64_t trials_count(const char *run) {
    return find(run, NULL, NULL);
}

// Overfitting

typedef struct {
    json_t *daily; // of the run's own backtest
    double *back;  // [trials, days], returns
    int64_t days, count, room;
} compared;

// Adds the returns of a backtest, unless one of them means nothing.
static void compare(compared *c, json_t *equity) {
    if (c->count == c->room) {
        c->room = 2 * c->room + 4;
        c->back = realloc(c->back, (size_t)(c->room * c->days) * sizeof *c->back);
        NEED(c->back, "out of memory for the returns of %lld runs", (long long)c->room);
    }
    for (int64_t i = 0; i < c->days; i++) {
        double before = results_number(json_array_get(equity, (size_t)i)),
               is = results_number(json_array_get(equity, (size_t)i + 1));
        if (!(before > 0) || !(is > 0)) return;
        c->back[c->count * c->days + i] = is / before - 1;
    }
    c->count++;
}

static void take_backtest(void *arg, const char *dir) {
    compared *c = arg;
    json_t *doc;
    err unused;
    if (!results_read(dir, RESULTS_BACKTEST, &doc, &unused) || !doc) return;
    json_t *equity = results_get(doc, "daily.equity");
    bool same = equity && json_equal(results_get(doc, "daily.day"), results_get(c->daily, "day"));
    if (same && json_array_size(equity) == (size_t)c->days + 1) compare(c, equity);
    json_decref(doc);
}

int64_t trials_overfit(const char *run, json_t *daily, overfit *to) {
    json_t *equity = results_get(daily, "equity");
    compared c = {.daily = daily, .days = (int64_t)json_array_size(equity) - 1};
    if (c.days < 2 * OVERFIT_BLOCKS) return 0;
    compare(&c, equity);
    if (c.count) find(run, take_backtest, &c);
    double *table = malloc((size_t)(c.days * c.count + 1) * sizeof *table);
    NEED(table, "out of memory for the returns of %lld runs", (long long)c.count);
    for (int64_t k = 0; k < c.count; k++)
        for (int64_t i = 0; i < c.days; i++) table[i * c.count + k] = c.back[k * c.days + i];
    bool ok = c.count > 1 && overfit_make(table, c.days, c.count, OVERFIT_BLOCKS, to, NULL);
    free(table);
    free(c.back);
    return ok ? c.count : 0;
}
