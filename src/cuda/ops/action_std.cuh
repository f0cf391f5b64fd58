// Deviations of actions on the card: see ops/action_std.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_ACTION_STD_CUH
#define TRADEWIND_CUDA_OPS_ACTION_STD_CUH

#include "cuda/ops/team.cuh"

struct action_std_args {
    view latent;
    const float *log_std;
    float *std;
    int64_t B, A, F; // rows, numbers of an action, columns of the latent (0: none)
};

static inline action_std_args action_std_args_of(const call *c) {
    int64_t F = c->in[1].data ? operand_width(&c->in[1]) : 0;
    return action_std_args{view_of(&c->in[1]), (const float *)c->in[2].data, (float *)c->out[0].data,
        operand_rows(&c->out[0]), operand_width(&c->out[0]), F};
}

// Without a latent.
CUDA_FN void action_std_each(const action_std_args &a, team t) {
    TEAM_EACH(t, i, a.B * a.A) a.std[i] = (float)sqrt(exp(2 * (double)a.log_std[i % a.A]));
}

#endif
