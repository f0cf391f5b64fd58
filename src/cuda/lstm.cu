// lstm on the card: see ops/lstm.c. The whole sequence in one launch, on the tensor cores.
//
// A block takes 16 samples of one direction through all steps. Warp w owns units 8w .. 8w+7 with all four gates, laid out
// so that a lane holds i, f, g and o of the same units and the cell needs no exchange; c stays in registers. The operand
// [x | h] of a step lies in shared memory, double-buffered: one barrier a step, and the next step's x is fetched to
// registers meanwhile. Weights are held in registers as fragments where the operand has up to 48 columns; otherwise they lie
// in shared memory, or in scratch where they do not fit.
//
// Forward keeps h and c (in the operands' type) in the order of the lanes. Backward recomputes the gates, which is cheaper
// than reading them, and exchanges their gradients dz through shared memory for the previous step's dh. Where the
// weights' gradients of a warp fit its registers and no dx is wanted they are summed on the way (`fused`), one partial
// per block; otherwise dz and h go to scratch and three products follow.
//
// Blocks walk over tiles in strides that depend on the sizes alone, so sums have a fixed order.
#include "cuda/gemm.cuh"

enum { ROWS = 16, UNITS = 8, GROUPS = 192, WARPS_MOST = 16, FUSED_WARPS = 4, FUSED_K = 48 };

struct lstm_args {
    view x, w_ih[2], w_hh[2], b_ih[2], b_hh[2], h0, c0, reset;
    view h_last, c_last, states;                        // results
    view dh_last, dc_last, dstates, dh0, dc0;           // gradients
    int64_t B, T;
    int I, H, D, UT;  // units' tiles: ceil(H / 8)
    int KX, KH;       // tiles of the operand's columns for x and for h
    int tiles, groups;
    char *kept;       // reserve
    uint2 *packed;    // fragments in scratch, or NULL: in shared memory
    float *parts;     // fused: [D][groups][4H][I + H + 1]
    char *dz, *hp;    // not fused: [D][B * T][4H], [D][B * T][H]
};

// Threads of a block and blocks that a multiprocessor should hold, for kernels that hold their weights in registers (NT > 0)
// and others: at 3 blocks of 128 threads a batch of 3072 is one wave on 132 multiprocessors.
#define LSTM_BOUNDS(MATH, NT)                                                                                          \
    __launch_bounds__((NT ? FUSED_WARPS : WARPS_MOST) * 32, NT ? (sizeof(typename math_type<MATH>::element) == 2 ? 3 : 2) : 1)

// How the operand's elements are laid out for one way of multiplying.
template <int MATH> struct layout {
    typedef typename math_type<MATH>::element E;
    enum { K = math_type<MATH>::K, PAD = sizeof(E) == 2 ? 8 : 4 };
};

template <int MATH> static __host__ __device__ int operand_ld(int KX, int KH) {
    return (KX + KH) * layout<MATH>::K + layout<MATH>::PAD;
}

template <int MATH> static __host__ __device__ int dz_ld(int KH) {
    return 4 * KH * layout<MATH>::K + layout<MATH>::PAD;
}

// Fragments of one unit tile: [KX + KH][4 gates][32 lanes], then for backward w_hh' as [4 gates * KH][32].
static __host__ __device__ int fragments(int KX, int KH, bool backward) {
    return ((KX + KH) * 4 + (backward ? 4 * KH : 0)) * 32;
}

// Fragments

template <int MATH> CUDA_FN float forward_weight(const lstm_args &a, int d, int gate, int unit, int k) {
    if (unit >= a.H) return 0;
    int row = gate * a.H + unit, xs = a.KX * layout<MATH>::K;
    if (k < xs) return k < a.I ? view_load_call(a.w_ih[d], (int64_t)row * a.I + k) : 0;
    return k - xs < a.H ? view_load_call(a.w_hh[d], (int64_t)row * a.H + k - xs) : 0;
}

// Row of dz (gate and unit), padded per gate, to the unit it flows back to.
template <int MATH> CUDA_FN float backward_weight(const lstm_args &a, int d, int row, int unit) {
    int per = a.KH * layout<MATH>::K, gate = row / per, from = row % per;
    return from < a.H && unit < a.H ? view_load_call(a.w_hh[d], (int64_t)(gate * a.H + from) * a.H + unit) : 0;
}

CUDA_FN uint32_t pack2(float a, float b, __nv_bfloat16) {
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}
CUDA_FN uint32_t pack2(float a, float b, __half) {
    __half2 v = __floats2half2_rn(a, b);
    return *(uint32_t *)&v;
}

// Word `half` of a lane's B fragment, whose elements `at(k)` are those of its column.
#define FRAGMENT_WORD(at, half)                                                                                        \
    (layout<MATH>::K == 16 ? pair_word<MATH>(at(2 * t + 8 * (half)), at(2 * t + 1 + 8 * (half)))                       \
                           : __float_as_uint(at(t + 4 * (half))))

template <int MATH> CUDA_FN uint32_t pair_word(float a, float b) {
    if (MATH == MATH_F16) return pack2(a, b, __half());
    return pack2(a, b, __nv_bfloat16());
}

