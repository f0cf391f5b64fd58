#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64 };

// True if brackets outside strings never nest deeper than DEPTH_MOST. jansson recurses up to 2048 levels by itself.
static bool depth_ok(const char *text, size_t bytes) {
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\')
            i++;
        else if (!quoted && (c == '[' || c == '{') && ++depth > DEPTH_MOST)
            return false;
        else if (!quoted && (c == ']' || c == '}'))
            depth--;
    }
    return true;
}

static void *take(size_t bytes) {
    void *memory = malloc(bytes);
    NEED(memory || !bytes, "out of memory for %zu bytes of JSON", bytes);
    return memory;
}

void json_begin(void) {
    json_set_alloc_funcs(take, free);
}

json_t *json_read(const char *text, size_t bytes, err *e) {
    if (!depth_ok(text, bytes)) {
        err_input(e, "JSON is nested more than %d deep", DEPTH_MOST);
        return NULL;
    }
    json_error_t why;
    json_t *value = json_loadb(bytes ? text : "", bytes, JSON_REJECT_DUPLICATES, &why);
    if (value) return value;
    err_input(e, "JSON line %d, column %d: %s", why.line, why.column, why.text);
    return NULL;
}

bool json_line(FILE *out, json_t *object) {
    if (!object) return false;
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(object);
    if (!text) return false;
    bool ok = fprintf(out, "%s\n", text) > 0 && !fflush(out);
    free(text);
    return ok;
}

void json_join(json_t *to, json_t *from) {
    if (to && from) json_object_update(to, from);
    json_decref(from);
}

json_t *json_number(double v) {
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_bytes(double bytes) {
    return isnan(bytes) ? json_null() : json_integer((json_int_t)bytes);
}

json_t *json_text(const char *text) {
    if (!text) return json_null();
    json_t *is = json_string(text);
    if (is) return is;
    char *plain = strdup(text);
    NEED(plain, "out of memory for a text");
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    is = json_string(plain);
    free(plain);
    return is;
}
