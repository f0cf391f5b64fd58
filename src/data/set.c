#include "data/set.h"

#include "base/format.h"
#include "base/stop.h"
#include "data/scaler.h"

#include <stdlib.h>
#include <string.h>

const char set_mark[] = "tradewind";
const double set_train_share = 0.70;

enum { ENTRY_MOST = SET_NAME_MOST + 24, FIRST_WINDOW = 50, OTHER_WINDOW = 20 };

int64_t set_window(const dataset *d, int stream) {
    if (d->window[stream]) return d->window[stream];
    return stream ? OTHER_WINDOW : FIRST_WINDOW;
}

bool set_name_ok(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n && n <= SET_NAME_MOST && !name[n] && strcmp(name, "target") != 0;
}

static npy_type npy_of(column_type t) {
    return t == COLUMN_F32 ? NPY_F32 : t == COLUMN_F16 ? NPY_F16 : NPY_I8;
}

// "fast.series0", "vector0"
static const char *part_name(char name[ENTRY_MOST], const char *table, int part) {
    snprintf(name, ENTRY_MOST, "%s%d", table ? "" : "vector", part);
    if (table) snprintf(name, ENTRY_MOST, "%s.series%d", table, part);
    return name;
}

static const char *of_table(char name[ENTRY_MOST], const char *table, const char *what) {
    snprintf(name, ENTRY_MOST, "%s.%s", table ? table : "vector", what);
    return name;
}

// Writing

bool set_part_begin(npz_writer *w, const char *table, int part, column_type type, int64_t width, err *e) {
    char name[ENTRY_MOST];
    return npz_writer_begin(w, part_name(name, table, part), npy_of(type), 2, (int64_t[]){-1, width}, e);
}

// In pieces, between which a wish to stop is heard.
static bool write_data(npz_writer *w, const char *data, size_t bytes, err *e) {
    enum { PIECE = 1 << 22 };
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        if (!stop_go_on(e) || !npz_writer_write(w, data + at, n, e)) return false;
    }
    return true;
}

static bool write_table(npz_writer *w, const char *name, const table *t, err *e) {
    for (int k = 0; k < t->parts; k++) {
        const table_part *p = &t->part[k];
        size_t bytes = (size_t)(t->rows * p->width) * column_bytes(p->type);
        if (!set_part_begin(w, name, k, p->type, p->width, e) || !write_data(w, p->data, bytes, e) ||
            !npz_writer_end(w, e))
            return false;
    }
    return true;
}

static bool write_list(npz_writer *w, const char *name, npy_type type, int64_t count, const void *data, err *e) {
    return !data || npz_writer_array(w, name, type, 1, &count, data, e);
}

static bool write_columns(npz_writer *w, const char *of, const table *t, err *e) {
    char name[ENTRY_MOST];
    return !t->columns || npz_writer_text(w, of_table(name, of, "columns"), t->columns, t->width, e);
}

static bool write_bars(npz_writer *w, const dataset *d, const stream *s, err *e) {
    char name[ENTRY_MOST];
    int64_t n = s->bars.count, starts = dataset_series(d) + 1, time[2] = {n, 2}, price[2] = {n, 6};
    if (!n) return true;
    return npz_writer_array(w, of_table(name, s->name, "bar_time"), NPY_I64, 2, time, s->bars.time, e) &&
           npz_writer_array(w, of_table(name, s->name, "bar"), NPY_F64, 2, price, s->bars.price, e) &&
           write_list(w, of_table(name, s->name, "bar_start"), NPY_I64, starts, s->bars.start, e) &&
           write_list(w, of_table(name, s->name, "start"), NPY_I64, starts, s->start, e);
}

static bool write_stream(npz_writer *w, const dataset *d, const stream *s, err *e) {
    char name[ENTRY_MOST];
    return write_list(w, of_table(name, s->name, "row"), NPY_I32, dataset_all(d), s->row, e) &&
           write_list(w, of_table(name, s->name, "first"), NPY_I32, dataset_all(d), s->first, e) &&
           write_columns(w, s->name, &s->series, e) && write_bars(w, d, s, e);
}

