// Shared by strategy_*.c: the quantities that rules read, and how a rule answers. Private to strategies.
#ifndef TRADEWIND_DATA_STRATEGY_RULE_H
#define TRADEWIND_DATA_STRATEGY_RULE_H

#include "data/feature_gauge.h"
#include "data/strategy.h"

typedef struct {
    int signal;
    double strength;
} verdict;

// A bar's quantities, and what the rules with a memory keep. `bars[0]` is the bar just closed, repaired as the gauge
// has it; the others are those before.
typedef struct {
    const double *v;
    bar bars[4];
    double atr; // positive
    double close;

    // Slots of the gauge.
    int ema9, ema20, ema21, ema50, sma50, sma50_variance, sma200;
    int macd, macd_signal, rise, fall, adx, atr14, atr100, close10, close5;
    int high9, low9, high26, low26, high10, low10, high10_before, low10_before;
    int gain14, loss14, gain2, loss2, sma20, sma20_variance, place14, k, d, typical20, about20;
    int high20_before, low20_before, high55_before, low55_before, high100, low100, volume20;

    // The trailing stop.
    int side; // 0 before the first bar
    double stop;
    // The squeeze: bars that it has lasted, and bars since it ended.
    int64_t squeezed, released;
    // The opening range: its day (NAN before the first), high and low.
    double day, range_high, range_low;
    // The distance of round numbers.
    double step;
} moment;

typedef verdict strategy_rule(moment *m);

#define STRATEGY(name, ...) strategy_rule strategy_rule_##name;
#include "data/strategy.def"
#undef STRATEGY

// A signal with the sign of `lean`, and its strength brought within 0..1.
static inline verdict strategy_say(double lean, double strength) {
    int signal = (lean > 0) - (lean < 0);
    strength = strength > 0 ? (strength < 1 ? strength : 1) : 0;
    return (verdict){signal, signal ? strength : 0};
}

// The sign of a value that goes beyond a threshold, with how far it goes beyond in units of `unit`.
static inline verdict strategy_beyond(double x, double threshold, double unit) {
    double size = x < 0 ? -x : x;
    return size > threshold ? strategy_say(x, (size - threshold) / unit) : (verdict){0, 0};
}

#endif
