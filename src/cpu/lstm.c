// lstm on the CPU: a block of samples goes through the whole sequence on one thread, with the weights in cache.
//
// Lanes are hidden units. Weights are packed once a call so that the four gates of VEC units lie together: a tile of
// TILE_ROWS samples x 4 gates is summed over the inputs and the previous state in registers, and the cell is computed
// from those registers. In backward the gates' gradients of a block at one step (dz) stay in cache while they are
// multiplied into the previous step's dh and added to the weights' gradients.
//
// Work items are (direction, group of blocks); an item owns its partial weight gradients, and the groups depend on the
// sizes only, so results are the same for any number of threads. H and I are padded to whole vectors; the padding of
// weights is zero, so padded units stay at h = c = 0 and receive no gradient.
#include "cpu/tile.h"
#include "ops/op.h"

enum { BLOCK = 48, BLOCKS_WANTED = 32, GROUPS_MOST = 64, KEPT = 6 };
enum { KEPT_C = 4, KEPT_H = 5 }; // kept per sample and step: i, f, g, o, c, h, each [Hp]
static const size_t SCRATCH_AIM = (size_t)64 << 20;

typedef struct {
    const call *c;
    const lstm_attr *attr;
    int64_t B, T, I, H, D, Ip, Hp;
    int64_t block, blocks, groups; // samples in a block; blocks; groups of blocks
    const float *x, *h0, *c0, *reset;
    // Where things lie in scratch, in floats: packed weights per direction, then one stretch per item, then dx.
    int64_t pack_floats, item_floats, dx_at;
} sizes;

static int64_t up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

static int64_t dw_floats(const sizes *s) {
    return (s->I + s->H + 1) * 4 * s->Hp; // rows of x, rows of h, one row of bias
}

static sizes sizes_of(const call *c) {
    const lstm_attr *a = c->attr;
    int at = lstm_input_h0(a->directions);
    shape x = c->in[LSTM_X].shape;
    sizes s = {.c = c, .attr = a, .B = x.dim[0], .T = x.dim[1], .I = x.dim[2], .D = a->directions};
    s.H = c->in[LSTM_WEIGHTS + 1].shape.dim[1];
    s.x = c->in[0].data;
    s.h0 = c->in[at].data;
    s.c0 = c->in[at + 1].data;
    s.reset = c->in[at + 2].data;
    s.Ip = up(s.I, VEC);
    s.Hp = up(s.H, VEC);
    s.block =
        up((s.B + BLOCKS_WANTED - 1) / BLOCKS_WANTED, TILE_ROWS); // small batches: smaller blocks for more threads
    if (s.block > BLOCK) s.block = BLOCK;
    if (s.block > s.B) s.block = s.B;
    s.blocks = (s.B + s.block - 1) / s.block;
    int64_t forward = (s.I + s.H + 1) * 4 * s.Hp, backward = 4 * s.Hp * (s.Hp + s.Ip);
    s.pack_floats = c->backward ? backward : forward;
    s.item_floats = s.block * 2 * s.Hp; // the state a step starts from
    if (c->backward) s.item_floats += s.block * (4 * s.Hp + 2 * s.Hp + s.Ip) + dw_floats(&s);
    if (!c->backward && !c->keeps) s.item_floats += 2 * s.block * KEPT * s.Hp;
    s.item_floats = up(s.item_floats, 16);
    int64_t fit = (int64_t)(SCRATCH_AIM / sizeof(float)) / (s.D * s.item_floats);
    s.groups = fit < 1 ? 1 : fit > GROUPS_MOST ? GROUPS_MOST : fit;
    if (s.groups > s.blocks) s.groups = s.blocks;
    s.dx_at = up(s.D * s.pack_floats, 16) + s.D * s.groups * s.item_floats;
    return s;
}

static float *item_scratch(const sizes *s, int64_t item) {
    return (float *)s->c->scratch + up(s->D * s->pack_floats, 16) + item * s->item_floats;
}

static float *packed(const sizes *s, int64_t d) {
    return (float *)s->c->scratch + d * s->pack_floats;
}

static const float *weight(const sizes *s, int64_t d, int which) {
    return s->c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION + which].data;
}

// A block in work: its samples, its direction, and the memory of its steps.
typedef struct {
    const sizes *s;
    int64_t d, first, rows;
    float *kept;         // [T or 2][block][KEPT][Hp]
    float *start;        // [2][block][Hp]: c and h that a step starts from, where they are not those kept
    float *dz, *dh, *dc; // [block][4 Hp], [block][Hp], [block][Hp]
    float *dxp;          // [block][Ip]
    float *dw;           // [I + H + 1][4 Hp]
} work;

