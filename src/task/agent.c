#include "task/agent.h"

#include "base/clock.h"
#include "graph/dtype.h"
#include "rl/agent_read.h"
#include "run/weights.h"
#include "task/agent_split.h"
#include "train/agent_keys.h"

#include <string.h>

// The smallest rollout that there is, for weights that are used: no more of it is played.
static void shrink(agent_settings *s) {
    s->envs = s->steps = s->batch = s->micro = 1;
}

static bool read_description(agent_task *t, err *e) {
    if (!agent_read(t->config, &t->agent, e)) return false;
    if (!agent_read_model(t->config, &t->agent, &t->model, e)) return false;
    t->every = agent_evaluate_every(t->config, &t->agent);
    if (t->options.trained) shrink(&t->agent);
    return true;
}

// The precision that the description asks for, or bf16 where the device computes it, else fp32.
static bool choose_precision(agent_task *t, err *e) {
    precision p = t->settings.precision;
    if (t->settings.precision_open) p = t->device->computes(t->queue, PRECISION_BF16) ? PRECISION_BF16 : PRECISION_FP32;
    t->agent.precision = p;
    if (p == PRECISION_FP16)
        return config_fail(t->config, "gpu_optimization.use_mixed_precision", e,
            "agents have no fp16, whose gradients overflow; use bf16 or false");
    return t->device->computes(t->queue, p) ||
           config_fail(t->config, "gpu_optimization.use_mixed_precision", e,
               "%s cannot compute in %s; use true or false", t->device->name, precision_name(p));
}

static agent_place place_of(const agent_task *t) {
    const task_place *at = t->options.place;
    return (agent_place){
        .device = t->device, .queue = t->queue, .space = at ? at->space : NULL, .data = at ? at->data : NULL};
}

// On a device that was opened.
static bool build(agent_task *t, err *e) {
    if (!choose_precision(t, e) || !budget_make(&t->budget, t->config, &t->settings, t->device, t->queue, e))
        return false;
    return agent_split_choose(t, e);
}

// Where `auto` chose a card whose memory others hold, the CPU computes; what is larger than the limit is left to be
// refused.
static bool leave_full_card(agent_task *t, err *e) {
    const task_devices *from = &t->options.devices;
    demand n = agent_task_demand(t);
    err full;
    if (!from->host || from->queue || t->device->host_memory || agent_task_fits(t, &full)) return true;
    if (budget_is_low(&t->budget, &n) || !t->settings.precision_open) return true;
    t->no_card = full;
    t->device->close(t->queue);
    t->device = from->host;
    t->queue = from->host->open(&from->options, e);
    return t->queue && build(t, e);
}

bool agent_described(const task_options *o, bool *is, err *e) {
    task described;
    if (!task_describe_run(&described, o, e)) return false;
    *is = agent_given(described.config);
    task_close(&described);
    return true;
}

bool agent_task_open(agent_task *t, const task_options *o, const char *part, err *e) {
    *t = (agent_task){.options = *o};
    t->config = task_describe(&o->description, &t->settings, e);
    if (!t->config) return false;
    bool ok = read_description(t, e) && agent_data_open(&t->world, o, part, &t->agent, e) &&
              (o->trained || task_name_device(&t->options.devices, t->config, e));
    t->made = clock_seconds();
    ok = ok && task_open_queue(&t->options.devices, &t->device, &t->queue, &t->no_card, e) && build(t, e) &&
         leave_full_card(t, e);
    t->opened = clock_seconds();
    if (!ok) agent_task_close(t);
    return ok;
}

void agent_task_close(agent_task *t) {
    if (t->queue && t->queue != t->options.devices.queue) t->device->close(t->queue);
    agent_data_close(&t->world);
    config_free(t->config);
}

agent *agent_task_agent(const agent_task *t, err *e) {
    agent_place at = place_of(t);
    agent *a = agent_new(&at, &t->agent, &t->model, e);
    if (!a || budget_holds(&t->budget, t->device, t->queue, e)) return a;
    agent_free(a);
    return NULL;
}

actor *agent_task_actor(const agent_task *t, int64_t rows, err *e) {
    agent_place at = place_of(t);
    actor *a = actor_new(&at, &t->agent, &t->model, rows, e);
    if (!a || budget_holds(&t->budget, t->device, t->queue, e)) return a;
    actor_free(a);
    return NULL;
}

size_t agent_task_bytes(const agent_task *t, const split *parts) {
    agent_place at = place_of(t);
    agent_settings s = t->agent;
    agent_data_resize(&t->world, parts, &s);
    return space_aligned(agent_measure(&at, &s, &t->model).own);
}

// Copies on the host: the best weights, tables that are read back, and what a checkpoint gathers. Recordings are
// counted by budget_holds, once they are there.
demand agent_task_demand(const agent_task *t) {
    size_t tables = agent_host_bytes(&t->agent) + t->memory.states;
    return (demand){.slab = t->memory.total, .copies = 2 * t->memory.weights + t->memory.moments + tables};
}

bool agent_task_fits(const agent_task *t, err *e) {
    demand n = agent_task_demand(t);
    if (t->options.place) return true;
    return budget_fits(&t->budget, &n, t->device->name, e);
}

bool agent_weights_suit(const agent_task *t, const char *path, err *e) {
    safetensors *f = weights_open(path, e);
    if (!f) return false;
    const char *was = safetensors_metadata(f, "environment"), *is = agent_task_env(t);
    bool ok = !was || strcmp(was, is) == 0 ||
              err_input(e, "%s: was trained in %s, not in %s; put agent.env back", path, was, is);
    safetensors_close(f);
    return ok;
}

void agent_task_chosen(const agent_task *t, const agent *a, chosen *c) {
    *c = (chosen){.precision = t->agent.precision,
        .micro = t->agent.micro,
        .parts = t->agent.batch / t->agent.micro,
        .parameters = graph_parameter_values(agent_graph(a))};
    t->device->identify(t->queue, &c->device);
    if (t->world.open) task_chosen_data(&t->world.task, c);
}

const char *agent_task_env(const agent_task *t) {
    return env_name(t->agent.world.env.kind);
}
