// The recurrence forward: the whole sequence in one launch. See cuda/lstm.cuh for the layout.
//
// For backward a step keeps the h that it starts from, as its operand, and the c that it ends with; the gates are cheaper
// to compute again than to read.
#include "cuda/lstm.cuh"

// Blocks that a multiprocessor should hold: a batch of 3072 is three blocks of four warps on each of 132.
#define FORWARD_BOUNDS(MATH, KT)                                                                                       \
    __launch_bounds__(held_warps(layout<MATH>::BYTES == 2, KT) * 32,                                                   \
        KT == 0 ? 1 : layout<MATH>::BYTES == 2 ? (KT <= 3 ? 4 : 2) : (KT <= 4 ? 4 : KT == 6 ? 3 : KT == 8 ? 2 : 1))

static __device__ __noinline__ void store_states_slowly(view states, int64_t at, int64_t below, int units, int rows, float4 h) {
    float v[4] = {h.x, h.y, h.z, h.w};
    for (int e = 0; e < 4; e++)
        if (e / 2 < rows && e % 2 < units) view_put(states, at + e / 2 * below + e % 2, v[e]);
}

// h of a step for the layer above. Pairs of units of the operand's own type are stored as words.
template <int MATH> CUDA_FN void store_states(const lstm_args &a, const seat &s, int d, int t, const float h[4]) {
    int64_t at = states_index(a, s, d, t, 0), below = (int64_t)8 * a.T * a.D * a.H;
    int rows = s.sample + 8 < a.B ? 2 : s.sample < a.B ? 1 : 0, units = a.H - s.unit;
    if (layout<MATH>::BYTES == 2 && a.states.type != DTYPE_F32 && a.H % 2 == 0) {
        uint32_t *to = (uint32_t *)((uint16_t *)a.states.data + at);
        if (rows > 0 && units > 0) to[0] = pair_word<MATH>(h[0], h[1]);
        if (rows > 1 && units > 0) to[below / 2] = pair_word<MATH>(h[2], h[3]);
        return;
    }
    store_states_slowly(a.states, at, below, units, rows, make_float4(h[0], h[1], h[2], h[3]));
}

template <int MATH> CUDA_FN void cell(const float z[4][4], float h[4], float c[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float in = gate_sigmoid<MATH>(z[0][e]), f = gate_sigmoid<MATH>(z[1][e]);
        c[e] = f * c[e] + in * gate_tanh<MATH>(z[2][e]);
        h[e] = gate_sigmoid<MATH>(z[3][e]) * gate_tanh<MATH>(c[e]);
    }
}

