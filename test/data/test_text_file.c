// Packed files and standard input: the same bars as from the plain file, arrays left alone, damage told.
#include "data/text_file.h"

#include "data/bars.h"
#include "data/panel.h"
#include "data/sources.h"
#include "data/zip.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define SAMPLES TEST_DIR "/data/samples/bars/"

static const char text[] = "time,open,high,low,close\n2024-01-02,2,3,1,2\n2024-01-03,2,3,1,2\n";
enum { TEXT = sizeof text - 1 };

// A member of gzip data; `name` may be NULL.
static unsigned char *gzip_named(const void *data, size_t size, int level, char *name, size_t *packed) {
    z_stream z = {0};
    gz_header h = {.name = (Bytef *)name};
    *packed = size + size / 1024 + 1024 + (name ? strlen(name) : 0);
    unsigned char *out = malloc(*packed);
    assert_non_null(out);
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    if (name) assert_int_equal(deflateSetHeader(&z, &h), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)data;
    z.avail_in = (unsigned)size;
    z.next_out = out;
    z.avail_out = (unsigned)*packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed -= z.avail_out;
    deflateEnd(&z);
    return out;
}

static unsigned char *gzip(const void *data, size_t size, size_t *packed) {
    return gzip_named(data, size, 9, NULL, packed);
}

// An archive with members of these names, each holding the text.
static void put_zip(const char *path, const char *const *names, int count) {
    zip_writer w;
    err e = {0};
    support_ok(zip_writer_open(&w, path, &e), &e);
    for (int i = 0; i < count; i++) {
        support_ok(zip_writer_begin(&w, names[i], 0, &e), &e);
        support_ok(zip_writer_write(&w, text, TEXT, &e) && zip_writer_end(&w, NULL, &e), &e);
    }
    support_ok(zip_writer_commit(&w, &e), &e);
}

static void check_equal(const char *packed, const char *plain, const bars_options *o) {
    bars a, b;
    err e = {0};
    support_ok(bars_read(&a, packed, o, &e), &e);
    support_ok(bars_read(&b, plain, o, &e), &e);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.bar, b.bar, (size_t)a.count * sizeof *a.bar);
    assert_string_equal(a.format, b.format);
    bars_done(&a);
    bars_done(&b);
}

static void packed_bars_are_bars(void **state) {
    (void)state;
    source_kind kind;
    err e = {0};
    check_equal(SAMPLES "yahoo_old.csv.gz", SAMPLES "yahoo_old.csv", NULL);
    check_equal(SAMPLES "histdata.zip", SAMPLES "histdata.csv", NULL); // beside a report and a Mac's shadow
    support_ok(source_kind_of(SAMPLES "histdata.zip", &kind, &e), &e);
    assert_int_equal(kind, SOURCE_BARS);
}

