// Array headers as numpy writes them and as nobody should; elements as other types.
#include "data/npy.h"
#include "support.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A header of a version with this dict; the caller frees it.
static unsigned char *head_of(int version, const char *dict, size_t *bytes) {
    size_t text = strlen(dict), start = version > 1 ? 12 : 10;
    unsigned char *p = malloc(start + text);
    assert_non_null(p);
    memcpy(p, "\x93NUMPY", 6);
    p[6] = (unsigned char)version;
    p[7] = 0;
    for (size_t i = 8; i < start; i++) p[i] = (unsigned char)(text >> (8 * (i - 8)));
    memcpy(p + start, dict, text);
    *bytes = start + text;
    return p;
}

static bool parse(npy_header *h, arena *a, int version, const char *dict, err *e) {
    size_t bytes;
    unsigned char *p = head_of(version, dict, &bytes);
    bool ok = npy_parse(h, a, p, (int64_t)bytes, "a", e);
    free(p);
    return ok;
}

static npy_header accept(arena *a, int version, const char *dict) {
    npy_header h;
    err e = {0};
    support_ok(parse(&h, a, version, dict, &e), &e);
    return h;
}

static void accept_type(const char *descr, npy_type type, bool swapped, int64_t item) {
    char dict[128];
    arena a;
    arena_init(&a);
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", descr);
    npy_header h = accept(&a, 1, dict);
    if (h.type != type || h.swapped != swapped || h.item != item)
        fail_msg("%s is %s of %ld bytes", descr, npy_type_name(h.type), (long)h.item);
    assert_int_equal(h.bytes, item < 0 ? -1 : 2 * item);
    arena_done(&a);
}

static void types_are_known(void **state) {
    (void)state;
    accept_type("<f2", NPY_F16, false, 2);
    accept_type("<f4", NPY_F32, false, 4);
    accept_type("<f8", NPY_F64, false, 8);
    accept_type("|i1", NPY_I8, false, 1);
    accept_type("<i2", NPY_I16, false, 2);
    accept_type("<i4", NPY_I32, false, 4);
    accept_type("<i8", NPY_I64, false, 8);
    accept_type("|u1", NPY_U8, false, 1);
    accept_type("<u2", NPY_U16, false, 2);
    accept_type("<u4", NPY_U32, false, 4);
    accept_type("<u8", NPY_U64, false, 8);
    accept_type("|b1", NPY_BOOL, false, 1);
    accept_type(">f8", NPY_F64, true, 8);
    accept_type("=f8", NPY_F64, false, 8);
    accept_type("f8", NPY_F64, false, 8);
    accept_type(">i1", NPY_I8, false, 1);
    accept_type("<U7", NPY_TEXT, false, 28);
    accept_type(">U7", NPY_TEXT, true, 28);
    accept_type("<U0", NPY_TEXT, false, 0);
    accept_type("|S5", NPY_BYTES, false, 5);
    accept_type("<M8[ns]", NPY_TIME, false, 8);
    accept_type("<m8[D]", NPY_TIME, false, 8);
    accept_type("|O", NPY_OBJECT, false, -1);
    accept_type("|O8", NPY_OBJECT, false, -1);
    accept_type("<c8", NPY_OTHER, false, 8);
    accept_type("|V12", NPY_OTHER, false, 12);
    accept_type("<f16", NPY_OTHER, false, 16);
}

static void headers_are_read(void **state) {
    (void)state;
    arena a;
    arena_init(&a);
    npy_header h = accept(&a, 1, "{'shape': (10L, 3L), 'fortran_order': True, 'descr': \"<f4\"}   \n");
    assert_int_equal(h.rank, 2);
    assert_int_equal(h.dim[0], 10);
    assert_int_equal(h.dim[1], 3);
    assert_int_equal(h.count, 30);
    assert_int_equal(h.bytes, 120);
    assert_true(h.fortran);
    h = accept(&a, 2, "{'descr': '<f4', 'fortran_order': True, 'shape': (), }\n");
    assert_int_equal(h.rank, 0);
    assert_int_equal(h.count, 1);
    assert_false(h.fortran); // makes no difference
    h = accept(&a, 3, "{'descr':'<f4','fortran_order':True,'shape':(1,7,1)}");
    assert_int_equal(h.rank, 3);
    assert_false(h.fortran);
    h = accept(&a, 1, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (0, 4), }");
    assert_int_equal(h.count, 0);
    assert_int_equal(h.bytes, 0);
    assert_string_equal(h.unit, "ns");
    h = accept(&a, 1,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,2)}");
    assert_int_equal(h.rank, 32);
    assert_int_equal(h.count, 2);
    arena_done(&a);
}

