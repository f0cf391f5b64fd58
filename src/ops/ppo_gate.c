// ppo_gate: adds a minibatch's means to those of the update, and stops the update where the policy has moved too far.
//   sums (of ppo), totals (of tally, changed in place), knobs [KNOBS] -> a state [GATE_COUNT] (f64), totals
// Where the mean divergence is above 1.5 times knobs[KNOB_TARGET_KL] (0: never), this minibatch and all that follow are
// dropped: their normaliser becomes 0, which the optimizer skips (ops/clip.c). The host clears the state before an
// update, and GATE_EPOCH_KL and GATE_EPOCH_COUNT before each pass over the rollout. Must stand before clip.
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
    const double *sums = c->in[0].data;
    double *gate = c->out[0].data, *totals = c->out[1].data, rows = sums[PPO_ROWS];
    double target = (double)((const real *)c->in[2].data)[KNOB_TARGET_KL];
    if (!gate[GATE_STOPPED] && rows > 0) {
        gate[PPO_ROWS] += 1;
        for (int k = PPO_ROWS + 1; k < PPO_SUMS; k++) gate[k] += sums[k] / rows;
        gate[GATE_EPOCH_KL] += sums[PPO_KL] / rows;
        gate[GATE_EPOCH_COUNT] += 1;
        gate[GATE_STOPPED] = target > 0 && sums[PPO_KL] / rows > 1.5 * target;
    }
    if (gate[GATE_STOPPED]) totals[TALLY_STEP_NORM] = 0;
}

const kernel KERNEL(ppo_gate) = {forward, NULL, NULL, NULL};

#endif