template <int MATH>
static __device__ void pack_tile(const lstm_args &a, int d, int tile, bool backward, uint2 *to, int first, int stride) {
    int n = fragments(a.KX, a.KH, backward), forward = (a.KX + a.KH) * 4 * 32;
    for (int i = first; i < n; i += stride) {
        int lane = i % 32, g = lane / 4, t = lane % 4, unit = tile * UNITS + g;
        if (i < forward) {
            int gate = i / 32 % 4, k0 = i / 128 * layout<MATH>::K;
            auto at = [&](int k) { return forward_weight<MATH>(a, d, gate, unit, k0 + k); };
            to[i] = make_uint2(FRAGMENT_WORD(at, 0), FRAGMENT_WORD(at, 1));
        } else {
            int k0 = (i - forward) / 32 * layout<MATH>::K;
            auto at = [&](int k) { return backward_weight<MATH>(a, d, k0 + k, unit); };
            to[i] = make_uint2(FRAGMENT_WORD(at, 0), FRAGMENT_WORD(at, 1));
        }
    }
}

template <int MATH> static __global__ void pack_kernel(lstm_args a, bool backward) {
    int d = blockIdx.y, tile = blockIdx.x;
    pack_tile<MATH>(a, d, tile, backward, a.packed + (int64_t)(d * a.UT + tile) * fragments(a.KX, a.KH, backward),
        threadIdx.x, blockDim.x);
}

// This warp's fragments: packed into shared memory now, or in scratch already.
template <int MATH>
static __device__ const uint2 *own_fragments(const lstm_args &a, int d, int warp, bool backward, uint2 *shared) {
    int n = fragments(a.KX, a.KH, backward);
    if (a.packed) return a.packed + (int64_t)(d * a.UT + warp) * n;
    pack_tile<MATH>(a, d, warp, backward, shared + warp * n, threadIdx.x % 32, 32);
    return shared + warp * n;
}

CUDA_FN frag_b fragment(const uint2 *f, int i) {
    uint2 v = f[i * 32 + threadIdx.x % 32];
    return frag_b{{v.x, v.y}};
}

// A warp's weights: N fragments in registers, or with N = 0 where they lie.
template <int N> struct held {
    frag_b f[N ? N : 1];
    const uint2 *at;
};

template <int N> CUDA_FN void hold(held<N> *w, const uint2 *at) {
    w->at = at;
#pragma unroll
    for (int i = 0; i < N; i++) w->f[i] = fragment(at, i);
}

// How many tiles of the operand's columns NT tiles of 8 are.
template <int MATH, int NT> struct tiles {
    enum { K = NT * 8 / math_type<MATH>::K };
};

// The operand's 16 x K tile: by one instruction for 2-byte elements.
template <int MATH> CUDA_FN frag_a operand_a(const typename math_type<MATH>::element *p, int ld) {
    if (sizeof(typename math_type<MATH>::element) == 4) return load_a<MATH>(p, ld);
    int lane = threadIdx.x % 32;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(p + lane % 16 * ld + lane / 16 * 8);
    frag_a a;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a.w[0]), "=r"(a.w[1]), "=r"(a.w[2]), "=r"(a.w[3])
                 : "r"(at));
    return a;
}

// Gates and cells

template <int MATH> CUDA_FN float fast_tanh(float x) {
    if (sizeof(typename layout<MATH>::E) == 4) return tanhf(x);
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <int MATH> CUDA_FN float fast_sigmoid(float x) {
    if (sizeof(typename layout<MATH>::E) == 4) return 1 / (1 + expf(-x));
    return fmaf(0.5f, fast_tanh<MATH>(0.5f * x), 0.5f);
}

// A lane's four elements: samples g and g + 8, units 2t and 2t + 1 of the warp's tile.
struct seat {
    int warp, lane, g, unit; // unit: the first of the two
    int64_t sample;          // of row g
};

CUDA_FN seat seat_of(int64_t tile) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    return seat{warp, lane, lane / 4, warp * UNITS + lane % 4 * 2, tile * ROWS + lane / 4};
}

// Whether element e of the lane is a real sample and a real unit.
CUDA_FN bool real(const lstm_args &a, const seat &s, int e) {
    return s.sample + e / 2 * 8 < a.B && s.unit + e % 2 < a.H;
}

CUDA_FN int64_t state_index(const lstm_args &a, const seat &s, int d, int e) {
    return ((s.sample + e / 2 * 8) * a.D + d) * a.H + s.unit + e % 2;
}

CUDA_FN int64_t states_index(const lstm_args &a, const seat &s, int d, int64_t t, int e) {
    return (((s.sample + e / 2 * 8) * a.T + t) * a.D + d) * a.H + s.unit + e % 2;
}

CUDA_FN bool is_reset(const lstm_args &a, const seat &s, int64_t t, int e) {
    int64_t sample = s.sample + e / 2 * 8;
    return a.reset.data && sample < a.B && view_load_call(a.reset, sample * a.T + t) != 0;
}

template <int MATH, int NT> CUDA_FN void gates_of(const lstm_args &a, const typename layout<MATH>::E *operand, int ld,
    const held<tiles<MATH, NT>::K * 4> &weights, const float bias[4][2], float z[4][4]) {
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int e = 0; e < 4; e++) z[q][e] = bias[q][e % 2];
    if (NT > 0) {
#pragma unroll
        for (int k = 0; k < tiles<MATH, NT>::K; k++) {
            frag_a x = operand_a<MATH>(operand + k * layout<MATH>::K, ld);
#pragma unroll
            for (int q = 0; q < 4; q++) mma<MATH>(z[q], x, weights.f[k * 4 + q]);
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < a.KX + a.KH; k++) {
            frag_a x = operand_a<MATH>(operand + k * layout<MATH>::K, ld);
#pragma unroll
            for (int q = 0; q < 4; q++) mma<MATH>(z[q], x, fragment(weights.at, k * 4 + q));
        }
    }
}

