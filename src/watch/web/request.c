#include "watch/web/request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Paths

// Copies a piece of a path, of characters that names of tables and files of the page have; false where it has others.
static bool take_name(char *to, size_t room, const char *from, size_t n) {
    if (n == 0 || n >= room || from[0] == '.') return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)from[i]) && !strchr("_-.", from[i])) return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

static bool take_id(char *to, const char *from, size_t n) {
    if (n != REQUEST_ID || strspn(from, "0123456789abcdef") < n) return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

// Routes below /api/runs/ID.
static route route_of_run(request *r, const char *at, size_t n) {
    static const struct {
        const char *word;
        route route;
        bool named;
    } words[] = {{"/series", ROUTE_SERIES, false}, {"/report", ROUTE_REPORT, false},
        {"/document/", ROUTE_DOCUMENT, true}, {"/table/", ROUTE_TABLE, true}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if (n < length || memcmp(at, words[i].word, length) != 0) continue;
        bool fits = words[i].named ? take_name(r->name, sizeof r->name, at + length, n - length) : n == length;
        return fits ? words[i].route : ROUTE_NONE;
    }
    return n ? ROUTE_NONE : ROUTE_RUN;
}

static route route_of(request *r, const char *path, size_t n) {
    static const char runs[] = "/api/runs/";
    static const struct {
        const char *path;
        route route;
    } plain[] = {{"/events", ROUTE_EVENTS}, {"/metrics", ROUTE_METRICS}, {"/api/runs", ROUTE_RUNS}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strlen(plain[i].path) == n && memcmp(path, plain[i].path, n) == 0) return plain[i].route;
    if (n == 1) {
        strcpy(r->name, "index.html");
        return ROUTE_ASSET;
    }
    size_t head = sizeof runs - 1;
    if (n >= head + REQUEST_ID && memcmp(path, runs, head) == 0)
        return take_id(r->id, path + head, REQUEST_ID)
                   ? route_of_run(r, path + head + REQUEST_ID, n - head - REQUEST_ID)
                   : ROUTE_NONE;
    return take_name(r->name, sizeof r->name, path + 1, n - 1) ? ROUTE_ASSET : ROUTE_NONE;
}

// Queries

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes a part of a query; false where it is too long, or has a broken escape or a control character.
static bool decode(char *to, size_t room, const char *from, size_t n) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        int c = from[i] == '+' ? ' ' : (unsigned char)from[i];
        if (c == '%') {
            int high = i + 2 < n ? hex(from[i + 1]) : -1, low = i + 2 < n ? hex(from[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            c = 16 * high + low;
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || used + 1 >= room) return false;
        to[used++] = (char)c;
    }
    to[used] = 0;
    return true;
}

static bool read_query(request *r, const char *at) {
    while (*at) {
        size_t n = strcspn(at, "&"), name = strcspn(at, "=&");
        if (n) {
            if (r->params == REQUEST_PARAMS) return false;
            request_param *p = &r->param[r->params++];
            size_t value = name < n ? name + 1 : n;
            if (!decode(p->name, sizeof p->name, at, name) || !decode(p->value, sizeof p->value, at + value, n - value))
                return false;
        }
        at += n + (at[n] == '&');
    }
    return true;
}

void request_read(request *r, const char *target) {
    *r = (request){.route = ROUTE_BAD};
    if (!target || target[0] != '/' || strnlen(target, REQUEST_TARGET) == REQUEST_TARGET) return;
    size_t n = strcspn(target, "?");
    route to = route_of(r, target, n);
    if (target[n] && !read_query(r, target + n + 1)) to = ROUTE_BAD;
    r->route = to;
}

const char *request_value(const request *r, const char *name) {
    for (int i = 0; i < r->params; i++)
        if (strcmp(r->param[i].name, name) == 0) return r->param[i].value;
    return NULL;
}

double request_number(const request *r, const char *name, double least, double most, double otherwise) {
    const char *text = request_value(r, name);
    char *end;
    double v = text ? strtod(text, &end) : NAN;
    if (!text || end == text || *end || !(v >= least && v <= most)) return otherwise;
    return v;
}

// Headers

bool request_cookie(const char *header, const char *name, char *value, size_t room) {
    size_t length = strlen(name);
    for (const char *at = header; at && *at;) {
        at += strspn(at, "; \t");
        size_t n = strcspn(at, ";");
        if (n > length && at[length] == '=' && strncmp(at, name, length) == 0) {
            size_t left = n - length - 1;
            while (left && (at[length + left] == ' ' || at[length + left] == '\t')) left--;
            if (left >= room) return false;
            memcpy(value, at + length + 1, left);
            value[left] = 0;
            return true;
        }
        at += n;
    }
    return false;
}

// An address in text; sets whether it is one of the loopback device.
static bool is_address(const char *text, bool *loopback) {
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, text, &four) == 1) {
        *loopback = ntohl(four.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &six) != 1) return false;
    *loopback = IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
    return true;
}

// The name of a header Host, without its port and brackets; false where it is none.
static bool name_of_host(const char *host, char *name, size_t room) {
    bool bracket = host[0] == '[';
    size_t n = strcspn(host + bracket, bracket ? "]" : ":");
    const char *rest = host + bracket + n;
    if (bracket && *rest++ != ']') return false;
    if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")])) return false;
    if (n == 0 || n >= room) return false;
    memcpy(name, host + bracket, n);
    name[n] = 0;
    return true;
}

bool request_host_allowed(const char *host, bool local, const char *const *names) {
    char name[256];
    bool loopback;
    if (!host || !name_of_host(host, name, sizeof name)) return false;
    if (is_address(name, &loopback)) return loopback || !local;
    if (strcasecmp(name, "localhost") == 0) return true;
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0) return true;
    return false;
}

bool request_same_secret(const char *given, const char *secret) {
    size_t n = strlen(secret), m = strlen(given);
    unsigned differs = m != n;
    for (size_t i = 0; i < n; i++) differs |= (unsigned char)secret[i] ^ (unsigned char)(m ? given[i % m] : 0);
    return differs == 0;
}
