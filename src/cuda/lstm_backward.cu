// The recurrence backward: the whole sequence in one launch. See cuda/lstm.cuh for the layout.
//
// A step computes its gates again from x and the kept h, takes their gradients dz, exchanges them through shared memory
// (two buffers, one barrier a step) and multiplies by w_hh for the previous step's dh. Kept h tiles arrive by asynchronous
// copies into a ring. Where the weights' gradients of a warp fit its registers and no dx is wanted (KT > 0), they are
// summed on the way, one partial per block; x has a column of ones after its last, whose gradient is the bias's. Otherwise
// dz and h go to scratch and products follow.
#include "cuda/lstm.cuh"

#define BACKWARD_BOUNDS(MATH, KT)                                                                                      \
    __launch_bounds__(held_warps(layout<MATH>::BYTES == 2, KT) * 32, KT == 0 ? 1 : KT <= 3 ? 3 : KT == 6 ? 3 : 1)

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

// h of step i into its place in the ring.
template <int MATH> CUDA_FN void fetch_h(const lstm_args &a, const char *kept, const pieces &mine, int hld, uint32_t hs, int i) {
    if (i >= 0) {
        const char *from = kept + i * kept_h_bytes<MATH>(a);
        uint32_t to = hs + (i % LSTM_RING) * ROWS * hld * layout<MATH>::BYTES;
        for (pieces p = mine; p.packed < mine.count * 16;) {
            copy_async(to + p.shared, from + p.packed);
            if (mine.count <= (int)blockDim.x) break;
            p = piece_at<MATH>(a, hld, p.packed / 16 + blockDim.x);
        }
    }
    copy_commit();
}

// The gates' gradients of a lane's elements, in place of z; dc becomes that of the step before.
template <int MATH> CUDA_FN void gates_back(float z[4][4], const float c[4], const float before[4], const float dh[4], float dc[4]) {
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

// dh of the step before, for the warp's units: dz w_hh. Fragments of w_hh' are in registers for 2-byte elements.
template <int MATH, int KT> CUDA_FN void dh_before(const lstm_args &a, uint32_t dz, uint32_t below, const frag_b *back,
    const uint2 *at, float dh[4]) {
    const uint32_t width = layout<MATH>::K * layout<MATH>::BYTES;
    float even[4] = {}, odd[4] = {};
    if (KT > 0 && layout<MATH>::BYTES == 2) {
#pragma unroll
        for (int k = 0; k < 4 * (KT - 1); k += 2) {
            if (k >= 4 * a.KH) break;
            product<MATH>(even, operand_at<MATH>(dz + k * width, below), back[k]);
            product<MATH>(odd, operand_at<MATH>(dz + (k + 1) * width, below), back[k + 1]);
        }
    } else {
#pragma unroll 2
        for (int k = 0; k < 4 * a.KH; k += 2) {
            product<MATH>(even, operand_at<MATH>(dz + k * width, below), fragment(at, k));
            product<MATH>(odd, operand_at<MATH>(dz + (k + 1) * width, below), fragment(at, k + 1));
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) dh[e] = even[e] + odd[e];
}

// The weights' gradients: dz' [x | h], 16 samples deep. For 2-byte elements words are pairs of samples, and the hardware
// transposes 8 x 8 tiles; tiles of the operand come from where the gates' product reads them.

CUDA_FN uint32_t turned(uint32_t w) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(w));
    return r;
}

template <int MATH, int KT> CUDA_FN void add_narrow(const lstm_args &a, const float z[4][4], uint32_t x, uint32_t h,
    float dw[2][KT * 2][4]) {
    frag_a rows[2];
#pragma unroll
    for (int p = 0; p < 2; p++)
        rows[p] = frag_a{{turned(pair_word<MATH>(z[2 * p][0], z[2 * p][1])), turned(pair_word<MATH>(z[2 * p + 1][0], z[2 * p + 1][1])),
            turned(pair_word<MATH>(z[2 * p][2], z[2 * p][3])), turned(pair_word<MATH>(z[2 * p + 1][2], z[2 * p + 1][3]))}};
#pragma unroll
    for (int k = 0; k < KT; k++) {
        frag_b lo, hi;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(lo.w[0]), "=r"(lo.w[1]), "=r"(hi.w[0]), "=r"(hi.w[1])
                     : "r"((k < a.KX ? x : h) + k * 32));
#pragma unroll
        for (int p = 0; p < 2; p++) {
            product<MATH>(dw[p][2 * k], rows[p], lo);
            product<MATH>(dw[p][2 * k + 1], rows[p], hi);
        }
    }
}

