// The graphs of an agent's programs. They share states and parameters by name.
#ifndef TRADEWIND_RL_GRAPHS_H
#define TRADEWIND_RL_GRAPHS_H

#include "model/layer.h"
#include "rl/agent.h"

typedef enum {
    GRAPH_MINIBATCH,
    GRAPH_ACT,
    GRAPH_LAST,
    GRAPH_ENDS,
    GRAPH_ADVANTAGE,
    GRAPH_BEGIN,
    GRAPH_TEST,
    AGENT_GRAPHS,
    GRAPH_ANSWER = AGENT_GRAPHS // of an actor: `tests` rows that the host gives
} agent_graph_kind;

// Widths that follow from the settings.
typedef struct {
    env_shape env;
    int64_t rows;    // of a rollout: envs x steps
    int64_t samples; // that minibatches draw: rows, or whole sequences of environments
    int64_t length;  // rows of a sample
    int64_t cut;     // episodes of one environment that can be truncated in a rollout, at most
    int64_t actions; // columns of the policy's scores
} agent_sizes;

agent_sizes agent_sizes_of(const agent_settings *s);

// A graph, with the tensors that the host moves; none where the graph does not have them.
typedef struct {
    graph *g;                                              // NULL: there is no such program
    tensor loss, totals, seed, knobs, gate, clip, log_std; // minibatch
    tensor end, total, length;                             // test: kept results of a step
    tensor seen, score, action;                            // answer: what the host gives; kept results
    tensor state;                                          // act, test: of the environments
    tensor moments; // act, answer: of observations; none where these stay as they are
    tensor table_end, table_total, table_length, table_value; // act
    tensor target;                                            // advantage: what values are to tell
    layer_memory memory;                                      // test, answer: of the policy; none without an LSTM
} agent_graphs;

// Builds one; `policy` is the model of both nets, without tensors.
void agent_graph_build(agent_graphs *to, agent_graph_kind kind, const agent_settings *s, const model_spec *policy);

#endif
