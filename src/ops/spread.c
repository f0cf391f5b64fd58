// spread: mean and inverse deviation of a table's values over the effective batch, however that is split.
//   table [R] -> {mean, 1 / (deviation + 1e-8)}
// The batch is the `rows` samples from the cursor's position on, as `draw` has them; sample s is the values s, s + N,
// s + 2 N and so on of the table, `steps` of them. The deviation is that of a sample (n - 1). Of a single value it
// gives {0, 1}.
#include "base/rng.h"
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_spread(graph *g, tensor table, int64_t rows, int64_t steps) {
    node *n = OP_NODE(g, spread, table);
    CHECK(op_shape(g, table).dim[0] % steps == 0, "spread: a table that has not %lld steps", (long long)steps);
    spread_attr a = {rows, steps};
    graph_attr_add(g, n, &a, sizeof a);
    return graph_output_add(g, n, DTYPE_F32, shape1(2));
}

#else

enum { PIECE = 1024 };

static int64_t pieces_of(const call *c) {
    return (((const spread_attr *)c->attr)->rows + PIECE - 1) / PIECE;
}

// Values in this batch: the last of an epoch may have fewer.
static int64_t count_of(const call *c) {
    const step_cursor *s = c->step.cursor;
    int64_t rows = ((const spread_attr *)c->attr)->rows, left = (int64_t)(s->count - s->position);
    return left < rows ? left : rows;
}

static void sum_pieces(const call *c, int64_t begin, int64_t end) {
    const step_cursor *s = c->step.cursor;
    const spread_attr *a = c->attr;
    int64_t n = count_of(c), stride = operand_count(&c->in[0]) / a->steps;
    double *sums = c->scratch, first = (double)((const real *)c->in[0].data)[step_sample(s, 0)];
    for (int64_t piece = begin; piece < end; piece++) {
        double sum = 0, square = 0;
        for (int64_t k = piece * PIECE; k < n && k < (piece + 1) * PIECE; k++) {
            uint64_t at = s->position + (uint64_t)k;
            if (s->shuffle) at = rng_permute(c->step.progress->seed, s->epoch, at, s->count);
            for (int64_t t = 0; t < a->steps; t++) {
                double v = (double)((const real *)c->in[0].data)[(int64_t)step_sample(s, at) + t * stride] - first;
                sum += v;
                square += v * v;
            }
        }
        sums[2 * piece] = sum;
        sums[2 * piece + 1] = square;
    }
}

static void forward(const call *c) {
    int64_t n = count_of(c) * ((const spread_attr *)c->attr)->steps;
    const double *sums = c->scratch;
    double sum = 0, square = 0;
    real *out = c->out[0].data;
    op_for(c, pieces_of(c), 64 * PIECE, sum_pieces);
    for (int64_t i = 0; i < pieces_of(c); i++) {
        sum += sums[2 * i];
        square += sums[2 * i + 1];
    }
    double mean = sum / (double)n, variance = n > 1 ? (square - mean * sum) / (double)(n - 1) : 0;
    double first = (double)((const real *)c->in[0].data)[step_sample(c->step.cursor, 0)];
    out[0] = n > 1 ? (real)(mean + first) : 0;
    out[1] = n > 1 ? (real)(1 / (sqrt(variance > 0 ? variance : 0) + 1e-8)) : 1;
}

static size_t scratch(const call *c) {
    return (size_t)pieces_of(c) * 2 * sizeof(double);
}

const kernel KERNEL(spread) = {forward, NULL, scratch, NULL};

#endif
