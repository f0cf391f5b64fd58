// ppo: the loss of proximal policy optimisation (Schulman et al., 2017), as Stable-Baselines3 has it.
//   inputs PPO_SCORE .. PPO_KNOBS -> {sum, normaliser}, sums of the effective batch [PPO_SUMS] (f64, a state)
// With A the normalised advantage, r = exp(log p - log p when the action was taken), eps = knobs[KNOB_CLIP]:
//   policy  = -min(r A, clip(r, 1 - eps, 1 + eps) A)
//   value   = (target - V)^2; with KNOB_VALUE_CLIP above 0, V is the old value plus a change within that
//   entropy = of the policy
//   loss    = policy + value coefficient * value - KNOB_ENTROPY * entropy
// The means of value loss and entropy can be bounded, as torch.clamp of the mean does it; the effective batch must then
// be one micro-batch. Beside the loss it sums (r - 1) - log r, an estimate of the divergence, and how often r left the
// clip's range. A row of weight 0 counts for nothing. Rows may be the steps of sequences: [B, T, ...] with weights [B].
#include "ops/loss.h"
#include "ops/policy.h"
#include "ops/softmax.h"

#ifdef OP_RULES

tensor op_ppo(graph *g, ppo_inputs in, ppo_settings settings) {
    node *n = OP_NODE(g, ppo, in.score, in.std, in.value, in.action, in.log_prob, in.advantage, in.target, in.old_value,
        in.weight, in.spread, in.knobs);
    CHECK(settings.choices != (in.std.id != 0), "ppo: choices have no deviation, and numbers have one");
    CHECK(shape_equal(op_shape(g, in.knobs), shape1(KNOBS)), "ppo: not its knobs");
    graph_attr_add(g, n, &settings, sizeof settings);
    n->flows = 1u << PPO_SCORE | 1u << PPO_STD | 1u << PPO_VALUE;
    for (int i = 0; i < PPO_INPUTS; i++) n->needs |= NEEDS_INPUT(i);
    n->needs |= NEEDS_OUTPUT(1);
    tensor loss = graph_output_add(g, n, DTYPE_F32, shape1(2));
    graph_state_output_add(g, n, "ppo sums", DTYPE_F64, shape1(PPO_SUMS));
    return loss;
}

#else

static real of(const call *c, int input, int64_t b) {
    return ((const real *)c->in[input].data)[b];
}

// A weight of a sequence is that of all its steps.
static real weight_of(const call *c, int64_t b) {
    return of(c, PPO_WEIGHT, b / (operand_rows(&c->in[PPO_SCORE]) / c->in[PPO_WEIGHT].shape.dim[0]));
}

static int64_t piece_end(const call *c, int64_t piece) {
    int64_t end = (piece + 1) * LOSS_PIECE, rows = operand_rows(&c->in[PPO_SCORE]);
    return end < rows ? end : rows;
}

static real knob(const call *c, int k) {
    return ((const real *)c->in[PPO_KNOBS].data)[k];
}

// One row: what both passes need.
typedef struct {
    double log_prob, entropy, advantage, log_ratio, ratio, error; // error: value less target
    bool moves;                                                   // the clip lets the policy's gradient through
    bool value_moves;
    softmax m;
} ppo_row;

static void read_policy(const call *c, int64_t b, ppo_row *w) {
    int64_t A = operand_width(&c->in[PPO_SCORE]);
    const real *z = (const real *)c->in[PPO_SCORE].data + b * A, *std = c->in[PPO_STD].data;
    if (((const ppo_settings *)c->attr)->choices) {
        w->m = softmax_of(z, A);
        w->log_prob = (double)log_p(w->m, z[(int64_t)of(c, PPO_ACTION, b)]);
        for (int64_t k = 0; k < A; k++) w->entropy -= exp((double)log_p(w->m, z[k])) * (double)log_p(w->m, z[k]);
        return;
    }
    for (int64_t k = 0; k < A; k++) {
        double x = (double)of(c, PPO_ACTION, b * A + k), s = (double)std[b * A + k];
        w->log_prob += policy_log_normal(x, (double)z[k], s);
        w->entropy += policy_normal_entropy(s);
    }
}

