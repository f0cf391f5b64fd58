// ppo_gate on the card: see ops/ppo_gate.c.
#include "cuda/cuda.cuh"
#include "ops/gate.h"

static __global__ void forward_kernel(const double *sums, const float *knobs, double *gate, double *totals) {
    cuda_begin();
    gate_settle(sums, (double)knobs[KNOB_TARGET_KL], gate, totals);
}

static void forward(const call *c) {
    LAUNCH_EARLY(c, forward_kernel, 1, 1, 0, (const double *)c->in[0].data, (const float *)c->in[2].data,
        (double *)c->out[0].data, (double *)c->out[1].data);
}

extern "C" const kernel cuda_ppo_gate = {forward, NULL, NULL, NULL};
