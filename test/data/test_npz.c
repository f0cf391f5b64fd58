// Archives of arrays: numpy's own files, files made byte by byte with lies in them, and files written here.
#include "data/npz.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define SAMPLE(name) TEST_DIR "/data/samples/npz/" name

// Archives made byte by byte

enum { DEFLATE = 1, WIDE = 2 }; // how a member is put in: deflated; sizes and offset in zip64 fields

typedef struct {
    unsigned char *data;
    size_t size;
    int members;
    struct {
        char name[64];
        int how;
        uint32_t crc;
        size_t packed, full, local, central;
    } member[8];
    size_t directory, end;
} made;

static void add_bytes(made *m, const void *data, size_t bytes) {
    m->data = realloc(m->data, m->size + bytes + 1);
    assert_non_null(m->data);
    if (bytes) memcpy(m->data + m->size, data, bytes);
    m->size += bytes;
}

static void add(made *m, uint64_t v, int bytes) {
    unsigned char b[8];
    for (int i = 0; i < bytes; i++) b[i] = (unsigned char)(v >> (8 * i));
    add_bytes(m, b, (size_t)bytes);
}

static void set(made *m, size_t at, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) m->data[at + (size_t)i] = (unsigned char)(v >> (8 * i));
}

static void *deflated(const void *data, size_t bytes, size_t *packed) {
    z_stream f = {0};
    assert_int_equal(deflateInit2(&f, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uLong room = deflateBound(&f, bytes);
    unsigned char *out = malloc(room);
    f.next_in = (unsigned char *)(uintptr_t)data;
    f.avail_in = (uInt)bytes;
    f.next_out = out;
    f.avail_out = (uInt)room;
    assert_int_equal(deflate(&f, Z_FINISH), Z_STREAM_END);
    *packed = f.total_out;
    deflateEnd(&f);
    return out;
}

static void made_member(made *m, const char *name, const void *data, size_t bytes, int how) {
    int i = m->members++;
    size_t packed = bytes;
    void *content = how & DEFLATE ? deflated(data, bytes, &packed) : NULL;
    snprintf(m->member[i].name, sizeof m->member[i].name, "%s", name);
    m->member[i].how = how;
    m->member[i].crc = (uint32_t)crc32(0, data, (uInt)bytes);
    m->member[i].packed = packed;
    m->member[i].full = bytes;
    m->member[i].local = m->size;
    add(m, 0x04034b50, 4);
    add(m, 45, 2);
    add(m, 0, 2);
    add(m, how & DEFLATE ? 8 : 0, 2);
    add(m, 0, 4);
    add(m, m->member[i].crc, 4);
    add(m, how & WIDE ? 0xffffffff : packed, 4);
    add(m, how & WIDE ? 0xffffffff : bytes, 4);
    add(m, strlen(name), 2);
    add(m, how & WIDE ? 20 : 0, 2);
    add_bytes(m, name, strlen(name));
    if (how & WIDE) {
        add(m, 1, 2);
        add(m, 16, 2);
        add(m, bytes, 8);
        add(m, packed, 8);
    }
    add_bytes(m, content ? content : data, packed);
    free(content);
}

static void made_central(made *m, int i) {
    bool wide = m->member[i].how & WIDE;
    m->member[i].central = m->size;
    add(m, 0x02014b50, 4);
    add(m, 45, 2);
    add(m, 45, 2);
    add(m, 0, 2);
    add(m, m->member[i].how & DEFLATE ? 8 : 0, 2);
    add(m, 0, 4);
    add(m, m->member[i].crc, 4);
    add(m, wide ? 0xffffffff : m->member[i].packed, 4);
    add(m, wide ? 0xffffffff : m->member[i].full, 4);
    add(m, strlen(m->member[i].name), 2);
    add(m, wide ? 28 : 0, 2);
    add(m, 0, 2);
    add(m, 0, 8);
    add(m, wide ? 0xffffffff : m->member[i].local, 4);
    add_bytes(m, m->member[i].name, strlen(m->member[i].name));
    if (!wide) return;
    add(m, 1, 2);
    add(m, 24, 2);
    add(m, m->member[i].full, 8);
    add(m, m->member[i].packed, 8);
    add(m, m->member[i].local, 8);
}

static void made_end(made *m, bool wide) {
    m->directory = m->size;
    for (int i = 0; i < m->members; i++) made_central(m, i);
    size_t bytes = m->size - m->directory, at = m->size;
    if (wide) {
        add(m, 0x06064b50, 4);
        add(m, 44, 8);
        add(m, 45, 2);
        add(m, 45, 2);
        add(m, 0, 8);
        add(m, (uint64_t)m->members, 8);
        add(m, (uint64_t)m->members, 8);
        add(m, bytes, 8);
        add(m, m->directory, 8);
        add(m, 0x07064b50, 4);
        add(m, 0, 4);
        add(m, at, 8);
        add(m, 1, 4);
    }
    m->end = m->size;
    add(m, 0x06054b50, 4);
    add(m, 0, 4);
    add(m, wide ? 0xffff : (uint64_t)m->members, 2);
    add(m, wide ? 0xffff : (uint64_t)m->members, 2);
    add(m, wide ? 0xffffffff : bytes, 4);
    add(m, wide ? 0xffffffff : m->directory, 4);
    add(m, 0, 2);
}

// The content of a .npy; the caller frees it.
static unsigned char *npy_of(const char *descr, const char *shape, const void *data, size_t bytes, size_t *size) {
    char dict[256];
    int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    unsigned char *p = calloc(1, 128 + bytes);
    assert_non_null(p);
    memset(p, ' ', 128);
    memcpy(p, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(p + 10, dict, (size_t)n);
    p[127] = '\n';
    if (bytes) memcpy(p + 128, data, bytes);
    *size = 128 + bytes;
    return p;
}

static const float VALUES[6] = {0.5f, 1.5f, -2.5f, 3.5f, 4.5f, 5.5f};

static void made_array(made *m, const char *name, int how) {
    size_t size;
    unsigned char *p = npy_of("<f4", "(2, 3)", VALUES, sizeof VALUES, &size);
    made_member(m, name, p, size, how);
    free(p);
}

// Two arrays: "a.npy" stored, "b.npy" deflated.
static made two_arrays(bool wide) {
    made m = {0};
    made_array(&m, "a.npy", wide ? WIDE : 0);
    made_array(&m, "b.npy", (wide ? WIDE : 0) | DEFLATE);
    made_end(&m, wide);
    return m;
}

static void refuse(made *m, const char *why) {
    npz z;
    err e = {0};
    if (npz_open_memory(&z, "f.npz", m->data, m->size, &e)) fail_msg("accepted, though it should say %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (strncmp(e.text, "f.npz: ", 7) || !strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
    free(m->data);
    *m = (made){0};
}

// Opening is fine, reading "name" is not.
static void refuse_reading(made *m, const char *name, const char *why) {
    npz z;
    err e = {0};
    float out[6];
    support_ok(npz_open_memory(&z, "f.npz", m->data, m->size, &e), &e);
    const npz_entry *n = npz_want(&z, name, &e);
    if (n && npz_read(&z, n, NULL, NPY_F32, out, &e)) fail_msg("read, though it should say %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, name) || !strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
    npz_close(&z);
    free(m->data);
    *m = (made){0};
}

static void made_archives_are_read(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        made m = two_arrays(wide);
        npz z;
        err e = {0};
        support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
        assert_int_equal(z.entries, 2);
        assert_false(z.entry[0].member->deflated);
        assert_true(z.entry[1].member->deflated);
        for (int i = 0; i < 2; i++) {
            float out[6] = {0};
            const npz_entry *n = npz_want(&z, i ? "b" : "a", &e);
            assert_non_null(n);
            assert_int_equal(n->header.rank, 2);
            support_ok(npz_read(&z, n, NULL, NPY_F32, out, &e), &e);
            assert_memory_equal(out, VALUES, sizeof VALUES);
        }
        assert_memory_equal(npz_data(&z, &z.entry[0]), VALUES, sizeof VALUES);
        assert_null(npz_data(&z, &z.entry[1]));
        npz_close(&z);
        npz_close(&z);
        free(m.data);
    }
}

static void a_comment_may_follow(void **state) {
    (void)state;
    made m = two_arrays(false);
    set(&m, m.end + 20, 26, 2);
    add_bytes(&m, "PK\5\6 a comment with a mark", 26);
    npz z;
    err e = {0};
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    npz_close(&z);
    free(m.data);
}

// Opens and reads what it can of bytes that may be anything. False where something is refused.
static bool survive(const unsigned char *data, size_t bytes, bool judge) {
    npz z;
    err e = {0};
    bool all = true;
    // A copy of exactly this length, so that a sanitizer sees a step beyond it.
    unsigned char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, data, bytes);
    if (!npz_open_memory(&z, "f.npz", copy, bytes, &e)) {
        assert_int_equal(e.kind, ERR_INPUT);
        free(copy);
        return false;
    }
    for (int64_t i = 0; i < z.entries; i++) {
        float out[6] = {0};
        const npz_entry *n = &z.entry[i];
        bool ok = n->kind == NPZ_ARRAY && n->header.count <= 6 && npz_read(&z, n, NULL, NPY_F32, out, &e);
        if (ok && judge) assert_memory_equal(out, VALUES, sizeof VALUES);
        all = all && ok;
    }
    npz_close(&z);
    free(copy);
    return all;
}

static void cut_files_are_refused(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        made m = two_arrays(wide);
        assert_true(survive(m.data, m.size, true));
        for (size_t cut = 0; cut < m.size; cut++) assert_false(survive(m.data, cut, false));
        free(m.data);
    }
}

// A bit that is turned is noticed, or is one that says nothing about the arrays (times, versions).
static void turned_bits_do_no_harm(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        made m = two_arrays(wide);
        for (size_t at = 0; at < m.size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                m.data[at] ^= (unsigned char)(1 << bit);
                survive(m.data, m.size, true);
                m.data[at] ^= (unsigned char)(1 << bit);
            }
        }
        free(m.data);
    }
}

