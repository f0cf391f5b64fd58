// A session: a trained model, or an agent, on a stream of bars, on paper.
//
// Events of a feed go in, one at a time. A bar of the finest frame that has closed is taken whole, in this order: the
// order that was decided at the close before fills at its open, books and trades (live/books.h); its features and those
// of coarser bars that it may see (live/board.h); the model's answer (live/model.h) and the decision
// (backtest/decide.h), or an agent's action (live/agent.h); the limits (live/limits.h). All of it is one transaction of
// the journal, and only behind that is the new intent given to the caller. With the same bars, answers, books and
// trades are those of `backtest`.
//
// A bar that lay in the source before anybody could trade on it (feed_event.history) is caught up: books and features
// take it, nothing is decided. Bars that were taken before, by an earlier process too, change nothing.
//
// Nothing here waits, prints, or looks at a clock: time comes with the events.
#ifndef TRADEWIND_LIVE_SESSION_H
#define TRADEWIND_LIVE_SESSION_H

#include "live/feed.h"
#include "live/hours.h"
#include "live/journal.h"
#include "live/limits.h"
#include "live/model.h"
#include "task/agent_use.h"
#include "task/rule_file.h"

typedef struct {
    trained_options run;       // run, overrides, devices, version and listener are used
    const char *const *symbol; // [symbols] instruments to trade; 0: all of the run's data
    int symbols;
    const char *state; // path of the journal
    const char *const
        *history;   // [histories] bar files to warm up with, in place of the run's data; NULL: none is to be
    int histories;  // -1: the run's data
    bool rehearsal; // limits of the account act only where the description gives their keys
    bool build;     // coarser frames are made of the finest, also where training had files of them
} session_options;

typedef struct session session;

// One instrument, for those who show it.
typedef struct {
    const char *symbol;
    const books *books;
    const decide_rule *rule;
    const rule_record *record;
    const account_rules *rules;
    int64_t time;   // open of the newest bar; INT64_MIN: none yet
    int64_t needs;  // bars that are missing before the first answer, about; 0: none
    int64_t warmed; // bars of history
    bool stopped;
} session_view;

// An intent that has been committed: for whoever carries it out.
typedef struct {
    journal_intent intent;
    bool repeat; // it was given before, or may have been
} session_intent;

// `intent` gives it away; false where that failed: then it counts as not given, and the next start gives it again.
typedef struct {
    bool (*intent)(void *arg, const session_intent *i);
    void (*event)(void *arg, const char *symbol, int64_t time, const char *kind, const char *answer, const char *text);
    void *arg;
} session_listener;

// Opens run, data, limits and journal. NULL on failure. The options' texts and the listener must outlive it.
session *session_open(const session_options *o, const session_listener *l, err *e);

// Warms up with the history, bars that open at `until` or later left out (INT64_MAX: none), where the journal has
// nothing to go on from. To be called once, before the first event.
bool session_begin(session *s, int64_t until, err *e);
void session_close(session *s);

// Spans of bars that the feed is to give, finest first; how many.
int session_spans(const session *s, int64_t span[FEED_SPANS_MOST]);

// How the bar files of the run were read: zone, order of dates, columns. Texts live as long as the session.
bars_options session_reading(const session *s);

// Learns the hours of the instruments from the run's data, for telling missing bars from a closed market. Before
// session_begin.
bool session_hours(const session *s, hours *h, err *e);

// The limits of the description, as they act.
const limits *session_limits(const session *s);

// Tells a feed the bars that were taken already.
bool session_tell_known(session *s, live_feed *f, err *e);

// Gives the newest intent of each instrument again, where it may not have been carried out.
bool session_repeat(session *s, err *e);

// Another program was told by the line `id`, which the journal has not, to hold nothing of an instrument. What the
// books hold of it behind the next bar that is decided on, and that no limit holds back, is given again: by an intent
// with an id of its own, which is not in the journal either.
void session_ask_again(session *s, int k, int64_t id);

// Takes an event of the feed. False where the session cannot go on: the journal failed (nothing of the event is kept),
// or the account overflowed.
bool session_take(session *s, const feed_event *ev, err *e);

// Looks at clocks and at bars that are due; to be called about once a second, with the feed's time.
bool session_look(session *s, double now, double steady, err *e);

// Work that may wait until an event was taken: the journal is tidied.
void session_rest(session *s);

// Takes what waits for a coarser bar that did not come, as at the end of a feed.
bool session_flush(session *s, err *e);

// Closes all positions and opens no more, as `why` says, until session_clear; survives a restart.
bool session_kill(session *s, double now, const char *why, err *e);
bool session_clear(session *s, double now, err *e);

// Puts another run in the place of the model, with the rule that its `backtest` has kept. Features, books and what was
// decided stay; the next bar is answered by it. ERR_INPUT where its inputs, its rule or its instrument are others: then
// the model stays. The text of `run` must outlive the session.
bool session_replace(session *s, const char *run, double now, err *e);

// True once a stop was asked for, by a rule or by session_kill, and no position is left.
bool session_is_over(const session *s);

// The rule that said stop first; LIMITS_RULES where none has.
limits_rule session_stopped_by(const session *s);

// True where a stop stands from the beginning: it needs session_clear.
bool session_is_stopped(const session *s);

int session_count(const session *s);
session_view session_at(const session *s, int k);

// The model that decides, by a rule, or the agent; one of them is NULL.
const live_model *session_model(const session *s);
const trained_agent *session_agent(const session *s);

// The data that it answers for: names and spans of frames; and what is to be told about them.
const dataset *session_data(const session *s);
const data_notes *session_notes(const session *s);

journal *session_journal(session *s);

// Bars decided on, and intents, of this process.
typedef struct {
    int64_t bars, caught, cold, decided, held, intents;
} session_tally;
session_tally session_count_all(const session *s);

// Writes all trades of the journal as `backtest --trades` does; what is open is closed at the last close, as there.
bool session_write_trades(session *s, int k, const char *path, err *e);

#endif
