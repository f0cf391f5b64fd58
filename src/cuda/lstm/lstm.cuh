// Common parts of the recurrent kernels: how samples, units and operands are laid out. See ops/lstm.c for the meaning.
//
// A block takes 16 samples of one direction through all steps. Warp w owns units 8w .. 8w+7 with all four gates, laid
// out so that a lane holds i, f, g and o of the same units and the cell needs no exchange; c stays in registers. The
// operand of a step is [x | h]: x lies in shared memory for many steps at once, converted; h is exchanged through
// shared memory, double-buffered, one barrier a step. Kernels are made for FX and FH tiles of the operand's columns,
// x's and h's, and hold their weights in registers; with FH = 0 any number is taken, and the weights lie in shared
// memory, or in scratch where they do not fit. Where backward sums the weights' gradients x has a column of ones after
// its last, for the bias's.
//
// In 16-bit modes the weights of i, f and o are halved, which is exact, since sigmoid(z) = tanh(z / 2) / 2 + 1 / 2.
#ifndef TRADEWIND_CUDA_LSTM_LSTM_CUH
#define TRADEWIND_CUDA_LSTM_LSTM_CUH

#include "cuda/product/mma.cuh"

enum { ROWS = 16, UNITS = 8, GROUPS = 192, WARPS_MOST = 16, LSTM_RING = 4 };

// Where rows of a matrix lie that has one for every sample and step: distances in elements from one tile of 16 samples,
// one step and one sample to the next.
struct rows_at {
    int64_t tile;
    int64_t step;
    int row;
};

struct lstm_args {
    view x, h0, c0, reset;
    const float *w_ih[2], *w_hh[2], *b_ih[2], *b_hh[2];
    view h_last, c_last, states;              // results
    view dh_last, dc_last, dstates, dh0, dc0; // gradients
    int64_t B;
    int T, I, H, D, UT; // units' tiles: ceil(H / 8)
    int KX, KH;         // tiles of the operand's columns for x and for h
    int kept_tiles;     // tiles of h's columns in kept_h: as many as H needs
    int chunk;          // steps whose x lies in shared memory
    int tiles, groups;
    char *kept_h, *kept_c;      // reserve: h as each step's operand [D][tiles][T][16][kept_tiles * K], c by lane
                                // [D][tiles][T][UT][32][4]
    uint2 *packed;              // fragments in scratch, or NULL: in shared memory
    float *parts;               // of the weights' gradients: [D][part_count][4H][I + H + 1]
    int first_part, part_count; // of a launch
    char *dz, *h_kept;          // where gradients are not summed on the way: dz by time, h that steps start from
    rows_at dz_rows, h_rows;
    int64_t dz_direction, h_direction; // elements from direction to direction
    bool h_by_time;                    // h_kept's rows are counted as dz's, not in the order of the sequence
};

// The kernel chosen for a call, and its arguments.
struct lstm_plan {
    lstm_args a;
    int math, element;
    int FX, FH; // the kernel's tiles
    bool sums;  // backward sums the weights' gradients
    size_t shared;
};

// Kernels that are made: FORM(2-byte operands, tiles of x, tiles of h). Those that sum the weights' gradients in
// backward; those that have no registers left for them; and forward alone.
#define LSTM_SUMMING(FORM)                                                                                             \
    FORM(true, 1, 1)                                                                                                   \
    FORM(true, 1, 2)                                                                                                   \
    FORM(true, 1, 3)                                                                                                   \
    FORM(true, 1, 4)                                                                                                   \
    FORM(true, 2, 1)                                                                                                   \
    FORM(true, 2, 2)                                                                                                   \
    FORM(true, 2, 4)                                                                                                   \
    FORM(false, 2, 2)                                                                                                  \
    FORM(false, 2, 4)                                                                                                  \
    FORM(false, 4, 4)
