// mean_time on the card: see ops/mean_time.c. A block does a sample: a thread takes every so many steps of eight
// neighbouring columns, several of them on their way at once, and the threads' sums are added in order. Where rows are
// no multiple of eight wide, or very wide, a thread does a column of a sample. A residual connection may be joined: see
// cuda/join/residual.cuh.
#include "cuda/join/residual.cuh"

extern "C" {
#include "ops/ops.h"
}

enum { THREADS = 128, AT_ONCE = 4, WIDE = THREADS * OCTET };

struct mean_args {
    view x, mask; // backward: x is dx
    view y;       // backward: dy
    int64_t B, T, C;
};

CUDA_FN bool is_step(const mean_args &a, int64_t b, int64_t t) {
    return !a.mask.data || view_load(a.mask, b * a.T + t) != 0;
}

CUDA_FN float share_of(int64_t steps) {
    return steps ? 1.0f / (float)steps : 0.0f;
}

CUDA_FN float share(const mean_args &a, int64_t b) {
    int64_t steps = a.mask.data ? 0 : a.T;
    for (int64_t t = 0; a.mask.data && t < a.T; t++) steps += is_step(a, b, t);
    return share_of(steps);
}

// A thread's place in its block: its columns, and the first of its steps, which are `down` apart.
struct mean_place {
    int column, first, down;
};

CUDA_FN mean_place place_of(const mean_args &a) {
    int across = (int)a.C / OCTET, down = THREADS / across, row = threadIdx.x / across;
    return mean_place{(int)threadIdx.x % across * OCTET, row < down ? row : INT32_MAX, down};
}

// The types X and Y are those of cuda/join/residual.cuh. JOINED: x is the result of the residual connection, which is
// not written.
template <int X, int Y, bool JOINED>
static __global__ void __launch_bounds__(THREADS)
    forward_kernel(const __grid_constant__ mean_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    __shared__ float room[WIDE];
    __shared__ int counts[THREADS];
    random_key s = JOINED ? random_key_of(j.drop.at) : random_key{};
    const view &from = JOINED ? j.x : a.x;
    mean_place p = place_of(a);
    int64_t b = blockIdx.x;
    octet sum = {};
    int steps = 0;
    for (int64_t t0 = p.first; t0 < a.T; t0 += p.down * AT_ONCE) {
        octet_raw x[AT_ONCE] = {}, y[AT_ONCE] = {};
        bool in[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) in[u] = t0 + u * p.down < a.T && is_step(a, b, t0 + u * p.down);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            int64_t at = (b * a.T + t0 + u * p.down) * a.C + p.column;
            if (in[u]) x[u] = octet_fetch<X>(from, at);
            if (in[u] && JOINED) y[u] = octet_fetch<Y>(j.y, at);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            int64_t at = (b * a.T + t0 + u * p.down) * a.C + p.column;
            octet z = octet_of<X>(from, x[u]);
            if (!in[u]) continue;
            if (JOINED) z = residual_sum<X, Y>(j, s, at, z, octet_of<Y>(j.y, y[u]));
            sum = octet_add(sum, z);
            steps++;
        }
    }
    if (p.first < p.down) {
#pragma unroll
        for (int e = 0; e < OCTET; e++) room[p.first * (int)a.C + p.column + e] = sum.v[e];
        if (p.column == 0) counts[p.first] = steps;
    }
    __syncthreads();
    int total = 0;
    for (int d = 0; d < p.down; d++) total += counts[d];
    for (int i = threadIdx.x; i < (int)a.C; i += THREADS) {
        float all = 0;
        for (int d = 0; d < p.down; d++) all += room[d * (int)a.C + i];
        view_store(a.y, b * a.C + i, all * share_of(total));
    }
}

