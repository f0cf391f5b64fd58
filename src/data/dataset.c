#include "data/dataset.h"

#include "base/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64 };

dataset *dataset_new(size_t bytes, err *e) {
    dataset *d = calloc(1, sizeof *d);
    if (d) d->memory = calloc(1, bytes ? bytes : 1);
    if (d && d->memory) return d;
    free(d);
    err_run(e, "not enough memory for %.1f MB of data; use less of it", (double)bytes / 1e6);
    return NULL;
}

dataset *dataset_new_of(void *owner, void (*release)(void *owner), err *e) {
    dataset *d = calloc(1, sizeof *d);
    if (d) {
        d->owner = owner;
        d->release = release;
        return d;
    }
    if (release) release(owner);
    err_run(e, "not enough memory for a dataset");
    return NULL;
}

static void release_viewed(void *from) {
    dataset_free(from);
}

dataset *dataset_view(dataset *from, bool keeps, size_t bytes, err *e) {
    dataset *d = dataset_new(bytes, e);
    if (!d) {
        if (keeps) dataset_free(from);
        return NULL;
    }
    void *memory = d->memory;
    *d = *from;
    d->memory = memory;
    d->about = json_deep_copy(from->about); // views are made by several threads
    d->owner = keeps ? from : NULL;
    d->release = keeps ? release_viewed : NULL;
    return d;
}

size_t dataset_room(int64_t count, size_t size) {
    return ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
}

void *dataset_take(dataset *d, size_t *at, int64_t count, size_t size) {
    void *p = (char *)d->memory + *at;
    *at += dataset_room(count, size);
    return p;
}

void dataset_free(dataset *d) {
    if (!d) return;
    json_decref(d->about);
    if (d->release) d->release(d->owner);
    free(d->memory);
    free(d);
}

