// What runs a row program (cuda/rows.h): a block of eight warps takes its rows through all instructions, with a barrier
// after each. Products read their left operand from a slot and the weights, in fp32, straight from memory.
//
// In a product a lane holds columns 4t .. 4t+3 of every 16 of the sum, where the tensor cores want 2t, 2t+1, 2t+8, 2t+9:
// a permutation of the sum's terms, the same in both operands, that makes every load a vector. In the same way tile j of
// NJ tiles of 8 columns consists of columns j, NJ + j, 2 NJ + j, ..., so that a lane's results are 2 NJ columns side by
// side. Elements past the edge of the weights are read again from the last row or column and their results dropped.
#ifndef TRADEWIND_CUDA_ROWS_KERNEL_CUH
#define TRADEWIND_CUDA_ROWS_KERNEL_CUH

#include "cuda/activation.cuh"
#include "cuda/cross_entropy.cuh"
#include "cuda/mma.cuh"

extern "C" {
#include "ops/random.h"
}

enum { ROWS_THREADS = 256, ROWS_WARPS = ROWS_THREADS / 32 };

// Where a block stands: its shared memory, its first row, and how many are real.
struct rows_block {
    char *room;
    int64_t row;
    int rows;
};

// Rows of tiles

CUDA_FN int element_bytes(int type) {
    return type == DTYPE_F32 ? 4 : 2;
}

CUDA_FN view home_row(const rows_tile &t, const rows_block &k, int r) {
    return view{(char *)t.data + (k.row + r) * t.width * element_bytes(t.type), t.type, false};
}

CUDA_FN view slot_row(const rows_tile &t, const rows_block &k, int r) {
    return view{k.room + t.slot + r * rows_ld(t.width) * element_bytes(t.slot_type), t.slot_type, false};
}

CUDA_FN view row_of(const rows_tile &t, const rows_block &k, int r) {
    return t.slot >= 0 ? slot_row(t, k, r) : home_row(t, k, r);
}

// Four neighbouring elements of a row, of which `left` are inside it. As one word where they lie so.
struct four {
    float v[4];
};

CUDA_FN four widen_four(int type, uint4 w) {
    if (type == DTYPE_F32) return *(four *)&w;
    four r;
    float2 low = type == DTYPE_BF16 ? __bfloat1622float2(*(__nv_bfloat162 *)&w.x) : __half22float2(*(__half2 *)&w.x);
    float2 high = type == DTYPE_BF16 ? __bfloat1622float2(*(__nv_bfloat162 *)&w.y) : __half22float2(*(__half2 *)&w.y);
    r.v[0] = low.x, r.v[1] = low.y, r.v[2] = high.x, r.v[3] = high.y;
    return r;
}

CUDA_FN uint2 narrow_four(int type, const four &f) {
    if (type == DTYPE_BF16) return make_uint2(pair_word<MATH_BF16>(f.v[0], f.v[1]), pair_word<MATH_BF16>(f.v[2], f.v[3]));
    return make_uint2(pair_word<MATH_F16>(f.v[0], f.v[1]), pair_word<MATH_F16>(f.v[2], f.v[3]));
}

CUDA_FN bool is_word(view row, int j, int left) {
    uint32_t bytes = element_bytes(row.type);
    return left >= 4 && (((uint32_t)(uintptr_t)row.data + j * bytes) & (4 * bytes - 1)) == 0;
}

CUDA_FN four read_four(view row, int j, int left) {
    four r = {};
    if (is_word(row, j, left)) {
        uint4 w = {};
        if (row.type == DTYPE_F32) {
            w = *(const uint4 *)((const float *)row.data + j);
        } else {
            *(uint2 *)&w = *(const uint2 *)((const uint16_t *)row.data + j);
        }
        return widen_four(row.type, w);
    }
#pragma unroll 1
    for (int e = 0; e < 4 && e < left; e++) r.v[e] = view_load_call(row, j + e);
    return r;
}

