#include "data/strategy.h"

#include "data/strategy_rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    strategy_info info;
    const char *strength_name;
    strategy_rule *rule;
} rules[] = {
#define STRATEGY(name, signal, strength) {{#name, signal, strength}, #name "_strength", strategy_rule_##name},
#include "data/strategy.def"
#undef STRATEGY
};

_Static_assert(sizeof rules / sizeof *rules == STRATEGIES, "strategy.def has 32 rows");

enum { NODES = 80 }; // room for the gauge's slots

struct strategy {
    gauge *gauge;
    int64_t first, warm_up;
    moment fresh; // with the slots, and no memory
    moment now;
};

strategy_info strategy_at(int i) {
    CHECK(i >= 0 && i < STRATEGIES, "strategy %d", i);
    return rules[i].info;
}

const char *strategy_name(int column) {
    CHECK(column >= 0 && column < STRATEGY_COLUMNS, "column %d", column);
    return column < STRATEGIES ? rules[column].info.name : rules[column - STRATEGIES].strength_name;
}

static void plan_averages(moment *m, gauge *g) {
    m->ema9 = gauge_ema(g, GAUGE_CLOSE, 9);
    m->ema20 = gauge_ema(g, GAUGE_CLOSE, 20);
    m->ema21 = gauge_ema(g, GAUGE_CLOSE, 21);
    m->ema50 = gauge_ema(g, GAUGE_CLOSE, 50);
    m->sma20 = gauge_mean(g, GAUGE_CLOSE, 20);
    m->sma20_variance = gauge_variance(g, GAUGE_CLOSE, 20);
    m->sma50 = gauge_mean(g, GAUGE_CLOSE, 50);
    m->sma50_variance = gauge_variance(g, GAUGE_CLOSE, 50);
    m->sma200 = gauge_mean(g, GAUGE_CLOSE, 200);
    m->macd = gauge_less(g, gauge_ema(g, GAUGE_CLOSE, 12), gauge_ema(g, GAUGE_CLOSE, 26));
    m->macd_signal = gauge_ema(g, m->macd, 9);
    m->rise = gauge_wilder(g, GAUGE_RISE, 14);
    m->fall = gauge_wilder(g, GAUGE_FALL, 14);
    m->adx = gauge_wilder(g, gauge_contrast(g, m->rise, m->fall), 14);
    m->atr14 = gauge_wilder(g, GAUGE_TRUE_RANGE, 14);
    m->atr100 = gauge_wilder(g, GAUGE_TRUE_RANGE, 100);
    m->gain14 = gauge_wilder(g, GAUGE_GAIN, 14);
    m->loss14 = gauge_wilder(g, GAUGE_LOSS, 14);
    m->gain2 = gauge_wilder(g, GAUGE_GAIN, 2);
    m->loss2 = gauge_wilder(g, GAUGE_LOSS, 2);
    m->typical20 = gauge_mean(g, GAUGE_TYPICAL, 20);
    m->about20 = gauge_spread_about(g, GAUGE_TYPICAL, 20);
    m->volume20 = gauge_mean(g, GAUGE_VOLUME, 20);
    m->close5 = gauge_lag(g, GAUGE_CLOSE, 5);
    m->close10 = gauge_lag(g, GAUGE_CLOSE, 10);
}

static void plan_extremes(moment *m, gauge *g) {
    m->high9 = gauge_highest(g, GAUGE_HIGH, 9);
    m->low9 = gauge_lowest(g, GAUGE_LOW, 9);
    m->high26 = gauge_highest(g, GAUGE_HIGH, 26);
    m->low26 = gauge_lowest(g, GAUGE_LOW, 26);
    m->high10 = gauge_highest(g, GAUGE_HIGH, 10);
    m->low10 = gauge_lowest(g, GAUGE_LOW, 10);
    m->high10_before = gauge_lag(g, m->high10, 10);
    m->low10_before = gauge_lag(g, m->low10, 10);
    m->high20_before = gauge_lag(g, gauge_highest(g, GAUGE_HIGH, 20), 1);
    m->low20_before = gauge_lag(g, gauge_lowest(g, GAUGE_LOW, 20), 1);
    m->high55_before = gauge_lag(g, gauge_highest(g, GAUGE_HIGH, 55), 1);
    m->low55_before = gauge_lag(g, gauge_lowest(g, GAUGE_LOW, 55), 1);
    m->high100 = gauge_highest(g, GAUGE_HIGH, 100);
    m->low100 = gauge_lowest(g, GAUGE_LOW, 100);
    m->place14 = gauge_position(g, GAUGE_CLOSE, gauge_lowest(g, GAUGE_LOW, 14), gauge_highest(g, GAUGE_HIGH, 14));
    m->k = gauge_mean(g, m->place14, 3);
    m->d = gauge_mean(g, m->k, 3);
}

