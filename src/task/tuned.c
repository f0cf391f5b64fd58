#include "task/tuned.h"

#include "base/term.h"
#include "graph/identity.h"
#include "run/outline.h"
#include "run/run.h"
#include "task/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The batch

// Puts the effective batch into a description that leaves it open: what is written of it no longer does.
static bool put_batch(config *c, int64_t batch, err *e) {
    char size[32];
    snprintf(size, sizeof size, "%lld", (long long)batch);
    return task_set(c, "train.batch_size", size, e) &&
           task_set(c, "gpu_optimization.gradient_accumulation_steps", "auto", e);
}

static bool settle(task *t, int64_t batch, err *e) {
    t->described.batch_size = batch;
    t->settings.batch_size = batch;
    return put_batch(t->config, batch, e);
}

bool task_settle(const task *t, const task *open, err *e) {
    return !t->described.batch_open || put_batch(t->config, open->described.batch_size, e);
}

bool tuned_keep_batch(task *t, err *e) {
    char *text = run_text(t->described.dir, "config.yaml");
    char *value = text ? outline_value(text, "train.batch_size") : NULL;
    long long batch = value ? strtoll(value, NULL, 10) : 0;
    free(value);
    free(text);
    return batch <= 0 || batch > 10000000 || settle(t, batch, e);
}

// Plans and tuning

void task_key(const task *t, wisdom_key *k) {
    device_identity device;
    t->device->identify(t->queue, &device);
    wisdom_key_make(k, &(wisdom_about){.version = t->options.version,
                           .device = &device,
                           .card = !t->device->host_memory,
                           .described = &t->described,
                           .model = &t->model,
                           .data = t->data,
                           .split = &t->split,
                           .window = t->window});
}

// The plan that is followed: the one that was given, or that of the run that goes on or whose weights are used. `there`
// is false where there is none.
static bool find_plan(const task *t, chosen *c, bool *there, err *e) {
    *there = t->options.like != NULL;
    if (t->options.like) *c = *t->options.like;
    if (!t->options.like && t->options.trained) {
        const char *file = t->options.description.file, *slash = strrchr(file, '/');
        char *dir = slash ? strndup(file, (size_t)(slash - file)) : strdup(".");
        NEED(dir, "out of memory for a path");
        bool ok = members_plan(dir, c, there, e);
        free(dir);
        return ok;
    }
    return t->options.like || !t->options.resume || members_plan(t->described.dir, c, there, e);
}

// The micro-batches that a run has which goes on; 0 where they are none of this batch's.
static int64_t parts_of(const task *t, const chosen *plan) {
    return t->described.batch_size * t->described.accumulation % plan->parts == 0 ? plan->parts : 0;
}

// Follows what was tuned when a plan was made: it holds as long as the plan does.
static void follow_tuned(task *t, const chosen *plan) {
    if (!plan->tuned[0]) return;
    t->tuned = (wisdom_answer){.state = WISDOM_FOUND,
        .entry = {.batch = plan->micro * plan->parts,
            .micro = plan->micro,
            .parts = plan->parts,
            .again = plan->again,
            .threads = plan->threads,
            .host = plan->host,
            .precision = plan->precision,
            .products = plan->products}};
    snprintf(t->tuned.when, sizeof t->tuned.when, "%s", plan->tuned);
}

// Asks what was tuned. A split that the description fixes is no way of another.
static void ask_wisdom(task *t) {
    const settings *d = &t->described;
    wisdom_key k;
    task_key(t, &k);
    t->tuned = wisdom_find(&k, d->batch_open ? 0 : d->batch_size * d->accumulation);
    const wisdom_entry *w = &t->tuned.entry;
    char *line = t->tuned.line;
    if (t->tuned.state == WISDOM_NONE && d->batch_open && !line[0]) {
        char device[WISDOM_ROOM]; // the number of threads is a part of it
        device_identity is;
        t->device->identify(t->queue, &is);
        identity_hardware(&is, device, sizeof device);
        snprintf(line, WISDOM_LINE, "nothing for this model, data and device (%.80s); run tradewind tune", device);
    }
    if (t->tuned.state != WISDOM_FOUND || d->split_open || w->parts == d->accumulation) return;
    t->tuned.state = WISDOM_REFUSED;
    snprintf(line, WISDOM_LINE,
        "%s: %lld x %lld rows, but the description fixes %lld x %lld; set gpu_optimization.dynamic_batch_sizing",
        t->tuned.when, (long long)w->parts, (long long)w->micro, (long long)d->accumulation, (long long)d->batch_size);
}

bool tuned_take(task *t, err *e) {
    chosen plan;
    bool resume = t->options.resume, planned;
    int64_t batch = BATCH_USUAL;
    t->tuned = (wisdom_answer){0};
    if (!find_plan(t, &plan, &planned, e)) return false;
    if (planned)
        follow_tuned(t, &plan);
    else if (!t->options.untuned && !t->options.trained && !resume)
        ask_wisdom(t);
    if (t->options.like) batch = plan.micro * plan.parts;
    if (!t->options.like && t->tuned.state == WISDOM_FOUND) batch = t->tuned.entry.batch;
    bool ok = !t->described.batch_open || resume || settle(t, batch, e);
    t->parts = ok && planned && !t->options.trained && t->described.split_open ? parts_of(t, &plan) : 0;
    return ok;
}

void tuned_prefer(task *t) {
    const wisdom_entry *w = &t->tuned.entry;
    char why[160];
    way tuned;
    t->tuned_way = false;
    if (t->tuned.state != WISDOM_FOUND) return;
    t->tuned_way = wisdom_suits(w, &t->chooser, &t->budget, &tuned, why, sizeof why);
    if (t->tuned_way) {
        t->choice.best = tuned;
        t->choice.fits = true;
    } else {
        snprintf(t->tuned.line, sizeof t->tuned.line, "%s: %lld x %lld rows, but %s; the planner chose", t->tuned.when,
            (long long)w->parts, (long long)w->micro, why);
    }
}

// "1.21 M samples/s then".
static const char *rate_then(const wisdom_entry *w, char *text, size_t room) {
    char count[32];
    term_count(count, sizeof count, w->samples_per_s);
    if (w->samples_per_s >= 1e6)
        snprintf(text, room, "%.2f M samples/s then", w->samples_per_s / 1e6);
    else if (w->samples_per_s > 0)
        snprintf(text, room, "%s samples/s then", count);
    else
        snprintf(text, room, "as the run has it");
    return text;
}

bool task_tuned_line(const task *t, char *line, size_t room) {
    const wisdom_answer *a = &t->tuned;
    char rate[64], until[64] = "", by[64] = "";
    if (a->entry.products != PRODUCTS_AUTO)
        snprintf(by, sizeof by, "products: %s, ", settings_products_name(a->entry.products));
    if (t->threads) snprintf(by, sizeof by, "%d thread%s, ", t->threads, t->threads > 1 ? "s" : "");
    if (t->described.batch_open && a->state != WISDOM_FOUND)
        snprintf(until, sizeof until, "; until then %d samples a step", BATCH_USUAL);
    if (t->tuned_way)
        snprintf(line, room, "%s: %lld x %lld rows, %s%s", a->when, (long long)a->entry.parts,
            (long long)a->entry.micro, by, rate_then(&a->entry, rate, sizeof rate));
    else
        snprintf(line, room, "%s%s", a->line, until);
    return t->tuned_way || a->line[0];
}
