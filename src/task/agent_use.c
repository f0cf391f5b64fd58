#include "task/agent_use.h"

#include "run/outline.h"
#include "run/run.h"
#include "run/weights.h"
#include "task/members.h"
#include "task/scale.h"
#include "task/trained_members.h"

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

// Members see the same data on the same scale.
static bool check_members(const trained_agent *t, const safetensors *first, err *e) {
    const unsigned of_labels = CONTRACT_CLASSES | CONTRACT_LABEL; // an agent has none
    contract *is = task_contract(&t->task.world.task);
    bool ok = trained_members_agree(t->weights, t->members, is, CONTRACT_ALL & ~of_labels, first, e);
    contract_free(is);
    return ok;
}

static bool join_members(trained_agent *t, err *e) {
    bool ok = true;
    for (int k = 2; ok && k <= t->members; k++) {
        char *weights = trained_member_weights(t->weights, k);
        actor *a = agent_task_actor(&t->task, t->task.world.test.count, e);
        ok = a && actor_load(a, weights, e);
        if (!ok) actor_free(a);
        ok = ok && actor_join(t->actor, a, e);
        free(weights);
    }
    return ok;
}

static bool load(trained_agent *t, const char *weights, const safetensors *f, err *e) {
    if (t->task.world.open)
        return check_members(t, f, e) && (t->actor = agent_task_actor(&t->task, t->task.world.test.count, e)) &&
               actor_load(t->actor, weights, e) && join_members(t, e);
    return (t->agent = agent_task_agent(&t->task, e)) && agent_load(t->agent, weights, e);
}

bool trained_agent_open(trained_agent *t, const trained_options *o, err *e) {
    char *dir = NULL, *weights = NULL;
    safetensors *f = NULL;
    bool opened = false;
    *t = (trained_agent){0};
    if (!members_of(o->run, &t->members, e)) return false;
    bool ok = t->members ? trained_members_find(o->run, t->members, &dir, &weights, e)
                         : trained_find(o->run, &dir, &weights, e);
    t->weights = strdup(t->members || !weights ? o->run : weights);
    NEED(t->weights, "out of memory for a path");
    if (ok) t->file = run_path(dir, "config.yaml");
    ok = ok && trained_has_ended(o, e);
    ok = ok && (f = weights_open(weights, e)) && check_contract(o, f, weights, e);
    ok = ok && (opened = open_task(t, o, f, e));
    ok = ok && agent_weights_suit(&t->task, weights, e) && take_data(t, o, dir, f, e) && load(t, weights, f, e);
    if (ok && t->members) trained_members_note(&t->notes, o->run);
    t->task.options.saved = t->task.world.task.options.saved = NULL; // closed from here on
    safetensors_close(f);
    free(dir);
    free(weights);
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
