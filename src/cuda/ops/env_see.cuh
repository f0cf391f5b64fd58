// Observations of environments on the card: see ops/env_see.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_ENV_SEE_CUH
#define TRADEWIND_CUDA_OPS_ENV_SEE_CUH

#include "cuda/ops/scene.cuh"

struct env_see_args {
    step step;
    int64_t *state;
    float *seen;
    int64_t rows, words, columns;
};

static inline env_see_args env_see_args_of(const call *c) {
    return env_see_args{c->step, (int64_t *)c->out[1].data, (float *)c->out[0].data, c->in[0].shape.dim[0],
        c->in[0].shape.dim[1], operand_width(&c->out[0])};
}

// A warp an environment: its first lane begins an episode, all of them observe.
CUDA_FN void env_see_each(const env_scene &e, const env_see_args &a, team t) {
    const step_cursor *at = a.step.cursor;
    TEAM_EACH_WARP(t, r, a.rows) {
        env_dice dice = {a.step.progress->seed, at->position + at->row + (uint64_t)r, e.attr.stream};
        if (ENV_LANE == 0) env_begin(&e.attr.env, &e.data, &dice, a.state + r * a.words);
        __syncwarp();
        env_observe(&e.attr.env, &e.data, a.state + r * a.words, a.seen + r * a.columns);
    }
}

#endif
