// lstm on the card: see ops/lstm.c. The recurrence runs in one launch each way (cuda/lstm/lstm.cuh), or step by step
// where that is faster or needed (cuda/lstm/lstm_large.cu); here are its sizes, and what follows it: the sum of the
// blocks' partial gradients, or products of what was spilled.
//
// Blocks walk over tiles in strides that depend on the sizes alone, so sums have a fixed order. In fp32 each tile's
// gradients, or those of four, are a part of their own, and parts are added one after the other to what is there: the
// same samples have the same gradient in one batch or in several that follow each other, as long as these are whole
// parts. The library, which sums over all steps of many units, makes no such promise.
#include "cuda/lstm/lstm.cuh"
#include "cuda/product/gemm.cuh"

// The blocks' partial gradients, added in a fixed order: a block takes 32 of them, each by PART_SLICES threads.
enum { PART_SLICES = 8 };

struct gradients {
    view w_ih[2], w_hh[2], b_ih[2], b_hh[2];
};

// Where a sum goes: a weight's to one place, a bias's to two.
struct target {
    view to[2];
    int64_t at;
};

CUDA_FN target target_of(const lstm_args &a, const gradients &to, int d, int row, int k) {
    if (k < a.I) return target{{d ? to.w_ih[1] : to.w_ih[0], {}}, (int64_t)row * a.I + k};
    if (k < a.I + a.H) return target{{d ? to.w_hh[1] : to.w_hh[0], {}}, (int64_t)row * a.H + k - a.I};
    return target{{d ? to.b_ih[1] : to.b_ih[0], d ? to.b_hh[1] : to.b_hh[0]}, row};
}

static __global__ void add_parts_kernel(lstm_args a, gradients to) {
    cuda_begin();
    __shared__ float room[PART_SLICES][32];
    int width = a.I + a.H + 1, one = 4 * a.H * width, i = blockIdx.x * 32 + threadIdx.x, d = blockIdx.y;
    const float *part = a.parts + (int64_t)d * a.part_count * one + i;
    float sum = 0;
    if (i < one) {
#pragma unroll 8
        for (int g = threadIdx.y; g < a.part_count; g += PART_SLICES) sum += part[(int64_t)g * one];
    }
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || i >= one) return;
    sum = 0;
    for (int y = 0; y < PART_SLICES; y++) sum += room[y][threadIdx.x];
    target t = target_of(a, to, d, i / width, i % width);
    for (int n = 0; n < 2; n++)
        if (t.to[n].data) view_put(t.to[n], t.at, sum);
}

// In fp32: one after the other.
enum { FOLD_THREADS = 64 };

static __global__ void fold_parts_kernel(lstm_args a, gradients to) {
    cuda_begin();
    int width = a.I + a.H + 1, one = 4 * a.H * width, i = blockIdx.x * FOLD_THREADS + threadIdx.x, d = blockIdx.y;
    const float *part = a.parts + (int64_t)d * a.part_count * one + i;
    if (i >= one) return;
    target t = target_of(a, to, d, i / width, i % width);
    for (int n = 0; n < 2; n++) {
        if (!t.to[n].data) continue;
        float sum = t.to[n].add ? view_load(t.to[n], t.at) : 0.0f;
#pragma unroll 16
        for (int g = 0; g < a.part_count; g++) sum += part[(int64_t)g * one];
        view_store(t.to[n], t.at, sum);
    }
}

// Sizes

struct plan_of {
    lstm_plan p;
    bool large;  // step by step
    bool packed; // fragments lie in scratch
    size_t pack_bytes, large_bytes, dz_bytes, parts_bytes, dx_bytes, dx_parts_bytes;
    int parts, parts_at_once; // of the weights' gradients; and how many of them there is room for
};

static size_t up64(size_t n) {
    return (n + 63) / 64 * 64;
}

// The smallest kernel of a kind that holds its weights in registers and has tiles enough; FH stays 0 where there is
// none.
#define SMALLEST(narrow, fx, fh)                                                                                       \
    if (narrow == (p->element == 2) && fx >= x_tiles && fh >= h_tiles && (!p->FH || fx + fh < p->FX + p->FH)) {        \
        p->FX = fx;                                                                                                    \
        p->FH = fh;                                                                                                    \
    }

