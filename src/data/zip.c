#include "data/zip.h"

#include "data/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,

    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,

    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1 << 0, // flags
    DESCRIBED = 1 << 3, // sizes and CRC-32 follow the data
    PATCHED = 1 << 5,
    UTF8 = 1 << 11,

    EXTRA64 = 0x0001,
    EXTRA_ALIGN = 0xd935, // padding that puts the data at a multiple of its first two bytes
};

static const uint32_t FULL32 = 0xffffffff; // "see the zip64 field"
static const uint16_t FULL16 = 0xffff;

// No more comes out of a byte that is deflated.
static const uint64_t RATIO_MOST = 1032;

// The most that is handed to zlib at once.
static const uint64_t PIECE = 1 << 30;

static uint64_t get(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static uint16_t get16(const unsigned char *p) {
    return (uint16_t)get(p, 2);
}

static uint32_t get32(const unsigned char *p) {
    return (uint32_t)get(p, 4);
}

static uint64_t get64(const unsigned char *p) {
    return get(p, 8);
}

// Reading

// Where the directory lies, as the end of the archive tells it.
typedef struct {
    uint64_t members, bytes, at;
    uint64_t end; // where the record begins that tells it
} directory;

static bool damaged(const zip *z, const char *what, err *e) {
    return err_input(e, "%s: the archive is damaged: %s; was it copied whole?", z->path, what);
}

// The end record: the last one whose comment reaches exactly to the end of the file.
static bool find_end(const zip *z, uint64_t *at, err *e) {
    if (z->size >= END_BYTES) {
        uint64_t least = z->size > END_BYTES + FULL16 ? z->size - END_BYTES - FULL16 : 0;
        for (uint64_t i = z->size - END_BYTES;; i--) {
            const unsigned char *p = z->bytes + i;
            *at = i;
            if (get32(p) == END && i + END_BYTES + get16(p + 20) == z->size) return true;
            if (i == least) break;
        }
    }
    return damaged(z, "it has no directory", e);
}

// Replaces what the end record tells by what the zip64 record tells; where the former is not full both must agree.
static bool read_end64(const zip *z, const unsigned char *locator, directory *d, err *e) {
    uint64_t at = get64(locator + 8), room = (uint64_t)(locator - z->bytes);
    if (at > room || room - at < END64_BYTES || get32(z->bytes + at) != END64)
        return damaged(z, "its zip64 directory is not where it should be", e);
    const unsigned char *p = z->bytes + at;
    if (get32(locator + 4) || get32(locator + 16) > 1 || get32(p + 16) || get32(p + 20))
        return err_input(e, "%s: is one part of a split archive; join the parts", z->path);
    directory wide = {.members = get64(p + 32), .bytes = get64(p + 40), .at = get64(p + 48), .end = at};
    if (get64(p + 24) != wide.members || (d->members != FULL16 && d->members != wide.members) ||
        (d->bytes != FULL32 && d->bytes != wide.bytes) || (d->at != FULL32 && d->at != wide.at))
        return damaged(z, "its two directory records differ", e);
    *d = wide;
    return true;
}

static bool find_directory(const zip *z, directory *d, err *e) {
    uint64_t at = 0;
    if (!find_end(z, &at, e)) return false;
    const unsigned char *p = z->bytes + at;
    *d = (directory){.members = get16(p + 10), .bytes = get32(p + 12), .at = get32(p + 16), .end = at};
    if ((get16(p + 4) && get16(p + 4) != FULL16) || (get16(p + 6) && get16(p + 6) != FULL16))
        return err_input(e, "%s: is one part of a split archive; join the parts", z->path);
    if (get16(p + 8) != d->members) return damaged(z, "its two counts of members differ", e);
    if (at >= LOCATOR64_BYTES && get32(p - LOCATOR64_BYTES) == LOCATOR64 && !read_end64(z, p - LOCATOR64_BYTES, d, e))
        return false;
    if (d->at > d->end || d->bytes != d->end - d->at)
        return damaged(z, "its directory does not end where it should", e);
    if (d->members > d->bytes / CENTRAL_BYTES) return damaged(z, "its directory is too short", e);
    if (d->members > ZIP_MEMBERS_MOST)
        return err_input(e, "%s: has %" PRIu64 " members; at most %d are read", z->path, d->members, ZIP_MEMBERS_MOST);
    return true;
}

// Finds the extra field `id`; *bytes is its length. NULL where there is none or the fields do not add up.
static const unsigned char *find_extra(const unsigned char *p, size_t room, uint16_t id, size_t *bytes) {
    while (room >= 4) {
        size_t length = get16(p + 2);
        if (length > room - 4) return NULL;
        *bytes = length;
        if (get16(p) == id) return p + 4;
        p += 4 + length;
        room -= 4 + length;
    }
    return NULL;
}

// The zip64 values of those of `n` fields that are full, in their order.
static bool widen(const unsigned char *extra, size_t room, uint64_t *const field[], int n) {
    size_t bytes = 0, used = 0;
    const unsigned char *p = find_extra(extra, room, EXTRA64, &bytes);
    for (int i = 0; i < n; i++) {
        if (*field[i] != FULL32) continue;
        if (!p || bytes - used < 8) return false;
        *field[i] = get64(p + used);
        used += 8;
    }
    return true;
}

// A name that can be printed: what is not UTF-8 or steers a terminal becomes '?'.
static const char *printable(arena *a, const unsigned char *text, size_t bytes) {
    char *out = arena_take(a, bytes + 1);
    for (size_t i = 0, n = 0; i < bytes;) {
        uint32_t c = 0;
        int length = npy_utf8_get(text + i, (int64_t)(bytes - i), &c);
        if (!length || c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            out[n++] = '?';
            i += length ? (size_t)length : 1;
            continue;
        }
        memcpy(out + n, text + i, (size_t)length);
        n += (size_t)length;
        i += (size_t)length;
    }
    return out;
}

// The local header must say what the directory says; it may leave sizes and CRC-32 to a record behind the data.
static bool check_local(const zip *z, const directory *d, const unsigned char *central, zip_member *m, err *e) {
    bool inside = m->start <= d->at && d->at - m->start >= LOCAL_BYTES;
    const unsigned char *p = z->bytes + (inside ? m->start : 0);
    if (!inside || get32(p) != LOCAL)
        return err_input(e, "%s: %s is not where the directory says; was it copied whole?", z->path, m->name);
    size_t name = get16(p + 26), extra = get16(p + 28);
    uint64_t room = d->at - m->start - LOCAL_BYTES;
    m->data = m->start + LOCAL_BYTES + name + extra;
    if (name + extra > room || m->packed > room - name - extra)
        return err_input(e, "%s: %s is cut off; was it copied whole?", z->path, m->name);
    uint64_t packed = get32(p + 18), size = get32(p + 22);
    bool wide = widen(p + LOCAL_BYTES + name, extra, (uint64_t *const[]){&size, &packed}, 2);
    bool later = get16(p + 6) & DESCRIBED;
    bool same = wide && name == get16(central + 28) && !memcmp(p + LOCAL_BYTES, central + CENTRAL_BYTES, name) &&
                get16(p + 8) == get16(central + 10) && (get16(p + 6) & ENCRYPTED) == (get16(central + 8) & ENCRYPTED) &&
                (later || (get32(p + 14) == m->crc && packed == m->packed && size == m->size));
    return same || err_input(e, "%s: %s differs from what the directory says; save it again", z->path, m->name);
}

// One member; `*p` moves behind its record.
static bool read_member(const zip *z, const directory *d, arena *a, const unsigned char **p, zip_member *m, err *e) {
    const unsigned char *c = *p;
    uint64_t room = d->end - (uint64_t)(c - z->bytes);
    if (room < CENTRAL_BYTES || get32(c) != CENTRAL) return damaged(z, "its directory is cut off", e);
    size_t name = get16(c + 28), extra = get16(c + 30), comment = get16(c + 32);
    if (name + extra + comment > room - CENTRAL_BYTES) return damaged(z, "its directory is cut off", e);
    *p = c + CENTRAL_BYTES + name + extra + comment;
    uint16_t flags = get16(c + 8), method = get16(c + 10);
    *m = (zip_member){.checked = true, .crc = get32(c + 16), .packed = get32(c + 20), .size = get32(c + 24)};
    m->start = get32(c + 42);
    m->deflated = method == DEFLATED;
    m->name = printable(a, c + CENTRAL_BYTES, name);
    if (!widen(c + CENTRAL_BYTES + name, extra, (uint64_t *const[]){&m->size, &m->packed, &m->start}, 3))
        return damaged(z, "a zip64 field is missing", e);
    if (get16(c + 34) && get16(c + 34) != FULL16)
        return err_input(e, "%s: is one part of a split archive; join the parts", z->path);
    if (flags & ENCRYPTED)
        m->refused = "encrypted";
    else if (flags & PATCHED || (method != STORED && method != DEFLATED))
        m->refused = "packed in a way that is not known";
    if (!check_local(z, d, c, m, e)) return false;
    if (!m->refused && !m->deflated && m->packed != m->size) return damaged(z, "a stored member has two sizes", e);
    if (m->deflated && m->size / RATIO_MOST > m->packed)
        return err_input(e, "%s: %s claims %" PRIu64 " bytes, more than deflate can hold; it is not read", z->path,
            m->name, m->size);
    return true;
}

static int by_start(const void *a, const void *b) {
    const zip_member *x = *(const zip_member *const *)a, *y = *(const zip_member *const *)b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_name(const void *a, const void *b) {
    const zip_member *x = *(const zip_member *const *)a, *y = *(const zip_member *const *)b;
    return strcmp(x->name, y->name);
}

static bool check_apart(const zip *z, arena *a, err *e) {
    const zip_member **order = arena_array(a, (size_t)z->members, sizeof *order);
    for (int64_t i = 0; i < z->members; i++) order[i] = &z->member[i];
    if (z->members) qsort(order, (size_t)z->members, sizeof *order, by_start);
    for (int64_t i = 1; i < z->members; i++)
        if (order[i - 1]->data + order[i - 1]->packed > order[i]->start)
            return err_input(e, "%s: %s and %s overlap; it is not read", z->path, order[i - 1]->name, order[i]->name);
    if (z->members) qsort(order, (size_t)z->members, sizeof *order, by_name);
    for (int64_t i = 1; i < z->members; i++)
        if (!strcmp(order[i - 1]->name, order[i]->name))
            return err_input(e, "%s: has two members named %s; save it again", z->path, order[i]->name);
    return true;
}

bool zip_open(zip *z, arena *a, const char *path, const void *bytes, uint64_t size, err *e) {
    *z = (zip){.path = path, .bytes = bytes, .size = size};
    directory d;
    if (!find_directory(z, &d, e)) return false;
    zip_member *member = arena_array(a, (size_t)d.members, sizeof *member);
    const unsigned char *p = z->bytes + d.at;
    for (uint64_t i = 0; i < d.members; i++)
        if (!read_member(z, &d, a, &p, &member[i], e)) return false;
    if (p != z->bytes + d.end) return damaged(z, "its directory is longer than its members", e);
    z->member = member;
    z->members = (int64_t)d.members;
    return check_apart(z, a, e);
}

void zip_wrap(zip *z, arena *a, const char *path, const char *name, const void *bytes, uint64_t size) {
    zip_member *m = arena_take(a, sizeof *m);
    *m = (zip_member){.name = printable(a, (const unsigned char *)name, strlen(name)), .packed = size, .size = size};
    *z = (zip){.path = path, .bytes = bytes, .size = size, .members = 1, .member = m};
}

// Streams

struct zip_stream {
    const zip *zip;
    const zip_member *member;
    const unsigned char *next; // packed bytes that zlib does not have yet
    uint64_t packed_left, left;
    uint32_t crc;
    bool ended; // zlib has seen the end
    z_stream flate;
};

static bool broken(const zip_stream *s, const char *what, err *e) {
    return err_input(e, "%s: %s %s; was it copied whole?", s->zip->path, s->member->name, what);
}

zip_stream *zip_stream_open(const zip *z, const zip_member *m, err *e) {
    if (m->refused) {
        err_input(e, "%s: %s is %s; save it with numpy.savez", z->path, m->name, m->refused);
        return NULL;
    }
    zip_stream *s = calloc(1, sizeof *s);
    if (!s || (m->deflated && inflateInit2(&s->flate, -MAX_WBITS) != Z_OK)) {
        err_run(e, "%s: no memory to unpack %s", z->path, m->name);
        free(s);
        return NULL;
    }
    s->zip = z;
    s->member = m;
    s->next = z->bytes + m->data;
    s->packed_left = m->packed;
    s->left = m->size;
    return s;
}

void zip_stream_close(zip_stream *s) {
    if (!s) return;
    if (s->member->deflated) inflateEnd(&s->flate);
    free(s);
}

uint64_t zip_stream_left(const zip_stream *s) {
    return s->left;
}

// One call of inflate for up to `room` bytes; *got are those that came.
static bool inflate_piece(zip_stream *s, unsigned char *out, uint64_t room, uint64_t *got, err *e) {
    z_stream *f = &s->flate;
    if (!f->avail_in) {
        uint64_t piece = s->packed_left < PIECE ? s->packed_left : PIECE;
        f->next_in = (unsigned char *)(uintptr_t)s->next;
        f->avail_in = (uInt)piece;
        s->next += piece;
        s->packed_left -= piece;
    }
    f->next_out = out;
    f->avail_out = (uInt)(room < PIECE ? room : PIECE);
    uInt before = f->avail_out;
    int rc = inflate(f, Z_NO_FLUSH);
    *got = before - f->avail_out;
    if (rc == Z_MEM_ERROR) return err_run(e, "%s: no memory to unpack %s", s->zip->path, s->member->name);
    if (rc == Z_BUF_ERROR) return broken(s, "ends early", e);
    if (rc != Z_OK && rc != Z_STREAM_END) return broken(s, "cannot be unpacked", e);
    s->ended = rc == Z_STREAM_END;
    return true;
}

static bool inflate_all(zip_stream *s, unsigned char *out, uint64_t bytes, err *e) {
    while (bytes) {
        uint64_t got;
        if (s->ended) return broken(s, "ends early", e);
        if (!inflate_piece(s, out, bytes, &got, e)) return false;
        out += got;
        bytes -= got;
    }
    return true;
}

// All bytes are out: nothing more may come, and they must be the right ones.
static bool check_end(zip_stream *s, err *e) {
    while (s->member->deflated && !s->ended) {
        unsigned char more;
        uint64_t got;
        if (!inflate_piece(s, &more, 1, &got, e)) return false;
        if (got) return broken(s, "unpacks to more than its size", e);
    }
    if (s->member->deflated && (s->flate.avail_in || s->packed_left)) return broken(s, "has bytes after its end", e);
    return !s->member->checked || s->crc == s->member->crc || broken(s, "is damaged: its CRC-32 is wrong", e);
}

bool zip_stream_read(zip_stream *s, void *out, uint64_t bytes, err *e) {
    CHECK(bytes <= s->left, "%" PRIu64 " bytes wanted of the %" PRIu64 " left in %s", bytes, s->left, s->member->name);
    // In pieces that the cache still holds when their CRC-32 is computed.
    enum { STEP = 1 << 16 };
    unsigned char *at = out;
    for (uint64_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < STEP ? bytes - done : STEP;
        if (s->member->deflated) {
            if (!inflate_all(s, at + done, n, e)) return false;
        } else {
            memcpy(at + done, s->next, n);
            s->next += n;
        }
        if (s->member->checked) s->crc = (uint32_t)crc32_z(s->crc, at + done, n);
    }
    s->left -= bytes;
    return s->left || check_end(s, e);
}

// Writing

enum { HELD = 1 << 16 };

struct zip_written {
    struct zip_written *next;
    const char *name;
    uint64_t start, data, head, size; // `size` without the head until the member ends
    uint32_t crc;                     // as `size`
};

static unsigned char *put(unsigned char *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

bool zip_writer_open(zip_writer *w, const char *path, err *e) {
    *w = (zip_writer){.file.fd = -1};
    arena_init(&w->arena);
    w->held = malloc(HELD);
    bool ok = w->held || err_run(e, "%s: no memory to write it", path);
    ok = ok && file_writer_open(&w->file, path, e);
    if (!ok) zip_writer_abandon(w);
    return ok;
}

static bool flush(zip_writer *w, err *e) {
    size_t n = w->holds;
    w->holds = 0;
    return file_writer_write(&w->file, w->held, n, e);
}

// Small pieces are gathered; large ones pass by.
static bool append(zip_writer *w, const void *data, uint64_t bytes, err *e) {
    w->at += bytes;
    if (bytes > HELD - w->holds && !flush(w, e)) return false;
    if (bytes >= HELD) return file_writer_write(&w->file, data, bytes, e);
    if (bytes) memcpy(w->held + w->holds, data, bytes);
    w->holds += bytes;
    return true;
}

// A name beyond ASCII is marked as UTF-8.
static uint16_t flags_of(const char *name) {
    for (; *name; name++)
        if ((unsigned char)*name >= 0x80) return UTF8;
    return 0;
}

// Fields that local and central header share: version (4.5, for zip64), flags, method, time (none: 1980-01-01), CRC-32
// and sizes.
static unsigned char *put_common(unsigned char *p, const struct zip_written *m, uint32_t packed, uint32_t size) {
    p = put(p, 45, 2);
    p = put(p, flags_of(m->name), 2);
    p = put(p, STORED, 2);
    p = put(p, 0, 2);
    p = put(p, 1 << 5 | 1, 2);
    p = put(p, m->crc, 4);
    p = put(p, packed, 4);
    p = put(p, size, 4);
    return put(p, strlen(m->name), 2);
}

// The local header fills the space up to the data: fixed part, name, zip64 sizes, padding.
static bool write_local(zip_writer *w, const struct zip_written *m, unsigned char *out, err *e) {
    size_t name = strlen(m->name), extra = (size_t)(m->data - m->start) - LOCAL_BYTES - name;
    unsigned char *p = put_common(put(out, LOCAL, 4), m, FULL32, FULL32);
    p = put(p, extra, 2);
    memcpy(p, m->name, name);
    p = put(p + name, EXTRA64, 2);
    p = put(p, 16, 2);
    p = put(p, m->size, 8);
    p = put(p, m->size, 8);
    p = put(p, EXTRA_ALIGN, 2);
    p = put(p, extra - 24, 2);
    p = put(p, ZIP_ALIGN, 2);
    memset(p, 0, (size_t)(out + (m->data - m->start) - p));
    return file_writer_patch(&w->file, (int64_t)m->start, out, m->data - m->start, e);
}

bool zip_writer_begin(zip_writer *w, const char *name, uint64_t head, err *e) {
    size_t bytes = strlen(name);
    CHECK(!w->open, "%s begins before the last member ended", name);
    CHECK(bytes <= ZIP_NAME_MOST && head <= ZIP_HEAD_MOST, "a member's name of %zu bytes", bytes);
    for (const struct zip_written *m = w->first; m; m = m->next)
        CHECK(strcmp(m->name, name), "%s is written twice", name);
    struct zip_written *m = arena_take(&w->arena, sizeof *m);
    *m = (struct zip_written){.name = arena_text(&w->arena, name), .start = w->at, .head = head};
    uint64_t least = w->at + LOCAL_BYTES + bytes + 20 + 6;
    m->data = (least + ZIP_ALIGN - 1) / ZIP_ALIGN * ZIP_ALIGN;
    if (w->last)
        w->last->next = m;
    else
        w->first = m;
    w->last = m;
    w->open = true;
    static const unsigned char space[LOCAL_BYTES + ZIP_NAME_MOST + 2 * ZIP_ALIGN + ZIP_HEAD_MOST];
    return append(w, space, m->data - m->start + head, e);
}

bool zip_writer_write(zip_writer *w, const void *data, uint64_t bytes, err *e) {
    CHECK(w->open, "a write outside a member");
    if (!bytes) return true; // crc32_z takes a NULL for a new beginning
    w->last->crc = (uint32_t)crc32_z(w->last->crc, data, bytes);
    w->last->size += bytes;
    return append(w, data, bytes, e);
}

bool zip_writer_end(zip_writer *w, const void *head, err *e) {
    CHECK(w->open, "the end of no member");
    struct zip_written *m = w->last;
    unsigned char local[LOCAL_BYTES + ZIP_NAME_MOST + 2 * ZIP_ALIGN];
    w->open = false;
    m->crc = (uint32_t)crc32_combine(crc32_z(0, head, m->head), m->crc, (z_off_t)m->size);
    m->size += m->head;
    return flush(w, e) && write_local(w, m, local, e) &&
           file_writer_patch(&w->file, (int64_t)m->data, head, m->head, e);
}

// A record of the directory; zip64 where a number needs it.
static bool write_central(zip_writer *w, const struct zip_written *m, err *e) {
    unsigned char out[CENTRAL_BYTES + 4 + 24], *p = out, extra[4 + 24], *x = extra + 4;
    if (m->size >= FULL32) x = put(put(x, m->size, 8), m->size, 8);
    if (m->start >= FULL32) x = put(x, m->start, 8);
    size_t wide = (size_t)(x - extra) > 4 ? (size_t)(x - extra) : 0;
    put(put(extra, EXTRA64, 2), wide - 4, 2);
    uint32_t size = m->size >= FULL32 ? FULL32 : (uint32_t)m->size;
    p = put(put(p, CENTRAL, 4), 3 << 8 | 45, 2); // made on Unix
    p = put_common(p, m, size, size);
    p = put(p, wide, 2);
    p = put(p, 0, 2 + 2 + 2); // no comment, first disk, no internal attributes
    p = put(p, (uint64_t)0100644 << 16, 4);
    p = put(p, m->start >= FULL32 ? FULL32 : m->start, 4);
    return append(w, out, (uint64_t)(p - out), e) && append(w, m->name, strlen(m->name), e) &&
           append(w, extra, wide, e);
}

// The zip64 end record is written only where a number needs it.
static bool write_end(zip_writer *w, uint64_t members, uint64_t at, err *e) {
    unsigned char out[END64_BYTES + LOCATOR64_BYTES + END_BYTES], *p = out;
    uint64_t bytes = w->at - at, end = w->at;
    if (members >= FULL16 || at >= FULL32 || bytes >= FULL32) {
        p = put(put(p, END64, 4), END64_BYTES - 12, 8);
        p = put(put(p, 3 << 8 | 45, 2), 45, 2);
        p = put(p, 0, 4 + 4);
        p = put(put(p, members, 8), members, 8);
        p = put(put(p, bytes, 8), at, 8);
        p = put(put(p, LOCATOR64, 4), 0, 4);
        p = put(put(p, end, 8), 1, 4);
    }
    p = put(put(p, END, 4), 0, 2 + 2);
    p = put(p, members >= FULL16 ? FULL16 : members, 2);
    p = put(p, members >= FULL16 ? FULL16 : members, 2);
    p = put(p, bytes >= FULL32 ? FULL32 : bytes, 4);
    p = put(p, at >= FULL32 ? FULL32 : at, 4);
    p = put(p, 0, 2);
    return append(w, out, (uint64_t)(p - out), e) && flush(w, e);
}

bool zip_writer_commit(zip_writer *w, err *e) {
    CHECK(!w->open, "a commit before the last member ended");
    uint64_t at = w->at, members = 0;
    bool ok = true;
    for (const struct zip_written *m = w->first; ok && m; m = m->next, members++) ok = write_central(w, m, e);
    ok = ok && write_end(w, members, at, e) && file_writer_commit(&w->file, e);
    zip_writer_abandon(w);
    return ok;
}

void zip_writer_abandon(zip_writer *w) {
    file_writer_abandon(&w->file);
    arena_done(&w->arena);
    free(w->held);
    *w = (zip_writer){.file.fd = -1};
}
