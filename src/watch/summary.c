#include "watch/summary.h"

#include "run/command.h"
#include "run/outline.h"
#include "run/run.h"
#include "run/weights.h"
#include "watch/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A text from outside, with ? in place of bytes that JSON cannot hold; null for NULL.
static json_t *words(const char *text) {
    json_t *is = text ? json_string(text) : json_null();
    if (is) return is;
    char *copy = strdup(text);
    NEED(copy, "out of memory for a text");
    for (char *at = copy; *at; at++)
        if (*at & 0x80) *at = '?';
    is = json_string(copy);
    free(copy);
    return is;
}

// Figures

static json_t *find_lack(json_t *missing, const char *command, const char *why) {
    json_t *one;
    size_t i;
    json_array_foreach(missing, i, one) {
        const char *c = json_string_value(json_object_get(one, "command"));
        const char *w = json_string_value(json_object_get(one, "why"));
        if (strcmp(c ? c : "", command ? command : "") == 0 && strcmp(w ? w : "", why ? why : "") == 0) return one;
    }
    return NULL;
}

// The command that makes a figure, which the caller frees; NULL where there is none.
static char *command_for(const figure *g, const facts *f) {
    if (f->is_run || !g->of_walk) return g->command ? command_line(g->command, f->dir, g->options) : NULL;
    char *file = run_path(f->dir, "config.yaml"), *command = command_line("walk", file, g->of_walk);
    free(file);
    return command;
}

// Figures that one command makes stand together.
static void add_lack(json_t *missing, const figure *g, const facts *f) {
    char *command = command_for(g, f);
    json_t *one = find_lack(missing, command, g->why);
    if (!one) {
        one = json_pack("{s:[], s:o, s:o}", "figures", "why", words(g->why), "command", words(command));
        json_array_append_new(missing, one);
    }
    json_array_append_new(json_object_get(one, "figures"), json_string(g->title));
    free(command);
}

static void add_figures(json_t *all, const facts *f) {
    json_t *drawn = json_array(), *missing = json_array();
    const figure *g;
    for (int i = 0; (g = figure_at(i)); i++) {
        if (!figure_applies(g, f)) continue;
        if (g->has(f))
            json_array_append_new(drawn, json_string(g->name));
        else
            add_lack(missing, g, f);
    }
    json_object_set_new(all, "figures", drawn);
    json_object_set_new(all, "missing", missing);
}

// Results

static void add_run(json_t *all, const facts *f) {
    const db_summary *s = &f->sum;
    json_object_update_new(all,
        json_pack("{s:o, s:o, s:o}", "status", words(f->status), "model", words(f->model), "device", words(f->device)));
    if (!f->has_sum) return;
    json_object_update_new(
        all, json_pack("{s:I, s:I}", "epochs", (json_int_t)s->epochs, "best_epoch", (json_int_t)s->best_epoch));
    if (f->agent[0]) {
        double reward = facts_best(f, "", "eval/mean_reward");
        json_object_update_new(all, json_pack("{s:s, s:o}", "agent", f->agent, "mean_reward", json_number(reward)));
        return;
    }
    if (!s->best_epoch) return;
    json_t *best = json_pack("{s:o}", "loss", json_number(facts_best(f, "validation", "loss")));
    if (f->metric) json_object_set_new(best, f->metric, json_number(facts_best(f, "validation", f->metric)));
    json_object_set_new(all, "validation", best);
}

static void add_evaluation(json_t *all, const facts *f) {
    static const char *const keys[] = {"samples", "from", "to", "metrics"};
    json_t *parts = results_get(f->doc[RESULTS_EVALUATION], "parts"), *to = json_object(), *part;
    const char *name;
    json_object_foreach(parts, name, part) {
        json_t *one = json_object();
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (json_object_get(part, keys[i])) json_object_set(one, keys[i], json_object_get(part, keys[i]));
        json_object_set_new(to, name, one);
    }
    json_object_set_new(all, "evaluation", to);
}

static void add_backtest(json_t *all, const facts *f) {
    json_t *list = results_get(f->doc[RESULTS_BACKTEST], "statistics"), *to = json_object(), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        const char *key = json_string_value(json_object_get(each, "key"));
        const char *label = json_string_value(json_object_get(each, "label"));
        const char *unit = json_string_value(json_object_get(each, "unit"));
        if (!key) continue;
        json_object_set_new(to, key,
            json_pack("{s:s, s:o, s:s}", "label", label ? label : key, "value",
                json_number(results_number(json_object_get(each, "value"))), "unit", unit ? unit : ""));
    }
    json_object_set_new(all, "backtest", to);
}

