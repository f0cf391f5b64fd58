// The feed of CSV files that grow.
//
// A file is looked at every `poll` seconds, as changes on network drives and Windows folders tell nobody. What is
// read is remembered by its last bytes: where they are others, the last rows were written over and are read again from
// the first line that differs, or the file was written anew and is read from its beginning. A line counts once its
// newline is there.
#include "base/clock.h"
#include "base/file.h"
#include "live/feed_source.h"
#include "live/lines.h"
#include "live/row_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ANCHOR = 4096, RECENT = 2 };

typedef struct {
    char *path;
    char symbol[BARS_SYMBOL_ROOM];
    row_reader *reader;
    lines *lines;
    int fd; // -1: absent
    dev_t device;
    ino_t inode;
    off_t offset, size; // read so far; at the last look
    struct timespec written;
    char anchor[ANCHOR]; // the bytes before `offset`
    size_t anchored;
    bool first; // what it held when it was opened is being read
    bool again; // it is read anew
    bool drained;
    bool has; // `raw` waits
    feed_raw raw;
} grown;

typedef struct {
    grown *file[FEED_PARTS_MOST];
    int files;
    bool holds;   // newest rows are held back
    bool machine; // the clock is the machine's
    double looked, poll;
    feed_note note; // of a file, to be told before anything else; FEED_NOTES: none
    const grown *noted;
} source;

static void free_file(grown *g) {
    if (!g) return;
    if (g->fd >= 0) close(g->fd);
    row_reader_free(g->reader);
    free(g->lines);
    free(g->path);
    free(g);
}

static void close_files(void *arg) {
    source *s = arg;
    for (int i = 0; i < s->files; i++) free_file(s->file[i]);
    free(s);
}

// From the beginning.
static void rewind_file(grown *g) {
    g->offset = 0;
    g->anchored = 0;
    g->has = g->drained = false;
    lines_reset(g->lines);
    row_reader_reset(g->reader);
}

static bool open_file(grown *g, err *e) {
    struct stat st;
    g->fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (g->fd < 0) return file_fail(e, g->path, "cannot be read", errno);
    bool ok = !fstat(g->fd, &st) && S_ISREG(st.st_mode);
    if (!ok) {
        close(g->fd);
        g->fd = -1;
        return err_input(e, "%s: is no regular file; a pipe is read with -", g->path);
    }
    g->device = st.st_dev;
    g->inode = st.st_ino;
    g->size = -1;
    g->written = st.st_mtim;
    rewind_file(g);
    return true;
}

static void keep_anchor(grown *g, const char *bytes, size_t n) {
    if (n >= ANCHOR) {
        memcpy(g->anchor, bytes + n - ANCHOR, ANCHOR);
        g->anchored = ANCHOR;
        return;
    }
    size_t kept = g->anchored + n > ANCHOR ? ANCHOR - n : g->anchored;
    memmove(g->anchor, g->anchor + g->anchored - kept, kept);
    memcpy(g->anchor + kept, bytes, n);
    g->anchored = kept + n;
}

// Reads a piece into the lines. False at the end, or where reading fails: it is tried again.
static bool read_piece(grown *g) {
    char bytes[LINES_ROOM];
    size_t room = lines_room(g->lines);
    ssize_t n = room ? pread(g->fd, bytes, room, g->offset) : 0;
    if (n <= 0) return false;
    lines_push(g->lines, bytes, (size_t)n);
    keep_anchor(g, bytes, (size_t)n);
    g->offset += n;
    return true;
}

// Goes back to the first line that was written over. False where all of it may have been.
static bool check_anchor(grown *g) {
    char now[ANCHOR];
    off_t begin = g->offset - (off_t)g->anchored;
    ssize_t n = pread(g->fd, now, g->anchored, begin);
    size_t same = 0, line = 0;
    if (n < 0) return true;
    while (same < (size_t)n && now[same] == g->anchor[same]) same++;
    if (same == g->anchored) return true;
    for (size_t i = 0; i < same; i++)
        if (g->anchor[i] == '\n' && i + lines_newline(g->lines) <= same) line = i + lines_newline(g->lines);
    if (!line) return false;
    g->anchored = line;
    g->offset = begin + (off_t)line;
    lines_drop(g->lines);
    g->again = true;
    return true;
}

