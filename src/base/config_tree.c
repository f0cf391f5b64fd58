#include "base/config_tree.h"

#include "base/config_words.h"

#include <stdlib.h>
#include <string.h>

size_t part_length(const char *path) {
    return strcspn(path, ".");
}

const char *part_next(const char *path) {
    path += part_length(path);
    return *path ? path + 1 : path;
}

bool part_is(const char *path, const char *text, size_t len) {
    return part_length(path) == len && !memcmp(path, text, len);
}

const char *key_problem(const char *key, size_t len) {
    if (!len) return "a key is empty; name it";
    if (len > KEY_MOST) return "a key is longer than 64 bytes; shorten it";
    if (memchr(key, '.', len))
        return "a key has a dot in it; nest the keys instead (a symbol with a dot: `import --symbol`)";
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)key[i] < ' ' || key[i] == '=' || key[i] == 0x7f)
            return "a key has a strange character in it; use letters, digits and _ (a symbol: `import --symbol`)";
    return NULL;
}

bool text_is_null(const char *text) {
    return !*text || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") || !strcmp(text, "NULL");
}

bool node_is_null(const node *n) {
    return n->kind == NODE_SCALAR && !n->quoted && text_is_null(n->text);
}

config *tree_new(const char *name, const config_key *keys, size_t count) {
    config *c = calloc(1, sizeof *c);
    CHECK(c, "out of memory for a configuration");
    arena_init(&c->memory);
    c->name = arena_text(&c->memory, name);
    c->keys = keys;
    c->count = count;
    c->fallbacks = arena_array(&c->memory, count, sizeof *c->fallbacks);
    c->root = arena_take(&c->memory, sizeof *c->root);
    c->root->kind = NODE_MAP;
    c->root->key = c->root->text = "";
    return c;
}

node *node_child(const node *parent, const char *key, size_t len) {
    for (node *n = parent->first; n; n = n->next)
        if (!strncmp(n->key, key, len) && !n->key[len]) return n;
    return NULL;
}

node *node_add(config *c, node *parent, const char *key, size_t len) {
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

node *node_find(const config *c, const char *path, const node **last) {
    node *n = c->root;
    for (; n && *path; path = part_next(path)) {
        n = node_child(n, path, part_length(path));
        if (n && last) *last = n;
    }
    return n;
}

node *node_make(config *c, const char *path, const char *assignment, size_t *blocked) {
    node *n = c->root;
    for (const char *p = path; *p; p = part_next(p)) {
        if (node_is_null(n)) n->kind = NODE_MAP;
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

void node_set(node *n, const char *text, const char *assignment) {
    n->kind = NODE_SCALAR;
    n->text = text;
    n->quoted = false;
    n->assignment = assignment;
    n->list = (items){0};
    n->first = n->last = NULL;
}

void node_set_list(node *n, const items *list, const char *assignment) {
    node_set(n, "", assignment);
    n->kind = NODE_LIST;
    n->list = *list;
}

void items_add(config *c, items *list, const char *text) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 8;
        const char **larger = arena_array(&c->memory, room, sizeof *larger);
        if (list->count) memcpy(larger, list->item, list->count * sizeof *larger);
        list->item = larger;
        list->room = room;
    }
    list->item[list->count++] = arena_text(&c->memory, text);
}

static void put_place(const config *c, const node *n, words *w) {
    char shown[SHOW_ROOM];
    if (n && n->assignment)
        words_put(w, "%s", words_show(shown, n->assignment));
    else if (n && n->line)
        words_put(w, "%.200s:%zu", c->name, n->line);
    else
        words_put(w, "%.200s", c->name);
}

bool tree_fail_va(const config *c, const node *n, const char *path, err *e, const char *fmt, va_list args) {
    words place = {0};
    char text[sizeof e->text];
    put_place(c, n, &place);
    vsnprintf(text, sizeof text, fmt, args);
    if (*path)
        err_input(e, "%s: %.300s: %s", place.text, path, text);
    else
        err_input(e, "%s: %s", place.text, text);
    return false;
}

bool tree_fail(const config *c, const node *n, const char *path, err *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tree_fail_va(c, n, path, e, fmt, args);
    va_end(args);
    return false;
}
