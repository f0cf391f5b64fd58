#include "base/config.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/term.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

enum {
    FILE_MOST = 1 << 20,
    NODES_MOST = 4096, // keys in all; siblings are compared pairwise
    DEPTH_MOST = 16,
    KEY_MOST = 64,
    PATH_ROOM = DEPTH_MOST * (KEY_MOST + 1) + 1,
    SHOW_ROOM = 64,
};

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } node_kind;

typedef struct node {
    node_kind kind;
    const char *key;
    const char *text;       // of a scalar
    bool quoted;            // written in quotes, or as a block of text
    size_t line;            // of the key; 0 when an override made it
    const char *assignment; // the override that set it, or NULL
    struct node *first, *last, *next;
} node;

struct config {
    arena memory;
    const char *name;
    const config_key *keys;
    size_t count;
    node *root;
    size_t nodes;
};

// A bounded text that grows at its end.
typedef struct {
    char text[640];
    size_t used;
} words;

__attribute__((format(printf, 2, 3))) static void put(words *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, fmt, args);
    va_end(args);
    if (n < 0) return;
    w->used += (size_t)n;
    if (w->used >= sizeof w->text) w->used = sizeof w->text - 1;
}

// Item i of n in a list such as "a, b or c".
static void put_item(words *w, size_t i, size_t n, const char *text, size_t len) {
    put(w, "%s%.*s", !i ? "" : i + 1 == n ? " or " : ", ", (int)len, text);
}

// The user's text, cut to fit into a message.
static const char *show(char out[SHOW_ROOM], const char *text) {
    size_t n = strlen(text);
    if (n < SHOW_ROOM) return memcpy(out, text, n + 1);
    n = SHOW_ROOM - 4;
    while (n && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    memcpy(out, text, n);
    memcpy(out + n, "...", 4);
    return out;
}

static bool utf8_ok(const char *text) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        if (*s < 0x80) {
            s++;
            continue;
        }
        if (*s < 0xC2 || *s > 0xF4) return false;
        int more = *s >= 0xF0 ? 3 : *s >= 0xE0 ? 2 : 1;
        uint32_t v = *s++ & (0x3Fu >> more);
        for (int i = 0; i < more; i++) {
            if ((*s & 0xC0) != 0x80) return false;
            v = v << 6 | (*s++ & 0x3Fu);
        }
        if (v < least[more] || v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF)) return false;
    }
    return true;
}

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

