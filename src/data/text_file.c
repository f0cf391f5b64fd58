#include "data/text_file.h"

#include "base/stop.h"
#include "data/zip.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static bool too_dense(const char *name, err *e) {
    return err_input(
        e, "%s: unpacks to more than %d times its size; is it text? unpack it first", name, TEXT_FILE_RATIO);
}

// True where so many bytes are more than `packed` bytes of text can hold.
static bool is_too_dense(uint64_t bytes, uint64_t packed) {
    return bytes > TEXT_FILE_FREE && bytes / TEXT_FILE_RATIO > packed;
}

// Bytes that grow.
typedef struct {
    char *data;
    size_t size, room;
} heap;

static bool heap_grow(heap *h, size_t first, const char *name, err *e) {
    if (h->size < h->room) return true;
    size_t room = h->room ? h->room + h->room / 2 : first;
    char *more = room > h->room ? realloc(h->data, room) : NULL;
    if (!more) return err_run(e, "%s: no memory for %zu bytes", name, room);
    h->data = more;
    h->room = room;
    return true;
}

// gzip

enum { PIECE = 1 << 24 };

// Shows the input from where it was read to, a piece at most.
static void refill(z_stream *z, const unsigned char *end) {
    size_t rest = (size_t)(end - z->next_in);
    z->avail_in = rest < PIECE ? (unsigned)rest : PIECE;
}

// Makes ready for a further member behind the one that ended; false where there is none.
static bool next_member(z_stream *z, const unsigned char *end) {
    refill(z, end);
    if (z->avail_in < 2 || z->next_in[0] != 0x1f || z->next_in[1] != 0x8b) return false;
    return inflateReset(z) == Z_OK;
}

static bool only_zeros(const unsigned char *at, const unsigned char *end) {
    while (at < end && !*at) at++;
    return at == end;
}

// Fills the heap until `most` bytes are out or the input ends.
static bool inflate_all(
    z_stream *z, heap *h, const unsigned char *data, size_t size, size_t most, const char *name, err *e) {
    const unsigned char *end = data + size;
    size_t first = size < PIECE ? 4 * size + 4096 : 4 * (size_t)PIECE;
    z->next_in = (unsigned char *)(uintptr_t)data;
    for (;;) {
        if (!stop_go_on(e) || !heap_grow(h, first < most ? first : most + 1, name, e)) return false;
        size_t room = h->room - h->size;
        if (room > PIECE) room = PIECE;
        refill(z, end);
        z->next_out = (unsigned char *)h->data + h->size;
        z->avail_out = (unsigned)room;
        int code = inflate(z, Z_NO_FLUSH);
        h->size += room - z->avail_out;
        if (h->size >= most) return true;
        if (is_too_dense(h->size, size)) return too_dense(name, e);
        if (code == Z_STREAM_END && next_member(z, end)) continue;
        if (code == Z_STREAM_END)
            return only_zeros(z->next_in, end) || err_input(e, "%s: has more behind its gzip data", name);
        if (code == Z_MEM_ERROR) return err_run(e, "%s: no memory to unpack it", name);
        bool starved = code == Z_OK || code == Z_BUF_ERROR;
        if (!starved) return err_input(e, "%s: its gzip data is damaged; fetch it again", name);
        if (z->avail_out && z->next_in == end)
            return err_input(e, "%s: its gzip data is cut short; fetch it again", name);
    }
}

static bool gunzip(text_file *t, const unsigned char *data, size_t size, size_t most, err *e) {
    enum { WINDOW_OF_GZIP = 15 + 16 };
    z_stream z = {0};
    heap h = {0};
    if (inflateInit2(&z, WINDOW_OF_GZIP) != Z_OK) return err_run(e, "%s: no memory to unpack it", t->name);
    bool ok = inflate_all(&z, &h, data, size, most, t->name, e);
    inflateEnd(&z);
    t->owned = h.data;
    t->data = h.data ? h.data : "";
    t->size = h.size < most ? h.size : most;
    return ok;
}

// zip

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcasecmp(name + n - m, end);
}

// A member that counts: no folder and nothing of a Mac's shadow folder.
static bool is_file(const zip_member *m) {
    return !ends_with(m->name, "/") && strncmp(m->name, "__MACOSX/", 9) != 0;
}

static bool holds_arrays(const zip *z) {
    for (int64_t i = 0; i < z->members; i++)
        if (ends_with(z->member[i].name, ".npy")) return true;
    return z->members == 0;
}

// The one member with one of the endings; `*count` says how many there are.
static const zip_member *only(const zip *z, const char *const *ends, int *count) {
    const zip_member *found = NULL;
    *count = 0;
    for (int64_t i = 0; i < z->members; i++)
        for (const char *const *end = ends; *end; end++)
            if (is_file(&z->member[i]) && ends_with(z->member[i].name, *end)) {
                found = &z->member[i];
                ++*count;
                break;
            }
    return found;
}

