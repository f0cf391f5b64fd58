// Attributes of operators: settings in builders' prototypes and the records that kernels read. Compiled by
// C and by nvcc.
#ifndef TRADEWIND_OPS_ATTR_H
#define TRADEWIND_OPS_ATTR_H

#include "env/env.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { ACT_NONE, ACT_RELU, ACT_GELU, ACT_TANH, ACT_SIGMOID } activation;

typedef struct {
    activation act;
} linear_attr;

// Inputs of the node: x, then per direction w_ih, w_hh, b_ih, b_hh, then h0, c0, reset.
typedef struct {
    int directions;
    bool all_states;
} lstm_attr;

enum { LSTM_X = 0, LSTM_WEIGHTS = 1, LSTM_PER_DIRECTION = 4 };
enum { LSTM_H_LAST = 0, LSTM_C_LAST = 1, LSTM_STATES = 2 };

static inline int lstm_input_h0(int directions) {
    return LSTM_WEIGHTS + LSTM_PER_DIRECTION * directions;
}

typedef struct {
    float eps;
} layernorm_attr;

typedef struct {
    float probability;
} dropout_attr;

// Self-attention: D columns are shared out among the heads; causal: a step sees itself and what is before it.
typedef struct {
    int heads;
    bool causal;
    float dropout; // of the probabilities
} attention_settings;

typedef struct {
    int64_t begin, end;
} slice_attr;

typedef struct {
    float a, b;
} axpby_attr;

// Layout of a window: [B, T, C], or its steps side by side, [B, T * C].
typedef enum { WINDOW_STEPS, WINDOW_FLAT } window_layout;

typedef struct {
    int64_t length;
    window_layout layout;
} window_shape;

typedef struct {
    int64_t length;
} window_attr;

// Inputs of the node: the series' first part, row, first, scaler, then the series' other parts.
enum { WINDOW_SERIES = 0, WINDOW_ROW = 1, WINDOW_FIRST = 2, WINDOW_SCALER = 3, WINDOW_MORE = 4, WINDOW_PARTS_MOST = 8 };

static inline int window_input(int part) {
    return part ? WINDOW_MORE + part - 1 : WINDOW_SERIES;
}

static inline int window_parts(int inputs) {
    return inputs - WINDOW_MORE + 1;
}

typedef enum { LEVEL_MEAN, LEVEL_NAIVE } level_kind;

typedef struct {
    level_kind kind;
    int64_t season; // LEVEL_NAIVE: steps
} level_settings;

// Rows times their scale, (factor x + shift) scale; divide: the way back, (x / scale - shift) / factor.
typedef struct {
    bool divide;
    float factor, shift;
} scale_rows_settings;

typedef struct {
    float smoothing;
} cross_entropy_attr;

typedef struct {
    float gamma; // how much rows that are right already count for less; 0: not at all
    float smoothing;
} focal_settings;

typedef struct {
    float delta;
} huber_attr;

enum { QUANTILES_MOST = 16 };

typedef struct {
    int count;
    float level[QUANTILES_MOST]; // each between 0 and 1
} quantile_settings;

typedef struct {
    float max_norm; // 0: measure the norm, clip nothing
    bool moves;     // fp16: the loss scale follows what the gradients bear; otherwise it stays as it is
} clip_attr;

// The loss scale of a run in fp16. Gradients flow as sums, not means: what reaches the scores of a sample is (p - y)
// times its weight, at most about 1, whatever the batch. PyTorch starts at 65536 for means, which over a batch of 512
// is 128 for a sample. Here 1024 leaves a factor of 64 to fp16's largest number for growth on the way back, and keeps
// gradients down to 6e-11 of a sample. Beyond 32768 a sample that is wholly wrong overflows by itself.
enum { LOSS_SCALE_START = 1024, LOSS_SCALE_FLOOR = 1, LOSS_SCALE_MOST = 32768, LOSS_SCALE_PATIENCE = 2000 };

// How the learning rate goes (ops/schedule.h). All zeros is a constant one.
typedef enum { SCHEDULE_CONSTANT, SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_STEP, SCHEDULE_ONE_CYCLE } schedule_kind;

typedef struct {
    schedule_kind kind;
    uint64_t warmup; // updates, before the kind begins; 0 for a one-cycle, which has its own
    uint64_t total;  // cosine, linear, one-cycle: updates of the run, warm-up included
    uint64_t every;  // step: updates between two falls
    double gamma;    // step: what a fall multiplies by
    double start;    // the factor of the first update: of a warm-up, of a one-cycle
    double end;      // cosine, linear, one-cycle: the factor at the end, kept from there on
    double peak;     // one-cycle: the update at which the factor is 1, need not be whole
} lr_schedule;

