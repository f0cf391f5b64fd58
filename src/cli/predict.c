// tradewind predict: a trained run's probabilities, sample by sample, as .npz or .csv.
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/trained.h"
#include "data/npz.h"
#include "data/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const dataset *data;
    span samples;
    float *probability; // [count, classes]
    int32_t *answer;    // [count] the likeliest class
    int64_t *sample;    // [count]
} answers;

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static bool take_memory(answers *a, err *e) {
    size_t n = (size_t)a->samples.count;
    a->probability = malloc(n * (size_t)a->data->classes * sizeof *a->probability);
    a->answer = malloc(n * sizeof *a->answer);
    a->sample = malloc(n * sizeof *a->sample);
    return (a->probability && a->answer && a->sample) || err_run(e, "out of memory for %zu samples", n);
}

static void choose(answers *a) {
    int K = a->data->classes;
    for (int64_t i = 0; i < a->samples.count; i++) {
        const float *p = a->probability + i * K;
        a->answer[i] = 0;
        for (int k = 1; k < K; k++)
            if (p[k] > p[a->answer[i]]) a->answer[i] = k;
        a->sample[i] = a->samples.first + i;
    }
}

// Files

static bool write_npz(const answers *a, const char *path, err *e) {
    const dataset *d = a->data;
    int64_t dim[2] = {a->samples.count, d->classes}, first = a->samples.first;
    npz_writer w;
    bool ok = npz_writer_open(&w, path, e) && npz_writer_array(&w, "probability", NPY_F32, 2, dim, a->probability, e) &&
              npz_writer_array(&w, "prediction", NPY_I32, 1, dim, a->answer, e) &&
              npz_writer_array(&w, "sample", NPY_I64, 1, dim, a->sample, e);
    if (ok && d->label) ok = npz_writer_array(&w, "label", NPY_I32, 1, dim, d->label + first, e);
    if (ok && d->time) ok = npz_writer_array(&w, "time", NPY_I64, 1, dim, d->time + first, e);
    if (ok && d->class_names) ok = npz_writer_text(&w, "classes", d->class_names, d->classes, e);
    ok = ok && npz_writer_commit(&w, e);
    npz_writer_abandon(&w);
    return ok;
}

static void print_head(const dataset *d, FILE *f) {
    fprintf(f, "sample%s%s,prediction", d->time ? ",time" : "", d->label ? ",label" : "");
    for (int k = 0; k < d->classes; k++) {
        if (d->class_names)
            fprintf(f, ",p_%s", d->class_names[k]);
        else
            fprintf(f, ",p_%d", k);
    }
    fputc('\n', f);
}

static void print_row(const answers *a, int64_t i, FILE *f) {
    const dataset *d = a->data;
    char when[32];
    fprintf(f, "%lld", (long long)a->sample[i]);
    if (d->time) fprintf(f, ",%s", when_text(when, sizeof when, d->time[a->sample[i]]));
    if (d->label) fprintf(f, ",%d", (int)d->label[a->sample[i]]);
    fprintf(f, ",%d", (int)a->answer[i]);
    for (int k = 0; k < d->classes; k++) fprintf(f, ",%.9g", (double)a->probability[i * d->classes + k]);
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
        if (f && i == 0) print_head(a->data, f);
        for (int64_t k = i; f && k < i + ROWS && k < a->samples.count; k++) print_row(a, k, f);
        ok = (f && fclose(f) == 0) || err_run(e, "%s: out of memory", path);
        ok = ok && file_writer_write(&w, text, bytes, e);
        free(text);
    }
    ok = ok && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}

static void tell(const cli_options *o, const trained *t, const char *path) {
    char n[32];
    term_count(n, sizeof n, (double)t->samples.count);
    if (o->json)
        json_line(
            stdout, json_pack("{s:s, s:s, s:s, s:I, s:i, s:s}", "weights", t->weights, "data", t->s.data->name, "part",
                        t->part, "samples", (json_int_t)t->samples.count, "classes", t->s.data->classes, "file", path));
    else if (!o->quiet)
        printf("%s: probabilities of %d classes for %s samples (%s, %s) by %s\n", path, t->s.data->classes, n,
            t->s.data->name, t->part, t->weights);
}

static bool run(const cli_options *o, err *e) {
    const char *path = cli_given(o, "-o");
    trained t;
    if (!path) return err_input(e, "no file to write given; name one with -o FILE.npz or -o FILE.csv");
    bool npz = ends_with(path, ".npz");
    if (!npz && !ends_with(path, ".csv")) return err_input(e, "-o %s: must end in .npz or .csv", path);
    if (!trained_open(&t, o, true, e)) return false;
    answers a = {.data = t.s.data, .samples = t.samples};
    bool ok = take_memory(&a, e) && trainer_predict(t.trainer, t.samples, a.probability, e);
    if (ok) choose(&a);
    ok = ok && (npz ? write_npz(&a, path, e) : write_csv(&a, path, e));
    if (ok) tell(o, &t, path);
    free(a.probability);
    free(a.answer);
    free(a.sample);
    trained_close(&t);
    return ok;
}

const cli_command cli_predict = {"predict", "RUN -o FILE", "probabilities of a trained run, sample by sample",
    "RUN is a run's directory, whose best weights are taken, or a file of weights or a checkpoint in one.\n"
    "  -o FILE             where to: .npz (probability, prediction, sample, label, time) or .csv\n"
    "  --data SET          other data than the run's, whole; a run on bar files takes data.bars.STREAM=FILE instead\n"
    "  --part PART         train, validation, test or all (default: the test where there is one, all of other data)\n"
    "Inputs are scaled as in training. Further words change the run's description.\n",
    NULL, NULL, WORDS_MOST, run, "-o --data --part", NULL};