static void lies_about_places_are_refused(void **state) {
    (void)state;
    made m = two_arrays(false);
    set(&m, m.member[0].central + 42, m.member[0].local + 1, 4);
    refuse(&m, "a.npy is not where the directory says");
    m = two_arrays(false);
    set(&m, m.member[0].central + 42, m.size + 1000, 4);
    refuse(&m, "a.npy is not where the directory says");
    m = two_arrays(false);
    set(&m, m.member[0].central + 42, 0xffffffff, 4);
    refuse(&m, "zip64 field is missing");
    m = two_arrays(false);
    set(&m, m.end + 16, m.directory - 1, 4);
    refuse(&m, "does not end where it should");
    m = two_arrays(false);
    set(&m, m.end + 8, 3, 2);
    refuse(&m, "counts of members");
    m = two_arrays(false);
    set(&m, m.end + 8, 1, 2);
    set(&m, m.end + 10, 1, 2);
    refuse(&m, "longer than its members");
    m = two_arrays(true);
    set(&m, m.end - 20 + 8, m.size, 8);
    refuse(&m, "not where it should be");
    m = two_arrays(true);
    set(&m, m.end + 10, 1, 2);
    set(&m, m.end + 8, 1, 2);
    refuse(&m, "two directory records differ");
    // Overlap: both members point at the same bytes, as in a zip bomb.
    m = (made){0};
    made_array(&m, "a.npy", DEFLATE);
    m.member[1] = m.member[0];
    m.members = 2;
    made_end(&m, false);
    refuse(&m, "overlap");
    // One member's record lies within the bytes of another.
    made inner = {0};
    made_array(&inner, "b.npy", 0);
    m = (made){0};
    made_member(&m, "a", inner.data, inner.size, 0);
    m.member[1] = inner.member[0];
    m.member[1].local = m.member[0].local + 30 + strlen("a");
    m.members = 2;
    made_end(&m, false);
    free(inner.data);
    refuse(&m, "overlap");
    m = (made){0};
    made_array(&m, "a.npy", 0);
    made_array(&m, "a.npy", 0);
    made_end(&m, false);
    refuse(&m, "two members named a.npy");
    m = (made){0};
    made_array(&m, "a.npy", 0);
    made_member(&m, "a", "text", 4, 0);
    made_end(&m, false);
    refuse(&m, "two members named a");
}

