#include "cuda/join/act.cuh"

#include "cuda/join/life.cuh"

extern "C" {
#include "ops/ops.h"
}

// Elements of a call at most: those that one block moves in about the time of a launch.
enum { THREADS = SCALE_REWARD_THREADS, ELEMENTS_MOST = 32768 };

CUDA_FN void act_take(const act_args &a, const env_take_args &m) {
    env_take_clear(m, team_block());
    __syncthreads();
    env_take_each(a.taken, m, team_block());
}

CUDA_FN void act_standardise(const standardise_args &m) {
    if (m.s.learn) {
        standardise_learn(m, team_block());
        __syncthreads();
    }
    standardise_each(m, team_block());
}

CUDA_FN void act_do(const act_args &a, const act_member &m) {
    switch (m.op) {
    case OP_env_see: env_see_each(a.seen, m.see, team_block()); break;
    case OP_env_take: act_take(a, m.take); break;
    case OP_sample: sample_each(m.sample, team_block()); break;
    case OP_action_std: action_std_each(m.std, team_block()); break;
    case OP_standardise: act_standardise(m.standardise); break;
    case OP_scale_reward: scale_reward_block(m.reward); break;
    case OP_write_rows: write_rows_each(m.rows, team_block()); break;
    case OP_write_ends: write_ends_each(m.ends, team_block()); break;
    case OP_advance:
        if (threadIdx.x == 0) m.advance.cursor->row += m.advance.rows;
        break;
    }
}

static __global__ void __launch_bounds__(THREADS) act_kernel(const __grid_constant__ act_args a) {
    cuda_begin();
    for (int i = 0; i < a.count; i++) {
        if (a.m[i].waits) __syncthreads();
        act_do(a, a.m[i]);
    }
}

void act_launch(const call *c, const act_args *a) {
    LAUNCH_EARLY(c, act_kernel, 1, THREADS, 0, *a);
}

// Matching

static bool is_small(const operand *o, int count) {
    for (int i = 0; i < count; i++)
        if (o[i].data && operand_count(&o[i]) > ELEMENTS_MOST) return false;
    return true;
}

// The elements that a call moves: those of its results, or of what it writes into a table.
static bool is_small_call(const call *c) {
    bool writes = c->op == OP_write_rows || c->op == OP_write_ends;
    return writes ? is_small(&c->in[1], 1) : is_small(c->out, c->outputs);
}

static bool has(const act_args *a, int op) {
    for (int i = 0; i < a->count; i++)
        if (a->m[i].op == op) return true;
    return false;
}

static bool match_environment(const call *c, act_args *a, act_member *m) {
    if (has(a, c->op)) return false;
    if (c->op == OP_env_see) {
        a->seen = env_scene_of(c, ENV_SEE_DATA);
        m->see = env_see_args_of(c);
    } else {
        a->taken = env_scene_of(c, ENV_TAKE_DATA);
        m->take = env_take_args_of(c);
    }
    return true;
}

static bool match_call(const call *c, act_args *a, act_member *m) {
    if (c->backward || !is_small_call(c)) return false;
    m->op = c->op;
    switch (c->op) {
    case OP_env_see:
    case OP_env_take: return match_environment(c, a, m);
    case OP_sample: m->sample = sample_args_of(c); return !sample_is_wide(c);
    case OP_action_std: m->std = action_std_args_of(c); return !m->std.F;
    case OP_standardise: m->standardise = standardise_args_of(c); return true;
    case OP_scale_reward: m->reward = scale_reward_args_of(c); return true;
    case OP_write_rows: m->rows = write_rows_args_of(c); return true;
    case OP_write_ends: m->ends = write_ends_args_of(c); return true;
    case OP_advance:
        m->advance = act_advance{c->step.cursor, (uint64_t)c->batch};
        return a->count && ((const advance_attr *)c->attr)->after_micro;
    default: return false;
    }
}

static bool writes_any(const call *a, const operand *o, int count) {
    for (int i = 0; i < a->outputs; i++)
        for (int k = 0; k < count; k++)
            if (life_meet(&a->out[i], &o[k])) return true;
    return false;
}

// True if one call must wait for the other; `advance` and all others must.
static bool depends(const call *a, const call *b) {
    if (a->op == OP_advance || b->op == OP_advance) return true;
    return writes_any(a, b->in, b->inputs) || writes_any(a, b->out, b->outputs) || writes_any(b, a->in, a->inputs);
}

// A call waits for all before it where it depends on one that nobody has waited for.
static bool must_wait(const call *calls, const act_args *a) {
    for (int i = a->count - 1; i >= 0; i--) {
        if (depends(&calls[i], &calls[a->count])) return true;
        if (a->m[i].waits) return false;
    }
    return false;
}

int act_match(const call *calls, int count, act_args *a) {
    *a = act_args{};
    while (a->count < count && a->count < ACT_MOST) {
        act_member *m = &a->m[a->count];
        if (!match_call(&calls[a->count], a, m)) break;
        m->waits = must_wait(calls, a);
        a->count++;
    }
    return a->count > 1 ? a->count : 0;
}
