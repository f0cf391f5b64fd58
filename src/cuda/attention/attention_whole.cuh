// attention backward for short sequences of narrow heads with 2-byte elements: all keys of a query at once, none of
// them hidden (no mask, not causal), heads of 16 columns at most. See cuda/attention/attention.cuh.
//
// A warp owns a head. It takes 16 queries at a time and computes scores and their gradients once: dq is done with them,
// dk and dv are sums in registers from one 16 queries to the next, so that each has one order. They are formed turned
// over, 16 columns by 8 NT keys: then 8 x 8 tiles of probabilities, turned within the warp, are their right operands.
// Results go out by way of the head's own tiles in shared memory, when the warp has no more need of these.
#ifndef TRADEWIND_CUDA_ATTENTION_ATTENTION_WHOLE_CUH
#define TRADEWIND_CUDA_ATTENTION_ATTENTION_WHOLE_CUH

#include "cuda/attention/attention_kernel.cuh"

// An 8 x 8 tile of 2-byte elements, a pair a lane, turned over.
CUDA_FN uint32_t turn_over(uint32_t w) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(w));
    return r;
}

// c += x' p, where `stay`, if any, says which of p are not 0: 16 rows of x and of p.
template <int MATH, int NT>
CUDA_FN void multiply_turned(
    float c[NT][4], const element_of<MATH> *x, const heads<MATH> &w, const float p[NT][4], const row_bits<NT> *stay) {
    frag_a a;
    load_matrices_turned(a.w, shared_address(x + w.start.rows));
#pragma unroll
    for (int n = 0; n < NT; n++) {
        frag_b b;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint32_t word = pair_word<MATH>(p[n][2 * r], p[n][2 * r + 1]);
            b.w[r] = turn_over(stay ? word & pair_mask<NT>(*stay, n, r) : word);
        }
        mma<MATH>(c[n], a, b);
    }
}

// Brings the values that forward kept of the warp's head into shared memory: queries past the last have 0.
template <int MATH> CUDA_FN void fetch_kept_head(const attention_args &a, const heads<MATH> &w, int h) {
    const float *kept = a.kept + w.item + h * a.T;
    const uint2 *bits = (const uint2 *)a.bits + w.item + h * a.T;
#pragma unroll 1
    for (int t = threadIdx.x % 32; t < a.rows; t += 32) {
        bool live = t < a.T;
        w.kept[h * a.rows + t] = live ? kept[t] : 0.0f;
        if (a.drops) ((uint2 *)w.bits)[h * a.rows + t] = live ? bits[t] : uint2{0, 0};
    }
}

template <int MATH, int NT>
CUDA_FN row_bits<NT> kept_bits(const attention_args &a, const heads<MATH> &w, int h, int row) {
    lane_place l = lane_of();
    row_bits<NT> stay;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        uint2 bits = a.drops ? ((const uint2 *)w.bits)[h * a.rows + row + l.g + r * 8] : uint2{~0u, ~0u};
#pragma unroll
        for (int i = 0; i < row_bits<NT>::WORDS; i++) stay.w[r][i] = (i ? bits.y : bits.x) >> 2 * l.t;
    }
    return stay;
}

// Gradients of scores in place of probabilities, without dropout's factor and that of scores.
template <int NT> CUDA_FN void score_gradients(float p[NT][4], float dp[NT][4], const row_bits<NT> &stay) {
    float mean[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            dp[n][e] = row_bit<NT>(stay, n, e) ? dp[n][e] : 0.0f;
            mean[e / 2] += p[n][e] * dp[n][e];
        }
    mean[0] = quad_sum(mean[0]);
    mean[1] = quad_sum(mean[1]);
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) p[n][e] *= dp[n][e] - mean[e / 2];
}

