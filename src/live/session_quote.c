// Fills at quotes (live.fills: quote): an order that was decided at a close fills at the first bid and ask behind it,
// or at the next open where none comes before.
#include "live/session_work.h"

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

// A quote of before the close is no price of an order that was decided there.
static bool is_wanted(const session *s, int k, const feed_event *ev) {
    const trader *t = &s->trader[k];
    return s->limits.quotes && !ev->history && t->kept && t->has_order && ev->bar.time >= t->end;
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
