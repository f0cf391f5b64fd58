#include "data/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    STAGE = 1 << 16,        // bytes of a stream's buffers
    HELD_MOST = 256 << 20,  // of an array that must be in memory to be put in order
    TEXT_MOST = 16 << 20,   // of strings that are packed into a smaller file
    STRINGS_MOST = 1 << 20, // and how many
};

// Listing

// Reads the array header that a member begins with: where it lies if stored, otherwise unpacked into `buffer`.
static bool read_head(npz *z, const zip_member *m, unsigned char *buffer, const char *name, npy_header *h, err *e) {
    if (!m->deflated) {
        uint64_t n = m->size < NPY_HEAD_MOST ? m->size : NPY_HEAD_MOST;
        return npy_parse(h, &z->arena, z->zip.bytes + m->data, (int64_t)n, name, e);
    }
    int64_t first = m->size < 12 ? (int64_t)m->size : 12, head = -1;
    zip_stream *s = zip_stream_open(&z->zip, m, e);
    bool ok = s && zip_stream_read(s, buffer, (uint64_t)first, e);
    if (ok) head = npy_head_bytes(buffer, first, name, e);
    ok = ok && head >= 0;
    if (ok && (uint64_t)head > m->size) ok = err_input(e, "%s: its array header is cut off", name);
    ok = ok && (head <= first || zip_stream_read(s, buffer + first, (uint64_t)(head - first), e));
    zip_stream_close(s);
    return ok && npy_parse(h, &z->arena, buffer, head, name, e);
}

static npz_kind kind_of(npy_type t) {
    switch (t) {
    case NPY_TEXT:
    case NPY_BYTES: return NPZ_TEXT;
    case NPY_RECORD: return NPZ_RECORDS;
    case NPY_OBJECT: return NPZ_PICKLE;
    case NPY_OTHER: return NPZ_OTHER;
    default: return NPZ_ARRAY;
    }
}

// A member as an entry. Its header must account for every byte of it, where the element's size is known.
static bool list_entry(npz *z, const zip_member *m, bool array, unsigned char *buffer, npz_entry *n, err *e) {
    *n = (npz_entry){.name = m->name, .kind = NPZ_OTHER, .member = m};
    size_t length = strlen(m->name);
    if (length > 4 && !strcmp(m->name + length - 4, ".npy")) {
        n->name = arena_format(&z->arena, "%.*s", (int)length - 4, m->name);
        array = true;
    }
    if (!array || m->refused) return true;
    const char *name = arena_format(&z->arena, "%s: %s", z->path, n->name);
    if (!read_head(z, m, buffer, name, &n->header, e)) return false;
    n->kind = kind_of(n->header.type);
    const npy_header *h = &n->header;
    if (h->bytes >= 0 && (uint64_t)h->bytes != m->size - (uint64_t)h->head)
        return err_input(e, "%s: has %" PRIu64 " bytes of data where its header says %" PRId64 "; save it again", name,
            m->size - (uint64_t)h->head, h->bytes);
    return true;
}

// The name of a single array: the file's, without directory and ending.
static const char *stem(arena *a, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    int length = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
    return length ? arena_format(a, "%.*s", length, base) : "arr";
}

static bool list_all(npz *z, bool single, err *e) {
    npz_entry *entry = arena_array(&z->arena, (size_t)z->zip.members, sizeof *entry);
    unsigned char *buffer = arena_take(&z->arena, NPY_HEAD_MOST);
    for (int64_t i = 0; i < z->zip.members; i++)
        if (!list_entry(z, &z->zip.member[i], single, buffer, &entry[i], e)) return false;
    z->entry = entry;
    z->entries = z->zip.members;
    // "x" and "x.npy" are two members of one name.
    for (int64_t i = 0; i < z->entries; i++)
        if (npz_find(z, entry[i].name) != &entry[i])
            return err_input(e, "%s: has two members named %s; save it again", z->path, entry[i].name);
    return true;
}