template <int MATH, int KT> CUDA_FN void forward_tile(const lstm_args &a, int d, int64_t tile, const held<KT> &w,
    typename layout<MATH>::E *xs, typename layout<MATH>::E *hs, const float bias[4][2]) {
    enum { BYTES = layout<MATH>::BYTES };
    const int xld = row_elements(a.KX, BYTES), hld = row_elements(a.KH, BYTES), T = a.T;
    const uint32_t slot = ROWS * xld * BYTES, buffer = ROWS * hld * BYTES;
    const uint32_t x_below = 8 * xld * BYTES, h_below = 8 * hld * BYTES;
    seat s = seat_of(tile);
    float h[4] = {}, c[4] = {}, z[4][4];
    if (KT == 0) {
        first_state(a, s, d, h, c);
        apply_reset(a, s, time_of(a, d, 0), h, c);
    }
    const uint32_t x0 = shared_address(xs) + lane_place<MATH>(xld), h0 = shared_address(hs);
    const uint32_t h_read = h0 + lane_place<MATH>(hld) - a.KX * layout<MATH>::K * BYTES;
    const uint32_t h_put = h0 + (s.g * hld + s.unit) * BYTES;
    const pieces mine = piece_at<MATH>(a, hld, threadIdx.x);
    char *kept_h = a.kept_h ? kept_h_at<MATH>(a, d, tile) : NULL;
    typename layout<MATH>::E *kept_c = a.kept_c ? kept_c_at<MATH>(a, d, tile, s) : NULL;
    put_units<MATH>(h_put, h_below, h);
    for (int i = 0, first = 0; i < T; first = i) {
        chunk_of now = chunk_at(a, d, first);
        stage_x<MATH>(a, tile, now.t0, now.steps, xs, xld);
        __syncthreads();
        uint32_t x = x0 + (d ? now.steps - 1 : 0) * slot;
#pragma unroll 1
        for (; i < first + now.steps; i++, x += d ? -slot : slot) {
            uint32_t odd = i & 1 ? buffer : 0;
            if (kept_h) {
                for (pieces p = mine; p.packed < mine.count * 16;) {
                    *(uint4 *)(kept_h + p.packed) = *(const uint4 *)((const char *)hs + odd + p.shared);
                    if (mine.count <= (int)blockDim.x) break;
                    p = piece_at<MATH>(a, hld, p.packed / 16 + blockDim.x);
                }
                kept_h += kept_h_bytes<MATH>(a);
            }
            gates_of<MATH, KT>(a, x, x_below, h_read + odd, h_below, w, bias, z);
            cell<MATH>(z, h, c);
            if (kept_c) {
                keep_c<MATH>(kept_c, c);
                kept_c += a.UT * 32 * 4;
            }
            if (a.states.data) store_states<MATH>(a, s, d, time_of(a, d, i), h);
            if (i + 1 == T) continue;
            if (KT == 0) apply_reset(a, s, time_of(a, d, i + 1), h, c);
            put_units<MATH>(h_put + (buffer - odd), h_below, h);
            __syncthreads();
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (!real(a, s, e)) continue;
        view_put_call(a.h_last, state_index(a, s, d, e), h[e]);
        view_put_call(a.c_last, state_index(a, s, d, e), c[e]);
    }
    __syncthreads();
}

template <int MATH, int KT> static __global__ void FORWARD_BOUNDS(MATH, KT) forward_kernel(lstm_args a) {
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    const int d = blockIdx.y, warp = threadIdx.x / 32;
    const int xs_size = a.chunk * ROWS * row_elements(a.KX, sizeof(E)), hs_size = 2 * ROWS * row_elements(a.KH, sizeof(E));
    E *xs = (E *)room, *hs = xs + xs_size;
    held<KT> w;
    float bias[4][2];
    if (KT == 0) {
        w.at = own_fragments<MATH>(a, d, warp, FOR_GATES, (uint2 *)(hs + hs_size));
    } else {
        hold<MATH, KT>(&w, a, d, warp);
    }
    load_bias<MATH>(a, seat_of(0), d, bias);
    clear_shared(xs, xs_size + hs_size);
    __syncthreads();
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += a.groups) forward_tile<MATH, KT>(a, d, tile, w, xs, hs, bias);
}

template <int MATH, int KT> static void launch(const call *c, const lstm_plan *p) {
    dim3 grid(p->a.groups, p->a.D);
    if (p->shared > (48 << 10))
        cudaFuncSetAttribute((const void *)forward_kernel<MATH, KT>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)p->shared);
    LAUNCH(c, (forward_kernel<MATH, KT>), grid, p->a.UT * 32, p->shared, p->a);
}

// Tiles of 16 columns for 2-byte elements, of 8 for others.
template <int MATH> static void choose(const call *c, const lstm_plan *p) {
    enum { NARROW = layout<MATH>::BYTES == 2 };
    switch (p->KT) {
    case 0: launch<MATH, 0>(c, p); return;
    case 2: launch<MATH, NARROW ? 2 : 0>(c, p); return;
    case 3: launch<MATH, 3>(c, p); return;
    case 4: launch<MATH, 4>(c, p); return;
    case 5: launch<MATH, NARROW ? 5 : 0>(c, p); return;
    case 6: launch<MATH, NARROW ? 0 : 6>(c, p); return;
    case 8: launch<MATH, NARROW ? 0 : 8>(c, p); return;
    case 10: launch<MATH, NARROW ? 0 : 10>(c, p); return;
    default: CHECK(false, "lstm: no kernel for %d tiles", p->KT);
    }
}

void lstm_forward_launch(const call *c, const lstm_plan *p) {
    pack(c, p, FOR_GATES);
#define FORWARD(M) choose<M>(c, p)
    BY_MATH(p->math, FORWARD)
}
