#include "data/scheme_work.h"

#include "data/purge.h"

#include <stdlib.h>
#include <string.h>

// The number of choices of k of n, or anything above `most`.
static int64_t choose(int n, int k, int64_t most) {
    int64_t c = 1;
    for (int i = 1; i <= k && c <= most; i++) c = c * (n - k + i) / i;
    return c;
}

// The next choice of `k` of `n` groups in order; false behind the last.
static bool next_choice(int *group, int n, int k) {
    int i = k - 1;
    while (i >= 0 && group[i] == n - k + i) i--;
    if (i < 0) return false;
    group[i]++;
    for (int j = i + 1; j < k; j++) group[j] = group[j - 1] + 1;
    return true;
}

static void cut_groups(const scheme_work *w, scheme_folds *to) {
    int n = w->s->groups;
    for (int g = 0; g < n; g++)
        to->group[g] = ruler_span(&w->ruler, ruler_edge(&w->ruler, w->ruler.moments * g / n),
            ruler_edge(&w->ruler, w->ruler.moments * (g + 1) / n));
    to->groups = n;
}

// Marks samples from one to before another.
static void mark(scheme_work *w, int64_t from, int64_t to) {
    if (to > from) memset(w->out + from, 1, (size_t)(to - from));
}

// Marks what is left out behind a test: purged samples, then the embargo, from the last of them on.
static bool mark_after(scheme_work *w, span test, err *e) {
    const scheme *s = w->s;
    const ruler *r = &w->ruler;
    int64_t end = test.first + test.count, past = end;
    if (s->purge >= 0) {
        edge clear = ruler_move(r, ruler_edge_of(r, end), (extent){EXTENT_MOMENTS, s->purge}, 1);
        past = r->first[clear.moment];
        mark(w, end, past);
    } else if (!purge_after(w->d, test, s->window, w->out, &past, e)) {
        return false;
    }
    edge over = ruler_move(r, ruler_edge_of(r, past), s->embargo, 1);
    if (s->embargo.count) mark(w, past, r->first[over.moment]);
    return true;
}

// Marks what is left out before a test or validation.
static bool mark_before(scheme_work *w, span later, err *e) {
    const scheme *s = w->s;
    if (s->purge < 0) return purge_before(w->d, later, s->purge == PURGE_WINDOWS ? s->window : NULL, w->out, e);
    edge begin = ruler_edge_of(&w->ruler, later.first),
         from = ruler_move(&w->ruler, begin, (extent){EXTENT_MOMENTS, s->purge}, -1);
    mark(w, w->ruler.first[from.moment], later.first);
    return true;
}

// The last so many samples of the last group that is not tested.
static span validation_of(const scheme_work *w, const scheme_folds *to, const bool *tested) {
    int last = to->groups - 1;
    while (tested[last]) last--;
    span g = to->group[last];
    edge end = ruler_edge_of(&w->ruler, g.first + g.count), from = ruler_move(&w->ruler, end, w->s->validation, -1);
    span v = ruler_span(&w->ruler, from, end);
    return v.first < g.first ? g : v;
}

static bool mark_tests(scheme_work *w, const split_part *test, err *e) {
    memset(w->out, 0, (size_t)w->d->samples);
    for (int i = 0; i < test->spans; i++)
        if (!mark_before(w, test->span[i], e) || !mark_after(w, test->span[i], e)) return false;
    return true;
}

static bool make_fold(scheme_work *w, const scheme_folds *to, scheme_fold *f, err *e) {
    bool tested[SCHEME_GROUPS_MOST] = {0};
    split *s = &f->parts;
    for (int i = 0; i < w->s->tests; i++) {
        tested[f->group[i]] = true;
        part_add(&s->test, to->group[f->group[i]]);
    }
    span validation = validation_of(w, to, tested);
    if (!mark_tests(w, &s->test, e) || !scheme_keep(w, validation, &s->validation, e)) return false;
    if (validation.count && !mark_before(w, validation, e)) return false;
    for (int i = 0; i < s->test.spans; i++)
        mark(w, s->test.span[i].first, s->test.span[i].first + s->test.span[i].count);
    mark(w, validation.first, validation.first + validation.count);
    if (!scheme_keep(w, (span){0, w->d->samples}, &s->train, e)) return false;
    s->dropped = w->d->samples - s->test.count - s->validation.count - s->train.count;
    scheme_judge(w, f);
    return true;
}

int64_t scheme_of_path(const scheme_folds *f, int path, int group) {
    for (int64_t i = 0; i < f->count; i++)
        for (int k = 0; k < f->tests; k++)
            if (f->fold[i].group[k] == group && f->fold[i].path[k] == path) return i;
    CHECK(false, "path %d of %d, group %d of %d", path, f->paths, group, f->groups);
    return -1;
}

bool scheme_combine(scheme_work *w, scheme_folds *to, err *e) {
    const scheme *s = w->s;
    CHECK(s->groups >= 2 && s->groups <= SCHEME_GROUPS_MOST && s->tests >= 1 && s->tests < s->groups, "%d of %d groups",
        s->tests, s->groups);
    if (w->ruler.moments < s->groups)
        return err_input(
            e, "%lld samples at different times are too few for %d groups", (long long)w->ruler.moments, s->groups);
    to->all = to->count = choose(s->groups, s->tests, SCHEME_FOLDS_MOST);
    if (to->all > SCHEME_FOLDS_MOST)
        return err_input(e, "%d of %d groups can be chosen in more than %d ways; use fewer groups", s->tests, s->groups,
            SCHEME_FOLDS_MOST);
    to->tests = s->tests;
    to->paths = (int)choose(s->groups - 1, s->tests - 1, SCHEME_FOLDS_MOST);
    to->fold = calloc((size_t)to->count, sizeof *to->fold);
    if (!to->fold) return err_run(e, "out of memory for %lld folds", (long long)to->count);
    cut_groups(w, to);
    int group[SCHEME_GROUPS_MOST], used[SCHEME_GROUPS_MOST] = {0};
    for (int i = 0; i < s->tests; i++) group[i] = i;
    for (int64_t n = 0; n < to->count; n++, next_choice(group, s->groups, s->tests)) {
        scheme_fold *f = &to->fold[n];
        f->number = n;
        for (int i = 0; i < s->tests; i++) {
            f->group[i] = group[i];
            f->path[i] = used[group[i]]++;
        }
        if (!make_fold(w, to, f, e)) return false;
    }
    return true;
}
