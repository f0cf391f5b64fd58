#include "task/contract.h"

#include "data/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char contract_key[] = "tradewind.contract", contract_data_key[] = "tradewind.data";

// Making

// A text that is not UTF-8 has no JSON.
static json_t *text_json(const char *text) {
    json_t *v = json_string(text);
    return v ? v : json_string("?");
}

static json_t *names_json(const char *const *names, int64_t count) {
    if (!names) return json_integer((json_int_t)count);
    json_t *all = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(all, text_json(names[i]));
    return all;
}

static json_t *streams_json(const contract_facts *f) {
    json_t *all = json_array();
    for (int i = 0; i < f->data->streams; i++) {
        const stream *s = &f->data->stream[i];
        json_array_append_new(
            all, json_pack("{s:o, s:I, s:I, s:o}", "name", text_json(s->name), "span", (json_int_t)f->data->span[i],
                     "window", (json_int_t)f->window[i], "columns", names_json(s->series.columns, s->series.width)));
    }
    return all;
}

static bool made_of_bars(const dataset *d) {
    const char *of = json_string_value(json_object_get(d->about, "made_of"));
    return of && strcmp(of, "bars") == 0;
}

// The zone that was given; sets of earlier programs do not say.
static const char *zone_of(const dataset *d) {
    const json_t *reading = json_object_get(d->about, "reading");
    const char *zone = json_string_value(json_object_get(reading, "tz"));
    return zone || !reading ? zone : "default";
}

// Adds one of the maker's words, as a copy: runs side by side share the data, whose references are not counted safely.
static void add_word(json_t *to, const dataset *d, const char *key) {
    json_object_set_new(to, key, json_deep_copy(json_object_get(d->about, key)));
}

static json_t *data_json(const dataset *d) {
    json_t *all = json_pack("{s:o, s:I}", "name", text_json(d->name), "samples", (json_int_t)d->samples);
    char when[32];
    if (d->time && d->samples) {
        json_object_set_new(all, "first", json_string(when_text(when, sizeof when, d->time[0])));
        json_object_set_new(all, "last", json_string(when_text(when, sizeof when, d->time[d->samples - 1])));
    }
    if (made_of_bars(d)) add_word(all, d, "sources");
    return all;
}

// The time of the training samples: from the first of them to the end of the last label.
static json_t *trained_json(const dataset *d, const split_part *train) {
    char from[32], to[32];
    const int64_t *end = d->end ? d->end : d->time;
    int64_t last = d->time[part_first(train)];
    for (int k = 0; k < train->spans; k++)
        for (int64_t i = 0, at = train->span[k].first; i < train->span[k].count; i++, at++)
            if (end[at] > last) last = end[at];
    when_text(from, sizeof from, d->time[part_first(train)]);
    return json_pack("{s:s, s:s}", "from", from, "to", when_text(to, sizeof to, last));
}

// The lowest and the highest price of each instrument's training samples; NULL where one has none above 0.
static json_t *prices_json(const dataset *d, const split_part *train) {
    int64_t series = dataset_series(d);
    double(*range)[2] = calloc((size_t)series, sizeof *range);
    json_t *all = json_array();
    bool known = true;
    NEED(range, "out of memory for a contract");
    for (int64_t i = 0; i < train->count; i++) {
        int64_t at = part_sample(train, i);
        double *of = range[d->panel ? dataset_panel_of(d, at) : 0], price = (double)d->price[at];
        if (!of[1] || price < of[0]) of[0] = price;
        if (!of[1] || price > of[1]) of[1] = price;
    }
    for (int64_t k = 0; k < series; k++) {
        known &= range[k][0] > 0;
        json_array_append_new(all, json_pack("[f, f]", range[k][0], range[k][1]));
    }
    free(range);
    if (known) return all;
    json_decref(all);
    return NULL;
}

static json_t *make_json(const contract_facts *f) {
    const dataset *d = f->data;
    json_t *all = json_pack("{s:s, s:o}", "version", f->version ? f->version : "", "streams", streams_json(f));
    if (d->vector.width)
        json_object_set_new(
            all, "vector", json_pack("{s:o}", "columns", names_json(d->vector.columns, d->vector.width)));
    if (f->forecasts)
        json_object_set_new(all, "forecast", json_integer((json_int_t)d->target_width));
    else
        json_object_set_new(all, "classes", names_json(d->class_names, d->classes));
    if (made_of_bars(d)) add_word(all, d, "label");
    json_object_set_new(all, "scaler", json_string(f->scale ? f->scale : "none"));
    if (made_of_bars(d) && d->panel) json_object_set_new(all, "symbols", names_json(d->panel_names, d->panel));
    if (made_of_bars(d) && zone_of(d)) json_object_set_new(all, "zone", text_json(zone_of(d)));
    if (d->time && f->train && f->train->count) json_object_set_new(all, "trained", trained_json(d, f->train));
    if (made_of_bars(d) && d->price && f->train && f->train->count)
        json_object_set_new(all, "prices", prices_json(d, f->train));
    return all;
}

