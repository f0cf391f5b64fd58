// The feed of files that are read whole, as import reads them, and given in order of (close, coarser first, symbol): a
// coarse bar that closes with a fine one is known when the fine one is decided on.
//
// With a speed, bars come as their closes do, but closed hours are passed over: a step counts as one bar of the finest
// span at most.
#include "base/clock.h"
#include "live/feed_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bars_list list;
    char symbol[BARS_SYMBOL_ROOM]; // of bars whose file names none
} replay_file;

typedef struct {
    const bars *bars;
    const char *symbol;
    int64_t next;
} replay_series;

typedef struct {
    replay_file *file;
    int files;
    replay_series *series;
    int count;
    double speed;         // 0: as fast as they are taken
    int64_t finest, last; // span, and the close of the bar given last
    double due;           // of the next bar, by clock_seconds
    int ready;            // the series that comes next; -1: not looked for
} source;

static void close_replay(void *arg) {
    source *s = arg;
    for (int i = 0; i < s->files; i++) bars_list_done(&s->file[i].list);
    free(s->file);
    free(s->series);
    free(s);
}

// FILES[@SPEED]; a @ without a number behind it belongs to the name.
static bool read_speed(char *where, double *speed, err *e) {
    char *mark = strrchr(where, '@'), *end;
    *speed = 0;
    if (!mark || !mark[1]) return true;
    double v = strtod(mark + 1, &end);
    if (*end || strpbrk(mark, "xX")) return true;
    if (!(v > 0 && v <= 1e9)) return err_input(e, "feed: a speed of %.40s; give a number above 0, as in @60", mark + 1);
    *speed = v;
    *mark = 0;
    return true;
}

static bool add_series(source *s, const replay_file *f, const char *path, const feed_options *o, err *e) {
    for (int i = 0; i < f->list.count; i++) {
        const bars *b = &f->list.item[i];
        const char *symbol = *b->symbol ? b->symbol : f->symbol;
        if (!feed_wants(o, symbol, b->span)) continue;
        for (int k = 0; k < s->count; k++)
            if (s->series[k].bars->span == b->span && !strcmp(s->series[k].symbol, symbol))
                return err_input(e, "%s: its symbol and span are those of another file; name it SYMBOL=FILE", path);
        s->series[s->count++] = (replay_series){.bars = b, .symbol = symbol};
        if (!s->finest || b->span < s->finest) s->finest = b->span;
    }
    return true;
}

// Names are told where spans would do.
static bool refuse_unwanted(const feed_options *o, const source *s, err *e) {
    char has[32], wants[32], came[FEED_LIST_ROOM] = "", wanted[FEED_LIST_ROOM];
    feed_options by_span = *o;
    const char *last = NULL;
    int names = 0;
    by_span.wanted_count = 0;
    for (int i = 0; i < s->files; i++)
        for (int k = 0; k < s->file[i].list.count; k++) {
            const bars *b = &s->file[i].list.item[k];
            const char *name = *b->symbol ? b->symbol : s->file[i].symbol;
            if (feed_wants(&by_span, "", b->span) && (!last || strcmp(last, name) != 0))
                feed_list_name(came, sizeof came, names++, last = name);
        }
    feed_list_wanted(wanted, sizeof wanted, o);
    if (names)
        return err_input(e,
            "feed: none of the bars are wanted: they are of %s, and those of %s are wanted; is it the "
            "file? SYMBOL=FILE names bars that have no symbol",
            came, wanted);
    const bars *b = &s->file[0].list.item[0];
    return err_input(e, "feed: none of the bars are wanted: the first are of %s%s%s, and %s is wanted; is it the file?",
        when_span_text(has, sizeof has, b->span), *b->symbol ? " of " : "", b->symbol,
        when_span_text(wants, sizeof wants, o->spans[0]));
}

