// A row's softmax cross-entropy on the card, and its gradient: see ops/cross_entropy.c.
#ifndef TRADEWIND_CUDA_OPS_CROSS_ENTROPY_CUH
#define TRADEWIND_CUDA_OPS_CROSS_ENTROPY_CUH

#include "cuda/ops/loss.cuh"

// A row without its logits, of which there are K. Weight and label are on their way while the softmax is formed, also
// that of a row of weight 0, whose label and logits mean nothing.
struct ce_row {
    view class_weight;
    int K;
    float smoothing, weight;
    int32_t label;
};

struct softmax {
    float top, log_sum;
};

// Logits k .. k + 3 of K, and `past` for what is behind them: few classes are the rule, and their loads do not wait for
// each other.
template <typename T> CUDA_FN void four_logits(float v[4], const T *z, int k, int K, float past) {
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = k + e < K ? widen(z[k + e]) : past;
}

template <typename T> CUDA_FN softmax softmax_of(const T *z, int K) {
    float top = widen(z[0]), sum = 0, v[4];
#pragma unroll 1
    for (int k = 0; k < K; k += 4) {
        four_logits(v, z, k, K, -INFINITY);
#pragma unroll
        for (int e = 0; e < 4; e++) top = v[e] > top ? v[e] : top;
    }
#pragma unroll 1
    for (int k = 0; k < K; k += 4) {
        four_logits(v, z, k, K, -INFINITY);
#pragma unroll
        for (int e = 0; e < 4; e++) sum += expf(v[e] - top);
    }
    return softmax{top, logf(sum)};
}

// The largest logit; the first of them, and a NaN only where all are.
template <typename T> CUDA_FN int largest(const T *z, int K) {
    int best = 0;
    float top = widen(z[0]), v[4];
#pragma unroll 1
    for (int k = 0; k < K; k += 4) {
        four_logits(v, z, k, K, NAN);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (!(v[e] > top || (top != top && v[e] == v[e]))) continue;
            top = v[e];
            best = k + e;
        }
    }
    return best;
}

CUDA_FN float log_p(softmax m, float z) {
    return z - m.top - m.log_sum;
}

CUDA_FN float class_weight(const ce_row *r, int k) {
    return r->class_weight.data ? view_load(r->class_weight, k) : 1.0f;
}

template <typename T> CUDA_FN loss_sums row_loss(const ce_row *r, const T *z) {
    softmax m = softmax_of(z, r->K);
    if (r->weight == 0) return loss_sums{0, 0};
    float s = r->smoothing, mine = class_weight(r, r->label), each = s / (float)r->K;
    float loss = (1 - s) * mine * -log_p(m, widen(z[r->label]));
#pragma unroll 1
    for (int k = 0; s > 0 && k < r->K; k++) loss += each * class_weight(r, k) * -log_p(m, widen(z[k]));
    return loss_sums{(double)(r->weight * loss), (double)(r->weight * mine)};
}

// Values common to the gradients of a row's logits.
struct ce_back {
    softmax m;
    float scale, total, mine, each;
};

template <typename T> CUDA_FN ce_back row_back(const ce_row *r, const T *z, float up) {
    float s = r->smoothing, each = s / (float)r->K;
    ce_back b = {softmax_of(z, r->K), up * r->weight, 0, 0, each};
    if (r->weight == 0) return b;
    b.total = b.mine = (1 - s) * class_weight(r, r->label);
#pragma unroll 1
    for (int k = 0; s > 0 && k < r->K; k++) b.total += each * class_weight(r, k);
    return b;
}

CUDA_FN float row_back_at(const ce_row *r, const ce_back *b, float z, int k) {
    if (r->weight == 0) return 0;
    float target = k == r->label ? b->mine : 0;
    if (r->smoothing > 0) target += b->each * class_weight(r, k);
    return b->scale * (b->total * expf(log_p(b->m, z)) - target);
}

#endif