static void choose_form(lstm_plan *p, bool backward, bool dx, int columns, int h_tiles) {
    const int K = p->element == 2 ? 16 : 8;
    int x_tiles = (columns + K) / K; // one more column, for the bias's gradient
    if (!backward) x_tiles = (columns + K - 1) / K;
    if (!backward) {
        LSTM_FORWARD(SMALLEST)
        return;
    }
    if (!dx) {
        LSTM_SUMMING(SMALLEST)
    }
    p->sums = p->FH > 0;
    x_tiles = (columns + K - 1) / K;
    if (!p->sums) {
        LSTM_SPILLING(SMALLEST)
    }
}

static bool has(const operand *o) {
    return o->shape.rank > 0;
}

// True if kernels that hold their weights can serve the call: no state to start from, no resets; states for the layer
// above in pairs of the operand's own type.
static bool is_plain(const call *c, const lstm_plan *p) {
    const lstm_args *a = &p->a;
    int h0 = lstm_input_h0(a->D);
    if (has(&c->in[h0]) || has(&c->in[h0 + 2])) return false;
    if (!((const lstm_attr *)c->attr)->all_states) return true;
    return a->H % 2 == 0 && (int)dtype_bytes(c->out[LSTM_STATES].type) == p->element;
}

// Bytes of shared memory up to which a recurrence is one launch, on every card: the plan is made before one is known.
// A size that needs more at the least goes step by step; a card with less may refuse what does not.
enum { SHARED_BOUND = 227 << 10 };

static size_t least_shared(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    size_t row = (size_t)ROWS * p->element, slot = row * row_elements(a->KX + 1, p->element);
    return slot + row * (LSTM_RING * row_elements(a->KH, p->element) + 2 * row_elements(4 * a->KH, p->element));
}

// Distances within a sequence are 32-bit.
static void check_sizes(const lstm_args *a) {
    int64_t most = INT32_MAX, T = a->T, I = a->I, H = a->H;
    CHECK(T * I <= most && 32 * T * a->D * H <= most && 4 * H * (I + H + 1) <= most,
        "lstm: %d steps of %d columns, %d units", a->T, a->I, a->H);
}

// From so many units and samples on a recurrence goes step by step also where it could be one launch: the products of a
// step then fill a large card, while a block of one launch reads weights that do not fit its registers again at every
// step. Not where the same samples are to have the same gradient in one batch or in several.
enum { STEPS_UNITS = 96, STEPS_ROWS = 1024 };

static bool goes_by_steps(const call *c, const lstm_plan *p) {
    const lstm_args *a = &p->a;
    if (a->UT > WARPS_MOST || least_shared(p) > SHARED_BOUND) return true;
    return a->H >= STEPS_UNITS && a->H % UNITS == 0 && a->B >= STEPS_ROWS && c->products != PRODUCTS_OWN;
}

static void fill_sizes(const call *c, plan_of *of) {
    shape x = c->in[LSTM_X].shape;
    lstm_plan *p = &of->p;
    lstm_args *a = &p->a;
    p->math = math_of(c, c->out[LSTM_H_LAST].type);
    p->element = p->math == MATH_BF16 || p->math == MATH_F16 ? 2 : 4;
    int K = p->element == 2 ? 16 : 8;
    a->B = x.dim[0];
    a->T = (int)x.dim[1];
    a->I = (int)x.dim[2];
    a->H = (int)c->in[LSTM_WEIGHTS + 1].shape.dim[1];
    a->D = ((const lstm_attr *)c->attr)->directions;
    a->UT = (a->H + UNITS - 1) / UNITS;
    a->KH = a->kept_tiles = (a->H + K - 1) / K;
    a->KX = (a->I + K - 1) / K;
    a->tiles = (int)((a->B + ROWS - 1) / ROWS);
    a->groups = a->tiles < GROUPS ? a->tiles : GROUPS;
    check_sizes(a);
    of->large = goes_by_steps(c, p);
    if (of->large) return;
    if (is_plain(c, p)) choose_form(p, c->backward, c->backward && has(&c->din[LSTM_X]), a->I, a->KH);
    if (p->FH) {
        a->KX = p->FX;
        a->KH = p->FH;
    }
}

