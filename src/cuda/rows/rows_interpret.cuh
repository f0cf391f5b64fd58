// The interpreter of row kernels (cuda/rows/rows.h): a block of 8 or 16 warps takes its rows through all instructions,
// with a barrier after each that others wait for. Products read their left operand from a slot and the weights, packed
// for them, straight from memory: the first of these are on their way before the barrier. Nearly all that a block costs
// is the latency of loads, so whatever loads asks for all it can before it uses the first.
//
// A lane holds 4t .. 4t+3 of every 16 terms of a sum of 4-byte operands, where the tensor cores want t and t+4 of every
// 8: a permutation, the same in both operands, that makes every load a vector. In the same way tile j of NJ tiles of 8
// columns consists of columns j, NJ + j, 2 NJ + j, ..., so that a lane's results are 2 NJ columns side by side. Past
// the edges the packed weights are zeros.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_INTERPRET_CUH
#define TRADEWIND_CUDA_ROWS_ROWS_INTERPRET_CUH

#include "cuda/ops/activation.cuh"
#include "cuda/ops/cross_entropy.cuh"
#include "cuda/product/mma.cuh"

#include <cuda_pipeline.h>

extern "C" {
#include "ops/random.h"
}

// Where blocks are few, those of row kernels with wide products have the warps of a whole multiprocessor; others share
// it by twos, of which one waits while the other works. Products of few columns are cut into slices, one a warp: so
// many sums of theirs must be kept.
template <int MT, bool WIDE> struct rows_shape {
    enum { ALONE = WIDE && MT == 1, THREADS = ALONE ? 512 : 256, SLICED = THREADS * 4 * (ALONE ? 4 : MT) };
};

// Where a block stands: its shared memory, its first row, and how many are real.
struct rows_block {
    char *room;
    float *slices; // of products: 128 sums of every warp for each of its tiles
    const random_key *now;
    int row, rows;
};

// The barrier: what was loaded to shared memory has arrived, with `but_last` all but what was asked for last; and all
// threads are here.
CUDA_FN void meet(bool but_last = false) {
    if (but_last) {
        __pipeline_wait_prior(1);
    } else {
        __pipeline_wait_prior(0);
    }
    __syncthreads();
}

// Rows of tiles

// A tile's rows, at home or in its slot: those of the block, from its first one.
struct place {
    char *at;
    uint32_t row; // bytes from row to row
    bool full;    // fp32; else the row kernel's own type
};

template <int MATH> CUDA_FN bool is_full(int type) {
    return sizeof(typename math_type<MATH>::element) == 4 || type == DTYPE_F32;
}

CUDA_FN char *home_row(const rows_tile &t, int row) {
    char *at;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(t.home_row), "l"(t.data));
    return at;
}

template <int MATH> CUDA_FN place home_of(const rows_tile &t, const rows_block &k) {
    return place{home_row(t, k.row), t.home_row, is_full<MATH>(t.type)};
}

template <int MATH> CUDA_FN place slot_of(const rows_tile &t, const rows_block &k) {
    return place{k.room + t.slot, t.slot_row, is_full<MATH>(t.slot_type)};
}

// Where a tile is read.
template <int MATH> CUDA_FN place place_of(const rows_tile &t, const rows_block &k) {
    return t.slot >= 0 ? slot_of<MATH>(t, k) : home_of<MATH>(t, k);
}

CUDA_FN char *element_at(const place &p, int r, int c) {
    return p.at + ((uint32_t)r * p.row + ((uint32_t)c << (p.full ? 2 : 1)));
}

// N elements side by side: 1, or more that are words.
template <int N> CUDA_FN void read_words(uint32_t w[N], const char *at) {
#pragma unroll
    for (int i = 0; i < N / 4; i++) *(uint4 *)(w + 4 * i) = ((const uint4 *)at)[i];
    if (N == 2) *(uint2 *)w = *(const uint2 *)at;
    if (N == 1) *w = *(const uint32_t *)at;
}

template <int N> CUDA_FN void write_words(char *at, const uint32_t w[N]) {
#pragma unroll
    for (int i = 0; i < N / 4; i++) ((uint4 *)at)[i] = *(const uint4 *)(w + 4 * i);
    if (N == 2) *(uint2 *)at = *(const uint2 *)w;
    if (N == 1) *(uint32_t *)at = *w;
}

// N elements as they lie, of either type: what is made of them may wait until others are on their way too.
template <int N> struct raw { alignas(N < 4 ? 4 * N : 16) uint32_t w[N]; };

template <int N> CUDA_FN void read_raw(raw<N> *to, const place &p, int r, int c) {
    const char *at = element_at(p, r, c);
    if (p.full) {
        read_words<N>(to->w, at);
    } else if constexpr (N == 1) {
        to->w[0] = *(const uint16_t *)at;
    } else {
        read_words<N / 2>(to->w, at);
    }
}

template <int MATH, int N> CUDA_FN void widen_raw(float v[N], const raw<N> &from, bool full) {
    typedef typename math_type<MATH>::element E;
#pragma unroll
    for (int i = 0; i < N; i++) {
        v[i] = __uint_as_float(from.w[i]);
        uint16_t bits = (uint16_t)(from.w[i / 2] >> i % 2 * 16);
        if (sizeof(E) == 2 && !full) v[i] = widen(*(const E *)&bits);
    }
}

