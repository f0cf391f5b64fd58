#include "base/config.h"

#include "base/config_keys.h"
#include "base/config_tree.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void config_free(config *c) {
    if (!c) return;
    arena_done(&c->memory);
    free(c);
}

static const config_key *need_row(const config *c, const char *path) {
    const config_key *k = row_find(c, path);
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
    CHECK(row_parse(k, text, false, &v, &hint), "%s is %s; config_check comes first", path, text);
    CHECK(!v.word, "%s is the word %s; config_is tells", path, text);
    return v;
}

bool config_given(const config *c, const char *path) {
    CHECK(row_find(c, path) || row_is_section(c, path), "%s is not in the table of keys", path);
    return node_find(c, path, NULL) != NULL;
}

void config_replace(config *c, const char *path, const char *text) {
    node *n = node_find(c, path, NULL);
    CHECK(n && n->kind == NODE_SCALAR, "%s was not given as a single value", path);
    n->text = arena_text(&c->memory, text);
}

bool config_given_value(const config *c, const char *path) {
    const node *n = node_find(c, path, NULL);
    return n && n->kind != NODE_MAP && !node_is_null(n);
}

bool config_has(const config *c, const char *path) {
    const config_key *k = row_find(c, path);
    return config_given(c, path) || (k && k->fallback);
}

static bool same_items(const node *n, const items *list) {
    const char *const *item = n->kind == NODE_LIST ? n->list.item : &n->text;
    size_t count = n->kind == NODE_LIST ? n->list.count : 1;
    bool same = count == list->count;
    for (size_t i = 0; same && i < count; i++) same = strcmp(item[i], list->item[i]) == 0;
    return same;
}

bool config_is_usual(const config *c, const char *path) {
    const config_key *k = need_row(c, path);
    const node *n = node_find(c, path, NULL);
    if (!n || !k->fallback) return false;
    if (k->type == CONFIG_LIST) return same_items(n, &c->fallbacks[k - c->keys]);
    return n->kind == NODE_SCALAR && strcmp(n->text, k->fallback) == 0;
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

// The words of a list, given or fallback.
static const char *const *need_list(const config *c, const char *path, size_t *count) {
    const config_key *k = need_row(c, path);
    CHECK(k->type == CONFIG_LIST, "%s is of another type", path);
    const node *n = node_find(c, path, NULL);
    const items *list = n ? &n->list : &c->fallbacks[k - c->keys];
    bool one = n && n->kind == NODE_SCALAR;
    *count = one ? 1 : list->count;
    return one ? &n->text : list->item;
}

size_t config_items(const config *c, const char *path) {
    size_t count;
    need_list(c, path, &count);
    return count;
}

const char *config_item(const config *c, const char *path, size_t i) {
    size_t count;
    const char *const *item = need_list(c, path, &count);
    CHECK(i < count, "%s has fewer words", path);
    return item[i];
}

bool config_is(const config *c, const char *path, const char *word) {
    const config_key *k = need_row(c, path);
    CHECK(k->type == CONFIG_TEXT || choice_has(k->choices, word), "%s can never be %s", path, word);
    const char *text = value_text(c, k, path);
    return text && !strcmp(text, word);
}

static const node *need_section(const config *c, const char *path) {
    CHECK(row_is_section(c, path), "%s has no keys below it in the table", path);
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

static void each_below(const node *map, const char *section, void (*use)(void *arg, const char *path), void *arg) {
    for (const node *n = map->first; n; n = n->next) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", n->key);
        if (n->kind == NODE_MAP)
            each_below(n, path, use, arg);
        else if (!node_is_null(n))
            use(arg, path);
    }
}

void config_each(const config *c, void (*use)(void *arg, const char *path), void *arg) {
    each_below(c->root, "", use, arg);
}

bool config_fail(const config *c, const char *path, err *e, const char *fmt, ...) {
    const node *last = NULL;
    node_find(c, path, &last);
    va_list args;
    va_start(args, fmt);
    tree_fail_va(c, last, path, e, fmt, args);
    va_end(args);
    return false;
}
