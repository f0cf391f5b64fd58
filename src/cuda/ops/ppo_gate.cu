// ppo_gate on the card: see ops/ppo_gate.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(const double *sums, const float *knobs, double *gate, double *totals) {
    cuda_begin();
    double rows = sums[PPO_ROWS], target = (double)knobs[KNOB_TARGET_KL];
    if (!gate[GATE_STOPPED] && rows > 0) {
        gate[PPO_ROWS] += 1;
        for (int k = PPO_ROWS + 1; k < PPO_SUMS; k++) gate[k] += sums[k] / rows;
        gate[GATE_EPOCH_KL] += sums[PPO_KL] / rows;
        gate[GATE_EPOCH_COUNT] += 1;
        gate[GATE_STOPPED] = target > 0 && sums[PPO_KL] / rows > 1.5 * target;
    }
    if (gate[GATE_STOPPED]) totals[TALLY_STEP_NORM] = 0;
}

static void forward(const call *c) {
    LAUNCH_EARLY(c, forward_kernel, 1, 1, 0, (const double *)c->in[0].data, (const float *)c->in[2].data,
        (double *)c->out[0].data, (double *)c->out[1].data);
}

extern "C" const kernel cuda_ppo_gate = {forward, NULL, NULL, NULL};
