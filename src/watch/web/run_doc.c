#include "watch/web/run_doc.h"

#include "run/outline.h"
#include "run/results.h"
#include "run/run.h"
#include "watch/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Descriptions

// A description and a plan: of run.db, or the files where that cannot be read.
typedef struct {
    const char *config, *plan;
    char *own_config, *own_plan;
} texts;

static texts texts_of(const run_doc *d) {
    const view_summary *s = view_sum(d->view);
    texts t = {.config = s->config, .plan = s->plan};
    if (!t.config || !*t.config) t.config = t.own_config = run_text(d->dir, "config.yaml");
    if (!t.plan || !*t.plan) t.plan = t.own_plan = run_text(d->dir, "plan.yaml");
    return t;
}

static void texts_done(texts *t) {
    free(t->own_config);
    free(t->own_plan);
}

static bool has_file(const char *dir, const char *name) {
    char *path = run_path(dir, name);
    bool is = access(path, R_OK) == 0;
    free(path);
    return is;
}

// run, walk, ensemble, agent.
static const char *kind_of(const run_doc *d, const texts *t) {
    char env[64];
    if (d->parts) {
        char *member = run_path(d->dir, "member_1");
        bool ensemble = run_is(member);
        free(member);
        return ensemble ? "ensemble" : "walk";
    }
    outline_put(t->config, "agent.env", env, sizeof env);
    return env[0] ? "agent" : "run";
}

// Progress

typedef struct {
    double planned; // epochs or steps; NAN: not known
    double share;   // of it that is done
    double left;    // seconds
} progress;

// An epoch's samples stand in the plan as "69832 from 0".
static progress progress_of(const view_summary *s, const texts *t) {
    double steps = outline_number(t->config, "agent.total_timesteps"),
           samples = outline_number(t->plan, "samples.train");
    progress p = {.planned = outline_number(t->config, "train.epochs"), .share = NAN, .left = NAN};
    if (!isnan(steps) && steps > 0) {
        p.planned = steps;
        p.share = (double)s->step / steps;
    } else if (p.planned > 0) {
        double begun = s->begun && samples > 0 ? (double)s->done / samples : 0;
        p.share = ((double)s->epochs + fmin(begun, 1)) / p.planned;
    }
    p.share = fmin(p.share, 1);
    double whole = s->epochs ? (double)s->epochs / p.planned : NAN;
    if (!isnan(steps) && steps > 0) whole = p.share;
    if (strcmp(s->status, "running") == 0 && whole > 0 && s->seconds > 0)
        p.left = s->seconds / whole * fmax(1 - p.share, 0);
    return p;
}

// Short

static json_t *spark_json(const view *v) {
    strip_point p[2 * VIEW_SPARK + 4];
    json_t *list = json_array();
    int n = view_spark(v, p);
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(p[i].y));
    return list;
}

static json_t *short_of(const run_doc *d, const texts *t) {
    const view_summary *s = view_sum(d->view);
    progress p = progress_of(s, t);
    char model[64], device[128], set[256], metric[64], env[64];
    outline_put(t->config, "model.kind", model, sizeof model);
    outline_put(t->config, "data.set", set, sizeof set);
    outline_put(t->config, "train.metric", metric, sizeof metric);
    outline_put(t->config, "agent.env", env, sizeof env);
    outline_put(t->plan, "device", device, sizeof device);
    if (t->config && outline_has(t->config, "data.bars")) snprintf(set, sizeof set, "bars");
    json_t *doc = json_pack("{s:s, s:o, s:s?, s:s, s:s, s:b}", "id", d->id, "name", json_text(d->name), "parent",
        d->parent, "kind", kind_of(d, t), "status", s->status, "known", view_known(d->view));
    const struct {
        const char *key;
        json_t *value;
    } more[] = {{"model", json_text(env[0] ? "ppo" : model)}, {"data", json_text(env[0] ? env : set)},
        {"device", json_text(device)}, {"version", json_text(s->version)}, {"note", json_text(s->note)},
        {"trouble", json_text(s->trouble)}, {"started", json_number(s->started)}, {"changed", json_number(s->changed)},
        {"seconds", json_number(s->seconds)}, {"epochs", json_integer(s->epochs)}, {"step", json_integer(s->step)},
        {"best_epoch", json_integer(s->best_epoch)}, {"begun", json_integer(s->begun)},
        {"planned", json_number(p.planned)}, {"progress", json_number(p.share)}, {"left", json_number(p.left)},
        {"metric", json_text(metric)}, {"main", json_text(view_main(d->view))},
        {"best", json_number(view_main_best(d->view))}, {"spark", spark_json(d->view)}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) json_object_set_new(doc, more[i].key, more[i].value);
    return doc;
}

