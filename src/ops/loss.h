// Shared by the losses: rows summed in fixed pieces, so that the sum has the same bits on any number of threads.
//
// A loss yields {sum, normaliser}. The division happens once, in the optimizer step, so that any split of a batch into
// micro-batches gives the same gradient. Its own incoming gradient is {scale, 0}: element 0 multiplies what goes back.
#ifndef TRADEWIND_OPS_LOSS_H
#define TRADEWIND_OPS_LOSS_H

#include "ops/op.h"

enum { LOSS_PIECE = 256 }; // rows

typedef struct {
    double sum, norm;
} loss_sums;

static inline int64_t loss_pieces(int64_t rows) {
    return (rows + LOSS_PIECE - 1) / LOSS_PIECE;
}

static inline size_t loss_scratch(const call *c) {
    return c->backward ? 0 : (size_t)loss_pieces(c->in[0].shape.dim[0]) * sizeof(loss_sums);
}

// Adds the pieces, which `piece` has written to scratch, into the result.
static inline void loss_forward(const call *c, op_range *piece) {
    int64_t pieces = loss_pieces(c->in[0].shape.dim[0]);
    op_for(c, pieces, 16384, piece);
    const loss_sums *part = c->scratch;
    loss_sums all = {0, 0};
    for (int64_t i = 0; i < pieces; i++) {
        all.sum += part[i].sum;
        all.norm += part[i].norm;
    }
    real *out = c->out[0].data;
    out[0] = (real)all.sum;
    out[1] = (real)all.norm;
}

static inline int64_t loss_piece_end(const call *c, int64_t piece) {
    int64_t end = (piece + 1) * LOSS_PIECE, rows = c->in[0].shape.dim[0];
    return end < rows ? end : rows;
}

#endif