// Looks at a file. True where `s->note` is to be told.
static bool look_at(source *s, grown *g) {
    struct stat st;
    bool there = !stat(g->path, &st), was = g->fd >= 0;
    s->noted = g;
    if (there && was && (st.st_ino != g->inode || st.st_dev != g->device)) {
        if (read_piece(g)) return g->drained = false; // the rest of the old one first
        close(g->fd);
        g->fd = -1;
        g->again = true;
        s->note = open_file(g, NULL) ? FEED_ROTATED : FEED_ABSENT;
        return true;
    }
    if (there && !was) {
        g->again = true;
        if (!open_file(g, NULL)) return false;
        s->note = FEED_BACK;
        return true;
    }
    if (!there && was) {
        if (read_piece(g)) return g->drained = false;
        close(g->fd);
        g->fd = -1;
        s->note = FEED_ABSENT;
        return true;
    }
    if (!there) return false;
    bool changed = st.st_size != g->size || st.st_mtim.tv_sec != g->written.tv_sec ||
                   st.st_mtim.tv_nsec != g->written.tv_nsec || time(NULL) - st.st_mtim.tv_sec < RECENT;
    if (!changed) return false;
    g->size = st.st_size;
    g->written = st.st_mtim;
    if (st.st_size >= g->offset - (off_t)g->anchored && check_anchor(g)) {
        if (read_piece(g)) g->drained = false;
        return false;
    }
    rewind_file(g);
    g->again = true;
    s->note = FEED_TRUNCATED;
    return true;
}

// The next row or note of a file, into `raw`. False where there is none now.
static bool read_row(grown *g) {
    while (!g->has && !g->drained) {
        text line;
        lines_answer a = lines_next(g->lines, &line);
        if (a == LINES_LONG) {
            feed_raw_note(&g->raw, FEED_UNREADABLE, "%s:%lld: is longer than %d bytes", g->path,
                (long long)g->lines->number, FEED_LINE_MOST);
            g->has = true;
        } else if (a == LINES_GOT) {
            g->has = row_reader_take(g->reader, line, g->lines->number, &g->raw);
        } else if (g->fd < 0 || !read_piece(g)) {
            g->drained = true;
            g->first = g->again = false;
        }
        if (!g->has) continue;
        g->raw.event.received = clock_seconds();
        g->raw.event.history = g->first;
        g->raw.written = (double)g->written.tv_sec + (double)g->written.tv_nsec * 1e-9;
        g->raw.again = g->first || g->again;
    }
    return g->has;
}

// The moment at which a row tells of a bar that has closed: its own close, or, where it is held back, its open, which
// closes the bar before it.
static int64_t tells_at(const source *s, const feed_raw *raw) {
    const bar *b = &raw->event.bar;
    bool closed = !s->holds || raw->state == FEED_CLOSED || (s->machine && raw->written >= (double)b->end);
    return closed && raw->state != FEED_UNFINISHED ? b->end : b->time;
}

static bool comes_before(const source *s, const feed_raw *a, const feed_raw *b) {
    if (a->event.kind == FEED_NOTE || b->event.kind == FEED_NOTE) return a->event.kind == FEED_NOTE;
    int64_t x = tells_at(s, a), y = tells_at(s, b);
    return x != y ? x < y : a->event.span > b->event.span;
}

static grown *first_row(source *s) {
    grown *best = NULL;
    for (int i = 0; i < s->files; i++)
        if (read_row(s->file[i]) && (!best || comes_before(s, &s->file[i]->raw, &best->raw))) best = s->file[i];
    return best;
}

static feed_answer tell(source *s, feed_raw *raw) {
    static const char *const texts[FEED_NOTES] = {[FEED_ROTATED] = "another file has taken its place",
        [FEED_TRUNCATED] = "was shortened or written anew; it is read from its beginning",
        [FEED_ABSENT] = "is not there any more",
        [FEED_BACK] = "is there again"};
    feed_note n = s->note;
    s->note = FEED_NOTES;
    return feed_raw_note(raw, n, "%s: %s", s->noted->path, texts[n]);
}

static feed_answer next_row(void *arg, feed_raw *raw, err *e) {
    source *s = arg;
    (void)e;
    for (;;) {
        grown *g = first_row(s);
        if (g) {
            *raw = g->raw;
            g->has = false;
            return FEED_GOT;
        }
        double now = clock_seconds();
        if (now - s->looked < s->poll) return FEED_NOTHING;
        bool news = false;
        for (int i = 0; i < s->files && s->note == FEED_NOTES; i++) {
            look_at(s, s->file[i]);
            news |= !s->file[i]->drained;
        }
        if (s->note != FEED_NOTES) return tell(s, raw);
        s->looked = now;
        if (!news) return FEED_NOTHING;
    }
}

