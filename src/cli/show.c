#include "cli/show.h"

#include "base/json.h"
#include "base/term.h"
#include "base/text.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "task/fit.h"
#include "task/lines.h"

#include <stdio.h>

static const char *counted(char *text, size_t room, int64_t n) {
    term_count(text, room, (double)n);
    return text;
}

char *show_bars(const task_event *e, bool whole) {
    char words[128];
    text_out t;
    const sources *from = e->bars.from;
    text_open(&t);
    FILE *out = t.out;
    for (int i = 0; i < from->files; i++)
        (whole ? bars_report_print : bars_report_brief)(out, from->file[i].path, &from->file[i].bars);
    for (int i = 0; i < from->build.frames; i++)
        if (e->bars.report->stale[i])
            fprintf(out, "stale     %s sample%s a bar of %s that is over 4 days old\n",
                counted(words, sizeof words, e->bars.report->stale[i]),
                e->bars.report->stale[i] == 1 ? " sees" : "s see", from->build.frame[i].name);
    if (from->forced)
        fprintf(out, "forced    kept although refused: %s\n", bars_force_text(words, sizeof words, from->forced));
    char *text = text_close(&t);
    NEED(text, "out of memory for a report");
    return text;
}

static void print_count(FILE *out, const char *before, double n, const char *after) {
    char text[32];
    term_count(text, sizeof text, n);
    fprintf(out, "%s%s%s", before, text, after);
}

void show_key(const told_key *k, FILE *out) {
    fprintf(out, "%-9s %s: %s\n", k->unused ? "unused" : "key", k->key, k->text);
}

static void print_key(void *arg, const told_key *k) {
    show_key(k, arg);
}

static void print_key_json(void *arg, const told_key *k) {
    json_line(arg, json_pack("{s:s, s:b, s:s}", "key", k->key, "unused", k->unused, "text", k->text));
}

void show_keys(const task *t, bool json, FILE *out) {
    task_each_key(t, json ? print_key_json : print_key, out);
}

void show_agent_keys(const agent_task *t, bool json, FILE *out) {
    agent_task_each_key(t, json ? print_key_json : print_key, out);
}

void show_overlap(const task *t, bool json, FILE *out) {
    char line[LINE_ROOM];
    if (!lines_overlap(t, line, sizeof line)) return;
    if (json)
        json_line(out, json_pack("{s:s}", "warning", line));
    else
        fprintf(out, "warning   %s\n", line);
}

void show_unchecked(const task *t, FILE *out) {
    if (t->unchecked)
        fprintf(out, "note      %s: is large for the memory, and its bytes were not checked; inspect and --resume do\n",
            t->data->name);
}

static void print_data(const task *s, FILE *out) {
    print_count(out, "data      ", (double)s->split.train.count, " training and ");
    print_count(out, "", (double)s->split.validation.count, " validation samples");
    fprintf(out, " (%s, ", s->data->name);
    if (s->data->held) {
        fprintf(out, "which holds the last %lld values of each series out", (long long)s->data->target_width);
    } else {
        print_count(out, "", (double)s->split.dropped, " left out between parts");
        print_count(out, ", ", (double)s->split.test.count, " kept for a test");
    }
    fprintf(out, "), %.1f MB%s", (double)dataset_bytes(s->data) / 1e6, s->scaler ? ", scaled" : "");
    fprintf(out, "%s\n", s->device->host_memory ? "" : s->job.host ? ", streamed from the host" : ", on the card");
}

