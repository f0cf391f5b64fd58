// The way from windows to a dataset file: arrays are read once, block by block, and go out as they are folded.
#include "base/half.h"
#include "data/set.h"
#include "data/windows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20 }; // bytes of f32 that are read at once, about

typedef struct {
    const npz *z;
    const windows_options *o;
    windows_report *r;
    npz_writer writer;
    dataset d; // what will be written; tables without data
    double done, total;
    float *block;
    int64_t room; // floats of the block
} job;

// Reading

// Reads `count` numbers that begin with number `at` of the array; all must be finite.
static bool read_block(job *j, npz_stream *s, const npz_entry *n, int64_t at, int64_t count, err *e) {
    if (!npz_stream_read(s, NPY_F32, j->block, count, e)) return false;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(j->block[i])) return windows_not_finite(j->z, n, at + i, e);
    j->done += (double)count * (double)n->header.item;
    if (!j->o->on_progress || j->o->on_progress(j->o->arg, j->done, j->total)) return true;
    return err_run(e, "stopped; nothing was written");
}

// Calls `take` for blocks of whole rows of `width` numbers.
typedef bool taker(job *j, void *arg, int64_t row, int64_t rows, err *e);

static bool each_block(job *j, const npz_entry *n, int64_t width, taker *take, void *arg, err *e) {
    int64_t rows = n->header.count / width, most = j->room / width;
    npz_stream *s = npz_stream_open(j->z, n, NULL, e);
    bool ok = s != NULL;
    for (int64_t row = 0, step; ok && row < rows; row += step) {
        step = rows - row < most ? rows - row : most;
        ok = read_block(j, s, n, row * width, step * width, e) && take(j, arg, row, step, e);
    }
    npz_stream_close(s);
    return ok;
}

// Streams

typedef struct {
    fold *fold;
    int32_t *row, *first;
    size_t row_bytes;
    npz_writer *writer;
} folding;

static bool sink(void *arg, const void *rows, int64_t count, err *e) {
    folding *f = arg;
    return npz_writer_write(f->writer, rows, (size_t)count * f->row_bytes, e);
}

static bool fold_block(job *j, void *arg, int64_t row, int64_t rows, err *e) {
    folding *f = arg;
    return fold_push(f->fold, j->block, rows, f->row + row, f->first + row, e);
}

static bool import_stream(job *j, int i, err *e) {
    const npz_entry *n = j->r->found.stream[i];
    const npy_header *h = &n->header;
    int64_t samples = j->d.samples;
    stream *s = &j->d.stream[i];
    folding f = {.writer = &j->writer, .row_bytes = (size_t)h->dim[2] * sizeof(float)};
    f.row = malloc((size_t)samples * sizeof *f.row);
    f.first = malloc((size_t)samples * sizeof *f.first);
    // Kept by the dataset also where this fails: lists_free frees them.
    *s = (stream){.name = j->r->found.name[i], .row = f.row, .first = f.first};
    j->d.window[i] = h->dim[1];
    if (!f.row || !f.first) return err_run(e, "%s: no memory for %" PRId64 " samples", j->z->path, samples);
    f.fold = fold_new(h->dim[1], f.row_bytes, sink, &f, e);
    bool ok = f.fold && set_part_begin(&j->writer, s->name, 0, COLUMN_F32, h->dim[2], e) &&
              each_block(j, n, h->dim[1] * h->dim[2], fold_block, &f, e) && npz_writer_end(&j->writer, e);
    if (ok) {
        j->r->fold[i] = fold_so_far(f.fold);
        s->series = table_of(COLUMN_F32, j->r->fold[i].rows, h->dim[2], NULL);
    }
    fold_free(f.fold);
    return ok;
}

// The vector

typedef struct {
    int64_t width;
    bool *whole, *half; // [width] columns that i8 and f16 can hold
    column_type type;   // of the part being written, and its columns
    int64_t from, columns;
    unsigned char *out;
} narrowing;

