// ppo on the card: see ops/ppo.c. A thread a row; a block's rows are a piece, and one block of a second launch adds the
// pieces in order.
#include "cuda/ops/policy.cuh"
#include "ops/policy.h"

struct ppo_args {
    ppo_settings s;
    view in[PPO_INPUTS];
    double *sums;     // of the effective batch
    int64_t B, steps; // rows; those that share a weight
    int A;
};

// Numbers that all rows share.
struct ppo_knobs {
    double clip, entropy, range; // range: of the value's change
    double mean, scale;          // of the advantages
};

// One row: what both passes need.
struct ppo_row {
    double log_prob, entropy, advantage, log_ratio, ratio, error; // error: value less target
    bool moves;                                                   // the clip lets the policy's gradient through
    bool value_moves;
    softmax m;
};

CUDA_FN double at(const ppo_args &a, int input, int64_t i) {
    return (double)view_load(a.in[input], i);
}

CUDA_FN ppo_knobs knobs_of(const ppo_args &a) {
    ppo_knobs k = {
        at(a, PPO_KNOBS, KNOB_CLIP), at(a, PPO_KNOBS, KNOB_ENTROPY), at(a, PPO_KNOBS, KNOB_VALUE_CLIP), 0, 1};
    if (a.in[PPO_SPREAD].data) {
        k.mean = at(a, PPO_SPREAD, 0);
        k.scale = at(a, PPO_SPREAD, 1);
    }
    return k;
}

CUDA_FN double score_log_p(const ppo_args &a, softmax m, int64_t i) {
    return (double)log_p(m, view_load(a.in[PPO_SCORE], i));
}

CUDA_FN void read_policy(const ppo_args &a, int64_t b, ppo_row *w) {
    int64_t first = b * a.A;
    if (a.s.choices) {
        w->m = policy_softmax(a.in[PPO_SCORE], first, a.A);
        w->log_prob = score_log_p(a, w->m, first + (int64_t)view_load(a.in[PPO_ACTION], b));
        for (int k = 0; k < a.A; k++) {
            double log_k = score_log_p(a, w->m, first + k);
            w->entropy -= exp(log_k) * log_k;
        }
        return;
    }
    for (int64_t i = first; i < first + a.A; i++) {
        double s = at(a, PPO_STD, i);
        w->log_prob += policy_log_normal(at(a, PPO_ACTION, i), at(a, PPO_SCORE, i), s);
        w->entropy += policy_normal_entropy(s);
    }
}

CUDA_FN double clipped(double ratio, double eps) {
    return ratio < 1 - eps ? 1 - eps : ratio > 1 + eps ? 1 + eps : ratio;
}

CUDA_FN ppo_row row_of(const ppo_args &a, const ppo_knobs &k, int64_t b) {
    ppo_row w = {};
    read_policy(a, b, &w);
    w.advantage = (at(a, PPO_ADVANTAGE, b) - k.mean) * k.scale;
    w.log_ratio = w.log_prob - at(a, PPO_LOG_PROB, b);
    w.ratio = exp(w.log_ratio);
    bool inside = w.ratio >= 1 - k.clip && w.ratio <= 1 + k.clip;
    w.moves = inside || w.ratio * w.advantage < clipped(w.ratio, k.clip) * w.advantage;
    double v = at(a, PPO_VALUE, b), old = at(a, PPO_OLD_VALUE, b);
    w.value_moves = !(k.range > 0) || (v - old >= -k.range && v - old <= k.range);
    if (!w.value_moves) v = v > old ? old + k.range : old - k.range;
    w.error = v - at(a, PPO_RETURN, b);
    return w;
}

// A row's parts of the sums.
CUDA_FN void sum_row(const ppo_row &w, double eps, double weight, double sums[PPO_SUMS]) {
    double free = w.ratio * w.advantage, bound = clipped(w.ratio, eps) * w.advantage;
    sums[PPO_ROWS] = weight;
    sums[PPO_POLICY] = -weight * (free < bound ? free : bound);
    sums[PPO_VALUE_LOSS] = weight * w.error * w.error;
    sums[PPO_ENTROPY] = weight * w.entropy;
    sums[PPO_KL] = weight * (w.ratio - 1 - w.log_ratio);
    sums[PPO_CLIPPED] = fabs(w.ratio - 1) > eps ? weight : 0;
}

static __global__ void __launch_bounds__(LOSS_ROWS) forward_kernel(const __grid_constant__ ppo_args a, double *parts) {
    cuda_begin();
    __shared__ double room[32];
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    double sums[PPO_SUMS] = {}, weight = b < a.B ? at(a, PPO_WEIGHT, b / a.steps) : 0;
    if (weight != 0) {
        ppo_knobs k = knobs_of(a);
        sum_row(row_of(a, k, b), k.clip, weight, sums);
    }
    for (int k = 0; k < PPO_SUMS; k++) {
        double sum = block_sum(sums[k], room);
        if (threadIdx.x == 0) parts[blockIdx.x * PPO_SUMS + k] = sum;
    }
}

// A sum whose mean is bounded, and whether the bound lets its gradient through.
CUDA_FN double bounded(double sum, double rows, double bound, bool *moves) {
    *moves = !(bound > 0) || fabs(sum) <= bound * rows;
    return *moves ? sum : sum < 0 ? -bound * rows : bound * rows;
}

