// layernorm on the card: see ops/layernorm.c. A warp a row, whose values stay in registers; in backward a block takes a
// part of the rows and sums its columns as it goes, and the parts are added in order. Rows that are no multiple of four
// wide, or very wide, are read again for each use. A residual connection may be joined: see cuda/residual.cuh.
#include "cuda/residual.cuh"

extern "C" {
#include "ops/ops.h"
}

enum { WARPS = 8, PARTS_MOST = 528, WIDE = 1024, ADD_ACROSS = 32, ADD_DOWN = 16 };

struct moments {
    float mean, scale;
};

struct norm_args {
    view x, gain, bias, y; // backward: y is dy, and bias is not read
    view dx;
    float *part; // [parts][2][C]
    int64_t rows;
    int C;
    float eps;
};

CUDA_FN float warp_sum(float v) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

// A lane's columns: quads lane, lane + 32, ...
template <int QUADS> struct columns {
    quad q[QUADS];
};

CUDA_FN int column_of(int k) {
    return (k * 32 + (int)threadIdx.x) * QUAD;
}

template <int QUADS> CUDA_FN columns<QUADS> row_load(const view &from, int64_t at, int C) {
    columns<QUADS> c;
#pragma unroll
    for (int k = 0; k < QUADS; k++) c.q[k] = column_of(k) < C ? quad_load(from, at + column_of(k)) : quad{};
    return c;
}

// Values become those minus their mean; returns 1 / sqrt(variance + eps). The row's first value is taken off before.
template <int QUADS> CUDA_FN float centre(columns<QUADS> *x, int C, float eps) {
    float first = __shfl_sync(0xFFFFFFFFu, x->q[0].v[0], 0), sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < QUADS * QUAD; i++)
        if (column_of(i / QUAD) < C) sum += x->q[i / QUAD].v[i % QUAD] -= first;
    float mean = warp_sum(sum) / (float)C;
#pragma unroll
    for (int i = 0; i < QUADS * QUAD; i++)
        if (column_of(i / QUAD) < C) {
            float d = x->q[i / QUAD].v[i % QUAD] -= mean;
            square += d * d;
        }
    return 1.0f / sqrtf(warp_sum(square) / (float)C + eps);
}

// The random words of a lane's quads at i and at j, of rows C wide. Where C is a multiple of eight, two neighbouring lanes
// share the random blocks of both: each draws one, and they exchange halves. All lanes come here.
CUDA_FN void draw_two(const drop_args &d, const step &s, int C, int64_t i, int64_t j, drop_words two[2]) {
    if (C % RANDOM_OCTET) {
        two[0] = drop_draw_quad(d, s, i);
        two[1] = drop_draw_quad(d, s, j);
        return;
    }
    bool odd = threadIdx.x % 2;
    rng_block r = drop_draw(d, s, drop_place_of(d, odd ? j : i));
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t mine = odd ? r.v[2 + k] : r.v[k];
        uint32_t others = __shfl_xor_sync(0xFFFFFFFFu, odd ? r.v[k] : r.v[2 + k], 1);
        two[0].w[k] = odd ? others : mine;
        two[1].w[k] = odd ? mine : others;
    }
}

// Of all its quads of row r, `next` rows before the warp's next one: a single quad is drawn together with that row's.
template <int QUADS> struct row_words {
    drop_words q[QUADS > 1 ? QUADS : 2];
    bool ahead; // a single one's is there already
};

template <int QUADS>
CUDA_FN void row_draw(row_words<QUADS> *w, const drop_args &d, const step &s, int64_t r, int64_t next, int C) {
    if (QUADS == 1 && w->ahead) {
        w->q[0] = w->q[1];
    } else if (QUADS == 1) {
        draw_two(d, s, C, r * C + column_of(0), (r + next) * C + column_of(0), w->q);
    } else {
#pragma unroll
        for (int k = 0; k < QUADS; k += 2) draw_two(d, s, C, r * C + column_of(k), r * C + column_of(k + 1), w->q + k);
    }
    w->ahead = !w->ahead;
}

