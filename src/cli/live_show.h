// Lines that `tradewind live` prints: its beginning, intents, events, its end; the state of a session from outside.
#ifndef TRADEWIND_CLI_LIVE_SHOW_H
#define TRADEWIND_CLI_LIVE_SHOW_H

#include "base/term.h"
#include "cli/cli.h"
#include "live/session.h"

// Times of decisions in seconds, in slots that grow by a fiftieth: percentiles of any number in little room.
enum { LATENCY_SLOTS = 1024 };
typedef struct {
    int64_t count, slot[LATENCY_SLOTS];
    double most;
} live_latency;

void live_latency_add(live_latency *l, double seconds);

// The time that a share of the decisions took at most.
double live_latency_at(const live_latency *l, double share);

typedef struct {
    const char *symbol;
    int64_t time;
    const char *kind, *answer, *text;
} live_event;

typedef struct {
    double seconds;
    const live_latency *latency; // or NULL
    const char *state, *trades;  // files, or NULL
} live_end;

// `held`: the feed begins with bars that warm up.
void live_show_begin(
    const cli_options *o, const session *s, const session_options *as, const char *const *feed, int feeds, bool held);
void live_show_intent(const cli_options *o, const session_intent *i, const session_options *as);
void live_show_event(const cli_options *o, const live_event *ev, progress *bar);
// Bars in a row that came late: their number, or, where it is 0, that further ones are only counted.
void live_show_late(const cli_options *o, int64_t bars, progress *bar);
void live_show_progress(progress *bar, const session *s, const feed_event *ev);
void live_show_end(const cli_options *o, session *s, const session_options *as, const live_end *end);

// The state of a run's session where none is named; the caller frees it.
char *live_default_state(const char *run);

// The state that a word names, itself or by the directory of its run; the caller frees it. ERR_INPUT for a directory
// that has none.
bool live_named_state(const char *named, char **state, err *e);

// Shows a journal, of a session that runs or not.
bool live_show_status(const cli_options *o, const char *state, err *e);

// Asks the session of a state to close its positions and end. ERR_INPUT for a file that is no state.
bool live_ask_stop(const cli_options *o, const char *state, err *e);

// Removes a state that nobody wants to keep.
void live_forget_state(const char *state);

#endif