CUDA_FN void write_four(view row, int j, int left, const four &f) {
    if (!is_word(row, j, left)) {
#pragma unroll 1
        for (int e = 0; e < 4 && e < left; e++) view_put_call(row, j + e, f.v[e]);
    } else if (row.type == DTYPE_F32) {
        *(float4 *)((float *)row.data + j) = make_float4(f.v[0], f.v[1], f.v[2], f.v[3]);
    } else {
        *(uint2 *)((uint16_t *)row.data + j) = narrow_four(row.type, f);
    }
}

// To a tile's home and its slot, either of which may be none.
CUDA_FN void put_four(const rows_tile &t, const rows_block &k, int r, int j, int left, four f) {
    if (t.add != ROWS_OVERWRITE) {
        four old = read_four(t.add == ROWS_ADD_SLOT ? slot_row(t, k, r) : home_row(t, k, r), j, left);
#pragma unroll
        for (int e = 0; e < 4; e++) f.v[e] += old.v[e];
    }
    if (t.data) write_four(home_row(t, k, r), j, left, f);
    if (t.slot >= 0) write_four(slot_row(t, k, r), j, left, f);
}

CUDA_FN void put_one(const rows_tile &t, const rows_block &k, int r, int j, float v) {
    view home = home_row(t, k, r), slot = slot_row(t, k, r);
    if (t.add != ROWS_OVERWRITE) v += view_load_call(t.add == ROWS_ADD_SLOT ? slot : home, j);
    if (t.data) view_put_call(home, j, v);
    if (t.slot >= 0) view_put_call(slot, j, v);
}

// Products

// Four columns of rows g and g + 8 of the left operand, as words.
struct quad {
    uint32_t lo[4], hi[4];
};

template <typename E> CUDA_FN quad load_quad(const E *a, int ld) {
    const E *lo = a + threadIdx.x % 32 / 4 * ld + threadIdx.x % 4 * 4, *hi = lo + 8 * ld;
    quad q = {};
    if (sizeof(E) == 2) {
        *(uint2 *)q.lo = *(const uint2 *)lo;
        *(uint2 *)q.hi = *(const uint2 *)hi;
    } else {
        *(uint4 *)q.lo = *(const uint4 *)lo;
        *(uint4 *)q.hi = *(const uint4 *)hi;
    }
    return q;
}

// Zeros for columns at and past `left` of the 16.
template <typename E> CUDA_FN void cut_quad(quad *q, int left) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if ((int)threadIdx.x % 4 * 4 + e < left) continue;
        uint32_t keep = sizeof(E) == 4 ? 0 : e % 2 ? 0x0000FFFFu : 0xFFFF0000u;
        int word = sizeof(E) == 4 ? e : e / 2;
        q->lo[word] &= keep;
        q->hi[word] &= keep;
    }
}

template <int MATH> CUDA_FN void quad_mma(float acc[4], const quad &q, const float b[4]) {
    if constexpr (math_type<MATH>::K == 16) {
        frag_b w = {{pair_word<MATH>(b[0], b[1]), pair_word<MATH>(b[2], b[3])}};
        mma<MATH>(acc, frag_a{{q.lo[0], q.hi[0], q.lo[1], q.hi[1]}}, w);
    } else {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            frag_b w = {{__float_as_uint(b[e]), __float_as_uint(b[e + 1])}};
            mma<MATH>(acc, frag_a{{q.lo[e], q.hi[e], q.lo[e + 1], q.hi[e + 1]}}, w);
        }
    }
}

// The weights of a product: element (k, n) at n * K + k, or with BACK at k * N + n.
struct rows_weights {
    const float *w;
    int K, N;
    bool vectors;
};

// A lane's share of 16 x 8 NJ weights from (k0, n0), all of whose k are inside. With NJ 4 the weights are aligned.
template <int NJ, bool BACK> CUDA_FN void fetch(float b[NJ][4], const rows_weights &m, int k0, int n0) {
    int k = k0 + threadIdx.x % 4 * 4, n = n0 + threadIdx.x % 32 / 4 * NJ;
    if constexpr (BACK && NJ == 4) {
        const float *at = m.w + k * m.N + min(n, m.N - 4);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float4 v = __ldg((const float4 *)(at + e * m.N));
            b[0][e] = v.x, b[1][e] = v.y, b[2][e] = v.z, b[3][e] = v.w;
        }
    } else if constexpr (BACK) {
        const float *at = m.w + k * m.N + min(n, m.N - 1);
#pragma unroll
        for (int e = 0; e < 4; e++) b[0][e] = __ldg(at + e * m.N);
    } else if (NJ == 4 || m.vectors) {
#pragma unroll
        for (int j = 0; j < NJ; j++) *(float4 *)b[j] = __ldg((const float4 *)(m.w + min(n + j, m.N - 1) * m.K + k));
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) b[0][e] = __ldg(m.w + min(n, m.N - 1) * m.K + k + e);
    }
}

