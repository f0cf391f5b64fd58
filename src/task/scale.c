#include "task/scale.h"

#include <string.h>

// Weights

// The word by the tensors of a file without a contract.
static const char *word_of_tensors(const safetensors *f) {
    const char *word = "none";
    for (int i = 0; i < safetensors_count(f); i++) {
        const safetensors_entry *t = safetensors_at(f, i);
        if (strncmp(t->name, "scaler.", 7) != 0) continue;
        if (t->rank == 2) return "own";
        word = "standard";
    }
    return word;
}

const char *scale_saved(const safetensors *weights) {
    static const char *const words[] = {"none", "standard", "own"};
    contract *c = NULL;
    const char *word = NULL;
    err unused; // a damaged contract is told where it is compared
    if (contract_read(&c, weights, "", &unused))
        for (size_t i = 0; c && i < sizeof words / sizeof *words; i++)
            if (strcmp(c->scaler, words[i]) == 0) word = words[i];
    contract_free(c);
    return word ? word : word_of_tensors(weights);
}

const char *scale_name(const task *t) {
    if (t->scaler) return t->scaler->series > 1 ? "own" : "standard";
    if (!settings_scales(&t->settings, t->data)) return "none";
    return t->settings.scale == SCALE_OWN_DATA ? "own" : "standard";
}

// One number of a file; 0 where it is not there.
static float number_of(const safetensors *f, const char *name) {
    const safetensors_entry *t = safetensors_find(f, name);
    float v = 0;
    if (t && t->type == SAFE_F32 && t->bytes == sizeof v) memcpy(&v, t->data, sizeof v);
    return v;
}

// The rows of the weights' scales that the instruments of the data have.
static bool find_symbols(const task *t, int64_t *row, int64_t *rows, err *e) {
    const dataset *d = t->data;
    contract *c = NULL;
    if (!contract_read(&c, t->options.saved, t->options.saved_path, e)) return false;
    bool ok = true;
    *rows = c ? c->symbols.count : 0;
    for (int64_t k = 0; ok && k < d->panel; k++) {
        row[k] = -1;
        for (int64_t i = 0; i < *rows && c->symbols.names; i++)
            if (!strcmp(json_string_value(json_array_get(c->symbols.names, (size_t)i)), d->panel_names[k])) row[k] = i;
        if (row[k] < 0)
            ok = err_input(e, "%s: was not trained on %s, so that its scale is not known; leave it out of %s",
                t->options.saved_path, d->panel_names[k], d->name);
    }
    contract_free(c);
    return ok;
}

static bool load_stream(const task *t, int i, const int64_t *row, int64_t rows, err *e) {
    scaler *sc = t->scaler;
    const safetensors_entry *v[2];
    for (int k = 0; k < 2; k++) {
        char name[96];
        snprintf(name, sizeof name, "scaler.%.64s.%s", t->data->stream[i].name, k ? "std" : "mean");
        v[k] = safetensors_find(t->options.saved, name);
        if (!v[k] || v[k]->type != SAFE_F32 || v[k]->bytes != (size_t)(rows * sc->width[i]) * sizeof(float))
            return err_input(e, "%s: %s does not fit the data, whose stream has %lld columns", t->options.saved_path,
                name, (long long)sc->width[i]);
    }
    for (int64_t c = 0; c < sc->series * sc->width[i]; c++) {
        int64_t from = row[c / sc->width[i]] * sc->width[i] + c % sc->width[i];
        float mean, std;
        memcpy(&mean, (const char *)v[0]->data + (size_t)from * sizeof mean, sizeof mean);
        memcpy(&std, (const char *)v[1]->data + (size_t)from * sizeof std, sizeof std);
        scaler_set(sc, i, c, mean, std);
    }
    return true;
}

// The scales that weights carry.
static bool load(task *t, bool own, err *e) {
    int64_t one = 0, rows = 1, *row = own ? calloc((size_t)t->data->panel, sizeof *row) : &one;
    if (!row) return err_run(e, "out of memory for %lld symbols", (long long)t->data->panel);
    bool ok = !own || find_symbols(t, row, &rows, e);
    ok = ok && (t->scaler = scaler_new(t->data, own, e));
    for (int i = 0; ok && i < t->scaler->streams; i++) ok = load_stream(t, i, row, rows, e);
    if (ok)
        t->scaler->target = (target_scale){
            number_of(t->options.saved, "scaler.target.mean"), number_of(t->options.saved, "scaler.target.std")};
    if (own) free(row);
    return ok;
}

// The scales of the training part.
static bool fit(task *t, bool own, err *e) {
    t->scaler = scaler_fit(t->data, &t->split.train, t->window, own, e);
    if (!t->scaler || settings_task(&t->settings, t->data) != METRIC_FORECASTS) return t->scaler != NULL;
    return target_fit(t->data, &t->split.train, &t->scaler->target, e);
}

bool scale_make(task *t, err *e) {
    bool own = t->settings.scale == SCALE_OWN_DATA;
    if (!settings_scales(&t->settings, t->data)) return true;
    if (own && (!t->data->panel || !t->data->stream[0].start))
        return config_fail(t->config, "data.scale", e, "the data hold one instrument; use standard");
    if (!(t->options.saved ? load(t, own, e) : fit(t, own, e))) return false;
    if (t->scaler->series == 1) return true;
    t->data = scaler_apply(t->scaler, t->data, t->data != t->options.data, e);
    return t->data != NULL;
}
