#include "data/scaler.h"

#include "data/leaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TINY = 1e-30, TINY_SHARE = 1e-12;

scaler *scaler_new(const dataset *d, bool own, err *e) {
    int64_t total = 0, series = own ? dataset_series(d) : 1;
    for (int i = 0; i < d->streams; i++) total += d->stream[i].series.width;
    scaler *s = calloc(1, sizeof *s);
    if (s) s->memory = calloc((size_t)((2 * series + 2) * total) + 1, sizeof *s->memory);
    if (!s || !s->memory) {
        free(s);
        err_run(e, "out of memory for a scaler of %lld columns", (long long)total);
        return NULL;
    }
    float *at = s->memory;
    s->streams = d->streams;
    s->series = series;
    for (int i = 0; i < d->streams; i++) {
        int64_t width = s->width[i] = d->stream[i].series.width;
        s->mean[i] = at;
        s->std[i] = at + series * width;
        s->value[i] = at + 2 * series * width;
        at += (2 * series + 2) * width;
        for (int64_t c = 0; c < series * width; c++) scaler_set(s, i, c, 0, 1);
        for (int64_t c = 0; c < width; c++) s->value[i][width + c] = 1;
    }
    return s;
}

void scaler_free(scaler *s) {
    if (!s) return;
    free(s->memory);
    free(s);
}

void scaler_set(scaler *s, int stream, int64_t column, float mean, float std) {
    CHECK(stream < s->streams && column < s->series * s->width[stream], "column %lld of stream %d", (long long)column,
        stream);
    s->mean[stream][column] = mean;
    s->std[stream][column] = std;
    if (s->series > 1) return;
    s->value[stream][column] = mean;
    s->value[stream][s->width[stream] + column] = (float)(1 / (double)std);
}

// Sums over the rows that are seen, by column.
typedef struct {
    const stream *from;
    const int32_t *covered; // [rows]: how many windows see each row
    float *row;             // [width]
    double *first, *sum, *square;
    int64_t begin, end; // rows that are looked at
    int64_t rows;       // those of them that are seen
} fitting;

static bool not_finite(const fitting *f, int64_t row, int64_t column, err *e) {
    const char *const *names = f->from->series.columns;
    return err_input(e, "%s: row %lld, column %lld (%s) is not a finite number; clean the data or leave the column out",
        f->from->name, (long long)row, (long long)column + 1, names ? names[column] : "no name");
}

static void first_pass(fitting *f) {
    for (int64_t c = 0; c < f->from->series.width; c++) {
        if (!f->rows) f->first[c] = (double)f->row[c];
        f->sum[c] += (double)f->row[c] - f->first[c];
    }
    f->rows++;
}

// After the first pass `sum` is the mean, less the first value.
static void second_pass(fitting *f) {
    for (int64_t c = 0; c < f->from->series.width; c++) {
        double off = (double)f->row[c] - f->first[c] - f->sum[c];
        f->square[c] += off * off;
    }
}

static bool each_row(fitting *f, bool second, err *e) {
    const table *t = &f->from->series;
    for (int64_t r = f->begin; r < f->end; r++) {
        if (!f->covered[r]) continue;
        table_read(t, r, 1, f->row);
        for (int64_t c = 0; !second && c < t->width; c++)
            if (!isfinite(f->row[c])) return not_finite(f, r, c, e);
        second ? second_pass(f) : first_pass(f);
    }
    return true;
}

// The scale of one instrument's rows, or of all.
static bool fit(fitting *f, scaler *s, int stream, int64_t series, err *e) {
    int64_t width = f->from->series.width;
    f->rows = 0;
    memset(f->first, 0, 3 * (size_t)width * sizeof *f->first);
    if (!each_row(f, false, e)) return false;
    for (int64_t c = 0; c < width && f->rows; c++) f->sum[c] /= (double)f->rows;
    if (!each_row(f, true, e)) return false;
    for (int64_t c = 0; c < width && f->rows; c++) {
        double mean = f->first[c] + f->sum[c], std = sqrt(f->square[c] / (double)f->rows);
        bool still = std < TINY || std < TINY_SHARE * fabs(mean);
        scaler_set(s, stream, series * width + c, (float)mean, still ? 1 : (float)std);
    }
    return true;
}

