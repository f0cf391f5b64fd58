// Writing a description out as YAML, fallbacks filled in.
#include "base/config_keys.h"
#include "base/config_tree.h"

#include <string.h>
#include <yaml.h>

static void copy_children(config *to, node *into, const node *from) {
    for (const node *n = from->first; n; n = n->next) {
        node *twin = node_add(to, into, n->key, strlen(n->key));
        twin->kind = n->kind;
        twin->text = n->text;
        twin->list = n->list;
        twin->quoted = n->quoted;
        copy_children(to, twin, n);
    }
}

// True if a section on the way to a row means something by being there, and is absent.
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
        if (!k->fallback || row_is_wild(k) || node_find(full, k->path, NULL) || is_left_out(c, k)) continue;
        size_t blocked = 0;
        node *n = node_make(full, k->path, NULL, &blocked);
        if (!n) continue;
        node_set(n, k->fallback, NULL);
        n->quoted = text_is_null(n->text);
        if (k->type == CONFIG_MAP) n->kind = NODE_MAP;
        if (k->type == CONFIG_LIST) node_set_list(n, &c->fallbacks[i], NULL);
    }
}

static bool emit(yaml_emitter_t *out, yaml_event_t *event, int made) {
    return made && yaml_emitter_emit(out, event);
}

// True if a text reads back as itself without quotes. Numbers do; doubtful texts are quoted.
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

static bool emit_list(yaml_emitter_t *out, const items *list) {
    CHECK(!list->problem, "config_write before config_check");
    yaml_event_t v;
    bool ok = emit(out, &v, yaml_sequence_start_event_initialize(&v, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE));
    for (size_t i = 0; ok && i < list->count; i++) ok = emit_text(out, list->item[i], text_is_null(list->item[i]));
    return ok && emit(out, &v, yaml_sequence_end_event_initialize(&v));
}

static bool emit_node(yaml_emitter_t *out, const node *n) {
    yaml_event_t v;
    if (n->kind == NODE_LIST) return emit_list(out, &n->list);
    if (n->kind == NODE_SCALAR && !node_is_null(n)) return emit_text(out, n->text, n->quoted);
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

config *config_filled(const config *c) {
    config *full = tree_new(c->name, c->keys, c->count);
    copy_children(full, full->root, c->root);
    fill_fallbacks(c, full);
    return full;
}

bool config_write(const config *c, FILE *out) {
    config *full = config_filled(c);
    bool ok = emit_all(full->root, out);
    config_free(full);
    return ok;
}
