#include "task/trials.h"

#include "run/results.h"
#include "run/run.h"
#include "task/chosen.h"
#include "task/describe.h"
#include "task/members.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 4, TRIALS_MOST = 100000 };

typedef bool use_fn(void *arg, const char *dir, err *e);

typedef struct {
    chosen plan;    // of the run that is asked about
    uint64_t *hash; // of the descriptions found
    int64_t count, room;
    use_fn *use; // gets the directory of each but the first; or NULL
    void *arg;
    err *e;
    bool failed; // with the reason in `e`
} trials;

typedef struct {
    chosen *plan;
    bool found, ok;
    err *e;
} finding;

static void take_plan(void *arg, const char *fold) {
    finding *f = arg;
    if (f->ok && !f->found) f->ok = members_plan(fold, f->plan, &f->found, f->e);
}

// Folds of a walk, which has no plan, are of the same data: any of them stands for it. `there` is false where there is
// none.
static bool read_plan(const char *dir, chosen *plan, bool *there, err *e) {
    finding f = {plan, .ok = true, .e = e};
    f.ok = members_plan(dir, plan, &f.found, e);
    bool listed = !f.ok || f.found || run_each_fold(dir, take_plan, &f, e);
    *there = f.found;
    return f.ok && listed;
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

// A description without seed and place. `there` is false where it is damaged.
static bool hash_description(const char *dir, uint64_t *hash, bool *there, err *e) {
    err why = {0};
    settings s;
    char *file = run_path(dir, "config.yaml");
    task_description d = {.file = file, .seed = "0", .after = {{"run.dir", "."}}};
    config *c = task_describe(&d, &s, &why);
    char *text = c ? task_description_text(c, &why) : NULL;
    *there = text != NULL;
    if (text) *hash = hash_lines(text);
    free(text);
    config_free(c);
    free(file);
    if (*there || why.kind != ERR_RUN) return true;
    *e = why;
    return false;
}

static void add(trials *t, const char *dir) {
    chosen plan;
    uint64_t hash;
    bool there = false;
    t->failed = t->failed || !read_plan(dir, &plan, &there, t->e);
    if (t->failed || !there || !same_data(&plan, &t->plan)) return;
    t->failed = !hash_description(dir, &hash, &there, t->e);
    if (t->failed || !there) return;
    for (int64_t i = 0; i < t->count; i++)
        if (t->hash[i] == hash) return;
    if (t->count == TRIALS_MOST) return;
    if (t->count == t->room) {
        t->room = 2 * t->room + 16;
        t->hash = realloc(t->hash, (size_t)t->room * sizeof *t->hash);
        NEED(t->hash, "out of memory for a list of runs");
    }
    t->hash[t->count++] = hash;
    if (t->use && t->count > 1) t->failed = !t->use(t->arg, dir, t->e);
}

static bool is_directory(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// Members of an ensemble and folds of a walk are of one description.
static void search(trials *t, const char *dir, int depth) {
    bool run = run_is(dir);
    if (run) add(t, dir);
    errno = 0;
    DIR *d = depth < DEPTH_MOST ? opendir(dir) : NULL;
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    if (errno && !t->failed) t->failed = !err_run(t->e, "%s: cannot be read: %s", dir, strerror(errno));
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
static bool find(const char *run, use_fn *use, void *arg, int64_t *count, err *e) {
    trials t = {.use = use, .arg = arg, .e = e};
    errno = 0;
    char *whole = realpath(run, NULL);
    NEED(whole || errno != ENOMEM, "out of memory for a path");
    bool part = false;
    t.failed = whole && !read_plan(run, &t.plan, &part, e);
    while (part && !t.failed) {
        char *own = strdup(whole);
        NEED(own, "out of memory for a path");
        part = cut_name(whole);
        if (!part) add(&t, own);
        free(own);
        if (!part) search(&t, whole, 0);
    }
    free(whole);
    free(t.hash);
    *count = t.count > 1 ? t.count : 1;
    return !t.failed;
}

bool trials_count(const char *run, int64_t *count, err *e) {
    return find(run, NULL, NULL, count, e);
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

static bool take_backtest(void *arg, const char *dir, err *e) {
    compared *c = arg;
    json_t *doc;
    if (!results_read(dir, RESULTS_BACKTEST, &doc, e)) return e->kind != ERR_RUN;
    if (!doc) return true;
    json_t *equity = results_get(doc, "daily.equity");
    bool same = equity && json_equal(results_get(doc, "daily.day"), results_get(c->daily, "day"));
    if (same && json_array_size(equity) == (size_t)c->days + 1) compare(c, equity);
    json_decref(doc);
    return true;
}

bool trials_overfit(const char *run, json_t *daily, overfit *to, int64_t *compared_runs, err *e) {
    int64_t unused;
    json_t *equity = results_get(daily, "equity");
    compared c = {.daily = daily, .days = (int64_t)json_array_size(equity) - 1};
    *compared_runs = 0;
    if (c.days < 2 * OVERFIT_BLOCKS) return true;
    compare(&c, equity);
    if (c.count && !find(run, take_backtest, &c, &unused, e)) {
        free(c.back);
        return false;
    }
    double *table = malloc((size_t)(c.days * c.count + 1) * sizeof *table);
    NEED(table, "out of memory for the returns of %lld runs", (long long)c.count);
    for (int64_t k = 0; k < c.count; k++)
        for (int64_t i = 0; i < c.days; i++) table[i * c.count + k] = c.back[k * c.days + i];
    err why = {0};
    if (c.count > 1 && overfit_make(table, c.days, c.count, OVERFIT_BLOCKS, to, &why)) *compared_runs = c.count;
    free(table);
    free(c.back);
    return why.kind != ERR_RUN || err_run(e, "%s", why.text);
}
