// Rules about the edges of a range: leaving it, or turning at it.
#include "data/strategy_rule.h"

#include <math.h>

static verdict outside(const moment *m, double low, double high, double atrs) {
    if (m->close > high) return strategy_say(1, (m->close - high) / (atrs * m->atr));
    if (m->close < low) return strategy_say(-1, (low - m->close) / (atrs * m->atr));
    return (verdict){0, 0};
}

verdict strategy_rule_donchian_20(moment *m) {
    return outside(m, m->v[m->low20_before], m->v[m->high20_before], 1);
}

verdict strategy_rule_donchian_55(moment *m) {
    return outside(m, m->v[m->low55_before], m->v[m->high55_before], 1);
}

verdict strategy_rule_support_resistance_100(moment *m) {
    double up = (m->close - m->v[m->low100]) / m->atr, down = (m->v[m->high100] - m->close) / m->atr;
    if (up < 1 && m->v[GAUGE_DIRECTION] > 0) return strategy_say(1, 1 - up);
    if (down < 1 && m->v[GAUGE_DIRECTION] < 0) return strategy_say(-1, 1 - down);
    return (verdict){0, 0};
}

// Speaks for three bars after a squeeze of at least three.
verdict strategy_rule_squeeze_20(moment *m) {
    bool within = 2 * sqrt(m->v[m->sma20_variance]) < 1.5 * m->atr;
    if (within && m->released) m->squeezed = m->released = 0;
    if (within)
        m->squeezed++;
    else
        m->released++;
    if (within || m->released > 3 || m->squeezed < 3) return (verdict){0, 0};
    return strategy_say(m->close - m->v[m->close10], (double)m->squeezed / 20);
}

verdict strategy_rule_opening_range(moment *m) {
    double hour = m->v[GAUGE_HOUR], day = m->v[GAUGE_DAY];
    if (hour >= 7 && hour < 8) {
        bool first = m->day != day;
        m->day = day;
        m->range_high = first ? m->bars[0].high : fmax(m->range_high, m->bars[0].high);
        m->range_low = first ? m->bars[0].low : fmin(m->range_low, m->bars[0].low);
    }
    if (hour < 8 || hour >= 16 || m->day != day) return (verdict){0, 0};
    return outside(m, m->range_low, m->range_high, 5);
}

verdict strategy_rule_inside_bar(moment *m) {
    const bar *inner = &m->bars[1], *mother = &m->bars[2];
    if (inner->high > mother->high || inner->low < mother->low) return (verdict){0, 0};
    return outside(m, mother->low, mother->high, 1);
}