static float *kept_at(const work *w, int64_t t) {
    const sizes *s = w->s;
    return w->kept + (s->c->keeps ? t : t & 1) * s->block * KEPT * s->Hp;
}

static work work_of(const sizes *s, int64_t item) {
    work w = {.s = s, .d = item / s->groups};
    float *at = item_scratch(s, item);
    w.start = at;
    at += s->block * 2 * s->Hp;
    if (!s->c->backward && !s->c->keeps) w.kept = at;
    if (!s->c->backward) return w;
    w.dz = at;
    w.dh = w.dz + s->block * 4 * s->Hp;
    w.dc = w.dh + s->block * s->Hp;
    w.dxp = w.dc + s->block * s->Hp;
    w.dw = w.dxp + s->block * s->Ip;
    return w;
}

static void work_enter(work *w, int64_t block) {
    const sizes *s = w->s;
    w->first = block * s->block;
    w->rows = s->B - w->first < s->block ? s->B - w->first : s->block;
    if (s->c->keeps) w->kept = (float *)s->c->reserve + (w->d * s->blocks + block) * s->T * s->block * KEPT * s->Hp;
}

// The state that a step starts from.
typedef struct {
    const float *h, *c; // of the block's first sample
    int64_t stride;     // to the next sample
} state;

static void fill_start(const work *w, const float *from, float *to) {
    const sizes *s = w->s;
    memset(to, 0, (size_t)(s->block * s->Hp) * sizeof *to);
    for (int64_t r = 0; from && r < w->rows; r++)
        memcpy(to + r * s->Hp, from + ((w->first + r) * s->D + w->d) * s->H, (size_t)s->H * sizeof *to);
}

static void copy_previous(const work *w, const float *previous, int which, float *to) {
    const sizes *s = w->s;
    for (int64_t r = 0; r < w->rows; r++)
        memcpy(to + r * s->Hp, previous + (r * KEPT + which) * s->Hp, (size_t)s->Hp * sizeof *to);
}

static void apply_reset(const work *w, int64_t t, float *to) {
    const sizes *s = w->s;
    for (int64_t r = 0; s->reset && r < w->rows; r++)
        if (s->reset[(w->first + r) * s->T + t] != 0) memset(to + r * s->Hp, 0, (size_t)s->Hp * sizeof *to);
}

static state state_before(const work *w, int64_t t) {
    const sizes *s = w->s;
    int64_t before = w->d ? t + 1 : t - 1;
    bool inside = before >= 0 && before < s->T;
    if (inside && !s->reset) {
        const float *k = kept_at(w, before);
        return (state){k + KEPT_H * s->Hp, k + KEPT_C * s->Hp, KEPT * s->Hp};
    }
    float *c = w->start, *h = w->start + s->block * s->Hp;
    if (inside) {
        copy_previous(w, kept_at(w, before), KEPT_C, c);
        copy_previous(w, kept_at(w, before), KEPT_H, h);
    } else {
        fill_start(w, s->c0, c);
        fill_start(w, s->h0, h);
    }
    apply_reset(w, t, c);
    apply_reset(w, t, h);
    return (state){h, c, s->Hp};
}

// Forward

// For VEC units from j: [I][4][VEC], [H][4][VEC], and the bias [4][VEC].
static void pack_forward(const sizes *s, int64_t d) {
    const float *wi = weight(s, d, 0), *wh = weight(s, d, 1), *bi = weight(s, d, 2), *bh = weight(s, d, 3);
    float *to = packed(s, d);
    for (int64_t j = 0; j < s->Hp; j += VEC)
        for (int64_t k = 0; k < s->I + s->H + 1; k++)
            for (int64_t q = 0; q < 4; q++)
                for (int64_t l = 0; l < VEC; l++) {
                    int64_t u = j + l, row = q * s->H + u;
                    *to++ = u >= s->H         ? 0
                            : k < s->I        ? wi[row * s->I + k]
                            : k < s->I + s->H ? wh[row * s->H + k - s->I]
                                              : bi[row] + bh[row];
                }
}