CUDA_FN void load_bias(const lstm_args &a, const seat &s, int d, float bias[4][2]) {
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int unit = s.unit + j, row = q * a.H + unit;
            bias[q][j] = unit < a.H ? view_load_call(a.b_ih[d], row) + view_load_call(a.b_hh[d], row) : 0;
        }
}

// The operand [x | h] of a step: x from memory, h from lanes. A thread fetches up to AHEAD elements of the next step's x
// before it computes and puts them into place afterwards; what exceeds that is fetched when it is put.
enum { AHEAD = 4 };

// Where a thread's elements of x come from, at step 0, and where they go in the operand; -1 for none.
struct places {
    int64_t from[AHEAD];
    int to[AHEAD];
};

struct fetched {
    float v[AHEAD];
};

CUDA_FN int64_t x_index(const lstm_args &a, int64_t tile, int i) {
    int64_t sample = tile * ROWS + i / a.I;
    return sample < a.B ? sample * a.T * a.I + i % a.I : -1;
}

CUDA_FN void places_of(const lstm_args &a, int64_t tile, int ld, places *p) {
#pragma unroll
    for (int n = 0; n < AHEAD; n++) {
        int i = threadIdx.x + n * blockDim.x;
        bool inside = i < ROWS * a.I;
        p->from[n] = inside ? x_index(a, tile, i) : -1;
        p->to[n] = inside ? i / a.I * ld + i % a.I : -1;
    }
}

// The choice of x's type stands outside, so that the loads follow each other without a branch.
CUDA_FN void fetch_x(const lstm_args &a, const places &p, int t, fetched *f) {
    int64_t shift = (int64_t)t * a.I;
    if (a.x.type == DTYPE_F32) {
#pragma unroll
        for (int n = 0; n < AHEAD; n++) f->v[n] = p.from[n] >= 0 ? ((const float *)a.x.data)[p.from[n] + shift] : 0.0f;
    } else {
#pragma unroll
        for (int n = 0; n < AHEAD; n++) f->v[n] = p.from[n] >= 0 ? view_load(a.x, p.from[n] + shift) : 0.0f;
    }
}

template <typename E>
CUDA_FN void put_x(const lstm_args &a, const places &p, int64_t tile, int64_t t, const fetched &f, E *operand, int ld) {
#pragma unroll
    for (int n = 0; n < AHEAD; n++)
        if (p.to[n] >= 0) convert(&operand[p.to[n]], f.v[n]);
    if (ROWS * a.I <= AHEAD * (int)blockDim.x) return;
    for (int i = threadIdx.x + AHEAD * blockDim.x; i < ROWS * a.I; i += blockDim.x) {
        int64_t at = x_index(a, tile, i);
        convert(&operand[i / a.I * ld + i % a.I], at >= 0 ? view_load_call(a.x, at + t * a.I) : 0.0f);
    }
}

// Two units side by side are one word for 2-byte elements.
template <int MATH> CUDA_FN void put_h(const seat &s, typename layout<MATH>::E *operand, int ld, int column, const float h[4]) {
    typename layout<MATH>::E *lo = operand + s.g * ld + column + s.unit, *hi = lo + 8 * ld;
    if (sizeof(*lo) == 2) {
        *(uint32_t *)lo = pair_word<MATH>(h[0], h[1]);
        *(uint32_t *)hi = pair_word<MATH>(h[2], h[3]);
        return;
    }
    convert(lo, h[0]);
    convert(lo + 1, h[1]);
    convert(hi, h[2]);
    convert(hi + 1, h[3]);
}

template <typename E> static __device__ void clear_operands(E *at, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) convert(&at[i], 0.0f);
}

// What is kept of a step, per lane: h[4], c[4].
template <int MATH> CUDA_FN typename layout<MATH>::E *kept_at(const lstm_args &a, int d, int64_t tile, int64_t t, const seat &s) {
    int64_t at = (((int64_t)d * a.tiles + tile) * a.T + t) * a.UT * 32 + s.warp * 32 + s.lane;
    return (typename layout<MATH>::E *)a.kept + at * 8;
}

template <typename E> CUDA_FN void keep(E *to, const float h[4], const float c[4]) {
    E v[8];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        convert(&v[e], h[e]);
        convert(&v[4 + e], c[e]);
    }
#pragma unroll
    for (int i = 0; i < (int)(8 * sizeof(E) / 16); i++) ((uint4 *)to)[i] = ((uint4 *)v)[i];
}

template <typename E> CUDA_FN void recall(const E *from, float h[4], float c[4]) {
    E v[8];
#pragma unroll
    for (int i = 0; i < (int)(8 * sizeof(E) / 16); i++) ((uint4 *)v)[i] = ((const uint4 *)from)[i];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        h[e] = widen(v[e]);
        c[e] = widen(v[4 + e]);
    }
}

// The state that step t of a tile starts from: h0 and c0, or zero.
CUDA_FN void first_state(const lstm_args &a, const seat &s, int d, float h[4], float c[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        bool given = a.h0.data && real(a, s, e);
        h[e] = given ? view_load_call(a.h0, state_index(a, s, d, e)) : 0;
        c[e] = given ? view_load_call(a.c0, state_index(a, s, d, e)) : 0;
    }
}

