#include "cli/agent_commands.h"

#include "cli/agent_show.h"
#include "cli/ask.h"
#include "cli/show.h"
#include "graph/dtype.h"
#include "task/agent_split.h"
#include "task/agent_use.h"

#include <math.h>
#include <stdio.h>

// Plan

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

bool agent_plan_command(const cli_options *o, const task_options *ask, err *e) {
    agent_task t;
    if (!agent_task_open(&t, ask, NULL, e)) return false;
    if (o->json) {
        print_plan_json(&t);
    } else {
        demand n = agent_split_least(&t);
        agent_show(&t, stdout);
        show_agent_keys(&t, false, stdout);
        printf("programs  act, last, ends, advantage, minibatch, test (doc/agents.md)\n");
        printf("smallest  a limit of %.2f GB works\n", budget_gb(budget_least(&t.budget, &n)));
    }
    agent_task_close(&t);
    return true;
}

// Evaluate

// One pass over a part for every instrument.
static void print_traded(const trained_agent *t, const agent_score *s) {
    bool log = t->task.agent.test.env.market.reward == MARKET_LOG;
    const agent_stretches *of = &t->task.world.test;
    double steps = s->length * (double)s->episodes;
    printf("part      %s, %lld stretch%s of %lld steps in all, greedy, from the first bar on\n", t->task.world.part,
        (long long)s->episodes, s->episodes == 1 ? "" : "es", (long long)of->orders);
    if (steps < (double)of->orders)
        printf("ruin      after %.0f of these steps: equity fell to %g of the cash (agent.ruin)\n", steps,
            t->task.agent.test.env.market.ruin);
    printf("reward    %.6f", s->mean);
    if (s->episodes > 1) printf(", deviation %.6f", s->deviation);
    if (log) printf(": a return of %+.2f %% after costs", 100 * expm1(s->mean));
    printf("\n");
}

static void print_score(const trained_agent *t, const agent_score *s, bool json) {
    const env_settings *env = &t->task.agent.test.env;
    if (json) {
        json_line(stdout,
            json_pack("{s:s, s:s, s:s?, s:I, s:o, s:o, s:o, s:I}", "weights", t->weights, "environment",
                agent_task_env(&t->task), "part", t->task.world.open ? t->task.world.part : NULL, "episodes",
                (json_int_t)s->episodes, "mean_reward", json_number(s->mean), "std_reward", json_number(s->deviation),
                "mean_ep_length", json_number(s->length), "limit", (json_int_t)env->limit));
        return;
    }
    printf("weights   %s\n", t->weights);
    if (t->task.world.open) {
        print_traded(t, s);
        return;
    }
    printf("episodes  %lld in %s, greedy, of %d steps at most\n", (long long)s->episodes, agent_task_env(&t->task),
        env->limit);
    printf("reward    %.4f, deviation %.4f\nlength    %.1f\n", s->mean, s->deviation, s->length);
}

// Options that choose data.
static bool takes_options(const cli_options *o, err *e) {
    static const char *const of_models[] = {"--test", "--importance"};
    for (size_t i = 0; i < sizeof of_models / sizeof *of_models; i++)
        if (cli_given(o, of_models[i]))
            return err_input(e, "%s: the run is of an agent, which has none; leave it out", of_models[i]);
    return true;
}

bool agent_evaluate_command(const cli_options *o, err *e) {
    trained_agent t;
    agent_score s;
    trained_options ask = {
        .run = o->word[0], .overrides = o->word + 1, .override_count = o->words - 1, .version = TRADEWIND_VERSION};
    ask.part = cli_given(o, "--part");
    ask.data = cli_given(o, "--data");
    if (!takes_options(o, e) || !ask_devices(o, &ask.devices, e) || !trained_agent_open(&t, &ask, e)) return false;
    bool ok = trained_agent_score(&t, &s, e);
    if (ok) print_score(&t, &s, o->json);
    trained_agent_close(&t);
    return ok;
}
