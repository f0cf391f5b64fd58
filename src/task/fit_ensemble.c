// Ensembles: members are trained one after another as runs, each by the ensemble's description with its own seed and
// directory.
#include "task/agent_fit.h"
#include "task/keeper.h"
#include "task/members.h"
#include "train/agent_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// The ensemble and a member of it.
typedef struct {
    const task_options *o;
    const task *all; // the ensemble's description
    fit_member member;
} ensemble;

// A member's options, which point into it.
typedef struct {
    task_options o;
    char seed[32], *dir;
} orders;

static uint64_t member_seed(const ensemble *en) {
    return en->all->settings.seed + (uint64_t)en->member.number - 1;
}

static void orders_make(orders *to, const ensemble *en) {
    to->o = *en->o;
    to->dir = members_dir(en->member.dir, en->member.number);
    snprintf(to->seed, sizeof to->seed, "%" PRIu64, member_seed(en));
    task_description *d = &to->o.description;
    d->seed = NULL;
    task_change_behind(d, "train.seed", to->seed);
    task_change_behind(d, "run.dir", to->dir);
    task_change_behind(d, "train.ensemble", "1");
}

static void orders_done(orders *o) {
    free(o->dir);
}

static bool tell(const ensemble *en, task_event_kind kind, bool flag) {
    task_event e = {.kind = kind, .member = {.dir = en->member.dir, .number = en->member.number, .of = en->member.of}};
    if (kind == TASK_MEMBER) e.member.already = flag;
    if (kind == TASK_MEMBER) e.member.seed = member_seed(en);
    if (kind == TASK_ENSEMBLE_DONE) e.member.stopped = flag;
    return task_tell(&en->o->listener, &e);
}

// The description that options ask for, complete; the caller frees it.
static char *describe(const task_options *o, err *e) {
    task t;
    if (!task_describe_run(&t, o, e)) return NULL;
    char *text = task_description_text(t.config, e);
    task_close(&t);
    return text;
}

// Trains one member, or goes on with it, or passes it over where that has been done.
static bool train_member(const ensemble *en, bool *stopped, err *e) {
    orders by;
    orders_make(&by, en);
    char *config = describe(&by.o, e);
    bool ok = config != NULL;
    if (ok) {
        err why = {0};
        by.o.resume = en->o->resume && members_begun(by.dir, &why);
        by.o.restart = by.o.repeats = en->o->resume && run_has_no_checkpoint(by.dir);
        if (why.kind == ERR_RUN) *e = why;
        ok = why.kind != ERR_RUN;
        bool done = false;
        if (ok && by.o.resume) ok = members_done(by.dir, config, en->member.plan, &done, e);
        if (ok) tell(en, TASK_MEMBER, done);
        bool agent = agent_given(en->all->config);
        ok = ok && (done || (agent ? agent_fit : fit_run)(&by.o, &en->member, stopped, e));
    }
    free(config);
    orders_done(&by);
    return ok;
}

static bool could_train(const task *t, bool begins, err *e) {
    if (!task_fits(t, e) || !settings_metric(t->config, settings_task(&t->settings, t->data), e)) return false;
    if (!begins || !t->settings.init_from) return true;
    trainer *tr = task_trainer(t, e);
    contract *is = task_contract(t);
    bool ok = tr && fit_begin_from(t, tr, is, NULL, e);
    contract_free(is);
    trainer_free(tr);
    return ok;
}

// The plan is made quietly but for a check that takes a while.
static bool tell_checks(void *arg, const task_event *e) {
    return e->kind != TASK_CHECK || task_tell(arg, e);
}

// The plan, which follows from the description and the machine, the same for all members: the split is chosen here
// once, and what is free when a member begins does not change it. A mistake in the description is found here, before
// the directory is touched: also a seed of the last member that no description may have.
static bool plan_ensemble(const ensemble *en, chosen *plan, err *e) {
    ensemble last = *en;
    orders by;
    task t;
    err why;
    task_options quiet = *en->o;
    task_listener all = en->o->listener;
    quiet.listener = (task_listener){tell_checks, &all};
    last.member.number = last.member.of;
    orders_make(&by, &last);
    char *config = describe(&by.o, &why);
    bool ok = config != NULL;
    if (!ok) {
        err_input(e, "member %d: %s", last.member.number, why.text);
        e->kind = why.kind;
    }
    free(config);
    orders_done(&by);
    if (!ok || agent_given(en->all->config)) return ok && agent_fit_plan(&quiet, plan, e);
    if (!task_open(&t, &quiet, e)) return false;
    ok = fit_batch_suits(&t, e) && could_train(&t, !en->o->resume, e) && task_settle(en->all, &t, e);
    if (ok) task_chosen(&t, plan);
    if (ok) task_tell(&en->o->listener, &(task_event){.kind = TASK_KEYS, .task = &t});
    task_close(&t);
    return ok;
}

