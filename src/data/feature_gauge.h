// Running quantities of a series of bars: what features and strategies are computed from.
//
// A gauge is a list of slots, each one number a bar. The first ones come from the bar itself and the one before it; the
// others are asked for while the gauge is built (an average of that slot over so many bars) and computed in the order
// in which they were asked for. The same question asked twice gets the same slot. Nothing is allocated after
// gauge_start.
//
// Windows hold exactly the last n values: their sums are made of a block's suffix and the next block's prefix, never by
// adding and taking away, so that nothing drifts and nothing older than the window is felt. Exponential averages start
// as the plain mean of their first n values.
//
// A slot is 0 until the bar `first`; from the bar `settled` on the start of an exponential average weighs less than a
// thousandth. Bars are repaired on entry: prices lie within 1e-60..1e60, high and low embrace open and close, volume
// and spread are not negative. All slots are finite.
#ifndef TRADEWIND_DATA_FEATURE_GAUGE_H
#define TRADEWIND_DATA_FEATURE_GAUGE_H

#include "base/err.h"
#include "data/bar.h"

typedef struct gauge gauge;

// Slots that every gauge has.
enum {
    GAUGE_OPEN,
    GAUGE_HIGH,
    GAUGE_LOW,
    GAUGE_CLOSE,
    GAUGE_VOLUME,
    GAUGE_SPREAD,
    GAUGE_RANGE,     // high - low
    GAUGE_TYPICAL,   // (high + low + close) / 3
    GAUGE_DIRECTION, // -1, 0, 1: sign of close - open
    GAUGE_MONEY,     // typical * volume
    GAUGE_PRESSURE,  // volume * where the close lies in the range, -1..1
    GAUGE_LOG_CLOSE,
    GAUGE_LOG_RANGE, // square of ln(high / low)
    GAUGE_HOUR_SIN,  // of the time of day
    GAUGE_HOUR_COS,
    GAUGE_WEEKDAY_SIN,
    GAUGE_WEEKDAY_COS,
    GAUGE_YEAR_SIN,
    GAUGE_YEAR_COS,
    GAUGE_HOUR,    // 0..24, with the minutes as its fraction
    GAUGE_WEEKDAY, // 0 Monday .. 6 Sunday
    GAUGE_DAY,     // since 1970
    // These need the bar before.
    GAUGE_BEFORE, // the close before
    GAUGE_MISSED, // spans without a bar since the bar before
    GAUGE_RETURN, // ln(close / close before)
    GAUGE_CHANGE, // close - close before
    GAUGE_TRAVEL, // its absolute value
    GAUGE_GAIN,   // its positive part
    GAUGE_LOSS,   // its negative part
    GAUGE_TRUE_RANGE,
    GAUGE_RISE,         // Wilder's +DM
    GAUGE_FALL,         // Wilder's -DM
    GAUGE_VOLUME_SIDE,  // volume with the sign of the change
    GAUGE_MONEY_UP,     // money where the typical price rose
    GAUGE_MONEY_DOWN,   // money where it fell
    GAUGE_STREAK,       // closes in a row in one direction, with its sign
    GAUGE_RETURN_CROSS, // return * return before
    GAUGE_BASES
};

enum { GAUGE_WINDOW_MOST = 10000 };

// A gauge of bars of `span` seconds, with room for `most` more slots. NULL where memory is short.
gauge *gauge_new(int64_t span, int most, err *e);
void gauge_free(gauge *g);

// Slots, each from another slot and a window of 1..GAUGE_WINDOW_MOST bars.
int gauge_ema(gauge *g, int of, int bars);    // weight 2 / (bars + 1)
int gauge_wilder(gauge *g, int of, int bars); // weight 1 / bars
int gauge_mean(gauge *g, int of, int bars);
int gauge_variance(gauge *g, int of, int bars); // population
int gauge_highest(gauge *g, int of, int bars);
int gauge_lowest(gauge *g, int of, int bars);
int gauge_lag(gauge *g, int of, int bars);
int gauge_spread_about(gauge *g, int of, int bars); // mean absolute deviation from the window's mean; costs its length

// Slots from other slots.
int gauge_less(gauge *g, int a, int b);                  // a - b
int gauge_position(gauge *g, int of, int low, int high); // (of - low) / (high - low); 0.5 where they are equal
int gauge_contrast(gauge *g, int a, int b);              // |a - b| / (a + b); 0 where both are 0

// Ends building: allocates the windows. False where memory is short.
bool gauge_start(gauge *g, err *e);

// Takes the next closed bar. Times must not fall.
void gauge_push(gauge *g, const bar *b);

// As if no bar had been pushed.
void gauge_reset(gauge *g);

// Everything that the bars pushed so far have left behind, as gauge_state numbers: a gauge that was built alike and
// loads them goes on as the one that saved them. gauge_load returns false where the numbers cannot be a gauge's.
size_t gauge_state(const gauge *g);
void gauge_save(const gauge *g, double *to);
bool gauge_load(gauge *g, const double *from);

// The slots' values after the last push; bars pushed so far; and when a slot is defined and settled, counting bars
// from 0.
const double *gauge_values(const gauge *g);
int64_t gauge_count(const gauge *g);
int64_t gauge_first(const gauge *g, int slot);
int64_t gauge_settled(const gauge *g, int slot);

// When the last of all slots is.
int64_t gauge_first_of_all(const gauge *g);
int64_t gauge_settled_of_all(const gauge *g);

#endif