// JOINED: x is the result of the residual connection.
template <int QUADS, bool JOINED>
static __global__ void __launch_bounds__(WARPS * 32)
    forward_kernel(const __grid_constant__ norm_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    columns<QUADS> gain = row_load<QUADS>(a.gain, 0, a.C), bias = row_load<QUADS>(a.bias, 0, a.C);
    step s = JOINED ? drop_step(j.drop) : step{};
    row_words<QUADS> bits = {};
    int64_t next = (int64_t)gridDim.x * WARPS;
    for (int64_t r = (int64_t)blockIdx.x * WARPS + threadIdx.y; r < a.rows; r += next) {
        columns<QUADS> x = row_load<QUADS>(JOINED ? j.x : a.x, r * a.C, a.C);
        if (JOINED) row_draw<QUADS>(&bits, j.drop, s, r, next, a.C);
#pragma unroll
        for (int k = 0; JOINED && k < QUADS; k++)
            if (column_of(k) < a.C) x.q[k] = residual_forward(j, bits.q[k], r * a.C + column_of(k), x.q[k]);
        float scale = centre<QUADS>(&x, a.C, a.eps);
#pragma unroll
        for (int k = 0; k < QUADS; k++) {
#pragma unroll
            for (int e = 0; e < QUAD; e++) x.q[k].v[e] = x.q[k].v[e] * scale * gain.q[k].v[e] + bias.q[k].v[e];
            if (column_of(k) < a.C) quad_store(a.y, r * a.C + column_of(k), x.q[k]);
        }
    }
}

// The warps' sums of the block's columns, in the order of warps.
template <int QUADS> CUDA_FN void add_warps(const columns<QUADS> &sum, float (*room)[QUADS * 32 * QUAD], float *to, int C) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < QUADS * QUAD; i++) room[threadIdx.y][column_of(i / QUAD) + i % QUAD] = sum.q[i / QUAD].v[i % QUAD];
    __syncthreads();
    for (int i = threadIdx.y * 32 + threadIdx.x; i < C; i += WARPS * 32) {
        float total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) total += room[w][i];
        to[i] = total;
    }
}

// JOINED: dx goes on into the residual connection; where nobody else reads it, it is not written.
template <int QUADS, bool JOINED>
static __global__ void __launch_bounds__(WARPS * 32)
    backward_kernel(const __grid_constant__ norm_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    step s = JOINED ? drop_step(j.drop) : step{};
    row_words<QUADS> bits = {};
    __shared__ float room[WARPS][QUADS * 32 * QUAD];
    columns<QUADS> gain = row_load<QUADS>(a.gain, 0, a.C), dgain = {}, dbias = {};
    int64_t end = a.rows * (blockIdx.x + 1) / gridDim.x;
    for (int64_t r = a.rows * blockIdx.x / gridDim.x + threadIdx.y; r < end; r += WARPS) {
        columns<QUADS> x = row_load<QUADS>(a.x, r * a.C, a.C), dy = row_load<QUADS>(a.y, r * a.C, a.C);
        if (JOINED) row_draw<QUADS>(&bits, j.drop, s, r, WARPS, a.C);
        float scale = centre<QUADS>(&x, a.C, a.eps), sum = 0, dot = 0;
#pragma unroll
        for (int i = 0; i < QUADS * QUAD; i++) {
            float *xhat = &x.q[i / QUAD].v[i % QUAD], *d = &dy.q[i / QUAD].v[i % QUAD];
            *xhat *= scale;
            dgain.q[i / QUAD].v[i % QUAD] += *d * *xhat;
            dbias.q[i / QUAD].v[i % QUAD] += *d;
            *d *= gain.q[i / QUAD].v[i % QUAD];
            sum += *d;
            dot += *d * *xhat;
        }
        sum = warp_sum(sum) / (float)a.C;
        dot = warp_sum(dot) / (float)a.C;
#pragma unroll
        for (int k = 0; k < QUADS; k++) {
#pragma unroll
            for (int e = 0; e < QUAD; e++) dy.q[k].v[e] = scale * (dy.q[k].v[e] - (sum + x.q[k].v[e] * dot));
            int64_t at = r * a.C + column_of(k);
            if (column_of(k) >= a.C) continue;
            if (JOINED) {
                if (a.dx.add) dy.q[k] = quad_add(dy.q[k], quad_load(a.dx, at));
                dy.q[k] = quad_rounded(a.dx.type, dy.q[k]);
                if (!j.alone) quad_store(a.dx, at, dy.q[k]);
                residual_backward(j, bits.q[k], at, dy.q[k]);
            } else if (a.dx.data) {
                quad_put(a.dx, at, dy.q[k]);
            }
        }
    }
    add_warps<QUADS>(dgain, room, a.part + (int64_t)blockIdx.x * 2 * a.C, a.C);
    add_warps<QUADS>(dbias, room, a.part + ((int64_t)blockIdx.x * 2 + 1) * a.C, a.C);
}