static void which_member_is_the_text(void **state) {
    (void)state;
    static const struct {
        const char *names[8];
        const char *why; // NULL: it is read
    } cases[] = {
        {{"a.dat"}, NULL},
        {{"a.txt", "b.md"}, NULL},
        {{"a.TSV", "b.md"}, NULL},
        {{"a.txt", "B.CSV"}, NULL},
        {{"a.csv", "__MACOSX/a.csv"}, NULL},
        {{"a.csv", "b.csv"}, "t.zip: is an archive of several texts (a.csv, b.csv); unpack it and name one of them"},
        {{"a.txt", "b.txt"}, "t.zip: is an archive of several texts (a.txt, b.txt); unpack it and name one of them"},
        {{"a", "b"}, "t.zip: is an archive of no text (a, b); unpack it and name one of them"},
        {{"[Content_Types].xml", "xl/sheet.xml"}, "t.zip: is a workbook; save its sheet as CSV"},
        {{"1.csv", "2.csv", "3.csv", "4.csv", "5.csv", "6.csv", "7.csv"},
            "t.zip: is an archive of several texts (1.csv, 2.csv, 3.csv, 4.csv, 5.csv, 6.csv, ...); unpack it and name "
            "one of them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 0;
        err e = {0};
        text_file t;
        while (n < 8 && cases[i].names[n]) n++;
        put_zip("t.zip", cases[i].names, n);
        bool ok = text_file_open(&t, "t.zip", SIZE_MAX, &e);
        assert_int_equal(ok, !cases[i].why);
        if (ok) assert_true(t.size == TEXT && !memcmp(t.data, text, TEXT) && !t.arrays && t.written > 0);
        if (!ok) assert_string_equal(e.text, cases[i].why);
        text_file_close(&t);
        text_file_close(&t);
    }
}

static void archives_of_arrays_stay_arrays(void **state) {
    (void)state;
    static const char *const names[] = {"x.npy", "notes.csv"};
    source_kind kind;
    err e = {0};
    bars b;
    panel p;
    put_zip("t.npz", names, 2);
    support_ok(source_kind_of("t.npz", &kind, &e), &e);
    assert_int_equal(kind, SOURCE_ARRAYS);
    assert_false(bars_read(&b, "t.npz", NULL, &e));
    assert_string_equal(e.text, "t.npz: holds arrays, not bars; import it by itself");
    assert_false(panel_read(&p, "t.npz", &e));
    assert_string_equal(e.text, "t.npz: holds arrays, not a panel of series");
    put_zip("empty.npz", names, 0);
    support_ok(source_kind_of("empty.npz", &kind, &e), &e);
    assert_int_equal(kind, SOURCE_ARRAYS);
}

static void packed_panels_are_panels(void **state) {
    (void)state;
    static const char series[] = "id,V1,V2\na,1,2\nb,3,4\n";
    size_t n;
    unsigned char *packed = gzip(series, sizeof series - 1, &n);
    source_kind kind;
    panel p;
    err e = {0};
    support_put("p.gz", packed, n);
    support_ok(source_kind_of("p.gz", &kind, &e) && panel_read(&p, "p.gz", &e), &e);
    assert_true(kind == SOURCE_PANEL && p.series == 2);
    panel_done(&p);
    free(packed);
}

// A member that ends at a boundary of the pieces in which the input is read, or near it; its name fills it up.
static void members_end_anywhere(void **state) {
    (void)state;
    enum { PIECE = 1 << 24, DATA = PIECE - 20000 };
    size_t base, n, second;
    char *data = malloc(DATA), *name = calloc(1, 40000);
    assert_true(data && name);
    for (size_t i = 0; i < DATA; i++) data[i] = (char)('0' + i % 10);
    free(gzip_named(data, DATA, 0, name, &base));
    unsigned char *two = gzip(text, TEXT, &second);
    for (size_t left = 0; left < 4; left++) {
        text_file t;
        err e = {0};
        memset(name, 'n', PIECE - left - base);
        name[PIECE - left - base] = 0;
        unsigned char *one = gzip_named(data, DATA, 0, name, &n);
        assert_int_equal(n, PIECE - left);
        assert_non_null(one = realloc(one, n + second));
        memcpy(one + n, two, second);
        support_ok(text_file_unpack(&t, "t", one, n + second, SIZE_MAX, &e), &e);
        assert_int_equal(t.size, DATA + TEXT);
        assert_memory_equal(t.data + DATA, text, TEXT);
        text_file_close(&t);
        free(one);
    }
    free(two);
    free(data);
    free(name);
}

static void parts_and_members_of_gzip(void **state) {
    (void)state;
    size_t n;
    text_file t;
    err e = {0};
    unsigned char *one = gzip(text, TEXT, &n), *two = malloc(2 * n + 4);
    assert_non_null(two);
    memcpy(two, one, n);
    memcpy(two + n, one, n);
    memset(two + 2 * n, 0, 4);
    support_ok(text_file_unpack(&t, "t", two, 2 * n + 3, SIZE_MAX, &e), &e); // padded with zeros
    assert_int_equal(t.size, 2 * TEXT);
    assert_true(!memcmp(t.data, text, TEXT) && !memcmp(t.data + TEXT, text, TEXT));
    text_file_close(&t);
    for (size_t most = 1; most < TEXT; most += 7) {
        support_ok(text_file_unpack(&t, "t", one, n, most, &e), &e);
        assert_true(t.size == most && !memcmp(t.data, text, most));
        text_file_close(&t);
    }
    two[2 * n + 3] = 'x';
    assert_false(text_file_unpack(&t, "t", two, 2 * n + 4, SIZE_MAX, &e));
    assert_string_equal(e.text, "t: has more behind its gzip data");
    for (size_t cut = 2; cut < n; cut++) {
        assert_false(text_file_unpack(&t, "t", one, cut, SIZE_MAX, &e));
        assert_string_equal(e.text, "t: its gzip data is cut short; fetch it again");
        assert_true(!t.data && !t.owned);
    }
    for (size_t i = 0; i < n; i++) { // a change is refused, or changes nothing
        one[i] ^= 0x10;
        bool ok = text_file_unpack(&t, "t", one, n, SIZE_MAX, &e);
        assert_true(ok ? t.size == n || (t.size == TEXT && !memcmp(t.data, text, TEXT)) : e.kind == ERR_INPUT);
        text_file_close(&t);
        one[i] ^= 0x10;
    }
    free(one);
    free(two);
}

static void bombs_are_refused(void **state) {
    (void)state;
    size_t size = TEXT_FILE_FREE + 4096, n;
    char *zeros = calloc(1, size);
    assert_non_null(zeros);
    unsigned char *packed = gzip(zeros, size, &n);
    text_file t;
    err e = {0};
    assert_false(text_file_unpack(&t, "t.gz", packed, n, SIZE_MAX, &e));
    assert_string_equal(e.text, "t.gz: unpacks to more than 200 times its size; is it text? unpack it first");
    support_ok(text_file_unpack(&t, "t.gz", packed, n, 1 << 20, &e), &e);
    text_file_close(&t);
    free(packed);
    free(zeros);
}

// Puts a file in the place of standard input.
static void redirect(const char *path) {
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) >= 0);
    close(fd);
}