// Sums the gates of a tile of samples and VEC units, and computes their cells. Samples past the block's end repeat the
// last one: the same values go to the same place twice.
static void forward_tile(const work *w, int64_t t, state before, int64_t r0, int64_t j) {
    const sizes *s = w->s;
    int64_t K = s->I + s->H, row[TILE_ROWS];
    const float *pack = packed(s, w->d) + j * 4 * (K + 1), *bias = pack + K * 4 * VEC;
    tile_rows x = {.step = 1}, h = {.step = 1};
    vec acc[TILE_ROWS][4];
    for (int r = 0; r < TILE_ROWS; r++) {
        row[r] = r0 + r < w->rows ? r0 + r : w->rows - 1;
        x.a[r] = s->x + ((w->first + row[r]) * s->T + t) * s->I;
        h.a[r] = before.h + row[r] * before.stride;
    }
    TILE_UNROLL for (int r = 0; r < TILE_ROWS; r++) TILE_UNROLL for (int q = 0; q < 4; q++) acc[r][q] =
        vec_load(bias + q * VEC);
    tile_product(TILE_ROWS, 4, acc, &x, pack, 4 * VEC, s->I);
    tile_product(TILE_ROWS, 4, acc, &h, pack + s->I * 4 * VEC, 4 * VEC, s->H);
    float *kept = kept_at(w, t) + j;
    TILE_UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        vec i = vec_sigmoid(acc[r][0]), f = vec_sigmoid(acc[r][1]), g = vec_tanh(acc[r][2]), o = vec_sigmoid(acc[r][3]);
        vec c = f * vec_load(before.c + row[r] * before.stride + j) + i * g;
        float *k = kept + row[r] * KEPT * s->Hp;
        vec_store(k, i);
        vec_store(k + s->Hp, f);
        vec_store(k + 2 * s->Hp, g);
        vec_store(k + 3 * s->Hp, o);
        vec_store(k + KEPT_C * s->Hp, c);
        vec_store(k + KEPT_H * s->Hp, o * vec_tanh(c));
    }
}

static void copy_out(const work *w, int64_t t, int which, float *to, int64_t steps, int64_t at) {
    const sizes *s = w->s;
    const float *kept = kept_at(w, t) + which * s->Hp;
    for (int64_t r = 0; r < w->rows; r++)
        memcpy(to + (((w->first + r) * steps + at) * s->D + w->d) * s->H, kept + r * KEPT * s->Hp,
            (size_t)s->H * sizeof *to);
}

static void forward_block(const work *w) {
    const sizes *s = w->s;
    float *states = s->attr->all_states ? s->c->out[LSTM_STATES].data : NULL;
    for (int64_t i = 0; i < s->T; i++) {
        int64_t t = w->d ? s->T - 1 - i : i;
        state before = state_before(w, t);
        for (int64_t j = 0; j < s->Hp; j += VEC)
            for (int64_t r = 0; r < w->rows; r += TILE_ROWS) forward_tile(w, t, before, r, j);
        if (states) copy_out(w, t, KEPT_H, states, s->T, t);
    }
    int64_t last = w->d ? 0 : s->T - 1;
    copy_out(w, last, KEPT_H, s->c->out[LSTM_H_LAST].data, 1, 0);
    copy_out(w, last, KEPT_C, s->c->out[LSTM_C_LAST].data, 1, 0);
}

// Blocks of group g: a fair, fixed share.
static void forward_item(void *arg, int64_t item, int worker) {
    const sizes *s = arg;
    int64_t g = item % s->groups;
    work w = work_of(s, item);
    (void)worker;
    for (int64_t b = g * s->blocks / s->groups; b < (g + 1) * s->blocks / s->groups; b++) {
        work_enter(&w, b);
        forward_block(&w);
    }
}

static void forward(const call *c) {
    sizes s = sizes_of(c);
    for (int64_t d = 0; d < s.D; d++) pack_forward(&s, d);
    pool_run(c->pool, s.D * s.groups, forward_item, &s);
}

// Backward

// w_hh as [4 Hp][Hp], then w_ih as [4 Hp][Ip], rows by gate and unit.
static void pack_backward(const sizes *s, int64_t d) {
    const float *wi = weight(s, d, 0), *wh = weight(s, d, 1);
    float *to = packed(s, d), *ti = to + 4 * s->Hp * s->Hp;
    memset(to, 0, (size_t)s->pack_floats * sizeof *to);
    for (int64_t q = 0; q < 4; q++)
        for (int64_t u = 0; u < s->H; u++) {
            int64_t from = q * s->H + u, row = q * s->Hp + u;
            memcpy(to + row * s->Hp, wh + from * s->H, (size_t)s->H * sizeof *to);
            memcpy(ti + row * s->Ip, wi + from * s->I, (size_t)s->I * sizeof *to);
        }
}

