#include "task/agent_fit.h"

#include "base/clock.h"
#include "base/term.h"
#include "graph/identity.h"
#include "run/command.h"
#include "task/agent_keep.h"
#include "task/agent_lines.h"
#include "task/keys.h"
#include "task/lines.h"
#include "task/memory_map.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    agent_task task;
    const fit_member *member; // or NULL
    char *config;             // as the directory and checkpoints have it
    chosen plan;
    agent *agent;
    run *run;
    log_file *log; // the run's
    agent_keeper *keeper;
    monitor *monitor;  // or NULL
    stop stop;         // the best evaluation
    bool stopped;      // it was asked to stop
    int64_t iteration; // iterations before the one that is under way
    double next;       // when an iteration's line is due again, as clock_seconds has it
    int64_t first;     // iterations that were done before
    double begun;      // when this process's first iteration began, as clock_seconds has it
} fit;

static bool tell(const fit *f, const task_event *e) {
    return task_tell(&f->task.options.listener, e);
}

// Before the first iteration

// Weights to begin with, of an agent in the same environment with nets of the same shape.
static bool begin_from(const fit *f, err *e) {
    const agent_task *t = &f->task;
    const char *path = t->settings.init_from;
    if (t->options.resume || !path) return true;
    return agent_weights_suit(t, path, e) && agent_load(f->agent, path, e);
}

static bool make_agent(fit *f, err *e) {
    const agent_task *t = &f->task;
    f->config = task_description_text(t->config, e);
    if (!f->config || !agent_task_fits(t, e)) return false;
    f->agent = agent_task_agent(t, e);
    if (!f->agent || !begin_from(f, e)) return false;
    agent_task_chosen(t, f->agent, &f->plan);
    f->stop.patience = t->settings.patience;
    return fit_is_alike(f->member, &f->plan, e);
}

static bool open_run(fit *f, err *e) {
    const agent_task *t = &f->task;
    const char *dir = t->settings.dir;
    f->run = fit_stays(&t->options, dir) ? run_resume(dir, e) : run_begin(dir, e);
    if (!f->run) return false;
    f->log = run_log(f->run);
    f->keeper = agent_keeper_new(&(agent_keeper_options){
        .run = f->run, .task = t, .agent = f->agent, .config = f->config, .plan = &f->plan, .stop = &f->stop});
    if (t->options.resume && !agent_keeper_resume(f->keeper, e)) return false;
    if (t->options.restart) records_restart(agent_keeper_records(f->keeper));
    f->first = agent_iteration(f->agent);
    return records_describe(agent_keeper_records(f->keeper), e);
}

static void log_key(void *arg, const told_key *k) {
    log_line(arg, "%s %s: %s", k->unused ? "unused" : "key", k->key, k->text);
}

// Where the picture of memory cannot be written, that is told, and the run goes on.
static void keep_memory(const fit *f) {
    err why;
    const agent_task *t = &f->task;
    const agent_memory *a = &t->memory;
    memory_map m = {.plan = agent_plan(f->agent),
        .graph = agent_graph(f->agent),
        .bytes = {.weights = a->weights,
            .gradients = a->gradients,
            .moments = a->moments,
            .states = a->states,
            .activations = a->activations,
            .recordings = a->recordings,
            .data = a->data},
        .budget = t->options.place ? NULL : &t->budget,
        .demand = agent_task_demand(t)};
    if (!memory_map_write(run_dir(f->run), &m, f->log, &why))
        tell(f, &(task_event){.kind = TASK_WARNING, .line = why.text});
}

static void tell_begin(fit *f) {
    const agent_task *t = &f->task;
    char device[IDENTITY_ROOM], card[LINE_ROOM], world[LINE_ROOM], more[LINE_ROOM];
    device_identity is;
    t->device->identify(t->queue, &is);
    identity_text(&is, device, sizeof device);
    log_line(f->log, "training an agent of %lld parameters on %s",
        (long long)graph_parameter_values(agent_graph(f->agent)), device);
    bool counted = lines_card(t->device, t->queue, card, sizeof card);
    if (counted) log_line(f->log, "card: %s", card);
    agent_task_each_key(t, log_key, f->log);
    agent_lines_world(t, world, sizeof world);
    log_line(f->log, "environment: %s", world);
    if (t->agent.micro < t->agent.batch) {
        agent_lines_split(t, more, sizeof more);
        log_line(f->log, "split: %s", more);
    }
    if (agent_lines_left(t, more, sizeof more)) log_line(f->log, "left out: %s", more);
    if (agent_lines_idle(t, more, sizeof more)) log_line(f->log, "warning: %s", more);
    tell(f, &(task_event){.kind = TASK_AGENT_BEGIN,
                .line = world,
                .agent = {.task = t,
                    .graph = agent_graph(f->agent),
                    .plan = agent_plan(f->agent),
                    .iterations = agent_iterations(f->agent),
                    .card = counted ? card : NULL,
                    .earlier = run_earlier(f->run),
                    .dir = run_dir(f->run)}});
    keep_memory(f);
}