template <int MATH, int N> CUDA_FN void read_run(float v[N], const place &p, int r, int c) {
    typedef typename math_type<MATH>::element E;
    const char *at = element_at(p, r, c);
    if constexpr (N == 1) {
        v[0] = p.full ? *(const float *)at : widen(*(const E *)at);
    } else if (p.full) {
        read_words<N>((uint32_t *)v, at);
    } else {
        alignas(16) E e[N];
        read_words<N / 2>((uint32_t *)e, at);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = widen(e[i]);
    }
}

template <int MATH, int N> CUDA_FN void write_run(const float v[N], const place &p, int r, int c) {
    char *at = element_at(p, r, c);
    if constexpr (N == 1) {
        if (p.full) {
            *(float *)at = v[0];
        } else {
            convert((typename math_type<MATH>::element *)at, v[0]);
        }
    } else if (p.full) {
        write_words<N>(at, (const uint32_t *)v);
    } else {
        alignas(16) uint32_t w[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++) w[i] = pair_word<MATH>(v[2 * i], v[2 * i + 1]);
        write_words<N / 2>(at, w);
    }
}

// A result's two places, either of which may be none.
struct places {
    place home, slot;
    int add;
    bool has_home, has_slot;
};

template <int MATH> CUDA_FN places places_of(const rows_tile &t, const rows_block &k) {
    return places{home_of<MATH>(t, k), slot_of<MATH>(t, k), t.add, t.data != NULL, t.slot >= 0};
}

template <int MATH, int N> CUDA_FN void put_run(float v[N], const places &to, int r, int c) {
    if (to.add != ROWS_OVERWRITE) {
        alignas(16) float old[N];
        if (to.add == ROWS_ADD_SLOT) {
            read_run<MATH, N>(old, to.slot, r, c);
        } else {
            read_run<MATH, N>(old, to.home, r, c);
        }
#pragma unroll
        for (int e = 0; e < N; e++) v[e] += old[e];
    }
    if (to.has_home) write_run<MATH, N>(v, to.home, r, c);
    if (to.has_slot) write_run<MATH, N>(v, to.slot, r, c);
}

// Products

// 16 rows and 16 terms of the left operand, as the tensor cores take them. 2-byte elements come as fragments; of 4-byte
// elements a lane has terms 4t .. 4t + 3 of rows g and g + 8.
struct terms {
    uint32_t lo[4], hi[4]; // of 2-byte elements, lo alone
};

template <int MATH> CUDA_FN terms load_terms(const typename math_type<MATH>::element *a, int ld) {
    int lane = threadIdx.x % 32;
    terms q = {};
    if constexpr (math_type<MATH>::K == 16) {
        load_matrices(q.lo, shared_address(a + lane % 16 * ld + lane / 16 * 8));
    } else {
        const float *lo = a + lane / 4 * ld + lane % 4 * 4, *hi = lo + 8 * ld;
        *(uint4 *)q.lo = *(const uint4 *)lo;
        *(uint4 *)q.hi = *(const uint4 *)hi;
    }
    return q;
}

// Masks of a lane's words of a run that has `left` terms: zeros for words behind them, which may hold anything.
template <int MATH> CUDA_FN void keep_terms(uint32_t keep[4], int left) {
    int t = threadIdx.x % 4;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if constexpr (math_type<MATH>::K == 16) {
            int first = 2 * t + e / 2 * 8; // word e: terms first and first + 1 of row g or g + 8
            keep[e] = first >= left ? 0 : first + 1 >= left ? 0x0000FFFFu : 0xFFFFFFFFu;
        } else {
            keep[e] = 4 * t + e >= left ? 0 : 0xFFFFFFFFu;
        }
    }
}

// A lane's share of 16 x 8 weights: two words of pairs, or four words.
template <int MATH> struct weights_type {
    enum { WORDS = math_type<MATH>::K == 16 ? 2 : 4 };
};

template <int MATH> CUDA_FN void terms_mma(float acc[4], const terms &q, const uint32_t *w) {
    if constexpr (math_type<MATH>::K == 16) {
        mma<MATH>(acc, frag_a{{q.lo[0], q.lo[1], q.lo[2], q.lo[3]}}, frag_b{{w[0], w[1]}});
    } else {
#pragma unroll
        for (int e = 0; e < 4; e += 2)
            mma<MATH>(acc, frag_a{{q.lo[e], q.hi[e], q.lo[e + 1], q.hi[e + 1]}}, frag_b{{w[e], w[e + 1]}});
    }
}

// A lane's WORDS words of one run of terms, as cuda/rows/pack.cuh lays them.
template <int WORDS> CUDA_FN void fetch(uint32_t w[WORDS], const uint32_t *run) {
    int lane = threadIdx.x % 32;
    if constexpr (WORDS == 2) {
        *(uint2 *)w = ((const uint2 *)run)[lane];
    } else {
#pragma unroll
        for (int q = 0; q < WORDS / 4; q++) *(uint4 *)(w + 4 * q) = ((const uint4 *)run)[q * 32 + lane];
    }
}

