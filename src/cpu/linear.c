// linear on the CPU: the products through BLAS, in pieces of rows that are shared out to the pool; bias, activation and
// its slope fused into each piece while it is in cache. Pieces do not depend on the number of threads.
#include "cpu/blas.h"
#include "ops/activation.h"
#include "ops/op.h"

#include <string.h>

typedef struct {
    int64_t rows, I, O;
    const float *x, *w, *b;
    float *y;
    activation act;
} sizes;

static sizes sizes_of(const call *c) {
    return (sizes){operand_rows(&c->out[0]), operand_width(&c->in[0]), operand_width(&c->out[0]), c->in[0].data,
        c->in[1].data, c->in[2].data, c->out[0].data, ((const linear_attr *)c->attr)->act};
}

static void add_bias(float *y, const float *b, int64_t rows, int64_t O) {
    for (int64_t r = 0; b && r < rows; r++)
        for (int64_t o = 0; o < O; o++) y[r * O + o] += b[o];
}

static void activate(activation act, float *y, int64_t n) {
    if (act == ACT_NONE) return;
    if (act == ACT_RELU) {
        for (int64_t i = 0; i < n; i++) y[i] = y[i] > 0 ? y[i] : 0;
        return;
    }
    for (int64_t i = 0; i < n; i++) y[i] = activation_of(act, y[i]);
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    int64_t n = end - begin;
    float *y = s.y + begin * s.O;
    blas_gemm(false, true, n, s.O, s.I, s.x + begin * s.I, s.I, s.w, s.I, 0, y, s.O);
    add_bias(y, s.b, n, s.O);
    if (c->reserve) memcpy((float *)c->reserve + begin * s.O, y, (size_t)(n * s.O) * sizeof *y);
    activate(s.act, y, n * s.O);
}

// Elements of work per row: op_for then makes pieces of about 128 rows for narrow layers, never less than 16.
static int64_t row_work(const sizes *s) {
    int64_t width = s->I > s->O ? s->I : s->O;
    return width < 128 ? 128 : width > 1024 ? 1024 : width;
}

static void forward(const call *c) {
    sizes s = sizes_of(c);
    op_for(c, s.rows, row_work(&s), forward_rows);
}

static const float *slope_source(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_NONE ? c->dout[0].data : c->scratch;
}

static void apply_slope(const call *c, const sizes *s, int64_t begin, int64_t end) {
    const float *dy = c->dout[0].data, *y = s->y, *z = c->reserve;
    float *dz = c->scratch;
    if (s->act == ACT_NONE) return;
    if (s->act == ACT_RELU) {
        for (int64_t i = begin; i < end; i++) dz[i] = y[i] > 0 ? dy[i] : 0;
        return;
    }
    for (int64_t i = begin; i < end; i++) dz[i] = dy[i] * activation_slope(s->act, z ? z[i] : 0, y[i]);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    apply_slope(c, &s, begin * s.O, end * s.O);
    float *dx = c->din[0].data;
    if (!dx) return;
    blas_gemm(false, false, end - begin, s.I, s.O, slope_source(c) + begin * s.O, s.O, s.w, s.I, c->din[0].add ? 1 : 0,
        dx + begin * s.I, s.I);
}

// Gradient rows begin..end of the weight: products over all samples.
static void backward_weights(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    const float *dz = slope_source(c);
    float *dw = c->din[1].data;
    if (dw)
        blas_gemm(true, false, end - begin, s.I, s.rows, dz + begin, s.O, s.x, s.I, c->din[1].add ? 1 : 0,
            dw + begin * s.I, s.I);
    if (!c->din[2].data) return;
    for (int64_t o = begin; o < end; o++) {
        float sum = 0;
        for (int64_t r = 0; r < s.rows; r++) sum += dz[r * s.O + o];
        op_put(&c->din[2], o, sum);
    }
}

static void backward(const call *c) {
    sizes s = sizes_of(c);
    op_for(c, s.rows, row_work(&s), backward_rows);
    op_for(c, s.O, 512, backward_weights); // 32 rows of the weight a piece
}

static size_t scratch(const call *c) {
    if (!c->backward || ((const linear_attr *)c->attr)->act == ACT_NONE) return 0;
    return (size_t)operand_count(&c->out[0]) * sizeof(float);
}

static size_t reserve(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_GELU ? (size_t)operand_count(&c->out[0]) * sizeof(float) : 0;
}

const kernel KERNEL(cpu_linear) = {forward, backward, scratch, reserve};
