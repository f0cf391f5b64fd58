#include "cli/live_drift.h"

#include "live/drift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A score now and on validation; nothing where there is none now.
static void print_score(const char *name, double now, double then) {
    if (isnan(now)) return;
    printf("  %-22s %10.4f", name, now);
    if (isnan(then))
        printf("  %10s\n", "-");
    else
        printf("  %10.4f\n", then);
}

static void print_apart(const drift *d, const drift_scores *then, const char *run) {
    if (!then->samples)
        printf("  the run has no scores of validation; `tradewind evaluate %s --part validation` makes them\n", run);
    else if (isnan(d->apart))
        printf("  too few answers to compare with validation\n");
    else
        printf("  the loss is %.1f standard errors %s that of validation%s\n", fabs(d->apart),
            d->apart > 0 ? "above" : "below", drift_is_worse(d) ? ": the model has drifted" : "");
}

static void print_drift(const drift *d, const drift_scores *then, const char *run) {
    char from[40], to[40];
    printf("drift     %s%s%lld answers of bars that closed %s to %s UTC, %lld of them judged by what followed\n",
        d->symbol, *d->symbol ? ": " : "", (long long)d->answers, when_text(from, sizeof from, d->from),
        when_text(to, sizeof to, d->to), (long long)d->scores.samples);
    printf("  %-22s %10s  %10s\n", "", "session", "validation");
    print_score("log loss", d->scores.log_loss, then->log_loss);
    print_score("accuracy", d->scores.accuracy, then->accuracy);
    print_score("MCC", d->scores.mcc, then->mcc);
    print_score("calibration error", d->scores.calibration, then->calibration);
    print_score("mean absolute error", d->scores.mae, then->mae);
    for (int k = 0; k < d->classes; k++) {
        static const char *const names[] = {"DOWN", "NEUTRAL", "UP"};
        char name[40];
        if (d->classes == 3)
            snprintf(name, sizeof name, "answers %s", names[k]);
        else
            snprintf(name, sizeof name, "answers of class %d", k);
        print_score(name, d->scores.share[k], then->share[k]);
    }
    printf("  of %lld bars, inputs of %lld were outside what training saw, and a limit changed %lld decisions\n",
        (long long)d->decisions, (long long)d->outside, (long long)d->held);
    print_apart(d, then, run);
}

static json_t *scores_json(const drift_scores *s, int classes) {
    json_t *share = json_array();
    for (int k = 0; k < classes; k++) json_array_append_new(share, json_number(s->share[k]));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "samples", (json_int_t)s->samples, "log_loss",
        json_number(s->log_loss), "accuracy", json_number(s->accuracy), "mcc", json_number(s->mcc), "calibration",
        json_number(s->calibration), "share", share, "mae", json_number(s->mae));
}

static bool put_json(const drift *d, const drift_scores *then) {
    return json_line(
        stdout, json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:I, s:I, s:I}", "symbol", d->symbol, "answers",
                    (json_int_t)d->answers, "from", (json_int_t)d->from, "to", (json_int_t)d->to, "session",
                    scores_json(&d->scores, d->classes), "validation", scores_json(then, d->classes), "apart",
                    json_number(d->apart), "worse", drift_is_worse(d), "bars", (json_int_t)d->decisions, "outside",
                    (json_int_t)d->outside, "held", (json_int_t)d->held));
}

static bool read_last(const cli_options *o, int64_t *last, err *e) {
    const char *given = cli_given(o, "--last");
    char *end;
    *last = 1000;
    if (!given) return true;
    *last = strtoll(given, &end, 10);
    return (end > given && !*end && *last >= 1 && *last <= 10000000) ||
           err_input(e, "--last: %.40s is no number of answers; give 1 to 10,000,000", given);
}

bool live_drift(const cli_options *o, const char *state, err *e) {
    drift_scores then;
    int64_t last;
    if (!read_last(o, &last, e)) return false;
    journal *j = journal_read(state, e);
    if (!j) return false;
    char *run = NULL;
    json_t *symbols =
               !drift_run(j, &run, e) ? NULL : journal_rows(j, "SELECT symbol FROM books ORDER BY symbol", NULL, e),
           *row;
    size_t i;
    bool ok = symbols && (run || err_input(e, "%s: does not say of which run it is", state)) &&
              drift_reference(run, &then, e);
    if (ok && !json_array_size(symbols)) ok = err_input(e, "%s: no bar has been taken yet", state);
    json_array_foreach(symbols, i, row) {
        drift d;
        ok = ok && drift_make(j, json_string_value(json_object_get(row, "symbol")), last, &then, &d, e);
        if (ok && o->json) ok = put_json(&d, &then) || err_run(e, "the output takes no more");
        if (ok && !o->json && i == 0) printf("state     %s\n", state);
        if (ok && !o->json) print_drift(&d, &then, run);
    }
    json_decref(symbols);
    journal_close(j);
    free(run);
    return ok;
}
