// The gate of PPO's updates, for both devices: see ops/ppo_gate.c. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_GATE_H
#define TRADEWIND_OPS_GATE_H

#include "ops/attr.h"

// Takes a minibatch's sums into the state `gate`; from the one on whose divergence is too large, normalisers become 0.
ENV_FN void gate_settle(const double *sums, double target, double *gate, double *totals) {
    double rows = sums[PPO_ROWS];
    if (gate[GATE_STOPPED] == 0 && rows > 0) {
        gate[PPO_ROWS] += 1;
        for (int k = PPO_ROWS + 1; k < PPO_SUMS; k++) gate[k] += sums[k] / rows;
        gate[GATE_EPOCH_KL] += sums[PPO_KL] / rows;
        gate[GATE_EPOCH_COUNT] += 1;
        gate[GATE_STOPPED] = target > 0 && sums[PPO_KL] / rows > 1.5 * target;
    }
    if (gate[GATE_STOPPED] != 0) totals[TALLY_STEP_NORM] = 0;
}

#endif
