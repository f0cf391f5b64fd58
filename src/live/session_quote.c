// Fills at quotes (live.fills: quote): an order that was decided at a close fills at the first bid and ask behind it,
// or at the next open where none comes before.
#include "live/session_work.h"

#include "data/when.h"

bool session_fill_quote(session *s, int k, const feed_event *ev, int64_t time, err *e) {
    trader *t = &s->trader[k];
    books_trade ended[BOOKS_TRADES_MOST];
    int64_t price, refusals = t->books.refusals;
    int n = books_quote(&t->books, time, ev->bid, ev->ask, &t->order, &price, ended, e);
    if (n < 0) return false;
    journal_put_filled(s->journal, t->symbol, time, t->books.refusals > refusals);
    journal_put_fill(s->journal, t->symbol, time, ev->bid, ev->ask, price);
    for (int i = 0; i < n; i++) journal_put_trade(s->journal, t->symbol, &ended[i]);
    t->has_order = false;
    return true;
}

// Where days end in the account, an order of a day's last close is of the next day, and fills at its first open.
bool session_fills_at(const session *s, int k, const bar *newest, int64_t time) {
    const trader *t = &s->trader[k];
    if (!s->limits.quotes || !t->has_order) return false;
    return !t->books.day_close ||
           (when_day_of(time) == when_day_of(newest->time) && !hours_ends_day(s->hours, t->symbol, s->span[0], newest));
}

// A quote of before the close is no price of an order that was decided there; nor is one of behind a bar that waits, or
// that is late: the order fills at its open, as its high and low would else count for a position that came behind them.
static bool is_wanted(const session *s, int k, const feed_event *ev) {
    const trader *t = &s->trader[k];
    const bar newest = {.time = t->time, .end = t->end};
    return !ev->history && t->kept && !t->waits && ev->bar.time >= t->end &&
           session_fills_at(s, k, &newest, ev->bar.time) &&
           hours_none_since(s->hours, t->symbol, s->span[0], &newest, ev->bar.time);
}

bool session_quote(session *s, int k, const feed_event *ev, err *e) {
    trader *t = &s->trader[k];
    if (!is_wanted(s, k, ev)) return true;
    if (!journal_begin(s->journal, e)) return false;
    bool ok = session_fill_quote(s, k, ev, ev->bar.time, e);
    if (ok) journal_put_books(s->journal, &(journal_books){t->symbol, t->time, &t->books, t->has_order, t->order});
    if (ok) return session_commit(s, e);
    session_abandon(s);
    return false;
}
