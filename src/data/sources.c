#include "data/sources.h"

#include "base/text.h"
#include "data/npz.h"
#include "data/text_file.h"
#include "data/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

// Kinds of files

// Cuts the next cell off a line, quotes taken off. False where the line is over.
static bool next_cell(const char **line, const char *end, const char **cell, size_t *n) {
    if (*line >= end) return false;
    const char *comma = memchr(*line, ',', (size_t)(end - *line)), *stop = comma ? comma : end;
    *cell = *line;
    *n = (size_t)(stop - *line);
    *line = comma ? comma + 1 : end;
    if (*n >= 2 && (*cell)[0] == '"' && (*cell)[*n - 1] == '"') {
        ++*cell;
        *n -= 2;
    }
    return true;
}

// True if a cell holds a number and nothing else; a day such as 20240102 is none.
static bool is_number(const char *cell, size_t n) {
    when_stamp stamp;
    bool digit = false;
    for (size_t i = 0; i < n; i++) {
        if (!cell[i] || !strchr("0123456789+-.eE", cell[i])) return false;
        digit |= cell[i] >= '0' && cell[i] <= '9';
    }
    return digit && !(when_read(cell, n, &stamp) && stamp.shape != WHEN_EPOCH);
}

// A panel's row is a name, which is neither a number nor a time, and a number.
static bool panel_row(const char *line, const char *end) {
    const char *name, *value;
    size_t n, m;
    when_stamp stamp;
    if (end > line && end[-1] == '\r') end--;
    if (!next_cell(&line, end, &name, &n) || !next_cell(&line, end, &value, &m)) return false;
    return n && !(name[0] >= '0' && name[0] <= '9') && !when_read(name, n, &stamp) && is_number(value, m);
}

// True where a line is the header of a bar file, whose first column may name the instrument.
static bool is_bar_header(const char *line, const char *end) {
    const char *cell;
    size_t n;
    int prices = 0;
    if (end > line && end[-1] == '\r') end--;
    while (next_cell(&line, end, &cell, &n)) {
        if (n >= 2 && cell[0] == '<' && cell[n - 1] == '>') {
            cell++;
            n -= 2;
        }
        prices += (n == 4 && (!strncasecmp(cell, "open", 4) || !strncasecmp(cell, "high", 4))) ||
                  (n == 3 && !strncasecmp(cell, "low", 3));
    }
    return prices == 3;
}

static bool looks_like_panel(const char *text, size_t bytes) {
    const char *end = text + bytes, *line = memchr(text, '\n', bytes);
    if (is_bar_header(text, line ? line : end)) return false;
    if (panel_row(text, line ? line : end)) return true;
    if (!line || ++line == end) return false;
    const char *next = memchr(line, '\n', (size_t)(end - line));
    return panel_row(line, next ? next : end);
}

source_kind source_kind_in(const void *data, size_t bytes) {
    if (bytes >= 4 && memcmp(data, "PK\3\4", 4) == 0) return SOURCE_ARRAYS;
    if (bytes >= 4 && memcmp(data, "PK\5\6", 4) == 0) return SOURCE_ARRAYS;
    if (bytes >= 6 && memcmp(data, "\x93NUMPY", 6) == 0) return SOURCE_RECORDS;
    return bytes && looks_like_panel(data, bytes) ? SOURCE_PANEL : SOURCE_BARS;
}

bool source_kind_of(const char *path, source_kind *kind, err *e) {
    enum { LOOK = 1 << 20 };
    text_file t;
    if (!text_file_open(&t, path, LOOK, e)) return false;
    *kind = t.arrays ? SOURCE_ARRAYS : source_kind_in(t.data, t.size);
    text_file_close(&t);
    return true;
}

// Records

enum { FIELDS = 7, FIELDS_NEEDED = 5 };

// A field by the first of its names that is there; NULL where none is.
static const char *field_of(const npy_header *h, const char *const *names) {
    for (; *names; names++)
        for (int i = 0; i < h->fields; i++)
            if (!strcmp(h->field[i].name, *names)) return *names;
    return NULL;
}

