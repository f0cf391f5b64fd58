// Matrix products on the card: C = op(A B), operands of any type, either dimension contiguous, converted as they are
// loaded.
//
// A block computes a 64 x 64 tile with four warps of 32 x 32; the next tile's operands are fetched to registers, four
// elements at a time where alignment allows, while the present one is multiplied. Where a product has few tiles but a long
// sum, the sum is cut into a fixed number of parts (by sizes alone) that go to scratch and are added in order.
#ifndef TRADEWIND_CUDA_GEMM_CUH
#define TRADEWIND_CUDA_GEMM_CUH

#include "cuda/activation.cuh"
#include "cuda/mma.cuh"

struct gemm_operand {
    view v;
    int64_t row, step; // element (i, k) is at i * row + k * step, and one of the two is 1; for B, (j, k)
    bool vectors;      // groups of four along the contiguous dimension may be loaded at once; set by gemm_product
};

struct gemm_args {
    gemm_operand a, b; // b by column: element (j, k) of its transpose
    int64_t m, n, k;
    int parts;
};

enum { GEMM_TILE = 64, GEMM_K = 32, GEMM_THREADS = 128, GEMM_PARTS_MOST = 64, GEMM_LD = GEMM_TILE + 8 };
enum { GEMM_GROUPS = GEMM_TILE * GEMM_K / 4 / GEMM_THREADS }; // of four elements, per thread

// How many parts the sum is cut into: enough blocks to fill a large card, parts of at least 128.
static inline int gemm_parts(int64_t m, int64_t n, int64_t k) {
    int64_t tiles = (m + GEMM_TILE - 1) / GEMM_TILE * ((n + GEMM_TILE - 1) / GEMM_TILE), parts = 256 / tiles;
    if (parts > k / 128) parts = k / 128;
    return parts < 1 ? 1 : parts > GEMM_PARTS_MOST ? (int)GEMM_PARTS_MOST : (int)parts;
}

static inline size_t gemm_scratch(int64_t m, int64_t n, int64_t k) {
    int parts = gemm_parts(m, n, k);
    return parts > 1 ? (size_t)(parts * m * n) * sizeof(float) : 0;
}