// Reading

static bool read_names(const json_t *v, contract_names *to) {
    *to = (contract_names){0};
    if (!v) return true;
    if (json_is_integer(v)) {
        to->count = json_integer_value(v);
        return to->count >= 0;
    }
    if (!json_is_array(v)) return false;
    to->names = v;
    to->count = (int64_t)json_array_size(v);
    for (int64_t i = 0; i < to->count; i++)
        if (!json_is_string(json_array_get(v, (size_t)i))) return false;
    return true;
}

static bool read_streams(contract *c, const json_t *list) {
    if (!json_is_array(list) || json_array_size(list) > STREAMS_MOST) return false;
    c->streams = (int)json_array_size(list);
    for (int i = 0; i < c->streams; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        contract_stream *s = &c->stream[i];
        s->name = json_string_value(json_object_get(v, "name"));
        s->span = json_integer_value(json_object_get(v, "span"));
        s->window = json_integer_value(json_object_get(v, "window"));
        if (!s->name || !read_names(json_object_get(v, "columns"), &s->columns)) return false;
    }
    return true;
}

// Fills a contract, which takes both over; NULL where that is none. `data` may be NULL.
static contract *from_json(json_t *all, json_t *data) {
    contract *c = calloc(1, sizeof *c);
    NEED(c, "out of memory for a contract");
    c->json = all;
    c->data_json = data;
    c->version = json_string_value(json_object_get(all, "version"));
    c->forecast = json_integer_value(json_object_get(all, "forecast"));
    c->label = json_object_get(all, "label");
    c->scaler = json_string_value(json_object_get(all, "scaler"));
    c->zone = json_string_value(json_object_get(all, "zone"));
    const json_t *trained = json_object_get(all, "trained");
    c->prices = json_object_get(all, "prices");
    c->trained_from = json_string_value(json_object_get(trained, "from"));
    c->trained_to = json_string_value(json_object_get(trained, "to"));
    c->data = json_string_value(json_object_get(data, "name"));
    c->samples = json_integer_value(json_object_get(data, "samples"));
    c->first = json_string_value(json_object_get(data, "first"));
    c->last = json_string_value(json_object_get(data, "last"));
    c->sources = json_object_get(data, "sources");
    bool ok = c->version && c->scaler && (!data || c->data) && read_streams(c, json_object_get(all, "streams")) &&
              read_names(json_object_get(json_object_get(all, "vector"), "columns"), &c->vector) &&
              read_names(json_object_get(all, "classes"), &c->classes) &&
              read_names(json_object_get(all, "symbols"), &c->symbols);
    if (ok) return c;
    contract_free(c);
    return NULL;
}

contract *contract_make(const contract_facts *f) {
    contract *c = from_json(make_json(f), data_json(f->data));
    NEED(c, "out of memory for a contract");
    return c;
}

void contract_free(contract *c) {
    if (!c) return;
    json_decref(c->json);
    json_decref(c->data_json);
    free(c);
}

static bool damaged(const char *path, err *e) {
    return err_input(e, "%s: %s among its metadata cannot be read; the file is damaged", path, contract_key);
}

static char *dump(const json_t *v) {
    char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(9));
    NEED(text, "out of memory for a contract");
    return text;
}

char *contract_text(const contract *c) {
    return dump(c->json);
}

char *contract_data_text(const contract *c) {
    return dump(c->data_json);
}

bool contract_read(contract **c, const safetensors *from, const char *path, err *e) {
    const char *text = safetensors_metadata(from, contract_key), *of = safetensors_metadata(from, contract_data_key);
    err why;
    *c = NULL;
    if (!text) return true;
    json_t *all = json_read(text, strlen(text), &why), *data = of ? json_read(of, strlen(of), &why) : NULL;
    if (all && (data || !of)) return (*c = from_json(all, data)) || damaged(path, e);
    json_decref(all);
    json_decref(data);
    return damaged(path, e);
}

bool contract_fits(const safetensors *weights, const char *path, const contract *data, unsigned parts, err *e) {
    contract *c;
    char text[900];
    if (!contract_read(&c, weights, path, e)) return false;
    bool ok = !c || !contract_differs(c, data, parts, text, sizeof text);
    contract_free(c);
    return ok || err_input(e, "%s: %s", path, text);
}