int64_t dataset_panel_of(const dataset *d, int64_t sample) {
    int64_t low = 0, high = d->panel; // it is from low on and before high
    if (!d->panel) return -1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (d->panel_first[middle] <= d->stream[0].row[sample])
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t dataset_all(const dataset *d) {
    return d->samples + d->unlabelled;
}

int64_t dataset_series(const dataset *d) {
    return d->panel ? d->panel : 1;
}

int64_t dataset_bar_of(const dataset *d, int64_t sample) {
    const stream *s = &d->stream[0];
    if (!d->streams || !s->bars.count) return -1;
    int64_t series = d->panel ? dataset_panel_of(d, sample) : 0;
    return s->bars.start[series + 1] - (s->start[series + 1] - s->row[sample]);
}

const char *dataset_class_name(const dataset *d, int k, char text[CLASS_NAME_ROOM]) {
    if (d->class_names) return d->class_names[k];
    snprintf(text, CLASS_NAME_ROOM, "%d", k);
    return text;
}

bar dataset_bar(const bar_table *t, int64_t row) {
    const int64_t *time = t->time + 2 * row;
    const double *x = t->price + 6 * row;
    return (bar){time[0], time[1], x[0], x[1], x[2], x[3], x[4], x[5]};
}

int64_t dataset_bar_from(const bar_table *t, int64_t series, int64_t time) {
    int64_t low = t->start[series], high = t->start[series + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (t->time[2 * middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t table_bytes(const table *t) {
    int64_t bytes = 0;
    for (int k = 0; k < t->parts; k++) bytes += t->rows * t->part[k].width * (int64_t)column_bytes(t->part[k].type);
    return bytes;
}

int64_t dataset_bytes(const dataset *d) {
    int64_t each = 0; // of a sample
    int64_t all = dataset_all(d);
    each += d->label ? 4 : 0;
    each += d->best ? 4 : 0;
    each += d->end ? 8 : 0;
    each += d->target ? 4 * d->target_width : 0;
    int64_t bytes = table_bytes(&d->vector) + d->samples * each + all * ((d->price ? 4 : 0) + (d->time ? 8 : 0));
    for (int i = 0; i < d->streams; i++) bytes += table_bytes(&d->stream[i].series) + 8 * all;
    return bytes;
}

// Advice is best-effort: a system that does not take it reads as it always does.
static void advise_table(const table *t, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int k = 0; k < t->parts; k++) {
        uintptr_t from = (uintptr_t)t->part[k].data, to = from;
        to += (uintptr_t)(t->rows * t->part[k].width) * column_bytes(t->part[k].type);
        from -= from % page;
        (void)madvise((void *)from, to - from, advice);
    }
}

void dataset_advise(const dataset *d) {
    if (!d->owner) return;
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    int advice = dataset_bytes(d) < memory / 2 ? MADV_WILLNEED : MADV_RANDOM;
    for (int i = 0; i < d->streams; i++) advise_table(&d->stream[i].series, advice);
    advise_table(&d->vector, advice);
}

// Tables

size_t column_bytes(column_type t) {
    return t == COLUMN_F32 ? 4 : t == COLUMN_F16 ? 2 : 1;
}

const char *column_name(column_type t) {
    return t == COLUMN_F32 ? "f32" : t == COLUMN_F16 ? "f16" : "i8";
}

table table_of(column_type type, int64_t rows, int64_t width, const void *data) {
    table t = {.rows = rows};
    table_add(&t, type, width, data);
    return t;
}

void table_add(table *t, column_type type, int64_t width, const void *data) {
    CHECK(t->parts < PARTS_MOST, "a table of more than %d parts", PARTS_MOST);
    t->part[t->parts++] = (table_part){type, width, data};
    t->width += width;
}

const float *table_floats(const table *t) {
    return t->parts == 1 && t->part[0].type == COLUMN_F32 ? t->part[0].data : NULL;
}

static void part_read(const table_part *p, int64_t row, int64_t rows, float *to, int64_t stride) {
    int64_t width = p->width;
    const float *floats = (const float *)p->data + row * width;
    const uint16_t *halves = (const uint16_t *)p->data + row * width;
    const int8_t *bytes = (const int8_t *)p->data + row * width;
    for (int64_t r = 0; r < rows; r++, to += stride) {
        if (p->type == COLUMN_F32) memcpy(to, floats + r * width, (size_t)width * sizeof *to);
        if (p->type == COLUMN_F16)
            for (int64_t i = 0; i < width; i++) to[i] = half_widen(halves[r * width + i]);
        if (p->type == COLUMN_I8)
            for (int64_t i = 0; i < width; i++) to[i] = (float)bytes[r * width + i];
    }
}

void table_read(const table *t, int64_t row, int64_t rows, float *to) {
    const float *floats = table_floats(t);
    if (floats) {
        memcpy(to, floats + row * t->width, (size_t)(rows * t->width) * sizeof *to);
        return;
    }
    for (int k = 0; k < t->parts; k++) {
        part_read(&t->part[k], row, rows, to, t->width);
        to += t->part[k].width;
    }
}

// Checking

static bool check_table(const table *t, const char *what, const char *name, err *e) {
    int64_t width = 0, cells;
    for (int k = 0; k < t->parts; k++) {
        const table_part *p = &t->part[k];
        bool sized = p->width > 0 && p->data && !__builtin_mul_overflow(t->rows, p->width * 4, &cells);
        if (!sized || (uintptr_t)p->data % column_bytes(p->type))
            return err_input(
                e, "%s: part %d of %s is empty, too large or not aligned; make the file again", what, k + 1, name);
        width += p->width;
    }
    if (t->rows < 0 || t->rows > INT32_MAX || t->parts < 0 || width != t->width)
        return err_input(e, "%s: %s has %lld rows of %lld columns, which cannot be; make the file again", what, name,
            (long long)t->rows, (long long)t->width);
    return true;
}

// Starts of series: from 0 up to all rows, at least one row each.
static bool starts_ok(const int64_t *start, int64_t series, int64_t rows) {
    bool ok = start && start[0] == 0 && start[series] == rows;
    for (int64_t i = 0; ok && i < series; i++) ok = start[i] < start[i + 1];
    return ok;
}

// Either every stream has its bars, or none has. Series of the first stream are those that have names.
static bool check_bars(const dataset *d, const stream *s, const char *what, err *e) {
    int64_t series = dataset_series(d);
    bool ok = !s->bars.count == !d->stream[0].bars.count;
    if (ok && !s->bars.count) return true;
    ok = ok && s->bars.time && s->bars.price && starts_ok(s->bars.start, series, s->bars.count) &&
         starts_ok(s->start, series, s->series.rows);
    for (int64_t i = 0; ok && d->panel && s == d->stream && i < series; i++) ok = s->start[i] == d->panel_first[i];
    for (int64_t i = 0; ok && i < series; i++)
        ok = s->start[i + 1] - s->start[i] <= s->bars.start[i + 1] - s->bars.start[i];
    return ok || err_input(e, "%s: the bars of %s do not fit its rows; make the file again", what, s->name);
}

static bool check_stream(const dataset *d, const stream *s, const char *what, err *e) {
    if (!s->name || !s->name[0] || !s->series.width || !s->row || !s->first)
        return err_input(e, "%s: a stream lacks its name, features or rows; make the file again", what);
    if (!check_table(&s->series, what, s->name, e)) return false;
    for (int64_t i = 0; i < dataset_all(d); i++) {
        if (s->first[i] >= 0 && s->first[i] <= s->row[i] && s->row[i] < s->series.rows) continue;
        return err_input(e, "%s: sample %lld points to rows %d..%d of %s, which has %lld; make the file again", what,
            (long long)i, (int)s->first[i], (int)s->row[i], s->name, (long long)s->series.rows);
    }
    return check_bars(d, s, what, e);
}

static bool check_samples(const dataset *d, const char *what, err *e) {
    for (int64_t i = 0; i < d->samples; i++) {
        if (d->label && (d->label[i] < 0 || d->label[i] >= d->classes))
            return err_input(e, "%s: sample %lld has label %d; labels are 0 to %d", what, (long long)i,
                (int)d->label[i], d->classes - 1);
        if (d->time && i && d->time[i] < d->time[i - 1])
            return err_input(
                e, "%s: sample %lld is earlier than the one before it; sort samples by time", what, (long long)i);
        if (d->end && d->end[i] < d->time[i])
            return err_input(
                e, "%s: the label of sample %lld ends before the sample; make the labels again", what, (long long)i);
    }
    return true;
}

static bool check_panel(const dataset *d, const char *what, err *e) {
    bool ok = d->held >= 0 && d->held < d->samples && d->panel >= 0;
    if (ok && d->panel) {
        ok = d->streams > 0 && d->panel_names && d->panel_first && d->panel_first[0] == 0 &&
             d->panel_first[d->panel] == d->stream[0].series.rows;
        for (int64_t i = 0; ok && i < d->panel; i++) ok = d->panel_first[i] < d->panel_first[i + 1];
    }
    return ok || err_input(e, "%s: its series or what is held out of them cannot be; make the file again", what);
}

bool dataset_check(const dataset *d, const char *what, err *e) {
    if (d->samples < 1 || d->unlabelled < 0 || d->samples > INT32_MAX - d->unlabelled || d->streams < 0 ||
        d->streams > STREAMS_MOST)
        return err_input(e, "%s: %lld samples of %d streams; at least 1 sample and at most %d streams are needed", what,
            (long long)d->samples, d->streams, STREAMS_MOST);
    if (!d->streams && !d->vector.width)
        return err_input(e, "%s: neither a stream nor a vector; a model needs something to see", what);
    if (!(d->label && d->classes > 0) && !(d->target && d->target_width > 0))
        return err_input(e, "%s: neither labels nor targets; label the samples first", what);
    if (d->end && !d->time) return err_input(e, "%s: labels have ends but samples no times; make the file again", what);
    if (d->vector.width && d->vector.rows != dataset_all(d))
        return err_input(e, "%s: %lld samples but %lld vectors; make the file again", what, (long long)dataset_all(d),
            (long long)d->vector.rows);
    if (d->vector.parts && !check_table(&d->vector, what, "the vector", e)) return false;
    if (!check_panel(d, what, e)) return false;
    for (int i = 0; i < d->streams; i++)
        if (!check_stream(d, &d->stream[i], what, e)) return false;
    return check_samples(d, what, e);
}