static bool open_fields(const npz *z, npz_stream **s, err *e) {
    static const char *const names[FIELDS][3] = {
        {"time"}, {"open"}, {"high"}, {"low"}, {"close"}, {"tick_volume", "volume"}, {"spread"}};
    const npz_entry *n = &z->entry[0];
    if (z->entries != 1 || n->kind != NPZ_RECORDS)
        return err_input(
            e, "%s: is an array without names; save windows and labels with numpy.savez, or bars as records", z->path);
    for (int i = 0; i < FIELDS; i++) {
        const char *field = field_of(&n->header, names[i]);
        if (!field && i < FIELDS_NEEDED)
            return err_input(
                e, "%s: its records have no field %s; bars have time, open, high, low and close", z->path, names[i][0]);
        if (field && !(s[i] = npz_stream_open(z, n, field, e))) return false;
    }
    return true;
}

// Records as the text that MetaTrader's Python users save, so that they pass the same checks as any file.
static bool print_records(const npz *z, npz_stream **s, FILE *out, err *e) {
    fputs("time,open,high,low,close,tick_volume,spread\n", out);
    for (int64_t r = 0; r < z->entry[0].header.count; r++) {
        int64_t time;
        if (!npz_stream_read(s[0], NPY_I64, &time, 1, e)) return false;
        fprintf(out, "%" PRId64, time);
        for (int i = 1; i < FIELDS; i++) {
            double v = 0;
            if (s[i] && !npz_stream_read(s[i], NPY_F64, &v, 1, e)) return false;
            fprintf(out, ",%.17g", v);
        }
        fputc('\n', out);
    }
    return true;
}

static bool read_records(bars *b, const char *path, const bars_options *o, err *e) {
    npz z;
    struct stat st;
    bars_options with = o ? *o : (bars_options){0};
    if (!with.written && !stat(path, &st)) with.written = (int64_t)st.st_mtime;
    npz_stream *s[FIELDS] = {0};
    text_out t;
    if (!npz_open(&z, path, e)) return false;
    text_open(&t);
    bool ok = open_fields(&z, s, e) && print_records(&z, s, t.out, e);
    char *text = text_close(&t);
    if (ok && !text) ok = err_run(e, "%s: no memory to read it", path);
    ok = ok && bars_parse(b, path, text, t.bytes, &with, e);
    for (int i = 0; i < FIELDS; i++) npz_stream_close(s[i]);
    free(text);
    npz_close(&z);
    return ok;
}

// Files

static bool read_list(bars_list *l, const char *path, const bars_options *o, err *e) {
    source_kind kind;
    if (!source_kind_of(path, &kind, e)) return false;
    if (kind == SOURCE_ARRAYS || kind == SOURCE_PANEL)
        return err_input(e, "%s: holds %s, not bars; import it by itself", path,
            kind == SOURCE_PANEL ? "a panel of series" : "arrays");
    if (kind != SOURCE_RECORDS) return bars_read_list(l, path, o, e);
    l->item = calloc(1, sizeof *l->item);
    if (!l->item) return err_run(e, "%s: no memory to read it", path);
    l->count = 1;
    return read_records(&l->item[0], path, o, e);
}

bool sources_add(sources *s, const source_ask *ask, const bars_options *o, err *e) {
    bars_list l = {0};
    bool ok = read_list(&l, ask->path, o, e);
    if (ok && !l.count) return true;
    source_file *more = ok ? realloc(s->file, (size_t)(s->files + l.count) * sizeof *more) : NULL;
    if (more) s->file = more;
    if (ok && !more) ok = err_run(e, "%s: no memory to read it", ask->path);
    if (ok && ask->symbol && l.item[0].symbol[0])
        ok = err_input(e, "%s: has a column of symbols; leave --symbol out", ask->path);
    for (int i = 0; ok && i < l.count; i++) {
        source_file *f = &s->file[s->files++];
        *f = (source_file){
            .path = strcmp(ask->path, "-") ? ask->path : "stdin", .stream = ask->stream, .bars = l.item[i]};
        f->symbol = arena_text(&s->arena, ask->symbol ? ask->symbol : f->bars.symbol);
        bars *b = &f->bars;
        s->forced |= b->report.forced;
        if (b->report.last_bar == BARS_OPEN_WHEN_WRITTEN) b->count--;
        if (b->count) b->report.last = b->bar[b->count - 1].time;
        l.item[i] = (bars){0};
    }
    bars_list_done(&l);
    return ok;
}

void sources_done(sources *s) {
    for (int i = 0; i < s->files; i++) bars_done(&s->file[i].bars);
    for (int i = 0; i < s->made_count; i++) free(s->made[i]);
    free(s->file);
    free(s->series);
    free(s->made);
    arena_done(&s->arena);
    *s = (sources){0};
}
