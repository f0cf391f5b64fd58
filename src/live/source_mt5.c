// The feed of a MetaTrader 5 expert advisor: a folder in which both sides replace small documents (live/exchange.h).
//
// advisor.txt is the advisor's status and its heartbeat; bars_*.txt are the newest closed bars of each symbol and span,
// written before it; targets.txt is what it is to hold. Documents that are torn, late, repeated or of an older run of
// the advisor change nothing. Bars of all documents that are read together come in order of (close, coarser first).
#include "base/clock.h"
#include "base/file.h"
#include "data/when.h"
#include "live/exchange.h"
#include "live/feed_source.h"
#include "live/row_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAPERS_MOST = FEED_SERIES_MOST, NAME_ROOM = 128, SCAN_EVERY = 1, SILENT_AFTER = 15, BEAT_EVERY = 5 };

// A file as it was seen last.
typedef struct {
    ino_t inode;
    off_t size;
    struct timespec written;
} sight;

// A document of bars.
typedef struct {
    char name[NAME_ROOM];
    char symbol[BARS_SYMBOL_ROOM];
    sight seen;
    int64_t epoch, seq; // of the newest one that was read
    bool torn;          // what was seen last is
    bool known;         // one has been read: the next ones are no history
    row_reader *reader;
    char *bytes; // being read; NULL: none is
    text rest;
    int64_t line;
    bool has, history;
    feed_raw raw;
} paper;

typedef struct {
    const feed_options *options; // with the zone that is usual for MetaTrader
    feed_options own;
    char *folder;
    int dir;
    paper *paper[PAPERS_MOST];
    int papers;
    sight seen;
    exchange_status status;
    bool met, silent, torn, clock_told; // the advisor was heard of, but not lately; its status is torn
    when_zone *zone;
    double looked, scanned, heard, beat;
    int64_t told_refused;
    int64_t epoch, seq; // of the target positions
    feed_target *target;
    int targets;
    bool sends, nameless; // one of them waits for its symbol
} source;

static void free_paper(paper *p) {
    row_reader_free(p->reader);
    free(p->bytes);
    free(p);
}

static void close_exchange(void *arg) {
    source *s = arg;
    for (int i = 0; i < s->papers; i++) free_paper(s->paper[i]);
    if (s->dir >= 0) close(s->dir);
    when_zone_free(s->zone);
    free(s->target);
    free(s->folder);
    free(s);
}

static void *open_exchange(const char *where, const feed_options *o, err *e) {
    if (!*where) {
        err_input(e, "feed: mt5: names no folder; write mt5:FOLDER");
        return NULL;
    }
    source *s = calloc(1, sizeof *s);
    NEED(s && (s->folder = strdup(where)), "no memory for a feed");
    s->own = *o;
    if (!o->bars.tz || !*o->bars.tz) s->own.bars.tz = "mt5";
    s->options = &s->own;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s->epoch = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    s->dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = s->dir >= 0 || file_fail(e, where, "cannot be opened as a folder", errno);
    ok = ok && (s->zone = when_zone_new(s->own.bars.tz, e));
    s->heard = clock_seconds();
    if (ok) return s;
    close_exchange(s);
    return NULL;
}

// Documents

// Opens a document that is not the one seen last. -1 where it is, or where there is none.
static int open_new(const source *s, const char *name, sight *seen) {
    struct stat st;
    if (fstatat(s->dir, name, &st, 0) || !S_ISREG(st.st_mode)) return -1;
    sight now = {st.st_ino, st.st_size, st.st_mtim};
    bool same = now.inode == seen->inode && now.size == seen->size && now.written.tv_sec == seen->written.tv_sec &&
                now.written.tv_nsec == seen->written.tv_nsec;
    if (same) return -1;
    int fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) *seen = now;
    return fd;
}

