#include "cli/trained.h"

#include "run/run.h"
#include "task/ensemble.h"
#include "task/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// The run's directory and the file of weights that a word names; both are the caller's to free.
static bool find_run(const char *word, char **dir, char **weights, err *e) {
    if (is_directory(word)) {
        *dir = strdup(word);
        *weights = run_path(word, "best.safetensors");
    } else {
        const char *slash = strrchr(word, '/');
        *dir = slash ? strndup(word, (size_t)(slash - word)) : strdup(".");
        *weights = strdup(word);
    }
    CHECK(*dir && *weights, "out of memory for a path");
    struct stat st;
    if (stat(word, &st) != 0)
        return err_input(e, "%s: cannot be read: %s; name a run's directory", word, strerror(errno));
    if (stat(*weights, &st) != 0) return err_input(e, "%s: holds no trained weights (best.safetensors)", word);
    if (run_is(*dir)) return true;
    return err_input(e, "%s: is no run's directory; it has no config.yaml", *dir);
}

static char *member_weights(const char *ensemble, int k) {
    char *dir = members_dir(ensemble, k), *path = run_path(dir, "best.safetensors");
    free(dir);
    return path;
}

// Whether a run.db says that its run is not at its end. One that cannot be read says nothing: it may be lost.
static bool is_unfinished(const char *dir) {
    store_summary sum;
    err unused;
    char *db = run_path(dir, "run.db");
    bool unfinished = store_read(db, &sum, &unused) && strcmp(sum.status, "done") != 0;
    free(db);
    return unfinished;
}

static bool is_trained(const char *ensemble, int k) {
    struct stat st;
    char *dir = members_dir(ensemble, k), *weights = member_weights(ensemble, k);
    bool is = stat(weights, &st) == 0 && !is_unfinished(dir);
    free(dir);
    free(weights);
    return is;
}

// An ensemble's first member stands for all until the others are asked.
static bool find_members(trained *t, const char *word, char **dir, char **weights, err *e) {
    bool all = !is_unfinished(word);
    for (int k = 1; all && k <= t->members; k++) all = is_trained(word, k);
    if (!all)
        return err_input(
            e, "%s: its members are not all trained; go on with `tradewind train %s/config.yaml --resume`", word, word);
    *dir = members_dir(word, 1);
    *weights = member_weights(word, 1);
    return true;
}

static bool has_scaler(const safetensors *f) {
    for (int i = 0; i < safetensors_count(f); i++)
        if (strncmp(safetensors_at(f, i)->name, "scaler.", 7) == 0) return true;
    return false;
}

static const char *part_asked(const cli_options *o) {
    const char *part = cli_given(o, "--part");
    if (cli_given(o, "--test")) return "future";
    return part ? part : cli_given(o, "--data") ? "all" : NULL;
}

static bool is_future(const cli_options *o) {
    const char *part = part_asked(o);
    return part && strcmp(part, "future") == 0;
}

// The description of the run with what the command line changes. A whole set needs no gap between parts.
static bool open_setup(trained *t, const cli_options *o, const char *dir, bool scaled, err *e) {
    char *config = run_path(dir, "config.yaml"), set[1024];
    const char *data = cli_given(o, "--data"), *part = part_asked(o);
    cli_options as = *o;
    int n = 0;
    bool ok = o->words + 5 <= WORDS_MOST || err_input(e, "too many words");
    as.word[n++] = config;
    as.word[n++] = scaled ? "data.scale=standard" : "data.scale=none";
    if (data) {
        snprintf(set, sizeof set, "data.set=%s", data);
        as.word[n++] = set;
    }
    if (part && strcmp(part, "all") == 0) {
        as.word[n++] = "data.split.embargo=0";
        as.word[n++] = "data.split.purge=0";
    }
    for (int i = 1; ok && i < o->words; i++) as.word[n++] = o->word[i];
    as.words = n;
    ok = ok && setup_open_trained(&t->s, &as, is_future(o), e);
    free(config);
    return ok;
}