// Insertions, deletions, changes and swaps of neighbours between two short texts; SIZE_MAX when one is long.
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    if (na > KEY_MOST || nb > KEY_MOST) return SIZE_MAX;
    size_t rows[3][KEY_MOST + 1];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = least_of(before[j - 1] + (a[i - 1] != b[j - 1]), least_of(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least_of(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

// The nearest of several texts to the one that the user wrote, near enough to be taken for a slip.
typedef struct {
    const char *want;
    const char *path, *end; // what to suggest; NULL while nothing is near
    size_t distance;        // less than this is nearer
} nearest;

static nearest nearest_to(const char *want) {
    size_t n = strlen(want);
    return (nearest){.want = want, .distance = n < 3 ? 1 : 2 + n / 4};
}

// Compares with `part`, which ends `path` or, where they are the same, is all of it.
static void nearest_try(nearest *n, const char *path, const char *part, size_t len) {
    size_t distance = edit_distance(n->want, strlen(n->want), part, len);
    if (distance >= n->distance) return;
    n->distance = distance;
    n->path = path;
    n->end = part + len;
}

static void put_place(const config *c, const node *n, words *w) {
    char shown[SHOW_ROOM];
    if (n && n->assignment)
        put(w, "%s", show(shown, n->assignment));
    else if (n && n->line)
        put(w, "%.200s:%zu", c->name, n->line);
    else
        put(w, "%.200s", c->name);
}

static bool fail_va(const config *c, const node *n, const char *path, err *e, const char *fmt, va_list args) {
    words place = {0};
    char text[sizeof e->text];
    put_place(c, n, &place);
    vsnprintf(text, sizeof text, fmt, args);
    if (*path)
        err_input(e, "%s: %.300s: %s", place.text, path, text);
    else
        err_input(e, "%s: %s", place.text, text);
    if (e) term_one_line(e->text);
    return false;
}

// Blames node `n`, which may be NULL for the file as a whole.
__attribute__((format(printf, 5, 6))) static bool fail(
    const config *c, const node *n, const char *path, err *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail_va(c, n, path, e, fmt, args);
    va_end(args);
    return false;
}

static size_t part_length(const char *path) {
    return strcspn(path, ".");
}

static const char *part_next(const char *path) {
    path += part_length(path);
    return *path ? path + 1 : path;
}

static bool part_is(const char *path, const char *text, size_t len) {
    return part_length(path) == len && !memcmp(path, text, len);
}

// What remains of a row's path below the section `path`: "" when it is the row itself, NULL when it lies elsewhere.
static const char *row_below(const char *row, const char *path) {
    for (; *path; path = part_next(path), row = part_next(row)) {
        if (!*row) return NULL;
        if (!part_is(row, "*", 1) && !part_is(row, path, part_length(path))) return NULL;
    }
    return row;
}

static bool is_wild(const config_key *k) {
    return strchr(k->path, '*') != NULL;
}

// The row for a path, a literal one before one with a star; NULL when there is none.
static const config_key *find_row(const config *c, const char *path) {
    const config_key *found = NULL;
    for (size_t i = 0; i < c->count; i++) {
        if (!strcmp(c->keys[i].path, path)) return &c->keys[i];
        const char *rest = row_below(c->keys[i].path, path);
        if (!found && rest && !*rest && is_wild(&c->keys[i])) found = &c->keys[i];
    }
    return found;
}

// Whether keys may stand below a path.
static bool is_section(const config *c, const char *path) {
    const config_key *k = find_row(c, path);
    if (k && k->type == CONFIG_MAP) return true;
    for (size_t i = 0; i < c->count; i++) {
        const char *rest = row_below(c->keys[i].path, path);
        if (rest && *rest) return true;
    }
    return false;
}

// Walks a list such as "adamw|sgd"; the next word and its length, or NULL at the end.
static const char *choice_next(const char **list, size_t *len) {
    const char *word = *list;
    if (!word || !*word) return NULL;
    *len = strcspn(word, "|");
    *list = word + *len + (word[*len] == '|');
    return word;
}

static size_t choice_count(const char *list) {
    size_t n = 0, len;
    while (choice_next(&list, &len)) n++;
    return n;
}

static bool choice_has(const char *list, const char *text) {
    size_t len, want = strlen(text);
    for (const char *word; (word = choice_next(&list, &len));)
        if (len == want && !memcmp(word, text, len)) return true;
    return false;
}

static void put_bound(words *w, double v) {
    if (v == floor(v) && fabs(v) < 1e15)
        put(w, "%.0f", v);
    else
        put(w, "%g", v);
}

static void put_number(words *w, const config_key *k, const char *noun) {
    bool above_zero = k->least > 0 && k->least <= 1e-30;
    put(w, "%s", noun);
    if (above_zero) {
        put(w, " above 0");
        if (k->most < INFINITY) put(w, " and at most ");
    } else if (k->least > -INFINITY && k->most < INFINITY) {
        put(w, " from ");
        put_bound(w, k->least);
        put(w, " to ");
    } else if (k->least > -INFINITY) {
        put(w, " of at least ");
        put_bound(w, k->least);
    } else if (k->most < INFINITY) {
        put(w, " of at most ");
    }
    if (k->most < INFINITY) put_bound(w, k->most);
}

// What a key takes: "integer of at least 1 or auto".
static void put_type(words *w, const config_key *k) {
    size_t own = k->type == CONFIG_BOOL ? 2 : k->type == CONFIG_INT || k->type == CONFIG_REAL ? 1 : 0;
    size_t i = own, n = own + choice_count(k->choices), len;
    if (k->type == CONFIG_MAP) put(w, "section");
    if (k->type == CONFIG_TEXT) put(w, "text");
    if (k->type == CONFIG_INT) put_number(w, k, "integer");
    if (k->type == CONFIG_REAL) put_number(w, k, "number");
    if (k->type == CONFIG_BOOL) {
        put_item(w, 0, n, "true", 4);
        put_item(w, 1, n, "false", 5);
    }
    const char *list = k->type == CONFIG_TEXT || k->type == CONFIG_MAP ? NULL : k->choices;
    for (const char *word; (word = choice_next(&list, &len)); i++) put_item(w, i, n, word, len);
}

typedef struct {
    bool word; // one of the choices stands in place of a value
    int64_t i;
    double r;
    bool b;
} value;

static bool is_null(const char *text) {
    return !*text || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") || !strcmp(text, "NULL");
}

static bool is_null_node(const node *n) {
    return n->kind == NODE_SCALAR && !n->quoted && is_null(n->text);
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

// Decimal digits and a sign; no leading zeros, which YAML 1.1 reads as octal.
static bool parse_int(const char *text, int64_t *v) {
    const char *from = text + (*text == '-' || *text == '+');
    size_t n = digits(from);
    if (!n || from[n] || (n > 1 && *from == '0')) return false;
    errno = 0;
    long long whole = strtoll(text, NULL, 10);
    if (errno) return false;
    *v = whole;
    return true;
}

static bool parse_real(const char *text, double *v) {
    const char *at = text + (*text == '-' || *text == '+');
    size_t whole = digits(at), part = 0;
    at += whole;
    if (*at == '.') {
        part = digits(++at);
        at += part;
    }
    if (!whole && !part) return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        size_t n = digits(at);
        if (!n) return false;
        at += n;
    }
    if (*at) return false;
    *v = strtod(text, NULL);
    return isfinite(*v);
}

static bool parse_bool(const char *text, bool *v) {
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, yes[i]) && strcasecmp(text, no[i])) continue;
        *v = !strcasecmp(text, yes[i]);
        return true;
    }
    return false;
}

