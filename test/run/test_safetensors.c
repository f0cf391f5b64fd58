// safetensors: what is written reads back; what is damaged is refused with one line that names the file.
#include "run/safetensors.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_NAME "x.safetensors"

// A file of a header and `bytes` bytes of data; `length` is what it says of its header.
static void put_raw(uint64_t length, const char *header, size_t bytes) {
    size_t text = strlen(header);
    unsigned char *all = calloc(1, 8 + text + bytes);
    assert_non_null(all);
    for (int i = 0; i < 8; i++) all[i] = (unsigned char)(length >> (8 * i));
    memcpy(all + 8, header, text);
    for (size_t i = 0; i < bytes; i++) all[8 + text + i] = (unsigned char)i;
    support_put(FILE_NAME, all, 8 + text + bytes);
    free(all);
}

static void refused(const char *why) {
    err e = {0};
    safetensors *s = safetensors_open(FILE_NAME, &e);
    if (s) fail_msg("accepted: %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (strncmp(e.text, FILE_NAME ": ", sizeof FILE_NAME + 1) != 0) fail_msg("%s: no file named in %s", why, e.text);
    for (const char *c = e.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) fail_msg("%s: a control character in %s", why, e.text);
}

static void refuse(const char *header, size_t bytes, const char *why) {
    put_raw(strlen(header), header, bytes);
    refused(why);
}

static void accept(const char *header, size_t bytes, int count) {
    err e = {0};
    put_raw(strlen(header), header, bytes);
    safetensors *s = safetensors_open(FILE_NAME, &e);
    support_ok(s != NULL, &e);
    assert_int_equal(safetensors_count(s), count);
    safetensors_close(s);
}

// Round trips

static const float floats[6] = {1, -2.5f, 3e-38f, 4e30f, 0, -0.0f};
static const int64_t wide[3] = {1, -2, INT64_MAX};
static const unsigned char bytes[5] = {0, 1, 2, 254, 255};

static const safetensors_entry samples[] = {
    {"head.0.weight", SAFE_F32, 2, {2, 3}, floats, 24},
    {"scalar", SAFE_F32, 0, {0}, floats + 1, 4},
    {"empty", SAFE_F64, 3, {4, 0, 7}, floats, 0},
    {"odd", SAFE_U8, 1, {5}, bytes, 5},
    {"signed", SAFE_I8, 1, {3}, bytes, 3},
    {"half", SAFE_F16, 2, {1, 2}, bytes, 4},
    {"brain", SAFE_BF16, 1, {1}, bytes, 2},
    {"counts", SAFE_I64, 1, {3}, wide, 24},
    {"ids", SAFE_I32, 8, {1, 1, 1, 1, 1, 1, 1, 2}, floats, 8},
    {"names may hold \"quotes\", caf\xc3\xa9 and \\", SAFE_F64, 1, {1}, wide, 8},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void write_samples(const char *path) {
    err e = {0};
    safetensors_note notes[] = {{"format", "pt"}, {"note", "a \"b\" \\ c"}};
    support_ok(safetensors_write(path, samples, SAMPLES, notes, 2, &e), &e);
}

static void round_trip(void **state) {
    (void)state;
    err e = {0};
    write_samples(FILE_NAME);
    safetensors *s = safetensors_open(FILE_NAME, &e);
    support_ok(s != NULL, &e);
    assert_int_equal(safetensors_count(s), SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        const safetensors_entry *t = safetensors_find(s, samples[i].name);
        assert_non_null(t);
        assert_string_equal(t->name, samples[i].name);
        assert_int_equal(t->type, samples[i].type);
        assert_int_equal(t->rank, samples[i].rank);
        for (int k = 0; k < t->rank; k++) assert_int_equal(t->dim[k], samples[i].dim[k]);
        assert_int_equal(t->bytes, samples[i].bytes);
        assert_memory_equal(t->data, samples[i].data, t->bytes);
    }
    assert_null(safetensors_find(s, "missing"));
    assert_null(safetensors_find(s, "__metadata__"));
    assert_string_equal(safetensors_metadata(s, "format"), "pt");
    assert_string_equal(safetensors_metadata(s, "note"), "a \"b\" \\ c");
    assert_null(safetensors_metadata(s, "missing"));
    for (int i = 1; i < SAMPLES; i++)
        assert_true((const char *)safetensors_at(s, i - 1)->data <= (const char *)safetensors_at(s, i)->data);
    safetensors_close(s);
    safetensors_close(NULL);
}

static char *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = malloc(1 << 16);
    assert_non_null(text);
    *n = fread(text, 1, 1 << 16, f);
    fclose(f);
    return text;
}

static void written_bytes_are_the_same_and_aligned(void **state) {
    (void)state;
    err e = {0};
    size_t n, m;
    write_samples("a");
    write_samples("b");
    write_samples("b"); // over an old one
    char *a = slurp("a", &n), *b = slurp("b", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    uint64_t header;
    memcpy(&header, a, sizeof header);
    assert_int_equal((8 + header) % 64, 0);
    free(a);
    free(b);
    support_ok(safetensors_write("none", NULL, 0, NULL, 0, &e), &e);
    safetensors *s = safetensors_open("none", &e);
    support_ok(s != NULL, &e);
    assert_int_equal(safetensors_count(s), 0);
    assert_null(safetensors_metadata(s, "format"));
    safetensors_close(s);
    assert_false(safetensors_write("missing/x", samples, SAMPLES, NULL, 0, &e));
    assert_int_equal(strncmp(e.text, "missing/x", 9), 0);
}

static void legal_oddities_are_accepted(void **state) {
    (void)state;
    accept("{}", 0, 0);
    accept("{}          ", 0, 0);
    accept("{\"__metadata__\":{\"a\":\"b\"}}", 0, 0);
    accept("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1);
    accept("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 1);
    accept("{\"z\":{\"dtype\":\"F32\",\"shape\":[3,0,2],\"data_offsets\":[4,4]},"
           "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"y\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]},"
           "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
        8, 4);
    accept("{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[1,4]},"
           "\"a\":{\"data_offsets\":[0,1],\"shape\":[1],\"dtype\":\"I8\",\"more\":1}}",
        4, 2);
}

// Damage

static void lengths_are_checked(void **state) {
    (void)state;
    for (size_t n = 0; n < 8; n++) {
        support_put(FILE_NAME, "\2\0\0\0\0\0\0\0", n);
        refused("shorter than a length");
    }
    put_raw(0, "", 0);
    refused("no header");
    put_raw(3, "{}", 0);
    refused("a header beyond the end");
    err e;
    assert_null(safetensors_open(FILE_NAME, &e));
    assert_non_null(strstr(e.text, "cut short")); // by its length, before anything is read there
    put_raw(UINT64_MAX, "{}", 0);
    refused("the longest header");
    put_raw(UINT64_MAX - 7, "{}", 0);
    refused("a length that overflows");
    put_raw(100000001, "{}", 0);
    assert_int_equal(truncate(FILE_NAME, 100000001 + 100), 0); // sparse
    refused("a header of more than 100 MB");
}

static void headers_are_checked(void **state) {
    (void)state;
    refuse("[]", 0, "an array");
    refuse("{", 0, "cut JSON");
    refuse("{}x", 0, "text after the header");
    refuse("{\"a\":1}", 0, "a number for a tensor");
    refuse("{\"a\":{}}", 0, "an empty tensor");
    refuse("{\"a\":null}", 0, "null for a tensor");
    refuse("\x93NUMPY", 0, "another format");
    refuse("{\"__metadata__\":1}", 0, "metadata that are no object");
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "metadata that are no text");
#define TENSOR(name, dtype, shape, offsets)                                                                            \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
    refuse(
        "{" TENSOR("a", "\"F32\"", "[1]", "[0,4]") "," TENSOR("a", "\"F32\"", "[1]", "[4,8]") "}", 8, "a name twice");
    refuse("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a key twice");
    refuse("{" TENSOR("a\\nb\\u001b[2J", "\"F32\"", "[2]", "[0,4]") "}", 4, "a name of two lines, described wrongly");
}

static void types_and_shapes_are_checked(void **state) {
    (void)state;
    refuse("{" TENSOR("a", "\"F33\"", "[1]", "[0,4]") "}", 4, "an unknown type");
    refuse("{" TENSOR("a", "\"f32\"", "[1]", "[0,4]") "}", 4, "a type in small letters");
    refuse("{" TENSOR("a", "32", "[1]", "[0,4]") "}", 4, "a number for a type");
    refuse("{" TENSOR("a", "\"F32\"", "1", "[0,4]") "}", 4, "a number for a shape");
    refuse("{" TENSOR("a", "\"F32\"", "[1.0]", "[0,4]") "}", 4, "a shape of reals");
    refuse("{" TENSOR("a", "\"F32\"", "[\"1\"]", "[0,4]") "}", 4, "a shape of texts");
    refuse("{" TENSOR("a", "\"F32\"", "[-1]", "[0,4]") "}", 4, "a negative dimension");
    refuse("{" TENSOR("a", "\"F32\"", "[-1,-1]", "[0,4]") "}", 4, "two negative dimensions");
    refuse("{" TENSOR("a", "\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "nine dimensions");
    refuse("{" TENSOR("a", "\"F32\"", "[2]", "[0,4]") "}", 4, "fewer bytes than the shape says");
    refuse("{" TENSOR("a", "\"F64\"", "[1]", "[0,4]") "}", 4, "fewer bytes than the type says");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,8]") "}", 8, "more bytes than the shape says");
    refuse("{" TENSOR("a", "\"F32\"", "[]", "[0,0]") "}", 0, "a scalar without bytes");
    refuse("{" TENSOR("a", "\"F32\"", "[4611686018427387904]", "[0,0]") "}", 0, "2^62 elements of 4 bytes");
    refuse("{" TENSOR("a", "\"F32\"", "[4294967296,4294967296]", "[0,0]") "}", 0, "2^32 x 2^32 elements");
    refuse("{" TENSOR("a", "\"I8\"", "[4294967296,4294967296,2]", "[0,0]") "}", 0, "2^65 bytes");
    refuse("{" TENSOR("a", "\"I8\"", "[18446744073709551616]", "[0,0]") "}", 0, "a dimension of 2^64");
    refuse("{" TENSOR("a", "\"I8\"", "[9223372036854775807,9223372036854775807]", "[0,1]") "}", 1, "nearly 2^126");
}

static void offsets_are_checked(void **state) {
    (void)state;
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[4,8]") "}", 8, "a hole before the first");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,4]") "," TENSOR("b", "\"F32\"", "[1]", "[8,12]") "}", 12, "a hole");
    refuse(
        "{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("b", "\"F32\"", "[2]", "[4,12]") "}", 12, "an overlap");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,4]") "," TENSOR("b", "\"F32\"", "[1]", "[0,4]") "}", 4,
        "one place twice");
    refuse("{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("b", "\"F32\"", "[0]", "[4,4]") "}", 8,
        "empty, inside another");
    refuse("{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("b", "\"F32\"", "[1]", "[4,8]") "}", 12,
        "an overlap, and as many bytes after the last");
    refuse("{" TENSOR("a", "\"F32\"", "[2]", "[0,4]") "," TENSOR("b", "\"F32\"", "[1]", "[8,12]") "}", 12,
        "a shape that reaches over the hole behind it");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,4]") "}", 5, "a byte after the last");
    refuse("{}", 1, "a byte and no tensor");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,4]") "}", 3, "data cut short");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[4,0]") "}", 4, "an end before the beginning");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[-4,0]") "}", 4, "a negative offset");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0,4,8]") "}", 4, "three offsets");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[4]") "}", 4, "one offset");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[0.0,4.0]") "}", 4, "offsets of reals");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "{}") "}", 4, "no list of offsets");
    refuse("{" TENSOR("a", "\"F32\"", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4, "offsets near 2^63");
}

