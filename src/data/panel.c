#include "data/panel.h"

#include "base/stop.h"
#include "data/text_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_MOST = 256 };

// A cell's text; its quotes are gone.
typedef struct {
    char text[CELL_MOST];
    bool last; // of its row
} cell;

typedef struct {
    const char *path;
    const char *at, *end;
    int64_t line, columns; // of the header, or 0 for no limit
    int64_t series, values;
    double *value;
    int64_t *offset;
    const char **name;
    panel_place *order;
    char *text; // where the next name goes
    err *e;
} reader;

static bool wrong(reader *r, const char *what) {
    return err_input(r->e, "%s:%" PRId64 ": %s", r->path, r->line, what);
}

// Reads a cell and passes the comma or line end behind it.
static bool next_cell(reader *r, cell *c) {
    size_t n = 0;
    while (r->at < r->end && *r->at == ' ') r->at++;
    bool quoted = r->at < r->end && *r->at == '"';
    if (quoted) r->at++;
    for (; r->at < r->end; r->at++) {
        char ch = *r->at;
        if (quoted && ch == '"') {
            if (r->end - r->at < 2 || r->at[1] != '"') break;
            r->at++;
        } else if (ch == '\n' || ch == '\r' || (!quoted && ch == ',')) {
            break;
        }
        if (!ch) return wrong(r, "holds a NUL; is it a text file?");
        if (n == CELL_MOST - 1) return wrong(r, "a cell is longer than 255 signs");
        c->text[n++] = ch;
    }
    if (quoted && (r->at >= r->end || *r->at++ != '"')) return wrong(r, "a quote is not closed");
    while (n && !quoted && c->text[n - 1] == ' ') n--;
    c->text[n] = 0;
    while (r->at < r->end && *r->at == ' ') r->at++;
    c->last = r->at >= r->end || *r->at != ',';
    if (!c->last) {
        r->at++;
        return true;
    }
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at++ != '\n') return wrong(r, "a comma is missing behind a cell");
    return true;
}

static bool is_empty(const char *text) {
    return !*text || !strcmp(text, "NA") || !strcmp(text, "NaN") || !strcmp(text, "nan");
}

// A decimal number; strtod alone would also take hexadecimal ones, infinities and NaNs.
static bool number(const char *text, double *out) {
    if (!*text || text[strspn(text, "0123456789+-.eE")]) return false;
    char *end;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

// The values of a row whose name has been read; `open` says that the row goes on.
static bool read_values(reader *r, bool open) {
    int64_t columns = 1, first = r->values, empty = 0; // the first column without a value
    cell c = {.last = !open};
    while (!c.last) {
        if (!next_cell(r, &c)) return false;
        columns++;
        if (is_empty(c.text)) {
            if (!empty) empty = columns;
            continue;
        }
        if (r->columns && columns > r->columns) return wrong(r, "the row is longer than the header");
        if (empty)
            return err_input(r->e,
                "%s:%" PRId64 ": column %" PRId64 " is empty and a value follows; fill it, or shorten the series",
                r->path, r->line, empty);
        if (!number(c.text, &r->value[r->values]))
            return err_input(r->e, "%s:%" PRId64 ": column %" PRId64 ", \"%.40s\", is not a number; correct it",
                r->path, r->line, columns, c.text);
        r->values++;
    }
    if (r->values == first) return wrong(r, "the series has no values; remove the row");
    r->offset[++r->series] = r->values;
    return true;
}

// Counts the header's cells and passes it; where the first row is a series, nothing is passed.
static bool read_header(reader *r) {
    const char *start = r->at;
    cell c = {0};
    double v;
    if (!next_cell(r, &c)) return false;
    bool header = !c.last;
    if (header && !next_cell(r, &c)) return false;
    header = header && !is_empty(c.text) && !number(c.text, &v);
    if (!header) {
        r->at = start;
        return true;
    }
    for (r->columns = 2; !c.last; r->columns++)
        if (!next_cell(r, &c)) return false;
    r->line++;
    return true;
}

// Passes a line end; false where there is none.
static bool take_line_end(reader *r) {
    if (*r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n') r->at++;
    if (*r->at != '\n') return false;
    r->at++;
    return true;
}

static bool read_rows(reader *r) {
    if (!read_header(r)) return false;
    for (; r->at < r->end; r->line++) {
        if (!stop_go_on(r->e)) return false;
        if (take_line_end(r)) continue;
        cell c = {0};
        if (!next_cell(r, &c)) return false;
        if (!*c.text) return wrong(r, "the series has no name");
        r->name[r->series] = r->text;
        r->text = stpcpy(r->text, c.text) + 1;
        if (!read_values(r, !c.last)) return false;
    }
    return r->series > 0 || err_input(r->e, "%s: holds no series", r->path);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const panel_place *)a)->name, ((const panel_place *)b)->name);
}

static bool order_names(reader *r) {
    const char *twice = NULL;
    for (int64_t i = 0; i < r->series; i++) r->order[i] = (panel_place){r->name[i], i};
    qsort(r->order, (size_t)r->series, sizeof *r->order, by_name);
    for (int64_t i = 1; i < r->series; i++)
        if (!strcmp(r->order[i - 1].name, r->order[i].name)) twice = r->order[i].name;
    return !twice || err_input(r->e, "%s: has two series named %s; rename one", r->path, twice);
}

// One block for all there can be: a value has a comma before it, a series is a line, and its name with a NUL is no
// longer than the line with its end.
static void *make_room(reader *r, size_t bytes) {
    size_t values = 1, lines = 1;
    for (size_t i = 0; i < bytes; i++) {
        values += r->at[i] == ',';
        lines += r->at[i] == '\n' && i && r->at[i - 1] != '\n';
    }
    size_t each = sizeof *r->offset + sizeof *r->name + sizeof *r->order;
    char *block = malloc(values * sizeof *r->value + (lines + 1) * each + bytes + 1);
    if (!block) {
        err_run(r->e, "%s: no memory for its %zu values", r->path, values);
        return NULL;
    }
    r->value = (void *)block;
    r->offset = (void *)(r->value + values);
    r->name = (void *)(r->offset + lines + 1);
    r->order = (void *)(r->name + lines + 1);
    r->text = (void *)(r->order + lines + 1);
    r->offset[0] = 0;
    return block;
}

bool panel_parse(panel *p, const char *path, const char *text, size_t bytes, err *e) {
    *p = (panel){0};
    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        bytes -= 3;
    }
    reader r = {.path = path, .at = text, .end = text + bytes, .line = 1, .e = e};
    p->memory = make_room(&r, bytes);
    bool ok = p->memory && read_rows(&r) && order_names(&r);
    p->series = r.series;
    p->name = r.name;
    p->offset = r.offset;
    p->value = r.value;
    p->order = r.order;
    if (!ok) panel_done(p);
    return ok;
}

bool panel_read(panel *p, const char *path, err *e) {
    *p = (panel){0};
    text_file t;
    if (!text_file_open(&t, path, SIZE_MAX, e)) return false;
    bool ok = t.arrays ? err_input(e, "%s: holds arrays, not a panel of series", t.name)
                       : panel_parse(p, t.name, t.data, t.size, e);
    text_file_close(&t);
    return ok;
}

void panel_done(panel *p) {
    free(p->memory);
    *p = (panel){0};
}

int64_t panel_find(const panel *p, const char *name) {
    panel_place wanted = {.name = name};
    const panel_place *at = p->series ? bsearch(&wanted, p->order, (size_t)p->series, sizeof wanted, by_name) : NULL;
    return at ? at->series : -1;
}
