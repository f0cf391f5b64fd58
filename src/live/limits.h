// Limits: the safety rules of live trading, as pure functions on an explicit state.
//
// A rule is a threshold and an answer, both keys of the section `live:` (train/live_keys.h). Nothing here reads a
// clock, a file or a feed: the caller says what happened and when, and does what is answered. Answers, from mild to
// severe:
//
//     ignore nothing; it is counted
//     note   it goes into the journal, and nothing else
//     skip   no position is opened or grown for this bar; one that is held may be closed or made smaller, and its stop
//            and target stay
//     flat   the position is closed, and none is opened for this bar; of a loss of the day until the next day, of the
//            whole loss until it is cleared, of a stale feed until a bar comes
//     stop   positions are closed and the session ends; it does not start again until it is told to (limits_clear)
//
// The most severe answer of a bar counts. The state is a plain struct that the session saves with every decision, so
// that a restart forgets neither a day's loss nor a stop.
#ifndef TRADEWIND_LIVE_LIMITS_H
#define TRADEWIND_LIVE_LIMITS_H

#include "live/feed.h"
#include "train/live_keys.h"

#include <stddef.h>

// State that must survive a restart. Money is that of env/account.h: 1e-8.
typedef struct {
    int64_t start_equity; // at the beginning; 0: not known yet
    int64_t last_equity;  // newest
    int64_t day;          // days since 1970, by limits.day_start; LIMITS_NO_DAY: none yet
    int64_t day_equity;   // when the day began
    bool day_over;        // the day's loss was reached, on this day
    bool ended;           // the whole loss was reached
    bool is_stale;        // no bar came for too long, until one comes
    bool is_other;        // the newest price cannot be of the instrument
    double price;         // newest close that can; 0: none yet
    bool stopped;         // a rule said stop
    limits_rule stopped_by;
    int64_t broken[LIMITS_RULES];     // times that each rule has been broken
    double machine, steady;           // both clocks at the last look; 0: none yet. `steady` does not survive a restart
    int orders;                       // in `order`
    double order[LIMITS_ORDERS_MOST]; // moments of the orders of the last minute, oldest first
} limits_state;

static const int64_t LIMITS_NO_DAY = INT64_MIN;

void limits_begin(limits_state *s);

// A verdict: an answer, the rule that gave it and a sentence for the journal. Those of notes and looks between two bars
// are joined, and stand for the bar that follows (limits_worse).
typedef struct {
    limits_answer answer;
    limits_rule rule;
    char text[200];
} limits_verdict;

static const limits_verdict LIMITS_FINE = {LIMITS_PASS, LIMITS_RULES, ""};

void limits_worse(limits_verdict *v, const limits_verdict *other);

// A day's start, a loss of the day or in all: at every bar, with the equity at its close. `now` is in seconds, UTC.
limits_verdict limits_equity(const limits *l, limits_state *s, double now, int64_t equity);

// A note of the feed that concerns a series: late, doubled, revised, missing, out of order, unreadable.
limits_verdict limits_feed(const limits *l, limits_state *s, const feed_event *note);

// The close of a bar: `other` says why it cannot be of the instrument, or NULL. So it is where it is LIMITS_PRICE_TIMES
// times the newest one that can be, or a share of it that is as small. One verdict when it begins; limits_standing
// keeps it until a price can be of the instrument again.
enum { LIMITS_PRICE_TIMES = 10 };
limits_verdict limits_price(const limits *l, limits_state *s, double price, const char *other);

// Time without a bar: `due` is the earliest moment at which a series should have given its next bar, UTC; 0: none is
// due, as the market is closed. One verdict when it begins; limits_standing keeps it until a bar comes.
limits_verdict limits_stale(const limits *l, limits_state *s, double now, double due);

// Both clocks: the machine's, and one that only moves forward (clock_seconds). Called at every look; the first one
// after a restart only finds that the machine's clock went back.
limits_verdict limits_clock(const limits *l, limits_state *s, double machine, double steady);

// Answers of a model: any that is not finite breaks the rule.
limits_verdict limits_answers(const limits *l, limits_state *s, const float *answer, size_t count);

// Inputs of a model, scaled as it was given them: mean 0 and deviation 1 of what training saw. Inputs that are not
// finite count as outside.
limits_verdict limits_inputs(const limits *l, limits_state *s, const float *scaled, size_t count);

// The same where the caller has counted.
limits_verdict limits_outside(const limits *l, limits_state *s, size_t outside, size_t of);

// The position that an order may ask for: `wanted` and `held` in lots, a lot's value and the equity in money. Answer
// skip: as much of it as the limits allow; flat and stop: 0. Else, and where it is not above what is held on the same
// side, *allowed is `wanted`.
limits_verdict limits_position(
    const limits *l, limits_state *s, double wanted, double held, double lot_value, double equity, double *allowed);

// An order is about to be written. Where the rule is broken the order is not to be; else it is counted. Orders that
// only close or shrink are counted but never held back, unless the answer is stop.
limits_verdict limits_order(const limits *l, limits_state *s, double now, bool shrinks);

// Answers that stand, whatever this bar says: stopped, whole loss, the day over, stale, another
// instrument. Answers ignore and note do not
// stand.
limits_verdict limits_standing(const limits *l, const limits_state *s);

// Takes back a stop and a whole loss, at the user's word: the loss is counted from this equity on, and the next price
// is compared with none before.
void limits_clear(limits_state *s, int64_t equity);

// The state as text of one line (JSON), which the caller frees; and back. limits_load refuses what cannot be a state
// (ERR_INPUT), and leaves `s` as it was.
char *limits_save(const limits_state *s);
bool limits_load(limits_state *s, const char *text, size_t bytes, err *e);

#endif