static void every_cut_is_refused(void **state) {
    (void)state;
    size_t n;
    write_samples(FILE_NAME);
    char *whole = slurp(FILE_NAME, &n);
    for (size_t cut = 0; cut < n; cut++) {
        support_put(FILE_NAME, whole, cut);
        refused("a file cut short");
    }
    free(whole);
}

static void missing_files_are_named(void **state) {
    (void)state;
    refused("missing");
    err e = {0};
    assert_null(safetensors_open(".", &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

// Fuzzing

// Digits and structure are worth more than any byte.
static void mutate(dice *d, char *text, size_t *n, size_t room) {
    static const char likely[] = "0123456789[]{},:\"-.eF\\ ";
    size_t at = dice_below(d, *n);
    switch (dice_below(d, 6)) {
    case 0: text[at] = (char)dice_below(d, 256); break;
    case 1: text[at] = likely[dice_below(d, sizeof likely - 1)]; break;
    case 2: text[dice_below(d, 8)] ^= (char)(1 << dice_below(d, 8)); break;
    case 3: *n = at + 1; break;
    case 4:
        if (*n + 1 >= room) break;
        memmove(text + at + 1, text + at, *n - at);
        text[at] = likely[dice_below(d, sizeof likely - 1)];
        ++*n;
        break;
    default:
        memmove(text + at, text + at + 1, *n - at - 1);
        *n = *n > 1 ? *n - 1 : 1;
        break;
    }
}

// Whatever is accepted holds together: every byte that an entry names can be read, and they cover the data once.
static void check_whole(const safetensors *s) {
    unsigned sum = 0;
    const unsigned char *at = safetensors_count(s) ? safetensors_at(s, 0)->data : NULL;
    for (int i = 0; i < safetensors_count(s); i++) {
        const safetensors_entry *t = safetensors_at(s, i);
        assert_true(t->rank >= 0 && t->rank <= SAFETENSORS_RANK_MOST);
        assert_ptr_equal(t->data, at);
        for (size_t k = 0; k < t->bytes; k++) sum += at[k];
        at += t->bytes;
    }
    assert_true(sum < UINT32_MAX);
    safetensors_metadata(s, "format");
}

static void mutations_neither_crash_nor_leak(void **state) {
    (void)state;
    enum { ROOM = 1 << 14, TIMES = 5000 };
    static char text[ROOM];
    size_t n, opened = 0;
    dice d = {.seed = 21};
    write_samples(FILE_NAME);
    char *whole = slurp(FILE_NAME, &n);
    for (int i = 0; i < TIMES; i++) {
        size_t size = n;
        memcpy(text, whole, n);
        for (uint64_t k = 1 + dice_below(&d, 4); k > 0; k--) mutate(&d, text, &size, ROOM);
        support_put(FILE_NAME, text, size);
        err e = {0};
        safetensors *s = safetensors_open(FILE_NAME, &e);
        if (s) check_whole(s);
        if (!s) assert_int_equal(strncmp(e.text, FILE_NAME, sizeof FILE_NAME - 1), 0);
        opened += s != NULL;
        safetensors_close(s);
    }
    print_message("%zu of %d mutations were still whole\n", opened, TIMES);
    assert_true(opened > 0 && opened < TIMES / 2);
    free(whole);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(round_trip),
        TEST(written_bytes_are_the_same_and_aligned),
        TEST(legal_oddities_are_accepted),
        TEST(lengths_are_checked),
        TEST(headers_are_checked),
        TEST(types_and_shapes_are_checked),
        TEST(offsets_are_checked),
        TEST(every_cut_is_refused),
        TEST(missing_files_are_named),
        TEST(mutations_neither_crash_nor_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