static bool in_range(const config_key *k, double v) {
    return v >= k->least && v <= k->most;
}

// Reads a scalar as its row wants it. On failure `*hint` says what to do, or stays as it is.
static bool value_parse(const config_key *k, const char *text, bool quoted, value *v, const char **hint) {
    *v = (value){0};
    if (k->type == CONFIG_TEXT) return true;
    if (choice_has(k->choices, text)) {
        v->word = true;
        return true;
    }
    if (k->type == CONFIG_CHOICE || k->type == CONFIG_MAP) return false;
    if (quoted) {
        const char *ignored;
        if (value_parse(k, text, false, v, &ignored)) *hint = "remove the quotes";
        return false;
    }
    if (k->type == CONFIG_BOOL) return parse_bool(text, &v->b);
    if (k->type == CONFIG_INT && parse_int(text, &v->i)) return in_range(k, (double)v->i);
    if (parse_real(text, &v->r)) {
        if (k->type == CONFIG_REAL) return in_range(k, v->r);
        *hint = text[strcspn(text, ".eE")] ? "write it in digits alone" : "it does not fit, or starts with a 0";
    } else if (digits(text) && text[strspn(text, "0123456789_,'")] == 0) {
        *hint = "write it without separators";
    }
    return false;
}

static void check_row(const config_key *keys, size_t at) {
    const config_key *k = &keys[at];
    bool number = k->type == CONFIG_INT || k->type == CONFIG_REAL;
    size_t depth = 0;
    for (const char *p = k->path; *p; p = part_next(p), depth++)
        CHECK(part_length(p) && part_length(p) <= KEY_MOST, "%s: bad path", k->path);
    CHECK(depth && depth <= DEPTH_MOST, "%s: bad path", k->path);
    CHECK(!number || k->least < k->most, "%s: no bounds", k->path);
    CHECK(k->type != CONFIG_CHOICE || choice_count(k->choices), "%s: no choices", k->path);
    for (size_t i = 0; i < at; i++) CHECK(strcmp(keys[i].path, k->path) != 0, "%s: two rows", k->path);
    if (!k->fallback || k->type == CONFIG_MAP) return;
    value v;
    const char *hint = "";
    CHECK(value_parse(k, k->fallback, false, &v, &hint), "%s: bad fallback %s", k->path, k->fallback);
}

static node *node_child(const node *parent, const char *key, size_t len) {
    for (node *n = parent->first; n; n = n->next)
        if (!strncmp(n->key, key, len) && !n->key[len]) return n;
    return NULL;
}

static node *node_add(config *c, node *parent, const char *key, size_t len) {
    node *n = arena_take(&c->memory, sizeof *n);
    n->key = arena_format(&c->memory, "%.*s", (int)len, key);
    n->text = "";
    if (parent->last)
        parent->last->next = n;
    else
        parent->first = n;
    parent->last = n;
    c->nodes++;
    return n;
}

// The node that the user gave for a path, or NULL. `*last`, where wanted, is the deepest given node on the way.
static node *node_find(const config *c, const char *path, const node **last) {
    node *n = c->root;
    for (; n && *path; path = part_next(path)) {
        n = node_child(n, path, part_length(path));
        if (n && last) *last = n;
    }
    return n;
}

// The node for a path, made with its sections where missing. NULL when a single value or a list stands in the way, at
// the first `*blocked` bytes of the path.
static node *node_make(config *c, const char *path, const char *assignment, size_t *blocked) {
    node *n = c->root;
    for (const char *p = path; *p; p = part_next(p)) {
        if (is_null_node(n)) n->kind = NODE_MAP;
        if (n->kind != NODE_MAP) {
            *blocked = (size_t)(p - path) - 1;
            return NULL;
        }
        node *child = node_child(n, p, part_length(p));
        if (!child) {
            child = node_add(c, n, p, part_length(p));
            child->assignment = assignment;
        }
        n = child;
    }
    return n;
}

