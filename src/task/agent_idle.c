#include "task/agent_idle.h"

#include <stdio.h>

typedef enum { TRADES, NO_LOT, NO_MONEY } state;

// An order for a full position on one side at a close that does not move.
static state try_side(const agent_market *m, int64_t series, int64_t row, double size, int side) {
    const account_rules *r = &m->rules[series];
    const market_settings k = {.size = size};
    int64_t close = m->bar[row].close;
    account_bar still = {close, close, close, close, m->bar[row].spread};
    market_state at = {.row = row, .rules = series};
    account_events ev;
    account_init(&at.books, r);
    at.equity = at.books.cash;
    account_order o = {market_units(&k, r, &at, close, side, 1), 0, 0};
    if (!o.units) return NO_LOT;
    account_step(&at.books, r, &o, &still, &ev);
    return at.books.units ? TRADES : NO_MONEY;
}

static state try_row(const agent_market *m, int64_t series, int64_t row, double size) {
    state is = try_side(m, series, row, size, 1);
    return is != TRADES && m->rules[series].shorts && try_side(m, series, row, size, -1) == TRADES ? TRADES : is;
}

// At the lowest and at the highest close of an instrument's stretches; `row` gets that of the lowest. TRADES where it
// has no stretch.
static state try_series(const agent_market *m, const agent_stretches *p, int64_t series, double size, int64_t *row) {
    int64_t low = -1, high = -1;
    for (int64_t k = 0; k < p->count; k++)
        for (int64_t i = p->item[k].first; p->item[k].rules == series && i < p->item[k].end; i++) {
            if (low < 0 || m->bar[i].close < m->bar[low].close) low = i;
            if (high < 0 || m->bar[i].close > m->bar[high].close) high = i;
        }
    *row = low;
    if (low < 0) return TRADES;
    state is = try_row(m, series, low, size);
    return is == TRADES ? TRADES : try_row(m, series, high, size) == TRADES ? TRADES : is;
}

static void say(const agent_market *m, const dataset *d, int64_t series, int64_t row, state is, double size, char *text,
    size_t room) {
    const account_rules *r = &m->rules[series];
    char price[48];
    account_text(price, sizeof price, m->bar[row].close, 0);
    if (is == NO_LOT)
        snprintf(text, room,
            "%s%s%g of the equity in a full position are below the lot step of %g lots, even at the lowest close, %s",
            d->panel ? d->panel_names[series] : "", d->panel ? ": " : "", size, (double)r->lot_step / 1e8, price);
    else
        snprintf(text, room,
            "%s%sthe cash of %g does not cover the margin and the costs of a full position, %g times the equity",
            d->panel ? d->panel_names[series] : "", d->panel ? ": " : "", (double)r->cash / 1e8, size);
}

bool agent_idle_check(
    const agent_market *m, const agent_stretches *p, const dataset *d, double size, char *note, size_t room, err *e) {
    int64_t row, idle = 0, traded = 0;
    note[0] = 0;
    for (int64_t k = 0; k < m->instruments; k++) {
        state is = try_series(m, p, k, size, &row);
        traded += row >= 0 && is == TRADES;
        if (is != TRADES && !idle++) say(m, d, k, row, is, size, note, room);
    }
    if (!idle || traded) return true;
    return err_input(e,
        "account: no order can ever be opened: %s; raise account.cash or account.leverage, or lower account.lot_step, "
        "the costs or agent.position",
        note);
}
