// cross_entropy on the card: see ops/cross_entropy.c. A thread a row.
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

static __global__ void forward_kernel(ce_args a, loss_sums *parts) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    loss_piece(b < a.B ? row_loss(&a, b) : loss_sums{0, 0}, parts);
}

static __global__ void backward_kernel(ce_args a, view up, view dz) {
    FOR_EACH(b, a.B) {
        float w = view_load(a.weight, b), scale = view_load(up, 0) * w, s = a.smoothing;
        softmax m = w != 0 ? softmax_of(&a, b) : softmax{0, 0};
        int32_t y = w != 0 ? a.label[b] : 0;
        float total = (1 - s) * class_weight(&a, y);
        for (int64_t k = 0; k < a.K; k++) total += s / (float)a.K * class_weight(&a, k);
        for (int64_t k = 0; k < a.K; k++) {
            float target = s / (float)a.K * class_weight(&a, k) + (k == y ? (1 - s) * class_weight(&a, y) : 0.0f);
            view_put(dz, b * a.K + k, w != 0 ? scale * (total * expf(log_p(&a, m, b, k)) - target) : 0.0f);
        }
    }
}

static ce_args args_of(const call *c) {
    return ce_args{view_of(&c->in[0]), (const int32_t *)c->in[1].data, view_of(&c->in[2]), view_of(&c->in[3]),
        c->in[0].shape.dim[0], c->in[0].shape.dim[1], ((const cross_entropy_attr *)c->attr)->smoothing};
}

static void forward(const call *c) {
    LAUNCH(c, forward_kernel, loss_pieces(c), LOSS_ROWS, 0, args_of(c), (loss_sums *)c->scratch);
    loss_add(c);
}

static void backward(const call *c) {
    LAUNCH(c, backward_kernel, blocks_for(c->in[0].shape.dim[0], 128), 128, 0, args_of(c), view_of(&c->dout[0]),
        view_of(&c->din[0]));
}

extern "C" const kernel cuda_cross_entropy = {forward, backward, loss_scratch, NULL};
