#include "data/split.h"

#include <stdlib.h>

split_part part_of(span s) {
    split_part p = {0};
    part_add(&p, s);
    return p;
}

void part_add(split_part *p, span s) {
    span *last = p->spans ? &p->span[p->spans - 1] : NULL;
    CHECK(s.first >= 0 && s.count >= 0 && (!last || s.first >= last->first + last->count), "spans out of order");
    if (!s.count) return;
    p->count += s.count;
    if (last && last->first + last->count == s.first) {
        last->count += s.count;
        return;
    }
    CHECK(p->spans < PART_SPANS_MOST, "a part of more than %d spans", PART_SPANS_MOST);
    p->span[p->spans++] = s;
}

int64_t part_sample(const split_part *p, int64_t at) {
    int i = 0;
    CHECK(at >= 0 && at < p->count, "sample %lld of a part of %lld", (long long)at, (long long)p->count);
    while (at >= p->span[i].count) at -= p->span[i++].count;
    return p->span[i].first + at;
}

int64_t part_first(const split_part *p) {
    return p->spans ? p->span[0].first : 0;
}

int64_t part_end(const split_part *p) {
    return p->spans ? p->span[p->spans - 1].first + p->span[p->spans - 1].count : 0;
}

static int64_t after(span s) {
    return s.first + s.count;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// The first sample behind the part whose time lies beyond every label's end.
static int64_t past_ends(const dataset *d, span part) {
    int64_t last = d->end[part.first], at = after(part);
    for (int64_t i = part.first; i < after(part); i++) last = d->end[i] > last ? d->end[i] : last;
    while (at < d->samples && d->time[at] <= last) at++;
    return at;
}

// One behind the last sample whose row, less `back`, is not beyond the latest row that its series has in the part. A
// series is known by its first row. Rows of a series rise with time.
static bool past_rows(const dataset *d, const stream *s, span part, int64_t back, int64_t *past, err *e) {
    int64_t at = after(part);
    int32_t *latest = malloc((size_t)s->series.rows * sizeof *latest);
    if (!latest) return err_run(e, "out of memory for the rows of %s", s->name);
    for (int64_t i = 0; i < s->series.rows; i++) latest[i] = -1;
    for (int64_t i = part.first; i < after(part); i++)
        if (s->row[i] > latest[s->first[i]]) latest[s->first[i]] = s->row[i];
    for (int64_t i = after(part); i < d->samples; i++)
        if (latest[s->first[i]] >= 0 && s->row[i] - back <= latest[s->first[i]]) at = i + 1;
    free(latest);
    *past = at > *past ? at : *past;
    return true;
}

bool split_past(const dataset *d, span part, const int64_t *window, int64_t *past, err *e) {
    *past = after(part);
    if (part.count < 1) return true;
    if (d->end) {
        *past = past_ends(d, part);
    } else if (d->streams) {
        if (!past_rows(d, &d->stream[0], part, d->horizon, past, e)) return false;
        // Windows that share no rows are series of their own, whose rows say nothing of each other's labels.
        if (d->window[0] && *past < after(part) + d->horizon) *past = least(after(part) + d->horizon, d->samples);
    } else {
        *past = least(*past + d->horizon, d->samples);
    }
    // The samples that labels reach stand for the bars that labels reach.
    span seen = {part.first, *past - part.first};
    for (int i = 0; window && i < d->streams; i++)
        if (!past_rows(d, &d->stream[i], seen, window[i] - 1, past, e)) return false;
    return true;
}

// Gaps are counted in moments: several instruments have samples at one moment.
static int64_t moments_on(const dataset *d, int64_t first, int64_t moments) {
    if (!d->time || d->panel < 2) return first + moments;
    for (; moments > 0 && first < d->samples; moments--) {
        int64_t now = d->time[first];
        while (first < d->samples && d->time[first] == now) first++;
    }
    return first + moments;
}

// Where the purge behind a part ends, and where the next part begins; both may lie beyond the last sample.
static bool next_part(const dataset *d, const int64_t *window, const split_options *o, span part, int64_t *purged,
    int64_t *first, err *e) {
    if (o->purge >= 0)
        *purged = moments_on(d, after(part), o->purge);
    else if (!split_past(d, part, o->purge == PURGE_WINDOWS ? window : NULL, purged, e))
        return false;
    *first = moments_on(d, *purged, o->embargo);
    return true;
}

// The larger share of the gap is what to change; both are counted in samples.
static bool part_empty(
    const dataset *d, const split_options *o, int64_t train, int64_t purge, int64_t embargo, err *e) {
    bool shares = train < 1 || (double)d->samples * o->validation < 1;
    const char *reach = o->purge == PURGE_WINDOWS  ? "as far as labels and windows reach"
                        : o->purge == PURGE_LABELS ? "as far as labels reach"
                                                   : "of purge",
               *remedy = shares                      ? "larger shares"
                         : purge <= embargo          ? "a smaller embargo"
                         : o->purge == PURGE_WINDOWS ? "a shorter label horizon or shorter windows"
                         : o->purge == PURGE_LABELS  ? "a shorter label horizon"
                                                     : "a smaller purge";
    return err_input(e,
        "a split of %lld samples into %lld for training (%.0f %%), a gap of %lld (%lld %s, %lld of embargo) and "
        "%.0f %% for validation leaves a part empty; use more data or %s",
        (long long)d->samples, (long long)train, o->train * 100, (long long)(purge + embargo), (long long)purge, reach,
        (long long)embargo, o->validation * 100, remedy);
}

bool split_make(const dataset *d, const int64_t *window, const split_options *o, split *s, err *e) {
    int64_t open = d->samples - d->held;
    *s = (split){.train = part_of((span){0, open}), .validation = part_of((span){open, d->held})};
    if (d->held) return true;
    int64_t train = (int64_t)((double)d->samples * o->train), purged, first, test,
            validation = (int64_t)((double)d->samples * o->validation);
    span known = {0, train};
    if (!next_part(d, window, o, known, &purged, &first, e)) return false;
    if (first + validation > d->samples) validation = d->samples - first;
    if (train < 1 || validation < 1) return part_empty(d, o, train, purged - train, first - purged, e);
    span checked = {first, validation};
    if (!next_part(d, window, o, checked, &purged, &test, e)) return false;
    if (test > d->samples) test = d->samples;
    *s = (split){.train = part_of(known), .validation = part_of(checked)};
    s->test = part_of((span){test, d->samples - test});
    s->dropped = first - train + test - after(checked);
    return true;
}
