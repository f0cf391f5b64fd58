#include "task/agent_use.h"

#include "run/outline.h"
#include "run/run.h"
#include "task/members.h"

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
    if (!t->task.world.open || !members_plan(dir, &was)) return true;
    task_chosen_data(&t->task.world.task, &is);
    return !chosen_data_differ(&was, &is, differs, sizeof differs) ||
           err_input(e, "%s: was trained on other data or parts of them: %s; put them back", t->weights, differs);
}

bool trained_agent_open(trained_agent *t, const trained_options *o, err *e) {
    char *dir = NULL;
    *t = (trained_agent){0};
    bool ok = trained_find(o->run, &dir, &t->weights, e), opened = false;
    if (ok) t->file = run_path(dir, "config.yaml");
    ok = ok && trained_has_ended(o, e);
    task_options as = {.description = {.file = t->file, .overrides = o->overrides, .override_count = o->override_count},
        .devices = o->devices,
        .version = o->version,
        .data = o->dataset,
        .parts = o->parts,
        .listener = o->listener,
        .trained = true};
    ok = ok && (opened = agent_task_open(&t->task, &as, o->part ? o->part : "test", e)) &&
         agent_weights_suit(&t->task, t->weights, e) && check_data(t, dir, e);
    free(dir);
    ok = ok && (t->agent = agent_task_agent(&t->task, e)) && agent_load(t->agent, t->weights, e);
    if (ok) return true;
    agent_free(t->agent);
    if (opened) agent_task_close(&t->task);
    free(t->weights);
    free(t->file);
    return false;
}

void trained_agent_close(trained_agent *t) {
    agent_free(t->agent);
    agent_task_close(&t->task);
    free(t->weights);
    free(t->file);
}
