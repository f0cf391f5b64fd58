#include "task/walk.h"

#include "base/term.h"
#include "run/hook.h"
#include "run/results.h"
#include "run/run.h"
#include "task/fit.h"
#include "task/lines.h"
#include "task/members.h"
#include "task/source.h"
#include "task/walk_jobs.h"
#include "task/walk_plan.h"
#include "task/walk_test.h"
#include "train/agent_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLD_WORD = 24 };

// A fold that is trained here: its number, and texts that its description points to.
typedef struct {
    int64_t at; // of the folds
    char word[FOLD_WORD], *dir, *from;
} fold_work;

typedef struct {
    const task_options *o;
    const walk_options *w;
    task all; // the walk's description
    dataset *data;
    scheme_folds folds;
    walk_plan plan;
    int works;
    fold_work *work;     // [works] folds of this process, in order
    const split **parts; // [works] of them
    int seeds;           // of a fold: members of its ensemble, or 1
    walk_run *run;       // [works * seeds]
    walk_seeds *shared;  // [works], where there are several seeds
    char *file;          // WALK/config.yaml
    run *place;          // the directory, held; NULL for a shard
    bool goes_on;        // with what is there
} walk;

char *walk_dir(const char *dir, const scheme_fold *f) {
    char name[FOLD_WORD + 8];
    snprintf(name, sizeof name, "fold_%02lld", (long long)f->number + 1);
    return run_path(dir, name);
}

static void find_fold(void *arg, const char *dir) {
    (void)dir;
    *(bool *)arg = true;
}

bool walk_is(const char *dir, bool *is, err *e) {
    char *doc = run_path(dir, results_name(RESULTS_WALK));
    *is = access(doc, F_OK) == 0;
    free(doc);
    return *is || !run_is(dir) || run_each_fold(dir, find_fold, is, e);
}

static bool tell(const walk *w, task_event e) {
    return task_tell(&w->o->listener, &e);
}

// Folds

bool walk_folds(const task *t, const dataset *d, int64_t *window, scheme_folds *to, err *e) {
    scheme as = t->settings.walk.scheme;
    err why;
    if (!settings_windows(t->config, d, window, e)) return false;
    as.window = window;
    if (scheme_make(d, &as, to, &why)) return true;
    if (why.kind == ERR_RUN) *e = why;
    return why.kind != ERR_RUN && config_fail(t->config, "walk", e, "%s", why.text);
}

static bool make_folds(walk *w, err *e) {
    const task *t = &w->all;
    int64_t window[STREAMS_MOST];
    w->data = source_open(t->config, &t->settings, &w->o->listener, e);
    return w->data && source_check(w->data, &w->o->listener, e) && walk_folds(t, w->data, window, &w->folds, e);
}

static bool is_mine(const walk *w, int64_t i) {
    return !w->w->shards || i % w->w->shards == w->w->shard - 1;
}

static int runs_of(const walk *w) {
    return w->works * w->seeds;
}

// Work of this process: folds that can be made and are of its shard.
static void list_work(walk *w) {
    const char *dir = w->all.settings.dir;
    bool warm = w->all.settings.walk.warm;
    w->seeds = w->all.settings.ensemble;
    w->work = calloc((size_t)w->folds.count + 1, sizeof *w->work);
    w->parts = calloc((size_t)w->folds.count + 1, sizeof *w->parts);
    NEED(w->work && w->parts, "out of memory for %lld folds", (long long)w->folds.count);
    for (int64_t i = 0; i < w->folds.count; i++) {
        const scheme_fold *of = &w->folds.fold[i];
        if (of->why[0] || !is_mine(w, i)) continue;
        w->parts[w->works] = &of->parts;
        fold_work *f = &w->work[w->works++];
        f->at = i;
        f->dir = walk_dir(dir, of);
        snprintf(f->word, sizeof f->word, "%lld", (long long)of->number + 1);
        char *before = warm && w->works > 1 ? f[-1].dir : NULL;
        if (before) f->from = run_path(before, "best.safetensors");
    }
}

// The description of a fold. The walk's own copy is read: the file that was given may change before the last fold.
static task_options options_of(const walk *w, const fold_work *f, const char *file, bool from) {
    task_options o = *w->o;
    task_description *d = &o.description;
    d->file = file;
    task_change_behind(d, "walk.fold", f->word);
    task_change_behind(d, "run.dir", f->dir);
    if (from && f->from) task_change_behind(d, "train.init_from", f->from);
    o.data = w->data;
    o.parts = &w->folds.fold[f->at].parts;
    o.resume = o.restart = false;
    o.listener = (task_listener){0};
    return o;
}