// The bytes of a document that is not the one seen last, which the caller frees. NULL where there is nothing new.
static char *read_new(const source *s, const char *name, sight *seen, size_t *size) {
    int fd = open_new(s, name, seen);
    char *bytes = fd >= 0 ? malloc(EXCHANGE_MOST + 1) : NULL;
    ssize_t n = 0;
    *size = 0;
    while (bytes && *size <= EXCHANGE_MOST && (n = read(fd, bytes + *size, EXCHANGE_MOST + 1 - *size)) > 0)
        *size += (size_t)n;
    if (fd >= 0) close(fd);
    if (!bytes) return NULL;
    char *less = realloc(bytes, *size + 1);
    if (less) bytes = less;
    bytes[*size] = 0;
    return bytes;
}

// A torn document is looked at again, in case the file's times do not show that it was completed.
static void look_again(sight *seen) {
    seen->inode = 0;
    seen->size = -1;
}

static paper *paper_of(source *s, const char *name) {
    for (int i = 0; i < s->papers; i++)
        if (!strcmp(s->paper[i]->name, name)) return s->paper[i];
    if (s->papers == PAPERS_MOST || strlen(name) >= NAME_ROOM) return NULL;
    paper *p = s->paper[s->papers++] = calloc(1, sizeof *p);
    NEED(p, "no memory for %s", name);
    memcpy(p->name, name, strlen(name) + 1);
    look_again(&p->seen);
    return p;
}

// Finds documents of bars that are new.
static void scan(source *s) {
    int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    for (struct dirent *f; d && (f = readdir(d));) {
        size_t n = strlen(f->d_name);
        if (n > 9 && !strncmp(f->d_name, "bars_", 5) && !strcmp(f->d_name + n - 4, ".txt")) paper_of(s, f->d_name);
    }
    if (d) closedir(d);
    s->scanned = clock_seconds();
}

static feed_answer note_torn(const source *s, feed_raw *raw, const char *name, const char *why) {
    return feed_raw_note(raw, FEED_TORN, "%.80s/%.60s: %.40s; it is read again", s->folder, name, why);
}

// Reads a document of bars that is new. FEED_GOT: `raw` is a note.
static feed_answer load(source *s, paper *p, feed_raw *raw, err *e) {
    size_t size;
    exchange_bars b;
    err why = {0};
    char *bytes = read_new(s, p->name, &p->seen, &size);
    if (!bytes) return FEED_NOTHING;
    bool whole = exchange_bars_open(&b, bytes, size, &why), told = p->torn;
    p->torn = !whole;
    bool is_new = whole && b.head.epoch == s->status.head.epoch && (b.head.epoch != p->epoch || b.head.seq > p->seq);
    // Another run of the advisor may have written this one before its status.
    if (!whole || b.head.epoch > s->status.head.epoch) look_again(&p->seen);
    if (!is_new || !feed_wants(s->options, b.symbol, b.span)) {
        free(bytes);
        return whole || told ? FEED_NOTHING : note_torn(s, raw, p->name, why.text);
    }
    row_reader_free(p->reader);
    p->reader = row_reader_new(s->options, p->name, b.symbol, b.span, e);
    if (!p->reader) {
        free(bytes);
        return FEED_FAILED;
    }
    memcpy(p->symbol, b.symbol, sizeof p->symbol);
    p->epoch = b.head.epoch;
    p->seq = b.head.seq;
    p->history = !p->known;
    p->known = true;
    p->bytes = bytes;
    p->rest = b.rows;
    p->line = 0;
    return FEED_NOTHING;
}

// The next row of a document. False where there is none.
static bool read_row(paper *p) {
    text line;
    while (p->bytes && !p->has) {
        if (!bars_text_line(&p->rest, &line)) {
            free(p->bytes);
            p->bytes = NULL;
            break;
        }
        p->has = row_reader_take(p->reader, line, ++p->line, &p->raw);
        p->raw.event.history = p->history;
        p->raw.event.received = clock_seconds();
        p->raw.again = true;
        if (p->raw.state == FEED_AS_TOLD) p->raw.state = FEED_CLOSED;
    }
    return p->has;
}

