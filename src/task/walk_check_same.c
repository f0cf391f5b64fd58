// Datasets of two futures, sample by sample.
#include "data/when.h"
#include "task/walk_check_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Samples in order

static int by_time(const void *a, const void *b) {
    const roll_entry *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->series < y->series ? -1 : x->series > y->series;
}

// Number of each of the whole dataset's instruments in another that may lack some.
static void match_series(roll *r, const dataset *whole) {
    for (int64_t k = 0; k < dataset_series(whole); k++) {
        r->series[k] = whole->panel ? -1 : 0;
        for (int64_t i = 0; i < r->d->panel; i++)
            if (strcmp(whole->panel_names[k], r->d->panel_names[i]) == 0) r->series[k] = i;
    }
}

bool roll_make(roll *r, const dataset *d, const dataset *whole, err *e) {
    int64_t series = dataset_series(whole), n = dataset_all(d);
    *r = (roll){.d = d, .count = n};
    r->at = malloc((size_t)(n + 1) * sizeof *r->at);
    r->series = malloc((size_t)series * sizeof *r->series);
    int64_t *there = calloc((size_t)series, sizeof *there); // number of an instrument of `d` in the whole dataset
    bool ok = (r->at && r->series && there) || err_run(e, "no memory to order %lld samples", (long long)n);
    if (ok) match_series(r, whole);
    for (int64_t k = 0; ok && k < series; k++)
        if (r->series[k] >= 0) there[r->series[k]] = k;
    for (int64_t i = 0; ok && i < n; i++)
        r->at[i] = (roll_entry){d->time[i], there[d->panel ? dataset_panel_of(d, i) : 0], i};
    if (ok) qsort(r->at, (size_t)n, sizeof *r->at, by_time);
    free(there);
    if (!ok) roll_done(r);
    return ok;
}

void roll_done(roll *r) {
    free(r->at);
    free(r->series);
    *r = (roll){0};
}

// Comparison

typedef struct {
    const dataset *a, *b; // the whole one, and the other
    const roll *ra, *rb;
    int64_t t, reach;
    future f;
    check_report *report;
    float *one, *other; // a row of each, of the widest table
    int64_t *depth;     // [series, streams] rows of the instrument that samples up to t see
} look;

// "EURUSD 2024-03-01 12:00", of a sample.
static const char *place(const look *x, const roll_entry *at, char text[CHECK_TEXT]) {
    char when[32];
    snprintf(text, CHECK_TEXT, "%s%s%s", x->a->panel ? x->a->panel_names[at->series] : "", x->a->panel ? " " : "",
        when_moment_text(when, sizeof when, at->time));
    return text;
}

static void fail_at(const look *x, check_rule rule, const roll_entry *at, const char *what) {
    static const char *const futures[] = {"cut off", "altered", "altered"};
    char where[CHECK_TEXT], when[32];
    check_fail(&x->report->rule[rule], "%s UTC: %s, with all bars behind %s UTC %s", place(x, at, where), what,
        when_moment_text(when, sizeof when, x->t), futures[x->f]);
}

static bool rows_differ(const look *x, const table *a, int64_t i, const table *b, int64_t k) {
    table_read(a, i, 1, x->one);
    table_read(b, k, 1, x->other);
    return memcmp(x->one, x->other, (size_t)a->width * sizeof *x->one) != 0;
}

static const char *column_that_differs(const look *x, const table *t, char text[CHECK_TEXT]) {
    int64_t c = 0;
    while (c + 1 < t->width && memcmp(&x->one[c], &x->other[c], sizeof *x->one) == 0) c++;
    snprintf(text, CHECK_TEXT, "column %s", t->columns ? t->columns[c] : "without a name");
    return text;
}

static void fail_vector(const look *x, const roll_entry *at) {
    char column[CHECK_TEXT], what[CHECK_TEXT];
    snprintf(what, sizeof what, "%.100s of the vector is another", column_that_differs(x, &x->a->vector, column));
    fail_at(x, CHECK_INPUTS, at, what);
}

// Rows that windows end with, and the vector, price and volatility.
static void same_inputs(look *x, const roll_entry *ea, const roll_entry *eb) {
    int64_t a = ea->sample, b = eb->sample;
    check_result *r = &x->report->rule[CHECK_INPUTS];
    char what[CHECK_TEXT];
    for (int i = 0; i < x->a->streams; i++) {
        const stream *sa = &x->a->stream[i], *sb = &x->b->stream[i];
        int64_t da = sa->row[a] - sa->first[a], db = sb->row[b] - sb->first[b], least = da < db ? da : db;
        int64_t *depth = &x->depth[ea->series * x->a->streams + i];
        check_count(r, 1);
        if (da != db) {
            snprintf(what, sizeof what, "its newest bar of stream %s is another", sa->name);
            fail_at(x, CHECK_INPUTS, ea, what);
        }
        if (least + 1 > *depth) *depth = least + 1;
    }
    if (x->a->vector.width) {
        check_count(r, x->a->vector.width);
        if (rows_differ(x, &x->a->vector, a, &x->b->vector, b)) fail_vector(x, ea);
    }
    check_count(r, 1);
    if (x->a->price[a] != x->b->price[b]) fail_at(x, CHECK_INPUTS, ea, "its price is another");
    if (!x->a->volatility) return;
    check_count(r, 1);
    if (memcmp(&x->a->volatility[dataset_bar_of(x->a, a)], &x->b->volatility[dataset_bar_of(x->b, b)],
            sizeof *x->a->volatility) != 0)
        fail_at(x, CHECK_INPUTS, ea, "its volatility is another");
}