// `dz` is the warp's first column of its buffer, `x` and `h` the operand's parts without a lane's place.
template <int MATH, int KT> CUDA_FN void add_wide(const lstm_args &a, uint32_t dz, int zld, uint32_t x, int xld, uint32_t h,
    int hld, float dw[2][KT][4]) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t per = a.KH * 8 * 4;
#pragma unroll
    for (int s0 = 0; s0 < ROWS; s0 += 8) {
        uint32_t down = dz + ((s0 + t) * zld + g) * 4, far = 4 * zld * 4;
        frag_a rows[2];
#pragma unroll
        for (int p = 0; p < 2; p++) {
            uint32_t lo = down + 2 * p * per;
            rows[p] = frag_a{{shared_word(lo), shared_word(lo + per), shared_word(lo + far), shared_word(lo + per + far)}};
        }
#pragma unroll
        for (int k = 0; k < KT; k++) {
            int ld = k < a.KX ? xld : hld;
            uint32_t at = (k < a.KX ? x : h) + ((s0 + t) * ld + k * 8 + g) * 4;
            frag_b column = {{shared_word(at), shared_word(at + 4 * ld * 4)}};
#pragma unroll
            for (int p = 0; p < 2; p++) product<MATH>(dw[p][k], rows[p], column);
        }
    }
}