// acc += a run of terms q of a tile times its weights.
template <int MATH, int NJ>
CUDA_FN void product_run(float acc[NJ][4], terms q, const uint32_t *w, bool cut, const uint32_t keep[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (cut) q.lo[e] &= keep[e], q.hi[e] &= keep[e];
#pragma unroll
    for (int j = 0; j < NJ; j++) terms_mma<MATH>(acc[j], q, w + j * weights_type<MATH>::WORDS);
}

// A warp's weights of a product: every `apart`th run of terms from `first` to `last`, DEPTH of which are under way at
// any time, as the registers allow. `w` is set to zeros at first, since registers that are set only where something is
// fetched would be kept through all other instructions.
template <int MATH, int MT, int NJ> struct weights_of {
    enum { WORDS = NJ * weights_type<MATH>::WORDS, RUN = 32 * WORDS };
    enum { DEPTH = WORDS != 8 ? 32 / WORDS : MT == 1 ? 5 : 3 };
    alignas(16) uint32_t w[DEPTH][WORDS];
    const uint32_t *packed;
    int first, last, apart;
};

template <int MATH, int MT, int NJ> CUDA_FN void weights_begin(weights_of<MATH, MT, NJ> *w) {
    typedef weights_of<MATH, MT, NJ> of;
#pragma unroll
    for (int d = 0; d < of::DEPTH; d++) {
        int s = w->first + d * w->apart;
        if (s > w->last) break;
        fetch<of::WORDS>(w->w[d], w->packed + s * of::RUN);
    }
}

// acc += a (MT tiles of 16 rows, K columns) times the 8 NJ columns of those weights. Where there are registers for it,
// the next run's terms are on their way while this one's are multiplied.
template <int MATH, int MT, int NJ>
CUDA_FN void product(
    float acc[MT][NJ][4], const typename math_type<MATH>::element *a, int K, weights_of<MATH, MT, NJ> *w) {
    typedef weights_of<MATH, MT, NJ> of;
    const bool ahead = math_type<MATH>::K == 16 && NJ == 1;
    int ld = rows_ld(K), left = K % ROWS_TERMS, partial = left ? K / ROWS_TERMS : -1, s = w->first;
    uint32_t keep[4];
    terms next_q[MT];
    keep_terms<MATH>(keep, left);
#pragma unroll
    for (int i = 0; i < MT && ahead; i++) next_q[i] = load_terms<MATH>(a + i * 16 * ld + s * ROWS_TERMS, ld);
    for (;;) {
#pragma unroll
        for (int d = 0; d < of::DEPTH; d++, s += w->apart) {
            if (s > w->last) return;
            const typename math_type<MATH>::element *from = a + (ahead ? min(s + w->apart, w->last) : s) * ROWS_TERMS;
#pragma unroll
            for (int i = 0; i < MT; i++) {
                terms q = next_q[i], loaded = load_terms<MATH>(from + i * 16 * ld, ld);
                next_q[i] = loaded;
                product_run<MATH, NJ>(acc[i], ahead ? q : loaded, w->w[d], s == partial, keep);
            }
            int next = s + of::DEPTH * w->apart;
            if (next <= w->last) fetch<of::WORDS>(w->w[d], w->packed + next * of::RUN);
        }
    }
}

// Element by element, of results in registers

// N elements from column j on, a multiple of N: all of the eight that share random words, or a part of them.
template <int N>
CUDA_FN void dropped(const rows_instr &in, const rows_block &k, const random_key *s, int r, int j, float a[N]) {
    static_assert(N == 1 || N == 2 || N == 4 || N == RANDOM_OCTET, "parts of eight elements");
    rng_block bits = random_dropout(s, (uint64_t)(k.row + r), in.node, (uint32_t)j / RANDOM_OCTET);
    if (N <= 4 && j & 4) bits.v[0] = bits.v[2], bits.v[1] = bits.v[3];
    if (N <= 2 && j & 2) bits.v[0] = bits.v[1];
    if (N == 1 && j & 1) bits.v[0] >>= 16;
#pragma unroll
    for (int e = 0; e < N; e++) a[e] = random_bits(&bits, e) >= in.least ? a[e] * in.x : 0.0f;
}

template <int MATH, int N> CUDA_FN void round_run(float v[N]) {
    typedef typename math_type<MATH>::element E;
#pragma unroll
    for (int e = 0; e < N; e++) {
        E low;
        convert(&low, v[e]);
        v[e] = widen(low);
    }
}

// Values at home that a product adds to, or else those that the first instruction chained to it reads there, for the
// lane's columns in its two rows of a tile. They are asked for before the product begins. Wide products have no
// registers for them.
enum { BY_NONE, BY_PRODUCT = -1 };
template <int N> struct asked {
    raw<N> v[2];
    int by; // BY_PRODUCT, or which one, from 1 on
};

template <int MATH, int N>
CUDA_FN void ask_at(asked<N> *to, const rows_tile &t, const rows_block &k, int r, int c, int by) {
    place from = home_of<MATH>(t, k);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (r + 8 * h < k.rows) read_raw<N>(&to->v[h], from, r + 8 * h, c);
    to->by = by;
}

template <int MATH, int N>
CUDA_FN void ask(asked<N> *to, const rows_instr *product, int count, const rows_block &k, int r, int c) {
    if (product->takes & ROWS_EARLY) ask_at<MATH, N>(to, product->to, k, r, c, BY_PRODUCT);
#pragma unroll 1
    for (int n = 1; n <= count && to->by == BY_NONE; n++) {
        const rows_instr &in = product[n];
        int j = c - in.a.column;
        if (!(in.takes & ROWS_EARLY) || (unsigned)j >= (unsigned)in.n) continue;
        ask_at<MATH, N>(to, in.b, k, r, j + in.b.column, n);
    }
}

// An instruction behind a product that goes on with its results, of which a lane has runs of two rows, or with those of
// the one before it: v, from column c on; past the edges of what it reads there is nothing to do. What it takes is
// rounded as it would be in memory. `here`: what it reads has been asked for.
template <int MATH, int N>
CUDA_FN void chained(
    const rows_instr in, const rows_block &k, int r, int *c, float v[2][N], const raw<N> *ready, bool here) {
    int j = *c - in.a.column;
    *c = -1;
    if ((unsigned)j >= (unsigned)in.n) return;
    places to = places_of<MATH>(in.to, k);
    alignas(16) float y[2][N] = {};
    if (here) {
#pragma unroll
        for (int h = 0; h < 2; h++) widen_raw<MATH, N>(y[h], ready[h], is_full<MATH>(in.b.type));
    } else if (in.b.data) {
        place b = place_of<MATH>(in.b, k);
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (r + 8 * h < k.rows) read_run<MATH, N>(y[h], b, r + 8 * h, j + in.b.column);
    }
    if (sizeof(typename math_type<MATH>::element) == 2 && in.a.type != DTYPE_F32) {
        round_run<MATH, N>(v[0]);
        round_run<MATH, N>(v[1]);
    }
    if (in.op == ROWS_SLOPE) {
#pragma unroll
        for (int h = 0; h < 2; h++) slope_run<N>(in.act, v[h], y[h]);
    } else if (in.op != ROWS_DROPOUT) {
        bool second = in.takes & ROWS_AS_SECOND;
#pragma unroll
        for (int n = 0; n < 2 * N; n++) {
            float own = v[n / N][n % N], other = y[n / N][n % N];
            v[n / N][n % N] = in.x * (second ? other : own) + in.y * (second ? own : other);
        }
    } else if (in.flag) {
#pragma unroll
        for (int h = 0; h < 2; h++) dropped<N>(in, k, k.now, r + 8 * h, j, v[h]);
    }
    *c = in.to.column + j;
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (r + 8 * h < k.rows) put_run<MATH, N>(v[h], to, r + 8 * h, *c);
}

// All that is chained to a product. Of wide ones each goes on with what is before it: there are no registers for more.
template <int MATH, int N>
CUDA_FN void chain(
    const rows_instr *product, int count, const rows_block &k, int r, int c, float v[2][N], const asked<N> &ready) {
    alignas(16) float branch[2][N];
    int at = c;
#pragma unroll 1
    for (int n = 1; n <= count; n++) {
        if constexpr (N > 2) {
            chained<MATH, N>(product[n], k, r, &at, v, NULL, false);
        } else {
            bool again = product[n].takes & ROWS_OF_PRODUCT;
            if (again) at = c;
#pragma unroll
            for (int e = 0; e < 2 * N; e++) branch[e / N][e % N] = again ? v[e / N][e % N] : branch[e / N][e % N];
            chained<MATH, N>(product[n], k, r, &at, branch, ready.v, n == ready.by);
        }
    }
}

// A lane's runs of two rows, whose columns are no words: one element after another, the next one moved to the front
// each time, until all are in their places again.
template <int MATH, int N> CUDA_FN void put_single(float v[2][N], const places &to, int width, int rows, int r, int c) {
#pragma unroll(N == 2 ? 2 : 1)
    for (int n = 0; n < 2 * N; n++) {
        int row = r + n / N * 8, column = c + n % N;
        float first = v[0][0], one = first;
        if (row < rows && column < width) put_run<MATH, 1>(&one, to, row, column);
#pragma unroll
        for (int e = 0; e + 1 < 2 * N; e++) v[e / N][e % N] = v[(e + 1) / N][(e + 1) % N];
        v[1][N - 1] = first;
    }
}

// A product's results: a lane's runs of 2 NJ columns, of rows g and g + 8 of a tile, one tile after another, the next
// one moved to the front each time. `in` is a copy of what is at `at`, so that its fields come at once and nothing that
// is stored can change them; the instructions that are chained to it follow there.
template <int MATH, int MT, int NJ>
CUDA_FN void put_tiles(const rows_instr &in, const rows_instr *at, const rows_block &k, float acc[MT][NJ][4],
    const float bias[2 * NJ], asked<2 * NJ> ready[MT], int c) {
    const int N = 2 * NJ;
    alignas(16) float v[2][N];
    places to = places_of<MATH>(in.to, k);
#pragma unroll 1
    for (int i = 0; i < MT; i++) {
        int r = i * 16 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int n = 0; n < 2 * N; n++) v[n / N][n % N] = acc[0][n % NJ][n / NJ] + bias[n % N];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            activate_run<N>(in.act, v[h]);
            if (NJ == 1 && ready[0].by == BY_PRODUCT) {
                alignas(16) float old[N];
                widen_raw<MATH, N>(old, ready[0].v[h], to.home.full);
                to.add = ROWS_OVERWRITE;
#pragma unroll
                for (int e = 0; e < N; e++) v[h][e] += old[e];
            }
            if (in.to.vectors && r + 8 * h < k.rows) put_run<MATH, N>(v[h], to, r + 8 * h, c);
        }
        if (!in.to.vectors) put_single<MATH, N>(v, to, in.to.width, k.rows, r, c);
        chain<MATH, N>(at, in.chain, k, r, c, v, ready[0]);
#pragma unroll
        for (int e = 0; e < MT - 1; e++) ready[e] = ready[e + 1];
#pragma unroll
        for (int n = 0; n < (MT - 1) * NJ * 4; n++)
            acc[n / (NJ * 4)][n / 4 % NJ][n % 4] = acc[n / (NJ * 4) + 1][n / 4 % NJ][n % 4];
    }
}