// One warp: a thread a sum.
static __global__ void add_kernel(
    const __grid_constant__ ppo_args a, const double *parts, int pieces, bool first, float *out) {
    cuda_begin();
    __shared__ double all[PPO_SUMS];
    int k = threadIdx.x;
    bool moves;
    if (k < PPO_SUMS) {
        double sum = 0;
#pragma unroll 8
        for (int i = 0; i < pieces; i++) sum += parts[i * PPO_SUMS + k];
        all[k] = sum;
        a.sums[k] = first ? sum : a.sums[k] + sum;
    }
    __syncwarp();
    if (k) return;
    double rows = all[PPO_ROWS], value = bounded(all[PPO_VALUE_LOSS], rows, (double)a.s.value_bound, &moves);
    double entropy = bounded(all[PPO_ENTROPY], rows, (double)a.s.entropy_bound, &moves);
    out[0] = (float)(all[PPO_POLICY] + (double)a.s.value * value - knobs_of(a).entropy * entropy);
    out[1] = (float)rows;
}

// Weights of a row's parts on the way back.
struct ppo_shares {
    double policy, value, entropy;
};

CUDA_FN void back_choices(const ppo_args &a, view to, int64_t b, const ppo_row &w, const ppo_shares &p) {
    int64_t first = b * a.A, taken = first + (int64_t)view_load(a.in[PPO_ACTION], b);
    for (int64_t i = first; i < first + a.A; i++) {
        double log_k = score_log_p(a, w.m, i), p_k = exp(log_k);
        view_put(to, i, (float)(p.policy * ((i == taken) - p_k) - p.entropy * -p_k * (log_k + w.entropy)));
    }
}

CUDA_FN void back_numbers(const ppo_args &a, view to, view std_to, int64_t b, const ppo_shares &p) {
    for (int64_t i = b * a.A; i < (b + 1) * a.A; i++) {
        double s = at(a, PPO_STD, i), d = (at(a, PPO_ACTION, i) - at(a, PPO_SCORE, i)) / s;
        view_put(to, i, (float)(p.policy * d / s));
        if (std_to.data) view_put(std_to, i, (float)((p.policy * (d * d - 1) - p.entropy) / s));
    }
}

CUDA_FN void back_nothing(const ppo_args &a, view to, view std_to, view value_to, int64_t b) {
    for (int64_t i = b * a.A; i < (b + 1) * a.A; i++) {
        view_put(to, i, 0);
        if (std_to.data) view_put(std_to, i, 0);
    }
    view_put(value_to, b, 0);
}

static __global__ void backward_kernel(
    const __grid_constant__ ppo_args a, view up, view to, view std_to, view value_to) {
    cuda_begin();
    ppo_knobs k = knobs_of(a);
    bool value_moves, entropy_moves;
    bounded(a.sums[PPO_VALUE_LOSS], a.sums[PPO_ROWS], (double)a.s.value_bound, &value_moves);
    bounded(a.sums[PPO_ENTROPY], a.sums[PPO_ROWS], (double)a.s.entropy_bound, &entropy_moves);
    FOR_EACH(b, a.B) {
        double weight = (double)view_load(up, 0) * at(a, PPO_WEIGHT, b / a.steps);
        if (at(a, PPO_WEIGHT, b / a.steps) == 0) {
            back_nothing(a, to, std_to, value_to, b);
            continue;
        }
        ppo_row w = row_of(a, k, b);
        ppo_shares p = {0, 0, 0};
        if (w.moves) p.policy = -weight * w.advantage * w.ratio;
        if (w.value_moves && value_moves) p.value = weight * (double)a.s.value * 2 * w.error;
        if (entropy_moves) p.entropy = weight * k.entropy;
        if (a.s.choices)
            back_choices(a, to, b, w, p);
        else
            back_numbers(a, to, std_to, b, p);
        view_put(value_to, b, (float)p.value);
    }
}

static int64_t rows_in(const call *c) {
    return operand_rows(&c->in[PPO_SCORE]);
}

static int pieces_of(const call *c) {
    return (int)((rows_in(c) + LOSS_ROWS - 1) / LOSS_ROWS);
}

static ppo_args args_of(const call *c) {
    ppo_args a = {*(const ppo_settings *)c->attr, {}, (double *)c->out[1].data, rows_in(c),
        rows_in(c) / c->in[PPO_WEIGHT].shape.dim[0], (int)operand_width(&c->in[PPO_SCORE])};
    for (int i = 0; i < PPO_INPUTS; i++) a.in[i] = view_of(&c->in[i]);
    return a;
}

static void forward(const call *c) {
    double *parts = (double *)c->scratch;
    LAUNCH_EARLY(c, forward_kernel, pieces_of(c), LOSS_ROWS, 0, args_of(c), parts);
    LAUNCH_EARLY(c, add_kernel, 1, 32, 0, args_of(c), (const double *)parts, (int)pieces_of(c), c->first,
        (float *)c->out[0].data);
}

static void backward(const call *c) {
    LAUNCH_EARLY(c, backward_kernel, blocks_for(rows_in(c), 32), 32, 0, args_of(c), view_of(&c->dout[0]),
        view_of(&c->din[PPO_SCORE]), view_of(&c->din[PPO_STD]), view_of(&c->din[PPO_VALUE]));
}

static size_t scratch(const call *c) {
    return c->backward ? 0 : (size_t)pieces_of(c) * PPO_SUMS * sizeof(double);
}

extern "C" const kernel cuda_ppo = {forward, backward, scratch, NULL};