// All rows of features that samples up to t may see, each once.
static void same_rows(look *x) {
    char what[CHECK_TEXT], column[CHECK_TEXT / 2];
    for (int64_t at = 0; at < dataset_series(x->a) * x->a->streams; at++) {
        int64_t k = at / x->a->streams, i = at % x->a->streams, there = x->rb->series[k];
        const stream *sa = &x->a->stream[i], *sb = &x->b->stream[i];
        for (int64_t row = 0; row < x->depth[at]; row++) {
            check_count(&x->report->rule[CHECK_INPUTS], sa->series.width);
            if (!rows_differ(x, &sa->series, sa->start[k] + row, &sb->series, sb->start[there] + row)) continue;
            int64_t last = sa->bars.start[k + 1] - (sa->start[k + 1] - sa->start[k] - row);
            roll_entry e = {.time = sa->bars.time[2 * last + 1], .series = k};
            snprintf(column, sizeof column, "%.100s", column_that_differs(x, &sa->series, what));
            snprintf(what, sizeof what, "%s of stream %.40s is another", column, sa->name);
            fail_at(x, CHECK_INPUTS, &e, what);
        }
    }
}

static bool is_labelled(const dataset *d, int64_t i) {
    return i < d->samples;
}

static bool labels_differ(const dataset *a, int64_t i, const dataset *b, int64_t k) {
    size_t bytes = (size_t)a->target_width * sizeof *a->target;
    if (a->label && a->label[i] != b->label[k]) return true;
    return a->target && memcmp(a->target + i * a->target_width, b->target + k * a->target_width, bytes) != 0;
}

static void same_known_label(look *x, const roll_entry *ea, int64_t b) {
    int64_t a = ea->sample;
    if (!is_labelled(x->a, a) || x->a->end[a] > x->t || !is_labelled(x->b, b)) return;
    check_count(&x->report->rule[CHECK_LABELS], 1);
    if (labels_differ(x->a, a, x->b, b) || x->a->end[a] != x->b->end[b])
        fail_at(x, CHECK_LABELS, ea, "its label, which was known, is another");
}

// True where a bar has whatever a label takes: a volatility, and bars enough behind it.
static bool may_be_labelled(const look *x, const dataset *d, int64_t i) {
    int64_t row = dataset_bar_of(d, i), k = d->panel ? dataset_panel_of(d, i) : 0;
    return row + x->reach < d->stream[0].bars.start[k + 1] && (!d->volatility || d->volatility[row] > 0);
}

// A sample has a label in both or in none; where the future is cut, once its label is known.
static void same_standing(look *x, const roll_entry *ea, int64_t b) {
    int64_t a = ea->sample;
    bool one = is_labelled(x->a, a), other = is_labelled(x->b, b);
    if (x->f == FUTURE_CUT)
        one = one && x->a->end[a] <= x->t;
    else if (!may_be_labelled(x, x->a, a) || !may_be_labelled(x, x->b, b))
        return;
    check_count(&x->report->rule[CHECK_SAMPLES], 1);
    if (one != other) fail_at(x, CHECK_SAMPLES, ea, "its label is there in one only");
}

static void same_samples(look *x) {
    int64_t i = 0, k = 0, until = x->f == FUTURE_CUT ? x->t : INT64_MAX;
    while (true) {
        const roll_entry *a = i < x->ra->count && x->ra->at[i].time <= until ? &x->ra->at[i] : NULL;
        const roll_entry *b = k < x->rb->count && x->rb->at[k].time <= until ? &x->rb->at[k] : NULL;
        if (!a && !b) return;
        int order = !a ? 1 : !b ? -1 : by_time(a, b);
        i += order <= 0;
        k += order >= 0;
        check_count(&x->report->rule[CHECK_SAMPLES], 1);
        if (order) {
            fail_at(x, CHECK_SAMPLES, order < 0 ? a : b, "the sample is there in one only");
            continue;
        }
        same_standing(x, a, b->sample);
        if (a->time > x->t) continue;
        same_inputs(x, a, b);
        same_known_label(x, a, b->sample);
    }
}

bool same_past(const roll *whole, const roll *other, int64_t t, future f, int64_t reach, check_report *r, err *e) {
    const dataset *d = whole->d;
    look x = {.a = d, .b = other->d, .ra = whole, .rb = other, .t = t, .reach = reach, .f = f, .report = r};
    int64_t widest = d->vector.width;
    for (int i = 0; i < d->streams; i++)
        if (d->stream[i].series.width > widest) widest = d->stream[i].series.width;
    x.one = malloc((size_t)(2 * widest + 1) * sizeof *x.one);
    x.depth = calloc((size_t)(dataset_series(d) * d->streams), sizeof *x.depth);
    bool ok = (x.one && x.depth) || err_run(e, "no memory to compare %lld columns", (long long)widest);
    if (ok) {
        x.other = x.one + widest;
        same_samples(&x);
        same_rows(&x);
    }
    free(x.one);
    free(x.depth);
    return ok;
}

void labels_follow(const roll *up, const roll *down, int64_t t, check_report *r) {
    look x = {.a = up->d, .t = t, .f = FUTURE_UP, .report = r};
    for (int64_t i = 0, k = 0; i < up->count && up->at[i].time <= t; i++) {
        const roll_entry *a = &up->at[i];
        while (k < down->count && by_time(&down->at[k], a) < 0) k++;
        if (k == down->count || by_time(&down->at[k], a) != 0) continue;
        int64_t one = a->sample, other = down->at[k].sample;
        if (!is_labelled(up->d, one) || !is_labelled(down->d, other)) continue;
        if (up->d->end[one] <= t || down->d->end[other] <= t) continue;
        check_count(&r->rule[CHECK_LABELS], 1);
        if (!labels_differ(up->d, one, down->d, other))
            fail_at(&x, CHECK_LABELS, a, "its label does not change with its future");
    }
}