// The warp's number, the same register in all its lanes.
CUDA_FN int warp_of() {
    return __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 32, 0);
}

// The sums of a group's slices, which its first warp adds in order. All warps of the block come here.
template <int MT, int NJ> CUDA_FN void add_slices(float acc[MT][NJ][4], float *room, int warp, int groups, int slices) {
    float4 *mine = (float4 *)room + threadIdx.x % 32;
    int group = warp % groups;
#pragma unroll
    for (int i = 0; i < MT * NJ; i++)
        if (warp >= groups) mine[(warp * MT * NJ + i) * 32] = *(const float4 *)acc[i / NJ][i % NJ];
    __syncthreads();
    if (warp >= groups) return;
#pragma unroll(MT *NJ < 4 ? 4 : 1)
    for (int n = 1; n < slices; n++) {
#pragma unroll
        for (int i = 0; i < MT * NJ; i++) {
            float4 v = mine[((n * groups + group) * MT * NJ + i) * 32];
            float *a = acc[i / NJ][i % NJ];
            a[0] += v.x, a[1] += v.y, a[2] += v.z, a[3] += v.w;
        }
    }
}

// Asks for the homes that chained instructions read while the product waits for its operands: they may have left the
// cache.
CUDA_FN void ask_ahead(const rows_instr *at, int chain, const rows_block &k) {
    const unsigned LINE = 128;
#pragma unroll 1
    for (int n = 1; n <= chain; n++) {
        const rows_tile &y = at[n].b;
        if (!y.data || y.slot >= 0) continue;
        const char *from = home_row(y, k.row);
        unsigned bytes = (unsigned)k.rows * y.home_row;
#pragma unroll 1
        for (unsigned i = threadIdx.x * LINE; i < bytes; i += blockDim.x * LINE)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
    }
}

