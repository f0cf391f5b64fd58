// cross_entropy: softmax cross-entropy with class weights and label smoothing, as PyTorch defines them.
//   logits [B, K], label [B] (i32), weight [B] (of rows), class_weight [K] or none -> {sum, normaliser}
// With w the class weights, y the label, s the smoothing and p the softmax, a row's loss is
//   (1 - s) w_y (-log p_y) + s / K * sum over k of w_k (-log p_k)
// and the normaliser is the sum of w_y; both are multiplied by the row's weight. A row of weight 0 is never read.
#include "ops/softmax.h"

#ifdef OP_RULES

tensor op_cross_entropy(graph *g, tensor logits, tensor label, tensor weight, tensor class_weight, float smoothing) {
    node *n = classes_node(g, OP_cross_entropy, logits, label, weight, class_weight, smoothing);
    cross_entropy_attr a = {smoothing};
    graph_attr_add(g, n, &a, sizeof a);
    return n->output[0];
}

#else

static void forward_pieces(const call *c, int64_t begin, int64_t end) {
    int64_t K = c->in[0].shape.dim[1];
    real s = (real)((const cross_entropy_attr *)c->attr)->smoothing;
    const real *weight = c->in[2].data;
    for (int64_t piece = begin; piece < end; piece++) {
        loss_sums part = {0, 0};
        for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
            if (weight[b] == 0) continue;
            const real *z = (const real *)c->in[0].data + b * K;
            int32_t y = label_of(c, b);
            softmax m = softmax_of(z, K);
            real loss = (1 - s) * class_weight(c, y) * -log_p(m, z[y]);
            for (int64_t k = 0; s > 0 && k < K; k++) loss += s / (real)K * class_weight(c, k) * -log_p(m, z[k]);
            part.sum += (double)(weight[b] * loss);
            part.norm += (double)(weight[b] * class_weight(c, y));
        }
        ((loss_sums *)c->scratch)[piece] = part;
    }
}

static void forward(const call *c) {
    loss_forward(c, forward_pieces);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t K = c->in[0].shape.dim[1];
    real s = (real)((const cross_entropy_attr *)c->attr)->smoothing, up = ((const real *)c->dout[0].data)[0];
    const real *weight = c->in[2].data;
    for (int64_t b = begin; b < end; b++) {
        const real *z = (const real *)c->in[0].data + b * K;
        bool live = weight[b] != 0;
        int32_t y = live ? label_of(c, b) : 0;
        softmax m = live ? softmax_of(z, K) : (softmax){0, 0};
        real total = (1 - s) * class_weight(c, y), scale = up * weight[b];
        for (int64_t k = 0; k < K; k++) total += s / (real)K * class_weight(c, k);
        for (int64_t k = 0; k < K; k++) {
            real target = s / (real)K * class_weight(c, k) + (k == y ? (1 - s) * class_weight(c, y) : 0);
            real d = live ? scale * (total * (real)exp((double)log_p(m, z[k])) - target) : 0;
            op_put(&c->din[0], b * K + k, d);
        }
    }
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[1] * 16, backward_rows);
}

const kernel KERNEL(cross_entropy) = {forward, backward, loss_scratch, NULL};

#endif