// The same where the sum ends within the 16.
template <int NJ, bool BACK> CUDA_FN void fetch_end(float b[NJ][4], const rows_weights &m, int k0, int n0) {
    int k = k0 + threadIdx.x % 4 * 4, n = n0 + threadIdx.x % 32 / 4 * NJ;
#pragma unroll
    for (int j = 0; j < NJ; j++) {
        int column = min(n + j, m.N - 1);
#pragma unroll
        for (int e = 0; e < 4; e++)
            b[j][e] = k + e < m.K ? __ldg(m.w + (BACK ? (k + e) * m.N + column : column * m.K + k + e)) : 0.0f;
    }
}

// acc += a (MT tiles of 16 rows) times 8 NJ columns of the weights from n0. DEPTH fetches are under way at any time.
template <int MATH, int MT, int NJ, bool BACK>
CUDA_FN void product(float acc[MT][NJ][4], const typename math_type<MATH>::element *a, const rows_weights &m, int n0) {
    typedef typename math_type<MATH>::element E;
    const int DEPTH = NJ == 1 ? 8 : 4;
    int steps = m.K / 16, ld = rows_ld(m.K);
    float b[DEPTH][NJ][4];
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        if (d < steps) fetch<NJ, BACK>(b[d], m, d * 16, n0);
#pragma unroll 1
    for (int first = 0; first < steps; first += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            int s = first + d;
            if (s >= steps) break;
#pragma unroll
            for (int i = 0; i < MT; i++) {
                quad q = load_quad(a + i * 16 * ld + s * 16, ld);
#pragma unroll
                for (int j = 0; j < NJ; j++) quad_mma<MATH>(acc[i][j], q, b[d][j]);
            }
            if (s + DEPTH < steps) fetch<NJ, BACK>(b[d], m, (s + DEPTH) * 16, n0);
        }
    }
    if (m.K % 16 == 0) return;
    fetch_end<NJ, BACK>(b[0], m, steps * 16, n0);
#pragma unroll
    for (int i = 0; i < MT; i++) {
        quad q = load_quad(a + i * 16 * ld + steps * 16, ld);
        cut_quad<E>(&q, m.K - steps * 16);
#pragma unroll
        for (int j = 0; j < NJ; j++) quad_mma<MATH>(acc[i][j], q, b[0][j]);
    }
}

// N elements side by side, as words where they may be, else those before `left`.
template <typename T, int N> CUDA_FN void store_run(T *to, const float v[N], bool vectors, int left) {
    if (!vectors) {
#pragma unroll
        for (int e = 0; e < N; e++)
            if (e < left) convert(to + e, v[e]);
        return;
    }
    const int words = N * (int)sizeof(T) / 4;
    uint32_t w[words];
#pragma unroll
    for (int e = 0; e < N; e++) convert((T *)w + e, v[e]);
    if (words == 1) *(uint32_t *)to = w[0];
    if (words == 2) *(uint2 *)to = make_uint2(w[0], w[1 % words]);
#pragma unroll
    for (int i = 0; i + 3 < words; i += 4)
        ((uint4 *)to)[i / 4] = make_uint4(w[i], w[(i + 1) % words], w[(i + 2) % words], w[(i + 3) % words]);
}

// A lane's results of one row, columns c .. c + N - 1, to the tile's home and slot.
template <typename T, int N>
CUDA_FN void put_run(const rows_tile &t, const rows_block &k, int r, int c, float v[N]) {
    T *home = (T *)t.data + (k.row + r) * t.width + c, *slot = (T *)(k.room + t.slot) + r * rows_ld(t.width) + c;
    int left = t.width - c;
    if (t.add != ROWS_OVERWRITE) {
        const T *old = t.add == ROWS_ADD_SLOT ? slot : home;
#pragma unroll
        for (int e = 0; e < N; e++)
            if (e < left) v[e] += widen(old[e]);
    }
    store_run<T, N>(home, v, t.vectors, left);
    if (t.slot >= 0) store_run<T, N>(slot, v, t.vectors, left);
}