// The weights of a product that comes later are loaded to shared memory.
CUDA_FN void bring(const rows_instr &later, const rows_block &k) {
    char *to = k.room + later.b.slot;
    const char *from = (const char *)later.p[0];
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < later.cells; i += blockDim.x)
        __pipeline_memcpy_async(to + i * 16, from + i * 16, 16);
    __pipeline_commit();
}

// A warp has groups of 8 NJ columns; where fewer groups are left than warps, several warps share one, each with a slice
// of the terms; not so in fp32, where the sum's order is that of a single call. The barrier behind what came before is
// here: weights and bias do not wait for it.
template <int MATH, int MT, int NJ> CUDA_FN void linear(const rows_instr *at, const rows_block &k) {
    const rows_instr in = *at;
    const typename math_type<MATH>::element *a = (const typename math_type<MATH>::element *)(k.room + in.a.slot);
    int K = in.a.width, runs = (K + ROWS_TERMS - 1) / ROWS_TERMS, groups = (in.to.width + 8 * NJ - 1) / (8 * NJ);
    int warps = blockDim.x / 32, warp = warp_of();
    bool here = MT == 1 && in.b.slot >= 0, brings = MT == 1 && in.n; // weights
    const uint32_t *packed = here ? (const uint32_t *)(k.room + in.b.slot) : (const uint32_t *)in.p[0];
    if (here) meet();
#pragma unroll 1
    for (int first = 0; first < groups; first += warps) {
        int left = min(groups - first, warps), slices = MATH != MATH_F32 && MT * NJ <= 4 ? min(warps / left, runs) : 1;
        bool cut = slices > 1;
        int slice = warp / left, group = first + warp - slice * left;
        int c = group * 8 * NJ + 2 * NJ * (threadIdx.x % 4);
        float acc[MT][NJ][4] = {};
        alignas(16) float bias[2 * NJ] = {};
        bool mine = slice == 0 && c < in.to.width, works = slice < slices;
        weights_of<MATH, MT, NJ> w = {};
        w.packed = packed + group * runs * w.RUN;
        w.first = slice, w.last = runs - 1, w.apart = slices;
        if (works) weights_begin<MATH, MT, NJ>(&w);
        if (mine && in.p[1]) read_words<2 * NJ>((uint32_t *)bias, (const char *)((const float *)in.p[1] + c));
        asked<2 * NJ> ready[MT] = {};
        if (NJ == 1 && mine) {
#pragma unroll
            for (int i = 0; i < MT; i++)
                ask<MATH, 2 * NJ>(&ready[i], at, in.chain, k, i * 16 + threadIdx.x % 32 / 4, c);
        }
        if (first == 0) {
            if (NJ > 1 && sizeof *a == 2)
                ask_ahead(at, in.chain, k); // large layers in 4 bytes are few, and registers full
            if (brings) bring(at[in.n], k);
            if (!here) meet(brings);
        }
        if (works) product<MATH, MT, NJ>(acc, a, K, &w);
        if (cut) add_slices<MT, NJ>(acc, k.slices, warp, left, slices);
        if (mine) put_tiles<MATH, MT, NJ>(in, at, k, acc, bias, ready, c);
    }
}

