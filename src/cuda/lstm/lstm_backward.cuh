// The recurrence backward: the whole sequence in one launch. See cuda/lstm/lstm.cuh for the layout.
//
// A step computes its gates again from x and the kept h, takes their gradients dz, exchanges them through shared memory
// (two buffers, one barrier a step) and multiplies by w_hh for the previous step's dh. Kept h tiles arrive by
// asynchronous copies into a ring. Where the weights' gradients of a warp fit its registers and no dx is wanted (SUMS),
// they are summed on the way, one partial per block. Otherwise dz goes to scratch and products follow.
#ifndef TRADEWIND_CUDA_LSTM_LSTM_BACKWARD_CUH
#define TRADEWIND_CUDA_LSTM_LSTM_BACKWARD_CUH

#include "cuda/lstm/lstm.cuh"

// Fragments of w_hh' are held in registers too where warps are few enough.
template <int MATH, int FH> struct back_held {
    enum { COUNT = layout<MATH>::BYTES == 2 && FH <= 4 ? 4 * FH : 0 };
};

#define BACKWARD_BOUNDS(MATH, FX, FH, SUMS)                                                                            \
    __launch_bounds__(held_warps(layout<MATH>::BYTES == 2, FH) * 32,                                                   \
        FH == 0                    ? 1                                                                                 \
        : layout<MATH>::BYTES == 2 ? (FX + FH <= (SUMS ? 3 : 6) && FH <= 2 ? 3 : 1)                                    \
                                   : (FX + FH <= 6 ? 3 : 1))

CUDA_FN void copy_async(uint32_t to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    uint4 v = *(const uint4 *)from;
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#endif
}

CUDA_FN void copy_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until at most `left` groups of copies are under way.
template <int left> CUDA_FN void copy_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

// h of step i into its place in the ring. `kept` and `ring` are this thread's places for step 0.
template <int MATH>
CUDA_FN void fetch_h(const lstm_args &a, const char *kept, const piece &p, uint32_t ring, uint32_t room, int i) {
    if (i >= 0 && p.mine) copy_async(ring + (i & (LSTM_RING - 1)) * room, kept + (int64_t)i * kept_h_bytes<MATH>(a));
    copy_commit();
}

// The gates' gradients of a lane's elements, in place of z; dc becomes that of the step before.
template <int MATH>
CUDA_FN void gates_back(float z[4][4], const float c[4], const float before[4], const float dh[4], float dc[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float in = gate_sigmoid<MATH>(z[0][e]), f = gate_sigmoid<MATH>(z[1][e]), g = gate_tanh<MATH>(z[2][e]);
        float o = gate_sigmoid<MATH>(z[3][e]), th = gate_tanh<MATH>(c[e]);
        float up = dh[e] * o, cell = fmaf(up, fmaf(-th, th, 1.0f), dc[e]);
        float through = cell * in;
        z[0][e] = through * g * (1 - in);
        z[2][e] = through * fmaf(-g, g, 1.0f);
        dc[e] = cell * f;
        z[1][e] = dc[e] * before[e] * (1 - f);
        z[3][e] = up * th * (1 - o);
    }
}

// dh of the step before, for the warp's units: dz w_hh.
template <int MATH, int FH>
CUDA_FN void dh_before(int KH, uint32_t dz, uint32_t below, const frag_b *back, const uint2 *at, float dh[4]) {
    const uint32_t width = layout<MATH>::K * layout<MATH>::BYTES;
    float even[4] = {}, odd[4] = {};
    if constexpr (back_held<MATH, FH>::COUNT > 0) {
#pragma unroll
        for (int k = 0; k < 4 * FH; k += 2) {
            product<MATH>(even, operand_at<MATH>(dz + k * width, below), back[k]);
            product<MATH>(odd, operand_at<MATH>(dz + (k + 1) * width, below), back[k + 1]);
        }
    } else {
#pragma unroll 2
        for (int k = 0; k < 4 * KH; k += 2) {
            product<MATH>(even, operand_at<MATH>(dz + k * width, below), fragment(at, k));
            product<MATH>(odd, operand_at<MATH>(dz + (k + 1) * width, below), fragment(at, k + 1));
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) dh[e] = even[e] + odd[e];
}

// The weights' gradients: dz' [x | h], 16 samples deep. For 2-byte elements words are pairs of samples, and the
// hardware transposes 8 x 8 tiles; tiles of the operand come from where the gates' product reads them.

CUDA_FN uint32_t turned(uint32_t w) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(w));
    return r;
}