// JOINED: dx goes on into the residual connection and is not written.
template <int X, int Y, bool JOINED>
static __global__ void __launch_bounds__(THREADS)
    backward_kernel(const __grid_constant__ mean_args a, const __grid_constant__ residual_args j) {
    cuda_begin();
    random_key s = JOINED ? random_key_of(j.drop.at) : random_key{};
    mean_place p = place_of(a);
    int64_t b = blockIdx.x;
    octet d = octet_times(octet_load<TYPE_ANY>(a.y, b * a.C + p.column), share(a, b));
#pragma unroll 2
    for (int64_t t = p.first; t < a.T; t += p.down) {
        int64_t at = (b * a.T + t) * a.C + p.column;
        octet dx = is_step(a, b, t) ? d : octet{};
        if (JOINED) {
            residual_backward<X, Y>(j, s, at, octet_rounded<X>(a.x, dx));
        } else {
            octet_put<X>(a.x, at, dx);
        }
    }
}

// Rows of any width

static __global__ void forward_any(const __grid_constant__ mean_args a) {
    cuda_begin();
    FOR_EACH(i, a.B * a.C) {
        int64_t b = i / a.C, j = i % a.C;
        float sum = 0;
#pragma unroll 8
        for (int64_t t = 0; t < a.T; t++)
            if (is_step(a, b, t)) sum += view_load(a.x, (b * a.T + t) * a.C + j);
        view_store(a.y, i, sum * share(a, b));
    }
}

static __global__ void backward_any(const __grid_constant__ mean_args a) {
    cuda_begin();
    FOR_EACH(i, a.B * a.C) {
        int64_t b = i / a.C, j = i % a.C;
        float d = view_load(a.y, i) * share(a, b);
#pragma unroll 4
        for (int64_t t = 0; t < a.T; t++) view_put(a.x, (b * a.T + t) * a.C + j, is_step(a, b, t) ? d : 0.0f);
    }
}

// Launches

static mean_args args_of(const call *c) {
    shape s = c->in[0].shape;
    mean_args a = {view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->out[0]), s.dim[0], s.dim[1], s.dim[2]};
    if (c->backward) a.x = view_of(&c->din[0]);
    if (c->backward) a.y = view_of(&c->dout[0]);
    return a;
}

static bool is_octets(const mean_args &a) {
    return a.C % OCTET == 0 && a.C <= WIDE && a.B <= INT32_MAX && a.x.type <= DTYPE_BF16 && a.y.type <= DTYPE_BF16;
}

template <int X, int Y, bool JOINED>
static void launch_typed(const call *c, const mean_args &a, const residual_args &j) {
    if (c->backward) {
        LAUNCH_EARLY(c, (backward_kernel<X, Y, JOINED>), (unsigned)a.B, THREADS, 0, a, j);
    } else {
        LAUNCH_EARLY(c, (forward_kernel<X, Y, JOINED>), (unsigned)a.B, THREADS, 0, a, j);
    }
}

static void launch(const call *c) {
    mean_args a = args_of(c);
    if (!is_octets(a)) {
        if (c->backward) {
            LAUNCH_EARLY(c, backward_any, blocks_for(a.B * a.C, 128), 128, 0, a);
        } else {
            LAUNCH_EARLY(c, forward_any, blocks_for(a.B * a.C, 128), 128, 0, a);
        }
    } else if (a.x.type == DTYPE_F32) {
        launch_typed<DTYPE_F32, DTYPE_F32, false>(c, a, residual_args{});
    } else {
        launch_typed<TYPE_ANY, TYPE_ANY, false>(c, a, residual_args{});
    }
}

bool mean_time_joins(const call *c) {
    return c->op == OP_mean_time && is_octets(args_of(c)) && (!c->backward || !c->din[0].add);
}

void mean_time_launch_joined(const call *c, const residual_args *j) {
    mean_args a = args_of(c);
    if (residual_types(j, DTYPE_F32, DTYPE_BF16)) {
        launch_typed<DTYPE_F32, DTYPE_BF16, true>(c, a, *j);
    } else if (residual_types(j, DTYPE_F32, DTYPE_F16)) {
        launch_typed<DTYPE_F32, DTYPE_F16, true>(c, a, *j);
    } else {
        launch_typed<TYPE_ANY, TYPE_ANY, true>(c, a, *j);
    }
}

extern "C" const kernel cuda_mean_time = {launch, launch, NULL, NULL};
