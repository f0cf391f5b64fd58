// Where a feed's events come from. A broker's or an exchange's feed is one file: a `const feed_source` and a row in
// feed_source.def.
//
// A source never waits: `next` looks, and says FEED_NOTHING where there is nothing now. It may give bars twice, out of
// order, unfinished, or with figures that cannot be; live/sequence.h stands behind it. What it reads from outside it
// bounds: no allocation may depend on a number in the input. Rows of text are read with live/row_reader.h.
#ifndef TRADEWIND_LIVE_FEED_SOURCE_H
#define TRADEWIND_LIVE_FEED_SOURCE_H

#include "live/feed.h"

// Does the source know that a bar has closed?
typedef enum {
    FEED_AS_TOLD, // it does not: feed_hold decides
    FEED_CLOSED,
    FEED_UNFINISHED,
} feed_state;

typedef struct {
    feed_event event; // without `at`; `received` may be 0: now. `bar.end` is set
    feed_state state;
    bool again;     // a repeat is expected, as the source is read anew: it is told only where its figures are others
    double written; // when its row was written, seconds since 1970: behind the bar's close it has closed; 0: not known
} feed_raw;

typedef struct {
    const char *word;  // that its name begins with: "replay:"; "-" alone; NULL: the path of a file
    const char *takes; // for --help: "replay:FILE[@SPEED]"
    const char *help;  // one line
    feed_hold hold;    // where not told: FEED_HOLD_NONE or FEED_HOLD_NEWEST
    feed_clock clock;  // where not told
    // Opens `where`, the name behind the word. `o` outlives the source. NULL on failure.
    void *(*open)(const char *where, const feed_options *o, err *e);
    void (*close)(void *source);
    // The next raw event: FEED_GOT, FEED_NOTHING, FEED_OVER or FEED_FAILED.
    feed_answer (*next)(void *source, feed_raw *raw, err *e);
    int (*descriptor)(const void *source); // may be NULL: none
    double (*wait)(const void *source);    // seconds until next may have something; may be NULL: options.poll
    bool (*put_targets)(void *source, const feed_target *t, int count, err *e); // NULL: takes none
} feed_source;

#define FEED_SOURCE(name) extern const feed_source feed_source_##name;
#include "live/feed_source.def"
#undef FEED_SOURCE

// Makes `raw` a note. Returns FEED_GOT.
feed_answer feed_raw_note(feed_raw *raw, feed_note n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// A part of a list of files: [SYMBOL=]FILE, parted by commas.
typedef struct {
    char symbol[BARS_SYMBOL_ROOM]; // options.symbol or "" where none is given
    char *path;                    // the caller frees it
} feed_part;

enum { FEED_PARTS_MOST = 256 };

// Takes a list apart. On failure nothing is left to free; ERR_INPUT where it is none.
bool feed_parts_read(const char *list, const feed_options *o, feed_part *part, int *count, err *e);
void feed_parts_done(feed_part *part, int count);

// True where bars of this symbol and span are wanted; a span of 0 is any.
bool feed_wants(const feed_options *o, const char *symbol, int64_t span);

// A list of symbols for people: appends the name that comes behind `count` others, "..." in place of the fourth, and
// nothing behind that. feed_list_wanted makes the list of those that are wanted.
enum { FEED_LIST_ROOM = 4 * (BARS_SYMBOL_ROOM + 2) };
void feed_list_name(char *to, size_t room, int count, const char *name);
void feed_list_wanted(char *to, size_t room, const feed_options *o);

#endif
