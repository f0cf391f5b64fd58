#include "watch/web/scrape.h"

#include <math.h>
#include <string.h>

// A label's value: backslash, quote and line feed are escaped; what is no UTF-8 would make a scrape fail.
static void put_label(FILE *out, const char *name, const char *value) {
    fprintf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            fprintf(out, "\\%c", *value);
        else if (*value == '\n')
            fputs("\\n", out);
        else
            putc((unsigned char)*value < 0x20 || (unsigned char)*value >= 0x7f ? '?' : *value, out);
    }
    putc('"', out);
}

static void put_head(FILE *out, const char *name, const char *help) {
    fprintf(out, "# HELP tradewind_%s %s\n# TYPE tradewind_%s gauge\n", name, help, name);
}

static void put_value(FILE *out, double v) {
    if (isnan(v))
        fputs("NaN\n", out);
    else
        fprintf(out, "%.10g\n", v);
}

// Figures of a run by itself.
static double epochs_of(const view *v) {
    return (double)view_sum(v)->epochs;
}

static double steps_of(const view *v) {
    return (double)view_sum(v)->step;
}

static double seconds_of(const view *v) {
    return view_sum(v)->seconds;
}

static double started_of(const view *v) {
    return view_sum(v)->started;
}

static double best_of(const view *v) {
    return (double)view_sum(v)->best_epoch;
}

static const struct {
    const char *name, *help;
    double (*of)(const view *v);
} counts[] = {{"run_epochs", "Epochs that ended.", epochs_of}, {"run_steps", "Steps that were taken.", steps_of},
    {"run_best_epoch", "The best epoch so far, 0 for none.", best_of},
    {"run_training_seconds", "Seconds of all epochs.", seconds_of},
    {"run_start_time_seconds", "When the run began, in seconds since 1970.", started_of}};

static const struct {
    const char *name, *help, *curve;
    double factor;
} gauges[] = {{"run_samples_per_second", "Training samples a second in the last epoch.", "epoch/samples_per_s", 1},
    {"run_step_loss", "Loss of the last steps.", "steps/loss", 1},
    {"run_learning_rate", "Learning rate of the last steps.", "steps/lr", 1},
    {"run_gradient_norm", "Norm of the last steps' gradients.", "steps/grad_norm", 1},
    {"device_memory_process_bytes", "Memory of the device held by the run.", "device/memory_process", 1},
    {"device_memory_used_bytes", "Memory of the device held by everyone.", "device/memory_used", 1},
    {"device_memory_total_bytes", "Memory of the device in all.", "device/memory_total", 1},
    {"device_utilisation_ratio", "Utilisation of the device, from 0 to 1.", "device/utilisation", 0.01},
    {"device_temperature_celsius", "Temperature of the device.", "device/temperature", 1},
    {"device_power_watts", "Power that the device takes.", "device/power", 1},
    {"device_clock_hertz", "Clock of the device.", "device/clock", 1e6}};

static void put_statuses(FILE *out, const char *const *names, const view *const *views, int count) {
    static const char *const statuses[] = {"running", "done", "stopped", "failed", "killed"};
    put_head(out, "run_status", "1 for the status that the run has, 0 for the others.");
    for (int i = 0; i < count; i++)
        for (size_t k = 0; view_known(views[i]) && k < sizeof statuses / sizeof *statuses; k++) {
            fputs("tradewind_run_status{", out);
            put_label(out, "run", names[i]);
            fprintf(out, ",status=\"%s\"} %d\n", statuses[k], strcmp(view_sum(views[i])->status, statuses[k]) == 0);
        }
}

static void put_counts(FILE *out, const char *const *names, const view *const *views, int count) {
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        put_head(out, counts[k].name, counts[k].help);
        for (int i = 0; i < count; i++) {
            if (!view_known(views[i])) continue;
            fprintf(out, "tradewind_%s{", counts[k].name);
            put_label(out, "run", names[i]);
            fputs("} ", out);
            put_value(out, counts[k].of(views[i]));
        }
    }
}

static void put_gauges(FILE *out, const char *const *names, const view *const *views, int count) {
    for (size_t k = 0; k < sizeof gauges / sizeof *gauges; k++) {
        bool begun = false;
        for (int i = 0; i < count; i++) {
            double v = view_last(views[i], gauges[k].curve);
            if (isnan(v)) continue;
            if (!begun) put_head(out, gauges[k].name, gauges[k].help);
            begun = true;
            fprintf(out, "tradewind_%s{", gauges[k].name);
            put_label(out, "run", names[i]);
            fputs("} ", out);
            put_value(out, v * gauges[k].factor);
        }
    }
}

static void put_metrics(FILE *out, const char *const *names, const view *const *views, int count) {
    put_head(out, "run_metric", "A metric of the last epoch that has it.");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < view_curves(views[i]); k++) {
            const view_curve *c = view_curve_at(views[i], k);
            if (c->kind != CURVE_METRIC || !c->values.count) continue;
            fputs("tradewind_run_metric{", out);
            put_label(out, "run", names[i]);
            putc(',', out);
            put_label(out, "part", c->part);
            putc(',', out);
            put_label(out, "metric", c->word);
            fputs("} ", out);
            put_value(out, c->values.last.y);
        }
}

void scrape_write(FILE *out, const char *const *names, const view *const *views, int count) {
    put_statuses(out, names, views, count);
    put_counts(out, names, views, count);
    put_gauges(out, names, views, count);
    put_metrics(out, names, views, count);
}
