// Shared by the files of a session, and private to them.
#ifndef TRADEWIND_LIVE_SESSION_WORK_H
#define TRADEWIND_LIVE_SESSION_WORK_H

#include "data/volatility.h"
#include "live/agent.h"
#include "live/session.h"

enum { STATE_EVERY = 512 }; // bars between two states of the features

// Seconds that a bar waits for a coarser one that should have closed with it.
static const double WAIT_FOR_COARSE = 2;

// One instrument.
typedef struct {
    char symbol[BARS_SYMBOL_ROOM]; // "" where the data have one without a name
    int64_t series;                // of the run's data
    rule_record record;
    int64_t point;
    books books;
    volatility *meter;
    limits_state limits;
    limits_verdict before; // of notes and looks since the last bar
    account_order order;   // decided at the last close
    bool has_order, kept;  // `kept`: the journal has books of it
    bool other;            // its rule was made for other weights or settings before
    int64_t time, end;     // of the newest bar
    int64_t taken;         // open of the newest bar that an earlier process took; INT64_MIN: none
    int64_t unsaved;       // bars since the last state
    int64_t unsent;        // intent to be noted as sent with the next bar; 0: none
    int64_t astray;        // id of the line that told another program to be flat behind the books; 0: none
    bool waits;            // for a coarser bar
    feed_event waiting;
    int64_t closed[FRAMES_MOST]; // end of the newest coarser bar, and the open of the first finest bar behind it
    int64_t begun[FRAMES_MOST];
    int64_t warmed;
} trader;

// A note that has not been committed yet.
typedef struct {
    const char *symbol, *kind, *answer;
    char *text;
    int64_t time;
} session_event;

struct session {
    session_options options;
    bool by_agent; // an agent decides, in place of a model and a rule
    trained own;   // the run on its own data, until the session begins
    trained_agent own_agent;
    const task *task; // of these
    bool owns, cold;
    session_listener listener;
    board *board;
    contract *trained_on; // of the weights; NULL: they carry none
    live_model *model;    // stays where it is, until another takes its place
    live_agent *agent;    // in place of a model
    journal *journal;
    hours *hours; // of the instruments, where days end in the account or orders fill at quotes
    limits limits;
    account_terms terms;
    account_rules rules; // of the first instrument, for showing
    build_options label;
    char *tz, *columns;
    bars_options reading;
    unsigned made; // frames that are made here: bits
    int64_t span[FRAMES_MOST];
    int frames, traders;
    trader *trader;
    float *answer;
    char weights[WEIGHTS_IDENTITY_ROOM];
    session_tally tally;
    double now;          // of the newest event
    session_event *note; // [notes] of the transaction
    int notes;
};

// The rules of all instruments, from the journal or made of the run, and their books.
bool session_make_rules(session *s, const char *run, err *e);

// For those who score the answers later (live/drift.h): the run that answers from here on. Inside a transaction.
void session_keep_meaning(session *s, const char *run);

// Opens a model on the board; it takes the place of the one before only where nothing fails.
bool session_open_model(session *s, const trained_options *run, err *e);
void session_close_model(session *s);

// Opens an agent on the board.
bool session_open_agent(session *s, err *e);

// An agent's answer, as a decision of a bar, and the order that it leads to; the position is kept where the answer is
// not finite. `finite` is what it says of itself.
bool session_ask_agent(session *s, int k, journal_decision *o, account_order *next, bool *finite, err *e);

// A bar that nobody can trade, for an agent that remembers.
bool session_show_agent(session *s, int k, int64_t end, err *e);

// Memory of an agent: into the journal, inside a transaction, and back, after the books.
void session_keep_memory(session *s, int k);
bool session_take_memory(session *s, int k, err *e);

// True where an instrument can be answered for.
bool session_is_ready(const session *s, int k);

// The position that stays as it is.
account_order session_keep_position(const account *a);

// The close of a bar, as that of the instrument that was trained on.
limits_verdict session_judge_price(session *s, int k, const bar *b);

// Warms up: from the run's data, or from files.
bool session_warm_data(session *s, const dataset *d, int64_t until, err *e);
bool session_warm_files(session *s, const char *const *file, int files, int64_t until, err *e);

// A bar of the finest frame into features and volatility; what the rule needs of it.
double session_push(session *s, int k, const bar *b);

// The state of an instrument's features and volatility, and back.
void session_save_state(session *s, int k);
bool session_load_state(session *s, int k, err *e);

// Takes a bar of the finest frame.
bool session_bar(session *s, int k, const feed_event *ev, err *e);

// True where an order that was decided at the close of the newest bar may fill at a quote of this moment.
bool session_fills_at(const session *s, int k, const bar *newest, int64_t time);

// Fills the order of an instrument at the quote of an event, inside a transaction.
bool session_fill_quote(session *s, int k, const feed_event *ev, int64_t time, err *e);

// Takes a quote of the feed.
bool session_quote(session *s, int k, const feed_event *ev, err *e);

// Takes the bar that waits for a coarser one, where there is such.
bool session_release(session *s, int k, err *e);

// Closes an instrument's position at once, in a transaction of its own: the order fills at the next open.
bool session_go_flat(session *s, int k, err *e);

// Gives an intent that has been committed; that it was given is noted with what is kept next.
void session_give(session *s, int k, const session_intent *i);

// The limits' state of an instrument, of all where k < 0, inside a transaction.
void session_keep_limits(session *s, int k);

// The key of a word that belongs to an instrument.
enum { SESSION_KEY_ROOM = BARS_SYMBOL_ROOM + 8 };
const char *session_key(char key[SESSION_KEY_ROOM], const char *what, const trader *t);

// An event for the journal, inside a transaction, and behind its commit for the listener. `kind` must outlive it.
void session_note(session *s, int k, int64_t time, const char *kind, limits_answer answer, const char *text);

// The same in a transaction of its own, with the limits' state: one of them may have said stop.
bool session_tell(session *s, int k, int64_t time, const char *kind, limits_answer answer, const char *text, err *e);

// The end of a transaction with notes: they are told, or forgotten where it fails or is taken back.
bool session_commit(session *s, err *e);
void session_abandon(session *s);

#endif
