// A feed: closed bars as they come, from wherever they come. This header is for those who read a feed;
// live/feed_source.h is for those who write one.
//
//     -                          lines on standard input: CSV of any layout that import knows, JSON objects, key=value
//     FILE                       a CSV file that grows
//     replay:FILE[@SPEED]        the bars of a file; SPEED 1 is that of the market, 60 a minute a second; none: no
//     waiting mt5:FOLDER                 a folder exchanged with a MetaTrader 5 expert advisor (doc/live_metatrader.md)
//
// FILE may be SYMBOL=FILE, and several, parted by commas. Several feeds in one process are several objects.
//
// In front of every source stands the same sequencer. For each symbol and span it gives
//   - bars of strictly rising opens, each once and only when it has closed;
//   - a note in place of a bar that is behind the newest one given: a repeat, a revision, or one that was missing. What
//     was given is never taken back, so such a bar changes nothing that was decided;
//   - a note before a bar that came late or after a hole.
// A source may know that a bar has closed (replay, mt5, a line by default, "closed" of a JSON line). Else the newest
// bar is held back, and replaced by newer rows of the same stamp, until a later one opens, its row was written behind
// its close by the machine's clock, or, where `grace` asks for it, the clock has passed its close.
//
// Nothing here waits beyond the time given, reads ahead without bound, or believes a number before it is checked as
// data/bars.h does. A line that cannot be read is a note; the feed goes on. A feed belongs to one thread.
#ifndef TRADEWIND_LIVE_FEED_H
#define TRADEWIND_LIVE_FEED_H

#include "base/err.h"
#include "data/bars.h"

enum {
    FEED_SERIES_MOST = 1024, // symbols times spans of a feed
    FEED_SPANS_MOST = 8,     // that a feed is asked for
    FEED_LINE_MOST = 16384,  // bytes of a line
    FEED_KNOWN = 64,         // newest bars of a series that are compared with bars that come again
};

typedef enum {
    FEED_BAR,   // a bar has closed
    FEED_QUOTE, // bid and ask
    FEED_NOTE,  // something odd: see feed_note
} feed_kind;

// Notes. Those of a bar have its symbol, span and bar, those of a quote its symbol, and live/limits.h has an answer for
// each.
typedef enum {
    FEED_LATE,         // the bar that follows came more than `late` seconds after its close
    FEED_MISSING,      // bars are missing before the bar that follows; `count` of them
    FEED_DOUBLED,      // a bar that was given came again, unchanged
    FEED_REVISED,      // a bar that was given came again with other figures; `was` is what was given
    FEED_OUT_OF_ORDER, // a bar that was not given came after a later one
    FEED_UNREADABLE,   // a line, row or document that cannot be read, or a bar or a quote of the future
    FEED_TORN,         // a file was seen half written; it is read again
    FEED_TRUNCATED,    // a file was shortened; it is read again from its beginning
    FEED_ROTATED,      // another file has taken the place of the one that was read
    FEED_ABSENT,       // the file, the folder or the other side is not there (any more)
    FEED_BACK,         // it is there (again)
    FEED_REJECTED,     // the other side refused a target position
    FEED_UNWANTED,     // bars came, and none of a symbol that is wanted so far
    FEED_END,          // nothing will follow: the last event
    FEED_NOTES
} feed_note;

typedef struct {
    feed_kind kind;
    feed_note note;                // of FEED_NOTE
    char symbol[BARS_SYMBOL_ROOM]; // "" where the source names none
    int64_t span;                  // seconds; 0 where it is of no series
    bar bar;                       // UTC, as data/bars.h gives bars; of a quote its time alone
    bar was;                       // of FEED_REVISED
    double bid, ask;               // of a quote, or of a bar's close where the source has them; 0: none
    int64_t local;                 // the open as the source's own clock shows it; as `bar.time` where that is UTC
    int64_t count;                 // of FEED_MISSING
    double at;                     // when it came, by the feed's clock: live_feed_now
    double received;               // when its bytes were read, as clock_seconds: for latencies
    bool history;                  // it lay in the source when that was opened: for warming up, not for trading
    char text[192];                // of FEED_NOTE: one line for people, with the place in the source
} feed_event;