// Bias and activation of a lane's run.
template <int N> CUDA_FN void finish_run(float v[N], const float bias[N], int act) {
#pragma unroll
    for (int e = 0; e < N; e++) v[e] = activate(act, v[e] + bias[e]);
}

// The results of one tile of 16 rows, of which a lane has rows g and g + 8.
template <int MATH, int NJ, bool BACK>
CUDA_FN void put_tile(const rows_instr &in, const rows_block &k, const float acc[NJ][4], const float bias[2 * NJ],
    int row, int c) {
    typedef typename math_type<MATH>::element E;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float v[2 * NJ];
        int r = row + h * 8;
        if (r >= k.rows) return;
#pragma unroll
        for (int e = 0; e < 2 * NJ; e++) v[e] = acc[e % NJ][h * 2 + e / NJ];
        if (!BACK) finish_run<2 * NJ>(v, bias, in.act);
        if (BACK && sizeof(E) == 2 && in.to.type == DTYPE_F32) {
            put_run<float, 2 * NJ>(in.to, k, r, c, v);
        } else {
            put_run<E, 2 * NJ>(in.to, k, r, c, v);
        }
    }
}

// Tiles of rows are stored in a loop, the next one moved to the front each time: its code stands here once.
template <int MATH, int MT, int NJ, bool BACK> CUDA_FN void linear(const rows_instr &in, const rows_block &k) {
    const rows_weights m = {(const float *)in.p[0], in.a.width, in.to.width, (bool)in.vectors};
    const typename math_type<MATH>::element *a = (const typename math_type<MATH>::element *)(k.room + in.a.slot);
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int n0 = threadIdx.x / 32 * 8 * NJ; n0 < m.N; n0 += ROWS_WARPS * 8 * NJ) {
        float acc[MT][NJ][4] = {}, bias[2 * NJ];
        int c = n0 + 2 * NJ * t;
#pragma unroll
        for (int e = 0; e < 2 * NJ; e++)
            bias[e] = !BACK && in.p[1] && c + e < m.N ? __ldg((const float *)in.p[1] + c + e) : 0.0f;
        product<MATH, MT, NJ, BACK>(acc, a, m, n0);
        if (c >= m.N) continue;
#pragma unroll 1
        for (int i = 0; i < MT; i++) {
            put_tile<MATH, NJ, BACK>(in, k, acc[0], bias, i * 16 + g, c);
#pragma unroll
            for (int n = 0; n < (MT - 1) * NJ * 4; n++)
                acc[n / (NJ * 4)][n / 4 % NJ][n % 4] = acc[n / (NJ * 4) + 1][n / 4 % NJ][n % 4];
        }
    }
}

// Element by element, four at a time: all such instructions are one piece of code, which stays small that way.

CUDA_FN void dropped(const rows_instr &in, const rows_block &k, const step *s, int r, int quad, four *f) {
    rng_block bits = random_dropout(s, s->row + (uint64_t)(k.row + r), in.node, (uint32_t)quad);
#pragma unroll
    for (int e = 0; e < 4; e++) f->v[e] = bits.v[e] >= in.least ? f->v[e] * in.x : 0.0f;
}

CUDA_FN float difference_slope(const rows_instr &in, float d) {
    return in.flag ? 2 * d : (float)((d > 0) - (d < 0));
}

CUDA_FN void combine(const rows_instr &in, const rows_block &k, const step *s, int r, int quad, four *a, const four &b) {
    float w = 0;
    switch (in.op) {
    case ROWS_DROPOUT:
        if (in.flag) dropped(in, k, s, r, quad, a);
        return;
    case ROWS_SLOPE:
#pragma unroll
        for (int e = 0; e < 4; e++) a->v[e] *= activation_slope(in.act, 0, b.v[e]);
        return;
    case ROWS_COPY:
    case ROWS_AXPBY:
#pragma unroll
        for (int e = 0; e < 4; e++) a->v[e] = in.x * a->v[e] + in.y * b.v[e];
        return;
    case ROWS_POINTWISE_BACK:
        w = ((const float *)in.p[1])[k.row + r];
#pragma unroll
        for (int e = 0; e < 4; e++)
            a->v[e] = w != 0 ? *(const float *)in.p[0] * w * difference_slope(in, a->v[e] - b.v[e]) : 0.0f;
        return;
    default: return;
    }
}

