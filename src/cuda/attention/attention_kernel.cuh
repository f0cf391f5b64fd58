// attention on tensor cores, for one way of multiplying: see cuda/attention/attention.cuh.
//
// Shared memory has the block's heads side by side, a tile each of queries, keys, values and, backward, gradients of y:
// [rows][stride], zeros past the edges and for keys that are padding. A warp takes 16 rows of a head at a time. Scores,
// probabilities and their gradients stay in registers, 16 rows by 8 NT columns: the result of one product is the left
// operand of the next. Forward and dq go by queries; dk and dv by keys, from scores computed the other way round. So
// every sum has one owner and one order, and there are no atomics.
// Rows are an odd number of 16-byte units apart, which keeps lanes out of each other's banks.
#ifndef TRADEWIND_CUDA_ATTENTION_ATTENTION_KERNEL_CUH
#define TRADEWIND_CUDA_ATTENTION_ATTENTION_KERNEL_CUH

#include "cuda/attention/attention.cuh"
#include "cuda/product/mma.cuh"

#include <cuda_pipeline.h>

extern "C" {
#include "ops/random.h"
}

#define LOG2_E 1.44269504f

template <int MATH> using element_of = typename math_type<MATH>::element;

struct lane_place {
    int g, t; // as in cuda/product/mma.cuh: row and pair of columns
};

CUDA_FN lane_place lane_of() {
    int lane = threadIdx.x % 32;
    return lane_place{lane / 4, lane % 4};
}

// Operands from shared memory

// Where a lane begins to read, in elements from where its warp does: a left operand; a right one whose columns are rows
// in memory; one whose columns are columns there.
struct lane_start {
    int left, rows, columns;
};

template <int MATH> CUDA_FN lane_start lane_starts(int stride) {
    lane_place l = lane_of();
    int lane = threadIdx.x % 32, left = lane % 16 * stride + lane / 16 * 8;
    if (math_type<MATH>::K != 16) return lane_start{l.g * stride + l.t, l.g * stride + l.t, 2 * l.t * stride + l.g};
    return lane_start{left, (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8, left};
}

// 16 rows, K columns, from the lane's start on.
template <int MATH> CUDA_FN frag_a load_a(const element_of<MATH> *x, int stride) {
    frag_a f;
    if constexpr (math_type<MATH>::K == 16) {
        load_matrices(f.w, shared_address(x));
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) f.w[i] = __float_as_uint(x[i % 2 * 8 * stride + i / 2 * 4]);
    }
    return f;
}

// The right operands of two neighbouring tiles of columns. Here a column is a row of x: 16 rows, K columns.
template <int MATH> CUDA_FN void load_b_rows(frag_b f[2], const element_of<MATH> *x, int stride) {
    if constexpr (math_type<MATH>::K == 16) {
        uint32_t w[4];
        load_matrices(w, shared_address(x));
        f[0] = frag_b{{w[0], w[1]}};
        f[1] = frag_b{{w[2], w[3]}};
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) f[i / 2].w[i % 2] = __float_as_uint(x[i / 2 * 8 * stride + i % 2 * 4]);
    }
}

// Here a column is a column of x: K rows, 16 columns. With 4-byte elements the K terms come in the order that left_of
// has.
template <int MATH> CUDA_FN void load_b_columns(frag_b f[2], const element_of<MATH> *x, int stride) {
    if constexpr (math_type<MATH>::K == 16) {
        uint32_t w[4];
        load_matrices_turned(w, shared_address(x));
        f[0] = frag_b{{w[0], w[1]}};
        f[1] = frag_b{{w[2], w[3]}};
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) f[i / 2].w[i % 2] = __float_as_uint(x[i % 2 * stride + i / 2 * 8]);
    }
}

// Bits of a lane's two rows for a chunk of columns, beginning with those of the lane.
template <int NT> struct row_bits {
    enum { WORDS = (NT + 3) / 4 };
    uint32_t w[2][WORDS];
};

template <int NT> CUDA_FN bool row_bit(const row_bits<NT> &b, int n, int e) {
    return b.w[e / 2][n / 4] >> (n % 4 * 8 + e % 2) & 1;
}

