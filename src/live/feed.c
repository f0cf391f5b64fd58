#include "live/feed.h"

#include "base/clock.h"
#include "data/bars_rows.h"
#include "data/bars_text.h"
#include "live/sequence.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct live_feed {
    feed_options options;
    const feed_source *kind;
    void *source;
    sequence *order;
    bool machine; // the clock is the machine's
    double now;   // of the other clock
    bool ended, told;
};

static const feed_source *const sources[] = {
#define FEED_SOURCE(name) &feed_source_##name,
#include "live/feed_source.def"
#undef FEED_SOURCE
};
enum { SOURCES = sizeof sources / sizeof *sources };

const char *feed_note_key(feed_note n) {
    static const char *const keys[FEED_NOTES] = {[FEED_LATE] = "late",
        [FEED_MISSING] = "missing",
        [FEED_DOUBLED] = "doubled",
        [FEED_REVISED] = "revised",
        [FEED_OUT_OF_ORDER] = "out_of_order",
        [FEED_UNREADABLE] = "unreadable",
        [FEED_TORN] = "torn",
        [FEED_TRUNCATED] = "truncated",
        [FEED_ROTATED] = "rotated",
        [FEED_ABSENT] = "absent",
        [FEED_BACK] = "back",
        [FEED_REJECTED] = "rejected",
        [FEED_UNWANTED] = "unwanted",
        [FEED_END] = "end"};
    CHECK((int)n >= 0 && n < FEED_NOTES, "note %d", (int)n);
    return keys[n];
}

feed_answer feed_raw_note(feed_raw *raw, feed_note n, const char *fmt, ...) {
    *raw = (feed_raw){.event = {.kind = FEED_NOTE, .note = n}};
    char all[1280];
    va_list args;
    va_start(args, fmt);
    vsnprintf(all, sizeof all, fmt, args);
    va_end(args);
    bars_text_show(raw->event.text, sizeof raw->event.text, (text){all, strlen(all)});
    return FEED_GOT;
}

bool feed_wants(const feed_options *o, const char *symbol, int64_t span) {
    bool wanted = !o->span_count || !span;
    for (int i = 0; i < o->span_count && !wanted; i++) wanted = o->spans[i] == span;
    if (!wanted || !o->wanted_count) return wanted;
    for (int i = 0; i < o->wanted_count; i++)
        if (strcmp(o->wanted[i], symbol) == 0) return true;
    return false;
}

void feed_list_name(char *to, size_t room, int count, const char *name) {
    enum { NAMED = 3 };
    size_t used = strlen(to);
    if (count > NAMED) return;
    const char *before = count ? ", " : "";
    snprintf(to + used, room - used, "%s%s", before, count == NAMED ? "..." : *name ? name : "no name");
}

void feed_list_wanted(char *to, size_t room, const feed_options *o) {
    *to = 0;
    for (int i = 0; i < o->wanted_count; i++) feed_list_name(to, room, i, o->wanted[i]);
}

// The source of a name, and the name behind its word.
static const feed_source *source_of(const char *from, const char **where) {
    for (int i = 0; i < SOURCES; i++) {
        const char *word = sources[i]->word;
        size_t n = word ? strlen(word) : 0;
        bool whole = n && word[n - 1] != ':';
        if (n && (strncmp(from, word, n) != 0 || (whole && from[n]))) continue;
        *where = from + n;
        return sources[i];
    }
    return NULL;
}

bool live_feed_is_named(const char *from) {
    const char *where;
    const feed_source *s = source_of(from, &where);
    return s && s->word;
}

void live_feed_help(FILE *out) {
    for (int i = 0; i < SOURCES; i++) fprintf(out, "  %-22s %s\n", sources[i]->takes, sources[i]->help);
}

live_feed *live_feed_open(const feed_options *o, err *e) {
    const char *where;
    const feed_source *kind = source_of(o->from, &where);
    CHECK(kind && o->span_count >= 0 && o->span_count <= FEED_SPANS_MOST, "a feed of %d spans", o->span_count);
    live_feed *f = calloc(1, sizeof *f);
    NEED(f, "no memory for a feed");
    f->options = *o;
    f->kind = kind;
    if (!f->options.symbol) f->options.symbol = "";
    if (f->options.hold == FEED_HOLD_AUTO) f->options.hold = kind->hold;
    if (f->options.clock == FEED_CLOCK_AUTO) f->options.clock = kind->clock;
    if (!(f->options.poll > 0)) f->options.poll = FEED_POLL;
    f->machine = f->options.clock == FEED_CLOCK_MACHINE;
    f->source = kind->open(where, &f->options, e);
    if (!f->source) {
        live_feed_close(f);
        return NULL;
    }
    f->order = sequence_new(
        &(sequence_rules){.options = &f->options, .hold = f->options.hold == FEED_HOLD_NEWEST, .machine = f->machine});
    return f;
}