// Any width, any alignment.
CUDA_FN void map_slowly(const rows_instr &in, const rows_block &k, const step *s, bool second, int n) {
    bool copies = in.op == ROWS_COPY, back = in.op == ROWS_SLICE_BACK;
    int quads = (n + 3) / 4, from = copies ? in.from : 0, at = copies ? in.at : 0;
    for (unsigned i = threadIdx.x;; i += ROWS_THREADS) {
        unsigned nth = i / (unsigned)quads;
        int quad = (int)(i - nth * quads), r = (int)nth, j = quad * 4;
        if (r >= k.rows) return;
        view row = row_of(in.a, k, r);
        four a = {}, b = {};
        if (!back) {
            a = read_four(row, from + j, n - j);
        } else {
#pragma unroll 1
            for (int e = 0; e < 4; e++)
                if (j + e >= in.at && j + e < in.at + in.n) a.v[e] = view_load_call(row, j + e - in.at);
        }
        if (second) b = read_four(row_of(in.b, k, r), j, n - j);
        combine(in, k, s, r, quad, &a, b);
        put_four(in.to, k, r, at + j, n - j, a);
    }
}

// Where a thread has the same four columns of every so-many-th row, all of them words: the usual case.
struct column_words {
    char *at;
    uint32_t apart; // bytes from one of the thread's rows to the next
    int type;
    bool words; // the same for all threads
};

CUDA_FN column_words column_of(const rows_tile &t, const rows_block &k, bool slot, int j, int r, int apart) {
    int type = slot ? t.slot_type : t.type, bytes = element_bytes(type);
    uint32_t row = (uint32_t)((slot ? rows_ld(t.width) : t.width) * bytes);
    char *start = slot ? k.room + t.slot : (char *)t.data + k.row * row;
    bool words = ((((uint32_t)(uintptr_t)start + j * bytes) | row) & (4 * bytes - 1)) == 0;
    return column_words{start + (uint32_t)r * row + j * bytes, row * apart, type, words};
}

CUDA_FN four read_words(const column_words &c) {
    uint4 w = {};
    if (c.type == DTYPE_F32) {
        w = *(const uint4 *)c.at;
    } else {
        *(uint2 *)&w = *(const uint2 *)c.at;
    }
    return widen_four(c.type, w);
}

CUDA_FN void write_words(const column_words &c, char *at, const four &f) {
    if (c.type == DTYPE_F32) {
        *(float4 *)at = make_float4(f.v[0], f.v[1], f.v[2], f.v[3]);
    } else {
        *(uint2 *)at = narrow_four(c.type, f);
    }
}

// Returns false, with nothing done, where it is another case.
CUDA_FN bool map_words(const rows_instr &in, const rows_block &k, const step *s, bool second, int n) {
    if (n % 4 || ROWS_THREADS % (n / 4) || in.op == ROWS_SLICE_BACK || in.to.add == ROWS_ADD_HOME) return false;
    bool copies = in.op == ROWS_COPY, home = in.to.data, slot = in.to.slot >= 0, adds = in.to.add == ROWS_ADD_SLOT;
    int quads = n / 4, quad = threadIdx.x % quads, r = threadIdx.x / quads, apart = ROWS_THREADS / quads;
    int j = quad * 4, at = j + (copies ? in.at : 0);
    column_words a = column_of(in.a, k, in.a.slot >= 0, j + (copies ? in.from : 0), r, apart), b = a, h = a, t = a;
    if (second) b = column_of(in.b, k, in.b.slot >= 0, j, r, apart);
    if (home) h = column_of(in.to, k, false, at, r, apart);
    if (slot) t = column_of(in.to, k, true, at, r, apart);
    if (!a.words || !b.words || !h.words || !t.words) return false;
    for (; r < k.rows; r += apart, a.at += a.apart, b.at += b.apart, h.at += h.apart, t.at += t.apart) {
        four x = read_words(a), y = {};
        if (second) y = read_words(b);
        combine(in, k, s, r, quad, &x, y);
        if (adds) {
            four old = read_words(t);
#pragma unroll
            for (int e = 0; e < 4; e++) x.v[e] += old.v[e];
        }
        if (home) write_words(h, h.at, x);
        if (slot) write_words(t, t.at, x);
    }
    return true;
}

