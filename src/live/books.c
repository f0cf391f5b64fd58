#include "live/books.h"

#include "backtest/trades.h"
#include "data/when.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 4 };

bool books_init(books *b, const account_terms *t, int64_t point, const char *name, err *e) {
    account_rules rules;
    account_terms by_bars = *t;
    *b = (books){.day_close = t->day_close};
    by_bars.day_close = false; // two rows do not show where a day ends
    bool spreads = t->spread.measure == ACCOUNT_FROM_FILE;
    if (!account_rules_make(&rules, t, point, e) || !quotes_room(&b->rows, 2, point, spreads, name, e)) return false;
    if (!replay_init(&b->replay, &b->rows, &by_bars, &rules, ROOM, e)) {
        quotes_done(&b->rows);
        return false;
    }
    b->replay.quotes = &b->rows;
    b->equity = rules.cash;
    return true;
}

void books_done(books *b) {
    replay_done(&b->replay);
    quotes_done(&b->rows);
    *b = (books){0};
}

static void move_rows(quotes *q) {
    int64_t *const all[] = {q->time, q->open, q->high, q->low, q->close, q->spread};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) all[i][0] = all[i][1];
}

// Takes out the trades that ended; an open one moves to the first place.
static int take_trades(books *b, int64_t opened, int64_t now, books_trade *to) {
    replay *p = &b->replay;
    int n = (int)p->trades;
    CHECK(n <= BOOKS_TRADES_MOST, "%d trades in a bar", n);
    for (int k = 0; k < n; k++) {
        int64_t entry = k == 0 && opened ? b->entry : now;
        to[k] = (books_trade){p->trade[k], entry, now};
    }
    if (n) p->trade[0] = p->trade[n];
    p->trades = 0;
    return n;
}

static int64_t refusals_of(const replay *p) {
    return p->refused.no_margin + p->refused.costs_above;
}

// Puts the books right after fills at a moment, some of which may have ended trades.
static int settle(books *b, bool was, int64_t refused, int64_t now, books_trade *ended, err *e) {
    replay *p = &b->replay;
    if (p->books.state) {
        err_run(e, "account: an amount grew beyond 9e10, the most that an account can hold; lower the positions");
        return -1;
    }
    int n = take_trades(b, was, now, ended);
    bool fresh = p->books.units && (!was || n > 0);
    b->refusals += refusals_of(p) - refused;
    if (fresh) b->entry = now;
    b->held = !p->books.units ? 0 : fresh ? 1 : b->held + 1;
    if (!p->books.units || fresh) b->overdue = false;
    b->equity = p->equity[1];
    return n;
}

bool books_overnight(const books *b, const bar *x) {
    return b->day_close && b->replay.books.units && when_day_of(b->rows.time[1]) != when_day_of(x->time);
}

int books_bar(
    books *b, const bar *x, const account_order *order, bool ends_day, books_trade ended[BOOKS_TRADES_MOST], err *e) {
    replay *p = &b->replay;
    int64_t refused = refusals_of(p);
    bool was = p->books.units != 0;
    move_rows(&b->rows);
    if (!quotes_put(&b->rows, 1, x, "feed", e)) return -1;
    replay_bar(p, 1, order);
    if (b->day_close && ends_day) replay_end_day(p, 1);
    b->bars++;
    return settle(b, was, refused, x->time, ended, e);
}

// The nights up to a moment behind the newest bar: a position that is held over them pays swap before it changes, one
// that is opened behind them does not.
static void pass_nights(books *b, int64_t time) {
    replay *p = &b->replay;
    int64_t nights = when_day_of(time) - when_day_of(b->rows.time[1]);
    if (nights <= 0) return;
    if (p->books.units) account_night(&p->books, &p->rules, nights, b->rows.close[1]);
    b->rows.time[1] = time;
}

int books_quote(books *b, int64_t time, double bid, double ask, const account_order *order, int64_t *price,
    books_trade ended[BOOKS_TRADES_MOST], err *e) {
    replay *p = &b->replay;
    int64_t refused = refusals_of(p), held = b->held;
    bool was = p->books.units != 0, buys = order->units > p->books.units;
    if (!account_fixed(buys ? ask : bid, price) || *price <= 0) {
        err_input(
            e, "feed: a quote of %g is outside 1e-8 to 9e10, the prices that an account can hold", buys ? ask : bid);
        return -1;
    }
    pass_nights(b, time);
    replay_fill(p, 1, *price, order);
    int n = settle(b, was, refused, time, ended, e);
    b->held = p->books.units && was && !n ? held : 0; // a position counts its bars from the next one on
    return n;
}

bool books_decide(books *b, const decide_rule *r, const decide_prediction *at, account_order *next) {
    int64_t held = b->overdue && r->hold ? r->hold : b->held;
    b->overdue = false;
    return follow_decide(&b->replay, r, at, held, next);
}

