#include "task/agent_use.h"

#include "run/outline.h"
#include "run/run.h"
#include "run/weights.h"
#include "task/members.h"
#include "task/scale.h"

#include <stdlib.h>
#include <string.h>

bool trained_is_agent(const char *word) {
    char *dir = trained_dir(word), *config = run_text(dir, "config.yaml");
    bool is = config && outline_has(config, "agent");
    free(config);
    free(dir);
    return is;
}

// Data that have changed since are split at other bars, so that a part may hold bars that were trained on.
static bool check_data(const trained_agent *t, const char *dir, err *e) {
    chosen was, is = {0};
    char differs[400];
    const task *own = &t->task.world.task;
    bool there;
    if (!t->task.world.open || own->options.whole) return true;
    if (!members_plan(dir, &was, &there, e)) return false;
    if (!there) return true;
    task_chosen_data(own, &is);
    return !chosen_data_differ(&was, &is, differs, sizeof differs) ||
           err_input(e,
               "%s: was trained on other data or parts of them: %s; put them back, or name other data with "
               "--data",
               t->weights, differs);
}

static const char *part_asked(const trained_options *o) {
    if (o->live) return "live";
    if (o->every) return "every";
    return o->latest ? "latest" : o->part ? o->part : o->data ? "all" : "test";
}

static bool is_whole(const trained_options *o) {
    return o->live || o->every || o->latest || strcmp(part_asked(o), "all") == 0;
}

// Weights of earlier builds do not say how their features were scaled: that is the training part of their own data.
static bool check_contract(const trained_options *o, const safetensors *f, const char *path, err *e) {
    const char *env = safetensors_metadata(f, "environment");
    bool own = !o->data && !is_whole(o), scaled = !env || strcmp(env, env_name(ENV_market)) == 0;
    return own || !scaled || safetensors_metadata(f, contract_key) ||
           err_input(e,
               "%s: does not say how its features were scaled, as it was trained by an earlier build; train it again "
               "to use other data, all of them or their newest bars",
               path);
}

static bool open_task(trained_agent *t, const trained_options *o, const safetensors *f, err *e) {
    const char *part = part_asked(o);
    bool told = safetensors_metadata(f, contract_key) != NULL;
    task_options as = {.description = {.file = t->file, .overrides = o->overrides, .override_count = o->override_count},
        .devices = o->devices,
        .version = o->version,
        .data = o->dataset,
        .parts = o->parts,
        .listener = o->listener,
        .trained = true,
        .saved = told ? f : NULL,
        .saved_path = t->weights,
        .whole = is_whole(o)};
    task_change *to = as.description.before;
    if (told) *to++ = (task_change){"data.scale", scale_saved(f)};
    if (o->data) {
        *to++ = (task_change){"data.bars", ""};
        *to++ = (task_change){"data.set", o->data};
    }
    return agent_task_open(&t->task, &as, part, e);
}

// Samples of the part, in the order of time; of the newest bars so many of each instrument, all in all.
static split_part samples_of(const trained_agent *t, const trained_options *o) {
    const task *of = &t->task.world.task;
    const split *s = &of->split;
    int64_t all = dataset_all(of->data), most = o->latest * dataset_series(of->data);
    if (o->latest) return part_of((span){all > most ? all - most : 0, all > most ? most : all});
    return strcmp(t->task.world.part, "train") == 0  ? s->train
           : strcmp(t->task.world.part, "test") == 0 ? s->test
                                                     : s->validation;
}

static bool take_data(trained_agent *t, const trained_options *o, const char *dir, const safetensors *f, err *e) {
    const agent_data *w = &t->task.world;
    if (!w->open && (o->data || o->latest || o->part))
        return err_input(e, "%s: the environment of this run, %s, has no data; leave it out",
            o->data     ? "--data"
            : o->latest ? "--latest"
                        : "--part",
            agent_task_env(&t->task));
    if (!w->open) {
        data_notes_none(&t->notes);
        data_notes_description(&t->notes, t->file, "this may be another environment");
        return true;
    }
    t->samples = samples_of(t, o);
    return (o->data || check_data(t, dir, e)) &&
           data_notes_make(&t->notes, &w->task, w->part, &t->samples, f, t->weights, e);
}

static bool load(trained_agent *t, err *e) {
    if (t->task.world.open)
        return (t->actor = agent_task_actor(&t->task, t->task.world.test.count, e)) &&
               actor_load(t->actor, t->weights, e);
    return (t->agent = agent_task_agent(&t->task, e)) && agent_load(t->agent, t->weights, e);
}

bool trained_agent_open(trained_agent *t, const trained_options *o, err *e) {
    char *dir = NULL;
    safetensors *f = NULL;
    bool opened = false;
    *t = (trained_agent){0};
    bool ok = trained_find(o->run, &dir, &t->weights, e);
    if (ok) t->file = run_path(dir, "config.yaml");
    ok = ok && trained_has_ended(o, e);
    ok = ok && (f = weights_open(t->weights, e)) && check_contract(o, f, t->weights, e);
    ok = ok && (opened = open_task(t, o, f, e));
    ok = ok && agent_weights_suit(&t->task, t->weights, e) && take_data(t, o, dir, f, e) && load(t, e);
    t->task.options.saved = t->task.world.task.options.saved = NULL; // closed from here on
    safetensors_close(f);
    free(dir);
    if (ok) return true;
    agent_free(t->agent);
    actor_free(t->actor);
    if (opened) agent_task_close(&t->task);
    free(t->weights);
    free(t->file);
    return false;
}

void trained_agent_close(trained_agent *t) {
    agent_free(t->agent);
    actor_free(t->actor);
    agent_task_close(&t->task);
    free(t->weights);
    free(t->file);
}

bool trained_agent_play(trained_agent *t, agent_pass *p, err *e) {
    return agent_play(p, t->actor, &t->task.agent.test, e);
}

bool trained_agent_score(trained_agent *t, agent_score *s, err *e) {
    agent_pass p;
    if (t->agent) return agent_evaluate(t->agent, s, e);
    if (!trained_agent_play(t, &p, e)) return false;
    *s = agent_pass_score(&p);
    agent_pass_done(&p);
    return true;
}
