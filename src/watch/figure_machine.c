// Figures of the machine: what the device's monitor showed while the run went on.
#include "watch/chart.h"
#include "watch/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char none[] = "the run has no samples of the device: it was too short, an earlier version wrote it, or "
                           "gpu_optimization.memory_monitoring is false";

static bool is_run(const facts *f) {
    return f->is_run;
}

// Seconds since the first sample, in the unit that suits them.
typedef struct {
    const char *name;
    double seconds;
} unit;

static unit unit_for(double seconds) {
    static const unit units[] = {{"hours", 3600}, {"minutes", 60}, {"seconds", 1}};
    for (int i = 0; i < 2; i++)
        if (seconds >= 3 * units[i].seconds) return units[i];
    return units[2];
}

// A trace's most (or mean) values, scaled; the caller frees `x`, which holds both lists.
static points scaled(const trace *t, bool mean, double x_unit, double y_unit) {
    double *x = malloc(2 * ((size_t)t->count + 1) * sizeof *x), *y = x + t->count;
    NEED(x, "out of memory for a figure");
    for (int i = 0; i < t->count; i++) {
        x[i] = t->x[i] / x_unit;
        y[i] = (mean ? t->mean[i] : t->high[i]) / y_unit;
    }
    return (points){t->count, x, y};
}

static bool has_memory(const facts *f) {
    return f->memory->count > 1;
}

static void draw_memory(const facts *f, svg *s) {
    static const double gb = (double)(1 << 30);
    unit u = unit_for(f->memory->x[f->memory->count - 1]);
    points mine = scaled(f->memory, false, u.seconds, gb), others = scaled(f->others, false, u.seconds, gb);
    limits x = limits_add(limits_none, mine.x, mine.count), y = limits_add(limits_none, mine.y, mine.count);
    y = limits_add(y, others.y, others.count);
    double total = f->memory_total / gb, zero = 0;
    y = limits_add(y, &zero, 1);
    chart_place at = {0, s->height, u.name, "GB"};
    chart c = chart_open(s, &at, axis_numbers(0, x.high, s->width / 80), axis_numbers(y.low, y.high, 5));
    chart_line(&c, &mine, 0, "this run");
    if (others.count) chart_line(&c, &others, 1, "others");
    svg_describe(s, "Memory of the device over time: this run at most %.2f GB of %.1f GB.",
        limits_add(limits_none, mine.y, mine.count).high, total);
    free((void *)mine.x);
    free((void *)others.x);
}

const figure figure_memory = {.name = "memory",
    .title = "Memory of the device",
    .section = "Machine",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = is_run,
    .has = has_memory,
    .draw = draw_memory,
    .why = none};

static bool has_utilisation(const facts *f) {
    return f->utilisation->count > 1;
}

static void draw_utilisation(const facts *f, svg *s) {
    unit u = unit_for(f->utilisation->x[f->utilisation->count - 1]);
    points p = scaled(f->utilisation, true, u.seconds, 1);
    limits x = limits_add(limits_none, p.x, p.count);
    double mean = 0;
    for (int i = 0; i < p.count; i++) mean += p.y[i] / p.count;
    chart_place at = {0, s->height, u.name, "percent"};
    chart c = chart_open(s, &at, axis_numbers(0, x.high, s->width / 80), axis_numbers(0, 100, 5));
    chart_area(&c, &p, 0, 2);
    chart_line(&c, &p, 0, "utilisation");
    svg_describe(s, "Utilisation of the device over time, %.0f percent in the mean.", mean);
    free((void *)p.x);
}

const figure figure_utilisation = {.name = "utilisation",
    .title = "Utilisation of the device",
    .section = "Machine",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = is_run,
    .has = has_utilisation,
    .draw = draw_utilisation,
    .why = none};