void live_feed_close(live_feed *f) {
    if (!f) return;
    if (f->source) f->kind->close(f->source);
    sequence_free(f->order);
    free(f);
}

void live_feed_know(live_feed *f, const char *symbol, int64_t span, const bar *newest, int64_t count) {
    sequence_know(f->order, symbol, span, newest, count);
}

int live_feed_series(const live_feed *f) {
    return sequence_series(f->order);
}

double live_feed_now(const live_feed *f) {
    if (!f->machine) return f->now;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int live_feed_descriptor(const live_feed *f) {
    return f->kind->descriptor && !f->ended ? f->kind->descriptor(f->source) : -1;
}

// Takes raw events until one gives an event.
static feed_answer look(live_feed *f, feed_event *ev, err *e) {
    feed_raw raw;
    for (int tries = 0; tries < 4096; tries++) { // bars that are passed over do not keep the caller waiting
        if (sequence_next(f->order, ev)) return FEED_GOT;
        if (f->ended) return FEED_OVER;
        if (sequence_tick(f->order, live_feed_now(f))) continue;
        feed_answer a = f->kind->next(f->source, &raw, e);
        if (a == FEED_OVER) {
            f->ended = true;
            feed_raw_note(&raw, FEED_END, "the feed has ended");
        }
        if (a == FEED_NOTHING || a == FEED_FAILED) return a;
        if (raw.event.kind != FEED_NOTE && (double)raw.event.bar.end > f->now) f->now = (double)raw.event.bar.end;
        if (raw.event.received <= 0) raw.event.received = clock_seconds();
        sequence_take(f->order, &raw, live_feed_now(f));
    }
    return FEED_NOTHING;
}

// Waits for the source, a held bar's close or the deadline, whichever is first. False where a signal came.
static bool wait(const live_feed *f, double seconds) {
    int fd = live_feed_descriptor(f);
    double due = sequence_due(f->order) - live_feed_now(f);
    if (f->machine && due < seconds) seconds = due;
    double most = f->kind->wait ? f->kind->wait(f->source) : fd < 0 ? f->options.poll : seconds;
    if (most < seconds) seconds = most;
    if (!(seconds > 0)) return true;
    if (seconds > 3600) seconds = 3600;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    return ppoll(&p, fd >= 0, &t, NULL) >= 0 || errno != EINTR;
}

feed_answer live_feed_next(live_feed *f, double seconds, feed_event *ev, err *e) {
    double deadline = clock_seconds() + seconds;
    for (;;) {
        feed_answer a = look(f, ev, e);
        double left = deadline - clock_seconds();
        if (a != FEED_NOTHING || left <= 0 || !wait(f, left)) return a;
    }
}

bool live_feed_takes_targets(const live_feed *f) {
    return f->kind->put_targets != NULL;
}

bool live_feed_put_targets(live_feed *f, const feed_target *t, int count, err *e) {
    CHECK(f->kind->put_targets, "target positions for a feed that takes none");
    return f->kind->put_targets(f->source, t, count, e);
}

// Lists of files

void feed_parts_done(feed_part *part, int count) {
    for (int i = 0; i < count; i++) free(part[i].path);
}

// [SYMBOL=]FILE; a file whose own name has a = is taken whole.
static bool read_part(const char *at, size_t n, const feed_options *o, feed_part *part) {
    const char *mark = memchr(at, '=', n);
    struct stat st;
    char *whole = strndup(at, n);
    NEED(whole, "no memory for a path");
    snprintf(part->symbol, sizeof part->symbol, "%s", o->symbol ? o->symbol : "");
    part->path = whole;
    bool named = mark && mark > at && bars_symbol_ok((text){at, (size_t)(mark - at)}) && stat(whole, &st) != 0;
    if (!named) return n > 0;
    size_t name = (size_t)(mark - at);
    memcpy(part->symbol, at, name);
    part->symbol[name] = 0;
    memmove(whole, whole + name + 1, n - name);
    return *whole != 0;
}

bool feed_parts_read(const char *list, const feed_options *o, feed_part *part, int *count, err *e) {
    bool ok = true;
    for (*count = 0; ok;) {
        size_t n = strcspn(list, ",");
        if (*count == FEED_PARTS_MOST) {
            ok = err_input(e, "feed: more than %d files; give fewer", FEED_PARTS_MOST);
            break;
        }
        ok = read_part(list, n, o, &part[*count]) ||
             err_input(e, "feed: '%.60s' has a file without a name; write FILE or SYMBOL=FILE, parted by commas", list);
        ++*count;
        if (!list[n]) break;
        list += n + 1;
    }
    if (!ok) feed_parts_done(part, *count);
    return ok;
}