#define LSTM_SPILLING(FORM)                                                                                            \
    FORM(true, 1, 6)                                                                                                   \
    FORM(true, 1, 8)                                                                                                   \
    FORM(true, 2, 1)                                                                                                   \
    FORM(true, 4, 2)                                                                                                   \
    FORM(true, 8, 4)
#define LSTM_FORWARD(FORM)                                                                                             \
    LSTM_SUMMING(FORM)                                                                                                 \
    FORM(true, 1, 6)                                                                                                   \
    FORM(true, 1, 8)                                                                                                   \
    FORM(true, 4, 2)                                                                                                   \
    FORM(true, 8, 4)                                                                                                   \
    FORM(false, 2, 8)

// The recurrence in one launch, by the way of multiplying: cuda/lstm/lstm_forward.cuh and cuda/lstm/lstm_backward.cuh.
void lstm_forward_f32(const call *c, const lstm_plan *p);
void lstm_forward_tf32(const call *c, const lstm_plan *p);
void lstm_forward_bf16(const call *c, const lstm_plan *p);
void lstm_forward_f16(const call *c, const lstm_plan *p);
void lstm_backward_f32(const call *c, const lstm_plan *p);
void lstm_backward_tf32(const call *c, const lstm_plan *p);
void lstm_backward_bf16(const call *c, const lstm_plan *p);
void lstm_backward_f16(const call *c, const lstm_plan *p);

// The weights' gradients from a.dz and a.h_kept, in lstm_weights_parts() parts, of which a launch computes a.part_count
// from a.first_part on: cuda/lstm/lstm_weights.cu.
int lstm_weights_parts(const lstm_plan *p);
int lstm_weights_filling(const lstm_plan *p); // parts that make enough blocks
void lstm_weights_launch(const call *c, const lstm_plan *p);

// Any hidden size, step by step: cuda/lstm/lstm_large.cu. Backward gives the gradients of all but weights and biases,
// which the library gives. Where it cannot, lstm_large_weights returns false, and lstm_large_rows tells
// lstm_weights_launch where dz and h lie.
size_t lstm_large_scratch(const call *c, const lstm_plan *p);
size_t lstm_large_reserve(const lstm_plan *p);
void lstm_large_forward(const call *c, const lstm_plan *p, char *scratch);
void lstm_large_backward(const call *c, const lstm_plan *p, char *scratch);
bool lstm_large_weights(const call *c, const lstm_plan *p, char *scratch);
void lstm_large_rows(lstm_plan *p, char *reserve);

template <int MATH> struct layout {
    typedef typename math_type<MATH>::element E;
    enum { K = math_type<MATH>::K, BYTES = (int)sizeof(E), PAD = sizeof(E) == 2 ? 8 : 4 };
};

// The most warps of a kernel made for FH tiles of h.
static constexpr int held_warps(bool narrow, int FH) {
    return FH == 0 ? (int)WARPS_MOST : narrow ? 2 * FH : FH;
}

static inline __host__ __device__ int row_elements(int tiles, int bytes) {
    return bytes == 2 ? tiles * 16 + 8 : tiles * 8 + 4;
}

// Fragments of one unit tile: of the gates [KX + KH][4 gates][32 lanes], and for dh w_hh' as [4 gates * KH][32].
enum { FOR_GATES = 1, FOR_DH = 2 };

static inline __host__ __device__ int fragments(int KX, int KH, int which) {
    return ((which & FOR_GATES ? (KX + KH) * 4 : 0) + (which & FOR_DH ? 4 * KH : 0)) * 32;
}

#define BY_MATH(math, launch)                                                                                          \
    switch (math) {                                                                                                    \
    case MATH_BF16: launch(MATH_BF16); break;                                                                          \
    case MATH_F16: launch(MATH_F16); break;                                                                            \
    case MATH_TF32: launch(MATH_TF32); break;                                                                          \
    default: launch(MATH_F32); break;                                                                                  \
    }

// Products. Operands of MATH_TF32 are rounded where they are stored, so that products take them as they are; those of
// MATH_F32 are split as they are used, by cutting: the rest is exact.

