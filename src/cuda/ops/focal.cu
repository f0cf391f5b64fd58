// focal on the card: see ops/focal.c. A thread a row.
#include "cuda/ops/cross_entropy.cuh"

struct focal_args {
    const void *logits;
    const int32_t *label;
    view weight, class_weight;
    int64_t B;
    int K;
    focal_settings settings;
};

CUDA_FN ce_row row_at(const focal_args *a, int64_t b) {
    return ce_row{a->class_weight, a->K, a->settings.smoothing, view_load(a->weight, b), a->label[b]};
}

// 1 - p_y as the sum of the others, which keeps its digits where p_y is near 1.
template <typename T> CUDA_FN float missing(const T *z, int K, int y, softmax m) {
    float sum = 0;
    for (int k = 0; k < K; k++)
        if (k != y) sum += expf(log_p(m, widen(z[k])));
    return sum;
}

template <typename T> static __global__ void forward_kernel(focal_args a, loss_sums *parts) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    loss_sums mine = {0, 0};
    if (b < a.B && view_load(a.weight, b) != 0) {
        ce_row r = row_at(&a, b);
        const T *z = (const T *)a.logits + b * a.K;
        mine = row_loss(&r, z);
        mine.sum *= (double)powf(missing(z, a.K, r.label, softmax_of(z, a.K)), a.settings.gamma);
    }
    loss_piece(mine, parts);
}

template <typename T> static __global__ void backward_kernel(focal_args a, view up, view dz) {
    FOR_EACH(b, a.B) {
        const T *z = (const T *)a.logits + b * a.K;
        ce_row r = row_at(&a, b);
        ce_back back = row_back(&r, z, view_load(up, 0));
        float rest = 0, focus = 0, turn = 0, gamma = a.settings.gamma;
        if (r.weight != 0) {
            rest = missing(z, a.K, r.label, back.m);
            focus = powf(rest, gamma);
            if (rest != 0 && gamma > 0) // a NaN stays one
                turn = view_load(up, 0) * gamma * powf(rest, gamma - 1) * expf(log_p(back.m, widen(z[r.label]))) *
                       (float)row_loss(&r, z).sum;
        }
        for (int k = 0; k < a.K; k++) {
            float off = k == r.label ? -rest : expf(log_p(back.m, widen(z[k])));
            float d = r.weight != 0 ? focus * row_back_at(&r, &back, widen(z[k]), k) + turn * off : 0.0f;
            view_put(dz, b * a.K + k, d);
        }
    }
}

static focal_args args_of(const call *c) {
    return focal_args{c->in[0].data, (const int32_t *)c->in[1].data, view_of(&c->in[2]), view_of(&c->in[3]),
        c->in[0].shape.dim[0], (int)c->in[0].shape.dim[1], *(const focal_settings *)c->attr};
}

template <typename T> static void forward_as(const call *c) {
    LAUNCH(c, forward_kernel<T>, loss_pieces(c), LOSS_ROWS, 0, args_of(c), (loss_sums *)c->scratch);
    loss_add(c);
}

template <typename T> static void backward_as(const call *c) {
    LAUNCH(c, backward_kernel<T>, blocks_for(c->in[0].shape.dim[0], 128), 128, 0, args_of(c), view_of(&c->dout[0]),
        view_of(&c->din[0]));
}

static void forward(const call *c) {
    switch (c->in[0].type) {
    case DTYPE_BF16: forward_as<__nv_bfloat16>(c); break;
    case DTYPE_F16: forward_as<__half>(c); break;
    default: forward_as<float>(c); break;
    }
}

static void backward(const call *c) {
    switch (c->in[0].type) {
    case DTYPE_BF16: backward_as<__nv_bfloat16>(c); break;
    case DTYPE_F16: backward_as<__half>(c); break;
    default: backward_as<float>(c); break;
    }
}

extern "C" const kernel cuda_focal = {forward, backward, loss_scratch, NULL};