static bool write_scaler(npz_writer *w, const dataset *d, err *e) {
    int64_t window[STREAMS_MOST], train = (int64_t)((double)d->samples * set_train_share);
    char name[ENTRY_MOST];
    for (int i = 0; i < d->streams; i++) window[i] = set_window(d, i);
    split_part part = part_of((span){0, train ? train : 1});
    scaler *s = scaler_fit(d, &part, window, false, e);
    bool ok = s != NULL;
    for (int i = 0; ok && i < d->streams; i++) {
        const char *stream = d->stream[i].name;
        ok = write_list(w, of_table(name, stream, "mean"), NPY_F32, s->width[i], s->mean[i], e) &&
             write_list(w, of_table(name, stream, "std"), NPY_F32, s->width[i], s->std[i], e);
    }
    scaler_free(s);
    return ok;
}

static json_t *streams_json(const dataset *d) {
    json_t *all = json_array();
    for (int i = 0; i < d->streams; i++) {
        const stream *s = &d->stream[i];
        json_array_append_new(all, json_pack("{s:s, s:i, s:I, s:I}", "name", s->name, "parts", s->series.parts,
                                       "window", (json_int_t)d->window[i], "span", (json_int_t)d->span[i]));
    }
    return all;
}

// The maker's words, with what the arrays do not say put before them.
static bool write_mark(npz_writer *w, const dataset *d, const json_t *about, err *e) {
    json_t *mark = json_pack("{s:i, s:o, s:i, s:b, s:i, s:I, s:I, s:I}", "version", SET_VERSION, "streams",
        streams_json(d), "vector_parts", d->vector.parts, "raw", d->raw, "classes", d->classes, "horizon",
        (json_int_t)d->horizon, "held_out", (json_int_t)d->held, "unlabelled", (json_int_t)d->unlabelled);
    bool ok = mark && json_object_set_new(mark, "about", json_deep_copy(about)) == 0;
    char *text = ok ? json_dumps(mark, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(mark);
    if (!text) return err_run(e, "out of memory for the dataset's description");
    ok = npz_writer_text(w, set_mark, (const char *const[]){text}, 1, e);
    free(text);
    return ok;
}

bool set_write_rest(npz_writer *w, const dataset *d, const json_t *about, err *e) {
    bool ok = write_mark(w, d, about, e);
    for (int i = 0; ok && i < d->streams; i++) ok = write_stream(w, d, &d->stream[i], e);
    ok = ok && write_columns(w, NULL, &d->vector, e);
    ok = ok && write_list(w, "label", NPY_I32, d->samples, d->label, e);
    ok = ok && write_list(w, "time", NPY_I64, dataset_all(d), d->time, e);
    ok = ok && write_list(w, "end", NPY_I64, d->samples, d->end, e);
    ok = ok && write_list(w, "price", NPY_F32, dataset_all(d), d->price, e);
    ok = ok && write_list(w, "volatility", NPY_F64, d->streams ? d->stream[0].bars.count : 0, d->volatility, e);
    ok = ok && write_list(w, "state", NPY_F64, d->states, d->state, e);
    ok = ok && write_list(w, "best", NPY_I32, d->samples, d->best, e);
    if (ok && d->target)
        ok = npz_writer_array(w, "target", NPY_F32, 2, (int64_t[]){d->samples, d->target_width}, d->target, e);
    if (ok && d->class_names) ok = npz_writer_text(w, "class_names", d->class_names, d->classes, e);
    if (ok && d->panel)
        ok = npz_writer_text(w, "panel_names", d->panel_names, d->panel, e) &&
             write_list(w, "panel_first", NPY_I64, d->panel + 1, d->panel_first, e);
    return ok;
}

bool set_write(const dataset *d, const json_t *about, const char *path, err *e) {
    npz_writer w;
    if (!npz_writer_open(&w, path, e)) return false;
    bool ok = true;
    for (int i = 0; ok && i < d->streams; i++) ok = write_table(&w, d->stream[i].name, &d->stream[i].series, e);
    ok = ok && write_table(&w, NULL, &d->vector, e) && set_write_rest(&w, d, about, e);
    ok = ok && (!d->raw || write_scaler(&w, d, e)) && stop_go_on(e) && npz_writer_commit(&w, e);
    npz_writer_abandon(&w);
    return ok;
}

// Reading

typedef struct {
    npz npz;
    arena arena;
    json_t *mark;
} opened;

static void release(void *owner) {
    opened *o = owner;
    json_decref(o->mark);
    arena_done(&o->arena);
    npz_close(&o->npz);
    free(o);
}

static bool wrong(const opened *o, const char *name, const char *what, err *e) {
    return err_input(e, "%s: %s %s; make the file again with `tradewind import`", o->npz.path, name, what);
}

// An array as it lies in the file, of this type and rank. A list has `rows` items; a table any number of rows.
static const void *lying(const opened *o, const char *name, npy_type type, int rank, int64_t rows, err *e) {
    const npz_entry *n = npz_want(&o->npz, name, e);
    if (!n) return NULL;
    const npy_header *h = &n->header;
    const void *data = npz_data(&o->npz, n);
    bool shaped = n->kind == NPZ_ARRAY && h->type == type && h->rank == rank && !h->swapped && !h->fortran;
    if (!shaped || (rows >= 0 && h->dim[0] != rows)) {
        wrong(o, name, "has another type or shape than a dataset's", e);
        return NULL;
    }
    if (data && (uintptr_t)data % (size_t)h->item == 0) return data;
    wrong(o, name, "is compressed or not aligned, so that it cannot be mapped", e);
    return NULL;
}

// A list that may be missing.
static bool optional(const opened *o, const char *name, npy_type type, int64_t rows, const void **data, err *e) {
    *data = NULL;
    if (!npz_find(&o->npz, name)) return true;
    *data = lying(o, name, type, 1, rows, e);
    return *data != NULL;
}

static bool read_columns(opened *o, const char *of, table *t, err *e) {
    char name[ENTRY_MOST];
    const npz_entry *n = npz_find(&o->npz, of_table(name, of, "columns"));
    if (!n) return true;
    if (n->header.rank != 1 || n->header.count != t->width) return wrong(o, name, "does not name every column", e);
    t->columns = npz_read_text(&o->npz, n, &o->arena, e);
    return t->columns != NULL;
}

static bool read_part(const opened *o, const char *of, table *t, err *e) {
    static const column_type types[] = {COLUMN_F32, COLUMN_F16, COLUMN_I8};
    char name[ENTRY_MOST];
    const npz_entry *n = npz_want(&o->npz, part_name(name, of, t->parts), e);
    if (!n) return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (n->header.type != npy_of(types[i])) continue;
        int64_t rows = t->parts ? t->rows : -1;
        const void *data = lying(o, name, n->header.type, 2, rows, e);
        if (!data) return false;
        t->rows = n->header.dim[0];
        table_add(t, types[i], n->header.dim[1], data);
        return true;
    }
    return wrong(o, name, "is not of type f32, f16 or i8", e);
}

