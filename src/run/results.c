#include "run/results.h"

#include "base/file.h"
#include "base/format.h"
#include "run/run.h"
#include "run/sum.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, PATH_ROOM = 256, LIST_MOST = 100000 };

static const size_t bytes_most = (size_t)64 << 20;

static const char *const names[RESULTS_KINDS] = {[RESULTS_EVALUATION] = "evaluation.json",
    [RESULTS_BACKTEST] = "backtest.json",
    [RESULTS_SIGNAL] = "signal.json",
    [RESULTS_WALK] = "walk.json",
    [RESULTS_MEMORY] = "memory.json"};

const char *results_name(results_kind k) {
    return names[k];
}

// Shapes

typedef enum { OBJECT, LIST, NUMBER, TEXT } shape;

// A place in a document and what is there: "*" stands for any key, "[]" for every element of a list.
typedef struct {
    const char *path;
    shape is;
} place;

static const place evaluation[] = {{"parts", OBJECT}, {"parts.*", OBJECT}, {"parts.*.samples", NUMBER},
    {"parts.*.epoch", NUMBER}, {"parts.*.from", TEXT}, {"parts.*.to", TEXT}, {"parts.*.metrics", OBJECT},
    {"parts.*.metrics.*", NUMBER}, {"parts.*.trivial", OBJECT}, {"parts.*.trivial.*", OBJECT},
    {"parts.*.trivial.*.*", NUMBER}, {"parts.*.scores", LIST}, {"parts.*.scores[]", OBJECT},
    {"parts.*.scores[].metric", TEXT}, {"parts.*.scores[].score", NUMBER}, {"parts.*.scores[].interval", LIST},
    {"parts.*.scores[].interval[]", NUMBER}, {"parts.*.scores[].trivial", TEXT},
    {"parts.*.scores[].trivial_score", NUMBER}, {"parts.*.scores[].skill", NUMBER},
    {"parts.*.scores[].skill_interval", LIST}, {"parts.*.scores[].skill_interval[]", NUMBER},
    {"parts.*.scores[].verdict", TEXT}, {"parts.*.classes", LIST}, {"parts.*.classes[]", TEXT},
    {"parts.*.confusion", LIST}, {"parts.*.confusion[]", LIST}, {"parts.*.confusion[][]", NUMBER},
    {"parts.*.calibration", LIST}, {"parts.*.calibration[]", OBJECT}, {"parts.*.calibration[].class", TEXT},
    {"parts.*.calibration[].bins", LIST}, {"parts.*.calibration[].bins[]", OBJECT},
    {"parts.*.calibration[].bins[].*", NUMBER}, {"parts.*.coverage", LIST}, {"parts.*.coverage[]", OBJECT},
    {"parts.*.coverage[].*", NUMBER}, {"parts.*.importance", LIST}, {"parts.*.importance[]", OBJECT},
    {"parts.*.importance[].stream", TEXT}, {"parts.*.importance[].column", TEXT}, {"parts.*.importance[].metric", TEXT},
    {"parts.*.importance[].drop", NUMBER}, {"parts.*.accounts", LIST}, {"parts.*.accounts[]", OBJECT},
    {"parts.*.accounts[].symbol", TEXT}, {"parts.*.accounts[].statistics", LIST},
    {"parts.*.accounts[].statistics[]", OBJECT}, {"parts.*.accounts[].statistics[].key", TEXT},
    {"parts.*.accounts[].statistics[].label", TEXT}, {"parts.*.accounts[].statistics[].unit", TEXT},
    {"parts.*.accounts[].statistics[].definition", TEXT}, {"parts.*.accounts[].statistics[].why", TEXT},
    {"parts.*.accounts[].statistics[].value", NUMBER}, {"parts.*.accounts[].statistics[].low", NUMBER},
    {"parts.*.accounts[].statistics[].high", NUMBER}, {"parts.*.accounts[].statistics[].hold", NUMBER},
    {"parts.*.accounts[].equity", OBJECT}, {"parts.*.accounts[].equity.*", LIST},
    {"parts.*.accounts[].equity.*[]", NUMBER}, {0}};