// dz of one sample's VEC units from j; dc becomes that of the step before.
VEC_FN void gates_back(const float *k, const float *c_before, const float *dh_at, float *dc_at, float *dz, int64_t Hp) {
    vec i = vec_load(k), f = vec_load(k + Hp), g = vec_load(k + 2 * Hp), o = vec_load(k + 3 * Hp);
    vec th = vec_tanh(vec_load(k + KEPT_C * Hp)), dh = vec_load(dh_at);
    vec dc = vec_load(dc_at) + dh * o * (1.0f - th * th);
    vec_store(dz, dc * g * i * (1.0f - i));
    vec_store(dz + Hp, dc * vec_load(c_before) * f * (1.0f - f));
    vec_store(dz + 2 * Hp, dc * i * (1.0f - g * g));
    vec_store(dz + 3 * Hp, dh * th * o * (1.0f - o));
    vec_store(dc_at, dc * f);
}

// Rows r0 .. of c[rows][width] = a b, for `height` rows (TILE_TALL or 1) and all columns, two vectors at a time.
VEC_FN void multiply_tile(
    int height, const float *a, int64_t lda, const float *b, int64_t width, int64_t count, float *c) {
    tile_rows t = {.step = 1};
    for (int r = 0; r < height; r++) t.a[r] = a + r * lda;
    int64_t v = 0;
    for (; v + 2 * VEC <= width; v += 2 * VEC) tile_update(height, 2, false, &t, b + v, width, count, c + v, width);
    if (v < width) tile_update(height, 1, false, &t, b + v, width, count, c + v, width);
}

// c[rows][width] = a b with `width` whole vectors: the previous step's dh, and dx.
static void multiply_rows(
    const float *a, int64_t lda, const float *b, int64_t width, int64_t count, float *c, int64_t rows) {
    int64_t r = 0;
    for (; r + TILE_TALL <= rows; r += TILE_TALL)
        multiply_tile(TILE_TALL, a + r * lda, lda, b, width, count, c + r * width);
    for (; r < rows; r++) multiply_tile(1, a + r * lda, lda, b, width, count, c + r * width);
}

// dw[rows][4 Hp] += the sum over the block's samples of a[sample][row] dz[sample].
static void add_outer(const work *w, const float *a, int64_t stride, int64_t rows, float *dw) {
    int64_t width = 4 * w->s->Hp;
    for (int64_t k = 0; k < rows; k += TILE_ROWS) {
        int m = (int)(rows - k < TILE_ROWS ? rows - k : TILE_ROWS);
        tile_rows t = {.step = stride};
        for (int r = 0; r < TILE_ROWS; r++) t.a[r] = a + k + (r < m ? r : 0);
        for (int64_t v = 0; v < width; v += 4 * VEC)
            tile_wide(m, true, &t, w->dz + v, width, w->rows, dw + k * width + v, width);
    }
}

static void add_bias(const work *w, float *db) {
    int64_t width = 4 * w->s->Hp;
    for (int64_t v = 0; v < width; v += VEC) {
        vec sum = vec_load(db + v);
        for (int64_t r = 0; r < w->rows; r++) sum += vec_load(w->dz + r * width + v);
        vec_store(db + v, sum);
    }
}

static void add_incoming(const work *w, const float *from, int64_t steps, int64_t at, float *to) {
    const sizes *s = w->s;
    for (int64_t r = 0; from && r < w->rows; r++)
        for (int64_t u = 0; u < s->H; u++)
            to[r * s->Hp + u] += from[(((w->first + r) * steps + at) * s->D + w->d) * s->H + u];
}

static void store_dx(const work *w, int64_t t) {
    const sizes *s = w->s;
    float *dx = (float *)s->c->scratch + s->dx_at + w->d * s->B * s->T * s->I;
    for (int64_t r = 0; r < w->rows; r++)
        memcpy(dx + ((w->first + r) * s->T + t) * s->I, w->dxp + r * s->Ip, (size_t)s->I * sizeof *dx);
}

static void backward_step(const work *w, int64_t t) {
    const sizes *s = w->s;
    state before = state_before(w, t);
    const float *kept = kept_at(w, t), *pack = packed(s, w->d);
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t j = 0; j < s->Hp; j += VEC)
            gates_back(kept + r * KEPT * s->Hp + j, before.c + r * before.stride + j, w->dh + r * s->Hp + j,
                w->dc + r * s->Hp + j, w->dz + r * 4 * s->Hp + j, s->Hp);
    multiply_rows(w->dz, 4 * s->Hp, pack, s->Hp, 4 * s->Hp, w->dh, w->rows);
    if (s->c->din[LSTM_X].data) {
        multiply_rows(w->dz, 4 * s->Hp, pack + 4 * s->Hp * s->Hp, s->Ip, 4 * s->Hp, w->dxp, w->rows);
        store_dx(w, t);
    }
    add_outer(w, s->x + (w->first * s->T + t) * s->I, s->T * s->I, s->I, w->dw);
    add_outer(w, before.h, before.stride, s->H, w->dw + s->I * 4 * s->Hp);
    add_bias(w, w->dw + (s->I + s->H) * 4 * s->Hp);
    apply_reset(w, t, w->dh);
    apply_reset(w, t, w->dc);
}

