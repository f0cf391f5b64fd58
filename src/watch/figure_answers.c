// Figures of a model's answers on one part: confusion matrix, calibration, importance of columns.
#include "base/term.h"
#include "run/outline.h"
#include "watch/chart.h"
#include "watch/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Confusion matrix

enum { CELLS_MOST = 12, NAME_MOST = 11, MATRIX_LEFT = 104, MATRIX_TOP = 62, ROW = 44 };

// Forecasts have no classes: their evaluation has no such list.
static bool has_classes(const facts *f) {
    if (!f->is_run) return f->confusion != NULL;
    if (f->part) return json_object_get(f->part, "classes") != NULL;
    return !f->curves || facts_curve(f, "validation", "mcc");
}

static bool has_confusion(const facts *f) {
    return f->confusion && json_array_size(f->confusion) <= CELLS_MOST;
}

static const char *class_name(const facts *f, size_t k, char text[24]) {
    const char *name = json_string_value(json_array_get(f->classes, k));
    snprintf(text, 24, "%zu", k);
    return name ? name : text;
}

static double row_sum(const json_t *row) {
    double sum = 0;
    for (size_t k = 0; k < json_array_size(row); k++) sum += results_number(json_array_get(row, k));
    return sum;
}

// Samples that were answered.
static void part_words(const facts *f, char *text, size_t room) {
    if (f->is_run)
        snprintf(text, room, "%s part", f->part_name ? f->part_name : "validation");
    else
        snprintf(text, room, "tests of all folds");
}

static void draw_cell(svg *s, double x, double y, double width, double count, double share) {
    char text[48];
    bool wide = width > 48; // room for a count
    svg_shade(s, "fa", x, y, width, ROW, SVG_SHADE_MOST * share);
    svg_rect(s, "frame", x, y, width, ROW);
    term_count(text, sizeof text, count);
    if (wide) svg_words(s, "strong", SVG_MIDDLE, (svg_point){x + width / 2, y + 19}, text, 0);
    snprintf(text, sizeof text, wide ? "%.1f %%" : "%.0f", 100 * share);
    svg_words(s, "small", SVG_MIDDLE, (svg_point){x + width / 2, y + (wide ? 35 : 26)}, text, 0);
}

static void draw_confusion(const facts *f, svg *s) {
    size_t K = json_array_size(f->confusion);
    double width = (s->width - MATRIX_LEFT - 12.0) / (double)K, right = 0, all = 0;
    char name[24], of[96];
    part_words(f, of, sizeof of);
    if (f->is_run && f->confusion == f->best_confusion) snprintf(of, sizeof of, "validation, best epoch");
    svg_words(s, "dim small", SVG_START, (svg_point){4, 14}, of, 0);
    svg_words(s, "dim small", SVG_MIDDLE, (svg_point){MATRIX_LEFT + width * (double)K / 2, 34}, "predicted", 0);
    svg_words(s, "dim small", SVG_END, (svg_point){MATRIX_LEFT - 10, MATRIX_TOP - 8}, "true", 0);
    for (size_t i = 0; i < K; i++) {
        const json_t *row = json_array_get(f->confusion, i);
        double sum = row_sum(row), y = MATRIX_TOP + ROW * (double)i;
        int most = width < 80 ? 5 : NAME_MOST;
        svg_words(s, "", SVG_MIDDLE, (svg_point){MATRIX_LEFT + width * ((double)i + 0.5), MATRIX_TOP - 8},
            class_name(f, i, name), most);
        svg_words(s, "", SVG_END, (svg_point){MATRIX_LEFT - 10, y + 26}, class_name(f, i, name), NAME_MOST);
        for (size_t k = 0; k < K; k++) {
            double count = results_number(json_array_get(row, k));
            draw_cell(s, MATRIX_LEFT + width * (double)k, y, width, count, sum > 0 ? count / sum : 0);
            right += i == k ? count : 0;
        }
        all += sum;
    }
    s->height = MATRIX_TOP + ROW * (int)K + 12;
    svg_describe(s, "Confusion matrix of %zu classes, %s: %.0f of %.0f answers are right.", K, of, right, all);
}