// dq of 16 queries, and their part of dk and dv, without their factors.
template <int MATH, int NT>
CUDA_FN void whole_queries(const attention_args &a, const heads<MATH> &w, float dk[NT][4], float dv[NT][4], int h,
    int row, int tiles, float factor) {
    lane_place l = lane_of();
    int column = h * a.slot, at = row * a.stride + column;
    float p[NT][4], dp[NT][4], dq[2][4] = {}, by = a.scale * LOG2_E, both[2] = {factor, factor};
    float kept[2] = {w.kept[h * a.rows + row + l.g], w.kept[h * a.rows + row + l.g + 8]};
    multiply_rows<MATH, NT, NT - 1>(p, w.q + at, w.k + column, w, a.stride, 16, tiles);
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) p[n][e] = exp2_fast(p[n][e] * by - kept[e / 2]);
    hide_past<NT>(a, p, 0.0f);
    row_bits<NT> stay = kept_bits<MATH, NT>(a, w, h, row);
    multiply_turned<MATH, NT>(dv, w.dy + at, w, p, &stay);
    multiply_rows<MATH, NT, NT - 1>(dp, w.dy + at, w.v + column, w, a.stride, 16, tiles);
    score_gradients<NT>(p, dp, stay);
    multiply_turned<MATH, NT>(dk, w.q + at, w, p, NULL);
    multiply_columns<MATH, NT, NT - 1, 2>(dq, p, NULL, w.k + column, w, a.stride, tiles, 16);
    put_tile<MATH, 2, true>(a.dx, w.sample * a.T * 3 * a.D, row * 3 * a.D + (w.first + h) * a.d, 3 * a.D, a.T - row,
        a.d, dq, both, w.q + at, a.stride);
}

// Gradients of a head's keys or values, `factor` times, element by element.
template <int NT>
static __device__ __noinline__ void put_turned_slowly(
    const attention_args &a, const float (*c)[4], float factor, int64_t first) {
    lane_place l = lane_of();
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int key = n * 8 + 2 * l.t + e % 2, k = l.g + e / 2 * 8;
            if (key < a.T && k < a.d) view_put_call(a.dx, first + key * 3 * a.D + k, c[n][e] * factor);
        }
}

// The same by way of `room`, their own tile, where they may go so.
template <int MATH, int NT>
CUDA_FN void put_turned(
    const attention_args &a, const float c[NT][4], float factor, int64_t base, int first, element_of<MATH> *room) {
    lane_place l = lane_of();
    element_of<MATH> *mine = room + l.g * a.stride + 2 * l.t;
    if (!by_runs(room, a.dx)) {
        put_turned_slowly<NT>(a, c, factor, base + first);
        return;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * NT; i++) {
        int n = i / 2, r = i % 2;
        uint32_t word = turn_over(pair_word<MATH>(c[n][2 * r] * factor, c[n][2 * r + 1] * factor));
        if (n < NT - 1 || n * 8 < a.T) *(uint32_t *)(mine + n * 8 * a.stride + r * 8) = word;
    }
#pragma unroll 1
    for (int key = 0; key < a.T; key += 16)
        put_runs<2>(a.dx, base, first + key * 3 * a.D, 3 * a.D, a.T - key, a.d, room + key * a.stride, a.stride);
}

template <int MATH, int NT>
static __global__ void __launch_bounds__(ATTENTION_WHOLE_THREADS, 3)
    whole_backward_kernel(const __grid_constant__ attention_args a) {
    extern __shared__ uint4 room[];
    cuda_begin();
    heads<MATH> w = heads_of<MATH>(a, room, 4);
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, tiles = tiles_of(a.T, NT);
    float keep = a.drops ? a.keep : 1.0f;
    fetch_tiles<MATH, true, true>(a, w);
    __pipeline_commit();
    for (int h = warp; h < a.group; h += warps) fetch_kept_head(a, w, h);
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int h = warp; h < a.group; h += warps) {
        float dk[NT][4] = {}, dv[NT][4] = {};
        for (int row = 0; row < a.rows; row += 16) whole_queries<MATH, NT>(a, w, dk, dv, h, row, tiles, a.scale * keep);
        int64_t base = w.sample * a.T * 3 * a.D;
        int to = (w.first + h) * a.d;
        put_turned<MATH, NT>(a, dk, a.scale * keep, base, to + a.D, w.k + h * a.slot);
        put_turned<MATH, NT>(a, dv, keep, base, to + 2 * a.D, w.v + h * a.slot);
    }
}

#endif