// Shared memory, and how many steps of x it holds: as many as leave room for the blocks that a multiprocessor should
// hold, and for fragments of weights that are not in registers; those go to scratch where they leave too little. Cards
// differ in it, and none is known while memory is planned, so that scratch has room for the fragments always.
static void fill_shared(const call *c, plan_of *of) {
    lstm_plan *p = &of->p;
    lstm_args *a = &p->a;
    size_t limit = c->queue ? c->queue->shared_most : (size_t)SHARED_BOUND;
    size_t row = (size_t)ROWS * p->element, slot = row * row_elements(a->KX, p->element);
    size_t h = row * row_elements(a->KH, p->element), dz = row * row_elements(4 * a->KH, p->element);
    size_t fixed = c->backward ? LSTM_RING * h + 2 * dz : 2 * h;
    bool dh_apart = c->backward && (p->element == 4 || p->FH > 4);
    int which = p->FH == 0 ? (c->backward ? FOR_GATES | FOR_DH : FOR_GATES) : dh_apart ? FOR_DH : 0;
    size_t bytes = (size_t)a->UT * fragments(a->KX, a->KH, which) * sizeof(uint2);
    of->pack_bytes = up64(bytes * a->D);
    of->packed = bytes > 0 && fixed + bytes + 8 * slot > limit;
    if (!of->packed) fixed += bytes;
    size_t most = p->element == 2 ? 48 << 10 : c->backward ? 26 << 10 : 64 << 10;
    if (fixed + most > limit) most = limit > fixed ? limit - fixed : 0;
    size_t steps = most / slot;
    a->chunk = steps < 1 ? 1 : steps > (size_t)a->T ? a->T : (int)steps;
    p->shared = fixed + a->chunk * slot;
}

// In fp32 there may be many parts: as many at once as make enough blocks, and more as long as they take
// little memory.
static int parts_at_once(const plan_of *of, size_t bytes) {
    size_t least = of->p.sums ? (size_t)GROUPS : (size_t)lstm_weights_filling(&of->p);
    size_t most = (8 << 20) / bytes / least * least;
    if (most < least) most = least;
    return of->p.math != MATH_F32 || (size_t)of->parts < most ? of->parts : (int)most;
}

static plan_of plan_lstm(const call *c) {
    plan_of of = {};
    fill_sizes(c, &of);
    if (of.large) {
        of.large_bytes = up64(lstm_large_scratch(c, &of.p));
    } else {
        fill_shared(c, &of);
    }
    const lstm_args *a = &of.p.a;
    if (!c->backward) return of;
    int64_t gates = 4 * a->H;
    of.parts = !of.p.sums ? lstm_weights_parts(&of.p) : of.p.math == MATH_F32 ? a->tiles : a->groups;
    size_t one = (size_t)a->D * gates * (a->I + a->H + 1) * sizeof(float);
    of.parts_at_once = parts_at_once(&of, one);
    of.parts_bytes = up64(of.parts_at_once * one);
    if (of.p.sums || of.large) return of;
    int64_t rows = (int64_t)a->tiles * ROWS * a->T;
    of.dz_bytes = up64((size_t)(a->D * rows * gates) * of.p.element);
    if (has(&c->din[LSTM_X])) {
        of.dx_bytes = up64((size_t)(rows * a->I) * sizeof(float));
        of.dx_parts_bytes = gemm_scratch(of.p.math, rows, a->I, gates);
    }
    return of;
}

static size_t kept_h_bytes(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    return (size_t)(a->D * a->tiles) * a->T * ROWS * a->kept_tiles * (p->element == 2 ? 16 : 8) * p->element;
}

static size_t kept_c_bytes(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    return (size_t)(a->D * a->tiles) * a->T * a->UT * 32 * 4 * p->element;
}

