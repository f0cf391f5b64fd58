#include "cli/models.h"

#include "base/term.h"
#include "run/command.h"
#include "run/results.h"
#include "task/lines.h"
#include "train/metric.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// Words

static bool is_description(const char *word) {
    const char *dot = strrchr(word, '.');
    if (strchr(word, '=')) return false;
    return (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) || access(word, F_OK) == 0;
}

int models_named(const cli_options *o, const char *file[WORDS_MOST], cli_options *rest) {
    int files = 0;
    *rest = *o;
    rest->words = 0;
    for (int i = 0; i < o->words; i++) {
        bool is = i == 0 || is_description(o->word[i]);
        if (is) file[files++] = o->word[i];
        if (!is || i == 0) rest->word[rest->words++] = o->word[i];
    }
    return files;
}

char *models_resume(const cli_options *o) {
    char options[64] = "--resume";
    if (o->seed) snprintf(options, sizeof options, "--resume --seed %.40s", o->seed);
    return command_words("train", o->word, o->words, options);
}

// The table

static const char *text_of(json_t *from, const char *key) {
    const char *text = json_string_value(json_object_get(from, key));
    return text ? text : "";
}

// "MCC 0.1234", or "-".
static const char *score_text(json_t *from, const char *key, char *text, size_t room) {
    const metric *m = metric_find(text_of(from, "metric"));
    double value = results_number(json_object_get(from, key));
    char figure[32];
    if (m && !isnan(value))
        snprintf(text, room, "%s %s", m->title, lines_value(value, figure, sizeof figure));
    else
        snprintf(text, room, "-");
    return text;
}

static void print_done(json_t *row, FILE *out) {
    char validation[48], score[48], trivial[48], epoch[32] = "-", rate[32];
    json_t *test = json_object_get(row, "test"), *best = json_object_get(row, "best_epoch");
    if (best) snprintf(epoch, sizeof epoch, "%lld", (long long)json_integer_value(best));
    term_count(rate, sizeof rate, results_number(json_object_get(row, "samples_per_s")));
    fprintf(out, "  %5s  %-16s  %-16s  %-16s  %12s\n", epoch,
        score_text(row, "validation", validation, sizeof validation), score_text(test, "score", score, sizeof score),
        score_text(test, "trivial_score", trivial, sizeof trivial), rate);
}

static void print_row(json_t *row, int wide, FILE *out) {
    char n[32], why[300];
    term_count(n, sizeof n, (double)json_integer_value(json_object_get(row, "parameters")));
    fprintf(out, "%-*s  %-11s  %12s", wide, text_of(row, "directory"), text_of(row, "model"), n);
    if (strcmp(text_of(row, "status"), "done") == 0) {
        print_done(row, out);
        return;
    }
    snprintf(why, sizeof why, "%s", text_of(row, "reason"));
    term_one_line(why);
    fprintf(out, "  %s%s%s\n", text_of(row, "status"), *why ? ": " : "", why);
}

// Part that models are tested on: validation where there is no test.
static const char *tested_part(json_t *rows) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *test = json_object_get(json_array_get(rows, i), "test");
        if (test) return text_of(test, "part");
    }
    return "test";
}

void models_print(json_t *table, FILE *out) {
    json_t *rows = json_object_get(table, "models"), *row;
    const char *part = tested_part(rows);
    int wide = 3;
    size_t i;
    json_array_foreach(rows, i, row) {
        int n = (int)strlen(text_of(row, "directory"));
        wide = n > wide ? n : wide;
    }
    fprintf(out, "\n%-*s  %-11s  %12s  %5s  %-16s  %-16s  %-16s  %12s\n", wide, "run", "model", "parameters", "epoch",
        "validation", part, "trivial answer", "samples/s");
    json_array_foreach(rows, i, row) print_row(row, wide, out);
    if (strcmp(part, "test") != 0) fprintf(out, "note      there is no test part; validation chose the best epoch\n");
    if (json_is_false(json_object_get(table, "same_test")))
        fprintf(
            out, "note      test parts differ, as data.split, walk.fold or windows do: scores are of other samples\n");
}
