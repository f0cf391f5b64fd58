// What operators carry besides tensors: settings in builders' prototypes and the records that kernels read. Compiled by
// C and by nvcc.
#ifndef TRADEWIND_OPS_ATTR_H
#define TRADEWIND_OPS_ATTR_H

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

typedef struct {
    int64_t begin, end;
} slice_attr;

typedef struct {
    float a, b;
} axpby_attr;

// What a window is divided by: nothing, or the mean of the absolute values of its real (not padded) elements.
typedef enum { SCALE_NONE, SCALE_MEAN_ABS } window_scale;

// Whether a window comes out as [B, T, C] or with its steps side by side, [B, T * C].
typedef enum { WINDOW_STEPS, WINDOW_FLAT } window_layout;

typedef struct {
    int64_t length;
    window_scale scale;
} window_attr;

typedef struct {
    float smoothing;
} cross_entropy_attr;

typedef struct {
    float max_norm; // 0: measure the norm, clip nothing
} clip_attr;

typedef struct {
    float beta1, beta2, eps, weight_decay;
} adamw_settings;

typedef struct {
    float momentum, weight_decay;
} sgd_settings;

typedef struct {
    bool after_micro; // after a micro-batch; otherwise after an update
} advance_attr;

// Element k of the state that `tally` keeps.
enum { TALLY_STEP_SUM, TALLY_STEP_NORM, TALLY_SUM, TALLY_NORM, TALLY_COUNT };

// Element k of the state that `clip` keeps: the gradient's norm after division by the normaliser; the factor by which
// an optimizer multiplies raw gradient sums; how many steps had a gradient that was not finite.
enum { CLIP_NORM, CLIP_FACTOR, CLIP_NONFINITE, CLIP_COUNT };

#endif