static void node_set(node *n, const char *text, const char *assignment) {
    n->kind = NODE_SCALAR;
    n->text = text;
    n->quoted = false;
    n->assignment = assignment;
    n->first = n->last = NULL;
}

typedef struct {
    config *c;
    yaml_parser_t parser;
    yaml_event_t event;
    const char *text;
    err *e;
} reader;

static const char *key_problem(const char *key, size_t len) {
    if (!len) return "a key is empty; name it";
    if (len > KEY_MOST) return "a key is longer than 64 bytes; shorten it";
    if (memchr(key, '.', len)) return "a key has a dot in it; nest the keys instead";
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)key[i] < ' ' || key[i] == '=' || key[i] == 0x7f)
            return "a key has a strange character in it; use letters, digits and _";
    return NULL;
}

// A message about the place of the current event.
static bool fail_here(reader *r, const char *path, const char *text) {
    node here = {.line = r->event.start_mark.line + 1};
    return fail(r->c, &here, path, r->e, "%s", text);
}

static bool fail_syntax(reader *r) {
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) return err_run(r->e, "%s: no memory to read it", r->c->name);
    node here = {.line = p->problem_mark.line + 1};
    if (p->error == YAML_READER_ERROR) {
        here.line = 1;
        for (size_t i = 0; i < p->problem_offset && r->text[i]; i++) here.line += r->text[i] == '\n';
        return fail(r->c, &here, "", r->e, "not a text file in UTF-8: %s; save it as plain text", p->problem);
    }
    const char *advice = "check indentation, colons and quotes";
    if (strstr(p->problem, "cannot start any token"))
        advice = "indent with spaces, not tabs, and quote values that start with a sign";
    if (!p->context || p->context_mark.line == p->problem_mark.line)
        return fail(r->c, &here, "", r->e, "not valid YAML: %s; %s", p->problem, advice);
    return fail(r->c, &here, "", r->e, "not valid YAML: %s %s that starts in line %zu; %s", p->problem, p->context,
        p->context_mark.line + 1, advice);
}

// Moves to the next event, refusing what no part of a description may have.
static bool advance(reader *r) {
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event)) return fail_syntax(r);
    const yaml_event_t *v = &r->event;
    const void *anchor = NULL, *tag = NULL;
    switch (v->type) {
    case YAML_ALIAS_EVENT: return fail_here(r, "", "aliases are not supported; repeat the value, or quote it");
    case YAML_SCALAR_EVENT: anchor = v->data.scalar.anchor, tag = v->data.scalar.tag; break;
    case YAML_MAPPING_START_EVENT: anchor = v->data.mapping_start.anchor, tag = v->data.mapping_start.tag; break;
    case YAML_SEQUENCE_START_EVENT: anchor = v->data.sequence_start.anchor, tag = v->data.sequence_start.tag; break;
    default: break;
    }
    if (anchor) return fail_here(r, "", "anchors are not supported; remove the &, or quote the value");
    if (tag) return fail_here(r, "", "tags are not supported; remove the !, or quote the value");
    return true;
}

static bool read_node(reader *r, node *n, const char *path, int depth);

// The current event is the key; reads it and its value.
static bool read_pair(reader *r, node *map, const char *path, int depth) {
    if (r->event.type != YAML_SCALAR_EVENT) return fail_here(r, path, "a key is not a single word; write KEY: VALUE");
    const char *key = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length, line = r->event.start_mark.line + 1;
    const char *problem = key_problem(key, len);
    if (problem) return fail_here(r, path, problem);
    if (r->c->nodes >= NODES_MOST) return fail_here(r, path, "too many keys; is it the right file?");
    char below[PATH_ROOM];
    snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
    const node *twin = node_child(map, key, len);
    if (twin) {
        node here = {.line = line};
        return fail(r->c, &here, below, r->e, "given twice, first in line %zu; remove one", twin->line);
    }
    node *n = node_add(r->c, map, key, len);
    n->line = line;
    return advance(r) && read_node(r, n, below, depth + 1);
}

static bool read_map(reader *r, node *n, const char *path, int depth) {
    n->kind = NODE_MAP;
    for (;;) {
        if (!advance(r)) return false;
        if (r->event.type == YAML_MAPPING_END_EVENT) return true;
        if (depth >= DEPTH_MOST) return fail_here(r, path, "nested more than 16 deep; is it the right file?");
        if (!read_pair(r, n, path, depth)) return false;
    }
}

