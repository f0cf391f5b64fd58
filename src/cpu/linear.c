// linear on the CPU: three products (cpu/gemm.h), with bias, activation and its slope fused into the pieces while they
// are in cache. Forward keeps GELU's slope, not what it was given: the exponential serves both.
#include "cpu/gemm.h"
#include "ops/activation.h"
#include "ops/op.h"

// The gradients of weights are sums over rows. Where there are many rows, groups of them are summed side by side, each
// a few rows at a time that stay in cache, and the groups are added in order; their number depends on the sizes only.
enum { GROUPS_LEAST = 4, GROUPS_MOST = 16, GROUP_ROWS = 128 };

typedef struct {
    const call *c;
    int64_t rows, I, O, groups; // 0 groups: too few rows
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
    w.groups = w.rows / (w.O > 256 ? w.O : 256);
    if (w.groups > GROUPS_MOST) w.groups = GROUPS_MOST;
    if (w.groups < GROUPS_LEAST) w.groups = 0;
    return w;
}

// Forward: y = act(x W' + b)

static void pack_forward(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack_transposed(w->w, w->I, w->I, w->O, panel, w->packed);
}

// GELU's value and, where backward will run, its slope: both come of one exponential.
static void gelu_row(float *y, float *slope, int64_t n) {
    for (int64_t i = 0; i < n; i += VEC) {
        vec density, z = vec_load_some(y + i, n - i), share = vec_normal(z, &density);
        vec_store_some(y + i, z * share, n - i);
        if (slope) vec_store_some(slope + i, share + z * density, n - i);
    }
}

static void tanh_row(float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += VEC) vec_store_some(y + i, vec_tanh(vec_load_some(y + i, n - i)), n - i);
}

static void sigmoid_row(float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += VEC) vec_store_some(y + i, vec_sigmoid(vec_load_some(y + i, n - i)), n - i);
}

static void finish_row(const work *w, float *y, float *slope, const float *bias, int64_t n) {
    for (int64_t i = 0; bias && i < n; i++) y[i] += bias[i];
    if (w->act == ACT_RELU) {
        for (int64_t i = 0; i < n; i++) y[i] = y[i] < 0 ? 0 : y[i]; // a NaN stays one
    } else if (w->act == ACT_GELU) {
        gelu_row(y, slope, n);
    } else if (w->act == ACT_TANH) {
        tanh_row(y, n);
    } else if (w->act == ACT_SIGMOID) {
        sigmoid_row(y, n);
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
    } else if (a->act == ACT_TANH) {
        for (int64_t i = begin * O; i < end * O; i++) dz[i] = dy[i] * (1 - y[i] * y[i]);
    } else {
        for (int64_t i = begin * O; i < end * O; i++) dz[i] = dy[i] * activation_slope(a->act, 0, y[i]);
    }
}

static void pack_weight(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack(w->w, w->I, w->O, w->I, panel, w->packed);
}

static void pack_input(void *arg, int64_t panel, int worker) {
    const work *w = arg;
    (void)worker;
    gemm_pack(w->x, w->I, w->rows, w->I, panel, w->packed);
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

// Scratch of a group: its sums for the weights and for the bias, and its rows of x, packed.
static int64_t group_floats(const work *w) {
    return w->O * w->I + w->O + (int64_t)(gemm_packed_bytes(GROUP_ROWS, w->I) / sizeof(float));
}

static void add_rows(const float *dz, int64_t rows, int64_t O, float *sum) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < O; o++) sum[o] += dz[r * O + o];
}

static void group_item(void *arg, int64_t group, int worker) {
    const work *w = arg;
    int64_t begin = group * w->rows / w->groups, end = (group + 1) * w->rows / w->groups;
    float *sum = w->packed + group * group_floats(w), *bias = sum + w->O * w->I, *packed = bias + w->O;
    (void)worker;
    memset(bias, 0, (size_t)w->O * sizeof *bias);
    for (int64_t r = begin; r < end; r += GROUP_ROWS) {
        int64_t rows = end - r < GROUP_ROWS ? end - r : GROUP_ROWS;
        gemm g = {w->O, w->I, rows, w->dz + r * w->O, 1, w->O, packed, sum, w->I, r > begin};
        for (int64_t p = 0; p < gemm_panels(w->I); p++) gemm_pack(w->x + r * w->I, w->I, rows, w->I, p, packed);
        for (int64_t i = 0; i < gemm_items(&g); i++) gemm_run(&g, i);
        add_rows(w->dz + r * w->O, rows, w->O, bias);
    }
}

// The sum over groups of element `at` of their scratch.
static float sum_groups(const work *w, int64_t at) {
    float sum = 0;
    for (int64_t g = 0; g < w->groups; g++) sum += w->packed[g * group_floats(w) + at];
    return sum;
}

static void reduce_item(void *arg, int64_t o, int worker) {
    const work *w = arg;
    const operand *din = w->c->din;
    (void)worker;
    for (int64_t i = o * w->I; din[1].data && i < (o + 1) * w->I; i++) op_put(&din[1], i, sum_groups(w, i));
    if (din[2].data) op_put(&din[2], o, sum_groups(w, w->O * w->I + o));
}

static void weights_by_groups(work *w) {
    pool_run(w->c->pool, w->groups, group_item, w);
    pool_run(w->c->pool, w->O, reduce_item, w);
}

static void weights_by_parts(work *w) {
    const call *c = w->c;
    if (c->din[1].data) {
        w->product = (gemm){w->O, w->I, w->rows, w->dz, 1, w->O, w->packed, c->din[1].data, w->I, c->din[1].add};
        pool_run(c->pool, gemm_panels(w->I), pack_input, w);
        pool_run(c->pool, gemm_items(&w->product), product_item, w);
    }
    if (c->din[2].data) pool_run(c->pool, (w->O + VEC - 1) / VEC, bias_item, w);
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
    if (!c->din[1].data && !c->din[2].data) return;
    w.groups ? weights_by_groups(&w) : weights_by_parts(&w);
}

static size_t scratch(const call *c) {
    work w = work_of(c);
    if (!c->backward) return gemm_packed_bytes(w.I, w.O);
    size_t weight = gemm_packed_bytes(w.O, w.I), groups = (size_t)(w.groups * group_floats(&w)) * sizeof(float);
    size_t sums = w.groups ? groups : gemm_packed_bytes(w.rows, w.I);
    return slope_bytes(c) + (weight > sums ? weight : sums);
}

static size_t reserve(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_GELU ? (size_t)operand_count(&c->out[0]) * sizeof(float) : 0;
}

const kernel KERNEL(cpu_linear) = {forward, backward, scratch, reserve};
