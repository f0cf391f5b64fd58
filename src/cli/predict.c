// tradewind predict: a trained run's probabilities or forecasts, sample by sample, as .npz or .csv.
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/use.h"
#include "data/npz.h"
#include "data/when.h"
#include "task/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const trained *t;
    const dataset *data;
    split_part samples;
    bool future;       // there are no targets yet
    int64_t width;     // columns of an answer: classes, or quantiles times horizon
    float *answer;     // [count, width] probabilities or forecasts
    int32_t *choice;   // [count] the likeliest class; NULL of forecasts
    int64_t *sample;   // [count]
    const char **name; // [count] of the sample's series, or NULL
} answers;

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static bool take_memory(answers *a, err *e) {
    size_t n = (size_t)a->samples.count;
    bool classes = !a->t->task.job.forecasts;
    if (classes) a->choice = malloc(n * sizeof *a->choice);
    a->sample = malloc(n * sizeof *a->sample);
    a->name = malloc(n * sizeof *a->name);
    return ((a->choice || !classes) && a->sample && a->name) || err_run(e, "out of memory for %zu samples", n);
}

static void choose(answers *a) {
    for (int64_t i = 0; i < a->samples.count; i++) {
        const float *p = a->answer + i * a->width;
        a->choice[i] = 0;
        for (int k = 1; k < a->width; k++)
            if (p[k] > p[a->choice[i]]) a->choice[i] = k;
    }
}

static void name_samples(answers *a) {
    for (int64_t i = 0; i < a->samples.count; i++) {
        a->sample[i] = part_sample(&a->samples, i);
        if (a->data->panel) a->name[i] = a->data->panel_names[dataset_panel_of(a->data, a->sample[i])];
    }
}

// Files

// Writes the samples' rows of an array of the dataset, each of `dim[1]` and further elements of `size` bytes: one span
// as it lies, several copied behind each other.
static bool write_rows(npz_writer *w, const answers *a, const char *name, npy_type type, int rank, const int64_t *dim,
    const void *from, size_t size, err *e) {
    for (int i = 1; i < rank; i++) size *= (size_t)dim[i];
    if (a->samples.spans == 1)
        return npz_writer_array(w, name, type, rank, dim, (const char *)from + (size_t)a->sample[0] * size, e);
    char *rows = malloc((size_t)a->samples.count * size + 1);
    if (!rows) return err_run(e, "out of memory for %lld rows of %s", (long long)a->samples.count, name);
    for (int64_t i = 0; i < a->samples.count; i++)
        memcpy(rows + (size_t)i * size, (const char *)from + (size_t)a->sample[i] * size, size);
    bool ok = npz_writer_array(w, name, type, rank, dim, rows, e);
    free(rows);
    return ok;
}

static bool write_classes(npz_writer *w, const answers *a, err *e) {
    const dataset *d = a->data;
    int64_t dim[2] = {a->samples.count, a->width};
    bool ok = npz_writer_array(w, "probability", NPY_F32, 2, dim, a->answer, e) &&
              npz_writer_array(w, "prediction", NPY_I32, 1, dim, a->choice, e);
    if (ok && d->label) ok = write_rows(w, a, "label", NPY_I32, 1, dim, d->label, sizeof *d->label, e);
    return ok && (!d->class_names || npz_writer_text(w, "classes", d->class_names, d->classes, e));
}

// [samples, horizon], or with quantiles [samples, quantiles, horizon].
static bool write_forecasts(npz_writer *w, const answers *a, err *e) {
    const dataset *d = a->data;
    const quantile_settings *q = &a->t->task.settings.quantiles;
    int64_t H = d->target_width, Q = a->width / H, flat[2] = {a->samples.count, H}, deep[3] = {a->samples.count, Q, H};
    bool ok = npz_writer_array(w, "forecast", NPY_F32, Q > 1 ? 3 : 2, Q > 1 ? deep : flat, a->answer, e);
    if (ok && Q > 1) ok = npz_writer_array(w, "quantiles", NPY_F32, 1, &Q, q->level, e);
    if (ok && !a->future) ok = write_rows(w, a, "target", NPY_F32, 2, flat, d->target, sizeof *d->target, e);
    return ok;
}

