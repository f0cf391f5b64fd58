// attention on tensor cores, for one way of multiplying: see cuda/attention.cuh.
//
// Shared memory has the block's heads side by side, a tile each of queries, keys, values and, backward, gradients of y:
// [rows][stride], zeros past the edges and for keys that are padding. A warp takes 16 rows of a head at a time. Scores,
// probabilities and their gradients stay in registers, 16 rows by 8 NT columns: the result of one product is the left
// operand of the next. Forward and dq go by queries; dk and dv by keys, from scores computed the other way round. So every
// sum has one owner and one order, and there are no atomics.
// Rows are an odd number of 16-byte units apart, which keeps lanes out of each other's banks.
#ifndef TRADEWIND_CUDA_ATTENTION_KERNEL_CUH
#define TRADEWIND_CUDA_ATTENTION_KERNEL_CUH

#include "cuda/attention.cuh"
#include "cuda/mma.cuh"

#include <cuda_pipeline.h>

extern "C" {
#include "ops/random.h"
}

#define LOG2_E 1.44269504f

template <int MATH> using element_of = typename math_type<MATH>::element;

struct lane_place {
    int g, t; // as in cuda/mma.cuh: row and pair of columns
};

CUDA_FN lane_place lane_of() {
    int lane = threadIdx.x % 32;
    return lane_place{lane / 4, lane % 4};
}

// Operands from shared memory

// 16 rows, K columns.
template <int MATH> CUDA_FN frag_a load_a(const element_of<MATH> *x, int stride) {
    frag_a f;
    if constexpr (math_type<MATH>::K == 16) {
        int lane = threadIdx.x % 32;
        load_matrices(f.w, shared_address(x + lane % 16 * stride + lane / 16 * 8));
    } else {
        lane_place l = lane_of();
#pragma unroll
        for (int i = 0; i < 4; i++) f.w[i] = __float_as_uint(x[(l.g + i % 2 * 8) * stride + l.t + i / 2 * 4]);
    }
    return f;
}

// The right operands of two neighbouring tiles of columns. Here a column is a row of x: 16 rows, K columns.
template <int MATH> CUDA_FN void load_b_rows(frag_b f[2], const element_of<MATH> *x, int stride) {
    if constexpr (math_type<MATH>::K == 16) {
        int lane = threadIdx.x % 32;
        uint32_t w[4];
        load_matrices(w, shared_address(x + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8));
        f[0] = frag_b{{w[0], w[1]}};
        f[1] = frag_b{{w[2], w[3]}};
    } else {
        lane_place l = lane_of();
#pragma unroll
        for (int i = 0; i < 4; i++) f[i / 2].w[i % 2] = __float_as_uint(x[(l.g + i / 2 * 8) * stride + l.t + i % 2 * 4]);
    }
}

// Here a column is a column of x: K rows, 16 columns. With 4-byte elements the K terms come in the order that left_of has.
template <int MATH> CUDA_FN void load_b_columns(frag_b f[2], const element_of<MATH> *x, int stride) {
    if constexpr (math_type<MATH>::K == 16) {
        int lane = threadIdx.x % 32;
        uint32_t w[4];
        load_matrices_turned(w, shared_address(x + lane % 16 * stride + lane / 16 * 8));
        f[0] = frag_b{{w[0], w[1]}};
        f[1] = frag_b{{w[2], w[3]}};
    } else {
        lane_place l = lane_of();
#pragma unroll
        for (int i = 0; i < 4; i++) f[i / 2].w[i % 2] = __float_as_uint(x[(2 * l.t + i % 2) * stride + l.g + i / 2 * 8]);
    }
}

// K columns of results as a left operand. A lane has columns 2t and 2t + 1 of each 8: of 4-byte elements, which it should
// have t and t + 4 of, they take these places.
template <int MATH, int NT> CUDA_FN frag_a left_of(const float p[NT][4], int step) {
    frag_a f;
    if constexpr (math_type<MATH>::K == 16) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            f.w[i] = pair_word<MATH>(p[2 * step + i / 2][i % 2 * 2], p[2 * step + i / 2][i % 2 * 2 + 1]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) f.w[i] = __float_as_uint(p[step][i % 2 * 2 + i / 2]);
    }
    return f;
}