// Refuses an archive in which the text is not clear, with the names of its members as far as they fit.
static bool refuse_members(const zip *z, const char *what, err *e) {
    enum { SHOWN = 6 };
    char all[256] = "";
    int shown = 0, files = 0;
    for (int64_t i = 0; i < z->members; i++) {
        if (!is_file(&z->member[i]) || ++files > SHOWN) continue;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%.36s", shown++ ? ", " : "", z->member[i].name);
    }
    return err_input(e, "%s: is an archive of %s (%s%s); unpack it and name one of them", z->path, what, all,
        files > SHOWN ? ", ..." : "");
}

static const zip_member *text_member(const zip *z, err *e) {
    static const char *const any[] = {"", NULL}, *const csv[] = {".csv", NULL}, *const text[] = {".txt", ".tsv", NULL};
    static const char *const book[] = {"[Content_Types].xml", NULL};
    int files, count;
    if (only(z, book, &count)) {
        err_input(e, "%s: is a workbook; save its sheet as CSV", z->path);
        return NULL;
    }
    const zip_member *m = only(z, any, &files);
    if (files > 1) m = only(z, csv, &count);
    if (files > 1 && !count) m = only(z, text, &count);
    if (files && (files == 1 || count == 1)) return m;
    refuse_members(z, files && count ? "several texts" : "no text", e);
    return NULL;
}

static bool unzip(text_file *t, const zip *z, size_t most, err *e) {
    const zip_member *m = text_member(z, e);
    if (!m) return false;
    if (is_too_dense(m->size, m->packed)) return too_dense(t->name, e);
    size_t want = m->size < most ? (size_t)m->size : most;
    zip_stream *s = zip_stream_open(z, m, e);
    if (!s) return false;
    t->owned = malloc(want + 1);
    bool ok =
        t->owned ? zip_stream_read(s, t->owned, want, e) : err_run(e, "%s: no memory for its %zu bytes", t->name, want);
    zip_stream_close(s);
    t->data = t->owned;
    t->size = want;
    return ok;
}

bool text_file_unpack(text_file *t, const char *name, const void *data, size_t size, size_t most, err *e) {
    *t = (text_file){.name = name, .data = data, .size = size};
    bool ok = true;
    if (size >= 2 && !memcmp(data, "\x1f\x8b", 2)) ok = gunzip(t, data, size, most, e);
    if (size >= 4 && (!memcmp(data, "PK\3\4", 4) || !memcmp(data, "PK\5\6", 4))) {
        zip z;
        arena a;
        arena_init(&a);
        ok = zip_open(&z, &a, name, data, size, e);
        t->arrays = ok && holds_arrays(&z);
        if (ok && !t->arrays) ok = unzip(t, &z, most, e);
        arena_done(&a);
    }
    if (!ok) text_file_close(t);
    return ok;
}

// Standard input. It can be read but once, and is opened more often: to see what it holds, and to read it.
static struct {
    pthread_mutex_t lock;
    bool read;
    heap bytes;
    int64_t written;
} input = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool read_input(err *e) {
    enum { FIRST = 1 << 20 };
    struct stat st;
    for (;;) {
        if (!stop_go_on(e) || !heap_grow(&input.bytes, FIRST, "stdin", e)) return false;
        ssize_t n = read(STDIN_FILENO, input.bytes.data + input.bytes.size, input.bytes.room - input.bytes.size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_input(e, "stdin: cannot be read: %s", strerror(errno));
        if (!n) break;
        input.bytes.size += (size_t)n;
    }
    bool file = !fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode);
    input.written = file ? (int64_t)st.st_mtime : (int64_t)time(NULL);
    input.read = true;
    return true;
}

static bool open_input(text_file *t, size_t most, err *e) {
    pthread_mutex_lock(&input.lock);
    bool ok = input.read || read_input(e);
    pthread_mutex_unlock(&input.lock);
    ok = ok && text_file_unpack(t, "stdin", input.bytes.data, input.bytes.size, most, e);
    if (ok && (t->arrays || (t->size >= 6 && !memcmp(t->data, "\x93NUMPY", 6)))) {
        ok = err_input(e, "stdin: holds arrays; those are read from a file only");
        text_file_close(t);
    }
    if (ok) t->written = input.written;
    return ok;
}

bool text_file_open(text_file *t, const char *path, size_t most, err *e) {
    *t = (text_file){0};
    if (!strcmp(path, "-")) return open_input(t, most, e);
    file_map m;
    struct stat st;
    if (!file_map_open(&m, path, e)) return false;
    bool ok = text_file_unpack(t, path, m.data, m.size, most, e);
    if (ok && !t->owned)
        t->map = m;
    else
        file_map_close(&m);
    if (ok && !stat(path, &st)) t->written = (int64_t)st.st_mtime;
    return ok;
}

void text_file_close(text_file *t) {
    free(t->owned);
    file_map_close(&t->map);
    *t = (text_file){0};
}
