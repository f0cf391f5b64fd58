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

// a / b, or `otherwise` where b is not positive.
static inline double feature_ratio(double a, double b, double otherwise) {
    return b > 0 ? a / b : otherwise;
}

#endif
