// Texts that strangers send to the server: targets, queries, cookies and hosts.
#include "watch/web/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID "0123456789abcdef"

static route route_of(const char *target) {
    request r;
    request_read(&r, target);
    return r.route;
}

static void targets_are_routes(void **state) {
    (void)state;
    request r;
    assert_int_equal(route_of("/events"), ROUTE_EVENTS);
    assert_int_equal(route_of("/metrics?x=1"), ROUTE_METRICS);
    assert_int_equal(route_of("/api/runs"), ROUTE_RUNS);
    assert_int_equal(route_of("/api/runs/" ID), ROUTE_RUN);
    assert_int_equal(route_of("/api/runs/" ID "/series?name=a"), ROUTE_SERIES);
    assert_int_equal(route_of("/api/runs/" ID "/report"), ROUTE_REPORT);
    request_read(&r, "/api/runs/" ID "/table/epochs.csv");
    assert_int_equal(r.route, ROUTE_TABLE);
    assert_string_equal(r.id, ID);
    assert_string_equal(r.name, "epochs.csv");
    request_read(&r, "/?token=x");
    assert_int_equal(r.route, ROUTE_ASSET);
    assert_string_equal(r.name, "index.html");
    assert_string_equal(request_value(&r, "token"), "x");
}

static void no_target_is_a_path(void **state) {
    (void)state;
    static const char *const targets[] = {"/..", "/../etc/passwd", "/%2e%2e/x", "/api/runs/../../x", "//etc/passwd",
        "/api/runs/" ID "/table/../run.db", "/api/runs/" ID "/document/..%2f", "/api/runs/" ID "/table/",
        "/api/runs/" ID "/", "/api/runs/" ID "x", "/api/runs/0123456789ABCDEF", "/api/runs/0123", "/.git", "/a/b",
        "/api/runs/" ID "/document/.hidden", "/a\\b", "/page.js/", "/a%00b"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) assert_int_equal(route_of(targets[i]), ROUTE_NONE);
    assert_int_equal(route_of("http://evil/"), ROUTE_BAD);
    assert_int_equal(route_of(""), ROUTE_BAD);
    assert_int_equal(route_of(NULL), ROUTE_BAD);
    char longest[2 * REQUEST_TARGET];
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    assert_int_equal(route_of(longest), ROUTE_BAD);
}

static void queries_are_decoded(void **state) {
    (void)state;
    request r;
    request_read(&r, "/api/runs?name=steps%2Floss&empty=&a+b=c+d&from=-1.5e3&to=x&points=99999");
    assert_int_equal(r.params, 6);
    assert_string_equal(request_value(&r, "name"), "steps/loss");
    assert_string_equal(request_value(&r, "empty"), "");
    assert_string_equal(request_value(&r, "a b"), "c d");
    assert_null(request_value(&r, "none"));
    assert_true(request_number(&r, "from", -1e9, 1e9, 7) == -1500);
    assert_true(request_number(&r, "to", -1e9, 1e9, 7) == 7);
    assert_true(request_number(&r, "points", 1, 4000, 1000) == 1000);
    static const char *const bad[] = {"/?a=%", "/?a=%2", "/?a=%zz", "/?a=%00", "/?a=%0a", "/?sixteen_letters_=1",
        "/?a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(route_of(bad[i]), ROUTE_BAD);
}

static void cookies_are_found_by_their_whole_name(void **state) {
    (void)state;
    char value[16];
    assert_true(request_cookie("a=1; tradewind_80=abc ; b=2", "tradewind_80", value, sizeof value));
    assert_string_equal(value, "abc");
    assert_true(request_cookie("tradewind_80=", "tradewind_80", value, sizeof value));
    assert_string_equal(value, "");
    assert_false(request_cookie("xtradewind_80=abc", "tradewind_80", value, sizeof value));
    assert_false(request_cookie("tradewind_8080=abc", "tradewind_80", value, sizeof value));
    assert_false(request_cookie("tradewind_80=aaaaaaaaaaaaaaaaaaaaaaaa", "tradewind_80", value, sizeof value));
    assert_false(request_cookie(";;; ;", "tradewind_80", value, sizeof value));
    assert_false(request_cookie(NULL, "tradewind_80", value, sizeof value));
}

static void hosts_of_strangers_are_refused(void **state) {
    (void)state;
    const char *const none[] = {NULL}, *const named[] = {"gold.example", NULL};
    static const char *const local[] = {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.8.9.1:1", "[::1]", "[::1]:80"};
    static const char *const far[] = {"192.168.1.2:80", "10.0.0.1", "[2001:db8::1]:80", "0.0.0.0"};
    static const char *const never[] = {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", ":80",
        "[::1", "[::1]x", "localhost:80x", "127.0.0.1@evil", "[]"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        assert_true(request_host_allowed(local[i], true, none));
        assert_true(request_host_allowed(local[i], false, none));
    }
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        assert_false(request_host_allowed(far[i], true, none));
        assert_true(request_host_allowed(far[i], false, none));
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_false(request_host_allowed(never[i], true, named));
        assert_false(request_host_allowed(never[i], false, named));
    }
    assert_false(request_host_allowed(NULL, false, named));
    assert_true(request_host_allowed("Gold.Example:443", true, named));
}

static void secrets_are_compared_whole(void **state) {
    (void)state;
    assert_true(request_same_secret("abc", "abc"));
    assert_false(request_same_secret("abd", "abc"));
    assert_false(request_same_secret("ab", "abc"));
    assert_false(request_same_secret("abcabc", "abc"));
    assert_false(request_same_secret("", "abc"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(targets_are_routes), cmocka_unit_test(no_target_is_a_path),
        cmocka_unit_test(queries_are_decoded), cmocka_unit_test(cookies_are_found_by_their_whole_name),
        cmocka_unit_test(hosts_of_strangers_are_refused), cmocka_unit_test(secrets_are_compared_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