template <int MATH, int FX, int FH>
CUDA_FN void add_narrow(const float z[4][4], uint32_t x, uint32_t h, float dw[2][(FX + FH) * 2][4]) {
    frag_a rows[2];
#pragma unroll
    for (int p = 0; p < 2; p++)
        rows[p] = frag_a{{turned(pair_word<MATH>(z[2 * p][0], z[2 * p][1])),
            turned(pair_word<MATH>(z[2 * p + 1][0], z[2 * p + 1][1])),
            turned(pair_word<MATH>(z[2 * p][2], z[2 * p][3])),
            turned(pair_word<MATH>(z[2 * p + 1][2], z[2 * p + 1][3]))}};
#pragma unroll
    for (int k = 0; k < FX + FH; k++) {
        uint32_t both[4];
        load_matrices_turned(both, (k < FX ? x : h) + k * 32);
        frag_b lo = {{both[0], both[1]}}, hi = {{both[2], both[3]}};
#pragma unroll
        for (int p = 0; p < 2; p++) {
            product<MATH>(dw[p][2 * k], rows[p], lo);
            product<MATH>(dw[p][2 * k + 1], rows[p], hi);
        }
    }
}

// `dz` is the warp's first column of its buffer, `x` and `h` the operand's parts without a lane's place.
template <int MATH, int FX, int FH>
CUDA_FN void add_wide(uint32_t dz, int zld, uint32_t x, int xld, uint32_t h, int hld, float dw[2][FX + FH][4]) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t per = FH * 8 * 4;
#pragma unroll
    for (int s0 = 0; s0 < ROWS; s0 += 8) {
        uint32_t down = dz + ((s0 + t) * zld + g) * 4, far = 4 * zld * 4;
        frag_a rows[2];
#pragma unroll
        for (int p = 0; p < 2; p++) {
            uint32_t lo = down + 2 * p * per;
            rows[p] =
                frag_a{{shared_word(lo), shared_word(lo + per), shared_word(lo + far), shared_word(lo + per + far)}};
        }
#pragma unroll
        for (int k = 0; k < FX + FH; k++) {
            int ld = k < FX ? xld : hld;
            uint32_t at = (k < FX ? x : h) + ((s0 + t) * ld + k * 8 + g) * 4;
            frag_b column = {{shared_word(at), shared_word(at + 4 * ld * 4)}};
#pragma unroll
            for (int p = 0; p < 2; p++) product<MATH>(dw[p][k], rows[p], column);
        }
    }
}

// A part of the gradients: [4H][I + H + 1], the last column for the bias.
template <int MATH, int FX, int NT>
static __device__ void store_part(const lstm_args &a, int d, int64_t part, const seat &s, const float dw[2][NT][4]) {
    int width = a.I + a.H + 1, xs = FX * layout<MATH>::K;
    float *to = a.parts + ((int64_t)d * a.part_count + part) * 4 * a.H * width;
    int unit = s.warp * UNITS + s.g;
#pragma unroll
    for (int p = 0; p < 2; p++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int gate = 2 * p + e / 2, k = n * 8 + s.lane % 4 * 2 + e % 2;
                int column = k < a.I ? k : k == a.I ? a.I + a.H : k < xs ? -1 : k - xs < a.H ? a.I + k - xs : -1;
                if (unit < a.H && column >= 0) to[(int64_t)(gate * a.H + unit) * width + column] = dw[p][n][e];
            }
}

template <int NT> CUDA_FN void clear(float dw[2][NT][4]) {
#pragma unroll
    for (int n = 0; n < 2 * NT * 4; n++) dw[n / 4 / NT][n / 4 % NT][n % 4] = 0;
}