json_t *run_doc_short(const run_doc *d) {
    texts t = texts_of(d);
    json_t *doc = short_of(d, &t);
    texts_done(&t);
    return doc;
}

// Verdicts

// Values of a curve, one an epoch from the first; the caller frees them. A curve that was thinned has none.
static double *values_of(const view *v, const char *name, int *count) {
    const view_curve *c = view_find(v, name);
    *count = 0;
    if (!c || c->values.each > 1 || !c->values.cells) return NULL;
    double *list = malloc((size_t)c->values.cells * sizeof *list);
    NEED(list, "out of memory for values");
    for (int i = 0; i < c->values.cells; i++) list[i] = c->values.cell[i].low.y;
    *count = c->values.cells;
    return list;
}

// The mean of a device's curve over the last cells, and the most of all.
static void late_of(const view *v, const char *name, double *mean, double *late_most, double *most) {
    enum { LATE = 30 };
    const view_curve *c = view_find(v, name);
    *mean = *late_most = *most = NAN;
    if (!c || !c->values.cells) return;
    double sum = 0;
    int from = c->values.cells > LATE ? c->values.cells - LATE : 0;
    for (int i = 0; i < c->values.cells; i++) {
        const strip_cell *cell = &c->values.cell[i];
        *most = fmax(*most, cell->high.y);
        if (i < from) continue;
        *late_most = fmax(*late_most, cell->high.y);
        sum += (cell->low.y + cell->high.y) / 2;
    }
    *mean = sum / (c->values.cells - from);
}

static bool on_card(const texts *t) {
    char device[128];
    outline_put(t->plan, "device", device, sizeof device);
    return device[0] && strncmp(device, "cpu", 3) != 0;
}

static double limit_of(const view *v, const texts *t) {
    verdict_limit l = verdict_limit_read(t->config, on_card(t));
    return verdict_limit_bytes(&l, view_last(v, "device/memory_total"));
}

static verdict_figures figures_of(const run_doc *d, const texts *t) {
    const view *v = d->view;
    const view_summary *s = view_sum(v);
    verdict_figures f = {
        .parameters = outline_number(t->plan, "parameters"), .patience = outline_number(t->config, "train.patience")};
    double unused;
    char residency[32];
    outline_put(t->plan, "residency", residency, sizeof residency);
    f.card = on_card(t);
    f.streamed = strcmp(residency, "host") == 0;
    late_of(v, "device/utilisation", &f.utilisation, &unused, &unused);
    late_of(v, "device/clock", &f.clock, &unused, &f.clock_most);
    late_of(v, "device/temperature", &unused, &f.temperature, &unused);
    late_of(v, "device/power", &f.power, &unused, &f.power_most);
    late_of(v, "device/memory_process", &unused, &unused, &f.process);
    late_of(v, "device/memory_used", &unused, &unused, &f.used);
    late_of(v, "device/memory_total", &unused, &unused, &f.total);
    f.limit = limit_of(v, t);
    f.steps = (double)s->step;
    f.skipped = view_last(v, "steps_skipped");
    f.step_seconds = s->step && s->epochs ? s->seconds / (double)s->step : NAN;
    f.loss = values_of(v, "validation/loss", &f.losses);
    f.rate = values_of(v, "epoch/samples_per_s", &f.rates);
    f.seconds = s->seconds;
    f.agent = outline_has(t->config, "agent");
    return f;
}

