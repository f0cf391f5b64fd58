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

// Zeros where no episode ends; env_take_each comes behind it, when all threads are done.
CUDA_FN void env_take_clear(const env_take_args &a, team t) {
    TEAM_EACH(t, i, a.rows * a.columns) a.last[i] = 0;
}

// A thread an environment.
CUDA_FN void env_take_each(const env_scene &e, const env_take_args &a, team t) {
    float action[ENV_ACTION_MOST];
    TEAM_EACH(t, r, a.rows) {
        for (int k = 0; k < a.width; k++) action[k] = view_load(a.action, r * a.width + k);
        env_result of = env_take(&e.attr.env, &e.data, a.state + r * a.words, action, a.last + r * a.columns);
        a.reward[r] = (float)of.reward;
        a.end[r] = (float)of.end;
        a.total[r] = (float)of.total;
        a.steps[r] = (float)of.steps;
    }
}

#endif
