// Signal files from bytes, and their orders on five bars: no crash, one line where they are refused, and what is taken
// keeps the promises of signals.h.
#include "backtest/signals.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const signals *s) {
    for (int64_t i = 0; i < s->count; i++) {
        const signals_row *r = &s->row[i];
        CHECK(!i || r->time > r[-1].time, "row %lld is out of order", (long long)i);
        CHECK(r->stop >= 0 && r->target >= 0 && r->line > 1, "row %lld", (long long)i);
        CHECK(r->lots <= ACCOUNT_MOST && r->lots >= -ACCOUNT_MOST, "lots of row %lld", (long long)i);
    }
}

static void check_orders(const signals_orders *o, const signals *s, const quotes *q) {
    CHECK(o->count + o->outside + o->late == s->count && o->late <= 1, "signals were lost");
    for (int64_t i = 0; i < o->count; i++) {
        int64_t at = o->item[i].bar;
        CHECK(at > 0 && at < q->count && (!i || at > o->item[i - 1].bar), "order %lld at bar %lld", (long long)i,
            (long long)at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    // From 2024-01-02 on, an hour each, the third one twice.
    int64_t time[] = {1704153600, 1704157200, 1704160800, 1704160800, 1704164400};
    int64_t close[] = {1, 1, 1, 1, 1};
    quotes q = {.count = 5, .time = time, .close = close};
    account_rules r = {.contract = 100 * ACCOUNT_ONE, .lot_step = ACCOUNT_ONE / 100};
    signals s;
    signals_orders o;
    err e = {0};
    if (!signals_parse(&s, "fuzz", (const char *)data, size, &e)) {
        CHECK(e.kind == ERR_INPUT && e.text[0] && !s.row, "an error of kind %d", e.kind);
        return 0;
    }
    check(&s);
    if (signals_place(&o, &s, &q, &r, &e))
        check_orders(&o, &s, &q);
    else
        CHECK(e.kind == ERR_INPUT && e.text[0] && !o.item, "an error of kind %d", e.kind);
    signals_orders_done(&o);
    signals_done(&s);
    return 0;
}
