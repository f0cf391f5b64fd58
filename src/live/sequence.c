#include "live/sequence.h"

#include "data/when.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 * FEED_SERIES_MOST, EVENTS_MOST = 8, AHEAD_MOST = 1800 };

// Bars of one symbol and span. Opens of `known` rise; the newest one is known[(first + count - 1) % FEED_KNOWN].
typedef struct {
    char symbol[BARS_SYMBOL_ROOM];
    int64_t span;
    bar known[FEED_KNOWN]; // that were given
    int first, count;
    bool restarted; // what is older than `known` was decided on before a restart
    int64_t ahead;  // open of the newest bar of the future that was told; of quotes, whose span is 0, the day
    bool holds;
    feed_event held;
} series;

struct sequence {
    sequence_rules rules;
    series *item[FEED_SERIES_MOST];
    int count;
    uint16_t slot[SLOTS]; // a hash table of places in `item`, counted from 1
    int last;             // found last
    feed_event event[EVENTS_MOST];
    int events, given;
    int unwanted;        // bars of other symbols before the first that is wanted; INT_MAX: that is settled
    feed_event stranger; // the first of them
};

sequence *sequence_new(const sequence_rules *r) {
    sequence *s = calloc(1, sizeof *s);
    NEED(s, "no memory for a feed");
    s->rules = *r;
    return s;
}

void sequence_free(sequence *s) {
    if (!s) return;
    for (int i = 0; i < s->count; i++) free(s->item[i]);
    free(s);
}

int sequence_series(const sequence *s) {
    return s->count;
}

static bool is(const series *r, const char *symbol, int64_t span) {
    return r->span == span && strcmp(r->symbol, symbol) == 0;
}