// Products

// c = x y': 16 rows of x by 8 * tiles rows of y, `depth` columns of each.
template <int MATH, int NT>
CUDA_FN void multiply_rows(float c[NT][4], const element_of<MATH> *x, const element_of<MATH> *y, int stride, int depth,
    int tiles) {
#pragma unroll
    for (int n = 0; n < NT; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    for (int k = 0; k < depth; k += math_type<MATH>::K) {
        frag_a a = load_a<MATH>(x + k, stride);
#pragma unroll
        for (int n = 0; n < NT; n += 2) {
            if (n >= tiles) continue;
            frag_b b[2];
            load_b_rows<MATH>(b, y + n * 8 * stride + k, stride);
            mma<MATH>(c[n], a, b[0]);
            mma<MATH>(c[n + 1], a, b[1]);
        }
    }
}

// c += p y: 8 * tiles rows of y, and as many columns of it as c has and `columns` leaves.
template <int MATH, int NT, int DN>
CUDA_FN void multiply_columns(float c[DN][4], const float p[NT][4], const element_of<MATH> *y, int stride, int tiles,
    int columns) {
    enum { K = math_type<MATH>::K };
#pragma unroll
    for (int s = 0; s < NT * 8 / K; s++) {
        if (s * K >= tiles * 8) continue;
        frag_a a = left_of<MATH, NT>(p, s);
#pragma unroll
        for (int n = 0; n < DN; n += 2) {
            if (n * 8 >= columns) continue;
            frag_b b[2];
            load_b_columns<MATH>(b, y + s * K * stride + n * 8, stride);
            mma<MATH>(c[n], a, b[0]);
            mma<MATH>(c[n + 1], a, b[1]);
        }
    }
}

CUDA_FN float exp2_fast(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

CUDA_FN float quad_sum(float v) {
    v += __shfl_xor_sync(0xFFFFFFFFu, v, 1);
    return v + __shfl_xor_sync(0xFFFFFFFFu, v, 2);
}

CUDA_FN float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}

// Memory

// What a block works on, and where it lies in shared memory.
template <int MATH> struct heads {
    int64_t sample;
    int first; // head
    element_of<MATH> *q, *k, *v, *dy;
    uint32_t *keys; // [words]: which are not padding
    uint32_t *bits; // forward: as drawn, element after element; backward: [group][rows][words]
    float *kept;    // backward: [group][rows]
    float *mean;    // backward: [group][rows], of dp under p
};

template <int MATH> CUDA_FN heads<MATH> heads_of(const attention_args &a, uint4 *room, int tiles) {
    heads<MATH> w;
    int groups = a.heads / a.group, size = a.rows * a.stride;
    w.sample = blockIdx.x / groups;
    w.first = blockIdx.x % groups * a.group;
    w.q = (element_of<MATH> *)room;
    w.k = w.q + size;
    w.v = w.k + size;
    w.dy = w.v + size;
    w.keys = (uint32_t *)(w.q + tiles * size);
    w.kept = (float *)(w.keys + a.words);
    w.mean = w.kept + a.group * a.rows;
    w.bits = tiles == 3 ? w.keys + a.words : (uint32_t *)(w.mean + a.group * a.rows);
    return w;
}

CUDA_FN bool has_bit(const uint32_t *words, int i) {
    return words[i / 32] >> i % 32 & 1;
}

template <int MATH> CUDA_FN void find_keys(const attention_args &a, const heads<MATH> &w) {
    for (int j = threadIdx.x; j < a.words * 32; j += blockDim.x) {
        bool live = j < a.T && (!a.mask.data || view_load(a.mask, w.sample * a.T + j) != 0);
        uint32_t word = __ballot_sync(0xFFFFFFFFu, live);
        if (j % 32 == 0) w.keys[j / 32] = word;
    }
}

CUDA_FN bool is_type(const float *, int type) {
    return type == DTYPE_F32;
}
CUDA_FN bool is_type(const __nv_bfloat16 *, int type) {
    return type == DTYPE_BF16;
}
CUDA_FN bool is_type(const __half *, int type) {
    return type == DTYPE_F16;
}

// Eight elements, or zeros, on their way to shared memory.
template <typename E> CUDA_FN void fetch_run(E *to, const view &from, int64_t i, bool live) {
    enum { UNIT = 16 / sizeof(E) };
    if (live && !is_type(to, from.type)) {
        for (int k = 0; k < 8; k++) convert(&to[k], view_load(from, i + k));
        return;
    }
#pragma unroll
    for (int k = 0; k < 8; k += UNIT) {
        if (live) {
            __pipeline_memcpy_async(to + k, (const E *)from.data + i + k, 16);
        } else {
            *(uint4 *)(to + k) = uint4{0, 0, 0, 0};
        }
    }
}

// A thread fetches one run of columns of every so many rows. Queries and gradients of y are read for all steps, keys and
// values for those that are keys.
template <int MATH, bool BACKWARD> CUDA_FN void fetch_tiles(const attention_args &a, const heads<MATH> &w) {
    int runs = a.slot / 8, across = a.group * runs, down = blockDim.x / across;
    int run = threadIdx.x % across, h = run / runs, k = run % runs * 8;
    if ((int)threadIdx.x >= across * down) return;
    for (int t = threadIdx.x / across; t < a.rows; t += down) {
        bool live = t < a.T && k < a.d, key = live && has_bit(w.keys, t);
        int to = t * a.stride + h * a.slot + k;
        int64_t row = w.sample * a.T + t, column = (w.first + h) * a.d + k, from = row * 3 * a.D + column;
        fetch_run(w.q + to, a.qkv, from, live);
        fetch_run(w.k + to, a.qkv, from + a.D, key);
        fetch_run(w.v + to, a.qkv, from + 2 * a.D, key);
        if (BACKWARD) fetch_run(w.dy + to, a.y, row * a.D + column, live);
    }
}

// Two neighbouring results.
CUDA_FN void put_pair(const view &to, int64_t i, float x, float y) {
    if (to.add) {
        x += view_load(to, i);
        y += view_load(to, i + 1);
    }
    switch (to.type) {
    case DTYPE_BF16: *(__nv_bfloat162 *)((__nv_bfloat16 *)to.data + i) = __floats2bfloat162_rn(x, y); return;
    case DTYPE_F16: *(__half2 *)((__half *)to.data + i) = __floats2half2_rn(x, y); return;
    default: *(float2 *)((float *)to.data + i) = float2{x, y}; return;
    }
}

// A tile of results, `factor` times, whose row 0 has its columns at `first`; rows from `rows` on are left out.
template <int DN>
CUDA_FN void put_tile(const view &to, int64_t first, int64_t stride, int rows, int columns, const float c[DN][4],
    const float factor[2]) {
    lane_place l = lane_of();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        if (l.g + r * 8 >= rows) continue;
        int64_t at = first + (l.g + r * 8) * stride + 2 * l.t;
#pragma unroll
        for (int n = 0; n < DN; n++)
            if (n * 8 < columns) put_pair(to, at + n * 8, c[n][2 * r] * factor[r], c[n][2 * r + 1] * factor[r]);
    }
}