static bool comes_before(const feed_event *a, const feed_event *b) {
    if (a->kind == FEED_NOTE || b->kind == FEED_NOTE) return a->kind == FEED_NOTE;
    return a->bar.end != b->bar.end ? a->bar.end < b->bar.end : a->span > b->span;
}

static bool take_row(source *s, feed_raw *raw) {
    paper *best = NULL;
    for (int i = 0; i < s->papers; i++)
        if (read_row(s->paper[i]) && (!best || comes_before(&s->paper[i]->raw.event, &best->raw.event)))
            best = s->paper[i];
    if (!best) return false;
    *raw = best->raw;
    best->has = false;
    return true;
}

// The advisor

// The server's clock against the zone that is told. At the beginning a difference ends the feed; later it is a note, as
// a server may change its clock at another hour than its zone does.
static feed_answer check_clock(source *s, feed_raw *raw, err *e) {
    enum { APART = 900 };
    size_t hint = 0;
    int64_t now = (int64_t)time(NULL), zone = when_local(s->zone, now, &hint) - now;
    int64_t off = s->status.clock - zone;
    if (!s->status.has_clock || (off < APART && off > -APART)) {
        s->clock_told = false;
        return FEED_NOTHING;
    }
    double server = (double)s->status.clock / 3600, told = (double)zone / 3600;
    if (!s->met) {
        err_input(e, "%s: the server's clock is %+.4g h from UTC, that of the zone %s %+.4g h; name its zone (data.tz)",
            s->folder, server, s->own.bars.tz, told);
        return FEED_FAILED;
    }
    if (s->clock_told) return FEED_NOTHING;
    s->clock_told = true;
    return feed_raw_note(raw, FEED_UNREADABLE,
        "%.80s: the server's clock is %+.4g h from UTC, that of the zone %+.4g h", s->folder, server, told);
}

// Reads the advisor's status where it is new. FEED_GOT: `raw` is a note.
static feed_answer meet(source *s, feed_raw *raw, err *e) {
    size_t size;
    err why = {0};
    exchange_status new;
    char *bytes = read_new(s, "advisor.txt", &s->seen, &size);
    if (!bytes) return FEED_NOTHING;
    bool whole = exchange_status_open(&new, bytes, size, &why), told = s->torn;
    free(bytes);
    s->torn = !whole;
    if (!whole) look_again(&s->seen);
    if (!whole) return told ? FEED_NOTHING : note_torn(s, raw, "advisor.txt", why.text);
    const exchange_head *old = &s->status.head;
    bool is_new = !s->met || new.head.epoch > old->epoch || (new.head.epoch == old->epoch &&new.head.seq > old->seq);
    if (!is_new) return FEED_NOTHING;
    bool back = s->silent;
    s->status = new;
    s->scanned = 0; // bars are written before it
    s->silent = false;
    s->heard = clock_seconds();
    feed_answer a = check_clock(s, raw, e);
    if (!s->met && a != FEED_FAILED) s->told_refused = new.refused;
    s->met = a != FEED_FAILED;
    if (a != FEED_NOTHING) return a;
    if (back) return feed_raw_note(raw, FEED_BACK, "%.100s: the advisor writes again", s->folder);
    if (new.refused <= s->told_refused) return FEED_NOTHING;
    s->told_refused = new.refused;
    return feed_raw_note(
        raw, FEED_REJECTED, "the advisor refused target position %lld: %s", (long long)new.refused, new.refused_text);
}

static feed_answer look(source *s, feed_raw *raw, err *e) {
    feed_answer a = meet(s, raw, e);
    double now = clock_seconds();
    if (a != FEED_NOTHING) return a;
    if (!s->silent && now - s->heard > SILENT_AFTER) {
        s->silent = true;
        return feed_raw_note(
            raw, FEED_ABSENT, "%.100s: nothing of the advisor for %d s; does it run?", s->folder, SILENT_AFTER);
    }
    if (!s->met || now - s->scanned < SCAN_EVERY) return FEED_NOTHING;
    scan(s);
    bool torn = false;
    for (int i = 0; i < s->papers && a == FEED_NOTHING; i++) {
        if (!s->paper[i]->bytes) a = load(s, s->paper[i], raw, e);
        torn |= s->paper[i]->torn;
    }
    if (a != FEED_NOTHING || torn) s->scanned = 0; // the others at once, and a torn one again
    return a;
}