static json_t *verdicts_json(const run_doc *d, const texts *t) {
    verdict said[VERDICTS_MOST];
    verdict_figures f = figures_of(d, t);
    int n = verdicts(&f, said);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "about", said[i].about, "grade",
                                        verdict_word(said[i].grade), "text", json_text(said[i].text)));
    free((void *)(uintptr_t)f.loss);
    free((void *)(uintptr_t)f.rate);
    return list;
}

// Whole

static json_t *curves_json(const view *v) {
    json_t *list = json_array();
    for (int i = 0; i < view_curves(v); i++) {
        const view_curve *c = view_curve_at(v, i);
        static const char *const of[] = {"epoch", "epoch", "step", "time"};
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:I, s:I, s:o, s:o, s:o}", "name", json_text(c->name), "over", of[c->kind],
                      "count", (json_int_t)c->values.count, "missing", (json_int_t)c->values.missing, "last",
                      json_number(view_last(v, c->name)), "best", json_number(view_best(v, c->name)), "to",
                      json_number(c->values.count ? c->values.last.x : NAN)));
    }
    return list;
}

static json_t *events_json(const view *v) {
    json_t *list = json_array();
    for (int i = 0; i < view_events(v); i++) {
        const view_event *e = view_event_at(v, i);
        json_array_append_new(list, json_pack("{s:o, s:I, s:o, s:o}", "time", json_number(e->time), "step",
                                        (json_int_t)e->step, "kind", json_text(e->kind), "text", json_text(e->text)));
    }
    return list;
}

static json_t *confusion_json(const view *v) {
    const char *text = view_sum(v)->confusion;
    err unused;
    json_t *m = text ? json_read(text, strlen(text), &unused) : NULL;
    return m ? m : json_null();
}

static const char report_name[] = "report.html";

static json_t *documents_json(const char *dir) {
    json_t *list = json_array();
    for (int k = 0; k < RESULTS_KINDS; k++)
        if (has_file(dir, results_name((results_kind)k)))
            json_array_append_new(list, json_string(results_name((results_kind)k)));
    return list;
}

// FNV-1a of the words that tell a file from the one before it; 0 where there is none. Documents are replaced whole.
static uint64_t stamp_of(const char *dir, const char *name) {
    struct stat st;
    char *path = run_path(dir, name);
    bool is = stat(path, &st) == 0;
    free(path);
    if (!is) return 0;
    const uint64_t words[] = {
        (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_size, (uint64_t)st.st_ino};
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) h = (h ^ words[i]) * 1099511628211u;
    return h;
}

uint64_t run_doc_files(const char *dir) {
    uint64_t h = stamp_of(dir, report_name);
    for (int k = 0; k < RESULTS_KINDS; k++) h = h * 1099511628211u ^ stamp_of(dir, results_name((results_kind)k));
    return h;
}

// A text for each document that changes with it: what a page has read it reads again then.
static json_t *stamps_json(const char *dir) {
    json_t *all = json_object();
    for (int k = 0; k < RESULTS_KINDS; k++) {
        char text[24];
        uint64_t stamp = stamp_of(dir, results_name((results_kind)k));
        snprintf(text, sizeof text, "%016" PRIx64, stamp);
        if (stamp) json_object_set_new(all, results_name((results_kind)k), json_string(text));
    }
    return all;
}

json_t *run_doc_whole(const run_doc *d) {
    texts t = texts_of(d);
    json_t *doc = short_of(d, &t), *live = view_live(d->view);
    const struct {
        const char *key;
        json_t *value;
    } more[] = {{"live", live ? json_deep_copy(live) : json_null()}, {"directory", json_text(d->dir)},
        {"curves", curves_json(d->view)}, {"events", events_json(d->view)}, {"confusion", confusion_json(d->view)},
        {"verdicts", verdicts_json(d, &t)}, {"documents", documents_json(d->dir)}, {"stamps", stamps_json(d->dir)},
        {"report", json_boolean(has_file(d->dir, report_name))}, {"limit", json_number(limit_of(d->view, &t))},
        {"config", json_text(t.config)}, {"plan", json_text(t.plan)}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) json_object_set_new(doc, more[i].key, more[i].value);
    texts_done(&t);
    return doc;
}