CUDA_FN void apply_reset(const lstm_args &a, const seat &s, int64_t t, float h[4], float c[4]) {
    if (!a.reset.data) return;
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (is_reset(a, s, t, e)) h[e] = c[e] = 0;
}

CUDA_FN void store_states(const lstm_args &a, const seat &s, int d, int t, const float h[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (real(a, s, e)) view_put_call(a.states, states_index(a, s, d, t, e), h[e]);
}

CUDA_FN void add_states(const lstm_args &a, const seat &s, int d, int t, float dh[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (real(a, s, e)) dh[e] += view_load_call(a.dstates, states_index(a, s, d, t, e));
}

CUDA_FN int time_of(const lstm_args &a, int d, int i) {
    return d ? (int)a.T - 1 - i : i;
}

// Forward

template <int MATH, int NT> static __device__ void forward_tile(const lstm_args &a, int d, int64_t tile,
    const held<tiles<MATH, NT>::K * 4> &weights, typename layout<MATH>::E *operands, const float bias[4][2]) {
    typedef typename layout<MATH>::E E;
    int ld = operand_ld<MATH>(a.KX, a.KH), column = a.KX * layout<MATH>::K;
    seat s = seat_of(tile);
    float h[4], c[4];
    fetched ahead;
    places from;
    places_of(a, tile, ld, &from);
    first_state(a, s, d, h, c);
    apply_reset(a, s, time_of(a, d, 0), h, c);
    fetch_x(a, from, time_of(a, d, 0), &ahead);
    put_x(a, from, tile, time_of(a, d, 0), ahead, operands, ld);
    put_h<MATH>(s, operands, ld, column, h);
    __syncthreads();
    E *kept = a.kept ? kept_at<MATH>(a, d, tile, 0, s) : NULL;
    const int T = (int)a.T, per_step = a.UT * 32 * 8;
    for (int i = 0; i < T; i++) {
        typename layout<MATH>::E *now = operands + (i & 1) * ROWS * ld, *next = operands + (~i & 1) * ROWS * ld;
        bool last = i + 1 == T;
        float z[4][4];
        if (!last) fetch_x(a, from, time_of(a, d, i + 1), &ahead);
        gates_of<MATH, NT>(a, now, ld, weights, bias, z);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float in = fast_sigmoid<MATH>(z[0][e]), f = fast_sigmoid<MATH>(z[1][e]);
            c[e] = f * c[e] + in * fast_tanh<MATH>(z[2][e]);
            h[e] = fast_sigmoid<MATH>(z[3][e]) * fast_tanh<MATH>(c[e]);
        }
        if (kept) keep(kept + (int64_t)i * per_step, h, c);
        if (a.states.data) store_states(a, s, d, time_of(a, d, i), h);
        if (last) break;
        apply_reset(a, s, time_of(a, d, i + 1), h, c);
        put_h<MATH>(s, next, ld, column, h);
        put_x(a, from, tile, time_of(a, d, i + 1), ahead, next, ld);
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        view_put_call(a.h_last, state_index(a, s, d, e), h[e]);
        view_put_call(a.c_last, state_index(a, s, d, e), c[e]);
    }
    __syncthreads();
}

template <int MATH, int NT>
static __global__ void LSTM_BOUNDS(MATH, NT) forward_kernel(lstm_args a) {
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    int d = blockIdx.y, warp = threadIdx.x / 32, ld = operand_ld<MATH>(a.KX, a.KH);
    E *operands = (E *)room;
    uint2 *shared = (uint2 *)((char *)room + (size_t)(2 * ROWS * ld) * sizeof(E));
    const uint2 *at = own_fragments<MATH>(a, d, warp, false, shared);
    float bias[4][2];
    load_bias(a, seat_of(0), d, bias);
    clear_operands(operands, 2 * ROWS * ld);
    __syncthreads();
    held<tiles<MATH, NT>::K * 4> weights;
    hold(&weights, at);
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += a.groups)
        forward_tile<MATH, NT>(a, d, tile, weights, operands, bias);
}

// Backward

// The gates' gradients of a lane's elements; dc becomes that of the step before.
template <int MATH> CUDA_FN void gates_back(float z[4][4], const float c[4], const float before[4], const float dh[4], float dc[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float in = fast_sigmoid<MATH>(z[0][e]), f = fast_sigmoid<MATH>(z[1][e]), g = fast_tanh<MATH>(z[2][e]);
        float o = fast_sigmoid<MATH>(z[3][e]), th = fast_tanh<MATH>(c[e]);
        float cell = dc[e] + dh[e] * o * (1 - th * th);
        z[0][e] = cell * g * in * (1 - in);
        z[1][e] = cell * before[e] * f * (1 - f);
        z[2][e] = cell * in * (1 - g * g);
        z[3][e] = dh[e] * th * o * (1 - o);
        dc[e] = cell * f;
    }
}

template <int MATH> CUDA_FN void dh_before(const lstm_args &a, const typename layout<MATH>::E *dz, int ld,
    const uint2 *back, float dh[4]) {
    float even[4] = {}, odd[4] = {};
    for (int k = 0; k < 4 * a.KH; k += 2) {
        mma<MATH>(even, operand_a<MATH>(dz + k * layout<MATH>::K, ld), fragment(back, k));
        mma<MATH>(odd, operand_a<MATH>(dz + (k + 1) * layout<MATH>::K, ld), fragment(back, k + 1));
    }
#pragma unroll
    for (int e = 0; e < 4; e++) dh[e] = even[e] + odd[e];
}