// Target positions

// Replaces the document. It is not synced to the disk: it says what is wanted now, and is written anew all the time.
static bool write_targets(source *s, err *e) {
    static const char temp[] = "targets.txt.tmp", name[] = "targets.txt";
    size_t size, done = 0;
    char *text = exchange_targets(s->epoch, ++s->seq, (int64_t)time(NULL), s->target, s->targets, &size);
    int fd = openat(s->dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    int code = fd < 0 ? errno : 0;
    while (!code && done < size) {
        ssize_t n = write(fd, text + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) code = n ? errno : ENOSPC;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && close(fd) && !code) code = errno;
    if (!code && renameat(s->dir, temp, s->dir, name)) code = errno;
    free(text);
    s->beat = clock_seconds();
    return !code || file_fail(e, s->folder, "its targets.txt cannot be written", code);
}

// Symbols of the bars that have come: how many, two at most, and one of them.
static int count_symbols(const source *s, const char **one) {
    *one = NULL;
    for (int i = 0; i < s->papers; i++) {
        const char *symbol = s->paper[i]->symbol;
        if (*one && *symbol && strcmp(*one, symbol) != 0) return 2;
        if (*symbol) *one = symbol;
    }
    return *one != NULL;
}

// A position of data without a symbol is one of the only symbol that the advisor has. Until that is known it waits.
static bool name_targets(source *s, err *e) {
    const char *one;
    int symbols = count_symbols(s, &one);
    s->nameless = false;
    for (int i = 0; i < s->targets; i++) {
        feed_target *t = &s->target[i];
        if (*t->symbol) continue;
        if (symbols > 1 || s->targets > 1)
            return err_input(e, "%s: a target position names no symbol, and the advisor has several", s->folder);
        if (symbols) memcpy(t->symbol, one, strlen(one) + 1);
        s->nameless = !symbols;
    }
    return true;
}

static bool put_targets(void *arg, const feed_target *t, int count, err *e) {
    source *s = arg;
    CHECK(count >= 0 && count <= FEED_SERIES_MOST, "%d target positions", count);
    feed_target *copy = malloc((size_t)count * sizeof *copy + 1);
    NEED(copy, "no memory for target positions");
    memcpy(copy, t, (size_t)count * sizeof *copy);
    free(s->target);
    s->target = copy;
    s->targets = count;
    s->sends = true;
    return name_targets(s, e) && (s->nameless || write_targets(s, e));
}

static feed_answer next_event(void *arg, feed_raw *raw, err *e) {
    source *s = arg;
    double now = clock_seconds();
    // The advisor goes flat where this heartbeat stays away. A try that fails is made again.
    if (s->nameless && !name_targets(s, e)) return FEED_FAILED;
    if (s->sends && !s->nameless && now - s->beat > BEAT_EVERY) write_targets(s, NULL);
    if (take_row(s, raw)) return FEED_GOT;
    if (now - s->looked < s->own.poll) return FEED_NOTHING;
    feed_answer a = look(s, raw, e);
    if (a != FEED_NOTHING) return a;
    s->looked = now;
    return take_row(s, raw) ? FEED_GOT : FEED_NOTHING;
}

static double wait_for_look(const void *arg) {
    const source *s = arg;
    return s->looked + s->own.poll - clock_seconds();
}

const feed_source feed_source_mt5 = {.word = "mt5:",
    .takes = "mt5:FOLDER",
    .help = "a folder exchanged with a MetaTrader 5 expert advisor (doc/live_metatrader.md)",
    .hold = FEED_HOLD_NONE,
    .clock = FEED_CLOCK_MACHINE,
    .open = open_exchange,
    .close = close_exchange,
    .next = next_event,
    .wait = wait_for_look,
    .put_targets = put_targets};
