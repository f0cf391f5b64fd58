// Every pass replays the same bars and orders anew. The market is a random walk, the same on every machine.
#include "cli/replaying.h"

#include "backtest/replay.h"
#include "base/clock.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum { ORDER_EVERY = 20, POINT = 100000, STOP_PART = 100, TARGET_PART = 50 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cents(double price) {
    return round(price * 100) / 100;
}

// Bars of a minute: each opens at the last close, moves by 0.03 % of 1,000 and reaches a little beyond both.
static bool make_bars(quotes *q, int64_t bars, err *e) {
    double at = 1000;
    if (!quotes_room(q, bars, POINT, false, "made-up bars", e)) return false;
    for (int64_t i = 0; i < bars; i++) {
        rng_block r = rng_philox(1, (uint32_t)i, 0, (uint32_t)RNG_SYNTHETIC << 16, 2);
        double to = cents(at + rng_unit(r.v[0]) - 0.5 + (1000 - at) * 1e-4), reach = cents(0.3 * rng_unit(r.v[1]));
        bar b = {.time = 60 * i, .open = at, .close = to};
        b.high = cents((at > to ? at : to) + reach);
        b.low = cents((at > to ? to : at) - reach);
        if (!quotes_put(q, i, &b, "made-up bars", e)) return false;
        at = to;
    }
    q->count = bars;
    return true;
}

// Long and short in turns, with a stop 1 % and a target 2 % away.
static bool make_orders(signals_orders *o, const quotes *q, err *e) {
    o->count = (q->count - 1) / ORDER_EVERY;
    o->item = calloc((size_t)o->count, sizeof *o->item);
    if (!o->item) return err_run(e, "out of memory for %lld orders", (long long)o->count);
    for (int64_t i = 0; i < o->count; i++) {
        int64_t bar = (i + 1) * ORDER_EVERY, side = i % 2 ? -1 : 1, close = q->close[bar - 1];
        o->item[i] = (signals_order){
            bar, {side * ACCOUNT_ONE / 2, close - side * (close / STOP_PART), close + side * (close / TARGET_PART)}};
    }
    return true;
}

// A spread of 0.01 %, slippage of 0.001 %, a commission of 0.002 %.
static const account_rules rules = {.cash = 1000000 * 100000000LL,
    .spread = {.share = 1000000},
    .slippage = {.share = 100000},
    .commission_share = 200000,
    .commission_units = 100000000,
    .leverage = 100000000,
    .contract = 100000000,
    .entry_stop = true,
    .shorts = true};

static bool pass(const quotes *q, const signals_orders *o, replaying *r, double *seconds, err *e) {
    static const account_terms terms = {0};
    replay p = {0};
    bool ok = replay_init(&p, q, &terms, &rules, o->count, e);
    double began = clock_seconds();
    ok = ok && replay_events(&p, o, e);
    *seconds = clock_seconds() - began;
    r->trades = p.trades;
    r->megabytes = ((double)q->count * 6 * sizeof *q->open + (double)o->count * sizeof *o->item +
                       (double)p.room * sizeof *p.trade) /
                   (1 << 20);
    replay_done(&p);
    return ok;
}

bool replaying_measure(int64_t bars, int64_t passes, replaying *r, err *e) {
    quotes q = {0};
    signals_orders o = {0};
    double *seconds = calloc((size_t)passes, sizeof *seconds), first;
    bool ok = seconds ? make_bars(&q, bars, e) && make_orders(&o, &q, e)
                      : err_run(e, "out of memory for %lld timings", (long long)passes);
    ok = ok && pass(&q, &o, r, &first, e); // once to touch all memory
    for (int64_t i = 0; ok && i < passes; i++) ok = pass(&q, &o, r, &seconds[i], e);
    if (ok) {
        qsort(seconds, (size_t)passes, sizeof *seconds, by_value);
        r->bars = bars;
        r->rate = (double)bars / seconds[passes / 2];
    }
    signals_orders_done(&o);
    quotes_done(&q);
    free(seconds);
    return ok;
}