template <int MATH> CUDA_FN float stored(float v) {
    return MATH == MATH_TF32 ? __uint_as_float(tf32_bits(v)) : v;
}

// Volatile, so that the compiler does not keep split weights in registers that it does not have.
CUDA_FN void cut(uint32_t bits, uint32_t *big, uint32_t *small) {
    asm volatile("and.b32 %0, %1, 0xFFFFE000;" : "=r"(*big) : "r"(bits));
    *small = __float_as_uint(__uint_as_float(bits) - __uint_as_float(*big));
}

template <int MATH> CUDA_FN void product(float c[4], const frag_a &a, const frag_b &b) {
    if (MATH == MATH_BF16) {
        mma_bf16(c, a.w, b.w);
    } else if (MATH == MATH_F16) {
        mma_f16(c, a.w, b.w);
    } else if (MATH == MATH_TF32) {
        mma_tf32(c, a.w, b.w);
    } else {
        frag_a ab, as;
        frag_b bb, bs;
#pragma unroll
        for (int i = 0; i < 4; i++) cut(a.w[i], &ab.w[i], &as.w[i]);
#pragma unroll
        for (int i = 0; i < 2; i++) cut(b.w[i], &bb.w[i], &bs.w[i]);
        mma_tf32(c, as.w, bb.w);
        mma_tf32(c, ab.w, bs.w);
        mma_tf32(c, ab.w, bb.w);
    }
}

// c = [low, high] in every row, plus a b.
template <int MATH> CUDA_FN void product_from(float c[4], const frag_a &a, const frag_b &b, float low, float high) {
#if __CUDA_ARCH__ >= 800
#define PRODUCT_FROM(kind)                                                                                             \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." kind                                                         \
                 ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%10,%11};"                                         \
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])                                                      \
                 : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[0]), "r"(b.w[1]), "f"(low), "f"(high))
    if (MATH == MATH_BF16) {
        PRODUCT_FROM("bf16.bf16");
        return;
    }
    if (MATH == MATH_F16) {
        PRODUCT_FROM("f16.f16");
        return;
    }
#undef PRODUCT_FROM
#endif
    c[0] = c[2] = low;
    c[1] = c[3] = high;
    product<MATH>(c, a, b);
}

// Operands in shared memory are addressed in bytes. `lane_place` is a lane's part of a 16 x K tile whose rows are `ld`
// elements apart.
template <int MATH> CUDA_FN uint32_t lane_place(int ld) {
    int lane = threadIdx.x % 32;
    if (layout<MATH>::BYTES == 2) return (lane % 16 * ld + lane / 16 * 8) * 2;
    return (lane / 4 * ld + lane % 4) * 4;
}

// The tile at `at` (with the lane's place); `below` is the distance of 8 rows in bytes.
template <int MATH> CUDA_FN frag_a operand_at(uint32_t at, uint32_t below) {
    frag_a a;
    if (layout<MATH>::BYTES == 2) {
        load_matrices(a.w, at);
        return a;
    }
    a.w[0] = shared_word(at);
    a.w[1] = shared_word(at + below);
    a.w[2] = shared_word(at + 16);
    a.w[3] = shared_word(at + below + 16);
    return a;
}

// Weights

template <int MATH> CUDA_FN float gate_scale(int gate) {
    return layout<MATH>::BYTES == 2 && gate != 2 ? 0.5f : 1.0f;
}

// A direction's weights.
struct weights {
    const float *ih, *hh;
    int I, H, KX, KH;
};

CUDA_FN weights weights_of(const lstm_args &a, int d, int KX, int KH) {
    return weights{d ? a.w_ih[1] : a.w_ih[0], d ? a.w_hh[1] : a.w_hh[0], a.I, a.H, KX, KH};
}

