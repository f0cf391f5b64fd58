#include "data/bars_text.h"

#include "data/npy.h"

#include <stdlib.h>
#include <string.h>

// True if the first characters are ASCII in 16 bits each, the low byte at `low` (0 or 1).
static bool looks_wide(const unsigned char *p, size_t n, size_t low) {
    enum { LOOK = 8 };
    if (n < LOOK) return false;
    for (size_t i = 0; i < LOOK; i += 2)
        if (!p[i + low] || p[i + low] > 126 || p[i + 1 - low]) return false;
    return true;
}

static bool narrow(text *t, size_t low, char **owned, const char *name, err *e) {
    const unsigned char *p = (const unsigned char *)t->at;
    size_t n = t->size / 2, used = 0;
    char *out = malloc(n + 1);
    if (!out) return err_run(e, "%s: no memory for its %zu bytes", name, t->size);
    for (size_t i = 0; i < n; i++) {
        unsigned unit = p[2 * i + low] | (unsigned)p[2 * i + 1 - low] << 8;
        if (unit != 0xFEFF) out[used++] = unit < 128 ? (char)unit : '?';
    }
    *owned = out;
    *t = (text){out, used};
    return true;
}

// Names a file that is no text, by its first bytes; NULL for text.
static const char *foreign(text t) {
    static const struct {
        const char *mark, *what;
        size_t bytes;
    } known[] = {
        {"PK\3\4", "a zip archive or a workbook; unpack it, or save the sheet as CSV", 4},
        {"\x1f\x8b", "compressed with gzip; unpack it first", 2},
        {"\x93NUMPY", "a NumPy array; bars are read from text", 6},
        {"PAR1", "a Parquet file; export it as CSV", 4},
        {"\x89HDF", "an HDF5 file; export it as CSV", 4},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (t.size >= known[i].bytes && !memcmp(t.at, known[i].mark, known[i].bytes)) return known[i].what;
    return NULL;
}

bool bars_text_decode(text *t, const char *name, char **owned, err *e) {
    const unsigned char *p = (const unsigned char *)t->at;
    *owned = NULL;
    if (foreign(*t)) return err_input(e, "%s: is %s", name, foreign(*t));
    if (t->size >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3)) {
        *t = (text){t->at + 3, t->size - 3};
        return true;
    }
    bool little = t->size >= 2 && p[0] == 0xFF && p[1] == 0xFE;
    bool big = t->size >= 2 && p[0] == 0xFE && p[1] == 0xFF;
    if (little || looks_wide(p, t->size, 0)) return narrow(t, 0, owned, name, e);
    if (big || looks_wide(p, t->size, 1)) return narrow(t, 1, owned, name, e);
    return true;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\r';
}

static text trim(text t) {
    while (t.size && is_blank(t.at[t.size - 1])) t.size--;
    while (t.size && is_blank(*t.at)) {
        t.at++;
        t.size--;
    }
    return t;
}

bool bars_text_line(text *rest, text *line) {
    if (!rest->size) return false;
    const char *end = memchr(rest->at, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->at) : rest->size;
    *line = trim((text){rest->at, size});
    size += end != NULL;
    rest->at += size;
    rest->size -= size;
    return true;
}

text bars_text_cell(text *line, char separator, bool *more) {
    const char *p = line->at, *end = p + line->size;
    while (p < end && is_blank(*p)) p++;
    if (p < end && *p == '"') {
        const char *close = memchr(p + 1, '"', (size_t)(end - p) - 1);
        if (close) {
            text cell = trim((text){p + 1, (size_t)(close - p) - 1});
            p = close + 1;
            while (p < end && *p != separator) p++;
            *more = p < end;
            *line = (text){p + *more, (size_t)(end - p) - *more};
            return cell;
        }
    }
    const char *from = p;
    while (p < end && *p != separator) p++;
    *more = p < end;
    *line = (text){p + *more, (size_t)(end - p) - *more};
    return trim((text){from, (size_t)(p - from)});
}

char *bars_text_show(char *buf, size_t n, text t) {
    size_t used = 0, whole = 0; // `whole`: the last end of a character that the dots have room behind
    size_t at = 0;
    while (at < t.size) {
        uint32_t c = 0;
        size_t length = (size_t)npy_utf8_get((const unsigned char *)t.at + at, (int64_t)(t.size - at), &c);
        bool control = c < 32 || (c >= 127 && c < 160);
        size_t more = length && !control ? length : 1;
        if (used + more >= n) break;
        if (length && !control)
            memcpy(buf + used, t.at + at, length);
        else
            buf[used] = length ? ' ' : '?';
        used += more;
        at += length ? length : 1;
        if (used + 3 < n) whole = used;
    }
    buf[used] = 0;
    if (at < t.size && used > 3) memcpy(buf + whole, "...", 4);
    return buf;
}

void bars_text_name(char *buf, size_t n, text t) {
    size_t used = 0;
    for (size_t i = 0; i < t.size && used + 1 < n; i++) {
        char c = t.at[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) buf[used++] = c;
    }
    buf[used] = 0;
}