static bool read_table(opened *o, const char *of, int64_t parts, table *t, err *e) {
    if (parts < 0 || parts > PARTS_MOST) return wrong(o, of ? of : "vector", "has too many parts", e);
    for (int64_t k = 0; k < parts; k++)
        if (!read_part(o, of, t, e)) return false;
    return !parts || read_columns(o, of, t, e);
}

static bool read_stream(opened *o, const json_t *from, dataset *d, err *e) {
    stream *s = &d->stream[d->streams];
    char name[ENTRY_MOST];
    json_int_t window = json_integer_value(json_object_get(from, "window"));
    json_int_t span = json_integer_value(json_object_get(from, "span"));
    s->name = json_string_value(json_object_get(from, "name"));
    if (!s->name || !set_name_ok(s->name) || window < 0 || window > INT32_MAX || span < 0 || span > INT32_MAX)
        return wrong(o, set_mark, "describes a stream that cannot be, or is named target", e);
    d->span[d->streams] = span;
    d->window[d->streams++] = window;
    if (!read_table(o, s->name, json_integer_value(json_object_get(from, "parts")), &s->series, e)) return false;
    s->row = lying(o, of_table(name, s->name, "row"), NPY_I32, 1, dataset_all(d), e);
    if (s->row) s->first = lying(o, of_table(name, s->name, "first"), NPY_I32, 1, dataset_all(d), e);
    return s->row && s->first;
}