static const place backtest[] = {{"part", TEXT}, {"weights", TEXT}, {"assumptions", LIST}, {"assumptions[]", OBJECT},
    {"assumptions[].key", TEXT}, {"assumptions[].text", TEXT}, {"statistics", LIST}, {"statistics[]", OBJECT},
    {"statistics[].key", TEXT}, {"statistics[].label", TEXT}, {"statistics[].unit", TEXT},
    {"statistics[].definition", TEXT}, {"statistics[].why", TEXT}, {"statistics[].value", NUMBER},
    {"statistics[].low", NUMBER}, {"statistics[].high", NUMBER}, {"statistics[].hold", NUMBER}, {"equity", OBJECT},
    {"equity.*", LIST}, {"equity.*[]", NUMBER}, {"monthly", LIST}, {"monthly[]", OBJECT}, {"monthly[].month", TEXT},
    {"monthly[].return", NUMBER}, {"trades", LIST}, {"trades[]", OBJECT}, {"trades[].side", NUMBER},
    {"trades[].entry_time", NUMBER}, {"trades[].exit_time", NUMBER}, {"trades[].entry", NUMBER},
    {"trades[].exit", NUMBER}, {"trades[].result", NUMBER}, {"price", OBJECT}, {"price.*", LIST}, {"price.*[]", NUMBER},
    {"daily", OBJECT}, {"daily.*", LIST}, {"daily.*[]", NUMBER}, {"paths", LIST}, {"paths[]", OBJECT},
    {"paths[].folds", LIST}, {"paths[].folds[]", NUMBER}, {"paths[].time", LIST}, {"paths[].time[]", NUMBER},
    {"paths[].equity", LIST}, {"paths[].equity[]", NUMBER}, {"paths[].*", NUMBER}, {0}};

static const place signal[] = {{"threshold", NUMBER}, {"exit", TEXT}, {"hold", NUMBER}, {"long", OBJECT},
    {"long.*", NUMBER}, {"short", OBJECT}, {"short.*", NUMBER}, {"unit", TEXT}, {"sizing", TEXT}, {"size", NUMBER},
    {"volatility_bars", NUMBER}, {"bars_a_year", NUMBER}, {"symbol", TEXT}, {"weights", TEXT}, {"fitted", OBJECT},
    {"fitted.result", NUMBER}, {"fitted.trades", NUMBER}, {"fitted.from", TEXT}, {"fitted.to", TEXT}, {0}};

static const place walk[] = {{"scheme", TEXT}, {"folds", LIST}, {"folds[]", OBJECT}, {"folds[].number", NUMBER},
    {"folds[].directory", TEXT}, {"folds[].train", LIST}, {"folds[].train[]", TEXT}, {"folds[].validation", LIST},
    {"folds[].validation[]", TEXT}, {"folds[].test", LIST}, {"folds[].test[]", TEXT}, {"folds[].samples", LIST},
    {"folds[].samples[]", NUMBER}, {"folds[].metrics", OBJECT}, {"folds[].metrics.*", NUMBER},
    {"folds[].trivial", OBJECT}, {"folds[].trivial.*", NUMBER}, {"folds[].skill", OBJECT}, {"folds[].skill.*", NUMBER},
    {"folds[].status", TEXT}, {"folds[].reason", TEXT}, {"metrics", OBJECT}, {"metrics.*", NUMBER}, {"trivial", OBJECT},
    {"trivial.*", NUMBER}, {"skill", OBJECT}, {"skill.*", NUMBER}, {"classes", LIST}, {"classes[]", TEXT},
    {"confusion", LIST}, {"confusion[]", LIST}, {"confusion[][]", NUMBER}, {"calibration", LIST},
    {"calibration[]", OBJECT}, {"calibration[].class", TEXT}, {"calibration[].bins", LIST},
    {"calibration[].bins[]", OBJECT}, {"calibration[].bins[].*", NUMBER}, {"coverage", LIST}, {"coverage[]", OBJECT},
    {"coverage[].*", NUMBER}, {"importance", LIST}, {"importance[]", OBJECT}, {"importance[].stream", TEXT},
    {"importance[].column", TEXT}, {"importance[].metric", TEXT}, {"importance[].drop", NUMBER},
    {"importance[].low", NUMBER}, {"importance[].high", NUMBER}, {"importance[].folds", NUMBER}, {"groups", LIST},
    {"groups[]", OBJECT}, {"groups[].number", NUMBER}, {"groups[].test", LIST}, {"groups[].test[]", TEXT},
    {"groups[].samples", NUMBER}, {"paths", LIST}, {"paths[]", OBJECT}, {"paths[].number", NUMBER},
    {"paths[].folds", LIST}, {"paths[].folds[]", NUMBER}, {0}};