static void split_archives_are_refused(void **state) {
    (void)state;
    made m = two_arrays(false);
    set(&m, m.end + 4, 1, 2);
    refuse(&m, "split");
    m = two_arrays(false);
    set(&m, m.member[1].central + 34, 1, 2);
    refuse(&m, "split");
    m = two_arrays(true);
    set(&m, m.end - 20 + 16, 2, 4);
    refuse(&m, "split");
}

static void lies_about_sizes_are_refused(void **state) {
    (void)state;
    made m = two_arrays(false);
    set(&m, m.member[0].central + 24, 151, 4);
    refuse(&m, "differs from what the directory says");
    // Stored, with two sizes that both headers agree on.
    m = two_arrays(false);
    set(&m, m.member[0].central + 24, 151, 4);
    set(&m, m.member[0].local + 22, 151, 4);
    refuse(&m, "two sizes");
    // Deflated: both agree on more than deflate can hold.
    m = two_arrays(false);
    set(&m, m.member[1].central + 24, 1 << 20, 4);
    set(&m, m.member[1].local + 22, 1 << 20, 4);
    refuse(&m, "more than deflate can hold");
    // Both agree on more than the array's header implies.
    m = two_arrays(false);
    set(&m, m.member[1].central + 24, 160, 4);
    set(&m, m.member[1].local + 22, 160, 4);
    refuse(&m, "bytes of data where its header says 24");
    m = two_arrays(false);
    set(&m, m.member[0].central + 20, 1 << 30, 4);
    refuse(&m, "cut off");
    m = two_arrays(false);
    set(&m, m.member[1].central + 10, 0, 2);
    refuse(&m, "differs");
}

// Packed data are longer or shorter than their size, which the array's header confirms.
static void inflation_is_capped(void **state) {
    (void)state;
    static unsigned char zeros[1 << 20];
    size_t size;
    unsigned char *p = npy_of("|u1", "(1000,)", zeros, 1000, &size);
    memcpy(zeros, p, size);
    made m = {0};
    made_member(&m, "a.npy", zeros, sizeof zeros, DEFLATE);
    m.member[0].full = size;
    set(&m, m.member[0].local + 22, size, 4);
    made_end(&m, false);
    npz z;
    err e = {0};
    unsigned char out[1000];
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    assert_false(npz_read(&z, &z.entry[0], NULL, NPY_U8, out, &e));
    assert_non_null(strstr(e.text, "a.npy unpacks to more than its size"));
    npz_close(&z);
    free(m.data);
    m = (made){0};
    made_member(&m, "a.npy", p, size - 500, DEFLATE);
    m.member[0].full = size;
    set(&m, m.member[0].local + 22, size, 4);
    made_end(&m, false);
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    assert_false(npz_read(&z, &z.entry[0], NULL, NPY_U8, out, &e));
    assert_non_null(strstr(e.text, "a.npy ends early"));
    npz_close(&z);
    free(m.data);
    free(p);
    memset(zeros, 0, 2000);
}

