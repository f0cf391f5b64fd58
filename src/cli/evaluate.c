// tradewind evaluate: a trained run's metrics on a part of its data, or on other data.
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/trained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *class_name(const dataset *d, int k, char *text, size_t room) {
    snprintf(text, room, "%d", k);
    return d->class_names ? d->class_names[k] : text;
}

// Of a true class, how many were found; of a predicted one, how many were right. 0 / 0 is 0.
static double recall(const score *s, int K, int k) {
    double all = 0;
    for (int i = 0; i < K; i++) all += (double)s->confusion[k * K + i];
    return all > 0 ? (double)s->confusion[k * K + k] / all : 0;
}

static double precision_of(const score *s, int K, int k) {
    double all = 0;
    for (int i = 0; i < K; i++) all += (double)s->confusion[i * K + k];
    return all > 0 ? (double)s->confusion[k * K + k] / all : 0;
}

static json_t *classes_json(const dataset *d, const score *s) {
    json_t *all = json_array();
    char text[16];
    int K = d->classes;
    for (int k = 0; k < K; k++)
        json_array_append_new(
            all, json_pack("{s:s, s:o, s:o}", "name", class_name(d, k, text, sizeof text), "precision",
                     json_number(precision_of(s, K, k)), "recall", json_number(recall(s, K, k))));
    return all;
}

static json_t *matrix_json(const score *s, int K) {
    json_t *all = json_array();
    for (int i = 0; i < K; i++) {
        json_t *row = json_array();
        for (int k = 0; k < K; k++) json_array_append_new(row, json_integer((json_int_t)s->confusion[i * K + k]));
        json_array_append_new(all, row);
    }
    return all;
}

static void print_json(const trained *t, const score *s) {
    json_line(stdout,
        json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "weights", t->weights, "data", t->s.data->name,
            "part", t->part, "samples", (json_int_t)s->samples, "loss", json_number(s->loss), "accuracy",
            json_number(s->accuracy), "mcc", json_number(s->mcc), "macro_f1", json_number(s->macro_f1), "classes",
            classes_json(t->s.data, s), "confusion", matrix_json(s, t->s.data->classes)));
}

static void print_matrix(const dataset *d, const score *s) {
    int K = d->classes;
    char text[16];
    printf("\n%-12s", "true");
    for (int k = 0; k < K; k++) printf(" %10.10s", class_name(d, k, text, sizeof text));
    printf("     recall\n");
    for (int i = 0; i < K; i++) {
        printf("%-12.12s", class_name(d, i, text, sizeof text));
        for (int k = 0; k < K; k++) printf(" %10lld", (long long)s->confusion[i * K + k]);
        printf(" %10.3f\n", recall(s, K, i));
    }
    printf("%-12s", "precision");
    for (int k = 0; k < K; k++) printf(" %10.3f", precision_of(s, K, k));
    printf("\n");
}

static void print_text(const trained *t, const score *s) {
    char n[32];
    term_count(n, sizeof n, (double)s->samples);
    printf("weights   %s\n", t->weights);
    printf("data      %s, %s: %s samples\n", t->s.data->name, t->part, n);
    printf(
        "loss      %.4f\naccuracy  %.4f\nMCC       %.4f\nmacro F1  %.4f\n", s->loss, s->accuracy, s->mcc, s->macro_f1);
    print_matrix(t->s.data, s);
}

static bool run(const cli_options *o, err *e) {
    trained t;
    if (!trained_open(&t, o, false, e)) return false;
    score *s = calloc(1, sizeof *s);
    bool ok = s ? trainer_evaluate(t.trainer, t.samples, s, e) : err_run(e, "out of memory for a score");
    if (ok && o->json)
        print_json(&t, s);
    else if (ok)
        print_text(&t, s);
    free(s);
    trained_close(&t);
    return ok;
}

const cli_command cli_evaluate = {"evaluate", "RUN [key=value...]",
    "metrics of a trained run, and its confusion matrix",
    "RUN is a run's directory, whose best weights are taken, or a file of weights or a checkpoint in one.\n"
    "  --data SET          other data than the run's, whole; a run on bar files takes data.bars.STREAM=FILE instead\n"
    "  --part PART         train, validation, test or all (default: the test where there is one, all of other data)\n"
    "Inputs are scaled as in training. Further words change the run's description.\n",
    NULL, NULL, WORDS_MOST, run, "--data --part", NULL};
