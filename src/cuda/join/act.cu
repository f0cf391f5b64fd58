#include "cuda/join/act.cuh"

#include "cuda/join/life.cuh"

extern "C" {
#include "ops/ops.h"
}

// Rows of a block: a warp each, or two where all of them are one block's. Elements of a block's part of a call at most:
// those that it moves in about the time of a launch.
enum { THREADS = SCALE_REWARD_THREADS, ROWS_OF_BLOCK = THREADS / 32, ROWS_ALONE = 2 * ROWS_OF_BLOCK };
enum { ROWS_OF_BLOCK_MOST = 4 * ROWS_OF_BLOCK, ELEMENTS_MOST = 32768 };

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
    case OP_env_take: env_take_each(a.taken, m.take, team_block()); break;
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
    LAUNCH_EARLY(c, act_kernel, (unsigned)a->blocks, THREADS, 0, *a);
}

// Matching

// Blocks for a call's rows, each with as many; 0 where there is no such number.
static int64_t blocks_of(int64_t rows) {
    if (rows <= ROWS_ALONE) return 1;
    int64_t blocks = rows / ROWS_OF_BLOCK;
    while (blocks > 1 && rows % blocks) blocks--;
    return rows / blocks <= ROWS_OF_BLOCK_MOST ? blocks : 0;
}

static bool is_small(const operand *o, int count, int64_t blocks) {
    for (int i = 0; i < count; i++)
        if (o[i].data && operand_count(&o[i]) > ELEMENTS_MOST * blocks) return false;
    return true;
}

static bool writes_table(const call *c) {
    return c->op == OP_write_rows || c->op == OP_write_ends;
}

// The elements that a call moves: those of its results, or of what it writes into a table.
static bool is_small_call(const call *c, int64_t blocks) {
    return writes_table(c) ? is_small(&c->in[1], 1, blocks) : is_small(c->out, c->outputs, blocks);
}

// True for calls that compute every row by itself.
static bool is_by_row(const call *c) {
    if (c->op == OP_standardise) return !((const standardise_settings *)c->attr)->learn;
    return c->op != OP_scale_reward && c->op != OP_advance;
}

// True if the call has the rows, and the blocks, of those before it; the first one says how many.
static bool fits(const call *c, act_args *a) {
    int64_t rows = c->op == OP_advance ? c->batch : c->in[writes_table(c)].shape.dim[0];
    if (!a->count) {
        a->rows = rows;
        a->blocks = blocks_of(rows);
    }
    return a->blocks && rows == a->rows && (a->blocks == 1 || is_by_row(c)) && is_small_call(c, a->blocks);
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
    if (c->backward || !fits(c, a)) return false;
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

// True if two operands have no memory in common, or every row of one is the same row of the other.
static bool is_alike(const operand *a, const operand *b) {
    if (!life_meet(a, b)) return true;
    return a->data == b->data &&
           operand_count(a) * (int64_t)dtype_bytes(a->type) == operand_count(b) * (int64_t)dtype_bytes(b->type);
}

static bool are_alike(const operand *a, int as, const operand *b, int bs) {
    for (int i = 0; i < as; i++)
        for (int k = 0; k < bs; k++)
            if (!is_alike(&a[i], &b[k])) return false;
    return true;
}

// True if blocks need not wait for each other between the calls before and this one: what one of them writes and
// another one reads or writes is of the same rows.
static bool stays_in_block(const call *calls, int before) {
    const call *b = &calls[before];
    for (const call *a = calls; a < b; a++)
        if (!are_alike(a->out, a->outputs, b->in, b->inputs) || !are_alike(a->out, a->outputs, b->out, b->outputs) ||
            !are_alike(a->in, a->inputs, b->out, b->outputs))
            return false;
    return true;
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
        if (a->blocks > 1 && !stays_in_block(calls, a->count)) break;
        m->waits = must_wait(calls, a);
        a->count++;
    }
    return a->count > 1 ? a->count : 0;
}