static double wait_for_look(const void *arg) {
    const source *s = arg;
    return s->looked + s->poll - clock_seconds();
}

// Spans

enum { STEPS = 512 };

// The steps between rows of one symbol at the end of a file.
static int find_steps(grown *g, int64_t *step) {
    feed_raw raw;
    int64_t before = 0;
    char symbol[BARS_SYMBOL_ROOM] = "";
    int count = 0;
    text line;
    row_reader_span(g->reader, 1);
    read_piece(g); // the header
    for (bool tail = false; count < STEPS;) {
        lines_answer a = lines_next(g->lines, &line);
        if (a == LINES_NONE && !read_piece(g)) break;
        if (a != LINES_GOT || !row_reader_take(g->reader, line, g->lines->number, &raw)) continue;
        if (raw.event.kind != FEED_BAR) continue;
        if (raw.event.span != 1) return 0; // rows say their spans
        off_t end = lseek(g->fd, 0, SEEK_END);
        if (!tail && end > g->offset + LINES_ROOM / 2) {
            g->offset = (end - LINES_ROOM / 2) & ~(off_t)1;
            lines_drop(g->lines);
            if (read_piece(g)) lines_next(g->lines, &line); // cut off
            tail = true;
            continue;
        }
        tail = true;
        if (before && !strcmp(symbol, raw.event.symbol) && raw.event.local > before)
            step[count++] = when_step_span(raw.event.local - before);
        before = raw.event.local;
        memcpy(symbol, raw.event.symbol, sizeof symbol);
    }
    return count;
}

// The wanted span that most steps are; where all are wanted, the smallest step. 0 where none fits.
static int64_t fitting_span(const feed_options *o, const int64_t *step, int count) {
    int64_t best = 0, least = 0;
    int most = 0;
    for (int i = 0; i < count; i++)
        if (!least || step[i] < least) least = step[i];
    for (int k = 0; k < o->span_count; k++) {
        int times = 0;
        for (int i = 0; i < count; i++) times += step[i] == o->spans[k];
        if (times > most) {
            most = times;
            best = o->spans[k];
        }
    }
    return o->span_count ? best : least;
}

static bool find_span(grown *g, const feed_options *o, err *e) {
    int64_t step[STEPS];
    if (o->span_count == 1) return true;
    int count = find_steps(g, step);
    int64_t span = fitting_span(o, step, count);
    rewind_file(g);
    row_reader_span(g->reader, span);
    return span || !count ||
           err_input(e, "%s: no step between its rows is a span that is wanted; is it the file?", g->path);
}

static void *open_files(const char *where, const feed_options *o, err *e) {
    feed_part part[FEED_PARTS_MOST];
    int parts;
    if (!feed_parts_read(where, o, part, &parts, e)) return NULL;
    source *s = calloc(1, sizeof *s);
    NEED(s, "no memory for a feed");
    s->note = FEED_NOTES;
    s->poll = o->poll;
    s->holds = o->hold == FEED_HOLD_NEWEST;
    s->machine = o->clock == FEED_CLOCK_MACHINE;
    bool ok = true;
    for (int i = 0; ok && i < parts; i++) {
        grown *g = s->file[s->files++] = calloc(1, sizeof *g);
        NEED(g && (g->lines = calloc(1, sizeof *g->lines)), "no memory for a feed");
        g->fd = -1;
        g->first = true;
        g->path = part[i].path;
        part[i].path = NULL;
        memcpy(g->symbol, part[i].symbol, sizeof g->symbol);
        g->reader = row_reader_new(o, g->path, g->symbol, 0, e);
        ok = g->reader && open_file(g, e) && find_span(g, o, e);
    }
    feed_parts_done(part, parts);
    if (ok) return s;
    close_files(s);
    return NULL;
}

const feed_source feed_source_file = {.takes = "FILE",
    .help = "a CSV file that grows; SYMBOL=FILE,SYMBOL=FILE for several",
    .hold = FEED_HOLD_NEWEST,
    .clock = FEED_CLOCK_MACHINE,
    .open = open_files,
    .close = close_files,
    .next = next_row,
    .wait = wait_for_look};