CUDA_FN float4 load_four(view v, int64_t i) {
    if (v.type == DTYPE_F32) return *(const float4 *)((const float *)v.data + i);
    uint2 w = *(const uint2 *)((const uint16_t *)v.data + i);
    if (v.type == DTYPE_BF16) {
        float2 a = __bfloat1622float2(*(__nv_bfloat162 *)&w.x), b = __bfloat1622float2(*(__nv_bfloat162 *)&w.y);
        return make_float4(a.x, a.y, b.x, b.y);
    }
    float2 a = __half22float2(*(__half2 *)&w.x), b = __half22float2(*(__half2 *)&w.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

// Group g of a thread: where its four elements lie in the tile. Along rows, neighbouring threads take neighbouring k, so
// that their stores, which are rows apart in shared memory, fall into different banks.
CUDA_FN void group_place(bool along_k, int g, int *i, int *k) {
    int e = threadIdx.x + g * GEMM_THREADS;
    *i = along_k ? e / (GEMM_K / 4) : e / GEMM_K * 4;
    *k = along_k ? e % (GEMM_K / 4) * 4 : e % GEMM_K;
}

// Element by element, for operands whose groups are not aligned or cross an edge.
static __device__ __noinline__ void gemm_fetch_slowly(float4 to[GEMM_GROUPS], const gemm_operand *o, int64_t i0, int64_t rows,
    int64_t k0, int64_t k1) {
    bool along_k = o->step == 1;
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        float v[4];
        group_place(along_k, g, &i, &k);
        for (int e = 0; e < 4; e++) {
            int64_t row = i0 + i + (along_k ? 0 : e), column = k0 + k + (along_k ? e : 0);
            v[e] = row < rows && column < k1 ? view_load(o->v, row * o->row + column * o->step) : 0.0f;
        }
        to[g] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

// A thread's share of a 64 x 32 tile, zeros beyond the edges. With `vectors` a group is inside or outside as a whole.
CUDA_FN void gemm_fetch(float4 to[GEMM_GROUPS], const gemm_operand &o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
    if (!o.vectors) {
        float4 slow[GEMM_GROUPS];
        gemm_fetch_slowly(slow, &o, i0, rows, k0, k1);
#pragma unroll
        for (int g = 0; g < GEMM_GROUPS; g++) to[g] = slow[g];
        return;
    }
    bool along_k = o.step == 1;
#pragma unroll
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        group_place(along_k, g, &i, &k);
        bool inside = i0 + i < rows && k0 + k < k1;
        to[g] = inside ? load_four(o.v, (i0 + i) * o.row + (k0 + k) * o.step) : make_float4(0, 0, 0, 0);
    }
}

template <typename E> CUDA_FN void gemm_put(E *to, int ld, bool along_k, const float4 from[GEMM_GROUPS]) {
#pragma unroll
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        group_place(along_k, g, &i, &k);
        E *at = to + i * ld + k;
        int next = along_k ? 1 : ld;
        convert(at, from[g].x);
        convert(at + next, from[g].y);
        convert(at + 2 * next, from[g].z);
        convert(at + 3 * next, from[g].w);
    }
}

// A block's tile and its part of the sum.
struct gemm_place {
    int64_t i0, j0, k0, k1;
};

CUDA_FN gemm_place gemm_place_of(const gemm_args &g, int tile_m, int tile_n, int part) {
    int64_t i0 = (int64_t)tile_m * GEMM_TILE, j0 = (int64_t)tile_n * GEMM_TILE;
    return gemm_place{i0, j0, g.k * part / g.parts, g.k * (part + 1) / g.parts};
}

// The sum of a block's tile, in registers: acc[m16 tile][n8 tile][4] of the warp's 32 x 32 part. `room` is the block's
// shared memory, GEMM_TILE * GEMM_LD floats. With `sums`, the first 64 threads return the sum of a row of A each.
template <int MATH>
CUDA_FN float gemm_tile(const gemm_args &g, const gemm_place &p, float acc[2][4][4], float *room, bool sums) {
    typedef typename math_type<MATH>::element E;
    const int ld = GEMM_K + (sizeof(E) == 2 ? 8 : 4);
    E *sa = (E *)room, *sb = sa + GEMM_TILE * ld;
    int warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    int64_t i0 = p.i0, j0 = p.j0, k1 = p.k1;
    float sum = 0;
    float4 fa[GEMM_GROUPS], fb[GEMM_GROUPS];
    gemm_fetch(fa, g.a, i0, g.m, p.k0, k1);
    gemm_fetch(fb, g.b, j0, g.n, p.k0, k1);
    for (int64_t k0 = p.k0; k0 < k1; k0 += GEMM_K) {
        gemm_put(sa, ld, g.a.step == 1, fa);
        gemm_put(sb, ld, g.b.step == 1, fb);
        __syncthreads();
        if (k0 + GEMM_K < k1) {
            gemm_fetch(fa, g.a, i0, g.m, k0 + GEMM_K, k1);
            gemm_fetch(fb, g.b, j0, g.n, k0 + GEMM_K, k1);
        }
        if (sums && threadIdx.x < GEMM_TILE) {
#pragma unroll 8
            for (int k = 0; k < GEMM_K; k++) sum += widen(sa[threadIdx.x * ld + k]);
        }
#pragma unroll
        for (int k = 0; k < GEMM_K; k += math_type<MATH>::K) {
            frag_b b[4];
#pragma unroll
            for (int j = 0; j < 4; j++) b[j] = load_b<MATH>(sb + (wn + j * 8) * ld + k, ld);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                frag_a a = load_a<MATH>(sa + (wm + i * 16) * ld + k, ld);
#pragma unroll
                for (int j = 0; j < 4; j++) mma<MATH>(acc[i][j], a, b[j]);
            }
        }
        __syncthreads();
    }
    return sum;
}

// The tile to shared memory, row by row, so that what follows is coalesced.
CUDA_FN void gemm_spread(const float acc[2][4][4], float *room) {
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int row = warp / 2 * 32 + i * 16 + g + e / 2 * 8, column = warp % 2 * 32 + j * 8 + t * 2 + e % 2;
                room[row * GEMM_LD + column] = acc[i][j][e];
            }
    __syncthreads();
}

// Products with an epilogue: bias, activation, and overwriting or adding as the destination says.

struct gemm_finish {
    view out, bias;
    float *kept; // z, for GELU
    int act;
};

CUDA_FN void gemm_finish_element(const gemm_finish &f, int64_t i, float bias, float v) {
    v += bias;
    if (f.kept) f.kept[i] = v;
    view_put(f.out, i, activate(f.act, v));
}