// Transposed operands of the weights' gradients, 16 samples deep. For 2-byte elements words are pairs of samples, and the
// hardware transposes 8 x 8 tiles.

CUDA_FN uint32_t turned(uint32_t w) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(w));
    return r;
}

// A: rows 0-7 are gate q's units of this warp, rows 8-15 gate q+1's; columns are samples s0 ..
template <int MATH> CUDA_FN frag_a dz_down(const typename layout<MATH>::E *dz, int ld, int per, int q, int warp, int s0,
    const float z[4][4]) {
    if (sizeof(typename layout<MATH>::E) == 2)
        return frag_a{{turned(pair_word<MATH>(z[q][0], z[q][1])), turned(pair_word<MATH>(z[q + 1][0], z[q + 1][1])),
            turned(pair_word<MATH>(z[q][2], z[q][3])), turned(pair_word<MATH>(z[q + 1][2], z[q + 1][3]))}};
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, lo = q * per + warp * UNITS + g, hi = lo + per;
    const uint32_t *p = (const uint32_t *)dz + (s0 + t) * ld;
    return frag_a{{p[lo], p[hi], p[4 * ld + lo], p[4 * ld + hi]}};
}

// B: 8 columns of the operand, from `column`.
template <int MATH> CUDA_FN frag_b operand_down(const typename layout<MATH>::E *x, int ld, int column, int s0) {
    if (sizeof(typename layout<MATH>::E) == 2) {
        uint32_t at = (uint32_t)__cvta_generic_to_shared(x + threadIdx.x % 16 * ld + column);
        frag_b b;
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b.w[0]), "=r"(b.w[1]) : "r"(at));
        return b;
    }
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t *p = (const uint32_t *)x + (s0 + t) * ld + column + g;
    return frag_b{{p[0], p[4 * ld]}};
}

template <int MATH, int NT> CUDA_FN void add_weights(const lstm_args &a, const typename layout<MATH>::E *dz, int dld,
    const typename layout<MATH>::E *x, int xld, int warp, const float z[4][4], float dw[2][NT][4]) {
    int per = a.KH * layout<MATH>::K;
#pragma unroll
    for (int s0 = 0; s0 < ROWS; s0 += layout<MATH>::K) {
        frag_a rows[2];
#pragma unroll
        for (int p = 0; p < 2; p++) rows[p] = dz_down<MATH>(dz, dld, per, 2 * p, warp, s0, z);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            frag_b column = operand_down<MATH>(x, xld, n * 8, s0);
#pragma unroll
            for (int p = 0; p < 2; p++) mma<MATH>(dw[p][n], rows[p], column);
        }
    }
}

// A block's partial gradients: [4H][I + H + 1], the last column for the bias.
template <int MATH, int NT> static __device__ void store_parts(const lstm_args &a, int d, const seat &s, float dw[2][NT][4],
    float db[4][2]) {
    int width = a.I + a.H + 1, xs = a.KX * layout<MATH>::K;
    float *to = a.parts + ((int64_t)d * a.groups + blockIdx.x) * 4 * a.H * width;
#pragma unroll
    for (int p = 0; p < 2; p++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int unit = s.warp * UNITS + s.g, gate = 2 * p + e / 2, k = n * 8 + s.lane % 4 * 2 + e % 2;
                bool from_x = k < xs;
                int column = from_x ? k : a.I + k - xs;
                if (unit >= a.H || (from_x ? k >= a.I : k - xs >= a.H)) continue;
                to[(int64_t)(gate * a.H + unit) * width + column] = dw[p][n][e];
            }
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float v = db[q][j];
            for (int m = 4; m < 32; m <<= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, m);
            if (s.g == 0 && s.unit + j < a.H) to[(int64_t)(q * a.H + s.unit + j) * width + a.I + a.H] = v;
        }
}

// dz and the h that the step started from, for the products that follow.
template <int MATH> CUDA_FN void spill(const lstm_args &a, const seat &s, int d, int64_t t, float z[4][4], const float h[4]) {
    typedef typename layout<MATH>::E E;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        int64_t at = (int64_t)d * a.B * a.T + (s.sample + e / 2 * 8) * a.T + t;
#pragma unroll
        for (int q = 0; q < 4; q++) convert((E *)a.dz + (at * 4 + q) * a.H + s.unit + e % 2, z[q][e]);
        convert((E *)a.hp + at * a.H + s.unit + e % 2, h[e]);
    }
}

// The step before step i, as kept or where the sequence starts; resets not applied.
template <typename E> CUDA_FN void state_before(const lstm_args &a, const seat &s, int d, const E *kept, int per_step, int i,
    float h[4], float c[4]) {
    if (i > 0) {
        recall(kept + (int64_t)(i - 1) * per_step, h, c);
    } else {
        first_state(a, s, d, h, c);
    }
}

