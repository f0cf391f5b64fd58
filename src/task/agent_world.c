#include "task/agent_world.h"

#include <string.h>

// NULL for a word that is no part.
static const split_part *part_named(const split *s, const char *name) {
    if (strcmp(name, "train") == 0) return &s->train;
    if (strcmp(name, "validation") == 0) return &s->validation;
    return strcmp(name, "test") == 0 ? &s->test : NULL;
}

// A position whose margin is the whole equity is refused at every open that lies above the close, and by its costs.
static bool leaves_room(const agent_data *d, const agent_settings *s, const account_terms *terms, err *e) {
    const double most = 0.98;
    double size = s->world.env.market.size;
    return size <= most * terms->leverage ||
           config_fail(d->task.config, "agent.position", e,
               "a position of %g times the equity leaves nothing for costs at a leverage of %g; use %g or less, or a "
               "larger account.leverage",
               size, terms->leverage, most * terms->leverage);
}

static bool make_market(agent_data *d, const agent_settings *s, err *e) {
    const task *t = &d->task;
    account_terms terms;
    const char *name = d->part;
    const split_part *tested = part_named(&t->split, name);
    if (!tested) return err_input(e, "--part: %s is no part of an agent's data; use train, validation or test", name);
    if (!tested->count)
        return err_input(
            e, "%s: the part %s has no samples; change data.split or name another part", t->data->name, name);
    return account_terms_read(t->config, &terms, e) && leaves_room(d, s, &terms, e) &&
           agent_market_make(&d->market, t->data, s->world.env.market.lags, t->scaler, &terms, e) &&
           agent_market_part(&d->train, &d->market, t->data, &t->split.train, "train", s->world.env.limit, e) &&
           agent_market_part(&d->test, &d->market, t->data, tested, name, 0, e);
}

// Evaluations have one episode for each stretch, from its first bar to its last.
static void put_worlds(const agent_data *d, agent_settings *s) {
    agent_market_world(&d->market, &d->train, &s->world);
    s->test = s->world;
    agent_market_world(&d->market, &d->test, &s->test);
    s->test.part[MARKET_STRETCHES].name = "tested stretches"; // of the training part, too
    s->test.env.market.from_first = true;
    s->test.env.limit = 0;
    s->tests = d->test.count;
}

bool agent_data_open(agent_data *d, const task_options *o, const char *part, agent_settings *s, err *e) {
    *d = (agent_data){.part = part ? part : "validation"};
    if (s->world.env.kind != ENV_market) return true;
    d->open = task_open_data(&d->task, o, e);
    if (d->open && make_market(d, s, e)) {
        put_worlds(d, s);
        return true;
    }
    agent_data_close(d);
    return false;
}

void agent_data_close(agent_data *d) {
    agent_market_done(&d->market);
    agent_stretches_done(&d->train);
    agent_stretches_done(&d->test);
    if (d->open) task_close(&d->task);
    d->open = false;
}
