#include "task/agent_world.h"

#include "data/when.h"
#include "task/agent_idle.h"
#include "task/agent_window.h"

#include <string.h>

// NULL for a word that is no part.
static const split_part *part_named(const split *s, const char *name) {
    if (strcmp(name, "train") == 0) return &s->train;
    if (strcmp(name, "validation") == 0) return &s->validation;
    return strcmp(name, "test") == 0 ? &s->test : NULL;
}

// Every part of whole data is all samples.
static bool is_whole(const task *t, const char *name) {
    static const char *const names[] = {"all", "every", "latest", "live"};
    for (size_t i = 0; t->options.whole && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
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

static bool take_part(const agent_data *d, const split_part **part, err *e) {
    const task *t = &d->task;
    const char *name = d->part;
    *part = is_whole(t, name) ? &t->split.validation : part_named(&t->split, name);
    if (!*part)
        return err_input(e, "--part: %s is no part of an agent's data; use train, validation, test%s", name,
            t->options.trained ? " or all" : "");
    return (*part)->count ||
           err_input(e, "%s: the part %s has no samples; change data.split or name another part", t->data->name, name);
}

// The end of the time that weights were trained on, as they say; the beginning of time where they do not.
static bool trained_until(const task *t, int64_t *until, err *e) {
    contract *c = NULL;
    when_stamp s;
    *until = INT64_MIN;
    if (t->options.saved && !contract_read(&c, t->options.saved, t->options.saved_path, e)) return false;
    if (c && c->trained_to && when_read(c->trained_to, strlen(c->trained_to), &s)) *until = s.time;
    contract_free(c);
    return true;
}

// The stretches that are tested; those of training too, unless weights are used.
static bool make_stretches(agent_data *d, const split_part *tested, int64_t limit, err *e) {
    const task *t = &d->task;
    int64_t until;
    if (!t->options.trained && !agent_market_part(&d->train, &d->market, t->data, &t->split.train, "train", limit, e))
        return false;
    if (strcmp(d->part, "every") == 0) return agent_market_newest(&d->test, &d->market, t->data, INT64_MIN, "all", e);
    if (strcmp(d->part, "latest") != 0) return agent_market_part(&d->test, &d->market, t->data, tested, d->part, 0, e);
    return trained_until(t, &until, e) && agent_market_newest(&d->test, &d->market, t->data, until, d->part, e);
}

// The caller's arrays are not of data that were scaled by instrument.
static bool make_arrays(agent_data *d, int32_t lags, const account_terms *terms, err *e) {
    const task *t = &d->task;
    const agent_market *from = t->data == t->options.data ? t->options.market : NULL;
    return from ? agent_market_like(&d->market, from, t->data, t->scaler, e)
                : agent_market_make(&d->market, t->data, lags, t->scaler, terms, e);
}

static bool make_market(agent_data *d, const agent_settings *s, err *e) {
    const task *t = &d->task;
    account_terms terms;
    const split_part *tested;
    if (!take_part(d, &tested, e) || !account_terms_read(t->config, &terms, e) || !leaves_room(d, s, &terms, e))
        return false;
    if (strcmp(d->part, "live") == 0)
        return agent_window_make(&d->market, &d->test, t->data, s->world.env.market.lags, t->scaler, &terms, e);
    return make_arrays(d, s->world.env.market.lags, &terms, e) && make_stretches(d, tested, s->world.env.limit, e) &&
           (t->options.trained ||
               agent_idle_check(&d->market, &d->train, t->data, s->world.env.market.size, d->idle, sizeof d->idle, e));
}

// Evaluations have one episode for each stretch, from its first bar to its last.
static void put_worlds(const agent_data *d, agent_settings *s) {
    agent_market_world(&d->market, d->train.count ? &d->train : &d->test, &s->world);
    s->world.scaler = d->task.scaler;
    s->world.data = d->task.data;
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

void agent_data_resize(const agent_data *d, const split *parts, agent_settings *s) {
    agent_stretches train, test = {0};
    const split_part *tested = part_named(parts, d->part);
    const dataset *of = d->task.data;
    err unused; // the run itself says why it cannot be
    if (!d->open) return;
    bool ok = agent_market_part(&train, &d->market, of, &parts->train, "train", s->world.env.limit, &unused) &&
              agent_market_part(&test, &d->market, of, tested, d->part, 0, &unused);
    if (ok) {
        s->world.part[MARKET_STRETCHES].shape.dim[0] = s->world.env.market.stretches = (int32_t)train.count;
        s->test.part[MARKET_STRETCHES].shape.dim[0] = s->test.env.market.stretches = (int32_t)test.count;
        s->tests = test.count;
    }
    agent_stretches_done(&train);
    agent_stretches_done(&test);
}

size_t agent_data_bytes(const agent_data *d) {
    const agent_market *m = &d->market;
    size_t width = (size_t)m->lagged + (size_t)m->once;
    if (m->borrowed) return 0;
    size_t row = sizeof *m->bar + width * sizeof *m->feature + MARKET_COLUMNS * sizeof *m->calendar;
    return (size_t)m->rows * row;
}

void agent_data_close(agent_data *d) {
    agent_market_done(&d->market);
    agent_stretches_done(&d->train);
    agent_stretches_done(&d->test);
    if (d->open) task_close(&d->task);
    d->open = false;
}
