// Matrix products on the card: C = op(A B), operands of any type and stride, converted as they are loaded.
//
// A block computes a 64 x 64 tile with four warps of 32 x 32. Where a product has few tiles but a long sum, the sum is cut
// into a fixed number of parts (by sizes alone) that go to scratch and are added in order.
#ifndef TRADEWIND_CUDA_GEMM_CUH
#define TRADEWIND_CUDA_GEMM_CUH

#include "cuda/mma.cuh"

struct gemm_operand {
    view v;
    int64_t row, step; // element (i, k) is at i * row + k * step; for B, (j, k)
};

struct gemm_args {
    gemm_operand a, b; // b by column: element (j, k) of its transpose
    int64_t m, n, k;
    int parts;
};

enum { GEMM_TILE = 64, GEMM_K = 32, GEMM_THREADS = 128, GEMM_PARTS_MOST = 64 };

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

// A 64 x 32 tile into shared memory, zeros beyond the edges. Neighbouring threads read neighbouring elements.
template <typename E>
static __device__ void gemm_load(E *to, int ld, const gemm_operand &o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
#pragma unroll 4
    for (int e = threadIdx.x; e < GEMM_TILE * GEMM_K; e += GEMM_THREADS) {
        int i = o.step == 1 ? e / GEMM_K : e % GEMM_TILE, k = o.step == 1 ? e % GEMM_K : e / GEMM_TILE;
        bool inside = i0 + i < rows && k0 + k < k1;
        convert(&to[i * ld + k], inside ? view_load(o.v, (i0 + i) * o.row + (k0 + k) * o.step) : 0.0f);
    }
}

// The sum of a block's tile, in registers: acc[m16 tile][n8 tile][4] of the warp's 32 x 32 part.
template <int MATH> CUDA_FN void gemm_tile(const gemm_args &g, float acc[2][4][4]) {
    typedef typename math_type<MATH>::element E;
    const int pad = sizeof(E) == 2 ? 8 : 4, ld = GEMM_K + pad;
    __shared__ E sa[GEMM_TILE * (GEMM_K + 8)], sb[GEMM_TILE * (GEMM_K + 8)];
    int warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    int64_t k0 = g.k * blockIdx.z / g.parts, k1 = g.k * (blockIdx.z + 1) / g.parts;
    for (; k0 < k1; k0 += GEMM_K) {
        gemm_load(sa, ld, g.a, (int64_t)blockIdx.x * GEMM_TILE, g.m, k0, k1);
        gemm_load(sb, ld, g.b, (int64_t)blockIdx.y * GEMM_TILE, g.n, k0, k1);
        __syncthreads();
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
}

// Where element e of acc[i][j] lies in C.
CUDA_FN void gemm_place(int i, int j, int e, int64_t *row, int64_t *column) {
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    *row = (int64_t)blockIdx.x * GEMM_TILE + warp / 2 * 32 + i * 16 + g + (e / 2) * 8;
    *column = (int64_t)blockIdx.y * GEMM_TILE + warp % 2 * 32 + j * 8 + t * 2 + e % 2;
}

// Products with an epilogue: bias, activation, and overwriting or adding as the destination says.

CUDA_FN float activate(int act, float z) {
    switch (act) {
    case ACT_RELU: return z > 0 ? z : 0;
    case ACT_GELU: return 0.5f * z * (1 + erff(z * 0.70710678f));
    case ACT_TANH: return tanhf(z);
    case ACT_SIGMOID: return 1 / (1 + expf(-z));
    default: return z;
    }
}

struct gemm_finish {
    view out, bias;
    float *kept; // z, for GELU
    int act;
};

static __device__ __noinline__ void gemm_finish_element(const gemm_finish &f, int64_t i, int64_t column, float v) {
    if (f.bias.data) v += view_load(f.bias, column);
    if (f.kept) f.kept[i] = v;
    view_put(f.out, i, activate(f.act, v));
}

template <int MATH> static __global__ void __launch_bounds__(GEMM_THREADS) gemm_kernel(gemm_args g, gemm_finish f, float *parts) {
    float acc[2][4][4] = {};
    gemm_tile<MATH>(g, acc);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int64_t row, column;
                gemm_place(i, j, e, &row, &column);
                if (row >= g.m || column >= g.n) continue;
                if (parts) {
                    parts[(blockIdx.z * g.m + row) * g.n + column] = acc[i][j][e];
                } else {
                    gemm_finish_element(f, row * g.n + column, column, acc[i][j][e]);
                }
            }
}

static __global__ void gemm_add_kernel(const float *parts, int count, int64_t m, int64_t n, gemm_finish f) {
    FOR_EACH(i, m * n) {
        float sum = 0;
        for (int p = 0; p < count; p++) sum += parts[p * m * n + i];
        gemm_finish_element(f, i, i % n, sum);
    }
}

static void gemm_product(const call *c, int math, gemm_args g, const gemm_finish &f, float *parts) {
    g.parts = gemm_parts(g.m, g.n, g.k);
    dim3 grid((unsigned)((g.m + GEMM_TILE - 1) / GEMM_TILE), (unsigned)((g.n + GEMM_TILE - 1) / GEMM_TILE), g.parts);
    float *to = g.parts > 1 ? parts : NULL;
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
        for (int p = 0; p < SUM_PIECES; p++) sum += part[p * O + o];
        view_put(db, o, sum);
    }
}

// The sum of each column of v [rows, n] into `to`: fixed pieces of rows to scratch, then their sums.
static size_t column_sums_scratch(int64_t n) {
    return (size_t)(SUM_PIECES * n) * sizeof(float);
}

static void column_sums(const call *c, view v, int64_t rows, int64_t n, view to, float *part) {
    LAUNCH(c, column_sums_kernel, dim3(blocks_for(n, 64), SUM_PIECES), 64, 0, v, part, rows, n);
    LAUNCH(c, column_add_kernel, blocks_for(n, 64), 64, 0, part, to, n);
}

#endif
