// Rules about volume, volatility, the time of day, gaps and levels.
#include "data/strategy_rule.h"

#include <math.h>

verdict strategy_rule_volume_confirmation(moment *m) {
    double mean = m->v[m->volume20], volume = m->v[GAUGE_VOLUME];
    if (!(volume > 1.5 * mean)) return (verdict){0, 0};
    return strategy_say(m->v[GAUGE_DIRECTION], mean > 0 ? (volume / mean - 1.5) / 2 : 1);
}

verdict strategy_rule_atr_filter(moment *m) {
    double slow = m->v[m->atr100];
    return slow > 0 ? strategy_beyond(m->v[m->atr14] / slow - 1, 0.1, 0.5) : (verdict){0, 0};
}

verdict strategy_rule_session(moment *m) {
    double hour = m->v[GAUGE_HOUR], night = hour < 12 ? hour + 24 : hour;
    if (hour >= 12 && hour < 16) return strategy_say(1, 1 - fabs(hour - 14) / 4);
    if (night >= 21 && night < 30) return strategy_say(-1, 1 - fabs(night - 25.5) / 9);
    return (verdict){0, 0};
}

verdict strategy_rule_gap(moment *m) {
    double gap = (m->v[GAUGE_BEFORE] - m->bars[0].open) / m->atr;
    return fabs(gap) > 0.25 ? strategy_say(gap, fabs(gap) / 2) : (verdict){0, 0};
}

// The step is the smallest power of ten that 5 ATR do not exceed; it is kept because logarithms are slow. Prices and
// ranges lie within 1e-60 and 1e60, so it is an ordinary number.
verdict strategy_rule_round_number(moment *m) {
    double least = 5 * m->atr;
    if (least > m->step || least <= m->step / 10) m->step = pow(10, ceil(log10(least)));
    double step = m->step, level = floor(m->close / step) * step;
    if (level > 0 && m->bars[0].low < level) return strategy_say(1, (m->close - level) / m->atr);
    level += step;
    if (m->bars[0].high > level) return strategy_say(-1, (level - m->close) / m->atr);
    return (verdict){0, 0};
}