static void damage_is_found_when_read(void **state) {
    (void)state;
    made m = two_arrays(false);
    m.data[m.member[0].local + 30 + 5 + 140] ^= 1;
    refuse_reading(&m, "a", "CRC-32");
    m = two_arrays(false);
    set(&m, m.member[0].central + 8, 1, 2);
    set(&m, m.member[0].local + 6, 1, 2);
    refuse_reading(&m, "a", "encrypted");
    m = two_arrays(false);
    set(&m, m.member[1].central + 10, 12, 2);
    set(&m, m.member[1].local + 8, 12, 2);
    refuse_reading(&m, "b", "packed in a way that is not known");
    m = two_arrays(false);
    m.data[m.member[1].local + 30 + 5 + m.member[1].packed - 20] ^= 0xff;
    refuse_reading(&m, "b", "");
}

static void names_can_be_printed(void **state) {
    (void)state;
    made m = {0};
    made_array(&m, "\x1b[31m\xff\n.npy", 0);
    made_array(&m, "h\xc3\xb6he.npy", 0);
    made_end(&m, false);
    npz z;
    err e = {0};
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    assert_string_equal(z.entry[0].name, "?[31m??");
    assert_string_equal(z.entry[1].name, "h\xc3\xb6he");
    npz_close(&z);
    free(m.data);
}

static void other_files_are_named(void **state) {
    (void)state;
    made m = {0};
    add_bytes(&m, "\x80\x04\x95", 3);
    refuse(&m, "pickle");
    add_bytes(&m, "time,open", 9);
    refuse(&m, "neither");
    add_bytes(&m, "", 0);
    refuse(&m, "neither");
    add_bytes(&m, "PK\7\10 first part of a split archive", 30);
    refuse(&m, "no directory");
}

// Files as numpy writes them

static double element(const npz *z, const char *name, int64_t index) {
    err e = {0};
    double out[24];
    const npz_entry *n = npz_want(z, name, &e);
    support_ok(n, &e);
    assert_true(n->header.count <= 24);
    support_ok(npz_read(z, n, NULL, NPY_F64, out, &e), &e);
    return out[index];
}

static void check_sample(const char *path, bool packed) {
    npz z;
    err e = {0};
    support_ok(npz_open(&z, path, &e), &e);
    assert_int_equal(z.entries, 14);
    static const char *const same[] = {"x", "big", "half", "cube"};
    for (int a = 0; a < 4; a++) {
        assert_int_equal(npz_find(&z, same[a])->member->deflated, packed);
        for (int i = 0; i < 24; i++) assert_true(element(&z, same[a], i) == i / 4.0);
    }
    assert_true(npz_find(&z, "cube")->header.fortran && npz_find(&z, "big")->header.swapped);
    for (int i = 0; i < 12; i++) assert_true(element(&z, "frame", i) == i / 2.0);
    for (int i = 0; i < 4; i++) assert_true(element(&z, "y", i) == (i == 3 ? 1 : i));
    for (int i = 0; i < 4; i++) assert_true(element(&z, "flag", i) == (i > 0));
    assert_true(element(&z, "one", 0) == 2.5);
    assert_int_equal(npz_find(&z, "one")->header.rank, 0);
    assert_int_equal(npz_find(&z, "none")->header.count, 0);
    support_ok(npz_read(&z, npz_find(&z, "none"), NULL, NPY_F32, NULL, &e), &e);
    assert_true(element(&z, "when", 1) == 1704164645 + 60);
    assert_string_equal(npz_find(&z, "when")->header.unit, "s");
    arena a;
    arena_init(&a);
    const char *const *names = npz_read_text(&z, npz_find(&z, "names"), &a, &e);
    support_ok(names, &e);
    assert_string_equal(names[0], "open");
    assert_string_equal(names[1], "h\xc3\xb6he");
    assert_string_equal(names[2], "\xe7\xb5\x82\xe5\x80\xa4");
    names = npz_read_text(&z, npz_find(&z, "raw"), &a, &e);
    support_ok(names, &e);
    assert_string_equal(names[0], "EURUSD");
    assert_string_equal(names[1], "XAU");
    assert_null(npz_read_text(&z, npz_find(&z, "x"), &a, &e));
    arena_done(&a);
    assert_int_equal(npz_find(&z, "meta")->kind, NPZ_PICKLE);
    assert_null(npz_want(&z, "meta", &e));
    assert_non_null(strstr(e.text, "meta is a pickle"));
    assert_null(npz_stream_open(&z, npz_find(&z, "meta"), NULL, &e));
    assert_int_equal(npz_find(&z, "wave")->kind, NPZ_OTHER);
    assert_null(npz_want(&z, "wave", &e));
    assert_null(npz_want(&z, "X", &e));
    assert_non_null(strstr(e.text, "has no array X; it has x, y, big"));
    assert_null(npz_stream_open(&z, npz_find(&z, "names"), NULL, &e));
    assert_null(npz_stream_open(&z, npz_find(&z, "x"), "close", &e));
    npz_close(&z);
}