static bool load(source *s, const feed_part *part, int parts, const feed_options *o, err *e) {
    bars_options with = o->bars;
    int series = 0;
    with.span_count = 0; // a file shows its span
    s->file = calloc((size_t)parts, sizeof *s->file);
    NEED(s->file, "no memory for a feed");
    for (; s->files < parts; s->files++) {
        replay_file *f = &s->file[s->files];
        if (!bars_read_list(&f->list, part[s->files].path, &with, e)) return false;
        memcpy(f->symbol, part[s->files].symbol, sizeof f->symbol);
        series += f->list.count;
    }
    s->series = calloc((size_t)series, sizeof *s->series);
    NEED(s->series, "no memory for a feed");
    for (int i = 0; i < parts; i++)
        if (!add_series(s, &s->file[i], part[i].path, o, e)) return false;
    return s->count || refuse_unwanted(o, s, e);
}

static void *open_replay(const char *where, const feed_options *o, err *e) {
    source *s = calloc(1, sizeof *s);
    feed_part part[FEED_PARTS_MOST];
    int parts = 0;
    char *list = strdup(where);
    NEED(s && list, "no memory for a feed");
    s->ready = -1;
    bool ok = read_speed(list, &s->speed, e) && feed_parts_read(list, o, part, &parts, e);
    if (ok) {
        ok = load(s, part, parts, o, e);
        feed_parts_done(part, parts);
    }
    free(list);
    if (ok) return s;
    close_replay(s);
    return NULL;
}

static bool comes_before(const replay_series *a, const replay_series *b) {
    int64_t x = a->bars->bar[a->next].end, y = b->bars->bar[b->next].end;
    if (x != y) return x < y;
    if (a->bars->span != b->bars->span) return a->bars->span > b->bars->span;
    return strcmp(a->symbol, b->symbol) < 0;
}

// The series whose bar is next; -1: all are at their end.
static int first_of(const source *s) {
    int best = -1;
    for (int i = 0; i < s->count; i++)
        if (s->series[i].next < s->series[i].bars->count && (best < 0 || comes_before(&s->series[i], &s->series[best])))
            best = i;
    return best;
}

static void schedule(source *s, int64_t end) {
    const double behind = 0.1; // a process that was stopped does not catch up
    double now = clock_seconds();
    if (s->last)
        s->due = fmax(s->due, now - behind) + fmin((double)(end - s->last), (double)s->finest) / s->speed;
    else
        s->due = now;
    s->last = end;
}

static feed_answer next_bar(void *arg, feed_raw *raw, err *e) {
    source *s = arg;
    (void)e;
    if (s->ready < 0) {
        s->ready = first_of(s);
        if (s->ready < 0) return FEED_OVER;
        const replay_series *r = &s->series[s->ready];
        if (s->speed > 0) schedule(s, r->bars->bar[r->next].end);
    }
    if (s->speed > 0 && clock_seconds() < s->due) return FEED_NOTHING;
    replay_series *r = &s->series[s->ready];
    s->ready = -1;
    const bar *b = &r->bars->bar[r->next++];
    *raw = (feed_raw){
        .event = {.kind = FEED_BAR, .span = r->bars->span, .bar = *b, .local = b->time}, .state = FEED_CLOSED};
    memcpy(raw->event.symbol, r->symbol, strlen(r->symbol) + 1);
    return FEED_GOT;
}

static double wait_for_bar(const void *arg) {
    const source *s = arg;
    return s->ready >= 0 && s->speed > 0 ? s->due - clock_seconds() : 0;
}

const feed_source feed_source_replay = {.word = "replay:",
    .takes = "replay:FILE[@SPEED]",
    .help = "bars of a file as if they came now; @60 is a minute a second, without it all at once",
    .hold = FEED_HOLD_NONE,
    .clock = FEED_CLOCK_BARS,
    .open = open_replay,
    .close = close_replay,
    .next = next_bar,
    .wait = wait_for_bar};