// True where what a member has saved is of its description and the plan. Where it cannot go on anyway it begins anew.
static bool member_goes_on(const ensemble *en, err *e) {
    orders by;
    err why, unread;
    orders_make(&by, en);
    char *config = describe(&by.o, e);
    bool ok = config != NULL;
    if (ok && !members_same(by.dir, config, en->member.plan, &why) &&
        (why.kind == ERR_RUN || members_begun(by.dir, &unread))) {
        *e = why;
        ok = false;
    }
    free(config);
    orders_done(&by);
    return ok;
}

// True where the directory holds an ensemble that can go on like this: under its own description, but for keys that may
// change and for members added.
static bool goes_on(const ensemble *en, err *e) {
    const char *dir = en->member.dir;
    int was;
    char of[16];
    ensemble each = *en;
    task_options as = *en->o;
    if (!members_of(dir, &was, e)) return false;
    if (!was && run_is(dir))
        return err_input(e, "%s: holds a single run; set train.ensemble back to 1, or train without --resume", dir);
    if (!was) return err_input(e, "%s: there is no run to resume; leave --resume out to begin one", dir);
    if (en->member.of < was)
        return err_input(e,
            "%s: has %d members, to which more can be added; leave train.ensemble=%d out, or train "
            "without --resume",
            dir, was, en->member.of);
    snprintf(of, sizeof of, "%d", was);
    task_change_behind(&as.description, "train.ensemble", of);
    char *config = describe(&as, e);
    bool ok = config && members_same(dir, config, NULL, e);
    for (each.member.number = 1; ok && each.member.number <= en->member.of; each.member.number++)
        ok = member_goes_on(&each, e);
    free(config);
    return ok;
}

// An ensemble whose directory is open.
struct fit_members {
    fit_orders orders;
    task_options o; // of members
    ensemble en;
    chosen plan;
    char *description; // path of the ensemble's config.yaml
    run *run;
};

// Opens the directory. From here on its own description is read: the file that was given may change, or may be moved,
// before the last member.
static bool open_ensemble(fit_members *m, err *e) {
    const task_options *o = &m->orders.options;
    const task *all = &m->orders.described;
    const char *dir = all->settings.dir;
    m->en = (ensemble){o, all, {.dir = dir, .of = all->settings.ensemble, .plan = &m->plan}};
    char *config = plan_ensemble(&m->en, &m->plan, e) ? task_description_text(all->config, e) : NULL;
    m->run = !config ? NULL : o->resume || o->restart ? run_resume(dir, e) : run_begin(dir, e);
    bool ok = m->run && (!o->resume || goes_on(&m->en, e)) && run_put_description(m->run, config, e);
    if (ok) db_run(run_db(m->run), o->version, config, "");
    free(config);
    m->description = run_path(dir, "config.yaml");
    m->o = *o;
    m->o.description.file = m->description;
    m->o.description.text = NULL;
    m->o.checked = true; // where the plan was made
    m->en.o = &m->o;
    return ok;
}

static void members_free(fit_members *m) {
    run_close(m->run);
    free(m->description);
    task_close(&m->orders.described);
    free(m);
}

fit_members *fit_members_open(const task_options *o, err *e) {
    fit_members *m = calloc(1, sizeof *m);
    NEED(m, "out of memory for an ensemble");
    if (!fit_prepare(&m->orders, o, e)) {
        free(m);
        return NULL;
    }
    if (open_ensemble(m, e)) {
        const task_member_event begins = {.dir = m->en.member.dir, .earlier = run_earlier(m->run)};
        task_tell(&m->o.listener, &(task_event){.kind = TASK_ENSEMBLE_BEGIN, .member = begins});
        return m;
    }
    members_free(m);
    return NULL;
}

int fit_members_count(const fit_members *m) {
    return m->en.member.of;
}

bool fit_members_train(const fit_members *m, int number, const task_listener *listener, bool *stopped, err *e) {
    task_options o = m->o;
    ensemble en = m->en;
    o.listener = *listener;
    en.o = &o;
    en.member.number = number;
    return train_member(&en, stopped, e);
}

void fit_members_close(fit_members *m, bool stopped, const err *why) {
    if (!m) return;
    const char *ended = why && why->kind == ERR_RUN ? "failed" : why || stopped ? "stopped" : "done";
    db_status(run_db(m->run), ended, why ? why->text : "");
    if (!why) tell(&m->en, TASK_ENSEMBLE_DONE, stopped);
    members_free(m);
}

bool fit_ensemble(const task_options *o, err *e) {
    bool ok = true, stopped = false;
    fit_members *m = fit_members_open(o, e);
    if (!m) return false;
    for (int k = 1; ok && !stopped && k <= fit_members_count(m); k++)
        ok = fit_members_train(m, k, &o->listener, &stopped, e);
    fit_members_close(m, stopped, ok ? NULL : e);
    return ok;
}
