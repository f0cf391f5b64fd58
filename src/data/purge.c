#include "data/purge.h"

#include <stdlib.h>

static int64_t after(span s) {
    return s.first + s.count;
}

// Where the label's reach is the same for all series.
static bool reaches_all(const dataset *d, int64_t i, int64_t later) {
    if (d->end) return d->time[later] <= d->end[i];
    return (!d->streams || d->window[0]) && later - i <= d->horizon;
}

// `later` is of the same series, or all series are alike.
static bool reaches(const dataset *d, int64_t i, int64_t later) {
    if (reaches_all(d, i, later)) return true;
    if (d->end || !d->streams) return false;
    const stream *s = &d->stream[0];
    return s->first[later] == s->first[i] && s->row[later] - d->horizon <= s->row[i];
}

// A sample and a row for each series of a stream, which is known by its first row; -1: none.
typedef struct {
    int64_t *sample;
    int32_t *row;
} by_series;

static bool by_series_init(by_series *b, const stream *s, err *e) {
    size_t rows = (size_t)s->series.rows;
    *b = (by_series){malloc(rows * sizeof *b->sample), malloc(rows * sizeof *b->row)};
    for (size_t i = 0; b->sample && b->row && i < rows; i++) b->sample[i] = b->row[i] = -1;
    if (b->sample && b->row) return true;
    free(b->sample);
    free(b->row);
    return err_run(e, "out of memory for the rows of %s", s->name);
}

static void by_series_done(by_series *b) {
    free(b->sample);
    free(b->row);
}

// Samples before the block that share a bar with windows of it that are `window` bars long.
static bool seen_before(const dataset *d, const stream *s, span block, int64_t window, uint8_t *out, err *e) {
    by_series b; // the first row in the block, and the first sample that its windows see
    if (!by_series_init(&b, s, e)) return false;
    for (int64_t i = after(block) - 1; i >= block.first; i--) b.row[s->first[i]] = s->row[i];
    for (int64_t i = 0; i < after(block); i++) {
        int32_t series = s->first[i];
        bool seen = b.row[series] >= 0 && s->row[i] + window - 1 >= b.row[series];
        if (seen && b.sample[series] < 0) b.sample[series] = i;
    }
    for (int64_t i = 0; i < block.first; i++) {
        int64_t seen = b.sample[s->first[i]];
        out[i] |= seen >= 0 && (i >= seen || reaches(d, i, seen));
    }
    by_series_done(&b);
    return true;
}

bool purge_before(const dataset *d, span block, const int64_t *window, uint8_t *out, err *e) {
    if (block.count < 1) return true;
    for (int64_t i = 0; i < block.first; i++) out[i] |= reaches_all(d, i, block.first);
    // A label that reaches the block is one that a window of one bar sees.
    if (!d->end && d->streams && !seen_before(d, &d->stream[0], block, 1, out, e)) return false;
    for (int i = 0; window && i < d->streams; i++)
        if (!seen_before(d, &d->stream[i], block, window[i], out, e)) return false;
    return true;
}

// True where the label of a sample of the block ends later than that of the one before it, both of one series.
static bool ends_later(const dataset *d, int64_t i, int64_t than) {
    return !d->end || d->end[i] >= d->end[than];
}

static void mark(uint8_t *out, int64_t at, int64_t *past) {
    out[at] = 1;
    if (at + 1 > *past) *past = at + 1;
}

// Samples behind the block whose windows, `window` bars long, share a bar with it or its labels.
static bool seen_after(
    const dataset *d, const stream *s, span block, int64_t window, uint8_t *out, int64_t *past, err *e) {
    by_series b; // the sample whose label ends last, and the last row that is seen
    if (!by_series_init(&b, s, e)) return false;
    for (int64_t i = block.first; i < after(block); i++) {
        int64_t *last = &b.sample[s->first[i]];
        if (*last < 0 || ends_later(d, i, *last)) *last = i;
        b.row[s->first[i]] = s->row[i];
    }
    for (int64_t i = after(block); i < d->samples; i++) {
        int64_t last = b.sample[s->first[i]];
        if (last >= 0 && reaches(d, last, i)) b.row[s->first[i]] = s->row[i];
    }
    for (int64_t i = after(block); i < d->samples; i++) {
        int32_t row = b.row[s->first[i]];
        if (row >= 0 && s->row[i] - (window - 1) <= row) mark(out, i, past);
    }
    by_series_done(&b);
    return true;
}

bool purge_after(const dataset *d, span block, const int64_t *window, uint8_t *out, int64_t *past, err *e) {
    *past = after(block);
    if (block.count < 1) return true;
    int64_t last = block.first;
    for (int64_t i = block.first; i < after(block); i++)
        if (ends_later(d, i, last)) last = i;
    for (int64_t i = after(block); i < d->samples; i++)
        if (reaches_all(d, last, i)) mark(out, i, past);
    if (!d->end && d->streams && !seen_after(d, &d->stream[0], block, 1, out, past, e)) return false;
    for (int i = 0; window && i < d->streams; i++)
        if (!seen_after(d, &d->stream[i], block, window[i], out, past, e)) return false;
    return true;
}