// Reads over a list: no key takes one, but the check says so better, with the key's name.
static bool skip_list(reader *r, const char *path, int depth) {
    int start = depth;
    for (;;) {
        if (!advance(r)) return false;
        yaml_event_type_t type = r->event.type;
        if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) depth++;
        if (depth > DEPTH_MOST) return fail_here(r, path, "nested more than 16 deep; is it the right file?");
        if (type != YAML_SEQUENCE_END_EVENT && type != YAML_MAPPING_END_EVENT) continue;
        if (depth-- == start) return true;
    }
}

// The current event starts the value of `n`; stops at its last one.
static bool read_node(reader *r, node *n, const char *path, int depth) {
    if (r->event.type == YAML_MAPPING_START_EVENT) return read_map(r, n, path, depth);
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        n->kind = NODE_LIST;
        return skip_list(r, path, depth);
    }
    const char *text = (const char *)r->event.data.scalar.value;
    if (strlen(text) != r->event.data.scalar.length) return fail_here(r, path, "has a NUL in it; remove it");
    n->kind = NODE_SCALAR;
    n->text = arena_text(&r->c->memory, text);
    n->quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return true;
}

static bool read_document(reader *r) {
    node *root = r->c->root;
    if (!advance(r) || !advance(r)) return false; // the stream's start, then the document's or the stream's end
    if (r->event.type == YAML_STREAM_END_EVENT) return true;
    if (!advance(r)) return false;
    root->line = r->event.start_mark.line + 1;
    if (!read_node(r, root, "", 0)) return false;
    if (root->kind != NODE_MAP && !is_null_node(root))
        return fail(r->c, root, "", r->e, "not a map; a run description is lines of KEY: VALUE");
    root->kind = NODE_MAP;
    root->line = 0;
    if (!advance(r) || !advance(r)) return false; // the document's end, then the stream's end
    if (r->event.type == YAML_STREAM_END_EVENT) return true;
    return fail_here(r, "", "a second document starts; keep one in a file");
}

static config *config_new(const char *name, const config_key *keys, size_t count) {
    config *c = calloc(1, sizeof *c);
    CHECK(c, "out of memory for a configuration");
    for (size_t i = 0; i < count; i++) check_row(keys, i);
    arena_init(&c->memory);
    c->name = arena_text(&c->memory, name);
    c->keys = keys;
    c->count = count;
    c->root = arena_take(&c->memory, sizeof *c->root);
    c->root->kind = NODE_MAP;
    c->root->key = c->root->text = "";
    return c;
}

config *config_read(const char *name, const char *text, size_t bytes, const config_key *keys, size_t count, err *e) {
    config *c = config_new(name, keys, count);
    reader r = {.c = c, .text = text, .e = e};
    bool ok = false;
    if (bytes > FILE_MOST) {
        fail(c, NULL, "", e, "larger than 1 MiB; is it the right file?");
        goto done;
    }
    CHECK(yaml_parser_initialize(&r.parser), "out of memory for a YAML parser");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(bytes ? text : ""), bytes);
    ok = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
done:
    if (ok) return c;
    config_free(c);
    return NULL;
}

config *config_load(const char *path, const config_key *keys, size_t count, err *e) {
    size_t bytes;
    char *text = file_read(path, FILE_MOST, &bytes, e);
    if (!text) return NULL;
    config *c = config_read(path, text, bytes, keys, count, e);
    free(text);
    return c;
}

void config_free(config *c) {
    if (!c) return;
    arena_done(&c->memory);
    free(c);
}

bool config_override(config *c, const char *assignment, err *e) {
    const char *equals = strchr(assignment, '=');
    node here = {.assignment = assignment};
    if (!equals) return fail(c, &here, "", e, "not an override; write KEY=VALUE, such as train.epochs=4");
    if (!utf8_ok(assignment)) return fail(c, &here, "", e, "not valid UTF-8; check the spelling");
    char path[PATH_ROOM];
    size_t len = (size_t)(equals - assignment), depth = 1;
    for (size_t i = 0; i < len; i++) depth += assignment[i] == '.';
    if (depth > DEPTH_MOST || len >= sizeof path) return fail(c, &here, "", e, "the key is too long; check it");
    memcpy(path, assignment, len);
    path[len] = 0;
    const char *p = path;
    for (size_t i = 0; i < depth; i++, p = part_next(p)) {
        const char *problem = key_problem(p, part_length(p));
        if (problem) return fail(c, &here, "", e, "%s", problem);
    }
    if (c->nodes + depth > NODES_MOST) return fail(c, &here, "", e, "too many keys");
    const char *kept = arena_text(&c->memory, assignment);
    size_t blocked = 0;
    node *n = node_make(c, path, kept, &blocked);
    if (n) {
        node_set(n, kept + len + 1, kept);
        return true;
    }
    path[blocked] = 0;
    return fail(c, &here, path, e, "is a single value, so it has no keys below it; override %s itself", path);
}

