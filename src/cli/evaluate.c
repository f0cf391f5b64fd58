// tradewind evaluate: a trained run's metrics on a part of its data, on other data, or on values that came later.
#include "base/json.h"
#include "base/term.h"
#include "cli/agent_commands.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/skill.h"
#include "cli/use.h"
#include "data/panel.h"
#include "task/agent_use.h"
#include "task/importance.h"
#include "task/skill_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Importance of columns

static void tell_column(void *arg, int columns, int of) {
    progress *p = arg;
    progress_at(p, columns, "of %d columns", of);
}

// Measures it where it was asked for; NULL in `*all` otherwise.
static bool measure_importance(trained *t, const cli_options *o, json_t **all, err *e) {
    *all = NULL;
    if (!cli_given(o, "--importance")) return true;
    progress p;
    const dataset *d = t->task.data;
    int64_t columns = d->vector.width;
    for (int i = 0; i < d->streams; i++) columns += d->stream[i].series.width;
    progress_init(&p, stderr, "importance", (double)columns, o->quiet || o->json);
    *all = task_importance(t, &(importance_listener){tell_column, &p}, e);
    progress_done(&p);
    return *all != NULL;
}

static int by_drop(const void *a, const void *b) {
    double x = json_number_value(json_object_get(*(json_t *const *)a, "drop"));
    double y = json_number_value(json_object_get(*(json_t *const *)b, "drop"));
    return (x < y) - (x > y);
}

static void print_importance(const json_t *all) {
    enum { SHOWN = 10 };
    size_t n = json_array_size(all);
    if (!n) return;
    json_t **row = malloc(n * sizeof *row);
    NEED(row, "out of memory for %zu columns", n);
    for (size_t i = 0; i < n; i++) row[i] = json_array_get(all, i);
    qsort(row, n, sizeof *row, by_drop);
    printf("\n%-30s %12s  (loss of %s with the column's rows in random order)\n", "column", "importance",
        json_string_value(json_object_get(row[0], "metric")));
    for (size_t i = 0; i < n && i < SHOWN; i++)
        printf("%-9.9s %-20.60s %+12.4f\n", json_string_value(json_object_get(row[i], "stream")),
            json_string_value(json_object_get(row[i], "column")), json_number_value(json_object_get(row[i], "drop")));
    if (n > SHOWN) printf("%zu more columns matter less\n", n - SHOWN);
    free(row);
}

// Adds what an evaluation left behind to its object.
static void add_kept(json_t *to, const evaluation *v, const kept *k) {
    if (v->importance) json_object_set(to, "importance", v->importance);
    if (k->files) json_object_set_new(to, "stored", keep_json(k));
}

// Classes

// Recall: share of a true class that was found. Precision: share of a predicted class that was right. 0 / 0 is 0.
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
    char text[CLASS_NAME_ROOM];
    int K = d->classes;
    for (int k = 0; k < K; k++)
        json_array_append_new(all, json_pack("{s:s, s:o, s:o}", "name", dataset_class_name(d, k, text), "precision",
                                       json_number(precision_of(s, K, k)), "recall", json_number(recall(s, K, k))));
    return all;
}

static int member_count(const trained *t) {
    return t->members ? t->members : 1;
}

static void print_json(const trained *t, const evaluation *v, const kept *k) {
    const score *s = v->score;
    json_t *all = json_pack("{s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "weights", t->weights, "members",
        member_count(t), "data", t->task.data->name, "part", t->part, "samples", (json_int_t)s->samples, "loss",
        json_number(s->loss), "accuracy", json_number(s->accuracy), "mcc", json_number(s->mcc), "macro_f1",
        json_number(s->macro_f1), "classes", classes_json(t->task.data, s), "confusion",
        evaluation_confusion(s->confusion, t->task.data->classes));
    use_add_json(&t->notes, all);
    json_join(all, skill_json(&v->skill));
    add_kept(all, v, k);
    json_line(stdout, all);
}

static void print_matrix(const dataset *d, const score *s) {
    int K = d->classes;
    char text[CLASS_NAME_ROOM];
    printf("\n%-12s", "true");
    for (int k = 0; k < K; k++) printf(" %10.10s", dataset_class_name(d, k, text));
    printf("     recall\n");
    for (int i = 0; i < K; i++) {
        printf("%-12.12s", dataset_class_name(d, i, text));
        for (int k = 0; k < K; k++) printf(" %10lld", (long long)s->confusion[i * K + k]);
        printf(" %10.3f\n", recall(s, K, i));
    }
    printf("%-12s", "precision");
    for (int k = 0; k < K; k++) printf(" %10.3f", precision_of(s, K, k));
    printf("\n");
}