// An array of so many columns.
static const void *columns_of(const opened *o, const char *name, npy_type type, int64_t rows, int64_t columns, err *e) {
    const void *data = lying(o, name, type, 2, rows, e);
    if (!data || npz_find(&o->npz, name)->header.dim[1] == columns) return data;
    wrong(o, name, "has another type or shape than a dataset's", e);
    return NULL;
}

// The bars of a stream, where they were kept; after the series are known.
static bool read_bars(const opened *o, dataset *d, stream *s, err *e) {
    char name[ENTRY_MOST];
    bar_table *b = &s->bars;
    int64_t starts = dataset_series(d) + 1;
    const npz_entry *n = npz_find(&o->npz, of_table(name, s->name, "bar_time"));
    if (!n) return true;
    b->count = n->header.rank == 2 ? n->header.dim[0] : -1;
    if (b->count == 0) return wrong(o, name, "has no bars", e);
    b->time = columns_of(o, name, NPY_I64, b->count, 2, e);
    if (b->time) b->price = columns_of(o, of_table(name, s->name, "bar"), NPY_F64, b->count, 6, e);
    if (b->price) b->start = lying(o, of_table(name, s->name, "bar_start"), NPY_I64, 1, starts, e);
    if (b->start) s->start = lying(o, of_table(name, s->name, "start"), NPY_I64, 1, starts, e);
    return s->start != NULL;
}

// Bars, volatility and state.
static bool read_past(const opened *o, dataset *d, err *e) {
    const void *p = NULL;
    bool ok = true;
    for (int i = 0; ok && i < d->streams; i++) ok = read_bars(o, d, &d->stream[i], e);
    ok = ok && optional(o, "volatility", NPY_F64, d->streams ? d->stream[0].bars.count : 0, &p, e);
    d->volatility = p;
    const npz_entry *state = ok ? npz_find(&o->npz, "state") : NULL;
    if (!state) return ok;
    d->states = state->header.rank == 1 ? state->header.dim[0] : -1;
    d->state = lying(o, "state", NPY_F64, 1, d->states, e);
    return d->state != NULL;
}

static bool read_streams(opened *o, dataset *d, err *e) {
    const json_t *all = json_object_get(o->mark, "streams");
    if (!json_is_array(all) || json_array_size(all) > STREAMS_MOST)
        return wrong(o, set_mark, "does not list its streams", e);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!read_stream(o, json_array_get(all, i), d, e)) return false;
    return read_table(o, NULL, json_integer_value(json_object_get(o->mark, "vector_parts")), &d->vector, e);
}

static bool read_classes(opened *o, dataset *d, err *e) {
    json_int_t classes = json_integer_value(json_object_get(o->mark, "classes"));
    const npz_entry *names = npz_find(&o->npz, "class_names");
    if (classes < 0 || classes > SET_CLASSES_MOST || (classes == 1))
        return wrong(o, set_mark, "has a number of classes that cannot be", e);
    d->classes = (int)classes;
    if (!names) return true;
    if (names->header.rank != 1 || names->header.count != classes)
        return wrong(o, "class_names", "does not name every class", e);
    d->class_names = npz_read_text(&o->npz, names, &o->arena, e);
    return d->class_names != NULL;
}