// Element by element: all such instructions are one piece of code, which stays small that way

// Row and column of the nth of a block's cells.
struct cell {
    int r, c;
};

CUDA_FN cell cell_of(const rows_instr &in, unsigned n) {
    unsigned r = __umulhi(2 * n, in.inverse);
    return cell{(int)r, (int)(n - r * in.cells)};
}

// A thread's number, from the first one of the instruction's warp on; blocks have a power of two of them.
CUDA_FN unsigned thread_of(const rows_instr &in) {
    return (threadIdx.x - 32u * in.warp) & (blockDim.x - 1);
}

template <int N>
CUDA_FN void differences_back(const rows_instr &in, const rows_block &k, int r, float a[N], const float b[N]) {
    float w = ((const float *)in.p[1])[k.row + r], scale = *(const float *)in.p[0] * w;
#pragma unroll
    for (int e = 0; e < N; e++) {
        float d = a[e] - b[e], slope = in.flag ? 2 * d : (float)((d > 0) - (d < 0));
        a[e] = w != 0 ? scale * slope : 0.0f;
    }
}

template <int N>
CUDA_FN void combine(const rows_instr &in, const rows_block &k, cell at, float a[N], const float b[N]) {
    switch (in.op) {
    case ROWS_COPY:
    case ROWS_AXPBY:
#pragma unroll
        for (int e = 0; e < N; e++) a[e] = in.x * a[e] + in.y * b[e];
        return;
    case ROWS_DROPOUT:
        if (in.flag) dropped<N>(in, k, k.now, at.r, at.c * N, a);
        return;
    case ROWS_SLOPE: slope_run<N>(in.act, a, b); return;
    case ROWS_POINTWISE_BACK: differences_back<N>(in, k, at.r, a, b); return;
    default: return;
    }
}

// A thread has cells of N columns, as many apart as there are threads; AT_ONCE of them are read before the first is
// used, which is then the one at the front. Where no thread has more than one, that takes half of the instructions.
// Cells that an instruction reads of a tile are those that it writes there. Outside of a, where a slice's gradient is
// wider, there are zeros. The instruction is a copy: nothing that is stored can change it, so that it is read once and
// all at the start.
template <int MATH, int N, int AT_ONCE> CUDA_FN void map_cells(const rows_instr in, const rows_block &k) {
    place a = place_of<MATH>(in.a, k), b = a;
    places to = places_of<MATH>(in.to, k);
    bool second = in.b.data;
    int from = in.a.column, at = in.to.column, width = in.a.width;
    if (second) b = place_of<MATH>(in.b, k);
    for (unsigned n = thread_of(in); AT_ONCE > 1 || n < blockDim.x;) {
        raw<N> x[AT_ONCE] = {}, y[AT_ONCE] = {};
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            cell i = cell_of(in, n + u * blockDim.x);
            if (i.r >= k.rows) break;
            if ((unsigned)(i.c * N + from) < (unsigned)width) read_raw<N>(&x[u], a, i.r, i.c * N + from);
            if (second) read_raw<N>(&y[u], b, i.r, i.c * N + in.b.column);
        }
#pragma unroll 1
        for (int u = 0; u < AT_ONCE; u++, n += blockDim.x) {
            cell i = cell_of(in, n);
            if (i.r >= k.rows) return;
            alignas(16) float v[N], other[N];
            widen_raw<MATH, N>(v, x[0], a.full);
            widen_raw<MATH, N>(other, y[0], b.full);
            combine<N>(in, k, i, v, other);
            put_run<MATH, N>(v, to, i.r, i.c * N + at);
#pragma unroll
            for (int e = 0; e + 1 < AT_ONCE; e++) x[e] = x[e + 1], y[e] = y[e + 1];
        }
    }
}

CUDA_FN char *unit_at(const place &p, cell i) {
    return p.at + ((uint32_t)i.r * p.row + (uint32_t)i.c * 16);
}

// A tile as it lies, straight to its slot, where it is after the next barrier.
template <int MATH> CUDA_FN void load_plain(const rows_instr in, const rows_block &k) {
    place from = home_of<MATH>(in.a, k), to = slot_of<MATH>(in.to, k);
    for (unsigned n = thread_of(in);; n += blockDim.x) {
        cell i = cell_of(in, n);
        if (i.r >= k.rows) break;
        __pipeline_memcpy_async(unit_at(to, i), unit_at(from, i), 16);
    }
    __pipeline_commit();
}