static ppo_row row_of(const call *c, int64_t b) {
    const real *spread = c->in[PPO_SPREAD].data;
    double eps = (double)knob(c, KNOB_CLIP), range = (double)knob(c, KNOB_VALUE_CLIP);
    ppo_row w = {.advantage = (double)of(c, PPO_ADVANTAGE, b)};
    read_policy(c, b, &w);
    if (spread) w.advantage = (w.advantage - (double)spread[0]) * (double)spread[1];
    w.log_ratio = w.log_prob - (double)of(c, PPO_LOG_PROB, b);
    w.ratio = exp(w.log_ratio);
    bool inside = w.ratio >= 1 - eps && w.ratio <= 1 + eps;
    double cut = w.ratio < 1 - eps ? 1 - eps : w.ratio > 1 + eps ? 1 + eps : w.ratio;
    w.moves = inside || w.ratio * w.advantage < cut * w.advantage;
    double v = (double)of(c, PPO_VALUE, b), old = (double)of(c, PPO_OLD_VALUE, b);
    w.value_moves = !(range > 0) || (v - old >= -range && v - old <= range);
    if (!w.value_moves) v = v > old ? old + range : old - range;
    w.error = v - (double)of(c, PPO_RETURN, b);
    return w;
}

static void add_row(const ppo_row *w, double eps, double weight, double sums[PPO_SUMS]) {
    double cut = w->ratio < 1 - eps ? 1 - eps : w->ratio > 1 + eps ? 1 + eps : w->ratio;
    double free = w->ratio * w->advantage, bound = cut * w->advantage;
    sums[PPO_ROWS] += weight;
    sums[PPO_POLICY] -= weight * (free < bound ? free : bound);
    sums[PPO_VALUE_LOSS] += weight * w->error * w->error;
    sums[PPO_ENTROPY] += weight * w->entropy;
    sums[PPO_KL] += weight * (w->ratio - 1 - w->log_ratio);
    sums[PPO_CLIPPED] += weight * (fabs(w->ratio - 1) > eps);
}

static void forward_pieces(const call *c, int64_t begin, int64_t end) {
    double eps = (double)knob(c, KNOB_CLIP);
    for (int64_t piece = begin; piece < end; piece++) {
        double *sums = (double *)c->scratch + piece * PPO_SUMS;
        for (int k = 0; k < PPO_SUMS; k++) sums[k] = 0;
        for (int64_t b = piece * LOSS_PIECE; b < piece_end(c, piece); b++) {
            double weight = (double)weight_of(c, b);
            if (weight == 0) continue;
            ppo_row w = row_of(c, b);
            add_row(&w, eps, weight, sums);
        }
    }
}

// A sum whose mean is bounded, and whether the bound lets its gradient through.
static double bounded(double sum, double rows, double bound, bool *moves) {
    *moves = !(bound > 0) || fabs(sum) <= bound * rows;
    return *moves ? sum : sum < 0 ? -bound * rows : bound * rows;
}

static void forward(const call *c) {
    const ppo_settings *s = c->attr;
    int64_t pieces = loss_pieces(operand_rows(&c->in[PPO_SCORE]));
    double all[PPO_SUMS] = {0}, *step = c->out[1].data;
    bool moves;
    op_for(c, pieces, 16384, forward_pieces);
    for (int64_t i = 0; i < pieces; i++)
        for (int k = 0; k < PPO_SUMS; k++) all[k] += ((const double *)c->scratch)[i * PPO_SUMS + k];
    for (int k = 0; k < PPO_SUMS; k++) step[k] = c->first ? all[k] : step[k] + all[k];
    double value = bounded(all[PPO_VALUE_LOSS], all[PPO_ROWS], (double)s->value_bound, &moves);
    double entropy = bounded(all[PPO_ENTROPY], all[PPO_ROWS], (double)s->entropy_bound, &moves);
    real *out = c->out[0].data;
    out[0] = (real)(all[PPO_POLICY] + (double)s->value * value - (double)knob(c, KNOB_ENTROPY) * entropy);
    out[1] = (real)all[PPO_ROWS];
}