const figure figure_confusion = {.name = "confusion",
    .title = "Confusion matrix",
    .section = "Answers",
    .applies = has_classes,
    .has = has_confusion,
    .draw = draw_confusion,
    .command = "evaluate",
    .options = "",
    .note = "Rows are true classes; the percentage is the share of a row."};

// Calibration

// Calibration of a part of a run, or of all tests of a walk.
static json_t *judged_by(const facts *f) {
    return f->is_run ? f->part : f->doc[RESULTS_WALK];
}

static json_t *coverage_of(const facts *f) {
    return json_object_get(judged_by(f), "coverage");
}

static json_t *calibration_of(const facts *f) {
    return json_object_get(judged_by(f), "calibration");
}

// Forecasts without quantiles have no probabilities to be judged.
static bool may_be_calibrated(const facts *f) {
    return has_classes(f) || json_array_size(coverage_of(f)) > 0;
}

static bool has_calibration(const facts *f) {
    return json_array_size(calibration_of(f)) > 0 || json_array_size(coverage_of(f)) > 0;
}

// Numbers of a key in a list of objects; the caller frees both lists.
typedef struct {
    int count;
    double *x, *y;
} pairs;

static pairs pairs_of(const json_t *list, const char *x, const char *y) {
    size_t n = json_array_size(list);
    pairs p = {0, malloc((n + 1) * sizeof *p.x), malloc((n + 1) * sizeof *p.y)};
    NEED(p.x && p.y, "out of memory for a figure");
    for (size_t i = 0; i < n; i++) {
        const json_t *each = json_array_get(list, i);
        double a = results_number(json_object_get(each, x)), b = results_number(json_object_get(each, y));
        if (isnan(a) || isnan(b)) continue;
        p.x[p.count] = a;
        p.y[p.count++] = b;
    }
    return p;
}

static void draw_pairs(chart *c, const json_t *list, const char *x, const char *y, int kind, const char *name) {
    pairs p = pairs_of(list, x, y);
    points at = {p.count, p.x, p.y};
    chart_line(c, &at, kind, name);
    chart_dots(c, &at, kind);
    free(p.x);
    free(p.y);
}

static void draw_calibration(const facts *f, svg *s) {
    json_t *classes = calibration_of(f);
    bool quantiles = !json_array_size(classes);
    char of[96];
    part_words(f, of, sizeof of);
    size_t n = json_array_size(classes), shown = n < CHART_LINES ? n : CHART_LINES;
    s->height = 360;
    chart_place at = {0, s->height, quantiles ? "quantile" : "mean probability", "share"};
    chart c = chart_open(s, &at, axis_numbers(0, 1, 5), axis_numbers(0, 1, 5));
    svg_line(s, "mark", chart_at(&c, 0, 0), chart_at(&c, 1, 1));
    for (size_t i = 0; i < shown; i++) {
        const json_t *one = json_array_get(classes, i);
        const char *name = json_string_value(json_object_get(one, "class"));
        draw_pairs(&c, json_object_get(one, "bins"), "mean", "share", (int)i, name ? name : "?");
    }
    if (quantiles) draw_pairs(&c, coverage_of(f), "level", "share", 0, "targets below");
    svg_describe(s,
        quantiles ? "Share of targets below each forecast quantile, %s; on the diagonal: as promised.%s"
                  : "Share of a class against its mean predicted probability, %s; on the diagonal: "
                    "as promised.%s",
        of, n > shown ? " The first classes alone are drawn." : "");
}

const figure figure_calibration = {.name = "calibration",
    .title = "Calibration",
    .section = "Answers",
    .applies = may_be_calibrated,
    .has = has_calibration,
    .draw = draw_calibration,
    .command = "evaluate",
    .options = "",
    .of_walk = "--gather",
    .note = "On the dotted diagonal a probability is a frequency. Bins of equal width; empty ones are left out."};

// Importance

enum { BARS_MOST = 20, BAR = 22, LABEL = 170, LABEL_MOST = 24, VALUE = 62 };

