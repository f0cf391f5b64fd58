// linear on the CPU: three products (cpu/gemm.h), with bias, activation and its slope fused into the pieces while they
// are in cache. Forward keeps GELU's slope, not what it was given: the exponential serves both.
#include "cpu/gemm.h"
#include "ops/activation.h"
#include "ops/op.h"

typedef struct {
    const call *c;
    int64_t rows, I, O;
    const float *x, *w, *b, *dz;
    activation act;
    float *packed; // the packed operand, at the start of scratch
    gemm product;
} work;

static work work_of(const call *c) {
    work w = {.c = c, .rows = operand_rows(&c->out[0]), .I = operand_width(&c->in[0]), .O = operand_width(&c->out[0])};
    w.x = c->in[0].data;
    w.w = c->in[1].data;
    w.b = c->in[2].data;
    w.act = ((const linear_attr *)c->attr)->act;
    w.packed = c->scratch;
    return w;
}

// Forward: y = act(x W' + b)

static void pack_forward(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack(w->w, 1, w->I, w->I, w->O, panel, w->packed);
}

// GELU's value and, where backward will run, its slope: both come of one exponential.
static void gelu_row(float *y, float *slope, int64_t n) {
    for (int64_t i = 0; i < n; i += VEC) {
        vec density, z = vec_load_some(y + i, n - i), share = vec_normal(z, &density);
        vec_store_some(y + i, z * share, n - i);
        if (slope) vec_store_some(slope + i, share + z * density, n - i);
    }
}

static void finish_row(const work *w, float *y, float *slope, const float *bias, int64_t n) {
    for (int64_t i = 0; bias && i < n; i++) y[i] += bias[i];
    if (w->act == ACT_RELU) {
        for (int64_t i = 0; i < n; i++) y[i] = y[i] < 0 ? 0 : y[i]; // a NaN stays one
    } else if (w->act == ACT_GELU) {
        gelu_row(y, slope, n);
    } else if (w->act != ACT_NONE) {
        for (int64_t i = 0; i < n; i++) y[i] = activation_of(w->act, y[i]);
    }
}

static void forward_item(void *arg, int64_t item, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_part p = gemm_run(&w->product, item);
    float *slope = w->c->reserve;
    for (int64_t r = p.row; r < p.row + p.rows; r++) {
        int64_t at = r * w->O + p.column;
        finish_row(w, w->product.c + at, slope ? slope + at : NULL, w->b ? w->b + p.column : NULL, p.columns);
    }
}

static void forward(const call *c) {
    work w = work_of(c);
    w.product = (gemm){w.rows, w.O, w.I, w.x, w.I, 1, w.packed, c->out[0].data, w.O, false};
    pool_run(c->pool, gemm_panels(w.O), pack_forward, &w);
    pool_run(c->pool, gemm_items(&w.product), forward_item, &w);
}

// Backward: dz = dy act'(z); dx = dz W; dW = dz' x; db = sum of dz over rows

static void slope_rows(const call *c, int64_t begin, int64_t end) {
    const linear_attr *a = c->attr;
    const float *dy = c->dout[0].data, *y = c->out[0].data, *slope = c->reserve;
    float *dz = c->scratch;
    int64_t O = operand_width(&c->out[0]);
    if (a->act == ACT_RELU) {
        for (int64_t i = begin * O; i < end * O; i++) dz[i] = y[i] <= 0 ? 0 : dy[i];
    } else if (a->act == ACT_GELU) {
        for (int64_t i = begin * O; i < end * O; i++) dz[i] = dy[i] * slope[i];
    } else {
        for (int64_t i = begin * O; i < end * O; i++) dz[i] = dy[i] * activation_slope(a->act, 0, y[i]);
    }
}

static void pack_weight(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack(w->w, w->I, 1, w->O, w->I, panel, w->packed);
}

static void pack_input(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack(w->x, w->I, 1, w->rows, w->I, panel, w->packed);
}

static void product_item(void *arg, int64_t item, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_run(&w->product, item);
}

static void bias_item(void *arg, int64_t item, int worker) {
    const work *w = arg;
    int64_t begin = item * VEC, end = begin + VEC < w->O ? begin + VEC : w->O;
    float sum[VEC] = {0};
    (void)worker;
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t o = begin; o < end; o++) sum[o - begin] += w->dz[r * w->O + o];
    for (int64_t o = begin; o < end; o++) op_put(&w->c->din[2], o, sum[o - begin]);
}

static size_t slope_bytes(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_NONE ? 0 : (size_t)operand_count(&c->out[0]) * sizeof(float);
}

static void backward(const call *c) {
    work w = work_of(c);
    bool slope = slope_bytes(c) > 0;
    if (slope) op_for(c, w.rows, w.O, slope_rows);
    w.dz = slope ? c->scratch : c->dout[0].data;
    w.packed = (float *)c->scratch + slope_bytes(c) / sizeof(float);
    if (c->din[0].data) {
        w.product = (gemm){w.rows, w.I, w.O, w.dz, w.O, 1, w.packed, c->din[0].data, w.I, c->din[0].add};
        pool_run(c->pool, gemm_panels(w.I), pack_weight, &w);
        pool_run(c->pool, gemm_items(&w.product), product_item, &w);
    }
    if (c->din[1].data) {
        w.product = (gemm){w.O, w.I, w.rows, w.dz, 1, w.O, w.packed, c->din[1].data, w.I, c->din[1].add};
        pool_run(c->pool, gemm_panels(w.I), pack_input, &w);
        pool_run(c->pool, gemm_items(&w.product), product_item, &w);
    }
    if (c->din[2].data) pool_run(c->pool, (w.O + VEC - 1) / VEC, bias_item, &w);
}

static size_t scratch(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    if (!c->backward) return gemm_packed_bytes(I, O);
    return slope_bytes(c) + gemm_packed_bytes(rows > O ? rows : O, I);
}

static size_t reserve(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_GELU ? (size_t)operand_count(&c->out[0]) * sizeof(float) : 0;
}

const kernel KERNEL(cpu_linear) = {forward, backward, scratch, reserve};