// Bits

// Which of the group's probabilities stay, one bit after another from `drawn_bit` of the first on: a thread has the eight
// of a random block.
template <int MATH> CUDA_FN void draw_bits(const attention_args &a, const heads<MATH> &w) {
    step s = {};
    s.seed = a.at->seed;
    s.update = a.at->update;
    uint64_t row = a.at->row + (uint64_t)w.sample, first = (uint64_t)w.first * a.T * a.T;
    uint32_t octet = (uint32_t)(first / RANDOM_OCTET);
    int bytes = ((int)(first % RANDOM_OCTET) + a.group * a.T * a.T + 7) / 8;
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        rng_block r = random_dropout(&s, row, a.node, octet + i);
        uint32_t byte = 0;
#pragma unroll
        for (int e = 0; e < RANDOM_OCTET; e++) byte |= (uint32_t)(random_bits(&r, e) >= a.least) << e;
        ((uint8_t *)w.bits)[i] = (uint8_t)byte;
    }
}

// Where the bits of query i of the group's head h begin.
template <int MATH> CUDA_FN int drawn_bit(const attention_args &a, const heads<MATH> &w, int h, int i) {
    int first = (int)((uint64_t)w.first * a.T * a.T % RANDOM_OCTET);
    return first + (h * a.T + (i < a.T ? i : a.T - 1)) * a.T;
}

