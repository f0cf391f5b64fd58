// An agent that learns by proximal policy optimisation (PPO): rollouts, advantages and updates on one queue.
//
// An iteration is a rollout of `steps` steps in each of `envs` environments, then `epochs` passes over it in
// minibatches. Everything between lies on the device: states of environments, observations, actions, advantages. The
// programs are
//
//   act        sees, acts and records, one step of every environment
//   begin      keeps the LSTMs' states at the beginning of a rollout, where there are LSTMs
//   last       the value of the observations behind a rollout
//   ends       the values of the last observations of episodes that were truncated
//   advantage  generalised advantage estimates
//   minibatch  the loss and its gradient (first, next), and the update
//   test       greedy actions in environments of its own
//
// Between two iterations an agent can be saved whole; put into another agent of the same settings it goes on to the
// same bits.
#ifndef TRADEWIND_RL_AGENT_H
#define TRADEWIND_RL_AGENT_H

#include "env/batch.h"
#include "graph/program.h"
#include "model/model.h"
#include "rl/episodes.h"
#include "rl/ramp.h"
#include "run/safetensors.h"

struct scaler;
struct dataset;

// An array that environments read. Its memory is the caller's and outlives the agent.
typedef struct {
    const char *name;
    dtype type;
    shape shape;
    const void *data;
    bool shared; // agents beside this one read the same array, in a store of their own (agent_place)
} agent_part;

typedef struct {
    env_settings env;
    int parts;
    agent_part part[ENV_PARTS_MOST];
    const struct scaler *scaler; // of features, to be kept with the weights, and the data that it is of; or NULL
    const struct dataset *data;
} agent_world;

typedef struct {
    agent_world world;                   // of rollouts
    agent_world test;                    // of evaluations
    int64_t envs, steps;                 // of a rollout
    int64_t batch;                       // rows of a minibatch; divides envs x steps
    int64_t micro;                       // rows of a micro-batch; divides batch
    int64_t epochs;                      // passes over a rollout
    int64_t total;                       // steps of all environments in the whole run, rounded up to whole rollouts
    int64_t tests;                       // environments of an evaluation, one episode each
    ramp rate, clip, entropy, target_kl; // a target of 0: no stop
    double gamma, lambda;
    double value, max_norm;            // coefficient of the value loss; largest norm of a gradient, 0: any
    double value_clip;                 // 0: off
    double entropy_bound, value_bound; // 0: none
    double adam_eps;
    double log_std;     // at the beginning, of actions that are numbers
    bool state_noise;   // noise of such actions depends on the state
    int32_t noise_hold; // and is drawn anew every so many steps
    bool normalise_advantage, normalise_observation, normalise_reward;
    bool shared;  // policy and value share all layers but the last
    int64_t lstm; // units of an LSTM before each net, which then learns from whole rollouts of environments; 0: none
    uint64_t seed;
    precision precision;
} agent_settings;

// Figures of an iteration, named as Stable-Baselines3 names them.
typedef struct {
    int64_t iteration;       // from 1
    int64_t total_timesteps; // of all environments so far
    double ep_rew_mean, ep_len_mean;
    double approx_kl, clip_fraction, entropy_loss, policy_gradient_loss, value_loss, loss, explained_variance;
    double learning_rate, clip_range, entropy_coefficient, target_kl;
    double std;             // mean deviation of actions that are numbers; NaN for choices
    double grad_norm;       // of the last minibatch
    int64_t skipped;        // minibatches whose gradient was not finite, since the start
    int64_t skipped_last;   // of those, how many the latest ones were
    int64_t n_updates;      // passes over rollouts so far
    bool kl_stopped;        // the passes ended early
    bool stopped;           // it was given up, and the agent is as it was before; nothing else is told
    double seconds;         // of the iteration
    double rollout, update; // of its rollout, with advantages and tables; of its passes
    double fps;             // steps of all environments a second, update included
} agent_report;

// Scores of greedy episodes, one for each environment of the evaluation.
typedef struct {
    int64_t episodes;
    double mean, deviation, length; // of their rewards; of their steps
    bool stopped;                   // it was given up, and the iteration before it with it
} agent_score;

typedef struct agent agent;

// Where an agent runs: a device, its queue, the space that it takes its memory in (NULL: one of its own), and the store
// of the shared arrays that its environments read, placed already (NULL: one of its own).
typedef struct {
    const device *device;
    queue *queue;
    space *space;
    store *data;
} agent_place;

// Bytes by purpose.
typedef struct {
    size_t weights, gradients, moments, states, activations, recordings;
    size_t own;   // all of this, as one space
    size_t data;  // of shared arrays
    size_t total; // both
} agent_memory;

// False where settings contradict each other, with the key in the text: a rollout that minibatches do not divide, a
// continuous policy for choices and so on.
bool agent_check(const agent_settings *s, err *e);

// Describes the agent and takes its memory; the initial weights are in place. `policy` is the model without tensors,
// of both nets. NULL on failure.
agent *agent_new(const agent_place *at, const agent_settings *s, const model_spec *policy, err *e);
void agent_free(agent *a);

// The same without a device's memory.
agent_memory agent_measure(const agent_place *at, const agent_settings *s, const model_spec *policy);

// The shared arrays of an environment as a store, described; to be placed for agents in it (agent_place). `g` is a
// graph that must outlive the store, and is the caller's.
store *agent_world_store(const agent_world *w, bool host_memory, graph **g);

// Bytes of the host for tables of a rollout that are read back.
size_t agent_host_bytes(const agent_settings *s);

// Asked between steps of a rollout, between minibatches and between steps of an evaluation, with the share of the
// iteration that is done, 1 in an evaluation. Returning false gives the iteration up, as if it had not begun, so that
// it can be stopped in its midst. Iterations that take less than a quarter of a second are not asked.
typedef bool agent_go_on(void *arg, double share);
void agent_watch(agent *a, agent_go_on *go_on, void *arg);

// One iteration. ERR_RUN where a figure is not finite any more.
bool agent_iterate(agent *a, agent_report *r, err *e);

// True once all steps of the run are done; iterations of the whole run, and those done.
bool agent_is_over(const agent *a);
int64_t agent_iterations(const agent *a);
int64_t agent_iteration(const agent *a);

// Greedy episodes from the evaluation's own beginning: the same weights give the same score.
bool agent_evaluate(agent *a, agent_score *s, err *e);

// The graph of a minibatch, for parameters and memory plans.
const graph *agent_graph(const agent *a);
const plan *agent_plan(const agent *a);
size_t agent_bytes(const agent *a);

// Keeps the present weights as the best ones; puts them back in place.
bool agent_keep(agent *a, err *e);
bool agent_back(agent *a, err *e);

// Reads the present weights, [graph_slab_elements(agent_graph)].
bool agent_weights(agent *a, float *to, err *e);

// Writes the present weights, with the moments of observations and rewards and the scaler, as safetensors; takes them.
bool agent_save(agent *a, const char *path, const safetensors_note *notes, int note_count, err *e);
bool agent_load(agent *a, const char *path, err *e);

// Writes all that is needed to go on, as a checkpoint (run/checkpoint.h), with the caller's own numbers beside it (at
// most AGENT_EXTRA_MOST); takes it up.
enum { AGENT_EXTRA_MOST = 16 };
bool agent_checkpoint(
    agent *a, const char *path, const double *extra, int extras, const safetensors_note *notes, int note_count, err *e);
bool agent_restore(agent *a, const safetensors *from, const char *path, double *extra, int extras, err *e);

#endif
