#include "task/walk_jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    walk_run *run;
    int count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int next, ended; // runs taken, and those that have ended
    bool *over;      // [count]
    atomic_bool stop;
} jobs_state;

static void take_agent(walk_run *r, const task_agent_done_event *d) {
    r->stopped = d->interrupted;
    r->metric = NULL;
    r->result = (train_result){.epochs = d->iterations,
        .best_epoch = d->best_iteration,
        .best = d->best,
        .interrupted = d->interrupted,
        .stopped_early = d->stopped_early};
}

// Told by the thread of the run. Everything else that a run tells is in its own log.
static bool on_event(void *arg, const task_event *e) {
    walk_run *r = arg;
    switch (e->kind) {
    case TASK_BEGIN: atomic_store(&r->all, e->begin.all_samples); break;
    case TASK_STEP: atomic_store(&r->at, (double)((e->step.epoch - 1) * e->step.total + e->step.done)); break;
    case TASK_MEMBER: r->already = e->member.already; break;
    case TASK_DONE:
        r->result = *e->done.result;
        r->metric = e->done.metric;
        r->stopped = e->done.result->interrupted;
        break;
    case TASK_AGENT_BEGIN: atomic_store(&r->all, (double)e->agent.iterations); break;
    case TASK_ITERATION: atomic_store(&r->at, (double)e->iteration.report->iteration); break;
    case TASK_AGENT_DONE: take_agent(r, &e->agent_done); break;
    case TASK_LOST: snprintf(r->lost, sizeof r->lost, "%s", e->line); break;
    default: break;
    }
    return !atomic_load(r->stop);
}

// Seeds

void walk_seeds_init(walk_seeds *s, const task_options *o, int count) {
    *s = (walk_seeds){.options = *o, .left = count};
    pthread_mutex_init(&s->mutex, NULL);
}

// The others wait for the one that opens the ensemble. One that cannot be opened fails for all.
static bool open_seeds(walk_seeds *s, err *e) {
    pthread_mutex_lock(&s->mutex);
    err why;
    bool failed = s->why.kind != ERR_NONE;
    if (!s->members && !failed && !(s->members = fit_members_open(&s->options, &why))) s->why = why;
    bool open = s->members != NULL;
    if (!open) *e = s->why;
    pthread_mutex_unlock(&s->mutex);
    return open;
}

static void close_seeds(walk_seeds *s) {
    fit_members_close(s->members, s->stopped || s->left > 0, s->why.kind == ERR_NONE ? NULL : &s->why);
    s->members = NULL;
}

static void end_seed(walk_seeds *s, const walk_run *r) {
    pthread_mutex_lock(&s->mutex);
    s->stopped |= r->stopped;
    if (!r->ok && s->why.kind == ERR_NONE) s->why = r->why;
    if (--s->left == 0) close_seeds(s);
    pthread_mutex_unlock(&s->mutex);
}

// Seeds behind a failure are trained all the same.
static void train_seed(walk_run *r, const task_listener *l) {
    r->ok = open_seeds(r->seeds, &r->why) && fit_members_train(r->seeds->members, r->member, l, &r->stopped, &r->why);
    end_seed(r->seeds, r);
}

// Runs

static void carry_out(walk_run *r) {
    task_listener l = {on_event, r};
    r->begun = true;
    r->options.listener = l;
    if (r->seeds)
        train_seed(r, &l);
    else
        r->ok = task_fit(&r->options, &r->why);
}

static void *work(void *arg) {
    jobs_state *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (s->next < s->count && !atomic_load(&s->stop)) {
        int i = s->next++;
        pthread_mutex_unlock(&s->mutex);
        carry_out(&s->run[i]);
        pthread_mutex_lock(&s->mutex);
        s->over[i] = true;
        s->ended++;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

// Runs that count as much as each other: how long one will be is not known before it begins.
static double share_done(const jobs_state *s) {
    double sum = 0;
    for (int i = 0; i < s->count; i++) {
        double all = atomic_load(&s->run[i].all), at = atomic_load(&s->run[i].at);
        sum += s->over[i] ? 1 : all > 0 && at < all ? at / all : all > 0;
    }
    return sum / s->count;
}

static void wait_a_little(jobs_state *s) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->changed, &s->mutex, &until);
}

// Until every run that was taken has ended. The mutex is given up while something is told.
static void watch(jobs_state *s, const walk_view *v) {
    int told = 0;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        bool over = s->ended == s->next && (s->next == s->count || atomic_load(&s->stop));
        double share = share_done(s);
        int until = told;
        while (until < s->next && s->over[until]) until++;
        pthread_mutex_unlock(&s->mutex);
        for (; told < until; told++) v->ended(v->arg, told);
        if (!v->progress(v->arg, share)) atomic_store(&s->stop, true);
        pthread_mutex_lock(&s->mutex);
        if (over) break;
        if (s->ended < s->next || !atomic_load(&s->stop)) wait_a_little(s);
    }
    pthread_mutex_unlock(&s->mutex);
}

bool walk_jobs(walk_run *run, int count, int jobs, const walk_view *v, err *e) {
    jobs_state s = {.run = run, .count = count, .over = calloc((size_t)count, sizeof *s.over)};
    pthread_t *thread = calloc((size_t)jobs, sizeof *thread);
    NEED(s.over && thread, "out of memory for %d jobs", jobs);
    pthread_mutex_init(&s.mutex, NULL);
    pthread_cond_init(&s.changed, NULL);
    int started = 0, failed = 0;
    for (int i = 0; i < count; i++) run[i].stop = &s.stop;
    while (started < jobs && !failed) {
        failed = pthread_create(&thread[started], NULL, work, &s);
        started += !failed;
    }
    if (failed) atomic_store(&s.stop, true);
    if (started) watch(&s, v);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < count; i++) {
        if (run[i].member != 1) continue;
        close_seeds(run[i].seeds);
        pthread_mutex_destroy(&run[i].seeds->mutex);
    }
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.mutex);
    free(thread);
    free(s.over);
    return !failed || err_run(e, "cannot start a thread: %s; set walk.jobs=1", strerror(failed));
}
