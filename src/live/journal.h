// The journal: the one file in which a live session keeps its books, decisions, intents, trades and events. SQLite.
//
// Everything that follows from a bar is one transaction (journal_begin, rows, journal_commit): after a kill a bar is in
// the file with all that was decided on it, or not at all. An intent is acted on only behind its commit. With `power`
// every commit is on the disk before journal_commit returns; without, it survives a kill of the process, not a power
// cut, which may cost the newest bars; the file itself stays whole in both.
//
// One session writes (a lock beside the file); any number of others read meanwhile. Money and prices are whole numbers
// of 1e-8, times seconds since 1970, UTC.
#ifndef TRADEWIND_LIVE_JOURNAL_H
#define TRADEWIND_LIVE_JOURNAL_H

#include "base/json.h"
#include "data/bars.h"
#include "live/books.h"

#include <stddef.h>

typedef struct journal journal;

typedef enum {
    DECISION_MADE,   // the model answered, and the rule decided
    DECISION_CAUGHT, // the bar came while nobody could trade on it: no answer, no decision
    DECISION_HELD,   // a limit held the decision back, or changed it: see `why`
    DECISION_COLD,   // features have not warmed up
    DECISION_KINDS
} decision_kind;

// A closed bar of the finest frame and what was made of it.
typedef struct {
    const char *symbol;
    bar bar;
    double made; // wall clock, seconds
    decision_kind kind;
    int64_t inputs;      // checksum of what the model saw; -1: nothing
    const float *answer; // of quantiles the median's
    int64_t width;       // 0: no answer
    double score, volatility;
    int side;
    account_order order; // that was decided
    bool changes;        // it is an intent
    int64_t equity;
    const char *why; // of DECISION_HELD; NULL: nothing
} journal_decision;

// A wish for a position, decided at the close of a bar.
typedef struct {
    // Rising through restarts, and from one state to the next that goes on with later bars: the seconds since 1970 of
    // `time`, or one more than the newest id where that is not larger. 0: there is none.
    int64_t id;
    char symbol[BARS_SYMBOL_ROOM];
    int64_t time;  // close of the bar
    int64_t until; // close of the next bar of that span: then it is late
    account_order order;
    int64_t lots, price; // of the order, signed; the close
    bool sent;
} journal_intent;

// Books of an instrument as they are kept; the readable part of them stands beside.
typedef struct {
    const char *symbol;
    int64_t time;     // open of the newest bar
    const books *now; // of which the numbers are taken
    bool has_order;   // decided at the newest close, not filled yet
    account_order order;
} journal_books;

typedef enum { JOURNAL_STOP, JOURNAL_WARNING, JOURNAL_NOTE } journal_weight;

// Opens or makes the file for writing. NULL on failure: ERR_INPUT where it is another program's or another session
// writes to it; ERR_RUN where the disk fails.
journal *journal_open(const char *path, bool power, err *e);

// For reading beside a session that may write. ERR_INPUT where there is none. Rows are compared with their sums where
// no session writes: one that does has compared them when it began.
journal *journal_read(const char *path, err *e);
void journal_close(journal *j);

// True where the file is there, and it or its folder cannot be written by anybody: a read-only disk, or no right to.
bool journal_is_read_only(const char *path);

// True where a session writes to the file.
bool journal_is_in_use(const char *path);

// One transaction. False, with nothing of it kept, where the file cannot be written, as where another program has it
// locked for 30 s; rows that failed before are told here too, so that their results need not be looked at.
bool journal_begin(journal *j, err *e);
bool journal_commit(journal *j, err *e);

// The longest wait for another program's lock since the last call, in seconds.
double journal_locked(journal *j);

// Takes back everything since journal_begin.
void journal_abandon(journal *j);

// Moves what was committed from the log beside the file into the file, where there is much of it. Between transactions.
void journal_rest(journal *j);

// Rows, inside a transaction.
void journal_put_bar(journal *j, const char *symbol, int frame, const bar *b);
void journal_put_decision(journal *j, const journal_decision *d);
int64_t journal_put_intent(journal *j, const journal_intent *i); // its id; older ones that are open are replaced
void journal_put_filled(journal *j, const char *symbol, int64_t bar, bool refused);
void journal_put_sent(journal *j, int64_t id);

// The fill of the newest intent of an instrument at a quote: when, bid and ask, and the one that it filled at.
void journal_put_fill(journal *j, const char *symbol, int64_t time, double bid, double ask, int64_t price);
void journal_put_trade(journal *j, const char *symbol, const books_trade *t);
void journal_put_books(journal *j, const journal_books *b);
void journal_put_state(journal *j, const char *symbol, int64_t time, const void *state, size_t bytes);
void journal_put_memory(
    journal *j, const char *symbol, int64_t time, const char *weights, const void *memory, size_t bytes);
void journal_put_event(
    journal *j, double at, int64_t time, const char *symbol, const char *kind, const char *answer, const char *text);
void journal_put_word(journal *j, const char *key, const char *text);

// Reading. What is not there is told apart from what cannot be read, which is a failure everywhere below.

// A word of the session, which the caller frees; *text is NULL where there is none.
bool journal_word(journal *j, const char *key, char **text, err *e);

// Books of an instrument; *there is false where there are none. `now` must have been made (books_init).
bool journal_take_books(journal *j, const char *symbol, books *now, int64_t *time, bool *has_order,
    account_order *order, bool *there, err *e);

// The newest state of an instrument, which the caller frees, and the bar that it is after. NULL where it cannot be
// read, and where there is none (ERR_INPUT).
void *journal_take_state(journal *j, const char *symbol, int64_t *time, size_t *bytes, err *e);

// Memory of an agent for an instrument, which the caller frees, as far as these weights have one; *memory is NULL where
// there is none. A memory of another bar than `time` is damaged (ERR_INPUT).
bool journal_take_memory(
    journal *j, const char *symbol, int64_t time, const char *weights, void **memory, size_t *bytes, err *e);

// Bars of an instrument and a frame that end later than a moment, or the newest `most` of them, rising; the caller
// frees them. `*count` is 0 where there are none. NULL where they cannot be read.
bar *journal_bars(journal *j, const char *symbol, int frame, int64_t after, int64_t most, int64_t *count, err *e);

// All trades of an instrument, which the caller frees; there is room for one more. NULL where they cannot be read.
books_trade *journal_trades(journal *j, const char *symbol, int64_t *count, err *e);

// The newest intent of an instrument; its id is 0 where there is none.
bool journal_newest_intent(journal *j, const char *symbol, journal_intent *to, err *e);

// Rows of a table of the file: for readers that show them. `sql` has one `?1`, a symbol, at most. Each row is an object
// by its columns' names; NULL where it cannot be read.
json_t *journal_rows(journal *j, const char *sql, const char *symbol, err *e);

// The first failure of the file, in words; "" where there is none.
const char *journal_trouble(const journal *j);

const char *decision_kind_name(decision_kind k);

#endif
