// basis on the card: see ops/basis.c. A thread a result; products in fp32.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(view theta, view f, view y, int64_t B, int64_t K, int64_t H) {
    FOR_EACH(i, B * H) {
        int64_t b = i / H, h = i % H;
        float sum = 0;
        for (int64_t k = 0; k < K; k++) sum += view_load(theta, b * K + k) * view_load(f, k * H + h);
        view_store(y, i, sum);
    }
}

static __global__ void backward_kernel(view dtheta, view f, view dy, int64_t B, int64_t K, int64_t H) {
    FOR_EACH(i, B * K) {
        int64_t b = i / K, k = i % K;
        float sum = 0;
        for (int64_t h = 0; h < H; h++) sum += view_load(dy, b * H + h) * view_load(f, k * H + h);
        view_put(dtheta, i, sum);
    }
}

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0], K = c->in[1].shape.dim[0], H = c->in[1].shape.dim[1];
    LAUNCH(c, forward_kernel, blocks_for(B * H, 128), 128, 0, view_of(&c->in[0]), view_of(&c->in[1]),
        view_of(&c->out[0]), B, K, H);
}

static void backward(const call *c) {
    int64_t B = c->in[0].shape.dim[0], K = c->in[1].shape.dim[0], H = c->in[1].shape.dim[1];
    LAUNCH(c, backward_kernel, blocks_for(B * K, 128), 128, 0, view_of(&c->din[0]), view_of(&c->in[1]),
        view_of(&c->dout[0]), B, K, H);
}

extern "C" const kernel cuda_basis = {forward, backward, NULL, NULL};
