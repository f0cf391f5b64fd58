#include "data/scheme_work.h"

#include "data/purge.h"
#include "data/when.h"

#include <stdlib.h>
#include <string.h>

// Where the parts of the first fold begin and end; those of others lie whole steps later.
typedef struct {
    edge begin, train; // beginning and end of training
    extent step;
} layout;

// The beginning of the first sample's month or day, where spans are of months or days.
static edge begin_of(const scheme_work *w) {
    const extent all[] = {w->s->train, w->s->validation, w->s->test, w->s->step};
    bool months = false, days = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        months |= all[i].unit == EXTENT_MONTHS && all[i].count;
        days |= all[i].unit == EXTENT_SECONDS && all[i].count;
    }
    if (!months && !days) return ruler_edge(&w->ruler, 0);
    when_parts p = when_split(w->d->time[0]);
    return ruler_edge_at(&w->ruler, when_day(p.year, p.month, months ? 1 : p.day) * WHEN_DAY);
}

static layout layout_of(const scheme_work *w) {
    const scheme *s = w->s;
    layout l = {.begin = begin_of(w), .step = s->step.count ? s->step : s->test};
    l.train = s->train.unit == EXTENT_DATE ? ruler_edge_at(&w->ruler, s->train.count)
                                           : ruler_move(&w->ruler, l.begin, s->train, 1);
    return l;
}

typedef struct {
    edge begin, train, validation, test; // beginning, and the end of each part
} places;

static places places_of(const scheme_work *w, const layout *l, int64_t k) {
    const ruler *r = &w->ruler;
    places p = {.begin = l->begin, .train = ruler_move(r, l->train, l->step, k)};
    if (w->s->kind == SCHEME_ROLLING) p.begin = ruler_move(r, l->begin, l->step, k);
    p.validation = ruler_move(r, p.train, w->s->validation, 1);
    p.test = ruler_move(r, p.validation, w->s->test, 1);
    return p;
}

// Folds whose test begins within the data, up to the first that ends with them; NUMBER_MOST + 1: more than that.
static int64_t count_folds(const scheme_work *w, const layout *l) {
    int64_t k = 0;
    for (; k <= SCHEME_NUMBER_MOST; k++) {
        places p = places_of(w, l, k);
        if (p.validation.moment >= w->ruler.moments) return k;
        if (p.test.moment >= w->ruler.moments) return k + 1;
    }
    return k;
}

// Marks samples before a later part, from `later` to `end`, that have to be left out of an earlier one.
static bool mark(scheme_work *w, edge later, edge end, err *e) {
    const scheme *s = w->s;
    edge from = ruler_move(&w->ruler, later, s->embargo, -1);
    if (s->purge >= 0) from = ruler_move(&w->ruler, from, (extent){EXTENT_MOMENTS, s->purge}, -1);
    span gap = ruler_span(&w->ruler, from, later);
    memset(w->out, 0, (size_t)w->d->samples);
    memset(w->out + gap.first, 1, (size_t)gap.count);
    if (s->purge >= 0) return true;
    return purge_before(
        w->d, ruler_span(&w->ruler, from, end), s->purge == PURGE_WINDOWS ? s->window : NULL, w->out, e);
}

static bool make_fold(scheme_work *w, const layout *l, scheme_fold *f, err *e) {
    const ruler *r = &w->ruler;
    places p = places_of(w, l, f->number);
    split *s = &f->parts;
    s->test = part_of(ruler_span(r, p.validation, p.test));
    span train = ruler_span(r, p.begin, p.train), validation = ruler_span(r, p.train, p.validation);
    if (!mark(w, p.train, p.test, e) || !scheme_keep(w, train, &s->train, e)) return false;
    if (!mark(w, p.validation, p.test, e) || !scheme_keep(w, validation, &s->validation, e)) return false;
    s->dropped = train.count + validation.count - s->train.count - s->validation.count;
    scheme_judge(w, f);
    return true;
}

static bool too_short(const scheme_work *w, err *e) {
    char train[EXTENT_TEXT_ROOM], validation[EXTENT_TEXT_ROOM], from[32], to[32];
    const dataset *d = w->d;
    extent_text(train, w->s->train);
    extent_text(validation, w->s->validation);
    if (!d->time)
        return err_input(e, "%lld samples are too few for a fold: training %s and validation %s leave no test",
            (long long)d->samples, train, validation);
    return err_input(e,
        "%lld samples from %s to %s are too few for a fold: training %s and validation %s leave no test; use more data "
        "or shorter spans",
        (long long)d->samples, when_text(from, sizeof from, d->time[0]),
        when_text(to, sizeof to, d->time[d->samples - 1]), train, validation);
}

// The folds that are made: `first` and how many.
static bool choose_folds(const scheme *s, scheme_folds *to, int64_t *first, err *e) {
    bool some = s->folds && s->folds < to->all;
    to->count = s->only ? 1 : some ? s->folds : to->all;
    *first = s->only ? s->only - 1 : to->all - to->count;
    if (to->all > SCHEME_NUMBER_MOST)
        return err_input(e, "a walk of more than %d folds; use a longer step", SCHEME_NUMBER_MOST);
    if (s->only > to->all)
        return err_input(e, "there is no fold %lld; these data have %lld", (long long)s->only, (long long)to->all);
    if (to->count > SCHEME_FOLDS_MOST)
        return err_input(e,
            "a walk of %lld folds, and %d are the most; use a longer step, or keep the newest alone (walk.folds)",
            (long long)to->count, SCHEME_FOLDS_MOST);
    return true;
}

bool scheme_walk(scheme_work *w, scheme_folds *to, err *e) {
    const scheme *s = w->s;
    CHECK(s->train.count && s->test.count > 0, "a walk without a span");
    layout l = layout_of(w);
    to->all = count_folds(w, &l);
    if (!to->all) return too_short(w, e);
    int64_t first;
    if (!choose_folds(s, to, &first, e)) return false;
    to->fold = calloc((size_t)to->count, sizeof *to->fold);
    if (!to->fold) return err_run(e, "out of memory for %lld folds", (long long)to->count);
    for (int64_t i = 0; i < to->count; i++) {
        to->fold[i].number = first + i;
        if (!make_fold(w, &l, &to->fold[i], e)) return false;
    }
    return true;
}