void show_limit(const budget *b, const demand *n, const settings *s, FILE *out) {
    char others[128], lowered[160];
    if (budget_is_lowered(b, lowered, sizeof lowered)) fprintf(out, "note      %s\n", lowered);
    if (b->host && (s->max_memory > 0 || s->memory_fraction > 0))
        fprintf(
            out, "note      the limit of a card does not count on the CPU; gpu_optimization.max_host_memory_gb does\n");
    if (b->host && !b->limited) return;
    if (b->limited)
        fprintf(out, "limit     %.1f MB (%.2f GB)", (double)b->limit / 1e6, (double)b->limit / 0x1p30);
    else
        fprintf(out, "limit     none");
    if (b->counted)
        fprintf(out, "; base %.1f MB, %s %.1f MB and %.1f MB beside them are %.1f MB", (double)b->base / 1e6,
            b->host ? "plan" : "slab", (double)budget_planned(b, n) / 1e6, (double)budget_beside(b, n) / 1e6,
            (double)budget_least(b, n) / 1e6);
    fputc('\n', out);
    if (budget_is_shared(b, others, sizeof others)) fprintf(out, "others    %s\n", others);
}

static void print_memory(const task *s, FILE *out) {
    engine_memory m = task_memory(s);
    err e;
    fprintf(out, "memory    %.1f MB in one slab: weights %.1f, gradients %.1f, moments %.1f, activations %.1f",
        (double)m.total / 1e6, (double)m.weights / 1e6, (double)m.gradients / 1e6, (double)m.moments / 1e6,
        (double)m.activations / 1e6);
    if (m.data) fprintf(out, ", data %.1f", (double)m.data / 1e6);
    if (m.staging) fprintf(out, ", staging %.1f", (double)m.staging / 1e6);
    if (m.fallback) fprintf(out, ", for the fallback %.1f", (double)m.fallback / 1e6);
    fputc('\n', out);
    demand n = task_demand(s);
    show_limit(&s->budget, &n, &s->described, out);
    int workers = task_loading(s).workers;
    if (s->job.host)
        fprintf(out, "loader    %d thread%s on the host, %d batches ahead, %.1f MB%s\n", workers,
            workers == 1 ? "" : "s", s->settings.prefetch, (double)task_ring(s) / 1e6,
            s->device->host_memory ? "" : " pinned");
    if (!task_fits(s, &e)) fprintf(out, "          does not fit: %s\n", e.text);
}

void show_device(const device *d, const queue *q, const err *no_card, FILE *out) {
    char text[IDENTITY_ROOM];
    device_identity is;
    d->identify(q, &is);
    identity_text(&is, text, sizeof text);
    fprintf(out, "device    %s\n", text);
    if (no_card->text[0]) fprintf(out, "          no card: %s\n", no_card->text);
}

void show_task(const task *s, const char *bars, FILE *out) {
    char line[WISDOM_LINE + 16];
    err e;
    show_device(s->device, s->queue, &s->no_card, out);
    if (bars) fputs(bars, out);
    print_data(s, out);
    show_overlap(s, false, out);
    fprintf(out, "model     %s", model_name(s->model.kind));
    print_count(out, ", ", (double)graph_parameter_values(s->job.g), " parameters");
    fprintf(out, ", %s", precision_name(s->precision));
    if (s->job.fallback) fprintf(out, " (%s should that overflow)", precision_name(s->job.fallback->precision));
    fputc('\n', out);
    if (s->job.forecasts) {
        print_count(out, "forecast  ", (double)s->data->target_width, " values");
        if (s->model.quantiles > 1) fprintf(out, ", %lld quantiles of each", (long long)s->model.quantiles);
        fputs(settings_levels(&s->settings, s->data) ? ", relative to the mean size of the window\n" : "\n", out);
    }
    int64_t parts = s->settings.accumulation;
    print_count(out, "batch     ", (double)(s->settings.batch_size * parts), " samples a step");
    if (parts > 1) print_count(out, ", in ", (double)parts, " micro-batches");
    if (s->settings.again)
        fprintf(out, ", %d %s%s recomputed", s->settings.again, lines_segment(s->model.kind),
            s->settings.again == 1 ? "" : "s");
    if (s->settings.batch_size * parts > s->split.train.count) fputs(", more than there are for training", out);
    fputc('\n', out);
    if (!fit_batch_suits(s, &e)) fprintf(out, "          train refuses it: %s\n", e.text);
    if (task_tuned_line(s, line, sizeof line)) fprintf(out, "tuned     %s\n", line);
    print_memory(s, out);
}
