// A made-up exchange: the data of the environment `market`, from random numbers, for tests that need one of any kind.
//
// Everything that can happen to an account happens to random actions in it: fills with costs, nights, ends of days,
// margin calls, ruin, overflow, and stretches that are over before an episode's limit.
#ifndef TRADEWIND_TEST_ENV_EXCHANGE_H
#define TRADEWIND_TEST_ENV_EXCHANGE_H

#include "env/market.h"
#include "rl/agent.h"

enum {
    EXCHANGE_INSTRUMENTS = 4,
    EXCHANGE_BARS = 240, // of each
    EXCHANGE_ROWS = EXCHANGE_INSTRUMENTS * EXCHANGE_BARS,
    EXCHANGE_STRETCHES = 2 * EXCHANGE_INSTRUMENTS, // a long one and a short one of each
    EXCHANGE_SHORT = 12,                           // bars of a short one
    EXCHANGE_LAGS = 4,
    EXCHANGE_LAGGED = 3,
    EXCHANGE_ONCE = 2,
    EXCHANGE_WIDTH = EXCHANGE_LAGGED + EXCHANGE_ONCE
};

typedef struct {
    account_bar bar[EXCHANGE_ROWS];
    float feature[EXCHANGE_ROWS * EXCHANGE_WIDTH], scale[2 * EXCHANGE_WIDTH];
    int32_t calendar[EXCHANGE_ROWS * MARKET_COLUMNS];
    market_stretch stretch[EXCHANGE_STRETCHES];
    account_rules rules[EXCHANGE_INSTRUMENTS];
} exchange;

// The same exchange every time.
void exchange_init(exchange *x);

// Puts it into an agent's world, with settings that its arrays and prices decide; the others stay as they are. It must
// outlive the world.
void exchange_world(const exchange *x, agent_world *w);

#endif
