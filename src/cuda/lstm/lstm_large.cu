// The recurrence step by step, for many units: products of the whole batch, of both directions at a time, and a cell
// between them. The library computes the products where it can (cuda/product/blaslt.cuh), else our own. Products with
// x, and all of the weights' gradients, are of all steps at once.
//
// Kept for backward, in the operand's type, for each direction, sample and step: the gates' sums, which become the
// gates and in backward their gradients; the h that the step starts from; and the c that it ends with. That is six
// times D * B * T * H elements, where a recurrence in one launch keeps two but takes four in scratch for the gradients
// of the gates. Rows of a step lie T rows apart, so that x, h and the gradients of x are read and written where they
// are.
#include "cuda/join/large.cuh"
#include "cuda/lstm/lstm.cuh"
#include "cuda/product/blaslt.cuh"
#include "cuda/product/gemm.cuh"
#include "cuda/run.cuh"

enum { THREADS = 256, COLUMN_STEP = 8 };

// Where things lie in reserve and scratch. [D][B][T] rows: z of 4H elements, h and c of H.
struct places {
    char *z, *h, *c;
    char *w_ih, *w_hh, *bias; // in the operand's type: [D][4H][columns of x], [D][4H][H], [D][4H]
    char *x;                  // [B][T][columns], where x does not lie so
    float *c_now, *dh;        // [D][B][H]: c, or its gradient, from step to step
    char *room;               // for products
    float *dw, *sums;         // [D][4H][columns]; [parts][4H] of a direction
};

static size_t up64(size_t n) {
    return (n + 63) / 64 * 64;
}

static dtype type_of(const lstm_plan *p) {
    return p->math == MATH_BF16 ? DTYPE_BF16 : p->math == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
}

// Columns of x as products take them: the library wants rows at multiples of 16 bytes.
static int64_t columns_of(const lstm_args *a) {
    return (a->I + COLUMN_STEP - 1) / COLUMN_STEP * COLUMN_STEP;
}

// Products

static blaslt_shape shape_of(const call *c, const lstm_plan *p, int64_t m, int64_t n, int64_t k) {
    blaslt_shape s = {};
    s.m = m, s.n = n, s.k = k;
    s.type = s.to_type = type_of(p);
    s.tf32 = c->tf32;
    return s;
}

// z of all steps from x.
static blaslt_shape shape_x(const call *c, const lstm_plan *p) {
    blaslt_shape s = shape_of(c, p, p->a.B * p->a.T, 4 * p->a.H, columns_of(&p->a));
    s.bias = true;
    s.row_a = s.row_b = s.k, s.row_to = s.n;
    return s;
}

// z of a step from h.
static blaslt_shape shape_step(const call *c, const lstm_plan *p) {
    blaslt_shape s = shape_of(c, p, p->a.B, 4 * p->a.H, p->a.H);
    s.row_a = p->a.T * s.k, s.row_b = s.k, s.row_to = p->a.T * s.n;
    s.batch = p->a.D;
    return s;
}

// dh of the step before from dz.
static blaslt_shape shape_dh(const call *c, const lstm_plan *p) {
    blaslt_shape s = shape_of(c, p, p->a.B, p->a.H, 4 * p->a.H);
    s.to_type = DTYPE_F32;
    s.turned_b = true;
    s.row_a = p->a.T * s.k, s.row_b = s.row_to = s.n;
    s.batch = p->a.D;
    return s;
}

static blaslt_shape shape_dx(const call *c, const lstm_plan *p) {
    blaslt_shape s = shape_of(c, p, p->a.B * p->a.T, p->a.I, 4 * p->a.H);
    s.turned_b = true;
    s.row_a = s.k, s.row_b = columns_of(&p->a), s.row_to = s.n;
    return s;
}

