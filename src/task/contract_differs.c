// Two contracts compared, and their differences in words.
#include "base/term.h"
#include "data/when.h"
#include "task/contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LIST_ROOM = 560 };

// A text that grows at its end and is cut where it is too long.
typedef struct {
    char *text;
    size_t room;
} line;

__attribute__((format(printf, 2, 3))) static bool say(const line *to, const char *fmt, ...) {
    size_t used = strlen(to->text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(to->text + used, to->room - used, fmt, args);
    va_end(args);
    return true;
}

static const char *name_at(const contract_names *n, int64_t i) {
    return json_string_value(json_array_get(n->names, (size_t)i));
}

// "a,b,c", or how many there are where they have no names.
static void say_names(const line *to, const contract_names *n) {
    if (!n->names) say(to, "%lld without names", (long long)n->count);
    for (int64_t i = 0; n->names && i < n->count; i++) say(to, "%s%s", i ? "," : "", name_at(n, i));
}

static const char *list_names(const contract_names *n, char text[LIST_ROOM]) {
    text[0] = 0;
    say_names(&(line){text, LIST_ROOM}, n);
    return text;
}

static const char *list_streams(const contract *c, char text[LIST_ROOM]) {
    line to = {text, LIST_ROOM};
    text[0] = 0;
    for (int i = 0; i < c->streams; i++) say(&to, "%s%s", i ? "," : "", c->stream[i].name);
    return c->streams ? text : "none";
}

// The first of two lists' names that differs; their common length where none does, -1 where one has no names.
static int64_t first_other(const contract_names *a, const contract_names *b) {
    int64_t i = 0;
    if (!a->names || !b->names) return -1;
    while (i < a->count && i < b->count && strcmp(name_at(a, i), name_at(b, i)) == 0) i++;
    return i;
}

static bool same_names(const contract_names *a, const contract_names *b) {
    int64_t at = first_other(a, b);
    return a->count == b->count && (at < 0 || at == a->count);
}

// Columns

// True of bars that a description names: it has keys where import has options.
static bool of_description(const contract *data) {
    return strcmp(data->data, "bars") == 0;
}

// The way to make data of those columns. A list that is too long here would not do where it is pasted.
static void say_features(const line *to, const contract *data, const contract_stream *w) {
    char all[LIST_ROOM];
    if (!w->columns.names) return;
    bool whole = strlen(list_names(&w->columns, all)) < LIST_ROOM - 1;
    say(to, of_description(data) ? "; set data.features." : "; import with --features ");
    say(to, "%s=%s", w->name, whole ? all : "LIST, which `tradewind inspect` of the weights prints");
}

static void say_columns(
    const line *to, const char *of, const contract *data, const contract_names *w, const contract_names *d) {
    int64_t at = first_other(w, d);
    if (at >= 0 && at < w->count && at < d->count)
        say(to, "columns of %s differ: column %lld is %s in the weights and %s in %s", of, (long long)at + 1,
            name_at(w, at), name_at(d, at), data->data);
    else
        say(to, "columns of %s: %lld in the weights, %lld in %s", of, (long long)w->count, (long long)d->count,
            data->data);
}

// Instruments that the vector tells apart (model.symbol).
static bool differ_in_symbols(const contract *w, const contract *d, const line *to) {
    char a[LIST_ROOM], b[LIST_ROOM];
    const char *last = name_at(&w->vector, w->vector.count - 1);
    bool same = w->symbols.count == d->symbols.count && same_names(&w->symbols, &d->symbols);
    if (!last || strncmp(last, "symbol_", 7) != 0 || same) return false;
    say(to, "was trained on %s; ", list_names(&w->symbols, a));
    if (!d->symbols.count)
        return say(to, "%s holds one instrument without a symbol; import it with --symbol NAME", d->data);
    return say(to, "%s holds %s; use data of the same instruments", d->data, list_names(&d->symbols, b));
}

static bool differ_in_columns(const contract *w, const contract *d, const line *to) {
    char a[LIST_ROOM], b[LIST_ROOM];
    bool same = w->streams == d->streams;
    for (int i = 0; same && i < w->streams; i++) same = strcmp(w->stream[i].name, d->stream[i].name) == 0;
    if (!same)
        return say(to, "streams %s in the weights, %s in %s; give the same files or frames", list_streams(w, a),
            list_streams(d, b), d->data);
    for (int i = 0; i < w->streams; i++) {
        if (same_names(&w->stream[i].columns, &d->stream[i].columns)) continue;
        say_columns(to, w->stream[i].name, d, &w->stream[i].columns, &d->stream[i].columns);
        say_features(to, d, &w->stream[i]);
        return true;
    }
    if (same_names(&w->vector, &d->vector)) return false;
    if (differ_in_symbols(w, d, to)) return true;
    if (w->vector.count && d->vector.count) {
        say_columns(to, "the vector", d, &w->vector, &d->vector);
        return say(to, "; use data with the vector of the weights");
    }
    say(to, "the vector: %s in the weights, %s in %s; ", w->vector.count ? "there" : "none",
        d->vector.count ? "there" : "none", d->data);
    if (of_description(d)) return say(to, "set data.vector=%s", w->vector.count ? "true" : "false");
    return say(to, "import %s --no-vector", w->vector.count ? "without" : "with");
}

// Frames and windows

static bool differ_in_frames(const contract *w, const contract *d, const line *to) {
    char a[32], b[32];
    for (int i = 0; i < w->streams && i < d->streams; i++) {
        int64_t was = w->stream[i].span, is = d->stream[i].span;
        if (!was || !is || was == is) continue;
        return say(to, "bars of %s: %s in the weights, %s in %s; give bars of the same span", w->stream[i].name,
            when_span_text(a, sizeof a, was), when_span_text(b, sizeof b, is), d->data);
    }
    return false;
}

static bool differ_in_windows(const contract *w, const contract *d, const line *to) {
    for (int i = 0; i < w->streams && i < d->streams; i++)
        if (w->stream[i].window != d->stream[i].window)
            return say(to, "windows of %s: %lld in the weights, %lld described; set data.windows.%s=%lld",
                w->stream[i].name, (long long)w->stream[i].window, (long long)d->stream[i].window, w->stream[i].name,
                (long long)w->stream[i].window);
    return false;
}

// Answers

static bool differ_in_classes(const contract *w, const contract *d, const line *to) {
    char a[LIST_ROOM], b[LIST_ROOM];
    if (!w->forecast != !d->forecast)
        return say(to, "the weights %s and %s %s; use data with the same labels",
            w->forecast ? "forecast" : "tell classes", d->data, d->forecast ? "is to be forecast" : "has classes");
    if (w->forecast != d->forecast)
        return say(to, "%lld values forecast in the weights, %lld in %s; import with --horizon %lld",
            (long long)w->forecast, (long long)d->forecast, d->data, (long long)w->forecast);
    if (same_names(&w->classes, &d->classes)) return false;
    return say(to, "classes %s in the weights, %s in %s; use data with the same labels", list_names(&w->classes, a),
        list_names(&d->classes, b), d->data);
}

// A value of a label's settings as text.
static const char *value_text(const json_t *v, char *text, size_t room) {
    if (json_is_string(v))
        snprintf(text, room, "%s", json_string_value(v));
    else if (json_is_number(v))
        snprintf(text, room, "%.9g", json_number_value(v));
    else
        snprintf(text, room, "%s", json_is_true(v) ? "true" : "false");
    return text;
}

static bool differ_in_label(const contract *w, const contract *d, const line *to) {
    const char *key;
    json_t *was;
    char a[64], b[64];
    if (!w->label || !d->label) return false;
    json_object_foreach(w->label, key, was) {
        if (!json_object_get(d->label, key)) continue; // an earlier program did not say
        value_text(was, a, sizeof a);
        value_text(json_object_get(d->label, key), b, sizeof b);
        if (strcmp(a, b) != 0)
            return say(to, "labels differ: %s is %s in the weights and %s in %s; use data with the same labels", key, a,
                b, d->data);
    }
    return false;
}

// An instrument without a symbol has no scale of its own among those of the weights.
static bool differ_in_scaler(const contract *w, const contract *d, const line *to) {
    char all[LIST_ROOM];
    if (strcmp(w->scaler, d->scaler) != 0)
        return say(
            to, "was trained with scaler %s, data.scale is %s; set data.scale=%s", w->scaler, d->scaler, w->scaler);
    if (strcmp(w->scaler, "own") != 0 || d->symbols.count) return false;
    return say(to,
        "was trained on %s, each on its own scale, and %s holds one instrument without a symbol; import it "
        "with --symbol NAME",
        list_names(&w->symbols, all), d->data);
}

bool contract_differs(const contract *weights, const contract *data, unsigned parts, char *text, size_t room) {
    static const struct {
        unsigned part;
        bool (*differ)(const contract *w, const contract *d, const line *to);
    } all[] = {{CONTRACT_COLUMNS, differ_in_columns}, {CONTRACT_FRAMES, differ_in_frames},
        {CONTRACT_WINDOWS, differ_in_windows}, {CONTRACT_CLASSES, differ_in_classes}, {CONTRACT_LABEL, differ_in_label},
        {CONTRACT_SCALER, differ_in_scaler}};
    line to = {text, room};
    text[0] = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (parts & all[i].part && all[i].differ(weights, data, &to)) {
            term_one_line(text);
            return true;
        }
    return false;
}

// Data that fit and may not be meant

// The default is UTC, but for files that are known to have another.
static bool same_zone(const char *a, const char *b) {
    if (strcmp(a, "default") == 0) a = "UTC";
    if (strcmp(b, "default") == 0) b = "UTC";
    return strcasecmp(a, b) == 0;
}

static const char *zone_text(const char *zone, char text[80]) {
    if (strcmp(zone, "default") == 0) return "the default zone";
    snprintf(text, 80, "zone %.70s", zone);
    return text;
}

bool contract_zones_differ(const contract *weights, const contract *data, char *text, size_t room) {
    char a[80], b[80];
    if (!weights->zone || !data->zone || same_zone(weights->zone, data->zone)) return false;
    snprintf(text, room,
        "%.100s was read with %s, the data of the training with %s: unless the clocks of the files differ so, features "
        "of the time of day are shifted",
        data->data, zone_text(data->zone, a), zone_text(weights->zone, b));
    term_one_line(text);
    return true;
}

static bool has_name(const contract_names *n, const char *name) {
    for (int64_t i = 0; i < n->count; i++)
        if (strcmp(name_at(n, i), name) == 0) return true;
    return false;
}

bool contract_symbols_differ(const contract *weights, const contract *data, char *text, size_t room) {
    const contract_names *w = &weights->symbols, *d = &data->symbols;
    char all[LIST_ROOM];
    line to = {text, room};
    text[0] = 0;
    for (int64_t i = 0; w->names && d->names && i < d->count; i++)
        if (!has_name(w, name_at(d, i))) say(&to, "%s%s", text[0] ? "," : "not trained on ", name_at(d, i));
    if (!text[0]) return false;
    say(&to, " of %s, but on %s", data->data, list_names(w, all));
    term_one_line(text);
    return true;
}

// Lines

const char *contract_stream_line(const contract *c, int stream, char *text, size_t room) {
    const contract_stream *s = &c->stream[stream];
    char span[32];
    line to = {text, room};
    text[0] = 0;
    say(&to, "stream %s: ", s->name);
    if (s->span) say(&to, "bars of %s, ", when_span_text(span, sizeof span, s->span));
    say(&to, "%lld steps of ", (long long)s->window);
    say_names(&to, &s->columns);
    term_one_line(text);
    return text;
}

const char *contract_answers_line(const contract *c, char *text, size_t room) {
    const char *key;
    json_t *v;
    char all[LIST_ROOM], value[64];
    line to = {text, room};
    text[0] = 0;
    if (c->forecast)
        say(&to, "forecasts %lld values", (long long)c->forecast);
    else
        say(&to, "classes %s", list_names(&c->classes, all));
    json_object_foreach(c->label, key, v) {
        value_text(v, value, sizeof value);
        say(&to, ", %s %s", key, value);
    }
    term_one_line(text);
    return text;
}

// Data

static const char *count_text(char text[32], int64_t n) {
    term_count(text, 32, (double)n);
    return text;
}

// Files of bars that have more or fewer bars than they had.
static bool sources_differ(const contract *was, const contract *is, const line *to) {
    size_t n = json_array_size(was->sources);
    char a[32], b[32];
    bool differ = false;
    for (size_t i = 0; n == json_array_size(is->sources) && i < n; i++) {
        const json_t *old = json_array_get(was->sources, i), *now = json_array_get(is->sources, i);
        int64_t had = json_integer_value(json_object_get(old, "bars")),
                has = json_integer_value(json_object_get(now, "bars"));
        const char *file = json_string_value(json_object_get(now, "file"));
        if (!file || had == has) continue;
        if (!differ && strcmp(is->data, "bars") != 0) say(to, "%s is of other bars: ", is->data);
        differ = say(to, "%s%s has %s bars, had %s", differ ? ", " : "", file, count_text(a, has), count_text(b, had));
    }
    return differ;
}

// A time that moved; `differ`: other differences were told before it.
static bool time_differs(const char *which, const char *was, const char *is, bool differ, const line *to) {
    if (!was || !is || strcmp(was, is) == 0) return differ;
    return say(to, "%sits %s sample is of %s, was of %s", differ ? "; " : "", which, is, was);
}

bool contract_data_differ(const contract *was, const contract *is, char *text, size_t room) {
    line to = {text, room};
    char a[32], b[32];
    text[0] = 0;
    if (!was->data) return false;
    bool differ = sources_differ(was, is, &to);
    if (!differ && was->samples != is->samples)
        differ =
            say(&to, "%s has %s samples, had %s", is->data, count_text(a, is->samples), count_text(b, was->samples));
    if (!differ) say(&to, "%s has changed: ", is->data);
    differ = time_differs("first", was->first, is->first, differ, &to);
    differ = time_differs("last", was->last, is->last, differ, &to);
    term_one_line(text);
    return differ;
}
