// layernorm on the card: see ops/layernorm.c. Sixteen lanes a row, or a warp where rows are wider than 128, each with
// eight neighbouring columns or several such runs; the row stays in registers, and the next one is on its way
// meanwhile. In backward a block takes a part of the rows and sums its columns as it goes, and the parts are added in
// order. Rows that are no multiple of eight wide, or very wide, are read again for each use. A residual connection may
// be joined: see cuda/join/residual.cuh.
#include "cuda/join/residual.cuh"

extern "C" {
#include "ops/ops.h"
}

enum { WARPS = 8, WIDE = 1024, ADD_ACROSS = 32, ADD_DOWN = 32 };

// Blocks that a multiprocessor holds at once: three, or four where nothing is joined forward. Backward has PARTS_MOST
// blocks at most on every card, since scratch is planned for them before a card is known, and they decide the order of
// sums.
enum { HELD = 3, HELD_PLAIN = 4, PARTS_MOST = 396 };

struct moments {
    float mean, scale;
};

struct norm_args {
    view x, gain, bias, y; // backward: y is dy, and bias is not read
    view dx;
    float *part; // [parts][2][C]
    int64_t rows;
    int C;
    float share; // 1 / C
    float eps;
};

// Kernels are compiled for LANES lanes a row with OCTETS runs of eight columns each, and for X, the type of x, its
// gradient and all else along the residual connection, and Y, that of the layer's result and of what dropout changes:
// TYPE_ANY of each is as the views say.

