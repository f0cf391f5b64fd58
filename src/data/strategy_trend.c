// Rules that follow a trend.
#include "data/strategy_rule.h"

#include <math.h>

static verdict cross(const moment *m, int fast, int slow, double atrs) {
    double d = m->v[fast] - m->v[slow];
    return strategy_say(d, fabs(d) / (atrs * m->atr));
}

verdict strategy_rule_ema_cross_9_21(moment *m) {
    return cross(m, m->ema9, m->ema21, 1);
}

verdict strategy_rule_ema_cross_20_50(moment *m) {
    return cross(m, m->ema20, m->ema50, 2);
}

verdict strategy_rule_sma_cross_50_200(moment *m) {
    return cross(m, m->sma50, m->sma200, 5);
}

verdict strategy_rule_macd_12_26_9(moment *m) {
    return cross(m, m->macd, m->macd_signal, 0.5);
}

verdict strategy_rule_adx_14(moment *m) {
    double adx = m->v[m->adx];
    return adx > 0.2 ? strategy_say(m->v[m->rise] - m->v[m->fall], adx / 0.6) : (verdict){0, 0};
}

verdict strategy_rule_ichimoku_9_26(moment *m) {
    const double *v = m->v;
    double conversion = (v[m->high9] + v[m->low9]) / 2, base = (v[m->high26] + v[m->low26]) / 2;
    double strength = fabs(m->close - base) / (3 * m->atr);
    if (conversion > base && m->close > conversion) return strategy_say(1, strength);
    if (conversion < base && m->close < conversion) return strategy_say(-1, strength);
    return (verdict){0, 0};
}

verdict strategy_rule_trailing_stop_14_3(moment *m) {
    double below = m->close - 3 * m->atr, above = m->close + 3 * m->atr;
    if (m->side == 0 || (m->close - m->stop) * m->side < 0) {
        m->side = m->side == 1 ? -1 : 1;
        m->stop = m->side > 0 ? below : above;
    } else {
        m->stop = m->side > 0 ? fmax(m->stop, below) : fmin(m->stop, above);
    }
    return strategy_say(m->side, fabs(m->close - m->stop) / (6 * m->atr));
}

verdict strategy_rule_higher_highs_10(moment *m) {
    double high = m->v[m->high10] - m->v[m->high10_before], low = m->v[m->low10] - m->v[m->low10_before];
    if (!(high * low > 0)) return (verdict){0, 0};
    return strategy_say(high, fmin(fabs(high), fabs(low)) / (2 * m->atr));
}

verdict strategy_rule_momentum_10(moment *m) {
    double change = m->close - m->v[m->close10];
    return fabs(change) > m->atr ? strategy_say(change, fabs(change) / (6 * m->atr)) : (verdict){0, 0};
}
