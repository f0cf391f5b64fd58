#include "task/trained.h"

#include "run/run.h"
#include "run/weights.h"
#include "task/ensemble.h"
#include "task/members.h"
#include "task/scale.h"
#include "task/trained_members.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *trained_dir(const char *word) {
    const char *slash = strrchr(word, '/');
    char *dir = is_directory(word) ? strdup(word) : slash ? strndup(word, (size_t)(slash - word)) : strdup(".");
    NEED(dir, "out of memory for a path");
    return dir;
}

static void note_newest(void *arg, const char *dir) {
    char **last = arg;
    if (*last && strverscmp(dir, *last) < 0) return;
    free(*last);
    NEED(*last = strdup(dir), "out of memory for a path");
}

// A walk's weights are its folds'; the newest is named.
static bool fail_without_weights(const char *word, err *e) {
    char *fold = NULL;
    bool listed = run_each_fold(word, note_newest, &fold, e);
    if (listed && fold)
        err_input(e, "%s: is a walk's directory, and its weights are its folds'; name one, such as %s", word, fold);
    else if (listed)
        err_input(e, "%s: holds no trained weights (best.safetensors)", word);
    free(fold);
    return false;
}

bool trained_find(const char *word, char **dir, char **weights, err *e) {
    *dir = trained_dir(word);
    *weights = is_directory(word) ? run_path(word, "best.safetensors") : strdup(word);
    NEED(*weights, "out of memory for a path");
    struct stat st;
    if (stat(word, &st) != 0)
        return err_input(e, "%s: cannot be read: %s; name a run's directory", word, strerror(errno));
    if (stat(*weights, &st) != 0) return fail_without_weights(word, e);
    if (run_is(*dir)) return true;
    if (is_directory(word)) return err_input(e, "%s: is no run's directory; it has no config.yaml", word);
    return err_input(e, "%s: is not in a run's directory, which has a config.yaml; name a run's directory", word);
}

static const char *part_asked(const trained_options *o) {
    return o->part ? o->part : o->data ? "all" : NULL;
}

static bool is_asked(const trained_options *o, const char *part) {
    const char *asked = part_asked(o);
    return asked && strcmp(asked, part) == 0;
}

// The description of the run with everything that changes it. A whole set is not split.
static bool open_task(
    trained *t, const trained_options *o, const char *dir, const safetensors *weights, const char *path, err *e) {
    t->description = run_path(dir, "config.yaml");
    task_options as = {
        .description = {.file = t->description, .overrides = o->overrides, .override_count = o->override_count},
        .devices = o->devices,
        .version = o->version,
        .listener = o->listener,
        .trained = true,
        .saved = weights,
        .saved_path = path,
        .latest = o->latest,
        .data = o->dataset,
        .parts = o->parts,
        .whole = is_asked(o, "all"),
        .ends = is_asked(o, "future")};
    task_change *to = as.description.before;
    *to++ = (task_change){"data.scale", scale_saved(weights)};
    if (o->data) {
        *to++ = (task_change){"data.bars", ""};
        *to++ = (task_change){"data.set", o->data};
    }
    return task_open(&t->task, &as, e);
}

static bool choose_part(trained *t, const trained_options *o, err *e) {
    const split *sp = &t->task.split;
    const split_part all = part_of((span){0, t->task.data->samples});
    const char *part = o->latest ? "latest" : part_asked(o);
    t->no_test = !part && !sp->test.count;
    if (!part) part = t->no_test ? "validation" : "test";
    const struct {
        const char *name;
        split_part samples;
    } parts[] = {{"train", sp->train}, {"validation", sp->validation}, {"test", sp->test}, {"all", all},
        {"future", all}, {"latest", all}};
    size_t count = sizeof parts / sizeof *parts - !o->latest;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(part, parts[i].name) != 0) continue;
        t->part = parts[i].name;
        t->samples = parts[i].samples;
        if (t->samples.count) return true;
        if (t->task.data->held)
            return err_input(e,
                "--part %s: series that are forecast have no such part; `evaluate --test FILE` takes the "
                "values that follow them",
                part);
        return err_input(e, "--part %s: has no samples; data.split leaves none for it", part);
    }
    return err_input(e, "--part %s: unknown part; use train, validation, test, all or future", part);
}

// Trivial answers of the training part, as the weights have them

static bool damaged(const char *path, const char *key, err *e) {
    return err_input(e, "%s: %s among its metadata cannot be; the file is damaged", path, key);
}

// Shares of the classes. Those of files that do not say them are taken from the data's own training part.
static bool take_shares(trained *t, const safetensors *f, const char *path, err *e) {
    static const char key[] = "class_shares";
    const dataset *d = t->task.data;
    const char *at = safetensors_metadata(f, key);
    double sum = 0;
    if (!at) {
        trivial_shares(d, &t->task.split.train, t->share);
        return true;
    }
    for (int k = 0; k < d->classes; k++) {
        char *end;
        double share = strtod(at, &end);
        if (end == at || !(share >= 0 && share <= 1)) return damaged(path, key, e);
        sum += t->share[k] = share;
        at = end;
    }
    return (!*at && fabs(sum - 1) < 1e-3) || damaged(path, key, e);
}

