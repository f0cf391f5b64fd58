#include "task/agent_split.h"

#include "task/members.h"

static const char key_parts[] = "gpu_optimization.gradient_accumulation_steps",
                  key_open[] = "gpu_optimization.dynamic_batch_sizing";

bool agent_split_is_open(const agent_task *t) {
    const agent_settings *s = &t->agent;
    if (s->entropy_bound > 0 || s->value_bound > 0) return false;
    if (config_given(t->config, key_open)) return config_bool(t->config, key_open);
    return config_is(t->config, key_parts, "auto") || !config_given(t->config, key_parts);
}

// Rows that cannot be parted: a step, or with an LSTM a whole sequence.
static int64_t unit(const agent_settings *s) {
    return s->lstm ? s->steps : 1;
}

static void measure(agent_task *t, int64_t parts) {
    agent_place at = {.device = t->device, .queue = t->queue};
    t->agent.micro = t->agent.batch / parts;
    t->memory = agent_measure(&at, &t->agent, &t->model);
}

static int64_t parts_of(const agent_task *t, const chosen *c) {
    return c->micro * c->parts == t->agent.batch && c->micro % unit(&t->agent) == 0 ? c->parts : 0;
}

// Finds the micro-batches that a run has which goes on, or the first fold of its walk; 0 where there is none, or where
// they are none of this minibatch's.
static bool find_parts(agent_task *t, err *e) {
    chosen was;
    bool there = false;
    t->parts = t->options.like ? parts_of(t, t->options.like) : 0;
    if (t->options.resume && !members_plan(t->settings.dir, &was, &there, e)) return false;
    if (there) t->parts = parts_of(t, &was);
    return true;
}

// Goes through the splits, from few micro-batches to many, until one fits; puts the one that takes the least where none
// does, or where that is `wanted`.
static void search(agent_task *t, bool least_wanted) {
    int64_t most = t->agent.batch / unit(&t->agent), best = 1;
    size_t least = SIZE_MAX;
    for (int64_t parts = 1; parts <= most; parts++) {
        if (most % parts) continue;
        measure(t, parts);
        demand n = agent_task_demand(t);
        if (!least_wanted && budget_takes(&t->budget, &n)) return;
        if (t->memory.total >= least) continue;
        least = t->memory.total;
        best = parts;
    }
    measure(t, best);
}

bool agent_split_choose(agent_task *t, err *e) {
    if (!find_parts(t, e)) return false;
    bool open = agent_split_is_open(t);
    bool bounded = t->agent.entropy_bound > 0 || t->agent.value_bound > 0;
    t->budget.whole = !open && !bounded;
    t->budget.smaller = open ? "agent.n_envs or agent.n_steps" : "agent.batch_size";
    if (!open || t->parts)
        measure(t, t->parts ? t->parts : t->agent.batch / t->agent.micro);
    else
        search(t, false);
    return true;
}

demand agent_split_least(const agent_task *t) {
    agent_task least = *t;
    if (agent_split_is_open(t) && !t->parts) search(&least, true);
    return agent_task_demand(&least);
}