static const place memory[] = {{"rows", NUMBER}, {"instructions", NUMBER}, {"backward", NUMBER}, {"peak", NUMBER},
    {"floor", NUMBER}, {"bytes", OBJECT}, {"bytes.*", NUMBER}, {"blocks", LIST}, {"blocks[]", OBJECT},
    {"blocks[].name", TEXT}, {"blocks[].kind", TEXT}, {"blocks[].*", NUMBER}, {0}};

static const place *const shapes[RESULTS_KINDS] = {[RESULTS_EVALUATION] = evaluation,
    [RESULTS_BACKTEST] = backtest,
    [RESULTS_SIGNAL] = signal,
    [RESULTS_WALK] = walk,
    [RESULTS_MEMORY] = memory};

static const char *const wanted[] = {
    [OBJECT] = "is no object", [LIST] = "is no list", [NUMBER] = "is no number", [TEXT] = "is no text"};

static bool is_shape(const json_t *v, shape s) {
    switch (s) {
    case OBJECT: return json_is_object(v);
    case LIST: return json_is_array(v);
    case NUMBER: return json_is_number(v);
    case TEXT: return json_is_string(v);
    }
    return false;
}

// A document on its way through the shapes.
typedef struct {
    const place *shapes;
    const char *file;
    err *e;
} checker;

static bool fail_at(const checker *c, const char *path, const char *what) {
    return err_input(c->e, "%s: %.100s: %s; the file is damaged, make it anew", c->file, path, what);
}

static bool check_value(const checker *c, const char *rule, const char *path, const json_t *v);

// The rule of a key: its own, or that of any key.
static const place *find_rule(const place *from, const char *rule, const char *key) {
    size_t n = strlen(rule);
    for (; from->path; from++) {
        if (strncmp(from->path, rule, n) != 0) continue;
        const char *rest = from->path + n;
        if (n && *rest++ != '.') continue;
        if (strcmp(rest, key) == 0 || strcmp(rest, "*") == 0) return from;
    }
    return NULL;
}

static bool check_object(const checker *c, const char *rule, const char *path, const json_t *v) {
    const char *key;
    json_t *each;
    json_object_foreach((json_t *)v, key, each) {
        char below[PATH_ROOM];
        const place *p = find_rule(c->shapes, rule, key);
        if (!p || json_is_null(each)) continue;
        snprintf(below, sizeof below, "%s%s%.64s", path, *path ? "." : "", key);
        if (!is_shape(each, p->is)) return fail_at(c, below, wanted[p->is]);
        if (!check_value(c, p->path, below, each)) return false;
    }
    return true;
}

static bool check_list(const checker *c, const char *rule, const char *path, const json_t *v) {
    char element[PATH_ROOM], below[PATH_ROOM];
    const place *p = c->shapes;
    json_t *each;
    size_t i;
    if (json_array_size(v) > LIST_MOST) return fail_at(c, path, "has more than 100,000 elements");
    snprintf(element, sizeof element, "%s[]", rule);
    while (p->path && strcmp(p->path, element) != 0) p++;
    if (!p->path) return true;
    json_array_foreach(v, i, each) {
        bool hole = json_is_null(each) && p->is == NUMBER;
        snprintf(below, sizeof below, "%.200s[%zu]", path, i);
        if (!hole && !is_shape(each, p->is)) return fail_at(c, below, wanted[p->is]);
        if (!hole && !check_value(c, p->path, below, each)) return false;
    }
    return true;
}

static bool check_value(const checker *c, const char *rule, const char *path, const json_t *v) {
    if (json_is_object(v)) return check_object(c, rule, path, v);
    return !json_is_array(v) || check_list(c, rule, path, v);
}

// Sums

