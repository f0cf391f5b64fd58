#include "backtest/replay.h"

#include <stdlib.h>

static bool has(account_amount a) {
    return a.share || a.price;
}

bool replay_init(replay *p, const quotes *q, const account_terms *t, const account_rules *r, int64_t orders, err *e) {
    *p = (replay){.quotes = q,
        .rules = *r,
        .last_open = t->last_open,
        .day_close = t->day_close,
        .swaps = has(r->swap_long) || has(r->swap_short),
        .equity = calloc((size_t)q->count, sizeof *p->equity),
        .trade = calloc((size_t)orders + 1, sizeof *p->trade),
        .room = orders + 1};
    account_init(&p->books, &p->rules);
    if (p->equity && p->trade) return true;
    replay_done(p);
    return err_run(e, "no memory for a backtest of %lld bars", (long long)q->count);
}

void replay_done(replay *p) {
    free(p->equity);
    free(p->trade);
    *p = (replay){0};
}

static void note_fill(replay *p, int64_t i, const account_fill *f) {
    CHECK(p->trades < p->room, "more trades than %lld orders", (long long)p->room - 1);
    replay_trade *t = &p->trade[p->trades];
    p->turnover += (double)f->value / 1e8;
    if (f->opens) *t = (replay_trade){.units = f->units, .entry = i, .entry_price = f->price, .value = f->value};
    t->traded += (double)f->value / 1e8;
    t->cost += ((double)f->cost + (double)f->commission - (double)f->lent) / 1e8;
    t->commission += f->commission;
    if (f->opens) return;
    t->exit = i;
    t->exit_price = f->price;
    t->result = f->result;
    t->swap = f->lent;
    t->reason = (account_reason)f->reason;
    p->trades++;
}

static void note(replay *p, int64_t i, const account_events *ev) {
    for (int k = 0; k < ev->count; k++) note_fill(p, i, &ev->fill[k]);
    p->ambiguous += ev->ambiguous;
    if (!ev->refused) return;
    replay_refusals *r = &p->refused;
    if (!r->no_margin && !r->costs_above) {
        r->bar = i;
        r->margin = ev->margin;
        r->cost = ev->cost;
    }
    r->no_margin += ev->refused == ACCOUNT_NO_MARGIN;
    r->costs_above += ev->refused == ACCOUNT_COSTS_ABOVE;
}

static void close_at(replay *p, int64_t i, int64_t price, account_reason why) {
    account_events ev = {.count = 0};
    account_close(&p->books, &p->rules, price, why, &ev);
    note(p, i, &ev);
}

static bool ends_day(const quotes *q, int64_t i) {
    return i + 1 == q->count || when_day_of(q->time[i + 1]) != when_day_of(q->time[i]);
}

// Inlined into the loop over all bars, of which it is the whole cost.
static inline void step(replay *p, int64_t i, const account_order *o) {
    const quotes *q = p->quotes;
    account_bar b = {q->open[i], q->high[i], q->low[i], q->close[i], q->spread ? q->spread[i] : 0};
    account_events ev;
    bool was = p->books.units != 0;
    if (p->swaps && was) {
        int64_t nights = when_day_of(q->time[i]) - when_day_of(q->time[i - 1]);
        if (nights) account_night(&p->books, &p->rules, nights, q->close[i - 1]);
    }
    account_step(&p->books, &p->rules, o, &b, &ev);
    p->held += was || p->books.entered;
    if (ev.count || ev.refused || ev.ambiguous) note(p, i, &ev);
    if (p->day_close && p->books.units && ends_day(q, i)) close_at(p, i, b.close, ACCOUNT_BY_DAY);
    p->equity[i] = account_equity(&p->books, b.close);
}

void replay_bar(replay *p, int64_t i, const account_order *o) {
    step(p, i, o);
}

void replay_end_day(replay *p, int64_t i) {
    if (p->books.units) close_at(p, i, p->quotes->close[i], ACCOUNT_BY_DAY);
    p->equity[i] = account_equity(&p->books, p->quotes->close[i]);
}

void replay_fill(replay *p, int64_t i, int64_t price, const account_order *o) {
    account_rules r = p->rules;
    account_bar b = {price, price, price, price, 0};
    account_events ev = {.count = 0};
    r.spread = (account_amount){0};
    if (!p->books.state) account_take(&p->books, &r, o, &b, &ev);
    note(p, i, &ev);
    p->books.entered = false; // the next bar is a whole one of the position's
    p->equity[i] = account_equity(&p->books, p->quotes->close[i]);
}

static bool refuse_all(const replay *p, err *e) {
    const replay_refusals *r = &p->refused;
    char when[32];
    when_text(when, sizeof when, p->quotes->time[r->bar]);
    if (r->costs_above)
        return err_input(e,
            "account: costs are above the capital: the first order, of %s, costs %.2f and the cash is %.2f; lower "
            "account.commission, account.spread or the position, or raise account.cash",
            when, (double)r->cost / 1e8, (double)p->rules.cash / 1e8);
    return err_input(e,
        "account: no order could be filled: the first one, of %s, needs a margin of %.2f and costs of %.2f, and the "
        "cash is %.2f; raise account.cash or account.leverage, or lower the position",
        when, (double)r->margin / 1e8, (double)r->cost / 1e8, (double)p->rules.cash / 1e8);
}

bool replay_end(replay *p, err *e) {
    const quotes *q = p->quotes;
    int64_t last = q->count - 1;
    if (p->books.units) close_at(p, last, p->last_open ? q->open[last] : q->close[last], ACCOUNT_BY_END);
    if (p->books.state)
        return err_input(
            e, "account: an amount grew beyond 9e10, the most that an account can hold; lower the positions");
    p->equity[last] = p->books.cash;
    if (!p->trades && (p->refused.no_margin || p->refused.costs_above)) return refuse_all(p, e);
    return true;
}

bool replay_events(replay *p, const signals_orders *o, err *e) {
    int64_t next = 0;
    for (int64_t i = 0; i < p->quotes->count; i++) {
        const account_order *order = NULL;
        if (next < o->count && o->item[next].bar == i) order = &o->item[next++].order;
        step(p, i, order);
    }
    return replay_end(p, e);
}

bool replay_orders(replay *p, const signals_orders *o, err *e) {
    return replay_plain(p, o) ? replay_end(p, e) : replay_events(p, o, e);
}