template <int LANES> CUDA_FN float lanes_sum(float v) {
#pragma unroll
    for (int d = LANES / 2; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

// A lane's columns: octets lane, lane + LANES, ...
template <int OCTETS> struct columns { octet o[OCTETS]; };

template <int OCTETS> struct arriving { octet_raw o[OCTETS]; };

template <int LANES> CUDA_FN int column_of(int k) {
    return (k * LANES + (int)threadIdx.x % LANES) * OCTET;
}

// A row from element `at` on, or 0 where it is not `inside`.
template <int LANES, int OCTETS, int TYPE>
CUDA_FN arriving<OCTETS> row_fetch(const view &from, int64_t at, bool inside, int C) {
    arriving<OCTETS> c = {};
#pragma unroll
    for (int k = 0; k < OCTETS; k++)
        if (inside && column_of<LANES>(k) < C) c.o[k] = octet_fetch<TYPE>(from, at + column_of<LANES>(k));
    return c;
}

template <int OCTETS, int TYPE> CUDA_FN columns<OCTETS> row_of(const view &from, const arriving<OCTETS> &a) {
    columns<OCTETS> c;
#pragma unroll
    for (int k = 0; k < OCTETS; k++) c.o[k] = octet_of<TYPE>(from, a.o[k]);
    return c;
}

template <int LANES, int OCTETS> CUDA_FN columns<OCTETS> row_load(const view &from, int C) {
    return row_of<OCTETS, TYPE_ANY>(from, row_fetch<LANES, OCTETS, TYPE_ANY>(from, 0, true, C));
}

// Values become those minus their mean; returns 1 / sqrt(variance + eps). The row's first value is taken off before.
template <int LANES, int OCTETS> CUDA_FN float centre(columns<OCTETS> *x, const norm_args &a) {
    float first = __shfl_sync(0xFFFFFFFFu, x->o[0].v[0], 0, LANES), sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < OCTETS * OCTET; i++)
        if (column_of<LANES>(i / OCTET) < a.C) sum += x->o[i / OCTET].v[i % OCTET] -= first;
    float mean = lanes_sum<LANES>(sum) * a.share;
#pragma unroll
    for (int i = 0; i < OCTETS * OCTET; i++)
        if (column_of<LANES>(i / OCTET) < a.C) {
            float d = x->o[i / OCTET].v[i % OCTET] -= mean;
            square += d * d;
        }
    return 1.0f / sqrtf(lanes_sum<LANES>(square) * a.share + a.eps);
}

// JOINED: x is the result of the residual connection.
template <int LANES, int OCTETS, int X, int Y, bool JOINED>
static __global__ void __launch_bounds__(WARPS * 32, OCTETS > 1 ? 1
                                                     : JOINED   ? HELD
                                                                : HELD_PLAIN)
    forward_kernel(const __grid_constant__ norm_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    const int each = 32 / LANES; // rows of a warp
    const bool ahead = OCTETS == 1;
    const view &from = JOINED ? j.x : a.x;
    columns<OCTETS> gain = row_load<LANES, OCTETS>(a.gain, a.C), bias = row_load<LANES, OCTETS>(a.bias, a.C);
    random_key s = JOINED ? random_key_of(j.drop.at) : random_key{};
    int64_t apart = (int64_t)gridDim.x * WARPS * each;
    int64_t r = ((int64_t)blockIdx.x * WARPS + threadIdx.y) * each + threadIdx.x / LANES;
    arriving<OCTETS> next = {}, next_y = {};
    if (ahead) next = row_fetch<LANES, OCTETS, X>(from, r * a.C, r < a.rows, a.C);
    if (ahead && JOINED) next_y = row_fetch<LANES, OCTETS, Y>(j.y, r * a.C, r < a.rows, a.C);
    for (; r - threadIdx.x / LANES < a.rows; r += apart) {
        if (!ahead) next = row_fetch<LANES, OCTETS, X>(from, r * a.C, r < a.rows, a.C);
        if (!ahead && JOINED) next_y = row_fetch<LANES, OCTETS, Y>(j.y, r * a.C, r < a.rows, a.C);
        columns<OCTETS> x = row_of<OCTETS, X>(from, next), y = row_of<OCTETS, Y>(j.y, next_y);
        if (ahead) next = row_fetch<LANES, OCTETS, X>(from, (r + apart) * a.C, r + apart < a.rows, a.C);
        if (ahead && JOINED) next_y = row_fetch<LANES, OCTETS, Y>(j.y, (r + apart) * a.C, r + apart < a.rows, a.C);
#pragma unroll
        for (int k = 0; JOINED && k < OCTETS; k++)
            if (r < a.rows && column_of<LANES>(k) < a.C)
                x.o[k] = residual_forward<X, Y>(j, s, r * a.C + column_of<LANES>(k), x.o[k], y.o[k]);
        float scale = centre<LANES, OCTETS>(&x, a);
#pragma unroll
        for (int k = 0; k < OCTETS; k++) {
#pragma unroll
            for (int e = 0; e < OCTET; e++) x.o[k].v[e] = x.o[k].v[e] * scale * gain.o[k].v[e] + bias.o[k].v[e];
            if (r < a.rows && column_of<LANES>(k) < a.C) octet_store<Y>(a.y, r * a.C + column_of<LANES>(k), x.o[k]);
        }
    }
}

// The sums of the block's columns, in the order of its rows' lanes.
template <int LANES, int OCTETS>
CUDA_FN void add_warps(const columns<OCTETS> &sum, float (*room)[OCTETS * LANES * OCTET], float *to, int C) {
    const int each = 32 / LANES;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < OCTETS; k++)
#pragma unroll
        for (int e = 0; e < OCTET; e += 4)
            *(float4 *)&room[threadIdx.y * each + threadIdx.x / LANES][column_of<LANES>(k) + e] =
                float4{sum.o[k].v[e], sum.o[k].v[e + 1], sum.o[k].v[e + 2], sum.o[k].v[e + 3]};
    __syncthreads();
    for (int i = threadIdx.y * 32 + threadIdx.x; i < C; i += WARPS * 32) {
        float total = 0;
#pragma unroll
        for (int w = 0; w < WARPS * each; w++) total += room[w][i];
        to[i] = total;
    }
}