template <int MATH> CUDA_FN float forward_weight(const weights &w, int gate, int unit, int k) {
    int row = gate * w.H + unit, from = k - w.KX * layout<MATH>::K;
    bool inside = unit < w.H && (from < 0 ? k < w.I : from < w.H);
    const float *at = from < 0 ? w.ih + row * w.I + k : w.hh + row * w.H + from;
    return inside ? stored<MATH>(*at * gate_scale<MATH>(gate)) : 0.0f;
}

// Row of dz (gate and unit), padded per gate, to the unit it flows back to.
template <int MATH> CUDA_FN float backward_weight(const weights &w, int row, int unit) {
    int per = w.KH * layout<MATH>::K, gate = row / per, from = row % per;
    return from < w.H && unit < w.H ? stored<MATH>(w.hh[(gate * w.H + from) * w.H + unit]) : 0.0f;
}

// Word `half` of a lane's B fragment, whose elements `at(k)` are those of its column.
#define FRAGMENT_WORD(at, half)                                                                                        \
    (layout<MATH>::K == 16 ? pair_word<MATH>(at(2 * t + 8 * (half)), at(2 * t + 1 + 8 * (half)))                       \
                           : __float_as_uint(at(t + 4 * (half))))

template <int MATH> CUDA_FN frag_b forward_fragment(const weights &w, int tile, int k, int gate) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    auto at = [&](int j) { return forward_weight<MATH>(w, gate, tile * UNITS + g, k * layout<MATH>::K + j); };
    return frag_b{{FRAGMENT_WORD(at, 0), FRAGMENT_WORD(at, 1)}};
}

template <int MATH> CUDA_FN frag_b backward_fragment(const weights &w, int tile, int k) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    auto at = [&](int j) { return backward_weight<MATH>(w, k * layout<MATH>::K + j, tile * UNITS + g); };
    return frag_b{{FRAGMENT_WORD(at, 0), FRAGMENT_WORD(at, 1)}};
}

// One warp packs the fragments of a unit tile.
template <int MATH> static __device__ void pack_tile(const weights &w, int tile, int which, uint2 *to) {
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; (which & FOR_GATES) && i < (w.KX + w.KH) * 4; i++, to += 32) {
        frag_b f = forward_fragment<MATH>(w, tile, i / 4, i % 4);
        to[lane] = make_uint2(f.w[0], f.w[1]);
    }
#pragma unroll 1
    for (int i = 0; (which & FOR_DH) && i < 4 * w.KH; i++, to += 32) {
        frag_b f = backward_fragment<MATH>(w, tile, i);
        to[lane] = make_uint2(f.w[0], f.w[1]);
    }
}

template <int MATH> static __global__ void pack_kernel(lstm_args a, int which) {
    cuda_begin();
    int d = blockIdx.y, tile = blockIdx.x;
    pack_tile<MATH>(weights_of(a, d, a.KX, a.KH), tile, which,
        a.packed + (int64_t)(d * a.UT + tile) * fragments(a.KX, a.KH, which));
}

template <int MATH> static inline void pack(const call *c, const lstm_plan *p, int which) {
    dim3 grid(p->a.UT, p->a.D);
    if (p->a.packed) LAUNCH_EARLY(c, pack_kernel<MATH>, grid, 32, 0, p->a, which);
}

// This warp's fragments where they are not held in registers: packed into shared memory now, or in scratch already.
template <int MATH>
static __device__ const uint2 *own_fragments(const lstm_args &a, int d, int warp, int which, uint2 *shared) {
    int n = fragments(a.KX, a.KH, which);
    if (a.packed) return a.packed + (int64_t)(d * a.UT + warp) * n;
    pack_tile<MATH>(weights_of(a, d, a.KX, a.KH), warp, which, shared + warp * n);
    return shared + warp * n;
}

CUDA_FN frag_b fragment(const uint2 *f, int i) {
    uint2 v = f[i * 32 + threadIdx.x % 32];
    return frag_b{{v.x, v.y}};
}

// A warp's weights of the gates: in registers, or with FH = 0 where they lie.
template <int FX, int FH> struct held {
    frag_b f[FH ? (FX + FH) * 4 : 1];
    const uint2 *at;
};