static bool take_mean(trained *t, const safetensors *f, const char *path, err *e) {
    static const char key[] = "target_mean";
    const char *text = safetensors_metadata(f, key);
    char *end;
    t->mean = NAN;
    if (!text) return true;
    t->mean = strtod(text, &end);
    return (end != text && !*end && isfinite(t->mean)) || damaged(path, key, e);
}

static bool take_trivial(trained *t, const safetensors *f, const char *path, err *e) {
    return t->task.job.forecasts ? take_mean(t, f, path, e) : take_shares(t, f, path, e);
}

// Members share the inputs that were made ready for the first of them.
static bool check_members(const trained *t, const char *ensemble, const safetensors *first, err *e) {
    contract *is = task_contract(&t->task);
    bool ok = trained_members_agree(ensemble, t->members, is, CONTRACT_ALL, first, e);
    contract_free(is);
    return ok;
}

static bool open_predictor(trained *t, const char *weights, err *e) {
    if (!task_fits(&t->task, e)) return false;
    t->predictor = task_predictor(&t->task, e);
    return t->predictor && predictor_load(t->predictor, weights, e);
}

bool trained_has_ended(const trained_options *o, err *e) {
    if (!o->finished || !trained_is_unfinished(o->run)) return true;
    return err_input(e, "%s: is not trained to its end", o->run);
}

bool trained_contract(const char *run, contract **c, err *e) {
    int members;
    char *dir = NULL, *weights = NULL;
    *c = NULL;
    if (!members_of(run, &members, e)) return false;
    bool ok = members ? trained_members_find(run, members, &dir, &weights, e) : trained_find(run, &dir, &weights, e);
    safetensors *f = ok ? weights_open(weights, e) : NULL;
    ok = f && contract_read(c, f, weights, e);
    safetensors_close(f);
    free(dir);
    free(weights);
    return ok;
}

bool trained_open(trained *t, const trained_options *o, err *e) {
    *t = (trained){0};
    char *dir = NULL, *weights = NULL;
    safetensors *f = NULL;
    bool opened = false;
    if (!members_of(o->run, &t->members, e)) return false;
    bool ok = t->members ? trained_members_find(o->run, t->members, &dir, &weights, e)
                         : trained_find(o->run, &dir, &weights, e);
    ok = ok && trained_has_ended(o, e) && (f = weights_open(weights, e));
    ok = ok && (opened = open_task(t, o, dir, f, weights, e));
    ok = ok && choose_part(t, o, e) && data_notes_make(&t->notes, &t->task, t->part, &t->samples, f, weights, e) &&
         take_trivial(t, f, weights, e);
    if (ok && t->members) trained_members_note(&t->notes, o->run);
    ok = ok && check_members(t, o->run, f, e) && open_predictor(t, weights, e);
    t->task.options.saved = NULL; // closed from here on
    t->task.options.saved_path = NULL;
    safetensors_close(f);
    free(dir);
    t->weights = strdup(t->members || !weights ? o->run : weights);
    NEED(t->weights, "out of memory for a path");
    free(weights);
    if (ok) return true;
    predictor_free(t->predictor);
    if (opened) task_close(&t->task);
    free(t->weights);
    free(t->description);
    return false;
}

void trained_close(trained *t) {
    predictor_free(t->predictor);
    task_close(&t->task);
    free(t->weights);
    free(t->description);
}

// Answers

// A model that answers NaN has no answer, whichever class then seems likeliest.
static bool are_finite(const trained *t, const float *all, const char *weights, err *e) {
    int64_t width = inference_width(&t->task.job), bad = 0;
    for (int64_t i = 0; i < t->samples.count; i++) {
        bool finite = true;
        for (int64_t k = 0; k < width; k++) finite &= isfinite(all[i * width + k]) != 0;
        bad += !finite;
    }
    return !bad || err_run(e, "%s: %lld of %lld answers are not finite; the weights are damaged or diverged", weights,
                       (long long)bad, (long long)t->samples.count);
}

// Members are of the same graph and data, so that each needs no more than its weights.
static bool predict_members(trained *t, float *all, int64_t n, err *e) {
    const float *member[MEMBERS_MOST];
    bool ok = true;
    for (int k = 0; ok && k < t->members; k++) {
        char *weights = trained_member_weights(t->weights, k + 1);
        member[k] = all + k * n;
        ok = predictor_load(t->predictor, weights, e) &&
             inference_predict(predictor_inference(t->predictor), &t->samples, all + k * n, e) &&
             are_finite(t, member[k], weights, e);
        free(weights);
    }
    if (ok) (t->task.job.forecasts ? ensemble_median : ensemble_mean)(member, t->members, n, all);
    return ok;
}

