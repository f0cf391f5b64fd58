// The YAML reader: one document to a tree of nodes, with the line of every key.
#include "base/config_keys.h"
#include "base/config_tree.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { FILE_MOST = 1 << 20 };

typedef struct {
    config *c;
    yaml_parser_t parser;
    yaml_event_t event;
    const char *text;
    err *e;
} reader;

// A message about the place of the current event.
static bool fail_here(reader *r, const char *path, const char *text) {
    node here = {.line = r->event.start_mark.line + 1};
    return tree_fail(r->c, &here, path, r->e, "%s", text);
}

static bool fail_syntax(reader *r) {
    const yaml_parser_t *p = &r->parser;
    NEED(p->error != YAML_MEMORY_ERROR, "%s: no memory to read it", r->c->name);
    node here = {.line = p->problem_mark.line + 1};
    if (p->error == YAML_READER_ERROR) {
        here.line = 1;
        for (size_t i = 0; i < p->problem_offset && r->text[i]; i++) here.line += r->text[i] == '\n';
        return tree_fail(r->c, &here, "", r->e, "not a text file in UTF-8: %s; save it as plain text", p->problem);
    }
    const char *advice = "check indentation, colons and quotes";
    if (strstr(p->problem, "cannot start any token"))
        advice = "indent with spaces, not tabs, and quote values that start with a sign";
    if (!p->context || p->context_mark.line == p->problem_mark.line)
        return tree_fail(r->c, &here, "", r->e, "not valid YAML: %s; %s", p->problem, advice);
    return tree_fail(r->c, &here, "", r->e, "not valid YAML: %s %s that starts in line %zu; %s", p->problem, p->context,
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
        return tree_fail(r->c, &here, below, r->e, "given twice, first in line %zu; remove one", twin->line);
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

static const char *item_problem(const yaml_event_t *v) {
    if (v->type == YAML_SEQUENCE_START_EVENT) return "a list stands in the list; write single words";
    if (v->type == YAML_MAPPING_START_EVENT) return "a section stands in the list; write single words";
    const char *text = (const char *)v->data.scalar.value;
    bool quoted = v->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!quoted && text_is_null(text)) return "a word of the list has no value; remove it, or quote it";
    if (strlen(text) != v->data.scalar.length) return "a word of the list has a NUL in it; remove it";
    return v->data.scalar.length > ITEM_MOST ? "a word of the list is longer than 255 bytes; shorten it" : NULL;
}

// The current event starts an item.
static void take_item(reader *r, items *list) {
    if (list->problem) return;
    list->problem = item_problem(&r->event);
    if (!list->problem && list->count == ITEMS_MOST) list->problem = "the list has more than 4096 words; shorten it";
    if (list->problem)
        list->line = r->event.start_mark.line + 1;
    else
        items_add(r->c, list, (const char *)r->event.data.scalar.value);
}

static bool read_list(reader *r, items *list, const char *path, int depth) {
    int start = depth;
    for (;;) {
        if (!advance(r)) return false;
        yaml_event_type_t type = r->event.type;
        bool ends = type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        if (depth == start && !ends) take_item(r, list);
        if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) depth++;
        if (depth > DEPTH_MOST) return fail_here(r, path, "nested more than 16 deep; is it the right file?");
        if (ends && depth-- == start) return true;
    }
}

// The current event starts the value of `n`; stops at its last one.
static bool read_node(reader *r, node *n, const char *path, int depth) {
    if (r->event.type == YAML_MAPPING_START_EVENT) return read_map(r, n, path, depth);
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        n->kind = NODE_LIST;
        return read_list(r, &n->list, path, depth);
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
    if (root->kind != NODE_MAP && !node_is_null(root))
        return tree_fail(r->c, root, "", r->e, "not a map; a run description is lines of KEY: VALUE");
    root->kind = NODE_MAP;
    root->line = 0;
    if (!advance(r) || !advance(r)) return false; // the document's end, then the stream's end
    if (r->event.type == YAML_STREAM_END_EVENT) return true;
    return fail_here(r, "", "a second document starts; keep one in a file");
}

static void reader_start(reader *r, size_t bytes) {
    NEED(yaml_parser_initialize(&r->parser), "out of memory for a YAML parser");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(bytes ? r->text : ""), bytes);
}

static void reader_stop(reader *r) {
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
}

bool items_read(config *c, const char *text, items *list) {
    bool bare = *text != '[';
    reader r = {.c = c, .text = arena_format(&c->memory, "%s%s%s", bare ? "[" : "", text, bare ? "]" : "")};
    reader_start(&r, strlen(r.text));
    bool ok = advance(&r) && advance(&r) && advance(&r); // the stream's start, the document's, the list's
    ok = ok && r.event.type == YAML_SEQUENCE_START_EVENT && read_list(&r, list, "", 0);
    ok = ok && advance(&r) && advance(&r) && r.event.type == YAML_STREAM_END_EVENT;
    reader_stop(&r);
    return ok;
}

static void read_fallback(config *c, size_t row) {
    const config_key *k = &c->keys[row];
    items *list = &c->fallbacks[row];
    if (k->type != CONFIG_LIST || !k->fallback) return;
    CHECK(items_read(c, k->fallback, list) && !list->problem, "%s: bad fallback %s", k->path, k->fallback);
}

config *config_read(const char *name, const char *text, size_t bytes, const config_key *keys, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) row_check(keys, i);
    config *c = tree_new(name, keys, count);
    for (size_t i = 0; i < count; i++) read_fallback(c, i);
    reader r = {.c = c, .text = text, .e = e};
    bool ok = false;
    if (bytes > FILE_MOST) {
        tree_fail(c, NULL, "", e, "larger than 1 MiB; is it the right file?");
        goto done;
    }
    reader_start(&r, bytes);
    ok = read_document(&r);
    reader_stop(&r);
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