// Where the gradients are not summed on the way: dz's tile, 16 rows of gates side by side, for the products that
// follow. With a multiple of 8 units a pass of all threads moves 32 or 16 bytes of every gate row's share, so that a
// thread's place is found once.
template <int MATH> CUDA_FN uint32_t spill_from(const lstm_args &a, int zld, int per) {
    enum { BYTES = layout<MATH>::BYTES };
    int gate_pieces = a.H * BYTES / 16, i = threadIdx.x, r = i / (4 * gate_pieces), c = i % (4 * gate_pieces);
    return (r * zld + c / gate_pieces * per) * BYTES + c % gate_pieces * 16;
}

template <typename E> static __device__ __noinline__ void spill_slowly(const E *dz, int zld, int per, int H, E *to) {
    for (int i = threadIdx.x; i < ROWS * 4 * H; i += blockDim.x)
        to[i] = dz[i / (4 * H) * zld + i / H % 4 * per + i % H];
}

template <int MATH>
CUDA_FN void spill(const lstm_args &a, const typename layout<MATH>::E *dz, int zld, int per, uint32_t from,
    typename layout<MATH>::E *to) {
    enum { BYTES = layout<MATH>::BYTES };
    if (a.H % 8) {
        spill_slowly(dz, zld, per, a.H, to);
        return;
    }
#pragma unroll
    for (int j = 0; j < BYTES; j++)
        ((uint4 *)to)[j * blockDim.x + threadIdx.x] =
            *(const uint4 *)((const char *)dz + from + j * (16 / BYTES) * zld * BYTES);
}

CUDA_FN void load_gradient(const lstm_args &a, const seat &s, int d, view from, float v[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = from.data && real(a, s, e) ? view_load_call(from, state_index(a, s, d, e)) : 0;
}

// Adds the gradient of step i's h from the layer above.
template <int MATH, int FH> CUDA_FN void add_above(const lstm_args &a, const seat &s, int d, int i, float dh[4]) {
    enum { BYTES = layout<MATH>::BYTES };
    if constexpr (FH == 0) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (real(a, s, e)) dh[e] += view_load_call(a.dstates, states_index(a, s, d, time_of(a, d, i), e));
        return;
    }
    pairs<MATH> p = pairs_at<MATH>(a, s, d, i, a.dstates.data);
    typename layout<MATH>::E low[2] = {}, high[2] = {};
    if (p.low) *(typename two<BYTES>::word *)low = *(const typename two<BYTES>::word *)p.at;
    if (p.high) *(typename two<BYTES>::word *)high = *(const typename two<BYTES>::word *)(p.at + p.below);
    dh[0] += widen(low[0]);
    dh[1] += widen(low[1]);
    dh[2] += widen(high[0]);
    dh[3] += widen(high[1]);
}

CUDA_FN void store_first(const lstm_args &a, const seat &s, int d, const float dh[4], const float dc[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        if (a.dh0.data) view_put_call(a.dh0, state_index(a, s, d, e), dh[e]);
        if (a.dc0.data) view_put_call(a.dc0, state_index(a, s, d, e), dc[e]);
    }
}

template <typename E> struct rooms { E *xs, *hs, *dzs; };