static char *text_of(const json_t *doc) {
    char *text = json_dumps(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    CHECK(text, "a document cannot be written as JSON");
    return text;
}

// Adds the sum of all else as the last key.
static void add_sum(json_t *doc) {
    char *text = text_of(doc), sum[SUM_ROOM];
    sum_of_text(text, sum);
    json_object_set_new(doc, "sum", json_string(sum));
    free(text);
}

// Takes the sum out of a document and compares it. One without a sum passes: earlier programs wrote none.
static bool take_sum(json_t *doc, const char *path, err *e) {
    char sum[SUM_ROOM], *text = NULL;
    json_t *kept = json_incref(json_object_get(doc, "sum"));
    bool ok = !kept;
    if (kept) {
        json_object_del(doc, "sum");
        text = text_of(doc);
        sum_of_text(text, sum);
        ok = json_is_string(kept) && strcmp(json_string_value(kept), sum) == 0;
    }
    json_decref(kept);
    free(text);
    return ok ||
           err_input(e, "%s: its sum does not fit what it holds; the file was changed or damaged, make it anew", path);
}

// Reading

static json_t *parse(const char *path, results_kind k, const char *text, size_t bytes, err *e) {
    err why = {0};
    json_t *doc = json_read(text, bytes, &why);
    if (!doc) {
        err_input(e, "%s: %.200s; the file is damaged, make it anew", path, why.text);
        return NULL;
    }
    const checker c = {shapes[k], path, e};
    json_t *version = json_object_get(doc, "version");
    bool ok = json_is_integer(version) && json_integer_value(version) > 0;
    if (!ok) err_input(e, "%s: has no version; it is no result of tradewind, or damaged", path);
    ok = ok && format_known(path, json_integer_value(version), VERSION, e) && check_object(&c, "", "", doc) &&
         take_sum(doc, path, e);
    if (ok) return doc;
    json_decref(doc);
    return NULL;
}

bool results_read(const char *dir, results_kind k, json_t **doc, err *e) {
    char *path = run_path(dir, names[k]);
    size_t bytes;
    *doc = NULL;
    bool there = access(path, F_OK) == 0 || errno != ENOENT;
    char *text = there ? file_read(path, bytes_most, &bytes, e) : NULL;
    if (text) *doc = parse(path, k, text, bytes, e);
    bool ok = !there || *doc;
    free(text);
    free(path);
    return ok;
}

// Writing

static bool put(const char *path, json_t *doc, err *e) {
    file_writer w;
    char *text = text_of(doc);
    bool ok = file_writer_open(&w, path, e) && file_writer_write(&w, text, strlen(text), e) &&
              file_writer_write(&w, "\n", 1, e) && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    free(text);
    return ok;
}

bool results_write(const char *dir, results_kind k, json_t *doc, err *e) {
    CHECK(json_is_object(doc), "a document must be an object");
    json_t *whole = json_pack("{s:i}", "version", VERSION);
    json_join(whole, doc);
    add_sum(whole);
    char *path = run_path(dir, names[k]);
    bool ok = put(path, whole, e);
    json_decref(whole);
    free(path);
    return ok;
}

bool results_set(const char *dir, results_kind k, const char *section, const char *key, json_t *value, err *e) {
    json_t *doc = NULL;
    int lock = file_lock(dir, NULL, NULL, e);
    bool ok = lock >= 0 && results_read(dir, k, &doc, e);
    if (ok && !doc) doc = json_object();
    json_t *in = json_object_get(doc, section);
    if (ok && !json_is_object(in)) {
        in = json_object();
        json_object_set_new(doc, section, in);
    }
    if (ok)
        json_object_set_new(in, key, value);
    else
        json_decref(value);
    ok = ok && results_write(dir, k, doc, e);
    if (lock >= 0) close(lock);
    return ok;
}

// Values

json_t *results_get(json_t *doc, const char *path) {
    while (doc && *path) {
        size_t n = strcspn(path, ".");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        doc = json_object_get(doc, key);
        path += n + (path[n] == '.');
    }
    return json_is_null(doc) ? NULL : doc;
}

double results_number(const json_t *value) {
    return json_is_number(value) ? json_number_value(value) : NAN;
}
