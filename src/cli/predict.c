// tradewind predict: a trained run's probabilities or forecasts, bar by bar, as .npz, .csv or on the screen.
#include "base/json.h"
#include "base/term.h"
#include "cli/age.h"
#include "cli/agent_commands.h"
#include "cli/answers.h"
#include "cli/cli.h"
#include "cli/use.h"
#include "task/agent_use.h"
#include "task/output.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

// Lines where the newest bars are old.
static void tell_age(const answers *a, FILE *out) {
    if (a->latest && a->bar && a->samples.count) age_tell(a->data, out);
}

static void tell_json(const answers *a, int64_t newer, const char *path) {
    const trained *t = a->t;
    bool forecasts = t->task.job.forecasts;
    json_t *all = json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:s}", "weights", t->weights, "members",
        t->members ? t->members : 1, "data", a->data->name, "part", t->part, "samples", (json_int_t)t->samples.count,
        forecasts ? "horizon" : "classes", (json_int_t)(forecasts ? a->data->target_width : a->width), "file", path);
    if (newer) json_object_set_new(all, "unlabelled", json_integer((json_int_t)newer));
    if (a->latest && a->bar && a->samples.count)
        json_object_set_new(all, "newest_age_s", json_integer((json_int_t)time(NULL) - age_newest(a->data)));
    json_t *late = answers_late(a, -1);
    if (late) json_object_set_new(all, "stale", late);
    use_add_json(&t->notes, all);
    json_line(stdout, all);
}

// Bars behind the samples whose labels are not known yet: the last part ends before them.
static int64_t newer_bars(const trained *t) {
    bool last = strcmp(t->part, "test") == 0 || strcmp(t->part, "all") == 0;
    return last && t->task.data->stream[0].bars.count ? t->task.data->unlabelled : 0;
}

static void tell(const cli_options *o, const answers *a, const char *path) {
    const trained *t = a->t;
    bool forecasts = t->task.job.forecasts;
    char n[32];
    int64_t each = forecasts ? a->data->target_width : a->width, newer = newer_bars(t);
    if (o->json) tell_json(a, newer, path);
    if (o->json || o->quiet) return;
    term_count(n, sizeof n, (double)t->samples.count);
    printf("%s: %s of %lld %s for %s samples (%s, %s) by %s%s\n", path, forecasts ? "forecasts" : "probabilities",
        (long long)each, forecasts ? "values" : "classes", n, a->data->name, t->part, t->weights, use_part_note(t));
    use_warn(&t->notes, t->samples.count, stdout);
    tell_age(a, stdout);
    term_count(n, sizeof n, (double)newer);
    if (newer)
        printf("note      %s newer bar%s no label; --latest answers for %s\n", n, newer == 1 ? " has" : "s have",
            newer == 1 ? "it" : "them");
}

// Coarser streams that are out of date: the signal is not what it seems, so this is told with -q too.
static void warn_late(const cli_options *o, const answers *a) {
    json_t *late = answers_late(a, -1), *text;
    size_t i;
    json_array_foreach(late, i, text) fprintf(
        o->quiet ? stderr : stdout, "%s%s\n", o->quiet ? "tradewind: stale: " : "warning   ", json_string_value(text));
    json_decref(late);
}

// The file to write may be none of the run's data and weights, nor anything that predict did not write.
static bool has_place(const trained *t, const char *path, err *e) {
    const char *list[TASK_INPUTS_MOST + 1] = {t->weights};
    int n = task_inputs(t->task.config, list + 1);
    return output_may_replace(path, OUTPUT_ANSWERS, list, n + 1, e);
}

static bool check_path(const char *path, bool latest, err *e) {
    if (!path) return latest || err_input(e, "no file to write given; name one with -o FILE.npz or -o FILE.csv");
    if (ends_with(path, ".npz") || ends_with(path, ".csv")) return true;
    return err_input(e, "-o %s: must end in .npz or .csv", path);
}

static bool run(const cli_options *o, err *e) {
    static const char *const unread[] = {"account.", "live.", "report.", NULL};
    const char *path = cli_given(o, "-o");
    bool latest = cli_given(o, "--latest") != NULL;
    trained t;
    answers a = {0};
    if (!check_path(path, latest, e)) return false;
    if (o->words && trained_is_agent(o->word[0])) return agent_predict_command(o, path, e);
    if (!use_open(&t, o, e)) return false;
    use_tell(&t, o, "predict", unread);
    bool ok = (!path || has_place(&t, path, e)) && answers_make(&a, &t, e);
    if (ok && path) ok = ends_with(path, ".npz") ? answers_write_npz(&a, path, e) : answers_write_csv(&a, path, e);
    if (ok && !path && !o->quiet) {
        FILE *out = o->json ? stderr : stdout;
        use_warn(&t.notes, t.samples.count, out);
        tell_age(&a, out);
    }
    if (ok && !o->json) warn_late(o, &a);
    if (ok && !path) answers_print(&a, o->json);
    if (ok && path) tell(o, &a, path);
    answers_done(&a);
    trained_close(&t);
    return ok;
}

const cli_command cli_predict = {"predict", "RUN [--latest N] [-o FILE]",
    "probabilities or forecasts of a trained run, bar by bar",
    "RUN is a run's directory, whose best weights are taken, or a file of weights or a checkpoint in one; or an\n"
    "ensemble's directory, whose members answer together: probabilities by their mean, forecasts by their median.\n"
    "  --latest N          the newest N bars of each instrument, labelled or not: on the screen, or into -o FILE; "
    "told\n"
    "                      where the newest bars are old, beside --json on stderr\n"
    "  -o FILE             where to: .npz or .csv. Of classes: probability, prediction, label; of forecasts: target "
    "and\n"
    "                      forecast [samples, horizon], with quantiles [samples, quantiles, horizon]. Of bars also\n"
    "                      open_time and close_time, when the bar opened and closed, and close, its price: the answer\n"
    "                      is known at close_time, from nothing later. All times are UTC. A label that is not known\n"
    "                      yet is empty, in .npz -1 (targets: NaN). Also sample, time, symbol or series where known,\n"
    "                      and signal, the side that the run's rule asks for (-1, 0, 1), where signal.threshold is a "
    "number\n"
    "                      or `backtest` has kept a rule in the run\n"
    "  --data SET          other data than the run's, whole; a run on bar files also takes data.bars.STREAM=FILE\n"
    "  --part PART         train, validation, test or all (default: the test where there is one, all of other data);\n"
    "                      future: of a panel, from the very ends of its series, one forecast each\n"
    "Of an agent that trades: its actions at every bar of a greedy pass from the part's first bar on, with the books\n"
    "that it sees: action with p_short, p_flat and p_long, or direction and size; signal, the side asked for; "
    "position\n"
    "(lots held at the close) and equity. --latest N: at the end of the pass that leads up to the newest bar, from "
    "the\n"
    "first bar behind the time that it was trained on.\n"
    "Inputs are scaled as in training. Further words change the run's description.\n",
    NULL, NULL, WORDS_MOST, run, "-o --latest --data --part", NULL};
