// Books of one instrument, bar by bar: the replay of a backtest (backtest/replay.h) over two rows of quotes, the bar
// before and the present one, which move on.
//
// Fills, stops, costs and trades are therefore those of `backtest` for the same bars and orders, to the last digit.
// Nothing here closes what is open at the end: a session ends, the position stays.
#ifndef TRADEWIND_LIVE_BOOKS_H
#define TRADEWIND_LIVE_BOOKS_H

#include "backtest/follow.h"

// A position that was closed; times are opens of bars.
typedef struct {
    replay_trade trade; // its bars are not used
    int64_t entry, exit;
} books_trade;

enum { BOOKS_TRADES_MOST = 2 }; // of a bar: the one that was held, and one that was entered and left

typedef struct {
    quotes rows; // two: the bar before, the present one
    replay replay;
    bool day_close;   // account.day_close, by the days that books_bar is told
    int64_t bars;     // taken
    int64_t entry;    // open of the bar in which the open position was entered
    int64_t held;     // bars since then, that one included
    bool overdue;     // its time came while nothing was decided
    int64_t equity;   // at the last close
    int64_t refusals; // orders whose position was not opened
} books;

// Texts that hold for all instruments are the caller's. `name` stands before messages.
bool books_init(books *b, const account_terms *t, int64_t point, const char *name, err *e);

// Safe to call twice.
void books_done(books *b);

// Takes a bar: the order that was decided at the close before, or NULL, fills at its open. Behind the last bar of a
// day, `ends_day`, nothing is held where the account asks for that. Gives the trades that ended; how many, -1 where the
// bar's prices cannot be those of an account (ERR_INPUT) or the account overflowed.
int books_bar(
    books *b, const bar *x, const account_order *order, bool ends_day, books_trade ended[BOOKS_TRADES_MOST], err *e);

// Fills an order at a quote behind the newest bar: at the ask where it buys, at the bid where it sells. `time` is the
// quote's; `*price` gets what it filled at. Gives the trades that ended, as books_bar does.
int books_quote(books *b, int64_t time, double bid, double ask, const account_order *order, int64_t *price,
    books_trade ended[BOOKS_TRADES_MOST], err *e);

// True where a position is held that the day before `x` should have closed: its last bar was not known as such.
bool books_overnight(const books *b, const bar *x);

// Decides at that bar's close (backtest/follow.h). False where the order changes nothing.
bool books_decide(books *b, const decide_rule *r, const decide_prediction *at, account_order *next);

// A close at which nothing is decided: notes where the position's time comes.
void books_pass(books *b, const decide_rule *r);

// The open position, closed at the last close, as a backtest ends; false where there is none. The books stay.
bool books_ended(const books *b, books_trade *to);

// Everything that goes on after a restart, as whole numbers; and back, into books that were just made.
enum { BOOKS_NUMBERS = 48 };
void books_save(const books *b, int64_t to[BOOKS_NUMBERS]);
bool books_load(books *b, const int64_t from[BOOKS_NUMBERS]);

// Trades as a file of trades (backtest/trades.h).
bool books_write_trades(const char *path, const books_trade *trade, int64_t count, const account_rules *r, err *e);

#endif