// A unit of 16 bytes d *= slope of ReLU where the result was y.
template <int MATH> CUDA_FN uint4 sloped_unit(uint4 d, uint4 y) {
    typedef typename math_type<MATH>::element E;
    uint32_t w[4] = {d.x, d.y, d.z, d.w}, z[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int q = 0; q < 4; q++) {
        if constexpr (sizeof(E) == 2) {
            const E *a = (const E *)&w[q], *b = (const E *)&z[q];
            float lo = widen(a[0]), hi = widen(a[1]);
            w[q] = pair_word<MATH>(
                lo * activation_slope(ACT_RELU, 0, widen(b[0])), hi * activation_slope(ACT_RELU, 0, widen(b[1])));
        } else {
            float slope = activation_slope(ACT_RELU, 0, __uint_as_float(z[q]));
            w[q] = __float_as_uint(__uint_as_float(w[q]) * slope);
        }
    }
    return uint4{w[0], w[1], w[2], w[3]};
}

// ReLU's slope where all tiles are of the products' type: the widest, back from layers outside.
template <int MATH> CUDA_FN void slope_plain(const rows_instr in, const rows_block &k) {
    const int AT_ONCE = 4;
    place a = place_of<MATH>(in.a, k), b = place_of<MATH>(in.b, k);
    places to = places_of<MATH>(in.to, k);
#pragma unroll 1
    for (unsigned n = thread_of(in); n < in.cells * (uint32_t)k.rows;) {
        uint4 x[AT_ONCE] = {}, y[AT_ONCE] = {};
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            cell i = cell_of(in, n + u * blockDim.x);
            if (i.r >= k.rows) break;
            x[u] = *(const uint4 *)unit_at(a, i);
            y[u] = *(const uint4 *)unit_at(b, i);
        }
#pragma unroll 1
        for (int u = 0; u < AT_ONCE; u++, n += blockDim.x) {
            cell i = cell_of(in, n);
            if (i.r >= k.rows) return;
            uint4 v = sloped_unit<MATH>(x[0], y[0]);
            if (to.has_home) *(uint4 *)unit_at(to.home, i) = v;
            if (to.has_slot) *(uint4 *)unit_at(to.slot, i) = v;
#pragma unroll
            for (int q = 0; q + 1 < AT_ONCE; q++) x[q] = x[q + 1], y[q] = y[q + 1];
        }
    }
}

template <int MATH> CUDA_FN void map(const rows_instr &in, const rows_block &k) {
    if (thread_of(in) / 32 * 32 >= in.cells * (uint32_t)k.rows) return; // none for this warp
    if (in.vectors == ROWS_PLAIN && in.op == ROWS_SLOPE) {
        slope_plain<MATH>(in, k);
    } else if (in.vectors == ROWS_PLAIN) {
        load_plain<MATH>(in, k);
    } else if (in.vectors && in.cells * (uint32_t)k.rows <= blockDim.x) {
        map_cells<MATH, 4, 1>(in, k);
    } else if (in.vectors) {
        map_cells<MATH, 4, 4>(in, k);
    } else {
        map_cells<MATH, 1, 4>(in, k);
    }
}

// Losses and metrics: a thread a row, all of which one warp has; those that follow each other run at the same time,
// with a warp each

static_assert(2 * ROWS_TILE <= 32, "the rows of a block are those of a warp");

CUDA_FN ce_row ce_row_at(const rows_instr &in, const rows_block &k, int r) {
    float weight = ((const float *)in.p[1])[k.row + r];
    int32_t label = ((const int32_t *)in.p[0])[k.row + r];
    return ce_row{view{(void *)in.p[2], DTYPE_F32, false}, in.a.width, in.x, weight, label};
}

// The row of a thread of the instruction's warp; others have none.
CUDA_FN int row_in_warp(const rows_instr &in) {
    return threadIdx.x / 32 == in.warp ? (int)(threadIdx.x % 32) : -1;
}

template <int MATH> CUDA_FN void cross_entropy(const rows_instr &in, const rows_block &k) {
    typedef typename math_type<MATH>::element E;
    int r = row_in_warp(in);
    loss_sums mine = {0, 0};
    if (r < 0) return;
    if (r < k.rows) {
        place p = place_of<MATH>(in.a, k);
        const char *z = element_at(p, r, 0);
        ce_row row = ce_row_at(in, k, r);
        mine = p.full ? row_loss(&row, (const float *)z) : row_loss(&row, (const E *)z);
    }
    loss_warp_piece(mine, (loss_sums *)in.to.data);
}

// A thread a logit, from the instruction's warp on: rows are few.
template <int MATH> CUDA_FN void cross_entropy_back(const rows_instr &in, const rows_block &k) {
    typedef typename math_type<MATH>::element E;
    place p = place_of<MATH>(in.a, k);
    places to = places_of<MATH>(in.to, k);
#pragma unroll 1
    for (unsigned n = thread_of(in);; n += blockDim.x) {
        cell i = cell_of(in, n);
        if (i.r >= k.rows) return;
        const char *z = element_at(p, i.r, 0);
        float up = *(const float *)in.b.data, v;
        ce_row row = ce_row_at(in, k, i.r);
        ce_back back = p.full ? row_back(&row, (const float *)z, up) : row_back(&row, (const E *)z, up);
        read_run<MATH, 1>(&v, p, i.r, i.c);
        v = row_back_at(&row, &back, v, i.c);
        put_run<MATH, 1>(&v, to, i.r, i.c);
    }
}