static void numpy_files_are_read(void **state) {
    (void)state;
    npz z;
    err e = {0};
    check_sample(SAMPLE("stored.npz"), false);
    check_sample(SAMPLE("deflated.npz"), true);
    support_ok(npz_open(&z, SAMPLE("empty.npz"), &e), &e);
    assert_int_equal(z.entries, 0);
    assert_null(npz_want(&z, "x", &e));
    npz_close(&z);
    support_ok(npz_open(&z, SAMPLE("piped.npz"), &e), &e);
    assert_true(element(&z, "x", 23) == 5.75);
    assert_int_equal(npz_find(&z, "readme.txt")->kind, NPZ_OTHER);
    assert_null(npz_want(&z, "readme.txt", &e));
    npz_close(&z);
    for (int version = 2; version <= 3; version++) {
        support_ok(npz_open(&z, version == 2 ? SAMPLE("version2.npy") : SAMPLE("version3.npy"), &e), &e);
        assert_true(element(&z, version == 2 ? "version2" : "version3", 2) == 2);
        npz_close(&z);
    }
    assert_false(npz_open(&z, SAMPLE("absent.npz"), &e));
    npz_close(&z);
}

static void records_are_read_by_field(void **state) {
    (void)state;
    npz z;
    err e = {0};
    int64_t time[3];
    double close[3];
    int32_t spread[3];
    support_ok(npz_open(&z, SAMPLE("rates.npy"), &e), &e);
    const npz_entry *n = npz_want(&z, "rates", &e);
    support_ok(n, &e);
    assert_int_equal(n->kind, NPZ_RECORDS);
    support_ok(npz_read(&z, n, "time", NPY_I64, time, &e), &e);
    support_ok(npz_read(&z, n, "close", NPY_F64, close, &e), &e);
    support_ok(npz_read(&z, n, "spread", NPY_I32, spread, &e), &e);
    for (int i = 0; i < 3; i++)
        assert_true(time[i] == 1704164400 + 300 * i && close[i] == i + 1.5 && spread[i] == 7 + i);
    assert_false(npz_read(&z, n, NULL, NPY_F64, close, &e));
    assert_non_null(strstr(e.text, "name one of the fields time, open, close"));
    assert_false(npz_read(&z, n, "high", NPY_F64, close, &e));
    assert_non_null(strstr(e.text, "has no field high"));
    npz_close(&z);
}

// Reads `n` in pieces of random lengths and compares with `want`.
static void read_in_pieces(const npz *z, const npz_entry *n, const float *want, dice *d) {
    err e = {0};
    npz_stream *s = npz_stream_open(z, n, NULL, &e);
    support_ok(s, &e);
    float *out = malloc((size_t)n->header.count * sizeof *out);
    int64_t at = 0, left;
    while ((left = npz_stream_left(s))) {
        int64_t count = (int64_t)dice_below(d, dice_below(d, 4) ? 100 : 60000);
        count = count < left ? count : left;
        support_ok(npz_stream_read(s, NPY_F32, out + at, count, &e), &e);
        at += count;
    }
    support_ok(npz_stream_read(s, NPY_F32, out + at, 0, &e), &e);
    assert_memory_equal(out, want, (size_t)n->header.count * sizeof *out);
    npz_stream_close(s);
    free(out);
}

static void streams_give_the_same(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    dice d = {.seed = 2};
    float *want = malloc(COUNT * sizeof *want);
    double *wide = malloc(COUNT * sizeof *wide);
    for (int i = 0; i < COUNT; i++) wide[i] = (double)(want[i] = i % 3 ? dice_unit(&d) : 0);
    size_t size, wide_size;
    unsigned char *p = npy_of("<f4", "(1000, 100)", want, COUNT * sizeof *want, &size);
    unsigned char *q = npy_of("<f8", "(1000, 100)", wide, COUNT * sizeof *wide, &wide_size);
    made m = {0};
    made_member(&m, "a.npy", p, size, 0);
    made_member(&m, "b.npy", p, size, DEFLATE);
    made_member(&m, "c.npy", q, wide_size, 0);
    made_member(&m, "d.npy", q, wide_size, DEFLATE);
    made_end(&m, false);
    npz z;
    err e = {0};
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    for (int i = 0; i < 4; i++) read_in_pieces(&z, &z.entry[i], want, &d);
    npz_close(&z);
    free(m.data);
    free(p);
    free(q);
    free(want);
    free(wide);
}

