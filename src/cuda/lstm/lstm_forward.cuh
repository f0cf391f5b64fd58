// The recurrence forward: the whole sequence in one launch. See cuda/lstm/lstm.cuh for the layout.
//
// For backward a step keeps the h that it starts from, as its operand, and the c that it ends with; the gates are
// cheaper to compute again than to read.
#ifndef TRADEWIND_CUDA_LSTM_LSTM_FORWARD_CUH
#define TRADEWIND_CUDA_LSTM_LSTM_FORWARD_CUH

#include "cuda/lstm/lstm.cuh"

// Blocks that a multiprocessor should hold.
// clang-format off
#define FORWARD_BOUNDS(MATH, FX, FH)                                                                                   \
    __launch_bounds__(held_warps(layout<MATH>::BYTES == 2, FH) * 32,                                                   \
        FH == 0 ? 1 : layout<MATH>::BYTES != 2 ? (FH <= 4 ? 3 : 1)                                                     \
        : FX + FH <= 4 && FH <= 2 ? 4 : FX + FH <= 6 && FH <= 4 ? 2 : 1)
// clang-format on

// h of a step for the layer above.
template <int MATH> CUDA_FN void store_pairs(const pairs<MATH> &p, const float h[4]) {
    if (layout<MATH>::BYTES == 2) {
        if (p.low) *(uint32_t *)p.at = pair_word<MATH>(h[0], h[1]);
        if (p.high) *(uint32_t *)(p.at + p.below) = pair_word<MATH>(h[2], h[3]);
    } else {
        if (p.low) *(float2 *)p.at = make_float2(h[0], h[1]);
        if (p.high) *(float2 *)(p.at + p.below) = make_float2(h[2], h[3]);
    }
}

