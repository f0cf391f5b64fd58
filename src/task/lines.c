#include "task/lines.h"

#include "base/network.h"
#include "base/term.h"
#include "graph/dtype.h"
#include "run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Losses and metrics of an epoch. Those of forecasts have any size.
static void write_scores(const epoch_report *r, bool forecasts, char *text, size_t room) {
    const score *of = &r->validation;
    if (!forecasts)
        snprintf(text, room, "loss %.4f  validation loss %.4f  accuracy %.3f  mcc %.4f", r->train.loss, of->loss,
            of->accuracy, of->mcc);
    else if (isnan(of->mase))
        snprintf(text, room, "loss %.4g  validation loss %.4g  MAE %.5g  RMSE %.5g  sMAPE %.3f", r->train.loss,
            of->loss, of->mae, of->rmse, of->smape);
    else
        snprintf(text, room, "loss %.4g  validation loss %.4g  sMAPE %.3f  MASE %.3f", r->train.loss, of->loss,
            of->smape, of->mase);
}

void lines_epoch(const epoch_report *r, bool forecasts, char *text, size_t room) {
    char rate[32], scores[160];
    term_count(rate, sizeof rate, r->samples_per_s);
    write_scores(r, forecasts, scores, sizeof scores);
    int n = snprintf(
        text, room, "epoch %3lld  %s%s  %s samples/s", (long long)r->epoch, scores, r->best ? " *" : "  ", rate);
    if (r->skipped && n > 0 && (size_t)n < room)
        n += snprintf(text + n, room - (size_t)n, "  %lld step%s skipped (not finite)", (long long)r->skipped,
            term_s(r->skipped));
    if (r->precision == PRECISION_FP16 && n > 0 && (size_t)n < room)
        snprintf(text + n, room - (size_t)n, "  loss scale %g", (double)r->loss_scale);
}

void lines_change(const change_report *r, char *text, size_t room) {
    snprintf(text, room,
        "step %" PRIu64 ", epoch %" PRId64 ": %s overflowed in the last %" PRId64
        " steps, which changed nothing; going on in %s",
        r->update, r->epoch, precision_name(r->from), r->in_a_row, precision_name(r->to));
}

void lines_gauges(const db_gauges *g, char *text, size_t room) {
    FILE *out = fmemopen(text, room, "w");
    NEED(out, "out of memory for a line");
    text[0] = 0;
    fprintf(out, "%lld sample%s", (long long)g->samples, term_s(g->samples));
    if (!isnan(g->memory_process)) fprintf(out, "; memory at most %.1f MB by this process", g->memory_process / 1e6);
    if (!isnan(g->memory_used) && !isnan(g->memory_total))
        fprintf(out, "%s %.1f of %.1f MB by all", isnan(g->memory_process) ? "; memory at most" : ",",
            g->memory_used / 1e6, g->memory_total / 1e6);
    if (!isnan(g->utilisation))
        fprintf(out, "; utilisation %.0f %%, at most %.0f %%", g->utilisation_mean, g->utilisation);
    if (!isnan(g->temperature)) fprintf(out, "; at most %.0f C", g->temperature);
    if (!isnan(g->power)) fprintf(out, "; %.0f W, at most %.0f W", g->power_mean, g->power);
    fclose(out);
}

bool lines_card(const device *d, const queue *q, char *text, size_t room) {
    device_memory m;
    bool counted = d->memory(q, &m);
    if (d->host_memory) return false;
    int n = snprintf(text, room, "base %.1f MB and slab %.1f MB are %.1f MB", (double)m.base / 1e6,
        (double)m.slab / 1e6, (double)(m.base + m.slab) / 1e6);
    if (!counted)
        snprintf(
            text, room, "slab %.1f MB; the card's monitor (libnvidia-ml.so.1) was not found", (double)m.slab / 1e6);
    else if (m.source == MEMORY_OF_PROCESS)
        snprintf(text + n, room - (size_t)n, ", which the card's monitor counts for this process");
    else
        snprintf(text + n, room - (size_t)n,
            ", by which the card's use grew to %.1f MB; its monitor does not show this process", (double)m.used / 1e6);
    return true;
}