static void records_are_read(void **state) {
    (void)state;
    arena a;
    arena_init(&a);
    npy_header h = accept(&a, 1,
        "{'descr': [('time', '<i8'), ('open', '>f8'), ('pad', '|V4'), ('spread', '<i4'), ('two', '<f4', (2, 3))], "
        "'fortran_order': False, 'shape': (5,), }");
    assert_int_equal(h.type, NPY_RECORD);
    assert_int_equal(h.fields, 5);
    assert_int_equal(h.item, 8 + 8 + 4 + 4 + 24);
    assert_int_equal(h.bytes, 5 * 48);
    assert_string_equal(h.field[1].name, "open");
    assert_int_equal(h.field[1].type, NPY_F64);
    assert_true(h.field[1].swapped);
    assert_int_equal(h.field[3].offset, 20);
    assert_int_equal(h.field[4].type, NPY_OTHER);
    h = accept(&a, 1, "{'descr': [('h\xf6he', '<f4')], 'fortran_order': False, 'shape': (1,), }");
    assert_string_equal(h.field[0].name, "h\xc3\xb6he");
    h = accept(&a, 3, "{'descr': [('h\xc3\xb6he', '<f4'), ], 'fortran_order': False, 'shape': (1,), }");
    assert_string_equal(h.field[0].name, "h\xc3\xb6he");
    // Nested types, and those with titles, are not read; an object anywhere is a pickle.
    h = accept(&a, 1, "{'descr': [('a', [('b', '<f4')]), ('c', '<f4')], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OTHER);
    assert_int_equal(h.bytes, -1);
    h = accept(&a, 1, "{'descr': [(('title', 'a'), '<f4')], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OTHER);
    h = accept(&a, 1, "{'descr': [('a', '<q'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OTHER);
    h = accept(&a, 1, "{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OBJECT);
    assert_int_equal(h.bytes, -1);
    h = accept(&a, 1, "{'descr': [('a', [('b', '|O')])], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OBJECT);
    h = accept(&a, 1, "{'descr': [('a', '|V70000')], 'fortran_order': False, 'shape': (1,), }");
    assert_int_equal(h.type, NPY_OTHER);
    arena_done(&a);
}

static void refuse(const char *dict, const char *why) {
    npy_header h;
    err e = {0};
    arena a;
    arena_init(&a);
    if (parse(&h, &a, 3, dict, &e)) fail_msg("%s is accepted", dict);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why) || strncmp(e.text, "a: ", 3)) fail_msg("%s: \"%s\" does not say %s", dict, e.text, why);
    arena_done(&a);
}

static void damage_is_refused(void **state) {
    (void)state;
    refuse("", "not a dict");
    refuse("{}", "missing");
    refuse("{'descr': '<f4', 'shape': (3,)}", "missing");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "comma");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "follows");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "unknown key");
    refuse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "twice");
    refuse("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "fortran_order");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "tuple");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", "tuple");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "whole number");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3.5,)}", "comma");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "comma");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too large");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "overflows");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}", "overflows");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}", "overflows");
    refuse("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}", "overflows");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
           "1,1,1,1,1)}",
        "32 dimensions");
    refuse("{'descr': '', 'fortran_order': False, 'shape': ()}", "empty");
    refuse("{'descr': '<', 'fortran_order': False, 'shape': ()}", "empty");
    refuse("{'descr': '<f4, 'fortran_order': False, 'shape': ()}", "comma");
    refuse("{'descr': '<f\\x34', 'fortran_order': False, 'shape': ()}", "not read");
    refuse("{'descr': [('a' '<f4')], 'fortran_order': False, 'shape': ()}", "no type");
    refuse("{'descr': [('a', '<f4') ('b', '<f4')], 'fortran_order': False, 'shape': ()}", "between fields");
    refuse("{'descr': [('a', [('b', '<f4')]), 'fortran_order': False, 'shape': ()}", "does not end");
    refuse("{'descr': [('\xff', '<f4')], 'fortran_order': False, 'shape': ()}", "UTF-8");
}

