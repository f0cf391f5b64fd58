// Other names of keys: values are put where the table has them, and what was done is noted.
#include "base/config_tree.h"

#include <stdio.h>
#include <string.h>

static void note(config *c, const char *name, const char *key, const char *text) {
    for (size_t i = 0; i < c->notes.count; i++)
        if (strcmp(c->notes.note[i].name, name) == 0) return;
    if (c->notes.count == NOTES_MOST) return;
    c->notes.note[c->notes.count++] = (config_note){.name = arena_text(&c->memory, name), .key = key, .why = text};
}

// Takes a node out of the tree.
static void take_out(config *c, const char *path) {
    char section[PATH_ROOM];
    const char *dot = strrchr(path, '.');
    snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - path) : 0, path);
    node *parent = *section ? node_find(c, section, NULL) : c->root, *gone = node_find(c, path, NULL), *before = NULL;
    for (node *n = parent->first; n && n != gone; n = n->next) before = n;
    if (before)
        before->next = gone->next;
    else
        parent->first = gone->next;
    if (parent->last == gone) parent->last = before;
}

// The name under which a key was given: another one, or its own.
static const char *given_as(const config *c, const char *key) {
    for (size_t i = 0; i < c->notes.count; i++)
        if (c->notes.note[i].key && strcmp(c->notes.note[i].key, key) == 0) return c->notes.note[i].name;
    return key;
}

static bool move(config *c, const config_name *name, node *from, err *e) {
    size_t blocked = 0;
    node *to = node_find(c, name->key, NULL);
    if (to && !from->assignment)
        return tree_fail(c, from, name->name, e, "%s is given too; leave one of them out", given_as(c, name->key));
    node copy = *from;
    take_out(c, name->name);
    to = node_make(c, name->key, copy.assignment, &blocked);
    if (!to)
        return tree_fail(c, from, name->name, e, "is read as %s, but %.*s is no section; write that as one", name->key,
            (int)blocked, name->key);
    const char *key = to->key;
    node *next = to->next;
    *to = copy;
    to->key = key;
    to->next = next;
    note(c, name->name, name->key, "");
    return true;
}

bool config_rename(config *c, const config_name *names, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        node *n = node_find(c, names[i].name, NULL);
        if (!n || n == c->root) continue;
        if (names[i].refused) return tree_fail(c, n, names[i].name, e, "has another name here; %s", names[i].why);
        if (names[i].key && !move(c, &names[i], n, e)) return false;
        if (names[i].key) continue;
        take_out(c, names[i].name);
        note(c, names[i].name, NULL, names[i].why);
    }
    return true;
}

size_t config_notes(const config *c) {
    return c->notes.count;
}

const config_note *config_note_at(const config *c, size_t i) {
    CHECK(i < c->notes.count, "a note beyond the last");
    return &c->notes.note[i];
}