CUDA_FN void load_gradient(const lstm_args &a, const seat &s, int d, view from, float v[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = from.data && real(a, s, e) ? view_load_call(from, state_index(a, s, d, e)) : 0;
}

// Step i needs c of step i, and h and c of the step before; while it computes, the state before that and the next x are
// fetched. Its operand was put by the step that ran before it; dz is written between the two barriers of a step.
template <int MATH, int NT> static __device__ void backward_tile(const lstm_args &a, int d, int64_t tile,
    const held<tiles<MATH, NT>::K * 4> &weights, typename layout<MATH>::E *operands, typename layout<MATH>::E *dzs,
    const float bias[4][2], float dw[2][NT ? NT : 1][4], float db[4][2]) {
    int ld = operand_ld<MATH>(a.KX, a.KH), zld = dz_ld<MATH>(a.KH), per = a.KH * layout<MATH>::K;
    int column = a.KX * layout<MATH>::K;
    const uint2 *back = weights.at + (a.KX + a.KH) * 4 * 32;
    seat s = seat_of(tile);
    float dh[4], dc[4], c[4], h[4], before[4], spare[4];
    fetched ahead;
    places from;
    places_of(a, tile, ld, &from);
    load_gradient(a, s, d, a.dh_last, dh);
    load_gradient(a, s, d, a.dc_last, dc);
    const typename layout<MATH>::E *kept = kept_at<MATH>(a, d, tile, 0, s);
    const int T = (int)a.T, per_step = a.UT * 32 * 8;
    recall(kept + (int64_t)(T - 1) * per_step, spare, c);
    state_before(a, s, d, kept, per_step, T - 1, h, before);
    fetch_x(a, from, time_of(a, d, T - 1), &ahead);
    for (int i = T - 1; i >= 0; i--) {
        int t = time_of(a, d, i);
        typename layout<MATH>::E *operand = operands + (i & 1) * ROWS * ld;
        float z[4][4], h_next[4] = {}, c_next[4] = {}, start[4];
        put_x(a, from, tile, t, ahead, operand, ld);
#pragma unroll
        for (int e = 0; e < 4; e++) start[e] = before[e];
        apply_reset(a, s, t, h, start);
        put_h<MATH>(s, operand, ld, column, h);
        __syncthreads();
        if (i > 0) {
            state_before(a, s, d, kept, per_step, i - 1, h_next, c_next);
            fetch_x(a, from, time_of(a, d, i - 1), &ahead);
        }
        if (a.dstates.data) add_states(a, s, d, t, dh);
        gates_of<MATH, NT>(a, operand, ld, weights, bias, z);
        gates_back<MATH>(z, c, start, dh, dc);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            put_h<MATH>(s, dzs, zld, q * per, z[q]);
#pragma unroll
            for (int j = 0; j < 2; j++) db[q][j] += z[q][j] + z[q][j + 2];
        }
        if (NT == 0) spill<MATH>(a, s, d, t, z, h);
        __syncthreads();
        dh_before<MATH>(a, dzs, zld, back, dh);
        if (NT > 0) add_weights<MATH, NT ? NT : 1>(a, dzs, zld, operand, ld, s.warp, z, dw);
        apply_reset(a, s, t, dh, dc);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            c[e] = before[e];
            before[e] = c_next[e];
            h[e] = h_next[e];
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        if (a.dh0.data) view_put_call(a.dh0, state_index(a, s, d, e), dh[e]);
        if (a.dc0.data) view_put_call(a.dc0, state_index(a, s, d, e), dc[e]);
    }
}

// NT: tiles of 8 operand columns whose gradients are summed in registers; 0: not fused.
template <int MATH, int NT>
static __global__ void LSTM_BOUNDS(MATH, NT) backward_kernel(lstm_args a) {
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    int d = blockIdx.y, warp = threadIdx.x / 32, ld = operand_ld<MATH>(a.KX, a.KH), zld = dz_ld<MATH>(a.KH);
    E *operands = (E *)room, *dzs = operands + 2 * ROWS * ld;
    uint2 *shared = (uint2 *)((char *)room + (size_t)(ROWS * (2 * ld + zld)) * sizeof(E));
    const uint2 *at = own_fragments<MATH>(a, d, warp, true, shared);
    float bias[4][2], db[4][2] = {}, dw[2][NT ? NT : 1][4] = {};
    load_bias(a, seat_of(0), d, bias);
    clear_operands(operands, ROWS * (2 * ld + zld));
    __syncthreads();
    held<tiles<MATH, NT>::K * 4> weights;
    hold(&weights, at);
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += a.groups)
        backward_tile<MATH, NT>(a, d, tile, weights, operands, dzs, bias, dw, db);
    if (NT > 0) store_parts<MATH, NT ? NT : 1>(a, d, seat_of(0), dw, db);
}

struct gradients {
    view w_ih[2], w_hh[2], b_ih[2], b_hh[2];
};

static __global__ void add_parts_kernel(lstm_args a, gradients to) {
    int width = a.I + a.H + 1;
    int64_t one = (int64_t)4 * a.H * width;
    FOR_EACH(i, one * a.D) {
        int d = (int)(i / one), row = (int)(i % one / width), k = (int)(i % width);
        const float *part = a.parts + d * a.groups * one + i % one;
        float sum = 0;
#pragma unroll 16
        for (int g = 0; g < a.groups; g++) sum += part[g * one];
        if (k < a.I) {
            if (to.w_ih[d].data) view_put(to.w_ih[d], (int64_t)row * a.I + k, sum);
        } else if (k < a.I + a.H) {
            if (to.w_hh[d].data) view_put(to.w_hh[d], (int64_t)row * a.H + k - a.I, sum);
        } else {
            if (to.b_ih[d].data) view_put(to.b_ih[d], row, sum);
            if (to.b_hh[d].data) view_put(to.b_hh[d], row, sum);
        }
    }
}

// The host's side

struct plan_of {
    lstm_args a;
    int math, element;
    bool fused, packed;
    size_t shared, pack_bytes, dz_bytes, hp_bytes, parts_bytes, products_bytes;
};

static const size_t SHARED_MOST = 160 << 10;