// The part that has it: validation, where it is measured; of a walk the mean over its folds.
static json_t *importance_of(const facts *f) {
    return json_object_get(f->is_run ? facts_part(f, "validation") : f->doc[RESULTS_WALK], "importance");
}

// Members of an ensemble have an importance each.
static bool is_one_model(const facts *f) {
    char *members = f->config ? outline_value(f->config, "train.ensemble") : NULL;
    bool one = !members || strcmp(members, "1") == 0;
    free(members);
    return one;
}

static bool has_importance(const facts *f) {
    return json_array_size(importance_of(f)) > 0;
}

static double drop_of(const json_t *one) {
    double drop = results_number(json_object_get(one, "drop"));
    return isnan(drop) ? 0 : drop;
}

static int by_drop(const void *a, const void *b) {
    double x = drop_of(*(json_t *const *)a), y = drop_of(*(json_t *const *)b);
    return (x < y) - (x > y);
}

// Columns with the largest drops first; the caller frees the list.
static json_t **sorted(const json_t *list, size_t *count) {
    *count = json_array_size(list);
    json_t **all = malloc((*count + 1) * sizeof *all);
    NEED(all, "out of memory for a figure");
    for (size_t i = 0; i < *count; i++) all[i] = json_array_get(list, i);
    qsort(all, *count, sizeof *all, by_drop);
    return all;
}

static void draw_bar(svg *s, const json_t *one, double y, double zero, double scale) {
    const char *stream = json_string_value(json_object_get(one, "stream"));
    const char *column = json_string_value(json_object_get(one, "column"));
    double drop = drop_of(one), width = fabs(drop) * scale;
    char label[256], value[32];
    snprintf(label, sizeof label, "%.100s %.100s", stream ? stream : "", column ? column : "?");
    snprintf(value, sizeof value, "%+.4f", drop);
    svg_words(s, "small", SVG_END, (svg_point){LABEL - 8, y + 15}, label, LABEL_MOST);
    svg_rect(s, drop < 0 ? "fb" : "fa", drop < 0 ? zero - width : zero, y + 4, fmax(width, 0.5), BAR - 8);
    svg_words(s, "dim small", SVG_END, (svg_point){s->width - 4.0, y + 15}, value, 0);
}

static void draw_importance(const facts *f, svg *s) {
    size_t count, shown;
    json_t **all = sorted(importance_of(f), &count);
    shown = count < BARS_MOST ? count : BARS_MOST;
    double most = 0, least = 0;
    for (size_t i = 0; i < shown; i++) {
        most = fmax(most, drop_of(all[i]));
        least = fmin(least, drop_of(all[i]));
    }
    const char *metric = json_string_value(json_object_get(all[0], "metric"));
    double scale = most > least ? (s->width - LABEL - VALUE) / (most - least) : 0, zero = LABEL - least * scale;
    char head[96];
    snprintf(head, sizeof head, "loss of validation %.40s%s", metric ? metric : "score",
        f->is_run ? "" : ", mean over the folds");
    svg_words(s, "dim small", SVG_START, (svg_point){4, 14}, head, 0);
    for (size_t i = 0; i < shown; i++) draw_bar(s, all[i], 24 + BAR * (double)i, zero, scale);
    svg_line(s, "axis", (svg_point){zero, 24}, (svg_point){zero, 24 + BAR * (double)shown});
    s->height = 24 + BAR * (int)shown + 10;
    svg_describe(s, "Importance of the %zu most important of %zu columns: %s drops by %.4f without the first.", shown,
        count, metric ? metric : "the score", drop_of(all[0]));
    free(all);
}

const figure figure_importance = {.name = "importance",
    .title = "Importance of columns",
    .section = "Answers",
    .applies = is_one_model,
    .has = has_importance,
    .draw = draw_importance,
    .command = "evaluate",
    .options = "--importance",
    .of_walk = "walk.importance=true --gather",
    .note =
        "How much worse the score gets with one column's rows in random order; columns that say the same share it."};