CUDA_FN void map(const rows_instr &in, const rows_block &k, const step *s) {
    bool second = in.b.data && (in.op == ROWS_SLOPE || in.op == ROWS_AXPBY || in.op == ROWS_POINTWISE_BACK);
    int n = in.op == ROWS_COPY ? in.n : in.to.width;
    if (!map_words(in, k, s, second, n)) map_slowly(in, k, s, second, n);
}

// Losses and metrics: a thread a row

CUDA_FN ce_args ce_row_args(const rows_instr &in, const rows_block &k, int r) {
    int64_t row = k.row + r;
    return ce_args{row_of(in.a, k, r), (const int32_t *)in.p[0] + row, view{(float *)in.p[1] + row, DTYPE_F32, false},
        view{(void *)in.p[2], DTYPE_F32, false}, 1, in.a.width, in.x};
}

CUDA_FN void cross_entropy(const rows_instr &in, const rows_block &k) {
    int r = threadIdx.x;
    loss_sums mine = {0, 0};
    if (r < k.rows) {
        ce_args a = ce_row_args(in, k, r);
        mine = row_loss(&a, 0);
    }
    loss_piece(mine, (loss_sums *)in.to.data);
}

// A thread a logit: rows are few.
CUDA_FN void cross_entropy_back(const rows_instr &in, const rows_block &k) {
    unsigned K = (unsigned)in.to.width;
    for (unsigned i = threadIdx.x; i < k.rows * K; i += ROWS_THREADS) {
        int r = (int)(i / K), j = (int)(i - r * K);
        ce_args a = ce_row_args(in, k, r);
        ce_row back = row_back(&a, 0, *(const float *)in.b.data);
        put_one(in.to, k, r, j, row_back_at(&a, &back, 0, j));
    }
}

CUDA_FN void pointwise(const rows_instr &in, const rows_block &k) {
    int r = threadIdx.x, C = in.a.width;
    loss_sums mine = {0, 0};
    float w = r < k.rows ? ((const float *)in.p[1])[k.row + r] : 0, sum = 0;
    if (w != 0) {
        view p = row_of(in.a, k, r), t = row_of(in.b, k, r);
        for (int j = 0; j < C; j++) {
            float d = view_load(p, j) - view_load(t, j);
            sum += in.flag ? d * d : fabsf(d);
        }
        mine = loss_sums{(double)(w * sum), (double)(w * (float)C)};
    }
    loss_piece(mine, (loss_sums *)in.to.data);
}

CUDA_FN int largest(view z, int K) {
    int best = 0;
    float top = view_load(z, 0);
    for (int j = 1; j < K; j++) {
        float v = view_load(z, j);
        if (v > top || (top != top && v == v)) {
            top = v;
            best = j;
        }
    }
    return best;
}

// Rows of a warp that fall into the same cell add to it at once.
CUDA_FN void confusion(const rows_instr &in, const rows_block &k) {
    int r = threadIdx.x, K = in.a.width;
    if (r / 32 * 32 >= k.rows) return;
    bool live = r < k.rows && ((const float *)in.p[1])[k.row + r] != 0;
    int cell = live ? ((const int32_t *)in.p[0])[k.row + r] * K + largest(row_of(in.a, k, r), K) : -1;
    unsigned peers = __match_any_sync(0xFFFFFFFFu, cell);
    if (live && __ffs(peers) - 1 == r % 32)
        atomicAdd((unsigned long long *)in.to.data + cell, (unsigned long long)__popc(peers));
}

// The interpreter