// 32 bits from bit `at` on.
CUDA_FN uint32_t bits_from(const uint32_t *bits, int at) {
    return __funnelshift_r(bits[at / 32], bits[at / 32 + 1], at % 32);
}

// The keys that query i sees, of 32 from `first` on.
CUDA_FN uint32_t seen_by(const attention_args &a, const uint32_t *keys, int i, int first) {
    uint32_t word = keys[first / 32];
    if (!a.causal || i - first >= 31) return word;
    return i < first ? 0 : word & ((2u << (i - first)) - 1);
}

// How many tiles of keys from `first` on all queries from `row` on see whole; at least so many.
CUDA_FN int whole_tiles(const attention_args &a, int row, int first) {
    int end = a.causal && row + 1 < a.T ? row + 1 : a.T;
    return a.mask.data ? 0 : (end - first) / 8;
}

// Bits of a lane's two rows for a chunk of columns, beginning with those of the lane.
template <int NT> struct row_bits {
    uint32_t w[2][(NT + 3) / 4];
};

template <int NT> CUDA_FN bool row_bit(const row_bits<NT> &b, int n, int e) {
    return b.w[e / 2][n / 4] >> (n % 4 * 8 + e % 2) & 1;
}

CUDA_FN int tiles_of(int columns, int most) {
    int n = (columns + 7) / 8;
    return n < most ? n : most;
}

// Forward

template <int MATH, int NT> CUDA_FN row_bits<NT> seen_bits(const attention_args &a, const heads<MATH> &w, int row, int first) {
    lane_place l = lane_of();
    row_bits<NT> b;
#pragma unroll
    for (int i = 0; i < 2 * (NT / 4); i++)
        b.w[i % 2][i / 2] = seen_by(a, w.keys, row + l.g + i % 2 * 8, first + i / 2 * 32) >> 2 * l.t;
    return b;
}

// Scores that a query does not see, and tiles past the last, become `value`.
template <int MATH, int NT>
CUDA_FN void hide(const attention_args &a, const heads<MATH> &w, float s[NT][4], int row, int first, int tiles, float value) {
    row_bits<NT> seen = seen_bits<MATH, NT>(a, w, row, first);
    int whole = whole_tiles(a, row, first);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        if (n < whole) continue;
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (n >= tiles || !row_bit<NT>(seen, n, e)) s[n][e] = value;
    }
}

// Drops probabilities out, and keeps the bits for backward.
template <int MATH, int NT>
CUDA_FN void drop(const attention_args &a, const heads<MATH> &w, float p[NT][4], int h, int row, int first) {
    lane_place l = lane_of();
    row_bits<NT> stay;
#pragma unroll
    for (int i = 0; i < 2 * (NT / 4); i++) {
        int query = row + l.g + i % 2 * 8, word = i / 2;
        uint32_t bits = bits_from(w.bits, drawn_bit(a, w, h, query) + first + word * 32);
        if (a.bits && l.t == i % 4 && query < a.T)
            a.bits[((w.sample * a.heads + w.first + h) * a.T + query) * a.words + first / 32 + word] = bits;
        stay.w[i % 2][word] = bits >> 2 * l.t;
    }
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) p[n][e] = row_bit<NT>(stay, n, e) ? p[n][e] : 0.0f;
}

// Scores become probabilities times the sum of those seen so far, which grows; what was summed before is brought to the
// new largest score.
template <int NT, int DN> CUDA_FN void soften(float s[NT][4], float top[2], float sum[2], float o[DN][4], float by) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = top[r];
#pragma unroll
        for (int n = 0; n < NT; n++) most = fmaxf(most, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
        most = quad_max(most);
        float zero = most == -INFINITY ? 0.0f : most * by, shrink = exp2_fast(top[r] * by - zero);
        top[r] = most;
        sum[r] *= shrink;
#pragma unroll
        for (int n = 0; n < DN; n++) {
            o[n][2 * r] *= shrink;
            o[n][2 * r + 1] *= shrink;
        }
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 2 * r; e < 2 * r + 2; e++) {
                s[n][e] = exp2_fast(s[n][e] * by - zero);
                sum[r] += s[n][e];
            }
    }
}