template <int MATH>
static __global__ void __launch_bounds__(GEMM_THREADS) gemm_kernel(gemm_args g, gemm_finish f, float *parts) {
    __shared__ float room[GEMM_TILE * GEMM_LD];
    float acc[2][4][4] = {};
    gemm_tile<MATH>(g, gemm_place_of(g, blockIdx.x, blockIdx.y, blockIdx.z), acc, room, false);
    gemm_spread(acc, room);
    // Threads run down columns: a thread keeps its column, and neighbours write neighbouring elements.
    int column = threadIdx.x % GEMM_TILE;
    int64_t to = (int64_t)blockIdx.y * GEMM_TILE + column;
    float bias = f.bias.data && to < g.n ? view_load(f.bias, to) : 0.0f;
#pragma unroll 4
    for (int r = threadIdx.x / GEMM_TILE; r < GEMM_TILE; r += GEMM_THREADS / GEMM_TILE) {
        int64_t row = (int64_t)blockIdx.x * GEMM_TILE + r;
        if (row >= g.m || to >= g.n) continue;
        float v = room[r * GEMM_LD + column];
        if (parts) {
            parts[(blockIdx.z * g.m + row) * g.n + to] = v;
        } else {
            gemm_finish_element(f, row * g.n + to, bias, v);
        }
    }
}

static __global__ void gemm_add_kernel(const float *parts, int count, int64_t m, int64_t n, gemm_finish f) {
    FOR_EACH(i, m * n) {
        float sum = 0;
#pragma unroll 8
        for (int p = 0; p < count; p++) sum += parts[p * m * n + i];
        gemm_finish_element(f, i, f.bias.data ? view_load(f.bias, i % n) : 0.0f, sum);
    }
}

// Whether an operand's groups of four are aligned and never cross an edge. `along` is its size in the contiguous
// dimension; parts of a sum must start at multiples of four.
static inline bool gemm_vectors(const gemm_operand *o, int64_t rows, int64_t k, int parts) {
    size_t bytes = 4 * dtype_bytes((dtype)o->v.type);
    bool along_k = o->step == 1;
    int64_t other = along_k ? o->row : o->step, along = along_k ? k : rows;
    if (along_k && parts > 1 && k % (4 * parts)) return false;
    return o->v.type <= DTYPE_BF16 && (uintptr_t)o->v.data % bytes == 0 && other % 4 == 0 && along % 4 == 0;
}

static inline void gemm_product(const call *c, int math, gemm_args g, const gemm_finish &f, float *parts) {
    g.parts = gemm_parts(g.m, g.n, g.k);
    dim3 grid((unsigned)((g.m + GEMM_TILE - 1) / GEMM_TILE), (unsigned)((g.n + GEMM_TILE - 1) / GEMM_TILE), g.parts);
    float *to = g.parts > 1 ? parts : NULL;
    g.a.vectors = gemm_vectors(&g.a, g.m, g.k, g.parts);
    g.b.vectors = gemm_vectors(&g.b, g.n, g.k, g.parts);
    switch (math) {
    case MATH_BF16: LAUNCH(c, gemm_kernel<MATH_BF16>, grid, GEMM_THREADS, 0, g, f, to); break;
    case MATH_F16: LAUNCH(c, gemm_kernel<MATH_F16>, grid, GEMM_THREADS, 0, g, f, to); break;
    case MATH_TF32: LAUNCH(c, gemm_kernel<MATH_TF32>, grid, GEMM_THREADS, 0, g, f, to); break;
    default: LAUNCH(c, gemm_kernel<MATH_F32>, grid, GEMM_THREADS, 0, g, f, to); break;
    }
    if (to) LAUNCH(c, gemm_add_kernel, blocks_for(g.m * g.n, 256), 256, 0, to, g.parts, g.m, g.n, f);
}

// Column sums

enum { SUM_PIECES = 64 };

static __global__ void column_sums_kernel(view dz, float *part, int64_t rows, int64_t O) {
    int64_t o = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, piece = blockIdx.y;
    if (o >= O) return;
    float sum = 0;
    for (int64_t r = piece * rows / SUM_PIECES; r < (piece + 1) * rows / SUM_PIECES; r++) sum += view_load(dz, r * O + o);
    part[piece * O + o] = sum;
}

static __global__ void column_add_kernel(const float *part, view db, int64_t O) {
    FOR_EACH(o, O) {
        float sum = 0;
#pragma unroll 16
        for (int p = 0; p < SUM_PIECES; p++) sum += part[p * O + o];
        view_put(db, o, sum);
    }
}

// The sum of each column of v [rows, n] into `to`: fixed pieces of rows to scratch, then their sums.
static inline size_t column_sums_scratch(int64_t n) {
    return (size_t)(SUM_PIECES * n) * sizeof(float);
}

static inline void column_sums(const call *c, view v, int64_t rows, int64_t n, view to, float *part) {
    LAUNCH(c, column_sums_kernel, dim3(blocks_for(n, 64), SUM_PIECES), 64, 0, v, part, rows, n);
    LAUNCH(c, column_add_kernel, blocks_for(n, 64), 64, 0, part, to, n);
}

#endif