template <int MATH, int FX, int FH> CUDA_FN void hold(held<FX, FH> *w, const weights &from, int warp) {
#pragma unroll
    for (int i = 0; i < (FX + FH) * 4; i++) w->f[i] = forward_fragment<MATH>(from, warp, i / 4, i % 4);
}

// Gates and cells

CUDA_FN float tanh_approx(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <int MATH> CUDA_FN float gate_tanh(float x) {
    return layout<MATH>::BYTES == 2 ? tanh_approx(x) : tanhf(x);
}

// Sigmoid of a gate whose weights were scaled by gate_scale.
template <int MATH> CUDA_FN float gate_sigmoid(float z) {
    if (layout<MATH>::BYTES == 2) return fmaf(0.5f, tanh_approx(z), 0.5f);
    return __fdividef(1.0f, 1.0f + __expf(-z)); // to about 2 ulp
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

// True if element e of the lane is a real sample and a real unit.
CUDA_FN bool real(const lstm_args &a, const seat &s, int e) {
    return s.sample + e / 2 * 8 < a.B && s.unit + e % 2 < a.H;
}

CUDA_FN int64_t state_index(const lstm_args &a, const seat &s, int d, int e) {
    return ((s.sample + e / 2 * 8) * a.D + d) * a.H + s.unit + e % 2;
}

CUDA_FN int64_t states_index(const lstm_args &a, const seat &s, int d, int t, int e) {
    return (((s.sample + e / 2 * 8) * a.T + t) * a.D + d) * a.H + s.unit + e % 2;
}

CUDA_FN int time_of(const lstm_args &a, int d, int i) {
    return d ? a.T - 1 - i : i;
}

CUDA_FN bool is_reset(const lstm_args &a, const seat &s, int t, int e) {
    int64_t sample = s.sample + e / 2 * 8;
    return a.reset.data && sample < a.B && view_load_call(a.reset, sample * a.T + t) != 0;
}

CUDA_FN void apply_reset(const lstm_args &a, const seat &s, int t, float h[4], float c[4]) {
    if (!a.reset.data) return;
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (is_reset(a, s, t, e)) h[e] = c[e] = 0;
}

// The state that a sequence starts from: h0 and c0, or zero.
CUDA_FN void first_state(const lstm_args &a, const seat &s, int d, float h[4], float c[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        bool given = a.h0.data && real(a, s, e);
        h[e] = given ? view_load_call(a.h0, state_index(a, s, d, e)) : 0;
        c[e] = given ? view_load_call(a.c0, state_index(a, s, d, e)) : 0;
    }
}

// z of the warp's gates. `x` is the place of the operand's first tile; `h` that of its first tile of h, less the tiles
// of x before it, so that a tile is at the same distance from either.
template <int MATH, int FX, int FH>
CUDA_FN void gates_of(const lstm_args &a, uint32_t x, uint32_t x_below, uint32_t h, uint32_t h_below,
    const held<FX, FH> &w, const float bias[4][2], float z[4][4]) {
    const uint32_t width = layout<MATH>::K * layout<MATH>::BYTES;
    if constexpr (FH > 0) {
#pragma unroll
        for (int k = 0; k < FX + FH; k++) {
            frag_a o = operand_at<MATH>((k < FX ? x : h) + k * width, k < FX ? x_below : h_below);
#pragma unroll
            for (int q = 0; q < 4; q++) {
                if (k == 0) {
                    product_from<MATH>(z[q], o, w.f[q], bias[q][0], bias[q][1]);
                } else {
                    product<MATH>(z[q], o, w.f[k * 4 + q]);
                }
            }
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int e = 0; e < 4; e++) z[q][e] = bias[q][e % 2];
#pragma unroll 1
        for (int k = 0; k < a.KX + a.KH; k++) {
            frag_a o = operand_at<MATH>((k < a.KX ? x : h) + k * width, k < a.KX ? x_below : h_below);
#pragma unroll
            for (int q = 0; q < 4; q++) product<MATH>(z[q], o, fragment(w.at, k * 4 + q));
        }
    }
}

template <int MATH> CUDA_FN void load_bias(const lstm_args &a, const seat &s, int d, float bias[4][2]) {
    const float *ih = d ? a.b_ih[1] : a.b_ih[0], *hh = d ? a.b_hh[1] : a.b_hh[0];
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int unit = s.unit + j, row = q * a.H + unit;
            bias[q][j] = unit < a.H ? (ih[row] + hh[row]) * gate_scale<MATH>(q) : 0.0f;
        }
}

// Shared memory

// x of 16 samples for some steps, [steps][16][ld], from samples `stride` apart of which the first `rows` are real. A
// warp takes a sample at a time, whose `n` elements lie side by side, I of them to a step, with STAGED loads under way.
// A call: it runs once in many steps.
enum { STAGED = 8 };

template <typename S, int MATH>
static __device__ __noinline__ void stage_from(
    const S *x, int64_t stride, int rows, int I, int n, typename layout<MATH>::E *to, int ld) {
    int lane = threadIdx.x % 32, dk = 32 % I, dt = 32 / I;
    for (int s = threadIdx.x / 32; s < ROWS; s += blockDim.x / 32) {
        const S *from = x + s * stride;
        typename layout<MATH>::E *row = to + s * ld;
        int k = lane % I, t = lane / I, have = s < rows ? n : 0;
        for (int j = lane; j < n; j += 32 * STAGED) {
            float v[STAGED];
#pragma unroll
            for (int u = 0; u < STAGED; u++) v[u] = j + 32 * u < have ? widen(from[j + 32 * u]) : 0.0f;
#pragma unroll
            for (int u = 0; u < STAGED; u++) {
                if (j + 32 * u >= n) break;
                convert(&row[t * ROWS * ld + k], stored<MATH>(v[u]));
                k += dk;
                t += dt;
                if (k >= I) {
                    k -= I;
                    t++;
                }
            }
        }
    }
}

template <int MATH>
CUDA_FN void stage_x(const lstm_args &a, int64_t tile, int t0, int steps, typename layout<MATH>::E *to, int ld) {
    int64_t stride = (int64_t)a.T * a.I, at = tile * ROWS * stride + (int64_t)t0 * a.I, left = a.B - tile * ROWS;
    int rows = left < ROWS ? (int)left : ROWS, n = steps * a.I;
    switch (a.x.type) {
    case DTYPE_BF16:
        stage_from<__nv_bfloat16, MATH>((const __nv_bfloat16 *)a.x.data + at, stride, rows, a.I, n, to, ld);
        return;
    case DTYPE_F16: stage_from<__half, MATH>((const __half *)a.x.data + at, stride, rows, a.I, n, to, ld); return;
    default: stage_from<float, MATH>((const float *)a.x.data + at, stride, rows, a.I, n, to, ld); return;
    }
}

// The steps from i on whose x is staged together, in the order of the sequence: their first time and their number.
struct chunk_of {
    int t0, steps;
};

CUDA_FN chunk_of chunk_at(const lstm_args &a, int d, int i) {
    int first = i / a.chunk * a.chunk, steps = a.T - first < a.chunk ? a.T - first : a.chunk;
    return chunk_of{d ? a.T - first - steps : first, steps};
}

static __device__ void clear_shared(void *at, size_t bytes) {
    for (int i = threadIdx.x; i < (int)(bytes / 16); i += blockDim.x) ((uint4 *)at)[i] = make_uint4(0, 0, 0, 0);
}

// The column of ones in the operand's part for x.
template <typename E> static __device__ void put_ones(E *xs, int rows, int ld, int column) {
    for (int i = threadIdx.x; i < rows; i += blockDim.x) convert(&xs[i * ld + column], 1.0f);
}

// A lane's elements into a row-major tile in shared memory; two units side by side are one word for 2-byte elements.
template <int MATH> CUDA_FN void put_units(uint32_t at, uint32_t below, const float v[4]) {
    if (layout<MATH>::BYTES == 2) {
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(pair_word<MATH>(v[0], v[1])) : "memory");
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + below), "r"(pair_word<MATH>(v[2], v[3])) : "memory");
        return;
    }
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(stored<MATH>(v[0])), "f"(stored<MATH>(v[1]))
                 : "memory");
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at + below), "f"(stored<MATH>(v[2])), "f"(stored<MATH>(v[3]))
                 : "memory");
}