// The gradient of w_ih or w_hh, whose operand has n columns.
static blaslt_shape shape_dw(const call *c, const lstm_plan *p, int64_t n) {
    blaslt_shape s = shape_of(c, p, 4 * p->a.H, n, p->a.B * p->a.T);
    s.to_type = DTYPE_F32;
    s.turned_a = s.turned_b = true;
    s.row_a = s.m, s.row_b = s.row_to = n;
    return s;
}

static bool is_library(const call *c, const lstm_plan *p, const blaslt_shape *s) {
    bool aligned = p->a.H % COLUMN_STEP == 0 && s->row_to % COLUMN_STEP == 0;
    return aligned && c->products != PRODUCTS_OWN && blaslt_has(c->queue, s);
}

static void multiply(const call *c, const lstm_plan *p, const blaslt_shape *s, const blaslt_data *d, char *room) {
    size_t from = dtype_bytes(s->type), to = dtype_bytes(s->to_type);
    if (is_library(c, p, s)) {
        blaslt_multiply(c, s, d, room);
        return;
    }
    for (int i = 0; i < (s->batch ? s->batch : 1); i++) {
        view a = {(char *)d->a + i * d->next_a * from, (int)s->type, false};
        view b = {(char *)d->b + i * d->next_b * from, (int)s->type, false};
        gemm_args g = {{a, s->turned_a ? 1 : s->row_a, s->turned_a ? s->row_a : 1, false},
            {b, s->turned_b ? 1 : s->row_b, s->turned_b ? s->row_b : 1, false}, s->m, s->n, s->k, 1};
        gemm_finish f = {{(char *)d->to + i * d->next_to * to, (int)s->to_type, d->add},
            {(void *)d->bias, (int)s->to_type, false}, NULL, ACT_NONE, s->row_to};
        gemm_product(c, p->math, g, f, (float *)room);
    }
}

// Memory

static size_t kept_bytes(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    return up64((size_t)(a->D * a->B * a->T * a->H) * p->element);
}

size_t lstm_large_reserve(const lstm_plan *p) {
    return 6 * kept_bytes(p);
}

static bool copies_x(const call *c, const lstm_plan *p) {
    return c->in[LSTM_X].type != type_of(p) || p->a.I % COLUMN_STEP;
}

// Room for the library's work, or for the parts of our own products.
static size_t room_bytes(const call *c, const lstm_plan *p) {
    const blaslt_shape shapes[] = {shape_x(c, p), shape_step(c, p), shape_dh(c, p), shape_dx(c, p)};
    size_t bytes = BLASLT_ROOM;
    for (const blaslt_shape &s : shapes) {
        size_t parts = gemm_scratch(p->math, s.m, s.n, s.k);
        if (parts > bytes) bytes = parts;
    }
    return bytes;
}

// The next part of a memory from `at` on.
static char *take(uintptr_t *at, size_t bytes) {
    char *was = (char *)*at;
    *at += up64(bytes);
    return was;
}

// The parts of scratch from `at` on, in order; returns their end. Forward alone keeps nothing, and has its steps here.
static uintptr_t place_scratch(const call *c, const lstm_plan *p, uintptr_t at, places *to) {
    const lstm_args *a = &p->a;
    int64_t gates = 4 * a->H, columns = columns_of(a);
    size_t states = (size_t)(a->D * a->B * a->H) * sizeof(float);
    to->w_ih = take(&at, (size_t)(a->D * gates * columns) * p->element);
    to->w_hh = take(&at, (size_t)(a->D * gates * a->H) * p->element);
    to->bias = take(&at, (size_t)(a->D * gates) * p->element);
    to->x = take(&at, copies_x(c, p) ? (size_t)(a->B * a->T * columns) * p->element : 0);
    to->c_now = (float *)take(&at, states);
    to->room = (char *)(((uintptr_t)take(&at, room_bytes(c, p) + 256) + 255) / 256 * 256);
    if (!c->backward && !c->keeps) to->z = take(&at, 5 * kept_bytes(p));
    if (!c->backward) return at;
    to->dh = (float *)take(&at, states);
    to->dw = (float *)take(&at, columns > a->I ? (size_t)(gates * columns) * sizeof(float) : 0);
    to->sums = (float *)take(&at, large_columns_bytes(a->B * a->T, gates));
    return at;
}

