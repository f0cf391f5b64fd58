// The vectorised replay. It pays where orders are rare: marking is one product and one sum a bar, without a branch.
#include "backtest/replay.h"

static bool applies(const replay *p, const signals_orders *o) {
    if (p->swaps || p->day_close) return false;
    for (int64_t k = 0; k < o->count; k++)
        if (o->item[k].order.stop || o->item[k].order.target) return false;
    return true;
}

static void begin_again(replay *p) {
    account_init(&p->books, &p->rules);
    p->trades = p->held = p->ambiguous = 0;
    p->turnover = 0;
    p->refused = (replay_refusals){0};
}

// True where no bar of from..to-1 reaches the margin call, and equity fits at the lowest and the highest close.
static bool is_quiet(const replay *p, int64_t from, int64_t to) {
    const quotes *q = p->quotes;
    int64_t low = INT64_MAX, high = 0, least = INT64_MAX, most = 0;
    for (int64_t i = from; i < to; i++) {
        int64_t down = q->low[i] < q->open[i] ? q->low[i] : q->open[i];
        int64_t up = q->high[i] > q->open[i] ? q->high[i] : q->open[i];
        low = down < low ? down : low;
        high = up > high ? up : high;
        least = q->close[i] < least ? q->close[i] : least;
        most = q->close[i] > most ? q->close[i] : most;
    }
    account books = p->books;
    if ((books.units > 0 ? low : -high) <= books.call) return false;
    account_equity(&books, least);
    account_equity(&books, most);
    return !books.state;
}

// Equity at the closes of from..to-1, which are quiet. Its parts may be beyond 64 bits where their sum is not: unsigned
// arithmetic then wraps back.
static void mark(replay *p, int64_t from, int64_t to) {
    const int64_t *close = p->quotes->close;
    account *a = &p->books;
    uint64_t base = (uint64_t)a->cash - (uint64_t)a->basis, whole = (uint64_t)(a->units / ACCOUNT_ONE);
    if (a->units % ACCOUNT_ONE == 0)
        for (int64_t i = from; i < to; i++) p->equity[i] = (int64_t)(base + whole * (uint64_t)close[i]);
    else
        for (int64_t i = from; i < to; i++) p->equity[i] = account_equity(a, close[i]);
}

bool replay_plain(replay *p, const signals_orders *o) {
    int64_t from = 0;
    if (!applies(p, o)) return false;
    for (int64_t k = 0; k <= o->count; k++) {
        int64_t to = k < o->count ? o->item[k].bar : p->quotes->count;
        bool open = p->books.units != 0;
        if (p->books.state || (open && from < to && !is_quiet(p, from, to))) {
            begin_again(p);
            return false;
        }
        mark(p, from, to);
        p->held += open ? to - from : 0;
        if (k < o->count) replay_bar(p, to, &o->item[k].order);
        from = to + 1;
    }
    return true;
}
