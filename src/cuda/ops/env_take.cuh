// Steps of environments on the card: see ops/env_take.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_ENV_TAKE_CUH
#define TRADEWIND_CUDA_OPS_ENV_TAKE_CUH

#include "cuda/ops/scene.cuh"

struct env_take_args {
    int64_t *state;
    view action;
    float *reward, *end, *last, *total, *steps;
    int64_t rows, words, columns;
    int width; // of an action
};

static inline env_take_args env_take_args_of(const call *c) {
    float *to[ENV_TAKE_STEPS + 1];
    for (int k = ENV_TAKE_REWARD; k <= ENV_TAKE_STEPS; k++) to[k] = (float *)c->out[k].data;
    return env_take_args{(int64_t *)c->out[ENV_TAKE_STATE].data, view_of(&c->in[1]), to[ENV_TAKE_REWARD],
        to[ENV_TAKE_END], to[ENV_TAKE_LAST], to[ENV_TAKE_TOTAL], to[ENV_TAKE_STEPS], c->in[0].shape.dim[0],
        c->in[0].shape.dim[1], operand_width(&c->out[ENV_TAKE_LAST]), (int)operand_width(&c->in[1])};
}

// By one lane. Returns whether the episode goes on.
CUDA_FN bool env_take_one(const env_scene &e, const env_take_args &a, int64_t r) {
    float action[ENV_ACTION_MOST];
    for (int k = 0; k < a.width; k++) action[k] = view_load(a.action, r * a.width + k);
    env_result of = env_step(&e.attr.env, &e.data, a.state + r * a.words, action);
    a.reward[r] = (float)of.reward;
    a.end[r] = (float)of.end;
    a.total[r] = (float)of.total;
    a.steps[r] = (float)of.steps;
    return of.end == ENV_GOES_ON;
}

// A warp an environment, so that none waits for what another one does: its first lane takes the step, all of them write
// the last observation, zeros where the episode goes on.
CUDA_FN void env_take_each(const env_scene &e, const env_take_args &a, team t) {
    TEAM_EACH_WARP(t, r, a.rows) {
        int goes_on = ENV_LANE == 0 ? env_take_one(e, a, r) : 0;
        goes_on = __shfl_sync(0xFFFFFFFFu, goes_on, 0);
        __syncwarp(); // a shuffle orders no memory, and the state is read by all
        float *last = a.last + r * a.columns;
        for (int64_t i = ENV_LANE; goes_on && i < a.columns; i += ENV_LANES) last[i] = 0;
        if (!goes_on) env_observe(&e.attr.env, &e.data, a.state + r * a.words, last);
    }
}

#endif