static bool judge_block(job *j, void *arg, int64_t row, int64_t rows, err *e) {
    narrowing *v = arg;
    (void)row;
    (void)e;
    const float *x = j->block;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < v->width; c++, x++) {
            v->whole[c] = v->whole[c] && *x >= -128 && *x <= 127 && *x == (float)(int)*x;
            v->half[c] = v->half[c] && fabsf(*x) <= 65504;
        }
    return true;
}

static bool narrow_block(job *j, void *arg, int64_t row, int64_t rows, err *e) {
    narrowing *v = arg;
    (void)row;
    unsigned char *out = v->out;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = j->block + r * v->width + v->from;
        for (int64_t c = 0; c < v->columns; c++, out += column_bytes(v->type)) {
            int8_t byte = v->type == COLUMN_I8 ? (int8_t)x[c] : 0;
            uint16_t half = v->type == COLUMN_F16 ? half_narrow(x[c]) : 0;
            const void *from = v->type == COLUMN_I8    ? (const void *)&byte
                               : v->type == COLUMN_F16 ? (void *)&half
                                                       : &x[c];
            memcpy(out, from, column_bytes(v->type));
        }
    }
    return npz_writer_write(&j->writer, v->out, (size_t)(out - v->out), e);
}

static column_type type_of(const narrowing *v, int64_t c) {
    return v->whole[c] ? COLUMN_I8 : v->half[c] ? COLUMN_F16 : COLUMN_F32;
}

// Neighbouring columns of one type are a part; where that makes too many, all are one part of the widest type.
static void plan_parts(const narrowing *v, table *t) {
    column_type widest = COLUMN_F16;
    int64_t from = 0;
    for (int64_t c = 0; c < v->width; c++) widest = type_of(v, c) == COLUMN_F32 ? COLUMN_F32 : widest;
    for (int64_t c = 1; c <= v->width; c++) {
        if (c < v->width && type_of(v, c) == type_of(v, from)) continue;
        if (t->parts == PARTS_MOST) {
            *t = table_of(widest, t->rows, v->width, NULL);
            return;
        }
        table_add(t, type_of(v, from), c - from, NULL);
        from = c;
    }
}

static bool narrow_vector(job *j, narrowing *v, const npz_entry *n, err *e) {
    table *t = &j->d.vector;
    *t = (table){.rows = j->d.samples};
    bool ok = !j->o->compact || each_block(j, n, v->width, judge_block, v, e);
    if (!j->o->compact) table_add(t, COLUMN_F32, v->width, NULL);
    if (ok && j->o->compact) plan_parts(v, t);
    for (int k = 0; ok && k < t->parts; k++, v->from += v->columns) {
        v->type = t->part[k].type;
        v->columns = t->part[k].width;
        ok = set_part_begin(&j->writer, NULL, k, v->type, v->columns, e) &&
             each_block(j, n, v->width, narrow_block, v, e) && npz_writer_end(&j->writer, e);
    }
    j->r->vector_parts = t->parts;
    return ok;
}

static bool import_vector(job *j, err *e) {
    const npz_entry *n = j->r->found.vector;
    narrowing v = {.width = n->header.dim[1]};
    v.whole = malloc((size_t)v.width);
    v.half = malloc((size_t)v.width);
    v.out = malloc((size_t)j->room * column_bytes(COLUMN_F32));
    bool ok = v.whole && v.half && v.out;
    if (ok) {
        memset(v.whole, 1, (size_t)v.width);
        memset(v.half, 1, (size_t)v.width);
        ok = narrow_vector(j, &v, n, e);
    } else {
        err_run(e, "%s: no memory for %s", j->z->path, n->name);
    }
    free(v.whole);
    free(v.half);
    free(v.out);
    return ok;
}

// Lists

static bool import_labels(job *j, arena *a, err *e) {
    const char **names = NULL;
    int32_t *label = malloc((size_t)j->d.samples * sizeof *label);
    j->d.label = label;
    if (!label) return err_run(e, "%s: no memory for the labels", j->z->path);
    j->d.classes = windows_labels(&j->r->found, j->z, j->o->to_three, label, &names, a, e);
    j->d.class_names = names;
    j->r->classes = j->d.classes;
    for (int64_t i = 0; j->d.classes && i < j->d.samples; i++) j->r->class_count[label[i]]++;
    return j->d.classes > 0;
}