template <int MATH, int MT, bool WIDE, bool BACK> CUDA_FN void linear_any(const rows_instr &in, const rows_block &k) {
    if (WIDE && in.flag) {
        linear<MATH, MT, 4, BACK>(in, k);
    } else {
        linear<MATH, MT, 1, BACK>(in, k);
    }
}

template <int MATH, int MT, bool WIDE> CUDA_FN void rows_run(const rows_instr &in, const rows_block &k, const step *s) {
    switch (in.op) {
    case ROWS_LINEAR: linear_any<MATH, MT, WIDE, false>(in, k); break;
    case ROWS_LINEAR_BACK: linear_any<MATH, MT, WIDE, true>(in, k); break;
    case ROWS_CROSS_ENTROPY: cross_entropy(in, k); break;
    case ROWS_CROSS_ENTROPY_BACK: cross_entropy_back(in, k); break;
    case ROWS_POINTWISE: pointwise(in, k); break;
    case ROWS_CONFUSION: confusion(in, k); break;
    default: map(in, k, s); break;
    }
}

CUDA_FN void tally(const float *sums, double *total, bool first) {
    int k = threadIdx.x;
    if (k >= 2) return;
    double v = (double)sums[k];
    total[TALLY_STEP_SUM + k] = first ? v : total[TALLY_STEP_SUM + k] + v;
    total[TALLY_SUM + k] += v;
}

CUDA_FN void rows_run_last(const rows_instr &in, step *s) {
    switch (in.op) {
    case ROWS_LOSS_ADD: loss_total((const loss_sums *)in.a.data, in.n, (float *)in.to.data); break;
    case ROWS_TALLY: tally((const float *)in.a.data, (double *)in.to.data, in.flag); break;
    case ROWS_ADVANCE:
        if (threadIdx.x == 0) s->row += (uint64_t)in.n;
        break;
    }
}

// Whether all other blocks have come here before: what they wrote is then visible, and what they read is done with.
CUDA_FN bool is_last(unsigned *ticket) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        if (last) *ticket = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// Programs with wide products take the registers of a whole multiprocessor, others share it.
template <int MATH, int MT, bool WIDE>
static __global__ void __launch_bounds__(ROWS_THREADS, WIDE ? 1 : 2)
    rows_kernel(const rows_program *program) {
    extern __shared__ __align__(16) char room[];
    __shared__ rows_program p; // near, and so is the step record: every instruction looks at them, once
    __shared__ step now;
    for (int i = threadIdx.x; i < (int)(sizeof p / sizeof(uint2)); i += ROWS_THREADS)
        ((uint2 *)&p)[i] = ((const uint2 *)program)[i];
    __syncthreads();
    if (threadIdx.x == 0 && p.step) now = *p.step;
    __syncthreads();
    rows_block k = {room, (int64_t)blockIdx.x * MT * ROWS_TILE, MT * ROWS_TILE};
    if (k.row + k.rows > p.rows) k.rows = (int)(p.rows - k.row);
    for (int i = 0; i < p.body; i++) {
        rows_run<MATH, MT, WIDE>(p.code[i], k, &now);
        __syncthreads();
    }
    if (p.body == p.count || !is_last(p.ticket)) return;
    for (int i = p.body; i < p.count; i++) {
        rows_run_last(p.code[i], p.step_written);
        __syncthreads();
    }
}

// Shared memory beyond 48 KB must be asked for.
template <int MATH, int MT, bool WIDE> static void rows_start(const call *c, const rows_program *p) {
    cudaFuncSetAttribute(rows_kernel<MATH, MT, WIDE>, cudaFuncAttributeMaxDynamicSharedMemorySize, p->room);
    LAUNCH(c, (rows_kernel<MATH, MT, WIDE>), (unsigned)rows_blocks(p->rows), ROWS_THREADS, (size_t)p->room,
        (const rows_program *)p->on_card);
}

template <int MATH> static void rows_start_any(const call *c, const rows_program *p) {
    if (p->tiles == 1) {
        p->wide ? rows_start<MATH, 1, true>(c, p) : rows_start<MATH, 1, false>(c, p);
    } else {
        p->wide ? rows_start<MATH, 2, true>(c, p) : rows_start<MATH, 2, false>(c, p);
    }
}

#endif