// Rows of any width

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
        view_store(a.y, at + i, (view_load(a.x, at + i) - x0 - m.mean) * m.scale * view_load(a.gain, i) + view_load(a.bias, i));
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
    a.eps = ((const layernorm_attr *)c->attr)->eps;
    return a;
}

static bool is_quads(const norm_args &a) {
    return a.C % QUAD == 0 && a.C <= WIDE;
}

// By sizes alone.
static int parts_of(const norm_args &a) {
    int64_t parts = (a.rows + WARPS - 1) / WARPS;
    return parts < PARTS_MOST ? (int)parts : (int)PARTS_MOST;
}

static unsigned blocks_of(const norm_args &a) {
    return (unsigned)((a.rows + WARPS - 1) / WARPS);
}

#define LAUNCH_WIDTHS(c, kernel, joined, blocks, a, j)                                                                 \
    do {                                                                                                               \
        if ((a).C <= WIDE / 8)                                                                                         \
            LAUNCH_EARLY(c, (kernel<1, joined>), blocks, dim3(32, WARPS), 0, a, j);                                    \
        else if ((a).C <= WIDE / 4)                                                                                    \
            LAUNCH_EARLY(c, (kernel<2, joined>), blocks, dim3(32, WARPS), 0, a, j);                                    \
        else if ((a).C <= WIDE / 2)                                                                                    \
            LAUNCH_EARLY(c, (kernel<4, joined>), blocks, dim3(32, WARPS), 0, a, j);                                    \
        else                                                                                                           \
            LAUNCH_EARLY(c, (kernel<8, joined>), blocks, dim3(32, WARPS), 0, a, j);                                    \
    } while (0)

static unsigned forward_blocks(const norm_args &a) {
    unsigned rows = blocks_of(a), most = 4 * PARTS_MOST;
    return rows < most ? rows : most;
}

static void forward(const call *c) {
    norm_args a = args_of(c);
    a.y = view_of(&c->out[0]);
    if (is_quads(a))
        LAUNCH_WIDTHS(c, forward_kernel, false, forward_blocks(a), a, residual_args{});
    else
        LAUNCH_EARLY(c, forward_any, blocks_of(a), dim3(32, WARPS), 0, a);
}

static size_t moments_bytes(const norm_args &a) {
    return is_quads(a) ? 0 : ((size_t)a.rows * sizeof(moments) + 63) / 64 * 64;
}

static norm_args backward_args(const call *c) {
    norm_args a = args_of(c);
    a.y = view_of(&c->dout[0]);
    a.dx = view_of(&c->din[0]);
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
    if (is_quads(a)) {
        LAUNCH_WIDTHS(c, backward_kernel, false, parts, a, residual_args{});
    } else {
        LAUNCH_EARLY(c, backward_any, blocks_of(a), dim3(32, WARPS), 0, a, kept);
        LAUNCH_EARLY(c, columns_any, dim3(blocks_for(a.C, 64), parts), 64, 0, a, kept);
    }
    add_parts(c, a);
}

bool layernorm_joins(const call *c) {
    return c->op == OP_layernorm && is_quads(args_of(c)) && (!c->backward || c->din[0].data);
}

void layernorm_launch_joined(const call *c, const residual_args *j) {
    norm_args a = c->backward ? backward_args(c) : args_of(c);
    if (c->backward) {
        LAUNCH_WIDTHS(c, backward_kernel, true, (unsigned)parts_of(a), a, *j);
        add_parts(c, a);
    } else {
        a.y = view_of(&c->out[0]);
        LAUNCH_WIDTHS(c, forward_kernel, true, forward_blocks(a), a, *j);
    }
}

static size_t scratch(const call *c) {
    norm_args a = args_of(c);
    return c->backward ? moments_bytes(a) + (size_t)parts_of(a) * 2 * (size_t)a.C * sizeof(float) : 0;
}

extern "C" const kernel cuda_layernorm = {forward, backward, scratch, NULL};