static void lengths_are_checked(void **state) {
    (void)state;
    static const char dict[] =
        "{'descr': [('a', '<f4'), ('b', '<f4', (2,))], 'fortran_order': False, 'shape': (3, 4), }\n";
    for (int version = 1; version <= 3; version++) {
        size_t bytes;
        unsigned char *p = head_of(version, dict, &bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            // A copy of exactly this length, so that a sanitizer sees a step beyond it.
            unsigned char *part = malloc(cut + 1);
            npy_header h;
            arena a;
            err e = {0};
            arena_init(&a);
            memcpy(part, p, cut);
            part = realloc(part, cut ? cut : 1);
            assert_false(npy_parse(&h, &a, part, (int64_t)cut, "a", &e));
            assert_int_equal(e.kind, ERR_INPUT);
            arena_done(&a);
            free(part);
        }
        err e = {0};
        p[6] = 4;
        assert_int_equal(npy_head_bytes(p, (int64_t)bytes, "a", &e), -1);
        assert_non_null(strstr(e.text, "version 4"));
        free(p);
    }
    err e = {0};
    assert_int_equal(npy_head_bytes("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "a", &e), -1);
    assert_non_null(strstr(e.text, "4294967295"));
}

static void format_reads_back(void **state) {
    (void)state;
    dice d = {.seed = 1};
    for (int i = 0; i < 500; i++) {
        npy_header h = {.type = (npy_type)dice_below(&d, NPY_BOOL + 1), .rank = (int)dice_below(&d, NPY_RANK_MOST + 1)};
        h.item = npy_type_bytes(h.type);
        if (i % 7 == 0) h.type = NPY_TEXT, h.item = 4 * (1 + (int64_t)dice_below(&d, 1000));
        for (int r = 0; r < h.rank; r++) h.dim[r] = (int64_t)dice_below(&d, r ? 4 : 1000000000);
        unsigned char out[NPY_WRITE_MOST], grown[NPY_WRITE_MOST];
        int64_t bytes = npy_format(&h, out);
        assert_int_equal(bytes % 64, 0);
        assert_int_equal(out[bytes - 1], '\n');
        npy_header back;
        arena a;
        err e = {0};
        arena_init(&a);
        support_ok(npy_parse(&back, &a, out, bytes, "a", &e), &e);
        assert_int_equal(back.type, h.type);
        assert_int_equal(back.item, h.item);
        assert_int_equal(back.rank, h.rank);
        assert_int_equal(back.head, bytes);
        assert_memory_equal(back.dim, h.dim, sizeof h.dim);
        assert_false(back.swapped || back.fortran);
        h.dim[0] = INT64_MAX;
        assert_int_equal(npy_format(&h, grown), bytes);
        arena_done(&a);
    }
}

// One value of a type, unaligned and in the other byte order, as all that it can be read as.
static void read_one(npy_type from, const void *value, double f, int64_t whole, bool fits32) {
    unsigned char in[9], *p = in + 1;
    int64_t n = npy_type_bytes(from), i64 = 0;
    int32_t i32 = 0;
    float f32 = 0;
    double f64 = 0;
    for (int swapped = 0; swapped < 2; swapped++) {
        for (int64_t i = 0; i < n; i++) p[swapped ? n - 1 - i : i] = ((const unsigned char *)value)[i];
        assert_int_equal(npy_convert(from, swapped, p, NPY_F32, &f32, 1), 1);
        assert_int_equal(npy_convert(from, swapped, p, NPY_F64, &f64, 1), 1);
        assert_true(f32 == (float)f && f64 == f);
        assert_int_equal(npy_convert(from, swapped, p, NPY_I64, &i64, 1), 1);
        assert_int_equal(i64, whole);
        assert_int_equal(npy_convert(from, swapped, p, NPY_I32, &i32, 1), fits32);
        if (fits32) assert_int_equal(i32, whole);
        unsigned char same[8];
        assert_int_equal(npy_convert(from, swapped, p, from, same, 1), 1);
        assert_memory_equal(same, value, n);
    }
}

static void elements_convert(void **state) {
    (void)state;
    read_one(NPY_F16, &(uint16_t){0xc500}, -5, -5, true);
    read_one(NPY_F16, &(uint16_t){0x7bff}, 65504, 65504, true);
    read_one(NPY_F32, &(float){-7}, -7, -7, true);
    read_one(NPY_F64, &(double){0x1p40}, 0x1p40, INT64_C(1) << 40, false);
    read_one(NPY_I8, &(int8_t){-128}, -128, -128, true);
    read_one(NPY_I16, &(int16_t){-300}, -300, -300, true);
    read_one(NPY_I32, &(int32_t){INT32_MIN}, INT32_MIN, INT32_MIN, true);
    read_one(NPY_I64, &(int64_t){-3000000000}, -3e9, -3000000000, false);
    read_one(NPY_U8, &(uint8_t){255}, 255, 255, true);
    read_one(NPY_U16, &(uint16_t){65535}, 65535, 65535, true);
    read_one(NPY_U32, &(uint32_t){4294967295u}, 4294967295.0, 4294967295, false);
    read_one(NPY_U64, &(uint64_t){77}, 77, 77, true);
    read_one(NPY_BOOL, &(uint8_t){1}, 1, 1, true);
    read_one(NPY_TIME, &(int64_t){1704164645}, 1704164645, 1704164645, true);
}

static void halves_are_exact(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        int sign = bits >> 15 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
        double want = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        float got;
        assert_int_equal(npy_convert(NPY_F16, false, &half, NPY_F32, &got, 1), 1);
        if (exponent < 31)
            assert_true((double)got == sign * want && (signbit(got) != 0) == (sign < 0));
        else
            assert_true(fraction ? isnan(got) : isinf(got) && (got < 0) == (sign < 0));
    }
}

static void what_does_not_fit_is_found(void **state) {
    (void)state;
    double in[1200], bad[] = {0.5, NAN, INFINITY, -INFINITY, 2147483648.0, -2147483649.0, 1e300};
    int32_t out[1200];
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        for (int i = 0; i < 1200; i++) in[i] = i - 600;
        in[1100] = bad[b];
        assert_int_equal(npy_convert(NPY_F64, false, in, NPY_I32, out, 1200), 1100);
        assert_int_equal(out[1099], 499);
    }
    int64_t wide, least = INT64_MIN;
    double edge = 0x1p63, low = -0x1p63;
    assert_int_equal(npy_convert(NPY_F64, false, &edge, NPY_I64, &wide, 1), 0);
    assert_int_equal(npy_convert(NPY_F64, false, &low, NPY_I64, &wide, 1), 1);
    assert_true(wide == least);
    uint64_t large = UINT64_MAX;
    assert_int_equal(npy_convert(NPY_U64, false, &large, NPY_I64, &wide, 1), 0);
    assert_int_equal(npy_convert(NPY_U64, false, &large, NPY_F64, &edge, 1), 1);
    assert_true(edge == 0x1p64);
    assert_false(npy_converts(NPY_TEXT, NPY_F32));
    assert_false(npy_converts(NPY_F32, NPY_F16));
}

static void characters_are_checked(void **state) {
    (void)state;
    for (uint32_t c = 0; c < 0x120000; c++) {
        char text[4];
        uint32_t back = 0;
        int n = npy_utf8_put(c, text);
        assert_int_equal(n != 0, c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000));
        if (!n) continue;
        assert_int_equal(npy_utf8_get((unsigned char *)text, 4, &back), n);
        assert_int_equal(back, c);
        assert_int_equal(npy_utf8_get((unsigned char *)text, n - 1, &back), 0);
    }
    static const char *const wrong[] = {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t c;
        assert_int_equal(npy_utf8_get((const unsigned char *)wrong[i], (int64_t)strlen(wrong[i]), &c), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_known),
        cmocka_unit_test(headers_are_read),
        cmocka_unit_test(records_are_read),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(format_reads_back),
        cmocka_unit_test(elements_convert),
        cmocka_unit_test(halves_are_exact),
        cmocka_unit_test(what_does_not_fit_is_found),
        cmocka_unit_test(characters_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