static void print_head(const trained *t) {
    char n[32];
    term_count(n, sizeof n, (double)t->samples.count);
    printf("weights   %s", t->weights);
    if (t->members) printf(", %d members", t->members);
    printf("\ndata      %s, %s: %s samples%s\n", t->task.data->name, t->part, n, use_part_note(t));
    use_warn(&t->notes, t->samples.count, stdout);
}

// The loss that was minimised, where it is not the log loss, which is told beside the trivial answers.
static void print_loss(const trained *t, double loss) {
    const settings *s = &t->task.settings;
    loss_kind k = loss_for(&s->loss, true);
    if (t->members || (k == LOSS_cross_entropy && !s->class_weights && s->loss.smoothing == 0)) return;
    printf("loss      %.4f (of training: %s", loss, loss_name(k));
    if (s->class_weights) printf(", weighted by class");
    if (s->loss.smoothing > 0) printf(", labels smoothed by %g", (double)s->loss.smoothing);
    printf(")\n");
}

// Class weights make rare classes likelier than they are.
static void explain_weights(const trained *t, const skill_table *skill) {
    bool better = false, worse = false;
    for (int k = 0; k < skill->rows; k++) {
        skill_verdict v = skill_judge(&skill->group[0].row[k]);
        better |= v == SKILL_BETTER && skill->group[0].row[k].metric == SKILL_MCC;
        worse |= v == SKILL_WORSE;
    }
    if (better && worse && t->task.settings.class_weights)
        printf(
            "note      train.class_weights makes rare classes likelier than they are: judge by MCC (doc/scores.md)\n");
}

static void print_text(const trained *t, const score *s, const skill_table *skill, bool quiet) {
    print_head(t);
    print_loss(t, s->loss);
    printf("accuracy  %.4f\nMCC       %.4f\nmacro F1  %.4f\n", s->accuracy, s->mcc, s->macro_f1);
    if (quiet) return;
    skill_print(skill, t->task.data, stdout);
    explain_weights(t, skill);
    print_matrix(t->task.data, s);
}

// Forecasts

static json_t *forecast_json(const series_score *s) {
    double naive2[2];
    series_naive2(s, naive2);
    bool compared = !isnan(series_owa(s));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mae", json_number(series_mae(s)), "rmse",
        json_number(series_rmse(s)), "smape", json_number(series_smape(s)), "mase", json_number(series_mase(s)), "owa",
        json_number(series_owa(s)), "naive2_smape", json_number(compared ? naive2[0] : NAN), "naive2_mase",
        json_number(naive2[1]));
}

// `all` is taken over and gets the figures.
static void tell_forecasts_json(json_t *all, const series_score *s, const skill_table *skill) {
    json_join(all, forecast_json(s));
    json_join(all, skill_json(skill));
    json_line(stdout, all);
}

static void print_forecasts(const series_score *s) {
    double naive2[2];
    series_naive2(s, naive2);
    printf("MAE       %.6g\nRMSE      %.6g\nsMAPE     %.3f\n", series_mae(s), series_rmse(s), series_smape(s));
    if (!isnan(series_mase(s))) printf("MASE      %.3f\n", series_mase(s));
    if (isnan(series_owa(s))) return;
    printf("OWA       %.3f (naive2 has sMAPE %.3f, MASE %.3f)\n", series_owa(s), naive2[0], naive2[1]);
}

static void tell_forecasts(const trained *t, const evaluation *v, const kept *k, const cli_options *o) {
    const series_score *of = v->series;
    double loss = v->loss;
    const skill_table *skill = &v->skill;
    if (o->json) {
        json_t *line = json_pack("{s:s, s:i, s:s, s:s, s:I, s:o}", "weights", t->weights, "members", member_count(t),
            "data", t->task.data->name, "part", t->part, "samples", (json_int_t)t->samples.count, "loss",
            json_number(loss));
        use_add_json(&t->notes, line);
        add_kept(line, v, k);
        tell_forecasts_json(line, of, skill);
        return;
    }
    print_head(t);
    if (!isnan(loss)) printf("loss      %.6g\n", loss);
    print_forecasts(of);
    if (!o->quiet) skill_print(skill, t->task.data, stdout);
    if (!o->quiet) print_importance(v->importance);
}

// A part of the run's data

static void tell_classes(const trained *t, const evaluation *v, const kept *k, const cli_options *o) {
    if (o->json) {
        print_json(t, v, k);
        return;
    }
    print_text(t, v->score, &v->skill, o->quiet);
    if (!o->quiet) print_importance(v->importance);
}

