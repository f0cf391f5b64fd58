#include "run/safetensors.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_MOST = 100000000 };

static const struct {
    const char *name;
    size_t bytes;
} types[] = {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I8", 1}, {"I32", 4}, {"I64", 8}, {"U8", 1}};
enum { TYPES = sizeof types / sizeof *types };

struct safetensors {
    file_map file;
    arena arena;
    json_t *header;
    int count;
    safetensors_entry *entry; // by rising offset
};

// Reading

static bool read_type(const json_t *v, safetensors_type *type) {
    const char *name = json_string_value(v);
    for (int i = 0; name && i < TYPES; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        *type = (safetensors_type)i;
        return true;
    }
    return false;
}

static bool read_shape(const json_t *v, safetensors_entry *t, size_t *bytes) {
    if (!json_is_array(v) || json_array_size(v) > SAFETENSORS_RANK_MOST) return false;
    t->rank = (int)json_array_size(v);
    *bytes = types[t->type].bytes;
    for (int i = 0; i < t->rank; i++) {
        const json_t *d = json_array_get(v, (size_t)i);
        json_int_t n = json_integer_value(d);
        if (!json_is_integer(d) || n < 0) return false;
        if (n > 0 && *bytes > SIZE_MAX / 2 / (size_t)n) return false;
        *bytes *= (size_t)n;
        t->dim[i] = n;
    }
    return true;
}

static bool read_entry(const json_t *v, const unsigned char *data, size_t room, safetensors_entry *t) {
    const json_t *offsets = json_object_get(v, "data_offsets");
    size_t bytes;
    if (!json_is_object(v) || !read_type(json_object_get(v, "dtype"), &t->type)) return false;
    if (!read_shape(json_object_get(v, "shape"), t, &bytes)) return false;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2) return false;
    const json_t *b = json_array_get(offsets, 0), *n = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(b), end = json_integer_value(n);
    if (!json_is_integer(b) || !json_is_integer(n) || begin < 0 || end < begin || (uint64_t)end > room) return false;
    if ((size_t)(end - begin) != bytes) return false;
    t->data = data + begin;
    t->bytes = bytes;
    return true;
}

static int by_offset(const void *a, const void *b) {
    const safetensors_entry *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static bool metadata_ok(json_t *meta) {
    const char *key;
    json_t *v;
    if (!json_is_object(meta)) return false;
    json_object_foreach(meta, key, v) {
        if (!json_is_string(v)) return false;
    }
    return true;
}

static bool read_entries(safetensors *s, const char *path, const unsigned char *data, size_t room, err *e) {
    const char *name;
    json_t *v;
    s->entry = arena_array(&s->arena, json_object_size(s->header), sizeof *s->entry);
    json_object_foreach(s->header, name, v) {
        if (strcmp(name, "__metadata__") == 0) {
            if (!metadata_ok(v)) return err_input(e, "%s: __metadata__ must map texts to texts", path);
            continue;
        }
        safetensors_entry *t = &s->entry[s->count++];
        t->name = name;
        if (!read_entry(v, data, room, t)) {
            err_input(e, "%s: tensor %.200s is described wrongly; the file is damaged or of another kind", path, name);
            if (e) term_one_line(e->text);
            return false;
        }
    }
    qsort(s->entry, (size_t)s->count, sizeof *s->entry, by_offset);
    const unsigned char *at = data;
    for (int i = 0; i < s->count; i++) {
        if (s->entry[i].data != at)
            return err_input(e, "%s: tensors leave a hole or overlap; the file is damaged", path);
        at += s->entry[i].bytes;
    }
    if (at != data + room) return err_input(e, "%s: bytes after the last tensor; the file is damaged", path);
    return true;
}

static bool read_header(safetensors *s, const char *path, err *e) {
    uint64_t length = 0;
    if (s->file.size < 8) return err_input(e, "%s: too short for a safetensors file", path);
    for (int i = 7; i >= 0; i--) length = length << 8 | s->file.data[i];
    if (length > HEADER_MOST || length > s->file.size - 8)
        return err_input(e, "%s: not a safetensors file, or cut short", path);
    err inner;
    s->header = json_read((const char *)s->file.data + 8, (size_t)length, &inner);
    if (!s->header) return err_input(e, "%s: header: %.900s", path, inner.text);
    if (!json_is_object(s->header)) return err_input(e, "%s: the header is not an object", path);
    return read_entries(s, path, s->file.data + 8 + length, s->file.size - 8 - (size_t)length, e);
}

safetensors *safetensors_open(const char *path, err *e) {
    safetensors *s = calloc(1, sizeof *s);
    if (!s) {
        err_run(e, "%s: out of memory", path);
        return NULL;
    }
    arena_init(&s->arena);
    if (file_map_open(&s->file, path, e) && read_header(s, path, e)) return s;
    safetensors_close(s);
    return NULL;
}

void safetensors_close(safetensors *s) {
    if (!s) return;
    json_decref(s->header);
    file_map_close(&s->file);
    arena_done(&s->arena);
    free(s);
}

int safetensors_count(const safetensors *s) {
    return s->count;
}

const safetensors_entry *safetensors_at(const safetensors *s, int i) {
    CHECK(i >= 0 && i < s->count, "entry %d of %d", i, s->count);
    return &s->entry[i];
}

const safetensors_entry *safetensors_find(const safetensors *s, const char *name) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->entry[i].name, name) == 0) return &s->entry[i];
    return NULL;
}

