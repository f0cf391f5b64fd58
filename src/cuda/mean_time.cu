// mean_time on the card: see ops/mean_time.c. A thread a column of a sample.
#include "cuda/cuda.cuh"

CUDA_FN float share(view mask, int64_t b, int64_t T) {
    int64_t steps = mask.data ? 0 : T;
    for (int64_t t = 0; mask.data && t < T; t++) steps += view_load(mask, b * T + t) != 0;
    return steps ? 1.0f / (float)steps : 0.0f;
}

static __global__ void forward_kernel(view x, view mask, view y, int64_t B, int64_t T, int64_t C) {
    FOR_EACH(i, B * C) {
        int64_t b = i / C, j = i % C;
        float sum = 0;
        for (int64_t t = 0; t < T; t++)
            if (!mask.data || view_load(mask, b * T + t) != 0) sum += view_load(x, (b * T + t) * C + j);
        view_store(y, i, sum * share(mask, b, T));
    }
}

static __global__ void backward_kernel(view dx, view mask, view dy, int64_t B, int64_t T, int64_t C) {
    FOR_EACH(i, B * C) {
        int64_t b = i / C, j = i % C;
        float d = view_load(dy, i) * share(mask, b, T);
        for (int64_t t = 0; t < T; t++)
            view_put(dx, (b * T + t) * C + j, !mask.data || view_load(mask, b * T + t) != 0 ? d : 0.0f);
    }
}

static void forward(const call *c) {
    shape s = c->in[0].shape;
    LAUNCH(c, forward_kernel, blocks_for(s.dim[0] * s.dim[2], 128), 128, 0, view_of(&c->in[0]), view_of(&c->in[1]),
        view_of(&c->out[0]), s.dim[0], s.dim[1], s.dim[2]);
}

static void backward(const call *c) {
    shape s = c->in[0].shape;
    LAUNCH(c, backward_kernel, blocks_for(s.dim[0] * s.dim[2], 128), 128, 0, view_of(&c->din[0]), view_of(&c->in[1]),
        view_of(&c->dout[0]), s.dim[0], s.dim[1], s.dim[2]);
}

extern "C" const kernel cuda_mean_time = {forward, backward, NULL, NULL};