// A call that has a queue is about to be recorded: the library is opened before.
size_t lstm_large_scratch(const call *c, const lstm_plan *p) {
    places at = {};
    blaslt_shape step = shape_step(c, p);
    if (c->queue) is_library(c, p, &step);
    return place_scratch(c, p, 0, &at);
}

static places places_of(const call *c, const lstm_plan *p, char *scratch) {
    places at = {};
    place_scratch(c, p, (uintptr_t)scratch, &at);
    if (c->backward || c->keeps) at.z = (char *)c->reserve;
    at.h = at.z + 4 * kept_bytes(p);
    at.c = at.z + 5 * kept_bytes(p);
    return at;
}

// dz and h as cuda/lstm/lstm_weights.cu reads them.
void lstm_large_rows(lstm_plan *p, char *reserve) {
    lstm_args *a = &p->a;
    int64_t steps = (int64_t)a->T * a->H;
    a->dz = reserve;
    a->dz_rows = rows_at{4 * ROWS * steps, 4 * a->H, (int)(4 * steps)};
    a->dz_direction = 4 * a->B * steps;
    a->h_kept = reserve + 4 * kept_bytes(p);
    a->h_rows = rows_at{ROWS * steps, a->H, (int)steps};
    a->h_direction = a->B * steps;
    a->h_by_time = true;
}

// Weights and x as products take them

// A block has a row of a direction's gates.
template <typename E>
static __global__ void weights_kernel(const __grid_constant__ lstm_args a, E *w_ih, E *w_hh, E *bias, int columns) {
    cuda_begin();
    int row = blockIdx.x, d = blockIdx.y, at = d * 4 * a.H + row;
    const float *ih = (d ? a.w_ih[1] : a.w_ih[0]) + (int64_t)row * a.I;
    const float *hh = (d ? a.w_hh[1] : a.w_hh[0]) + (int64_t)row * a.H;
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        convert(&w_ih[(int64_t)at * columns + k], k < a.I ? ih[k] : 0.0f);
    for (int k = threadIdx.x; k < a.H; k += blockDim.x) convert(&w_hh[(int64_t)at * a.H + k], hh[k]);
    if (threadIdx.x == 0) convert(&bias[at], (d ? a.b_ih[1] : a.b_ih[0])[row] + (d ? a.b_hh[1] : a.b_hh[0])[row]);
}

template <typename E> static __global__ void x_kernel(view x, E *to, int I, int columns, int64_t n) {
    cuda_begin();
    FOR_EACH(i, n) {
        int64_t row = i / columns;
        int k = (int)(i - row * columns);
        convert(&to[i], k < I ? view_load(x, row * I + k) : 0.0f);
    }
}

template <typename E> static void prepare(const call *c, const lstm_plan *p, places *at) {
    const lstm_args *a = &p->a;
    int columns = (int)columns_of(a);
    int64_t n = a->B * a->T * columns;
    LAUNCH_EARLY(
        c, weights_kernel<E>, dim3(4 * a->H, a->D), 128, 0, *a, (E *)at->w_ih, (E *)at->w_hh, (E *)at->bias, columns);
    if (copies_x(c, p)) {
        LAUNCH_EARLY(c, x_kernel<E>, blocks_for(n, THREADS), THREADS, 0, a->x, (E *)at->x, a->I, columns, n);
    } else {
        at->x = (char *)a->x.data;
    }
}

// Cells

struct cell_args {
    lstm_args a;
    int i; // the step, in the order of the sequence
    bool keeps;
    void *z, *h, *c;
    float *c_now;    // in backward its gradient
    const float *dh; // from the step behind
};

