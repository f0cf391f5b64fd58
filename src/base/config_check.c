// The check of a tree against its table, and the words of its complaints.
#include "base/config_keys.h"
#include "base/config_near.h"
#include "base/config_tree.h"
#include "base/config_words.h"

#include <stdio.h>
#include <string.h>

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
        words_put(
            w, "did you mean %.300s%s%.*s?", section, *section ? "." : "", (int)(here.end - here.path), here.path);
    else if (there.path)
        words_put(w, "did you mean %.*s?", (int)(there.end - there.path), there.path);
    return here.path || there.path;
}

// "train takes batch_size, epochs": the keys one level below a section.
static void put_keys(const config *c, const char *section, words *w) {
    words_put(w, "%.300s takes ", *section ? section : "the top level");
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
        words_put(w, "%s%.*s", shown++ ? ", " : "", any ? 8 : (int)part_length(part), any ? "any name" : part);
        if (any) words_put(w, " (%.200s)", c->keys[i].help);
    }
    if (!shown) words_put(w, "no keys");
}

static bool fail_unknown(const config *c, const node *n, const char *section, const char *path, err *e) {
    words w = {0};
    if (!suggest_key(c, section, n->key, &w)) put_keys(c, section, &w);
    return tree_fail(c, n, path, e, "unknown key; %s", w.text);
}

// The nearest choice, for a word that is none of them.
static bool suggest_choice(const config_key *k, const char *text, words *w) {
    nearest n = nearest_to(text);
    const char *list = k->choices;
    size_t len;
    for (const char *word; (word = choice_next(&list, &len));) nearest_try(&n, word, word, len);
    if (n.path) words_put(w, "did you mean %.*s?", (int)(n.end - n.path), n.path);
    return n.path != NULL;
}

static void put_found(const node *n, words *w) {
    char shown[SHOW_ROOM];
    if (n->kind == NODE_MAP)
        words_put(w, ", not a section");
    else if (n->kind == NODE_LIST)
        words_put(w, ", not a list");
    else if (node_is_null(n))
        words_put(w, ", but has no value");
    else
        words_put(w, n->quoted ? ", not \"%s\"" : ", not %s", words_show(shown, n->text));
}

static bool fail_value(
    const config *c, const node *n, const config_key *k, const char *path, const char *hint, err *e) {
    words w = {0};
    bool vowel = k->type == CONFIG_INT, article = vowel || k->type == CONFIG_REAL || k->type == CONFIG_LIST;
    words_put(&w, "must be %s", !article ? "" : vowel ? "an " : "a ");
    row_put_type(&w, k);
    put_found(n, &w);
    words_put(&w, "; ");
    bool told = n->kind == NODE_SCALAR && !hint && suggest_choice(k, n->text, &w);
    if (!told) words_put(&w, "%s", hint ? hint : k->help ? k->help : "correct it");
    if (!told && !hint && k->fallback) words_put(&w, " (default %s)", k->fallback);
    return tree_fail(c, n, path, e, "%s", w.text);
}

static bool check_list(const config *c, const node *n, const char *path, err *e) {
    if (!n->list.problem) return true;
    node here = {.line = n->list.line, .assignment = n->assignment};
    return tree_fail(c, &here, path, e, "%s", n->list.problem);
}

static bool check_value(const config *c, const node *n, const config_key *k, const char *path, err *e) {
    value v;
    const char *hint = NULL;
    if (n->kind == NODE_LIST && k->type == CONFIG_LIST) return check_list(c, n, path, e);
    if (n->kind == NODE_SCALAR && !node_is_null(n) && row_parse(k, n->text, n->quoted, &v, &hint)) return true;
    if (n->kind != NODE_SCALAR || node_is_null(n)) hint = NULL;
    return fail_value(c, n, k, path, hint, e);
}

// The key that a single value in place of a section is most likely meant for.
static void put_kind(const config *c, const node *n, const char *section, words *w) {
    char path[PATH_ROOM + 8];
    snprintf(path, sizeof path, "%s.kind", section);
    const config_key *k = n->kind == NODE_SCALAR ? row_find(c, path) : NULL;
    if (!k || k->type != CONFIG_CHOICE) return;
    words_put(w, "name it as %.300s, which is ", path);
    row_put_type(w, k);
    words_put(w, "; ");
}

static bool check_map(const config *c, const node *map, const char *section, err *e) {
    for (const node *n = map->first; n; n = n->next) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", n->key);
        const config_key *k = row_find(c, path);
        bool below = row_is_section(c, path), single = k && k->type != CONFIG_MAP;
        if (!k && !below) return fail_unknown(c, n, section, path, e);
        if (below && n->kind == NODE_MAP) {
            if (!check_map(c, n, path, e)) return false;
        } else if (single) {
            if (!check_value(c, n, k, path, e)) return false;
        } else if (!node_is_null(n)) {
            words w = {0};
            words_put(&w, "must be a section");
            put_found(n, &w);
            words_put(&w, "; ");
            put_kind(c, n, path, &w);
            put_keys(c, path, &w);
            return tree_fail(c, n, path, e, "%s", w.text);
        }
    }
    return true;
}

bool config_check(const config *c, err *e) {
    return check_map(c, c->root, "", e);
}
