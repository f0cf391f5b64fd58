// cross_entropy on the card: see ops/cross_entropy.c. A thread a row.
#include "cuda/ops/cross_entropy.cuh"

struct ce_args {
    const void *logits;
    const int32_t *label;
    view weight, class_weight;
    int64_t B;
    int K;
    float smoothing;
};

CUDA_FN ce_row row_at(const ce_args *a, int64_t b) {
    return ce_row{a->class_weight, a->K, a->smoothing, view_load(a->weight, b), a->label[b]};
}

template <typename T> static __global__ void forward_kernel(ce_args a, loss_sums *parts) {
    int64_t b = (int64_t)blockIdx.x * LOSS_ROWS + threadIdx.x;
    loss_sums mine = {0, 0};
    if (b < a.B) {
        ce_row r = row_at(&a, b);
        mine = row_loss(&r, (const T *)a.logits + b * a.K);
    }
    loss_piece(mine, parts);
}

template <typename T> static __global__ void backward_kernel(ce_args a, view up, view dz) {
    FOR_EACH(b, a.B) {
        const T *z = (const T *)a.logits + b * a.K;
        ce_row r = row_at(&a, b);
        ce_back back = row_back(&r, z, view_load(up, 0));
        for (int k = 0; k < a.K; k++) view_put(dz, b * a.K + k, row_back_at(&r, &back, widen(z[k]), k));
    }
}

static ce_args args_of(const call *c) {
    return ce_args{c->in[0].data, (const int32_t *)c->in[1].data, view_of(&c->in[2]), view_of(&c->in[3]),
        c->in[0].shape.dim[0], (int)c->in[0].shape.dim[1], ((const cross_entropy_attr *)c->attr)->smoothing};
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

extern "C" const kernel cuda_cross_entropy = {forward, backward, loss_scratch, NULL};
