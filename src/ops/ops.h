// Builders of all operators, generated from ops.def, and the types that their rows use.
#ifndef TRADEWIND_OPS_OPS_H
#define TRADEWIND_OPS_OPS_H

#include "graph/graph.h"
#include "ops/attr.h"

typedef enum {
#define OP(name, ...) OP_##name,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} op;

// Inputs of the loss of PPO, row by row.
typedef struct {
    tensor score, std;    // of the policy: scores of choices, or means with their deviations (`std`)
    tensor value;         // [B, 1]
    tensor action;        // that was taken: [B, 1] for choices
    tensor log_prob;      // of it, when it was taken
    tensor advantage;     // not yet normalised
    tensor target;        // return that the value is to tell
    tensor old_value;     // [B]
    tensor weight;        // of rows
    tensor spread, knobs; // of op_spread, or none; [KNOBS]
} ppo_inputs;

// Each builder checks shapes (a mismatch is a programmer's mistake), appends a node and returns its first result.
#define OP(name, precision, traits, ...) OP_PROTOTYPE(name, __VA_ARGS__);
#define OP_PROTOTYPE(name, ...)          tensor op_##name OP_ARGUMENTS(__VA_ARGS__)
#define OP_ARGUMENTS(...)                (graph * g, __VA_ARGS__)
#include "ops/ops.def"
#undef OP

const char *op_name(op o);
precision_class op_class(op o);

// Traits of an operator: what its kernels touch beside the results of its node, on any device, and how they go.
typedef enum {
    READS_STEP = 1,     // the step record
    WRITES_STEP = 2,    // the step record, through call.step_written
    WRITES_WEIGHTS = 4, // an optimizer: the weights with their 16-bit copies, and its moments, all of them inputs
    BY_STEPS = 8,       // one step of its input's sequence after the other: [B, T, ...] takes T times as long
} op_trait;

// The traits of an operator's row, or-ed. Plug-ins have this from their own copy of the table.
static inline unsigned op_traits(op o) {
    static const unsigned char traits[] = {
#define OP(name, precision, traits, ...) traits,
#include "ops/ops.def"
#undef OP
    };
    return traits[o];
}

#endif
