#include "backtest/stats.h"

#include "backtest/correlation.h"
#include "backtest/stats_work.h"

#include <math.h>
#include <stdio.h>

static const stat_row rows[STATS_COUNT] = {
#define STAT(NAME, key, label, unit, definition) {key, label, STAT_UNIT_##unit, definition},
#include "backtest/stats.def"
#undef STAT
};

const stat_row *stats_row(stat_name k) {
    CHECK((unsigned)k < STATS_COUNT, "statistic %d", (int)k);
    return &rows[k];
}

void stat_put(stats *s, stat_name k, double value, const char *otherwise) {
    s->of[k] = (stat_value){isfinite(value) ? value : (double)NAN, isfinite(value) ? NULL : otherwise, {NAN, NAN}};
}

void stat_lack(stats *s, stat_name k, const char *why) {
    stat_put(s, k, NAN, why);
}

static bool put_correlations(const stats_input *in, stats *s, err *e) {
    double ranks = NAN;
    const char *why = "predictions or outcomes do not vary";
    if (!in->prediction || in->predictions < 2) {
        const char *few = in->prediction ? "fewer than two predictions" : "orders were given without predictions";
        stat_lack(s, STAT_IC, few);
        stat_lack(s, STAT_RANK_IC, few);
        return true;
    }
    if (!correlation_of_ranks(in->prediction, in->outcome, in->predictions, &ranks, e)) return false;
    stat_put(s, STAT_IC, correlation(in->prediction, in->outcome, in->predictions), why);
    stat_put(s, STAT_RANK_IC, ranks, why);
    return true;
}

static void check_input(const stats_input *in) {
    CHECK(in->bars > 0 && in->cash > 0 && in->trials >= 1, "%lld bars, cash %g, %g trials", (long long)in->bars,
        in->cash, in->trials);
    for (int64_t i = 0; i < in->bars; i++) {
        CHECK(isfinite(in->equity[i]), "equity of bar %lld is no number", (long long)i);
        CHECK(!i || in->time[i] >= in->time[i - 1], "bar %lld is before the one before", (long long)i);
    }
    for (int64_t i = 0; i < in->trades; i++) {
        const stats_trade *t = &in->trade[i];
        CHECK(t->entry >= 0 && t->entry <= t->exit && t->exit < in->bars, "trade %lld from bar %lld to %lld",
            (long long)i, (long long)t->entry, (long long)t->exit);
        CHECK(!i || t->entry >= in->trade[i - 1].entry, "trade %lld is out of order", (long long)i);
    }
}

bool stats_make(const stats_input *in, stats *s, err *e) {
    check_input(in);
    *s = (stats){0};
    stats_base b = {.in = in, .years = daily_years(in->time[0], in->time[in->bars - 1])};
    if (!daily_make(in->time, in->equity, in->bars, &b.daily, e)) return false;
    b.a_year = in->days_a_year > 0 ? in->days_a_year : daily_a_year(in->time, in->bars);
    sharpe_moments(b.daily.back, b.daily.backs, &b.mean, &b.deviation, &b.sample);
    stat_put(s, STAT_DAYS, (double)b.daily.days, NULL);
    stat_put(s, STAT_DAYS_A_YEAR, b.a_year, NULL);
    stat_put(s, STAT_TRIALS, in->trials, NULL);
    stats_of_trades(&b, s);
    stats_of_doubt(&b, s);
    bool ok = stats_of_equity(&b, s, e) && stats_of_control(&b, s, e) && put_correlations(in, s, e) &&
              stats_of_ranges(&b, s, e);
    daily_done(&b.daily);
    return ok;
}

static const char *figure(stat_unit unit, double v, char *text, size_t room) {
    switch (unit) {
    case STAT_UNIT_RATIO: snprintf(text, room, "%.4g", v); break;
    case STAT_UNIT_SHARE: snprintf(text, room, "%.*f %%", fabs(v) < 0.001 && v != 0 ? 4 : 2, 100 * v); break;
    case STAT_UNIT_MONEY: snprintf(text, room, "%.2f", v); break;
    case STAT_UNIT_COUNT: snprintf(text, room, "%.0f", v); break;
    case STAT_UNIT_DAYS: snprintf(text, room, "%.1f days", v); break;
    }
    return text;
}

const char *stats_figure(const stats *s, stat_name k, char *text, size_t room) {
    const stat_value *v = &s->of[k];
    if (!v->why) return figure(stats_row(k)->unit, v->value, text, room);
    snprintf(text, room, "not defined: %s", v->why);
    return text;
}

const char *stats_range(const stats *s, stat_name k, char *text, size_t room) {
    char low[40], high[40];
    const interval *r = &s->of[k].range;
    stat_unit unit = stats_row(k)->unit;
    snprintf(text, room, "%s", "");
    if (isfinite(r->low))
        snprintf(
            text, room, "%s to %s", figure(unit, r->low, low, sizeof low), figure(unit, r->high, high, sizeof high));
    return text;
}

// Counts are whole numbers, but for expected ones.
static json_t *number(stat_unit unit, double v) {
    bool whole = unit == STAT_UNIT_COUNT && fabs(v) < 1e15 && v == floor(v);
    return whole ? json_integer((json_int_t)v) : json_number(v);
}

json_t *stats_json(const stats *s) {
    json_t *to = json_object(), *reasons = json_object();
    for (int k = 0; k < STATS_COUNT; k++) {
        const stat_value *v = &s->of[k];
        char key[64];
        json_object_set_new(to, rows[k].key, number(rows[k].unit, v->value));
        snprintf(key, sizeof key, "%s_range", rows[k].key);
        if (isfinite(v->range.low)) json_object_set_new(to, key, json_pack("[ff]", v->range.low, v->range.high));
        if (v->why) json_object_set_new(reasons, rows[k].key, json_string(v->why));
    }
    json_object_set_new(to, "not_defined", reasons);
    return to;
}
