#include "run/outline.h"

#include "base/arena.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 16, SHOWN = 4, VALUE_SHOWN = 80 };

typedef struct {
    const char *path, *value;
} leaf;

typedef struct {
    leaf *leaf;
    int count;
} outline;

static int lines_of(const char *text) {
    int n = 1;
    for (; *text; text++) n += *text == '\n';
    return n;
}

// The path of a line: the sections above it and its own key.
static const char *join(arena *a, const char *const *section, int depth, const char *key) {
    const char *path = "";
    for (int i = 0; i < depth; i++) path = arena_format(a, "%s%s.", path, section[i] ? section[i] : "");
    return arena_format(a, "%s%s", path, key);
}

static void read_line(outline *o, arena *a, char *line, const char **section) {
    int depth = (int)strspn(line, " ") / 2;
    char *key = line + strspn(line, " "), *colon = strstr(key, ": ");
    size_t n = strlen(key);
    if (!n || *key == '#' || depth >= DEPTH_MOST) return;
    if (!colon && key[n - 1] == ':') {
        key[n - 1] = 0;
        section[depth] = key;
        return;
    }
    if (colon) *colon = 0;
    o->leaf[o->count++] = (leaf){join(a, section, depth, key), colon ? colon + 2 : ""};
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const leaf *)a)->path, ((const leaf *)b)->path);
}

static outline read_outline(arena *a, const char *text) {
    const char *section[DEPTH_MOST] = {0};
    outline o = {arena_array(a, (size_t)lines_of(text), sizeof(leaf)), 0};
    char *copy = arena_format(a, "%s", text), *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(&o, a, line, section);
    if (o.count) qsort(o.leaf, (size_t)o.count, sizeof *o.leaf, by_path);
    return o;
}

static void tell(char *text, size_t room, int nth, const char *path, const char *was, const char *is) {
    size_t used = strlen(text);
    if (nth >= SHOWN || used >= room) return;
    snprintf(text + used, room - used, "%s%s is %.*s, was %.*s", nth ? "; " : "", path, VALUE_SHOWN,
        is ? is : "not given", VALUE_SHOWN, was ? was : "not given");
}

void outline_each_difference(const char *was, const char *is,
    void (*use)(void *arg, const char *path, const char *was, const char *is), void *arg) {
    arena a;
    int i = 0, k = 0;
    arena_init(&a);
    outline x = read_outline(&a, was), y = read_outline(&a, is);
    while (i < x.count || k < y.count) {
        int order = i == x.count ? 1 : k == y.count ? -1 : by_path(&x.leaf[i], &y.leaf[k]);
        const leaf *old = order <= 0 ? &x.leaf[i++] : NULL, *new = order >= 0 ? &y.leaf[k++] : NULL;
        const char *path = old ? old->path : new->path;
        if (old && new &&strcmp(old->value, new->value) == 0) continue;
        use(arg, path, old ? old->value : NULL, new ? new->value : NULL);
    }
    arena_done(&a);
}

typedef struct {
    bool (*skip)(const char *path);
    char *text;
    size_t room;
    int different;
} teller;

static void tell_difference(void *arg, const char *path, const char *was, const char *is) {
    teller *t = arg;
    if (!t->skip || !t->skip(path)) tell(t->text, t->room, t->different++, path, was, is);
}

int outline_compare(const char *was, const char *is, bool (*skip)(const char *path), char *text, size_t room) {
    teller t = {skip, text, room, 0};
    if (room) text[0] = 0;
    outline_each_difference(was, is, tell_difference, &t);
    return t.different;
}

char *outline_value(const char *text, const char *path) {
    arena a;
    char *value = NULL;
    arena_init(&a);
    outline o = read_outline(&a, text);
    for (int i = 0; i < o.count && !value; i++)
        if (strcmp(o.leaf[i].path, path) == 0) {
            value = strdup(o.leaf[i].value);
            NEED(value, "out of memory for a value");
        }
    arena_done(&a);
    return value;
}

bool outline_has(const char *text, const char *section) {
    arena a;
    bool has = false;
    size_t n = strlen(section);
    arena_init(&a);
    outline o = read_outline(&a, text);
    for (int i = 0; i < o.count && !has; i++)
        has = strncmp(o.leaf[i].path, section, n) == 0 && o.leaf[i].path[n] == '.';
    arena_done(&a);
    return has;
}

void outline_put(const char *outline, const char *path, char *to, size_t room) {
    char *value = outline ? outline_value(outline, path) : NULL;
    snprintf(to, room, "%s", value ? value : "");
    free(value);
}

double outline_number(const char *outline, const char *path) {
    char text[64], *end;
    outline_put(outline, path, text, sizeof text);
    double v = strtod(text, &end);
    return end == text ? NAN : v;
}