static void standard_input_holds_no_arrays(void **state) {
    (void)state;
    static const char *const names[] = {"x.npy"};
    put_zip("t.npz", names, 1);
    support_put("t.npy", "\x93NUMPY\1\0", 8);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork(); // it is read once for a process
        assert_true(child >= 0);
        if (!child) {
            text_file t;
            err e = {0};
            redirect(i ? "t.npy" : "t.npz");
            bool ok = text_file_open(&t, "-", SIZE_MAX, &e);
            _exit(ok || strcmp(e.text, "stdin: holds arrays; those are read from a file only") != 0);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void standard_input_is_read_once(void **state) {
    (void)state;
    source_kind kind;
    bars b;
    err e = {0};
    char path[512];
    snprintf(path, sizeof path, "%syahoo_old.csv.gz", SAMPLES);
    redirect(path);
    support_ok(source_kind_of("-", &kind, &e), &e);
    assert_int_equal(kind, SOURCE_BARS);
    check_equal("-", SAMPLES "yahoo_old.csv", NULL);
    sources s;
    support_ok(sources_read(&s, &(source_ask){.path = "-"}, 1, &(bars_options){0}, NULL, 0, &e), &e);
    assert_string_equal(s.file[0].path, "stdin");
    sources_done(&s);
    bars_options wrong = {.tz = "Nowhere"};
    assert_false(bars_read(&b, "-", &wrong, &e));
    assert_memory_equal(e.text, "stdin: ", 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_bars_are_bars),
        cmocka_unit_test_setup_teardown(which_member_is_the_text, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(archives_of_arrays_stay_arrays, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(packed_panels_are_panels, support_enter, support_leave),
        cmocka_unit_test(parts_and_members_of_gzip),
        cmocka_unit_test(members_end_anywhere),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test_setup_teardown(standard_input_holds_no_arrays, support_enter, support_leave),
        cmocka_unit_test(standard_input_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