strategy *strategy_new(int64_t span, err *e) {
    if (span < 1) {
        err_input(e, "bars of %lld seconds; give the span of a bar", (long long)span);
        return NULL;
    }
    strategy *s = calloc(1, sizeof *s);
    if (!s) {
        err_run(e, "no memory for the strategy vector");
        return NULL;
    }
    s->gauge = gauge_new(span, NODES, e);
    if (!s->gauge) goto done;
    s->fresh.v = gauge_values(s->gauge);
    s->fresh.day = NAN;
    plan_averages(&s->fresh, s->gauge);
    plan_extremes(&s->fresh, s->gauge);
    s->first = gauge_first_of_all(s->gauge);
    s->warm_up = gauge_settled_of_all(s->gauge);
    if (!gauge_start(s->gauge, e)) goto done;
    s->now = s->fresh;
    return s;
done:
    strategy_free(s);
    return NULL;
}

void strategy_free(strategy *s) {
    if (!s) return;
    gauge_free(s->gauge);
    free(s);
}

void strategy_reset(strategy *s) {
    gauge_reset(s->gauge);
    s->now = s->fresh;
}

int64_t strategy_warm_up(const strategy *s) {
    return s->warm_up;
}

// A market that does not move at all has a range of a billionth of its price: strengths stay defined.
static void take_bar(moment *m, const bar *b) {
    const double *v = m->v;
    double least = 1e-9 * v[GAUGE_CLOSE];
    memmove(&m->bars[1], &m->bars[0], 3 * sizeof *m->bars);
    m->bars[0] = (bar){
        b->time, b->end, v[GAUGE_OPEN], v[GAUGE_HIGH], v[GAUGE_LOW], v[GAUGE_CLOSE], v[GAUGE_VOLUME], v[GAUGE_SPREAD]};
    m->close = v[GAUGE_CLOSE];
    m->atr = v[m->atr14] > least ? v[m->atr14] : least;
}

void strategy_push(strategy *s, const bar *b, int8_t signal[STRATEGIES], float strength[STRATEGIES]) {
    int64_t t = gauge_count(s->gauge);
    gauge_push(s->gauge, b);
    take_bar(&s->now, b);
    if (t < s->first) {
        memset(signal, 0, STRATEGIES * sizeof *signal);
        memset(strength, 0, STRATEGIES * sizeof *strength);
        return;
    }
    for (int i = 0; i < STRATEGIES; i++) {
        verdict x = rules[i].rule(&s->now);
        signal[i] = (int8_t)x.signal;
        strength[i] = (float)x.strength;
    }
}

void strategy_run(strategy *s, const bar *bars, int64_t count, int8_t *signal, float *strength) {
    for (int64_t t = 0; t < count; t++) strategy_push(s, &bars[t], signal + t * STRATEGIES, strength + t * STRATEGIES);
}

// The state: the last bars and the rules' memories, then the gauge.

enum { BARS = sizeof((moment *)0)->bars / sizeof(bar), MEMORY = 8, HEAD = BARS * BAR_NUMBERS + MEMORY };

size_t strategy_state(const strategy *s) {
    return HEAD + gauge_state(s->gauge);
}

void strategy_save(const strategy *s, double *to) {
    const moment *m = &s->now;
    const double memory[MEMORY] = {
        m->side, m->stop, (double)m->squeezed, (double)m->released, m->day, m->range_high, m->range_low, m->step};
    for (int i = 0; i < BARS; i++) bar_save(&m->bars[i], to + i * BAR_NUMBERS);
    memcpy(to + BARS * BAR_NUMBERS, memory, sizeof memory);
    gauge_save(s->gauge, to + HEAD);
}

bool strategy_load(strategy *s, const double *from) {
    moment *m = &s->now;
    const double *memory = from + BARS * BAR_NUMBERS;
    bool ok = fabs(memory[0]) <= 1 && fabs(memory[2]) < 1e15 && fabs(memory[3]) < 1e15;
    if (!ok || !gauge_load(s->gauge, from + HEAD)) return false;
    for (int i = 0; i < BARS; i++) bar_load(&m->bars[i], from + i * BAR_NUMBERS);
    m->side = (int)memory[0];
    m->stop = memory[1];
    m->squeezed = (int64_t)memory[2];
    m->released = (int64_t)memory[3];
    m->day = memory[4];
    m->range_high = memory[5];
    m->range_low = memory[6];
    m->step = memory[7];
    return true;
}
