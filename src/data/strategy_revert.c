// Rules that expect a price to return: they buy what has fallen.
#include "data/strategy_rule.h"

#include <math.h>

static double rsi(const moment *m, int gain, int loss) {
    double total = m->v[gain] + m->v[loss];
    return total > 0 ? 100 * m->v[gain] / total : 50;
}

verdict strategy_rule_rsi_14(moment *m) {
    return strategy_beyond(50 - rsi(m, m->gain14, m->loss14), 20, 20);
}

static double zscore(const moment *m, int mean, int variance) {
    double sd = sqrt(m->v[variance]);
    return sd > 0 ? (m->close - m->v[mean]) / sd : 0;
}

verdict strategy_rule_bollinger_20_2(moment *m) {
    return strategy_beyond(-zscore(m, m->sma20, m->sma20_variance), 2, 1);
}

verdict strategy_rule_stochastic_14_3_3(moment *m) {
    double k = 100 * m->v[m->k], d = 100 * m->v[m->d];
    if (k < 20 && k > d) return strategy_say(1, (20 - k) / 20);
    if (k > 80 && k < d) return strategy_say(-1, (k - 80) / 20);
    return (verdict){0, 0};
}

verdict strategy_rule_cci_20(moment *m) {
    double mean = m->v[m->typical20], about = m->v[m->about20];
    if (!(about > 1e-13 * mean)) return (verdict){0, 0};
    return strategy_beyond((mean - m->v[GAUGE_TYPICAL]) / (0.015 * about), 100, 200);
}

verdict strategy_rule_williams_14(moment *m) {
    return strategy_beyond(50 - 100 * m->v[m->place14], 40, 10);
}

verdict strategy_rule_zscore_50(moment *m) {
    return strategy_beyond(-zscore(m, m->sma50, m->sma50_variance), 1.5, 2);
}

// Connors' rule: a short fall within a long rise.
verdict strategy_rule_rsi_2(moment *m) {
    verdict x = strategy_beyond(50 - rsi(m, m->gain2, m->loss2), 40, 10);
    return x.signal * (m->close - m->v[m->sma200]) > 0 ? x : (verdict){0, 0};
}

verdict strategy_rule_keltner_20_2(moment *m) {
    double low = m->v[m->ema20] - 2 * m->atr, high = m->v[m->ema20] + 2 * m->atr;
    if (m->bars[0].low < low && m->close > low) return strategy_say(1, (m->close - low) / m->atr);
    if (m->bars[0].high > high && m->close < high) return strategy_say(-1, (high - m->close) / m->atr);
    return (verdict){0, 0};
}
