// Panels: the layout with its quirks, mistakes with their line, and the competition's own files where they are.
#include "data/panel.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static panel accept(const char *text) {
    panel p;
    err e = {0};
    support_ok(panel_parse(&p, "f.csv", text, strlen(text), &e), &e);
    return p;
}

// The usual three series.
static void check(const char *text) {
    panel p = accept(text);
    assert_int_equal(p.series, 3);
    assert_string_equal(p.name[0], "H1");
    assert_string_equal(p.name[1], "H,\"2\"");
    assert_string_equal(p.name[2], "H3");
    const int64_t offset[] = {0, 3, 4, 6};
    const double value[] = {605, -586.25, 1e-3, 7, 0.5, 2};
    assert_memory_equal(p.offset, offset, sizeof offset);
    assert_memory_equal(p.value, value, sizeof value);
    assert_int_equal(panel_find(&p, "H3"), 2);
    assert_int_equal(panel_find(&p, "H4"), -1);
    panel_done(&p);
    panel_done(&p);
}

static void layouts_are_read(void **state) {
    (void)state;
    check("\"V1\",\"V2\",\"V3\",\"V4\"\n\"H1\",\"605\",\"-586.25\",\"1e-3\"\n\"H,\"\"2\"\"\",\"7\",,\n\"H3\",\"0.5\","
          "\"2\",\n");
    check("V1,V2,V3,V4\r\nH1,605,-586.25,1e-3\r\n\"H,\"\"2\"\"\",7,,\r\nH3,.5,2.,\r\n");
    check("H1,605,-586.25,1e-3\n\"H,\"\"2\"\"\",7\nH3, +0.5 ,\"2\"");
    check("\xef\xbb\xbfV1,V2,V3,V4\n\nH1,605,-586.25,1e-3\n\r\n\"H,\"\"2\"\"\",7,NA,NaN,,,\nH3,0.5,2,\"\"\n\n");
}

// Names in no order, as many as a large panel has: each is found, and what lies between two is not.
static void every_name_is_found(void **state) {
    (void)state;
    enum { COUNT = 20011, STEP = 7919 }; // without a common factor
    char *text = NULL, name[16];
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    for (int i = 0; i < COUNT; i++) fprintf(f, "S%d,%d\n", (int)((int64_t)i * STEP % COUNT), i);
    fclose(f);
    panel p = accept(text);
    for (int i = 0; i < COUNT; i++) {
        int number = (int)((int64_t)i * STEP % COUNT);
        snprintf(name, sizeof name, "S%d", number);
        assert_int_equal(panel_find(&p, name), i);
        snprintf(name, sizeof name, "S%d-", number);
        assert_int_equal(panel_find(&p, name), -1);
    }
    panel_done(&p);
    assert_int_equal(panel_find(&p, "S1"), -1);
    free(text);
}

static void refuse(const char *text, const char *why) {
    panel p;
    err e = {0};
    if (panel_parse(&p, "f.csv", text, strlen(text), &e)) fail_msg("%s is accepted", text);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
    assert_null(p.memory);
    panel_done(&p);
}

static void mistakes_are_named(void **state) {
    (void)state;
    refuse("", "f.csv: holds no series");
    refuse("V1,V2,V3\n", "f.csv: holds no series");
    refuse("V1,V2,V3,V4\nH1,1,2\nH2,1,,2\n", "f.csv:3: column 3 is empty and a value follows");
    refuse("V1,V2,V3\nH1,,2\n", "f.csv:2: column 2 is empty and a value follows");
    refuse("V1,V2,V3\nH1,NA,2\n", "f.csv:2: column 2 is empty and a value follows");
    refuse("V1,V2,V3\n\nH1,1,2,3\n", "f.csv:3: the row is longer than the header");
    refuse("V1,V2\nH1,1\nH2,,\n", "f.csv:3: the series has no values");
    refuse("V1,V2\nH1\n", "f.csv:2: the series has no values");
    refuse("V1,V2\n,1\n", "f.csv:2: the series has no name");
    refuse("V1,V2\nH1,1\nH2,1\nH1,2\n", "f.csv: has two series named H1");
    refuse("V1,V2\nH1,1x\n", "f.csv:2: column 2, \"1x\", is not a number");
    refuse("V1,V2\nH1,0x10\n", "is not a number");
    refuse("V1,V2\nH1,inf\n", "is not a number");
    refuse("V1,V2\nH1,1e999\n", "is not a number");
    refuse("V1,V2\nH1,1-2\n", "is not a number");
    refuse("V1,V2\nH1,\"1\n", "f.csv:2: a quote is not closed");
    refuse("V1,V2\nH1,\"1\"2\n", "f.csv:2: a comma is missing");
    refuse("V1,V2\nH1,1\rH2,2\r", "f.csv:2: a comma is missing");
    char text[600] = "H1,1\nH2,";
    memset(text + 8, '1', 300);
    refuse(text, "f.csv:2: a cell is longer");
    panel p;
    err e = {0};
    assert_false(panel_parse(&p, "f.csv", "H1,1\0\n", 6, &e));
    assert_string_equal(e.text, "f.csv:1: holds a NUL; is it a text file?");
    assert_false(panel_read(&p, "absent.csv", &e));
}

static void cut_files_are_survived(void **state) {
    (void)state;
    static const char text[] = "\"V1\",\"V2\",\"V3\"\r\n\"H1\",\"605\",\"586\"\r\n\"H2\",\"1\",\r\nH3,1,2\r\n\n";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        // A copy of exactly this length, so that a sanitizer sees a step beyond it.
        char *part = malloc(cut ? cut : 1);
        panel p;
        err e = {0};
        memcpy(part, text, cut);
        if (panel_parse(&p, "f.csv", part, cut, &e)) assert_true(p.series > 0 && p.offset[p.series] > 0);
        panel_done(&p);
        free(part);
    }
}

static void read_real(const char *name, int64_t series, int64_t shortest, int64_t longest) {
    const char *dir = getenv("TRADEWIND_DATA");
    char path[4200];
    panel p;
    err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir ? dir : TEST_DIR "/../../shared/data", name);
    if (access(path, R_OK)) skip();
    support_ok(panel_read(&p, path, &e), &e);
    assert_int_equal(p.series, series);
    int64_t least = INT64_MAX, most = 0;
    for (int64_t i = 0; i < p.series; i++) {
        int64_t length = p.offset[i + 1] - p.offset[i];
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    assert_int_equal(least, shortest);
    assert_int_equal(most, longest);
    panel_done(&p);
}

static void competition_files_are_read(void **state) {
    (void)state;
    read_real("M4-Hourly-train.csv", 414, 700, 960);
    read_real("M4-Hourly-test.csv", 414, 48, 48);
    read_real("M4-Weekly-train.csv", 359, 80, 2597);
    read_real("M4-Weekly-test.csv", 359, 13, 13);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_read),
        cmocka_unit_test(every_name_is_found),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(cut_files_are_survived),
        cmocka_unit_test(competition_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