static size_t up64(size_t n) {
    return (n + 63) / 64 * 64;
}

static void fill_sizes(const call *c, plan_of *p) {
    const lstm_attr *at = (const lstm_attr *)c->attr;
    shape x = c->in[LSTM_X].shape;
    lstm_args *a = &p->a;
    p->math = math_of(c, c->out[LSTM_H_LAST].type);
    p->element = p->math == MATH_BF16 || p->math == MATH_F16 ? 2 : 4;
    int K = p->element == 2 ? 16 : 8;
    a->B = x.dim[0];
    a->T = x.dim[1];
    a->I = (int)x.dim[2];
    a->H = (int)c->in[LSTM_WEIGHTS + 1].shape.dim[1];
    a->D = at->directions;
    a->UT = (a->H + UNITS - 1) / UNITS;
    a->KX = (a->I + K - 1) / K;
    a->KH = (a->H + K - 1) / K;
    if (K == 8) a->KH += a->KX + a->KH == 2 || a->KX + a->KH == 5; // to a number of tiles that kernels are made for
    a->tiles = (int)((a->B + ROWS - 1) / ROWS);
    a->groups = a->tiles < GROUPS ? a->tiles : GROUPS;
    CHECK(a->UT <= WARPS_MOST, "lstm: the card takes up to %d units, not %d", WARPS_MOST * UNITS, a->H);
}

static size_t operand_bytes(const plan_of *p, bool backward) {
    const lstm_args *a = &p->a;
    int K = p->element == 2 ? 16 : 8, pad = p->element == 2 ? 8 : 4;
    int ld = (a->KX + a->KH) * K + pad, zld = 4 * a->KH * K + pad;
    return (size_t)(ROWS * (backward ? 2 * ld + zld : 2 * ld)) * p->element;
}

// Tiles of 8 columns of the operand, where the kernels made for that number can be used; otherwise 0.
static int tiles_held(const plan_of *p, bool allowed) {
    int columns = (p->a.KX + p->a.KH) * (p->element == 2 ? 16 : 8);
    return allowed && columns <= FUSED_K && p->a.UT <= FUSED_WARPS ? columns / 8 : 0;
}

static plan_of plan_lstm(const call *c) {
    plan_of p = {};
    fill_sizes(c, &p);
    const lstm_args *a = &p.a;
    size_t fragment_bytes = (size_t)a->UT * fragments(a->KX, a->KH, c->backward) * sizeof(uint2);
    p.shared = operand_bytes(&p, c->backward) + fragment_bytes;
    p.packed = p.shared > SHARED_MOST;
    if (p.packed) {
        p.shared = operand_bytes(&p, c->backward);
        p.pack_bytes = up64(fragment_bytes * a->D);
    }
    if (!c->backward) return p;
    p.fused = c->din[LSTM_X].shape.rank == 0 && tiles_held(&p, true) > 0;
    int64_t n = a->B * a->T, gates = 4 * a->H;
    if (p.fused) {
        p.parts_bytes = (size_t)a->D * a->groups * gates * (a->I + a->H + 1) * sizeof(float);
        return p;
    }
    p.dz_bytes = up64((size_t)(a->D * n * gates) * p.element);
    p.hp_bytes = up64((size_t)(a->D * n * a->H) * p.element);
    size_t need[] = {gemm_scratch(gates, a->I, n), gemm_scratch(gates, a->H, n), gemm_scratch(n, a->I, gates),
        column_sums_scratch(gates)};
    for (size_t bytes : need) p.products_bytes = bytes > p.products_bytes ? bytes : p.products_bytes;
    return p;
}

static void bind_inputs(const call *c, plan_of *p) {
    lstm_args *a = &p->a;
    int at = lstm_input_h0(a->D);
    a->x = view_of(&c->in[LSTM_X]);
    for (int d = 0; d < a->D; d++) {
        const operand *w = &c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        a->w_ih[d] = view_of(&w[0]);
        a->w_hh[d] = view_of(&w[1]);
        a->b_ih[d] = view_of(&w[2]);
        a->b_hh[d] = view_of(&w[3]);
    }
    a->h0 = view_of(&c->in[at]);
    a->c0 = view_of(&c->in[at + 1]);
    a->reset = view_of(&c->in[at + 2]);
    a->kept = (char *)c->reserve;
    a->packed = p->packed ? (uint2 *)c->scratch : NULL;
}

#define BY_MATH(math, launch)                                                                                          \
    switch (math) {                                                                                                    \
    case MATH_BF16: launch(MATH_BF16); break;                                                                          \
    case MATH_F16: launch(MATH_F16); break;                                                                            \
    case MATH_TF32: launch(MATH_TF32); break;                                                                          \
    default: launch(MATH_F32); break;                                                                                  \
    }

