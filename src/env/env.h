// Environments that an agent acts in: shapes, settings, random numbers. One source for C and for nvcc.
//
// An environment is a header env/NAME.h and a row in env.def. The header has a plain struct NAME_state and
//
//   NAME_shape     widths of observation and action, usual length of an episode
//   NAME_reset     a state at the beginning of an episode, from random numbers alone
//   NAME_observe   the observation of a state; it draws nothing and changes nothing
//   NAME_step      the state after an action, with its reward and how the episode goes on
//
// env/each.h makes of these a batch: episodes that end begin anew by themselves, and are cut off (truncated) at the
// limit of steps. Given the same actions, states and rewards have the same bits on every device: these sources are
// compiled without contraction and use env/maths.h.
#ifndef TRADEWIND_ENV_ENV_H
#define TRADEWIND_ENV_ENV_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ENV_FN static __host__ __device__ inline
#else
#define ENV_FN static inline
#endif

// On a card the lanes of a warp observe together: each may compute the same, or share out columns by these.
#ifdef __CUDA_ARCH__
enum { ENV_LANES = 32 };
#define ENV_LANE ((int)threadIdx.x % ENV_LANES)
#else
enum { ENV_LANES = 1 };
#define ENV_LANE 0
#endif

typedef enum {
#define ENV(name) ENV_##name,
#include "env/env.def"
#undef ENV
    ENV_COUNT
} env_kind;

// Reward of a bar (env/market.h says what each is).
typedef enum { MARKET_LOG, MARKET_SHARPE, MARKET_SHAPED } market_reward;

// Settings of `market`.
typedef struct {
    int32_t lags;      // closed bars whose first `lagged` features are observed, 1 or more
    int32_t lagged;    // features of a row that are observed for every lag
    int32_t once;      // features of a row, behind those, that are observed for the newest bar alone
    int32_t stretches; // rows of the part MARKET_STRETCHES, 1 or more
    int32_t reward;    // market_reward
    bool continuous;   // actions are a direction and a size, not 0, 1, 2
    bool from_first;   // episodes begin with the first bar of a stretch, not anywhere in it
    bool day_close;    // positions are closed at the close of each day's last bar
    double size;       // value of a full position in units of equity: a share times the leverage
    double ruin;       // share of the starting cash: equity at or below it terminates
    double eta;        // MARKET_SHARPE: weight of the newest return in the moving averages
    double shape;      // MARKET_SHAPED: weight of the largest drawdown
} market_settings;

// Settings of one environment, the same for all of a batch.
typedef struct {
    env_kind kind;
    int32_t limit; // steps of an episode, at which it is truncated; 0: none
    market_settings market;
} env_settings;

enum { ENV_PARTS_MOST = 6, ENV_OBSERVATION_MOST = 4096, ENV_ACTION_MOST = 16 };

// Arrays that all environments of a batch read, in the device's memory: those of the environment's own header.
typedef struct {
    const void *part[ENV_PARTS_MOST];
    int64_t rows;
} env_data;

typedef struct {
    int observation; // columns
    int choices;     // discrete actions, 0 .. choices - 1; 0: actions are numbers
    int action;      // columns: 1 for discrete ones
    int limit;       // usual steps of an episode; 0: none
} env_shape;

typedef enum { ENV_GOES_ON, ENV_TERMINATED, ENV_TRUNCATED } env_end;

// A source of random numbers for one environment at one moment: a pure function of these.
typedef struct {
    uint64_t seed;
    uint64_t moment; // steps of all environments before this one
    uint32_t stream; // tells rollouts from evaluations
} env_dice;

// The k-th four words of the moment.
ENV_FN rng_block env_draw(const env_dice *d, uint32_t k) {
    uint32_t who = (uint32_t)RNG_ENVIRONMENT << 16 | (d->stream & 0xFFFFu);
    return rng_philox(d->seed, (uint32_t)d->moment, (uint32_t)(d->moment >> 32), who, k);
}

// A number in [low, high).
ENV_FN double env_between(uint32_t bits, double low, double high) {
    return low + (high - low) * ((double)bits * 0x1p-32);
}

#endif
