// A request to the server, as text: its target, its cookies, and the name that it was sent to. Pure: nothing here opens
// anything. Every text is a stranger's.
//
// A target names no file. It is one of the routes below; a run is named by an id that the server made, and whatever
// else stands in a target is looked up in a list.
#ifndef TRADEWIND_WATCH_WEB_REQUEST_H
#define TRADEWIND_WATCH_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    ROUTE_NONE,     // not found
    ROUTE_BAD,      // no target that HTTP allows, or too much of one
    ROUTE_ASSET,    // / and the parts of the page; `name`
    ROUTE_EVENTS,   // /events
    ROUTE_METRICS,  // /metrics
    ROUTE_RUNS,     // /api/runs
    ROUTE_RUN,      // /api/runs/ID
    ROUTE_SERIES,   // /api/runs/ID/series?name=...&from=...&to=...&points=...
    ROUTE_DOCUMENT, // /api/runs/ID/document/NAME
    ROUTE_TABLE,    // /api/runs/ID/table/NAME
    ROUTE_REPORT,   // /api/runs/ID/report
} route;

enum { REQUEST_ID = 16, REQUEST_NAME = 64, REQUEST_VALUE = 128, REQUEST_PARAMS = 24, REQUEST_TARGET = 4096 };

typedef struct {
    char name[16], value[REQUEST_VALUE];
} request_param;

typedef struct {
    route route;
    char id[REQUEST_ID + 1];
    char name[REQUEST_NAME + 1];
    int params;
    request_param param[REQUEST_PARAMS];
} request;

// Reads a target as it stands in the request's first line: a path, and perhaps a query.
void request_read(request *r, const char *target);

// The value of a parameter, or NULL; a number of it between two bounds, or `otherwise`.
const char *request_value(const request *r, const char *name);
double request_number(const request *r, const char *name, double least, double most, double otherwise);

// The value of a cookie in the header Cookie; false where it has none that fits into `room`.
bool request_cookie(const char *header, const char *name, char *value, size_t room);

// True where a header Host names an address (127.0.0.1, [::1]:8080), "localhost", or one of `names`, which ends with
// NULL: a page of a foreign name that was pointed at this machine is not served. The port does not matter: it may be
// that of a tunnel. With `local` only addresses of the loopback device are taken.
bool request_host_allowed(const char *host, bool local, const char *const *names);

// Compares two texts in a time that does not tell where they differ.
bool request_same_secret(const char *given, const char *secret);

#endif