static bool fit_all(fitting *f, const dataset *d, scaler *s, int stream, err *e) {
    for (int64_t k = 0; k < s->series; k++) {
        f->begin = s->series > 1 ? f->from->start[k] : 0;
        f->end = s->series > 1 ? f->from->start[k + 1] : f->from->series.rows;
        if (!fit(f, s, stream, k, e)) return false;
        if (s->series > 1 && !f->rows)
            return err_input(
                e, "%s has no training samples to fit its scale on; use data.scale: standard", d->panel_names[k]);
    }
    return true;
}

// Counts into `covered` [rows + 1] the training windows that see each row: first where they begin and end, then the
// sum of these over all series, as a window may end on the row before a series begins.
static void cover(const stream *s, const split_part *train, int64_t window, int32_t *covered) {
    for (int k = 0; k < train->spans; k++) {
        span t = train->span[k];
        for (int64_t i = t.first; i < t.first + t.count; i++) {
            int64_t from = s->row[i] - window + 1;
            covered[from > s->first[i] ? from : s->first[i]]++;
            covered[s->row[i] + 1]--;
        }
    }
    for (int64_t r = 1; r < s->series.rows; r++) covered[r] += covered[r - 1];
}

static bool fit_stream(const dataset *d, int stream, const split_part *train, int64_t window, scaler *s, err *e) {
    fitting f = {.from = &d->stream[stream]};
    size_t rows = (size_t)f.from->series.rows, width = (size_t)f.from->series.width;
    int32_t *covered = calloc(rows + 1, sizeof *covered);
    double *sums = calloc(3 * width, sizeof *sums);
    f.row = calloc(width, sizeof *f.row);
    bool ok = covered && sums && f.row;
    if (!ok) err_run(e, "out of memory to fit a scaler to %s", f.from->name);
    if (ok) {
        f.first = sums;
        f.sum = sums + width;
        f.square = sums + 2 * width;
        f.covered = covered;
        cover(f.from, train, window, covered);
        ok = fit_all(&f, d, s, stream, e);
    }
    free(covered);
    free(sums);
    free(f.row);
    return ok;
}

scaler *scaler_fit(const dataset *d, const split_part *train, const int64_t *window, bool own, err *e) {
    split_part room;
    if (leaks_planted.fitted) train = leaks_planted.fitted(d, train, &room);
    scaler *s = scaler_new(d, own, e);
    bool ok = s != NULL;
    for (int i = 0; ok && i < d->streams; i++) ok = fit_stream(d, i, train, window[i], s, e);
    if (ok) return s;
    scaler_free(s);
    return NULL;
}

// Rows of one series less its means, by its deviations, as the window operator does it.
static void apply(const scaler *s, const stream *from, int stream, int64_t series, float *to) {
    int64_t width = s->width[stream], first = from->start[series], rows = from->start[series + 1] - first;
    const float *mean = s->mean[stream] + series * width, *std = s->std[stream] + series * width;
    table_read(&from->series, first, rows, to + first * width);
    for (int64_t c = 0; c < width; c++) {
        float by = (float)(1 / (double)std[c]);
        for (int64_t r = first; r < first + rows; r++) to[r * width + c] = (to[r * width + c] - mean[c]) * by;
    }
}

dataset *scaler_apply(const scaler *s, dataset *from, bool keeps, err *e) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < from->streams; i++)
        bytes += dataset_room(from->stream[i].series.rows * s->width[i], sizeof(float));
    dataset *d = dataset_view(from, keeps, bytes, e);
    for (int i = 0; d && i < d->streams; i++) {
        const stream *x = &from->stream[i];
        float *data = dataset_take(d, &at, x->series.rows * s->width[i], sizeof *data);
        for (int64_t k = 0; k < s->series; k++) apply(s, x, i, k, data);
        d->stream[i].series = table_of(COLUMN_F32, x->series.rows, s->width[i], data);
        d->stream[i].series.columns = x->series.columns;
    }
    return d;
}

void scaler_follow(const scaler *s, const dataset *from, dataset *view, int64_t series) {
    for (int i = 0; i < from->streams; i++)
        apply(s, &from->stream[i], i, series, (float *)view->stream[i].series.part[0].data);
}