static bool write_npz(const answers *a, const char *path, err *e) {
    const dataset *d = a->data;
    int64_t n = a->samples.count;
    npz_writer w;
    bool ok = npz_writer_open(&w, path, e);
    ok = ok && (a->t->task.job.forecasts ? write_forecasts(&w, a, e) : write_classes(&w, a, e));
    if (ok && !a->future) ok = npz_writer_array(&w, "sample", NPY_I64, 1, &n, a->sample, e);
    if (ok && d->time) ok = write_rows(&w, a, "time", NPY_I64, 1, &n, d->time, sizeof *d->time, e);
    if (ok && d->panel) ok = npz_writer_text(&w, "series", a->name, n, e);
    ok = ok && npz_writer_commit(&w, e);
    npz_writer_abandon(&w);
    return ok;
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

static void print_head(const answers *a, FILE *f) {
    const dataset *d = a->data;
    fprintf(f, "%s%s%s", a->future ? "" : "sample", d->time ? ",time" : "",
        !d->panel   ? ""
        : a->future ? "series"
                    : ",series");
    if (a->t->task.job.forecasts) {
        print_forecast_head(a, f);
        return;
    }
    fprintf(f, "%s,prediction", d->label ? ",label" : "");
    for (int k = 0; k < d->classes; k++) {
        if (d->class_names)
            fprintf(f, ",p_%s", d->class_names[k]);
        else
            fprintf(f, ",p_%d", k);
    }
    fputc('\n', f);
}

// Quoted where it must be.
static void print_name(const char *name, FILE *f) {
    if (!name[strcspn(name, ",\" ")]) {
        fputs(name, f);
        return;
    }
    fputc('"', f);
    for (; *name; name++) fprintf(f, *name == '"' ? "\"%c" : "%c", *name);
    fputc('"', f);
}

static void print_row(const answers *a, int64_t i, FILE *f) {
    const dataset *d = a->data;
    int64_t sample = a->sample[i], H = d->target_width;
    char when[32];
    if (!a->future) fprintf(f, "%lld", (long long)sample);
    if (d->time) fprintf(f, ",%s", when_text(when, sizeof when, d->time[sample]));
    if (d->panel && !a->future) fputc(',', f);
    if (d->panel) print_name(a->name[i], f);
    if (a->choice) {
        if (d->label) fprintf(f, ",%d", (int)d->label[sample]);
        fprintf(f, ",%d", (int)a->choice[i]);
    } else if (!a->future) {
        for (int64_t h = 0; h < H; h++) fprintf(f, ",%.9g", (double)d->target[sample * H + h]);
    }
    for (int64_t k = 0; k < a->width; k++) fprintf(f, ",%.9g", (double)a->answer[i * a->width + k]);
    fputc('\n', f);
}

// Some rows at a time: they are text in memory before they are in the file.
static bool write_csv(const answers *a, const char *path, err *e) {
    enum { ROWS = 4096 };
    file_writer w;
    bool ok = file_writer_open(&w, path, e);
    for (int64_t i = 0; ok && i < a->samples.count; i += ROWS) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);
        if (f && i == 0) print_head(a, f);
        for (int64_t k = i; f && k < i + ROWS && k < a->samples.count; k++) print_row(a, k, f);
        ok = (f && fclose(f) == 0) || err_run(e, "%s: out of memory", path);
        ok = ok && file_writer_write(&w, text, bytes, e);
        free(text);
    }
    ok = ok && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}

static void tell(const cli_options *o, const answers *a, const char *path) {
    const trained *t = a->t;
    bool forecasts = t->task.job.forecasts;
    char n[32];
    int64_t each = forecasts ? a->data->target_width : a->width;
    term_count(n, sizeof n, (double)t->samples.count);
    if (o->json)
        json_line(stdout,
            json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:s}", "weights", t->weights, "members",
                t->members ? t->members : 1, "data", a->data->name, "part", t->part, "samples",
                (json_int_t)t->samples.count, forecasts ? "horizon" : "classes", (json_int_t)each, "file", path));
    else if (!o->quiet)
        printf("%s: %s of %lld %s for %s samples (%s, %s) by %s\n", path, forecasts ? "forecasts" : "probabilities",
            (long long)each, forecasts ? "values" : "classes", n, a->data->name, t->part, t->weights);
}

// The file to write may be none of the run's data and weights, nor anything that predict did not write.
static bool has_place(const trained *t, const char *path, err *e) {
    const char *list[TASK_INPUTS_MOST + 1] = {t->weights};
    int n = task_inputs(t->task.config, list + 1);
    return output_may_replace(path, OUTPUT_ANSWERS, list, n + 1, e);
}

static bool run(const cli_options *o, err *e) {
    const char *path = cli_given(o, "-o");
    trained t;
    if (!path) return err_input(e, "no file to write given; name one with -o FILE.npz or -o FILE.csv");
    bool npz = ends_with(path, ".npz");
    if (!npz && !ends_with(path, ".csv")) return err_input(e, "-o %s: must end in .npz or .csv", path);
    if (!use_open(&t, o, e)) return false;
    answers a = {.t = &t, .data = t.task.data, .samples = t.samples, .future = strcmp(t.part, "future") == 0};
    a.width = inference_width(&t.task.job);
    bool ok = has_place(&t, path, e) && take_memory(&a, e) && (a.answer = task_predict(&t, e));
    if (ok && a.choice) choose(&a);
    if (ok) name_samples(&a);
    ok = ok && (npz ? write_npz(&a, path, e) : write_csv(&a, path, e));
    if (ok) tell(o, &a, path);
    free(a.answer);
    free(a.choice);
    free(a.sample);
    free(a.name);
    trained_close(&t);
    return ok;
}

const cli_command cli_predict = {"predict", "RUN -o FILE",
    "probabilities or forecasts of a trained run, sample by sample",
    "RUN is a run's directory, whose best weights are taken, or a file of weights or a checkpoint in one; or an\n"
    "ensemble's directory, whose members answer together: probabilities by their mean, forecasts by their median.\n"
    "  -o FILE             where to: .npz or .csv. Of classes: probability, prediction, label; of forecasts: target "
    "and\n"
    "                      forecast [samples, horizon], with quantiles [samples, quantiles, horizon]; and sample,\n"
    "                      time and series where they are known\n"
    "  --data SET          other data than the run's, whole; a run on bar files takes data.bars.STREAM=FILE instead\n"
    "  --part PART         train, validation, test or all (default: the test where there is one, all of other data);\n"
    "                      future: of a panel, from the very ends of its series, one forecast each\n"
    "Inputs are scaled as in training. Further words change the run's description.\n",
    NULL, NULL, WORDS_MOST, run, "-o --data --part", NULL};
