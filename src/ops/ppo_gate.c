// ppo_gate: adds a minibatch's means to those of the update, and stops the update where the policy has moved too far.
//   sums (of ppo), totals (of tally, changed in place), knobs [KNOBS] -> a state [GATE_COUNT] (f64), totals
// Where the mean divergence is above 1.5 times knobs[KNOB_TARGET_KL] (0: never), this minibatch and all that follow are
// dropped: their normaliser becomes 0, which the optimizer skips (ops/clip.c). The host clears the state before an
// update, and GATE_EPOCH_KL and GATE_EPOCH_COUNT before each pass over the rollout. Must stand before clip.
#include "ops/gate.h"
#include "ops/op.h"

#ifdef OP_RULES

tensor op_ppo_gate(graph *g, tensor sums, tensor totals, tensor knobs) {
    node *n = OP_NODE(g, ppo_gate, sums, totals, knobs);
    n->phase = PHASE_UPDATE;
    tensor gate = graph_state_output_add(g, n, "ppo gate", DTYPE_F64, shape1(GATE_COUNT));
    graph_state_written_add(g, n, totals);
    return gate;
}

#else

static void forward(const call *c) {
    double target = (double)((const real *)c->in[2].data)[KNOB_TARGET_KL];
    gate_settle(c->in[0].data, target, c->out[0].data, c->out[1].data);
}

const kernel KERNEL(ppo_gate) = {forward, NULL, NULL, NULL};

#endif
