// Data that come without bars, with everything altered that a fold has no right to see.
//
// Rows of streams that no window of the samples kept can see, vectors, labels and targets of all other samples become
// copies of one that is kept: of the first, or of the last. So every number is one that the set has.
#include "task/walk_check_work.h"

#include <stdlib.h>
#include <string.h>

static void keep_part(const dataset *d, const split_part *p, uint8_t *kept) {
    CHECK(part_end(p) <= d->samples, "a part beyond the samples");
    for (int64_t k = 0; k < p->count; k++) kept[part_sample(p, k)] = 1;
}

static void keep_rows(const dataset *d, const stream *s, int64_t window, const uint8_t *kept, uint8_t *seen) {
    memset(seen, 0, (size_t)s->series.rows);
    for (int64_t i = 0; i < d->samples; i++)
        for (int64_t r = s->row[i]; kept[i] && r >= s->first[i] && r > s->row[i] - window; r--) seen[r] = 1;
}

// Places that are not kept, of `bytes` each, become copies of the first that is, or of the last.
static void overwrite(char *data, size_t bytes, int64_t count, const uint8_t *kept, future f) {
    int64_t model = -1;
    for (int64_t i = 0; i < count; i++)
        if (kept[i] && (model < 0 || f == FUTURE_DOWN)) model = i;
    CHECK(model >= 0, "nothing is kept");
    for (int64_t i = 0; i < count; i++)
        if (!kept[i]) memcpy(data + (size_t)i * bytes, data + (size_t)model * bytes, bytes);
}

static size_t table_room(const table *t) {
    size_t bytes = 0;
    for (int k = 0; k < t->parts; k++)
        bytes += dataset_room(t->rows, (size_t)t->part[k].width * column_bytes(t->part[k].type));
    return bytes;
}

static size_t room_of(const dataset *d) {
    size_t bytes = table_room(&d->vector);
    for (int i = 0; i < d->streams; i++) bytes += table_room(&d->stream[i].series);
    if (d->label) bytes += dataset_room(d->samples, sizeof *d->label);
    return bytes + dataset_room(d->samples * d->target_width, sizeof *d->target);
}

// A copy of a table with the rows overwritten that are not kept; rows behind `count` stay.
static void alter_table(dataset *d, table *t, int64_t count, const uint8_t *kept, future f, size_t *at) {
    for (int k = 0; k < t->parts; k++) {
        size_t bytes = (size_t)t->part[k].width * column_bytes(t->part[k].type);
        char *data = dataset_take(d, at, t->rows, bytes);
        memcpy(data, t->part[k].data, (size_t)t->rows * bytes);
        overwrite(data, bytes, count, kept, f);
        t->part[k].data = data;
    }
}

// Labels become one class: the first, or the last.
static void alter_labels(dataset *d, const uint8_t *kept, future f, size_t *at) {
    size_t bytes = (size_t)d->target_width * sizeof *d->target;
    if (d->label) {
        int32_t *label = dataset_take(d, at, d->samples, sizeof *label);
        for (int64_t i = 0; i < d->samples; i++) label[i] = kept[i] ? d->label[i] : f == FUTURE_UP ? d->classes - 1 : 0;
        d->label = label;
    }
    if (!d->target) return;
    char *target = dataset_take(d, at, d->samples, bytes);
    memcpy(target, d->target, (size_t)d->samples * bytes);
    overwrite(target, bytes, d->samples, kept, f);
    d->target = (const float *)(const void *)target;
}

dataset *unseen_altered(dataset *whole, const split *s, bool validation, const int64_t *window, future f, err *e) {
    size_t at = 0;
    int64_t rows = whole->samples;
    for (int i = 0; i < whole->streams; i++)
        if (whole->stream[i].series.rows > rows) rows = whole->stream[i].series.rows;
    uint8_t *kept = calloc((size_t)whole->samples, 1), *seen = malloc((size_t)rows);
    dataset *d = kept && seen ? dataset_view(whole, false, room_of(whole), e) : NULL;
    if (!kept || !seen) err_run(e, "no memory for a copy of %s", whole->name);
    if (d) {
        keep_part(d, &s->train, kept);
        if (validation) keep_part(d, &s->validation, kept);
        for (int i = 0; i < d->streams; i++) {
            keep_rows(d, &d->stream[i], window[i], kept, seen);
            alter_table(d, &d->stream[i].series, d->stream[i].series.rows, seen, f, &at);
        }
        alter_table(d, &d->vector, d->samples, kept, f, &at);
        alter_labels(d, kept, f, &at);
    }
    free(kept);
    free(seen);
    return d;
}