static bool evaluate_part(trained *t, const cli_options *o, err *e) {
    evaluation v;
    kept k = {0};
    bool ok = evaluation_make(&v, t, e) && measure_importance(t, o, &v.importance, e);
    if (ok) keep_evaluation(&k, o, &v);
    if (ok) (v.score ? tell_classes : tell_forecasts)(t, &v, &k, o);
    keep_tell(&k, o);
    keep_done(&k);
    evaluation_done(&v);
    return ok;
}

// A test: values that came after the ends of the series

static bool evaluate_test(trained *t, const char *path, const cli_options *o, err *e) {
    panel p;
    series_score of = {0};
    skill_table skill = {0};
    if (!panel_read(&p, path, e)) return false;
    float *answer = task_predict(t, e);
    bool ok = answer && task_evaluate_test(t, &p, path, answer, &of, &skill, e);
    if (ok && o->json)
        tell_forecasts_json(json_pack("{s:s, s:i, s:s, s:s, s:I, s:I}", "weights", t->weights, "members",
                                member_count(t), "data", t->task.data->name, "test", path, "series",
                                (json_int_t)p.series, "horizon", (json_int_t)t->task.data->target_width),
            &of, &skill);
    if (ok && !o->json) {
        printf("weights   %s", t->weights);
        if (t->members) printf(", %d members", t->members);
        printf("\ntest      %s: %lld series of %lld values, forecast from the ends of %s\n", path, (long long)p.series,
            (long long)t->task.data->target_width, t->task.data->name);
        print_forecasts(&of);
        if (!o->quiet) skill_print(&skill, t->task.data, stdout);
    }
    skill_done(&skill);
    free(answer);
    panel_done(&p);
    return ok;
}

static bool run(const cli_options *o, err *e) {
    trained t;
    static const char *const unread[] = {"account.", "signal.", "live.", "report.", NULL};
    const char *test = cli_given(o, "--test"), *part = cli_given(o, "--part");
    if (o->words && trained_is_agent(o->word[0])) return agent_evaluate_command(o, e);
    if (!test && part && strcmp(part, "future") == 0)
        return err_input(e, "--part future: has no values to compare with; name them with --test FILE, or use predict");
    if (test && part) return err_input(e, "--part: means nothing to a test; leave it or --test out");
    if (cli_given(o, "--importance") && (test || (part && strcmp(part, "validation") != 0)))
        return err_input(e, "--importance: is measured on validation; leave --part and --test out");
    if (!use_open(&t, o, e)) return false;
    use_tell(&t, o, "evaluate", unread);
    bool ok = test ? evaluate_test(&t, test, o, e) : evaluate_part(&t, o, e);
    trained_close(&t);
    return ok;
}

const cli_command cli_evaluate = {"evaluate", "RUN [key=value...]", "metrics of a trained run",
    "RUN is a run's directory, whose best weights are taken, or a file of weights or a checkpoint in one; or an\n"
    "ensemble's directory, whose members answer together: probabilities by their mean, forecasts by their median.\n"
    "  --data SET          other data than the run's, whole; a run on bar files also takes data.bars.STREAM=FILE\n"
    "  --part PART         train, validation, test or all (default: the test where there is one, all of other data)\n"
    "  --test FILE         of a panel: what came after its series, with the same names (M4-Weekly-test.csv); "
    "forecasts\n"
    "                      are made from the very ends of the series\n"
    "Of classes: accuracy, MCC, macro F1 and the confusion matrix, and the loss of training where that is not the log\n"
    "loss. Of forecasts: loss, MAE, RMSE, sMAPE; of series also MASE and OWA as in the M4 competition, with seasons "
    "of\n"
    "train.season steps: MASE by the naive error over all values that were known, OWA against the naive2 forecasts "
    "from\n"
    "the same values.\n"
    "Beside them stand the scores of trivial answers on the same rows, the skill against the best of them, and 95 %\n"
    "intervals by block bootstrap; by symbol too where there are several. doc/scores.md says what they mean.\n"
    "  --importance        importance of every column, by permutation on validation, which is the part then; it takes "
    "as\n"
    "                      many evaluations as there are columns\n"
    "What the best weights score on a part of the run's own data is kept in RUN/evaluation.json, and the answers in\n"
    "RUN/predictions_PART.npz; report draws them.\n"
    "Of an agent's run: greedy episodes from the evaluation's own beginnings, as in training; "
    "agent.evaluate_episodes=N\n"
    "takes other numbers of them. One that trades passes over the part from its first bar to its last:\n"
    "return, drawdown, exposure and trades are told beside buy-and-hold, and kept as above.\n"
    "Inputs are scaled as in training. Further words change the run's description. -q prints the model's\n"
    "own scores alone.\n",
    NULL, NULL, WORDS_MOST, run, "--data --part --test", "--importance"};