// Seconds since 1970, UTC.
typedef enum {
    FEED_CLOCK_AUTO,    // FEED_CLOCK_BARS for replay, else FEED_CLOCK_MACHINE
    FEED_CLOCK_MACHINE, // the machine's clock
    FEED_CLOCK_BARS,    // the greatest close or quote so far: nothing is late, for bars of the past
} feed_clock;

typedef enum {
    FEED_HOLD_AUTO, // as the source is: a growing file FEED_HOLD_NEWEST, lines FEED_HOLD_NONE
    FEED_HOLD_NONE, // every bar has closed, unless the source says otherwise
    FEED_HOLD_NEWEST,
} feed_hold;

#define FEED_POLL 0.01

typedef struct {
    const char *from;          // as in the head: "-", "gold.csv", "replay:gold.csv@60", "mt5:/folder"
    bars_options bars;         // tz, date_order and columns are used; keep_coarse, keep_filled and force by replay
    const int64_t *spans;      // [span_count] that are wanted; bars of others are passed over
    int span_count;            // with one span a source need not say the span of a bar
    const char *symbol;        // of bars whose source names none; NULL: ""
    const char *const *wanted; // [wanted_count] symbols; bars of others are passed over; 0: all
    int wanted_count;
    feed_hold hold;
    feed_clock clock;
    double grace; // seconds after its close by the clock at which a held bar is taken as it is; 0: never
    double late;  // seconds after its close from which a bar is late; 0: none is
    // Bars that a market should have had between two opens, both not counted; NULL: all between them where they are at
    // most 12 spans apart, else none, as the market was closed
    int64_t (*missing)(const void *arg, const char *symbol, int64_t span, int64_t from, int64_t to);
    const void *arg;
    double poll; // seconds between two looks at files; 0: FEED_POLL
} feed_options;

typedef struct live_feed live_feed;

// True where text begins or is a feed as above, and not the path of a plain file.
bool live_feed_is_named(const char *from);

// The feeds in a few lines, for --help.
void live_feed_help(FILE *out);

// Opens a feed. Everything that `o` points to must outlive it. NULL on failure.
live_feed *live_feed_open(const feed_options *o, err *e);
void live_feed_close(live_feed *f);

// Bars that were decided on already, rising, as a saved state has them: those at or before the newest of them are not
// given again. For a restart, before the first live_feed_next.
void live_feed_know(live_feed *f, const char *symbol, int64_t span, const bar *newest, int64_t count);

typedef enum {
    FEED_GOT,     // `ev` is the next event
    FEED_NOTHING, // there was none within the time
    FEED_OVER,    // the feed has ended; FEED_END was its last event
    FEED_FAILED,  // it cannot go on: `e` says why
} feed_answer;

// The next event, waited for at most `seconds`; 0 looks and returns. It returns early, with FEED_NOTHING, when a signal
// arrives.
feed_answer live_feed_next(live_feed *f, double seconds, feed_event *ev, err *e);

// A descriptor that becomes readable when live_feed_next may have an event; -1 where there is none: then live_feed_next
// is to be called every `poll` seconds. Events can be waiting inside already: poll it only after FEED_NOTHING.
int live_feed_descriptor(const live_feed *f);

// The time by the feed's clock.
double live_feed_now(const live_feed *f);

// Symbols and spans seen so far.
int live_feed_series(const live_feed *f);

// A target position for the other side, with an id that grows by one with each change, so that a repeat is harmless.
typedef struct {
    int64_t id;
    char symbol[BARS_SYMBOL_ROOM];
    double lots;         // below 0: short
    double stop, target; // prices; 0: none
    int64_t decided;     // close of the bar that it was decided on, UTC
    int64_t until;       // it is not to be begun after this moment, UTC; 0: no limit
} feed_target;

// True where the other side takes target positions (mt5).
bool live_feed_takes_targets(const live_feed *f);

// Puts the target positions of all instruments, one for each, in the place of those before; the other side sees the old
// ones or the new ones, whole. ERR_RUN where they cannot be written.
bool live_feed_put_targets(live_feed *f, const feed_target *t, int count, err *e);

// A note in a word ("revised").
const char *feed_note_key(feed_note n);

#endif