static bool import_times(job *j, err *e) {
    size_t bytes = (size_t)j->d.samples * sizeof(int64_t);
    int64_t *time = malloc(bytes), *end = malloc(bytes);
    j->d.time = time;
    j->d.end = end;
    if (!time || !end) return err_run(e, "%s: no memory for the times", j->z->path);
    return windows_times(&j->r->found, j->z, j->o->horizon, time, end, e);
}

static bool keep_targets(job *j, void *arg, int64_t row, int64_t rows, err *e) {
    (void)e;
    memcpy((float *)arg + row * j->d.target_width, j->block, (size_t)(rows * j->d.target_width) * sizeof(float));
    return true;
}

static bool import_targets(job *j, err *e) {
    const npy_header *h = &j->r->found.target->header;
    j->d.target_width = h->rank > 1 ? h->dim[1] : 1;
    if (j->d.target_width < 1 || j->d.target_width > 65536)
        return err_input(e, "%s: %s has %" PRId64 " columns, which cannot be used", j->z->path,
            j->r->found.target->name, j->d.target_width);
    float *target = malloc((size_t)h->count * sizeof *target);
    j->d.target = target;
    if (!target) return err_run(e, "%s: no memory for the targets", j->z->path);
    return each_block(j, j->r->found.target, j->d.target_width, keep_targets, target, e);
}

static void lists_free(dataset *d) {
    for (int i = 0; i < d->streams; i++) {
        free((void *)(uintptr_t)d->stream[i].row);
        free((void *)(uintptr_t)d->stream[i].first);
    }
    free((void *)(uintptr_t)d->label);
    free((void *)(uintptr_t)d->time);
    free((void *)(uintptr_t)d->end);
    free((void *)(uintptr_t)d->target);
}

// The whole

// Bytes that will be read, and the most numbers that must be in memory at once.
static void measure(job *j) {
    const windows *w = &j->r->found;
    int64_t most = 1;
    for (int i = 0; i < w->streams; i++) {
        const npy_header *h = &w->stream[i]->header;
        most = h->dim[1] * h->dim[2] > most ? h->dim[1] * h->dim[2] : most;
        j->total += (double)h->bytes;
    }
    // Compact parts: the vector is read once to judge it, and once for each of them, mostly two.
    if (w->vector) j->total += (double)w->vector->header.bytes * (j->o->compact ? 3 : 1);
    if (w->vector && w->vector->header.dim[1] > most) most = w->vector->header.dim[1];
    if (w->target && w->target->header.rank > 1 && w->target->header.dim[1] > most) most = w->target->header.dim[1];
    if (w->target) j->total += (double)w->target->header.bytes;
    j->room = BLOCK / (int64_t)sizeof(float) / most * most;
    if (j->room < most) j->room = most;
}

static bool import_all(job *j, const json_t *about, arena *a, err *e) {
    const windows *w = &j->r->found;
    j->d.samples = w->samples;
    j->d.horizon = j->o->horizon;
    if (w->label && !import_labels(j, a, e)) return false;
    if (w->time && !import_times(j, e)) return false;
    if (w->target && !import_targets(j, e)) return false;
    for (int i = 0; i < w->streams; i++) {
        j->d.streams = i + 1;
        if (!import_stream(j, i, e)) return false;
    }
    if (w->vector && !import_vector(j, e)) return false;
    return set_write_rest(&j->writer, &j->d, about, e) && npz_writer_commit(&j->writer, e);
}

bool windows_import(const npz *z, const windows_options *o, const json_t *about, const char *path, windows_report *r,
    arena *a, err *e) {
    job j = {.z = z, .o = o, .r = r};
    *r = (windows_report){0};
    if (!windows_find(&r->found, z, o->names, a, e)) return false;
    measure(&j);
    j.block = malloc((size_t)j.room * sizeof *j.block);
    if (!j.block) return err_run(e, "%s: no memory for a window", z->path);
    bool ok = npz_writer_open(&j.writer, path, e);
    if (ok) {
        ok = import_all(&j, about, a, e);
        npz_writer_abandon(&j.writer);
    }
    lists_free(&j.d);
    free(j.block);
    return ok;
}