// Copies of h tiles between shared memory (rows `ld` apart) and `kept_h` (rows side by side), 16 bytes a thread: there
// are as many pieces as threads, or fewer.
struct piece {
    bool mine;
    uint32_t shared, packed; // bytes
};

template <int MATH> CUDA_FN piece piece_of(const lstm_args &a, int ld) {
    int row_bytes = a.kept_tiles * layout<MATH>::K * layout<MATH>::BYTES, per = row_bytes / 16, i = threadIdx.x;
    return piece{i < ROWS * per, (uint32_t)(i / per * ld * layout<MATH>::BYTES + i % per * 16), (uint32_t)(i * 16)};
}

// Two and four elements as one word.
template <int BYTES> struct two { typedef float2 word; };
template <> struct two<2> { typedef uint32_t word; };
template <int BYTES> struct four { typedef float4 word; };
template <> struct four<2> { typedef uint2 word; };

// c of a step, by lane.
template <int MATH> CUDA_FN void keep_c(typename layout<MATH>::E *to, const float c[4]) {
    if (layout<MATH>::BYTES == 2) {
        *(uint2 *)to = make_uint2(pair_word<MATH>(c[0], c[1]), pair_word<MATH>(c[2], c[3]));
    } else {
        *(float4 *)to = make_float4(c[0], c[1], c[2], c[3]);
    }
}

