#include "data/scheme.h"

#include "data/leaks.h"
#include "data/scheme_work.h"
#include "data/when.h"

#include <stdio.h>
#include <stdlib.h>

static bool uses_time(const scheme *s) {
    const extent all[] = {s->train, s->validation, s->test, s->step, s->embargo};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].unit != EXTENT_MOMENTS) return true;
    return false;
}

static int by_place(const void *a, const void *b) {
    int64_t x = ((const span *)a)->first, y = ((const span *)b)->first;
    return (x > y) - (x < y);
}

static int by_length(const void *a, const void *b) {
    int64_t x = ((const span *)a)->count, y = ((const span *)b)->count;
    return x != y ? (x < y) - (x > y) : by_place(a, b);
}

// Spans of what is not marked, into `runs` where that is not NULL.
static int64_t find_runs(const scheme_work *w, span from, span *runs) {
    int64_t n = 0, end = from.first + from.count;
    for (int64_t i = from.first, k; i < end; i = k) {
        for (k = i; k < end && w->out[k] == w->out[i]; k++) continue;
        if (w->out[i]) continue;
        if (runs) runs[n] = (span){i, k - i};
        n++;
    }
    return n;
}

bool scheme_keep(const scheme_work *w, span from, split_part *part, err *e) {
    int64_t n = find_runs(w, from, NULL);
    span *runs = malloc((size_t)(n + 1) * sizeof *runs);
    if (!runs) return err_run(e, "out of memory for a part of %lld spans", (long long)n);
    find_runs(w, from, runs);
    if (n > PART_SPANS_MOST) {
        qsort(runs, (size_t)n, sizeof *runs, by_length);
        n = PART_SPANS_MOST;
        qsort(runs, (size_t)n, sizeof *runs, by_place);
    }
    *part = (split_part){0};
    for (int64_t i = 0; i < n; i++) part_add(part, runs[i]);
    free(runs);
    return true;
}

void scheme_judge(const scheme_work *w, scheme_fold *f) {
    const split *p = &f->parts;
    char from[32], to[32];
    const char *empty = !p->train.count                                  ? "training"
                        : w->s->validation.count && !p->validation.count ? "validation"
                        : !p->test.count                                 ? "test"
                                                                         : NULL;
    if (!empty) return;
    if (!p->test.count || !w->d->time || w->d->counted) {
        snprintf(f->why, sizeof f->why, "no sample is left for %s (%lld purged or within the embargo)", empty,
            (long long)p->dropped);
        return;
    }
    when_text(from, sizeof from, w->d->time[part_first(&p->test)]);
    when_text(to, sizeof to, w->d->time[part_end(&p->test) - 1]);
    snprintf(f->why, sizeof f->why,
        "no sample is left for %s (%lld purged or within the embargo); its test is %s to %s", empty,
        (long long)p->dropped, from, to);
}

// Months that begin on the 29th or later have no such day every time, and tests would leave holes.
static bool late_in_month(const scheme *s) {
    bool months = s->validation.unit == EXTENT_MONTHS || s->test.unit == EXTENT_MONTHS || s->step.unit == EXTENT_MONTHS;
    return months && s->train.unit == EXTENT_DATE && when_split(s->train.count).day > 28;
}

static bool check(const dataset *d, const scheme *s, err *e) {
    const char *name = d->name ? d->name : "the set";
    CHECK(s->train.count >= 0 && s->validation.count >= 0 && s->test.count >= 0 && s->step.count >= 0, "spans below 0");
    CHECK(s->test.unit != EXTENT_DATE && s->step.unit != EXTENT_DATE && s->validation.unit != EXTENT_DATE &&
              s->embargo.unit != EXTENT_DATE,
        "a date for a length");
    if (d->held)
        return err_input(e, "%s holds out its own validation part; a walk needs samples in order of time", name);
    if (d->samples < 1) return err_input(e, "%s has no samples with labels; a walk needs some", name);
    if ((!d->time || d->counted) && uses_time(s))
        return err_input(e, "%s has no times; give the spans of a walk as numbers of samples", name);
    if (late_in_month(s))
        return err_input(e, "spans of months cannot begin on the 29th or later; let training end on another day");
    return true;
}

// Folds that cannot be trained are kept with their reason, unless there are no others.
static bool any_left(const scheme_folds *f, err *e) {
    for (int64_t i = 0; i < f->count; i++)
        if (!f->fold[i].why[0]) return true;
    return err_input(e, "none of the walk's %lld folds can be trained; fold %lld: %s; use more data or shorter spans",
        (long long)f->count, (long long)f->fold[0].number + 1, f->fold[0].why);
}

bool scheme_make(const dataset *d, const scheme *s, scheme_folds *to, err *e) {
    *to = (scheme_folds){0};
    if (!check(d, s, e)) return false;
    scheme_work w = {.d = d, .s = s, .out = malloc((size_t)d->samples)};
    bool ok = w.out || err_run(e, "out of memory for %lld samples", (long long)d->samples);
    ok = ok && ruler_init(&w.ruler, d, e);
    ok = ok && (s->kind == SCHEME_CPCV ? scheme_combine(&w, to, e) : scheme_walk(&w, to, e)) &&
         (s->only || any_left(to, e));
    if (ok && leaks_planted.folds) leaks_planted.folds(d, to);
    ruler_done(&w.ruler);
    free(w.out);
    if (!ok) scheme_done(to);
    return ok;
}

void scheme_done(scheme_folds *f) {
    free(f->fold);
    *f = (scheme_folds){0};
}
