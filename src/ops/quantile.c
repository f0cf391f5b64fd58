// quantile: the pinball loss of several quantiles at once.
//   prediction [B, Q * H]: the H values of the first quantile, then those of the next; target [B, H]; weight [B] (of
//   rows) -> {sum, normaliser}, the normaliser counting predictions
// A prediction p of quantile a costs a (t - p) where it is too low, (1 - a) (p - t) where it is too high; at p = t its
// slope is 0. A row of weight 0 is never read.
#include "ops/loss.h"

#ifdef OP_RULES

tensor op_quantile(graph *g, tensor prediction, tensor target, tensor weight, quantile_settings levels) {
    shape p = op_shape(g, prediction), t = op_shape(g, target);
    CHECK(levels.count > 0 && levels.count <= QUANTILES_MOST, "quantile: %d of them", levels.count);
    for (int q = 0; q < levels.count; q++)
        CHECK(levels.level[q] > 0 && levels.level[q] < 1, "quantile: level %g", (double)levels.level[q]);
    CHECK(p.rank == 2 && t.rank == 2 && p.dim[0] == t.dim[0] && p.dim[1] == levels.count * t.dim[1],
        "quantile: predictions are not %d for every target", levels.count);
    CHECK(shape_equal(op_shape(g, weight), shape1(p.dim[0])), "quantile: row weights do not fit");
    node *n = OP_NODE(g, quantile, prediction, target, weight);
    graph_attr_add(g, n, &levels, sizeof levels);
    n->flows = 1;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1) | NEEDS_INPUT(2);
    return graph_output_add(g, n, DTYPE_F32, shape1(2));
}

#else

static real level_of(const call *c, int64_t column) {
    return (real)((const quantile_settings *)c->attr)->level[column / c->in[1].shape.dim[1]];
}

static void forward_pieces(const call *c, int64_t begin, int64_t end) {
    int64_t C = c->in[0].shape.dim[1], H = c->in[1].shape.dim[1];
    const real *weight = c->in[2].data;
    for (int64_t piece = begin; piece < end; piece++) {
        loss_sums part = {0, 0};
        for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
            if (weight[b] == 0) continue;
            const real *p = (const real *)c->in[0].data + b * C, *t = (const real *)c->in[1].data + b * H;
            real sum = 0;
            for (int64_t i = 0; i < C; i++) {
                real d = t[i % H] - p[i], a = level_of(c, i);
                sum += d < 0 ? (a - 1) * d : a * d;
            }
            part.sum += (double)(weight[b] * sum);
            part.norm += (double)(weight[b] * (real)C);
        }
        ((loss_sums *)c->scratch)[piece] = part;
    }
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t C = c->in[0].shape.dim[1], H = c->in[1].shape.dim[1];
    const real *weight = c->in[2].data;
    real up = ((const real *)c->dout[0].data)[0];
    for (int64_t b = begin; b < end; b++) {
        const real *p = (const real *)c->in[0].data + b * C, *t = (const real *)c->in[1].data + b * H;
        for (int64_t i = 0; i < C; i++) {
            real a = level_of(c, i), slope = 0;
            if (weight[b] != 0 && p[i] != t[i % H]) slope = p[i] > t[i % H] ? 1 - a : -a;
            op_put(&c->din[0], b * C + i, up * weight[b] * slope);
        }
    }
}

static void forward(const call *c) {
    loss_forward(c, forward_pieces);
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[1], backward_rows);
}

const kernel KERNEL(quantile) = {forward, backward, loss_scratch, NULL};

#endif
