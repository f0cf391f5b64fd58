// tradewind compare: two runs side by side: scores, curves, settings that differ, and what noise alone may do.
#include "task/compare.h"

#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "run/outline.h"
#include "run/results.h"
#include "run/run.h"
#include "watch/plot.h"
#include "watch/watched.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 12, COLUMNS = 78, LOOKS = 60, VALUE_ROOM = 32 };

typedef struct {
    const char *dir[2];
    tail *tail[2];
    story *story[2];
    json_t *walk[2], *evaluation[2]; // documents, or NULL
    comparison noise;
} pair;

static bool open_run(pair *p, int k, err *e) {
    tail_cursor c = {0};
    if (!run_is(p->dir[k])) return err_input(e, "%s: is no run's directory; it has no config.yaml", p->dir[k]);
    if (!results_read(p->dir[k], RESULTS_WALK, &p->walk[k], e) ||
        !results_read(p->dir[k], RESULTS_EVALUATION, &p->evaluation[k], e))
        return false;
    p->tail[k] = tail_open(p->dir[k]);
    p->story[k] = story_new();
    for (int i = 0; i < LOOKS && !c.life; i++) {
        tail_poll(p->tail[k]);
        story_take(p->story[k], p->tail[k], &c);
        if (tail_at(p->tail[k])->state == TAIL_ABSENT) return true; // an ensemble's directory has no figures of its own
        if (!c.life) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    if (tail_at(p->tail[k])->state != TAIL_BROKEN) return true;
    *e = tail_at(p->tail[k])->trouble;
    return false;
}

// Scores

static const char *value_text(char *text, double v) {
    snprintf(text, VALUE_ROOM, isfinite(v) ? "%.6g" : "-", v);
    return text;
}

static void print_value(const char *name, double a, double b) {
    char x[VALUE_ROOM], y[VALUE_ROOM];
    if (!isfinite(a) && !isfinite(b)) return;
    printf("%-22.22s %12s %12s", name, value_text(x, a), value_text(y, b));
    if (isfinite(b - a)) printf(" %+12.4g", b - a);
    putchar('\n');
}

// Curves whose best values tell how good a run is: of validation, and of an agent's evaluations and episodes.
static bool is_score(const story *s, const story_curve *c) {
    if (!s->agent[0]) return strcmp(c->part, "validation") == 0;
    return strncmp(c->name, "eval/", 5) == 0 || strncmp(c->name, "rollout/", 8) == 0;
}

// Metrics that documents keep of tests, by name.
static json_t *tests_of(const pair *p, int k) {
    json_t *test = p->walk[k] ? p->walk[k] : results_get(p->evaluation[k], "parts.test");
    return json_object_get(test, "metrics");
}

// Calls `use` with each metric of a test that one of the runs has.
static void each_test(const pair *p, void (*use)(void *arg, const char *name, double a, double b), void *arg) {
    json_t *of[] = {tests_of(p, 0), tests_of(p, 1)}, *value;
    const char *name;
    for (int k = 0; k < 2; k++)
        json_object_foreach(of[k], name, value) if (k == 0 || !json_object_get(of[0], name))
            use(arg, name, results_number(json_object_get(of[0], name)), results_number(json_object_get(of[1], name)));
}

static void print_test(void *arg, const char *name, double a, double b) {
    char text[64];
    (void)arg;
    snprintf(text, sizeof text, "test %s", name);
    print_value(text, a, b);
}

static void add_test(void *arg, const char *name, double a, double b) {
    json_object_set_new(arg, name, json_pack("{s:o, s:o}", "a", json_number(a), "b", json_number(b)));
}

// Figures that a walk's or an ensemble's directory does not have are NaN.
static double known(double v) {
    return v > 0 ? v : NAN;
}

static double walk_number(const pair *p, int k, const char *key) {
    return results_number(json_object_get(p->walk[k], key));
}

static void print_scores(const pair *p) {
    const story *a = p->story[0], *b = p->story[1];
    printf("%-22s %12s %12s %12s\n", "", "A", "B", "B - A");
    print_value(
        a->agent[0] ? "best iteration" : "best epoch", known((double)a->best_epoch), known((double)b->best_epoch));
    print_value("parameters", a->parameters, b->parameters);
    print_value("seconds", known(a->seconds), known(b->seconds));
    print_value("folds", walk_number(p, 0, "done"), walk_number(p, 1, "done"));
    print_value("samples of all tests", walk_number(p, 0, "samples"), walk_number(p, 1, "samples"));
    for (int i = 0; i < a->curves; i++) {
        const story_curve *x = &a->curve[i], *y = story_find(b, x->part, x->name);
        if (y && is_score(a, x)) print_value(x->name, x->best, y->best);
    }
    each_test(p, print_test, NULL);
}

typedef struct {
    const char *metric;
    bool groups; // tests of cpcv begin at the same times
    int count;
} fold_table;

static void print_fold(void *arg, json_t *a, json_t *b) {
    fold_table *t = arg;
    const char *name = json_string_value(json_array_get(json_object_get(a, "test"), 0));
    char number[VALUE_ROOM];
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(a, "number")));
    if (t->groups) name = number;
    if (!t->count++) printf("\n%s of tests %s\n", t->metric, t->groups ? "of fold" : "from");
    print_value(name ? name : "", results_number(json_object_get(json_object_get(a, "metrics"), t->metric)),
        results_number(json_object_get(json_object_get(b, "metrics"), t->metric)));
}