template <int MATH> CUDA_FN void recall_c(const typename layout<MATH>::E *from, float c[4]) {
    typename layout<MATH>::E v[4];
    *(typename four<sizeof(v[0])>::word *)v = *(const typename four<sizeof(v[0])>::word *)from;
#pragma unroll
    for (int e = 0; e < 4; e++) c[e] = widen(v[e]);
}

template <int MATH> CUDA_FN int kept_h_bytes(const lstm_args &a) {
    return ROWS * a.kept_tiles * layout<MATH>::K * layout<MATH>::BYTES;
}

template <int MATH> CUDA_FN char *kept_h_at(const lstm_args &a, int d, int64_t tile, int i) {
    return a.kept_h + (((int64_t)d * a.tiles + tile) * a.T + i) * kept_h_bytes<MATH>(a);
}

template <int MATH>
CUDA_FN typename layout<MATH>::E *kept_c_at(const lstm_args &a, int d, int64_t tile, int i, const seat &s) {
    int64_t at = (((int64_t)d * a.tiles + tile) * a.T + i) * a.UT * 32 + s.warp * 32 + s.lane;
    return (typename layout<MATH>::E *)a.kept_c + at * 4;
}

// The states of a step in the operand's own type, two units at a time: where kernels with FH > 0 read and write them.
// Rows and units that are not real have no place.
template <int MATH> struct pairs {
    char *at;        // the lane's pair of row g
    int below, step; // bytes to row g + 8, and to the next step
    bool low, high;  // whether row g, and row g + 8, are real
};

template <int MATH> CUDA_FN pairs<MATH> pairs_at(const lstm_args &a, const seat &s, int d, int i, void *data) {
    enum { BYTES = layout<MATH>::BYTES };
    int row = a.D * a.H * BYTES;
    bool unit = data && s.unit < a.H;
    return pairs<MATH>{(char *)data + states_index(a, s, d, time_of(a, d, i), 0) * BYTES, 8 * a.T * row, d ? -row : row,
        unit && s.sample < a.B, unit && s.sample + 8 < a.B};
}

#endif
