#include "task/models.h"

#include "run/outline.h"
#include "run/run.h"
#include "task/fit.h"
#include "task/members.h"
#include "task/models_table.h"
#include "task/source.h"
#include "train/agent_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const task_options *o; // that all share
    task all;              // the first description, by which the data are opened
    bool described;        // it is open
    dataset *data;
    int count;
    model_run *model; // [count]
} models;

// Descriptions

// A path from the root, without doubled slashes and names that say nothing; the caller frees it.
static char *plain_path(const char *path) {
    char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *whole = NULL, *to;
    NEED(here && asprintf(&whole, "%s/%s", here, path) >= 0, "out of memory for a path");
    char *plain = to = malloc(strlen(whole) + 2);
    NEED(plain, "out of memory for a path");
    *to = 0;
    for (char *next = whole, *name; (name = strsep(&next, "/"));)
        if (*name && strcmp(name, ".") != 0) to += sprintf(to, "/%s", name);
    free(here);
    free(whole);
    return plain;
}

static bool is_one_place(const char *a, const char *b) {
    struct stat x, y;
    if (stat(a, &x) == 0 && stat(b, &y) == 0) return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    char *p = plain_path(a), *q = plain_path(b);
    bool same = strcmp(p, q) == 0;
    free(p);
    free(q);
    return same;
}

// Keys that say which samples there are, and their columns and labels.
static bool is_not_of_set(const char *path) {
    static const char *const others[] = {"data.windows", "data.split", "data.scale", "data.level", "data.residency",
        "data.num_workers", "data.prefetch_factor"};
    if (strncmp(path, "data.", 5) != 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t n = strlen(others[i]);
        if (strncmp(path, others[i], n) == 0 && (!path[n] || path[n] == '.')) return true;
    }
    return false;
}

static bool describe(models *m, int i, err *e) {
    model_run *r = &m->model[i];
    task own, *t = i ? &own : &m->all;
    char differs[64];
    if (!task_describe_run(t, &r->options, e)) return false;
    m->described = true;
    if (agent_given(t->config))
        return config_fail(t->config, "agent", e, "agents are trained one at a time; leave the other descriptions out");
    r->dir = strdup(t->settings.dir);
    NEED(r->dir, "out of memory for a path");
    r->config = task_description_text(t->config, e);
    if (i) task_close(&own);
    if (!r->config) return false;
    r->shares = outline_compare(m->model[0].config, r->config, is_not_of_set, differs, sizeof differs) == 0;
    for (int k = 0; k < i; k++)
        if (is_one_place(m->model[k].dir, r->dir))
            return err_input(
                e, "%s and %s have one run.dir, %s; give each model its own", m->model[k].file, r->file, r->dir);
    return true;
}

static bool describe_all(models *m, const char *const *file, err *e) {
    m->model = calloc((size_t)m->count, sizeof *m->model);
    NEED(m->model, "out of memory for %d models", m->count);
    for (int i = 0; i < m->count; i++) {
        model_run *r = &m->model[i];
        r->file = file[i];
        r->options = *m->o;
        r->options.description.file = file[i];
        r->options.resume = false; // a model that has not begun has nothing to go on with
        if (!describe(m, i, e)) return false;
        r->options.resume = m->o->resume && fit_can_go_on(r->dir);
    }
    return true;
}

// Plans

// Found quietly but for a check that takes a while.
static bool tell_checks(void *arg, const task_event *e) {
    return e->kind != TASK_CHECK || task_tell(arg, e);
}

// Opens a model, so that a mistake in any of them is found before the first begins.
static bool plan_model(models *m, model_run *r, err *e) {
    task t;
    char differs[256];
    task_listener all = m->o->listener;
    task_options quiet = r->options;
    quiet.listener = (task_listener){tell_checks, &all};
    if (!task_open(&t, &quiet, e)) return false;
    unsigned kind = settings_task(&t.settings, t.data);
    bool ok = fit_batch_suits(&t, e) && task_fits(&t, e) && (r->metric = settings_metric(t.config, kind, e));
    r->usual = metric_usual(kind);
    r->kind = model_name(t.model.kind);
    r->test = t.split.test;
    task_chosen(&t, &r->plan);
    free(r->config);
    r->config = task_description_text(t.config, e); // with the batch that was open before
    ok = ok && r->config;
    if (ok && chosen_set_differs(&m->model[0].plan, &r->plan, differs, sizeof differs))
        ok = err_input(e, "%s: is of another set than %s: %s; one table compares models of one set", r->file,
            m->model[0].file, differs);
    task_close(&t);
    return ok;
}

// One copy of the data for all whose descriptions say the same of them.
static bool plan_all(models *m, err *e) {
    m->data = source_open(m->all.config, &m->all.settings, &m->o->listener, e);
    if (!m->data || !source_check(m->data, &m->o->listener, e)) return false;
    for (int i = 0; i < m->count; i++) {
        model_run *r = &m->model[i];
        r->options.data = r->shares ? m->data : NULL;
        if (!plan_model(m, r, e)) return false;
        r->options.checked = true;
    }
    return true;
}

// Training

static bool on_event(void *arg, const task_event *e) {
    model_run *r = arg;
    if (e->kind == TASK_DONE) r->stopped = e->done.result->interrupted;
    if (e->kind == TASK_ENSEMBLE_DONE) r->stopped = e->member.stopped;
    return task_tell(&r->listener, e);
}

// Members of an ensemble are passed over one by one.
static bool see_done(model_run *r, bool *done) {
    int members = 0;
    *done = false;
    if (!r->options.resume) return true;
    if (!members_of(r->dir, &members, &r->why)) return false;
    return members || members_done(r->dir, r->config, &r->plan, done, &r->why);
}

static void train_model(models *m, int i) {
    model_run *r = &m->model[i];
    bool done, ok = see_done(r, &done);
    task_event begins = {.kind = TASK_MODEL,
        .model = {.file = r->file, .dir = r->dir, .number = i + 1, .of = m->count, .already = done}};
    if (!task_tell(&m->o->listener, &begins)) {
        r->stopped = true;
        return;
    }
    r->listener = m->o->listener;
    r->options.listener = (task_listener){on_event, r};
    r->begun = true;
    r->ok = ok && (done || task_fit(&r->options, &r->why)) && (r->stopped || models_score(r, &r->why));
}

// The first failure stands for all.
static bool judge(const models *m, err *e) {
    for (int i = 0; i < m->count; i++) {
        const model_run *r = &m->model[i];
        if (!r->begun || r->ok) continue;
        err_run(e, "%s: %s; the others are kept, and --resume tries this one again", r->file, r->why.text);
        e->kind = r->why.kind;
        return false;
    }
    return true;
}

static bool train_all(models *m, err *e) {
    bool stopped = false;
    for (int i = 0; i < m->count && !stopped; i++) {
        train_model(m, i);
        stopped = m->model[i].stopped;
    }
    json_t *table = models_table(m->model, m->count, stopped);
    task_tell(&m->o->listener, &(task_event){.kind = TASK_MODELS_DONE, .table = table});
    json_decref(table);
    return judge(m, e);
}

bool task_models(const task_options *o, const char *const *file, int files, err *e) {
    models m = {.o = o, .count = files};
    bool ok = describe_all(&m, file, e) && plan_all(&m, e) && train_all(&m, e);
    for (int i = 0; i < files; i++) {
        free(m.model[i].dir);
        free(m.model[i].config);
        json_decref(m.model[i].scores);
    }
    free(m.model);
    dataset_free(m.data);
    if (m.described) task_close(&m.all);
    return ok;
}