// Iterations

static bool is_early(const fit *f) {
    return f->stop.patience && stop_now(&f->stop) && !agent_is_over(f->agent);
}

// Steps of all environments in this process.
static int64_t steps_here(const fit *f) {
    return (agent_iteration(f->agent) - f->first) * f->task.agent.envs * f->task.agent.steps;
}

static bool go_on(void *arg, double share) {
    const fit *f = arg;
    double rows = (double)(f->task.agent.envs * f->task.agent.steps);
    return tell(f, &(task_event){.kind = TASK_ACTING, .steps = ((double)f->iteration + share) * rows});
}

// Evaluates where it is time; false where that fails.
static bool judge(fit *f, agent_ended *i, agent_score *s, err *e) {
    bool over = agent_is_over(f->agent);
    if (i->report->iteration % f->task.every == 0 || over) {
        if (!agent_evaluate(f->agent, s, e)) return false;
        f->stopped = s->stopped;
        if (f->stopped) return true;
        i->score = s;
        i->best = stop_see(&f->stop, i->report->iteration, s->mean);
    }
    i->last = over || is_early(f);
    return true;
}

// The line with the time that is left, where nothing stops the run before, memory and utilisation.
static void log_iteration(fit *f, const agent_ended *i, const char *line) {
    const agent_settings *s = &f->task.agent;
    char text[LINE_ROOM];
    double rest = (double)(agent_iterations(f->agent) * s->envs * s->steps - i->report->total_timesteps);
    snprintf(text, sizeof text, "%s", line);
    records_add_state(agent_keeper_records(f->keeper), i->fps > 0 ? rest / i->fps : NAN, text, sizeof text);
    log_line(f->log, "%s", text);
}

// Lines are for people: one a second, and every evaluation.
static bool tell_iteration(fit *f, const agent_ended *i) {
    const agent_settings *s = &f->task.agent;
    char line[LINE_ROOM];
    double now = clock_seconds();
    bool due = i->score || now >= f->next;
    if (due) f->next = now + 1;
    if (i->score)
        agent_lines_score(i->report, i->score, i->best, line, sizeof line);
    else
        agent_lines_iteration(i->report, line, sizeof line);
    if (due) log_iteration(f, i, line);
    return tell(f, &(task_event){.kind = TASK_ITERATION,
                       .line = due ? line : NULL,
                       .iteration = {.task = &f->task,
                           .report = i->report,
                           .total = agent_iterations(f->agent) * s->envs * s->steps,
                           .score = i->score,
                           .best = i->best,
                           .fps = i->fps}});
}

// Stopped in the midst of an iteration: the agent is as it was before it.
static bool give_up(fit *f, err *e) {
    f->stopped = true;
    if (agent_keeper_leave(f->keeper)) return true;
    *e = *agent_keeper_failure(f->keeper);
    return false;
}

static bool iterate(fit *f, err *e) {
    agent_report r;
    agent_score s;
    agent_ended i = {.report = &r};
    f->iteration = agent_iteration(f->agent);
    if (!agent_iterate(f->agent, &r, e) || (!r.stopped && !judge(f, &i, &s, e))) return false;
    if (r.stopped || f->stopped) return give_up(f, e);
    i.fps = (double)steps_here(f) / (clock_seconds() - f->begun);
    bool on = tell_iteration(f, &i);
    records_samples(agent_keeper_records(f->keeper), f->monitor, (uint64_t)r.total_timesteps);
    f->stopped = !on && !i.last;
    if (agent_keeper_iteration(f->keeper, &i) && (!f->stopped || agent_keeper_leave(f->keeper))) return true;
    *e = *agent_keeper_failure(f->keeper);
    return false;
}