// The plan

// Folds tell nothing by themselves.
static void tell_classes(const walk *w) {
    char classes[LINE_ROOM - 32], line[LINE_ROOM];
    if (w->plan.agents || w->plan.model.job.forecasts) return;
    for (int i = 0; i < w->works; i++) {
        if (!lines_classes(w->data, w->parts[i], classes, sizeof classes)) continue;
        snprintf(line, sizeof line, "fold %s: %s", w->work[i].word, classes);
        tell(w, (task_event){.kind = TASK_WARNING, .line = line});
    }
}

static void tell_plan(const walk *w) {
    const walk_plan *p = &w->plan;
    const task *t = p->agents ? NULL : &p->model;
    tell(w, (task_event){.kind = TASK_WALK_BEGIN,
                .task = t,
                .walk = {.agent = p->agents ? &p->agent : NULL,
                    .folds = &w->folds,
                    .works = w->works,
                    .seeds = w->seeds,
                    .jobs = p->jobs,
                    .threads = p->threads}});
    if (t) tell(w, (task_event){.kind = TASK_KEYS, .task = t});
    tell_classes(w);
}

// There may be no weights yet to begin from.
static bool plan_walk(walk *w, err *e) {
    walk_plan_options o = {.options = options_of(w, &w->work[0], w->o->description.file, false),
        .data = w->data,
        .parts = w->parts,
        .folds = w->works,
        .runs = runs_of(w)};
    if (!walk_plan_open(&w->plan, &o, e)) return false;
    if (!w->w->gather) tell_plan(w);
    return true;
}

// The directory

// False where folds were trained on other data than those that are here: shards may have had different files, and what
// one was trained on may be what another is tested on.
static bool are_of_one_set(const walk *w, err *e) {
    bool ok = true;
    for (int i = 0; ok && i < w->works; i++) {
        chosen plan;
        char differs[256];
        bool there;
        if (!members_plan(w->work[i].dir, &plan, &there, e)) return false;
        if (!there || !chosen_set_differs(&plan, &w->plan.chosen, differs, sizeof differs)) continue;
        ok = err_input(e,
            "%s: was trained on other data than those here: %s; gather with the data that all folds were trained on, "
            "or "
            "remove this fold and train it again",
            w->work[i].dir, differs);
    }
    return ok;
}

// A shard neither holds the directory nor sets anything aside: another may be at work there.
static bool open_shared(const walk *w, const char *config, err *e) {
    const char *dir = w->all.settings.dir;
    if (run_is_locked(dir)) return err_run(e, "%s: another process walks here, without shards; wait for it", dir);
    // Another shard may write the description between the two looks.
    if (!run_is(dir) && !run_describe(dir, config, e) && !run_is(dir)) return false;
    return members_same(dir, config, NULL, e) && members_alike(dir, config, e);
}

static void tell_network(const walk *w) {
    char line[LINE_ROOM];
    if (lines_network(w->all.settings.dir, line, sizeof line))
        tell(w, (task_event){.kind = TASK_WARNING, .line = line});
}

// `are` becomes true where shards alone have been at work: they hold no directory, and leave its end to others.
static bool are_of_shards(const char *dir, bool *are, err *e) {
    if (!walk_is(dir, are, e)) return false;
    *are = *are && !run_was_in(dir);
    return true;
}

// Into run.db: whoever looks at a walk that was stopped can tell how many folds there were to be.
static void note_begin(const walk *w, const char *config) {
    char folds[32];
    snprintf(folds, sizeof folds, "%d", w->works);
    db_run(run_db(w->place), w->o->version, config, "");
    db_event(run_db(w->place), 0, "folds", folds);
}