// Puts the training's scaler in place of the one that was fitted on this data.
static bool take_scaler(trained *t, const safetensors *f, const char *weights, err *e) {
    scaler *sc = t->s.scaler;
    for (int i = 0; sc && i < sc->streams; i++) {
        char name[2][96];
        const safetensors_entry *v[2];
        for (int k = 0; k < 2; k++) {
            snprintf(name[k], sizeof name[k], "scaler.%.64s.%s", t->s.data->stream[i].name, k ? "std" : "mean");
            v[k] = safetensors_find(f, name[k]);
            if (!v[k] || v[k]->type != SAFE_F32 || v[k]->bytes != (size_t)sc->width[i] * sizeof(float))
                return err_input(e, "%s: %s does not fit the data, whose stream has %lld columns", weights, name[k],
                    (long long)sc->width[i]);
        }
        for (int64_t c = 0; c < sc->width[i]; c++) {
            float mean, std;
            memcpy(&mean, (const char *)v[0]->data + (size_t)c * sizeof mean, sizeof mean);
            memcpy(&std, (const char *)v[1]->data + (size_t)c * sizeof std, sizeof std);
            scaler_set(sc, i, c, mean, std);
        }
    }
    return true;
}

static bool choose_part(trained *t, const cli_options *o, err *e) {
    const split *sp = &t->s.split;
    const char *part = part_asked(o);
    if (!part) part = sp->test.count ? "test" : "validation";
    const struct {
        const char *name;
        span samples;
    } parts[] = {{"train", sp->train}, {"validation", sp->validation}, {"test", sp->test},
        {"all", {0, t->s.data->samples}}, {"future", {0, t->s.data->samples}}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(part, parts[i].name) != 0) continue;
        t->part = parts[i].name;
        t->samples = parts[i].samples;
        if (t->samples.count) return true;
        return err_input(e, "--part %s: has no samples; data.split leaves none for it", part);
    }
    return err_input(e, "--part %s: unknown part; use train, validation, test, all or future", part);
}

static bool load_weights(trained *t, const char *path, err *e) {
    return trainer_follow(t->trainer, path, e) && trainer_load(t->trainer, path, e);
}

static bool open_trainer(trained *t, const char *weights, err *e) {
    setup *s = &t->s;
    if (!setup_fits(s, e)) return false;
    t->trainer = trainer_new(s->device, s->queue, &s->job, s->data, &s->split, &s->settings, e);
    return t->trainer && load_weights(t, weights, e);
}

bool trained_open(trained *t, const cli_options *o, err *e) {
    *t = (trained){0};
    char *dir = NULL, *weights = NULL;
    safetensors *f = NULL;
    bool opened = false;
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    t->members = members_of(o->word[0]);
    bool ok = t->members ? find_members(t, o->word[0], &dir, &weights, e) : find_run(o->word[0], &dir, &weights, e);
    ok = ok && (f = safetensors_open(weights, e));
    ok = ok && (opened = open_setup(t, o, dir, has_scaler(f), e));
    ok = ok && take_scaler(t, f, weights, e) && choose_part(t, o, e) && open_trainer(t, weights, e);
    safetensors_close(f);
    free(dir);
    t->weights = strdup(t->members || !weights ? o->word[0] : weights);
    CHECK(t->weights, "out of memory for a path");
    free(weights);
    if (ok) return true;
    trainer_free(t->trainer);
    if (opened) setup_close(&t->s);
    free(t->weights);
    return false;
}

void trained_close(trained *t) {
    trainer_free(t->trainer);
    setup_close(&t->s);
    free(t->weights);
}

// Members are of the same graph and data, so that each needs no more than its weights.
static bool predict_members(trained *t, float *all, int64_t n, err *e) {
    const float *member[MEMBERS_MOST];
    bool ok = true;
    for (int k = 0; ok && k < t->members; k++) {
        char *weights = member_weights(t->weights, k + 1);
        member[k] = all + k * n;
        ok = load_weights(t, weights, e) && trainer_predict(t->trainer, t->samples, all + k * n, e);
        free(weights);
    }
    if (ok) (t->s.job.forecasts ? ensemble_median : ensemble_mean)(member, t->members, n, all);
    return ok;
}

float *trained_predict(trained *t, err *e) {
    int64_t n = t->samples.count * trainer_width(t->trainer);
    float *out = malloc((size_t)n * (size_t)(t->members ? t->members : 1) * sizeof *out);
    if (!out) err_run(e, "out of memory for the predictions of %lld samples", (long long)t->samples.count);
    bool ok = out && (t->members ? predict_members(t, out, n, e) : trainer_predict(t->trainer, t->samples, out, e));
    if (ok) return out;
    free(out);
    return NULL;
}