static void add_walk(json_t *all, json_t *walk) {
    json_t *folds = results_get(walk, "folds"), *each, *metrics = results_get(walk, "metrics");
    const char *scheme = json_string_value(results_get(walk, "scheme"));
    size_t i, done = 0;
    json_array_foreach(folds, i, each) {
        const char *status = json_string_value(json_object_get(each, "status"));
        done += status && strcmp(status, "done") == 0;
    }
    json_t *to = json_pack("{s:s, s:I, s:I}", "scheme", scheme ? scheme : "", "folds",
        (json_int_t)json_array_size(folds), "done", (json_int_t)done);
    if (metrics) json_object_set(to, "metrics", metrics);
    json_object_set_new(all, "walk", to);
}

static void add_incomplete(json_t *all, const facts *f) {
    char *scheme = f->config ? outline_value(f->config, "walk.scheme") : NULL;
    json_t *to = json_pack("{s:s, s:o, s:I, s:b}", "scheme", scheme ? scheme : "", "folds",
        f->folds ? json_integer((json_int_t)f->folds) : json_null(), "done", (json_int_t)f->folds_done, "incomplete",
        true);
    json_object_set_new(all, "walk", to);
    free(scheme);
}

// Notes

static void note_incomplete(json_t *notes, const facts *f) {
    char text[600], all[32] = "";
    if (f->is_run || f->doc[RESULTS_WALK]) return;
    char *file = run_path(f->dir, "config.yaml"), *command = command_line("walk", file, "--resume");
    if (f->folds) snprintf(all, sizeof all, " of %lld", (long long)f->folds);
    snprintf(text, sizeof text, "incomplete: %lld%s folds are trained, and none is tested; go on with `%s`",
        (long long)f->folds_done, all, command);
    json_array_append_new(notes, words(text));
    free(command);
    free(file);
}

static void note_stale(json_t *notes, const facts *f) {
    json_t *parts = results_get(f->doc[RESULTS_EVALUATION], "parts"), *part;
    const char *name;
    char text[256];
    json_object_foreach(parts, name, part) {
        json_t *epoch = results_get(part, "epoch");
        if (!f->has_sum || !json_is_integer(epoch) || json_integer_value(epoch) == f->sum.best_epoch) continue;
        snprintf(text, sizeof text, "scores of %.40s are of epoch %lld, the best epoch is %lld now; evaluate again",
            name, (long long)json_integer_value(epoch), (long long)f->sum.best_epoch);
        json_array_append_new(notes, words(text));
    }
}

// A run alone: a walk does not say which weights were traded.
static void note_stale_backtest(json_t *notes, const facts *f) {
    char now[WEIGHTS_IDENTITY_ROOM];
    const char *then = json_string_value(results_get(f->doc[RESULTS_BACKTEST], "weights"));
    err e;
    if (!weights_identity(f->dir, now, &e)) {
        json_array_append_new(notes, words(e.text));
        return;
    }
    if (!then || !now[0] || strcmp(then, now) == 0) return;
    json_array_append_new(
        notes, words("the backtest is of other weights than those that are there now; backtest again"));
}

static json_t *notes_of(const facts *f) {
    json_t *notes = json_array();
    for (int i = 0; i < f->troubles; i++) json_array_append_new(notes, words(f->trouble[i].text));
    note_incomplete(notes, f);
    note_stale(notes, f);
    note_stale_backtest(notes, f);
    return notes;
}

json_t *summary_make(const facts *f) {
    json_t *all = json_pack("{s:o, s:s}", "run", words(f->dir), "kind", f->is_run ? "run" : "walk");
    if (f->is_run)
        add_run(all, f);
    else if (*f->model)
        json_object_set_new(all, "model", words(f->model));
    if (f->doc[RESULTS_EVALUATION]) add_evaluation(all, f);
    if (f->doc[RESULTS_BACKTEST]) add_backtest(all, f);
    if (f->doc[RESULTS_WALK])
        add_walk(all, f->doc[RESULTS_WALK]);
    else if (!f->is_run)
        add_incomplete(all, f);
    add_figures(all, f);
    json_object_set_new(all, "notes", notes_of(f));
    return all;
}