static bool open_place(walk *w, err *e) {
    const char *dir = w->all.settings.dir;
    bool there = w->o->resume || w->w->gather, ok;
    if (!there && !are_of_shards(dir, &there, e)) return false;
    if (w->w->gather && !run_is(dir)) return err_input(e, "%s: holds no walk to gather; train its shards first", dir);
    if (w->w->gather && !are_of_one_set(w, e)) return false;
    char *config = task_description_text(w->all.config, e);
    if (!config) return false;
    if (w->w->shards) {
        ok = open_shared(w, config, e);
    } else {
        w->place = there ? run_resume(dir, e) : run_begin(dir, e);
        w->goes_on = there;
        ok = w->place && (!there || members_same(dir, config, NULL, e)) &&
             (w->w->gather || run_put_description(w->place, config, e));
    }
    if (ok && w->place && run_earlier(w->place))
        tell(w, (task_event){.kind = TASK_WALK_EARLIER, .member = {.dir = dir, .earlier = run_earlier(w->place)}});
    if (ok && w->goes_on && !w->o->resume && !w->w->gather)
        tell(w, (task_event){.kind = TASK_RESUME, .line = "going on with what shards have trained here"});
    if (ok) tell_network(w);
    if (ok && w->place) note_begin(w, config);
    free(config);
    return ok;
}

// Training

static bool on_progress(void *arg, double share) {
    const walk *w = arg;
    return tell(w, (task_event){.kind = TASK_WALK_STEP, .share = share});
}

// A fold is told when its last seed has ended: with its failure, or the result of the last one that was trained now.
static void on_ended(void *arg, int i) {
    const walk *w = arg;
    const walk_run *first = &w->run[i - i % w->seeds], *r = first, *last = &w->run[i];
    const fold_work *f = &w->work[i / w->seeds];
    if (last->lost[0]) tell(w, (task_event){.kind = TASK_LOST, .line = last->lost});
    if (i % w->seeds != w->seeds - 1) return;
    for (const walk_run *k = first; k <= last && r->ok; k++)
        if (!k->ok || !k->already) r = k;
    tell(w, (task_event){.kind = TASK_FOLD,
                .line = r->ok ? NULL : r->why.text,
                .fold = {.number = w->folds.fold[f->at].number + 1,
                    .dir = f->dir,
                    .result = r->ok ? &r->result : NULL,
                    .metric = r->metric,
                    .already = r->ok && r->already}});
}

// The first failure stands for all; other folds are kept.
static bool judge_runs(const walk *w, bool *stopped, err *e) {
    *stopped = false;
    for (int i = 0; i < runs_of(w); i++) {
        const walk_run *r = &w->run[i];
        if (!r->begun || r->stopped) *stopped = true;
        if (!r->begun || r->ok) continue;
        err_run(e, "fold %s: %s; other folds are kept, and --resume tries this one again", w->work[i / w->seeds].word,
            r->why.text);
        e->kind = r->why.kind;
        return false;
    }
    return true;
}

static void order_fold(walk *w, int i) {
    walk_run *r = &w->run[i * w->seeds];
    task_options *o = &r->options;
    *o = options_of(w, &w->work[i], w->file, true);
    o->description.text = NULL;
    o->devices.options.threads = w->plan.threads;
    o->devices.options.several = w->plan.jobs > 1;
    o->like = &w->plan.chosen;
    o->place = walk_plan_room(&w->plan);
    o->market = walk_plan_market(&w->plan);
    o->resume = (w->goes_on || w->w->shards) && fit_can_go_on(w->work[i].dir);
    o->repeats = true;
    if (w->seeds == 1) return;
    walk_seeds_init(&w->shared[i], o, w->seeds);
    for (int k = 0; k < w->seeds; k++) {
        r[k].seeds = &w->shared[i];
        r[k].member = k + 1;
    }
}

static bool train_folds(walk *w, bool *stopped, err *e) {
    walk_view v = {on_progress, on_ended, w};
    int runs = runs_of(w);
    if (!walk_plan_take(&w->plan, e)) return false;
    w->run = calloc((size_t)runs, sizeof *w->run);
    w->shared = calloc((size_t)w->works, sizeof *w->shared);
    NEED(w->run && w->shared, "out of memory for %d runs", runs);
    for (int i = 0; i < w->works; i++) order_fold(w, i);
    bool ok = walk_jobs(w->run, runs, w->plan.jobs, &v, e) && judge_runs(w, stopped, e);
    walk_plan_close(&w->plan); // the test opens the device anew for each fold
    return ok;
}

static bool carry_out(walk *w, bool *stopped, err *e) {
    const char *dir = w->all.settings.dir;
    w->file = run_path(dir, "config.yaml");
    if (!w->w->gather && !train_folds(w, stopped, e)) return false;
    if (*stopped || w->w->shards) return true;
    return walk_test(&(walk_tested){.o = w->o,
                         .dir = dir,
                         .data = w->data,
                         .kind = w->all.settings.walk.scheme.kind,
                         .folds = &w->folds,
                         .agents = agent_given(w->all.config),
                         .gathered = w->w->gather,
                         .importance = w->all.settings.walk.importance},
        stopped, e);
}

