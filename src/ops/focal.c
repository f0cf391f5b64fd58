// focal: the cross-entropy of ops/cross_entropy.c, class weights and smoothing included, times (1 - p_y)^gamma: rows
// that are classified right already count for less.
//   logits [B, K], label [B] (i32), weight [B] (of rows), class_weight [K] or none -> {sum, normaliser}
// The normaliser is that of cross_entropy. A row of weight 0 is never read.
#include "ops/softmax.h"

#ifdef OP_RULES

tensor op_focal(graph *g, tensor logits, tensor label, tensor weight, tensor class_weight, focal_settings settings) {
    CHECK(settings.gamma >= 0, "focal: a gamma of %g", (double)settings.gamma);
    node *n = classes_node(g, OP_focal, logits, label, weight, class_weight, settings.smoothing);
    graph_attr_add(g, n, &settings, sizeof settings);
    return n->output[0];
}

#else

// A row's cross-entropy, before its weight, with smoothing s.
static real row_loss(const call *c, const real *z, int32_t y, softmax m, real s) {
    int64_t K = c->in[0].shape.dim[1];
    real loss = (1 - s) * class_weight(c, y) * -log_p(m, z[y]);
    for (int64_t k = 0; s > 0 && k < K; k++) loss += s / (real)K * class_weight(c, k) * -log_p(m, z[k]);
    return loss;
}

// Its gradient at logit k is total * p_k - target_k, where total is the sum of all targets.
static real row_target(const call *c, int32_t y, int64_t k, real s) {
    return s / (real)c->in[0].shape.dim[1] * class_weight(c, k) + (k == y ? (1 - s) * class_weight(c, y) : 0);
}

static real row_total(const call *c, int32_t y, real s) {
    int64_t K = c->in[0].shape.dim[1];
    real total = (1 - s) * class_weight(c, y);
    for (int64_t k = 0; k < K; k++) total += s / (real)K * class_weight(c, k);
    return total;
}

// 1 - p_y as the sum of the others, which keeps its digits where p_y is near 1.
static real missing(const real *z, int64_t K, int32_t y, softmax m) {
    real sum = 0;
    for (int64_t k = 0; k < K; k++)
        if (k != y) sum += (real)exp((double)log_p(m, z[k]));
    return sum;
}

static real power(real x, float exponent) {
    return (real)pow((double)x, (double)exponent);
}

static void forward_pieces(const call *c, int64_t begin, int64_t end) {
    const focal_settings *a = c->attr;
    int64_t K = c->in[0].shape.dim[1];
    const real *weight = c->in[2].data;
    for (int64_t piece = begin; piece < end; piece++) {
        loss_sums part = {0, 0};
        for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
            if (weight[b] == 0) continue;
            const real *z = (const real *)c->in[0].data + b * K;
            int32_t y = label_of(c, b);
            softmax m = softmax_of(z, K);
            real focus = power(missing(z, K, y, m), a->gamma);
            part.sum += (double)(weight[b] * focus * row_loss(c, z, y, m, (real)a->smoothing));
            part.norm += (double)(weight[b] * class_weight(c, y));
        }
        ((loss_sums *)c->scratch)[piece] = part;
    }
}

// With L the row's cross-entropy and f = (1 - p_y)^gamma, the gradient is f dL + L df, and
// df_k = gamma (1 - p_y)^(gamma - 1) p_y (p_k - [k = y]).
static void backward_row(const call *c, int64_t b, real scale) {
    const focal_settings *a = c->attr;
    int64_t K = c->in[0].shape.dim[1];
    const real *z = (const real *)c->in[0].data + b * K;
    real s = (real)a->smoothing;
    int32_t y = label_of(c, b);
    softmax m = softmax_of(z, K);
    real total = row_total(c, y, s), rest = missing(z, K, y, m), focus = power(rest, a->gamma), turn = 0;
    if (rest != 0 && a->gamma > 0) // a NaN stays one
        turn = (real)a->gamma * power(rest, a->gamma - 1) * (real)exp((double)log_p(m, z[y])) * row_loss(c, z, y, m, s);
    for (int64_t k = 0; k < K; k++) {
        real p = (real)exp((double)log_p(m, z[k])), off = k == y ? -rest : p;
        op_put(&c->din[0], b * K + k, scale * (focus * (total * p - row_target(c, y, k, s)) + turn * off));
    }
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t K = c->in[0].shape.dim[1];
    real up = ((const real *)c->dout[0].data)[0];
    const real *weight = c->in[2].data;
    for (int64_t b = begin; b < end; b++) {
        if (weight[b] != 0) backward_row(c, b, up * weight[b]);
        for (int64_t k = 0; weight[b] == 0 && k < K; k++) op_put(&c->din[0], b * K + k, 0);
    }
}

static void forward(const call *c) {
    loss_forward(c, forward_pieces);
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[1] * 32, backward_rows);
}

const kernel KERNEL(focal) = {forward, backward, loss_scratch, NULL};

#endif