// Folds of two walks with the same test, by where it begins, or of cpcv by their numbers.
static void print_folds(const pair *p) {
    fold_table t = {.metric = p->noise.metric, .groups = json_object_get(p->walk[0], "groups")};
    if (p->noise.way == COMPARE_FOLDS) compare_each_fold(p->walk[0], p->walk[1], print_fold, &t);
}

static void print_curve(const pair *p, const char *part, const char *name) {
    const story_curve *a = story_find(p->story[0], part, name), *b = story_find(p->story[1], part, name);
    if (!a || !b || !a->values->count || !b->values->count) return;
    cells g;
    cells_init(&g, ROWS, COLUMNS, strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
    plot_draw(&g, (area){0, 0, ROWS, COLUMNS},
        &(plot){.line = {a->values, b->values}, .x = p->story[0]->agent[0] ? "iteration" : "epoch"});
    printf("\n%s%s%s of A%s and B%s\n", part, part[0] ? " " : "", name, g.ascii ? " (*)" : "", g.ascii ? " (o)" : "");
    cells_write(&g, stdout);
    cells_done(&g);
}

// Settings

static void print_setting(void *arg, const char *path, const char *was, const char *is) {
    int *n = arg;
    if (strcmp(path, "run.dir") == 0) return;
    printf("%-10s%-32s %-20.60s %.60s\n", (*n)++ ? "" : "settings", path, was ? was : "-", is ? is : "-");
}

static void add_setting(void *arg, const char *path, const char *was, const char *is) {
    json_array_append_new(arg, json_pack("{s:s, s:s?, s:s?}", "key", path, "a", was, "b", is));
}

typedef void use_setting(void *arg, const char *path, const char *was, const char *is);

// Differences of two descriptions, of which either may name files of bars, so that its data.set says nothing.
typedef struct {
    bool bars[2];
    use_setting *use;
    void *arg;
} differing;

static void use_effective(void *arg, const char *path, const char *was, const char *is) {
    const differing *d = arg;
    if (strcmp(path, "data.set") == 0) {
        was = d->bars[0] ? NULL : was;
        is = d->bars[1] ? NULL : is;
        if (!was && !is) return;
    }
    d->use(d->arg, path, was, is);
}

static void each_setting(const pair *p, use_setting *use, void *arg) {
    char *a = run_text(p->dir[0], "config.yaml"), *b = run_text(p->dir[1], "config.yaml");
    if (a && b) {
        differing d = {{outline_has(a, "data.bars"), outline_has(b, "data.bars")}, use, arg};
        outline_each_difference(a, b, use_effective, &d);
    }
    free(a);
    free(b);
}

// Noise

static bool is_more(const comparison *c) {
    return c->range.low > 0 || c->range.high < 0;
}

static void print_noise(const comparison *c) {
    if (c->way == COMPARE_NOTHING) {
        printf("noise     %s\n", c->why);
        return;
    }
    printf("noise     %s %.4g and %.4g, B - A %+.4g", c->metric, c->score[0], c->score[1], c->difference);
    if (isnan(c->range.low)) {
        puts("; too few for an interval");
        return;
    }
    printf(", 95 %%: %+.4g to %+.4g: %s\n", c->range.low, c->range.high,
        is_more(c) ? "more than noise" : "no more than noise");
    if (c->way == COMPARE_ANSWERS)
        printf("          pairs of answers to %lld samples of %s; it speaks of these weights, not of other seeds\n",
            (long long)c->samples, c->part);
    else if (c->way == COMPARE_SEEDS)
        printf(
            "          %d and %d members of other seeds, at their best on validation\n", c->members[0], c->members[1]);
    else
        printf("          means of %d folds with the same test, in pairs, as if folds were independent of each other\n",
            c->folds);
}

static json_t *noise_json(const comparison *c) {
    static const char *const ways[] = {NULL, "answers", "seeds", "folds"};
    if (c->way == COMPARE_NOTHING) return json_pack("{s:n, s:s}", "by", "why", c->why);
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "by", ways[c->way], "part", c->part, "metric",
        c->metric, "a", json_number(c->score[0]), "b", json_number(c->score[1]), "difference",
        json_number(c->difference), "low", json_number(c->range.low), "high", json_number(c->range.high),
        "more_than_noise", is_more(c));
}

