// Rules about the shapes of bars.
#include "data/strategy_rule.h"

#include <math.h>

static double body(const bar *b) {
    return b->close - b->open;
}

verdict strategy_rule_engulfing(moment *m) {
    double now = body(&m->bars[0]), before = body(&m->bars[1]);
    if (!(now * before < 0) || fabs(now) <= fabs(before)) return (verdict){0, 0};
    double side = now > 0 ? 1 : -1;
    bool holds = (m->close - m->bars[1].open) * side >= 0 && (m->bars[1].close - m->bars[0].open) * side >= 0;
    return holds ? strategy_say(now, fabs(now) / (2 * m->atr)) : (verdict){0, 0};
}

verdict strategy_rule_hammer(moment *m) {
    const bar *b = &m->bars[0];
    double size = fabs(body(b)), upper = b->high - fmax(b->open, b->close), lower = fmin(b->open, b->close) - b->low;
    double before = m->bars[1].close - m->bars[3].close;
    if (lower > 2 * size && lower > 2 * upper && before < 0) return strategy_say(1, lower / (2 * m->atr));
    if (upper > 2 * size && upper > 2 * lower && before > 0) return strategy_say(-1, upper / (2 * m->atr));
    return (verdict){0, 0};
}

verdict strategy_rule_doji(moment *m) {
    const bar *b = &m->bars[0];
    double change = m->close - m->v[m->close5];
    if (fabs(body(b)) > 0.1 * (b->high - b->low) || b->high <= b->low) return (verdict){0, 0};
    return strategy_say(-change, fabs(change) / (4 * m->atr));
}

verdict strategy_rule_three_soldiers(moment *m) {
    double side = m->v[GAUGE_DIRECTION];
    for (int i = 0; i < 3; i++) {
        const bar *b = &m->bars[i];
        if (!(body(b) * side > 0.5 * (b->high - b->low))) return (verdict){0, 0};
        if (!((b->close - m->bars[i + 1].close) * side > 0)) return (verdict){0, 0};
    }
    return strategy_say(side, fabs(m->close - m->bars[3].close) / (4 * m->atr));
}
