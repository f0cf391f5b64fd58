// tradewind plan of an agent.
#include "cli/agent_commands.h"

#include "cli/agent_show.h"
#include "cli/show.h"
#include "graph/dtype.h"
#include "task/agent_split.h"

#include <math.h>
#include <stdio.h>

static void print_plan_json(const agent_task *t) {
    const agent_settings *s = &t->agent;
    const budget *b = &t->budget;
    demand n = agent_split_least(t);
    err unused;
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b}", "agent", agent_task_env(t),
            "model", model_name(t->model.kind), "device", t->device->name, "precision", precision_name(s->precision),
            "n_envs", (json_int_t)s->envs, "n_steps", (json_int_t)s->steps, "batch", (json_int_t)s->batch,
            "micro_batch", (json_int_t)s->micro, "accumulation", (json_int_t)(s->batch / s->micro), "total_timesteps",
            (json_int_t)s->total, "slab_bytes", (json_int_t)t->memory.total, "memory", agent_show_memory(&t->memory),
            "limit_bytes", json_bytes(b->limited ? (double)b->limit : NAN), "fits", agent_task_fits(t, &unused));
    json_object_set_new(all, "smallest_limit_gb", json_number(budget_gb(budget_least(b, &n))));
    show_agent_keys(t, true, stdout);
    json_line(stdout, all);
}

bool agent_plan_command(const cli_options *o, const task_options *ask, char *const *bars, err *e) {
    agent_task t;
    if (!agent_task_open(&t, ask, NULL, e)) return false;
    if (o->json) {
        print_plan_json(&t);
    } else {
        demand n = agent_split_least(&t);
        agent_show(&t, *bars, stdout);
        show_agent_keys(&t, false, stdout);
        printf("programs  act, last, ends, advantage, minibatch, test (doc/agents.md)\n");
        printf("smallest  a limit of %.2f GB works\n", budget_gb(budget_least(&t.budget, &n)));
    }
    agent_task_close(&t);
    return true;
}