// N units side by side of a sample, from u on.
struct cell_place {
    int d, t, u;
    int64_t b, row, state; // row: of the step in [D][B][T]; state: of the units in [D][B][H]
};

template <int N> CUDA_FN bool cell_at(const cell_args &k, cell_place *p) {
    const lstm_args &a = k.a;
    unsigned n = blockIdx.x * THREADS + threadIdx.x, across = a.H / N;
    p->d = blockIdx.y;
    p->t = time_of(a, p->d, k.i);
    p->b = n / across;
    p->u = n % across * N;
    p->row = (p->d * a.B + p->b) * a.T + p->t;
    p->state = (p->d * a.B + p->b) * a.H + p->u;
    return p->b < a.B;
}

// Elements of a kept type, and of any.

template <typename E, int N> CUDA_FN void load(float v[N], const void *from, int64_t i) {
    if constexpr (N == RUN) {
        run_widen(v, run_fetch<E>(from, i));
    } else {
        v[0] = widen(((const E *)from)[i]);
    }
}

template <typename E, int N> CUDA_FN void store(void *to, int64_t i, const float v[N]) {
    if constexpr (N == RUN) {
        run_convert<E>(to, i, v);
    } else {
        convert(&((E *)to)[i], v[0]);
    }
}

// Zeros where there is nothing.
template <int N> CUDA_FN void load_any(float v[N], const view &from, int64_t i) {
#pragma unroll
    for (int e = 0; e < N; e++) v[e] = 0;
    if (!from.data) return;
    if constexpr (N == RUN) {
        run_load(v, from, i);
    } else {
        v[0] = view_load(from, i);
    }
}

template <int N> CUDA_FN void put_any(const view &to, int64_t i, float v[N]) {
    if (!to.data) return;
    if constexpr (N == RUN) {
        run_put(to, i, v);
    } else {
        view_put(to, i, v[0]);
    }
}

template <int N> CUDA_FN void clear_if(bool cut, float v[N]) {
#pragma unroll
    for (int e = 0; e < N; e++) v[e] = cut ? 0.0f : v[e];
}

template <typename E> CUDA_FN float tanh_of(float z) {
    return sizeof(E) == 2 ? tanh_approx(z) : tanhf(z);
}

template <typename E> CUDA_FN float sigmoid_of(float z) {
    return sizeof(E) == 2 ? fmaf(0.5f, tanh_approx(0.5f * z), 0.5f) : 1 / (1 + expf(-z));
}

CUDA_FN bool reset_at(const lstm_args &a, int64_t b, int t) {
    return a.reset.data && view_load(a.reset, b * a.T + t) != 0;
}

CUDA_FN int64_t state_at(const lstm_args &a, const cell_place &p) {
    return (p.b * a.D + p.d) * a.H + p.u;
}

CUDA_FN int64_t states_at(const lstm_args &a, const cell_place &p) {
    return ((p.b * a.T + p.t) * a.D + p.d) * a.H + p.u;
}

// The state that the first step starts from.
template <typename E, int N> static __global__ void start_kernel(const __grid_constant__ cell_args k) {
    cuda_begin();
    const lstm_args &a = k.a;
    cell_place p;
    float h[N], c[N];
    if (!cell_at<N>(k, &p)) return;
    bool cut = reset_at(a, p.b, p.t);
    load_any<N>(h, a.h0, state_at(a, p));
    load_any<N>(c, a.c0, state_at(a, p));
    clear_if<N>(cut, h);
    clear_if<N>(cut, c);
    store<E, N>(k.h, p.row * a.H + p.u, h);
    store<float, N>(k.c_now, p.state, c);
}