template <int MATH> CUDA_FN void pointwise(const rows_instr &in, const rows_block &k) {
    int r = row_in_warp(in), C = in.a.width;
    if (r < 0) return;
    float w = r < k.rows ? ((const float *)in.p[1])[k.row + r] : 0, sum = 0;
    place p = place_of<MATH>(in.a, k), t = place_of<MATH>(in.b, k);
    for (int j = 0; w != 0 && j < C; j++) {
        float x, y;
        read_run<MATH, 1>(&x, p, r, j);
        read_run<MATH, 1>(&y, t, r, j);
        sum += in.flag ? (x - y) * (x - y) : fabsf(x - y);
    }
    loss_warp_piece(loss_sums{(double)(w * sum), (double)(w * (float)C)}, (loss_sums *)in.to.data);
}

// Rows that fall into the same cell add to it at once.
template <int MATH> CUDA_FN void confusion(const rows_instr &in, const rows_block &k) {
    typedef typename math_type<MATH>::element E;
    int r = row_in_warp(in), K = in.a.width, cell = -1;
    if (r < 0) return;
    if (r < k.rows) {
        float w = ((const float *)in.p[1])[k.row + r];
        int32_t label = ((const int32_t *)in.p[0])[k.row + r];
        place p = place_of<MATH>(in.a, k);
        const char *z = element_at(p, r, 0);
        int best = p.full ? largest((const float *)z, K) : largest((const E *)z, K);
        if (w != 0) cell = label * K + best;
    }
    unsigned peers = __match_any_sync(0xFFFFFFFFu, cell);
    if (cell >= 0 && __ffs(peers) - 1 == r)
        atomicAdd((unsigned long long *)in.to.data + cell, (unsigned long long)__popc(peers));
}

// The interpreter

template <int MATH, int MT, bool WIDE> CUDA_FN void linear_any(const rows_instr *in, const rows_block &k) {
    if (WIDE && in->flag) {
        linear<MATH, MT, ROWS_WIDE>(in, k);
    } else {
        linear<MATH, MT, 1>(in, k);
    }
}

template <int MATH, int MT, bool WIDE> CUDA_FN void rows_run(const rows_instr *in, const rows_block &k) {
    switch (in->op) {
    case ROWS_LINEAR:
    case ROWS_LINEAR_BACK: linear_any<MATH, MT, WIDE>(in, k); break;
    case ROWS_CROSS_ENTROPY: cross_entropy<MATH>(*in, k); break;
    case ROWS_CROSS_ENTROPY_BACK: cross_entropy_back<MATH>(*in, k); break;
    case ROWS_POINTWISE: pointwise<MATH>(*in, k); break;
    case ROWS_CONFUSION: confusion<MATH>(*in, k); break;
    default: map<MATH>(*in, k); break;
    }
}

// True if what comes next waits for all that came before it: products do so themselves.
CUDA_FN bool waits(const rows_instr &in) {
    return in.op == ROWS_LINEAR || in.op == ROWS_LINEAR_BACK;
}

template <int MATH, int MT, bool WIDE>
static __global__ void __launch_bounds__(rows_shape<MT, WIDE>::THREADS, rows_shape<MT, WIDE>::ALONE ? 1 : 2)
    rows_interpret(const row_kernel *code, step s) {
    extern __shared__ __align__(16) char room[];
    __shared__ row_kernel p; // near, and so is the step record: every instruction looks at them, once
    __shared__ random_key now;
    __shared__ __align__(16) float slices[rows_shape<MT, WIDE>::SLICED];
    static_assert(sizeof p + sizeof now + sizeof slices + 64 <= (WIDE ? ROWS_OWN_WIDE : ROWS_OWN), "what rows.h says");
    for (int i = threadIdx.x; i < (int)(sizeof p / sizeof(uint4)); i += blockDim.x)
        ((uint4 *)&p)[i] = ((const uint4 *)code)[i]; // constant: it need not wait for anything
    cuda_begin();
    if (threadIdx.x == 0 && s.progress) now = random_key_of(s);
    __syncthreads();
    rows_block k = {room, slices, &now, (int)blockIdx.x * MT * ROWS_TILE, MT * ROWS_TILE};
    if (k.row + k.rows > p.rows) k.rows = (int)(p.rows - k.row);
    for (int i = 0, next; i < p.body; i = next) {
        rows_run<MATH, MT, WIDE>(&p.code[i], k);
        next = i + 1 + p.code[i].chain;
        if (next < p.body && !p.code[i].open && !waits(p.code[next])) meet();
    }
}

template <int MATH, int MT, bool WIDE> static void rows_start(const call *c, const row_kernel *p) {
    cuda_allow_shared((const void *)rows_interpret<MATH, MT, WIDE>, (size_t)p->room);
    LAUNCH_EARLY(c, (rows_interpret<MATH, MT, WIDE>), (unsigned)rows_blocks(p->rows), (rows_shape<MT, WIDE>::THREADS),
        (size_t)p->room, (const row_kernel *)p->on_card, p->step);
}

template <int MATH> static void rows_start_any(const call *c, const row_kernel *p) {
    if (p->tiles == 1) {
        p->wide ? rows_start<MATH, 1, true>(c, p) : rows_start<MATH, 1, false>(c, p);
    } else {
        p->wide ? rows_start<MATH, 2, true>(c, p) : rows_start<MATH, 2, false>(c, p);
    }
}

#endif
