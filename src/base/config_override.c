// Overrides: "train.epochs=4" from the command line put into the tree.
#include "base/config_keys.h"
#include "base/config_tree.h"

#include <stdint.h>
#include <string.h>

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

// Takes the path out of an assignment. What is wrong with it, or NULL.
static const char *take_path(const char *assignment, char path[PATH_ROOM], size_t *depth) {
    const char *equals = strchr(assignment, '=');
    if (!equals) return "not an override; write KEY=VALUE, such as train.epochs=4";
    if (!utf8_ok(assignment)) return "not valid UTF-8; check the spelling";
    size_t len = (size_t)(equals - assignment);
    *depth = 1;
    for (size_t i = 0; i < len; i++) *depth += assignment[i] == '.';
    if (*depth > DEPTH_MOST || len >= PATH_ROOM) return "the key is too long; check it";
    memcpy(path, assignment, len);
    path[len] = 0;
    const char *p = path;
    for (size_t i = 0; i < *depth; i++, p = part_next(p)) {
        const char *problem = key_problem(p, part_length(p));
        if (problem) return problem;
    }
    return NULL;
}

bool config_override(config *c, const char *assignment, err *e) {
    node here = {.assignment = assignment};
    char path[PATH_ROOM];
    size_t depth, blocked = 0;
    const char *problem = take_path(assignment, path, &depth);
    if (!problem && c->nodes + depth > NODES_MOST) problem = "too many keys";
    if (problem) return tree_fail(c, &here, "", e, "%s", problem);
    const char *kept = arena_text(&c->memory, assignment), *text = kept + strlen(path) + 1;
    const config_key *k = row_find(c, path);
    bool takes_list = k && k->type == CONFIG_LIST;
    if (takes_list) text += strspn(text, " ");
    bool is_list = takes_list && !text_is_null(text);
    items list = {0};
    if (is_list && !items_read(c, text, &list))
        return tree_fail(c, &here, path, e, "not a list; write [a, b] or a,b, with quotes around odd words");
    node *n = node_make(c, path, kept, &blocked);
    if (n) {
        node_set(n, text, kept);
        if (is_list) node_set_list(n, &list, kept);
        return true;
    }
    path[blocked] = 0;
    const char *what = node_find(c, path, NULL)->kind == NODE_LIST ? "list" : "single value";
    return tree_fail(c, &here, path, e, "is a %s, so it has no keys below it; override %s itself", what, path);
}