template <int MATH, int DN, int NT>
CUDA_FN void forward_rows(const attention_args &a, const heads<MATH> &w, int h, int row) {
    lane_place l = lane_of();
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, o[DN][4] = {}, by = a.scale * LOG2_E;
    int depth = DN == 2 ? 16 : a.slot, column = h * a.slot, end = a.causal && row + 16 < a.T ? row + 16 : a.T;
    for (int first = 0; first < end; first += 8 * NT) {
        float s[NT][4];
        int tiles = tiles_of(end - first, NT);
        multiply_rows<MATH, NT>(s, w.q + row * a.stride + column, w.k + first * a.stride + column, a.stride, depth, tiles);
        hide<MATH, NT>(a, w, s, row, first, tiles, -INFINITY);
        soften<NT, DN>(s, top, sum, o, by);
        if (a.drops) drop<MATH, NT>(a, w, s, h, row, first);
        multiply_columns<MATH, NT, DN>(o, s, w.v + first * a.stride + column, a.stride, tiles, depth);
    }
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int query = row + l.g + r * 8;
        sum[r] = quad_sum(sum[r]);
        factor[r] = sum[r] != 0 ? (a.drops ? a.keep : 1.0f) / sum[r] : 0.0f; // a NaN stays one
        if (a.kept && l.t == 0 && query < a.T)
            a.kept[(w.sample * a.heads + w.first + h) * a.T + query] = sum[r] != 0 ? top[r] * by + log2f(sum[r]) : 0.0f;
    }
    put_tile<DN>(a.y, (w.sample * a.T + row) * a.D + (w.first + h) * a.d, a.D, a.T - row, a.d, o, factor);
}

template <int MATH, int DN, int NT>
static __global__ void __launch_bounds__(ATTENTION_THREADS, DN > 4 ? 1 : DN == 2 && math_type<MATH>::K == 16 ? 3 : 2)
    forward_kernel(const __grid_constant__ attention_args a) {
    extern __shared__ uint4 room[];
    cuda_begin();
    heads<MATH> w = heads_of<MATH>(a, room, 3);
    find_keys(a, w);
    __syncthreads();
    fetch_tiles<MATH, false>(a, w);
    __pipeline_commit();
    if (a.drops) draw_bits(a, w);
    __pipeline_wait_prior(0);
    __syncthreads();
    int down = a.rows / 16;
    for (int i = threadIdx.x / 32; i < a.group * down; i += blockDim.x / 32)
        forward_rows<MATH, DN, NT>(a, w, i / down, i % down * 16);
}

// Backward

template <int MATH> CUDA_FN void fetch_kept(const attention_args &a, const heads<MATH> &w) {
    for (int i = threadIdx.x; i < a.group * a.rows; i += blockDim.x) {
        int h = i / a.rows, t = i % a.rows;
        int64_t item = (w.sample * a.heads + w.first + h) * a.T + t;
        w.kept[i] = t < a.T ? a.kept[item] : 0.0f;
        for (int k = 0; a.drops && k < a.words; k++) w.bits[i * a.words + k] = t < a.T ? a.bits[item * a.words + k] : 0;
    }
}

// The probabilities of 16 queries for a chunk of keys, and their gradients from y, without the factor `keep`.
template <int MATH, int NT>
CUDA_FN void look_back(const attention_args &a, const heads<MATH> &w, float p[NT][4], float dp[NT][4], int h, int row,
    int first, int depth, int tiles) {
    lane_place l = lane_of();
    int column = h * a.slot, at = row * a.stride + column, to = first * a.stride + column;
    float by = a.scale * LOG2_E;
    multiply_rows<MATH, NT>(p, w.q + at, w.k + to, a.stride, depth, tiles);
    multiply_rows<MATH, NT>(dp, w.dy + at, w.v + to, a.stride, depth, tiles);
    float kept[2] = {w.kept[h * a.rows + row + l.g], w.kept[h * a.rows + row + l.g + 8]};
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) p[n][e] = exp2_fast(p[n][e] * by - kept[e / 2]);
    hide<MATH, NT>(a, w, p, row, first, tiles, 0.0f);
    if (!a.drops) return;
    row_bits<NT> stay;