static bool run_all(fit *f, err *e) {
    bool ok = true;
    f->begun = clock_seconds();
    agent_watch(f->agent, go_on, f);
    while (ok && !f->stopped && !agent_is_over(f->agent) && !is_early(f)) ok = iterate(f, e);
    if (ok && !agent_keeper_conclude(f->keeper, f->stopped, is_early(f) && !f->stopped)) {
        *e = *agent_keeper_failure(f->keeper);
        ok = false;
    }
    if (ok) return true;
    return records_say_saved(agent_keeper_records(f->keeper), agent_keeper_best(f->keeper), f->stop.best_epoch, e);
}

// The end

static void log_end(const fit *f, const task_agent_done_event *d) {
    char *resume = command_resume(d->resume_in);
    if (d->monitor) log_line(f->log, "monitor: %s", d->monitor);
    if (d->best_iteration)
        log_line(f->log, "best iteration %lld, mean reward %.4g; weights in %s", (long long)d->best_iteration, d->best,
            d->weights);
    if (d->interrupted)
        log_line(f->log, "stopped by a signal after iteration %lld; go on with: %s", (long long)d->iterations, resume);
    else
        log_line(f->log, "done after %lld iteration%s%s", (long long)d->iterations, term_s(d->iterations),
            d->stopped_early ? ", stopped early" : "");
    free(resume);
}

static void conclude(fit *f) {
    const agent_settings *s = &f->task.agent;
    int64_t done = agent_iteration(f->agent), rows = s->envs * s->steps;
    char seen[LINE_ROOM];
    task_agent_done_event d = {.task = &f->task,
        .iterations = done,
        .timesteps = done * rows,
        .best_iteration = f->stop.best_epoch,
        .best = f->stop.best,
        .interrupted = f->stopped,
        .stopped_early = !f->stopped && is_early(f),
        .was_over = done == f->first,
        .length_fixed = records_timesteps_matter(f->config),
        .weights = agent_keeper_best(f->keeper),
        .resume_in = f->member ? f->member->dir : run_dir(f->run),
        .slab = agent_bytes(f->agent),
        .seconds = clock_seconds() - f->begun,
        .steps = steps_here(f),
        .seen = monitor_gauges(f->monitor)};
    if (d.seen.samples) {
        lines_gauges(&d.seen, seen, sizeof seen);
        d.monitor = seen;
    }
    log_end(f, &d);
    tell(f, &(task_event){.kind = TASK_AGENT_DONE, .agent_done = d});
}

static bool train(fit *f, err *e) {
    const agent_task *t = &f->task;
    records *r = agent_keeper_records(f->keeper);
    f->monitor = records_watch(r, t->device, t->queue, &t->budget);
    bool ok = run_all(f, e);
    records_unwatch(r, f->monitor, (uint64_t)(agent_iteration(f->agent) * t->agent.envs * t->agent.steps));
    if (ok) conclude(f);
    return ok;
}

// An environment without data is played by the weights of one agent alone.
static bool suits_members(const agent_task *t, err *e) {
    return t->world.open ||
           config_fail(t->config, "train.ensemble", e,
               "members decide together at the bars of agent.env: market, and %s has none; leave it out, and train "
               "other seeds as runs of their own",
               agent_task_env(t));
}

bool agent_fit_plan(const task_options *o, chosen *plan, err *e) {
    fit f = {0};
    if (!agent_task_open(&f.task, o, NULL, e)) return false;
    bool ok = suits_members(&f.task, e) && make_agent(&f, e);
    *plan = f.plan;
    agent_free(f.agent);
    free(f.config);
    agent_task_close(&f.task);
    return ok;
}

bool agent_fit(const task_options *o, const fit_member *member, bool *stopped, err *e) {
    fit f = {.member = member};
    task_options as = *o;
    if (member) as.like = member->plan;
    if (!agent_task_open(&f.task, &as, NULL, e)) return false;
    bool ok = make_agent(&f, e) && open_run(&f, e);
    if (ok) tell_begin(&f);
    ok = ok && train(&f, e);
    // A description that does not fit is no failure of the run that is there.
    if (!ok && f.keeper && e->kind == ERR_RUN) records_fail(agent_keeper_records(f.keeper), e->text);
    if (f.keeper) records_tell_lost(agent_keeper_records(f.keeper));
    *stopped = f.stopped;
    monitor_free(f.monitor);
    agent_keeper_free(f.keeper);
    run_close(f.run);
    agent_free(f.agent);
    free(f.config);
    agent_task_close(&f.task);
    return ok;
}