static const float *weight(const operand *o) {
    CHECK(o->type == DTYPE_F32, "lstm: weights are %s", dtype_name(o->type));
    return (const float *)o->data;
}

static void bind_inputs(const call *c, plan_of *of) {
    lstm_args *a = &of->p.a;
    int at = lstm_input_h0(a->D);
    a->x = view_of(&c->in[LSTM_X]);
    for (int d = 0; d < a->D; d++) {
        const operand *w = &c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        a->w_ih[d] = weight(&w[0]);
        a->w_hh[d] = weight(&w[1]);
        a->b_ih[d] = weight(&w[2]);
        a->b_hh[d] = weight(&w[3]);
    }
    a->h0 = view_of(&c->in[at]);
    a->c0 = view_of(&c->in[at + 1]);
    a->reset = view_of(&c->in[at + 2]);
    if (c->reserve && !of->large) {
        a->kept_h = (char *)c->reserve;
        a->kept_c = a->kept_h + kept_h_bytes(&of->p);
    }
    a->packed = of->packed ? (uint2 *)c->scratch : NULL;
}

static void recurrence(const call *c, const lstm_plan *p) {
    if (p->shared > c->queue->shared_most) {
        cuda_refused(
            c, "this card has too little shared memory for so many units or columns; use fewer, or 16-bit precision");
        return;
    }
    switch (p->math) {
    case MATH_BF16: c->backward ? lstm_backward_bf16(c, p) : lstm_forward_bf16(c, p); break;
    case MATH_F16: c->backward ? lstm_backward_f16(c, p) : lstm_forward_f16(c, p); break;
    case MATH_TF32: c->backward ? lstm_backward_tf32(c, p) : lstm_forward_tf32(c, p); break;
    default: c->backward ? lstm_backward_f32(c, p) : lstm_forward_f32(c, p); break;
    }
}

static void forward(const call *c) {
    plan_of of = plan_lstm(c);
    lstm_args *a = &of.p.a;
    bind_inputs(c, &of);
    a->h_last = view_of(&c->out[LSTM_H_LAST]);
    a->c_last = view_of(&c->out[LSTM_C_LAST]);
    if (((const lstm_attr *)c->attr)->all_states) a->states = view_of(&c->out[LSTM_STATES]);
    of.large ? lstm_large_forward(c, &of.p, (char *)c->scratch) : recurrence(c, &of.p);
}

// dx's rows from the order in which dz's lie to their own.
static __global__ void dx_kernel(lstm_args a, const float *from, view dx) {
    FOR_EACH(n, a.B * a.T * a.I) {
        int64_t b = n / ((int64_t)a.T * a.I), t = n / a.I % a.T;
        int64_t at = b / ROWS * a.dz_rows.tile + t * a.dz_rows.step + b % ROWS * a.dz_rows.row;
        view_put(dx, n, from[at / (4 * a.H) * a.I + n % a.I]);
    }
}

// dx from dz in scratch, one direction after the other.
static void dx_products(const call *c, const plan_of *of, char *room) {
    const lstm_args *a = &of->p.a;
    view dx = view_of(&c->din[LSTM_X]);
    if (!dx.data) return;
    int64_t gates = 4 * a->H, rows = a->dz_direction / gates;
    int type = of->p.math == MATH_BF16 ? DTYPE_BF16 : of->p.math == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
    gemm_finish f = {{room, DTYPE_F32, false}, {}, NULL, ACT_NONE};
    for (int d = 0; d < a->D; d++) {
        view dz = {a->dz + (size_t)(d * a->dz_direction) * of->p.element, type, false};
        view w_ih = view_of(&c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION]);
        f.out.add = d > 0;
        gemm_product(c, of->p.math, gemm_args{{dz, gates, 1, false}, {w_ih, 1, a->I, false}, rows, a->I, gates, 1}, f,
            (float *)(room + of->dx_bytes));
    }
    LAUNCH(c, dx_kernel, blocks_for(a->B * a->T * a->I, 256), 256, 0, *a, (const float *)room, dx);
}

