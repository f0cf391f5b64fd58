// Assumptions of a backtest as lines for people, each with a word before it: the same on the screen, in JSON and in
// reports.
#ifndef TRADEWIND_BACKTEST_ASSUMPTIONS_H
#define TRADEWIND_BACKTEST_ASSUMPTIONS_H

#include "backtest/replay.h"
#include "base/json.h"

enum { ASSUMPTIONS_MOST = 32, ASSUMPTION_ROOM = 480 };

typedef struct {
    const char *key; // static
    char text[ASSUMPTION_ROOM];
} assumption;

typedef struct {
    assumption of[ASSUMPTIONS_MOST];
    int count;
} assumptions;

// Adds a line; longer ones are cut.
void assumptions_add(assumptions *a, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Adds the lines of the account: money, costs, fills; then what came of them in a replay that has ended: ambiguous bars
// orders that were refused, positions without a size.
void assumptions_of_replay(assumptions *a, const account_terms *t, const replay *p);

// A list of {"key", "text"}; a new reference.
json_t *assumptions_json(const assumptions *a);

#endif