static bool read_lists(opened *o, dataset *d, err *e) {
    const void *p = NULL;
    bool ok = optional(o, "label", NPY_I32, d->samples, &p, e);
    d->label = p;
    ok = ok && optional(o, "best", NPY_I32, d->samples, &p, e);
    d->best = p;
    ok = ok && optional(o, "time", NPY_I64, dataset_all(d), &p, e);
    d->time = p;
    ok = ok && optional(o, "end", NPY_I64, d->samples, &p, e);
    d->end = p;
    ok = ok && optional(o, "price", NPY_F32, dataset_all(d), &p, e);
    d->price = p;
    if (!ok || !npz_find(&o->npz, "target")) return ok;
    d->target = lying(o, "target", NPY_F32, 2, d->samples, e);
    if (d->target) d->target_width = npz_find(&o->npz, "target")->header.dim[1];
    return d->target != NULL;
}

static bool read_panel(opened *o, dataset *d, err *e) {
    const npz_entry *names = npz_find(&o->npz, "panel_names");
    d->held = json_integer_value(json_object_get(o->mark, "held_out"));
    if (!names) return true;
    if (names->header.rank != 1) return wrong(o, "panel_names", "is no list", e);
    d->panel = names->header.count;
    d->panel_names = npz_read_text(&o->npz, names, &o->arena, e);
    if (d->panel_names) d->panel_first = lying(o, "panel_first", NPY_I64, 1, d->panel + 1, e);
    return d->panel_first != NULL;
}

// How many samples there are: labels or targets have one row each.
static int64_t count_samples(const opened *o) {
    const npz_entry *n = npz_find(&o->npz, "label");
    if (!n) n = npz_find(&o->npz, "target");
    return n && n->header.rank > 0 ? n->header.dim[0] : 0;
}

static bool read_mark(opened *o, err *e) {
    const npz_entry *n = npz_find(&o->npz, set_mark);
    if (!n || n->kind != NPZ_TEXT || n->header.count != 1)
        return err_input(
            e, "%s: is not a dataset; make one of it with `tradewind import %s -o SET.npz`", o->npz.path, o->npz.path);
    const char *const *text = npz_read_text(&o->npz, n, &o->arena, e);
    err why;
    if (!text) return false;
    o->mark = json_read(text[0], strlen(text[0]), &why);
    json_int_t version = json_integer_value(json_object_get(o->mark, "version"));
    if (version < 1) return wrong(o, set_mark, "is not a dataset's description", e);
    return format_known(o->npz.path, version, SET_VERSION, e);
}

static dataset *read_set(opened *o, err *e) {
    if (!read_mark(o, e)) {
        release(o);
        return NULL;
    }
    dataset *d = dataset_new_of(o, release, e);
    if (!d) return NULL;
    d->name = arena_text(&o->arena, o->npz.path);
    d->samples = count_samples(o);
    d->sum = npz_sum(&o->npz);
    d->arrays = &o->npz;
    d->raw = json_is_true(json_object_get(o->mark, "raw"));
    d->about = json_incref(json_object_get(o->mark, "about"));
    d->horizon = json_integer_value(json_object_get(o->mark, "horizon"));
    d->unlabelled = json_integer_value(json_object_get(o->mark, "unlabelled"));
    bool ok = d->horizon >= 0 && d->horizon <= INT32_MAX && d->unlabelled >= 0 && d->unlabelled <= INT32_MAX;
    if (!ok) wrong(o, set_mark, "has a horizon or unlabelled samples that cannot be", e);
    ok = ok && read_streams(o, d, e) && read_classes(o, d, e) && read_lists(o, d, e) && read_panel(o, d, e) &&
         read_past(o, d, e);
    if (ok && dataset_check(d, o->npz.path, e)) return d;
    dataset_free(d);
    return NULL;
}

static opened *opened_new(err *e) {
    opened *o = calloc(1, sizeof *o);
    if (!o) err_run(e, "out of memory for a dataset");
    if (o) arena_init(&o->arena);
    return o;
}

dataset *set_open(const char *path, err *e) {
    opened *o = opened_new(e);
    if (o && npz_open(&o->npz, path, e)) return read_set(o, e);
    if (o) release(o);
    return NULL;
}

dataset *set_open_memory(const char *path, const void *data, size_t bytes, err *e) {
    opened *o = opened_new(e);
    if (o && npz_open_memory(&o->npz, path, data, bytes, e)) return read_set(o, e);
    if (o) release(o);
    return NULL;
}
