#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *read_text(const char *text, err *e) {
    return json_read(text, strlen(text), e);
}

static void reads(void **state) {
    (void)state;
    err e = {0};
    json_t *v = read_text("{\"a\": [1, 2.5, \"[[\\\"[\"], \"b\": {\"shape\": []}}   \n", &e);
    assert_non_null(v);
    assert_int_equal(json_array_size(json_object_get(v, "a")), 3);
    json_decref(v);
}

static void refuse(const char *text, size_t bytes, const char *reason) {
    err e = {0};
    assert_null(json_read(text, bytes, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_null(strpbrk(e.text, "\n\r"));
    if (!strstr(e.text, reason)) fail_msg("\"%s\" does not say %s", e.text, reason);
    assert_null(json_read(text, bytes, NULL));
}

#define REFUSE(text, reason) refuse(text, sizeof(text) - 1, reason)

static void refuses(void **state) {
    (void)state;
    REFUSE("", "line 1");
    REFUSE("{\"a\": 1, \"a\": 2}", "duplicate");
    REFUSE("{\"a\": 1} x", "end of file");
    REFUSE("{\"a\": 1}\0", "line 1");
    REFUSE("{\"a\": \"b\0c\"}", "line 1");
    REFUSE("{\"a\": \"\\u0000\"}", "line 1");
    REFUSE("{\"a\": \"\xff\"}", "unable to decode byte 0xff");
    REFUSE("{\n\"a\": nan}", "line 2, column");
    REFUSE("{\n\"a\n\": 1}", "line 2");
    REFUSE("{\"a\": 1", "line 1");
    REFUSE("7", "line 1");
    REFUSE("{\"a\": 99999999999999999999}", "integer");
}

static void nesting_is_bounded(void **state) {
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    refuse(text, DEEP, "nested more than 64");
    memset(text + 64, ']', 64);
    err e = {0};
    json_t *v = json_read(text, 128, &e);
    assert_non_null(v);
    json_decref(v);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    refuse(text, 130, "nested more than 64");
    free(text);
}

static void prints_one_line(void **state) {
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    json_t *v = json_object();
    json_object_set_new(v, "zeta", json_number(0.1));
    json_object_set_new(v, "alpha", json_number(1.0 / 3));
    json_object_set_new(v, "bad", json_number(NAN));
    json_object_set_new(v, "worse", json_number(-INFINITY));
    json_object_set_new(v, "n", json_integer(343000));
    json_object_set_new(v, "text", json_string("a\nb"));
    json_t *kept = json_incref(v);
    assert_true(json_line(f, v));
    assert_int_equal(kept->refcount, 1);
    json_decref(kept);
    char text[256] = "";
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_string_equal(
        text, "{\"zeta\":0.1,\"alpha\":0.3333333333333,\"bad\":null,\"worse\":null,\"n\":343000,\"text\":\"a\\nb\"}\n");
    fclose(f);
}

static void joins(void **state) {
    (void)state;
    json_t *to = json_pack("{s:i, s:i}", "a", 1, "b", 2), *from = json_pack("{s:i, s:i}", "b", 3, "c", 4);
    json_join(to, json_incref(from));
    assert_int_equal(from->refcount, 1);
    assert_int_equal(json_object_size(to), 3);
    assert_int_equal(json_integer_value(json_object_get(to, "b")), 3);
    json_join(to, NULL);
    assert_int_equal(json_object_size(to), 3);
    json_join(NULL, from);
    json_decref(to);
}

static void tells_a_failed_write(void **state) {
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    if (!f) skip();
    assert_false(json_line(f, json_object()));
    fclose(f);
    assert_false(json_line(stdout, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(refuses),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(prints_one_line),
        cmocka_unit_test(joins),
        cmocka_unit_test(tells_a_failed_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
