// tradewind report: a run or a walk as one page, with its figures as files.
#include "cli/report.h"

#include "base/term.h"
#include "cli/cli.h"
#include "task/output.h"
#include "watch/report.h"

#include <stdio.h>
#include <string.h>

static bool may_replace(const char *path, err *e) {
    return output_may_replace(path, OUTPUT_REPORT, NULL, 0, e);
}

json_t *report_write(const char *dir, const char *page, err *e) {
    return report_make(&(report_options){.dir = dir, .page = page, .may_replace = may_replace}, e);
}

static int64_t count_of(const json_t *from, const char *key) {
    return (int64_t)json_integer_value(json_object_get(from, key));
}

// A text from a file in one line, until the next call but three.
static const char *clean(const char *text) {
    enum { LINES = 4, ROOM = 1200 };
    static char line[LINES][ROOM];
    static int next;
    char *to = line[next++ % LINES];
    snprintf(to, ROOM, "%s", text ? text : "");
    term_one_line(to);
    return to;
}

static const char *text_of(const json_t *from, const char *key) {
    return clean(json_string_value(json_object_get(from, key)));
}

// "mcc 0.1234, accuracy 0.5".
static void print_metrics(json_t *metrics) {
    const char *key;
    json_t *value;
    int n = 0;
    json_object_foreach(metrics, key, value) if (json_is_number(value))
        printf("%s%s %.4g", n++ ? ", " : "", clean(key), json_number_value(value));
    putchar('\n');
}

static void print_run(const json_t *s) {
    printf("run       %s: %s", text_of(s, "run"), text_of(s, "status"));
    const char *device = text_of(s, "device");
    printf(", %s%s%s", text_of(s, "model"), *device ? " on " : "", device);
    if (json_object_get(s, "epochs"))
        printf(", %lld %s%s", (long long)count_of(s, "epochs"), json_object_get(s, "agent") ? "iteration" : "epoch",
            term_s(count_of(s, "epochs")));
    putchar('\n');
    // An ensemble has none of its own, nor has an agent that was not evaluated.
    if (json_is_number(json_object_get(s, "mean_reward")))
        printf("best      iteration %lld in %s, mean reward %.4g\n", (long long)count_of(s, "best_epoch"),
            text_of(s, "agent"), json_number_value(json_object_get(s, "mean_reward")));
    if (!json_object_get(s, "validation")) return;
    printf("best      epoch %lld, validation ", (long long)count_of(s, "best_epoch"));
    print_metrics(json_object_get(s, "validation"));
}

static void print_parts(json_t *parts) {
    const char *name;
    json_t *part;
    char n[32];
    json_object_foreach(parts, name, part) {
        const char *from = text_of(part, "from");
        term_count(n, sizeof n, json_number_value(json_object_get(part, "samples")));
        printf("%-9.40s %s samples", clean(name), n);
        if (*from) printf(", %s to %s", from, text_of(part, "to"));
        printf(": ");
        print_metrics(json_object_get(part, "metrics"));
    }
}

static void print_backtest(json_t *statistics) {
    const char *key;
    json_t *each;
    int n = 0;
    json_object_foreach(statistics, key, each) {
        json_t *value = json_object_get(each, "value");
        const char *unit = text_of(each, "unit");
        if (!json_is_number(value)) continue;
        printf("%-9s %s %.6g%s%s\n", n++ ? "" : "backtest", text_of(each, "label"), json_number_value(value),
            *unit ? " " : "", unit);
    }
}

static void print_walk(const json_t *s, const json_t *walk) {
    const char *model = text_of(s, "model");
    if (json_object_get(walk, "incomplete")) {
        printf("walk      %s%s%s, incomplete\n", model, *model ? ", " : "", text_of(walk, "scheme"));
        return;
    }
    printf("walk      %s%s%s, %lld of %lld folds done: ", model, *model ? ", " : "", text_of(walk, "scheme"),
        (long long)count_of(walk, "done"), (long long)count_of(walk, "folds"));
    print_metrics(json_object_get(walk, "metrics"));
}

static void print_missing(const json_t *missing) {
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const json_t *one = json_array_get(missing, i), *titles = json_object_get(one, "figures");
        const char *command = text_of(one, "command");
        printf("missing   ");
        for (size_t k = 0; k < json_array_size(titles); k++)
            printf("%s%s", k ? "; " : "", json_string_value(json_array_get(titles, k)));
        printf(*command ? ": `%s`\n" : ": %s\n", *command ? command : text_of(one, "why"));
    }
}

static void print_text(const json_t *s) {
    json_t *notes = json_object_get(s, "notes");
    if (strcmp(text_of(s, "kind"), "run") == 0) print_run(s);
    print_parts(json_object_get(s, "evaluation"));
    if (json_object_get(s, "walk")) print_walk(s, json_object_get(s, "walk"));
    print_backtest(json_object_get(s, "backtest"));
    for (size_t i = 0; i < json_array_size(notes); i++)
        printf("note      %s\n", clean(json_string_value(json_array_get(notes, i))));
    print_missing(json_object_get(s, "missing"));
}

static bool run(const cli_options *o, err *e) {
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    json_t *summary = report_write(o->word[0], cli_given(o, "-o"), e);
    if (!summary) return false;
    if (o->json) return json_line(stdout, summary) || err_run(e, "the summary cannot be written");
    size_t figures = json_array_size(json_object_get(summary, "figures"));
    if (!o->quiet) print_text(summary);
    printf("report    %s, %zu figure%s in %s\n", text_of(summary, "report"), figures, term_s((int64_t)figures),
        text_of(summary, "directory"));
    json_decref(summary);
    return true;
}

const cli_command cli_report = {"report", "RUN|WALK [-o FILE.html]", "one page of a run, with figures",
    "RUN is a run's or an ensemble's directory, WALK a walk's. The page needs no network and no script: learning "
    "curves,\n"
    "confusion matrix, calibration, importance of columns, equity and drawdown, months, trades, folds, memory and\n"
    "utilisation, assumptions and the description, as far as they are stored. What is missing is told, with the "
    "command\n"
    "that makes it: evaluate, evaluate --importance, backtest.\n"
    "  -o FILE.html        where to (default: RUN/report.html); figures go to the folder FILE as .svg\n"
    "The summary is printed; -q prints the last line alone. Nothing but an earlier report is replaced.\n",
    NULL, NULL, 1, run, "-o", NULL};