// The gates take the place of their sums.
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS) cell_kernel(const __grid_constant__ cell_args k) {
    cuda_begin();
    const lstm_args &a = k.a;
    cell_place p;
    float z[4][N], c[N], h[N];
    if (!cell_at<N>(k, &p)) return;
#pragma unroll
    for (int q = 0; q < 4; q++) load<E, N>(z[q], k.z, (p.row * 4 + q) * a.H + p.u);
    load<float, N>(c, k.c_now, p.state);
#pragma unroll
    for (int e = 0; e < N; e++) {
        z[0][e] = sigmoid_of<E>(z[0][e]), z[1][e] = sigmoid_of<E>(z[1][e]);
        z[2][e] = tanh_of<E>(z[2][e]), z[3][e] = sigmoid_of<E>(z[3][e]);
        c[e] = z[1][e] * c[e] + z[0][e] * z[2][e];
        h[e] = z[3][e] * tanh_of<E>(c[e]);
    }
    if (k.keeps) {
#pragma unroll
        for (int q = 0; q < 4; q++) store<E, N>(k.z, (p.row * 4 + q) * a.H + p.u, z[q]);
        store<E, N>(k.c, p.row * a.H + p.u, c);
    }
    bool last = k.i + 1 == a.T;
    if (last) put_any<N>(a.c_last, state_at(a, p), c);
    if (!last) {
        int next = time_of(a, p.d, k.i + 1);
        bool cut = reset_at(a, p.b, next);
        clear_if<N>(cut, c);
        store<float, N>(k.c_now, p.state, c);
        float from[N];
#pragma unroll
        for (int e = 0; e < N; e++) from[e] = cut ? 0.0f : h[e];
        store<E, N>(k.h, (p.row + next - p.t) * a.H + p.u, from);
    }
    put_any<N>(a.states, states_at(a, p), h);
    if (last) put_any<N>(a.h_last, state_at(a, p), h);
}

// dh and dc that a step is given: from the step behind, or those of the last state; and dh from the layer above.
template <int N> CUDA_FN void load_gradients(const cell_args &k, const cell_place &p, float dh[N], float dc[N]) {
    const lstm_args &a = k.a;
    float above[N];
    if (k.i + 1 == a.T) {
        load_any<N>(dh, a.dh_last, state_at(a, p));
        load_any<N>(dc, a.dc_last, state_at(a, p));
    } else {
        bool cut = reset_at(a, p.b, time_of(a, p.d, k.i + 1));
        load<float, N>(dh, k.dh, p.state);
        load<float, N>(dc, k.c_now, p.state);
        clear_if<N>(cut, dh);
        clear_if<N>(cut, dc);
    }
    load_any<N>(above, a.dstates, states_at(a, p));
#pragma unroll
    for (int e = 0; e < N; e++) dh[e] += above[e];
}

// The gates' gradients take the place of the gates; dc becomes that of the step before.
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS) cell_back_kernel(const __grid_constant__ cell_args k) {
    cuda_begin();
    const lstm_args &a = k.a;
    cell_place p;
    float z[4][N], c[N], before[N], dh[N], dc[N];
    if (!cell_at<N>(k, &p)) return;
#pragma unroll
    for (int q = 0; q < 4; q++) load<E, N>(z[q], k.z, (p.row * 4 + q) * a.H + p.u);
    load<E, N>(c, k.c, p.row * a.H + p.u);
    if (k.i > 0) {
        load<E, N>(before, k.c, (p.row + time_of(a, p.d, k.i - 1) - p.t) * a.H + p.u);
    } else {
        load_any<N>(before, a.c0, state_at(a, p));
    }
    clear_if<N>(reset_at(a, p.b, p.t), before);
    load_gradients<N>(k, p, dh, dc);
#pragma unroll
    for (int e = 0; e < N; e++) {
        float in = z[0][e], f = z[1][e], g = z[2][e], o = z[3][e], th = tanh_of<E>(c[e]);
        float cell = dc[e] + dh[e] * o * (1 - th * th);
        z[0][e] = cell * g * in * (1 - in);
        z[1][e] = cell * before[e] * f * (1 - f);
        z[2][e] = cell * in * (1 - g * g);
        z[3][e] = dh[e] * th * o * (1 - o);
        dc[e] = cell * f;
    }
#pragma unroll
    for (int q = 0; q < 4; q++) store<E, N>(k.z, (p.row * 4 + q) * a.H + p.u, z[q]);
    store<float, N>(k.c_now, p.state, dc);
}