static size_t slot_of(const sequence *s, const char *symbol, int64_t span) {
    uint32_t hash = 2166136261u ^ (uint32_t)span; // FNV-1a
    for (const char *c = symbol; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    size_t at = hash % SLOTS;
    while (s->slot[at] && !is(s->item[s->slot[at] - 1], symbol, span)) at = (at + 1) % SLOTS;
    return at;
}

// The series, made where it is new; NULL where there are too many.
static series *find(sequence *s, const char *symbol, int64_t span) {
    if (s->count && is(s->item[s->last], symbol, span)) return s->item[s->last];
    size_t at = slot_of(s, symbol, span);
    if (!s->slot[at]) {
        if (s->count == FEED_SERIES_MOST) return NULL;
        series *r = calloc(1, sizeof *r);
        NEED(r, "no memory for the bars of %s", symbol);
        snprintf(r->symbol, sizeof r->symbol, "%s", symbol);
        r->span = span;
        r->ahead = INT64_MIN;
        s->item[s->count++] = r;
        s->slot[at] = (uint16_t)s->count;
    }
    s->last = s->slot[at] - 1;
    return s->item[s->last];
}

static const bar *known_at(const series *r, int i) {
    return &r->known[(r->first + i) % FEED_KNOWN];
}

static const bar *newest_of(const series *r) {
    return r->count ? known_at(r, r->count - 1) : NULL;
}

static void keep(series *r, const bar *b) {
    if (r->count == FEED_KNOWN)
        r->first = (r->first + 1) % FEED_KNOWN;
    else
        r->count++;
    r->known[(r->first + r->count - 1) % FEED_KNOWN] = *b;
}

static bool same(const bar *a, const bar *b) {
    return a->open == b->open && a->high == b->high && a->low == b->low && a->close == b->close &&
           a->volume == b->volume && a->spread == b->spread;
}

static void put(sequence *s, const feed_event *ev) {
    CHECK(s->events < EVENTS_MOST, "more than %d events of one bar", EVENTS_MOST);
    s->event[s->events++] = *ev;
}

// A note about a bar.
static feed_event *note(sequence *s, const feed_event *of, feed_note n) {
    put(s, of);
    feed_event *ev = &s->event[s->events - 1];
    ev->kind = FEED_NOTE;
    ev->note = n;
    return ev;
}

static void describe(feed_event *ev, const char *what) {
    char when[40], span[32];
    snprintf(ev->text, sizeof ev->text, "%s%s%s%s of %s UTC %s", ev->symbol, *ev->symbol ? " " : "",
        ev->span ? when_span_text(span, sizeof span, ev->span) : "", ev->span ? " bar" : "quote",
        when_moment_text(when, sizeof when, ev->bar.time), what);
}

static int64_t missing_before(const sequence *s, const series *r, const feed_event *ev) {
    enum { STEPS_MOST = 12 };
    const feed_options *o = s->rules.options;
    const bar *b = newest_of(r);
    if (!b || ev->bar.time <= b->end) return 0;
    if (o->missing) return o->missing(o->arg, r->symbol, r->span, b->time, ev->bar.time);
    int64_t spans = when_spans_between(b->time, ev->bar.time, r->span);
    return spans > 1 && spans <= STEPS_MOST ? spans - 1 : 0;
}

// Gives a bar that has closed, as `shown` shows, with what is odd about it before it.
static void give(sequence *s, series *r, const feed_event *ev, const feed_event *shown, double now) {
    char text[64];
    feed_event out = *ev;
    bool history = shown && shown->history;
    out.at = now;
    out.received = shown ? shown->received : 0;
    out.history = history;
    int64_t missing = history ? 0 : missing_before(s, r, ev);
    if (missing > 0) {
        feed_event *n = note(s, &out, FEED_MISSING);
        n->count = missing;
        snprintf(text, sizeof text, "follows %lld missing bar%s", (long long)missing, missing == 1 ? "" : "s");
        describe(n, text);
    }
    double late = now - (double)ev->bar.end, most = s->rules.options->late;
    if (s->rules.machine && most > 0 && late > most && !history) {
        char span[32];
        snprintf(text, sizeof text, "came %s after its close", when_span_text(span, sizeof span, (int64_t)late));
        describe(note(s, &out, FEED_LATE), text);
    }
    put(s, &out);
    keep(r, &ev->bar);
}

// A bar at or before the newest one that was given.
static void judge_known(sequence *s, const series *r, const feed_raw *raw, double now) {
    const feed_event *ev = &raw->event;
    const bar *was = NULL;
    for (int i = r->count - 1; i >= 0 && !was; i--) {
        const bar *b = known_at(r, i);
        if (b->time == ev->bar.time) was = b;
        if (b->time < ev->bar.time) break;
    }
    if (!was && (raw->again || (r->restarted && ev->bar.time < known_at(r, 0)->time))) return;
    if (was && same(was, &ev->bar) && raw->again) return;
    feed_event out = *ev;
    out.at = now;
    out.history = false;
    if (!was) {
        describe(note(s, &out, FEED_OUT_OF_ORDER), "came after a later one; it is not used");
    } else if (same(was, &ev->bar)) {
        describe(note(s, &out, FEED_DOUBLED), "came again");
    } else {
        char text[96];
        feed_event *n = note(s, &out, FEED_REVISED);
        n->was = *was;
        snprintf(
            text, sizeof text, "came again with close %.10g, not %.10g; it is not used", ev->bar.close, was->close);
        describe(n, text);
    }
}

// A bar later than the newest one that was given.
static void take_new(sequence *s, series *r, const feed_raw *raw, double now) {
    const feed_event *ev = &raw->event;
    if (r->holds && ev->bar.time > r->held.bar.time) {
        r->holds = false;
        give(s, r, &r->held, ev, now);
    }
    // A row that was written behind its close is no unfinished one; the file's clock may be ahead of this machine's.
    bool finished = s->rules.machine && fmin(raw->written, now) >= (double)ev->bar.end;
    // A later bar that is held back has opened, so this one has closed.
    bool closed = raw->state == FEED_CLOSED || (raw->state == FEED_AS_TOLD && (!s->rules.hold || finished)) ||
                  (r->holds && ev->bar.time < r->held.bar.time);
    if (!closed) {
        r->held = *ev;
        r->holds = true;
        return;
    }
    if (r->holds && ev->bar.time == r->held.bar.time) r->holds = false;
    give(s, r, ev, ev, now);
}

// A bar of the future: one that opens later, or that has closed before its time. Long bars may be done early, as a day
// of a stock exchange is in the evening.
static bool is_ahead(const sequence *s, const feed_raw *raw, double now) {
    const feed_event *ev = &raw->event;
    double early = fmax(AHEAD_MOST, (double)ev->span / 2);
    bool closed = raw->state == FEED_CLOSED || (raw->state == FEED_AS_TOLD && !s->rules.hold);
    return (double)ev->bar.time > now + AHEAD_MOST || (closed && (double)ev->bar.end > now + early);
}

static void tell_series_most(sequence *s, const feed_event *ev, double now) {
    describe(note(s, ev, FEED_UNREADABLE), "is of one symbol or span too many");
    s->event[0].at = now;
}

// Bars once for each moment, as a source that repeats its rows is not to repeat this; quotes, of which there may be one
// a second, once a day.
static void tell_ahead(sequence *s, const feed_event *ev, double now) {
    char text[96], span[32];
    series *r = find(s, ev->symbol, ev->span);
    int64_t at = ev->span ? ev->bar.time : when_day_of(ev->bar.time);
    if (!r) tell_series_most(s, ev, now);
    if (!r || at <= r->ahead) return;
    r->ahead = at;
    snprintf(text, sizeof text, "%s %s after now; is the zone of the feed right?", ev->span ? "ends" : "lies",
        when_span_text(span, sizeof span, (int64_t)((double)ev->bar.end - now)));
    describe(note(s, ev, FEED_UNREADABLE), text);
    s->event[0].at = now;
}

// Bars of other symbols alone: a name that is written otherwise would be waited for in silence.
static void tell_unwanted(sequence *s, double now) {
    const feed_options *o = s->rules.options;
    char wanted[FEED_LIST_ROOM];
    feed_list_wanted(wanted, sizeof wanted, o);
    feed_event *n = note(s, &s->stranger, FEED_UNWANTED);
    snprintf(n->text, sizeof n->text,
        "bars of %.31s are passed over: %.79s %s wanted, and none has come yet; names must be equal",
        *n->symbol ? n->symbol : "no name", wanted, o->wanted_count == 1 ? "is" : "are");
    n->symbol[0] = 0;
    n->span = 0;
    n->at = now;
    s->unwanted = INT_MAX;
}

// A feed of several symbols has come round where the first of them comes again.
static void take_unwanted(sequence *s, const feed_event *ev, double now) {
    enum { MANY = 16 };
    const feed_options *o = s->rules.options;
    const feed_event *first = &s->stranger;
    bool by_name = o->wanted_count && (!o->span_count || !ev->span);
    for (int i = 0; i < o->span_count && o->wanted_count; i++) by_name |= o->spans[i] == ev->span;
    if (!by_name || s->unwanted == INT_MAX) return;
    if (!s->unwanted++) s->stranger = *ev;
    bool again = first->span == ev->span && ev->bar.time > first->bar.time && strcmp(first->symbol, ev->symbol) == 0;
    if (again || s->unwanted == MANY) tell_unwanted(s, now);
}

void sequence_take(sequence *s, const feed_raw *raw, double now) {
    CHECK(s->given == s->events, "%d events were not given", s->events - s->given);
    s->events = s->given = 0;
    const feed_event *ev = &raw->event;
    if (ev->kind == FEED_QUOTE && !feed_wants(s->rules.options, ev->symbol, 0)) return;
    if (ev->kind == FEED_QUOTE && s->rules.machine && (double)ev->bar.time > now + AHEAD_MOST) {
        tell_ahead(s, ev, now);
        return;
    }
    if (ev->kind != FEED_BAR) {
        if (ev->kind == FEED_NOTE && ev->note == FEED_END && s->unwanted && s->unwanted != INT_MAX)
            tell_unwanted(s, now);
        put(s, ev);
        s->event[s->events - 1].at = now;
        return;
    }
    if (!feed_wants(s->rules.options, ev->symbol, ev->span)) {
        take_unwanted(s, ev, now);
        return;
    }
    s->unwanted = INT_MAX;
    if (s->rules.machine && is_ahead(s, raw, now)) {
        tell_ahead(s, ev, now);
        return;
    }
    series *r = find(s, ev->symbol, ev->span);
    if (!r) {
        tell_series_most(s, ev, now);
        return;
    }
    const bar *newest = newest_of(r);
    if (newest && ev->bar.time <= newest->time)
        judge_known(s, r, raw, now);
    else
        take_new(s, r, raw, now);
}

bool sequence_next(sequence *s, feed_event *ev) {
    if (s->given == s->events) return false;
    *ev = s->event[s->given++];
    return true;
}

// The moment at which a held bar has closed by the clock.
static double due_of(const sequence *s, const series *r) {
    double grace = s->rules.options->grace;
    return r->holds && grace > 0 ? (double)r->held.bar.end + grace : INFINITY;
}

double sequence_due(const sequence *s) {
    double due = INFINITY;
    if (!(s->rules.options->grace > 0)) return due;
    for (int i = 0; i < s->count; i++) due = fmin(due, due_of(s, s->item[i]));
    return due;
}

bool sequence_tick(sequence *s, double now) {
    CHECK(s->given == s->events, "%d events were not given", s->events - s->given);
    s->events = s->given = 0;
    if (!(s->rules.options->grace > 0)) return false;
    for (int i = 0; i < s->count && !s->events; i++) {
        series *r = s->item[i];
        if (!r->holds || due_of(s, r) > now) continue;
        r->holds = false;
        give(s, r, &r->held, NULL, now);
    }
    return s->events > 0;
}

void sequence_know(sequence *s, const char *symbol, int64_t span, const bar *newest, int64_t count) {
    series *r = find(s, symbol, span);
    if (!r || !count) return;
    r->first = r->count = 0;
    r->restarted = true;
    for (int64_t i = count > FEED_KNOWN ? count - FEED_KNOWN : 0; i < count; i++) keep(r, &newest[i]);
}