// Ones in each half of a word whose bit is set: those of the lane's pair of columns of tile n, in row 8 r + g.
template <int NT> CUDA_FN uint32_t pair_mask(const row_bits<NT> &b, int n, int r) {
    uint32_t bits = b.w[r][n / 4], mask, at = n % 4 * 0x1111 + 0xCC88; // bytes n and 4 + n, as their highest bit is
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(mask) : "r"(bits << 7), "r"(bits << 6), "r"(at));
    return mask;
}

// K columns of results as a left operand, 0 where a bit of `stay` is. A lane has columns 2t and 2t + 1 of each 8: of
// 4-byte elements, which it should have t and t + 4 of, they take these places.
template <int MATH, int NT> CUDA_FN frag_a left_of(const float p[NT][4], const row_bits<NT> *stay, int step) {
    frag_a f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (math_type<MATH>::K == 16) {
            int n = 2 * step + i / 2, r = i % 2;
            f.w[i] = n < NT ? pair_word<MATH>(p[n][2 * r], p[n][2 * r + 1]) : 0;
            if (stay && n < NT) f.w[i] &= pair_mask<NT>(*stay, n, r);
        } else {
            int e = i % 2 * 2 + i / 2;
            f.w[i] = !stay || row_bit<NT>(*stay, step, e) ? __float_as_uint(p[step][e]) : 0;
        }
    }
    return f;
}

// The heads of a block, and their places in shared memory.
template <int MATH> struct heads {
    int64_t sample;
    int first;    // head
    int64_t item; // the first head's first query, as `kept` and `bits` of a call count them
    lane_start start;
    element_of<MATH> *q, *k, *v, *dy;
    uint32_t *keys; // [words]: which are not padding
    uint32_t *bits; // forward: as drawn, element after element; backward: [group][rows][words]
    float *kept;    // backward: [group][rows]
    float *mean;    // backward: [group][rows], of dp under p
};

// Products

