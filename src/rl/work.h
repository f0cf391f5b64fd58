// An agent from the inside, for the files of src/rl alone.
#ifndef TRADEWIND_RL_WORK_H
#define TRADEWIND_RL_WORK_H

#include "rl/graphs.h"

enum { AGENT_TABLES = 3 };

struct agent {
    agent_place at;
    agent_settings s;
    agent_sizes z;
    agent_graphs graph[AGENT_GRAPHS];
    program *program[AGENT_GRAPHS]; // NULL: there is none
    store *store, *data;
    transient transient;
    space *space;      // of its own, or NULL
    space *own;        // inside that or the caller's
    int64_t iteration; // done
    int64_t passes;    // over rollouts
    uint64_t updates;  // minibatches
    episodes episodes;
    double *best_moments; // of observations, that the best weights go with; NULL: none
    float *best;          // [slab elements] of the weights
    bool has_best;
    float *row[AGENT_TABLES]; // [rows of a rollout] each, for what the host reads
    float *test_row;          // [tests]
};

// Bytes of the moments of observations; 0 where there are none.
size_t agent_moments_bytes(const agent *a);

#endif
