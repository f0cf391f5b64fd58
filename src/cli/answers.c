#include "cli/answers.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/age.h"
#include "data/when.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *answers_late(const answers *a, int64_t series) {
    return a->latest ? age_late(a->data, series) : NULL;
}

// A file of comma-separated values

void answers_print_name(const char *begin, const char *name, FILE *f) {
    if (!name[strcspn(name, ",\" ")]) {
        fprintf(f, "%s%s", begin, name);
        return;
    }
    fprintf(f, "\"%s", begin);
    for (; *name; name++) fprintf(f, *name == '"' ? "\"%c" : "%c", *name);
    fputc('"', f);
}

static void print_forecast_head(const answers *a, FILE *f) {
    int64_t H = a->data->target_width, Q = a->width / H;
    for (int64_t h = 0; !a->future && h < H; h++) fprintf(f, ",target_%lld", (long long)h + 1);
    for (int64_t i = 0; i < a->width; i++) {
        if (Q > 1) fprintf(f, ",q%g_%lld", (double)a->t->task.settings.quantiles.level[i / H], (long long)(i % H) + 1);
        if (Q == 1) fprintf(f, ",forecast_%lld", (long long)i + 1);
    }
    fputc('\n', f);
}

// The columns that tell the rows apart: the sample's number, its bar, its series.
static void print_head(const answers *a, FILE *f) {
    const dataset *d = a->data;
    const struct {
        bool is;
        const char *name;
    } columns[] = {{!a->future && !a->latest, "sample"}, {a->bar, "open_time,close_time,close"},
        {d->time && !a->bar, "time"}, {d->panel, a->bar ? "symbol" : "series"}, {a->signal, "signal"}};
    for (size_t i = 0, shown = 0; i < sizeof columns / sizeof *columns; i++)
        if (columns[i].is) fprintf(f, "%s%s", shown++ ? "," : "", columns[i].name);
    if (a->t->task.job.forecasts) {
        print_forecast_head(a, f);
        return;
    }
    fprintf(f, "%s,prediction", d->label ? ",label" : "");
    for (int k = 0; k < d->classes; k++) {
        char name[CLASS_NAME_ROOM];
        fputc(',', f);
        answers_print_name("p_", dataset_class_name(d, k, name), f);
    }
    fputc('\n', f);
}

static void print_place(const answers *a, int64_t i, FILE *f) {
    const dataset *d = a->data;
    char when[32];
    bool first = a->future || a->latest;
    if (!first) fprintf(f, "%lld", (long long)a->sample[i]);
    if (a->bar) {
        bar b = dataset_bar(&d->stream[0].bars, a->bar[i]);
        fprintf(f, "%s%s", first ? "" : ",", when_moment_text(when, sizeof when, b.time));
        fprintf(f, ",%s,%.10g", when_moment_text(when, sizeof when, b.end), b.close);
        first = false;
    } else if (d->time) {
        fprintf(f, "%s%s", first ? "" : ",", when_moment_text(when, sizeof when, d->time[a->sample[i]]));
        first = false;
    }
    if (d->panel && !first) fputc(',', f);
    if (d->panel) answers_print_name("", a->name[i], f);
    if (!a->signal) return;
    fputc(',', f);
    if (!isnan(a->signal[i])) fprintf(f, "%d", (int)a->signal[i]);
}

static void print_row(const answers *a, int64_t i, FILE *f) {
    const dataset *d = a->data;
    int64_t sample = a->sample[i], H = d->target_width;
    bool known = answers_known(a, i);
    char name[CLASS_NAME_ROOM];
    print_place(a, i, f);
    if (a->choice) {
        if (d->label) fputc(',', f);
        if (d->label && known) answers_print_name("", dataset_class_name(d, (int)d->label[sample], name), f);
        fputc(',', f);
        answers_print_name("", dataset_class_name(d, (int)a->choice[i], name), f);
    }
    for (int64_t h = 0; !a->choice && !a->future && h < H; h++) {
        fputc(',', f);
        if (known) fprintf(f, "%.9g", (double)d->target[sample * H + h]);
    }
    for (int64_t k = 0; k < a->width; k++) fprintf(f, ",%.9g", (double)a->answer[i * a->width + k]);
    fputc('\n', f);
}

// Some rows at a time: they are text in memory before they are in the file.
bool answers_write_csv(const answers *a, const char *path, err *e) {
    enum { ROWS = 4096 };
    file_writer w;
    bool ok = file_writer_open(&w, path, e);
    for (int64_t i = 0; ok && i < a->samples.count; i += ROWS) {
        text_out t;
        text_open(&t);
        if (i == 0) print_head(a, t.out);
        for (int64_t k = i; k < i + ROWS && k < a->samples.count; k++) print_row(a, k, t.out);
        char *text = text_close(&t);
        ok = text ? file_writer_write(&w, text, t.bytes, e) : err_run(e, "%s: out of memory", path);
        free(text);
    }
    ok = ok && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}

// The screen

static void print_classes(const answers *a, int64_t i) {
    char name[CLASS_NAME_ROOM];
    printf("  %-8s", dataset_class_name(a->data, (int)a->choice[i], name));
    for (int k = 0; k < a->width; k++)
        printf("  %s %.3f", dataset_class_name(a->data, k, name), (double)a->answer[i * a->width + k]);
    if (answers_known(a, i)) printf("  (was %s)", dataset_class_name(a->data, (int)a->data->label[a->sample[i]], name));
}

