// A row's softmax cross-entropy on the card, and its gradient: see ops/cross_entropy.c.
#ifndef TRADEWIND_CUDA_CROSS_ENTROPY_CUH
#define TRADEWIND_CUDA_CROSS_ENTROPY_CUH

#include "cuda/loss.cuh"

struct ce_args {
    view logits;
    const int32_t *label;
    view weight, class_weight;
    int64_t B, K;
    float smoothing;
};

struct softmax {
    float top, log_sum;
};

CUDA_FN softmax softmax_of(const ce_args *a, int64_t b) {
    float top = view_load(a->logits, b * a->K), sum = 0;
    for (int64_t k = 1; k < a->K; k++) {
        float z = view_load(a->logits, b * a->K + k);
        top = z > top ? z : top;
    }
    for (int64_t k = 0; k < a->K; k++) sum += expf(view_load(a->logits, b * a->K + k) - top);
    return softmax{top, logf(sum)};
}

CUDA_FN float log_p(const ce_args *a, softmax m, int64_t b, int64_t k) {
    return view_load(a->logits, b * a->K + k) - m.top - m.log_sum;
}

CUDA_FN float class_weight(const ce_args *a, int64_t k) {
    return a->class_weight.data ? view_load(a->class_weight, k) : 1.0f;
}

CUDA_FN loss_sums row_loss(const ce_args *a, int64_t b) {
    float w = view_load(a->weight, b), s = a->smoothing;
    if (w == 0) return loss_sums{0, 0};
    softmax m = softmax_of(a, b);
    int32_t y = a->label[b];
    float loss = (1 - s) * class_weight(a, y) * -log_p(a, m, b, y);
    for (int64_t k = 0; s > 0 && k < a->K; k++) loss += s / (float)a->K * class_weight(a, k) * -log_p(a, m, b, k);
    return loss_sums{(double)(w * loss), (double)(w * class_weight(a, y))};
}

// What the gradients of a row's logits share.
struct ce_row {
    softmax m;
    float scale, total;
    int32_t y;
    bool live;
};

CUDA_FN ce_row row_back(const ce_args *a, int64_t b, float up) {
    float w = view_load(a->weight, b), s = a->smoothing;
    ce_row r = {softmax{0, 0}, up * w, 0, 0, w != 0};
    if (r.live) {
        r.m = softmax_of(a, b);
        r.y = a->label[b];
    }
    r.total = (1 - s) * class_weight(a, r.y);
    for (int64_t k = 0; k < a->K; k++) r.total += s / (float)a->K * class_weight(a, k);
    return r;
}

CUDA_FN float row_back_at(const ce_args *a, const ce_row *r, int64_t b, int64_t k) {
    float s = a->smoothing;
    float target = s / (float)a->K * class_weight(a, k) + (k == r->y ? (1 - s) * class_weight(a, r->y) : 0.0f);
    return r->live ? r->scale * (r->total * expf(log_p(a, r->m, b, k)) - target) : 0.0f;
}

#endif