void books_pass(books *b, const decide_rule *r) {
    b->overdue |= b->replay.books.units && r->hold && b->held % r->hold == 0;
}

bool books_ended(const books *b, books_trade *to) {
    replay p = b->replay;
    replay_trade open[ROOM];
    err unused = {0};
    int64_t equity[2];
    if (!p.books.units) return false;
    memcpy(open, p.trade, sizeof open);
    p.trade = open;
    p.equity = equity;
    if (b->day_close) replay_end_day(&p, 1);
    if (!replay_end(&p, &unused)) return false;
    *to = (books_trade){open[0], b->entry, b->rows.time[1]};
    return true;
}

// Saving: one list of the fields, for both ways.

static int64_t as_number(double v) {
    int64_t n;
    memcpy(&n, &v, sizeof n);
    return n;
}

static double as_real(int64_t n) {
    double v;
    memcpy(&v, &n, sizeof v);
    return v;
}

typedef struct {
    int64_t *at;
    bool save;
    int count;
} mover;

static void whole(mover *m, int64_t *v) {
    if (m->save)
        m->at[m->count] = *v;
    else
        *v = m->at[m->count];
    m->count++;
}

static void flag(mover *m, bool *v) {
    int64_t n = *v;
    whole(m, &n);
    *v = n != 0;
}

static void real(mover *m, double *v) {
    int64_t n = as_number(*v);
    whole(m, &n);
    *v = as_real(n);
}

static void move_trade(mover *m, replay_trade *t) {
    int64_t reason = t->reason;
    whole(m, &t->units);
    whole(m, &t->entry_price);
    whole(m, &t->exit_price);
    whole(m, &t->value);
    real(m, &t->traded);
    real(m, &t->cost);
    whole(m, &t->result);
    whole(m, &t->commission);
    whole(m, &t->swap);
    whole(m, &reason);
    t->reason = (account_reason)reason;
}

static void move_account(mover *m, account *a) {
    int64_t *const all[] = {&a->cash, &a->units, &a->basis, &a->stop, &a->target, &a->call, &a->paid, &a->lent,
        &a->commission, &a->spread, &a->slippage, &a->swap};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) whole(m, all[i]);
    int64_t state = a->state;
    whole(m, &state);
    a->state = (int32_t)state;
    flag(m, &a->entered);
}

static void move_all(mover *m, books *b) {
    replay *p = &b->replay;
    int64_t none = 0;
    replay_trade ended = {0}; // where nothing is open
    move_account(m, &p->books);
    move_trade(m, p->books.units ? &p->trade[0] : &ended);
    real(m, &p->turnover);
    int64_t *const all[] = {&p->held, &p->ambiguous, &p->unsized, &p->refused.no_margin, &p->refused.costs_above,
        &b->bars, &b->entry, &b->held, &b->equity, &b->refusals, &b->rows.time[1], &b->rows.open[1], &b->rows.high[1],
        &b->rows.low[1], &b->rows.close[1], b->rows.spread ? &b->rows.spread[1] : &none};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) whole(m, all[i]);
    flag(m, &b->overdue);
    CHECK(m->count <= BOOKS_NUMBERS, "%d numbers", m->count);
}

void books_save(const books *b, int64_t to[BOOKS_NUMBERS]) {
    books copy = *b; // its arrays are the same; saving only reads
    memset(to, 0, BOOKS_NUMBERS * sizeof *to);
    move_all(&(mover){.at = to, .save = true}, &copy);
}

bool books_load(books *b, const int64_t from[BOOKS_NUMBERS]) {
    int64_t copy[BOOKS_NUMBERS];
    memcpy(copy, from, sizeof copy);
    move_all(&(mover){.at = copy}, b);
    const account *a = &b->replay.books;
    bool has = a->units != 0;
    return a->state == ACCOUNT_OK && b->bars >= 0 && b->held >= 0 && (has || !b->held) &&
           (unsigned)b->replay.trade[0].reason < ACCOUNT_REASONS;
}

// Trades

bool books_write_trades(const char *path, const books_trade *trade, int64_t count, const account_rules *r, err *e) {
    size_t n = (size_t)count + 1;
    int64_t *time = malloc(2 * n * sizeof *time);
    replay_trade *list = malloc(n * sizeof *list);
    quotes q = {.time = time};
    replay p = {.quotes = &q, .rules = *r, .trade = list, .trades = count};
    bool ok = (time && list) || err_run(e, "no memory for %lld trades", (long long)count);
    for (int64_t i = 0; ok && i < count; i++) {
        list[i] = trade[i].trade;
        list[i].entry = 2 * i;
        list[i].exit = 2 * i + 1;
        time[2 * i] = trade[i].entry;
        time[2 * i + 1] = trade[i].exit;
    }
    ok = ok && trades_write(path, &p, e);
    free(list);
    free(time);
    return ok;
}