static void print_forecast(const answers *a, int64_t i) {
    int64_t H = a->data->target_width, at = settings_median(&a->t->task.settings) * H;
    const float *x = a->answer + i * a->width + at;
    printf("  next %.6g", (double)x[0]);
    if (H > 1) printf(", in %lld bars %.6g", (long long)H, (double)x[H - 1]);
    if (!answers_known(a, i)) return;
    printf("  (was %.6g", (double)a->data->target[a->sample[i] * H]);
    if (H > 1) printf(", %.6g", (double)a->data->target[a->sample[i] * H + H - 1]);
    putchar(')');
}

// The unit of forecasts; NULL where the data do not say.
static const char *unit_of(const dataset *d) {
    static const char *const units[][2] = {
        {"path", "log return since the close"}, {"step", "log return of the bar"}, {"close", "price"}};
    const char *value = json_string_value(json_object_get(json_object_get(d->about, "label"), "value"));
    for (size_t i = 0; value && i < sizeof units / sizeof *units; i++)
        if (strcmp(value, units[i][0]) == 0) return units[i][1];
    return NULL;
}

static void print_unit(const answers *a) {
    const settings *s = &a->t->task.settings;
    const char *unit = unit_of(a->data);
    bool several = a->width > a->data->target_width;
    if (!unit && !several) return;
    printf("forecast  %s", unit ? unit : "value");
    if (several) printf(", quantile %g", (double)s->quantiles.level[settings_median(s)]);
    putchar('\n');
}

// Values by quantile, or one list where there are none.
static json_t *forecast_json(const answers *a, int64_t i) {
    int64_t H = a->data->target_width, Q = a->width / H;
    json_t *all = json_object();
    for (int64_t q = 0; q < Q; q++) {
        char level[32];
        json_t *list = json_array();
        for (int64_t h = 0; h < H; h++)
            json_array_append_new(list, json_number((double)a->answer[i * a->width + q * H + h]));
        snprintf(level, sizeof level, "%g", (double)a->t->task.settings.quantiles.level[q]);
        if (Q > 1) json_object_set_new(all, level, list);
        if (Q > 1) continue;
        json_decref(all);
        all = list;
    }
    return all;
}

// The values that were forecast, where they are known.
static json_t *targets_json(const answers *a, int64_t i) {
    int64_t H = a->data->target_width;
    json_t *all = json_array();
    for (int64_t h = 0; h < H; h++)
        json_array_append_new(all, json_number((double)a->data->target[a->sample[i] * H + h]));
    return all;
}

static json_t *answer_json(const answers *a, int64_t i, const bar *b) {
    char open[32], close[32], name[CLASS_NAME_ROOM];
    json_t *j = json_pack("{s:s, s:s, s:f}", "open_time", when_moment_text(open, sizeof open, b->time), "close_time",
        when_moment_text(close, sizeof close, b->end), "close", b->close);
    if (a->name && a->data->panel) json_object_set_new(j, "symbol", json_string(a->name[i]));
    json_t *all = a->choice ? json_object() : forecast_json(a, i);
    for (int k = 0; a->choice && k < a->width; k++)
        json_object_set_new(
            all, dataset_class_name(a->data, k, name), json_number((double)a->answer[i * a->width + k]));
    if (!a->choice && unit_of(a->data)) json_object_set_new(j, "unit", json_string(unit_of(a->data)));
    if (a->choice)
        json_object_set_new(j, "prediction", json_string(dataset_class_name(a->data, (int)a->choice[i], name)));
    if (a->choice && answers_known(a, i))
        json_object_set_new(
            j, "label", json_string(dataset_class_name(a->data, (int)a->data->label[a->sample[i]], name)));
    if (!a->choice && answers_known(a, i)) json_object_set_new(j, "target", targets_json(a, i));
    json_object_set_new(j, a->choice ? "probability" : "forecast", all);
    if (a->signal && !isnan(a->signal[i])) json_object_set_new(j, "signal", json_integer((json_int_t)a->signal[i]));
    if (answers_trained_on(a, i)) json_object_set_new(j, "trained_on", json_true());
    json_t *late = answers_late(a, a->data->panel ? dataset_panel_of(a->data, a->sample[i]) : 0);
    if (late) json_object_set_new(j, "stale", late);
    return j;
}

void answers_print(const answers *a, bool json) {
    char when[32];
    if (!json && !a->choice) print_unit(a);
    for (int64_t i = 0; i < a->samples.count; i++) {
        bar b = dataset_bar(&a->data->stream[0].bars, a->bar[i]);
        if (json) {
            json_line(stdout, answer_json(a, i, &b));
            continue;
        }
        printf("%s%s", a->data->panel ? a->name[i] : "", a->data->panel ? "  " : "");
        printf("closed %s UTC  close %-10.10g", when_moment_text(when, sizeof when, b.end), b.close);
        a->choice ? print_classes(a, i) : print_forecast(a, i);
        if (a->signal && !isnan(a->signal[i])) printf("  signal %d", (int)a->signal[i]);
        putchar('\n');
    }
}
