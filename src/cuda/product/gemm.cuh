// Matrix products on the card: C = op(A B), operands of any type, either dimension contiguous, converted as they are
// loaded.
//
// A block computes a 64 x 64 tile with four warps of 32 x 32; the next tile's operands are fetched to registers, four
// elements at a time where alignment allows, while the present one is multiplied, and converted as they are put into
// shared memory. Where a product has few tiles but a long sum, the sum is cut into a fixed number of parts (by sizes
// alone) that go to scratch and are added in order; not so in fp32, where a row's results do not depend on how many
// rows there are.
#ifndef TRADEWIND_CUDA_PRODUCT_GEMM_CUH
#define TRADEWIND_CUDA_PRODUCT_GEMM_CUH

#include "cuda/ops/activation.cuh"
#include "cuda/product/mma.cuh"

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

enum {
    GEMM_TILE = 64,
    GEMM_K = 32,
    GEMM_THREADS = 128,
    GEMM_PARTS_MOST = 64,
    GEMM_BLOCKS = 256,
    GEMM_LD = GEMM_TILE + 8
};
enum { GEMM_GROUPS = GEMM_TILE * GEMM_K / 4 / GEMM_THREADS }; // of four elements, per thread

// How many parts the sum is cut into: about GEMM_BLOCKS blocks, parts of at least 128. On every card: scratch is
// planned for them before one is known, and they decide the order of sums.
static inline int gemm_parts(int math, int64_t m, int64_t n, int64_t k) {
    if (math == MATH_F32) return 1;
    int64_t tiles = (m + GEMM_TILE - 1) / GEMM_TILE * ((n + GEMM_TILE - 1) / GEMM_TILE), parts = GEMM_BLOCKS / tiles;
    if (parts > k / 128) parts = k / 128;
    return parts < 1 ? 1 : parts > GEMM_PARTS_MOST ? (int)GEMM_PARTS_MOST : (int)parts;
}

static inline size_t gemm_scratch(int math, int64_t m, int64_t n, int64_t k) {
    int parts = gemm_parts(math, m, n, k);
    return parts > 1 ? (size_t)(parts * m * n) * sizeof(float) : 0;
}

// A thread's share of an operand's 64 x 32 tile: groups of four elements along the contiguous dimension, as they lie in
// memory (two words of a group are unused where elements have 2 bytes; bytes are widened). In shared memory a tile is
// laid out as its operand: rows of k where k is contiguous, else rows of i.
struct gemm_share {
    uint4 group[GEMM_GROUPS];
};

CUDA_FN bool along_k(const gemm_operand &o) {
    return o.step == 1;
}

CUDA_FN void group_place(bool along_k, int g, int *i, int *k) {
    int e = threadIdx.x + g * GEMM_THREADS;
    *i = along_k ? e / (GEMM_K / 4) : e % (GEMM_TILE / 4) * 4;
    *k = along_k ? e % (GEMM_K / 4) * 4 : e / (GEMM_TILE / 4);
}

// Loads of one type go out together: the choice of a type stands outside.
template <typename W, typename S>
CUDA_FN void fetch_groups(gemm_share *to, const gemm_operand &o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
#pragma unroll
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        group_place(along_k(o), g, &i, &k);
        to->group[g] = make_uint4(0, 0, 0, 0);
        if (i0 + i < rows && k0 + k < k1)
            *(W *)&to->group[g] = *(const W *)((const S *)o.v.data + (i0 + i) * o.row + (k0 + k) * o.step);
    }
}

// Element by element, for operands whose groups are not aligned or cross an edge.
template <typename S>
CUDA_FN void fetch_elements(gemm_share *to, const gemm_operand &o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
    bool down = !along_k(o);
#pragma unroll
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        group_place(!down, g, &i, &k);
        S v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int64_t row = i0 + i + (down ? e : 0), column = k0 + k + (down ? 0 : e);
            v[e] = S();
            if (row < rows && column < k1) v[e] = ((const S *)o.v.data)[row * o.row + column * o.step];
        }
        to->group[g] = make_uint4(0, 0, 0, 0);
        memcpy(&to->group[g], v, sizeof v);
    }
}

static __device__ __noinline__ void fetch_bytes(
    gemm_share *to, gemm_operand o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
    for (int n = 0; n < 4 * GEMM_GROUPS; n++) {
        int i, k, e = n % 4;
        group_place(along_k(o), n / 4, &i, &k);
        int64_t row = i0 + i + (along_k(o) ? 0 : e), column = k0 + k + (along_k(o) ? e : 0);
        ((float *)to->group)[n] = row < rows && column < k1 ? view_load(o.v, row * o.row + column * o.step) : 0.0f;
    }
}