static void store_start(const work *w, const operand *to, const float *from) {
    const sizes *s = w->s;
    for (int64_t r = 0; to->data && r < w->rows; r++)
        for (int64_t u = 0; u < s->H; u++) op_put(to, ((w->first + r) * s->D + w->d) * s->H + u, from[r * s->Hp + u]);
}

static void backward_block(const work *w) {
    const sizes *s = w->s;
    const call *c = s->c;
    const float *states = s->attr->all_states ? c->dout[LSTM_STATES].data : NULL;
    size_t bytes = (size_t)(s->block * s->Hp) * sizeof(float);
    memset(w->dh, 0, bytes);
    memset(w->dc, 0, bytes);
    add_incoming(w, c->dout[LSTM_H_LAST].data, 1, 0, w->dh);
    add_incoming(w, c->dout[LSTM_C_LAST].data, 1, 0, w->dc);
    for (int64_t i = s->T - 1; i >= 0; i--) {
        int64_t t = w->d ? s->T - 1 - i : i;
        add_incoming(w, states, s->T, t, w->dh);
        backward_step(w, t);
    }
    int at = lstm_input_h0(s->attr->directions);
    store_start(w, &c->din[at], w->dh);
    store_start(w, &c->din[at + 1], w->dc);
}

static void backward_item(void *arg, int64_t item, int worker) {
    const sizes *s = arg;
    int64_t g = item % s->groups;
    work w = work_of(s, item);
    (void)worker;
    CHECK(w.dw, "partial gradients exist in backward only");
    memset(w.dw, 0, (size_t)dw_floats(s) * sizeof *w.dw);
    for (int64_t b = g * s->blocks / s->groups; b < (g + 1) * s->blocks / s->groups; b++) {
        work_enter(&w, b);
        backward_block(&w);
    }
}

// The sum over groups of element (k, gate row) of direction d's partial gradients.
static float sum_groups(const sizes *s, int64_t d, int64_t k, int64_t row) {
    CHECK(s->c->backward, "partial gradients exist in backward only");
    int64_t at = k * 4 * s->Hp + row / s->H * s->Hp + row % s->H;
    float sum = 0;
    for (int64_t g = 0; g < s->groups; g++) sum += work_of(s, d * s->groups + g).dw[at];
    return sum;
}

static void reduce_rows(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    for (int64_t item = begin; item < end; item++) {
        int64_t d = item / (4 * s.H), row = item % (4 * s.H);
        const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        for (int64_t k = 0; dw[0].data && k < s.I; k++) op_put(&dw[0], row * s.I + k, sum_groups(&s, d, k, row));
        for (int64_t k = 0; dw[1].data && k < s.H; k++) op_put(&dw[1], row * s.H + k, sum_groups(&s, d, s.I + k, row));
        float bias = sum_groups(&s, d, s.I + s.H, row);
        if (dw[2].data) op_put(&dw[2], row, bias);
        if (dw[3].data) op_put(&dw[3], row, bias);
    }
}

static void reduce_dx(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    const float *part = (const float *)c->scratch + s.dx_at;
    int64_t n = s.B * s.T * s.I;
    for (int64_t i = begin; i < end; i++) op_put(&c->din[LSTM_X], i, part[i] + (s.D > 1 ? part[n + i] : 0));
}

static void backward(const call *c) {
    sizes s = sizes_of(c);
    for (int64_t d = 0; d < s.D; d++) pack_backward(&s, d);
    pool_run(c->pool, s.D * s.groups, backward_item, &s);
    op_for(c, s.D * 4 * s.H, s.groups * (s.I + s.H), reduce_rows);
    if (c->din[LSTM_X].data) op_for(c, s.B * s.T * s.I, 1, reduce_dx);
}

static size_t scratch(const call *c) {
    sizes s = sizes_of(c);
    bool dx = c->backward && c->din[LSTM_X].shape.rank > 0;
    return (size_t)(s.dx_at + (dx ? s.D * s.B * s.T * s.I : 0)) * sizeof(float);
}

static size_t reserve(const call *c) {
    sizes s = sizes_of(c);
    return (size_t)(s.D * s.blocks * s.block * s.T * KEPT * s.Hp) * sizeof(float);
}

const kernel KERNEL(cpu_lstm) = {forward, backward, scratch, reserve};