CUDA_FN void store_states(const lstm_args &a, const seat &s, int d, int t, const float h[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (real(a, s, e)) view_put_call(a.states, states_index(a, s, d, t, e), h[e]);
}

template <int MATH> CUDA_FN void cell(const float z[4][4], float h[4], float c[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float in = gate_sigmoid<MATH>(z[0][e]), f = gate_sigmoid<MATH>(z[1][e]);
        c[e] = f * c[e] + in * gate_tanh<MATH>(z[2][e]);
        h[e] = gate_sigmoid<MATH>(z[3][e]) * gate_tanh<MATH>(c[e]);
    }
}

template <int MATH, int FX, int FH>
CUDA_FN void forward_tile(const lstm_args &a, int d, int64_t tile, const held<FX, FH> &w, typename layout<MATH>::E *xs,
    typename layout<MATH>::E *hs, const float bias[4][2]) {
    enum { BYTES = layout<MATH>::BYTES };
    const int KX = FH ? FX : a.KX, KH = FH ? FH : a.KH, T = a.T;
    const int xld = row_elements(KX, BYTES), hld = row_elements(KH, BYTES);
    const uint32_t slot = ROWS * xld * BYTES, buffer = ROWS * hld * BYTES;
    const uint32_t x_below = 8 * xld * BYTES, h_below = 8 * hld * BYTES;
    seat s = seat_of(tile);
    float h[4] = {}, c[4] = {}, z[4][4];
    if (FH == 0) {
        first_state(a, s, d, h, c);
        apply_reset(a, s, time_of(a, d, 0), h, c);
    }
    const uint32_t h_read = shared_address(hs) + lane_place<MATH>(hld) - KX * layout<MATH>::K * BYTES;
    const uint32_t h_put = shared_address(hs) + (s.g * hld + s.unit) * BYTES, x_step = d ? -slot : slot;
    const bool keeps = a.kept_h != NULL, states = a.states.data != NULL;
    piece mine = piece_of<MATH>(a, hld);
    mine.mine &= keeps;
    char *kept_h = kept_h_at<MATH>(a, d, tile, 0) + mine.packed;
    typename layout<MATH>::E *kept_c = kept_c_at<MATH>(a, d, tile, 0, s);
    pairs<MATH> out = pairs_at<MATH>(a, s, d, 0, a.states.data);
    put_units<MATH>(h_put, h_below, h);
    for (int i = 0, end = 0; i < T;) {
        chunk_of now = chunk_at(a, d, i);
        stage_x<MATH>(a, tile, now.t0, now.steps, xs, xld);
        __syncthreads();
        uint32_t x = shared_address(xs) + lane_place<MATH>(xld) + (d ? now.steps - 1 : 0) * slot;
        end += now.steps;
#pragma unroll 1
        for (; i < end; i++) {
            const uint32_t odd = i & 1 ? buffer : 0;
            if (mine.mine) *(uint4 *)kept_h = *(const uint4 *)((const char *)hs + odd + mine.shared);
            gates_of<MATH, FX, FH>(a, x, x_below, h_read + odd, h_below, w, bias, z);
            cell<MATH>(z, h, c);
            if (keeps) keep_c<MATH>(kept_c, c);
            if (FH > 0) {
                store_pairs<MATH>(out, h);
            } else if (states) {
                store_states(a, s, d, time_of(a, d, i), h);
            }
            kept_h += kept_h_bytes<MATH>(a);
            kept_c += a.UT * 32 * 4;
            out.at += out.step;
            x += x_step;
            if (FH == 0 && i + 1 < T) apply_reset(a, s, time_of(a, d, i + 1), h, c);
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
}

template <int MATH, int FX, int FH> static __global__ void FORWARD_BOUNDS(MATH, FX, FH) forward_kernel(lstm_args a) {
    cuda_begin();
    extern __shared__ uint4 room[];
    typedef typename layout<MATH>::E E;
    const int d = blockIdx.y, warp = threadIdx.x / 32, KX = FH ? FX : a.KX, KH = FH ? FH : a.KH;
    const int xs_size = a.chunk * ROWS * row_elements(KX, sizeof(E)), hs_size = 2 * ROWS * row_elements(KH, sizeof(E));
    E *xs = (E *)room, *hs = xs + xs_size;
    held<FX, FH> w;
    float bias[4][2];
    if constexpr (FH == 0) {
        w.at = own_fragments<MATH>(a, d, warp, FOR_GATES, (uint2 *)(hs + hs_size));
    } else {
        hold<MATH, FX, FH>(&w, weights_of(a, d, KX, KH), warp);
    }
    load_bias<MATH>(a, seat_of(0), d, bias);
    clear_shared(xs, (xs_size + hs_size) * sizeof(E));
    __syncthreads();
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += a.groups) {
        forward_tile<MATH, FX, FH>(a, d, tile, w, xs, hs, bias);
        __syncthreads();
    }
}

template <int MATH, int FX, int FH> static void launch_forward(const call *c, const lstm_plan *p) {
    dim3 grid(p->a.groups, p->a.D);
    const void *kernel = (const void *)forward_kernel<MATH, FX, FH>;
    cuda_allow_shared(kernel, p->shared);
    LAUNCH_EARLY(c, (forward_kernel<MATH, FX, FH>), grid, p->a.UT * 32, p->shared, p->a);
}

// Forms of the other width are not made.
#define FORWARD_FORM(is_narrow, fx, fh)                                                                                \
    if constexpr ((layout<MATH>::BYTES == 2) == is_narrow) {                                                           \
        if (p->FX == fx && p->FH == fh) {                                                                              \
            launch_forward<MATH, fx, fh>(c, p);                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
    }

template <int MATH> static void choose_forward(const call *c, const lstm_plan *p) {
    pack<MATH>(c, p, FOR_GATES);
    LSTM_FORWARD(FORWARD_FORM)
    CHECK(p->FH == 0, "lstm: no kernel for %d and %d tiles", p->FX, p->FH);
    launch_forward<MATH, 0, 0>(c, p);
}

#endif