// c of the step before the one before it is fetched a step ahead.
template <int MATH, int FX, int FH, bool SUMS, int NT>
CUDA_FN void backward_tile(const lstm_args &a, int d, int64_t tile, const held<FX, FH> &w, const frag_b *back,
    const uint2 *back_at, const rooms<typename layout<MATH>::E> &r, const float bias[4][2], float dw[2][NT][4]) {
    typedef typename layout<MATH>::E E;
    enum { BYTES = sizeof(E), TILE = layout<MATH>::K * BYTES };
    const int KX = FH ? FX : a.KX, KH = FH ? FH : a.KH, per = KH * layout<MATH>::K, T = a.T;
    const int xld = row_elements(KX, BYTES), hld = row_elements(KH, BYTES), zld = row_elements(4 * KH, BYTES);
    const uint32_t slot = ROWS * xld * BYTES, h_room = ROWS * hld * BYTES, z_room = ROWS * zld * BYTES;
    const uint32_t x_below = 8 * xld * BYTES, h_below = 8 * hld * BYTES, z_below = 8 * zld * BYTES;
    const uint32_t xs = shared_address(r.xs), hs = shared_address(r.hs), dzs = shared_address(r.dzs);
    const uint32_t x_lane = lane_place<MATH>(xld), h_lane = lane_place<MATH>(hld), z_lane = lane_place<MATH>(zld);
    const bool above = a.dstates.data != NULL;
    seat s = seat_of(tile);
    const uint32_t z_put = dzs + (s.g * zld + s.unit) * BYTES;
    const piece mine = piece_of<MATH>(a, hld);
    const char *kept_h = kept_h_at<MATH>(a, d, tile, 0) + mine.packed;
    const int c_step = a.UT * 32 * 4;
    const uint32_t spilled = SUMS ? 0 : spill_from<MATH>(a, zld, per);
    E *dz_to = SUMS ? NULL : (E *)a.dz + d * a.dz_direction + tile * a.dz_rows.tile;
    const E *kept_c = kept_c_at<MATH>(a, d, tile, T - 1, s);
    float dh[4], dc[4], c[4], before[4] = {};
    for (int k = 1; k < LSTM_RING; k++) fetch_h<MATH>(a, kept_h, mine, hs + mine.shared, h_room, T - k);
    load_gradient(a, s, d, a.dh_last, dh);
    load_gradient(a, s, d, a.dc_last, dc);
    recall_c<MATH>(kept_c, c);
    if (T > 1) recall_c<MATH>(kept_c - c_step, before);
    kept_c -= 2 * c_step;
    copy_wait<LSTM_RING - 2>();
    uint32_t x = xs;
    int left = 0; // steps of the chunk that is staged
#pragma unroll 1
    for (int i = T - 1; i >= 0; i--, left--) {
        if (left == 0) {
            chunk_of now = chunk_at(a, d, i);
            __syncthreads();
            stage_x<MATH>(a, tile, now.t0, now.steps, r.xs, xld);
            x = xs + (d ? 0 : now.steps - 1) * slot;
            left = now.steps;
            __syncthreads();
        }
        const uint32_t h = hs + (i & (LSTM_RING - 1)) * h_room - KX * TILE, odd = i & 1 ? z_room : 0;
        float z[4][4], start[4], unused[4];
        E next[4] = {};
        if (i > 1) *(typename four<BYTES>::word *)next = *(const typename four<BYTES>::word *)kept_c;
        kept_c -= c_step;
        if (FH == 0 && i == 0) first_state(a, s, d, unused, before);
        if (above) add_above<MATH, FH>(a, s, d, i, dh);
        gates_of<MATH, FX, FH>(a, x + x_lane, x_below, h + h_lane, h_below, w, bias, z);
#pragma unroll
        for (int e = 0; e < 4; e++) start[e] = before[e];
        if (FH == 0) apply_reset(a, s, time_of(a, d, i), start, start);
        gates_back<MATH>(z, c, start, dh, dc);
#pragma unroll
        for (int q = 0; q < 4; q++) put_units<MATH>(z_put + odd + q * per * BYTES, z_below, z[q]);
        copy_wait<LSTM_RING - 3>();
        __syncthreads();
        fetch_h<MATH>(a, kept_h, mine, hs + mine.shared, h_room, i - (LSTM_RING - 1));
        dh_before<MATH, FH>(KH, dzs + odd + z_lane, z_below, back, back_at, dh);
        if (FH == 0) apply_reset(a, s, time_of(a, d, i), dh, dc);
        if constexpr (!SUMS) {
            spill<MATH>(a, r.dzs + (i & 1) * ROWS * zld, zld, per, spilled, dz_to + time_of(a, d, i) * a.dz_rows.step);
        } else if constexpr (BYTES == 2) {
            add_narrow<MATH, FX, FH>(z, x + x_lane, h + h_lane, dw);
        } else {
            add_wide<MATH, FX, FH>(dzs + odd + s.warp * UNITS * 4, zld, x, xld, h, hld, dw);
        }
        x += d ? slot : -slot;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            c[e] = before[e];
            before[e] = widen(next[e]);
        }
    }
    __syncthreads();
    if (FH == 0) store_first(a, s, d, dh, dc);
}