const char *safetensors_metadata(const safetensors *s, const char *key) {
    return json_string_value(json_object_get(json_object_get(s->header, "__metadata__"), key));
}

int safetensors_notes(const safetensors *s) {
    return (int)json_object_size(json_object_get(s->header, "__metadata__"));
}

safetensors_note safetensors_note_at(const safetensors *s, int i) {
    json_t *meta = json_object_get(s->header, "__metadata__");
    void *at = json_object_iter(meta);
    for (; at && i > 0; i--) at = json_object_iter_next(meta, at);
    CHECK(at, "a note beyond the last");
    return (safetensors_note){json_object_iter_key(at), json_string_value(json_object_iter_value(at))};
}

// Writing

static json_t *describe(const safetensors_entry *t, size_t begin) {
    json_t *dims = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(dims, json_integer(t->dim[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[t->type].name, "shape", dims, "data_offsets",
        (json_int_t)begin, (json_int_t)(begin + t->bytes));
}

static char *header_text(const safetensors_entry *entries, int count, const safetensors_note *notes, int note_count) {
    json_t *header = json_object(), *meta = json_object();
    for (int i = 0; i < note_count; i++) json_object_set_new(meta, notes[i].key, json_string(notes[i].value));
    if (note_count) json_object_set(header, "__metadata__", meta);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        json_object_set_new(header, entries[i].name, describe(&entries[i], at));
        at += entries[i].bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(meta);
    json_decref(header);
    return text;
}

// The header is padded with spaces so that the data starts at a multiple of 64.
static bool write_all(file_writer *w, const char *text, const safetensors_entry *entries, int count, err *e) {
    static const char spaces[64] = "                                                                ";
    size_t length = strlen(text), pad = (64 - (8 + length) % 64) % 64;
    uint64_t total = length + pad;
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(total >> (8 * i));
    if (!file_writer_write(w, prefix, 8, e) || !file_writer_write(w, text, length, e)) return false;
    if (!file_writer_write(w, spaces, pad, e)) return false;
    for (int i = 0; i < count; i++)
        if (!file_writer_write(w, entries[i].data, entries[i].bytes, e)) return false;
    return true;
}

bool safetensors_write(const char *path, const safetensors_entry *entries, int count, const safetensors_note *notes,
    int note_count, err *e) {
    file_writer w;
    char *text = header_text(entries, count, notes, note_count);
    if (!text) return err_run(e, "%s: out of memory", path);
    bool ok = file_writer_open(&w, path, e) && write_all(&w, text, entries, count, e) && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    free(text);
    return ok;
}
