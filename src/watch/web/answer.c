#include "watch/web/answer.h"

#include "base/file.h"
#include "run/results.h"
#include "run/run.h"
#include "watch/csv.h"
#include "watch/web/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 200, NOT_MODIFIED = 304, BAD = 400, NOT_FOUND = 404, UNPROCESSABLE = 422, UNAVAILABLE = 503 };

enum { REPORT_MOST = 64 << 20 };

answer answer_words(unsigned status, const char *words) {
    return (answer){
        .status = status, .type = "text/plain; charset=utf-8", .fixed = words, .bytes = strlen(words), .fd = -1};
}

static answer nothing_here(void) {
    return answer_words(NOT_FOUND, "There is nothing here.\n");
}

static answer no_run(void) {
    return answer_words(NOT_FOUND, "There is no such run any more.\n");
}

// An error of a file, as JSON: its text is not ours to trust.
static answer answer_error(const err *e) {
    json_t *doc = json_pack("{s:s}", "error", e->text);
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    NEED(text, "out of memory for an error");
    return (answer){.status = UNPROCESSABLE, .type = "application/json", .body = text, .bytes = strlen(text), .fd = -1};
}

// Takes over the reference; NULL: the run is not there.
static answer answer_json(json_t *doc) {
    if (!doc) return no_run();
    char *text = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(doc);
    NEED(text, "out of memory for a document");
    return (answer){.status = OK, .type = "application/json", .body = text, .bytes = strlen(text), .fd = -1};
}

static answer answer_text(const char *type, char *body, size_t bytes) {
    if (!body) return no_run();
    return (answer){.status = OK, .type = type, .body = body, .bytes = bytes, .fd = -1};
}

// Parts of the page

static const char *type_of(const char *name) {
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"}, {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"}, {".svg", "image/svg+xml"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (strcmp(dot, types[i][0]) == 0) return types[i][1];
    return "text/plain; charset=utf-8";
}

static answer answer_asset(const char *name, const char *tag) {
    static const char absent[] =
        "This tradewind was built without its page, whose charts come from npm: install npm and build again.\n"
        "Everything else is here: /api/runs, /events, /metrics; and `tradewind watch` in a terminal.\n";
    const asset *a = assets;
    while (a->name && strcmp(a->name, name) != 0) a++;
    if (!a->name || (!assets_whole && strcmp(name, "index.html") == 0))
        return strcmp(name, "index.html") == 0 ? answer_words(UNAVAILABLE, absent) : nothing_here();
    bool same = tag && strcmp(tag, a->tag) == 0;
    return (answer){.status = same ? NOT_MODIFIED : OK,
        .type = type_of(name),
        .tag = a->tag,
        .fixed = same ? "" : (const char *)a->data,
        .bytes = same ? 0 : a->bytes,
        .fd = -1};
}

// Files of a run

static answer answer_document(site *s, const request *r) {
    err e = {0};
    char *dir = site_dir(s, r->id);
    json_t *doc = NULL;
    int k = 0;
    if (!dir) return no_run();
    while (k < RESULTS_KINDS && strcmp(results_name((results_kind)k), r->name) != 0) k++;
    bool ok = k == RESULTS_KINDS || results_read(dir, (results_kind)k, &doc, &e);
    free(dir);
    if (!ok) return answer_error(&e);
    return doc ? answer_json(doc) : nothing_here();
}

// A page of `tradewind report` alone: whatever else has that name is not shown.
static answer answer_report(site *s, const request *r) {
    err unused;
    size_t bytes = 0;
    char *dir = site_dir(s, r->id), *path = dir ? run_path(dir, "report.html") : NULL;
    char *text = path ? file_read(path, REPORT_MOST, &bytes, &unused) : NULL;
    const char *mark = text ? strstr(text, RESULTS_REPORT_MARK) : NULL;
    free(dir);
    free(path);
    if (!mark || mark - text > 64) {
        free(text);
        return nothing_here();
    }
    answer a = answer_text("text/html; charset=utf-8", text, bytes);
    a.report = true;
    return a;
}

// Rows go to a file without a name first: they are of one moment, however slowly a client takes them.
static answer answer_table(site *s, const request *r) {
    err e = {0};
    char *dir = site_dir(s, r->id), table[REQUEST_NAME + 1];
    if (!dir) return no_run();
    snprintf(table, sizeof table, "%s", r->name);
    char *dot = strrchr(table, '.');
    if (dot && strcmp(dot, ".csv") == 0) *dot = 0;
    FILE *rows = tmpfile();
    bool ok = rows ? csv_write(dir, table, rows, &e) : err_run(&e, "no place for a table");
    answer a = {.status = OK, .type = "text/csv; charset=utf-8", .fd = -1};
    if (ok) {
        a.bytes = (size_t)ftell(rows);
        a.fd = dup(fileno(rows));
        snprintf(a.file, sizeof a.file, "%s.csv", table);
    }
    if (rows) fclose(rows);
    free(dir);
    return ok && a.fd >= 0 ? a : answer_error(&e);
}

answer answer_make(site *s, const request *r, const char *tag) {
    size_t bytes = 0;
    char *body;
    switch (r->route) {
    case ROUTE_ASSET: return answer_asset(r->name, tag);
    case ROUTE_RUNS: return answer_json(site_runs(s));
    case ROUTE_RUN: return answer_json(site_run(s, r->id));
    case ROUTE_SERIES: body = site_series(s, r, &bytes); return answer_text("application/json", body, bytes);
    case ROUTE_METRICS:
        body = site_metrics(s, &bytes);
        return answer_text("text/plain; version=0.0.4; charset=utf-8", body, bytes);
    case ROUTE_DOCUMENT: return answer_document(s, r);
    case ROUTE_TABLE: return answer_table(s, r);
    case ROUTE_REPORT: return answer_report(s, r);
    case ROUTE_BAD: return answer_words(BAD, "This is no request that this server knows.\n");
    case ROUTE_EVENTS:
    case ROUTE_NONE: break;
    }
    return nothing_here();
}
