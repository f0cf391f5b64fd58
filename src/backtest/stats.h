// Statistics of a backtest: one list, stats.def, that text, JSON and reports render alike, each row with its
// definition.
//
// Figures are of daily equity (backtest/daily.h) unless their definition says otherwise. A statistic that the data do
// not give has no value but a reason, and is never printed as a number. Everything is a pure function of its input.
#ifndef TRADEWIND_BACKTEST_STATS_H
#define TRADEWIND_BACKTEST_STATS_H

#include "backtest/overfit.h"
#include "base/json.h"
#include "train/bootstrap.h"

typedef enum {
#define STAT(NAME, key, label, unit, definition) STAT_##NAME,
#include "backtest/stats.def"
#undef STAT
    STATS_COUNT
} stat_name;

// RATIO is a plain number, SHARE is printed in percent.
typedef enum { STAT_UNIT_RATIO, STAT_UNIT_SHARE, STAT_UNIT_MONEY, STAT_UNIT_COUNT, STAT_UNIT_DAYS } stat_unit;

typedef struct {
    const char *key, *label;
    stat_unit unit;
    const char *definition;
} stat_row;

typedef struct {
    double value;    // NaN where it is not defined
    const char *why; // the reason then; NULL where there is a value
    interval range;  // 95 % by block bootstrap of days; NaN: none
} stat_value;

typedef struct {
    stat_value of[STATS_COUNT];
    int64_t block; // days in a block of the bootstrap; 0: no intervals were made
} stats;

typedef struct {
    int64_t entry, exit; // bars of the fills
    int side;            // 1 long, -1 short
    double value;        // money, of the fill that opened it
    double traded;       // money, of all its fills
    double cost;         // money, spread to swap
    double result;       // money, after costs
} stats_trade;

typedef struct {
    const int64_t *time;      // [bars] opens, seconds on the clock whose midnight ends a day; they never fall
    const double *equity;     // [bars] at closes; finite
    const double *close;      // [bars] for buy-and-hold; NULL: none
    const double *price;      // [bars] of fills, for the random-entry control: opens; NULL: no control
    int64_t bars;             // at least 1
    double cash;              // before the first bar; above 0
    const stats_trade *trade; // in order of entry
    int64_t trades;
    double days_a_year;                 // 0: from the bars
    const double *prediction, *outcome; // [predictions], for IC; NULL: none
    int64_t predictions;
    double trials;          // settings tried, this one included; 1 or more
    double trial_variance;  // of their annual Sharpe; 0: as ratios of trials without skill differ, 1 / (returns - 1)
                            // a period
    const overfit *overfit; // NULL: trials were not kept
    uint64_t seed;          // of the control
    bool brief;             // neither intervals nor control, which take most of the time
} stats_input;

// ERR_RUN where memory is short.
bool stats_make(const stats_input *in, stats *s, err *e);

// Puts in what is known once all trials are made: the variance of their annual Sharpe ratios (NaN: not known) for the
// deflated one, and overfitting, NULL for the reason `why`, which must outlive `s`.
void stats_of_trials(stats *s, double variance, const overfit *o, const char *why);

const stat_row *stats_row(stat_name k);

// A statistic with its unit, or "not defined: REASON", written into `text`, and its interval, "0.12 to 0.98", or "".
const char *stats_figure(const stats *s, stat_name k, char *text, size_t room);
const char *stats_range(const stats *s, stat_name k, char *text, size_t room);

// An object: every key with its value, null where it is not defined; `KEY_range` [low, high] where there is an
// interval; `not_defined` with the reasons by key. A new reference.
json_t *stats_json(const stats *s);

#endif
