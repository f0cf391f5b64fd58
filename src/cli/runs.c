// tradewind runs: the runs below a directory, a line each.
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/look.h"
#include "data/when.h"
#include "run/outline.h"
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
    bool failed; // the members of one could not be found: `why`
    err why;
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
    int members;
    add_run(dir, f);
    if (!members_of(dir, &members, &f->why)) f->failed = true;
    for (int k = 1; k <= members; k++) {
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
    if (run && !run_each_fold(dir, add_fold, f, &f->why)) f->failed = true;
    errno = 0;
    DIR *d = depth < DEPTH_MOST ? opendir(dir) : NULL;
    NEED(d || depth >= DEPTH_MOST || errno != ENOMEM, "out of memory to look into %s", dir);
    if (errno == EMFILE || errno == ENFILE) f->failed = !file_fail(&f->why, dir, "cannot be read", errno);
    for (const struct dirent *each; d && (each = readdir(d));) {
        if (each->d_name[0] == '.' || (run && run_owns(each->d_name))) continue;
        char *path = run_path(dir, each->d_name);
        if (is_directory(path)) search(path, depth + 1, f);
        free(path);
    }
    if (d) closedir(d);
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

// A walk and an ensemble train nothing themselves: their folds and members do.
static bool trains(const look *l) {
    return !l->folds && !l->members;
}

static void print_look(const char *dir, const look *l, int width) {
    const db_summary *s = &l->sum;
    char when[32], model[48], loss[16] = "-", metric[32] = "-", epochs[24] = "-", best[24] = "-", seconds[32] = "-";
    if (s->best_epoch && !isnan(l->loss)) snprintf(loss, sizeof loss, "%.4g", l->loss);
    if (s->best_epoch && l->title) snprintf(metric, sizeof metric, "%s %.4g", l->title, l->value);
    const char *what = l->agent[0] ? l->agent : l->model;
    snprintf(model, sizeof model, "%s%s", what, l->folds ? " walk" : "");
    if (l->members) snprintf(model, sizeof model, "%s x%d", what, l->members);
    when_text(when, sizeof when, (int64_t)s->started / 60 * 60);
    if (trains(l)) snprintf(epochs, sizeof epochs, "%lld", (long long)s->epochs);
    if (s->best_epoch) snprintf(best, sizeof best, "%lld", (long long)s->best_epoch);
    if (trains(l)) snprintf(seconds, sizeof seconds, "%.1f", s->seconds);
    printf(ROW, width, dir, l->status, model, epochs, best, loss, metric, seconds, when);
}

// Sorting and filters

// A run of the table; one that cannot be read has a reason.
typedef struct {
    char *dir;
    bool read;
    look look;
    err why;
} row;

// A run that cannot be read is a line like the others.
static void print_run(const row *r, int width, bool json) {
    if (r->read && json)
        print_json(r->dir, &r->look);
    else if (r->read)
        print_look(r->dir, &r->look, width);
    else if (json)
        json_line(stdout, json_pack("{s:s, s:s, s:s}", "run", r->dir, "status", "unreadable", "why", r->why.text));
    else
        printf("%-*s %s\n", width, r->dir, r->why.text);
}

typedef struct {
    const char *name;
    double (*of)(const row *r); // NaN: the run has none; NULL: by name
} order;

static double by_started(const row *r) {
    return r->look.sum.started;
}

static double by_epochs(const row *r) {
    return trains(&r->look) ? (double)r->look.sum.epochs : NAN;
}

static double by_loss(const row *r) {
    return r->look.loss;
}

static double by_metric(const row *r) {
    return r->look.title ? r->look.value : NAN;
}

static double by_seconds(const row *r) {
    return trains(&r->look) ? r->look.sum.seconds : NAN;
}

static const order orders[] = {{"name", NULL}, {"started", by_started}, {"epochs", by_epochs}, {"loss", by_loss},
    {"metric", by_metric}, {"seconds", by_seconds}};
enum { ORDERS = sizeof orders / sizeof *orders };

typedef struct {
    const order *by;
    bool reverse;
} sorting;

// Runs without the value come last, in either direction.
static int compare_rows(const void *a, const void *b, void *arg) {
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    const sorting *s = arg;
    double u = s->by->of && x->read ? s->by->of(x) : NAN, v = s->by->of && y->read ? s->by->of(y) : NAN;
    int order = isnan(u) || isnan(v) ? isnan(u) - isnan(v) : (u > v) - (u < v);
    if (order && (isnan(u) || isnan(v))) return order;
    if (!order) order = strverscmp(x->dir, y->dir);
    return s->reverse ? -order : order;
}

static bool read_sorting(const cli_options *o, sorting *s, err *e) {
    const char *name = cli_given(o, "--sort");
    *s = (sorting){&orders[0], cli_given(o, "--reverse") != NULL};
    if (!name) return true;
    for (int i = 0; i < ORDERS; i++)
        if (strcmp(orders[i].name, name) == 0) {
            s->by = &orders[i];
            return true;
        }
    return err_input(e, "--sort %.40s: must be name, started, epochs, loss, metric or seconds", name);
}

static bool has_word(const char *list, const char *word, size_t length) {
    for (const char *at = list; *at; at += strcspn(at, ", []\"'"), at += strspn(at, ", []\"'"))
        if (strcspn(at, ", []\"'") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

// "status=done", "model=lstm", "tag=WORD", or a key of the description; != for all others.
static bool passes(const row *r, const char *filter) {
    const char *equals = strchr(filter, '=');
    bool unlike = equals > filter && equals[-1] == '!';
    char key[128], text[512];
    snprintf(key, sizeof key, "%.*s", (int)(equals - filter - unlike), filter);
    const char *wanted = equals + 1;
    bool tag = strcmp(key, "tag") == 0, is;
    char *config = run_text(r->dir, "config.yaml");
    char *value = config ? outline_value(config, tag                         ? "run.tags"
                                                 : strcmp(key, "model") == 0 ? "model.kind"
                                                                             : key)
                         : NULL;
    snprintf(text, sizeof text, "%s", value ? value : "");
    free(value);
    free(config);
    if (strcmp(key, "status") == 0)
        is = strcmp(r->read ? r->look.status : "unreadable", wanted) == 0;
    else
        is = tag ? has_word(text, wanted, strlen(wanted)) : strcmp(text, wanted) == 0;
    // The table has an agent's environment in the place of its model.
    if (strcmp(key, "model") == 0 && r->read && r->look.agent[0]) is |= strcmp(r->look.agent, wanted) == 0;
    return is != unlike;
}

static bool passes_all(const cli_options *o, const row *r) {
    for (int i = 0; i < o->owns; i++)
        if (strcmp(o->own[i].name, "--filter") == 0 && !passes(r, o->own[i].value)) return false;
    return true;
}

// True where a run's description has the key of a filter.
static bool knows_key(const found *f, const char *key) {
    bool has = strcmp(key, "model") == 0 || strcmp(key, "tag") == 0;
    for (int i = 0; i < f->count && !has; i++) {
        char *config = run_text(f->dir[i], "config.yaml"), *value = config ? outline_value(config, key) : NULL;
        has = value != NULL;
        free(value);
        free(config);
    }
    return has;
}

static bool is_status(const char *text) {
    static const char *const all[] = {"running", "done", "stopped", "failed", "killed", "unreadable"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], text) == 0) return true;
    return false;
}

// A filter that is mistyped would pass no run, or with != all of them.
static bool check_filter(const char *filter, const found *f, err *e) {
    const char *equals = strchr(filter, '=');
    size_t length = equals ? (size_t)(equals - filter) : 0;
    char key[128];
    if (length && filter[length - 1] == '!') length--;
    if (!length || length >= sizeof key || !equals[1])
        return err_input(
            e, "--filter %.60s: must be KEY=VALUE or KEY!=VALUE, such as status=done, tag=gold, train.seed=2", filter);
    snprintf(key, sizeof key, "%.*s", (int)length, filter);
    if (strcmp(key, "status") == 0)
        return is_status(equals + 1) ||
               err_input(e, "--filter %.60s: status is running, done, stopped, failed, killed or unreadable", filter);
    return knows_key(f, key) || err_input(e, "--filter %.60s: no run here has the key %.60s", filter, key);
}

static bool check_filters(const cli_options *o, const found *f, err *e) {
    for (int i = 0; i < o->owns; i++)
        if (strcmp(o->own[i].name, "--filter") == 0 && !check_filter(o->own[i].value, f, e)) return false;
    return true;
}

// Columns for the names of directories, within bounds.
static int widest(const found *f) {
    size_t most = 32;
    for (int i = 0; i < f->count; i++)
        if (strlen(f->dir[i]) > most) most = strlen(f->dir[i]);
    return most > 80 ? 80 : (int)most;
}

static bool print_found(const cli_options *o, const found *f, err *e) {
    sorting by;
    int shown = 0, width = widest(f);
    if (!read_sorting(o, &by, e) || !check_filters(o, f, e)) return false;
    row *rows = calloc((size_t)f->count + 1, sizeof *rows), **shows = calloc((size_t)f->count + 1, sizeof *shows);
    NEED(rows && shows, "out of memory for a table of runs");
    for (int i = 0; i < f->count; i++) {
        row *r = &rows[i]; // it stays there: a look points into itself
        r->dir = f->dir[i];
        r->read = look_at_run(r->dir, &r->look, &r->why);
        if (passes_all(o, r)) shows[shown++] = r;
    }
    if (shown) qsort_r(shows, (size_t)shown, sizeof *shows, compare_rows, &by);
    if (shown && !o->json)
        printf(ROW, width, "run", "status", "model", "epochs", "best", "val. loss", "val. metric", "seconds",
            "started (UTC)");
    for (int i = 0; i < shown; i++) print_run(shows[i], width, o->json);
    free(rows);
    free(shows);
    if (!shown && f->count && !o->json && !o->quiet)
        fprintf(stderr, "tradewind: none of %d runs passes the filter\n", f->count);
    return true;
}

static bool list(const cli_options *o, err *e) {
    const char *dir = o->words ? o->word[0] : "runs";
    found f = {0};
    struct stat st;
    if (stat(dir, &st) != 0) return err_input(e, "%s: cannot be read: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return err_input(e, "%s: is not a directory", dir);
    search(dir, 0, &f);
    if (f.failed) *e = f.why;
    bool ok = !f.failed && (f.count > 0 || err_input(e, "%s: no runs found in it", dir)) && print_found(o, &f, e);
    for (int i = 0; i < f.count; i++) free(f.dir[i]);
    free(f.dir);
    return ok;
}

const cli_command cli_runs = {"runs", "[DIR]", "a table of the runs below a directory (default: runs)",
    "Status is running, done, stopped (by a signal), failed, or killed (ended without a word).\n"
    "  --sort KEY          by name (default), started, epochs, loss, metric or seconds\n"
    "  --reverse           the other way round\n"
    "  --filter KEY=VALUE  only runs with this status, model, tag (of run.tags) or value of a key, such as "
    "train.seed=2;\n"
    "                      KEY!=VALUE: without it. All must hold where several are given\n",
    NULL, NULL, 1, list, "--sort --filter", "--reverse"};