// dy becomes dx, and x the normalised row; both go into the sums of columns.
template <int LANES, int OCTETS>
CUDA_FN void row_backward(columns<OCTETS> *x, columns<OCTETS> *dy, float scale, const float *gain,
    columns<OCTETS> *dgain, columns<OCTETS> *dbias, float share) {
    float sum = 0, dot = 0;
#pragma unroll
    for (int i = 0; i < OCTETS * OCTET; i++) {
        float *xhat = &x->o[i / OCTET].v[i % OCTET], *d = &dy->o[i / OCTET].v[i % OCTET];
        *xhat *= scale;
        dgain->o[i / OCTET].v[i % OCTET] += *d * *xhat;
        dbias->o[i / OCTET].v[i % OCTET] += *d;
        *d *= gain[column_of<LANES>(i / OCTET) + i % OCTET];
        sum += *d;
        dot += *d * *xhat;
    }
    sum = lanes_sum<LANES>(sum) * share;
    dot = lanes_sum<LANES>(dot) * share;
#pragma unroll
    for (int i = 0; i < OCTETS * OCTET; i++) {
        float *d = &dy->o[i / OCTET].v[i % OCTET];
        *d = scale * (*d - (sum + x->o[i / OCTET].v[i % OCTET] * dot));
    }
}

// JOINED: dx goes on into the residual connection; where nobody else reads it, it is not written. The next row's x and
// dy are on their way while this one is done, and what its dx is added to while its sums are taken; very wide rows
// leave no registers for either.
template <int LANES, int OCTETS, int X, int Y, bool JOINED>
static __global__ void __launch_bounds__(WARPS * 32, OCTETS > 1 ? 1 : HELD)
    backward_kernel(const __grid_constant__ norm_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    const int each = 32 / LANES, apart = WARPS * each;
    const bool ahead = OCTETS == 1;
    __shared__ __align__(16) float room[WARPS * each][OCTETS * LANES * OCTET], gain[OCTETS * LANES * OCTET];
    random_key s = JOINED ? random_key_of(j.drop.at) : random_key{};
    for (int i = threadIdx.y * 32 + threadIdx.x; i < OCTETS * LANES * OCTET; i += WARPS * 32)
        gain[i] = i < a.C ? view_load(a.gain, i) : 0.0f;
    __syncthreads();
    columns<OCTETS> dgain = {}, dbias = {};
    int64_t first = a.rows * blockIdx.x / gridDim.x;
    int end = (int)(a.rows * (blockIdx.x + 1) / gridDim.x - first), r = threadIdx.y * each + threadIdx.x / LANES;
    int64_t at = (first + r) * a.C; // of row r
    arriving<OCTETS> next_x = {}, next_dy = {}, was = {};
    if (ahead) next_x = row_fetch<LANES, OCTETS, X>(a.x, at, r < end, a.C);
    if (ahead) next_dy = row_fetch<LANES, OCTETS, Y>(a.y, at, r < end, a.C);
    for (; r - (int)threadIdx.x / LANES < end; r += apart, at += apart * a.C) {
        if (!ahead) next_x = row_fetch<LANES, OCTETS, X>(a.x, at, r < end, a.C);
        if (!ahead) next_dy = row_fetch<LANES, OCTETS, Y>(a.y, at, r < end, a.C);
        if (ahead) was = row_fetch<LANES, OCTETS, X>(a.dx, at, a.dx.add && r < end, a.C);
        columns<OCTETS> x = row_of<OCTETS, X>(a.x, next_x), dy = row_of<OCTETS, Y>(a.y, next_dy);
        if (ahead) next_x = row_fetch<LANES, OCTETS, X>(a.x, at + apart * a.C, r + apart < end, a.C);
        if (ahead) next_dy = row_fetch<LANES, OCTETS, Y>(a.y, at + apart * a.C, r + apart < end, a.C);
        float scale = centre<LANES, OCTETS>(&x, a);
        row_backward<LANES, OCTETS>(&x, &dy, r < end ? scale : 0.0f, gain, &dgain, &dbias, a.share);
#pragma unroll
        for (int k = 0; k < OCTETS; k++) {
            int64_t to = at + column_of<LANES>(k);
            if (r >= end || column_of<LANES>(k) >= a.C) continue;
            if (!ahead && a.dx.add) was.o[k] = octet_fetch<X>(a.dx, to);
            if (a.dx.add) dy.o[k] = octet_add(dy.o[k], octet_of<X>(a.dx, was.o[k]));
            if (JOINED) dy.o[k] = octet_rounded<X>(a.dx, dy.o[k]);
            if (JOINED ? !j.alone : a.dx.data != NULL) octet_store<X>(a.dx, to, dy.o[k]);
            if (JOINED) residual_backward<X, Y>(j, s, to, dy.o[k]);
        }
    }
    add_warps<LANES, OCTETS>(dgain, room, a.part + (int64_t)blockIdx.x * 2 * a.C, a.C);
    add_warps<LANES, OCTETS>(dbias, room, a.part + ((int64_t)blockIdx.x * 2 + 1) * a.C, a.C);
}