// Which parameters weight decay acts on: all, as PyTorch's optimizers, or those that graph_decays says.
typedef enum { DECAY_ALL, DECAY_WEIGHTS } decay_scope;

typedef struct {
    float beta1, beta2, eps, weight_decay;
    bool coupled; // Adam: the decay is part of the gradient; otherwise AdamW
    decay_scope decay;
    lr_schedule schedule;
} adamw_settings;

typedef struct {
    float momentum, weight_decay;
    bool nesterov;
    decay_scope decay;
    lr_schedule schedule;
} sgd_settings;

// Inputs of the optimizers' nodes. The last, where it is there, has a byte for every SLAB_ALIGN elements of the slabs:
// whether they decay.
enum { ADAMW_CLIP, ADAMW_WEIGHTS, ADAMW_GRADIENTS, ADAMW_MOMENT1, ADAMW_MOMENT2, ADAMW_DECAYS };
enum { SGD_CLIP, SGD_WEIGHTS, SGD_GRADIENTS, SGD_MOMENT, SGD_DECAYS };

typedef struct {
    bool after_micro; // after a micro-batch; otherwise after an update
} advance_attr;

// Element k of the state that `tally` keeps.
enum { TALLY_STEP_SUM, TALLY_STEP_NORM, TALLY_SUM, TALLY_NORM, TALLY_COUNT };

// Element k of the state that `clip` keeps. It starts as zeros and goes on over epochs.
enum {
    CLIP_NORM,      // of the gradient, after division by the loss scale and the normaliser
    CLIP_FACTOR,    // what an optimizer multiplies raw gradient sums by; 0: the step is skipped
    CLIP_TAKEN,     // steps that were not skipped, this one included
    CLIP_NONFINITE, // steps that were skipped because their gradient was not finite
    CLIP_IN_A_ROW,  // of those, how many the latest steps were
    CLIP_GOOD,      // steps taken since the loss scale moved or one was skipped
    CLIP_TICKET,    // for a device that counts its finished blocks here; 0 between steps
    CLIP_COUNT
};

// An environment, and whose random numbers it draws: rollouts and evaluations have streams of their own.
typedef struct {
    env_settings env;
    uint32_t stream;
} env_attr;

// Inputs of env_see: state, then the environment's data; of env_take: state, action, then the data.
enum { ENV_SEE_DATA = 1, ENV_TAKE_DATA = 2 };

// Results of env_take behind the state: one row an environment.
enum { ENV_TAKE_STATE, ENV_TAKE_REWARD, ENV_TAKE_END, ENV_TAKE_LAST, ENV_TAKE_TOTAL, ENV_TAKE_STEPS };

// Actions of one environment are drawn: as one of several choices, as numbers with a deviation of their own, or with
// noise that is a linear function of the policy's last hidden layer, the same function for `hold` steps.
typedef struct {
    bool choices; // scores are of choices; otherwise they are means
    bool greedy;  // the likeliest action
    int32_t hold; // steps; 0: noise is drawn anew for every step
    uint32_t stream;
} sample_settings;

typedef struct {
    float clip; // of the result, both ways
    bool learn; // moments follow what comes in
} standardise_settings;

typedef struct {
    float gamma, clip;
} scale_reward_settings;

typedef struct {
    float gamma, lambda;
} gae_settings;

typedef struct {
    int64_t rows, steps;
} spread_attr;

typedef struct {
    bool choices;
    float value;         // coefficient of the value loss
    float entropy_bound; // of the mean entropy's size in the loss; 0: none
    float value_bound;   // of the mean value loss; 0: none
} ppo_settings;

// Inputs of ppo's node.
enum {
    PPO_SCORE,
    PPO_STD,
    PPO_VALUE,
    PPO_ACTION,
    PPO_LOG_PROB,
    PPO_ADVANTAGE,
    PPO_RETURN,
    PPO_OLD_VALUE,
    PPO_WEIGHT,
    PPO_SPREAD,
    PPO_KNOBS,
    PPO_INPUTS
};

// Numbers that the host sets before every update of an agent.
enum { KNOB_CLIP, KNOB_ENTROPY, KNOB_VALUE_CLIP, KNOB_TARGET_KL, KNOBS };

// Sums over a minibatch: the rows' weights, then what is divided by them.
enum { PPO_ROWS, PPO_POLICY, PPO_VALUE_LOSS, PPO_ENTROPY, PPO_KL, PPO_CLIPPED, PPO_SUMS };

// The state that ppo_gate keeps: sums over minibatches of their means, in the order of PPO_SUMS, where PPO_ROWS counts
// minibatches; then the divergence and minibatches of the running pass over the rollout, and whether that has stopped.
enum { GATE_EPOCH_KL = PPO_SUMS, GATE_EPOCH_COUNT, GATE_STOPPED, GATE_COUNT };

#endif