#pragma unroll
    for (int i = 0; i < 2 * (NT / 4); i++)
        stay.w[i % 2][i / 2] = w.bits[(h * a.rows + row + l.g + i % 2 * 8) * a.words + first / 32 + i / 2] >> 2 * l.t;
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) dp[n][e] = row_bit<NT>(stay, n, e) ? dp[n][e] : 0.0f;
}

// dq of 16 queries, and their means. A sequence of one chunk is looked at once.
template <int MATH, int DN, int NT>
CUDA_FN void backward_queries(const attention_args &a, const heads<MATH> &w, int h, int row, float keep) {
    lane_place l = lane_of();
    int depth = DN == 2 ? 16 : a.slot, column = h * a.slot, end = a.causal && row + 16 < a.T ? row + 16 : a.T;
    float p[NT][4], dp[NT][4], mean[2] = {0, 0}, dq[DN][4] = {};
    for (int first = 0; first < end; first += 8 * NT) {
        look_back<MATH, NT>(a, w, p, dp, h, row, first, depth, tiles_of(end - first, NT));
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) mean[e / 2] += p[n][e] * dp[n][e];
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        mean[r] = quad_sum(mean[r]) * keep;
        if (l.t == 0) w.mean[h * a.rows + row + l.g + r * 8] = mean[r];
    }
    for (int first = 0; first < end; first += 8 * NT) {
        int tiles = tiles_of(end - first, NT);
        if (end > 8 * NT) look_back<MATH, NT>(a, w, p, dp, h, row, first, depth, tiles);
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) p[n][e] *= dp[n][e] * keep - mean[e / 2];
        multiply_columns<MATH, NT, DN>(dq, p, w.k + first * a.stride + column, a.stride, tiles, depth);
    }
    float factor[2] = {a.scale, a.scale};
    put_tile<DN>(a.dx, (w.sample * a.T + row) * 3 * a.D + (w.first + h) * a.d, 3 * a.D, a.T - row, a.d, dq, factor);
}

// For 16 keys from `row` on and a chunk of queries: scores in p become probabilities after dropout, without its factor;
// their gradients in dp become those of scores. Queries past the last have q, dy and mean 0 and add nothing.
template <int MATH, int NT>
CUDA_FN void turn_back(const attention_args &a, const heads<MATH> &w, float p[NT][4], float dp[NT][4], int h, int row,
    int first, int tiles, float keep) {
    lane_place l = lane_of();
    float by = a.scale * LOG2_E;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        if (n >= tiles) continue;
        int query = first + n * 8 + 2 * l.t, at = h * a.rows + query;
        float2 kept = *(const float2 *)(w.kept + at), mean = *(const float2 *)(w.mean + at);
        uint32_t stay[2] = {~0u, ~0u};
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (a.drops) stay[i] = (uint32_t)((const uint16_t *)w.bits)[(at + i) * 2 * a.words + row / 16] >> l.g;
#pragma unroll
        for (int e = 0; e < 4; e++) p[n][e] = exp2_fast(p[n][e] * by - (e % 2 ? kept.y : kept.x));
        if (a.causal && first + n * 8 < row + 16) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (row + l.g + e / 2 * 8 > query + e % 2) p[n][e] = 0;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            bool stays = stay[e % 2] >> e / 2 * 8 & 1;
            float d = stays ? dp[n][e] : 0.0f;
            dp[n][e] = p[n][e] * (d * keep - (e % 2 ? mean.y : mean.x));
            p[n][e] = stays ? p[n][e] : 0.0f;
        }
    }
}

