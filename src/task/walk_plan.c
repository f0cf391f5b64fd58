#include "task/walk_plan.h"

#include "base/pool.h"
#include "task/fit.h"
#include "train/engine.h"

static const device *device_of(const walk_plan *p) {
    return p->agents ? p->agent.device : p->model.device;
}

static queue *queue_of(const walk_plan *p) {
    return p->agents ? p->agent.queue : p->model.queue;
}

static const settings *settings_of(const walk_plan *p) {
    return p->agents ? &p->agent.settings : &p->model.settings;
}

static const budget *budget_of(const walk_plan *p) {
    return p->agents ? &p->agent.budget : &p->model.budget;
}

// Memory

// Bytes that a run takes of a fold.
static size_t bytes_of(const walk_plan *p, const split *parts) {
    const task *t = &p->model;
    if (p->agents) return agent_task_bytes(&p->agent, parts);
    return trainer_memory(&t->job, parts, &t->settings, t->device, t->queue).own;
}

// Bytes that a run takes beside the data, of the fold that takes most.
static size_t largest_run(const walk_plan *p) {
    size_t most = 0;
    for (int i = 0; i < p->o.folds; i++) {
        size_t bytes = bytes_of(p, p->o.parts[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

// Bytes of the data that every run reads.
static size_t data_bytes(const walk_plan *p) {
    const task *t = &p->model;
    if (p->agents) return space_aligned(p->agent.memory.data);
    return space_aligned(trainer_memory(&t->job, &t->split, &t->settings, t->device, t->queue).data);
}

// True where runs can read one copy of the data: unless each scales its own.
static bool shares_data(const walk_plan *p) {
    return (p->agents ? &p->agent.world.task : &p->model)->data == p->o.data;
}

// True where that copy lies in a device's own memory.
static bool shares_store(const walk_plan *p) {
    return shares_data(p) && !device_of(p)->host_memory;
}

// Bytes of a run beside what is shared.
static size_t run_bytes(const walk_plan *p) {
    return largest_run(p) + (shares_store(p) ? 0 : data_bytes(p));
}

// Runs that fit into the memory at once.
static int64_t count_fitting(const walk_plan *p) {
    demand n = p->agents ? agent_task_demand(&p->agent) : task_demand(&p->model);
    const budget *b = budget_of(p);
    size_t shared = shares_store(p) ? data_bytes(p) : 0;
    n.slab = run_bytes(p);
    if (p->agents && !shares_data(p)) n.copies += agent_data_bytes(&p->agent.world);
    return b->slab > shared ? (int64_t)((b->slab - shared) / budget_need(b, &n)) : 0;
}

// Runs at once: as many as there are processors or, on a card, a few, and no more than fit.
static bool choose_jobs(walk_plan *p, err *e) {
    enum { CARD_JOBS = 10 };
    const settings *s = settings_of(p);
    int asked = s->walk.jobs, threads = p->o.options.devices.options.threads;
    int64_t fit = count_fitting(p);
    if (!threads) threads = pool_processors();
    if (asked > p->o.runs) asked = p->o.runs;
    if (asked > 1 && asked > fit)
        return config_fail(p->agents ? p->agent.config : p->model.config, "walk.jobs", e,
            "no more than %lld runs at once fit into the memory; use auto", (long long)(fit < 1 ? 1 : fit));
    p->jobs = asked ? asked : device_of(p)->host_memory ? threads : CARD_JOBS;
    if (p->jobs > p->o.runs) p->jobs = p->o.runs;
    if (p->jobs > fit) p->jobs = (int)fit;
    if (s->walk.warm || p->jobs < 1) p->jobs = 1;
    p->threads = threads / p->jobs < 1 ? 1 : threads / p->jobs;
    return true;
}

// The first run

static bool open_model(walk_plan *p, err *e) {
    task *t = &p->model;
    if (!task_open(t, &p->o.options, e)) return false;
    p->opened = true;
    bool ok =
        fit_batch_suits(t, e) && task_fits(t, e) && settings_metric(t->config, settings_task(&t->settings, t->data), e);
    if (ok) task_chosen(t, &p->chosen);
    return ok;
}

static bool open_agent(walk_plan *p, err *e) {
    agent_task *t = &p->agent;
    if (!agent_task_open(t, &p->o.options, NULL, e)) return false;
    p->opened = true;
    if (!agent_task_fits(t, e)) return false;
    p->chosen =
        (chosen){.precision = t->agent.precision, .micro = t->agent.micro, .parts = t->agent.batch / t->agent.micro};
    task_chosen_data(&t->world.task, &p->chosen);
    return true;
}

bool walk_plan_open(walk_plan *p, const walk_plan_options *o, err *e) {
    *p = (walk_plan){.o = *o};
    return agent_described(&o->options, &p->agents, e) && (p->agents ? open_agent(p, e) : open_model(p, e)) &&
           choose_jobs(p, e);
}

bool walk_plan_take(walk_plan *p, err *e) {
    const device *d = device_of(p);
    bool shared = shares_store(p), together = p->agents ? !d->host_memory : shared;
    if (!together || p->jobs < 2) return true;
    size_t data = shared ? data_bytes(p) : 0;
    p->room.space = space_new(d, queue_of(p), data + (size_t)p->jobs * run_bytes(p), e);
    if (!p->room.space) return false;
    if (!shared) return true;
    p->room.data =
        p->agents ? agent_world_store(&p->agent.agent.world, false, &p->world) : engine_data(&p->model.job, false);
    return store_place(p->room.data, queue_of(p), p->room.space, e);
}

const task_place *walk_plan_room(const walk_plan *p) {
    return p->room.space ? &p->room : NULL;
}

const agent_market *walk_plan_market(const walk_plan *p) {
    return p->agents && shares_data(p) ? &p->agent.world.market : NULL;
}

void walk_plan_close(walk_plan *p) {
    store_free(p->room.data);
    if (p->world) graph_free(p->world);
    p->world = NULL;
    if (p->room.space) space_free(p->room.space);
    if (p->opened && p->agents) agent_task_close(&p->agent);
    if (p->opened && !p->agents) task_close(&p->model);
    p->room = (task_place){0};
    p->opened = false;
}