template <int MATH, int FX, int FH, bool SUMS>
static __global__ void BACKWARD_BOUNDS(MATH, FX, FH, SUMS) backward_kernel(lstm_args a) {
    cuda_begin();
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    enum {
        NARROW = sizeof(E) == 2,
        NT = !SUMS    ? 1
             : NARROW ? 2 * (FX + FH)
                      : FX + FH,
        BACK = back_held<MATH, FH>::COUNT
    };
    const int d = blockIdx.y, warp = threadIdx.x / 32, KX = FH ? FX : a.KX, KH = FH ? FH : a.KH;
    const int xld = row_elements(KX, sizeof(E));
    rooms<E> r = {};
    r.xs = (E *)room;
    r.hs = r.xs + a.chunk * ROWS * xld;
    r.dzs = r.hs + LSTM_RING * ROWS * row_elements(KH, sizeof(E));
    uint2 *packed = (uint2 *)(r.dzs + 2 * ROWS * row_elements(4 * KH, sizeof(E)));
    held<FX, FH> w;
    frag_b back[BACK ? BACK : 1];
    const uint2 *back_at = NULL;
    float bias[4][2], dw[2][NT][4] = {};
    if constexpr (FH == 0) {
        w.at = own_fragments<MATH>(a, d, warp, FOR_GATES | FOR_DH, packed);
        back_at = w.at + (a.KX + a.KH) * 4 * 32;
    } else {
        weights from = weights_of(a, d, KX, KH);
        hold<MATH, FX, FH>(&w, from, warp);
#pragma unroll
        for (int k = 0; k < BACK; k++) back[k] = backward_fragment<MATH>(from, warp, k);
        if (!BACK) back_at = own_fragments<MATH>(a, d, warp, FOR_DH, packed);
    }
    load_bias<MATH>(a, seat_of(0), d, bias);
    clear_shared(room, (char *)packed - (char *)room);
    __syncthreads();
    if (SUMS) put_ones(r.xs, a.chunk * ROWS, xld, a.I);
    __syncthreads();
    const bool apart = SUMS && MATH == MATH_F32; // each tile is a part
    int64_t first = apart ? a.first_part : 0, end = apart ? first + a.part_count : a.tiles;
    for (int64_t tile = first + blockIdx.x; tile < end; tile += a.groups) {
        backward_tile<MATH, FX, FH, SUMS, NT>(a, d, tile, w, back, back_at, r, bias, dw);
        if constexpr (apart) {
            store_part<MATH, FX, NT>(a, d, tile - first, seat_of(0), dw);
            clear(dw);
        }
    }
    if constexpr (SUMS && MATH != MATH_F32) store_part<MATH, FX, NT>(a, d, blockIdx.x, seat_of(0), dw);
}

template <int MATH, int FX, int FH, bool SUMS> static void launch_backward(const call *c, const lstm_plan *p) {
    dim3 grid(p->a.groups, p->a.D);
    const void *kernel = (const void *)backward_kernel<MATH, FX, FH, SUMS>;
    cuda_allow_shared(kernel, p->shared);
    LAUNCH_EARLY(c, (backward_kernel<MATH, FX, FH, SUMS>), grid, p->a.UT * 32, p->shared, p->a);
}

// Forms of the other width are not made.
#define FORM_OF(is_narrow, fx, fh, sum)                                                                                \
    if constexpr ((layout<MATH>::BYTES == 2) == is_narrow) {                                                           \
        if (p->FX == fx && p->FH == fh && p->sums == sum) {                                                            \
            launch_backward<MATH, fx, fh, sum>(c, p);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
    }
#define SUMMING(is_narrow, fx, fh)  FORM_OF(is_narrow, fx, fh, true)
#define SPILLING(is_narrow, fx, fh) FORM_OF(is_narrow, fx, fh, false)

template <int MATH> static void choose_backward(const call *c, const lstm_plan *p) {
    pack<MATH>(c, p, p->FH ? FOR_DH : FOR_GATES | FOR_DH);
    LSTM_SUMMING(SUMMING)
    LSTM_SPILLING(SPILLING)
    CHECK(p->FH == 0, "lstm: no kernel for %d and %d tiles", p->FX, p->FH);
    launch_backward<MATH, 0, 0, false>(c, p);
}

#endif