float *task_predict(trained *t, err *e) {
    int64_t n = t->samples.count * inference_width(&t->task.job);
    float *out = malloc((size_t)n * (size_t)(t->members ? t->members : 1) * sizeof *out);
    if (!out) err_run(e, "out of memory for the predictions of %lld samples", (long long)t->samples.count);
    bool ok = out && (t->members ? predict_members(t, out, n, e)
                                 : inference_predict(predictor_inference(t->predictor), &t->samples, out, e) &&
                                       are_finite(t, out, t->weights, e));
    if (ok) return out;
    free(out);
    return NULL;
}

// Scores

// Compares answers with trivial ones, on the samples of the run's data or (`d`) of others of the same shape.
static bool compare(const trained *t, const dataset *d, const float *answer, skill_table *skill, err *e) {
    const task *of = &t->task;
    skill_input in = {.data = d, .samples = t->samples, .answer = answer, .width = inference_width(&of->job)};
    task_skill_input(of, &in);
    in.share = t->share;
    if (of->job.forecasts && !isnan(t->mean)) in.mean = t->mean;
    if (of->job.forecasts) in.at = settings_median(&of->settings) * d->target_width;
    return skill_make(&in, skill, e);
}

// The score of an ensemble's probabilities; its loss is their mean negative logarithm.
static void score_members(const trained *t, const float *all, score *s) {
    const dataset *d = t->task.data;
    int K = d->classes;
    *s = (score){.samples = t->samples.count};
    for (int64_t i = 0; i < s->samples; i++) {
        const float *p = all + i * K;
        int32_t label = d->label[part_sample(&t->samples, i)], answer = 0;
        for (int k = 1; k < K; k++)
            if (p[k] > p[answer]) answer = k;
        s->confusion[label * K + answer]++;
        s->loss -= log((double)p[label]) / (double)s->samples;
    }
    s->accuracy = metric_accuracy(s->confusion, K);
    s->mcc = metric_mcc(s->confusion, K);
    s->macro_f1 = metric_macro_f1(s->confusion, K);
}

bool task_evaluate(trained *t, const float *answer, score *s, skill_table *skill, err *e) {
    if (t->members)
        score_members(t, answer, s);
    else if (!inference_score(predictor_inference(t->predictor), &t->samples, s, e))
        return false;
    return compare(t, t->task.data, answer, skill, e);
}

bool task_evaluate_forecasts(
    trained *t, const float *answer, series_score *s, double *loss, skill_table *skill, err *e) {
    const task *of = &t->task;
    int64_t season = settings_task(&of->settings, of->data) == METRIC_SERIES ? of->settings.season : 0;
    score *whole = calloc(1, sizeof *whole);
    if (!whole) return err_run(e, "out of memory for a score");
    bool ok = series_add_part(s, of->data, &t->samples, 0, season, answer, inference_width(&of->job),
        settings_median(&of->settings) * of->data->target_width, e);
    if (ok && !t->members) ok = inference_score(predictor_inference(t->predictor), &t->samples, whole, e);
    if (ok) *loss = t->members ? NAN : whole->loss;
    free(whole);
    return ok && compare(t, of->data, answer, skill, e);
}

static bool check_test(const trained *t, const panel *p, const char *path, err *e) {
    const dataset *d = t->task.data;
    for (int64_t i = 0; i < d->panel; i++)
        if (panel_find(p, d->panel_names[i]) < 0)
            return err_input(e, "%s: has no series named %s, which is in %s; name the test of the same panel", path,
                d->panel_names[i], d->name);
    if (p->series != d->panel)
        return err_input(e, "%s: has %lld series and %s has %lld; name the test of the same panel", path,
            (long long)p->series, d->name, (long long)d->panel);
    for (int64_t i = 0; i < p->series; i++) {
        int64_t values = p->offset[i + 1] - p->offset[i];
        if (values != d->target_width)
            return err_input(e, "%s: series %s has %lld values and the run forecasts %lld; import with --horizon %lld",
                path, p->name[i], (long long)values, (long long)d->target_width, (long long)values);
    }
    return true;
}

static bool judge_test(
    const trained *t, const panel *p, const float *all, series_score *of, skill_table *skill, err *e) {
    const task *s = &t->task;
    int64_t H = s->data->target_width, width = inference_width(&s->job);
    float *future = malloc((size_t)(s->data->samples * H) * sizeof *future);
    bool ok = future || err_run(e, "out of memory for the test");
    for (int64_t i = 0; ok && i < s->data->samples; i++) {
        const double *value = p->value + p->offset[panel_find(p, s->data->panel_names[i])];
        for (int64_t h = 0; h < H; h++) future[i * H + h] = (float)value[h];
    }
    dataset known = *s->data;
    known.target = future;
    ok = ok && series_add_part(
                   of, &known, &t->samples, 0, s->settings.season, all, width, settings_median(&s->settings) * H, e);
    ok = ok && compare(t, &known, all, skill, e);
    free(future);
    return ok;
}

bool task_evaluate_test(
    trained *t, const panel *p, const char *path, const float *answer, series_score *s, skill_table *skill, err *e) {
    return check_test(t, p, path, e) && judge_test(t, p, answer, s, skill, e);
}
