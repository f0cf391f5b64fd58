// How a feature is computed: what one of feature_*.c exports for each row of feature.def. Private to features.
//
// `plan` asks the gauge for the slots that the feature reads and keeps them in `slot`; `value` computes the column from
// the slots' values, which are finite, and has a defined result for every division.
#ifndef TRADEWIND_DATA_FEATURE_RULE_H
#define TRADEWIND_DATA_FEATURE_RULE_H

#include "data/feature_gauge.h"

enum { FEATURE_PARAMETERS = 3, FEATURE_SLOTS = 4, FEATURE_NODES = 12 }; // FEATURE_NODES: slots that a plan may add

typedef struct {
    double number[FEATURE_PARAMETERS];
    int slot[FEATURE_SLOTS]; // those not used are GAUGE_OPEN, which is always defined
} feature;

typedef struct {
    void (*plan)(feature *x, gauge *g);
    double (*value)(const feature *x, const double *v);
} feature_rule;

#define FEATURE(name, ...) extern const feature_rule feature_rule_##name;
#include "data/feature.def"
#undef FEATURE

#define RULE(name) const feature_rule feature_rule_##name

// Parameter `i` as a number of bars.
static inline int feature_bars(const feature *x, int i) {
    return (int)x->number[i];
}

// Shared by several rules.

static inline void feature_plan_nothing(feature *x, gauge *g) {
    (void)x;
    (void)g;
}

// Slot 0: the average true range.
static inline void feature_plan_atr(feature *x, gauge *g) {
    x->slot[0] = gauge_wilder(g, GAUGE_TRUE_RANGE, feature_bars(x, 0));
}

static inline double feature_value_slot(const feature *x, const double *v) {
    return v[x->slot[0]];
}

static inline double feature_value_of_close(const feature *x, const double *v) {
    return v[x->slot[0]] / v[GAUGE_CLOSE];
}

// close / slot 0 - 1, which is a price and so positive.
static inline double feature_value_distance(const feature *x, const double *v) {
    return (v[GAUGE_CLOSE] - v[x->slot[0]]) / v[x->slot[0]];
}

// a / b, or `otherwise` where b is not positive.
static inline double feature_ratio(double a, double b, double otherwise) {
    return b > 0 ? a / b : otherwise;
}

#endif