// The nearest key in the same section; failing that, the nearest key or section anywhere by its last part.
static bool suggest_key(const config *c, const char *section, const char *key, words *w) {
    nearest here = nearest_to(key), there = nearest_to(key);
    for (size_t i = 0; i < c->count; i++) {
        const char *path = c->keys[i].path, *part = row_below(path, section);
        if (part && *part && !part_is(part, "*", 1)) nearest_try(&here, part, part, part_length(part));
        for (const char *p = path; *p && !part_is(p, "*", 1); p = part_next(p))
            nearest_try(&there, path, p, part_length(p));
    }
    if (here.path)
        put(w, "did you mean %.300s%s%.*s?", section, *section ? "." : "", (int)(here.end - here.path), here.path);
    else if (there.path)
        put(w, "did you mean %.*s?", (int)(there.end - there.path), there.path);
    return here.path || there.path;
}

// "train takes batch_size, epochs": the keys one level below a section.
static void put_keys(const config *c, const char *section, words *w) {
    put(w, "%.300s takes ", *section ? section : "the top level");
    size_t shown = 0;
    for (size_t i = 0; i < c->count; i++) {
        const char *part = row_below(c->keys[i].path, section);
        if (!part || !*part) continue;
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) {
            const char *before = row_below(c->keys[j].path, section);
            seen = before && *before && part_is(before, part, part_length(part));
        }
        if (seen) continue;
        bool any = part_is(part, "*", 1);
        put(w, "%s%.*s", shown++ ? ", " : "", any ? 8 : (int)part_length(part), any ? "any name" : part);
    }
    if (!shown) put(w, "no keys");
}

static bool fail_unknown(const config *c, const node *n, const char *section, const char *path, err *e) {
    words w = {0};
    if (!suggest_key(c, section, n->key, &w)) put_keys(c, section, &w);
    return fail(c, n, path, e, "unknown key; %s", w.text);
}

// The nearest choice, for a word that is none of them.
static bool suggest_choice(const config_key *k, const char *text, words *w) {
    nearest n = nearest_to(text);
    const char *list = k->choices;
    size_t len;
    for (const char *word; (word = choice_next(&list, &len));) nearest_try(&n, word, word, len);
    if (n.path) put(w, "did you mean %.*s?", (int)(n.end - n.path), n.path);
    return n.path != NULL;
}

static void put_found(const node *n, words *w) {
    char shown[SHOW_ROOM];
    if (n->kind == NODE_MAP)
        put(w, ", not a section");
    else if (n->kind == NODE_LIST)
        put(w, ", not a list");
    else if (is_null_node(n))
        put(w, ", but has no value");
    else
        put(w, n->quoted ? ", not \"%s\"" : ", not %s", show(shown, n->text));
}

static bool fail_value(
    const config *c, const node *n, const config_key *k, const char *path, const char *hint, err *e) {
    words w = {0};
    bool vowel = k->type == CONFIG_INT, article = vowel || k->type == CONFIG_REAL;
    put(&w, "must be %s", !article ? "" : vowel ? "an " : "a ");
    put_type(&w, k);
    put_found(n, &w);
    put(&w, "; ");
    bool told = n->kind == NODE_SCALAR && !hint && suggest_choice(k, n->text, &w);
    if (!told) put(&w, "%s", hint ? hint : k->help ? k->help : "correct it");
    if (!told && !hint && k->fallback) put(&w, " (default %s)", k->fallback);
    return fail(c, n, path, e, "%s", w.text);
}

static bool check_value(const config *c, const node *n, const config_key *k, const char *path, err *e) {
    value v;
    const char *hint = NULL;
    if (n->kind == NODE_SCALAR && !is_null_node(n) && value_parse(k, n->text, n->quoted, &v, &hint)) return true;
    if (n->kind != NODE_SCALAR || is_null_node(n)) hint = NULL;
    return fail_value(c, n, k, path, hint, e);
}

