// market: an account that trades bars. An agent sees closed bars, decides, and its order fills at the next open.
//
// Observation at a closed bar, in this order:
//   lags x lagged   features of the newest `lags` bars, scaled, the oldest bar first
//   once            further features of the newest bar
//   position        value of the position as a share of a full one, below 0 when short, within [-1, 1]
//   free            equity that no margin binds, as a share of the equity, within [0, 1]
//   open result     of the position at the close, as a share of the equity, within [-1, 1]
//   sine, cosine    of the time of day at which the bar closed
// Nothing of it depends on a later bar.
//
// Action: 0 short, 1 flat, 2 long with a full position; or, where `continuous`, a direction (long above 0.3, short
// below -0.3, otherwise flat) and a size, cut to [0.1, 1] of a full position. Size counts at an entry: a position whose
// side is asked for again is kept as it is, and costs nothing. A full position is worth `size` times the equity at the
// close, cut to the lot step. An order that the account refuses leaves it flat. NaN is flat, or the smallest size.
//
// A step is the bar behind: nights, order, margin call, the day's end, in the order of backtest/replay.h, so that both
// have the same books. The reward is for the equity at its close, after all costs:
//   MARKET_LOG      change of the log of the equity
//   MARKET_SHARPE   differential Sharpe ratio (Moody and Saffell): with moving averages A of these changes R and B of
//                   their squares, (B dA - A dB / 2) / (B - A^2)^(3/2), where dA = eta (R - A) and dB = eta (R^2 - B).
//                   It is 0 where B - A^2 is not above 1e-12, and cut to [-10, 10]
//   MARKET_SHAPED   change of the log less `shape` times the growth of the episode's largest drawdown, so that rewards
//                   add up to the log return less `shape` times the largest drawdown (as a log)
// For rewards, equity counts as at least a thousandth of the starting cash.
//
// An episode terminates at ruin and where the account overflows; with reward 0 at the latter. It is truncated where its
// stretch has no bar left to fill an order in. What is open then stays open, valued at the close.
//
// Instruments lie one behind the other in the rows. An episode stays within one stretch, and a stretch is of one
// instrument, with `lags` rows of it up to its first bar.
#ifndef TRADEWIND_ENV_MARKET_H
#define TRADEWIND_ENV_MARKET_H

#include "env/account.h"
#include "env/maths.h"

// Parts of the data.
enum {
    MARKET_BARS,      // account_bar [rows]
    MARKET_FEATURES,  // float [rows, lagged + once]
    MARKET_SCALE,     // float [2, lagged + once]: a feature is observed as (itself - the first) * the second
    MARKET_CALENDAR,  // int32 [rows, MARKET_COLUMNS]
    MARKET_STRETCHES, // market_stretch [stretches]
    MARKET_RULES,     // account_rules [instruments]
    MARKET_PARTS
};

// Columns of the calendar.
enum {
    MARKET_NIGHTS, // days from the open of the bar before to this one's: nights of swap
    MARKET_ENDS,   // 1: the last bar of its day
    MARKET_CLOCK,  // seconds since midnight at its close
    MARKET_COLUMNS
};

// Bars first .. end - 1, two or more: orders are decided at all of them but the last.
typedef struct {
    int64_t first, end;
    int64_t rules;  // of its instrument
    int64_t before; // orders that can be decided in the stretches before this one
} market_stretch;

typedef struct {
    account books;
    int64_t row, end; // newest closed bar; end of the stretch
    int64_t rules;
    int64_t equity, peak; // at the close; the highest of the episode
    double worst;         // largest drawdown of the episode, as a log
    double mean, square;  // moving averages of returns and of their squares
} market_state;

enum { MARKET_OWN = 5 }; // columns of the observation that are not features

ENV_FN const account_bar *market_bar(const env_data *d, int64_t row) {
    return (const account_bar *)d->part[MARKET_BARS] + row;
}

ENV_FN const int32_t *market_calendar(const env_data *d, int64_t row) {
    return (const int32_t *)d->part[MARKET_CALENDAR] + row * MARKET_COLUMNS;
}

ENV_FN const account_rules *market_rules(const env_data *d, const market_state *m) {
    return (const account_rules *)d->part[MARKET_RULES] + m->rules;
}

