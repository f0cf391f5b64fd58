// An agent from the inside, for the files of src/rl alone.
#ifndef TRADEWIND_RL_WORK_H
#define TRADEWIND_RL_WORK_H

#include "rl/graphs.h"

enum { AGENT_TABLES = 3, AGENT_STATES_MOST = 64 };

// A state that outlives an iteration, by a graph that has it.
typedef struct {
    int graph;
    tensor t;
} agent_state;

struct agent {
    agent_place at;
    agent_settings s;
    agent_sizes z;
    agent_graphs graph[AGENT_GRAPHS];
    program *program[AGENT_GRAPHS]; // NULL: there is none
    store *store;
    store *data; // of shared arrays: its own, or the caller's where that is placed
    transient transient;
    space *space;      // of its own, or NULL
    space *own;        // inside that or the caller's
    int64_t iteration; // done
    int64_t passes;    // over rollouts
    uint64_t updates;  // minibatches
    episodes episodes;
    char *best_moments; // states that the best weights go with, one behind the other; NULL: none
    float *best;        // [slab elements] of the weights
    bool has_best;
    float *row[AGENT_TABLES]; // [rows of a rollout] each, for what the host reads
    float *test_row;          // [tests]
    agent_go_on *go_on;       // or NULL
    void *go_on_arg;
    bool stopped;            // it was asked to stop
    double seconds;          // that the last iteration took, with its evaluation
    struct agent_undo *undo; // the agent before the iteration, or NULL
};

// States that a checkpoint holds, each once: at most AGENT_STATES_MOST; bytes of one.
int agent_states(const agent *a, agent_state *list);
size_t agent_state_bytes(const agent *a, agent_state s);

// Asks whether to go on, when so much of the iteration is done, a rollout and each pass counting 1; false once it is to
// stop. An iteration that cannot be undone goes on.
bool agent_asks(agent *a, double phases);

// States that belong to the weights: moments by which observations and rewards are scaled; bytes of all, 0 where there
// are none.
int agent_moments(const agent *a, agent_state *list);
size_t agent_moments_bytes(const agent *a);

#endif
