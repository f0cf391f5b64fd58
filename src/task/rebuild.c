#include "task/rebuild.h"

#include "base/text.h"
#include "data/bars.h"
#include "data/when.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rebuild_done(rebuild *r) {
    for (int i = 0; i < r->owned; i++) free(r->own[i]);
    *r = (rebuild){0};
}

static void put(rebuild *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(rebuild *r, const char *fmt, ...) {
    va_list args;
    CHECK(r->owned < REBUILD_MOST, "more than %d keys", REBUILD_MOST);
    va_start(args, fmt);
    NEED(vasprintf(&r->own[r->owned], fmt, args) >= 0, "out of memory for a key");
    va_end(args);
    r->overrides[r->count++] = r->own[r->owned++];
}

// A description with bar files: one of them is another.
static bool replace_file(rebuild *r, const task *t, const char *file, const char *symbol, err *e) {
    const char *stream = t->data->stream[0].name, *first = config_child(t->config, "data.bars", 0);
    char key[160];
    snprintf(key, sizeof key, "data.bars.%.100s", first);
    if (!config_count(t->config, key)) {
        put(r, "data.bars.%s=%s", stream, file);
        return true;
    }
    if (!symbol)
        return err_input(e, "--bars: the run has several instruments; name the one of this file with --symbol");
    put(r, "data.bars.%s.%s=%s", symbol, stream, file);
    return true;
}

// A set of import

static void put_columns(rebuild *r, const stream *s) {
    text_out t;
    text_open(&t);
    for (int64_t i = 0; i < s->series.width; i++) fprintf(t.out, "%s\"%s\"", i ? "," : "", s->series.columns[i]);
    char *list = text_close(&t);
    NEED(list, "out of memory for columns");
    put(r, "data.features.%s=[%s]", s->name, list);
    free(list);
}

// Keys of labels have the names that a set's words have.
static void put_label(rebuild *r, json_t *label) {
    static const char *const keys[] = {"kind", "horizon", "band", "volatility", "classes", "strong", "up", "down",
        "limit", "timeout", "side", "value"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = json_object_get(label, keys[i]);
        if (json_is_string(v)) put(r, "data.label.%s=%s", keys[i], json_string_value(v));
        if (json_is_integer(v)) put(r, "data.label.%s=%lld", keys[i], (long long)json_integer_value(v));
        if (json_is_real(v)) put(r, "data.label.%s=%.17g", keys[i], json_real_value(v));
    }
}

static void put_reading(rebuild *r, json_t *reading) {
    static const char *const keys[] = {"tz", "date_order", "columns", "keep_coarse", "keep_filled"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = json_object_get(reading, keys[i]);
        if (json_is_string(v)) put(r, "data.%s=%s", keys[i], json_string_value(v));
        if (json_is_boolean(v)) put(r, "data.%s=%s", keys[i], json_is_true(v) ? "true" : "false");
    }
}

static void put_frames(rebuild *r, const dataset *d) {
    char list[256] = "";
    size_t n = 0;
    for (int i = 1; i < d->streams && n < sizeof list; i++) {
        char span[32];
        snprintf(span, sizeof span, "%llds", (long long)d->span[i]);
        const char *as = d->span[i] == WHEN_WEEK ? "1w" : d->span[i] == WHEN_MONTH ? "1mo" : span;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 1 ? "," : "", as);
    }
    if (n) put(r, "data.frames=[%s]", list);
}

static bool remake_set(rebuild *r, const task *t, const char *file, err *e) {
    const dataset *d = t->data;
    const char *types = json_string_value(json_object_get(d->about, "types"));
    for (int i = 0; i < d->streams; i++)
        if (!d->stream[i].series.columns || !d->span[i])
            return err_input(e,
                "--bars: %s does not say what its columns are; import %s as it was, and give it with --data", d->name,
                file);
    put(r, "data.set=synthetic"); // the usual one, so that there is no set beside the bars
    put(r, "data.bars.%s=%s", d->stream[0].name, file);
    put_frames(r, d);
    for (int i = 0; i < d->streams; i++) put_columns(r, &d->stream[i]);
    put(r, "data.vector=%s", d->vector.width ? "true" : "false");
    if (types) put(r, "data.types=%s", types);
    put_label(r, json_object_get(d->about, "label"));
    put_reading(r, json_object_get(d->about, "reading"));
    return true;
}

bool rebuild_make(rebuild *r, const task *t, const char *file, const char *symbol, const char *const *overrides,
    int override_count, err *e) {
    *r = (rebuild){0};
    char *whole = realpath(file, NULL); // so that the description looks for it nowhere else
    if (!whole) return err_input(e, "%s: cannot be read: %s", file, strerror(errno));
    bool ok = config_count(t->config, "data.bars") ? replace_file(r, t, whole, symbol, e) : remake_set(r, t, whole, e);
    free(whole);
    for (int i = 0; ok && i < override_count; i++) {
        if (r->count == REBUILD_MOST) return err_input(e, "more than %d words; give fewer", override_count);
        r->overrides[r->count++] = overrides[i];
    }
    return ok;
}

bool rebuild_refuse(const char *file, int64_t span, err *e) {
    const bars_options usual = {0};
    bars b;
    char is[32], was[32];
    err unused;
    if (!span || !bars_read(&b, file, &usual, &unused)) return false;
    if (b.span && b.span != span)
        err_input(e, "--bars %s: has bars of %s, and the run was trained on bars of %s; give bars of the same span",
            file, when_span_text(is, sizeof is, b.span), when_span_text(was, sizeof was, span));
    bars_done(&b);
    return false;
}