static void allow_shared(const void *kernel, size_t bytes) {
    if (bytes > (48 << 10)) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

static void pack(const call *c, const plan_of *p, bool backward) {
    if (!p->packed) return;
    dim3 grid(p->a.UT, p->a.D);
#define PACK(M) LAUNCH(c, pack_kernel<M>, grid, 128, 0, p->a, backward)
    BY_MATH(p->math, PACK)
}

template <int MATH, int NT> static void launch_forward(const call *c, const plan_of *p) {
    dim3 grid(p->a.groups, p->a.D);
    allow_shared((const void *)forward_kernel<MATH, NT>, p->shared);
    LAUNCH(c, (forward_kernel<MATH, NT>), grid, p->a.UT * 32, p->shared, p->a);
}

template <int MATH> static void choose_forward(const call *c, const plan_of *p) {
    switch (tiles_held(p, true)) {
    case 3: launch_forward<MATH, sizeof(typename layout<MATH>::E) == 4 ? 3 : 4>(c, p); return;
    case 4: launch_forward<MATH, 4>(c, p); return;
    case 6: launch_forward<MATH, 6>(c, p); return;
    default: launch_forward<MATH, 0>(c, p); return;
    }
}

static void forward(const call *c) {
    plan_of p = plan_lstm(c);
    const lstm_attr *at = (const lstm_attr *)c->attr;
    bind_inputs(c, &p);
    p.a.h_last = view_of(&c->out[LSTM_H_LAST]);
    p.a.c_last = view_of(&c->out[LSTM_C_LAST]);
    if (at->all_states) p.a.states = view_of(&c->out[LSTM_STATES]);
    pack(c, &p, false);
#define FORWARD(M) choose_forward<M>(c, &p)
    BY_MATH(p.math, FORWARD)
}

template <int MATH, int NT> static void launch_backward(const call *c, const plan_of *p) {
    dim3 grid(p->a.groups, p->a.D);
    allow_shared((const void *)backward_kernel<MATH, NT>, p->shared);
    LAUNCH(c, (backward_kernel<MATH, NT>), grid, p->a.UT * 32, p->shared, p->a);
}

template <int MATH> static void choose_backward(const call *c, const plan_of *p) {
    switch (tiles_held(p, p->fused)) {
    case 3: launch_backward<MATH, sizeof(typename layout<MATH>::E) == 4 ? 3 : 4>(c, p); return;
    case 4: launch_backward<MATH, 4>(c, p); return;
    case 6: launch_backward<MATH, 6>(c, p); return;
    default: launch_backward<MATH, 0>(c, p); return;
    }
}

// dW, db and dx from dz and h in scratch.
static void products(const call *c, const plan_of *p, float *parts) {
    const lstm_args *a = &p->a;
    int64_t n = a->B * a->T, gates = 4 * a->H;
    int type = p->math == MATH_BF16 ? DTYPE_BF16 : p->math == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
    for (int d = 0; d < a->D; d++) {
        const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        view dz = {a->dz + (size_t)(d * n * gates) * p->element, type, false};
        view hp = {a->hp + (size_t)(d * n * a->H) * p->element, type, false};
        gemm_finish f = {{}, {}, NULL, ACT_NONE};
        f.out = view_of(&dw[0]);
        if (f.out.data) gemm_product(c, p->math, gemm_args{{dz, 1, gates, false}, {a->x, 1, a->I, false}, gates, a->I, n, 1}, f, parts);
        f.out = view_of(&dw[1]);
        if (f.out.data) gemm_product(c, p->math, gemm_args{{dz, 1, gates, false}, {hp, 1, a->H, false}, gates, a->H, n, 1}, f, parts);
        for (int k = 2; k < 4; k++)
            if (dw[k].data) column_sums(c, dz, n, gates, view_of(&dw[k]), parts);
        f.out = view_of(&c->din[LSTM_X]);
        f.out.add |= d > 0;
        if (f.out.data)
            gemm_product(c, p->math, gemm_args{{dz, gates, 1, false}, {a->w_ih[d], 1, a->I, false}, n, a->I, gates, 1}, f, parts);
    }
}

static void backward(const call *c) {
    plan_of p = plan_lstm(c);
    lstm_args *a = &p.a;
    const lstm_attr *attr = (const lstm_attr *)c->attr;
    int at = lstm_input_h0(a->D);
    char *room = (char *)c->scratch + p.pack_bytes;
    bind_inputs(c, &p);
    a->dh_last = view_of(&c->dout[LSTM_H_LAST]);
    a->dc_last = view_of(&c->dout[LSTM_C_LAST]);
    if (attr->all_states) a->dstates = view_of(&c->dout[LSTM_STATES]);
    a->dh0 = view_of(&c->din[at]);
    a->dc0 = view_of(&c->din[at + 1]);
    a->parts = (float *)room;
    a->dz = room;
    a->hp = room + p.dz_bytes;
    pack(c, &p, true);
#define BACKWARD(M) choose_backward<M>(c, &p)
    BY_MATH(p.math, BACKWARD)
    if (!p.fused) {
        products(c, &p, (float *)(room + p.dz_bytes + p.hp_bytes));
        return;
    }
    gradients to = {};
    for (int d = 0; d < a->D; d++) {
        const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        to.w_ih[d] = view_of(&dw[0]);
        to.w_hh[d] = view_of(&dw[1]);
        to.b_ih[d] = view_of(&dw[2]);
        to.b_hh[d] = view_of(&dw[3]);
    }
    int64_t n = (int64_t)a->D * 4 * a->H * (a->I + a->H + 1);
    LAUNCH(c, add_parts_kernel, blocks_for(n, 128), 128, 0, *a, to);
}

static size_t scratch(const call *c) {
    plan_of p = plan_lstm(c);
    return p.pack_bytes + p.parts_bytes + p.dz_bytes + p.hp_bytes + p.products_bytes;
}

static size_t reserve(const call *c) {
    plan_of p = plan_lstm(c);
    return (size_t)(p.a.D * p.a.tiles * p.a.T * p.a.UT * 32 * 8) * p.element;
}

extern "C" const kernel cuda_lstm = {forward, backward, scratch, reserve};