// Weights of a row's parts on the way back.
typedef struct {
    double policy, value, entropy;
} ppo_shares;

static void back_choices(const call *c, int64_t b, const ppo_row *w, ppo_shares p) {
    int64_t A = operand_width(&c->in[PPO_SCORE]), taken = (int64_t)of(c, PPO_ACTION, b);
    const real *z = (const real *)c->in[PPO_SCORE].data + b * A;
    for (int64_t k = 0; k < A; k++) {
        double log_k = (double)log_p(w->m, z[k]), p_k = exp(log_k);
        double d = p.policy * ((k == taken) - p_k) - p.entropy * -p_k * (log_k + w->entropy);
        op_put(&c->din[PPO_SCORE], b * A + k, (real)d);
    }
}

static void back_numbers(const call *c, int64_t b, ppo_shares p) {
    int64_t A = operand_width(&c->in[PPO_SCORE]);
    for (int64_t k = 0; k < A; k++) {
        int64_t i = b * A + k;
        double s = (double)of(c, PPO_STD, i), d = ((double)of(c, PPO_ACTION, i) - (double)of(c, PPO_SCORE, i)) / s;
        op_put(&c->din[PPO_SCORE], i, (real)(p.policy * d / s));
        if (c->din[PPO_STD].data) op_put(&c->din[PPO_STD], i, (real)((p.policy * (d * d - 1) - p.entropy) / s));
    }
}

static void back_nothing(const call *c, int64_t b) {
    int64_t A = operand_width(&c->in[PPO_SCORE]);
    for (int64_t i = b * A; i < (b + 1) * A; i++) {
        op_put(&c->din[PPO_SCORE], i, 0);
        if (c->din[PPO_STD].data) op_put(&c->din[PPO_STD], i, 0);
    }
    op_put(&c->din[PPO_VALUE], b, 0);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    const ppo_settings *s = c->attr;
    const double *sums = c->out[1].data;
    double up = (double)((const real *)c->dout[0].data)[0];
    bool value_moves, entropy_moves;
    bounded(sums[PPO_VALUE_LOSS], sums[PPO_ROWS], (double)s->value_bound, &value_moves);
    bounded(sums[PPO_ENTROPY], sums[PPO_ROWS], (double)s->entropy_bound, &entropy_moves);
    for (int64_t b = begin; b < end; b++) {
        double weight = up * (double)weight_of(c, b);
        if (weight_of(c, b) == 0) {
            back_nothing(c, b);
            continue;
        }
        ppo_row w = row_of(c, b);
        ppo_shares p = {0, 0, 0};
        if (w.moves) p.policy = -weight * w.advantage * w.ratio;
        if (w.value_moves && value_moves) p.value = weight * (double)s->value * 2 * w.error;
        if (entropy_moves) p.entropy = weight * (double)knob(c, KNOB_ENTROPY);
        if (s->choices)
            back_choices(c, b, &w, p);
        else
            back_numbers(c, b, p);
        op_put(&c->din[PPO_VALUE], b, (real)p.value);
    }
}

static void backward(const call *c) {
    op_for(c, operand_rows(&c->in[PPO_SCORE]), operand_width(&c->in[PPO_SCORE]) * 64, backward_rows);
}

static size_t scratch(const call *c) {
    return c->backward ? 0 : (size_t)loss_pieces(operand_rows(&c->in[PPO_SCORE])) * PPO_SUMS * sizeof(double);
}

const kernel KERNEL(ppo) = {forward, backward, scratch, NULL};

#endif
