#include "cli/trained.h"

#include "run/run.h"

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

static bool has_scaler(const safetensors *f) {
    for (int i = 0; i < safetensors_count(f); i++)
        if (strncmp(safetensors_at(f, i)->name, "scaler.", 7) == 0) return true;
    return false;
}

static const char *part_asked(const cli_options *o) {
    const char *part = cli_given(o, "--part");
    return part ? part : cli_given(o, "--data") ? "all" : NULL;
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
    ok = ok && setup_open(&t->s, &as, e);
    free(config);
    return ok;
}

// Puts the training's scaler in place of the one that was fitted on this data.
static bool take_scaler(trained *t, const safetensors *f, err *e) {
    scaler *sc = t->s.scaler;
    for (int i = 0; sc && i < sc->streams; i++) {
        char name[2][96];
        const safetensors_entry *v[2];
        for (int k = 0; k < 2; k++) {
            snprintf(name[k], sizeof name[k], "scaler.%.64s.%s", t->s.data->stream[i].name, k ? "std" : "mean");
            v[k] = safetensors_find(f, name[k]);
            if (!v[k] || v[k]->type != SAFE_F32 || v[k]->bytes != (size_t)sc->width[i] * sizeof(float))
                return err_input(e, "%s: %s does not fit the data, whose stream has %lld columns", t->weights, name[k],
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
    } parts[] = {
        {"train", sp->train}, {"validation", sp->validation}, {"test", sp->test}, {"all", {0, t->s.data->samples}}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(part, parts[i].name) != 0) continue;
        t->part = parts[i].name;
        t->samples = parts[i].samples;
        if (t->samples.count) return true;
        return err_input(e, "--part %s: has no samples; data.split leaves none for it", part);
    }
    return err_input(e, "--part %s: unknown part; use train, validation, test or all", part);
}

static bool open_trainer(trained *t, bool scores, err *e) {
    setup *s = &t->s;
    if (scores) graph_keep(s->job.g, s->job.logits);
    if (!setup_fits(s, e)) return false;
    t->trainer = trainer_new(s->device, s->queue, &s->job, s->data, &s->split, &s->settings, e);
    return t->trainer && trainer_load(t->trainer, t->weights, e);
}

bool trained_open(trained *t, const cli_options *o, bool scores, err *e) {
    *t = (trained){0};
    char *dir = NULL;
    safetensors *f = NULL;
    bool opened = false;
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    bool ok = find_run(o->word[0], &dir, &t->weights, e) && (f = safetensors_open(t->weights, e));
    ok = ok && (opened = open_setup(t, o, dir, has_scaler(f), e));
    ok = ok && take_scaler(t, f, e) && choose_part(t, o, e) && open_trainer(t, scores, e);
    safetensors_close(f);
    free(dir);
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
