#include "backtest/document.h"

#include "run/results.h"

#include <math.h>
#include <stdio.h>

static double money(int64_t v) {
    return (double)v / 1e8;
}

// Statistics

// The figure of buy-and-hold beside one of the backtest.
static double hold_of(const stats *s, stat_name k) {
    stat_name of = k == STAT_RETURN ? STAT_HOLD_RETURN : k == STAT_SHARPE ? STAT_HOLD_SHARPE : STAT_HOLD_DRAWDOWN;
    bool has = k == STAT_RETURN || k == STAT_SHARPE || k == STAT_DRAWDOWN;
    return has ? s->of[of].value : (double)NAN;
}

json_t *document_figure(stat_name k, double v) {
    return json_number(stats_row(k)->unit == STAT_UNIT_SHARE ? 100 * v : v);
}

const char *document_unit(stat_name k) {
    static const char *const units[] = {[STAT_UNIT_RATIO] = "",
        [STAT_UNIT_SHARE] = "%",
        [STAT_UNIT_MONEY] = "",
        [STAT_UNIT_COUNT] = "",
        [STAT_UNIT_DAYS] = "days"};
    return units[stats_row(k)->unit];
}

static json_t *statistics_json(const stats *s) {
    json_t *all = json_array();
    for (int k = 0; k < STATS_COUNT; k++) {
        stat_name of = (stat_name)k;
        const stat_row *row = stats_row(of);
        const stat_value *v = &s->of[k];
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:s?}", "key", row->key, "label", row->label,
                     "unit", document_unit(of), "value", document_figure(of, v->value), "definition", row->definition,
                     "low", document_figure(of, v->range.low), "high", document_figure(of, v->range.high), "hold",
                     document_figure(of, hold_of(s, of)), "why", v->why));
    }
    return all;
}

// Curves

// The element that stands for point `k` of a list of `count`, cut to so many points.
static int64_t cut_at(int64_t count, int64_t points, int64_t k) {
    return points < 2 ? 0 : k * (count - 1) / (points - 1);
}

static int64_t points_of(int64_t count) {
    return count < RESULTS_POINTS_MOST ? count : RESULTS_POINTS_MOST;
}

static int64_t point_at(int64_t count, int64_t k) {
    return cut_at(count, points_of(count), k);
}

json_t *document_curve(const replay *p) {
    const quotes *q = p->quotes;
    int64_t points = q->count < DOCUMENT_CURVE_POINTS ? q->count : DOCUMENT_CURVE_POINTS;
    json_t *time = json_array(), *equity = json_array();
    for (int64_t k = 0; k < points; k++) {
        int64_t i = cut_at(q->count, points, k);
        json_array_append_new(time, json_integer((json_int_t)q->time[i]));
        json_array_append_new(equity, json_number(money(p->equity[i])));
    }
    return json_pack("{s:o, s:o}", "time", time, "equity", equity);
}

static json_t *equity_json(const replay *p) {
    const quotes *q = p->quotes;
    json_t *time = json_array(), *equity = json_array(), *fall = json_array(), *hold = json_array();
    double peak = money(p->rules.cash), first = (double)q->close[0];
    int64_t next = 0;
    for (int64_t i = 0; i < q->count; i++) {
        double is = money(p->equity[i]);
        peak = fmax(peak, is);
        if (i != point_at(q->count, next)) continue;
        next++;
        json_array_append_new(time, json_integer((json_int_t)q->time[i]));
        json_array_append_new(equity, json_number(is));
        json_array_append_new(fall, json_number(1 - is / peak));
        json_array_append_new(hold, json_number(money(p->rules.cash) * ((double)q->close[i] / first)));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "time", time, "equity", equity, "drawdown", fall, "hold", hold);
}

static json_t *price_json(const quotes *q) {
    json_t *time = json_array(), *close = json_array();
    for (int64_t k = 0; k < points_of(q->count); k++) {
        int64_t i = point_at(q->count, k);
        json_array_append_new(time, json_integer((json_int_t)q->time[i]));
        json_array_append_new(close, json_number(money(q->close[i])));
    }
    return json_pack("{s:o, s:o}", "time", time, "close", close);
}

json_t *document_daily(const replay *p) {
    const quotes *q = p->quotes;
    json_t *day = json_array(), *equity = json_array();
    for (int64_t i = 0; i < q->count; i++) {
        if (i + 1 < q->count && when_day_of(q->time[i + 1]) == when_day_of(q->time[i])) continue;
        json_array_append_new(day, json_integer((json_int_t)when_day_of(q->time[i])));
        json_array_append_new(equity, json_number(money(p->equity[i])));
    }
    return json_pack("{s:o, s:o}", "day", day, "equity", equity);
}

static json_t *monthly_json(const replay *p) {
    const quotes *q = p->quotes;
    json_t *all = json_array();
    double before = money(p->rules.cash);
    for (int64_t i = 0; i < q->count; i++) {
        when_parts at = when_split(q->time[i]);
        bool last = i + 1 == q->count;
        when_parts next = when_split(q->time[last ? i : i + 1]);
        if (!last && next.month == at.month && next.year == at.year) continue;
        char month[32];
        double is = money(p->equity[i]);
        snprintf(month, sizeof month, "%04d-%02d", at.year, at.month);
        json_array_append_new(
            all, json_pack("{s:s, s:o}", "month", month, "return", json_number(before > 0 ? is / before - 1 : NAN)));
        before = is;
    }
    return all;
}

static json_t *trades_json(const replay *p) {
    json_t *all = json_array();
    for (int64_t k = 0; k < points_of(p->trades); k++) {
        const replay_trade *t = &p->trade[point_at(p->trades, k)];
        json_array_append_new(
            all, json_pack("{s:i, s:I, s:I, s:f, s:f, s:f}", "side", t->units > 0 ? 1 : -1, "entry_time",
                     (json_int_t)p->quotes->time[t->entry], "exit_time", (json_int_t)p->quotes->time[t->exit], "entry",
                     money(t->entry_price), "exit", money(t->exit_price), "result", money(t->result)));
    }
    return all;
}

json_t *document_make(const assumptions *a, const replay *p, const stats *s) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "assumptions", assumptions_json(a), "statistics",
        statistics_json(s), "equity", equity_json(p), "monthly", monthly_json(p), "trades", trades_json(p), "price",
        price_json(p->quotes), "daily", document_daily(p));
}