static json_t *scores_json(const pair *p) {
    json_t *all = json_object();
    for (int i = 0; i < p->story[0]->curves; i++) {
        const story_curve *x = &p->story[0]->curve[i], *y = story_find(p->story[1], x->part, x->name);
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", x->part, x->part[0] ? "/" : "", x->name);
        if (y)
            json_object_set_new(
                all, name, json_pack("{s:o, s:o}", "a", json_number(x->best), "b", json_number(y->best)));
    }
    return all;
}

static bool print_json(const pair *p, err *e) {
    json_t *settings = json_array();
    each_setting(p, add_setting, settings);
    json_t *tests = json_object();
    each_test(p, add_test, tests);
    json_t *all = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "a", p->dir[0], "b", p->dir[1], "best", scores_json(p),
        "test", tests, "settings", settings, "noise", noise_json(&p->noise));
    return json_line(stdout, all) || err_run(e, "the figures cannot be written");
}

static void print_text(const pair *p) {
    int n = 0;
    const story *a = p->story[0];
    printf("A         %s\nB         %s\n\n", p->dir[0], p->dir[1]);
    print_scores(p);
    print_folds(p);
    setlocale(LC_CTYPE, "");
    if (a->agent[0])
        print_curve(p, "", "eval/mean_reward");
    else
        print_curve(p, "validation", a->metric[0] && strcmp(a->metric, "auto") != 0 ? a->metric : "loss");
    putchar('\n');
    each_setting(p, print_setting, &n);
    if (!n) puts("settings  the same");
    print_noise(&p->noise);
}

static bool compare(const cli_options *o, err *e) {
    if (o->words != 2) return err_input(e, "name two runs");
    pair p = {.dir = {o->word[0], o->word[1]}};
    bool ok = open_run(&p, 0, e) && open_run(&p, 1, e) && compare_runs(p.dir[0], p.dir[1], &p.noise, e);
    if (ok && o->json)
        ok = print_json(&p, e);
    else if (ok)
        print_text(&p);
    for (int k = 0; k < 2; k++) {
        json_decref(p.walk[k]);
        json_decref(p.evaluation[k]);
        tail_close(p.tail[k]);
        story_free(p.story[k]);
    }
    return ok;
}

const cli_command cli_compare = {"compare", "A B", "two runs side by side, and what noise alone may do",
    "A and B are directories of runs, ensembles or walks. Scores of the best epochs and of tests, the curve that\n"
    "decides, settings that differ, and whether the difference is more than noise: by pairs of answers where\n"
    "`evaluate` has left both runs' answers to the same samples, by seeds where both are ensembles, by folds with the\n"
    "same test where both are walks.\n",
    NULL, NULL, 2, compare, NULL, NULL};
