// Small calls around an agent's nets in one launch, one after the other: observing, standardising, drawing actions,
// acting, scaling rewards, writing rows of the rollout, moving on.
//
// An act is a dozen of such calls, each of which takes less time than its launch. A few environments are one block's:
// where acts are recorded together, the end of one and the beginning of the next share a launch. Of many environments
// every block has some, in all calls the same ones, so that blocks need not wait for each other; calls that look at all
// rows, or move on, then have launches of their own, and so has sampling with noise that is a sum over a latent. All
// ways give the same bits.
#ifndef TRADEWIND_CUDA_JOIN_ACT_CUH
#define TRADEWIND_CUDA_JOIN_ACT_CUH

#include "cuda/ops/action_std.cuh"
#include "cuda/ops/env_see.cuh"
#include "cuda/ops/env_take.cuh"
#include "cuda/ops/sample.cuh"
#include "cuda/ops/scale_reward.cuh"
#include "cuda/ops/standardise.cuh"
#include "cuda/ops/write_ends.cuh"
#include "cuda/ops/write_rows.cuh"

enum { ACT_MOST = 22 };

struct act_advance {
    step_cursor *cursor;
    uint64_t rows;
};

struct act_member {
    int op;
    bool waits; // for members before it
    union {
        env_see_args see;
        env_take_args take;
        sample_args sample;
        action_std_args std;
        standardise_args standardise;
        scale_reward_args reward;
        write_rows_args rows;
        write_ends_args ends;
        act_advance advance;
    };
};

struct act_args {
    env_scene seen, taken; // of env_see and of env_take: a launch has one of each
    int count;
    int64_t rows, blocks; // of every call; blocks that share the rows
    act_member m[ACT_MOST];
};

// Parameters of a launch, as all drivers take them.
static_assert(sizeof(act_args) <= 4096, "a launch has 4096 bytes of parameters");

// How many calls from the first on one launch can do, with what it needs; 0 where that is fewer than two.
int act_match(const call *calls, int count, act_args *a);

// `c` is the first of the calls.
void act_launch(const call *c, const act_args *a);

#endif