CUDA_FN void gemm_fetch(gemm_share *to, const gemm_operand &o, int64_t i0, int64_t rows, int64_t k0, int64_t k1) {
    bool narrow = o.v.type == DTYPE_BF16 || o.v.type == DTYPE_F16;
    if (o.vectors) {
        narrow ? fetch_groups<uint2, uint16_t>(to, o, i0, rows, k0, k1)
               : fetch_groups<uint4, float>(to, o, i0, rows, k0, k1);
    } else if (narrow) {
        fetch_elements<uint16_t>(to, o, i0, rows, k0, k1);
    } else if (o.v.type == DTYPE_F32) {
        fetch_elements<float>(to, o, i0, rows, k0, k1);
    } else {
        gemm_share share;
        fetch_bytes(&share, o, i0, rows, k0, k1);
        *to = share;
    }
}

CUDA_FN float4 decode_group(int type, uint4 w) {
    if (type == DTYPE_BF16) {
        float2 a = __bfloat1622float2(*(__nv_bfloat162 *)&w.x), b = __bfloat1622float2(*(__nv_bfloat162 *)&w.y);
        return make_float4(a.x, a.y, b.x, b.y);
    }
    if (type == DTYPE_F16) {
        float2 a = __half22float2(*(__half2 *)&w.x), b = __half22float2(*(__half2 *)&w.y);
        return make_float4(a.x, a.y, b.x, b.y);
    }
    return *(float4 *)&w;
}

// Four terms side by side, whose places are four apart in fp32.
template <int MATH> CUDA_FN void put_four(typename math_type<MATH>::element *row, int k, uint4 w) {
    if constexpr (MATH == MATH_F32) {
        float *to = row + place_of_term<MATH>(k);
        to[0] = __uint_as_float(w.x), to[4] = __uint_as_float(w.y);
        to[8] = __uint_as_float(w.z), to[12] = __uint_as_float(w.w);
    } else {
        if (sizeof(*row) == 4) *(uint4 *)(row + k) = w;
        if (sizeof(*row) == 2) *(uint2 *)(row + k) = make_uint2(w.x, w.y);
    }
}

// Elements of the product's own type go as they are.
template <int MATH>
CUDA_FN void gemm_put(typename math_type<MATH>::element *to, int ld, const gemm_operand &o, const gemm_share &from) {
    const int own = MATH == MATH_BF16 ? DTYPE_BF16 : MATH == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
#pragma unroll
    for (int g = 0; g < GEMM_GROUPS; g++) {
        int i, k;
        group_place(along_k(o), g, &i, &k);
        uint4 w = from.group[g];
        if (o.v.type != own) {
            float4 v = decode_group(o.v.type, w);
            if (sizeof(*to) == 4) w = *(uint4 *)&v;
            if (sizeof(*to) == 2) w = make_uint4(pair_word<MATH>(v.x, v.y), pair_word<MATH>(v.z, v.w), 0, 0);
        }
        if (along_k(o)) {
            put_four<MATH>(to + i * ld, k, w);
            continue;
        }
        void *at = to + place_of_term<MATH>(k) * ld + i;
        if (sizeof(*to) == 4) *(uint4 *)at = w;
        if (sizeof(*to) == 2) *(uint2 *)at = make_uint2(w.x, w.y);
    }
}

// Fragments from a tile in shared memory: 16 rows from `i` of A, 16 columns from `j` of B, both from `k` on.
template <int MATH> CUDA_FN frag_a gemm_a(uint32_t s, int ld, bool along_k, int i, int k) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    frag_a a;
    if constexpr (math_type<MATH>::K == 16) {
        if (along_k) {
            load_matrices(a.w, s + ((i + lane % 16) * ld + k + lane / 16 * 8) * 2);
        } else {
            load_matrices_turned(a.w, s + ((k + lane / 16 * 8 + lane % 8) * ld + i + lane / 8 % 2 * 8) * 2);
        }
    } else {
        uint32_t at = s + (along_k ? (i + g) * ld + k + t : (k + t) * ld + i + g) * 4;
        uint32_t below = along_k ? 8 * ld * 4 : 32, far = along_k ? 16 : 4 * ld * 4;
        a = frag_a{{shared_word(at), shared_word(at + below), shared_word(at + far), shared_word(at + below + far)}};
    }
    return a;
}