// c = x y': 16 rows of x by 8 * tiles rows of y, `depth` columns of each. There are LEAST tiles of rows.
template <int MATH, int NT, int LEAST>
CUDA_FN void multiply_rows(float c[NT][4], const element_of<MATH> *x, const element_of<MATH> *y, const heads<MATH> &w,
    int stride, int depth, int tiles) {
    x += w.start.left;
    y += w.start.rows;
#pragma unroll
    for (int n = 0; n < NT; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    for (int k = 0; k < depth; k += math_type<MATH>::K) {
        frag_a a = load_a<MATH>(x + k, stride);
#pragma unroll
        for (int n = 0; n < NT; n += 2) {
            if (n >= LEAST && n >= tiles) continue;
            frag_b b[2];
            load_b_rows<MATH>(b, y + n * 8 * stride + k, stride);
            mma<MATH>(c[n], a, b[0]);
            if (n + 1 < NT) mma<MATH>(c[n + 1], a, b[1]);
        }
    }
}

// c += p y, where `stay`, if any, says which of p are not 0: 8 * tiles rows of y, and as many columns of it as c has
// and `columns` leaves.
template <int MATH, int NT, int LEAST, int DN>
CUDA_FN void multiply_columns(float c[DN][4], const float p[NT][4], const row_bits<NT> *stay, const element_of<MATH> *y,
    const heads<MATH> &w, int stride, int tiles, int columns) {
    enum { K = math_type<MATH>::K };
    y += w.start.columns;
#pragma unroll
    for (int s = 0; s < (NT * 8 + K - 1) / K; s++) {
        if (s * K >= LEAST * 8 && s * K >= tiles * 8) continue;
        frag_a a = left_of<MATH, NT>(p, stay, s);
#pragma unroll
        for (int n = 0; n < DN; n += 2) {
            if (n && n * 8 >= columns) continue;
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

// The last steps of a softmax: with 2-byte elements by the card's approximations.
template <int MATH> CUDA_FN float log2_of(float v) {
    if (math_type<MATH>::K != 16) return log2f(v);
    float r;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

template <int MATH> CUDA_FN float divide(float a, float b) {
    if (math_type<MATH>::K != 16) return a / b;
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    return a * r;
}

// Memory

template <int MATH> CUDA_FN heads<MATH> heads_of(const attention_args &a, uint4 *room, int tiles) {
    heads<MATH> w;
    unsigned groups = a.heads / a.group;
    int size = a.rows * a.stride;
    w.sample = blockIdx.x / groups;
    w.first = blockIdx.x % groups * a.group;
    w.item = (w.sample * a.heads + w.first) * a.T;
    w.start = lane_starts<MATH>(a.stride);
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

// Eight elements on their way to shared memory, or zeros. SAME: memory has them in the type wanted.
template <bool SAME, typename E> CUDA_FN void fetch_run(E *to, const view &from, int64_t i) {
    enum { UNIT = 16 / sizeof(E) };
    if constexpr (SAME) {
#pragma unroll
        for (int k = 0; k < 8; k += UNIT) __pipeline_memcpy_async(to + k, (const E *)from.data + i + k, 16);
    } else {
        for (int k = 0; k < 8; k++) convert(&to[k], view_load_call(from, i + k));
    }
}

template <typename E> CUDA_FN void clear_run(E *to) {
#pragma unroll
    for (int k = 0; k < 8 * (int)sizeof(E) / 16; k++) ((uint4 *)to)[k] = uint4{0, 0, 0, 0};
}

template <int MATH, bool BACKWARD, bool WHOLE, bool SAME>
CUDA_FN void fetch_rows(const attention_args &a, const heads<MATH> &w) {
    unsigned runs = a.slot / 8, across = a.group * runs, down = blockDim.x / across;
    unsigned run = threadIdx.x % across, h = run / runs, k = run % runs * 8;
    int t = threadIdx.x / across, to = t * a.stride + h * a.slot + k, column = (w.first + h) * a.d + k;
    if (t >= (int)down) return;
    int64_t from = w.sample * a.T * 3 * a.D + t * 3 * a.D + column, from_y = w.sample * a.T * a.D + t * a.D + column;
    int end = (int)k < a.d ? a.T : 0;
    for (; t < end; t += down, to += down * a.stride, from += down * 3 * a.D, from_y += down * a.D) {
        fetch_run<SAME>(w.q + to, a.qkv, from);
        if (BACKWARD) fetch_run<SAME>(w.dy + to, a.y, from_y);
        if (WHOLE || has_bit(w.keys, t)) {
            fetch_run<SAME>(w.k + to, a.qkv, from + a.D);
            fetch_run<SAME>(w.v + to, a.qkv, from + 2 * a.D);
        } else {
            clear_run(w.k + to);
            clear_run(w.v + to);
        }
    }
    for (; t < a.rows; t += down, to += down * a.stride) {
        clear_run(w.q + to);
        clear_run(w.k + to);
        clear_run(w.v + to);
        if (BACKWARD) clear_run(w.dy + to);
    }
}

// A thread fetches one run of columns of every so many rows. Queries and gradients of y are read for all steps, keys
// and values for those that are keys: WHOLE, all.
template <int MATH, bool BACKWARD, bool WHOLE> CUDA_FN void fetch_tiles(const attention_args &a, const heads<MATH> &w) {
    if (is_type(w.q, a.qkv.type) && (!BACKWARD || is_type(w.q, a.y.type))) {
        fetch_rows<MATH, BACKWARD, WHOLE, true>(a, w);
    } else {
        fetch_rows<MATH, BACKWARD, WHOLE, false>(a, w);
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

// True if results of 2 bytes leave by way of shared memory, in runs of 16 bytes: they must be kept as they are
// multiplied.
template <typename E> CUDA_FN bool by_runs(const E *room, const view &to) {
    return sizeof(E) == 2 && is_type(room, to.type) && !to.add;
}

// As many of 16 rows of 8 * DN columns as there are, from shared memory, where the warp has written them.
template <int DN, typename E>
CUDA_FN void put_runs(
    const view &to, int64_t base, int first, int stride, int rows, int columns, const E *room, int pitch) {
    E *data = (E *)to.data + base;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < DN; i += 2) {
        int run = threadIdx.x % 32 + 16 * i, r = run / DN, k = run % DN * 8;
        if (r < rows && k < columns)
            *(uint4 *)(data + (first + r * stride + k)) = *(const uint4 *)(room + r * pitch + k);
    }
}

// A tile of results, `factor` times, whose row 0 has its columns at `first` from `base` on; rows from `rows` on are
// left out. With ROOM it may go by way of `room`, a tile of shared memory that this warp alone still needs, rows
// `pitch` apart.
template <int MATH, int DN, bool ROOM>
CUDA_FN void put_tile(const view &to, int64_t base, int first, int stride, int rows, int columns, const float c[DN][4],
    const float factor[2], element_of<MATH> *room, int pitch) {
    lane_place l = lane_of();
    if (ROOM && by_runs(room, to)) {
        element_of<MATH> *mine = room + l.g * pitch + 2 * l.t;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 2 * DN; i++) {
            int r = i % 2, n = i / 2;
            if (n && n * 8 >= columns) continue;
            *(uint32_t *)(mine + r * 8 * pitch + n * 8) =
                pair_word<MATH>(c[n][2 * r] * factor[r], c[n][2 * r + 1] * factor[r]);
        }
        put_runs<DN>(to, base, first, stride, rows, columns, room, pitch);
        return;
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        if (l.g + r * 8 >= rows) continue;
        int at = first + (l.g + r * 8) * stride + 2 * l.t;
#pragma unroll
        for (int n = 0; n < DN; n++)
            if (n * 8 < columns) put_pair(to, base + at + n * 8, c[n][2 * r] * factor[r], c[n][2 * r + 1] * factor[r]);
    }
}

// Bits

// Draws the bits of the group's probabilities that stay, one after another from `drawn_bit` of the first on: a thread
// has the eight of a random block.
template <int MATH> CUDA_FN void draw_bits(const attention_args &a, const heads<MATH> &w) {
    random_key key = random_key_of(a.at);
    uint64_t row = (uint64_t)w.sample, first = (uint64_t)w.first * a.T * a.T;
    uint32_t octet = (uint32_t)(first / RANDOM_OCTET);
    int bytes = ((int)(first % RANDOM_OCTET) + a.group * a.T * a.T + 7) / 8;
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        rng_block r = random_dropout(&key, row, a.node, octet + i);
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
CUDA_FN uint32_t bits_from(const uint32_t *bits, uint32_t at) {
    return __funnelshift_r(bits[at / 32], bits[at / 32 + 1], at);
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

CUDA_FN int tiles_of(int columns, int most) {
    int n = (columns + 7) / 8;
    return n < most ? n : most;
}

// Forward

template <int MATH, int NT>
CUDA_FN row_bits<NT> seen_bits(const attention_args &a, const heads<MATH> &w, int row, int first) {
    lane_place l = lane_of();
    row_bits<NT> b;
#pragma unroll
    for (int i = 0; i < 2 * row_bits<NT>::WORDS; i++)
        b.w[i % 2][i / 2] = seen_by(a, w.keys, row + l.g + i % 2 * 8, first + i / 2 * 32) >> 2 * l.t;
    return b;
}

// Scores that a query does not see, and tiles past the last, become `value`.
template <int MATH, int NT>
CUDA_FN void hide(
    const attention_args &a, const heads<MATH> &w, float s[NT][4], int row, int first, int tiles, float value) {
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

// The same for columns that a sequence in one piece does not have: those of its last two tiles at most.
template <int NT> CUDA_FN void hide_past(const attention_args &a, float s[NT][4], float value) {
    int left = a.T - 2 * lane_of().t;
#pragma unroll
    for (int n = NT > 2 ? NT - 2 : 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (n * 8 + e % 2 >= left) s[n][e] = value;
}

// Bits of the probabilities that stay, kept for backward: row g by the first lane of four, row g + 8 by the second.
template <int MATH, int NT>
CUDA_FN row_bits<NT> stay_bits(const attention_args &a, const heads<MATH> &w, int h, int row, int first) {
    enum { WORDS = row_bits<NT>::WORDS };
    lane_place l = lane_of();
    row_bits<NT> stay;
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++) {
        uint32_t at = drawn_bit(a, w, h, row + l.g + i % 2 * 8) + first;
        stay.w[i % 2][i / 2] = bits_from(w.bits + i / 2, at);
    }
    int query = row + l.g + l.t * 8;
    if (a.bits && l.t < 2 && query < a.T) {
        uint32_t *to = a.bits + w.item * a.words + ((h * a.T + query) * a.words + first / 32);
        uint32_t low = stay.w[0][0], high = stay.w[0][WORDS - 1];
        if (l.t) low = stay.w[1][0], high = stay.w[1][WORDS - 1];
        if (WORDS == 2) {
            *(uint2 *)to = uint2{low, high};
        } else {
            *to = low;
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * WORDS; i++) stay.w[i % 2][i / 2] >>= 2 * l.t;
    return stay;
}

// Scores become probabilities times the sum of those seen so far, which grows; what was summed before is brought to the
// new largest score. WHOLE: nothing was.
template <int NT, int DN, bool WHOLE>
CUDA_FN void soften(float s[NT][4], float top[2], float sum[2], float o[DN][4], float by) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = top[r];
#pragma unroll
        for (int n = 0; n < NT; n++) most = fmaxf(most, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
        most = quad_max(most);
        float zero = most * by;
        if (!WHOLE) {
            zero = most == -INFINITY ? 0.0f : zero;
            float shrink = exp2_fast(top[r] * by - zero);
            sum[r] *= shrink;
#pragma unroll
            for (int n = 0; n < DN; n++) {
                o[n][2 * r] *= shrink;
                o[n][2 * r + 1] *= shrink;
            }
        }
        top[r] = most;
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 2 * r; e < 2 * r + 2; e++) {
                s[n][e] = exp2_fast(s[n][e] * by - zero);
                sum[r] += s[n][e];
            }
    }
}

// y of 16 queries. WHOLE: all keys are one chunk, and all are seen.
template <int MATH, int DN, int NT, bool WHOLE>
CUDA_FN void forward_rows(const attention_args &a, const heads<MATH> &w, int h, int row) {
    lane_place l = lane_of();
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, o[DN][4] = {}, by = a.scale * LOG2_E;
    int depth = DN == 2 ? 16 : a.slot, column = h * a.slot, end = !WHOLE && a.causal && row + 16 < a.T ? row + 16 : a.T;
    element_of<MATH> *q = w.q + row * a.stride + column;
    enum { LEAST = WHOLE ? NT - 1 : 0 };
    for (int first = 0; first < (WHOLE ? 1 : end); first += 8 * NT) {
        float s[NT][4];
        int tiles = tiles_of(end - first, NT);
        multiply_rows<MATH, NT, LEAST>(s, q, w.k + first * a.stride + column, w, a.stride, depth, tiles);
        if (WHOLE) {
            hide_past<NT>(a, s, -INFINITY);
        } else {
            hide<MATH, NT>(a, w, s, row, first, tiles, -INFINITY);
        }
        soften<NT, DN, WHOLE>(s, top, sum, o, by);
        row_bits<NT> stay;
        if (a.drops) {
            stay = stay_bits<MATH, NT>(a, w, h, row, first);
        } else {
#pragma unroll
            for (int i = 0; i < 2 * row_bits<NT>::WORDS; i++) stay.w[i % 2][i / 2] = ~0u;
        }
        multiply_columns<MATH, NT, LEAST, DN>(o, s, &stay, w.v + first * a.stride + column, w, a.stride, tiles, depth);
    }
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        sum[r] = quad_sum(sum[r]);
        factor[r] = divide<MATH>(a.drops ? a.keep : 1.0f, sum[r]);
        if (!WHOLE && sum[r] == 0) factor[r] = 0;
    }
    int query = row + l.g + l.t * 8;
    if (a.kept && l.t < 2 && query < a.T) {
        float of = l.t ? sum[1] : sum[0], most = l.t ? top[1] : top[0];
        (a.kept + w.item)[h * a.T + query] = WHOLE || of != 0 ? most * by + log2_of<MATH>(of) : 0.0f;
    }
    put_tile<MATH, DN, true>(
        a.y, w.sample * a.T * a.D, row * a.D + (w.first + h) * a.d, a.D, a.T - row, a.d, o, factor, q, a.stride);
}

// Tiles of 16 rows of the block's heads, shared out among its warps.
struct turn_of {
    int h, row;
};

CUDA_FN turn_of next_turn(const attention_args &a, turn_of t, int tiles) {
    t.row += tiles * 16;
    for (; t.row >= a.rows; t.row -= a.rows) t.h++;
    return t;
}

CUDA_FN turn_of first_turn(const attention_args &a) {
    return next_turn(a, turn_of{0, 0}, threadIdx.x / 32);
}

// Threads and blocks that a multiprocessor should have room for.
template <int MATH, int DN, bool WHOLE> struct forward_bounds {
    enum {
        SMALL = math_type<MATH>::K == 16,
        THREADS = WHOLE ? ATTENTION_WHOLE_THREADS : ATTENTION_THREADS,
        PIECES = DN > 4             ? 1
                 : DN == 2 && SMALL ? 3
                                    : 2, // blocks, where a sequence may have several
        BLOCKS = WHOLE ? (SMALL ? 7 : 4) : PIECES
    };
};

template <int MATH, int DN, int NT, bool WHOLE>
static __global__ void __launch_bounds__(forward_bounds<MATH, DN, WHOLE>::THREADS,
    forward_bounds<MATH, DN, WHOLE>::BLOCKS) forward_kernel(const __grid_constant__ attention_args a) {
    extern __shared__ uint4 room[];
    cuda_begin();
    heads<MATH> w = heads_of<MATH>(a, room, 3);
    if (!WHOLE) {
        find_keys(a, w);
        __syncthreads();
    }
    fetch_tiles<MATH, false, WHOLE>(a, w);
    __pipeline_commit();
    if (a.drops) draw_bits(a, w);
    __pipeline_wait_prior(0);
    __syncthreads();
    for (turn_of t = first_turn(a); t.h < a.group; t = next_turn(a, t, blockDim.x / 32))
        forward_rows<MATH, DN, NT, WHOLE>(a, w, t.h, t.row);
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
    multiply_rows<MATH, NT, 0>(p, w.q + at, w.k + to, w, a.stride, depth, tiles);
    multiply_rows<MATH, NT, 0>(dp, w.dy + at, w.v + to, w, a.stride, depth, tiles);
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
        multiply_columns<MATH, NT, 0, DN>(dq, p, NULL, w.k + first * a.stride + column, w, a.stride, tiles, depth);
    }
    float factor[2] = {a.scale, a.scale};
    put_tile<MATH, DN, false>(a.dx, w.sample * a.T * 3 * a.D, row * 3 * a.D + (w.first + h) * a.d, 3 * a.D, a.T - row,
        a.d, dq, factor, NULL, 0); // the keys' turn needs the queries
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
        multiply_rows<MATH, NT, 0>(p, w.k + at, w.q + to, w, a.stride, depth, tiles);
        multiply_rows<MATH, NT, 0>(dp, w.v + at, w.dy + to, w, a.stride, depth, tiles);
        turn_back<MATH, NT>(a, w, p, dp, h, row, first, tiles, keep);
        multiply_columns<MATH, NT, 0, DN>(dv, p, NULL, w.dy + to, w, a.stride, tiles, depth);
        multiply_columns<MATH, NT, 0, DN>(dk, dp, NULL, w.q + to, w, a.stride, tiles, depth);
    }
    float k_factor[2] = {a.scale, a.scale}, v_factor[2] = {keep, keep};
#pragma unroll
    for (int i = 0; i < 4 * DN; i++) {
        bool live = has_bit(w.keys, row + l.g + i % 4 / 2 * 8);
        dk[i / 4][i % 4] = live ? dk[i / 4][i % 4] : 0.0f;
        dv[i / 4][i % 4] = live ? dv[i / 4][i % 4] : 0.0f;
    }
    int64_t base = w.sample * a.T * 3 * a.D;
    int to = row * 3 * a.D + (w.first + h) * a.d;
    put_tile<MATH, DN, true>(a.dx, base, to + a.D, 3 * a.D, a.T - row, a.d, dk, k_factor, w.k + at, a.stride);
    put_tile<MATH, DN, true>(a.dx, base, to + 2 * a.D, 3 * a.D, a.T - row, a.d, dv, v_factor, w.v + at, a.stride);
}

template <int MATH, int DN, int NT>
static __global__ void __launch_bounds__(ATTENTION_THREADS, DN <= 4 ? 2 : 1)
    backward_kernel(const __grid_constant__ attention_args a) {
    extern __shared__ uint4 room[];
    cuda_begin();
    heads<MATH> w = heads_of<MATH>(a, room, 4);
    find_keys(a, w);
    __syncthreads();
    fetch_tiles<MATH, true, false>(a, w);
    __pipeline_commit();
    fetch_kept(a, w);
    __pipeline_wait_prior(0);
    __syncthreads();
    float keep = a.drops ? a.keep : 1.0f;
    for (turn_of t = first_turn(a); t.h < a.group; t = next_turn(a, t, blockDim.x / 32))
        backward_queries<MATH, DN, NT>(a, w, t.h, t.row, keep);
    __syncthreads();
    for (turn_of t = first_turn(a); t.h < a.group; t = next_turn(a, t, blockDim.x / 32))
        backward_keys<MATH, DN, NT>(a, w, t.h, t.row, keep);
}

#endif