// A block's partial gradients: [4H][I + H + 1], the last column for the bias.
template <int MATH, int KT, int NT> static __device__ void store_parts(const lstm_args &a, int d, const seat &s, float dw[2][NT][4]) {
    int width = a.I + a.H + 1, xs = a.KX * layout<MATH>::K;
    float *to = a.parts + ((int64_t)d * a.groups + blockIdx.x) * 4 * a.H * width;
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

// Where the gradients are not summed on the way: a row of gates, and the h that the step started from, for the products.
template <typename E> static __device__ void spill_rows(const E *from, int ld, int parts, int part_ld, char *to, int64_t row_stride,
    int width, int rows) {
    for (int i = threadIdx.x; i < rows * parts * width; i += blockDim.x) {
        int r = i / (parts * width), c = i % (parts * width);
        ((E *)to)[r * row_stride + c] = from[r * ld + c / width * part_ld + c % width];
    }
}

template <typename E> static __device__ void spill(const lstm_args &a, int64_t tile, int d, int t, const E *dz, int zld, int per,
    const E *h, int hld) {
    int64_t left = a.B - tile * ROWS, at = (int64_t)d * a.B * a.T + tile * ROWS * a.T + t;
    int rows = left < ROWS ? (int)left : ROWS;
    if (a.H * sizeof(E) % 16 == 0) {
        int n = 16 / sizeof(E);
        spill_rows((const uint4 *)dz, zld / n, 4, per / n, a.dz + at * 4 * a.H * sizeof(E), (int64_t)a.T * 4 * a.H / n, a.H / n, rows);
        spill_rows((const uint4 *)h, hld / n, 1, 0, a.hp + at * a.H * sizeof(E), (int64_t)a.T * a.H / n, a.H / n, rows);
    } else {
        spill_rows(dz, zld, 4, per, a.dz + at * 4 * a.H * sizeof(E), (int64_t)a.T * 4 * a.H, a.H, rows);
        spill_rows(h, hld, 1, 0, a.hp + at * a.H * sizeof(E), (int64_t)a.T * a.H, a.H, rows);
    }
}

CUDA_FN void load_gradient(const lstm_args &a, const seat &s, int d, view from, float v[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = from.data && real(a, s, e) ? view_load_call(from, state_index(a, s, d, e)) : 0;
}

CUDA_FN void load_dstates(const lstm_args &a, const seat &s, int d, int i, float v[4]) {
    if (i < 0) return;
#pragma unroll
    for (int e = 0; e < 4; e++)
        v[e] = real(a, s, e) ? view_load(a.dstates, states_index(a, s, d, time_of(a, d, i), e)) : 0.0f;
}

// c of step i, or what the sequence starts from.
template <int MATH, int KT> CUDA_FN void load_c(const lstm_args &a, const seat &s, int d, const typename layout<MATH>::E *kept, int i,
    float c[4]) {
    float unused[4];
    if (i >= 0) {
        recall_c<MATH>(kept + (int64_t)i * a.UT * 32 * 4, c);
    } else if (KT == 0) {
        first_state(a, s, d, unused, c);
    } else {
        c[0] = c[1] = c[2] = c[3] = 0;
    }
}

CUDA_FN void store_first(const lstm_args &a, const seat &s, int d, const float dh[4], const float dc[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        if (a.dh0.data) view_put_call(a.dh0, state_index(a, s, d, e), dh[e]);
        if (a.dc0.data) view_put_call(a.dc0, state_index(a, s, d, e), dc[e]);
    }
}

template <typename E> struct rooms {
    E *xs, *hs, *dzs;
    int xld, hld, zld;
};

template <int MATH, int KT, int NT> CUDA_FN void backward_tile(const lstm_args &a, int d, int64_t tile, const held<KT> &w,
    const frag_b *back, const uint2 *back_at, const rooms<typename layout<MATH>::E> &r, const float bias[4][2], float dw[2][NT][4]) {
    typedef typename layout<MATH>::E E;
    enum { BYTES = sizeof(E), TILE = layout<MATH>::K * BYTES };
    const int per = a.KH * layout<MATH>::K, T = a.T;
    const uint32_t slot = ROWS * r.xld * BYTES, h_room = ROWS * r.hld * BYTES, z_room = ROWS * r.zld * BYTES;
    const uint32_t x_below = 8 * r.xld * BYTES, h_below = 8 * r.hld * BYTES, z_below = 8 * r.zld * BYTES;
    const uint32_t xs = shared_address(r.xs), hs = shared_address(r.hs), dzs = shared_address(r.dzs);
    const uint32_t x_lane = lane_place<MATH>(r.xld), h_lane = lane_place<MATH>(r.hld), z_lane = lane_place<MATH>(r.zld);
    seat s = seat_of(tile);
    const uint32_t z_put = dzs + (s.g * r.zld + s.unit) * BYTES;
    const pieces mine = piece_at<MATH>(a, r.hld, threadIdx.x);
    const char *kept_h = kept_h_at<MATH>(a, d, tile);
    const E *kept_c = kept_c_at<MATH>(a, d, tile, s);
    float dh[4], dc[4], c[4], before[4], next[4] = {}, dstates[4] = {};
    for (int k = 1; k < LSTM_RING; k++) fetch_h<MATH>(a, kept_h, mine, r.hld, hs, T - k);
    load_gradient(a, s, d, a.dh_last, dh);
    load_gradient(a, s, d, a.dc_last, dc);
    if (a.dstates.data) load_dstates(a, s, d, T - 1, dstates);
    load_c<MATH, KT>(a, s, d, kept_c, T - 1, c);
    load_c<MATH, KT>(a, s, d, kept_c, T - 2, before);
    copy_wait<LSTM_RING - 2>();
    uint32_t x = xs;
#pragma unroll 1
    for (int i = T - 1; i >= 0; i--, x += d ? slot : -slot) {
        if (i == T - 1 || (i + 1) % a.chunk == 0) {
            chunk_of now = chunk_at(a, d, i);
            __syncthreads();
            stage_x<MATH>(a, tile, now.t0, now.steps, r.xs, r.xld);
            x = xs + (d ? 0 : now.steps - 1) * slot;
            __syncthreads();
        }
        const uint32_t h = hs + (i % LSTM_RING) * h_room - a.KX * TILE, odd = i & 1 ? z_room : 0;
        float z[4][4], start[4];
        if (i > 0) load_c<MATH, KT>(a, s, d, kept_c, i - 2, next);
        gates_of<MATH, KT>(a, x + x_lane, x_below, h + h_lane, h_below, w, bias, z);
#pragma unroll
        for (int e = 0; e < 4; e++) start[e] = before[e];
        if (KT == 0) apply_reset(a, s, time_of(a, d, i), start, start);
        if (a.dstates.data) {
#pragma unroll
            for (int e = 0; e < 4; e++) dh[e] += dstates[e];
            load_dstates(a, s, d, i - 1, dstates);
        }
        gates_back<MATH>(z, c, start, dh, dc);
#pragma unroll
        for (int q = 0; q < 4; q++) put_units<MATH>(z_put + odd + q * per * BYTES, z_below, z[q]);
        copy_wait<LSTM_RING - 3>();
        __syncthreads();
        fetch_h<MATH>(a, kept_h, mine, r.hld, hs, i - (LSTM_RING - 1));
        dh_before<MATH, KT>(a, dzs + odd + z_lane, z_below, back, back_at, dh);
        if (KT == 0) {
            spill(a, tile, d, time_of(a, d, i), r.dzs + (i & 1) * ROWS * r.zld, r.zld, per, r.hs + (i % LSTM_RING) * ROWS * r.hld, r.hld);
            apply_reset(a, s, time_of(a, d, i), dh, dc);
        } else if constexpr (BYTES == 2 && KT > 0) {
            add_narrow<MATH, KT>(a, z, x + x_lane, h + h_lane, dw);
        } else {
            add_wide<MATH, NT>(a, dzs + odd + s.warp * UNITS * 4, r.zld, x, r.xld, h, r.hld, dw);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            c[e] = before[e];
            before[e] = next[e];
        }
    }
    __syncthreads();
    if (KT == 0) store_first(a, s, d, dh, dc);
}

template <int MATH, int KT> static __global__ void BACKWARD_BOUNDS(MATH, KT) backward_kernel(lstm_args a) {
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    enum { NARROW = sizeof(E) == 2, NT = KT == 0 ? 1 : NARROW ? 2 * KT : KT, BACK = NARROW && KT > 0 ? 4 * (KT - 1) : 1 };
    const int d = blockIdx.y, warp = threadIdx.x / 32;
    rooms<E> r = {};
    r.xld = row_elements(a.KX, sizeof(E));
    r.hld = row_elements(a.KH, sizeof(E));
    r.zld = row_elements(4 * a.KH, sizeof(E));
    r.xs = (E *)room;
    r.hs = r.xs + a.chunk * ROWS * r.xld;
    r.dzs = r.hs + LSTM_RING * ROWS * r.hld;
    uint2 *packed = (uint2 *)(r.dzs + 2 * ROWS * r.zld);
    held<KT> w;
    frag_b back[BACK];
    const uint2 *back_at = NULL;
    float bias[4][2], dw[2][NT][4] = {};
    if (KT == 0) {
        w.at = own_fragments<MATH>(a, d, warp, FOR_GATES | FOR_DH, packed);
        back_at = w.at + (a.KX + a.KH) * 4 * 32;
    } else {
        hold<MATH, KT>(&w, a, d, warp);
        if constexpr (NARROW) {
            weights from = weights_of(a, d);
#pragma unroll
            for (int k = 0; k < BACK; k++) back[k] = backward_fragment<MATH>(from, warp, k);
        } else {
            back_at = own_fragments<MATH>(a, d, warp, FOR_DH, packed);
        }
    }
    load_bias<MATH>(a, seat_of(0), d, bias);
    clear_shared(r.xs, (int)((E *)packed - r.xs));
    __syncthreads();
    if constexpr (KT > 0) {
        for (int i = threadIdx.x; i < a.chunk * ROWS; i += blockDim.x) convert(&r.xs[i * r.xld + a.I], 1.0f);
    }
    __syncthreads();
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += a.groups)
        backward_tile<MATH, KT, NT>(a, d, tile, w, back, back_at, r, bias, dw);
    if (KT > 0) store_parts<MATH, KT, NT>(a, d, seat_of(0), dw);
}

template <int MATH, int KT> static void launch(const call *c, const lstm_plan *p) {
    dim3 grid(p->a.groups, p->a.D);
    if (p->shared > (48 << 10))
        cudaFuncSetAttribute((const void *)backward_kernel<MATH, KT>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)p->shared);
    LAUNCH(c, (backward_kernel<MATH, KT>), grid, p->a.UT * 32, p->shared, p->a);
}

template <int MATH> static void choose(const call *c, const lstm_plan *p) {
    enum { NARROW = layout<MATH>::BYTES == 2 };
    switch (p->KT) {
    case 0: launch<MATH, 0>(c, p); return;
    case 2: launch<MATH, NARROW ? 2 : 0>(c, p); return;
    case 3: launch<MATH, 3>(c, p); return;
    case 4: launch<MATH, 4>(c, p); return;
    case 5: launch<MATH, NARROW ? 5 : 0>(c, p); return;
    case 6: launch<MATH, NARROW ? 0 : 6>(c, p); return;
    default: CHECK(false, "lstm: no kernel for %d tiles", p->KT);
    }
}

void lstm_backward_launch(const call *c, const lstm_plan *p) {
    pack(c, p, FOR_GATES | FOR_DH);
#define BACKWARD(M) choose<M>(c, p)
    BY_MATH(p->math, BACKWARD)
}
