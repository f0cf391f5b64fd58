// Features of the time at which a bar opened, in UTC: a column without parameters for each.
#include "data/feature_rule.h"

#include <math.h>

// A function that yields an expression of the slots, and its rule.
#define TIME(name, expression)                                                                                         \
    static double value_##name(const feature *x, const double *v) {                                                    \
        (void)x;                                                                                                       \
        return expression;                                                                                             \
    }                                                                                                                  \
    RULE(name) = {feature_plan_nothing, value_##name};

static double within(double hour, double from, double to) {
    return hour >= from && hour < to;
}

TIME(session_asia, within(v[GAUGE_HOUR], 0, 8))
TIME(session_london, within(v[GAUGE_HOUR], 7, 16))
TIME(session_new_york, within(v[GAUGE_HOUR], 12, 21))
TIME(session_overlap, within(v[GAUGE_HOUR], 12, 16))
TIME(hour_sin, v[GAUGE_HOUR_SIN])
TIME(hour_cos, v[GAUGE_HOUR_COS])
TIME(weekday_sin, v[GAUGE_WEEKDAY_SIN])
TIME(weekday_cos, v[GAUGE_WEEKDAY_COS])
TIME(year_sin, v[GAUGE_YEAR_SIN])
TIME(year_cos, v[GAUGE_YEAR_COS])

static void plan_missed_bars(feature *x, gauge *g) {
    (void)g;
    x->slot[0] = GAUGE_MISSED;
}

// Most bars follow at once: no logarithm for those.
static double value_missed_bars(const feature *x, const double *v) {
    return v[x->slot[0]] > 0 ? log1p(v[x->slot[0]]) : 0;
}

RULE(missed_bars) = {plan_missed_bars, value_missed_bars};