static bool list(npz *z, const unsigned char *p, size_t bytes, err *e) {
    if (bytes >= 6 && !memcmp(p, "\x93NUMPY", 6)) {
        zip_wrap(&z->zip, &z->arena, z->path, stem(&z->arena, z->path), p, bytes);
        return list_all(z, true, e);
    }
    if (bytes >= 4 && (!memcmp(p, "PK\3\4", 4) || !memcmp(p, "PK\5\6", 4) || !memcmp(p, "PK\7\10", 4)))
        return zip_open(&z->zip, &z->arena, z->path, p, bytes, e) && list_all(z, false, e);
    if (bytes >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
        return err_input(e, "%s: is a pickle, which is never loaded; save the arrays with numpy.savez", z->path);
    return err_input(e, "%s: is neither an .npz nor an .npy file; bars and series are to be imported first", z->path);
}

bool npz_open_memory(npz *z, const char *path, const void *data, size_t bytes, err *e) {
    *z = (npz){0};
    arena_init(&z->arena);
    z->path = arena_text(&z->arena, path);
    bool ok = list(z, data, bytes, e);
    if (!ok) npz_close(z);
    return ok;
}

bool npz_open(npz *z, const char *path, err *e) {
    *z = (npz){0};
    file_map map;
    if (!file_map_open(&map, path, e)) return false;
    bool ok = npz_open_memory(z, path, map.data, map.size, e);
    if (ok)
        z->map = map;
    else
        file_map_close(&map);
    return ok;
}

void npz_close(npz *z) {
    file_map_close(&z->map);
    arena_done(&z->arena);
    *z = (npz){0};
}

uint32_t npz_sum(const npz *z) {
    uLong sum = crc32(0, NULL, 0);
    for (int64_t i = 0; i < z->zip.members; i++) {
        const uint64_t m[] = {z->zip.member[i].crc, z->zip.member[i].size};
        sum = crc32_z(sum, (const unsigned char *)m, sizeof m);
    }
    return (uint32_t)sum;
}

const npz_entry *npz_find(const npz *z, const char *name) {
    for (int64_t i = 0; i < z->entries; i++)
        if (!strcmp(z->entry[i].name, name)) return &z->entry[i];
    return NULL;
}

// The names of what can be read, as many as fit.
static void name_entries(const npz *z, char *out, size_t room) {
    size_t used = 0;
    out[0] = 0;
    for (int64_t i = 0; i < z->entries; i++) {
        if (z->entry[i].kind >= NPZ_PICKLE) continue;
        int n = snprintf(out + used, room - used, "%s%s", used ? ", " : "", z->entry[i].name);
        if (n < 0 || (size_t)n >= room - used) {
            memcpy(out + (used < room - 4 ? used : room - 4), "...", 4);
            return;
        }
        used += (size_t)n;
    }
}

static bool check_readable(const npz *z, const npz_entry *n, err *e) {
    if (n->member->refused)
        return err_input(e, "%s: %s is %s; save it with numpy.savez", z->path, n->name, n->member->refused);
    if (n->kind == NPZ_PICKLE)
        return err_input(e,
            "%s: %s is a pickle (an array of objects), which is never loaded; save it as numbers or as str", z->path,
            n->name);
    if (n->kind == NPZ_OTHER)
        return err_input(
            e, "%s: %s is not an array of numbers, strings or plain records; save it as one", z->path, n->name);
    return true;
}

const npz_entry *npz_want(const npz *z, const char *name, err *e) {
    const npz_entry *n = npz_find(z, name);
    if (n) return check_readable(z, n, e) ? n : NULL;
    char names[512];
    name_entries(z, names, sizeof names);
    err_input(e, "%s: has no array %s; it has %s", z->path, name, *names ? names : "none");
    return NULL;
}

const void *npz_data(const npz *z, const npz_entry *n) {
    bool plain = n->kind <= NPZ_RECORDS && !n->member->deflated;
    return plain ? z->zip.bytes + n->member->data + n->header.head : NULL;
}

// Streams

struct npz_stream {
    const npz *npz;
    const npz_entry *entry;
    zip_stream *zip;
    npy_field value;              // what an element is within an item
    int64_t item;                 // bytes of an item: the element, or the record that it is in
    int64_t at;                   // elements read
    unsigned char *stage, *items; // STAGE bytes each: elements side by side, and the records that they come from
    // Fortran order: all the data, where in it the next element is, and its index.
    const unsigned char *whole;
    unsigned char *held;
    int64_t offset, index[NPY_RANK_MOST];
};

// Which field of the records is meant; an array's elements are their own.
static bool choose_value(npz_stream *s, const char *field, err *e) {
    const npz_entry *n = s->entry;
    const npy_header *h = &n->header;
    char names[512] = "";
    s->value = (npy_field){.name = n->name, .type = h->type, .swapped = h->swapped, .item = h->item};
    s->item = h->item;
    if (n->kind != NPZ_RECORDS)
        return !field || err_input(e, "%s: %s has no fields, so no %s", s->npz->path, n->name, field);
    for (int i = 0; i < h->fields; i++) {
        if (field && !strcmp(h->field[i].name, field)) {
            s->value = h->field[i];
            return true;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", h->field[i].name);
    }
    if (field) return err_input(e, "%s: %s has no field %s; it has %s", s->npz->path, n->name, field, names);
    return err_input(e, "%s: %s holds records; name one of the fields %s", s->npz->path, n->name, names);
}

// Reads the data once from end to end, into `out` or, where that is NULL, only to check it.
static bool drain(npz_stream *s, unsigned char *out, err *e) {
    for (uint64_t left; (left = zip_stream_left(s->zip));) {
        uint64_t n = out ? left : left < STAGE ? left : STAGE;
        if (!zip_stream_read(s->zip, out ? out : s->stage, n, e)) return false;
    }
    return true;
}

static bool hold_whole(npz_stream *s, err *e) {
    const npy_header *h = &s->entry->header;
    s->whole = npz_data(s->npz, s->entry);
    if (s->whole) return drain(s, NULL, e);
    if (h->bytes > HELD_MOST)
        return err_input(e,
            "%s: %s is compressed in Fortran order and too large to put in order; save it through "
            "numpy.ascontiguousarray, or with numpy.savez",
            s->npz->path, s->entry->name);
    s->whole = s->held = malloc((size_t)h->bytes);
    if (!s->held)
        return err_run(e, "%s: no memory for the %" PRId64 " bytes of %s", s->npz->path, h->bytes, s->entry->name);
    return drain(s, s->held, e);
}

static bool start(npz_stream *s, const char *field, err *e) {
    const npz_entry *n = s->entry;
    if (!check_readable(s->npz, n, e) || !choose_value(s, field, e)) return false;
    if (!npy_type_bytes(s->value.type))
        return err_input(e, "%s: %s is no number but %s", s->npz->path, s->value.name, npy_type_name(s->value.type));
    s->stage = malloc(2 * STAGE);
    if (!s->stage) return err_run(e, "%s: no memory to read %s", s->npz->path, n->name);
    s->items = s->stage + STAGE;
    s->zip = zip_stream_open(&s->npz->zip, n->member, e);
    if (!s->zip) return false;
    // The header was read when the file was listed; it is passed again for the CRC-32.
    for (int64_t left = n->header.head; left;) {
        int64_t step = left < STAGE ? left : STAGE;
        if (!zip_stream_read(s->zip, s->stage, (uint64_t)step, e)) return false;
        left -= step;
    }
    return !n->header.fortran || hold_whole(s, e);
}

npz_stream *npz_stream_open(const npz *z, const npz_entry *n, const char *field, err *e) {
    npz_stream *s = calloc(1, sizeof *s);
    if (!s) {
        err_run(e, "%s: no memory to read %s", z->path, n->name);
        return NULL;
    }
    s->npz = z;
    s->entry = n;
    if (start(s, field, e)) return s;
    npz_stream_close(s);
    return NULL;
}

void npz_stream_close(npz_stream *s) {
    if (!s) return;
    zip_stream_close(s->zip);
    free(s->stage);
    free(s->held);
    free(s);
}

int64_t npz_stream_left(const npz_stream *s) {
    return s->entry->header.count - s->at;
}

// Picks `count` elements of the whole in C order.
static void pick_fortran(npz_stream *s, unsigned char *out, int64_t count) {
    const npy_header *h = &s->entry->header;
    int64_t size = s->value.item;
    for (int64_t i = 0; i < count; i++) {
        memcpy(out + i * size, s->whole + s->offset * s->item + s->value.offset, (size_t)size);
        // The next index in C order: the last one runs fastest, and it has the widest stride.
        int64_t stride = h->count;
        for (int d = h->rank - 1; d >= 0; d--) {
            stride /= h->dim[d];
            s->offset += stride;
            if (++s->index[d] < h->dim[d]) break;
            s->offset -= stride * h->dim[d];
            s->index[d] = 0;
        }
    }
}

// The next `count` elements side by side, as they are in the file; they fit the stage.
static bool next_elements(npz_stream *s, unsigned char *out, int64_t count, err *e) {
    int64_t size = s->value.item;
    if (s->whole) {
        pick_fortran(s, out, count);
        return true;
    }
    if (s->item == size) return zip_stream_read(s->zip, out, (uint64_t)(count * size), e);
    if (!zip_stream_read(s->zip, s->items, (uint64_t)(count * s->item), e)) return false;
    for (int64_t i = 0; i < count; i++) memcpy(out + i * size, s->items + i * s->item + s->value.offset, (size_t)size);
    return true;
}

bool npz_stream_read(npz_stream *s, npy_type to, void *out, int64_t count, err *e) {
    const npy_field *v = &s->value;
    CHECK(count >= 0 && count <= npz_stream_left(s), "%" PRId64 " elements wanted of %s", count, s->entry->name);
    CHECK(npy_converts(v->type, to), "%s read as %s", npy_type_name(v->type), npy_type_name(to));
    if (v->type == to && !v->swapped && s->item == v->item && !s->whole) {
        s->at += count;
        return zip_stream_read(s->zip, out, (uint64_t)(count * s->item), e);
    }
    int64_t most = STAGE / s->item;
    for (int64_t done = 0, n; done < count; done += n) {
        n = count - done < most ? count - done : most;
        if (!next_elements(s, s->stage, n, e)) return false;
        int64_t fit = npy_convert(v->type, v->swapped, s->stage, to, (char *)out + done * npy_type_bytes(to), n);
        if (fit < n)
            return err_input(e, "%s: element %" PRId64 " of %s is not a whole number that fits %s", s->npz->path,
                s->at + fit, v->name, npy_type_name(to));
        s->at += n;
    }
    return true;
}

bool npz_read(const npz *z, const npz_entry *n, const char *field, npy_type to, void *out, err *e) {
    npz_stream *s = npz_stream_open(z, n, field, e);
    bool ok = s && npz_stream_read(s, to, out, n->header.count, e);
    npz_stream_close(s);
    return ok;
}

// Strings

// One string of `item` bytes, without the NULs behind it, as UTF-8 in `out`, where a character takes 4 bytes at most.
static bool decode(const unsigned char *p, const npy_header *h, char *out) {
    int64_t step = h->type == NPY_TEXT ? 4 : 1, length = h->item / step, used = 0;
    for (int64_t i = 0; i < length; i++) {
        const unsigned char *q = p + i * step;
        uint32_t c = q[0];
        if (step == 4) npy_convert(NPY_U32, h->swapped, q, NPY_U32, &c, 1);
        int n = npy_utf8_put(c, out + used);
        if (!n) return false;
        used += n;
    }
    while (used && !out[used - 1]) used--;
    out[used] = 0;
    return (int64_t)strlen(out) == used;
}

// The strings one after the other, so that memory is taken for what they are, not for the longest as often.
static const char *const *decode_all(const npz *z, const npz_entry *n, zip_stream *s, arena *a, err *e) {
    const npy_header *h = &n->header;
    const char **text = arena_array(a, (size_t)h->count, sizeof *text);
    int64_t item = h->count ? h->item : 0; // a list of none may claim any size for it
    unsigned char *data = malloc((size_t)(item > h->head ? item : h->head) + 1);
    char *out = malloc((size_t)(h->type == NPY_TEXT ? item : 4 * item) + 1);
    bool ok = (data && out) || err_run(e, "%s: no memory to read %s", z->path, n->name);
    ok = ok && zip_stream_read(s, data, (uint64_t)h->head, e);
    for (int64_t i = 0; ok && i < h->count; i++) {
        ok = !item || zip_stream_read(s, data, (uint64_t)item, e);
        if (ok && !decode(data, h, out))
            ok = err_input(e, "%s: string %" PRId64 " of %s is not text", z->path, i, n->name);
        if (ok) text[i] = arena_text(a, out);
    }
    free(data);
    free(out);
    return ok ? text : NULL;
}

const char *const *npz_read_text(const npz *z, const npz_entry *n, arena *a, err *e) {
    const npy_header *h = &n->header;
    bool ok = check_readable(z, n, e);
    if (ok && (n->kind != NPZ_TEXT || h->fortran)) ok = err_input(e, "%s: %s is no list of strings", z->path, n->name);
    if (ok && ((h->bytes > TEXT_MOST && (uint64_t)h->bytes > z->zip.size) || h->count > STRINGS_MOST))
        ok = err_input(e, "%s: %s holds more text than a list of names", z->path, n->name);
    zip_stream *s = ok ? zip_stream_open(&z->zip, n->member, e) : NULL;
    const char *const *text = s ? decode_all(z, n, s, a, e) : NULL;
    zip_stream_close(s);
    return text;
}

// Writing

bool npz_writer_open(npz_writer *w, const char *path, err *e) {
    *w = (npz_writer){0};
    return zip_writer_open(&w->zip, path, e);
}

static bool begin(npz_writer *w, const char *name, err *e) {
    unsigned char head[NPY_WRITE_MOST];
    char file[ZIP_NAME_MOST + 1];
    npy_header *h = &w->header;
    w->written = 0;
    w->row = h->item;
    h->count = h->rank ? h->dim[0] : 1;
    bool fits = h->count >= 0;
    for (int i = 1; i < h->rank; i++)
        fits = fits && h->dim[i] >= 0 && !__builtin_mul_overflow(w->row, h->dim[i], &w->row);
    fits = fits && !__builtin_mul_overflow(w->row, h->count, &h->bytes);
    CHECK(fits, "%s: the size of the array overflows", name);
    CHECK(strlen(name) + 4 <= ZIP_NAME_MOST, "an array's name of %zu bytes", strlen(name));
    snprintf(file, sizeof file, "%s.npy", name);
    return zip_writer_begin(&w->zip, file, (uint64_t)npy_format(h, head), e);
}

bool npz_writer_begin(npz_writer *w, const char *name, npy_type type, int rank, const int64_t *dim, err *e) {
    CHECK(rank >= 0 && rank <= NPY_RANK_MOST, "%s: an array of rank %d", name, rank);
    w->grows = rank && dim[0] < 0;
    w->header = (npy_header){.type = type, .rank = rank, .item = npy_type_bytes(type)};
    for (int i = 0; i < rank; i++) w->header.dim[i] = dim[i];
    if (w->grows) w->header.dim[0] = 0;
    return begin(w, name, e);
}

bool npz_writer_write(npz_writer *w, const void *data, size_t bytes, err *e) {
    CHECK(w->grows || bytes <= (uint64_t)(w->header.bytes - w->written), "more bytes than the array has");
    w->written += (int64_t)bytes;
    return zip_writer_write(&w->zip, data, bytes, e);
}

bool npz_writer_end(npz_writer *w, err *e) {
    unsigned char head[NPY_WRITE_MOST];
    if (w->grows) {
        CHECK(w->row ? w->written % w->row == 0 : !w->written, "an array ends within a row");
        w->header.dim[0] = w->row ? w->written / w->row : 0;
    } else {
        CHECK(w->written == w->header.bytes, "an array of %" PRId64 " bytes ends after %" PRId64, w->header.bytes,
            w->written);
    }
    npy_format(&w->header, head);
    return zip_writer_end(&w->zip, head, e);
}

bool npz_writer_array(
    npz_writer *w, const char *name, npy_type type, int rank, const int64_t *dim, const void *data, err *e) {
    CHECK(!rank || dim[0] >= 0, "%s: a whole array has a size", name);
    return npz_writer_begin(w, name, type, rank, dim, e) && npz_writer_write(w, data, (size_t)w->header.bytes, e) &&
           npz_writer_end(w, e);
}

// Characters of a string; -1 where it is not UTF-8.
static int64_t characters(const char *text) {
    int64_t left = (int64_t)strlen(text), n = 0;
    for (uint32_t c; left; n++) {
        int length = npy_utf8_get((const unsigned char *)text, left, &c);
        if (!length) return -1;
        text += length;
        left -= length;
    }
    return n;
}

// One string as `most` characters of 4 bytes, the rest zero.
static bool write_string(npz_writer *w, const char *text, int64_t most, err *e) {
    uint32_t c = 0;
    int64_t left = (int64_t)strlen(text);
    for (int64_t i = 0; i < most; i++) {
        int length = npy_utf8_get((const unsigned char *)text, left, &c);
        if (!length) c = 0;
        text += length;
        left -= length;
        if (!npz_writer_write(w, &c, sizeof c, e)) return false;
    }
    return true;
}

bool npz_writer_text(npz_writer *w, const char *name, const char *const *text, int64_t count, err *e) {
    int64_t most = 1;
    if (count > STRINGS_MOST)
        return err_input(
            e, "%s: has %" PRId64 " names and a file holds %d at most; leave some out", name, count, STRINGS_MOST);
    for (int64_t i = 0; i < count; i++) {
        int64_t n = characters(text[i]);
        if (n < 0) return err_input(e, "%s: string %" PRId64 " is not UTF-8; save the file as UTF-8", name, i);
        most = n > most ? n : most;
    }
    w->grows = false;
    w->header = (npy_header){.type = NPY_TEXT, .rank = 1, .dim = {count}, .item = 4 * most};
    if (!begin(w, name, e)) return false;
    for (int64_t i = 0; i < count; i++)
        if (!write_string(w, text[i], most, e)) return false;
    return npz_writer_end(w, e);
}

bool npz_writer_commit(npz_writer *w, err *e) {
    return zip_writer_commit(&w->zip, e);
}

void npz_writer_abandon(npz_writer *w) {
    zip_writer_abandon(&w->zip);
}
