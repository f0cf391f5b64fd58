// A row's softmax cross-entropy on the card, and its gradient: see ops/cross_entropy.c.
#ifndef TRADEWIND_CUDA_CROSS_ENTROPY_CUH
#define TRADEWIND_CUDA_CROSS_ENTROPY_CUH

#include "cuda/loss.cuh"

// A row without its logits, of which there are K. Label and weight are read together before anything depends on them; the
// label of a row of weight 0 means nothing, and is 0 here.
struct ce_row {
    view class_weight;
    int K;
    float smoothing, weight;
    int y;
};

CUDA_FN ce_row ce_row_of(view class_weight, int K, float smoothing, float weight, int32_t label) {
    return ce_row{class_weight, K, smoothing, weight, weight != 0 ? label : 0};
}

struct softmax {
    float top, log_sum;
};

template <typename T> CUDA_FN softmax softmax_of(const T *z, int K) {
    float top = widen(z[0]), sum = 0;
    for (int k = 1; k < K; k++) {
        float v = widen(z[k]);
        top = v > top ? v : top;
    }
    for (int k = 0; k < K; k++) sum += expf(widen(z[k]) - top);
    return softmax{top, logf(sum)};
}

CUDA_FN float log_p(softmax m, float z) {
    return z - m.top - m.log_sum;
}

CUDA_FN float class_weight(const ce_row *r, int k) {
    return r->class_weight.data ? view_load(r->class_weight, k) : 1.0f;
}

template <typename T> CUDA_FN loss_sums row_loss(const ce_row *r, const T *z) {
    float s = r->smoothing, mine = class_weight(r, r->y), each = s / (float)r->K;
    if (r->weight == 0) return loss_sums{0, 0};
    softmax m = softmax_of(z, r->K);
    float loss = (1 - s) * mine * -log_p(m, widen(z[r->y]));
    for (int k = 0; s > 0 && k < r->K; k++) loss += each * class_weight(r, k) * -log_p(m, widen(z[k]));
    return loss_sums{(double)(r->weight * loss), (double)(r->weight * mine)};
}

// What the gradients of a row's logits share.
struct ce_back {
    softmax m;
    float scale, total, mine, each;
};

template <typename T> CUDA_FN ce_back row_back(const ce_row *r, const T *z, float up) {
    float s = r->smoothing, mine = (1 - s) * class_weight(r, r->y), each = s / (float)r->K;
    ce_back b = {softmax{0, 0}, up * r->weight, mine, mine, each};
    if (r->weight == 0) return b;
    b.m = softmax_of(z, r->K);
    for (int k = 0; s > 0 && k < r->K; k++) b.total += each * class_weight(r, k);
    return b;
}

CUDA_FN float row_back_at(const ce_row *r, const ce_back *b, float z, int k) {
    if (r->weight == 0) return 0;
    float target = k == r->y ? b->mine : 0;
    if (r->smoothing > 0) target += b->each * class_weight(r, k);
    return b->scale * (b->total * expf(log_p(b->m, z)) - target);
}

#endif