// Rows of any width

CUDA_FN float warp_sum(float v) {
    return lanes_sum<32>(v);
}

CUDA_FN moments moments_of(const view &x, int64_t at, int C, float eps) {
    float x0 = view_load(x, at), sum = 0, square = 0;
    for (int i = threadIdx.x; i < C; i += 32) sum += view_load(x, at + i) - x0;
    float mean = warp_sum(sum) / (float)C;
    for (int i = threadIdx.x; i < C; i += 32) {
        float d = view_load(x, at + i) - x0 - mean;
        square += d * d;
    }
    return moments{mean, 1.0f / sqrtf(warp_sum(square) / (float)C + eps)};
}

static __global__ void forward_any(const __grid_constant__ norm_args a) {
    cuda_begin();
    int64_t at = ((int64_t)blockIdx.x * WARPS + threadIdx.y) * a.C;
    if (at >= a.rows * a.C) return;
    moments m = moments_of(a.x, at, a.C, a.eps);
    float x0 = view_load(a.x, at);
    for (int i = threadIdx.x; i < a.C; i += 32)
        view_store(a.y, at + i,
            (view_load(a.x, at + i) - x0 - m.mean) * m.scale * view_load(a.gain, i) + view_load(a.bias, i));
}

static __global__ void backward_any(const __grid_constant__ norm_args a, moments *kept) {
    cuda_begin();
    int64_t r = (int64_t)blockIdx.x * WARPS + threadIdx.y, at = r * a.C;
    if (r >= a.rows) return;
    moments m = moments_of(a.x, at, a.C, a.eps);
    float x0 = view_load(a.x, at), sum = 0, dot = 0;
    if (threadIdx.x == 0) kept[r] = m;
    for (int i = threadIdx.x; i < a.C; i += 32) {
        float d = view_load(a.y, at + i) * view_load(a.gain, i);
        sum += d;
        dot += d * (view_load(a.x, at + i) - x0 - m.mean) * m.scale;
    }
    sum = warp_sum(sum);
    dot = warp_sum(dot);
    for (int i = threadIdx.x; a.dx.data && i < a.C; i += 32) {
        float xhat = (view_load(a.x, at + i) - x0 - m.mean) * m.scale;
        float d = view_load(a.y, at + i) * view_load(a.gain, i);
        view_put(a.dx, at + i, m.scale * (d - (sum + xhat * dot) / (float)a.C));
    }
}

