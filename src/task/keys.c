#include "task/keys.h"

#include "train/unused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void (*use)(void *arg, const told_key *k);
    void *arg;
} user;

static void tell_unused(void *arg, const char *path, const char *why) {
    const user *u = arg;
    u->use(u->arg, &(told_key){path, why, true});
}

static void tell_notes(const config *c, const user *u) {
    for (size_t i = 0; i < config_notes(c); i++) {
        const config_note *n = config_note_at(c, i);
        char text[160];
        snprintf(text, sizeof text, "read as %s", n->key ? n->key : "");
        u->use(u->arg, &(told_key){n->name, n->key ? text : n->why, false});
    }
}

// True for the description that a run has written.
static bool is_complete(const task_description *d) {
    char *run = task_run_described(d);
    bool is = run != NULL;
    free(run);
    return is;
}

void task_each_key(const task *t, void (*use)(void *arg, const told_key *k), void *arg) {
    user u = {use, arg};
    tell_notes(t->config, &u);
    if (!t->data || !t->device) return;
    unused_about about = {.config = t->config,
        .settings = &t->described,
        .data = t->data,
        .model = &t->model,
        .card = !t->device->host_memory,
        .fp16 = t->precision == PRECISION_FP16,
        .host = t->job.host,
        .tunes = t->options.untuned,
        .trained = t->options.trained,
        .complete = is_complete(&t->options.description)};
    unused_each(&about, tell_unused, &u);
}

void agent_task_each_key(const agent_task *t, void (*use)(void *arg, const told_key *k), void *arg) {
    user u = {use, arg};
    tell_notes(t->config, &u);
    unused_about about = {.config = t->config,
        .settings = &t->settings,
        .data = t->world.open ? t->world.task.data : NULL,
        .model = &t->model,
        .card = !t->device->host_memory,
        .trained = t->options.trained,
        .complete = is_complete(&t->options.description)};
    unused_each(&about, tell_unused, &u);
}

bool task_key_given(const task_description *d, const char *key) {
    for (int i = 0; i < d->override_count; i++) {
        size_t n = strcspn(d->overrides[i], "=");
        if (strncmp(key, d->overrides[i], n) == 0 && (!key[n] || key[n] == '.')) return true;
    }
    return false;
}
