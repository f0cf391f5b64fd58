// Signals to orders: the bar of each signal, and its position in units.
#include "backtest/signals.h"

#include <stdlib.h>

void signals_orders_done(signals_orders *o) {
    free(o->item);
    *o = (signals_orders){0};
}

// The last bar that opens at `time` or before, from bar `from` on; -1 where there is none.
static int64_t bar_of(const quotes *q, int64_t time, int64_t from) {
    int64_t low = from - 1, high = q->count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (q->time[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low < from ? -1 : low;
}

static bool refuse_outside(const signals *s, const quotes *q, err *e) {
    char first[32], last[32], signal[32];
    return err_input(e,
        "%s: no signal lies within the bars, which open from %s to %s; the first signal is of %s: give bars of the "
        "same "
        "time and clock",
        s->name, when_text(first, sizeof first, q->time[0]), when_text(last, sizeof last, q->time[q->count - 1]),
        when_text(signal, sizeof signal, s->row[0].time));
}

static bool refuse_between(const signals *s, const signals_row *r, const quotes *q, int64_t before, err *e) {
    char when[32], near[32];
    return err_input(e,
        "%s:%lld: no bar opens at %s, the one before it at %s; a signal has the open time of the bar at whose close it "
        "was decided",
        s->name, (long long)r->line, when_text(when, sizeof when, r->time),
        when_text(near, sizeof near, q->time[before]));
}

// Counts what is most likely a mistake; the order is taken as it is.
static void note_odd(signals_orders *o, const signals_row *r, const account_order *order, int64_t close) {
    bool up = r->lots > 0;
    bool stopped = r->stop && (up ? r->stop >= close : r->stop <= close);
    bool reached = r->target && (up ? r->target <= close : r->target >= close);
    o->small += r->lots && !order->units;
    o->crossed += order->units && (stopped || reached);
}

static bool place(signals_orders *o, const signals *s, const signals_row *r, const quotes *q,
    const account_rules *rules, int64_t *from, err *e) {
    int64_t last = q->count - 1;
    if (r->time < q->time[0] || r->time > q->time[last]) {
        o->outside++;
        return true;
    }
    int64_t at = bar_of(q, r->time, *from);
    if (q->time[at] != r->time) return refuse_between(s, r, q, at, e);
    *from = at;
    if (at == last) {
        o->late++;
        return true;
    }
    bool over = false;
    account_order order = {account_units(rules, r->lots, &over), r->stop, r->target};
    if (over)
        return err_input(e, "%s:%lld: position of more than 9e10 units; make it smaller", s->name, (long long)r->line);
    note_odd(o, r, &order, q->close[at]);
    o->item[o->count++] = (signals_order){at + 1, order};
    return true;
}

bool signals_place(signals_orders *o, const signals *s, const quotes *q, const account_rules *r, err *e) {
    int64_t from = 0;
    *o = (signals_orders){.item = calloc((size_t)s->count, sizeof *o->item)};
    bool ok = o->item || err_run(e, "%s: no memory for %lld orders", s->name, (long long)s->count);
    for (int64_t i = 0; ok && i < s->count; i++) ok = place(o, s, &s->row[i], q, r, &from, e);
    if (ok && o->outside == s->count) ok = refuse_outside(s, q, e);
    if (!ok) signals_orders_done(o);
    return ok;
}
