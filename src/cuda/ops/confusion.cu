// confusion on the card: see ops/confusion.c. Counts are integers, so the order of additions does not matter.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(
    view logits, const int32_t *label, view weight, unsigned long long *count, int64_t B, int64_t K) {
    FOR_EACH(b, B) {
        if (view_load(weight, b) == 0) continue;
        int64_t best = 0;
        float top = view_load(logits, b * K);
        for (int64_t k = 1; k < K; k++) {
            float z = view_load(logits, b * K + k);
            if (z > top || (top != top && z == z)) {
                top = z;
                best = k;
            }
        }
        atomicAdd(&count[label[b] * K + best], 1ull);
    }
}

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0];
    LAUNCH(c, forward_kernel, blocks_for(B, 128), 128, 0, view_of(&c->in[0]), (const int32_t *)c->in[1].data,
        view_of(&c->in[2]), (unsigned long long *)c->out[0].data, B, c->in[0].shape.dim[1]);
}

extern "C" const kernel cuda_confusion = {forward, NULL, NULL, NULL};
