// Overrides: "train.epochs=4" from the command line put into the tree.
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

bool config_override(config *c, const char *assignment, err *e) {
    const char *equals = strchr(assignment, '=');
    node here = {.assignment = assignment};
    if (!equals) return tree_fail(c, &here, "", e, "not an override; write KEY=VALUE, such as train.epochs=4");
    if (!utf8_ok(assignment)) return tree_fail(c, &here, "", e, "not valid UTF-8; check the spelling");
    char path[PATH_ROOM];
    size_t len = (size_t)(equals - assignment), depth = 1;
    for (size_t i = 0; i < len; i++) depth += assignment[i] == '.';
    if (depth > DEPTH_MOST || len >= sizeof path) return tree_fail(c, &here, "", e, "the key is too long; check it");
    memcpy(path, assignment, len);
    path[len] = 0;
    const char *p = path;
    for (size_t i = 0; i < depth; i++, p = part_next(p)) {
        const char *problem = key_problem(p, part_length(p));
        if (problem) return tree_fail(c, &here, "", e, "%s", problem);
    }
    if (c->nodes + depth > NODES_MOST) return tree_fail(c, &here, "", e, "too many keys");
    const char *kept = arena_text(&c->memory, assignment);
    size_t blocked = 0;
    node *n = node_make(c, path, kept, &blocked);
    if (n) {
        node_set(n, kept + len + 1, kept);
        return true;
    }
    path[blocked] = 0;
    return tree_fail(c, &here, path, e, "is a single value, so it has no keys below it; override %s itself", path);
}