// dk and dv of 16 keys. Those of padding are 0, whatever was computed for them: rows do not mix.
template <int MATH, int DN, int NT>
CUDA_FN void backward_keys(const attention_args &a, const heads<MATH> &w, int h, int row, float keep) {
    lane_place l = lane_of();
    int depth = DN == 2 ? 16 : a.slot, column = h * a.slot, at = row * a.stride + column;
    float dk[DN][4] = {}, dv[DN][4] = {};
    for (int first = a.causal ? row : 0; first < a.T; first += 8 * NT) {
        float p[NT][4], dp[NT][4];
        int tiles = tiles_of(a.T - first, NT), to = first * a.stride + column;
        multiply_rows<MATH, NT>(p, w.k + at, w.q + to, a.stride, depth, tiles);
        multiply_rows<MATH, NT>(dp, w.v + at, w.dy + to, a.stride, depth, tiles);
        turn_back<MATH, NT>(a, w, p, dp, h, row, first, tiles, keep);
        multiply_columns<MATH, NT, DN>(dv, p, w.dy + to, a.stride, tiles, depth);
        multiply_columns<MATH, NT, DN>(dk, dp, w.q + to, a.stride, tiles, depth);
    }
    float k_factor[2] = {a.scale, a.scale}, v_factor[2] = {keep, keep};
#pragma unroll
    for (int i = 0; i < 4 * DN; i++) {
        bool live = has_bit(w.keys, row + l.g + i % 4 / 2 * 8);
        dk[i / 4][i % 4] = live ? dk[i / 4][i % 4] : 0.0f;
        dv[i / 4][i % 4] = live ? dv[i / 4][i % 4] : 0.0f;
    }
    int64_t to = (w.sample * a.T + row) * 3 * a.D + (w.first + h) * a.d;
    put_tile<DN>(a.dx, to + a.D, 3 * a.D, a.T - row, a.d, dk, k_factor);
    put_tile<DN>(a.dx, to + 2 * a.D, 3 * a.D, a.T - row, a.d, dv, v_factor);
}

template <int MATH, int DN, int NT>
static __global__ void __launch_bounds__(ATTENTION_THREADS, DN <= 4 ? 2 : 1)
    backward_kernel(const __grid_constant__ attention_args a) {
    extern __shared__ uint4 room[];
    cuda_begin();
    heads<MATH> w = heads_of<MATH>(a, room, 4);
    find_keys(a, w);
    __syncthreads();
    fetch_tiles<MATH, true>(a, w);
    __pipeline_commit();
    fetch_kept(a, w);
    __pipeline_wait_prior(0);
    __syncthreads();
    int down = a.rows / 16;
    float keep = a.drops ? a.keep : 1.0f;
    for (int i = threadIdx.x / 32; i < a.group * down; i += blockDim.x / 32)
        backward_queries<MATH, DN, NT>(a, w, i / down, i % down * 16, keep);
    __syncthreads();
    for (int i = threadIdx.x / 32; i < a.group * down; i += blockDim.x / 32)
        backward_keys<MATH, DN, NT>(a, w, i / down, i % down * 16, keep);
}

// Launches

// Tiles of columns of a head: the next that there are kernels for, and with them so many columns of scores at a time that
// a thread's registers hold them.
#define ATTENTION_FORMS(FORM) FORM(2, 8) FORM(4, 8) FORM(8, 4) FORM(16, 4)

#define ATTENTION_LAUNCH(kernel, dn, nt)                                                                               \
    if (p->a.slot <= dn * 8) {                                                                                         \
        cudaFuncSetAttribute((const void *)kernel<MATH, dn, nt>, cudaFuncAttributeMaxDynamicSharedMemorySize,          \
            (int)p->shared);                                                                                           \
        LAUNCH_EARLY(c, (kernel<MATH, dn, nt>), p->blocks, p->threads, p->shared, p->a);                               \
        return;                                                                                                        \
    }
#define FORWARD_FORM(dn, nt) ATTENTION_LAUNCH(forward_kernel, dn, nt)
#define BACKWARD_FORM(dn, nt) ATTENTION_LAUNCH(backward_kernel, dn, nt)

template <int MATH> static void choose_forward(const call *c, const attention_plan *p) {
    ATTENTION_FORMS(FORWARD_FORM)
}

template <int MATH> static void choose_backward(const call *c, const attention_plan *p) {
    ATTENTION_FORMS(BACKWARD_FORM)
}

#endif
