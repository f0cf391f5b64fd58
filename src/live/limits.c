#include "live/limits.h"

#include "data/when.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE = 60, DAY = 86400 };

void limits_begin(limits_state *s) {
    memset(s, 0, sizeof *s);
    s->day = LIMITS_NO_DAY;
}

void limits_worse(limits_verdict *v, const limits_verdict *other) {
    if (other->answer > v->answer) *v = *other;
}

// Counts a broken rule, and gives its answer.
static limits_verdict broken(const limits *l, limits_state *s, limits_rule r, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static limits_verdict broken(const limits *l, limits_state *s, limits_rule r, const char *fmt, ...) {
    limits_verdict v = {.answer = l->answer[r], .rule = r};
    va_list args;
    va_start(args, fmt);
    vsnprintf(v.text, sizeof v.text, fmt, args);
    va_end(args);
    if (s->broken[r] < INT64_MAX) s->broken[r]++;
    if (v.answer == LIMITS_STOP && !s->stopped) {
        s->stopped = true;
        s->stopped_by = r;
    }
    return v;
}

// Losses

static bool is_lost(int64_t from, int64_t equity, double most) {
    return most > 0 && from > 0 && (double)from - (double)equity >= most * (double)from;
}

// A clock that goes back does not begin a day anew.
static void begin_day(const limits *l, limits_state *s, double now, int64_t equity) {
    const double most = 1e14;
    double days = floor((fmin(fmax(now, -most), most) - (double)l->day_start) / DAY);
    if (s->day != LIMITS_NO_DAY && days <= (double)s->day) return;
    s->day_equity = s->day == LIMITS_NO_DAY ? equity : s->last_equity;
    s->day = (int64_t)days;
    s->day_over = false;
}

limits_verdict limits_equity(const limits *l, limits_state *s, double now, int64_t equity) {
    limits_verdict v = LIMITS_FINE;
    if (s->start_equity == 0) s->start_equity = equity;
    begin_day(l, s, now, equity);
    s->last_equity = equity;
    if (!s->day_over && is_lost(s->day_equity, equity, l->max_day_loss)) {
        s->day_over = true;
        v = broken(l, s, LIMIT_DAY_LOSS, "equity %.2f is %.2f %% below the day's first, %.2f", (double)equity / 1e8,
            100 * (1 - (double)equity / (double)s->day_equity), (double)s->day_equity / 1e8);
    }
    if (!s->ended && is_lost(s->start_equity, equity, l->max_loss)) {
        s->ended = true;
        limits_verdict all = broken(l, s, LIMIT_LOSS, "equity %.2f is %.2f %% below the first, %.2f",
            (double)equity / 1e8, 100 * (1 - (double)equity / (double)s->start_equity), (double)s->start_equity / 1e8);
        limits_worse(&v, &all);
    }
    return v;
}

// The feed and the clocks

limits_verdict limits_feed(const limits *l, limits_state *s, const feed_event *note) {
    static const limits_rule rule[FEED_NOTES] = {[FEED_LATE] = LIMIT_LATE,
        [FEED_MISSING] = LIMIT_MISSING,
        [FEED_DOUBLED] = LIMIT_DOUBLED,
        [FEED_REVISED] = LIMIT_REVISED,
        [FEED_OUT_OF_ORDER] = LIMIT_OUT_OF_ORDER,
        [FEED_UNREADABLE] = LIMIT_UNREADABLE};
    bool is_rule = note->kind == FEED_NOTE && note->note <= FEED_UNREADABLE;
    return is_rule ? broken(l, s, rule[note->note], "%.150s", note->text) : LIMITS_FINE;
}

limits_verdict limits_price(const limits *l, limits_state *s, double price, const char *other) {
    bool was = s->is_other;
    double before = s->price, times = LIMITS_PRICE_TIMES;
    s->is_other = other || (before > 0 && (price >= before * times || price * times <= before));
    if (!s->is_other) s->price = price;
    if (was || !s->is_other) return LIMITS_FINE;
    if (other) return broken(l, s, LIMIT_INSTRUMENT, "%.190s", other);
    return broken(l, s, LIMIT_INSTRUMENT,
        "the price went from %.6g to %.6g: unless it did, these are bars of another instrument or in other units",
        before, price);
}

limits_verdict limits_stale(const limits *l, limits_state *s, double now, double due) {
    bool was = s->is_stale;
    s->is_stale = l->stale > 0 && due > 0 && now - due >= l->stale;
    if (was || !s->is_stale) return LIMITS_FINE;
    char span[32];
    return broken(l, s, LIMIT_STALE, "no bar for %s after one was due",
        when_span_text(span, sizeof span, (int64_t)fmin(now - due, 1e12)));
}

limits_verdict limits_clock(const limits *l, limits_state *s, double machine, double steady) {
    // After a restart the steady clock is another one: only a step back shows.
    double expected = s->steady > 0 ? s->machine + (steady - s->steady) : fmax(s->machine, machine);
    double jump = s->machine > 0 ? machine - expected : 0;
    s->machine = machine;
    s->steady = steady;
    if (!(l->clock_jump > 0) || fabs(jump) < l->clock_jump) return LIMITS_FINE;
    return broken(l, s, LIMIT_CLOCK, "the clock jumped %s by %.1f s", jump > 0 ? "forward" : "back", fabs(jump));
}

// Models

limits_verdict limits_answers(const limits *l, limits_state *s, const float *answer, size_t count) {
    size_t odd = 0;
    for (size_t i = 0; i < count; i++) odd += !isfinite(answer[i]);
    if (!odd) return LIMITS_FINE;
    return broken(l, s, LIMIT_NON_FINITE, "%zu of %zu answers of the model are not finite", odd, count);
}

limits_verdict limits_outside(const limits *l, limits_state *s, size_t outside, size_t of) {
    if (l->outside_share >= 1 || !of || (double)outside <= l->outside_share * (double)of) return LIMITS_FINE;
    return broken(l, s, LIMIT_OUTSIDE, "%zu of %zu inputs lie beyond %g deviations", outside, of, l->outside_by);
}

limits_verdict limits_inputs(const limits *l, limits_state *s, const float *scaled, size_t count) {
    size_t outside = 0;
    for (size_t i = 0; i < count; i++) outside += !(fabsf(scaled[i]) <= (float)l->outside_by);
    return limits_outside(l, s, outside, count);
}

// Positions and orders

// Largest position in lots; INFINITY where there is no limit.
static double most_lots(const limits *l, double lot_value, double equity) {
    const double rounding = 1 + 1e-9;
    double most = l->max_lots > 0 ? l->max_lots * rounding : INFINITY;
    if (!(l->max_exposure > 0)) return most;
    if (!(lot_value > 0) || !(equity > 0)) return 0;
    return fmin(most, l->max_exposure * equity / lot_value * rounding);
}

limits_verdict limits_position(
    const limits *l, limits_state *s, double wanted, double held, double lot_value, double equity, double *allowed) {
    double most = most_lots(l, lot_value, equity);
    bool same_side = wanted * held > 0;
    *allowed = wanted;
    if (fabs(wanted) <= most || (same_side && fabs(wanted) <= fabs(held))) return LIMITS_FINE;
    limits_verdict v = broken(l, s, LIMIT_POSITION, "%.8g lots are wanted, %.8g are allowed", wanted, most);
    if (v.answer == LIMITS_SKIP) {
        if (same_side) most = fmax(most, fabs(held));
        *allowed = isnan(wanted) ? 0 : copysign(most, wanted);
    }
    if (v.answer > LIMITS_SKIP) *allowed = 0;
    return v;
}

// Forgets orders that are over a minute away, on either side: a clock may have moved.
static void forget_orders(limits_state *s, double now) {
    int kept = 0;
    for (int i = 0; i < s->orders; i++)
        if (fabs(now - s->order[i]) < MINUTE) s->order[kept++] = s->order[i];
    s->orders = kept;
}

static void count_order(limits_state *s, double now) {
    if (s->orders == LIMITS_ORDERS_MOST) memmove(s->order, s->order + 1, (size_t)--s->orders * sizeof *s->order);
    s->order[s->orders++] = now;
}

limits_verdict limits_order(const limits *l, limits_state *s, double now, bool shrinks) {
    forget_orders(s, now);
    limits_verdict v = LIMITS_FINE;
    if (l->max_orders && s->orders >= l->max_orders)
        v = broken(l, s, LIMIT_ORDERS, "%d orders within a minute, and one more is wanted", s->orders);
    bool held_back = shrinks ? v.answer == LIMITS_STOP : v.answer >= LIMITS_SKIP;
    if (!held_back) count_order(s, now);
    return shrinks && !held_back && v.answer > LIMITS_NOTE ? LIMITS_FINE : v;
}

// Standing answers

static void stand(limits_verdict *v, const limits *l, limits_rule r, const char *text) {
    limits_verdict other = {.answer = l->answer[r], .rule = r};
    if (other.answer <= LIMITS_NOTE) return;
    snprintf(other.text, sizeof other.text, "%s", text);
    limits_worse(v, &other);
}

limits_verdict limits_standing(const limits *l, const limits_state *s) {
    limits_verdict v = LIMITS_FINE;
    if (s->is_stale) stand(&v, l, LIMIT_STALE, "no bar comes");
    if (s->is_other) stand(&v, l, LIMIT_INSTRUMENT, "the price cannot be of the instrument");
    if (s->day_over) stand(&v, l, LIMIT_DAY_LOSS, "the day's largest loss was reached");
    if (s->ended) stand(&v, l, LIMIT_LOSS, "the largest loss was reached");
    if (!s->stopped) return v;
    v = (limits_verdict){.answer = LIMITS_STOP, .rule = s->stopped_by};
    snprintf(v.text, sizeof v.text, "stopped by the rule %s", limits_rule_key(s->stopped_by));
    return v;
}

void limits_clear(limits_state *s, int64_t equity) {
    s->stopped = s->ended = s->day_over = s->is_other = false;
    s->price = 0;
    s->start_equity = s->last_equity = s->day_equity = equity;
}