template <int MATH> CUDA_FN void gemm_b(frag_b b[2], uint32_t s, int ld, bool along_k, int j, int k) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if constexpr (math_type<MATH>::K == 16) {
        uint32_t w[4];
        if (along_k) {
            load_matrices(w, s + ((j + lane / 16 * 8 + lane % 8) * ld + k + lane / 8 % 2 * 8) * 2);
        } else {
            load_matrices_turned(w, s + ((k + lane % 16) * ld + j + lane / 16 * 8) * 2);
        }
        b[0] = frag_b{{w[0], w[1]}};
        b[1] = frag_b{{w[2], w[3]}};
    } else {
        uint32_t at = s + (along_k ? (j + g) * ld + k + t : (k + t) * ld + j + g) * 4;
        uint32_t next = along_k ? 8 * ld * 4 : 32, far = along_k ? 16 : 4 * ld * 4;
        b[0] = frag_b{{shared_word(at), shared_word(at + far)}};
        b[1] = frag_b{{shared_word(at + next), shared_word(at + next + far)}};
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
// shared memory, GEMM_TILE * GEMM_LD floats.
template <int MATH> CUDA_FN void gemm_tile(const gemm_args &g, const gemm_place &p, float acc[2][4][4], float *room) {
    typedef typename math_type<MATH>::element E;
    const int short_ld = GEMM_K + (sizeof(E) == 2 ? 8 : 4), long_ld = GEMM_TILE + 8;
    const int lda = along_k(g.a) ? short_ld : long_ld, ldb = along_k(g.b) ? short_ld : long_ld;
    E *sa = (E *)room, *sb = (E *)(room + GEMM_TILE * GEMM_LD / 2);
    const uint32_t a_at = shared_address(sa), b_at = shared_address(sb);
    int warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    gemm_share fa, fb;
    gemm_fetch(&fa, g.a, p.i0, g.m, p.k0, p.k1);
    gemm_fetch(&fb, g.b, p.j0, g.n, p.k0, p.k1);
    for (int64_t k0 = p.k0; k0 < p.k1; k0 += GEMM_K) {
        gemm_put<MATH>(sa, lda, g.a, fa);
        gemm_put<MATH>(sb, ldb, g.b, fb);
        __syncthreads();
        if (k0 + GEMM_K < p.k1) {
            gemm_fetch(&fa, g.a, p.i0, g.m, k0 + GEMM_K, p.k1);
            gemm_fetch(&fb, g.b, p.j0, g.n, k0 + GEMM_K, p.k1);
        }
#pragma unroll
        for (int k = 0; k < GEMM_K; k += math_type<MATH>::K) {
            frag_b b[4];
            gemm_b<MATH>(b, b_at, ldb, along_k(g.b), wn, k);
            gemm_b<MATH>(b + 2, b_at, ldb, along_k(g.b), wn + 16, k);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                frag_a a = gemm_a<MATH>(a_at, lda, along_k(g.a), wm + i * 16, k);
#pragma unroll
                for (int j = 0; j < 4; j++) mma<MATH>(acc[i][j], a, b[j]);
            }
        }
        __syncthreads();
    }
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
    void *kept; // z, for GELU, in the type of `out`
    int act;
    int64_t row = 0; // elements of `out` from one row to the next; 0: rows lie side by side
};

CUDA_FN void gemm_finish_element(const gemm_finish &f, int64_t i, float bias, float v) {
    v += bias;
    if (f.kept) view_store(view{f.kept, f.out.type, false}, i, v);
    view_put(f.out, i, activate(f.act, v));
}

template <int MATH>
static __global__ void __launch_bounds__(GEMM_THREADS)
    gemm_kernel(const __grid_constant__ gemm_args g, const __grid_constant__ gemm_finish f, float *parts) {
    __shared__ float room[GEMM_TILE * GEMM_LD];
    float acc[2][4][4] = {};
    gemm_tile<MATH>(g, gemm_place_of(g, blockIdx.x, blockIdx.y, blockIdx.z), acc, room);
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
            gemm_finish_element(f, row * (f.row ? f.row : g.n) + to, bias, v);
        }
    }
}

static __global__ void gemm_add_kernel(const float *parts, int count, int64_t m, int64_t n, gemm_finish f) {
    FOR_EACH(i, m * n) {
        float sum = 0;
#pragma unroll 8
        for (int p = 0; p < count; p++) sum += parts[p * m * n + i];
        int64_t row = i / n, to = i % n;
        gemm_finish_element(f, row * (f.row ? f.row : n) + to, f.bias.data ? view_load(f.bias, to) : 0.0f, sum);
    }
}

// True if an operand's groups of four are aligned and never cross an edge. `along` is its size in the contiguous
// dimension; parts of a sum must start at multiples of four.
static inline bool gemm_vectors(const gemm_operand *o, int64_t rows, int64_t k, int parts) {
    size_t bytes = 4 * dtype_bytes((dtype)o->v.type);
    bool along_k = o->step == 1;
    int64_t other = along_k ? o->row : o->step, along = along_k ? k : rows;
    if (along_k && parts > 1 && k % (4 * parts)) return false;
    return o->v.type <= DTYPE_BF16 && (uintptr_t)o->v.data % bytes == 0 && other % 4 == 0 && along % 4 == 0;
}

static inline void gemm_product(const call *c, int math, gemm_args g, const gemm_finish &f, float *parts) {
    g.parts = gemm_parts(math, g.m, g.n, g.k);
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

#endif