static bool check_map(const config *c, const node *map, const char *section, err *e) {
    for (const node *n = map->first; n; n = n->next) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", n->key);
        const config_key *k = find_row(c, path);
        bool below = is_section(c, path), single = k && k->type != CONFIG_MAP;
        if (!k && !below) return fail_unknown(c, n, section, path, e);
        if (below && n->kind == NODE_MAP) {
            if (!check_map(c, n, path, e)) return false;
        } else if (single) {
            if (!check_value(c, n, k, path, e)) return false;
        } else if (!is_null_node(n)) {
            words w = {0};
            put(&w, "must be a section");
            put_found(n, &w);
            put(&w, "; ");
            put_keys(c, path, &w);
            return fail(c, n, path, e, "%s", w.text);
        }
    }
    return true;
}

bool config_check(const config *c, err *e) {
    return check_map(c, c->root, "", e);
}

static const config_key *need_row(const config *c, const char *path) {
    const config_key *k = find_row(c, path);
    CHECK(k, "%s is not in the table of keys", path);
    return k;
}

// The text of a single value, given or fallback, or NULL.
static const char *value_text(const config *c, const config_key *k, const char *path) {
    const node *n = node_find(c, path, NULL);
    if (!n) return k->fallback;
    return n->kind == NODE_SCALAR ? n->text : NULL;
}

static value need_value(const config *c, const char *path, config_type type) {
    const config_key *k = need_row(c, path);
    CHECK(k->type == type, "%s is of another type", path);
    const char *text = value_text(c, k, path), *hint = NULL;
    CHECK(text, "%s has no value; config_has tells", path);
    value v;
    CHECK(value_parse(k, text, false, &v, &hint), "%s is %s; config_check comes first", path, text);
    CHECK(!v.word, "%s is the word %s; config_is tells", path, text);
    return v;
}

bool config_given(const config *c, const char *path) {
    CHECK(find_row(c, path) || is_section(c, path), "%s is not in the table of keys", path);
    return node_find(c, path, NULL) != NULL;
}

bool config_has(const config *c, const char *path) {
    const config_key *k = find_row(c, path);
    return config_given(c, path) || (k && k->fallback);
}

int64_t config_int(const config *c, const char *path) {
    return need_value(c, path, CONFIG_INT).i;
}

double config_real(const config *c, const char *path) {
    return need_value(c, path, CONFIG_REAL).r;
}

bool config_bool(const config *c, const char *path) {
    return need_value(c, path, CONFIG_BOOL).b;
}

const char *config_text(const config *c, const char *path) {
    const config_key *k = need_row(c, path);
    CHECK(k->type == CONFIG_TEXT || k->type == CONFIG_CHOICE, "%s is of another type", path);
    return value_text(c, k, path);
}

bool config_is(const config *c, const char *path, const char *word) {
    const config_key *k = need_row(c, path);
    CHECK(k->type == CONFIG_TEXT || choice_has(k->choices, word), "%s can never be %s", path, word);
    const char *text = value_text(c, k, path);
    return text && !strcmp(text, word);
}

static const node *need_section(const config *c, const char *path) {
    CHECK(is_section(c, path), "%s has no keys below it in the table", path);
    return node_find(c, path, NULL);
}

size_t config_count(const config *c, const char *path) {
    const node *map = need_section(c, path);
    size_t count = 0;
    for (const node *n = map ? map->first : NULL; n; n = n->next) count++;
    return count;
}

const char *config_child(const config *c, const char *path, size_t i) {
    const node *map = need_section(c, path), *n = map ? map->first : NULL;
    while (n && i--) n = n->next;
    CHECK(n, "%s has fewer keys", path);
    return n->key;
}

bool config_fail(const config *c, const char *path, err *e, const char *fmt, ...) {
    const node *last = NULL;
    node_find(c, path, &last);
    va_list args;
    va_start(args, fmt);
    fail_va(c, last, path, e, fmt, args);
    va_end(args);
    return false;
}

static void copy_children(config *to, node *into, const node *from) {
    for (const node *n = from->first; n; n = n->next) {
        node *twin = node_add(to, into, n->key, strlen(n->key));
        twin->kind = n->kind;
        twin->text = n->text;
        twin->quoted = n->quoted;
        copy_children(to, twin, n);
    }
}

// Whether a section on the way to a row means something by being there, and is not.
static bool is_left_out(const config *c, const config_key *row) {
    for (size_t i = 0; i < c->count; i++) {
        const config_key *k = &c->keys[i];
        const char *rest = row_below(row->path, k->path);
        if (k->type == CONFIG_MAP && !k->fallback && rest && *rest && !node_find(c, k->path, NULL)) return true;
    }
    return false;
}