// Only what is deflated and in Fortran order must be in memory as a whole; above a limit it is refused before it is.
static void large_fortran_order_is_refused(void **state) {
    (void)state;
    enum { NOISE = 300000 };
    static unsigned char noise[NOISE];
    dice d = {.seed = 4};
    for (int i = 0; i < NOISE; i++) noise[i] = (unsigned char)dice_below(&d, 256);
    size_t size, full = 128 + (size_t)8192 * 8193 * 4;
    unsigned char *p = npy_of("<f4", "(8192, 8193)", noise, NOISE, &size);
    char *order = strstr((char *)p + 10, "False");
    assert_non_null(order);
    memcpy(order, "True ", 5);
    made m = {0};
    made_member(&m, "a.npy", p, size, DEFLATE);
    m.member[0].full = full;
    set(&m, m.member[0].local + 22, full, 4);
    made_end(&m, false);
    npz z;
    err e = {0};
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    assert_null(npz_stream_open(&z, &z.entry[0], NULL, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "numpy.ascontiguousarray"));
    npz_close(&z);
    free(m.data);
    free(p);
}

static void values_that_do_not_fit_are_named(void **state) {
    (void)state;
    npz z;
    err e = {0};
    int32_t out[6];
    made m = two_arrays(false);
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    assert_false(npz_read(&z, &z.entry[1], NULL, NPY_I32, out, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "f.npz: element 0 of b is not a whole number that fits i32");
    npz_close(&z);
    free(m.data);
}

// Writing

static void files_are_written(void **state) {
    (void)state;
    static float series[1000][3];
    static const char *const names[] = {"open", "h\xc3\xb6he", "", "\xe7\xb5\x82\xe5\x80\xa4"};
    dice d = {.seed = 3};
    for (int i = 0; i < 3000; i++) series[i / 3][i % 3] = dice_unit(&d);
    npz_writer w;
    err e = {0};
    support_ok(npz_writer_open(&w, "set.npz", &e), &e);
    support_ok(npz_writer_begin(&w, "series", NPY_F32, 2, (int64_t[]){-1, 3}, &e), &e);
    for (int i = 0; i < 1000; i++) support_ok(npz_writer_write(&w, series[i], sizeof series[i], &e), &e);
    support_ok(npz_writer_write(&w, NULL, 0, &e), &e);
    support_ok(npz_writer_end(&w, &e), &e);
    support_ok(npz_writer_text(&w, "names", names, 4, &e), &e);
    support_ok(npz_writer_array(&w, "one", NPY_I64, 0, NULL, &(int64_t){77}, &e), &e);
    support_ok(npz_writer_array(&w, "none", NPY_U8, 3, (int64_t[]){4, 0, 2}, NULL, &e), &e);
    support_ok(npz_writer_array(&w, "h\xc3\xb6he", NPY_BOOL, 1, (int64_t[]){3}, "\1\0\1", &e), &e);
    support_ok(npz_writer_array(&w, "whole", NPY_F32, 2, (int64_t[]){1000, 3}, series, &e), &e);
    support_ok(npz_writer_text(&w, "no names", NULL, 0, &e), &e);
    assert_int_equal(access("set.npz", F_OK), -1);
    support_ok(npz_writer_commit(&w, &e), &e);
    npz_writer_abandon(&w);

    npz z;
    support_ok(npz_open(&z, "set.npz", &e), &e);
    assert_int_equal(z.entries, 7);
    for (int64_t i = 0; i < z.entries; i++) {
        const npz_entry *n = &z.entry[i];
        assert_int_equal((n->member->data + (uint64_t)n->header.head) % 64, 0);
        assert_int_equal((uintptr_t)npz_data(&z, n) % 64, 0);
    }
    static float back[1000][3];
    assert_int_equal(npz_find(&z, "series")->header.dim[0], 1000);
    support_ok(npz_read(&z, npz_find(&z, "series"), NULL, NPY_F32, back, &e), &e);
    assert_memory_equal(back, series, sizeof series);
    support_ok(npz_read(&z, npz_find(&z, "whole"), NULL, NPY_F32, back, &e), &e);
    assert_memory_equal(back, series, sizeof series);
    assert_true(
        element(&z, "one", 0) == 77 && element(&z, "h\xc3\xb6he", 1) == 0 && element(&z, "h\xc3\xb6he", 2) == 1);
    arena a;
    arena_init(&a);
    const char *const *text = npz_read_text(&z, npz_find(&z, "names"), &a, &e);
    support_ok(text, &e);
    for (int i = 0; i < 4; i++) assert_string_equal(text[i], names[i]);
    arena_done(&a);
    npz_close(&z);
}

static void text_must_be_utf8(void **state) {
    (void)state;
    npz_writer w;
    err e = {0};
    support_ok(npz_writer_open(&w, "set.npz", &e), &e);
    assert_false(npz_writer_text(&w, "names", (const char *const[]){"a", "\xff"}, 2, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    npz_writer_abandon(&w);
    npz_writer_abandon(&w);
    assert_int_equal(access("set.npz", F_OK), -1);
}

// As many and as long names as a large panel has: above 16 MiB, and nearly all of it zeros.
static void long_lists_of_names_are_read_back(void **state) {
    (void)state;
    enum { COUNT = 48000, LONG = 91 };
    char longest[LONG + 1], (*name)[8] = malloc(COUNT * sizeof *name);
    const char **text = malloc(COUNT * sizeof *text);
    npz_writer w;
    npz z;
    err e = {0};
    assert_true(name && text);
    memset(longest, 'x', LONG);
    longest[LONG] = 0;
    for (int i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof name[i], "S%d", i);
        text[i] = i == 7 ? longest : name[i];
    }
    support_ok(npz_writer_open(&w, "set.npz", &e) && npz_writer_text(&w, "names", text, COUNT, &e), &e);
    support_ok(npz_writer_commit(&w, &e), &e);
    npz_writer_abandon(&w);
    support_ok(npz_open(&z, "set.npz", &e), &e);
    assert_true(npz_find(&z, "names")->header.bytes > 16 << 20);
    arena a;
    arena_init(&a);
    const char *const *back = npz_read_text(&z, npz_find(&z, "names"), &a, &e);
    support_ok(back != NULL, &e);
    for (int i = 0; i < COUNT; i++) assert_string_equal(back[i], text[i]);
    arena_done(&a);
    npz_close(&z);
    free(text);
    free(name);
}

// Text that npz_read_text would not take is not written.
static void too_many_names_are_refused(void **state) {
    (void)state;
    enum { COUNT = (1 << 20) + 1 };
    const char **text = malloc(COUNT * sizeof *text);
    npz_writer w;
    err e = {0};
    assert_non_null(text);
    for (int i = 0; i < COUNT; i++) text[i] = "a";
    support_ok(npz_writer_open(&w, "set.npz", &e), &e);
    assert_false(npz_writer_text(&w, "names", text, COUNT, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "names: has 1048577 names"));
    npz_writer_abandon(&w);
    free(text);
}

static void write_twice(void) {
    npz_writer w;
    err e;
    if (!npz_writer_open(&w, "set.npz", &e)) return;
    npz_writer_array(&w, "a", NPY_U8, 0, NULL, "", &e);
    npz_writer_array(&w, "a", NPY_U8, 0, NULL, "", &e);
}

static void write_too_little(void) {
    npz_writer w;
    err e;
    if (npz_writer_open(&w, "set.npz", &e) && npz_writer_begin(&w, "a", NPY_U8, 1, (int64_t[]){2}, &e))
        npz_writer_end(&w, &e);
}

static void write_half_a_row(void) {
    npz_writer w;
    err e;
    if (npz_writer_open(&w, "set.npz", &e) && npz_writer_begin(&w, "a", NPY_F32, 2, (int64_t[]){-1, 2}, &e) &&
        npz_writer_write(&w, "1234", 4, &e))
        npz_writer_end(&w, &e);
}

static void misuse_stops_the_program(void **state) {
    (void)state;
    support_aborts(write_twice, "a.npy is written twice");
    support_aborts(write_too_little, "ends after 0");
    support_aborts(write_half_a_row, "within a row");
}

static int files_here(void) {
    DIR *d = opendir(".");
    assert_non_null(d);
    int count = 0;
    for (const struct dirent *i; (i = readdir(d));) count += i->d_name[0] != '.';
    closedir(d);
    return count;
}

// A limit on the size of files stands in for a full disk. It is met in the data, or as late as in the directory.
static void full_disk_leaves_nothing(void **state) {
    (void)state;
    static char block[100000];
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int late = 0; late < 3; late++) {
        small.rlim_cur = late == 2 ? 1000400 : late ? 1000100 : 50000;
        setrlimit(RLIMIT_FSIZE, &small);
        npz_writer w;
        err e = {0};
        bool ok = npz_writer_open(&w, "set.npz", &e) && npz_writer_begin(&w, "a", NPY_U8, 1, (int64_t[]){1000000}, &e);
        for (int i = 0; ok && i < 10; i++) ok = npz_writer_write(&w, block, sizeof block, &e);
        ok = ok && npz_writer_end(&w, &e);
        ok = ok && npz_writer_commit(&w, &e);
        npz_writer_abandon(&w);
        setrlimit(RLIMIT_FSIZE, &before);
        if (late < 2) {
            assert_false(ok);
            assert_int_equal(e.kind, ERR_RUN);
            assert_string_equal(
                e.text, "set.npz: cannot be written: File too large; raise the limit on a file's size (ulimit -f)");
            assert_int_equal(files_here(), 0);
        } else {
            support_ok(ok, &e);
        }
    }
    signal(SIGXFSZ, handler);
}

static long anonymous_kb(void) {
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    char line[256];
    long kb = -1;
    while (fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %ld", &kb);
    fclose(f);
    return kb;
}

// Sums an array through a stream; the memory that this took, at its most.
static long read_through(const npz *z, const npz_entry *n, double *sum) {
    static float rows[16384];
    err e = {0};
    long before = anonymous_kb(), most = before;
    npz_stream *s = npz_stream_open(z, n, NULL, &e);
    support_ok(s, &e);
    for (int64_t left, at = 0; (left = npz_stream_left(s)); at++) {
        int64_t count = left < 16384 ? left : 16384;
        support_ok(npz_stream_read(s, NPY_F32, rows, count, &e), &e);
        *sum += (double)rows[0] + (double)rows[count - 1];
        if (at % 64) continue;
        long now = anonymous_kb();
        most = now > most ? now : most;
    }
    npz_stream_close(s);
    return most - before;
}

// An array of `megabytes` as the content of a .npy, deflated; the last float of each megabyte is 1.
static void made_large(made *m, int megabytes) {
    static unsigned char block[1 << 20];
    char shape[32];
    size_t size, packed = 0, room = (size_t)megabytes * 16000 + 100000;
    unsigned char *out = malloc(room);
    snprintf(shape, sizeof shape, "(%d,)", megabytes << 18);
    unsigned char *head = npy_of("<f4", shape, NULL, 0, &size);
    memcpy(block + sizeof block - 4, &(float){1}, 4);
    z_stream f = {.next_out = out, .avail_out = (uInt)room, .next_in = head, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&f, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uint32_t crc = (uint32_t)crc32(0, head, (uInt)size);
    for (int i = 0; i < megabytes; i++) {
        assert_int_equal(deflate(&f, Z_NO_FLUSH), Z_OK);
        assert_int_equal(f.avail_in, 0);
        f.next_in = block;
        f.avail_in = sizeof block;
        crc = (uint32_t)crc32(crc, block, sizeof block);
    }
    assert_int_equal(deflate(&f, Z_FINISH), Z_STREAM_END);
    packed = f.total_out;
    deflateEnd(&f);
    made_member(m, "a.npy", out, packed, 0);
    m->member[0].how = DEFLATE;
    m->member[0].full = size + ((size_t)megabytes << 20);
    m->member[0].crc = crc;
    set(m, 8, 8, 2);
    set(m, 14, crc, 4);
    set(m, 22, m->member[0].full, 4);
    made_end(m, false);
    free(head);
    free(out);
}

static void memory_does_not_grow_with_arrays(void **state) {
    (void)state;
    int megabytes = support_sanitized() ? 40 : 400;
    static float block[1 << 18];
    npz_writer w;
    npz z;
    err e = {0};
    double sum = 0;
    block[0] = 1;
    long before = anonymous_kb();
    support_ok(npz_writer_open(&w, "set.npz", &e), &e);
    support_ok(npz_writer_begin(&w, "a", NPY_F32, 2, (int64_t[]){-1, 1 << 18}, &e), &e);
    for (int i = 0; i < megabytes; i++) support_ok(npz_writer_write(&w, block, sizeof block, &e), &e);
    support_ok(npz_writer_end(&w, &e), &e);
    support_ok(npz_writer_commit(&w, &e), &e);
    long writing = anonymous_kb() - before;
    support_ok(npz_open(&z, "set.npz", &e), &e);
    long stored = read_through(&z, &z.entry[0], &sum);
    assert_true(sum == megabytes);
    npz_close(&z);
    made m = {0};
    made_large(&m, megabytes);
    support_ok(npz_open_memory(&z, "f.npz", m.data, m.size, &e), &e);
    sum = 0;
    long inflated = read_through(&z, &z.entry[0], &sum);
    assert_true(sum == megabytes);
    npz_close(&z);
    free(m.data);
    print_message(
        "anonymous memory in KiB: writing %ld, reading stored %ld, deflated %ld\n", writing, stored, inflated);
    if (!support_sanitized()) assert_true(writing < 8192 && stored < 8192 && inflated < 8192);
}

int main(void) {
#define IN_ITS_OWN_DIRECTORY(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_archives_are_read),
        cmocka_unit_test(a_comment_may_follow),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(turned_bits_do_no_harm),
        cmocka_unit_test(lies_about_places_are_refused),
        cmocka_unit_test(split_archives_are_refused),
        cmocka_unit_test(lies_about_sizes_are_refused),
        cmocka_unit_test(inflation_is_capped),
        cmocka_unit_test(damage_is_found_when_read),
        cmocka_unit_test(names_can_be_printed),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(numpy_files_are_read),
        cmocka_unit_test(records_are_read_by_field),
        cmocka_unit_test(streams_give_the_same),
        cmocka_unit_test(large_fortran_order_is_refused),
        cmocka_unit_test(values_that_do_not_fit_are_named),
        IN_ITS_OWN_DIRECTORY(files_are_written),
        IN_ITS_OWN_DIRECTORY(text_must_be_utf8),
        IN_ITS_OWN_DIRECTORY(long_lists_of_names_are_read_back),
        IN_ITS_OWN_DIRECTORY(too_many_names_are_refused),
        IN_ITS_OWN_DIRECTORY(misuse_stops_the_program),
        IN_ITS_OWN_DIRECTORY(full_disk_leaves_nothing),
        IN_ITS_OWN_DIRECTORY(memory_does_not_grow_with_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
