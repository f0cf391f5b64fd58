// Figures of training: learning curves and the loss of the steps.
#include "watch/chart.h"
#include "watch/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_run(const facts *f) {
    return f->is_run;
}

static points means_of(const trace *t) {
    return (points){t->count, t->x, t->mean};
}

// Curves of training and validation over the epochs, with the best epoch marked.
static void draw_curves(const facts *f, svg *s, const char *name, const char *title) {
    static const char *const parts[] = {"train", "validation"};
    limits x = limits_none, y = limits_none;
    for (int i = 0; i < 2; i++) {
        const trace *t = facts_curve(f, parts[i], name);
        if (t) x = limits_add(x, t->x, t->count);
        if (t) y = limits_add(y, t->mean, t->count);
    }
    chart_place at = {0, s->height, "epoch", title};
    chart c = chart_open(s, &at, axis_counts(x.low, x.high, 8), axis_numbers(y.low, y.high, 6));
    for (int i = 0; i < 2; i++) {
        const trace *t = facts_curve(f, parts[i], name);
        points p = t ? means_of(t) : (points){0};
        if (t) chart_line(&c, &p, i, parts[i]);
    }
    char word[64];
    int64_t best = f->sum.best_epoch;
    double value = facts_best(f, "validation", name);
    if (best && !isnan(value)) {
        snprintf(word, sizeof word, "best epoch %lld: %.4g", (long long)best, value);
        chart_mark(&c, (double)best, word);
    }
    svg_describe(s, "%s over %lld epochs for training and validation; best epoch %lld, validation %s %.4g.", title,
        (long long)f->sum.epochs, (long long)best, title, value);
}

static bool has_loss(const facts *f) {
    return facts_curve(f, "validation", "loss") || facts_curve(f, "train", "loss");
}

static void draw_loss(const facts *f, svg *s) {
    draw_curves(f, s, "loss", "loss");
}

const figure figure_loss = {.name = "loss",
    .title = "Learning curve: loss",
    .section = "Training",
    .applies = is_run,
    .has = has_loss,
    .draw = draw_loss,
    .why = "no epoch has ended; an ensemble's are in its members' directories"};

static bool has_metric(const facts *f) {
    return f->metric != NULL;
}

// As people write it.
static const char *title_of(const char *metric) {
    static const char *const titles[][2] = {{"mcc", "MCC"}, {"macro_f1", "macro F1"}, {"mae", "MAE"}, {"rmse", "RMSE"},
        {"smape", "sMAPE"}, {"mase", "MASE"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(metric, titles[i][0]) == 0) return titles[i][1];
    return metric;
}

static void draw_metric(const facts *f, svg *s) {
    draw_curves(f, s, f->metric, title_of(f->metric));
}

const figure figure_metric = {.name = "metric",
    .title = "Learning curve: metric",
    .section = "Training",
    .applies = is_run,
    .has = has_metric,
    .draw = draw_metric,
    .why = "no epoch has ended; an ensemble's are in its members' directories"};

static bool has_steps(const facts *f) {
    return f->steps->count > 1;
}

static void draw_steps(const facts *f, svg *s) {
    const trace *t = f->steps;
    limits x = limits_add(limits_none, t->x, t->count), y = limits_add(limits_none, t->low, t->count);
    y = limits_add(y, t->high, t->count);
    chart_place at = {0, s->height, "step", "loss"};
    chart c = chart_open(s, &at, axis_counts(x.low, x.high, s->width / 80), axis_numbers(y.low, y.high, 6));
    points p = means_of(t);
    chart_band(&c, t->x, t->low, t->high, t->count, 0);
    chart_line(&c, &p, 0, "mean; shaded: least to most");
    svg_describe(
        s, "Training loss over %.0f steps, from %.4g to %.4g at the end.", x.high, t->mean[0], t->mean[t->count - 1]);
}

const figure figure_steps = {.name = "steps",
    .title = "Training loss by step",
    .section = "Training",
    .wide = true,
    .applies = is_run,
    .has = has_steps,
    .draw = draw_steps,
    .why = "fewer than two rows of steps were written; an ensemble's are in its members' directories"};