const char *lines_value(double v, char *text, size_t room) {
    snprintf(text, room, fabs(v) < 0.01 ? "%.4g" : "%.4f", v);
    return text;
}

const char *lines_segment(model_kind k) {
    const char *word = model_segment(k);
    return word ? word : "layer";
}

bool lines_overlap(const task *t, char *text, size_t room) {
    const split_part *train = &t->split.train;
    int64_t past, first = part_first(&t->split.validation);
    err unused;
    char n[32];
    if (t->data->held || t->settings.split.purge < 0 || train->spans != 1) return false;
    if (!split_past(t->data, train->span[0], NULL, &past, &unused) || past <= first) return false;
    term_count(n, sizeof n, (double)(past - first));
    snprintf(text, room, "labels of training samples reach %s samples into validation; leave data.split.purge out", n);
    return true;
}

// Which classes samples of a span have.
static void mark_classes(const dataset *d, span s, bool has[CLASSES_MOST]) {
    for (int64_t i = s.first; i < s.first + s.count; i++)
        if (d->label[i] >= 0 && d->label[i] < CLASSES_MOST) has[d->label[i]] = true;
}

// Names those of `all` that a part has no sample of; returns how many. `before` stands where there is one.
static int write_absent(
    FILE *out, const char *before, const dataset *d, const split_part *part, const bool all[CLASSES_MOST]) {
    enum { NAMED = 4 };
    bool has[CLASSES_MOST] = {false};
    char name[CLASS_NAME_ROOM];
    int absent = 0;
    for (int k = 0; k < part->spans; k++) mark_classes(d, part->span[k], has);
    for (int k = 0; k < d->classes; k++) {
        if (has[k] || !all[k] || ++absent > NAMED) continue;
        fprintf(out, "%s%.16s", absent > 1 ? ", " : before, dataset_class_name(d, k, name));
    }
    if (absent > NAMED) fprintf(out, " and %d more", absent - NAMED);
    return absent;
}

bool lines_classes(const dataset *d, const split *s, char *text, size_t room) {
    const struct {
        const split_part *of;
        const char *name;
    } parts[] = {
        {&s->train, "training, which cannot be learned"}, {&s->validation, "validation"}, {&s->test, "the test"}};
    bool all[CLASSES_MOST] = {false}, told = false;
    text[0] = 0;
    if (!d->label || d->classes > CLASSES_MOST) return false;
    FILE *out = fmemopen(text, room, "w");
    NEED(out, "out of memory for a line");
    mark_classes(d, (span){0, d->samples}, all);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *before = told ? "; " : "classes without a sample: ";
        if (!parts[i].of->count || !write_absent(out, before, d, parts[i].of, all)) continue;
        fprintf(out, " in %s", parts[i].name);
        told = true;
    }
    fclose(out);
    return told;
}

// "accuracy 0.5012"
static void write_trivial(const skill_row *r, double v, FILE *out) {
    char text[32];
    fprintf(out, "%s %s", skill_title(r->metric), skill_figure(r->metric, v, text, sizeof text));
}

void lines_trivial(const skill_table *t, const dataset *d, char *text, size_t room) {
    FILE *out = fmemopen(text, room, "w");
    NEED(out, "out of memory for a line");
    text[0] = 0;
    for (int k = 0; k < t->trivials; k++) {
        int n = 0;
        fprintf(out, "%s%s", k ? "; " : "", trivial_title(t->trivial[k]));
        if (t->trivial[k] == TRIVIAL_MAJORITY && d->class_names) fprintf(out, " %.40s", d->class_names[t->majority]);
        if (t->trivial[k] == TRIVIAL_MAJORITY && !d->class_names) fprintf(out, " %d", t->majority);
        for (int i = 0; i < t->rows; i++) {
            const skill_row *r = &t->group[0].row[i];
            if (isnan(r->trivial[k])) continue;
            fputs(n++ ? ", " : ": ", out);
            write_trivial(r, r->trivial[k], out);
        }
    }
    fclose(out);
}

bool lines_network(const char *dir, char *text, size_t room) {
    const char *name = network_of(dir);
    if (name)
        snprintf(text, room, "%s is on a network file system (%s): run.db has no WAL there, so that readers may wait",
            dir, name);
    return name != NULL;
}