// Folds that begin with the weights of the one before come one after another, in one process.
static bool can_be_warm(const walk *w, err *e) {
    const settings *s = &w->all.settings;
    if (!s->walk.warm) return true;
    if (s->ensemble > 1)
        return config_fail(w->all.config, "walk.start", e, "members of an ensemble begin cold; set train.ensemble=1");
    return !w->w->shards || config_fail(w->all.config, "walk.start", e, "warm folds are one chain; leave --shard out");
}

// Agents without data have no time to walk through.
static bool suits_agents(const task *t, err *e) {
    const config *c = t->config;
    if (!agent_given(c)) return true;
    if (!config_is(c, "agent.env", "market"))
        return config_fail(c, "agent.env", e, "only an agent of env: market has data to walk through; use train");
    return !t->settings.walk.importance ||
           config_fail(c, "walk.importance", e, "importance of columns is not measured for agents; leave it out");
}

// The end of a walk, for the command of on_event; its folds tell nothing by themselves.
static void tell_hook(const walk *w, hook_event k, const char *text) {
    const settings *s = &w->all.settings;
    char why[256];
    hook *h = hook_new(&(hook_options){.command = s->on_event, .events = s->events, .dir = s->dir});
    hook_tell(h, k, text, json_pack("{s:i}", "folds", w->works));
    hook_finish(h);
    if (hook_tick(h, why, sizeof why)) {
        if (w->place) db_event(run_db(w->place), 0, "on_event", why);
        tell(w, (task_event){.kind = TASK_WARNING, .line = why});
    }
    hook_free(h);
}

// Some shards have nothing to do where there are more of them than folds.
static void tell_idle(const walk *w) {
    char line[LINE_ROOM];
    int64_t made = 0;
    for (int64_t i = 0; i < w->folds.count; i++) made += !w->folds.fold[i].why[0];
    snprintf(line, sizeof line, "nothing to train: of %lld fold%s none is shard %d's", (long long)made, term_s(made),
        w->w->shard);
    tell(w, (task_event){.kind = TASK_WARNING, .line = line});
}

static bool walk_all(walk *w, err *e) {
    bool stopped = false;
    if (w->all.settings.walk.fold)
        return config_fail(w->all.config, "walk.fold", e, "a walk has all folds; leave it out, or train with it");
    if (!can_be_warm(w, e) || !make_folds(w, e)) return false;
    list_work(w);
    if (!w->works && w->w->shards) {
        tell_idle(w);
        return true;
    }
    if (!w->works) return config_fail(w->all.config, "walk", e, "no fold can be made: %s", w->folds.fold[0].why);
    bool ok = plan_walk(w, e) && open_place(w, e) && carry_out(w, &stopped, e);
    const char *status = !ok ? "failed" : stopped ? "stopped" : "done";
    if (w->place) db_status(run_db(w->place), status, ok ? "" : e->text);
    tell_hook(w, !ok ? HOOK_FAILED : stopped ? HOOK_STOP : HOOK_FINISHED, ok ? status : e->text);
    if (ok && stopped) tell(w, (task_event){.kind = TASK_WALK_STOPPED, .member = {.dir = w->all.settings.dir}});
    return ok;
}

static void walk_close(walk *w) {
    walk_plan_close(&w->plan);
    run_close(w->place);
    for (int i = 0; i < w->works; i++) {
        free(w->work[i].dir);
        free(w->work[i].from);
    }
    free(w->work);
    free(w->parts);
    free(w->run);
    free(w->shared);
    free(w->file);
    scheme_done(&w->folds);
    dataset_free(w->data);
    task_close(&w->all);
}

bool walk_describe(task *t, const task_options *o, err *e) {
    task_options as = *o;
    as.resume = false; // each fold keeps its own batch
    if (!task_describe_run(t, &as, e)) return false;
    bool ok = walk_given(t->config) ||
              err_input(e, "%s: describes no walk; add a section such as walk: {train: 2y, validation: 3M, test: 3M}",
                  o->description.file);
    ok = ok && suits_agents(t, e);
    if (!ok) task_close(t);
    return ok;
}

bool task_walk(const task_options *o, const walk_options *options, err *e) {
    walk w = {.o = o, .w = options};
    if (!walk_describe(&w.all, o, e)) return false;
    bool ok = walk_all(&w, e);
    walk_close(&w);
    return ok;
}