static __global__ void columns_any(const __grid_constant__ norm_args a, const moments *kept) {
    cuda_begin();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.C) return;
    float gain = 0, bias = 0;
    for (int64_t r = a.rows * blockIdx.y / gridDim.y; r < a.rows * (blockIdx.y + 1) / gridDim.y; r++) {
        float d = view_load(a.y, r * a.C + i);
        gain += d * (view_load(a.x, r * a.C + i) - view_load(a.x, r * a.C) - kept[r].mean) * kept[r].scale;
        bias += d;
    }
    a.part[(int64_t)blockIdx.y * 2 * a.C + i] = gain;
    a.part[((int64_t)blockIdx.y * 2 + 1) * a.C + i] = bias;
}

// The parts' sums: of the gain, then of the bias. A thread adds every so many parts, and one adds the threads' sums.
static __global__ void add_kernel(const float *part, int parts, view dgain, view dbias, int C) {
    cuda_begin();
    __shared__ float room[ADD_DOWN][ADD_ACROSS];
    int i = blockIdx.x * ADD_ACROSS + threadIdx.x;
    float sum = 0;
    if (i < 2 * C) {
#pragma unroll 8
        for (int p = threadIdx.y; p < parts; p += ADD_DOWN) sum += part[(int64_t)p * 2 * C + i];
    }
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || i >= 2 * C) return;
    for (int r = 1; r < ADD_DOWN; r++) sum += room[r][threadIdx.x];
    view to = i < C ? dgain : dbias;
    if (to.data) view_put(to, i < C ? i : i - C, sum);
}

// Launches

static norm_args args_of(const call *c) {
    norm_args a = {};
    a.x = view_of(&c->in[0]);
    a.gain = view_of(&c->in[1]);
    a.bias = view_of(&c->in[2]);
    a.rows = operand_rows(&c->in[0]);
    a.C = (int)operand_width(&c->in[0]);
    a.share = 1.0f / (float)a.C;
    a.eps = ((const layernorm_attr *)c->attr)->eps;
    return a;
}

static bool is_octets(const norm_args &a) {
    return a.C % OCTET == 0 && a.C <= WIDE && a.x.type <= DTYPE_BF16;
}

// By sizes alone.
static int parts_of(const norm_args &a) {
    int64_t parts = (a.rows + WARPS - 1) / WARPS;
    return parts < PARTS_MOST ? (int)parts : (int)PARTS_MOST;
}

static unsigned blocks_of(const norm_args &a) {
    return (unsigned)((a.rows + WARPS - 1) / WARPS);
}

static unsigned forward_blocks(const call *c, const norm_args &a, int each, bool joined) {
    int64_t blocks = (a.rows + WARPS * each - 1) / (WARPS * each);
    int64_t most = (int64_t)c->queue->multiprocessors * (joined ? HELD : HELD_PLAIN);
    return (unsigned)(blocks < most ? blocks : most);
}

// j: a residual connection that is joined, or NULL.
template <int LANES, int OCTETS, int X, int Y>
static void launch_typed(const call *c, const norm_args &a, const residual_args *j) {
    residual_args joined = j ? *j : residual_args{};
    unsigned blocks = c->backward ? (unsigned)parts_of(a) : forward_blocks(c, a, 32 / LANES, j != NULL);
    dim3 threads(32, WARPS);
    if (c->backward && j) {
        LAUNCH_EARLY(c, (backward_kernel<LANES, OCTETS, X, Y, true>), blocks, threads, 0, a, joined);
    } else if (c->backward) {
        LAUNCH_EARLY(c, (backward_kernel<LANES, OCTETS, X, Y, false>), blocks, threads, 0, a, joined);
    } else if (j) {
        LAUNCH_EARLY(c, (forward_kernel<LANES, OCTETS, X, Y, true>), blocks, threads, 0, a, joined);
    } else {
        LAUNCH_EARLY(c, (forward_kernel<LANES, OCTETS, X, Y, false>), blocks, threads, 0, a, joined);
    }
}

// True if all tensors of a launch have the types that a kernel is compiled for.
static bool are_types(const norm_args &a, const residual_args *j, int x, int y) {
    return a.x.type == x && a.y.type == y && (!a.dx.data || a.dx.type == x) && (!j || residual_types(j, x, y));
}