static void fill_fallbacks(const config *c, config *full) {
    for (size_t i = 0; i < c->count; i++) {
        const config_key *k = &c->keys[i];
        if (!k->fallback || is_wild(k) || node_find(full, k->path, NULL) || is_left_out(c, k)) continue;
        size_t blocked = 0;
        node *n = node_make(full, k->path, NULL, &blocked);
        if (!n) continue;
        node_set(n, k->fallback, NULL);
        n->quoted = is_null(n->text);
        if (k->type == CONFIG_MAP) n->kind = NODE_MAP;
    }
}

static bool emit(yaml_emitter_t *out, yaml_event_t *event, int made) {
    return made && yaml_emitter_emit(out, event);
}

// Whether a text reads back as itself without quotes. Numbers do; whatever is doubtful is quoted.
static bool is_plain(const char *text) {
    static const char alnum[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *c = text;
    if (*c == '-' || *c == '+') c++;
    if (*c == '.' || (*c == '/' && c == text)) c++;
    if (!*c || !strchr(alnum, *c)) return false;
    while (*c && (strchr(alnum, *c) || strchr("_./+-", *c))) c++;
    return !*c;
}

static bool emit_text(yaml_emitter_t *out, const char *text, bool quoted) {
    yaml_event_t v;
    yaml_scalar_style_t style = quoted || !is_plain(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
    return emit(out, &v,
        yaml_scalar_event_initialize(&v, NULL, NULL, (const unsigned char *)text, (int)strlen(text), 1, 1, style));
}

static bool emit_node(yaml_emitter_t *out, const node *n) {
    CHECK(n->kind != NODE_LIST, "config_write before config_check");
    yaml_event_t v;
    if (n->kind == NODE_SCALAR && !is_null_node(n)) return emit_text(out, n->text, n->quoted);
    bool ok = emit(out, &v, yaml_mapping_start_event_initialize(&v, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    for (const node *child = n->first; ok && child; child = child->next)
        ok = emit_text(out, child->key, false) && emit_node(out, child);
    return ok && emit(out, &v, yaml_mapping_end_event_initialize(&v));
}

static int write_some(void *out, unsigned char *data, size_t bytes) {
    return fwrite(data, 1, bytes, out) == bytes;
}

static bool emit_all(const node *root, FILE *out) {
    yaml_emitter_t y;
    yaml_event_t v;
    if (!yaml_emitter_initialize(&y)) return false;
    yaml_emitter_set_output(&y, write_some, out);
    yaml_emitter_set_unicode(&y, 1);
    yaml_emitter_set_width(&y, -1);
    bool ok = emit(&y, &v, yaml_stream_start_event_initialize(&v, YAML_UTF8_ENCODING));
    ok = ok && emit(&y, &v, yaml_document_start_event_initialize(&v, NULL, NULL, NULL, 1));
    ok = ok && emit_node(&y, root);
    ok = ok && emit(&y, &v, yaml_document_end_event_initialize(&v, 1));
    ok = ok && emit(&y, &v, yaml_stream_end_event_initialize(&v));
    yaml_emitter_delete(&y);
    return ok && !fflush(out);
}

bool config_write(const config *c, FILE *out) {
    config *full = config_new(c->name, c->keys, c->count);
    copy_children(full, full->root, c->root);
    fill_fallbacks(c, full);
    bool ok = emit_all(full->root, out);
    config_free(full);
    return ok;
}

// The default as a table shows it.
static const char *shown_fallback(const config_key *k) {
    if (!k->fallback) return "-";
    return *k->fallback ? k->fallback : "\"\"";
}

void config_help(const config_key *keys, size_t count, FILE *out) {
    enum { TYPE_MOST = 36, FALLBACK_MOST = 16 }; // longer ones push the rest of their row aside
    size_t path = 0, type = 0, fallback = 0;
    for (size_t i = 0; i < count; i++) {
        words w = {0};
        put_type(&w, &keys[i]);
        size_t p = strlen(keys[i].path), f = strlen(shown_fallback(&keys[i]));
        if (p > path) path = p;
        if (w.used > type && w.used <= TYPE_MOST) type = w.used;
        if (f > fallback && f <= FALLBACK_MOST) fallback = f;
    }
    for (size_t i = 0; i < count; i++) {
        const config_key *k = &keys[i];
        words w = {0};
        put_type(&w, k);
        fprintf(out, "%-*s  %-*s  %-*s  %s\n", (int)path, k->path, (int)type, w.text, (int)fallback, shown_fallback(k),
            k->help ? k->help : "");
    }
}
