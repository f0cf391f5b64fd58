// Any bytes as a request's target, cookies and host: no crash, nothing but what a target may name comes out, and none
// but an address or a known name is a host.
#include "watch/web/request.h"

#include "base/err.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_target(const char *text) {
    request r;
    request_read(&r, text);
    CHECK(r.route <= ROUTE_REPORT, "an unknown route");
    CHECK(!strchr(r.name, '/') && r.name[0] != '.', "a name that is a path: %s", r.name);
    CHECK(r.id[0] == 0 || strspn(r.id, "0123456789abcdef") == REQUEST_ID, "an id: %s", r.id);
    CHECK(r.params >= 0 && r.params <= REQUEST_PARAMS, "%d parameters", r.params);
    for (int i = 0; i < r.params; i++) {
        CHECK(strlen(r.param[i].value) < REQUEST_VALUE, "a long value");
        CHECK(!strpbrk(r.param[i].value, "\r\n\t"), "a control character");
    }
    double n = request_number(&r, "from", -5, 5, 0);
    CHECK(n >= -5 && n <= 5, "a number out of its bounds");
}

static void check_headers(const char *text) {
    const char *const names[] = {"gold.example", NULL};
    char value[40];
    if (request_cookie(text, "tradewind_8080", value, sizeof value))
        CHECK(!strchr(value, ';') && strlen(value) < sizeof value, "a cookie of several: %s", value);
    bool local = request_host_allowed(text, true, names);
    CHECK(!local || request_host_allowed(text, false, names), "a local host that is none");
    CHECK(!local || !strpbrk(text, "/@ "), "a host that is none: %s", text);
    request_same_secret(text, "0123456789abcdef0123456789abcdef");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    check_target(text);
    check_headers(text);
    free(text);
    return 0;
}