template <int LANES> static void launch_narrow(const call *c, const norm_args &a, const residual_args *j) {
    if (are_types(a, j, DTYPE_F32, DTYPE_BF16)) {
        launch_typed<LANES, 1, DTYPE_F32, DTYPE_BF16>(c, a, j);
    } else if (are_types(a, j, DTYPE_F32, DTYPE_F16)) {
        launch_typed<LANES, 1, DTYPE_F32, DTYPE_F16>(c, a, j);
    } else if (are_types(a, j, DTYPE_F32, DTYPE_F32)) {
        launch_typed<LANES, 1, DTYPE_F32, DTYPE_F32>(c, a, j);
    } else {
        launch_typed<LANES, 1, TYPE_ANY, TYPE_ANY>(c, a, j);
    }
}

static void launch_octets(const call *c, const norm_args &a, const residual_args *j) {
    if (a.C <= WIDE / 8) {
        launch_narrow<16>(c, a, j);
    } else if (a.C <= WIDE / 4) {
        launch_narrow<32>(c, a, j);
    } else if (a.C <= WIDE / 2) {
        launch_typed<32, 2, TYPE_ANY, TYPE_ANY>(c, a, j);
    } else {
        launch_typed<32, 4, TYPE_ANY, TYPE_ANY>(c, a, j);
    }
}

static void forward(const call *c) {
    norm_args a = args_of(c);
    a.y = view_of(&c->out[0]);
    if (is_octets(a))
        launch_octets(c, a, NULL);
    else
        LAUNCH_EARLY(c, forward_any, blocks_of(a), dim3(32, WARPS), 0, a);
}

static size_t moments_bytes(const norm_args &a) {
    return is_octets(a) ? 0 : ((size_t)a.rows * sizeof(moments) + 63) / 64 * 64;
}

static norm_args backward_args(const call *c) {
    norm_args a = args_of(c);
    a.y = view_of(&c->dout[0]);
    a.dx = view_of(&c->din[0]);
    if (!a.dx.data) a.dx.add = false;
    a.part = (float *)((char *)c->scratch + moments_bytes(a));
    return a;
}

static void add_parts(const call *c, const norm_args &a) {
    LAUNCH_EARLY(c, add_kernel, blocks_for(2 * a.C, ADD_ACROSS), dim3(ADD_ACROSS, ADD_DOWN), 0, a.part, parts_of(a),
        view_of(&c->din[1]), view_of(&c->din[2]), a.C);
}

static void backward(const call *c) {
    norm_args a = backward_args(c);
    moments *kept = (moments *)c->scratch;
    unsigned parts = (unsigned)parts_of(a);
    if (is_octets(a)) {
        launch_octets(c, a, NULL);
    } else {
        LAUNCH_EARLY(c, backward_any, blocks_of(a), dim3(32, WARPS), 0, a, kept);
        LAUNCH_EARLY(c, columns_any, dim3(blocks_for(a.C, 64), parts), 64, 0, a, kept);
    }
    add_parts(c, a);
}

bool layernorm_joins(const call *c) {
    return c->op == OP_layernorm && is_octets(args_of(c)) && (!c->backward || c->din[0].data);
}

void layernorm_launch_joined(const call *c, const residual_args *j) {
    norm_args a = c->backward ? backward_args(c) : args_of(c);
    if (!c->backward) a.y = view_of(&c->out[0]);
    launch_octets(c, a, j);
    if (c->backward) add_parts(c, a);
}

static size_t scratch(const call *c) {
    norm_args a = args_of(c);
    return c->backward ? moments_bytes(a) + (size_t)parts_of(a) * 2 * (size_t)a.C * sizeof(float) : 0;
}

extern "C" const kernel cuda_layernorm = {forward, backward, scratch, NULL};