ENV_FN double market_cut(double v, double low, double high) {
    return v > high ? high : v > low ? v : low;
}

ENV_FN env_shape market_shape(const env_settings *s) {
    const market_settings *k = &s->market;
    env_shape shape = {k->lags * k->lagged + k->once + MARKET_OWN, k->continuous ? 0 : 3, k->continuous ? 2 : 1, 1024};
    return shape;
}

// Beginnings

// The stretch in which the order of this number is decided.
ENV_FN int64_t market_find(const market_stretch *all, int64_t count, int64_t order) {
    int64_t low = 0, high = count; // it is from low on and before high
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (all[middle].before <= order)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// A random stretch, weighted by its orders, and a bar of it behind which an episode of the limit fits; the first bar
// where none does. `from_first`: the first bar, of the stretches in turn.
ENV_FN void market_reset(const env_settings *s, const env_data *d, const env_dice *dice, market_state *m) {
    const market_stretch *all = (const market_stretch *)d->part[MARKET_STRETCHES];
    int64_t count = s->market.stretches, at = (int64_t)(dice->moment % (uint64_t)count), skip = 0;
    if (!s->market.from_first) {
        rng_block r = env_draw(dice, 0);
        uint64_t which = (uint64_t)r.v[0] << 32 | r.v[1], where = (uint64_t)r.v[2] << 32 | r.v[3];
        const market_stretch *last = all + count - 1;
        at = market_find(all, count, (int64_t)(which % (uint64_t)(last->before + last->end - 1 - last->first)));
        int64_t starts = all[at].end - all[at].first - (s->limit ? s->limit : 1);
        if (starts > 1) skip = (int64_t)(where % (uint64_t)starts);
    }
    m->row = all[at].first + skip;
    m->end = all[at].end;
    m->rules = all[at].rules;
    account_init(&m->books, market_rules(d, m));
    m->equity = m->peak = m->books.cash;
    m->worst = m->mean = m->square = 0;
}

// Observations

// The c-th feature of a row, scaled.
ENV_FN float market_feature(const float *row, const float *scale, int64_t width, int64_t c) {
    return (row[c] - scale[c]) * scale[width + c];
}

ENV_FN void market_observe(const env_settings *s, const env_data *d, const market_state *m, float *to) {
    const market_settings *k = &s->market;
    const account_rules *r = market_rules(d, m);
    int64_t width = (int64_t)k->lagged + k->once, close = market_bar(d, m->row)->close;
    const float *row = (const float *)d->part[MARKET_FEATURES] + m->row * width;
    const float *scale = (const float *)d->part[MARKET_SCALE];
    for (int64_t lag = k->lags - 1; lag >= 0; lag--, to += k->lagged)
        for (int32_t c = ENV_LANE; c < k->lagged; c += ENV_LANES)
            to[c] = market_feature(row - lag * width, scale, width, c);
    for (int32_t c = ENV_LANE; c < k->once; c += ENV_LANES) to[c] = market_feature(row, scale, width, k->lagged + c);
    to += k->once;
    double equity = m->equity > 0 ? (double)m->equity : 1.0, value = (double)account_mark(m->books.units, close);
    double bound = (double)account_margin(r, m->books.basis);
    *to++ = (float)market_cut(value / (equity * k->size), -1, 1);
    *to++ = (float)market_cut(1.0 - bound / equity, 0, 1);
    *to++ = (float)market_cut((value - (double)m->books.basis) / equity, -1, 1);
    double turn = (double)market_calendar(d, m->row)[MARKET_CLOCK] * (2 * 3.14159265358979323846 / 86400);
    *to++ = (float)maths_sin(turn);
    *to++ = (float)maths_cos(turn);
}

// Steps

// The side that an action asks for, -1, 0 or 1, and its share of a full position.
ENV_FN int market_side(const market_settings *k, const float *action, double *share) {
    double direction = (double)action[0], bound = (double)0.3f;
    *share = 1.0;
    if (!k->continuous) {
        direction -= 1.0;
        bound = 0.5;
    } else {
        *share = market_cut((double)action[1], 0.1, 1);
    }
    return direction > bound ? 1 : direction < -bound ? -1 : 0;
}

// Units of a new position, decided at a close.
ENV_FN int64_t market_units(
    const market_settings *k, const account_rules *r, const market_state *m, int64_t close, int side, double share) {
    double lot = (double)close * ((double)r->contract / (double)ACCOUNT_ONE);
    double lots = share * k->size * (double)m->equity / lot * (double)ACCOUNT_ONE;
    bool over = !(lots < (double)ACCOUNT_MOST);
    if (over || lots < 0) return 0;
    return side * account_units(r, (int64_t)lots, &over);
}

// The order that an action asks for at the newest close, of no units where it asks for a short position that the
// account does not take; false where the position is kept as it is.
ENV_FN bool market_order(
    const market_settings *k, const env_data *d, const market_state *m, const float *action, account_order *o) {
    const account_rules *r = market_rules(d, m);
    double share;
    int side = market_side(k, action, &share), has = (m->books.units > 0) - (m->books.units < 0);
    if (side < 0 && !r->shorts) side = 0;
    o->units = o->stop = o->target = 0;
    if (side == has) return false;
    if (side) o->units = market_units(k, r, m, market_bar(d, m->row)->close, side, share);
    return true;
}

// The bar behind the newest one, with the order that was decided at that one's close.
ENV_FN void market_trade(
    const market_settings *k, const env_data *d, const account_rules *r, market_state *m, const float *action) {
    const account_bar *before = market_bar(d, m->row), *b = before + 1;
    const int32_t *calendar = market_calendar(d, m->row + 1);
    account_order o;
    account_events ev;
    bool orders = market_order(k, d, m, action, &o);
    if (calendar[MARKET_NIGHTS]) account_night(&m->books, r, calendar[MARKET_NIGHTS], before->close);
    account_step(&m->books, r, orders ? &o : NULL, b, &ev);
    if (k->day_close && calendar[MARKET_ENDS]) account_close(&m->books, r, b->close, ACCOUNT_BY_DAY, &ev);
    m->row++;
}

// The differential Sharpe ratio of a return, whose moving averages go on with it.
ENV_FN double market_sharpe(double eta, double gain, market_state *m) {
    double mean = eta * (gain - m->mean), square = eta * (gain * gain - m->square);
    double variance = m->square - m->mean * m->mean, ratio = 0;
    if (variance > 1e-12) ratio = (m->square * mean - 0.5 * (m->mean * square)) / (variance * maths_sqrt(variance));
    m->mean += mean;
    m->square += square;
    return market_cut(ratio, -10, 10);
}

// The growth of the largest drawdown, now that equity counts as `now`.
ENV_FN double market_sink(double now, double peak, market_state *m) {
    double drawdown = maths_log(peak / now), grown = drawdown > m->worst ? drawdown - m->worst : 0;
    m->worst += grown;
    return grown;
}

// The reward for the equity's way to `equity`.
ENV_FN double market_pay(const market_settings *k, const account_rules *r, market_state *m, int64_t equity) {
    const double least = 0.001 * (double)r->cash;
    double was = (double)m->equity, now = (double)equity;
    if (was < least) was = least;
    if (now < least) now = least;
    double gain = maths_log(now / was);
    m->equity = equity;
    if (equity > m->peak) m->peak = equity;
    if (k->reward == MARKET_SHARPE) return market_sharpe(k->eta, gain, m);
    if (k->reward == MARKET_SHAPED) return gain - k->shape * market_sink(now, (double)m->peak, m);
    return gain;
}

ENV_FN bool market_is_ruin(const market_settings *k, const account_rules *r, int64_t equity) {
    return (double)equity <= k->ruin * (double)r->cash;
}

ENV_FN env_end market_step(
    const env_settings *s, const env_data *d, market_state *m, const float *action, double *reward) {
    const account_rules *r = market_rules(d, m);
    market_trade(&s->market, d, r, m, action);
    int64_t equity = account_equity(&m->books, market_bar(d, m->row)->close);
    *reward = 0;
    if (m->books.state != ACCOUNT_OK) return ENV_TERMINATED;
    *reward = market_pay(&s->market, r, m, equity);
    if (market_is_ruin(&s->market, r, equity)) return ENV_TERMINATED;
    return m->row + 1 < m->end ? ENV_GOES_ON : ENV_TRUNCATED;
}

#endif