// dh0 and dc0.
template <int N> static __global__ void finish_kernel(const __grid_constant__ cell_args k) {
    cuda_begin();
    const lstm_args &a = k.a;
    cell_place p;
    float dh[N], dc[N];
    if (!cell_at<N>(k, &p)) return;
    bool cut = reset_at(a, p.b, p.t);
    load<float, N>(dh, k.dh, p.state);
    load<float, N>(dc, k.c_now, p.state);
    clear_if<N>(cut, dh);
    clear_if<N>(cut, dc);
    put_any<N>(a.dh0, state_at(a, p), dh);
    put_any<N>(a.dc0, state_at(a, p), dc);
}

// Steps

static cell_args cell_of(const call *c, const lstm_plan *p, const places *at) {
    return cell_args{p->a, 0, c->keeps, at->z, at->h, at->c, at->c_now, at->dh};
}

// A thread for each N units of a sample. Cells do not stride: the bound of blocks_for would leave some out.
static dim3 cell_grid(const lstm_args *a, int N) {
    return dim3((unsigned)((a->B * a->H / N + THREADS - 1) / THREADS), (unsigned)a->D);
}

// Elements from a row of direction 0 to that of direction 1, at a step.
static int64_t between(const lstm_args *a, int i) {
    return a->B * a->T + a->T - 1 - 2 * i;
}

template <typename E, int N> static void forward_steps(const call *c, const lstm_plan *p, const places *at) {
    const lstm_args *a = &p->a;
    dim3 grid = cell_grid(a, N);
    blaslt_shape shape = shape_step(c, p);
    cell_args k = cell_of(c, p, at);
    LAUNCH_EARLY(c, (start_kernel<E, N>), grid, THREADS, 0, k);
    for (k.i = 0; k.i < a->T; k.i++) {
        int64_t row = (int64_t)k.i * a->H, next = between(a, k.i) * a->H;
        blaslt_data step = {at->h + row * sizeof(E), at->w_hh, NULL, at->z + 4 * row * sizeof(E), true, next,
            (int64_t)4 * a->H * a->H, 4 * next};
        if (k.i > 0 || a->h0.data) multiply(c, p, &shape, &step, at->room);
        LAUNCH_EARLY(c, (cell_kernel<E, N>), grid, THREADS, 0, k);
    }
}

template <typename E, int N> static void backward_steps(const call *c, const lstm_plan *p, const places *at) {
    const lstm_args *a = &p->a;
    dim3 grid = cell_grid(a, N);
    blaslt_shape shape = shape_dh(c, p);
    cell_args k = cell_of(c, p, at);
    for (k.i = a->T - 1; k.i >= 0; k.i--) {
        int64_t row = (int64_t)k.i * 4 * a->H, next = between(a, k.i) * 4 * a->H;
        blaslt_data step = {
            at->z + row * sizeof(E), at->w_hh, NULL, at->dh, false, next, (int64_t)4 * a->H * a->H, a->B * a->H};
        LAUNCH_EARLY(c, (cell_back_kernel<E, N>), grid, THREADS, 0, k);
        if (k.i > 0 || a->dh0.data) multiply(c, p, &shape, &step, at->room);
    }
    k.i = 0;
    if (a->dh0.data || a->dc0.data) LAUNCH_EARLY(c, finish_kernel<N>, grid, THREADS, 0, k);
}

#define BY_TYPE(p, launch)                                                                                             \
    switch (type_of(p)) {                                                                                              \
    case DTYPE_BF16: launch(__nv_bfloat16); break;                                                                     \
    case DTYPE_F16: launch(__half); break;                                                                             \
    default: launch(float); break;                                                                                     \
    }

