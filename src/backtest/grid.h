// Settings of a sweep: every combination of values that several keys are to have.
//
// An axis is one key with its values, "signal.hold=6,12,24" or "signal.threshold=0.4:0.6:0.02": from, to (included) and
// step. The last axis runs fastest.
#ifndef TRADEWIND_BACKTEST_GRID_H
#define TRADEWIND_BACKTEST_GRID_H

#include "base/config.h"

enum { GRID_AXES_MOST = 8, GRID_SETTINGS_MOST = 10000, GRID_KEY_ROOM = 64 };

typedef struct {
    char key[GRID_KEY_ROOM];
    char **word; // [count] "signal.hold=6"
    int64_t count;
} grid_axis;

typedef struct {
    grid_axis axis[GRID_AXES_MOST];
    int axes;
    int64_t settings;
} grid;

// Reads `count` axes, at least 1. ERR_INPUT where one is not written as above, a key or a value of a key comes twice,
// or settings are fewer than 2 or too many. To be given back by grid_done, also on failure.
bool grid_read(grid *g, const char *const *texts, int count, err *e);
void grid_done(grid *g);

// The value of an axis in a setting, as text.
const char *grid_value(const grid *g, int64_t setting, int axis);

// Puts a setting's values into a description and checks it. Values of an earlier setting are replaced.
bool grid_apply(const grid *g, int64_t setting, config *c, err *e);

#endif