static void add_parts(const call *c, const lstm_plan *p) {
    const lstm_args *a = &p->a;
    int64_t one = (int64_t)4 * a->H * (a->I + a->H + 1);
    gradients to = {};
    for (int d = 0; d < a->D; d++) {
        const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        to.w_ih[d] = view_of(&dw[0]);
        to.w_hh[d] = view_of(&dw[1]);
        to.b_ih[d] = view_of(&dw[2]);
        to.b_hh[d] = view_of(&dw[3]);
        to.w_ih[d].add |= a->first_part > 0, to.w_hh[d].add |= a->first_part > 0;
        to.b_ih[d].add |= a->first_part > 0, to.b_hh[d].add |= a->first_part > 0;
    }
    if (p->math == MATH_F32) {
        LAUNCH_EARLY(c, fold_parts_kernel, dim3(blocks_for(one, FOLD_THREADS), a->D), FOLD_THREADS, 0, *a, to);
    } else {
        LAUNCH_EARLY(c, add_parts_kernel, dim3(blocks_for(one, 32), a->D), dim3(32, PART_SLICES), 0, *a, to);
    }
}

static void bind_gradients(const call *c, lstm_args *a) {
    int at = lstm_input_h0(a->D);
    a->dh_last = view_of(&c->dout[LSTM_H_LAST]);
    a->dc_last = view_of(&c->dout[LSTM_C_LAST]);
    if (((const lstm_attr *)c->attr)->all_states) a->dstates = view_of(&c->dout[LSTM_STATES]);
    a->dh0 = view_of(&c->din[at]);
    a->dc0 = view_of(&c->din[at + 1]);
}

// dz and h of tiles, where one launch spills them.
static void bind_tiles(lstm_plan *p, char *dz) {
    lstm_args *a = &p->a;
    int columns = a->kept_tiles * (p->element == 2 ? 16 : 8);
    a->dz = dz;
    a->h_kept = a->kept_h;
    a->dz_rows = rows_at{(int64_t)a->T * ROWS * 4 * a->H, (int64_t)ROWS * 4 * a->H, 4 * a->H};
    a->h_rows = rows_at{(int64_t)a->T * ROWS * columns, (int64_t)ROWS * columns, columns};
    a->dz_direction = a->tiles * a->dz_rows.tile;
    a->h_direction = a->tiles * a->h_rows.tile;
}

// The weights' gradients in parts, each of which the recurrence sums on its way or a product does.
static void sum_weights(const call *c, plan_of *of) {
    lstm_args *a = &of->p.a;
    for (int first = 0; first < of->parts; first += of->parts_at_once) {
        a->first_part = first;
        a->part_count = of->parts - first < of->parts_at_once ? of->parts - first : of->parts_at_once;
        of->p.sums ? recurrence(c, &of->p) : lstm_weights_launch(c, &of->p);
        add_parts(c, &of->p);
    }
}

static void backward(const call *c) {
    plan_of of = plan_lstm(c);
    char *room = (char *)c->scratch + of.pack_bytes + of.large_bytes;
    bind_inputs(c, &of);
    bind_gradients(c, &of.p.a);
    of.p.a.parts = (float *)room;
    if (of.large) {
        lstm_large_backward(c, &of.p, (char *)c->scratch);
        if (lstm_large_weights(c, &of.p, (char *)c->scratch)) return;
        lstm_large_rows(&of.p, (char *)c->reserve);
    } else {
        bind_tiles(&of.p, room + of.parts_bytes);
        if (!of.p.sums) recurrence(c, &of.p);
    }
    sum_weights(c, &of);
    if (!of.p.sums && !of.large) dx_products(c, &of, of.p.a.dz + of.dz_bytes);
}

static size_t scratch(const call *c) {
    plan_of of = plan_lstm(c);
    return of.pack_bytes + of.large_bytes + of.parts_bytes + of.dz_bytes + of.dx_bytes + of.dx_parts_bytes;
}

static size_t reserve(const call *c) {
    plan_of of = plan_lstm(c);
    return of.large ? lstm_large_reserve(&of.p) : kept_h_bytes(&of.p) + kept_c_bytes(&of.p);
}

extern "C" const kernel cuda_lstm = {forward, backward, scratch, reserve};