void lstm_large_forward(const call *c, const lstm_plan *p, char *scratch) {
    const lstm_args *a = &p->a;
    places at = places_of(c, p, scratch);
    blaslt_shape shape = shape_x(c, p);
    int64_t gates = 4 * a->H;
#define PREPARE(E) prepare<E>(c, p, &at)
    BY_TYPE(p, PREPARE)
    for (int d = 0; d < a->D; d++) {
        blaslt_data sums = {at.x, at.w_ih + d * gates * shape.k * p->element, at.bias + d * gates * p->element,
            at.z + d * shape.m * gates * p->element, false};
        multiply(c, p, &shape, &sums, at.room);
    }
#define FORWARD(E) a->H % RUN ? forward_steps<E, 1>(c, p, &at) : forward_steps<E, RUN>(c, p, &at)
    BY_TYPE(p, FORWARD)
}

void lstm_large_backward(const call *c, const lstm_plan *p, char *scratch) {
    const lstm_args *a = &p->a;
    places at = places_of(c, p, scratch);
    BY_TYPE(p, PREPARE)
#define BACKWARD(E) a->H % RUN ? backward_steps<E, 1>(c, p, &at) : backward_steps<E, RUN>(c, p, &at)
    BY_TYPE(p, BACKWARD)
    const operand *dx = &c->din[LSTM_X];
    blaslt_shape shape = shape_dx(c, p);
    shape.to_type = dx->type;
    for (int d = 0; dx->data && d < a->D; d++) {
        blaslt_data product = {at.z + d * shape.m * shape.k * p->element,
            at.w_ih + d * shape.k * shape.row_b * p->element, NULL, dx->data, dx->add || d > 0};
        multiply(c, p, &shape, &product, at.room);
    }
}

// The gradients of weights and biases

// Rows of `columns` to rows of I.
static __global__ void cut_kernel(const float *from, int I, int columns, int64_t n, view to) {
    cuda_begin();
    FOR_EACH(i, n) view_put(to, i, from[i / I * columns + i % I]);
}

static void weights_gradients(const call *c, const lstm_plan *p, const places *at, int d) {
    const lstm_args *a = &p->a;
    const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
    blaslt_shape ih = shape_dw(c, p, columns_of(a)), hh = shape_dw(c, p, a->H);
    const char *dz = at->z + d * ih.k * ih.m * p->element, *h = at->h + d * hh.k * hh.n * p->element;
    bool cut = ih.n != a->I;
    int64_t n = ih.m * a->I;
    blaslt_data of_ih = {dz, at->x, NULL, cut ? at->dw : dw[0].data, !cut && dw[0].add};
    blaslt_data of_hh = {dz, h, NULL, dw[1].data, dw[1].add};
    if (dw[0].data) blaslt_multiply(c, &ih, &of_ih, at->room);
    if (dw[0].data && cut)
        LAUNCH_EARLY(c, cut_kernel, blocks_for(n, THREADS), THREADS, 0, at->dw, a->I, (int)ih.n, n, view_of(&dw[0]));
    if (dw[1].data) blaslt_multiply(c, &hh, &of_hh, at->room);
    if (dw[2].data || dw[3].data) large_columns(c, dz, ih.type, ih.k, ih.m, at->sums, view_of(&dw[2]), view_of(&dw[3]));
}

bool lstm_large_weights(const call *c, const lstm_plan *p, char *scratch) {
    blaslt_shape ih = shape_dw(c, p, columns_of(&p->a)), hh = shape_dw(c, p, p->a.H);
    if (!is_library(c, p, &ih) || !is_library(c, p, &hh)) return false;
    places at = places_of(c, p, scratch);
    if (!copies_x(c, p)) at.x = (char *)p->a.x.data;
    for (int d = 0; d < p->a.D; d++) weights_gradients(c, p, &at, d);
    return true;
}
